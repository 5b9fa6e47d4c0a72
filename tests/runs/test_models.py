"""The trained model in MLflow: logged once, loaded without a pickle, asked with params."""

import inspect
import json
import logging
import os
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import mlflow.pyfunc
import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.models import Model
from tiny_folders import CLEANING, FORMS, SOURCES, write_classifier, write_translator

from attnlab.api import load
from attnlab.config.binding import bind
from attnlab.config.names import readable_name
from attnlab.data.corpus import Corpus
from attnlab.data.prepare import prepare
from attnlab.data.prepared import PreparedData
from attnlab.data.row_kinds import Pairs
from attnlab.experiment.composition import compose
from attnlab.runs.logged_model import save_logged_model
from attnlab.tasks.classification.classifier import SentenceClassifier
from attnlab.tasks.translation.search_settings import SEARCHES
from attnlab.tasks.translation.translator import Translator


@pytest.fixture(autouse=True)
def own_path(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))  # MLflow puts the model's code there


@pytest.fixture
def quiet_mlflow():
    """MLflow as quiet as in a training.

    There, attnlab.runs sets MLFLOW_LOGGING_LEVEL before mlflow is imported.
    """
    logger = logging.getLogger("mlflow")
    before = logger.level
    logger.setLevel(os.environ["MLFLOW_LOGGING_LEVEL"])
    yield
    logger.setLevel(before)


@pytest.fixture(scope="module")
def served(translator_folder, tmp_path_factory):
    """The translator as MLflow loads it."""
    place = tmp_path_factory.mktemp("served") / "model"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))
        save_logged_model(place, translator_folder, Translator.served, SOURCES[0], Model())
        return mlflow.pyfunc.load_model(str(place))


def test_logged_model_translates(
    tracking, runs, point, record, client, translator_folder, quiet_mlflow, capfd
):
    shutil.copytree(translator_folder, point / "model")
    for _ in range(2):
        with tracking().start(runs, point, record) as run:
            pass
    (output,) = client.get_run(run.run_id).outputs.model_outputs
    model = client.get_logged_model(output.model_id)
    name = re.sub("[/:.%\"']", "_", readable_name(record.config))
    assert (model.name, model.model_type, str(model.status)) == (name, "translator", "READY")
    assert model.params["attention"] == "bahdanau"

    location = Path(model.artifact_location.removeprefix("file://"))
    assert not [
        path for path in location.rglob("*") if path.suffix in (".pkl", ".pickle", ".pt", ".pyc")
    ]
    requirements = (location / "requirements.txt").read_text().split()
    assert all("==" in requirement and "+" not in requirement for requirement in requirements)
    assert (location / "code" / "attnlab" / "batch.py").exists()

    loaded = mlflow.pyfunc.load_model(str(location))
    assert [each["text"] for each in loaded.predict(SOURCES)] == [
        each.text for each in load(translator_folder)(SOURCES)
    ]
    said = capfd.readouterr()
    assert said.err == ""


def test_logged_classifier_gives_labels_probabilities_and_attention_on_request(
    tracking, runs, point, record, client, classifier_folder
):
    shutil.copytree(classifier_folder, point / "model")
    of_classifier = replace(record, served=SentenceClassifier.served, example="a text")
    with tracking().start(runs, point, of_classifier) as run:
        pass
    (output,) = client.get_run(run.run_id).outputs.model_outputs
    model = client.get_logged_model(output.model_id)
    assert model.model_type == "classifier"
    loaded = mlflow.pyfunc.load_model(model.artifact_location.removeprefix("file://"))
    expected = load(classifier_folder)(SOURCES)
    plain = [
        {"label": each.label, "probabilities": pytest.approx(each.probabilities)}
        for each in expected
    ]
    assert loaded.predict(SOURCES) == plain
    for each, answer in zip(
        expected, loaded.predict(SOURCES, params={"attention": True}), strict=True
    ):
        assert (answer["label"], answer["tokens"]) == (each.label, each.tokens)
        np.testing.assert_allclose(answer["attention"], each.attention, atol=1e-6)


def test_signature_has_every_setting_of_the_searches(served):
    settings = {
        name for kind, _ in SEARCHES.values() for name in inspect.signature(kind).parameters
    }
    assert set(Translator.served.settings) == settings - {"size"} | {"search", "beam"}
    params = {param.name: param.default for param in served.metadata.get_params_schema()}
    assert params == {"attention": False, **dict.fromkeys(Translator.served.settings)}


def test_example_of_a_logged_model_is_a_text_of_the_validation_data(
    tracking, runs, point, record, client, translator_folder, tmp_path
):
    corpus = bind(compose(["data=copy", "data.num_pairs=200"]).logged["data"], Corpus, "data")
    prepare(corpus, Pairs, tmp_path / "prepared")
    shutil.copytree(translator_folder, point / "model")
    text = PreparedData(tmp_path / "prepared").split("validation").source_text(0)
    of_data = replace(record, served=Translator.served, example=text)
    with tracking().start(runs, point, of_data) as run:
        pass
    (output,) = client.get_run(run.run_id).outputs.model_outputs
    location = Path(
        client.get_logged_model(output.model_id).artifact_location.removeprefix("file://")
    )
    example = json.loads((location / "serving_input_example.json").read_text())
    assert example == {"inputs": [text], "params": {"attention": True}}


