"""Views of the runs, as tags of the experiment in the form that MLflow 3.17 reads."""

import base64
import json
import zlib

import pytest

from attnlab.runs.shared_views import VIEWS, share_views


@pytest.fixture
def experiment(tracking, runs, client):
    def opened():
        connection = tracking().connection(runs)
        connection.open()
        return client.get_experiment(connection.experiment_id)

    return opened


def state_of(value):
    envelope = json.loads(value)
    kind, _, packed = envelope["state"].partition(";")
    assert kind == "deflate"
    return json.loads(zlib.decompress(base64.b64decode(packed)))


@pytest.mark.parametrize("task", VIEWS)
def test_view_of_a_task_has_a_name_columns_and_charts(task, experiment):
    value = experiment().tags[f"mlflow.sharedViewState.attnlab-{task}"]
    assert len(value) < 5000  # MLflow's limit
    envelope = json.loads(value)
    assert envelope["name"].startswith("Which attention")
    assert envelope["updatedAt"] == envelope["createdAt"] > 1_700_000_000_000

    state = state_of(value)
    assert "params.`padding`" in state["selectedColumns"]
    assert state["orderByKey"] in state["selectedColumns"]
    sections = {section["uuid"]: section["name"] for section in state["compareRunSections"]}
    assert list(sections.values())[:2] == ["test", "test/attention"]
    assert {chart["metricSectionId"] for chart in state["compareRunCharts"]} <= set(sections)
    assert state["compareRunCharts"][0]["type"] == "BAR"


@pytest.mark.parametrize("section", ["test/attention", "validation/attention"])
def test_view_shows_the_attention_of_all_runs_in_one_grid(section, experiment):
    state = state_of(experiment().tags["mlflow.sharedViewState.attnlab-translation"])
    (uuid,) = [each["uuid"] for each in state["compareRunSections"] if each["name"] == section]
    cards = [each for each in state["compareRunCharts"] if each["metricSectionId"] == uuid]
    (grid,) = [card for card in cards if not card["deleted"]]
    assert grid["imageKeys"] == [f"{section}/sentence_{number}" for number in (1, 2, 3, 4)]
    # Or MLflow would add a card for each of them.
    deleted = [card["imageKeys"] for card in cards if card["deleted"]]
    assert deleted == [[key] for key in grid["imageKeys"]]


def test_views_show_quality_of_their_task(experiment):
    tags = experiment().tags
    columns = {
        task: state_of(tags[f"mlflow.sharedViewState.attnlab-{task}"])["selectedColumns"]
        for task in VIEWS
    }
    assert {"metrics.`test/bleu`", "metrics.`test/aer`"} <= set(columns["translation"])
    assert "metrics.`test/accuracy`" in columns["classification"]


def test_view_that_somebody_changed_or_removed_stays_so(experiment, client):
    found = experiment()
    changed, removed = (f"mlflow.sharedViewState.attnlab-{task}" for task in VIEWS)
    client.set_experiment_tag(found.experiment_id, changed, "mine")
    client.delete_experiment_tag(found.experiment_id, removed)
    tags = experiment().tags
    assert tags[changed] == "mine"
    assert removed not in tags


def test_views_of_an_earlier_version_are_replaced(experiment, client):
    found = experiment()
    changed = "mlflow.sharedViewState.attnlab-translation"
    client.set_experiment_tag(found.experiment_id, changed, "old")
    client.set_experiment_tag(found.experiment_id, "attnlab.views", "0")
    share_views(client, client.get_experiment(found.experiment_id))
    assert state_of(client.get_experiment(found.experiment_id).tags[changed])
