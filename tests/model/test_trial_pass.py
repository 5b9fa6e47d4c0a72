"""A pass through a model with parts of the user's own, which finds what they return wrongly."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnlab.batch import Padding
from attnlab.errors import ExperimentError
from attnlab.experiment.composition import compose
from attnlab.model.attention.memory import Memory
from attnlab.model.attention.score import Score
from attnlab.model.encoders.encoder import Encoded, Encoder
from attnlab.model.histories.history import History, Remembered
from attnlab.model.histories.last_weights import LastWeights
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.model.outputs.output import Output, Reading
from attnlab.model.recurrence import RecurrentState, StateShape
from attnlab.model.trial_pass import trial_batch

SMALL = ("data=copy", "tracking=none", "model/attention=dot")


class ScoreOfOneQuery(Score):
    def __init__(self, *, query_size: int, key_size: int) -> None:
        super().__init__()
        self.W = nn.Linear(query_size, key_size)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return (self.W(query) * keys).sum(-1)  # (B, S)


class ScoreOfOtherWidths(ScoreOfOneQuery):
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys[..., 1:].transpose(1, 2)


class ScoreOfBrokenFile(ScoreOfOneQuery):
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query * json.loads("{")


class ScoreOfNothing(ScoreOfOneQuery):
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2) * torch.nan


class ScoreWithoutBaseConstructor(Score):
    def __init__(self, *, query_size: int, key_size: int) -> None:
        self.scale = query_size**-0.5

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.scale * query @ keys.transpose(1, 2)


class Sigmoid(Normaliser):
    def forward(self, scores: Tensor) -> Tensor:
        return scores.sigmoid()


class ShiftedSoftmax(Normaliser):
    def forward(self, scores: Tensor) -> Tensor:
        return scores.clamp(min=-1e4).softmax(-1) * 0 + 1 / scores.shape[-1]


class Tanh(Normaliser):
    rows_sum_to_one = False

    def forward(self, scores: Tensor) -> Tensor:
        return scores.masked_fill(scores == -torch.inf, 0).tanh() - (scores > -torch.inf).float()


class OwnHistory(LastWeights):
    def weigh(self, scores, normalise, past):
        return self.of(normalise(scores))

    def of(self, weights: Tensor) -> Tensor:
        raise NotImplementedError


class DoubledWeights(OwnHistory):
    def of(self, weights):
        return 2 * weights


class WeightsThatSeePads(OwnHistory):
    def of(self, weights):
        return torch.full_like(weights, 1 / weights.shape[-1])


class WeightsOfNothing(OwnHistory):
    def of(self, weights):
        return weights / 0 * 0


class WeightsWithHeads(OwnHistory):
    def of(self, weights):
        return weights.unsqueeze(1)


class NarrowKeys(LastWeights):
    def change_keys(self, keys, past):
        return keys[..., 1:]


class RootAtZero(ScoreOfOneQuery):
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return (0 * (self.W(query) @ keys.transpose(1, 2))).sqrt()


class Embeddings(Encoder):
    """Embeddings alone, whose mean is the state; pads count for nothing."""

    layers_told = 1

    def __init__(self, *, source_vocabulary_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(source_vocabulary_size, 128)
        self.output_size = 128
        self.state_shape = StateShape(layers=self.layers_told, size=128, has_cell=False)

    def forward(self, source: Tensor, source_mask: Tensor) -> Encoded:
        outputs = self.embedding(source).masked_fill(~source_mask.unsqueeze(2), 0)
        mean = outputs.sum(1) / source_mask.sum(1, keepdim=True)
        return Encoded(outputs, RecurrentState(mean.unsqueeze(0)))


class PadsInState(Embeddings):
    def forward(self, source: Tensor, source_mask: Tensor) -> Encoded:
        outputs = self.embedding(source)
        return Encoded(outputs, RecurrentState(outputs.mean(1).tanh().unsqueeze(0)))


class PadsInCell(Embeddings):
    def __init__(self, *, source_vocabulary_size: int) -> None:
        super().__init__(source_vocabulary_size=source_vocabulary_size)
        self.state_shape = StateShape(layers=1, size=128, has_cell=True)

    def forward(self, source: Tensor, source_mask: Tensor) -> Encoded:
        encoded = super().forward(source, source_mask)
        cell = self.embedding(source).mean(1).unsqueeze(0)
        return Encoded(encoded.outputs, RecurrentState(encoded.final.hidden, cell))


class TwoLayersTold(Embeddings):
    layers_told = 2


class PadsLeak(Embeddings):
    def forward(self, source: Tensor, source_mask: Tensor) -> Encoded:
        outputs = self.embedding(source)
        outputs = outputs + outputs.mean(1, keepdim=True)
        return Encoded(outputs, RecurrentState(outputs[:, 0].unsqueeze(0)))


class FlagForMethod(LastWeights):
    rows_sum_to_one = False  # type: ignore[assignment]


class ForgottenReturn(LastWeights):
    def after(self, past, query, context, weights):  # type: ignore[no-untyped-def]
        super().after(past, query, context, weights)


@dataclass(frozen=True)
class Counted(Remembered):
    count: Tensor


class CountOfTheBatch(LastWeights):
    """Counts the steps, once for all rows."""

    def first(self, memory: Memory) -> Counted:
        return Counted(super().first(memory).weights, torch.zeros(()))


class WeightsWithoutScores(History[Remembered]):
    """Looks at the same tokens for ever, so that nobody reads the scores."""

    makes_weights = True

    def first(self, memory: Memory) -> Remembered:
        return Remembered(torch.zeros(memory.positions.shape))

    def after(
        self, past: Remembered, query: Tensor, context: Tensor, weights: Tensor
    ) -> Remembered:
        return Remembered(weights)

    def weigh(self, scores: Tensor, normalise: Any, past: Remembered) -> Tensor:
        seen = scores.isfinite().to(scores.dtype)
        return seen / seen.sum(-1, keepdim=True)


class FewLogits(Output[Reading]):
    def __init__(self, *, readout_size: int) -> None:
        super().__init__()
        self.layer = nn.Linear(readout_size, 7)

    @property
    def vocabulary(self) -> nn.Linear:
        return self.layer

    def forward(self, reading: Reading) -> Tensor:
        return self.layer(reading.readout)


def problem(*overrides: str) -> str:
    with pytest.raises(ExperimentError) as refused:
        compose([*SMALL, *overrides])
    return str(refused.value)


def score(kind: type[Score]) -> str:
    return f"model.attention={{_target_: {__name__}.{kind.__name__}}}"


def encoder(kind: type[Encoder]) -> tuple[str, ...]:
    node = f"+model.encoder={{_target_: {__name__}.{kind.__name__}}}"
    return ("~model.encoder", node, "model/bridge=linear", "model.decoder.embedding_size=128")


def normaliser(kind: type[Normaliser]) -> str:
    return f"model.normaliser={{_target_: {__name__}.{kind.__name__}}}"


def test_score_of_another_shape_is_refused_with_both_shapes() -> None:
    assert problem(score(ScoreOfOneQuery)) == (
        "model: ScoreOfOneQuery returns scores of the shape (2, 3), expected (B, T, S) = (2, 1, 3)"
    )


def test_failing_part_is_refused_with_the_line_that_fails() -> None:
    found = problem(score(ScoreOfOtherWidths))
    where = rf"fails in {re.escape(__file__)}, line \d+, in forward: RuntimeError: "
    assert re.search(where, found)


def test_part_that_fails_in_the_standard_library_is_refused_with_its_own_line() -> None:
    found = problem(score(ScoreOfBrokenFile))
    where = rf"fails in {re.escape(__file__)}, line \d+, in forward: JSONDecodeError: "
    assert re.search(where, found)


def test_misspelt_class_of_ones_own_is_answered_with_the_nearest_one() -> None:
    found = problem(f"model.attention={{_target_: {__name__}.ScoreOfOneQuerry}}")
    assert f"{__name__} has no ScoreOfOneQuerry; did you mean {__name__}.ScoreOfOneQuery?" in found


def test_part_that_skips_the_base_constructor_is_refused() -> None:
    assert problem(score(ScoreWithoutBaseConstructor)).endswith(
        "ScoreWithoutBaseConstructor.__init__ must call super().__init__()"
    )


def test_weights_whose_rows_do_not_sum_to_one_are_refused_unless_they_say_so() -> None:
    assert "ShiftedSoftmax gives weight to a token that may not be seen" in problem(
        normaliser(ShiftedSoftmax)
    )
    found = problem(normaliser(Sigmoid))
    assert "but its rows_sum_to_one is true; set rows_sum_to_one = False in the class" in found


def test_negative_weights_are_refused_unless_the_class_says_so() -> None:
    found = problem(normaliser(Tanh))
    assert "Tanh returns negative weights, but its is_signed is false" in found


def test_encoder_whose_state_has_another_shape_is_refused() -> None:
    assert problem(*encoder(TwoLayersTold), "model/bridge=mean") == (
        "model: TwoLayersTold returns final.hidden of the shape (1, 2, 128), expected "
        "(state_shape.layers, B, state_shape.size) = (2, 2, 128)"
    )


def test_encoder_that_lets_pads_change_a_token_is_refused_unless_pads_are_read() -> None:
    assert "PadsLeak gives a token another vector when a pad stands beside the sentence" in (
        problem(*encoder(PadsLeak))
    )
    compose([*SMALL, *encoder(PadsLeak), "padding.recurrence=read"])


@pytest.mark.parametrize("kind", [PadsInState, PadsInCell])
def test_encoder_that_lets_pads_change_its_state_is_refused_unless_pads_are_read(kind) -> None:
    assert f"{kind.__name__} returns another final state when a pad stands beside" in (
        problem(*encoder(kind))
    )
    compose([*SMALL, *encoder(kind), "padding.recurrence=read"])


def test_score_of_nan_is_refused() -> None:
    assert "model: ScoreOfNothing returns NaN among the scores; " in problem(score(ScoreOfNothing))


def history(kind: type[History]) -> str:
    return f"model.history={{_target_: {__name__}.{kind.__name__}}}"


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (
            DoubledWeights,
            "with the sum 2.000, but its rows_sum_to_one is true; let rows_sum_to_one",
        ),
        (WeightsThatSeePads, "gives weight to a token that may not be seen"),
        (WeightsOfNothing, "returns NaN among the weights"),
        (
            WeightsWithHeads,
            "returns weights of the shape (2, 1, 3), expected (B, S), as the scores",
        ),
        (NarrowKeys, "returns keys of the shape (2, 3, 127), expected (B, S, A), as the keys"),
        (ForgottenReturn, "after must return a record of attnlab.model.histories.history.Rememb"),
        (CountOfTheBatch, "first returns count of the shape (), but its first axis must be the b"),
    ],
)
def test_history_that_breaks_its_promise_is_refused(kind, reason) -> None:
    found = problem(history(kind))
    assert found.startswith(f"model: {kind.__name__}")
    assert reason in found


def test_value_in_the_place_of_a_method_is_refused() -> None:
    assert problem(history(FlagForMethod)) == (
        "model.history: FlagForMethod has rows_sum_to_one = False, but History defines a method, "
        "rows_sum_to_one(self, of_normaliser)"
    )


def test_output_of_another_width_than_the_vocabulary_is_refused() -> None:
    node = f"model.output={{_target_: {__name__}.FewLogits}}"
    found = problem("~model.output", f"+{node}")
    assert re.search(
        r"model: FewLogits returns logits of the shape \(.*, 7\), expected \(\.\.\., V\)", found
    )


def test_weights_that_the_loss_does_not_depend_on_are_warned_of_once(capsys) -> None:
    sentence = "the loss does not depend on decoder.attention.score.v, decoder.attention.score.W"
    for _ in range(2):
        compose([*SMALL, "model/attention=bahdanau", history(WeightsWithoutScores)])
    assert capsys.readouterr().err.count(sentence) == 1
    compose([*SMALL, "model/attention=uniform", history(WeightsWithoutScores)])
    assert capsys.readouterr().err == ""


def test_gradient_that_is_no_number_is_refused() -> None:
    found = problem(score(RootAtZero))
    assert re.search(r"model: the gradient of \S+ is not finite; look for 0 / 0", found)


def test_trial_leaves_random_numbers_as_they_were() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    compose([*SMALL, *encoder(Embeddings)])
    assert torch.equal(torch.rand(2), expected)


@pytest.mark.parametrize("side", ["pre", "post"])
def test_trial_batch_has_a_pad_on_the_chosen_side(side) -> None:
    batch = trial_batch(Padding(encoder=side, decoder=side))
    place = 0 if side == "pre" else -1
    assert batch.source_mask[:, place].tolist() == [True, False]
    assert batch.target_mask[:, place].tolist() == [True, False]
    assert batch.num_target_tokens == 7
