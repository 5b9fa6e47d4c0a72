"""A runs folder with a fresh MLflow database, copied: making one takes MLflow two seconds."""

import shutil

import pytest

from attnlab.tracking.address import DATABASE_NAME
from attnlab.tracking.settings import MlflowTracking, RunRecord


@pytest.fixture(scope="session")
def fresh_database(tmp_path_factory):
    from attnlab.tracking.database import open_store

    folder = tmp_path_factory.mktemp("template")
    open_store(None, "template", folder)
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
        "decoder": {"_target_": "attnlab.model.decoder.attend_then_step.AttendThenStep", "hidden_size": 128},
    },
    "search": {"_target_": "attnlab.search.beam.BeamSearch", "beam_size": 5},
}


@pytest.fixture
def record():
    return RunRecord(
        CONFIG,
        identity="0123456789abcdef",
        data_digest="d" * 64,
        data_source="runs/data/1",
        data_facts={"train": 80},
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
            "keep_heat_maps": 2,
            "log_model": True,
            "when_unreachable": "refuse",
        }
        return MlflowTracking(**values | changed)

    return settings
