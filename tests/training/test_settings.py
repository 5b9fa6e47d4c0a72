"""Settings of a training and learning-rate schedules, without a trainer."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from attnlab.tasks.classification.settings import ClassificationTraining
from attnlab.training.optimisation import (
    ConstantSchedule,
    CosineSchedule,
    HalvingSchedule,
    InverseSquareRootSchedule,
    PlateauSchedule,
)

CONF = Path(__file__).resolve().parents[2] / "conf"


def rates(schedule, steps: int, total: int = 10) -> list[float]:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
    entry = schedule(optimizer, total, "m", "min")
    assert entry["interval"] == "step"
    assert entry.get("frequency", 1) == 1
    seen = []
    for _ in range(steps):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        entry["scheduler"].step()
    return seen


def test_schedules_give_their_rates_step_by_step():
    assert rates(ConstantSchedule(), 3) == [2.0, 2.0, 2.0]
    assert rates(ConstantSchedule(3), 6) == [0.5, 1.0, 1.5, 2.0, 2.0, 2.0]
    assert rates(CosineSchedule(), 11) == pytest.approx(
        [1 + math.cos(math.pi * t / 10) for t in range(11)]
    )
    warmed = rates(CosineSchedule(2), 12, total=10)
    assert warmed[:3] == pytest.approx([2 / 3, 4 / 3, 2.0])
    assert warmed[6] == pytest.approx(1.0)  # half-way between the warm-up and the end
    assert warmed[10:] == pytest.approx([0.0, 0.0])  # and it does not grow again
    assert rates(HalvingSchedule(3, 2), 9) == [2, 2, 2, 1, 1, 0.5, 0.5, 0.25, 0.25]
    assert rates(HalvingSchedule(0, 1), 3) == [1, 0.5, 0.25]


@pytest.mark.parametrize("mode", ["min", "max"])
def test_plateau_schedule_lowers_the_rate_after_validations_without_improvement(mode):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    entry = PlateauSchedule(0.5, patience=1, minimum=0.2)(optimizer, 100, "validation/x", mode)
    assert entry["monitor"] == "validation/x"
    seen = []
    for value in (1, 2, 3, 2, 4, 4, 4, 5, 1, 1, 1, 1):
        entry["scheduler"].step(value if mode == "max" else 10 - value)
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == [1, 1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.2]


def test_training_ends_at_the_first_of_its_limits_and_needs_one(settings):
    with pytest.raises(
        ValueError, match="max_steps and max_epochs are both null; give at least one"
    ):
        settings(max_steps=None)
    assert settings(max_steps=12).total_steps(5) == 12
    assert settings(max_steps=None, max_epochs=3).total_steps(5) == 15
    assert settings(max_steps=12, max_epochs=3).total_steps(5) == 12
    assert settings(max_steps=12, max_epochs=2).total_steps(5) == 10


def test_translation_settings_map_monitor_to_validation_metric_and_mode(settings):
    assert settings().monitored_metric == "validation/teacher_forced/token_nll"
    assert settings().monitor_mode == "min"
    for name in ("bleu", "chrf", "exact_match"):
        assert settings(monitor=name).monitored_metric == f"validation/free_running/{name}"
        assert settings(monitor=name).monitor_mode == "max"


@pytest.mark.parametrize(("monitor", "mode"), [("accuracy", "max"), ("f1", "max"), ("nll", "min")])
def test_classification_settings_map_monitor_to_validation_metric_and_mode(monitor, mode, settings):
    chosen = settings(ClassificationTraining, monitor=monitor)
    assert (chosen.monitored_metric, chosen.monitor_mode) == (f"validation/{monitor}", mode)


def test_settings_that_average_more_checkpoints_than_they_keep_are_refused(settings):
    sentence = (
        r"^average_checkpoints must be at most keep_best, .* got 3 and keep_best 2; "
        r"choose training\.keep_best=3"
    )
    with pytest.raises(ValueError, match=sentence):
        settings(keep_best=2, average_checkpoints=3)
    assert settings(keep_best=3, average_checkpoints=3).average_checkpoints == 3


def test_inverse_square_root_schedule_is_the_papers_rate():
    """d^-0.5 min(step^-0.5, step warmup^-1.5), the steps counted from 1 on."""
    size, warmup = 512, 4  # of the paper, where the last step of the warm-up has the full rate
    highest = 1 / math.sqrt(size * warmup)
    expected = [size**-0.5 * min(n**-0.5, n * warmup**-1.5) for n in range(1, 13)]
    found = [highest * rate / 2.0 for rate in rates(InverseSquareRootSchedule(warmup - 1), 12)]
    assert found == pytest.approx(expected)
