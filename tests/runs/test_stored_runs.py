"""Runs read back from MLflow: by id, by a filter, with their evaluations.

Nothing is created where nothing is stored.
"""

from __future__ import annotations

import dataclasses

import pytest

from attnlab.errors import ExperimentError
from attnlab.report.run_sources import runs_of_tracker
from attnlab.runs.stored_runs import StoredRuns
from made_sweep import write_translations


@pytest.fixture
def tracked(tracking, runs, record, tmp_path):
    """A sweep's run and its children.

    The children are two seeds of one score, another score, and one that was never evaluated.
    """
    settings = tracking(log_model=False)
    (runs / "sweeps" / "abc").mkdir(parents=True)
    parent_record = dataclasses.replace(
        record, config={}, tags={"sweep": "abc", "varies": "seed"}, name="sweep · x"
    )
    with settings.for_sweep().start(runs, runs / "sweeps" / "abc", parent_record) as parent:
        pass
    ids = {}
    points = {
        "one": (1, "BahdanauScore"),
        "two": (2, "BahdanauScore"),
        "dot": (1, "DotScore"),
        "bare": (3, "DotScore"),
    }
    for name, (seed, score) in points.items():
        point = runs / "points" / name
        point.mkdir(parents=True)
        attention = {"_target_": f"attnlab.model.attention.x.{score}", "size": 8}
        config = dict(record.config) | {"seed": seed, "model": {"attention": attention}}
        tags = {"sweep": "abc", "mlflow.parentRunId": parent.run_id}
        of_point = dataclasses.replace(record, config=config, tags=tags, name=name)
        with settings.start(runs, point, of_point) as run:
            run.log_metrics({"validation/free_running/bleu": 5.0}, step=10)
            run.log_metrics(
                {"validation/free_running/bleu": 7.5, "time/training_cpu_seconds": 42.0}, step=20
            )
            if name != "bare":
                write_translations(tmp_path / name / "evaluation", 0.8, seed, count=12)
                run.log_artifact(tmp_path / name / "evaluation")
        ids[name] = run.run_id
    return ids | {"parent": parent.run_id}


def test_by_ids_reads_runs_in_the_given_order_and_names_all_unknown_ids(
    tracked, tracking, runs, tmp_path
):
    reader = StoredRuns(tracking().connection(runs))
    two, one = reader.by_ids([tracked["two"], tracked["one"]], tmp_path / "copies")
    assert (two.name, two.parent, two.params["attention"]) == ("two", tracked["parent"], "bahdanau")
    assert one.history == {"validation/free_running/bleu": [(10, 5.0), (20, 7.5)]}
    assert one.metrics["system/training_cpu_seconds"] == 42.0
    copied = one.evaluation / "hypotheses.jsonl"
    assert (
        copied.read_bytes() == (tmp_path / "one" / "evaluation" / "hypotheses.jsonl").read_bytes()
    )
    with pytest.raises(ExperimentError) as refused:
        reader.by_ids([tracked["one"], "0" * 32, "no/id"], tmp_path / "copies")
    unknown = [problem.rpartition("has no run ")[2] for problem in refused.value.problems]
    assert unknown == [f"{'0' * 32} in this experiment", "no/id in this experiment"]


def test_params_of_a_stored_run_are_its_whole_config(tracked, tracking, runs, client, tmp_path):
    reader = StoredRuns(tracking().connection(runs))
    (one,) = reader.by_ids([tracked["one"]], tmp_path / "copies")
    assert one.params["data.source_locales"] == '["de_DE", "ja_JP"]'
    assert one.params["model.attention.size"] == "8"
    # A run of an earlier version has params in place of a config.
    old = client.create_run(client.get_run(tracked["one"]).info.experiment_id).info.run_id
    for name, value in {"attention": "dot", "padding": "pre-post", "model.size": "8"}.items():
        client.log_param(old, name, value)
    (found,) = reader.by_ids([old], tmp_path / "copies")
    assert found.params == {"attention": "dot", "padding": "pre-post", "model.size": "8"}


def test_by_filter_finds_runs_without_those_of_sweeps_and_explains_a_wrong_filter(
    tracked, tracking, runs, tmp_path
):
    reader = StoredRuns(tracking().connection(runs))
    found = reader.by_filter("tags.sweep = 'abc' and params.attention != 'dot'", tmp_path)
    assert [run.name for run in found] == ["one", "two"]
    # The sweep's own run has the tag as well, but it is not compared.
    assert [run.name for run in reader.by_filter("tags.sweep = 'abc'", tmp_path)] == [
        "one",
        "two",
        "dot",
        "bare",
    ]
    with pytest.raises(
        ExperimentError,
        match=r"filter must be a search that MLflow understands, .*got 'nonsense = 1'",
    ):
        reader.by_filter("nonsense = 1", tmp_path)


def test_stored_runs_create_no_database_and_no_experiment(tracking, runs, client, tmp_path):
    with pytest.raises(ExperimentError, match=r"there is no database .*/empty/mlflow.db"):
        StoredRuns(tracking().connection(tmp_path / "empty"))
    assert not (tmp_path / "empty").exists()
    with pytest.raises(
        ExperimentError, match=r"tracking.experiment must be one of .*template.*; got 'typo'"
    ):
        StoredRuns(tracking(experiment="typo").connection(runs))
    assert client.get_experiment_by_name("typo") is None


def test_add_folder_leaves_the_run_as_it_ended(tracked, tracking, runs, client, tmp_path):
    before = client.get_run(tracked["parent"]).info
    (tmp_path / "comparison").mkdir()
    (tmp_path / "comparison" / "index.html").write_text("page")
    reader = StoredRuns(tracking().connection(runs))
    with pytest.raises(ExperimentError, match=r"has no run f{32} in this experiment"):
        reader.add_folder("f" * 32, tmp_path / "comparison", "comparison")
    reader.add_folder(tracked["parent"], tmp_path / "comparison", "comparison")
    assert [each.path for each in client.list_artifacts(tracked["parent"], "comparison")] == [
        "comparison/index.html"
    ]
    after = client.get_run(tracked["parent"]).info
    assert (after.status, after.end_time) == (before.status, before.end_time)


def test_comparison_of_tracked_runs_takes_only_those_with_an_evaluation(
    tracked, tracking, runs, tmp_path
):
    reader = StoredRuns(tracking().connection(runs))
    stored = reader.by_filter("tags.sweep = 'abc'", tmp_path)
    compared = runs_of_tracker(stored, ("filter", "x"), named=False)
    assert [(run.system, run.seed) for run in compared.runs] == [
        ("bahdanau", "1"),
        ("bahdanau", "2"),
        ("dot", "1"),
    ]
    assert compared.runs[0].choices == {"attention": "bahdanau"}
    assert compared.parent == tracked["parent"]
    left_out = [(point.name, point.reason) for point in compared.left_out]
    assert left_out == [("bare", "no evaluation among its artifacts")]
    with pytest.raises(
        ExperimentError, match=rf"runs: bare \({tracked['bare']}\) has no evaluation"
    ):
        runs_of_tracker(stored, ("runs", "x"), named=True)
    with pytest.raises(ExperimentError, match="no run with an evaluation was found by 'x'"):
        runs_of_tracker([run for run in stored if run.name == "bare"], ("filter", "x"), named=False)
