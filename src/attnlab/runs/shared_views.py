"""Views of an experiment's runs, one for each task, that MLflow lists in its menu *Views*.

MLflow 3.17 keeps a view as a tag of the experiment: its name and, as compressed JSON, the columns,
the order of the runs, the sections and the charts of its page. Nothing else reads such a tag, and a
version of MLflow that keeps views elsewhere shows its own defaults.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # an import takes seconds
    from mlflow import MlflowClient
    from mlflow.entities import Experiment

# Of a run in a sweep: what the comparison of its points says of it, in a few words.
VERDICT_TAG = "verdict"
_VIEW_TAG = "mlflow.sharedViewState."
# The digest of a view as it was added. A view that somebody removed or changed in MLflow stays so
# until its task describes another one.
_ADDED_TAG = "attnlab.view."
_PARAMS = (
    "attention", "padding", "teacher_forcing", "training.teacher_forcing.ratio", "hardware", "data",
    "seed",
)  # fmt: skip
# Columns of MLflow's table that are no metric and no param.
_RUN_NAME, _CREATED, _DURATION = "attributes.`Run Name`", "runDateAndNestInfo", "duration"
_VERDICT = f"tags.`{VERDICT_TAG}`"
# Pixels. The name begins with what a sweep varies, and MLflow would cut it after 18 letters.
_WIDTHS = {_RUN_NAME: 310, _CREATED: 130, _VERDICT: 330}
_NARROWEST, _LETTER, _MARGIN, _SORTED = 80, 7, 16, 20  # of a metric's column
# Of sections with the pictures of all runs: each card as wide as the page.
_ONE_WIDE_CARD = {"columns": 1, "cardHeight": 560}


@dataclass(frozen=True)
class View:
    """A view of the runs of one task.

    task: its name, which is in the address of the view.
    name: in MLflow's menu.
    metrics: of the test split, `test/bleu`; the runs stand in the order of the first one, the
        highest first. Without any, the latest run stands first.
    curves: metrics of the validation; MLflow adds charts of those that are not named.
    images: the names of the pictures of the attention.
    """

    task: str
    name: str
    metrics: tuple[str, ...]
    curves: tuple[str, ...] = ()
    images: tuple[str, ...] = ("sentence_1", "sentence_2", "sentence_3", "sentence_4")

    @property
    def id(self) -> str:
        return f"attnlab-{self.task}"

    @property
    def tag(self) -> str:
        return _VIEW_TAG + self.id

    @property
    def added_tag(self) -> str:
        return _ADDED_TAG + self.id

    @property
    def digest(self) -> str:
        """The same for views that look the same."""
        shown = json.dumps([self.name, self._state()])
        return hashlib.sha256(shown.encode()).hexdigest()[:16]

    def value(self, now: int) -> str:
        """The value of its tag; now: milliseconds since 1970."""
        packed = zlib.compress(json.dumps(self._state(), separators=(",", ":")).encode())
        state = f"deflate;{base64.b64encode(packed).decode()}"
        return json.dumps({"name": self.name, "createdAt": now, "updatedAt": now, "state": state})

    def _state(self) -> dict[str, Any]:
        params = [f"params.`{name}`" for name in _PARAMS]
        metrics = [f"metrics.`{name}`" for name in self.metrics]
        widths = {
            f"metrics.`{name}`": max(_NARROWEST, _LETTER * len(name) + _MARGIN)
            for name in self.metrics
        }
        if metrics:
            widths[metrics[0]] += _SORTED  # the arrow beside its name
        first, others = metrics[:1], metrics[1:]
        sections, charts = [], []
        for name, cards in self._sections():
            section = _section(f"{self.id}-{name}", name)
            sections.append(section)
            for number, card in enumerate(cards):
                place = {"metricSectionId": section["uuid"], "uuid": f"{section['uuid']}-{number}"}
                charts.append({"isGenerated": True, "deleted": False, **place, **card})
        return {
            "searchFilter": "params.seed != ''",  # not the runs of sweeps themselves
            "orderByKey": metrics[0] if metrics else "attributes.start_time",
            "orderByAsc": False,
            "selectedColumns": [*params, *metrics, _VERDICT],
            # MLflow sorts metrics by their names, and shows how long a run took before them.
            "columnOrder": [_RUN_NAME, _CREATED, *first, _VERDICT, *others, *params, _DURATION],
            "columnWidths": {**_WIDTHS, **widths},
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
        of_validation = () if self.curves else ("validation",)
        others = (*of_validation, "train", "Model metrics", "System metrics")
        sections += [(name, []) for name in others]
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


# A page of MLflow for those who train models; without it, MLflow opens that of language model apps.
_WORKFLOW = "workflowType=machine_learning"
EXPERIMENTS_PAGE = f"#/experiments?{_WORKFLOW}"


def run_page(run_id: str, experiment_id: str) -> str:
    """The place, behind a server's address, of the page of a run."""
    return f"#/experiments/{experiment_id}/runs/{run_id}?{_WORKFLOW}"


def charts_page(experiment_id: str, view: View | None) -> str:
    """The place, behind a server's address, of the charts over all runs of an experiment."""
    shown = "" if view is None else f"&viewStateShareKey={view.id}"
    return f"#/experiments/{experiment_id}/runs?{_WORKFLOW}&compareRunsMode=CHART{shown}"


def share_view(client: MlflowClient, experiment: Experiment, view: View) -> None:
    """Add a view to an experiment that has not had it yet."""
    if experiment.tags.get(view.added_tag) == view.digest:
        return
    now = time.time_ns() // 1_000_000
    client.set_experiment_tag(experiment.experiment_id, view.tag, view.value(now))
    client.set_experiment_tag(experiment.experiment_id, view.added_tag, view.digest)
