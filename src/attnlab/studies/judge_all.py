"""Judging the rows of all studies anew, after their questions or the rules changed."""

from __future__ import annotations

from pathlib import Path

from attnlab.errors import ExperimentError
from attnlab.project import STUDIES
from attnlab.studies.study import RESULT, check_rows, judge, read_measurements, read_study
from attnlab.studies.study_page import write_page


def judge_all(into: Path) -> None:
    """Judge each of our studies whose rows lie in a folder, and write both pages.

    Rows that do not answer what a study asks now are named and left as they are.

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
        measurements = read_measurements(folder)
        try:
            check_rows(study, path, measurements)
        except ExperimentError as error:
            print(error)
            continue
        result = judge(study, path, measurements, folder)
        print(f"{path.stem}: {result['verdict']}")
    for path in pages.values():
        print(f"page: {write_page(path, into)}")
