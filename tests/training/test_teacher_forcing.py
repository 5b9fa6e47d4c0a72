"""Teacher-forcing schedules against their formulas.

The tests also check how often coins feed the reference, and what they depend on.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st

from attnlab.batch import Batch, Padding
from attnlab.config.binding import bind
from attnlab.data.padding import make_batch
from attnlab.errors import ExperimentError
from attnlab.experiment.composition import compose
from attnlab.training.teacher_forcing import (
    ConstantTeacherForcing,
    ExponentialTeacherForcing,
    InverseSigmoidTeacherForcing,
    LinearTeacherForcing,
    TeacherForcing,
    toss,
)

CONF = Path(__file__).resolve().parents[2] / "conf" / "training" / "teacher_forcing"
PATH = "training.teacher_forcing"


def chosen(name: str, **changed) -> TeacherForcing:
    return bind(yaml.safe_load((CONF / f"{name}.yaml").read_text()) | changed, TeacherForcing, PATH)


def batch_of(lengths, side: str = "post", rows: list[int] | None = None) -> Batch:
    """Pairs whose targets have so many tokens, `<eos>` included."""
    targets = [[5] * (length - 1) for length in lengths]
    return make_batch([[4]] * len(targets), targets, Padding(decoder=side), rows=rows)


# --- schedules


def test_linear_schedule_equals_values_computed_by_hand():
    schedule = LinearTeacherForcing(start=0.9, end=0.25, slope=0.125)
    assert [schedule.ratio_at(i) for i in range(8)] == pytest.approx(
        [0.9, 0.775, 0.65, 0.525, 0.4, 0.275, 0.25, 0.25]
    )


def test_exponential_schedule_equals_values_computed_by_hand():
    assert [ExponentialTeacherForcing(k=0.5).ratio_at(i) for i in range(5)] == [
        1,
        0.5,
        0.25,
        0.125,
        0.0625,
    ]
    assert ExponentialTeacherForcing(k=0.999).ratio_at(693) == pytest.approx(0.5, abs=1e-3)


def test_inverse_sigmoid_schedule_equals_values_computed_by_hand():
    schedule = InverseSigmoidTeacherForcing(k=10.0)
    assert schedule.ratio_at(0) == pytest.approx(10 / 11)
    assert schedule.ratio_at(10) == pytest.approx(10 / (10 + math.e))
    assert schedule.ratio_at(50) == pytest.approx(10 / (10 + math.e**5))
    assert InverseSigmoidTeacherForcing(k=100.0).ratio_at(461) == pytest.approx(0.5, abs=2e-3)


@given(k=st.floats(1, 1e6), i=st.integers(0, 10**6))
def test_inverse_sigmoid_schedule_equals_its_formula_where_floats_overflow(k, i):
    with localcontext() as context:
        context.prec = 40
        exact = float(Decimal(k) / (Decimal(k) + (Decimal(i) / Decimal(k)).exp()))
    # exp(-x) in floats is off by about x units of the last place
    assert InverseSigmoidTeacherForcing(k=k).ratio_at(i) == pytest.approx(
        exact, rel=1e-12, abs=1e-300
    )


RATIOS = st.floats(0, 1)
SCHEDULES = st.one_of(
    st.builds(ConstantTeacherForcing, ratio=RATIOS),
    st.builds(
        lambda ends, slope: LinearTeacherForcing(start=max(ends), end=min(ends), slope=slope),
        st.tuples(RATIOS, RATIOS),
        st.floats(0, 1, exclude_min=True),
    ),
    st.builds(ExponentialTeacherForcing, k=st.floats(0, 1, exclude_min=True, exclude_max=True)),
    st.builds(InverseSigmoidTeacherForcing, k=st.floats(1, 1e6)),
)


@given(schedule=SCHEDULES, steps=st.lists(st.integers(0, 10**9), min_size=2, max_size=6))
def test_schedule_ratios_are_probabilities_and_never_grow(schedule, steps):
    ratios = [schedule.ratio_at(step) for step in [*sorted(steps), 10**9]]
    assert all(0 <= ratio <= 1 for ratio in ratios)
    assert ratios == sorted(ratios, reverse=True)


@given(start=RATIOS, end=RATIOS, slope=st.floats(1e-6, 1))
def test_linear_schedule_reaches_its_end(start, end, slope):
    end, start = sorted((start, end))
    schedule = LinearTeacherForcing(start=start, end=end, slope=slope)
    assert schedule.ratio_at(0) == start
    assert schedule.ratio_at(math.ceil((start - end) / slope) + 1) == end


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("linear", {"slope": 0.0}, "slope must be a number of at most 1 and above 0, got 0.0"),
        ("linear", {"start": 1.5}, "start must be a number between 0 and 1, got 1.5"),
        ("exponential", {"k": 1.0}, "k must be a number above 0 and below 1, got 1.0"),
        ("exponential", {"k": 0.0}, "k must be a number above 0 and below 1, got 0.0"),
        ("inverse_sigmoid", {"k": 0.5}, "k must be a number of at least 1, got 0.5"),
        (
            "constant",
            {"coin": "sentence"},
            "coin must be one of token, sequence, batch, got 'sentence'",
        ),
        ("constant", {"guess": "beam"}, "guess must be one of argmax, sample, got 'beam'"),
    ],
)
def test_schedule_with_an_invalid_setting_is_refused_with_its_path(name, value, allowed):
    with pytest.raises(ExperimentError) as caught:
        chosen(name, **value)
    (problem,) = caught.value.problems
    assert problem.startswith(f"{PATH}.{allowed}")


# --- coins


def test_coins_per_token_are_independent():
    coins = toss(ConstantTeacherForcing(0.5, coin="token"), 7, batch_of([50] * 200), seed=3)
    assert coins.float().mean().item() == pytest.approx(0.5, abs=0.02)
    # Of independent coins, a row's mean over 50 deviates by 0.07 and a column's over 200 by 0.035.
    assert coins.float().mean(1).std().item() == pytest.approx(0.0707, abs=0.015)
    assert coins.float().mean(0).std().item() == pytest.approx(0.0354, abs=0.015)
    neighbours = np.corrcoef(coins[:, :-1].flatten().numpy(), coins[:, 1:].flatten().numpy())[0, 1]
    assert abs(neighbours) < 0.04


def test_coin_per_sequence_holds_for_the_whole_sequence():
    coins = toss(ConstantTeacherForcing(0.7, coin="sequence"), 7, batch_of([9] * 800), seed=3)
    assert (coins == coins[:, :1]).all()
    assert coins[:, 0].float().mean().item() == pytest.approx(0.7, abs=0.05)


def test_coin_per_batch_holds_for_the_whole_batch():
    forcing, batch = ConstantTeacherForcing(0.7, coin="batch"), batch_of([4, 2])
    tossed = [toss(forcing, step, batch, seed=3) for step in range(800)]
    # None feeds the reference everywhere
    assert all(coins is None or not coins.any() for coins in tossed)
    assert sum(coins is None for coins in tossed) / 800 == pytest.approx(0.7, abs=0.05)


@pytest.mark.parametrize("coin", ["token", "sequence", "batch"])
def test_coins_with_ratio_0_or_1_are_certain(coin):
    batch = batch_of([5] * 50)
    assert all(
        toss(ConstantTeacherForcing(1.0, coin=coin), step, batch, seed=step) is None
        for step in range(20)
    )
    assert not any(
        toss(ConstantTeacherForcing(0.0, coin=coin), step, batch, seed=step).any()
        for step in range(20)
    )


def test_coins_depend_on_seed_and_step_but_not_on_global_random_state():
    forcing, batch = ConstantTeacherForcing(0.5), batch_of([20] * 20)
    state = torch.get_rng_state()
    coins = toss(forcing, 7, batch, seed=3)
    assert torch.equal(torch.get_rng_state(), state)  # dropout is the same whatever is tossed
    torch.rand(5)
    assert torch.equal(toss(forcing, 7, batch, seed=3), coins)
    assert not torch.equal(toss(forcing, 8, batch, seed=3), coins)
    assert not torch.equal(toss(forcing, 7, batch, seed=4), coins)
    late = toss(LinearTeacherForcing(start=1.0, end=0.0, slope=0.05), 7, batch, seed=3)
    assert (late | ~coins).all()  # at ratio 0.65 all that a ratio of 0.5 feeds, and more
    assert late.sum() > coins.sum()


@pytest.mark.parametrize("coin", ["token", "sequence", "batch"])
def test_coins_do_not_depend_on_pads_or_processes(coin):
    forcing, lengths, rows = (
        ConstantTeacherForcing(0.5, coin=coin),
        [6, 2, 9, 4, 1, 7],
        [31, 4, 15, 92, 6, 53],
    )

    def by_pair(batch: Batch, step: int) -> dict[int, list[bool]]:
        coins = toss(forcing, step, batch, seed=5)
        coins = torch.ones_like(batch.target_mask) if coins is None else coins
        return {
            row: coins[i][batch.target_mask[i]].tolist()
            for i, row in enumerate(batch.rows.tolist())
        }

    for step in range(10):
        whole = by_pair(batch_of(lengths, rows=rows), step)
        assert by_pair(batch_of(lengths, "pre", rows=rows), step) == whole
        shares = [by_pair(batch_of(lengths[i::2], rows=rows[i::2]), step) for i in (0, 1)]
        assert shares[0] | shares[1] == whole


class Late(TeacherForcing):
    def __init__(self, ratio: float) -> None:
        self.ratio = ratio

    def ratio_at(self, step: int) -> float:
        return self.ratio if step else 1.0


@pytest.mark.parametrize("ratio", [7.0, -0.1, math.nan])
def test_ratio_that_is_no_probability_is_refused_at_its_step(ratio: float) -> None:
    batch = batch_of([3])
    assert toss(Late(ratio), 0, batch, seed=1) is None
    message = r"training.teacher_forcing: Late.ratio_at\(2\) must be between 0 and 1, got "
    with pytest.raises(ExperimentError, match=message):
        toss(Late(ratio), 2, batch, seed=1)


class Seven(TeacherForcing):
    def ratio_at(self, step: int) -> float:
        return 7.0


def test_ratio_that_is_no_probability_at_the_first_step_is_refused_at_composition() -> None:
    own = f"training.teacher_forcing={{_target_: {__name__}.Seven}}"
    with pytest.raises(
        ExperimentError, match=r"Seven.ratio_at\(0\) must be between 0 and 1, got 7"
    ):
        compose(["training/teacher_forcing=constant", "~training.teacher_forcing", f"+{own}"])
