"""Models loaded from MLflow by their addresses, from the tracker that was meant."""

from __future__ import annotations

import shutil

import mlflow
import numpy as np
import pytest
from PIL import Image
from tiny_folders import SOURCES, write_classifier, write_translator

from attnlab.api import load
from attnlab.errors import ExperimentError
from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.explorer.formed import formed, trainings_of
from attnlab.runs.moved_store import DATABASE_NAME
from attnlab.runs.run_folder import HEAT_MAPS, OUTBOX, RunRecord
from attnlab.runs.stored_models import download_formed
from attnlab.runs.tracking import MlflowTracking
from attnlab.tasks.classification.classifier import SentenceClassifier
from attnlab.tasks.translation.translator import Translator


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The model folders of version 1 and 2."""
    places = [tmp_path_factory.mktemp(name) for name in ("first", "second")]
    return write_translator(places[0]), write_classifier(places[1])


@pytest.fixture(scope="module")
def filled(tmp_path_factory, folders, fresh_database):
    """(a folder with `runs` in it, the ids of two runs).

    They are versions 1 and 2 of `dates`; the champion is version 1.
    """
    project = tmp_path_factory.mktemp("project")
    runs = project / "runs"
    runs.mkdir()
    shutil.copyfile(fresh_database, runs / DATABASE_NAME)
    settings = MlflowTracking(None, "attnlab", None, False, 0, True, "refuse")
    ids = []
    for folder, alias in zip(folders, ("champion", "newest"), strict=True):
        point = runs / "points" / alias
        point.mkdir(parents=True)
        shutil.copytree(folder, point / "model")
        with settings.start(runs, point, RunRecord({"seed": 1}, alias, "d" * 64)) as run:
            if alias == "champion":
                log_validations(run)
        mlflow.set_tracking_uri(settings.address(runs))
        client = mlflow.MlflowClient()
        (output,) = client.get_run(run.run_id).outputs.model_outputs
        version = mlflow.register_model(f"models:/{output.model_id}", "dates").version
        client.set_registered_model_alias("dates", alias, version)
        ids.append(run.run_id)
    return project, ids


def log_validations(run):
    """What three validations give MLflow."""
    for step in (0, 50, 100):
        name = f"step_{step:06}"
        picture = run.folder / OUTBOX / HEAT_MAPS / name / "sentence_1.png"
        picture.parent.mkdir(parents=True)
        Image.new("RGB", (4, 4)).save(picture)
        weights = np.array([[1.0 - step / 200, step / 200]])
        map_of_step = AttentionMap(["나는", "<eos>"], ["I"], weights, wrong_targets=[])
        save_maps([map_of_step], picture.with_name("attention.npz"))
        if step:
            values = {"teacher_forced/token_nll": 100 / step, "free_running/bleu": step / 10}
            run.log_metrics({f"validation/{key}": each for key, each in values.items()}, step)


@pytest.fixture(autouse=True)
def project(filled, monkeypatch):
    """The current folder, with `runs` in it; MLflow was told of no tracker."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    mlflow.set_tracking_uri(None)
    monkeypatch.chdir(filled[0])
    yield filled[0]
    mlflow.set_tracking_uri(None)


@pytest.mark.parametrize(
    ("address", "version"),
    [
        ("models:/dates@champion", 1),
        ("models:/dates@newest", 2),
        ("models:/dates/1", 1),
        ("models:/dates/2", 2),
        ("models:/dates/latest", 2),
    ],
)
def test_registered_model_is_loaded_by_alias_version_and_latest(folders, address, version):
    same_answers(load(address), load(folders[version - 1]))


def test_model_of_a_run_is_loaded_by_its_id(filled, folders):
    for run_id, folder in zip(filled[1], folders, strict=True):
        same_answers(load(f"runs:/{run_id}/model"), load(folder))


def test_logged_model_is_loaded_by_the_address_that_mlflow_shows(filled, folders):
    client = mlflow.MlflowClient("sqlite:///runs/mlflow.db")
    (output,) = client.get_run(filled[1][0]).outputs.model_outputs
    same_answers(load(f"models:/{output.model_id}"), load(folders[0]))


@pytest.mark.parametrize("kind", ["run", "logged model", "version", "alias"])
def test_attention_of_a_model_in_mlflow_is_found_as_it_formed(filled, kind, tmp_path):
    run = filled[1][0]
    (output,) = mlflow.MlflowClient("sqlite:///runs/mlflow.db").get_run(run).outputs.model_outputs
    model = {
        "run": f"runs:/{run}/model",
        "logged model": f"models:/{output.model_id}",
        "version": "models:/dates/1",
        "alias": "models:/dates@champion",
    }[kind]
    training = trainings_of([model], tmp_path)[model]
    answer = formed(training, None)
    assert answer["steps"] == [0, 50, 100]
    (sentence,) = answer["sentences"]
    assert sentence["source"] == ["나는", "<eos>"]
    found = [each["attention"] for each in sentence["maps"]]
    assert found == [[[1.0, 0.0]], [[0.75, 0.25]], [[0.5, 0.5]]]
    assert answer["loss"] == [(50, 2.0), (100, 1.0)]
    assert answer["metric"] == {"name": "bleu", "points": [(50, 5.0), (100, 10.0)]}


