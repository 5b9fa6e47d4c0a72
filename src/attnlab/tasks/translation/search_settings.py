"""Settings of a search that a caller changes: `beam=5`, `temperature=0.7`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from attnlab.config.target import TARGET
from attnlab.errors import ExperimentError
from attnlab.search.beam import BeamSearch
from attnlab.search.greedy import GreedySearch
from attnlab.search.sample import SampleSearch

# The defaults of each search, as in conf/search, where the model was trained with another one.
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
    given = dict(settings)
    if "beam" in given:
        given["size"] = given.pop("beam")
    chosen = given.pop("search", None)
    if chosen is not None and chosen not in SEARCHES:
        raise ExperimentError(f"search must be one of {', '.join(SEARCHES)}; got {chosen!r}")

    settings_of = {name: _settings(search) for name, (search, _) in SEARCHES.items()}
    every_setting = set().union(*settings_of.values())
    for setting in given:
        if setting not in own and setting not in every_setting:
            raise ExperimentError(
                f"{setting} is no setting of a search; there are beam, search, "
                f"{', '.join(sorted(every_setting))}"
            )

    # The model's own search, unless another one is chosen by name or by a setting.
    if chosen is None and given.keys() <= own.keys():
        return {**own, **given}

    candidates = list(SEARCHES) if chosen is None else [chosen]
    fitting = [name for name in candidates if given.keys() <= settings_of[name]]
    if not fitting:
        searches = "one search" if chosen is None else f"search={chosen!r}"
        raise ExperimentError(
            f"{', '.join(map(repr, settings))} do not go together with {searches}"
        )
    name = fitting[0]
    search, defaults = SEARCHES[name]
    shared = {setting: value for setting, value in own.items() if setting in settings_of[name]}
    target = f"{search.__module__}.{search.__name__}"
    return {TARGET: target, **defaults, **shared, **given}


def _settings(search: type) -> set[str]:
    """The names of a search's settings."""
    return set(inspect.signature(search).parameters)
