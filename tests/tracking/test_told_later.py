"""pipelines/deliver.py tells all that waits, wherever it lies, and one run that cannot be told keeps no other back."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from filelock import FileLock, Timeout

from attnlab.errors import ExperimentError
from attnlab.experiment.point import begin_anew, only_one_at_a_time, read_done
from attnlab.stages import deliver, evaluate
from attnlab.sweeps.leader import led
from attnlab.sweeps.record import SweepFolder, SweepRecord
from attnlab.tracking.past_run import tell
from attnlab.training.spool import MetricSpool

NOBODY = "http://127.0.0.1:9"
SWEEP = SweepRecord("0123456789abcdef", "seed", ["seed"], ["seed=1"], points=0, run_id=None, started=0, quiet=False)


def main(runs, capsys, *arguments):
    """(code, what it says) of the command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["deliver.py", f"paths.runs={runs}", *arguments])
        capsys.readouterr()
        code = 0
        try:
            with deliver.mistakes_as_sentences():
                deliver.main()
        except SystemExit as end:
            code = end.code
    told = capsys.readouterr()
    return code, told.out + told.err


def test_pending_run_survives_retraining_of_the_same_experiment(
    trained, experiment, runs, point, record, all_runs, capsys
):
    trained(point, 0.5)
    (point / "done.json").write_text("{}")
    (point / "checkpoints").mkdir()
    begin_anew(experiment(uri=NOBODY, when_unreachable="warn"), point, record)
    assert "pipelines/deliver.py tells it" in capsys.readouterr().err
    assert [path.name for path in point.iterdir()] == ["set_aside"]
    trained(point, 0.25)
    (point / "done.json").write_text("{}")
    assert main(runs, capsys)[0] == 0
    assert all_runs() == [("FINISHED", 0.25), ("FINISHED", 0.5)]
    assert not (point / "set_aside").exists()
    assert "nothing waits" in main(runs, capsys)[1]


def test_delivered_run_is_removed_when_its_experiment_begins_anew(tracking, experiment, runs, point, record):
    tracking().start(runs, point, record).finish()
    (point / "done.json").write_text("{}")
    begin_anew(experiment(), point, record)
    assert list(point.iterdir()) == []


def test_a_killed_run_is_closed_later_where_the_tracker_is_away(
    tracking, experiment, runs, point, record, all_runs, capsys
):
    run = tracking().start(runs, point, record)
    MetricSpool(point / "metrics.jsonl").append({"loss": 0.5}, 10, 1)
    run.deliver()
    assert all_runs() == [("RUNNING", 0.5)]
    begin_anew(experiment(uri=NOBODY, when_unreachable="warn"), point, record)
    assert main(runs, capsys)[0] == 0
    assert all_runs() == [("KILLED", 0.5)]


def test_pending_sweep_and_its_jobs_are_delivered(trained, runs, all_runs, capsys):
    trained(runs / "sweeps" / "0123456789abcdef", 0.5)
    trained(runs / "sweeps" / "0123456789abcdef" / "jobs" / "3", 0.25, "FAILED")
    code, told = main(runs, capsys)
    assert (code, told.count("delivered\n")) == (0, 3)
    assert all_runs() == [("FAILED", 0.25), ("FINISHED", 0.5)]


def test_pending_sweep_survives_a_second_run_of_the_sweep(trained, tracking, runs, all_runs, capsys):
    folder = SweepFolder(runs / "sweeps" / SWEEP.identity)
    folder.write(SWEEP)
    trained(folder.path, 0.5)
    trained(folder.path / "jobs" / "3", 0.25)
    with led(SWEEP, tracking(), runs, 1, on_this_machine=True, anew=True):
        assert not (folder.path / "jobs").exists()
    assert main(runs, capsys)[0] == 0
    assert all_runs() == [("FINISHED", 0.25), ("FINISHED", 0.5), ("FINISHED", None)]


def test_a_sweep_is_not_cleared_where_its_rerun_is_refused(tracking, runs):
    folder = SweepFolder(runs / "sweeps" / SWEEP.identity)
    folder.write(SWEEP)
    (folder.path / "jobs" / "0").mkdir(parents=True)
    with (
        pytest.raises(ExperimentError, match=r"tracking\.uri"),
        led(SWEEP, tracking(uri=NOBODY, when_unreachable="warn"), runs, 1, on_this_machine=True, anew=True),
    ):
        pass
    assert (folder.path / "jobs" / "0").is_dir()
    assert folder.read() == SWEEP


