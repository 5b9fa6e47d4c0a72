"""The models that a page asks, what it is offered of each, and the answers of their analyses."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ConfigDict, validate_call

from attnlab.config.names import readable_name
from attnlab.data.prepared import Prepared
from attnlab.errors import ExperimentError
from attnlab.explorer.formed import formed, trainings_of
from attnlab.explorer.loss_table import LossTable
from attnlab.tasks.edited_source import first_known_text
from attnlab.tasks.predictor import ExplorerPage, Predictor
from attnlab.tasks.saved import task_of_predictor

# A folder of prepared data for all models that read pairs, or one for each of some models by name.
Corpora: TypeAlias = Path | Mapping[str, Path] | None

# What the page asks of every model, beside the analyses of its task.
PAIRS, LOSSES, FORMED = "pairs", "losses", "formed"


@functools.cache
def validated(function: Callable[..., Any]) -> Callable[..., Any]:
    """The analysis with the types of its arguments checked, and made of a request's JSON."""
    return validate_call(config=ConfigDict(arbitrary_types_allowed=True, extra="forbid"))(function)


class ServedModels:
    """Models by their names, with the test split of prepared data.

    Args:
        models: by their names.
        data: that they are offered.
        downloads: a folder for what MLflow has of their trainings; None leaves it out.

    Raises ExperimentError for a model that has no page, and for data that none of them reads.
    """

    def __init__(
        self, models: Mapping[str, Predictor], data: Corpora = None, downloads: Path | None = None
    ) -> None:
        self._models = models
        self._pages = {name: page_of(name, model) for name, model in models.items()}
        opened = open_data(self._pages, data)
        self._pairs = pairs_of(self._pages, opened)
        # The analyses run in threads, and an analysis may put hooks on the model.
        self._lock = threading.Lock()
        self._tables = loss_tables(self._pages, opened, self._lock)
        self._trainings = trainings_of(models, downloads)

    @property
    def analyses(self) -> list[str]:
        """What any of the models can be asked."""
        names = [PAIRS, LOSSES, FORMED]
        for page in self._pages.values():
            names += [name for name in page.analyses if name not in names]
        return names

    def answer(self, analysis: str, body: Mapping[str, Any]) -> Any:
        """The answer of one model.

        body: `model`, its name, and the arguments of the analysis.

        Raises ExperimentError for a model that is not served, and for what it cannot be asked;
        pydantic's ValidationError for arguments of other types.
        """
        name = body.get("model")
        if not isinstance(name, str) or name not in self._models:
            raise ExperimentError(f"model must be one of {', '.join(self._models)}; got {name!r}")
        arguments = {key: value for key, value in body.items() if key != "model"}
        if analysis == PAIRS:
            return self._pairs[name]
        if analysis == LOSSES:
            return self._losses(name, arguments)
        if analysis == FORMED:
            return self._formed(name)
        function = self._pages[name].analyses.get(analysis)
        if function is None:
            raise ExperimentError("this analysis does not fit the kind of the model")
        with self._lock:
            return validated(function)(self._models[name], **arguments)

    def _losses(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """A page of the table of test sentences."""
        if name not in self._tables:
            raise ExperimentError("there are no test sentences; start the explorer with --data")
        return validated(LossTable.page)(self._tables[name], **arguments)

    def _formed(self, name: str) -> Any:
        """How the attention formed in training."""
        if name not in self._trainings:
            raise ExperimentError("no attention of this model's validations was kept")
        return formed(self._trainings[name], self._models[name].config)

    def facts(self) -> list[dict[str, Any]]:
        """What the page knows of each model before it asks anything."""
        rows = []
        for name, model in self._models.items():
            # The first pair of the data, if the model knows its words
            examples = [pair["source"] for pair in self._pairs[name][:1]]
            offers = {"has_test_set": name in self._tables, "has_formed": name in self._trainings}
            of_model = describe(model, self._pages[name], examples)
            rows.append({"name": name, "title": model_title(model), **offers, **of_model})
        return rows


def page_of(name: str, model: Predictor) -> ExplorerPage:
    task = task_of_predictor(model)
    page = None if task is None else task.explorer_page(model)
    if page is None:
        raise ExperimentError(
            f"{name}: the explorer has no page for a {type(model).__name__}; leave it out"
        )
    return page


def open_data(pages: Mapping[str, ExplorerPage], data: Corpora) -> dict[str, Prepared]:
    """The prepared data that each model is offered; none without data.

    Raises ExperimentError where no model reads them, and where they are damaged.
    """
    if data is None:
        return {}
    opened: dict[str, Prepared] = {}
    folders = data if isinstance(data, Mapping) else dict.fromkeys(pages, data)
    for name, folder in folders.items():
        reads = pages[name].reads
        if reads is not None and not reads.is_other_kind(folder):
            opened[name] = reads(folder)
    if not opened:
        shown = ", ".join(sorted({str(folder) for folder in folders.values()}))
        raise ExperimentError(f"--data {shown}: none of these models reads such data; leave it out")
    return opened


def pairs_of(
    pages: Mapping[str, ExplorerPage], opened: Mapping[str, Prepared]
) -> dict[str, list[Any]]:
    """For each model the test pairs that it is offered; opened: as `open_data` returns it."""
    pairs: dict[str, list[Any]] = {name: [] for name in pages}
    for name, data in opened.items():
        read = pages[name].pairs
        if read is not None:
            pairs[name] = read(data)
    return pairs


def loss_tables(
    pages: Mapping[str, ExplorerPage],
    opened: Mapping[str, Prepared],
    lock: threading.Lock,
) -> dict[str, LossTable]:
    """The table of the test sentences of each model that reads them; arguments as above."""
    tables: dict[str, LossTable] = {}
    for name, data in opened.items():
        score = pages[name].score_sentences
        if score is not None:
            tables[name] = LossTable(score(data), lock)
    return tables


def describe(model: Predictor, page: ExplorerPage, examples: Sequence[str] = ()) -> dict[str, Any]:
    """The kind of a model, the parts whose formulas the page shows, and an example to start with.

    The example is the first text, of `examples` and then that of the model's own data, that is not
    mostly `<unk>` to the model; "" for none.
    """
    example = first_known_text(model, [*examples, page.example])
    return {"kind": page.kind, "example": example, **page.parts}


def model_title(model: Predictor) -> str | None:
    """The name of the experiment that trained a model; None where its config is unknown."""
    return None if model.config is None else readable_name(model.config)
