"""A model trained by the real command cleans its inputs as its training data were cleaned."""

from __future__ import annotations

import io
import json
import sys
import unicodedata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from entry_points import TINY, Command, succeeded

import attnlab
from attnlab.commands import main

SIZES = tuple(choice for choice in TINY if not choice.startswith("data"))
PAIRS = [
    {"ko": "나는 학교에 간다", "en": "i go to school", "kind": "daily"},
    {"ko": "너를 사랑해", "en": "i love you", "kind": "love"},
    {"ko": "비가 온다", "en": "it rains", "kind": "daily"},
]
TEXTS = [row["ko"] for row in PAIRS]
# As macOS decomposes, as web pages and word processors space, and with more spaces than one.
GIVEN = [unicodedata.normalize("NFD", text).replace(" ", "\u00a0 ") for text in TEXTS]
CORPUS = ("data.tokenizer.min_frequency=1", "tracking=none", "chain=false")


def write(folder: Path) -> str:
    folder.mkdir()
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in PAIRS * 4)
    for split in ("train", "validation", "test"):
        (folder / f"{split}.jsonl").write_text(lines, encoding="utf-8")
    return f"data.path={folder}"


def model_in(folder: Path) -> Path:
    (found,) = folder.glob("runs/points/*/model")
    return found


def asked(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    *arguments: Any,
    stdin: bytes,
) -> Any:
    """The JSON that a command prints, without the texts that it was given."""
    monkeypatch.setattr(
        sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin), isatty=lambda: False)
    )
    capfd.readouterr()
    assert main([*map(str, arguments), "--json"]) == 0
    shown = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    given = ("text",) if arguments[0] == "classify" else ("source", "target")
    return [{name: value for name, value in each.items() if name not in given} for each in shown]


def test_trained_translator_reads_a_file_in_another_form_as_its_training_data(
    command: Command,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    corpus = ("data=hub", write(folder / "corpus"), "data.source=ko", "data.target=en")
    limits = ("data.cleaning.max_source_length=20", "data.cleaning.max_characters=30")
    succeeded(command("train.py", *SIZES, *corpus, *limits, *CORPUS))
    model = model_in(folder)
    assert "cleaning" not in json.loads((model / "config.json").read_text())  # `data` says it

    clean = "".join(f"{text}\n" for text in TEXTS).encode()
    given = b"\xef\xbb\xbf" + "".join(f"{text}\r\n" for text in GIVEN).encode()
    expected = asked(monkeypatch, capfd, "translate", model, stdin=clean)
    assert len({json.dumps(each) for each in expected}) == len(TEXTS)
    assert asked(monkeypatch, capfd, "translate", model, stdin=given) == expected
    (long,) = asked(monkeypatch, capfd, "translate", model, " ".join(TEXTS * 20), stdin=b"")
    assert len(long["source_tokens"]) > 20

    clean = "".join(f"{text}\tit rains\n" for text in TEXTS).encode()
    given = "".join(f"{text}\tit\u00a0 rains \r\n" for text in GIVEN).encode()
    expected = asked(monkeypatch, capfd, "score", model, stdin=clean)
    assert asked(monkeypatch, capfd, "score", model, stdin=b"\xef\xbb\xbf" + given) == expected


def test_trained_classifier_reads_a_file_in_another_form_as_its_training_data(
    command: Command,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    corpus = ("task=classification", write(folder / "corpus"), "data.text=ko", "data.label=kind")
    of_translators = ("model.decoder", "model.readout", "search", "training.validation_search")
    sizes = (each for each in SIZES if not each.startswith(of_translators))
    succeeded(command("train.py", *corpus, *sizes, *CORPUS))
    clean = "".join(f"{text}\n" for text in TEXTS).encode()
    given = b"\xef\xbb\xbf" + "".join(f"{text}\r\n" for text in GIVEN).encode()
    expected = asked(monkeypatch, capfd, "classify", model_in(folder), stdin=clean)
    assert len({json.dumps(each) for each in expected}) == len(TEXTS)
    assert asked(monkeypatch, capfd, "classify", model_in(folder), stdin=given) == expected


def test_model_folder_says_the_cleaning_that_a_corpus_sets_in_code(
    command: Command, folder: Path, tiny: Any
) -> None:
    succeeded(command("train.py", *tiny, "chain=false"))
    config = json.loads((model_in(folder) / "config.json").read_text())
    assert config["cleaning"] == {
        "_target_": "attnlab.data.corpus.Cleaning",
        "unicode": "none",
        "whitespace": "keep",
        "max_characters": None,
        "limit_evaluation": False,
        "max_source_length": None,
        "max_target_length": None,
    }
    assert attnlab.load(model_in(folder)).cleaning.whitespace == "keep"


def test_model_of_a_corpus_of_ones_own_cleans_as_its_class_does(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading does not import that class."""
    (folder / "attnlab_own_corpus.py").write_text(
        "from attnlab.data.corpus import Cleaning\n"
        "from attnlab.data.toy import CopyCorpus\n"
        "class Own(CopyCorpus):\n"
        "    cleaning = Cleaning(unicode='nfkc', max_source_length=9)\n"
    )
    monkeypatch.syspath_prepend(folder)
    own = "data._target_=attnlab_own_corpus.Own"
    succeeded(command("train.py", *TINY, own, "tracking=none", "chain=false"))
    monkeypatch.delitem(sys.modules, "attnlab_own_corpus")
    translator = attnlab.load(model_in(folder))
    assert "attnlab_own_corpus" not in sys.modules
    assert translator("ａ  ｂ\u00a0c").source_tokens == ["a", "b", "c", "<eos>"]


def test_predictor_of_a_notebook_cleans_as_its_experiment(folder: Path) -> None:
    corpus = ["data=hub", write(folder / "corpus"), "data.source=ko", "data.target=en"]
    experiment = attnlab.compose([*SIZES, *corpus, *CORPUS])
    data = experiment.prepare()
    translator = experiment.predictor(experiment.module(data), data)
    clean, given = translator(TEXTS), translator(GIVEN)
    assert [each.source_tokens for each in given] == [each.source_tokens for each in clean]
    assert [each.score for each in given] == pytest.approx([each.score for each in clean], abs=1e-6)
