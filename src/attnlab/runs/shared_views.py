"""Views of an experiment's runs that MLflow lists in its menu *Views*.

MLflow 3.17 keeps a view as a tag of the experiment: its name and, as compressed JSON, the columns,
the order of the runs, the sections and the charts of its page. Nothing else reads such a tag, and a
version of MLflow that keeps views elsewhere shows its own defaults.
"""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # an import takes seconds
    from mlflow import MlflowClient
    from mlflow.entities import Experiment

# How the views look. A view that somebody removed or changed stays so until this number changes.
VERSION = "1"
_VERSION_TAG, _VIEW_TAG = "attnlab.views", "mlflow.sharedViewState."
_PARAMS = ("attention", "padding", "teacher_forcing", "hardware", "data", "seed")
# Of sections with the pictures of all runs: each card as wide as the page.
_ONE_WIDE_CARD = {"columns": 1, "cardHeight": 560}


@dataclass(frozen=True)
class View:
    """A view of the runs of one task.

    id: in its address.
    name: in MLflow's menu.
    metrics: of the test split; the runs stand in the order of the first one, the highest first.
    curves: metrics of the validation.
    images: the names of the pictures of the attention.
    """

    id: str
    name: str
    metrics: Sequence[str]
    curves: Sequence[str]
    images: Sequence[str]

    @property
    def tag(self) -> str:
        return _VIEW_TAG + self.id

    def value(self, now: int) -> str:
        """The value of its tag; now: milliseconds since 1970."""
        packed = zlib.compress(json.dumps(self._state(), separators=(",", ":")).encode())
        state = f"deflate;{base64.b64encode(packed).decode()}"
        return json.dumps({"name": self.name, "createdAt": now, "updatedAt": now, "state": state})

    def _state(self) -> dict[str, Any]:
        params = [f"params.`{name}`" for name in _PARAMS]
        metrics = [f"metrics.`{name}`" for name in self.metrics]
        sections, charts = [], []
        for name, cards in self._sections():
            section = _section(f"{self.id}-{name}", name)
            sections.append(section)
            for number, card in enumerate(cards):
                place = {"metricSectionId": section["uuid"], "uuid": f"{section['uuid']}-{number}"}
                charts.append({"isGenerated": True, "deleted": False, **place, **card})
        return {
            "searchFilter": "params.seed != ''",  # not the runs of sweeps themselves
            "orderByKey": metrics[0],
            "orderByAsc": False,
            "selectedColumns": [*params, *metrics],
            "columnOrder": [],
            "runsHiddenMode": "FIRST_20_RUNS",
            "compareRunSections": sections,
            "compareRunCharts": charts,
            "isAccordionReordered": True,
        }

    def _sections(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Each section with its charts, in the order of reading."""
        sections: list[tuple[str, list[dict[str, Any]]]] = []
        sections.append(("test", [_bar(name) for name in self.metrics]))
        sections.append(("test/attention", _grid("test/attention", self.images)))
        curves: dict[str, list[dict[str, Any]]] = {}
        for name in self.curves:
            section, _, _ = name.rpartition("/")
            curves.setdefault(section, []).append(_curve(name))
        sections += curves.items()
        sections.append(("validation/attention", _grid("validation/attention", self.images)))
        # MLflow adds the charts of all other metrics.
        sections += [(name, []) for name in ("train", "Model metrics", "System metrics")]
        return sections


def _section(uuid: str, name: str) -> dict[str, Any]:
    """A section of charts, which keeps its place where MLflow adds charts of other metrics."""
    section = {"uuid": uuid, "name": name, "display": True, "deleted": False}
    section |= {"isReordered": True, "isGenerated": True}
    if name.endswith("/attention"):
        section |= _ONE_WIDE_CARD
    return section


def _bar(metric: str) -> dict[str, Any]:
    return {"type": "BAR", "metricKey": metric}


def _curve(metric: str) -> dict[str, Any]:
    return {"type": "LINE", "metricKey": metric, "selectedMetricKeys": [metric]}


def _grid(section: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """One card with a row for each picture and a column for each run.

    MLflow would add a card for each picture, as wide as the names of the runs; these are deleted.
    """
    keys = [f"{section}/{name}" for name in names]
    # The params of a run would take more room than its picture.
    common = {"type": "IMAGE", "step": 0, "showRunParams": False}
    grid = {**common, "imageKeys": keys, "displayName": section}
    deleted = [{**common, "imageKeys": [key], "deleted": True} for key in keys]
    return [grid, *deleted]


TRANSLATION = View(
    "attnlab-translation",
    "Which attention translates best",
    [f"test/{name}" for name in ("bleu", "exact_match", "aer", "chrf", "token_nll")],
    [
        "validation/free_running/bleu",
        "validation/free_running/exact_match",
        "validation/teacher_forced/token_nll",
    ],
    ["sentence_1", "sentence_2", "sentence_3", "sentence_4"],
)
CLASSIFICATION = View(
    "attnlab-classification",
    "Which attention classifies best",
    [f"test/{name}" for name in ("accuracy", "f1", "nll")],
    ["validation/accuracy", "validation/f1", "validation/nll"],
    ["sentences", "confusion_matrix"],
)
# By the name of the task.
VIEWS = {"translation": TRANSLATION, "classification": CLASSIFICATION}

# A page of MLflow for those who train models; without it, MLflow opens that of language model apps.
_WORKFLOW = "workflowType=machine_learning"
EXPERIMENTS_PAGE = f"#/experiments?{_WORKFLOW}"


def charts_page(experiment_id: str, view: View | None) -> str:
    """The place, behind a server's address, of the charts over all runs of an experiment."""
    shown = "" if view is None else f"&viewStateShareKey={view.id}"
    return f"#/experiments/{experiment_id}/runs?{_WORKFLOW}&compareRunsMode=CHART{shown}"


def share_views(client: MlflowClient, experiment: Experiment) -> None:
    """Add our views to an experiment that has not had this version of them yet."""
    if experiment.tags.get(_VERSION_TAG) == VERSION:
        return
    now = time.time_ns() // 1_000_000
    for view in VIEWS.values():
        client.set_experiment_tag(experiment.experiment_id, view.tag, view.value(now))
    client.set_experiment_tag(experiment.experiment_id, _VERSION_TAG, VERSION)
