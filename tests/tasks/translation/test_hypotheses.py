"""Unknown words replaced by attention, on attention weights made by hand."""

from __future__ import annotations

import pytest
import torch

from attnlab.batch import EOS, PAD, UNK
from attnlab.data.trainers import WordTrainer
from attnlab.search.search import Hypothesis
from attnlab.tasks.translation.hypotheses import HypothesisText

KNOWN = "the cat sees a dog , and runs ."


def tokenizers(split: str):
    trainer = WordTrainer(split=split, min_frequency=1)
    return trainer.train([KNOWN]), trainer.train([KNOWN])


def ids_of(tokenizer, words: list[str]) -> list[int]:
    return [tokenizer.encode_ids([word])[0][0] for word in words]


def padded(tokenizer, text: str, side: str, pads: int = 2) -> torch.Tensor:
    real = [*tokenizer.encode_ids([text])[0], EOS]
    return torch.tensor([PAD] * pads + real if side == "pre" else real + [PAD] * pads)


@pytest.mark.parametrize("split", ["whitespace", "punctuation"])
@pytest.mark.parametrize("side", ["pre", "post"])
def test_hypothesis_text_replaces_unk_by_the_most_attended_word(split, side):
    source_tokenizer, target_tokenizer = tokenizers(split)
    text = "the Zürich dog sees Xylophon"
    source = padded(source_tokenizer, text, side)
    start = 2 if side == "pre" else 0
    end = start + 5
    weights = torch.full((5, 8), 0.01)
    weights[0, start + 1] = 0.9  # <unk>: plainly at Zürich
    weights[1, start + 1] = 0.9  # a known word: no matter where it looks
    weights[2, end], weights[2, start + 4] = 0.5, 0.3  # <unk>: at <eos>, then at Xylophon
    # <unk>: at a pad, then at a known word
    weights[3, 0 if side == "pre" else 7], weights[3, start + 2] = 0.6, 0.2
    hypothesis = Hypothesis(
        [UNK, *ids_of(target_tokenizer, ["cat"]), UNK, UNK], -1.0, True, weights
    )
    to_text = HypothesisText(source_tokenizer, target_tokenizer, replace_unknown=True)
    assert to_text(hypothesis, source, text) == "Zürich cat Xylophon dog"
    as_it_is = HypothesisText(source_tokenizer, target_tokenizer, replace_unknown=False)
    assert as_it_is(hypothesis, source, text) == "<unk> cat <unk> <unk>"


def test_hypothesis_text_handles_punctuation_and_spaces():
    source_tokenizer, target_tokenizer = tokenizers("punctuation")
    text = "  Zürich, isn't  ok"  # ▁ ▁ ▁Zürich , ▁isn ' t ▁ ▁ok
    source = padded(source_tokenizer, text, "post")
    words = source_tokenizer.surfaces(text)
    written = [word.text for word in words]
    assert [word for word in written if word.strip()] == ["Zürich", ",", "isn", "'", "t", "ok"]
    for word in ("Zürich", "isn", "ok"):
        weights = torch.zeros(1, len(source))
        weights[0, written.index(word)] = 1.0
        to_text = HypothesisText(source_tokenizer, target_tokenizer, replace_unknown=True)
        assert to_text(Hypothesis([UNK], 0.0, False, weights), source, text) == word


def test_hypothesis_text_copies_the_source_before_normalisation():
    trainer = WordTrainer(split="whitespace", min_frequency=1, normalization="nfc", lowercase=True)
    tokenizer = trainer.train([KNOWN])
    text = "CAFE\u0301 zu"  # NFC makes é of two characters
    source = padded(tokenizer, text, "post")
    to_text = HypothesisText(tokenizer, tokenizer, replace_unknown=True)
    hypothesis = Hypothesis([UNK, UNK], 0.0, False, torch.eye(2, len(source)))
    assert to_text(hypothesis, source, text) == text


def test_hypothesis_text_keeps_unk_without_attention_on_words():
    """As a local window, or sparsemax, may have it."""
    tokenizer, _ = tokenizers("whitespace")
    to_text = HypothesisText(tokenizer, tokenizer, replace_unknown=True)
    only_at_eos = Hypothesis([UNK, UNK], 0.0, False, torch.tensor([[0.0, 1.0], [0.1, 0.9]]))
    assert to_text(only_at_eos, torch.tensor([UNK, EOS]), "Rom") == "<unk> Rom"
    assert to_text(only_at_eos, torch.tensor([PAD, EOS]), "") == "<unk> <unk>"


def test_hypothesis_text_keeps_a_literal_unk_of_the_source():
    tokenizer = WordTrainer(split="whitespace", min_frequency=1).train(["a <unk> b"])
    to_text = HypothesisText(tokenizer, tokenizer, replace_unknown=True)
    hypothesis = Hypothesis([*ids_of(tokenizer, ["a", "b"]), UNK], 0.0, False, torch.ones(3, 2))
    assert to_text(hypothesis, torch.tensor([UNK, EOS]), "<unk>") == "a b <unk>"


@pytest.mark.parametrize("text", ['He said "Xyz" to me.', "(new) words", "isn't"])
def test_copied_words_stand_beside_punctuation_as_in_the_source(text):
    tokenizer, _ = tokenizers("punctuation")
    source = padded(tokenizer, text, "post")
    length = len(tokenizer.encode_ids([text])[0])
    to_text = HypothesisText(tokenizer, tokenizer, replace_unknown=True)
    copied = Hypothesis([UNK] * length, 0.0, False, torch.eye(length, len(source)))
    assert to_text(copied, source, text) == text