@pytest.mark.parametrize(
    "given",
    [
        SOURCES,
        np.array(SOURCES),
        np.array(SOURCES, dtype=object),
        pd.Series(SOURCES),
        pd.DataFrame({"text": SOURCES}),
        pd.DataFrame({"text": SOURCES, "id": range(5)}, index=range(7, 12)),
    ],
    ids=lambda given: type(given).__name__,
)
def test_every_form_of_input_gives_the_answers_of_the_python_api(served, translator_folder, given):
    answers = served.predict(given, params={"beam": 3, "n_best": 2, "attention": True})
    expected = load(translator_folder)(SOURCES, beam=3, n_best=2)
    for answer, each in zip(answers, expected, strict=True):
        (alternative,) = each.alternatives
        for plain, one in ((answer, each), (answer["alternatives"][0], alternative)):
            assert (plain["text"], plain["tokens"], plain["source_tokens"]) == (
                one.text,
                one.tokens,
                one.source_tokens,
            )
            assert plain["score"] == pytest.approx(one.score, abs=1e-6)
            np.testing.assert_allclose(plain["attention"], one.attention, atol=1e-6)


@pytest.mark.parametrize("kind", ["translator", "classifier"])
def test_served_model_answers_texts_in_another_form_as_the_clean_ones(tmp_path, kind):
    if kind == "translator":
        folder = write_translator(tmp_path, cleaning=CLEANING)
    else:
        folder = write_classifier(
            tmp_path, CLEANING | {"_target_": "attnlab.data.corpus.SentenceCleaning"}
        )
    served = load(folder).served
    save_logged_model(tmp_path / "served", folder, served, SOURCES[0], Model())
    ours = mlflow.pyfunc.load_model(str(tmp_path / "served"))
    clean = ours.predict(SOURCES, params={"attention": True})
    for change in FORMS.values():
        assert ours.predict([change(text) for text in SOURCES], params={"attention": True}) == clean


def test_params_change_the_search_and_none_is_the_own_setting_of_the_model(
    served, translator_folder
):
    ours = load(translator_folder)
    own = [
        {"text": each.text, "score": pytest.approx(each.score, abs=1e-6)} for each in ours(SOURCES)
    ]
    assert served.predict(SOURCES) == own
    assert served.predict(SOURCES, params={"beam": None, "attention": False}) == own
    for params in ({"search": "greedy"}, {"temperature": 9, "seed": 3}, {"max_length": 2}):
        assert [each["text"] for each in served.predict(SOURCES, params=params)] == [
            each.text for each in ours(SOURCES, **params)
        ]
    assert (
        len(
            {
                served.predict(SOURCES[0], params={"temperature": 9, "seed": i})[0]["text"]
                for i in range(5)
            }
        )
        > 1
    )


@pytest.mark.parametrize(
    ("given", "params", "message"),
    [
        (SOURCES, {"beam": 0}, r"^search.size must be a whole number above 0, got 0$"),
        (SOURCES, {"search": "best"}, "^search must be one of greedy, beam, sample; got 'best'$"),
        (SOURCES, {"beam": 3, "temperature": 2.0}, "'beam', 'temperature' do not go together"),
        (
            SOURCES,
            {"beam": "five"},
            "Can not safely convert `<class 'str'>` to `DataType.long` for value `five`",
        ),
        (["나는", "\ud800"], None, "can't encode character .* surrogates not allowed"),
        (["나는", None], None, "^each text must be a string, got .* in row 1$"),
        ([1, 2], None, "Can not safely convert int64"),
        (
            pd.DataFrame({"id": SOURCES, "text": SOURCES}),
            None,
            "^the first column must be 'text', got 'id'; rename",
        ),
    ],
)
def test_mistake_is_a_sentence_that_the_server_answers_with_the_status_400(
    served, given, params, message
):
    with pytest.raises(MlflowException, match=message) as refused:
        served.predict(given, params=params)
    assert refused.value.get_http_status_code() == 400
    assert "Traceback" not in str(refused.value)


def test_model_that_cannot_be_logged_is_a_warning_and_logged_by_the_evaluation(
    tracking, runs, point, record, client, translator_folder, monkeypatch, capsys
):
    def full(*_):
        raise OSError("No space left on device")

    shutil.copytree(translator_folder, point / "model")
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


def test_no_model_is_logged_with_log_model_false(
    tracking, runs, point, record, client, translator_folder
):
    shutil.copytree(translator_folder, point / "model")
    with tracking(log_model=False).start(runs, point, record) as run:
        pass
    assert client.get_run(run.run_id).outputs.model_outputs == []
