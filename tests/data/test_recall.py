"""What stands in the pairs of recall, of tracked states and of flip-flops, and what is refused."""

import pytest

from attnlab.data.recall import FlipFlopCorpus, MqarCorpus
from attnlab.data.tracked_recall import TrackedRecallCorpus
from attnlab.data.trainers import WordTrainer
from attnlab.errors import ExperimentError

SHARED = {
    "num_pairs": 300,
    "test_min_length": None,
    "test_max_length": None,
    "validation_fraction": 0.1,
    "test_fraction": 0.4,
    "seed": 1,
    "bleu_tokenize": "none",
    "tokenizer": WordTrainer(split="whitespace", min_frequency=1),
}


def recall(**changed):
    own = {
        "min_length": 2,
        "max_length": 6,
        "num_keys": 9,
        "num_values": 4,
        "num_queries": None,
        "repeat_keys": False,
    }
    return MqarCorpus(**(SHARED | own | changed))


def tracked_recall(**changed):
    own = {"min_length": 1, "max_length": 6, "num_keys": 4, "num_values": 9, "write_key": True}
    return TrackedRecallCorpus(**(SHARED | own | changed))


def flip_flop(**changed):
    own = {"min_length": 10, "max_length": 20, "ignore": 0.5, "test_ignore": None}
    return FlipFlopCorpus(**(SHARED | own | changed))


def rows_of(corpus):
    return [row for rows in corpus.load().values() for row in rows]


def test_recall_target_is_the_value_of_each_query():
    for row in rows_of(recall()):
        pairs, _, queries = row["source"].partition(" | ")
        words = pairs.split()
        value_of = dict(zip(words[::2], words[1::2], strict=True))
        assert 2 * len(value_of) == len(words)  # no key twice
        assert sorted(queries.split()) == sorted(value_of)  # each is asked for once
        assert row["target"].split() == [value_of[key] for key in queries.split()]


def test_recall_aligns_each_value_with_the_one_behind_the_key():
    for row in rows_of(recall()):
        queries = row["source"].partition(" | ")[2].split()
        for query, (start, end), (from_, to) in zip(
            queries, row["source_spans"], row["target_spans"], strict=True
        ):
            assert row["source"][:start].endswith(f"{query} ")
            assert row["source"][start:end] == row["target"][from_:to]
    assert "k0" not in row["target"]


def test_recall_may_repeat_each_key_before_its_value():
    plain, repeated = rows_of(recall()), rows_of(recall(repeat_keys=True))
    for row, other in zip(plain, repeated, strict=True):
        assert row["source"] == other["source"]
        queries = row["source"].partition(" | ")[2].split()
        target = other["target"].split()
        assert target[::2] == queries
        assert target[1::2] == row["target"].split()
        spans = zip(other["source_spans"], other["target_spans"], strict=True)
        for number, ((start, end), (from_, to)) in enumerate(spans):
            assert other["source"][start:end] == other["target"][from_:to] == target[number]
            is_query = start > other["source"].index("|")
            assert is_query == (number % 2 == 0)


def test_recall_asks_for_as_many_keys_as_wanted_in_random_order():
    rows = rows_of(recall(min_length=3, num_queries=2))
    places = set()
    for row in rows:
        pairs, _, queries = row["source"].partition(" | ")
        asked = queries.split()
        assert len(set(asked)) == len(asked) == len(row["target"].split()) == 2
        places.add(pairs.split().index(asked[0]) // 2)
    assert places == {0, 1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"num_keys": 5}, r"num_keys must be at least the keys of a source \(6\).*got 5"),
        ({"test_max_length": 10}, r"num_keys must be at least the keys of a source \(10\)"),
        ({"num_queries": 3}, r"num_queries must be at most .* shortest source \(2\).*got 3"),
    ],
)
def test_recall_with_impossible_sizes_is_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        recall(**changed)


@pytest.mark.parametrize("write_key", [True, False])
def test_tracked_recall_target_is_the_pair_that_the_sum_names(write_key):
    for row in rows_of(tracked_recall(write_key=write_key)):
        pairs, _, numbers = row["source"].partition(" | ")
        words = pairs.split()
        value_of = dict(zip(words[::2], words[1::2], strict=True))
        assert sorted(value_of) == ["k0", "k1", "k2", "k3"]
        key = f"k{sum(map(int, numbers.split())) % 4}"
        assert row["target"] == (f"{key} {value_of[key]}" if write_key else value_of[key])


@pytest.mark.parametrize("write_key", [True, False])
def test_tracked_recall_aligns_the_value_alone_with_the_one_behind_the_named_key(write_key):
    for row in rows_of(tracked_recall(write_key=write_key)):
        key = f"k{sum(map(int, row['source'].partition(' | ')[2].split())) % 4}"
        ((start, end),) = row["source_spans"]
        ((from_, to),) = row["target_spans"]
        assert row["source"][:start].endswith(f"{key} ")
        assert row["source"][start:end] == row["target"][from_:to] == row["target"].split()[-1]


def test_tracked_recall_names_each_state_as_often():
    rows = rows_of(tracked_recall(num_pairs=2000))
    named = [row["target"].split()[0] for row in rows]
    shares = [named.count(f"k{state}") / len(named) for state in range(4)]
    assert shares == pytest.approx([0.25] * 4, abs=0.04)


def test_flip_flop_target_is_the_bit_that_was_written_last():
    for row in rows_of(flip_flop()):
        words = row["source"].split()
        assert words[0] == "w"
        assert words[-1] == "r"
        memory = None
        read = []
        place = 0
        while place < len(words):
            if words[place] == "r":
                read.append(memory)
                place += 1
                continue
            if words[place] == "w":
                memory = words[place + 1]
            else:
                assert words[place] == "i"
            assert words[place + 1] in ("0", "1")
            place += 2
        assert row["target"].split() == read


def test_flip_flop_aligns_each_read_with_the_last_write():
    for row in rows_of(flip_flop()):
        source = row["source"]
        reads = [place for place, letter in enumerate(source) if letter == "r"]
        for read, (start, end), (from_, to) in zip(
            reads, row["source_spans"], row["target_spans"], strict=True
        ):
            assert start == source.rindex("w", 0, read) + 2
            assert source[start:end] == row["target"][from_:to]


def test_flip_flop_ignores_as_often_as_wanted():
    splits = flip_flop(ignore=0.8, test_ignore=0.1).load()
    shares = {}
    for split, rows in splits.items():
        instructions = [word for source in rows["source"] for word in source.split()[2:-1]]
        letters = [word for word in instructions if word in "wir"]
        shares[split] = {letter: letters.count(letter) / len(letters) for letter in "wir"}
    assert shares["train"] == pytest.approx({"w": 0.1, "i": 0.8, "r": 0.1}, abs=0.03)
    assert shares["test"] == pytest.approx({"w": 0.45, "i": 0.1, "r": 0.45}, abs=0.03)


@pytest.mark.parametrize("changed", [{"min_length": 1}, {"test_min_length": 1}])
def test_flip_flop_of_one_instruction_is_refused(changed):
    with pytest.raises(ValueError, match=f"{next(iter(changed))} must be at least 2"):
        flip_flop(**changed)


def test_flip_flop_that_only_ignores_has_few_sources():
    with pytest.raises(ExperimentError, match="too few different sources"):
        flip_flop(min_length=3, max_length=4, ignore=1.0).load()
