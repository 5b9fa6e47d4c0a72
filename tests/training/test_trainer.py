"""Real trainings of a few steps: logged metrics, gradients, checkpoints and repeatability."""

from __future__ import annotations

import math

import pytest
import torch
from composed_variants import part_of
from pytorch_lightning.callbacks import LambdaCallback
from torch.utils.data import DataLoader

from attnlab.batch import Padding
from attnlab.config.part import Part
from attnlab.data.padding import make_batch
from attnlab.model.histories.coverage import Coverage
from attnlab.tasks.translation.metrics import signatures
from attnlab.training.loss import summed_loss, summed_nll
from attnlab.training.optimisation import CosineSchedule, PlateauSchedule
from attnlab.training.spool import history
from attnlab.training.teacher_forcing import ConstantTeacherForcing, LinearTeacherForcing

TOKEN_NLL = "validation/teacher_forced/token_nll"
PERPLEXITY = "validation/teacher_forced/perplexity"
# Every step leaves the weights as they are
STANDSTILL = {"optimizer": Part(torch.optim.SGD, lr=1e-30), "gradient_clip": 0.0}


def weights_of(module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in module.model.state_dict().items()}


def same(one, other) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


@torch.no_grad()
def token_nll(model, batches) -> float:
    total = sum(summed_nll(model.output, model(batch), batch).double().item() for batch in batches)
    return total / sum(batch.num_target_tokens for batch in batches)


def note_weights(into: dict[str, torch.Tensor]) -> LambdaCallback:
    """Copies the weights before the first step."""
    return LambdaCallback(on_fit_start=lambda trainer, module: into.update(weights_of(module)))


def loader(batches) -> DataLoader:
    return DataLoader(batches, batch_size=None, shuffle=False, collate_fn=lambda batch: batch)


@pytest.fixture
def unequal():
    """Batches of one short pair and of six long ones."""
    short = make_batch([[4]], [[5]], Padding())
    long = make_batch([[4, 5, 6, 7, 8, 4]] * 6, [[8, 7, 6, 5, 4, 4]] * 6, Padding())
    return [short, long, short]


@pytest.fixture
def three_steps(unequal):
    """Choices of a training of three steps on them, one each, that changes no weight."""
    return {
        **STANDSTILL,
        "max_steps": 3,
        "validate_every": 3,
        "loaders": (loader(unequal), loader(unequal)),
    }


def test_epoch_loss_is_the_mean_over_its_tokens(train, three_steps, unequal):
    run = train(**{**three_steps, "max_steps": None, "max_epochs": 2})
    model = run.module.model.eval()
    expected = token_nll(model, unequal)
    mean_of_means = sum(token_nll(model, [batch]) for batch in unequal) / 3
    assert abs(mean_of_means - expected) > 1e-3
    assert run.values("train/epoch_token_nll") == pytest.approx([expected] * 2, rel=1e-5)
    assert run.values(TOKEN_NLL) == pytest.approx([expected] * 2, rel=1e-5)
    assert run.values(PERPLEXITY) == pytest.approx([math.exp(expected)] * 2, rel=1e-5)
    assert run.values("train/token_nll") == pytest.approx(
        [token_nll(model, [b]) for b in unequal] * 2, rel=1e-5
    )


def coverage_of(loss_weight: float) -> Part[Coverage] | None:
    return part_of("history", "coverage", loss_weight=loss_weight)


@pytest.mark.parametrize(("smoothing", "coverage"), [(0.0, 0.0), (0.4, 0.7)])
def test_training_step_descends_the_gradient_of_its_loss_per_token(
    smoothing, coverage, train, unequal
):
    """Without clipping, SGD with rate 1 changes the weights by the gradient itself."""
    batch = unequal[1]
    start: dict[str, torch.Tensor] = {}
    model = {"history": coverage_of(coverage)} if coverage else {}
    one = {
        "max_steps": 1,
        "loaders": (loader([batch]), loader([batch])),
        "callbacks": [note_weights(start)],
    }
    run = train(
        **one,
        optimizer=Part(torch.optim.SGD, lr=1.0),
        gradient_clip=0.0,
        label_smoothing=smoothing,
        model=model,
    )
    after = weights_of(run.module)
    run.module.model.load_state_dict(start)
    model = run.module.model.train()
    model.zero_grad()
    unrolled = model(batch)
    loss = summed_loss(model.output, unrolled, batch, smoothing).loss
    if coverage:
        loss = loss + unrolled.history_loss
    (loss / batch.num_target_tokens).backward()
    norm = 0.0
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(start[name] - after[name], parameter.grad, rtol=1e-4, atol=1e-6)
        norm += parameter.grad.square().sum().item()
    assert run.values("train/gradient_norm") == pytest.approx([math.sqrt(norm)], rel=1e-5)


