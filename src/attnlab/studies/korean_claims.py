"""The page of the claims in Korean: docs/ko/claims.md.

Titles, questions and findings are translated in korean_claims.yaml; figures and verdicts come from
the studies' results.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from attnlab.studies.claimed_in_lessons import LESSON_OF_CLAIM
from attnlab.studies.expectations import p_shown
from attnlab.studies.study import Study
from attnlab.studies.study_page import (
    ShownStudy,
    Verdict,
    command_of,
    known_before,
    table,
    verdicts_of,
    was_asked_before,
)
from attnlab.studies.verdicts import LEAST_SEEDS
from attnlab.tasks.saved import measure_named

TEXTS = Path(__file__).with_name("korean_claims.yaml")

_OUTCOMES = {"holds": "성립", "does not hold": "성립하지 않음", "undecided": "판정 보류"}
_FEW_SEEDS = f"시드가 {LEAST_SEEDS}개보다 적음"
_NOT_RUN = "아직 실험하지 않음"
_ASKED_ANEW = "질문을 고쳤고, 아직 실험하지 않음"
_ASKED_AFTER = "지금과 같은 질문은 이 결과가 나온 뒤에 썼습니다."
_NOT_REGISTERED = "지금과 같은 질문을 훈련 전에 적어 두었다는 기록이 없습니다."
_UNTRANSLATED = "*영어 원문이 바뀌었고, 아직 번역되지 않았습니다.*"


@dataclass(frozen=True)
class KoreanClaim:
    """A study's texts in Korean.

    english: the digest of those that were translated.
    expect: what the expectations say.
    """

    english: str
    title: str
    text: str
    expect: list[str]
    depends_on: str = ""
    known: str = ""
    found: str = ""


@dataclass(frozen=True)
class KoreanTexts:
    """
    introduction: the page's heading, and how its verdicts and figures are to be read.
    measures: {name: in Korean}.
    claims: {name of a study: its texts}.
    """

    introduction: str
    measures: Mapping[str, str]
    claims: Mapping[str, KoreanClaim]


@cache
def korean_texts() -> KoreanTexts:
    content = yaml.safe_load(TEXTS.read_text(encoding="utf-8"))
    claims = {name: KoreanClaim(**texts) for name, texts in content["claims"].items()}
    return KoreanTexts(content["introduction"], content["measures"], claims)


def digest_of_english(study: Study) -> str:
    """Of the texts that are translated; another one once any of them changes."""
    texts = [study.title, study.text, study.known, study.found, study.depends_on]
    texts += [expected.says for expected in study.expect]
    encoded = json.dumps(texts, ensure_ascii=False).encode()
    return hashlib.sha256(encoded).hexdigest()[:12]


def korean_claims_page(studies: Sequence[ShownStudy], texts: KoreanTexts | None = None) -> str:
    """The page as Markdown.

    texts: those of korean_claims.yaml where None.
    """
    texts = texts or korean_texts()
    verdicts = verdicts_of(studies)
    claims = {shown.name: _claim(shown, texts) for shown in studies}
    rows = [_summary_row(shown, claims[shown.name], verdicts) for shown in studies]
    summary = table(["주장", "판정", "미리 알았는가", "시드", "강의"], rows)
    sections = [
        _section(shown, claims[shown.name], verdicts.get(shown.name), texts.measures)
        for shown in studies
    ]
    return "\n\n".join([texts.introduction.strip(), summary, *sections]) + "\n"


def _claim(shown: ShownStudy, texts: KoreanTexts) -> KoreanClaim:
    """Its texts in Korean, or the English ones where the translation is missing or out of date."""
    study, english = shown.study, digest_of_english(shown.study)
    found = texts.claims.get(shown.name)
    if found is not None and found.english == english:
        return found
    says = [expected.says for expected in study.expect]
    return KoreanClaim(
        english,
        title=study.title,
        text=f"{_UNTRANSLATED} {study.text}",
        expect=says,
        depends_on=study.depends_on,
        known=study.known,
        found=study.found,
    )


def _summary_row(
    shown: ShownStudy, claim: KoreanClaim, verdicts: Mapping[str, Verdict]
) -> list[str]:
    link = f"[{claim.title}](#{shown.name})"
    verdict = _verdict(shown, claim, verdicts.get(shown.name))
    known = seeds = "–"
    if shown.was_run:
        known = "예" if known_before(shown) else "아니요"
        seeds = str(shown.result["run_seeds"])
    return [link, verdict, known, seeds, _link_to_lesson(shown.name)]


def _verdict(shown: ShownStudy, claim: KoreanClaim, verdict: Verdict | None) -> str:
    if verdict is None:
        return _ASKED_ANEW if shown.result else _NOT_RUN
    if verdict.words.startswith("depends on"):
        return f"{claim.depends_on}에 따라 다름"
    return _OUTCOMES.get(verdict.words, _FEW_SEEDS)


def _asked_late(shown: ShownStudy) -> str:
    """Whether the question was written after the training began."""
    if was_asked_before(shown):
        return ""
    return _ASKED_AFTER if shown.result.get("registered") is None else _NOT_REGISTERED


def _link_to_lesson(name: str) -> str:
    lesson = LESSON_OF_CLAIM.get(name)
    if lesson is None:
        return "–"
    return f"[{lesson.number}강](../course/ko/{lesson.page}.md)"


def _section(
    shown: ShownStudy,
    claim: KoreanClaim,
    verdict: Verdict | None,
    measures: Mapping[str, str],
) -> str:
    answer = f"**{_verdict(shown, claim, verdict)}.**"
    known = f"미리 알던 것: {claim.known}" if claim.known else ""
    parts = [f'<a id="{shown.name}"></a>\n## {claim.title}']
    if verdict is None:
        parts += [answer, claim.text, known]
        parts.append(table(["예상", "지표"], _asked(shown.study, claim, measures)))
    else:
        is_planned = shown.result["run_seeds"] == shown.study.seeds
        found = claim.found if is_planned else ""
        late = _asked_late(shown)
        parts += [f"{answer} {found}".strip(), claim.text, _how_it_was_run(shown)]
        parts.append(f"{known} {late}".strip())
        headings = ["예상", "지표", "차이", "기준", "p", "홀름 p", "결과"]
        parts.append(table(headings, _found(shown, claim, verdict, measures)))
        parts.append(f"![{claim.title}](../studies/{shown.name}/figure.png)")
    return "\n\n".join(part for part in parts if part)


def _asked(study: Study, claim: KoreanClaim, measures: Mapping[str, str]) -> list[list[str]]:
    rows = []
    for expected, says in zip(study.expect, claim.expect, strict=True):
        label = measures.get(expected.measure) or measure_named(expected.measure).label
        rows.append([f"**{says}**" if expected in study.primary else says, label])
    return rows


def _found(
    shown: ShownStudy, claim: KoreanClaim, verdict: Verdict, measures: Mapping[str, str]
) -> list[list[str]]:
    """The rows of the expectations, with what was found of each."""
    study = shown.study
    of_primary = iter(zip(verdict.corrected, verdict.outcomes, strict=True))
    rows = []
    asked = _asked(study, claim, measures)
    for expected, (says, label), of_result in zip(
        study.expect, asked, shown.result["expectations"], strict=True
    ):
        _, compared, difference, limit, _, p = of_result
        # `offset +0 - 0.8000`: what is left of the number that it is held against
        compared = compared.replace(measure_named(expected.measure).label, label)
        decided = ["–", "–"]
        if expected in study.primary:
            corrected, outcome = next(of_primary)
            decided = [p_shown(corrected), _OUTCOMES[outcome]]
        difference = difference.replace(" to ", " ~ ")
        rows.append([says, compared, difference, _limit(limit), p, *decided])
    return rows


def _limit(asked: str) -> str:
    """What is asked of a difference: `above 0.1` or `within 0.1`, in Korean."""
    kind, number = asked.split(" ", 1)
    return f"{number}보다 큼" if kind == "above" else f"±{number} 이내"


def _how_it_was_run(shown: ShownStudy) -> str:
    first = shown.study.first_seed
    last = first + shown.result["run_seeds"] - 1
    return (
        f"```sh\n{command_of(shown)}\n```\n\n"
        f"시드 {first}–{last}, 훈련에 든 CPU 시간 {shown.cpu_minutes}분. "
        f"[영어 페이지의 표](../claims.md#{shown.name})"
    )
