import datetime

import pytest
from babel import Locale, localedata
from babel.dates import format_date

from attnlab.data.dates import format_fields
from attnlab.errors import ExperimentError


@pytest.mark.parametrize("form", ["full", "long", "medium", "short"])
def test_format_fields_equals_babels_format_in_every_locale(form):
    days = [datetime.date(1, 1, 1), datetime.date(1987, 12, 31), datetime.date(2024, 2, 29)]
    locales = [
        name for name in localedata.locale_identifiers() if Locale.parse(name).territory is None
    ]
    assert len(locales) > 150
    for locale in locales:
        for day in days:
            text, spans = format_fields(day, form, locale)
            assert text == format_date(day, form, locale)
            assert all(0 <= start < end <= len(text) for start, end in spans.values())


def test_dates_pairs_are_babels_and_their_fields_match(dates):
    corpus = dates(num_pairs=2000)
    languages = set()
    for split in corpus.load().values():
        for pair in split:
            # The target's digits give the day, and the source is that day in one of the locales.
            target = [pair["target"][a:b] for a, b in pair["target_spans"]]
            source = [pair["source"][a:b] for a, b in pair["source_spans"]]
            digits = [int(part) for part in target if part.isdigit()]
            year = next(number for number in digits if number >= 1900)
            month, day = (
                int(n)
                for n in pair["target"]
                .replace("년", "")
                .replace("월", "")
                .replace("일", "")
                .split()[1:3]
            )
            date = datetime.date(year, month, day)
            assert pair["target"] == format_date(date, "full", "ko_KR")
            found = [
                loc
                for loc in corpus.source_locales
                if format_date(date, "full", loc) == pair["source"]
            ]
            assert found
            languages.update(found)
            assert len(pair["source_spans"]) == 4
            assert str(year) in source
            assert source[target.index(str(year))] == str(year)
    assert languages == set(corpus.source_locales)


def test_format_fields_returns_the_span_of_each_field():
    text, spans = format_fields(datetime.date(2017, 3, 13), "full", "de_DE")
    found = {kind: text[a:b] for (kind, _), (a, b) in spans.items()}
    assert found == {"weekday": "Montag", "day": "13", "month": "März", "year": "2017"}


@pytest.mark.parametrize("formats", [["full"], ["short", "medium"]])
def test_dates_splits_share_no_pair_and_no_day(dates, formats):
    corpus = dates(formats=formats, num_pairs=2000, first_year=1850, last_year=2049)
    splits = corpus.load()
    assert [len(splits[name]) for name in ("train", "validation", "test")] == [1600, 200, 200]
    pairs = [set(zip(split["source"], split["target"], strict=True)) for split in splits.values()]
    assert [len(p) for p in pairs] == [1600, 200, 200]
    assert len(set.union(*pairs)) == 2000
    if formats == ["full"]:
        days = [set(split["target"]) for split in splits.values()]
        assert sum(map(len, days)) == len(set.union(*days))


def test_dates_depend_on_the_seed(dates):
    assert dates(seed=1).load()["test"]["source"] == dates(seed=1).load()["test"]["source"]
    assert dates(seed=1).load()["test"]["source"] != dates(seed=2).load()["test"]["source"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"target_locale": "xx_YY"}, "target_locale must be locales of the CLDR.*xx_YY"),
        ({"source_locales": ["de_DE", "klingon"]}, "source_locales must be.*klingon"),
    ],
)
def test_dates_with_an_invalid_value_are_refused_by_its_name(dates, changed, message):
    with pytest.raises(ValueError, match=message):
        dates(**changed)


def test_dates_with_too_few_different_pairs_are_refused(dates):
    # en_US and en_PH write full dates alike, so half of the combinations are doubles.
    corpus = dates(
        source_locales=["en_US", "en_PH"], first_year=2000, last_year=2000, num_pairs=700
    )
    with pytest.raises(
        ExperimentError, match=r"data.num_pairs: the train split has \d+ different pairs, not 560"
    ):
        corpus.load()