def test_gradient_is_clipped_by_its_norm_over_all_weights(train):
    start: dict[str, torch.Tensor] = {}
    run = train(
        optimizer=Part(torch.optim.SGD, lr=1.0),
        gradient_clip=0.01,
        max_steps=1,
        callbacks=[note_weights(start)],
    )
    moved = math.sqrt(
        sum((start[n] - w).square().sum().item() for n, w in weights_of(run.module).items())
    )
    assert run.values("train/gradient_norm")[0] > 0.02  # as it was before
    assert moved == pytest.approx(0.01, rel=1e-3)


def test_training_with_the_same_seed_gives_the_same_bits(train):
    choices = {"dropout": 0.2, "teacher_forcing": ConstantTeacherForcing(0.5), "max_steps": 8}
    one, two, other = (train(seed=seed, **choices) for seed in (1, 1, 2))
    assert same(weights_of(one.module), weights_of(two.module))
    for name in ("train/token_nll", TOKEN_NLL, "validation/free_running/bleu"):
        assert one.curve(name) == two.curve(name)
    assert not same(weights_of(one.module), weights_of(other.module))


def test_validation_does_not_change_training(train):
    choices = {"dropout": 0.2, "teacher_forcing": ConstantTeacherForcing(0.5), "max_steps": 8}
    often, seldom = train(validate_every=2, **choices), train(validate_every=8, **choices)
    assert len(often.values(TOKEN_NLL)) == 4
    assert len(seldom.values(TOKEN_NLL)) == 1
    assert same(weights_of(often.module), weights_of(seldom.module))


def test_teacher_forcing_ratio_does_not_change_validation(train):
    choices = {**STANDSTILL, "max_steps": 3, "validate_every": 3}
    taught, free = (
        train(**choices, teacher_forcing=ConstantTeacherForcing(ratio)) for ratio in (1.0, 0.0)
    )
    assert taught.values("train/token_nll") != free.values("train/token_nll")
    assert taught.values(TOKEN_NLL) == free.values(TOKEN_NLL)
    assert free.values("train/teacher_forcing_ratio") == [0.0] * 3


def test_training_learns_and_saves_its_best_and_last_checkpoints(train):
    run = train(max_steps=24, validate_every=4, keep_best=2, dropout=0.1)
    curve = run.curve(TOKEN_NLL)
    assert len(curve) == 6
    assert curve[-1][1] < curve[0][1]
    assert run.values("train/token_nll")[-1] < run.values("train/token_nll")[0]
    saved = torch.load(run.checkpoint.best_model_path, map_location="cpu", weights_only=True)
    ranked = sorted(range(6), key=lambda i: curve[i][1])
    assert saved["global_step"] == 4 * (ranked[0] + 1)
    names = {path.name for path in (run.folder / "checkpoints").iterdir()}
    assert names == {
        "last.ckpt",
        "before_last.ckpt",
        *(f"step={4 * (i + 1)}.ckpt" for i in ranked[:2]),
    }
    # the best weights are those that were validated
    model = run.module.model
    weights = {
        n.removeprefix("model."): w
        for n, w in saved["state_dict"].items()
        if n.startswith("model.")
    }
    model.load_state_dict(weights)
    assert token_nll(model.eval(), list(run.batches.val_dataloader())) == pytest.approx(
        curve[ranked[0]][1], rel=1e-5
    )
    last = torch.load(
        run.folder / "checkpoints" / "last.ckpt", map_location="cpu", weights_only=True
    )
    assert last["global_step"] == 24


