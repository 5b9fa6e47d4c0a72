"""Probes of strangers' attention modules: right modules have no mistake, wrong ones theirs."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnlab.commands import main
from attnlab.errors import ExperimentError
from attnlab.inspection.probes import inspect_module
from attnlab.inspection.stranger import Sizes, Stranger, load

INFINITE = float("-inf")


def faults_of(module: nn.Module, sizes: Sizes = Sizes()) -> list[str]:  # noqa: B008
    found = inspect_module(Stranger(module, sizes))
    assert not [each.error for each in found if each.error]
    return [each.fault.name for each in found if each.fault is not None]


class Dot(nn.Module):
    """Scaled dot products of one query; each step can be replaced by a mistake."""

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Any:
        scores = self.scores(query, keys)
        weights = self.weights(scores, mask)
        return self.context(weights, keys, values), weights

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return torch.einsum("bd,bsd->bs", query, keys) / math.sqrt(keys.shape[-1])

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(~mask, INFINITE).softmax(-1)

    def context(self, weights: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return torch.einsum("bs,bsv->bv", weights, values)


class Additive(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.of_query = nn.Linear(16, 8, bias=False)
        self.of_keys = nn.Linear(16, 8)
        self.v = nn.Linear(8, 1, bias=False)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Any:
        scores = self.v(torch.tanh(self.of_query(query)[:, None] + self.of_keys(keys))).squeeze(-1)
        weights = scores.masked_fill(~mask, INFINITE).softmax(-1)
        return (weights[:, None] @ values).squeeze(1), weights


class General(Dot):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(16, 16, bias=False)

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return torch.einsum("bd,bsd->bs", self.w(query), keys)


class Several(nn.Module):
    """Scaled dot products of several queries, with projections."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(16, 16) for _ in range(4))

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Any:
        scores = self.q(query) @ self.k(keys).transpose(1, 2) / 4
        weights = self.weights(scores, mask)
        return self.out(weights @ self.v(values)), weights

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(~mask[:, None], INFINITE).softmax(-1)


class Heads(Several):
    """Two heads, split by a transposition; weights are means over the heads."""

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Any:
        q, k, v = self.split(self.q(query)), self.split(self.k(keys)), self.split(self.v(values))
        scores = (q @ k.transpose(2, 3) / math.sqrt(8)).masked_fill(~mask[:, None, None], INFINITE)
        weights = scores.softmax(-1)
        context = (weights @ v).transpose(1, 2).flatten(2)
        return self.out(context), weights

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (2, 8)).transpose(1, 2)


class Torch(nn.Module):
    """PyTorch's own, behind a few lines."""

    def __init__(self, heads: int = 2) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, heads, batch_first=True)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Any:
        return self.attention(query, keys, values, key_padding_mask=~mask)


class LargeNegative(Dot):
    """A finite number for minus infinity that fits in 16 bits."""

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1)


class WeightsFirst(Dot):
    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Any:
        context, weights = super().forward(query, keys, values, mask)
        return weights[:, None], context[:, None]


class InFloat32(Several):
    """The softmax is taken in 32 bits, as in models of mixed precision."""

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        masked = scores.masked_fill(~mask[:, None], INFINITE)
        return masked.softmax(-1, dtype=torch.float32).to(scores.dtype)


class WithDropout(Dot):
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        weights = super().weights(scores, mask)
        return nn.functional.dropout(weights, 0.5, training=self.training)


@pytest.mark.parametrize(
    "kind",
    [
        Dot,
        Additive,
        General,
        Several,
        Heads,
        Torch,
        LargeNegative,
        WeightsFirst,
        WithDropout,
        InFloat32,
    ],
)
def test_right_module_has_no_mistake(kind: type[nn.Module]) -> None:
    torch.manual_seed(1)
    assert faults_of(kind()) == []


class NoMask(Dot):
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.softmax(-1)


class Inverted(Dot):
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(mask, INFINITE).softmax(-1)


class ZeroScores(Dot):
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return (scores * mask).softmax(-1)


class SmallNegative(Dot):
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(~mask, -10.0).softmax(-1)


class MaskedAfterwards(Dot):
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.softmax(-1) * mask


class OverBatch(Dot):
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(~mask, INFINITE).softmax(0)


class OverQueries(Several):
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.softmax(1) * mask[:, None]


class FromKeys(Dot):
    def context(self, weights: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return torch.einsum("bs,bsv->bv", weights, keys)


class WithoutQuery(Dot):
    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return keys.sum(-1)


class Sigmoid(Dot):
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.sigmoid() * mask


class ScaledAfterwards(nn.Module):
    """Two heads, whose scale comes after the softmax; values are not projected."""

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (2, 8)).transpose(1, 2)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Any:
        q, k, v = self.split(query), self.split(keys), self.split(values)
        scores = (q @ k.transpose(2, 3)).masked_fill(~mask[:, None, None], INFINITE)
        weights = scores.softmax(-1) / math.sqrt(8)
        return (weights @ v).transpose(1, 2).flatten(2), weights


class Overflowing(Dot):
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(~mask, -1e9).softmax(-1)


