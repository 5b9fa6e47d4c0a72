"""MLflow's own environment variables decide where the config says nothing.

This holds for every command, and each says so.
"""

from __future__ import annotations

from pathlib import Path

import mlflow
import pytest
from entry_points import TINY, Command, mlflow_client, succeeded, the_sweep
from mlflow import MlflowClient
from test_refusals import left, refused

import attnlab

ONE = (*TINY, "tracking.system_metrics=false", "tracking.heat_map_sentences=0")
SAID = (
    "MLflow: the address by MLFLOW_TRACKING_URI and the experiment 'paper' by "
    "MLFLOW_EXPERIMENT_NAME, since the config names none"
)


@pytest.fixture
def tracker(folder: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> MlflowClient:
    """A database of the user's own, which MLflow's variables name, with the experiment `paper`."""
    (folder / "own").mkdir()
    (folder / "own" / "track.db").write_bytes(empty_database.read_bytes())
    # An earlier test of this process may have set another one. MLflow unsets the variable with it.
    mlflow.set_tracking_uri(None)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///own/track.db")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "paper")
    return MlflowClient(tracking_uri=f"sqlite:///{folder}/own/track.db")


def runs_of(client: MlflowClient, experiment: str):
    found = client.get_experiment_by_name(experiment)
    return [] if found is None else client.search_runs([found.experiment_id])


@pytest.mark.slow
def test_training_goes_where_mlflows_variables_say_with_its_usual_identity(
    folder: Path, command: Command, tracker: MlflowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = succeeded(command("train.py", *ONE))
    assert SAID in ended.out
    (run,) = runs_of(tracker, "paper")
    assert not (folder / "runs" / "mlflow.db").exists()
    assert "tracking.uri" not in run.data.params
    assert type(attnlab.load(f"runs:/{run.info.run_id}/model")).__name__ == "Translator"

    # The same experiment without the variables is not trained again.
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME")
    again = succeeded(command("train.py", *ONE))
    assert "is finished already" in again.err
    assert "MLFLOW_TRACKING_URI" not in again.out
    assert len(runs_of(mlflow_client(folder), "attnlab")) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_address_and_experiment_of_the_config_win(
    folder: Path, command: Command, tracker: MlflowClient
) -> None:
    chosen = ("tracking.uri=sqlite:///runs/mlflow.db", "tracking.experiment=mine")
    ended = succeeded(command("train.py", *ONE, *chosen, "chain=false"))
    assert "MLFLOW_TRACKING_URI" not in ended.out
    assert runs_of(tracker, "paper") == []
    assert len(runs_of(mlflow_client(folder), "mine")) == 1


@pytest.mark.slow
def test_sweep_and_its_points_go_where_mlflows_variables_say(
    folder: Path, command: Command, tracker: MlflowClient
) -> None:
    ended = succeeded(command("train.py", "-m", *ONE, "seed=1,2", "chain=false"))
    assert SAID in ended.err
    runs = {run.info.run_id: run for run in runs_of(tracker, "paper")}
    parent = the_sweep(folder).read().run_id
    assert {job.run_id for job in the_sweep(folder).jobs()} == runs.keys() - {parent}
    assert len(runs) == 3


def test_deliver_says_that_mlflows_variables_decide(
    command: Command, tracker: MlflowClient
) -> None:
    assert SAID in succeeded(command("deliver.py")).err


@pytest.mark.parametrize("address", ["mlruns", "/tmp/mlruns", "databricks", "file:///tmp/mlruns"])
def test_address_of_no_tracker_is_refused_by_the_name_of_the_variable(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    ended = command("train.py", *ONE)
    allowed = (
        "the address of a server or a database: http(s)://..., sqlite:///<file>.db, "
        "postgresql+psycopg2://..., "
    )
    refused(ended, f"MLFLOW_TRACKING_URI must be {allowed}mysql+pymysql://..., got '{address}'\n")
    assert "mlflow server" not in ended.out
    assert left(folder) == []


def test_unusable_address_is_refused_by_the_name_of_the_variable(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "http://127.0.0.1:9"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    ended = command("train.py", *ONE)
    refused(
        ended,
        f"MLFLOW_TRACKING_URI: {address} cannot be used: ",
        "correct MLFLOW_TRACKING_URI, or choose",
    )
    assert [path for path in left(folder) if path.endswith(("done.json", "mlflow.db"))] == []
