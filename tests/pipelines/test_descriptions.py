"""What MLflow shows of runs and sweeps.

That is descriptions, names, tags, rankings, and models with their data; also with more loggers.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from entry_points import ANY_ATTENTION, TINY, Command, mlflow_client, succeeded, the_sweep
from mlflow.entities import Run
from test_refusals import refused

pytestmark = pytest.mark.usefixtures("database")

NOTE = "mlflow.note.content"
QUIET = ("tracking.system_metrics=false", "tracking.heat_map_sentences=0")
TRACKED = (*TINY, *QUIET)
CSV = "+loggers.csv._target_=pytorch_lightning.loggers.CSVLogger"


def the_run(folder: Path) -> Run:
    (run,) = mlflow_client(folder).search_runs(["1"])
    return run


def command_in(description: str) -> list[str]:
    """The last command of the description's last block of shell commands, as a shell reads it."""
    block = description.rpartition("```sh\n")[2].partition("```")[0].replace("\\\n", " ")
    return shlex.split(block.strip().splitlines()[-1])


def test_description_has_result_data_and_a_command_that_repeats_the_run(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWNER", "hunter2")
    succeeded(
        command(
            "train.py",
            *TRACKED,
            'tracking.note="It\'s **mine**"',
            "+tracking.tags.owner='${oc.env:OWNER}'",
        )
    )
    run = the_run(folder)
    description = run.data.tags[NOTE]
    note, result, data, _ = description.split("\n\n")
    assert note == "It's **mine**"
    assert result.startswith(f"**Test:** bleu {run.data.metrics['test/bleu']:.4g} · chrf ")
    assert (
        data == "**Data:** copy · train 160, validation 20, test 20 rows · SHA-256 "
        f"`{run.data.tags['data_hash'][:16]}`..."
    )
    assert run.data.tags["owner"] == "hunter2"  # a tag is there to be read
    assert "hunter2" not in description
    assert "${oc.env:OWNER}" in description
    words = command_in(description)
    assert words[:2] == ["python", "pipelines/train.py"]
    assert "is finished already" in command("train.py", *words[2:]).err
    assert the_run(folder).data.tags[NOTE] == description


def test_finished_run_takes_another_note_and_more_tags_and_keeps_a_description_of_a_person(
    command: Command, folder: Path
) -> None:
    succeeded(command("train.py", *TRACKED, "chain=false", "+tracking.tags.paper=acl"))
    before = the_run(folder)
    assert before.data.tags["paper"] == "acl"
    assert before.data.tags[NOTE].startswith("**Latest validation:** bleu ")
    again = succeeded(
        command(
            "train.py",
            *TRACKED,
            "chain=false",
            "tracking.tags={year: 2026, a@b: 1}",
            "tracking.note=later",
        )
    )
    assert "is finished already" in again.err
    run = the_run(folder)
    assert (run.data.tags["year"], run.data.tags["a_b"], run.data.params) == (
        "2026",
        "1",
        before.data.params,
    )
    assert run.data.tags[NOTE] == f"later\n\n{before.data.tags[NOTE]}"
    mlflow_client(folder).set_tag(run.info.run_id, NOTE, "by hand")
    succeeded(command("train.py", *TRACKED, "chain=false", "tracking.note=again"))
    assert the_run(folder).data.tags[NOTE] == "by hand"


def test_note_and_tags_of_an_offline_run_wait_in_its_folder(command: Command, folder: Path) -> None:
    away = ("tracking.uri=http://127.0.0.1:9", "tracking.when_unreachable=warn")
    succeeded(
        command("train.py", *TRACKED, *away, "tracking.note=away", "+tracking.tags.paper=acl")
    )
    (state,) = folder.glob("runs/points/*/run/run.json")
    record = json.loads(state.read_text())["record"]
    assert (record["note"], record["tags"]["paper"]) == ("away", "acl")
    succeeded(command("deliver.py"))
    assert the_run(folder).data.tags["paper"] == "acl"
    assert the_run(folder).data.tags[NOTE].startswith("away\n\n**Test:** bleu ")


def test_params_have_no_null_and_the_model_has_a_name_metrics_and_data(
    command: Command, folder: Path
) -> None:
    succeeded(command("train.py", *TRACKED, "seed=3"))
    run, client = the_run(folder), mlflow_client(folder)
    assert run.data.params["attention"] == "bahdanau"
    assert not {"null", "None"} & set(run.data.params.values())
    (output,) = run.outputs.model_outputs
    model = client.get_logged_model(output.model_id)
    assert (model.name, model.model_type) == (run.info.run_name, "translator")
    measured = {metric.key: metric for metric in model.metrics}
    assert measured["test/bleu"].value == run.data.metrics["test/bleu"]
    assert "validation/free_running/bleu" in measured
    assert {each.dataset_digest for each in model.metrics} == {run.data.tags["data_hash"][:16]}
    # The report is there, once, though the command is given again.
    succeeded(command("train.py", *TRACKED, "seed=3"))
    (report,) = client.list_artifacts(run.info.run_id, "report")
    assert report.path == "report/index.html"
    (dataset,) = run.inputs.dataset_inputs
    assert {each.dataset_name for each in model.metrics} == {dataset.dataset.name} == {"copy"}


def test_run_of_a_sweep_has_the_ranking_of_its_points_and_the_scores_of_the_best(
    command: Command, folder: Path
) -> None:
    noted = ("tracking.note=mine", "+tracking.tags.paper=acl")
    monitor = ("training.monitor=token_nll", "training.validate_every=10")
    sweep = ("-m", *ANY_ATTENTION, *QUIET, *monitor, *noted, "training.max_steps=1,20")
    succeeded(command("train.py", *sweep))
    client, folder_of_sweep = mlflow_client(folder), the_sweep(folder)
    parent = client.get_run(folder_of_sweep.read().run_id)
    worse, best = (client.get_run(job.run_id) for job in folder_of_sweep.jobs())
    for run in (parent, worse, best):
        assert run.data.tags["paper"] == "acl"
        assert run.data.tags[NOTE].startswith("mine\n\n")
    name = "validation/teacher_forced/token_nll"
    assert parent.data.metrics[name] == best.data.metrics[name] < worse.data.metrics[name]
    assert parent.data.metrics["test/bleu"] == best.data.metrics["test/bleu"]
    description = parent.data.tags[NOTE]
    assert f"python pipelines/compare.py sweep={folder_of_sweep.read().identity}" in description
    header, _, *rows = [line for line in description.splitlines() if line.startswith("| ")]
    assert header.startswith("|  | run | validation token_nll | test bleu | ")
    page, training = "#/experiments/1/runs", "?workflowType=machine_learning"
    assert rows[0].startswith(
        f"| 1 | [{best.info.run_name}]({page}/{best.info.run_id}{training}) | "
        f"{best.data.metrics[name]:.4g} |"
    )
    assert best.info.run_name.startswith("20 max steps · ")
    assert [run.data.params["training.max_steps"] for run in (worse, best)] == ["1", "20"]
    assert rows[1].startswith(
        f"| 2 | [{worse.info.run_name}]({page}/{worse.info.run_id}{training}) |"
    )
    assert "2 of 2 points finished, 0 failed" in description
    assert command_in(description) == ["python", "pipelines/train.py", *sweep]
    assert {"training.max_steps=20", *noted} <= set(command_in(best.data.tags[NOTE])) - {"-m"}


def test_more_loggers_write_into_the_folder_of_the_experiment_and_leave_its_identity(
    command: Command, folder: Path
) -> None:
    alone = (*TINY, "tracking=none", "chain=false", "training.log_every=1")
    succeeded(command("train.py", *alone, CSV))
    (written,) = folder.glob("runs/points/*/loggers/csv/lightning_logs/version_0/metrics.csv")
    header = written.read_text().partition("\n")[0].split(",")
    assert {
        "train/token_nll",
        "validation/free_running/bleu",
        "speed/sentences",
        "train/epoch_token_nll",
    } <= set(header)
    assert "is finished already" in command("train.py", *alone).err
    succeeded(command("train.py", *alone, CSV, "rerun=true", "+loggers.csv.save_dir=elsewhere"))
    assert not written.exists()
    assert list(folder.glob("elsewhere/lightning_logs/version_0/metrics.csv"))


def test_loggers_that_cannot_be_used_are_refused(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_TENSORBOARD_AVAILABLE", "_TENSORBOARDX_AVAILABLE"):
        monkeypatch.setattr(f"lightning_fabric.loggers.tensorboard.{name}", False)
    board = "+loggers.board._target_=pytorch_lightning.loggers.TensorBoardLogger"
    refused(
        command("train.py", *TRACKED, board), "loggers.board: a package is missing", "tensorboard"
    )
    refused(
        command("train.py", *TRACKED, "+loggers.mine._target_=pathlib.Path"),
        "loggers.mine._target_ is 'pathlib.Path', but it is not a subclass of",
    )
    refused(command("train.py", *TRACKED, CSV, "+loggers.csv.flush=3"), "loggers.csv.flush")
