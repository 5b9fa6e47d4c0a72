"""A tokeniser's file from somebody else has the parts that our trainers write, and no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnlab.data.tokenizer import Tokenizer
from attnlab.data.trainers import BpeTrainer, CharacterTrainer, UnigramTrainer, WordTrainer
from attnlab.errors import ExperimentError

TEXT = ["Hello there , hello you"] * 5
TRAINERS = (
    WordTrainer(min_frequency=1, normalization="nfkc", lowercase=True), WordTrainer(split="whitespace"),
    CharacterTrainer(normalization="nfd"), BpeTrainer(vocabulary_size=40), UnigramTrainer(vocabulary_size=40),
)  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    TRAINERS[0].train(TEXT).save(tmp_path / "tokenizer.json")
    return tmp_path / "tokenizer.json"


@pytest.mark.parametrize("trainer", TRAINERS, ids=lambda trainer: type(trainer).__name__)
def test_tokenizer_written_by_attnlab_loads_again(trainer: Any, tmp_path: Path) -> None:
    tokenizer = trainer.train(TEXT)
    tokenizer.save(tmp_path / "tokenizer.json")
    assert Tokenizer.load(tmp_path / "tokenizer.json").encode_ids(TEXT) == tokenizer.encode_ids(TEXT)


SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a pattern that takes forever": (
        lambda state: state.update(pre_tokenizer={**SPLIT, "pattern": {"Regex": "(a+)+$"}}), "an unsupported pattern",
    ),
    "a pattern below others": (
        lambda state: state["normalizer"]["normalizers"].append(
            {"type": "Replace", "pattern": {"Regex": "(a|a)*$"}, "content": ""}
        ),
        "its normalizer has an unsupported pattern",
    ),
    "a part that ends the process": (
        lambda state: state.update(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}), "'Precompiled'",
    ),
    "a text that grows": (
        lambda state: state["normalizer"]["normalizers"].append(
            {"type": "Replace", "pattern": {"String": "e"}, "content": "e" * 1000}
        ),
        "more than one character",
    ),
    "tokens that are found in any text": (
        lambda state: state.update(added_tokens=[{"id": 3, "content": "the", "special": True}]), "added_tokens must be",
    ),
    "a template": (
        lambda state: state.update(post_processor={"type": "TemplateProcessing"}), "post_processor must be empty",
    ),
    "another model": (lambda state: state["model"].update(type="WordPiece"), "must be of WordLevel, BPE, Unigram"),
    "a prefix that ends in a panic": (
        lambda state: state["model"].update(continuing_subword_prefix="##########"),
        "model must have no continuing_subword_prefix",
    ),
    "a part without its type": (
        lambda state: state["normalizer"]["normalizers"].append({"strip_left": True, "strip_right": True}),
        "must be of Sequence, .* got None",
    ),
    "a model without its type": (lambda state: state["model"].pop("type"), "must be of WordLevel, .* got None"),
    "a strip that ends in a panic": (
        lambda state: state.update(decoder={"type": "Strip", "content": "a", "start": 0, "stop": 5}),
        "its decoder strips something else",
    ),
    "numbers without an end": (lambda state: state["model"]["vocab"].update(x=2**40), "must number the tokens"),
    "a number twice": (lambda state: state["model"]["vocab"].update(x=5), "must number the tokens"),
    "an invalid number": (lambda state: state["model"]["vocab"].update(x="5"), "must number the tokens"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "said"), CHANGES.values(), ids=CHANGES)
def test_tokenizer_that_attnlab_does_not_write_is_refused(
    file: Path, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    state = json.loads(file.read_text())
    change(state)
    file.write_text(json.dumps(state))
    with pytest.raises(ExperimentError, match=rf"is no tokeniser of attnlab .*{said}"):
        Tokenizer.load(file)


@pytest.mark.parametrize("content", ["[" * 100_000, "[]", "3", "null", '{"model": {"type": "WordLevel"}}'])
def test_json_of_another_shape(file: Path, content: str) -> None:
    file.write_text(content)
    with pytest.raises(ExperimentError, match="is no tokeniser of attnlab"):
        Tokenizer.load(file)


def test_a_file_without_an_end(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")
    with pytest.raises(ExperimentError, match="no regular file"):
        Tokenizer.load(file)
