"""A registered model behind MLflow's own server, asked over HTTP as docs/serving.md shows it."""

from __future__ import annotations

import json
import subprocess
import unicodedata
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pytest
from entry_points import PIPELINES, TINY
from servers import served_model

from attnlab.api import load
from attnlab.tasks.translation.answers import Translation
from attnlab.tasks.translation.translator import Translator

pytestmark = pytest.mark.slow

CHANGED = ("data", "training.max_steps", "training.validate_every")
TRAINED = [
    *(choice for choice in TINY if not choice.startswith(CHANGED)),
    "data=hub",
    "data.path=corpus",
    "training.max_steps=100",
    "training.validate_every=100",
    "tracking.system_metrics=false",
    "tracking.heat_map_sentences=0",
    "chain=false",
]
TEXTS = ["w1 w2 w3", "w4 한국어 w1", "학교에 간다"]


def write_corpus(folder: Path) -> None:
    """Sentences to copy."""
    words = ["w1", "w2", "w3", "w4", "한국어", "학교에", "간다"]
    texts = [
        " ".join((words * 2)[start : start + length])
        for start in range(7)
        for length in range(1, 7)
    ]
    lines = [
        json.dumps({"source": text, "target": text}, ensure_ascii=False) + "\n" for text in texts
    ]
    folder.mkdir()
    for split in ("train", "validation", "test"):
        (folder / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")


def run(folder: Path, python: Path, script: str, *arguments: str) -> None:
    command = [python, PIPELINES / script, *arguments]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, warm_python: Path) -> Path:
    """A folder in which a tiny model was trained and registered."""
    folder = tmp_path_factory.mktemp("serving")
    write_corpus(folder / "corpus")
    run(folder, warm_python, "train.py", *TRAINED)
    (record,) = (folder / "runs" / "points").glob("*/run/mlflow.json")
    run_id = json.loads(record.read_text())["run_id"]
    # As in docs/sweeps.md.
    mlflow.set_tracking_uri(f"sqlite:///{folder}/runs/mlflow.db")
    (model,) = mlflow.get_run(run_id).outputs.model_outputs
    version = mlflow.register_model(f"models:/{model.model_id}", "attnlab").version
    mlflow.MlflowClient().set_registered_model_alias("attnlab", "champion", version)
    # Later tests would read this database.
    mlflow.set_tracking_uri(None)
    return folder


@pytest.fixture(scope="module")
def tracker(project: Path) -> str:
    return f"sqlite:///{project}/runs/mlflow.db"


@pytest.fixture(scope="module")
def server(project: Path, tracker: str) -> Iterator[str]:
    with served_model(project, tracker, "models:/attnlab@champion") as address:
        yield address


@pytest.fixture(scope="module")
def translator(tracker: str) -> Translator:
    found = load("models:/attnlab@champion", tracking_uri=tracker)
    assert isinstance(found, Translator)
    return found


def ask(server: str, question: Any) -> tuple[int, Any]:
    """The status and the answer."""
    body = json.dumps(question, ensure_ascii=False).encode()
    request = urllib.request.Request(
        f"{server}/invocations", body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def assert_same(plain: dict[str, Any], expected: Translation, attention: bool = False) -> None:
    assert plain["text"] == expected.text
    assert plain["score"] == pytest.approx(expected.score, abs=1e-6)
    if attention:
        assert (plain["tokens"], plain["source_tokens"]) == (
            expected.tokens,
            expected.source_tokens,
        )
        np.testing.assert_allclose(plain["attention"], expected.attention, atol=1e-6)


def test_server_answers_as_the_python_api_in_every_form_of_request(
    server: str, translator: Translator
) -> None:
    forms: list[dict[str, Any]] = [
        {"inputs": TEXTS},
        {"inputs": [{"text": text} for text in TEXTS]},
        {"instances": TEXTS},
        {"instances": [{"text": text} for text in TEXTS]},
        {"dataframe_records": [{"text": text} for text in TEXTS]},
        {"dataframe_split": {"columns": ["text"], "data": [[text] for text in TEXTS]}},
    ]
    expected = translator(TEXTS)
    for form in forms:
        status, answer = ask(server, form)
        assert status == 200, answer
        assert [set(plain) for plain in answer["predictions"]] == [{"text", "score"}] * len(TEXTS)
        for plain, each in zip(answer["predictions"], expected, strict=True):
            assert_same(plain, each)


def test_server_reads_the_params(server: str, translator: Translator) -> None:
    params = {"beam": 4, "n_best": 3, "attention": True, "length_penalty": 0.5, "max_length": 6}
    status, answer = ask(server, {"inputs": TEXTS, "params": params})
    assert status == 200, answer
    expected = translator(TEXTS, beam=4, n_best=3, length_penalty=0.5, max_length=6)
    for plain, each in zip(answer["predictions"], expected, strict=True):
        assert_same(plain, each, attention=True)
        for other, alternative in zip(plain["alternatives"], each.alternatives, strict=True):
            assert_same(other, alternative, attention=True)
    drawn = {"search": "sample", "temperature": 8.0, "seed": 4}
    _, answer = ask(server, {"inputs": TEXTS, "params": drawn})
    assert [plain["text"] for plain in answer["predictions"]] == [
        each.text for each in translator(TEXTS, **drawn)
    ]


def test_server_answers_texts_in_another_form_as_the_clean_ones(server: str) -> None:
    given = [unicodedata.normalize("NFD", text).replace(" ", "\u00a0 ") + "\r\n" for text in TEXTS]
    params = {"attention": True}
    status, answer = ask(server, {"inputs": given, "params": params})
    assert status == 200, answer
    assert answer == ask(server, {"inputs": TEXTS, "params": params})[1]
    tokens = [each["source_tokens"] for each in answer["predictions"]]
    assert tokens == [[*text.split(), "<eos>"] for text in TEXTS]


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        (
            {"inputs": TEXTS, "params": {"beam": 0}},
            "Error: search.size must be a whole number above 0, got 0",
        ),
        ({"inputs": TEXTS, "params": {"beam": "five"}}, "Can not safely convert"),
        (
            {"dataframe_records": [{"id": "a", "text": "w1"}]},
            "the first column must be 'text', got 'id'",
        ),
    ],
)
def test_server_answers_a_mistake_with_the_status_400_and_a_sentence(
    server: str, question: dict[str, Any], sentence: str
) -> None:
    status, answer = ask(server, question)
    assert status == 400
    assert answer["error_code"] == "INVALID_PARAMETER_VALUE"
    assert sentence in answer["message"]
    assert "stack_trace" not in answer
    assert "Traceback" not in answer["message"]


def test_unknown_param_is_ignored_and_named_in_the_log_of_the_server(
    server: str, project: Path
) -> None:
    """MLflow's own behaviour, which docs/serving.md describes."""
    status, answer = ask(server, {"inputs": TEXTS, "params": {"bean": 5}})
    assert (status, answer) == ask(server, {"inputs": TEXTS})
    assert "Unrecognized params ['bean'] are ignored" in (project / "server.log").read_text()
