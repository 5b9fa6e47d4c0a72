"""Views of the runs, as tags of the experiment in the form that MLflow 3.17 reads."""

import base64
import json
import zlib
from dataclasses import replace

import pytest

from attnlab.runs.shared_views import View
from attnlab.tasks.classification.task import Classification
from attnlab.tasks.translation.task import Translation

VIEWS = [Translation.view, Classification.view, View("tagging", "Runs of tagging", ("test/own",))]
TRANSLATION_TAG = "mlflow.sharedViewState.attnlab-translation"


@pytest.fixture
def experiment(tracking, runs, point, record, client):
    """The experiment in MLflow, after a run of a task with this view was uploaded."""

    def uploaded(view):
        with tracking().start(runs, point, replace(record, view=view)):
            pass
        return client.get_experiment_by_name("attnlab")

    return uploaded


def state_of(value):
    envelope = json.loads(value)
    kind, _, packed = envelope["state"].partition(";")
    assert kind == "deflate"
    return json.loads(zlib.decompress(base64.b64decode(packed)))


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.task)
def test_view_of_a_task_has_a_name_columns_and_charts(view, experiment):
    value = experiment(view).tags[f"mlflow.sharedViewState.attnlab-{view.task}"]
    assert len(value) < 5000  # MLflow's limit
    envelope = json.loads(value)
    assert envelope["name"] == view.name
    assert envelope["updatedAt"] == envelope["createdAt"] > 1_700_000_000_000

    state = state_of(value)
    assert "params.`padding`" in state["selectedColumns"]
    assert "params.`training.teacher_forcing.ratio`" in state["selectedColumns"]
    assert state["orderByKey"] in state["selectedColumns"]
    sections = {section["uuid"]: section["name"] for section in state["compareRunSections"]}
    assert list(sections.values())[:2] == ["test", "test/attention"]
    assert {chart["metricSectionId"] for chart in state["compareRunCharts"]} <= set(sections)
    assert state["compareRunCharts"][0]["type"] == "BAR"


def test_view_without_metrics_begins_with_the_latest_run(experiment):
    found = experiment(View("tagging", "Runs of tagging", ()))
    state = state_of(found.tags["mlflow.sharedViewState.attnlab-tagging"])
    assert (state["orderByKey"], state["orderByAsc"]) == ("attributes.start_time", False)


def test_view_without_curves_leaves_a_section_for_those_of_mlflow(experiment):
    found = experiment(View("tagging", "Runs of tagging", ("test/own",)))
    state = state_of(found.tags["mlflow.sharedViewState.attnlab-tagging"])
    names = [section["name"] for section in state["compareRunSections"]]
    assert "validation" in names


@pytest.mark.parametrize("section", ["test/attention", "validation/attention"])
def test_view_shows_the_attention_of_all_runs_in_one_grid(section, experiment):
    state = state_of(experiment(Translation.view).tags[TRANSLATION_TAG])
    (uuid,) = [each["uuid"] for each in state["compareRunSections"] if each["name"] == section]
    cards = [each for each in state["compareRunCharts"] if each["metricSectionId"] == uuid]
    (grid,) = [card for card in cards if not card["deleted"]]
    assert grid["imageKeys"] == [f"{section}/sentence_{number}" for number in (1, 2, 3, 4)]
    # Or MLflow would add a card for each of them.
    deleted = [card["imageKeys"] for card in cards if card["deleted"]]
    assert deleted == [[key] for key in grid["imageKeys"]]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.task)
def test_view_shows_quality_of_its_task(view, experiment):
    tags = experiment(view).tags
    columns = state_of(tags[f"mlflow.sharedViewState.attnlab-{view.task}"])["selectedColumns"]
    quality = {
        "translation": {"metrics.`test/bleu`", "metrics.`test/aer`"},
        "classification": {"metrics.`test/accuracy`"},
        "tagging": {"metrics.`test/own`"},
    }
    assert quality[view.task] <= set(columns)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.task)
def test_table_has_whole_names_then_metrics_by_importance_then_choices(view, experiment):
    state = state_of(experiment(view).tags[f"mlflow.sharedViewState.attnlab-{view.task}"])
    order = state["columnOrder"]
    metrics = [f"metrics.`{name}`" for name in view.metrics]
    assert order[0] == "attributes.`Run Name`"
    assert state["columnWidths"][order[0]] >= 300
    without_verdict = [column for column in order if column != "tags.`verdict`"]
    assert without_verdict[2 : 2 + len(metrics)] == metrics
    assert without_verdict[2 + len(metrics)] == "params.`attention`"
    assert set(state["selectedColumns"]) < set(order)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.task)
def test_table_has_the_verdict_behind_the_metric_that_sorts_it(view, experiment):
    state = state_of(experiment(view).tags[f"mlflow.sharedViewState.attnlab-{view.task}"])
    assert "tags.`verdict`" in state["selectedColumns"]
    order = state["columnOrder"]
    assert order[order.index(state["orderByKey"]) + 1] == "tags.`verdict`"


def test_view_that_somebody_changed_stays_so(experiment, client):
    found = experiment(Translation.view)
    client.set_experiment_tag(found.experiment_id, TRANSLATION_TAG, "mine")
    assert experiment(Translation.view).tags[TRANSLATION_TAG] == "mine"


def test_view_that_somebody_removed_stays_so(experiment, client):
    found = experiment(Translation.view)
    client.delete_experiment_tag(found.experiment_id, TRANSLATION_TAG)
    assert TRANSLATION_TAG not in experiment(Translation.view).tags


def test_view_that_its_task_describes_otherwise_is_replaced(experiment):
    before = experiment(Translation.view).tags[TRANSLATION_TAG]
    other = replace(Translation.view, metrics=("test/chrf",))
    after = experiment(other).tags[TRANSLATION_TAG]
    assert state_of(before)["orderByKey"] == "metrics.`test/bleu`"
    assert state_of(after)["orderByKey"] == "metrics.`test/chrf`"
