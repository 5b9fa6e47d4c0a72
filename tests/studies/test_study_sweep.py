"""Which settings of a study say how its sweep runs."""

from __future__ import annotations

import pytest

from attnlab.errors import ExperimentError
from attnlab.studies.study_sweep import is_of_sweep


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("launcher=joblib", True),
        ("launcher.workers=4", True),
        ("+hydra.launcher.additional_parameters.reservation=course", True),
        ("sweep.shard=3/8", True),
        ("data.path=launcher", False),
        ("hardware.threads=1", False),
    ],
)
def test_setting_of_the_launcher_is_one_of_the_sweep(setting: str, expected: bool) -> None:
    assert is_of_sweep(setting) is expected


@pytest.mark.parametrize(
    "setting", ["sweep=optuna", "sweep.trials=3", "hydra/sweeper=basic", "hydra.sweeper.n_trials=3"]
)
def test_setting_that_would_choose_the_points_of_a_study_is_refused(setting: str) -> None:
    with pytest.raises(ExperimentError, match=f"has no place in a study.*got {setting}"):
        is_of_sweep(setting)
