"""Mapped splits: the files of prepared rows, and what reading them takes."""

from __future__ import annotations

import json
import pickle
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.batch import Padding
from attnlab.data import prepare as prepare_module
from attnlab.data.hub import HubCorpus
from attnlab.data.padding import Ragged
from attnlab.data.prepare import prepare
from attnlab.data.prepared import PreparedData
from attnlab.data.row_kinds import Pairs
from attnlab.data.rows import MappedIds, list_array, open_rows
from attnlab.data.trainers import WordTrainer
from attnlab.errors import ExperimentError


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small corpora are prepared in many batches, as large ones are."""
    monkeypatch.setattr(prepare_module, "ROWS_OF_A_BATCH", 30)


@pytest.fixture
def corpus(tmp_path: Path, hub_corpus: Callable[..., HubCorpus]) -> Callable[..., HubCorpus]:
    """A corpus of so many numbered pairs; every seventh has nothing to keep."""

    def make(pairs: int, words: int = 3) -> HubCorpus:
        folder = tmp_path / f"corpus{pairs}"
        folder.mkdir()
        lines = [
            {"de": f"{i} eins" if i % 7 else "", "en": " ".join([str(i)] * (1 + i % words))}
            for i in range(pairs)
        ]
        for split, number in (("train", pairs), ("validation", 2), ("test", 2)):
            text = "".join(json.dumps(line) + "\n" for line in lines[-number:])
            (folder / f"{split}.jsonl").write_text(text)
        return hub_corpus(folder, tokenizer=WordTrainer(split="whitespace", min_frequency=1))

    return make


@pytest.mark.usefixtures("small_batches")
def test_prepared_split_of_many_batches_reads_back_in_order(
    corpus: Callable[..., HubCorpus], tmp_path: Path
) -> None:
    prepare(corpus(100), Pairs, tmp_path / "data")
    data = PreparedData(tmp_path / "data")
    split = data.split("train")
    kept = [i for i in range(100) if i % 7]
    assert len(split) == len(kept) == data.sizes["train"]
    assert open_rows(tmp_path / "data" / "train.arrow")["source"].num_chunks > 2
    assert [split.source_text(row) for row in range(len(split))] == [f"{i} eins" for i in kept]
    decoded = [data.target_tokenizer.decode(split.target[row]) for row in range(len(split))]
    assert decoded == [split.target_text(row) for row in range(len(split))]
    assert split.target_lengths.tolist() == [1 + i % 3 for i in kept]
    chosen = np.array([70, 3, 3, 29, 30, 0])
    assert [row.tolist() for row in map(split.source.take(chosen).__getitem__, range(6))] == [
        split.source[int(row)].tolist() for row in chosen
    ]


def test_opening_a_split_reads_only_its_lengths(
    corpus: Callable[..., HubCorpus], tmp_path: Path
) -> None:
    prepare(corpus(5_000, words=200), Pairs, tmp_path / "data")
    size = (tmp_path / "data" / "train.arrow").stat().st_size
    arrow = pa.total_allocated_bytes()
    tracemalloc.start()
    data = PreparedData(tmp_path / "data")
    split = data.split("train")
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    lengths = split.source_lengths.nbytes + split.target_lengths.nbytes
    assert pa.total_allocated_bytes() == arrow
    assert taken < lengths + 100_000 < size / 20
    assert not split.target[17].flags.owndata
    # Whoever asks for each row's finds it counted
    assert split.source_lengths is split.source_lengths


def test_pickled_split_maps_the_file_again(
    corpus: Callable[..., HubCorpus], tmp_path: Path
) -> None:
    prepare(corpus(500), Pairs, tmp_path / "data")
    data = PreparedData(tmp_path / "data")
    split = data.split("train")
    sent = pickle.dumps(split)
    assert len(sent) < 1_000
    batch, again = (each.batch(np.array([4, 2]), Padding()) for each in (split, pickle.loads(sent)))
    assert batch.source.tolist() == again.source.tolist()
    assert batch.target_output.tolist() == again.target_output.tolist()
    assert pickle.loads(pickle.dumps(data)).split("train").source_text(3) == split.source_text(3)


@pytest.mark.usefixtures("small_batches")
def test_prepare_holds_only_a_few_batches_in_memory(
    corpus: Callable[..., HubCorpus], tmp_path: Path
) -> None:
    before, held = pa.total_allocated_bytes(), []
    prepare(
        corpus(3_000),
        Pairs,
        tmp_path / "data",
        lambda *_: held.append(pa.total_allocated_bytes() - before),
    )
    assert max(held) < (tmp_path / "data" / "train.arrow").stat().st_size / 20


@pytest.mark.parametrize("part", [0, 0.5, 0.99])
def test_truncated_split_is_refused(
    corpus: Callable[..., HubCorpus], tmp_path: Path, part: float
) -> None:
    prepare(corpus(100), Pairs, tmp_path / "data")
    file = tmp_path / "data" / "validation.arrow"
    content = file.read_bytes()
    file.write_bytes(content[: int(part * len(content))])
    with pytest.raises(
        ExperimentError, match=r"validation\.arrow cannot be read \(.*run the prepare stage again"
    ):
        PreparedData(tmp_path / "data").split("validation")


@given(
    groups=st.lists(
        st.lists(st.lists(st.integers(4, 90), max_size=4), min_size=1, max_size=5), max_size=4
    )
)
def test_mapped_ids_equal_the_rows_of_all_groups(groups: list[list[list[int]]]) -> None:
    rows = [row for group in groups for row in group]
    chunks = [list_array(Ragged.from_rows(group)) for group in groups]
    ids = MappedIds(pa.chunked_array(chunks, pa.list_(pa.int32())))
    assert [ids[row].tolist() for row in range(len(ids))] == rows
    assert ids.lengths.tolist() == [len(row) for row in rows]
    turned = ids.take(np.arange(len(rows))[::-1])
    assert [turned[row].tolist() for row in range(len(turned))] == rows[::-1]
