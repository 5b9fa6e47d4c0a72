"""Relevance of source tokens, graded by alignments, and tests of attention as an explanation.

Axes: B batch, S source, T target, N target tokens of the batch, E embedding, D encoder output, C
    classes, K permutations or trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from captum.attr import LayerGradientXActivation, LayerIntegratedGradients
from scipy.stats import kendalltau  # type: ignore[import-untyped]
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attnlab.batch import EOS, PAD, Batch, LabelledBatch
from attnlab.data.prepared import PreparedData
from attnlab.evaluation.attention_statistics import jensen_shannon, total_variation
from attnlab.evaluation.grades import Grades
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.memory import count_positions, rows_of
from attnlab.model.classifier import Classifier
from attnlab.model.encoders.encoder import Encoder
from attnlab.model.fast import speed_up
from attnlab.model.pads import pads_last, reorder
from attnlab.model.seq2seq import Seq2Seq

WITHOUT_ATTENTION = ("gradient", "gradient_input", "integrated_gradients", "leave_one_out")
METHODS = ("attention", "attention_intervention", *WITHOUT_ATTENTION)

_BATCH_SIZE = 64


@torch.no_grad()
def relevances(
    model: Seq2Seq, batch: Batch, methods: Sequence[str], steps: int = 20
) -> dict[str, Tensor]:
    """How relevant each source token is to each target token: (B, T, S) by method, 0 at pads.

    The model must be in evaluation mode; the reference is the decoder's input. With y the
    log-probability in nats of target token t and e_s the embedding of source token s:

    attention: the weights, mean over the heads.
    attention_intervention: y less y with s hidden from the attention at step t alone (Serrano and
        Smith 2019).
    gradient, gradient_input: the Euclidean norm of ∂y/∂e_s; |e_s · ∂y/∂e_s|.
    integrated_gradients: e_s · the mean of ∂y/∂e_s at `steps` points between `<pad>` in place of
        every token, whose embedding is zero (unless tied to the output layer), and the source
        (Sundararajan et al. 2017, section 3).
    leave_one_out: y less y of the source without s; the tokens behind it move up (Li, Monroe and
        Jurafsky 2016).

    The last two and the intervention have signs: above 0, s speaks for the target token.
    """
    supported = WITHOUT_ATTENTION if model.decoder.attention is None else METHODS
    unsupported = set(methods) - set(supported)
    if unsupported:
        raise ValueError(
            f"methods must be among {', '.join(supported)} for this model, got "
            f"{', '.join(sorted(unsupported))}"
        )
    real = batch.target_mask.unsqueeze(2) & batch.source_mask.unsqueeze(1)  # (B, T, S)
    found = {}
    for method in methods:
        found[method] = _relevance(model, batch, method, steps).masked_fill(~real, 0)
    return found


def grades(
    model: Seq2Seq,
    data: PreparedData,
    methods: Sequence[str],
    sentences: int = 500,
    steps: int = 20,
) -> dict[str, Grades]:
    """For each method, how its most relevant source tokens agree with the known alignments.

    Measured on the first sentences of the test split.
    """
    speed_up(model)
    split = data.split("test")
    device = next(model.parameters()).device
    found = {method: Grades() for method in methods}
    count = min(sentences, len(split))
    for start in range(0, count, _BATCH_SIZE):
        rows = np.arange(start, min(start + _BATCH_SIZE, count))
        batch = split.batch(rows, model.padding).to(device)
        others = split.batch((rows + 1) % count, model.padding).to(device)
        dependent = depends_on_source(model, batch, others)
        for method, relevance in relevances(model, batch, methods, steps).items():
            found[method].every_token.update_batch(relevance, batch, data)
            found[method].dependent.update_batch(relevance, batch, data, dependent)
    return found


@torch.no_grad()
def depends_on_source(model: Seq2Seq, batch: Batch, others: Batch) -> Tensor:
    """(B, T): the target tokens that are at most half as likely under the source of another row.

    The model must be in evaluation mode; the reference is the decoder's input.

    others: whose sources the rows get, with the rows' own targets.
    """
    exchanged = replace(batch, source=others.source, source_mask=others.source_mask)
    fall = _log_probs(model, batch) - _log_probs(model, exchanged)  # (B, T), in nats
    return (fall >= math.log(2)) & batch.target_mask


def _relevance(model: Seq2Seq, batch: Batch, method: str, steps: int) -> Tensor:
    """(B, T, S), with any number at pads."""
    if method == "attention":
        return cast(Tensor, model(batch).attention_weights)
    if method == "attention_intervention":
        return _attention_intervention(model, batch)
    if method == "leave_one_out":
        return _leave_one_out(lambda shorter: _log_probs(model, shorter), batch, torch.sub)
    return _gradient_relevance(model, batch, method, steps)


def _gradient_relevance(model: Seq2Seq, batch: Batch, method: str, steps: int) -> Tensor:
    """(B, T, S): the methods that differentiate with respect to the source's embeddings."""
    # Captum differentiates one output a row, so each target token has its own copy of its sentence.
    rows, targets = batch.target_mask.nonzero(as_tuple=True)  # (N,) each

    def log_probs(source: Tensor, rows: Tensor) -> Tensor:  # (N, S), (N,) -> (N, T)
        return _log_probs(model, replace(rows_of(batch, rows), source=source))

    embedding = source_embedding(model.encoder)
    sources = batch.source[rows]
    arguments = {"target": targets, "additional_forward_args": rows}
    with torch.backends.cudnn.flags(enabled=False):  # cuDNN has no gradients in evaluation mode
        if method == "integrated_gradients":
            integrated = LayerIntegratedGradients(log_probs, embedding)
            by_embedding = integrated.attribute(
                sources, PAD, n_steps=steps, internal_batch_size=len(rows), **arguments
            )
            found = by_embedding.sum(2)
        elif method == "gradient_input":
            point = LayerGradientXActivation(log_probs, embedding, multiply_by_inputs=True)
            found = point.attribute(sources, **arguments).sum(2).abs()
        else:
            point = LayerGradientXActivation(log_probs, embedding, multiply_by_inputs=False)
            found = point.attribute(sources, **arguments).norm(dim=2)
    empty = found.new_zeros(*batch.target_mask.shape, found.shape[1])  # (B, T, S)
    return empty.index_put((rows, targets), found)


