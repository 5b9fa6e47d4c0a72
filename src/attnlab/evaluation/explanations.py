"""Explanations by source tokens: graded by known alignments, and Jain and Wallace's tests of a
classifier's attention.

Axes: B batch, S source, T target, N target tokens of the batch, D encoder output, C classes, K
    permutations or trials.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from captum.attr import LayerGradientXActivation, LayerIntegratedGradients
from scipy.stats import kendalltau  # type: ignore[import-untyped]
from torch import Tensor
from torch.nn.functional import cross_entropy

from attnlab.batch import EOS, PAD, Batch, LabelledBatch
from attnlab.data.prepared import PreparedData
from attnlab.evaluation.alignments import AlignmentStatistics
from attnlab.evaluation.attention_statistics import jensen_shannon, total_variation
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.memory import count_positions, rows_of
from attnlab.model.classifier import Classifier
from attnlab.model.pads import pads_last, reorder
from attnlab.model.seq2seq import Seq2Seq

WITHOUT_ATTENTION = ("gradient", "gradient_input", "integrated_gradients", "leave_one_out")
METHODS = ("attention", "attention_intervention", *WITHOUT_ATTENTION)


@torch.no_grad()
def relevances(
    model: Seq2Seq, batch: Batch, methods: Sequence[str], steps: int = 20
) -> dict[str, Tensor]:
    """How much each source token matters for each target token: (B, T, S) for each method, 0 at
    pads.

    The model must be in evaluation mode; the reference is fed. With y the log-probability in nats
    of target token t
    and e_s the embedding of source token s:

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
    fitting = WITHOUT_ATTENTION if model.decoder.attention is None else METHODS
    if unfit := set(methods) - set(fitting):
        raise ValueError(
            f"methods must be among {', '.join(fitting)} for this model, got "
            f"{', '.join(sorted(unfit))}"
        )
    real = batch.target_mask.unsqueeze(2) & batch.source_mask.unsqueeze(1)  # (B, T, S)
    return {
        method: _relevance(model, batch, method, steps).masked_fill(~real, 0) for method in methods
    }


def grades(
    model: Seq2Seq,
    data: PreparedData,
    methods: Sequence[str],
    sentences: int = 500,
    steps: int = 20,
) -> dict[str, AlignmentStatistics]:
    """For each method, how the most relevant source token of each target token agrees with the
    known alignments.

    Measured on the first sentences of the test split. `metrics()["aer"]` is the alignment error
    rate, and `metrics()["alignment_precision"]` the precision at 1 over the target tokens that have
    links.
    """
    split, found = data.split("test"), {method: AlignmentStatistics() for method in methods}
    count = min(sentences, len(split))
    for rows in np.split(np.arange(count), range(64, count, 64)):
        batch = split.batch(rows, model.padding).to(model.output.weight.device)
        for method, relevance in relevances(model, batch, methods, steps).items():
            found[method].update_batch(relevance, batch, data)
    return found


def _relevance(model: Seq2Seq, batch: Batch, method: str, steps: int) -> Tensor:
    if method == "attention":
        return cast(Tensor, model(batch).attention_weights)
    if method == "attention_intervention":
        return _attention_intervention(model, batch)
    if method == "leave_one_out":
        return _leave_one_out(lambda shorter: _log_probs(model, shorter), batch, torch.sub)
    rows, targets = batch.target_mask.nonzero(as_tuple=True)  # (N,) each

    def log_probs(source: Tensor, rows: Tensor) -> Tensor:  # (N, S), (N,) -> (N, T)
        return _log_probs(model, replace(rows_of(batch, rows), source=source))

    embedding, inputs = model.encoder.embedding, batch.source[rows]
    given = {"target": targets, "additional_forward_args": rows}
    with torch.backends.cudnn.flags(enabled=False):  # cuDNN has no gradients in evaluation mode
        if method == "integrated_gradients":
            path = LayerIntegratedGradients(log_probs, embedding)
            found = path.attribute(
                inputs, PAD, n_steps=steps, internal_batch_size=len(rows), **given
            ).sum(2)
        else:
            point = LayerGradientXActivation(
                log_probs, embedding, multiply_by_inputs=method == "gradient_input"
            )
            found = point.attribute(inputs, **given)  # (N, S, E)
            found = found.norm(dim=2) if method == "gradient" else found.sum(2).abs()
    return found.new_zeros(*batch.target_mask.shape, found.shape[1]).index_put(
        (rows, targets), found
    )


def _log_probs(model: Seq2Seq, batch: Batch) -> Tensor:
    # (B, T)
    return -cross_entropy(
        model.output(model(batch).readout).mT, batch.target_output, reduction="none"
    )


