"""Judging the rows of all studies anew, after their questions or the rules changed."""

from __future__ import annotations

from pathlib import Path

from attnlab.project import STUDIES
from attnlab.studies.study import RESULT, judge, read_measurements, read_study
from attnlab.studies.study_page import write_page


def judge_all(into: Path) -> None:
    """Judge each of our studies whose rows lie in a folder, and write both pages.

    Raises ExperimentError for a study whose file or rows cannot be read.
    """
    pages: dict[str, Path] = {}
    for path in sorted(STUDIES.rglob("*.yaml")):
        folder = into / "studies" / path.stem
        pages[path.parent.name] = path
        if not (folder / RESULT).is_file():
            print(f"{path.stem}: not run")
            continue
        study = read_study(path)
        result = judge(study, path, read_measurements(folder), folder)
        print(f"{path.stem}: {result['verdict']}")
    for path in pages.values():
        print(f"page: {write_page(path, into)}")
