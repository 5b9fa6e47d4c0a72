"""Judging the rows of one study, or of all after their questions or the rules changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.errors import ExperimentError
from attnlab.files import write_json
from attnlab.plots.figure import save_png
from attnlab.project import STUDIES
from attnlab.studies.registration import digest_of
from attnlab.studies.study import Study, read_study
from attnlab.studies.study_figure import figure_of
from attnlab.studies.study_files import RESULT, Measurements, check_rows, read_measurements
from attnlab.studies.study_pages import write_pages
from attnlab.studies.study_result import result_of


def judge(study: Study, path: Path, measurements: Measurements, folder: Path) -> dict[str, Any]:
    """Judge what was measured, and write the figure and the result to a study's folder.

    path: of the study's file. Returns the result.
    """
    rows, sentences = measurements.rows, measurements.sentences
    result = result_of(study, rows, sentences) | dict(measurements.conditions)
    result["question"] = digest_of(path.read_text(encoding="utf-8"))
    save_png(figure_of(study, rows), folder / "figure.png")
    write_json(folder / RESULT, result)
    return result


def show_result(study: Study, result: Mapping[str, Any], folder: Path) -> None:
    """Print the tables of a result, and its verdict."""
    for name in ("table", "published_table", "expectations"):
        for row in result[name]:
            print(" | ".join(row))
    print(f"{study.title}: {verdict_text(study, result)}\nfigure: {folder / 'figure.png'}")


def verdict_text(study: Study, result: Mapping[str, Any]) -> str:
    """The verdict, and what it leaves out where the study belongs to a family."""
    verdict = str(result["verdict_alone"])
    if not study.family:
        return verdict
    return f"{verdict}, before the correction over the family {study.family}"


def judge_all(into: Path) -> None:
    """Judge each of our studies whose rows lie in a folder, and write the pages.

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
        print(f"{path.stem}: {verdict_text(study, result)}")
    for path in pages.values():
        print(f"page: {write_pages(path, into)}")
