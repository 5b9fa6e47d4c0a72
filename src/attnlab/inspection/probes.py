"""Probes of an attention module: each changes something, and looks at what follows.

A probe knows nothing of the module but what it returns. Where a mistake shows in several probes,
the one that names it best is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attnlab.inspection.stranger import Answer, CallError, Inputs, Stranger

# A relative change of less than this is rounding: some modules take the softmax in 32 bits.
TOLERANCE = 1e-6
LONG = 3  # times the tokens of the other probes


@dataclass(frozen=True)
class Fault:
    """name: short, of the kind of mistake.
    found: what the probe saw.
    cost: what it does to a model.
    """

    name: str
    found: str
    cost: str


def differs(one: Tensor, other: Tensor) -> bool:
    """Whether two answers differ by more than rounding; what is no number must be so in both."""
    if not torch.equal(one.isnan(), other.isnan()):
        return True
    one, other = one.nan_to_num(), other.nan_to_num()
    size = max(float(one.abs().max()), float(other.abs().max()), 1e-30)
    return float((one - other).abs().max()) > TOLERANCE * size


def without_pads(inputs: Inputs) -> Inputs:
    """All tokens are real, so that no mistake of the mask is seen."""
    return replace(inputs, mask=torch.ones_like(inputs.mask))


def changed(tensor: Tensor, where: Tensor, seed: int = 2) -> Tensor:
    """Other numbers where the mask (B, S) says so."""
    other = 3 * torch.randn(tensor.shape, generator=_random(seed), dtype=tensor.dtype)
    return torch.where(where[..., None], other, tensor)


def probe_numbers(stranger: Stranger) -> Fault | None:
    """Whether the context is finite, of sentences each of which has real tokens."""
    context = stranger.answer(stranger.inputs()).context
    if bool(context.isfinite().all()):
        return None
    return Fault(
        "context that is no number",
        "with pads in some sentences the context has NaN or infinity",
        "a row of weights is masked as a whole; one such batch ruins all parameters",
    )


def probe_pads(stranger: Stranger) -> Fault | None:
    """Whether pads take part in the context, and how."""
    inputs = stranger.inputs()
    pads = ~inputs.mask
    context = stranger.answer(inputs).context

    def moves(**others: Tensor) -> bool:
        return differs(stranger.answer(replace(inputs, **others)).context, context)

    by_values = moves(values=changed(inputs.values, pads))
    by_keys = moves(keys=changed(inputs.keys, pads))
    if not by_values and not by_keys:
        return None

    real = {
        "values": changed(inputs.values, inputs.mask),
        "keys": changed(inputs.keys, inputs.mask),
    }
    padded = inputs.mask.all(1).logical_not()
    of_real = stranger.answer(replace(inputs, **real)).context
    if not differs(of_real[padded], context[padded]):
        return Fault(
            "mask the wrong way round",
            "only pads change the context of a sentence with pads; real tokens do not",
            "the model reads nothing but padding in all but the longest sentence of a batch",
        )
    if not differs(stranger.answer(without_pads(inputs)).context, context):
        return Fault(
            "no mask",
            "the context is the same with and without a mask, and pads change it",
            "a sentence's translation depends on how long the others in its batch are",
        )
    if not by_values:
        return Fault(
            "masked after the softmax",
            "the keys of pads change the context, their values do not: pads are set to zero after "
            "the softmax has divided by their share",
            "the weights of real tokens sum to less than one, by more the more pads there are",
        )
    return Fault(
        "mask that leaks",
        "pads still change the context of a masked sentence",
        "scores of pads are set to a number that is too near to the others, such as 0, in place of "
        "minus infinity",
    )


def probe_batch(stranger: Stranger) -> Fault | None:
    """Whether a sentence's context depends on the other sentences of its batch."""
    inputs = stranger.inputs()
    together = stranger.answer(inputs).context
    for number in range(len(inputs.mask)):
        try:
            alone = stranger.answer(inputs.sentence(number)).context
        except CallError as error:
            return Fault(
                "fails for a batch of one",
                f"one sentence alone fails: {error}",
                "an axis of one is squeezed away; the last batch of an epoch, and the use of the "
                "model, fail",
            )
        if differs(alone[0], together[number]):
            return Fault(
                "sentences of a batch mix",
                "a sentence alone has another context than in its batch",
                "the softmax runs over the batch, or a reshape mixes sentences, so that what the "
                "model says depends on its neighbours",
            )
    return None


