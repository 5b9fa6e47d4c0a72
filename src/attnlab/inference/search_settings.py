"""The settings of a search that a caller changes: `beam=5`, `temperature=0.7`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from attnlab.config.binding import TARGET
from attnlab.errors import ExperimentError
from attnlab.search.beam import BeamSearch
from attnlab.search.greedy import GreedySearch
from attnlab.search.sample import SampleSearch

# What a search starts from where the model was trained with another one, as conf/search has it.
SEARCHES: dict[str, tuple[type, dict[str, Any]]] = {
    "greedy": (GreedySearch, {}),
    "beam": (BeamSearch, {"size": 5, "length_penalty": 1.0}),
    "sample": (SampleSearch, {"temperature": 1.0, "top_k": None, "top_p": None, "seed": 1}),
}


def with_settings(own: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """A search's config with some settings changed.

    A setting that only another search has chooses that one: `beam` (another name of its `size`)
    beam search, `temperature` sampling. `search` chooses one by name.

    Raises ExperimentError for a setting that no search has, or that go with different ones.
    """
    given = {"size" if name == "beam" else name: value for name, value in settings.items()}
    name = given.pop("search", None)
    if name is not None and name not in SEARCHES:
        raise ExperimentError(f"search must be one of {', '.join(SEARCHES)}; got {name!r}")
    kinds = {each: inspect.signature(kind).parameters for each, (kind, _) in SEARCHES.items()}
    unknown = [
        each
        for each in given
        if each not in own and not any(each in names for names in kinds.values())
    ]
    if unknown:
        allowed = sorted({each for names in kinds.values() for each in names})
        raise ExperimentError(
            f"{unknown[0]} is no setting of a search; there are beam, search, {', '.join(allowed)}"
        )
    if name is None and all(each in own for each in given):
        return {**own, **given}
    fitting = [
        each
        for each, names in kinds.items()
        if name in (None, each) and all(one in names for one in given)
    ]
    if not fitting:
        searches = f"search={name!r}" if name else "one search"
        raise ExperimentError(
            f"{', '.join(map(repr, settings))} do not go together with {searches}"
        )
    kind, start = SEARCHES[fitting[0]]
    shared = {each: value for each, value in own.items() if each in kinds[fitting[0]]}
    return {TARGET: f"{kind.__module__}.{kind.__name__}", **start, **shared, **given}
