"""Explanations: relevances, grades of a known map, and tests of attention.

Relevances are compared with changes made by hand, the tests of attention with scipy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from scipy.stats import kendalltau
from test_classifier import build
from torch import Tensor

from attnlab.batch import EOS, Batch, Padding
from attnlab.data.padding import Ragged, make_batch, pad_labelled
from attnlab.evaluation.alignments import AlignmentStatistics
from attnlab.evaluation.attention_statistics import jensen_shannon, total_variation
from attnlab.evaluation.explanations import (
    METHODS,
    adversarial_attention,
    depends_on_source,
    grades,
    is_attention_explanation,
    relevances,
)
from attnlab.model.attention.intervention import Intervention
from attnlab.model.fast.encoder import FastEncoder

FED = {"history": "coverage", "input_feeding": "attentional_hidden", "decoder": "step_then_attend"}
SENTENCES = [[5, 4, 9, 7], [6, 8], [10, 4, 8, 8, 5, 9, 4]]


def log_probs(model: Any, batch: Batch, change: Intervention | None = None) -> Tensor:
    """(T,) of the first sentence."""
    every = model.output(model(batch, intervention=change).reading).log_softmax(-1)
    return every.gather(2, batch.target_output.unsqueeze(2)).squeeze(2)[0].detach()


@pytest.mark.parametrize(
    "choices", [{}, {"decoder": "no_attention"}, FED, {"attention": "dot", "heads": 2}], ids=str
)
@pytest.mark.parametrize("padding", [Padding("pre", "post"), Padding("post", "pre")], ids=str)
def test_relevances_equal_changes_made_by_hand(
    tiny_model, pairs, padding: Padding, choices: dict[str, Any]
) -> None:
    model, (sources, targets) = (
        tiny_model(padding=padding, scale=2.0, **choices),
        pairs(target_lengths=(3, 6, 2, 4)),
    )
    attends, batch = model.decoder.attention is not None, make_batch(sources, targets, padding)
    found = relevances(model, batch, METHODS if attends else METHODS[2:], steps=60)
    real = batch.target_mask.unsqueeze(2) & batch.source_mask.unsqueeze(1)
    assert not any(relevance[~real].any() for relevance in found.values())

    source, target, t, s = sources[2], targets[2], 1, 3
    own = {name: relevance[2][real[2]].view(3, 8) for name, relevance in found.items()}
    alone, others = make_batch([source], [target], padding), torch.arange(8) != s
    embedded, width, close = (
        model.encoder.embedding(alone.source).detach(),
        1e-5,
        {"rtol": 1e-5, "atol": 1e-8},
    )

    def at(vectors: Tensor) -> Tensor:
        with model.encoder.embedding.register_forward_hook(lambda *_: vectors):
            return log_probs(model, alone)

    # (E, S, E)
    nudges = width * torch.eye(embedded.shape[2], dtype=torch.float64)[:, None] * ~others[:, None]
    gradient = torch.stack(
        [at(embedded + nudge)[t] - at(embedded - nudge)[t] for nudge in nudges]
    ) / (2 * width)
    torch.testing.assert_close(own["gradient"][t, s], gradient.norm(), **close)
    torch.testing.assert_close(
        own["gradient_input"][t, s], (gradient @ embedded[0, s]).abs(), **close
    )
    torch.testing.assert_close(
        own["integrated_gradients"].sum(1), at(embedded) - at(0 * embedded), **close
    )
    shorter = make_batch([source[:s] + source[s + 1 :]], [target], padding)
    torch.testing.assert_close(
        own["leave_one_out"][:, s], log_probs(model, alone) - log_probs(model, shorter), **close
    )
    if not attends:
        with pytest.raises(
            ValueError, match=r"methods must be among gradient, .* for this model, got attention$"
        ):
            relevances(model, batch, ["attention"])
    elif model.decoder.attention.heads == 1:
        weights = own["attention"][t] * others
        hidden = log_probs(
            model, alone, Intervention(weights={t: (weights / weights.sum()).tolist()})
        )
        change = (log_probs(model, alone) - hidden)[t]
        torch.testing.assert_close(own["attention_intervention"][t, s], change, **close)


def test_grades_of_the_known_map_are_perfect_and_of_a_shifted_one_worse(tiny_model, copies) -> None:
    batch = copies.split("test").batch(np.arange(24), Padding("post", "post"))
    known = torch.eye(batch.source.shape[1]).expand(24, -1, -1)
    perfect, shifted, expected = (AlignmentStatistics() for _ in range(3))
    perfect.update_batch(known, batch, copies)
    shifted.update_batch(known.roll(1, dims=1), batch, copies)
    assert perfect.metrics() == {
        "aer": 0, "alignment_precision": 1, "alignment_recall": 1, "alignment_mass": 1,
    }  # fmt: skip
    assert shifted.metrics()["aer"] > 0.5
    sizes = {
        f"{side}_vocabulary_size": getattr(copies, f"{side}_tokenizer").size
        for side in ("source", "target")
    }
    model = tiny_model(**sizes)
    batch = copies.split("test").batch(np.arange(10), model.padding)
    expected.update_batch(relevances(model, batch, ["gradient"])["gradient"], batch, copies)
    graded = grades(model, copies, ["attention", "gradient"], sentences=10)
    assert graded["gradient"].every_token.metrics() == expected.metrics()
    assert "alignment_mass" not in graded["gradient"].metrics()  # relevances are no weights
    assert isinstance(model.encoder, FastEncoder)  # `grades` speeds its model up


def test_token_depends_on_the_source_where_another_one_halves_its_probability(
    tiny_model, copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    split, padding = copies.split("test"), Padding("post", "post")
    batch, others = split.batch(np.arange(2), padding), split.batch(np.array([1, 0]), padding)
    own = torch.full(batch.target_output.shape, -1.0)
    falls = torch.tensor([math.log(2) + 1e-5, math.log(2) - 1e-5, -3.0])[: own.shape[1]]

    def log_probs(model: Any, asked: Any) -> torch.Tensor:
        is_own = torch.equal(asked.source, batch.source)
        return (
            own if is_own else own - torch.nn.functional.pad(falls, (0, own.shape[1] - len(falls)))
        )

    monkeypatch.setattr("attnlab.evaluation.explanations._log_probs", log_probs)
    found = depends_on_source(tiny_model(), batch, others)
    assert found[:, :2].tolist() == [[True, False]] * 2
    assert not found[:, 2:].any()


def test_grades_of_dependent_tokens_count_their_links_alone(copies) -> None:
    batch = copies.split("test").batch(np.arange(24), Padding("post", "post"))
    known = torch.eye(batch.source.shape[1]).expand(24, -1, -1)
    first = torch.zeros_like(batch.target_mask)
    first[:, 0] = True
    # Right for the first token, wrong for all others.
    wrong_behind = torch.cat([known[:, :1], known[:, 1:].roll(1, dims=2)], dim=1)
    every_token, dependent = AlignmentStatistics(), AlignmentStatistics()
    every_token.update_batch(wrong_behind, batch, copies)
    dependent.update_batch(wrong_behind, batch, copies, first)
    assert dependent.metrics()["alignment_precision"] == 1
    assert every_token.metrics()["alignment_precision"] < 0.9
    assert [counts.sure for counts in dependent.by_sentence.values()] == [1] * 24


@pytest.mark.parametrize("side", ["pre", "post"])
@pytest.mark.parametrize("num_classes", [2, 3])
def test_is_attention_explanation_equals_its_definitions(num_classes: int, side: Any) -> None:
    model = build(num_classes, Padding(encoder=side))
    batch = pad_labelled(
        Ragged.from_rows(SENTENCES), np.zeros(3, np.int64), np.arange(3), model.padding
    )
    found, seen, width = (
        is_attention_explanation(model, batch, permutations=3),
        (batch.source, batch.source_mask),
        1e-5,
    )
    assert isinstance(model.encoder, FastEncoder)  # it speeds its model up
    classified = model(*seen)
    log_y = classified.log_probabilities.detach()
    weights = classified.attention_weights.detach()
    y, values = log_y.exp(), model.read(*seen).values.detach()

    def outputs(tried: Tensor, values: Tensor = values) -> Tensor:
        return model.decide((tried.unsqueeze(-2) @ values).squeeze(-2)).exp()

    def scaled(i: int, s: int, factor: float) -> float:
        # (B, S, 1)
        factors = torch.ones_like(weights).index_fill(1, torch.tensor(s), factor).unsqueeze(2)
        with model.encoder.embedding.register_forward_hook(lambda *args: args[2] * factors):
            return outputs(weights, model.read(*seen).values)[i, y[i].argmax()].item()

    for i, sentence in enumerate(SENTENCES):
        places = batch.source_mask[i].nonzero()[:-1, 0].tolist()
        slopes = [abs(scaled(i, s, 1 + width) - scaled(i, s, 1 - width)) for s in places]
        assert found["tau_gradient"][i] == pytest.approx(
            kendalltau(weights[i, places], slopes).statistic
        )
        shorter = [[*sentence[:s], *sentence[s + 1 :], EOS] for s in range(len(sentence))]
        left = [model(torch.tensor([ids]), torch.ones(1, len(ids)) > 0) for ids in shorter]
        lost = [
            float((each.log_probabilities.exp() - y[i]).abs().sum().detach() / 2) for each in left
        ]
        assert found["tau_leave_one_out"][i] == pytest.approx(
            kendalltau(weights[i, places], lost).statistic
        )
    orders = [model(*seen, Intervention(kind="permuted", seed=seed)) for seed in range(3)]
    moved = [(each.log_probabilities.exp() - y).abs().sum(1).detach() / 2 for each in orders]
    assert found["permuted_tvd"] == pytest.approx(np.median(moved, axis=0))

    adversarial = adversarial_attention(outputs, weights, batch.source_mask, epsilon=0.01)
    assert total_variation(outputs(adversarial), y).max() < 0.01 + 1e-9
    assert not adversarial[~batch.source_mask].any()
    torch.testing.assert_close(adversarial.sum(1), torch.ones(3, dtype=torch.float64))
    distances = [jensenshannon(p, q) ** 2 for p, q in zip(adversarial, weights, strict=True)]
    assert max(distances) > 0.2
    assert found["adversarial_jsd"] == pytest.approx(distances)
    assert (total_variation(*torch.eye(2)), jensen_shannon(*torch.eye(2))) == (
        1,
        pytest.approx(math.log(2)),
    )