def probe_queries(stranger: Stranger) -> Fault | None:
    """Whether a query's context depends on the other queries."""
    if not stranger.with_queries:
        return None
    inputs = without_pads(stranger.inputs())
    together = stranger.answer(inputs).context
    alone = stranger.answer(replace(inputs, query=inputs.query[:, 1:2])).context
    if not differs(alone[:, 0], together[:, 1]):
        return None
    return Fault(
        "queries mix",
        "a query alone has another context than beside other queries",
        "the softmax runs over the queries, or heads are merged without a transposition; while "
        "decoding, with one query, the model computes something else",
    )


def probe_use(stranger: Stranger) -> Fault | None:
    """Whether the context comes from the values, by a comparison of query and keys."""
    inputs = without_pads(stranger.inputs())
    context = stranger.answer(inputs).context

    def moves(**others: Tensor) -> bool:
        return differs(stranger.answer(replace(inputs, **others)).context, context)

    if not moves(values=changed(inputs.values, inputs.mask)):
        return Fault(
            "context from the keys",
            "other values leave the context as it is",
            "the context is a mean of the keys, or of their projections, and not of the values",
        )
    if not moves(query=inputs.query.flip(-1)):
        return Fault(
            "query not read",
            "another query leaves the context as it is",
            "every target token gets the same context, and the model is one without attention",
        )
    if not moves(keys=changed(inputs.keys, inputs.mask)):
        return Fault(
            "keys not read",
            "other keys leave the context as it is",
            "the weights depend on places alone, or are uniform",
        )
    return None


def probe_sum(stranger: Stranger) -> Fault | None:
    """Whether the weights sum to one: with equal values the context is then always the same.

    It is the value itself where the values go into the context as they are.
    """
    inputs = without_pads(stranger.inputs())
    values = inputs.values[:, :1].expand_as(inputs.values)
    equal = replace(inputs, values=values)
    context = stranger.answer(equal).context
    other = replace(equal, keys=changed(inputs.keys, inputs.mask))
    if differs(stranger.answer(other).context, context):
        return _other_sum("with the same value at every token, other keys still change the context")

    scales = 1 + torch.arange(values.shape[-1], dtype=values.dtype)
    scaled = stranger.answer(replace(equal, values=values * scales)).context
    if context.shape[-1] != len(scales) or differs(scaled, context * scales):
        return None  # a projection
    value = values[:, 0] if context.dim() == 2 else values[:, :1].expand_as(context)
    if not differs(context, value):
        return None
    return _other_sum("with the same value at every token, the context is another one")


def _other_sum(found: str) -> Fault:
    return Fault(
        "weights do not sum to one",
        found,
        "the size of the context is not that of the values; sigmoid weights are meant so, a "
        "softmax is not",
    )


def probe_order(stranger: Stranger) -> Fault | None:
    """Whether the order of the tokens matters, where keys and values move together."""
    inputs = without_pads(stranger.inputs())
    order = torch.tensor([3, 5, 0, 6, 1, 2, 4, *range(7, stranger.tokens)])
    moved = replace(inputs, keys=inputs.keys[:, order], values=inputs.values[:, order])
    if not differs(stranger.answer(moved).context, stranger.answer(inputs).context):
        return None
    return Fault(
        "order of the tokens matters",
        "the same keys and values in another order give another context",
        "a reshape mixes tokens or heads; attention by location is meant to do so",
    )


def probe_repetition(stranger: Stranger) -> Fault | None:
    """Whether an evaluation repeats."""
    inputs = without_pads(stranger.inputs())
    if not differs(stranger.answer(inputs).context, stranger.answer(inputs).context):
        return None
    return Fault(
        "evaluation draws at random",
        "the same call gives another context, after eval()",
        "dropout stays on, often as torch.nn.functional.dropout without training=self.training",
    )


