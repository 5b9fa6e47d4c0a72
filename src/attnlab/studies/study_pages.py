"""Writing the pages of studies from what lies in a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.files import atomic_file
from attnlab.project import STUDIES
from attnlab.studies.korean_claims import korean_claims_page
from attnlab.studies.registration import digest_of
from attnlab.studies.study import read_study
from attnlab.studies.study_kinds import KINDS
from attnlab.studies.study_page import ShownStudy, own_page, study_page, verdicts_of


def write_pages(path: Path, into: Path) -> Path | None:
    """Write the page of all studies of a kind, and those of each study where they have any.

    Studies that were not run are among them. The claims have a page in Korean too, `ko/claims.md`.

    path: of one of them; a study of the user's own is on no page, and None is returned.
    """
    if path.parent.parent != STUDIES:
        return None
    kind = path.parent.name
    studies = [_shown(file, into) for file in sorted((STUDIES / kind).glob("*.yaml"))]
    page = into / f"{kind}.md"
    _write(page, study_page(KINDS[kind], studies))
    if kind == "claims":
        _write(into / "ko" / "claims.md", korean_claims_page(studies))
    folder = KINDS[kind].pages
    if folder:
        verdicts = verdicts_of(studies)
        for shown in studies:
            own = own_page(KINDS[kind], shown, verdicts.get(shown.name))
            _write(into / folder / f"{shown.name}.md", own)
    return page


def _shown(file: Path, into: Path) -> ShownStudy:
    """A study with its result, if it has one there."""
    result = _read_result(into / "studies" / file.stem / "result.json")
    question = digest_of(file.read_text(encoding="utf-8"))
    is_judged = result.get("question") == question
    return ShownStudy(file.stem, read_study(file), result, is_judged)


def _write(page: Path, text: str) -> None:
    with atomic_file(page) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _read_result(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    return json.loads(path.read_text(encoding="utf-8"))
