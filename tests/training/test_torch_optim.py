"""Optimisers and schedulers of torch, as nodes of a config."""

from __future__ import annotations

import inspect
import io
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim import lr_scheduler

from attnlab.config.part import Part
from attnlab.config.target import known_targets
from attnlab.errors import ExperimentError
from attnlab.experiment.composition import compose
from attnlab.training.optimisation import Schedule, make_scheduler
from attnlab.training.torch_optim import OPTIMIZER_TYPES, REFUSED, SCHEDULER_TYPES

CONF = Path(__file__).resolve().parents[2] / "conf"
OPTIMIZERS = sorted(path.stem for path in (CONF / "training" / "optimizer").glob("*.yaml"))
SCHEDULES = sorted(path.stem for path in (CONF / "training" / "schedule").glob("*.yaml"))


def training(*overrides: str) -> Any:
    return compose(["data=copy", *overrides]).training


def problems(*overrides: str) -> list[str]:
    with pytest.raises(ExperimentError) as caught:
        training(*overrides)
    return caught.value.problems


def optimizer_of_torch(name: str, *settings: str) -> list[str]:
    """The overrides that choose a class of torch in place of the default choice."""
    place = "training.optimizer"
    dropped = [f"~{place}.{setting}" for setting in ("betas", "eps", "weight_decay", "fused")]
    chosen = [f"{place}._target_=torch.optim.{name}", *dropped]
    return [*chosen, *(f"++{place}.{setting}" for setting in settings)]


def scheduler_of_torch(name: str, *settings: str) -> list[str]:
    place = "training.schedule"
    chosen = [
        f"{place}._target_=torch.optim.lr_scheduler.{name}",
        f"+{place}._partial_=true",
        f"~{place}.warmup_steps",
    ]
    return [*chosen, *(f"+{place}.{setting}" for setting in settings)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer_choice_makes_the_optimizer_of_torch_with_its_settings(name):
    part = training(f"training/optimizer={name}").optimizer
    made = part([torch.nn.Parameter(torch.ones(2, 2))])
    assert type(made).__module__.startswith("torch.optim")
    assert {key: made.defaults[key] for key in part.values} == part.values


def test_default_optimizer_is_fused_adamw_without_decay():
    made = training().optimizer([torch.nn.Parameter(torch.ones(2))])
    assert type(made) is torch.optim.AdamW
    expected = {"lr": 0.004, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0, "fused": True}
    assert {key: made.defaults[key] for key in expected} == expected


def test_adam_makes_the_first_step_of_its_formula():
    parameter = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer = training("training.optimizer.lr=0.1").optimizer([parameter])
    (parameter * torch.tensor([3.0, 5.0])).sum().backward()
    optimizer.step()
    torch.testing.assert_close(parameter.detach(), torch.tensor([0.9, -2.1]))


@pytest.mark.parametrize("target", known_targets(torch.optim.Optimizer))
def test_every_optimizer_of_torch_is_accepted_by_name_or_refused_with_a_reason(target):
    name = target.rpartition(".")[2]
    kind = getattr(torch.optim, name)
    chosen = optimizer_of_torch(name, "lr=0.01")
    if kind in REFUSED:
        assert problems(*chosen) == [
            f"training.optimizer._target_: {name} does not fit into attnlab: {REFUSED[kind]}"
        ]
        return
    made = training(*chosen).optimizer([torch.nn.Parameter(torch.ones(2, 2))])
    assert type(made) is kind
    assert made.defaults["lr"] == 0.01


def test_limits_are_of_settings_that_torch_has():
    known: set[str] = set()
    for kind in (*vars(torch.optim).values(), *vars(lr_scheduler).values()):
        if inspect.isclass(kind) and issubclass(
            kind, torch.optim.Optimizer | lr_scheduler.LRScheduler
        ):
            known.update(inspect.signature(kind).parameters)
    assert OPTIMIZER_TYPES.by_name.keys() | SCHEDULER_TYPES.by_name.keys() <= known


def test_every_wrong_value_of_an_optimizer_is_named_with_its_range():
    assert problems(
        "training.optimizer.lr=-1",
        "training.optimizer.betas=[0.9,1]",
        "training.optimizer.weight_decay=x",
        "+training.optimizer.amsgard=true",
    ) == [
        "training.optimizer.amsgard is not a setting; did you mean amsgrad? training.optimizer "
        "has: amsgrad, betas, capturable, differentiable, eps, foreach, fused, lr, maximize, "
        "weight_decay",
        "training.optimizer.lr must be a number above 0, got -1",
        "training.optimizer.betas[1] must be a number of at least 0 and below 1, got 1",
        "training.optimizer.weight_decay must be a number of at least 0, got 'x'",
    ]


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (
            ["training/optimizer=sgd", "+training.optimizer.nesterov=true"],
            "training.optimizer: Nesterov momentum requires a momentum and zero dampening",
        ),
        (
            ["training.optimizer._partial_=false"],
            "training.optimizer._partial_ must be true: the program itself gives AdamW its params",
        ),
        (
            ["training.optimizer._partial_=2"],
            "training.optimizer._partial_ must be true or false, got 2",
        ),
        (
            ["+training.optimizer.params=[1]"],
            "training.optimizer.params is not a setting; training.optimizer has: amsgrad,",
        ),
        (
            ["training.optimizer._target_=torch.optim.Adamm"],
            "training.optimizer._target_ is 'torch.optim.Adamm', but torch.optim has no Adamm",
        ),
        (
            ["training.optimizer._target_=attnlab.training.optimisation.Adam"],
            "training.optimizer._target_: attnlab.training.optimisation.Adam is now "
            "torch.optim.AdamW, with _partial_: true",
        ),
        (
            ["+training.validation_search._partial_=true"],
            "training.validation_search._partial_ must be false: it makes a function here, which "
            "is no Search",
        ),
        (
            scheduler_of_torch("StepLR"),
            "training.schedule.step_size is missing; it must be a whole number above 0",
        ),
        (
            scheduler_of_torch("StepLRR"),
            "training.schedule._target_ is 'torch.optim.lr_scheduler.StepLRR', but torch.optim.lr_",
        ),
        (
            scheduler_of_torch("ReduceLROnPlateau"),
            "training.schedule._target_: ReduceLROnPlateau does not fit into attnlab: use "
            "training/schedule=plateau",
        ),
        (
            ["training/schedule=exponential", "training.schedule._partial_=false"],
            "training.schedule._partial_ must be true: the program itself gives ExponentialLR its "
            "optimizer",
        ),
    ],
)
def test_wrong_optimizer_or_schedule_is_refused_in_a_sentence(overrides, said):
    (problem,) = problems(*overrides)
    assert problem.startswith(said)


