"""The explorer's server: who may ask, what is refused and how."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import torch
from starlette.testclient import TestClient
from tiny_folders import write_translator

from attnlab.api import load
from attnlab.config.names import readable_name
from attnlab.data.corpus import Cleaning
from attnlab.errors import ExperimentError
from attnlab.explorer import PAGE, server
from attnlab.explorer.server import application, explore
from attnlab.model.model_folder import read_config
from attnlab.tasks.translation import analysis
from attnlab.tasks.translation.explorer_page import first_pairs


@pytest.fixture
def models(translator):
    return {"a": translator(), "b": translator(attention="dot", decoder="step_then_attend")}


@pytest.fixture
def client(models):
    return TestClient(application(models), base_url="http://localhost")


def test_answers_are_those_of_the_analysis(client, models):
    asked = {
        "text": "May 13",
        "intervene": {"weights": {"0": [0, 0, 1, 0, 0, 0, 0]}, "force": {"1": "월"}},
    }
    answer = client.post("/api/translate", json={"model": "b", **asked})
    assert answer.status_code == 200
    intervene = analysis.Intervention(weights={0: [0, 0, 1, 0, 0, 0, 0]}, force={1: "월"})
    assert answer.json() == analysis.translate(models["b"], "May 13", intervene)
    assert answer.json()["attention"][0] == [0, 0, 1, 0, 0, 0, 0]


def test_text_in_another_form_is_answered_as_the_clean_one(client, models):
    models["a"].cleaning = Cleaning()
    clean = analysis.translate(models["a"], "May 13, é")
    for text in ("May\u00a013,  e\u0301", "\r\nMay 13,\u3000é "):
        answer = client.post("/api/translate", json={"model": "a", "text": text})
        assert answer.status_code == 200
        assert answer.json() == clean


def test_alignment_is_of_the_tokens_that_the_model_reads_of_a_cleaned_pair(translator, corpus):
    ours = translator(tokenizers=(corpus.source_tokenizer, corpus.target_tokenizer))
    links = [pair["sure"] for pair in first_pairs(ours, corpus)]
    assert all(links)
    ours.cleaning = Cleaning()
    assert [pair["sure"] for pair in first_pairs(ours, corpus)] == links
    ours.cleaning = Upper()
    assert not any(pair["sure"] for pair in first_pairs(ours, corpus))


class Upper(Cleaning):
    def tidy(self, text):
        return text.upper()


def test_models_are_listed_with_their_kind(client):
    listed = client.get("/api/models").json()
    assert [(each["name"], each["kind"], each["score"]) for each in listed] == [
        ("a", "translation", "Bahdanau"),
        ("b", "translation", "Dot"),
    ]


def test_model_is_listed_with_the_name_of_its_experiment(client, models):
    models["a"].config = {
        "model": {"attention": {"_target_": "attnlab.model.attention.dot.DotScore"}},
        "seed": 3,
    }
    assert [each["title"] for each in client.get("/api/models").json()] == ["dot · seed 3", None]


def test_model_is_offered_the_test_pairs_of_its_own_corpus(translator, corpus):
    tokenizers = (corpus.source_tokenizer, corpus.target_tokenizer)
    models = {"a": translator(tokenizers=tokenizers), "b": translator()}
    app = application(models, {"a": corpus.folder})
    client = TestClient(app, base_url="http://localhost")
    listed = client.get("/api/models").json()
    assert [each["has_test_set"] for each in listed] == [True, False]
    pairs = [client.post("/api/pairs", json={"model": name}).json() for name in models]
    assert pairs == [first_pairs(models["a"], corpus), []]


@pytest.mark.parametrize(
    "path", ["/", "/app.js", "/style.css", "/views/translate.js", "/api/models"]
)
def test_page_forbids_requests_to_elsewhere(client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"].startswith(
        "default-src 'self'; script-src 'self' 'sha256-"
    )


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1.example.org", "192.168.0.1"])
def test_other_hosts_are_refused(client, host):
    assert client.get("/", headers={"host": host}).status_code == 400
    assert client.post("/api/translate", json={}, headers={"host": host}).status_code == 400


def test_form_of_another_site_is_refused(client):
    answer = client.post(
        "/api/translate",
        content='{"model": "a", "text": "x"}',
        headers={"content-type": "text/plain"},
    )
    assert answer.status_code == 415


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"model": "c", "text": "x"}', "model must be one of a, b; got 'c'"),
        (b'{"model": ["a"], "text": "x"}', "model must be one of a, b; got ['a']"),
        (b'{"model": "a"}', "text"),
        (b'{"model": "a", "text": 3}', "text"),
        (
            b'{"model": "a", "text": "\\ud55c\\ud800"}',
            "each text must be Unicode text, but character 2 of",
        ),
        (b'{"model": "a", "text": "x", "colour": 3}', "colour"),
        (
            b'{"model": "a", "text": "x", "intervene": {"temperature": 0}}',
            "temperature must be from 0.001 to 1000",
        ),
        (
            b'{"model": "a", "text": "x", "intervene": {"hide": [9]}}',
            "hide must name positions below 2",
        ),
        (b'{"model": "a", "text": "x", "settings": {"bean": 3}}', "bean is no setting of a search"),
        (b"{", "the request must be JSON"),
        (b"\xff", "the request must be JSON"),
        (b"[1]", "the request must be a JSON object"),
        (
            b'{"model": "a", "text": "x", "edit": {"before": -1}}',
            "edit: before and behind must be at least 0, got -1 and 0",
        ),
    ],
)
def test_bad_requests_get_one_sentence(client, body, message):
    answer = client.post(
        "/api/translate", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400
    (sentence,) = answer.json().values()
    assert message in sentence
    assert "\n" not in sentence


def test_unknown_analysis_is_refused_with_those_that_exist(client):
    answer = client.post("/api/guess", json={})
    assert answer.status_code == 404
    assert "translate" in answer.json()["error"]


def test_port_in_use_is_refused_in_a_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ExperimentError, match=f"--port {port} cannot be used"):
            explore([], port, browser=False)


def test_default_port_is_fixed_and_the_next_free_one_where_it_is_taken(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr(server, "DEFAULT_PORT", port)
    with server.listen(None) as first, server.listen(None) as second:
        assert first.getsockname()[1] == port
        assert port < second.getsockname()[1] < port + server.PORTS_TO_TRY


def test_printed_line_says_that_the_default_port_is_taken(monkeypatch, capsys):
    monkeypatch.setattr(server.uvicorn.Server, "run", lambda *_, **__: None)
    with server.listen(0) as taken:
        monkeypatch.setattr(server, "DEFAULT_PORT", taken.getsockname()[1])
        explore([], browser=False)
    assert f"(port {server.DEFAULT_PORT} is taken; Ctrl-C" in capsys.readouterr().out
    explore([], browser=False)
    printed = capsys.readouterr().out
    assert printed == f"explorer: http://127.0.0.1:{server.DEFAULT_PORT}/  (Ctrl-C stops it)\n"


def test_page_is_told_the_command_that_starts_the_server_again():
    command = server.start_command(["runs/a b/model"], 8765, Path("build/data"))
    assert command == "attnlab explore 'runs/a b/model' --port 8765 --data build/data"
    client = TestClient(application({}, command=command), base_url="http://localhost")
    assert client.get("/api/about").json() == {"command": command}


def test_server_starts_again_on_the_same_device():
    command = server.start_command(["model"], 8765, None, device="cuda:1")
    assert command == "attnlab explore model --port 8765 --device cuda:1"


def test_explore_loads_each_model_on_the_device(monkeypatch):
    loaded = []
    monkeypatch.setattr(server, "load", lambda model, device, _: loaded.append((model, device)))
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    monkeypatch.setattr(server, "application", lambda *_: None)
    monkeypatch.setattr(server.uvicorn.Server, "run", lambda *_, **__: None)
    explore(["one", "two"], port=0, browser=False, device="cuda")
    assert loaded == [("one", "cuda"), ("two", "cuda")]
    assert not torch.backends.cudnn.allow_tf32


def test_device_that_is_not_there_is_refused_in_a_sentence(translator_folder):
    with pytest.raises(ExperimentError, match="the device mps:9 cannot be used here"):
        explore([str(translator_folder)], port=0, browser=False, device="mps:9")


def test_folders_called_model_have_the_names_of_their_experiments_and_an_example(tmp_path):
    paths = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        paths.append(write_translator(tmp_path / name))
    (paths[0] / "example.txt").write_text("나는 집 에 간다", encoding="utf-8")
    config = json.loads((paths[1] / "config.json").read_text(encoding="utf-8"))
    (paths[1] / "config.json").write_text(json.dumps(config | {"seed": 7}), encoding="utf-8")
    client = TestClient(
        application({str(path): load(path) for path in paths}), base_url="http://localhost"
    )
    listed = client.get("/api/models").json()
    assert [each["example"] for each in listed] == ["나는 집 에 간다", ""]
    names = [readable_name(read_config(path)) for path in paths]
    assert [each["title"] for each in listed] == names
    assert names[0] != names[1]
    assert "seed 7" in names[1]


def test_data_that_no_model_reads_are_refused_in_a_sentence(
    translator, classifier, reviews, corpus
):
    refused = "none of these models reads such data; leave it out"
    for models, data in [({}, corpus), ({"a": translator()}, reviews), ({"c": classifier}, corpus)]:
        with pytest.raises(ExperimentError, match=refused):
            application(models, data.folder)


def test_each_model_is_offered_the_data_of_its_kind(translator, classifier, reviews, corpus):
    models = {"a": translator(), "c": classifier}
    for data, reader in [(corpus, "a"), (reviews, "c")]:
        client = TestClient(application(models, data.folder), base_url="http://localhost")
        offered = {
            each["name"] for each in client.get("/api/models").json() if each["has_test_set"]
        }
        assert offered == {reader}


@pytest.mark.parametrize("name", ["a", "c"])
def test_damaged_data_are_refused_with_their_files(name, translator, classifier, tmp_path):
    models = {"a": translator(), "c": classifier}
    with pytest.raises(ExperimentError, match=r"lacks prepared data: data\.json"):
        application({name: models[name]}, tmp_path)


def test_page_names_no_other_address():
    for path in PAGE.rglob("*.*"):
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/", "")
        assert "http:" not in text, path
        assert "https:" not in text, path
        assert "innerHTML" not in text, path


def test_explore_prints_its_address_answers_there_and_stops_quietly():
    code = "from attnlab.explorer.server import explore; explore([], port=0, browser=False)"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        line = process.stdout.readline()
        address = line.split()[1]
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{address}api/models", timeout=20) as answer:
            assert answer.read() == b"[]"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert errors == ""
