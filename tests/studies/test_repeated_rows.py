"""Committed rows of studies are what their commands measure: the first row of each is made anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.project import STUDIES
from attnlab.studies.run_study import train_and_measure
from attnlab.studies.study import read_study
from attnlab.studies.study_files import described_machine, read_measurements

RESULTS = Path(__file__).parents[2] / "docs" / "studies"
MUSEUM = sorted(path.stem for path in (STUDIES / "museum").glob("*.yaml"))


@pytest.mark.long
@pytest.mark.parametrize("name", MUSEUM)
def test_first_seed_of_a_study_gives_its_committed_row(name, tmp_path, monkeypatch):
    """Between the values of its seeds, widened; on a machine like the row's own, to the bit."""
    if not (RESULTS / name / "rows.csv").is_file():
        pytest.skip("it was not run")
    monkeypatch.chdir(tmp_path)
    committed = read_measurements(RESULTS / name)
    study = read_study(STUDIES / "museum" / f"{name}.yaml")
    *_, point = study.points(1, ["hardware.threads=1", f"paths.runs={tmp_path / 'runs'}"])
    (row,) = train_and_measure(study, [point])

    of_system = [each for each in committed.rows if each["system"] == point.system]
    (expected,) = (each for each in of_system if each["seed"] == point.seed)
    for measured in study.measures:
        values = [each[measured] for each in of_system]
        room = max(values) - min(values)
        assert min(values) - room <= row[measured] <= max(values) + room, measured

    # What pandas reads of a file may differ in the last bit.
    same = {name: pytest.approx(expected[name], rel=1e-12) for name in study.measures}
    if committed.conditions["machine"] == described_machine(threads=1, precision="32"):
        assert {name: row[name] for name in study.measures} == same
