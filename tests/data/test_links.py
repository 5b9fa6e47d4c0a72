import pytest

from attnlab.data.prepare import links_between, prepare
from attnlab.data.prepared import PreparedData
from attnlab.data.trainers import BpeTrainer, CharacterTrainer, WordTrainer


def test_links_by_hand():
    # "am 5. Mai" -> "5월 5일": the day is one token on each side, the month three against two.
    source = [(0, 2), (2, 4), (4, 5), (6, 7), (7, 8), (8, 9)]
    target = [(0, 1), (1, 2), (2, 4), (4, 5)]
    sure, possible = links_between(source, target, [(3, 4), (6, 9)], [(3, 4), (0, 2)])
    assert sure == [[2, 1]]
    assert possible == [[0, 3], [0, 4], [0, 5], [1, 3], [1, 4], [1, 5], [2, 1]]


def test_an_empty_field_links_nothing():
    assert links_between([(0, 1)], [(0, 1)], [(1, 1)], [(0, 1)]) == ([], [])


@pytest.mark.parametrize(
    "trainer",
    [CharacterTrainer(), WordTrainer(min_frequency=1), BpeTrainer(vocabulary_size=120)],
    ids=lambda trainer: type(trainer).__name__,
)
def test_links_of_dates_join_equal_numbers(dates, tmp_path, trainer):
    """The year is written alike on both sides: its tokens must be linked, and only to tokens of the year."""
    prepare(dates(tokenizer=trainer, source_locales=["de_DE"]), tmp_path / "data")
    data = PreparedData(tmp_path / "data")
    split = data.split("train")
    assert data.info.has_alignments
    for row in range(len(split)):
        source_text, target_text = split.source_text(row), split.target_text(row)
        source = data.source_tokenizer.encode_batch([source_text])[0]
        target = data.target_tokenizer.encode_batch([target_text])[0]
        assert source.ids == split.source_ids(row).tolist()
        year = target_text[:4]
        at = source_text.index(year)
        source_year = {i for i, (a, b) in enumerate(source.offsets) if a < at + 4 and b > at}
        target_year = {i for i, (a, b) in enumerate(target.offsets) if a < 4 and b > 0}
        links = {tuple(link) for link in split.possible_links(row).tolist()}
        assert {(t, s) for t, s in links if t in target_year} >= {(t, s) for t in target_year for s in source_year}
        if isinstance(trainer, CharacterTrainer):
            assert {s for t, s in links if t in target_year} == source_year
        sure = {tuple(link) for link in split.sure_links(row).tolist()}
        assert sure <= links
        assert all(0 <= t < len(target.ids) and 0 <= s < len(source.ids) for t, s in links)