def test_exact_match_is_measured_on_decoded_text(train, prepared):
    run = train(max_steps=4)
    search, model = run.module.settings.validation_search, run.module.model.eval()
    split = prepared.split("validation")
    exact = 0
    for batch in run.batches.val_dataloader():
        for row, (best,) in zip(
            batch.rows.tolist(), search(model, batch.source, batch.source_mask), strict=True
        ):
            exact += prepared.target_tokenizer.decode(best.tokens) == split.target_text(row)
    assert run.values("validation/free_running/exact_match")[-1] == pytest.approx(
        exact / len(split)
    )
    names = {name for name in run.trainer.logged_metrics if name.startswith("validation/")}
    quick = set(signatures("13a")) - {"ter", "token_error_rate"}
    assert names == {TOKEN_NLL, PERPLEXITY, *(f"validation/free_running/{name}" for name in quick)}


def test_plateau_schedule_lowers_the_rate_after_validations(train):
    slow = Part(
        torch.optim.SGD, lr=0.001
    )  # too slow to copy a single sentence: exact match stays at 0
    plateau = PlateauSchedule(0.5, 0)
    run = train(
        optimizer=slow, schedule=plateau, monitor="exact_match", max_steps=8, validate_every=2
    )
    assert run.values("validation/free_running/exact_match") == [0.0] * 4
    # the first validation is the best; each later one halves the rate from the next step on
    rates = [rate / 0.001 for rate in run.values("train/learning_rate")]
    assert rates == pytest.approx([1, 1, 1, 1, 0.5, 0.5, 0.25, 0.25])
    (best,) = (run.folder / "checkpoints").glob("step=*.ckpt")
    assert best.name == "step=2.ckpt"
    saved = torch.load(run.folder / "checkpoints" / "last.ckpt", weights_only=True)
    assert saved["optimizer_states"][0]["param_groups"][0]["lr"] == pytest.approx(0.001 / 8)


def test_patience_stops_training_after_validations_without_improvement(train):
    run = train(**STANDSTILL, patience=2, max_steps=40, validate_every=3)
    assert run.trainer.global_step == 9  # the first is the best, two bring nothing better
    assert len(run.values(TOKEN_NLL)) == 3


def test_training_prints_a_line_for_each_validation(train, capfd):
    run = train(max_steps=4, validate_every=2)
    lines = [line for line in capfd.readouterr().err.splitlines() if "validation:" in line]
    nll = [
        f"step      {step}  validation: token nll {value:.3f} · bleu"
        for step, value in run.curve(TOKEN_NLL)
    ]
    assert [line[: len(start)] for line, start in zip(lines, nll, strict=True)] == nll


@pytest.mark.parametrize(("max_steps", "validate_every", "validations"), [(2, 250, 1), (6, 4, 2)])
def test_training_validates_and_saves_after_its_last_step(
    max_steps, validate_every, validations, train
):
    run = train(max_steps=max_steps, validate_every=validate_every)
    assert (run.trainer.global_step, run.trainer.state.status) == (max_steps, "finished")
    assert len(run.values(TOKEN_NLL)) == validations
    assert run.checkpoint.best_model_path
    assert (
        torch.load(run.folder / "checkpoints" / "last.ckpt", weights_only=True)["global_step"]
        == max_steps
    )


def test_epoch_holds_all_pairs_in_its_own_order(train, prepared):
    rows: list[list[int]] = []
    note = LambdaCallback(on_train_batch_end=lambda *a: rows.append(a[3].rows.tolist()))
    train(**STANDSTILL, max_steps=None, max_epochs=2, callbacks=[note])
    half = len(rows) // 2
    first, second = (
        [row for batch in batches for row in batch] for batches in (rows[:half], rows[half:])
    )
    assert sorted(first) == sorted(second) == list(range(len(prepared.split("train"))))
    assert first != second


@pytest.mark.processor
@pytest.mark.bfloat16
def test_training_with_bf16_keeps_weights_in_single_precision(train):
    run = train(on={"precision": "bf16"}, max_steps=16)
    assert run.trainer.precision == "bf16-mixed"
    losses = run.values("train/token_nll")
    assert all(math.isfinite(loss) for loss in losses)
    assert losses[-1] < losses[0]
    assert all(value.dtype == torch.float32 for value in weights_of(run.module).values())


