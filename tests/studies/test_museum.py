"""The studies of the museum of mistakes, and its page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from attnlab.errors import ExperimentError
from attnlab.project import CONF, STUDIES
from attnlab.studies import museum
from attnlab.studies.expectations import Expectation
from attnlab.studies.measured_rows import MeasuredRows
from attnlab.studies.study import Study, find_studies, read_study
from attnlab.studies.study_kinds import KINDS
from attnlab.studies.study_page import ShownStudy, study_page
from attnlab.studies.study_pages import write_pages
from attnlab.studies.study_result import result_of

ROOT = CONF.parent
OURS = sorted((STUDIES / "museum").glob("*.yaml"))
FAULTS = sorted(path.stem for path in (CONF / "fault").glob("*.yaml") if path.stem != "none")


def test_each_fault_has_a_study() -> None:
    assert [path.stem for path in OURS] == FAULTS


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_study_compares_a_fault_with_nothing_but_the_right_model(path: Path) -> None:
    study = read_study(path)
    assert study.systems == {"right": [], "faulty": [f"fault={path.stem}"]}
    assert study.paired
    assert study.family == "museum"
    assert study.seeds == 5
    (primary,) = study.primary
    assert {primary.more, primary.less} == {"right", "faulty"}


def test_name_of_a_folder_finds_all_of_its_studies() -> None:
    assert find_studies("museum") == OURS
    assert find_studies("relu_for_tanh") == [STUDIES / "museum" / "relu_for_tanh.yaml"]
    assert find_studies("mine.yaml") == [Path("mine.yaml")]
    with pytest.raises(ExperimentError, match="the study must be one of"):
        find_studies("zoo")


def rows(right: list[float], faulty: list[float]) -> list[dict[str, Any]]:
    return [
        {"system": name, "seed": seed, "at": None, "bleu": value}
        for name, values in (("right", right), ("faulty", faulty))
        for seed, value in enumerate(values, start=1)
    ]


# Seeds differ by much, the two models of each seed by little.
RIGHT, FAULTY = [50.0, 90.0, 70.0], [49.0, 88.5, 68.8]
BETTER = Expectation("the right model is better", "bleu", "right", "faulty")


def test_models_of_one_seed_are_paired_where_the_study_says_so() -> None:
    found = rows(RIGHT, FAULTY)
    models = ["right", "faulty"]
    paired = BETTER.finding(MeasuredRows(found, models, paired=True))
    apart = BETTER.finding(MeasuredRows(found, models))
    expected = stats.ttest_1samp([1.0, 1.5, 1.2], 0)
    assert paired.method == "paired t, 3 seeds"
    assert paired.p == pytest.approx(expected.pvalue)
    assert (paired.low, paired.high) == pytest.approx(tuple(expected.confidence_interval()))
    assert apart.method == "Welch's t, 3 seeds"


def study_of(**settings: Any) -> Study:
    systems = {"right": [], "faulty": ["fault=relu_for_tanh"]}
    return Study("A ReLU", "", systems, [], ["bleu"], paired=True, family="museum", **settings)


def test_study_hands_its_pairing_to_what_it_measured() -> None:
    result = result_of(study_of(expect=[BETTER]), rows(RIGHT, FAULTY))
    (expectation,) = result["expectations"]
    assert expectation[4] == "paired t, 3 seeds"


def test_page_shows_what_each_fault_does_and_what_it_costs() -> None:
    worse = Expectation("the same", "bleu", "right", "faulty", by=1.0)
    primary = Expectation("the right model is better", "bleu", "right", "faulty", primary=True)
    study = study_of(expect=[primary, worse])
    result = result_of(study, rows(RIGHT, FAULTY))
    conditions = {"run_seeds": 3, "cpu_minutes": 1.0, "run_settings": [], "machine": "a machine"}
    run = ShownStudy("relu_for_tanh", study, result | conditions)
    waiting = ShownStudy("no_source_mask", study_of(), {})

    page = study_page(KINDS["museum"], [run, waiting])

    of_relu, of_mask = (
        next(line for line in page.splitlines() if line.startswith(f"| `{name}` | "))
        for name in ("relu_for_tanh", "no_source_mask")
    )
    assert "The additive score has a ReLU where the paper has a tanh." in of_relu
    assert "https://github.com/keon/seq2seq/issues/28" in of_relu
    assert "[**BLEU +1.23 (+0.61 to +1.86)**, holds<br>BLEU +1.23 (" in of_relu
    assert "](#relu_for_tanh) | " in of_relu
    assert f" | {museum.NOT_MEASURED} | " in of_mask
    assert of_mask.endswith("`attnlab inspect`: *no mask*. |")
    assert '<a id="relu_for_tanh"></a>' in page


def test_page_of_the_museum_is_what_the_command_writes(tmp_path: Path) -> None:
    (tmp_path / "studies").symlink_to(ROOT / "docs" / "studies")
    written = write_pages(OURS[0], tmp_path)
    assert written is not None
    page = (ROOT / "docs" / "museum.md").read_text(encoding="utf-8")
    assert page == written.read_text(encoding="utf-8")
    for name in FAULTS:
        assert f"| `{name}` | " in page