def probe_inputs(stranger: Stranger) -> Fault | None:
    """Whether the module changes what it is given."""
    inputs = stranger.inputs()
    given = inputs.clone()
    stranger.call_without_copies(given)
    names = ("query", "keys", "values", "mask")
    pairs = zip(names, inputs.tensors, given.tensors, strict=True)
    written = [name for name, before, after in pairs if not torch.equal(before, after)]
    if not written:
        return None
    return Fault(
        "inputs are changed",
        f"the call has written into {' and '.join(written)}",
        "the next step of a decoder reads what this one has left",
    )


def probe_gradients(stranger: Stranger) -> Fault | None:
    """Whether every parameter is learnt."""
    for _, parameter in stranger.parameters:
        parameter.grad = None
    context = stranger.in_training(stranger.inputs()).context
    weights = torch.randn(context.shape, generator=_random(3), dtype=context.dtype)
    if not context.requires_grad:
        idle = [name for name, _ in stranger.parameters]
    else:
        (context * weights).sum().backward()
        idle = [
            name
            for name, parameter in stranger.parameters
            if parameter.requires_grad and parameter.grad is None
        ]
    if not idle:
        return None
    return Fault(
        "parameters that are not learnt",
        f"no gradient reaches {', '.join(idle)}",
        "they stay as they were drawn; a tensor is detached, or a layer is not used",
    )


def probe_half_precision(stranger: Stranger) -> Fault | None:
    """Whether the mask overflows in 16 bits."""
    inputs = stranger.inputs()
    if not bool(stranger.answer(inputs).context.isfinite().all()):
        return None
    for dtype in (torch.float16, torch.bfloat16):
        try:
            context = stranger.in_precision(dtype, inputs).context
        except CallError as error:
            if "overflow" not in str(error):
                continue  # something else that this processor does not compute in 16 bits
            return _overflow(dtype, str(error))
        if not bool(context.isfinite().all()):
            return _overflow(dtype, "the context is not finite")
    return None


def _overflow(dtype: torch.dtype, reason: str) -> Fault:
    return Fault(
        "mask that overflows in 16 bits",
        f"in {str(dtype).removeprefix('torch.')} {reason}",
        "a number such as -1e9 stands for minus infinity; mixed precision fails or gives NaN",
    )


def probe_lengths(stranger: Stranger) -> Fault | None:
    """Whether a source may have one token, or many."""
    for tokens in (1, LONG * stranger.tokens):
        try:
            answer = stranger.answer(without_pads(stranger.inputs(tokens=tokens)))
        except CallError as error:
            words = "of one token" if tokens == 1 else f"of {tokens} tokens"
            return Fault(
                "source lengths are fixed",
                f"a source {words} fails: {error}",
                "an axis is squeezed away, or the weights are computed for a greatest length",
            )
        if not bool(answer.context.isfinite().all()):
            return Fault(
                "source lengths are fixed",
                f"with a source of {tokens} token(s) the context is not finite",
                "the weights are computed for a greatest length",
            )
    return None


def probe_shown_weights(stranger: Stranger) -> Fault | None:
    """Whether the returned weights are those of the context.

    They must be a distribution over the real tokens. Where the values go into the context as they
    are, without a projection, they must also give the context. Weights of several heads are left
    out, unless the module returns their mean.
    """
    inputs = stranger.inputs()
    answer = stranger.answer(inputs)
    weights = _weights_of_one_head(answer, inputs)
    if weights is None or not bool(answer.context.isfinite().all()):
        return None
    on_real = weights.movedim(-1, 1).masked_fill(~_beside(inputs.mask, weights), 0).sum(1)
    ones = torch.ones_like(on_real)
    if bool((weights < 0).any()) or differs(on_real, ones):
        return _other_weights("what is returned is no distribution over the real tokens")

    whole = without_pads(inputs)
    answer = stranger.answer(whole)
    shown = _weights_of_one_head(answer, whole)
    assert shown is not None
    mix = torch.randn(2 * [whole.values.shape[-1]], generator=_random(5), dtype=torch.float64)
    mixed = stranger.answer(replace(whole, values=whole.values @ mix)).context
    if answer.context.shape[-1] != len(mix) or differs(mixed, answer.context @ mix):
        return None  # a projection
    weighted = torch.einsum("b...s,bsv->b...v", shown, whole.values)
    if not differs(weighted, answer.context):
        return None
    return _other_weights("the values, weighted by what is returned, do not give the context")