def test_label_smoothing_changes_the_loss_but_not_the_nll(train, three_steps, unequal):
    plain, smoothed = train(**three_steps), train(**three_steps, label_smoothing=0.3)
    for name in ("train/token_nll", "train/epoch_token_nll", TOKEN_NLL, PERPLEXITY):
        assert smoothed.curve(name) == plain.curve(name), name
    assert plain.values("train/loss") == []  # it equals the NLL
    model = plain.module.model.eval()
    with torch.no_grad():
        expected = [
            summed_loss(model.output, model(b), b, 0.3).loss.item() / b.num_target_tokens
            for b in unequal
        ]
    assert smoothed.values("train/loss") == pytest.approx(expected, rel=1e-5)
    assert smoothed.values("train/coverage_loss") == []  # this model has none


def test_coverage_loss_is_added_in_training_only(train, three_steps, unequal):
    without, covered = (
        train(**three_steps, model={"history": coverage_of(weight)}) for weight in (0.0, 0.7)
    )
    for name in ("train/token_nll", "train/epoch_token_nll", TOKEN_NLL, PERPLEXITY):
        assert covered.curve(name) == without.curve(name), name
    assert without.values("train/coverage_loss") == [0.0] * 3
    model = covered.module.model.eval()
    with torch.no_grad():
        expected = [model(batch).history_loss.item() / batch.num_target_tokens for batch in unequal]
    assert min(expected) > 0.01
    assert covered.values("train/coverage_loss") == pytest.approx(expected, rel=1e-5)
    nll = covered.values("train/token_nll")
    sums = [one + more for one, more in zip(nll, expected, strict=True)]
    assert covered.values("train/loss") == pytest.approx(sums, rel=1e-5)


def test_teacher_forcing_ratio_follows_its_schedule(train):
    schedule = LinearTeacherForcing(start=1.0, end=0.4, slope=0.25)
    run = train(**STANDSTILL, max_steps=4, teacher_forcing=schedule)
    assert run.values("train/teacher_forcing_ratio") == pytest.approx([1.0, 0.75, 0.5, 0.4])


@pytest.mark.parametrize("guess", ["argmax", "sample"])
def test_model_receives_teacher_forcing_choices_only_in_training(guess, train):
    fed: list[tuple[bool, torch.Tensor | None, bool]] = []

    def spy(trainer, module):
        unroll = module.model.forward

        def forward(batch, feed_reference=None, sample_guesses=False, intervention=None):
            fed.append((module.training, feed_reference, sample_guesses))
            return unroll(batch, feed_reference, sample_guesses=sample_guesses)

        module.model.forward = forward

    forcing = ConstantTeacherForcing(0.0, coin="sequence", guess=guess)
    train(
        **STANDSTILL,
        max_steps=3,
        teacher_forcing=forcing,
        callbacks=[LambdaCallback(on_fit_start=spy)],
    )
    in_training = [(coins, sampled) for training, coins, sampled in fed if training]
    assert len(in_training) == 3
    assert all(not coins.any() and sampled == (guess == "sample") for coins, sampled in in_training)
    outside = [(coins, sampled) for training, coins, sampled in fed if not training]
    assert outside
    assert all(coins is None and not sampled for coins, sampled in outside)


def test_metrics_with_a_larger_log_every_are_a_subset_of_those_of_every_step(train):
    """With the last step, whatever its number; and nothing that is older than its step."""
    names = (
        "train/token_nll",
        "train/loss",
        "train/gradient_norm",
        "train/learning_rate",
        "train/epoch_token_nll",
    )
    chosen = {"max_steps": 10, "label_smoothing": 0.1, "schedule": CosineSchedule(0)}
    every, some = (
        {
            (row.name, row.step): row.value
            for row in history(train(**chosen, log_every=n).folder / "metrics.jsonl")
        }
        for n in (1, 4)
    )
    for name in names[:4]:
        assert [step for each, step in some if each == name] == [4, 8, 10]
    ours = {key: value for key, value in some.items() if key[0] in names}
    assert ours == {key: every[key] for key in ours}
    assert {key for key in every if key[0] == names[4]} == {
        key for key in some if key[0] == names[4]
    }
