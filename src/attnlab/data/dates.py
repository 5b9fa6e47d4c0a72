"""A parallel corpus of localised dates, from Babel's CLDR patterns, with known alignments."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from babel import Locale, UnknownLocaleError
from babel.dates import get_date_format, parse_pattern, tokenize_pattern
from pydantic import Field

from attnlab.data.corpus import AS_IT_IS, SPLITS, BleuTokenize, Corpus, Limit, split_sizes
from attnlab.data.tokenizer import TokenizerTrainer
from attnlab.errors import ExperimentError

if TYPE_CHECKING:
    import datasets

DateFormat = Literal["full", "long", "medium", "short"]
Spans = dict[tuple[str, int], list[int]]
"""(kind of a field, how often the kind came before) -> its [start, end) in characters."""

# Letters that mean the same field (date field symbols):
# https://unicode.org/reports/tr35/tr35-dates.html
_FIELDS = {
    **dict.fromkeys("yYuUr", "year"),
    **dict.fromkeys("ML", "month"),
    **dict.fromkeys("d", "day"),
    **dict.fromkeys("Eec", "weekday"),
    **dict.fromkeys("G", "era"),
}


@dataclass
class DatesCorpus(Corpus):
    """Dates of several locales as the source, of one locale as the target.

    No day occurs in two splits, and no pair twice. Fields (year, month, day, weekday, era) that
    both patterns have are aligned.

    source_locales: of the CLDR; each pair has one of them.
    target_locale: of the CLDR.
    formats: of the CLDR; each pair has the same one on both sides.
    first_year, last_year: the range of the dates, both years included.
    num_pairs: over the three splits.
    validation_fraction, test_fraction: the share of the pairs that the split gets.
    seed: of the choice of dates.
    """

    cleaning = AS_IT_IS
    rouge = None

    source_locales: Annotated[list[str], Field(min_length=1)]
    target_locale: str
    formats: Annotated[list[DateFormat], Field(min_length=1)]
    first_year: Annotated[int, Field(ge=1, le=9999)]
    last_year: Annotated[int, Field(ge=1, le=9999)]
    num_pairs: Annotated[int, Field(ge=3)]
    validation_fraction: Annotated[float, Field(gt=0, lt=1)]
    test_fraction: Annotated[float, Field(gt=0, lt=1)]
    seed: Annotated[int, Field(ge=0)]
    bleu_tokenize: BleuTokenize
    tokenizer: TokenizerTrainer
    limit: Limit = None
    source_tokenizer: TokenizerTrainer | None = None
    target_tokenizer: TokenizerTrainer | None = None

    def __post_init__(self) -> None:
        for locale in self.source_locales:
            _check_locale("source_locales", locale)
        _check_locale("target_locale", self.target_locale)
        self.sizes = split_sizes(self.num_pairs, self.validation_fraction, self.test_fraction)
        self._first_day = datetime.date(self.first_year, 1, 1).toordinal()
        self._num_days = datetime.date(self.last_year, 12, 31).toordinal() - self._first_day + 1
        self.source_language = self.source_locales[0] if len(self.source_locales) == 1 else None
        self.target_language = self.target_locale

    def load(self) -> dict[str, datasets.Dataset]:
        import datasets  # a second that checking a config should not pay

        random = np.random.default_rng(self.seed)
        days = random.permutation(self._num_days) + self._first_day
        # Each split gets as large a share of the days as of the pairs.
        shares = [self._num_days * size / self.num_pairs for size in self.sizes]
        ends = np.cumsum(shares).round().astype(int)
        days_of_splits = np.split(days, ends[:-1])

        seen: set[tuple[str, str]] = set()
        splits = {}
        for split, size, its_days in zip(SPLITS, self.sizes, days_of_splits, strict=True):
            pairs = list(self._pairs(random, its_days, size, seen))
            if len(pairs) < size:
                raise ExperimentError(
                    f"data.num_pairs: the {split} split has {len(pairs)} different pairs, not "
                    f"{size}; choose fewer data.num_pairs, more years, data.source_locales or "
                    "data.formats"
                )
            splits[split] = datasets.Dataset.from_list(pairs)
        return splits

    def _pairs(
        self, random: np.random.Generator, days: np.ndarray, size: int, seen: set[tuple[str, str]]
    ) -> Iterator[dict[str, object]]:
        """Up to `size` pairs of these days, none of them in `seen`.

        Different days and locales can read alike: locales share spellings, and short years repeat.
        """
        # Each day in each locale and format, in random order
        axes = (len(days), len(self.source_locales), len(self.formats))
        found = 0
        for choice in random.permutation(int(np.prod(axes))):
            if found == size:
                return
            day, locale, form = np.unravel_index(choice, axes)
            date = datetime.date.fromordinal(int(days[day]))
            date_format = self.formats[form]
            source, source_fields = format_fields(date, date_format, self.source_locales[locale])
            target, target_fields = format_fields(date, date_format, self.target_locale)
            if (source, target) in seen:
                continue
            seen.add((source, target))
            found += 1
            shared = [field for field in source_fields if field in target_fields]
            yield {
                "source": source,
                "target": target,
                "source_spans": [source_fields[field] for field in shared],
                "target_spans": [target_fields[field] for field in shared],
            }


def format_fields(date: datetime.date, form: DateFormat, locale: str) -> tuple[str, Spans]:
    """What `babel.dates.format_date` gives, and the [start, end) characters of each of its fields.

    A field is named by its kind and how often the kind came before: ("year", 0).
    """
    text = ""
    spans = Spans()
    for kind, part in _pattern(form, locale):
        if kind is None:
            text += part
            continue
        start = len(text)
        text += _field(part).apply(date, locale)
        times_before = sum(kind == other for other, _ in spans)
        spans[kind, times_before] = [start, len(text)]
    return text, spans


@cache
def _pattern(form: DateFormat, locale: str) -> list[tuple[str | None, str]]:
    """The pattern in parts: (None, literal text) or (kind of field, its letters)."""
    parts: list[tuple[str | None, str]] = []
    for _, value in tokenize_pattern(get_date_format(form, locale).pattern):
        if isinstance(value, str):
            parts.append((None, value))
        else:
            letter, count = value
            parts.append((_FIELDS.get(letter, letter), letter * count))
    return parts


_field = cache(parse_pattern)


def _check_locale(name: str, locale: str) -> None:
    try:
        Locale.parse(locale)
    except (UnknownLocaleError, ValueError, TypeError) as error:
        raise ValueError(
            f"{name} must be locales of the CLDR, such as de_DE or ko_KR, got {locale!r}"
        ) from error
