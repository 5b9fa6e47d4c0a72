"""What stands in the pairs of parity and of arithmetic modulo a number."""

import pytest

from attnlab.data.arithmetic import ModularArithmeticCorpus, ParityCorpus, results_of_prefixes
from attnlab.data.trainers import WordTrainer

SHARED = {
    "num_pairs": 300,
    "min_length": 5,
    "max_length": 12,
    "test_min_length": None,
    "test_max_length": None,
    "validation_fraction": 0.1,
    "test_fraction": 0.1,
    "seed": 1,
    "bleu_tokenize": "none",
    "tokenizer": WordTrainer(split="whitespace", min_frequency=1),
}


def parity(**changed):
    return ParityCorpus(**(SHARED | {"results": "each"} | changed))


def arithmetic(**changed):
    own = {"results": "each", "modulus": 5, "operators": ["+", "-", "*"]}
    return ModularArithmeticCorpus(**(SHARED | own | changed))


def rows_of(corpus):
    return [row for rows in corpus.load().values() for row in rows]


def test_parity_counts_the_ones_up_to_each_bit():
    for row in rows_of(parity()):
        bits = row["source"].split()
        expected = [str(bits[: end + 1].count("1") % 2) for end in range(len(bits))]
        assert row["target"].split() == expected


def test_parity_of_the_whole_is_the_last_result_without_alignments():
    for row in rows_of(parity(results="last")):
        assert row["target"] == str(row["source"].count("1") % 2)
        assert set(row) == {"source", "target"}


@pytest.mark.parametrize("modulus", [2, 5, 12])
def test_modular_arithmetic_result_of_each_prefix_is_pythons(modulus):
    for row in rows_of(arithmetic(modulus=modulus)):
        words = row["source"].split()
        prefixes = [" ".join(words[: end + 1]) for end in range(0, len(words), 2)]
        expected = [str(eval(prefix) % modulus) for prefix in prefixes]
        assert row["target"].split() == expected
        assert all(0 <= int(number) < modulus for number in words[::2])


def test_modular_arithmetic_of_the_whole_is_pythons():
    for row in rows_of(arithmetic(results="last")):
        assert row["target"] == str(eval(row["source"]) % 5)
        assert set(row) == {"source", "target"}


@pytest.mark.parametrize("make", [parity, arithmetic])
def test_each_result_is_aligned_with_its_number(make):
    for row in rows_of(make()):
        words = row["source"].split()
        numbers = [word for word in words if word.isdigit()]
        assert [row["source"][a:b] for a, b in row["source_spans"]] == numbers
        assert sorted(row["source_spans"]) == row["source_spans"]
        results = [row["target"][a:b] for a, b in row["target_spans"]]
        assert results == row["target"].split()


def test_modular_arithmetic_has_the_chosen_operators_alone():
    words = {word for row in rows_of(arithmetic(operators=["+", "*"])) for word in row["source"]}
    assert words - set("01234 ") == {"+", "*"}


def test_results_of_prefixes_multiply_first():
    assert list(results_of_prefixes([3, 4, 2, 1], ["+", "*", "-"], 5)) == [3, 2, 1, 0]
    assert list(results_of_prefixes([1, 3, 3, 3], ["-", "*", "*"], 5)) == [1, 3, 2, 4]
