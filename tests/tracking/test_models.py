"""The trained model in MLflow: logged once, loaded without a pickle, asked for a translation or a label."""

import shutil
import sys
import types
from pathlib import Path

import mlflow.pyfunc
import pytest
from mlflow import MlflowClient


class FakeModel:
    """Stands for the real ones, which need a trained model."""

    def __init__(self, folder):
        self.prefix = (folder / "weights.safetensors").read_text()

    @classmethod
    def load(cls, folder):
        assert isinstance(folder, Path)
        return cls(folder)

    def texts(self, texts):
        return [self.prefix + text for text in texts]


@pytest.fixture
def model_folder(tmp_path, monkeypatch):
    module = types.ModuleType("attnlab.inference.loading")
    module.load_folder = FakeModel.load
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(sys, "path", list(sys.path))  # MLflow puts the model's code there
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights.safetensors").write_text("→ ")
    (folder / "model.json").write_text('{"source_vocabulary_size": 9, "identity": "i", "step": 3}')
    return folder


def test_logged_model_translates(tracking, runs, point, record, client, model_folder, capfd):
    shutil.copytree(model_folder, point / "model")
    for _ in range(2):
        with tracking().start(runs, point, record) as run:
            pass
    (output,) = client.get_run(run.run_id).outputs.model_outputs
    model = client.get_logged_model(output.model_id)
    assert (model.name, str(model.status)) == ("translator", "READY")
    assert model.params["attention"] == "bahdanau"

    location = Path(model.artifact_location.removeprefix("file://"))
    assert not [path for path in location.rglob("*") if path.suffix in (".pkl", ".pickle", ".pt", ".pyc")]
    requirements = (location / "requirements.txt").read_text().split()
    assert all("==" in requirement and "+" not in requirement for requirement in requirements)
    assert (location / "code" / "attnlab" / "batch.py").exists()

    loaded = mlflow.pyfunc.load_model(str(location))
    assert loaded.predict(["Guten Tag", "<b>"]) == ["→ Guten Tag", "→ <b>"]
    said = capfd.readouterr()
    assert said.err == ""


def test_logged_classifier_names_classes(tracking, runs, point, record, client, model_folder):
    facts = '{"source_vocabulary_size": 9, "identity": "i", "step": 3, "num_classes": 2}'
    (model_folder / "model.json").write_text(facts)
    shutil.copytree(model_folder, point / "model")
    with tracking().start(runs, point, record) as run:
        pass
    (output,) = client.get_run(run.run_id).outputs.model_outputs
    model = client.get_logged_model(output.model_id)
    assert (model.name, model.model_type) == ("classifier", "classifier")
    loaded = mlflow.pyfunc.load_model(model.artifact_location.removeprefix("file://"))
    assert loaded.predict(["a good film"]) == ["→ a good film"]


def test_model_that_cannot_be_logged_is_a_warning_and_logged_by_the_evaluation(
    tracking, runs, point, record, client, model_folder, monkeypatch, capsys
):
    def full(*_):
        raise OSError("No space left on device")

    shutil.copytree(model_folder, point / "model")
    with monkeypatch.context() as broken:
        broken.setattr(MlflowClient, "log_model_artifacts", full)
        with tracking().start(runs, point, record) as training:
            pass
    assert "No space left on device; everything is on disk" in capsys.readouterr().err
    assert "model_hash" not in client.get_run(training.run_id).data.tags
    with tracking().start(runs, point, record) as evaluation:
        evaluation.log_metrics({"test/bleu": 1.0}, 3)
    assert evaluation.run_id == training.run_id
    assert "model_hash" in client.get_run(training.run_id).data.tags
    assert len(client.get_run(training.run_id).outputs.model_outputs) >= 1


def test_no_model_is_logged_with_log_model_false(tracking, runs, point, record, client, model_folder):
    shutil.copytree(model_folder, point / "model")
    with tracking(log_model=False).start(runs, point, record) as run:
        pass
    assert client.get_run(run.run_id).outputs.model_outputs == []