def test_long_training_in_mlflow_gives_some_of_its_validations(filled, tmp_path):
    assert download_formed(f"runs:/{filled[1][0]}/model", tmp_path, most=2)
    assert formed(tmp_path, None)["steps"] == [0, 100]


def test_model_in_mlflow_whose_run_has_no_maps_has_no_training(filled, tmp_path):
    assert trainings_of([f"runs:/{filled[1][1]}/model"], tmp_path) == {}


def same_answers(loaded, expected):
    assert isinstance(loaded, Translator | SentenceClassifier)
    assert type(loaded) is type(expected)
    assert loaded.plain_answers(SOURCES) == expected.plain_answers(SOURCES)


def test_newest_of_two_models_of_a_run_is_loaded(tracking, runs, point, record, folders):
    """As after a training that was repeated in its folder."""
    for folder in folders:
        shutil.rmtree(point / "model", ignore_errors=True)
        shutil.copytree(folder, point / "model")
        with tracking().start(runs, point, record) as run:
            pass
    found = load(f"runs:/{run.run_id}/model", tracking_uri=f"sqlite:///{runs}/mlflow.db")
    assert isinstance(found, SentenceClassifier)


@pytest.mark.parametrize("told_by", ["argument", "variable", "mlflow"])
def test_tracker_is_the_one_that_was_named(project, told_by, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    address = f"sqlite:///{project}/runs/mlflow.db"
    if told_by == "variable":
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    elif told_by == "mlflow":
        mlflow.set_tracking_uri(address)
    else:
        # An argument goes before it
        monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    assert isinstance(
        load("models:/dates/1", tracking_uri=address if told_by == "argument" else None), Translator
    )
    assert list(tmp_path.iterdir()) == []


def test_variable_goes_before_the_database_in_runs(project, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    with pytest.raises(
        ExperimentError, match=r"cannot be loaded from http://127.0.0.1:9: .*refused"
    ):
        load("models:/dates/1")


KINDS_OF_ADDRESSES = "must be runs:/<id>/model, models:/<name>@<alias>, models:/<name>/<version> or"
WRONG_ADDRESSES = (
    "runs:/",
    "models:/",
    "models:/dates",
    "models:/dates@",
    "models:/dates/Production",
    "models:/dates@a/1",
)


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("models:/dates/99", "cannot be loaded from sqlite:.*version=99.* not found"),
        ("models:/dates@winner", "cannot be loaded from sqlite:.* alias winner not found"),
        ("models:/times@champion", "cannot be loaded from sqlite:.*name=times not found"),
        ("models:/times/latest", "cannot be loaded from sqlite:.*name=times not found"),
        ("models:/m-" + "0" * 32, "cannot be loaded from sqlite:.* not found"),
        ("runs:/0123/model", "cannot be loaded from sqlite:.* id=0123 not found"),
        *((wrong, KINDS_OF_ADDRESSES) for wrong in WRONG_ADDRESSES),
    ],
)
def test_unknown_model_is_refused_in_one_sentence(address, sentence):
    with pytest.raises(ExperimentError, match=sentence) as refused:
        load(address)
    (problem,) = refused.value.problems
    assert problem.startswith(address)
    assert "\n" not in problem


@pytest.mark.parametrize(
    ("tracker", "sentence"),
    [
        (
            "sqlite:///other.db",
            "there is no database other.db; give tracking_uri, or set MLFLOW_TRACKING_URI",
        ),
        ("runs/mlflow.db", "cannot be loaded from runs/mlflow.db: Could not parse"),
        ("nonsense://host", "cannot be loaded from nonsense://host: .*unsupported URI"),
        ("http://me:secret@127.0.0.1:9", r"cannot be loaded from http://me:\*\*\*@127.0.0.1:9: "),
    ],
)
def test_unusable_tracker_is_refused_in_one_sentence_and_creates_nothing(
    project, tracker, sentence
):
    before = sorted(project.iterdir())
    with pytest.raises(ExperimentError, match=sentence) as refused:
        load("models:/dates/1", tracking_uri=tracker)
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)
    assert sorted(project.iterdir()) == before


def test_missing_database_of_the_folder_runs_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ExperimentError, match=f"there is no database {tmp_path}/runs/mlflow.db; give tracking_uri"
    ):
        load("models:/dates/1")
    assert list(tmp_path.iterdir()) == []


def test_run_without_a_model_is_refused(tracking, runs, point, record):
    with tracking().start(runs, point, record) as run:
        pass
    with pytest.raises(
        ExperimentError, match="this run has no model; it may not have been trained to its end"
    ):
        load(f"runs:/{run.run_id}/model", tracking_uri=f"sqlite:///{runs}/mlflow.db")


def test_model_that_another_program_logged_is_refused(runs, client, tmp_path):
    run = client.create_run("0").info.run_id
    other = client.create_logged_model("0", "other", run)
    (tmp_path / "weights.txt").write_text("1")
    client.log_model_artifacts(other.model_id, str(tmp_path))
    with pytest.raises(ExperimentError, match="is not a model that attnlab logged"):
        load(f"models:/{other.model_id}", tracking_uri=f"sqlite:///{runs}/mlflow.db")