class InPlace(Dot):
    def context(self, weights: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        values *= weights[..., None]
        return values.sum(1)


class Detached(General):
    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return super().scores(query, keys).detach()


class Unused(Dot):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(16, 16)


class AlwaysDropout(Dot):
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return nn.functional.dropout(super().weights(scores, mask), 0.5)


class Squeezed(Dot):
    def context(self, weights: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return (weights[:, None] @ values).squeeze()


class WrongHeads(Heads):
    """Heads split by a view in place of a transposition."""

    def split(self, x: Tensor) -> Tensor:
        return x.reshape(len(x), 2, -1, 8)


class FixedLength(Dot):
    """The weights come from the query alone, for a greatest length, as in a known tutorial."""

    def __init__(self) -> None:
        super().__init__()
        self.places = nn.Linear(16, 10)

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.places(query)[:, : keys.shape[1]]


class ScoresShown(Dot):
    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Any:
        context, _ = super().forward(query, keys, values, mask)
        return context, self.scores(query, keys)


@pytest.mark.parametrize(
    ("kind", "faults"),
    [
        (NoMask, ["no mask"]),
        (Inverted, ["mask the wrong way round"]),
        (ZeroScores, ["mask that leaks"]),
        (SmallNegative, ["mask that leaks"]),
        (MaskedAfterwards, ["masked after the softmax"]),
        (OverBatch, ["sentences of a batch mix"]),
        (OverQueries, ["queries mix"]),
        (FromKeys, ["context from the keys"]),
        (WithoutQuery, ["query not read"]),
        (Sigmoid, ["weights do not sum to one"]),
        (ScaledAfterwards, ["weights do not sum to one"]),
        (Overflowing, ["mask that overflows in 16 bits"]),
        (InPlace, ["inputs are changed"]),
        (Detached, ["parameters that are not learnt"]),
        (Unused, ["parameters that are not learnt"]),
        (AlwaysDropout, ["evaluation draws at random"]),
        (Squeezed, ["fails for a batch of one"]),
        (WrongHeads, ["queries mix", "order of the tokens matters"]),
        (FixedLength, ["keys not read", "order of the tokens matters", "source lengths are fixed"]),
        (ScoresShown, ["weights that are not those of the context"]),
    ],
)
def test_mistake_is_named(kind: type[nn.Module], faults: list[str]) -> None:
    torch.manual_seed(1)
    assert faults_of(kind()) == faults


def test_module_with_sizes_of_its_own_is_called_with_them() -> None:
    class Sized(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Linear(6, 10, bias=False)

        def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
            scores = torch.einsum("bd,bsd->bs", self.w(query), keys)
            weights = scores.masked_fill(~mask, INFINITE).softmax(-1)
            return torch.einsum("bs,bsv->bv", weights, values)

    assert faults_of(Sized(), Sizes(query=6, key=10, value=12)) == []
    with pytest.raises(ExperimentError, match=r"queries 16 \(--query-size\)"):
        Stranger(Sized(), Sizes())


def test_adapter_of_the_page_has_no_mistake() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "inspect.md"
    (code,) = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    assert faults_of(namespace["adapted"]()) == []


FILE = """\
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()

    def forward(self, query, keys, values, mask):
        weights = torch.einsum("bd,bsd->bs", query, keys).softmax(-1)
        return torch.einsum("bs,bsv->bv", weights, values), weights


def small():
    return Attention(8)


class Right(Attention):
    def __init__(self):
        super().__init__(8)

    def forward(self, query, keys, values, mask):
        scores = torch.einsum("bd,bsd->bs", query, keys).masked_fill(~mask, -torch.inf)
        return torch.einsum("bs,bsv->bv", scores.softmax(-1), values)


def number():
    return 3
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "my_model.py").write_text(FILE, encoding="utf-8")
    return str(tmp_path / "my_model.py")


def test_command_names_a_mistake_and_ends_with_an_error(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["inspect", f"{file}:small"])
    assert ended.value.code == 1
    said = capsys.readouterr().out
    assert "-- pads take no part: NO MASK" in said
    assert "1 mistake(s) found" in said


def test_command_says_that_a_right_module_has_none(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", f"{file}:Right"]) == 0
    said = capsys.readouterr().out
    assert said.count("ok ") == 13
    assert "no mistake found" in said


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("{file}", "inspect takes FILE.py:NAME"),
        ("{file}:Other", "has no class and no function Other"),
        ("{file}:Attention", "Attention needs size; write a function without arguments"),
        ("{file}:number", "must make a torch.nn.Module, got int"),
        ("missing.py:Attention", "there is no file missing.py"),
    ],
)
def test_module_that_cannot_be_made_is_a_sentence(file: str, target: str, sentence: str) -> None:
    with pytest.raises(ExperimentError, match=sentence):
        load(target.format(file=file))


class Turned(Dot):
    """The weights come first."""

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Any:
        context, weights = super().forward(query, keys, values, mask)
        return weights, context


@pytest.mark.parametrize("kind", [Dot, Turned])
@pytest.mark.parametrize("size", [1, 3, 4, 5, 7, 8, 21, 24])
def test_values_as_wide_as_a_source_is_long_are_told_from_weights(
    kind: type[nn.Module], size: int
) -> None:
    assert faults_of(kind(), Sizes(value=size)) == []


def test_mistake_is_found_whatever_the_width_of_values() -> None:
    usual = faults_of(NoMask())
    assert usual
    for size in (1, 7, 8):
        assert faults_of(NoMask(), Sizes(value=size)) == usual
