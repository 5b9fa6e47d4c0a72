"""Numbered unknown words: which source words get them, their targets, and their text."""

from __future__ import annotations

import json

import pytest

from attnlab.batch import EOS, UNK
from attnlab.data.prepare import prepare
from attnlab.data.prepared import PreparedData
from attnlab.data.row_kinds import Pairs
from attnlab.data.tokenizer import Tokenizer
from attnlab.data.toy import CopyCorpus
from attnlab.data.trainers import WordTrainer

FIRST, SECOND = EOS + 1, EOS + 2
KNOWN = ["the cat and the dog", "the dog and the cat"]


def trained(**settings) -> Tokenizer:
    values = {"split": "whitespace", "min_frequency": 1, "numbered_unknown": 2}
    return WordTrainer(**(values | settings)).train(KNOWN)


def test_unknown_words_are_numbered_in_the_order_of_their_first_places():
    tokenizer = trained()
    (ids,) = tokenizer.encode_ids(["zebra the yak zebra emu yak"])
    the = tokenizer.id_of("the")
    assert ids == [FIRST, the, SECOND, FIRST, UNK, SECOND]
    assert tokenizer.numbered_words(["zebra the yak zebra emu yak"]) == [["zebra", "yak"]]


def test_target_has_the_numbers_of_its_source():
    tokenizer = trained()
    words = tokenizer.numbered_words(["zebra and yak"])
    (ids,) = tokenizer.encode_ids(["yak the emu zebra"], words)
    assert ids == [SECOND, tokenizer.id_of("the"), UNK, FIRST]
    assert tokenizer.decode(ids, numbered=words[0]) == "yak the <unk> zebra"


def test_number_that_the_source_does_not_have_reads_as_unknown():
    assert trained().decode([FIRST, SECOND], numbered=["zebra"]) == "zebra <unk>"
    assert trained().tokens([FIRST, SECOND, UNK]) == ["<unk:1>", "<unk:2>", "<unk>"]


@pytest.mark.parametrize("text", ["<unk:1> cat", "<unk> cat", "<eos> cat"])
def test_text_that_reads_like_a_token_of_ours_is_an_unknown_word(text):
    tokenizer = trained()
    (ids,) = tokenizer.encode_ids([text])
    assert ids[0] == FIRST
    assert tokenizer.decode(ids, numbered=tokenizer.numbered_words([text])[0]) == text


def test_word_that_reads_like_a_number_gets_no_token_of_its_own():
    learnt = WordTrainer(split="whitespace", min_frequency=1).train(["<unk:1> <unk:1> cat"])
    assert learnt.numbered == 0
    assert learnt.encode_ids(["<unk:1> cat"])[0][0] == UNK


def test_punctuation_and_word_starts_are_restored():
    tokenizer = trained(split="punctuation", numbered_unknown=6)
    text = "Zoë-Yak, the cat; Yak"
    (words,) = tokenizer.numbered_words([text])
    (ids,) = tokenizer.encode_ids([text])
    # "Yak" inside of a word is another token than "Yak" at the start of one.
    assert len(words) == tokenizer.count_unknown(ids) == 6
    assert tokenizer.decode(ids, numbered=words) == text


def test_lower_case_vocabulary_numbers_words_whatever_their_case():
    tokenizer = trained(lowercase=True)
    words = tokenizer.numbered_words(["Zebra ZEBRA Cat"])
    (ids,) = tokenizer.encode_ids(["Zebra ZEBRA Cat"])
    assert ids == [FIRST, FIRST, tokenizer.id_of("cat")]
    assert words == [["zebra"]]


def test_hangul_is_copied():
    tokenizer = WordTrainer(split="punctuation", min_frequency=1, numbered_unknown=1).train(
        ["나는"]
    )
    (ids,) = tokenizer.encode_ids(["나는 학생"])
    words = tokenizer.numbered_words(["나는 학생"])
    assert tokenizer.decode(ids, numbered=words[0]) == "나는 학생"


def test_tokenizer_without_numbers_is_the_former_one(tmp_path):
    tokenizer = trained(numbered_unknown=0)
    assert tokenizer.numbered == 0
    assert tokenizer.numbered_words(["zebra"]) == [()]
    assert "<unk:1>" not in json.dumps(tokenizer.as_json())
    numbered = trained()
    numbered.save(tmp_path / "tokenizer.json")
    assert Tokenizer.load(tmp_path / "tokenizer.json").numbered == 2


def test_numbers_count_in_the_size_of_the_vocabulary():
    assert trained(vocabulary_size=8).size == 8
    with pytest.raises(ValueError, match="must be at least 7 here, got 6"):
        trained(vocabulary_size=6)


def test_prepared_target_has_the_numbers_of_its_source(copy_corpus, tmp_path):
    """Symbols that the vocabulary has no room for are numbered alike on both sides."""
    tokenizer = WordTrainer(
        split="whitespace", min_frequency=1, vocabulary_size=9, numbered_unknown=3, joint=True
    )
    corpus = copy_corpus(CopyCorpus, tokenizer=tokenizer, num_symbols=12)
    prepare(corpus, Pairs, tmp_path / "data")
    data = PreparedData(tmp_path / "data")
    split = data.split("train")
    has_numbers = 0
    for row in range(len(split)):
        source, target = split.source[row].tolist(), split.target[row].tolist()
        assert source == target  # the task is to copy
        has_numbers += any(EOS < token <= EOS + 3 for token in target)
        (words,) = data.source_tokenizer.numbered_words([split.source_text(row)])
        text = data.target_tokenizer.decode(target, numbered=words)
        assert (text == split.target_text(row)) == (UNK not in target)
    assert has_numbers > 10
    side = data.stats["splits"]["train"]["target"]
    assert side["unknown_tokens"] == sum(
        data.target_tokenizer.count_unknown(split.target[row]) for row in range(len(split))
    )
    assert side["unknown_rate"] > 0.2
