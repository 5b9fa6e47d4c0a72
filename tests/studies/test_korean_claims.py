"""The Korean page of the claims: its translations are current, and it has the English figures."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attnlab.project import STUDIES
from attnlab.studies.claimed_in_lessons import LESSON_OF_CLAIM
from attnlab.studies.expectations import Expectation
from attnlab.studies.korean_claims import (
    KoreanClaim,
    KoreanTexts,
    digest_of_english,
    korean_claims_page,
    korean_texts,
)
from attnlab.studies.study import Study, read_study
from attnlab.studies.study_page import ShownStudy
from attnlab.studies.study_pages import write_pages
from attnlab.studies.study_result import result_of

ROOT = Path(__file__).parents[2]
CLAIMS = sorted((STUDIES / "claims").glob("*.yaml"))


@pytest.mark.parametrize("path", CLAIMS, ids=lambda path: path.stem)
def test_every_claim_is_translated_as_it_stands_now(path: Path) -> None:
    study, claim = read_study(path), korean_texts().claims[path.stem]
    assert claim.english == digest_of_english(study)
    assert len(claim.expect) == len(study.expect)
    assert bool(claim.known) == bool(study.known)
    assert bool(claim.found) == bool(study.found)
    assert bool(claim.depends_on) == bool(study.depends_on)
    for language in ("en", "ko"):
        lesson = ROOT / "docs" / "course" / language / f"{LESSON_OF_CLAIM[path.stem].page}.md"
        assert lesson.is_file()
    for expected in study.expect:
        assert expected.measure in korean_texts().measures


def test_nothing_is_translated_or_taught_that_is_no_claim() -> None:
    names = {path.stem for path in CLAIMS}
    assert set(korean_texts().claims) == names
    assert set(LESSON_OF_CLAIM) == names


def test_page_is_what_the_command_writes(tmp_path: Path) -> None:
    (tmp_path / "studies").symlink_to(ROOT / "docs" / "studies")
    write_pages(CLAIMS[0], tmp_path)
    for name in ("claims.md", "ko/claims.md"):
        page = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert page == (tmp_path / name).read_text(encoding="utf-8")


def test_page_has_the_figures_of_the_english_one() -> None:
    """Every difference and every p value of the table of a claim, in the same order."""
    english, korean = (
        (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("claims.md", "ko/claims.md")
    )
    figures = r"\| ([+-][\d.]+ \([^|]*\)) \|"
    differences = [found.replace(" to ", " ~ ") for found in re.findall(figures, english)]
    assert len(differences) > 30
    assert re.findall(figures, korean) == differences


STUDY = Study(
    "Some claim", "How.", {"good": [], "bad": []}, [], ["bleu"], seeds=3, found="It is so.",
    expect=[Expectation("good is better", "bleu", "good", "bad", by=1.0, primary=True)],
)  # fmt: skip
CLAIM = KoreanClaim(
    digest_of_english(STUDY), "어떤 주장", "이렇게.", ["좋은 쪽이 낫다"],
    found="그렇습니다.",
)  # fmt: skip
VALUES = {"good": [30.0, 31.0, 32.0], "bad": [20.0, 22.0, 21.0]}


def shown(study: Study = STUDY, **settings: Any) -> ShownStudy:
    rows = [
        {"system": system, "seed": seed, "bleu": value}
        for system, values in VALUES.items()
        for seed, value in enumerate(values, 1)
    ]
    conditions = {"run_seeds": 3, "cpu_minutes": 1.0, "run_settings": [], "machine": "a machine"}
    return ShownStudy("01_bottleneck", study, result_of(study, rows) | conditions, **settings)


def page_of(study: ShownStudy, claim: KoreanClaim = CLAIM) -> str:
    return korean_claims_page(
        [study], KoreanTexts("# 주장", {"bleu": "블루"}, {"01_bottleneck": claim})
    )


def test_verdict_question_and_finding_are_korean() -> None:
    page = page_of(shown())
    lesson = "[2강](../course/ko/02_bottleneck.md)"
    assert f"| [어떤 주장](#01_bottleneck) | 성립 | 예 | 3 | {lesson} |" in page
    assert "**성립.** 그렇습니다.\n\n이렇게." in page
    assert "| **좋은 쪽이 낫다** | 블루 | +10.00 (" in page
    assert "1.00보다 큼" in page
    assert "good is better" not in page


def test_texts_that_have_changed_since_are_shown_in_english_and_said_to_be() -> None:
    page = page_of(shown(replace(STUDY, found="It is not so.")))
    assert "**성립.** It is not so." in page
    assert "*영어 원문이 바뀌었고, 아직 번역되지 않았습니다.* How." in page
    assert "그렇습니다" not in page


def test_finding_of_other_seeds_than_planned_is_not_shown() -> None:
    planned = replace(STUDY, seeds=5)
    claim = replace(CLAIM, english=digest_of_english(planned))
    assert "그렇습니다" not in page_of(shown(planned), claim)


def test_verdict_of_too_few_seeds_is_not_one_that_depends_on_something() -> None:
    few = shown()
    few.result["seeds"] = 2  # type: ignore[index]
    page = page_of(few)
    assert "**시드가 3개보다 적음.**" in page
    assert "에 따라 다름 |" not in page


def test_study_that_was_not_run_shows_what_is_asked() -> None:
    page = page_of(ShownStudy("01_bottleneck", STUDY, result={}))
    assert "**아직 실험하지 않음.**" in page
    assert "| **좋은 쪽이 낫다** | 블루 |" in page
    assert "그렇습니다" not in page


def test_result_of_another_question_is_not_shown() -> None:
    page = page_of(shown(is_judged=False))
    assert "**질문을 고쳤고, 아직 실험하지 않음.**" in page
    assert "+10.00" not in page


def test_page_says_where_no_record_shows_that_the_question_came_first() -> None:
    no_record = "지금과 같은 질문을 훈련 전에 적어 두었다는 기록이 없습니다."
    afterwards = "지금과 같은 질문은 이 결과가 나온 뒤에 썼습니다."

    def page(is_before: bool) -> str:
        asked = shown()
        commit = {"before": is_before, "commit": "0" * 40}
        asked.result["registered"] = commit  # type: ignore[index]
        return page_of(asked)

    assert afterwards in page_of(shown())
    assert no_record in page(is_before=False)
    assert no_record not in page(is_before=True)
    assert afterwards not in page(is_before=True)