@pytest.mark.parametrize(
    ("old", "new"),
    [("learning_rate", "lr"), ("beta1", "betas"), ("beta2", "betas"), ("epsilon", "eps")],
)
@pytest.mark.parametrize("plus", ["", "+"])
def test_old_name_of_a_setting_is_refused_with_the_new_one(old, new, plus):
    # Hydra refuses the one without `+`, and the binding of the config the other one.
    assert problems(f"{plus}training.optimizer.{old}=0.1") == [
        f"training.optimizer.{old} is now training.optimizer.{new}"
    ]


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule_choice_takes_a_step_for_each_step_of_the_optimizer(name):
    chosen = training(f"training/schedule={name}", "training.max_steps=6")
    optimizer = chosen.optimizer([torch.nn.Parameter(torch.ones(2))])
    entry = make_scheduler(chosen.schedule, optimizer, 6, "validation/x", "max")
    assert entry["interval"] == "step"
    assert isinstance(entry["scheduler"], lr_scheduler.LRScheduler)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_with_each_optimizer_choice_runs_to_its_end(train, name):
    chosen = training(f"training/optimizer={name}", "training.optimizer.lr=0.001")
    run = train(optimizer=chosen.optimizer, max_steps=4)
    assert run.trainer.global_step == 4
    assert all(map(math.isfinite, run.values("train/gradient_norm")))


@pytest.mark.parametrize(
    ("name", "last"), [("one_cycle", 4e-8), ("exponential", 0.004 * 0.999**7), ("linear", 0.00085)]
)
def test_training_with_a_scheduler_of_torch_logs_its_rates(train, name, last):
    chosen = training(f"training/schedule={name}", "training.max_steps=8")
    rates = train(schedule=chosen.schedule, optimizer=chosen.optimizer, max_steps=8).values(
        "train/learning_rate"
    )
    assert len(rates) == 8
    assert rates[-1] == pytest.approx(last, rel=0.01, abs=1e-6)


def test_scheduler_of_torch_gives_the_rates_of_its_formula():
    chosen = training(*scheduler_of_torch("StepLR", "step_size=2", "gamma=0.5"))
    assert not isinstance(chosen.schedule, Schedule)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
    scheduler = make_scheduler(chosen.schedule, optimizer, 5, "m", "min")["scheduler"]
    seen = []
    for _ in range(5):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert seen == [2.0, 2.0, 1.0, 1.0, 0.5]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("StepLR", {"step_size": 2}),
        ("MultiStepLR", {"milestones": [2, 3]}),
        ("OneCycleLR", {"max_lr": 1.0, "total_steps": 9}),
        ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0}),
        ("CosineAnnealingLR", {"T_max": 5}),
        ("CosineAnnealingWarmRestarts", {"T_0": 5}),
        ("ExponentialLR", {"gamma": 0.9}),
        ("LinearLR", {}),
        ("PolynomialLR", {}),
    ],
)
def test_scheduler_of_torch_resumes_from_a_checkpoint_without_pickles(name, settings):
    def made() -> tuple[Any, Any]:
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0, momentum=0.5)
        return optimizer, Part(getattr(lr_scheduler, name), "", **settings)(optimizer)

    def step(optimizer: Any, scheduler: Any) -> float:
        optimizer.step()
        scheduler.step()
        return optimizer.param_groups[0]["lr"]

    first = made()
    step(*first)
    states = io.BytesIO()
    torch.save([each.state_dict() for each in first], states)

    states.seek(0)
    second = made()
    for each, state in zip(second, torch.load(states, weights_only=True), strict=True):
        each.load_state_dict(state)
    assert [step(*first) for _ in range(4)] == [step(*second) for _ in range(4)]


def test_schedule_that_ends_before_the_training_is_refused():
    part = Part(lr_scheduler.OneCycleLR, "training.schedule", max_lr=1.0, total_steps=5)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0, momentum=0.5)
    with pytest.raises(
        ExperimentError,
        match=r"^training.schedule.total_steps must be at least the 6 steps of the training, got 5",
    ):
        make_scheduler(part, optimizer, 6, "m", "min")
    make_scheduler(part, optimizer, 5, "m", "min")