def _leave_one_out(
    output: Callable[[Any], Tensor], batch: Any, change: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """(..., S): `change` between the output for the batch and that without each source token."""
    whole, others = (
        output(batch),
        ~torch.eye(batch.source.shape[1], dtype=torch.bool, device=batch.source.device),
    )
    shorter = (
        replace(batch, source=batch.source[:, kept], source_mask=batch.source_mask[:, kept])
        for kept in others
    )
    return torch.stack([change(whole, output(each)) for each in shorter], dim=-1)


def _attention_intervention(model: Seq2Seq, batch: Batch) -> Tensor:
    memory, state = model.encode(batch.source, batch.source_mask)
    seen = [memory, *(memory.under(Intervention(hide=[s])) for s in range(batch.source.shape[1]))]
    # As in the model's own pass
    order = pads_last(batch.target_mask | (model.padding.recurrence == "read"))
    inputs, outputs, mask = (
        reorder(x, order) for x in (batch.target_input, batch.target_output, batch.target_mask)
    )
    positions, changes = count_positions(mask), []
    for t in range(inputs.shape[1]):
        steps = [
            model.step(inputs[:, t], replace(state, position=positions[:, t]), each)
            for each in seen
        ]
        nll = torch.stack(
            [cross_entropy(logits, outputs[:, t], reduction="none") for logits, _, _ in steps],
            dim=1,
        )
        changes.append(nll[:, 1:] - nll[:, :1])  # (B, S): s counts real tokens
        state = steps[0][1]
    columns = memory.positions.unsqueeze(1).expand(-1, len(changes), -1)
    # (B, T, S)
    return reorder(torch.stack(changes, dim=1), order.argsort(dim=1)).gather(2, columns)


@torch.no_grad()
def is_attention_explanation(
    classifier: Classifier, batch: LabelledBatch, permutations: int = 100, **adversary: Any
) -> dict[str, list[float]]:
    """The measures of Jain and Wallace 2019, "Attention is not Explanation": a value for each
    sentence.

    The classifier must be in evaluation mode, with one head. y are the probabilities of its
    classes.

    prediction: the number of the likeliest class.
    tau_gradient, tau_leave_one_out: Kendall's tau-b of the weight and an importance, over all
        tokens but `<eos>`: at fixed weights |e_s · ∂y/∂e_s| of the prediction, or the total
        variation distance of y and y without s
        (section 4.1). NaN for one token, or where either is constant.
    permuted_tvd: the median distance of y and y with the weights in random orders (section 4.2.1).
    adversarial_jsd: from the weights to those of `adversarial_attention`, with these settings
        (section 4.2.2).
    """
    if classifier.attention.heads > 1:
        raise ValueError("several heads have no one attention to explain; choose model/heads=one")
    source, mask, words = batch.source, batch.source_mask, batch.source_mask & (batch.source != EOS)
    memory, weights = classifier.read(source, mask), classifier(source, mask).attention_weights

    def probabilities(batch: LabelledBatch, change: Intervention | None = None) -> Tensor:  # (B, C)
        return classifier(batch.source, batch.source_mask, change).log_probabilities.exp()

    def at_weights(weights: Tensor, memory: Any) -> Tensor:  # (..., B, S) -> (..., B, C)
        return classifier.decide((weights.unsqueeze(-2) @ memory.values).squeeze(-2)).exp()

    def taus(importance: Tensor) -> list[float]:
        pairs = (
            (a[real], b[real])
            for a, b, real in zip(weights.cpu(), importance.cpu(), words.cpu(), strict=True)
        )
        return [float(kendalltau(a, b).statistic) if len(a) > 1 else np.nan for a, b in pairs]

    y, embedding = probabilities(batch), classifier.encoder.embedding
    fixed = LayerGradientXActivation(
        lambda ids: at_weights(weights, classifier.read(ids, mask)), embedding
    )
    with torch.backends.cudnn.flags(enabled=False):
        gradients = fixed.attribute(source, target=y.argmax(1)).sum(2).abs()  # (B, S)
    orders = (Intervention(kind="permuted", seed=seed) for seed in range(permutations))
    # (K, B)
    permuted = torch.stack([total_variation(probabilities(batch, order), y) for order in orders])
    adversarial = adversarial_attention(
        lambda tried: at_weights(tried, memory), weights, mask, **adversary
    )
    return {
        "prediction": y.argmax(1).tolist(),
        "tau_gradient": taus(gradients),
        "tau_leave_one_out": taus(_leave_one_out(probabilities, batch, total_variation)),
        "permuted_tvd": permuted.quantile(0.5, dim=0).tolist(),
        "adversarial_jsd": jensen_shannon(adversarial, weights).tolist(),
    }


def adversarial_attention(
    outputs: Callable[[Tensor], Tensor],
    weights: Tensor,
    mask: Tensor,
    epsilon: float = 0.01,
    steps: int = 300,
) -> Tensor:
    """(B, S), 0 at pads: the weights farthest from `weights` whose `outputs` (B, C) move by
    `epsilon` at most.

    Jain and Wallace 2019, section 4.2.2, relaxed: Adam maximises divergence less a multiple of the
    distance in excess, from four random starts. The best of all steps is taken, at worst the
    weights given.
    """
    y, best = outputs(weights), weights
    logits = (
        torch.randn(4, *weights.shape, generator=torch.Generator().manual_seed(0))
        .to(weights)
        .requires_grad_()
    )
    adam = torch.optim.Adam([logits], lr=0.3)
    for _ in range(steps):
        with torch.enable_grad():
            tried = logits.masked_fill(~mask, -torch.inf).softmax(-1)  # (K, B, S)
            excess = (total_variation(outputs(tried), y) - epsilon).relu()  # (K, B)
            logits.grad = torch.autograd.grad(
                (50 * excess - jensen_shannon(tried, weights)).sum(), logits
            )[0]
        adam.step()
        allowed = torch.cat([best[None], tried.detach().where(excess.unsqueeze(2) == 0, weights)])
        best = allowed[jensen_shannon(allowed, weights).argmax(0), torch.arange(len(best))]
    return best