def source_embedding(encoder: Encoder) -> nn.Embedding:
    """The layer with respect to whose outputs gradients are taken.

    Raises ValueError for an encoder that names none.
    """
    if encoder.embedding is None:
        raise ValueError(
            "gradients with respect to the source need an encoder that names its source "
            f"embedding, but {type(encoder).__name__} has None for embedding; choose methods "
            "without a gradient, such as leave_one_out"
        )
    return encoder.embedding


def _log_probs(model: Seq2Seq, batch: Batch) -> Tensor:
    """(B, T), of the reference's tokens."""
    logits = model.output(model(batch).reading)  # (B, T, V)
    return -cross_entropy(logits.mT, batch.target_output, reduction="none")


def _leave_one_out(
    output: Callable[[Any], Tensor], batch: Any, change: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """(..., S): `change` between the output for the batch and that without each source token."""
    whole = output(batch)
    source_length = batch.source.shape[1]
    columns = torch.arange(source_length, device=batch.source.device)
    changes = []
    for left_out in range(source_length):
        others = columns != left_out
        shorter = replace(
            batch, source=batch.source[:, others], source_mask=batch.source_mask[:, others]
        )
        changes.append(change(whole, output(shorter)))
    return torch.stack(changes, dim=-1)


def _attention_intervention(model: Seq2Seq, batch: Batch) -> Tensor:
    """(B, T, S): by how much the log-probability of t falls where s is hidden at step t."""
    memory, state = model.encode(batch.source, batch.source_mask)
    # Position s of an intervention counts real tokens, pads behind them.
    hidden_memories = []
    for s in range(batch.source.shape[1]):
        hidden_memories.append(memory.under(Intervention(hide=[s])))

    # In the order in which the model's own pass over the reference takes the steps.
    order = pads_last(batch.target_mask | (model.padding.recurrence == "read"))
    inputs = reorder(batch.target_input, order)
    outputs = reorder(batch.target_output, order)
    positions = count_positions(reorder(batch.target_mask, order))

    changes = []
    for t in range(inputs.shape[1]):
        # What is hidden is hidden at this step alone: the next one starts from the unchanged state.
        at_step = replace(state, position=positions[:, t])
        logits, state, _ = model.step(inputs[:, t], at_step, memory)
        nll = cross_entropy(logits, outputs[:, t], reduction="none")  # (B,)
        nll_without = []
        for hidden_memory in hidden_memories:
            logits, _, _ = model.step(inputs[:, t], at_step, hidden_memory)
            nll_without.append(cross_entropy(logits, outputs[:, t], reduction="none"))
        changes.append(torch.stack(nll_without, dim=1) - nll.unsqueeze(1))  # (B, S)

    by_position = reorder(torch.stack(changes, dim=1), order.argsort(dim=1))  # (B, T, S)
    columns = memory.named_positions.unsqueeze(1).expand(-1, len(changes), -1)
    return by_position.gather(2, columns)


@torch.no_grad()
def is_attention_explanation(
    classifier: Classifier, batch: LabelledBatch, permutations: int = 100, **adversary: Any
) -> dict[str, list[float]]:
    """The measures of Jain and Wallace 2019, "Attention is not Explanation", of each sentence.

    The classifier must be in evaluation mode, with one head. y are the probabilities of its
    classes.

    prediction: the number of the likeliest class.
    tau_gradient, tau_leave_one_out: Kendall's tau-b of the weight and an importance, over all
        tokens but `<eos>`: at fixed weights |e_s · ∂y/∂e_s| of the prediction, or the total
        variation distance of y and y without s (section 4.1). NaN for one token, or where either is
        constant.
    permuted_tvd: the median distance of y and y with the weights in random orders (section 4.2.1).
    adversarial_jsd: from the weights to those of `adversarial_attention`, with these settings
        (section 4.2.2).
    """
    if classifier.attention.heads > 1:
        raise ValueError("several heads have no one attention to explain; choose model/heads=one")
    if not classifier.attention.rows_sum_to_one:
        raise ValueError(
            "divergences of weights are those of distributions, but the weights of this normaliser "
            "need not sum to 1; choose model/normaliser=softmax"
        )
    speed_up(classifier)
    source = batch.source
    mask = batch.source_mask
    words = mask & (source != EOS)
    memory = classifier.read(source, mask)
    weights = classifier(source, mask).attention_weights

    def probabilities(batch: LabelledBatch, change: Intervention | None = None) -> Tensor:  # (B, C)
        return classifier(batch.source, batch.source_mask, change).log_probabilities.exp()

    def at_weights(weights: Tensor, memory: Any) -> Tensor:  # (..., B, S) -> (..., B, C)
        context = (weights.unsqueeze(-2) @ memory.values).squeeze(-2)
        return classifier.decide(context).exp()

    y = probabilities(batch)

    # 4.1: does a token with more weight matter more?
    fixed_weights = LayerGradientXActivation(
        lambda ids: at_weights(weights, classifier.read(ids, mask)),
        source_embedding(classifier.encoder),
    )
    with torch.backends.cudnn.flags(enabled=False):  # cuDNN has no gradients in evaluation mode
        gradients = fixed_weights.attribute(source, target=y.argmax(1)).sum(2).abs()  # (B, S)
    left_out = _leave_one_out(probabilities, batch, total_variation)  # (B, S)

    # 4.2.1: does the order of the weights matter?
    changes = []
    for seed in range(permutations):
        permuted = probabilities(batch, Intervention(kind="permuted", seed=seed))
        changes.append(total_variation(permuted, y))
    permuted_tvd = torch.stack(changes).quantile(0.5, dim=0)  # (K, B) -> (B,)

    # 4.2.2: do very different weights give the same answer?
    adversarial = adversarial_attention(
        lambda tried: at_weights(tried, memory), weights, mask, **adversary
    )
    return {
        "prediction": y.argmax(1).tolist(),
        "tau_gradient": _kendall_taus(weights, gradients, words),
        "tau_leave_one_out": _kendall_taus(weights, left_out, words),
        "permuted_tvd": permuted_tvd.tolist(),
        "adversarial_jsd": jensen_shannon(adversarial, weights).tolist(),
    }


def _kendall_taus(weights: Tensor, importance: Tensor, words: Tensor) -> list[float]:
    """Kendall's tau-b of two rankings (B, S) of each sentence's words; NaN for a single word."""
    taus = []
    for ours, theirs, is_word in zip(weights.cpu(), importance.cpu(), words.cpu(), strict=True):
        tau = np.nan
        if is_word.sum() > 1:
            tau = float(kendalltau(ours[is_word], theirs[is_word]).statistic)
        taus.append(tau)
    return taus


def adversarial_attention(
    outputs: Callable[[Tensor], Tensor],
    weights: Tensor,
    mask: Tensor,
    epsilon: float = 0.01,
    steps: int = 300,
) -> Tensor:
    """The weights farthest from `weights` with nearly the same outputs: (B, S), 0 at pads.

    Their `outputs` (B, C) move by `epsilon` at most. Jain and Wallace 2019, section 4.2.2, relaxed:
    Adam maximises divergence less a multiple of the distance in excess, from four random starts.
    The best of all steps is taken, at worst the weights given.
    """
    y = outputs(weights)
    best = weights
    sentences = torch.arange(len(weights))
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4, *weights.shape, generator=generator).to(weights).requires_grad_()
    adam = torch.optim.Adam([logits], lr=0.3)
    for _ in range(steps):
        with torch.enable_grad():
            tried = logits.masked_fill(~mask, -torch.inf).softmax(-1)  # (K, B, S)
            excess = (total_variation(outputs(tried), y) - epsilon).relu()  # (K, B)
            loss = (50 * excess - jensen_shannon(tried, weights)).sum()
            (logits.grad,) = torch.autograd.grad(loss, logits)
        adam.step()

        # Trials beyond epsilon count as the weights given, whose divergence is 0.
        within = tried.detach().where(excess.unsqueeze(2) == 0, weights)
        candidates = torch.cat([best[None], within])  # (1 + K, B, S)
        farthest = jensen_shannon(candidates, weights).argmax(0)
        best = candidates[farthest, sentences]
    return best
