from functools import partial

import pytest

from attnlab.data.prepare import prepare
from attnlab.data.prepared import PreparedData
from attnlab.data.row_kinds import Pairs
from attnlab.data.toy import CopyCorpus, ReverseCorpus
from attnlab.errors import ExperimentError


@pytest.fixture
def make(copy_corpus):
    return partial(copy_corpus, num_pairs=400, num_symbols=26, min_length=2, test_fraction=0.2)


@pytest.mark.parametrize("num_symbols", [26, 40])
@pytest.mark.parametrize("kind", [CopyCorpus, ReverseCorpus])
def test_sequence_corpus_aligns_equal_symbols(kind, num_symbols, make, tmp_path):
    corpus = make(kind=kind, num_symbols=num_symbols)
    for split in corpus.load().values():
        for pair in split:
            source = [pair["source"][a:b] for a, b in pair["source_spans"]]
            target = [pair["target"][a:b] for a, b in pair["target_spans"]]
            assert source == target == pair["source"].split()
            assert pair["target"].split() == (source if kind is CopyCorpus else source[::-1])
    prepare(corpus, Pairs, tmp_path / "data")
    split = PreparedData(tmp_path / "data").split("test")
    for row in range(len(split)):
        n = len(split.source[row])
        expected = [[t, t if kind is CopyCorpus else n - 1 - t] for t in range(n)]
        assert (
            split.links("sure", row).tolist() == split.links("possible", row).tolist() == expected
        )


def test_sequence_corpus_test_lengths_differ_and_no_sequence_repeats(make):
    splits = make(kind=ReverseCorpus, num_symbols=3, test_min_length=6, test_max_length=9).load()
    lengths = {name: {len(s.split()) for s in split["source"]} for name, split in splits.items()}
    assert lengths == {
        "train": {2, 3, 4, 5, 6},
        "validation": lengths["validation"],
        "test": {6, 7, 8, 9},
    }
    everything = [s for split in splits.values() for s in split["source"]]
    assert len(set(everything)) == len(everything) == 400


def test_sequence_corpus_can_use_every_sequence(make):
    splits = make(num_symbols=2, min_length=1, max_length=3, num_pairs=14).load()
    assert len({s for split in splits.values() for s in split["source"]}) == 14


def test_sequence_corpus_with_impossible_lengths_is_refused(make):
    with pytest.raises(ValueError, match="test_min_length must be at most test_max_length"):
        make(test_min_length=9)
    with pytest.raises(ExperimentError, match="too few different sequences"):
        make(num_symbols=2, max_length=3).load()


def test_sequence_corpus_of_distinct_symbols_repeats_none_in_a_sequence(make):
    splits = make(num_symbols=5, max_length=5, distinct=True, num_pairs=200).load()
    sources = [source.split() for source in splits["train"]["source"]]
    assert all(len(set(each)) == len(each) for each in sources)
    assert {len(each) for each in sources} == {2, 3, 4, 5}
    with pytest.raises(ExperimentError, match="too few different sequences"):
        make(num_symbols=4, min_length=5, max_length=5, distinct=True).load()