def _beside(mask: Tensor, weights: Tensor) -> Tensor:
    """The mask (B, S) with an axis for each further one of the weights."""
    return mask.reshape(*mask.shape, *[1] * (weights.dim() - 2))


def _random(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _other_weights(found: str) -> Fault:
    return Fault(
        "weights that are not those of the context",
        found,
        "a heat map shows something else than what the model reads, such as scores, or weights "
        "before the mask or the dropout",
    )


def _weights_of_one_head(answer: Answer, inputs: Inputs) -> Tensor | None:
    """(B, S) or (B, T, S); None where there are none, or several heads."""
    if answer.weights is None:
        return None
    sizes = (*inputs.query.shape[:-1], inputs.mask.shape[1])
    if answer.weights.numel() != torch.Size(sizes).numel():
        return None
    shape = tuple(answer.weights.shape)
    last_but_one = len(shape) > 2 and shape[-1] == 1
    if shape[-1] != sizes[-1] and not last_but_one:
        return None
    return answer.weights.reshape(sizes)


PROBES: Sequence[tuple[str, Callable[[Stranger], Fault | None]]] = (
    ("the context is finite", probe_numbers),
    ("pads take no part", probe_pads),
    ("a sentence alone is as in a batch", probe_batch),
    ("a query alone is as beside others", probe_queries),
    ("query, keys and values are all read", probe_use),
    ("the weights sum to one", probe_sum),
    ("tokens may stand in any order", probe_order),
    ("an evaluation repeats", probe_repetition),
    ("the inputs stay as they are", probe_inputs),
    ("every parameter is learnt", probe_gradients),
    ("16 bits are enough", probe_half_precision),
    ("any length of the source", probe_lengths),
    ("the returned weights are those used", probe_shown_weights),
)

# What a fault explains: a probe that sees its consequence says nothing new.
EXPLAINED = {
    "no mask": {"weights that are not those of the context"},
    "mask that leaks": {"weights that are not those of the context"},
    "masked after the softmax": {"weights that are not those of the context"},
    "evaluation draws at random": {
        "no mask",
        "mask that leaks",
        "sentences of a batch mix",
        "queries mix",
        "weights do not sum to one",
        "order of the tokens matters",
        "weights that are not those of the context",
    },
    # With all tokens real, every one of them is masked.
    "mask the wrong way round": {
        "context that is no number",
        "sentences of a batch mix",
        "context from the keys",
        "query not read",
        "keys not read",
        "source lengths are fixed",
        "weights that are not those of the context",
    },
    "queries mix": {
        "context that is no number",
        "weights do not sum to one",
        "mask that leaks",
        "weights that are not those of the context",
    },
    "context from the keys": {
        "weights do not sum to one",
        "weights that are not those of the context",
    },
    "order of the tokens matters": {"mask that leaks", "weights do not sum to one"},
    "weights do not sum to one": {"weights that are not those of the context"},
    "sentences of a batch mix": {
        "context that is no number",
        "weights do not sum to one",
        "no mask",
        "mask that leaks",
        "masked after the softmax",
        "weights that are not those of the context",
    },
}


@dataclass(frozen=True)
class Probed:
    """asked: of a probe. fault: what it found; None for nothing. error: of a call that failed."""

    asked: str
    fault: Fault | None = None
    error: str = ""


def inspect_module(stranger: Stranger) -> list[Probed]:
    """What each probe found; faults that another one explains are left out."""
    found = [_probed(stranger, asked, probe) for asked, probe in PROBES]
    names = {each.fault.name for each in found if each.fault is not None}
    explained = set().union(*(EXPLAINED.get(name, set()) for name in names))
    return [
        Probed(each.asked) if each.fault is not None and each.fault.name in explained else each
        for each in found
    ]


def _probed(stranger: Stranger, asked: str, probe: Callable[[Stranger], Fault | None]) -> Probed:
    try:
        return Probed(asked, probe(stranger))
    except CallError as error:
        return Probed(asked, error=str(error))
