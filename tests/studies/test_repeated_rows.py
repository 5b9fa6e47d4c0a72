"""Committed rows of studies are what their commands measure: the first row of each is made anew."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest
import torch

from attnlab.project import STUDIES
from attnlab.studies.study import read_study
from attnlab.studies.study_files import measure, read_measurements

RESULTS = Path(__file__).parents[2] / "docs" / "studies"
MUSEUM = sorted(path.stem for path in (STUDIES / "museum").glob("*.yaml"))


@pytest.mark.long
@pytest.mark.parametrize("name", MUSEUM)
def test_first_seed_of_a_study_gives_its_committed_row(name, tmp_path, monkeypatch):
    """To the bit on a machine like the row's own, else between the values of its seeds, widened."""
    if not (RESULTS / name / "rows.csv").is_file():
        pytest.skip("it was not run")
    monkeypatch.chdir(tmp_path)
    committed = read_measurements(RESULTS / name)
    study = read_study(STUDIES / "museum" / f"{name}.yaml")
    *_, point = study.points(1, ["hardware.threads=1", f"paths.runs={tmp_path / 'runs'}"])
    (row,) = measure(study, [point])

    of_system = [each for each in committed.rows if each["system"] == point.system]
    (expected,) = (each for each in of_system if each["seed"] == point.seed)
    here = (
        f"{torch.backends.cpu.get_cpu_capability()}, 1 thread(s), "
        f"Python {platform.python_version()}, torch {torch.__version__}"
    )
    is_like = here == json.loads((RESULTS / name / "result.json").read_text())["machine"]
    for measured in study.measures:
        if is_like:
            assert row[measured] == pytest.approx(expected[measured], rel=1e-12), measured
            continue
        values = [each[measured] for each in of_system]
        room = max(values) - min(values)
        assert min(values) - room <= row[measured] <= max(values) + room, measured
