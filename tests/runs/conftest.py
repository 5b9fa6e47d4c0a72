"""A runs folder with a fresh MLflow database, copied: making one takes MLflow two seconds."""

import shutil
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from mlflow import MlflowClient
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

from attnlab.runs.moved_store import DATABASE_NAME
from attnlab.runs.run_folder import RunRecord
from attnlab.runs.tracking import MlflowTracking
from attnlab.tasks.translation.translator import Translator
from attnlab.training.spool import SPOOL_NAME, MetricSpool

NOBODY = "http://127.0.0.1:9"


@pytest.fixture(scope="session")
def fresh_database(tmp_path_factory):
    folder = tmp_path_factory.mktemp("template")
    # Its artifacts are in no runs folder, of which the tests' folders would be copies.
    address, artifacts = f"sqlite:///{folder / DATABASE_NAME}", (folder / "artifacts").as_uri()
    SqlAlchemyStore(address, artifacts).engine.dispose()
    MlflowClient(tracking_uri=address).create_experiment("template", artifacts)
    return folder / DATABASE_NAME


@pytest.fixture
def runs(tmp_path, fresh_database):
    folder = tmp_path / "runs"
    folder.mkdir()
    shutil.copyfile(fresh_database, folder / DATABASE_NAME)
    return folder


@pytest.fixture
def point(runs):
    folder = runs / "points" / "0123456789abcdef"
    folder.mkdir(parents=True)
    return folder


CONFIG = {
    "seed": 3,
    "data": {"_target_": "attnlab.data.dates.DatesCorpus", "source_locales": ["de_DE", "ja_JP"]},
    "model": {
        "attention": {"_target_": "attnlab.model.attention.bahdanau.BahdanauScore", "size": 128},
        "decoder": {
            "_target_": "attnlab.model.decoders.attend_then_step.AttendThenStep",
            "hidden_size": 128,
        },
    },
    "search": {"_target_": "attnlab.search.beam.BeamSearch", "beam_size": 5},
}


@pytest.fixture
def record():
    return RunRecord(
        CONFIG,
        "0123456789abcdef",
        "d" * 64,
        data_source="runs/data/1",
        data_facts={"train": 80},
        served=Translator.served,
        example="a text",
    )


@pytest.fixture
def tracking():
    """MlflowTracking with everything but the named values as the tests need it."""

    def settings(**changed):
        values = {
            "uri": None,
            "experiment": "attnlab",
            "run_name": None,
            "system_metrics": False,
            "heat_map_sentences": 2,
            "log_model": True,
            "when_unreachable": "refuse",
        }
        return MlflowTracking(**values | changed)

    return settings


@pytest.fixture
def away(tracking):
    """The settings of a training whose tracker is away."""
    return tracking(uri=NOBODY, when_unreachable="warn")


@pytest.fixture
def client(runs):
    return MlflowClient(tracking_uri=f"sqlite:///{runs}/mlflow.db")


@pytest.fixture
def disconnected(monkeypatch):
    """Within it the tracker is away."""

    @contextmanager
    def lost():
        def gone(*args):
            raise OSError("gone")

        with monkeypatch.context() as broken:
            broken.setattr("attnlab.runs.connection.check_reachable", gone)
            yield

    return lost


@pytest.fixture
def all_runs(client):
    """(status, loss) of each run in MLflow."""

    def found():
        listed = client.search_runs([client.get_experiment_by_name("attnlab").experiment_id])
        return sorted(((run.info.status, run.data.metrics.get("loss")) for run in listed), key=str)

    return found


@pytest.fixture
def experiment(tracking, runs):
    """As much of an experiment as `reset_experiment_folder` needs."""

    def made(**changed):
        return SimpleNamespace(
            tracking=tracking(**changed), paths=SimpleNamespace(runs_folder=runs)
        )

    return made


@pytest.fixture
def trained(away, runs, record):
    """Trains in a folder while the tracker is away."""

    def train(folder, loss=0.5, ends="FINISHED"):
        folder.mkdir(parents=True, exist_ok=True)
        run = away.start(runs, folder, record)
        MetricSpool(folder / SPOOL_NAME).append({"loss": loss}, 10, 1)
        run.upload_new()
        if ends is not None:
            run.finish(ends)

    return train