def test_a_run_that_the_tracker_refuses_keeps_no_other_back(trained, runs, all_runs, capsys, monkeypatch):
    for name in "abc":
        trained(runs / "points" / name)

    def refusing(settings, runs_folder, folder, kept):
        if folder.name == "b":
            raise ExperimentError("tracking.uri: it takes no such run")
        return tell(settings, runs_folder, folder, kept)

    monkeypatch.setattr("attnlab.tracking.past_run.tell", refusing)
    code, told = main(runs, capsys)
    assert code == 1
    assert "error: points/b: tracking.uri: it takes no such run" in told
    assert len(all_runs()) == 2


@pytest.mark.parametrize("name", ["tracked.json", "mlflow.json", "delivered.json"])
@pytest.mark.parametrize("content", ["{", "[]", "\x00"])
def test_a_damaged_file_is_a_sentence_and_keeps_no_other_back(name, content, trained, runs, all_runs, capsys):
    for each in "ab":
        trained(runs / "points" / each)
    damaged = runs / "points" / "a" / name
    damaged.write_text(content)
    code, told = main(runs, capsys)
    assert code == 1
    errors = [line for line in told.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert f"{damaged} is damaged" in errors[0]
    assert "remove it" in errors[0]
    assert "Traceback" not in told
    assert ("FINISHED", 0.5) in all_runs()


def test_a_tracker_that_is_not_there_is_one_sentence(trained, runs, capsys):
    for each in "ab":
        trained(runs / "points" / each)
    code, told = main(runs, capsys, f"tracking.uri={NOBODY}")
    assert (code, told.count("error: ")) == (1, 1)


@pytest.mark.parametrize("ends", ["FINISHED", None])
def test_a_run_that_somebody_is_at_is_named(ends, trained, runs, point, capsys):
    trained(point, ends=ends)
    with FileLock(point / "lock"):
        code, told = main(runs, capsys)
    assert code == 0
    assert f"points/{point.name}: a process is still at it" in told
    assert "nothing waits" not in told


def test_an_evaluation_that_somebody_is_at_is_named(trained, runs, point, capsys):
    trained(point / "evaluations" / "0123")
    with FileLock(point / "evaluations" / "0123" / "lock"):
        code, told = main(runs, capsys)
    assert code == 0
    assert f"points/{point.name}/evaluations/0123: a process is still at it" in told


@pytest.mark.parametrize("inside", ["", "evaluations/0123"])
def test_an_evaluation_is_at_the_run_that_it_goes_to(
    inside, tracking, experiment, runs, point, record, tmp_path, all_runs, monkeypatch
):
    """So it is not told by another process in the middle of it; nor does it wait for itself behind a training."""
    state = point / inside
    state.mkdir(parents=True, exist_ok=True)
    locked = []

    def evaluating(experiment, model, data, into):
        with pytest.raises(Timeout):
            FileLock(state / "lock").acquire(timeout=0)
        locked.append(state)
        into.mkdir()
        (into / "metrics.json").write_text('{"bleu": 30.0}')

    monkeypatch.setattr(evaluate, "evaluate", evaluating)
    monkeypatch.setattr(evaluate, "overrides", list)
    monkeypatch.setattr(evaluate, "state_of_its_run", lambda *_: state)
    monkeypatch.setattr(evaluate, "config_of_run", lambda *_: record.config)
    monkeypatch.setattr(evaluate, "name_of_run", lambda *_: "a name")
    monkeypatch.setattr("attnlab.model.model_folder.read_facts", lambda _: SimpleNamespace(identity="i", step=1))
    whole = experiment()
    whole.hardware = SimpleNamespace(repeatable="yes")
    whole.task = SimpleNamespace(columns=("source",), open_data=lambda _: SimpleNamespace(digest="d"))
    with only_one_at_a_time(point):
        pass  # trained
    evaluate.evaluate_and_track(whole, tmp_path / "model", tmp_path / "data", tmp_path / "evaluation")
    assert locked == [state]
    assert all_runs() == [("FINISHED", None)]
    with FileLock(state / "lock").acquire(timeout=0):
        pass  # and is not at it any more


def test_a_damaged_outcome_is_a_sentence(tmp_path):
    (tmp_path / "done.json").write_text("{")
    with pytest.raises(ExperimentError, match=r"done\.json is damaged .*rerun=true"):
        read_done(tmp_path)
