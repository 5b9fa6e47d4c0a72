"""What an experiment that continues another one may change, and what is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from attnlab.experiment.composition import compose
from attnlab.experiment.continued import problems_of_continuing

COSINE = ("training/schedule=cosine",)


def problems(before: tuple[str, ...], after: tuple[str, ...]) -> list[str]:
    parent: dict[str, Any] = copy.deepcopy(compose(["data=copy", *before]).config)
    experiment = compose(["data=copy", *before, *after])
    return list(problems_of_continuing(experiment.config, parent, experiment.training))


@pytest.mark.parametrize(
    "after",
    [
        "training.max_steps=900",
        "training.patience=4",
        "training.optimizer.lr=0.1",
        "training.optimizer.betas=[0.5,0.6]",
        "training.optimizer.weight_decay=0.1",
        "training.schedule.warmup_steps=4",
        "training/schedule=constant",
        "training.gradient_clip=3.0",
        "training.label_smoothing=0.1",
        "training.validate_every=7",
        "training.average_decay=0.9",
        "training/teacher_forcing=linear",
        "training.frozen=[encoder]",
        "+training.optimizer.amsgrad=false",  # as it is where nothing is written
    ],
)
def test_setting_that_can_change_between_two_steps_is_no_problem(after: str) -> None:
    assert problems(COSINE, (after,)) == []


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ((), "seed=7", "seed must be 1 as there, "),
        ((), "training.batching.size=7", "training.batching.size must be "),
        ((), "training.batching.by=tokens", "training.batching.by must be 'sentences' as there, "),
        ((), "training.accumulate=2", "training.accumulate must be 1 as there, "),
        ((), "training.monitor=chrf", "training.monitor must be 'bleu' as there, "),
        ((), "training.validation_search.max_length=9", "training.validation_search.max_length "),
        ((), "training/attention_schedule=late", "training.attention_schedule"),
        ((), "training/optimizer=sgd", "training.optimizer._target_ must be 'torch.optim.AdamW'"),
        ((), "training.optimizer.fused=false", "training.optimizer.fused must be true as there"),
        ((), "+training.optimizer.amsgrad=true", "training.optimizer.amsgrad must be null"),
        (("training/optimizer=sgd",), "training.optimizer.momentum=0.5", "optimizer.momentum must"),
        ((), "training/schedule=plateau", "training.schedule._target_ must be "),
        (("training/schedule=plateau",), "training.optimizer.lr=0.1", "optimizer.lr must be 0.004"),
        (("training/schedule=exponential",), "training.schedule.gamma=0.5", "schedule.gamma must "),
        (("training.average_decay=0.9",), "training.average_decay=null", "average_decay must be 0"),
        ((), "training.initial_weights=model", "training.initial_weights must be null as there"),
    ],
)
def test_setting_that_cannot_change_is_refused(
    before: tuple[str, ...], after: str, sentence: str
) -> None:
    found = problems(before, (after,))
    assert found
    assert sentence in found[0]
    assert ", got " in found[0]


@pytest.mark.parametrize("schedule", ["linear", "one_cycle"])
def test_schedule_whose_length_is_that_of_the_training_names_those_that_go_on(
    schedule: str,
) -> None:
    [found] = problems((f"training/schedule={schedule}",), ("training.max_steps=5000",))
    assert "training.schedule.total_" in found
    assert "training/schedule=constant, cosine, " in found
    assert problems((f"training/schedule={schedule}",), ("training/schedule=constant",)) == []


def test_settings_of_a_plateau_can_change() -> None:
    plateau = ("training/schedule=plateau",)
    assert problems(plateau, ("training.schedule.factor=0.1", "training.schedule.patience=5")) == []
