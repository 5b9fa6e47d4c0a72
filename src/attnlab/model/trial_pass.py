"""A trial pass through a model with parts of the user's own, which checks what each part returns.

Axes: B batch, T target length, S source length, D encoder output, L layers.
"""

from __future__ import annotations

import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.batch import BOS, EOS, PAD, Batch, Padding
from attnlab.config.identity import PACKAGE
from attnlab.errors import ExperimentError
from attnlab.model.attention.attention import Attention
from attnlab.model.attention.score import Score
from attnlab.model.encoders.encoder import Encoded, Encoder
from attnlab.model.encoders.stacked import StackedEncoder
from attnlab.model.histories.history import History, Remembered
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.model.outputs.output import Output, Reading
from attnlab.model.recurrence import RecurrentState
from attnlab.model.seq2seq import Seq2Seq

WORD = 4  # the first token id that is not special
SOURCE_LENGTHS = (3, 2)
TARGET_LENGTHS = (4, 3)
# How far the sum of a row of weights may be from 1, in the lowest precision of a training.
TOLERANCE = 0.02
# Folders of installed packages.
INSTALLED = frozenset({"site-packages", "dist-packages"})


class ContractError(Exception):
    """A part returned something else than its base class promises."""


def trial_batch(padding: Padding) -> Batch:
    """Two sentence pairs of different lengths, so that both sides have a pad."""
    source = [[*[WORD] * (length - 1), EOS] for length in SOURCE_LENGTHS]
    target_input = [[BOS, *[WORD] * (length - 1)] for length in TARGET_LENGTHS]
    target_output = [[*[WORD] * (length - 1), EOS] for length in TARGET_LENGTHS]

    padded_source = _padded(source, padding.encoder)
    padded_output = _padded(target_output, padding.decoder)
    return Batch(
        source=padded_source,
        source_mask=padded_source != PAD,
        rows=torch.arange(len(source)),
        target_input=_padded(target_input, padding.decoder),
        target_output=padded_output,
        target_mask=padded_output != PAD,
    )


def _padded(rows: list[list[int]], side: str) -> Tensor:
    length = max(len(row) for row in rows)
    padded = []
    for row in rows:
        pads = [PAD] * (length - len(row))
        padded.append([*pads, *row] if side == "pre" else [*row, *pads])
    return torch.tensor(padded)


def try_model(
    build: Callable[[], nn.Module], loss_of: Callable[[Any], Tensor | None], padding: Padding
) -> None:
    """Build a model, and run a forward and a backward pass of one small batch.

    It leaves torch's random numbers as they were.

    Args:
        build: returns the model.
        loss_of: the model -> a number to differentiate; None where its task has no trial batch.
        padding: of the experiment.

    Raises:
        ExperimentError: a part of the model fails, or returns what its base class does not allow.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = build()
        try:
            with _checked_parts(model):
                loss = loss_of(model)
            if loss is not None:
                _check_gradients(model, loss)
            _check_pads(model, padding)
        except ContractError as error:
            raise ExperimentError(f"model: {error}") from error
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            place = _place_of(error)
            own = own_classes(model)
            if own and not place:
                place = f"; its own parts are {', '.join(own)}"
            raise ExperimentError(
                f"model: a pass of two short sentences through it fails{place}: {reason}"
            ) from error


def _place_of(error: Exception) -> str:
    """Where the user's own code failed: the last of its lines in the traceback."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not _is_of_library(Path(frame.filename)):
            return f" in {frame.filename}, line {frame.lineno}, in {frame.name}"
    return ""


def own_classes(model: nn.Module) -> list[str]:
    """The names of the classes in a model that are neither attnlab's nor of a library below it."""
    found = set()
    for part in model.modules():
        package = type(part).__module__.partition(".")[0]
        if package not in (PACKAGE, "torch", "torchmetrics", "pytorch_lightning"):
            found.add(type(part).__name__)
    return sorted(found)


def _is_of_library(file: Path) -> bool:
    """Whether a file is of attnlab, torch or Python's standard library."""
    attnlab, torch_folder = Path(__file__).parents[1], Path(torch.__file__).parent
    if file.is_relative_to(attnlab) or file.is_relative_to(torch_folder):
        return True
    # A user's package may be installed inside the folder of the standard library.
    is_installed = not INSTALLED.isdisjoint(file.parts)
    return file.is_relative_to(sysconfig.get_path("stdlib")) and not is_installed


@contextmanager
def _checked_parts(model: nn.Module) -> Iterator[None]:
    """Check, until it ends, what each part of the user's own returns."""
    with ExitStack() as until_then:
        checks = dict(CHECKS)
        if isinstance(model, Seq2Seq):
            vocabulary_size = model.decoder.body.embedding.num_embeddings
            checks[Output] = partial(_check_logits, vocabulary_size)
        for part in model.modules():
            for kind, check in checks.items():
                if isinstance(part, kind) and not _is_ours_alone(part):
                    until_then.callback(part.register_forward_hook(check).remove)
            if isinstance(part, Attention):
                for history in part.histories:
                    if not _is_ours_alone(history):
                        until_then.enter_context(_checked_history(part, history))
        yield


@contextmanager
def _checked_history(attention: Attention, history: History[Any]) -> Iterator[None]:
    """Check, until it ends, the weights and keys that the history of an attention makes."""
    name = type(history).__name__
    weigh, change_keys = history.weigh, history.change_keys
    rows: int | None = None  # of the batch, from the first step on

    def checked_weigh(
        scores: Tensor, normalise: Callable[[Tensor], Tensor], past: Remembered
    ) -> Tensor:
        weights = weigh(scores, normalise, past)
        _check_tensor(history, "weights", weights, "(B, S), as the scores", tuple(scores.shape))
        _check_row_sums(
            name,
            scores,
            weights,
            attention.rows_sum_to_one,
            "let rows_sum_to_one return False",
        )
        return weights

    def checked_keys(keys: Tensor, past: Remembered) -> Tensor:
        changed = change_keys(keys, past)
        _check_tensor(history, "keys", changed, "(B, S, A), as the keys", tuple(keys.shape))
        return changed

    def checked_record(method: str, make: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any) -> Any:
            nonlocal rows
            if rows is None:  # `first` gets the memory of all rows
                rows = len(arguments[0].lengths)
            record = make(*arguments)
            _check_record(f"{name}.{method}", record, rows)
            return record

        return made

    # An attribute of the object hides the method of its class.
    checked = {"weigh": checked_weigh, "change_keys": checked_keys}
    for method in ("first", "before", "read_scores", "after"):
        checked[method] = checked_record(method, getattr(history, method))
    for method, replacement in checked.items():
        setattr(history, method, replacement)
    try:
        yield
    finally:
        for method in checked:
            delattr(history, method)


def _check_record(where: str, record: Any, rows: int) -> None:
    """Check what a history remembers: searches select rows of the batch in it."""
    if not isinstance(record, Remembered):
        raise ContractError(
            f"{where} must return a record of attnlab.model.histories.history.Remembered, or of a "
            f"class derived from it, got {type(record).__name__}"
        )
    for name, value in vars(record).items():
        if isinstance(value, Tensor) and value.shape[:1] != (rows,):
            raise ContractError(
                f"{where} returns {name} of the shape {tuple(value.shape)}, but its first axis "
                f"must be the batch, here {rows}"
            )


def _check_gradients(model: nn.Module, loss: Tensor) -> None:
    """Take the gradients of a loss, and check that it and they are numbers.

    The loss may be infinite, where an output gives some token the probability 0.
    """
    advice = "look for 0 / 0, and for a root or a logarithm at 0, in the parts of your own"
    if loss.isnan():
        raise ContractError(f"the loss of two short sentences is NaN; {advice}")
    loss.backward()
    if loss.isinf():
        return
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and not parameter.grad.isfinite().all():
            raise ContractError(f"the gradient of {name} is not finite; {advice}")
    _warn_of_idle_weights(model)


def _warn_of_idle_weights(model: nn.Module) -> None:
    """Warn of weights that would never be learned, because the loss does not depend on them."""
    idle = [
        name
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and parameter.grad is None
    ]
    if idle:
        _warn_once(
            f"warning: model: the loss does not depend on {', '.join(idle)}, which would never be "
            "learned; look for a part that hides them, as a history does that makes weights "
            "without the scores, or for a detach()"
        )


@cache
def _warn_once(sentence: str) -> None:
    """In a process, for a sweep composes many experiments."""
    print(sentence, file=sys.stderr)


def _check_pads(model: nn.Module, padding: Padding) -> None:
    """Check that pads change neither the vectors that an encoder gives nor its final state."""
    if padding.recurrence == "read":
        return  # whoever chooses this wants to see what pads do
    batch = trial_batch(padding)
    shorter = 1
    is_real = batch.source_mask[shorter]
    alone = batch.source[shorter, is_real].unsqueeze(0)

    uppers = [each.then for each in model.modules() if isinstance(each, StackedEncoder)]
    for encoder in model.modules():
        if not isinstance(encoder, Encoder) or _is_ours_alone(encoder):
            continue
        if encoder in uppers:
            continue  # it reads no tokens; its stack, which gives its vectors, is checked
        encoder.eval()  # without dropout
        with torch.no_grad():
            padded = encoder(batch.source, batch.source_mask)
            unpadded = encoder(alone, torch.ones_like(alone, dtype=torch.bool))
        if not torch.allclose(padded.outputs[shorter, is_real], unpadded.outputs[0], atol=1e-3):
            raise ContractError(
                f"{type(encoder).__name__} gives a token another vector when a pad stands beside "
                "the sentence; use source_mask to set pads to zero before each layer that mixes "
                "tokens, or choose padding.recurrence=read"
            )
        if not _has_same_state(padded.final, shorter, unpadded.final):
            raise ContractError(
                f"{type(encoder).__name__} returns another final state when a pad stands beside "
                "the sentence; use source_mask to leave pads out of it, or choose "
                "padding.recurrence=read"
            )


def _has_same_state(batch: RecurrentState, row: int, alone: RecurrentState) -> bool:
    """Whether a row of a batch has the state that its sentence has alone."""
    in_batch = batch.select(torch.tensor([row]))
    if not torch.allclose(in_batch.hidden, alone.hidden, atol=1e-3):
        return False
    if in_batch.cell is None or alone.cell is None:
        return True
    return torch.allclose(in_batch.cell, alone.cell, atol=1e-3)


def _is_ours_alone(part: nn.Module) -> bool:
    """Whether a part is attnlab's, and so is each encoder that it is made of."""
    parts = [part, *(inner for inner in part.modules() if isinstance(inner, Encoder))]
    return all(type(each).__module__.partition(".")[0] == PACKAGE for each in parts)


def _check_score(score: nn.Module, inputs: tuple[Tensor, Tensor], scores: Any) -> None:
    query, keys = inputs
    expected = (len(query), query.shape[1], keys.shape[1])
    _check_tensor(score, "scores", scores, "(B, T, S)", expected)


def _check_weights(normaliser: nn.Module, inputs: tuple[Tensor], weights: Any) -> None:
    (scores,) = inputs
    name = type(normaliser).__name__
    _check_tensor(normaliser, "weights", weights, "(..., S), as the scores", tuple(scores.shape))
    if not normaliser.is_signed and bool((weights < 0).any()):
        raise ContractError(
            f"{name} returns negative weights, but its is_signed is false; set is_signed = True in "
            "the class"
        )
    sums_to_one = bool(normaliser.rows_sum_to_one)
    _check_row_sums(name, scores, weights, sums_to_one, "set rows_sum_to_one = False in the class")


def _check_row_sums(
    name: str, scores: Tensor, weights: Tensor, sums_to_one: bool, remedy: str
) -> None:
    """Check that hidden tokens have the weight 0, and rows the sum that is promised.

    Args:
        name: of the part that made the weights.
        scores: (..., S), minus infinity where nothing may be seen.
        weights: (..., S).
        sums_to_one: whether that is promised.
        remedy: what to do where it is promised, and not so.
    """
    hidden = scores == -torch.inf
    if bool((weights[hidden] != 0).any()):
        raise ContractError(
            f"{name} gives weight to a token that may not be seen; its weights must be 0 where the "
            "scores are minus infinity"
        )

    sums = weights.detach().float().sum(-1)
    if sums_to_one and bool((sums - 1).abs().max() > TOLERANCE):
        raise ContractError(
            f"{name} returns weights with the sum {sums.flatten()[0].item():.3f}, but its "
            f"rows_sum_to_one is true; {remedy}"
        )


def _check_encoded(encoder: nn.Module, inputs: tuple[Tensor, Tensor], encoded: Any) -> None:
    assert isinstance(encoder, Encoder)
    source = inputs[0]
    name = type(encoder).__name__
    if not isinstance(encoded, Encoded):
        raise ContractError(
            f"{name}.forward must return attnlab.model.encoders.encoder.Encoded, got "
            f"{type(encoded).__name__}"
        )

    rows, length = source.shape
    outputs_shape = (rows, length, encoder.output_size)
    _check_tensor(encoder, "outputs", encoded.outputs, "(B, S, output_size)", outputs_shape)

    state = encoder.state_shape
    final_shape = (state.layers, rows, state.size)
    legend = "(state_shape.layers, B, state_shape.size)"
    _check_tensor(encoder, "final.hidden", encoded.final.hidden, legend, final_shape)
    if state.has_cell != (encoded.final.cell is not None):
        raise ContractError(
            f"{name} says state_shape.has_cell={state.has_cell}, but its final.cell is "
            f"{'missing' if state.has_cell else 'a tensor'}"
        )


def _check_logits(
    vocabulary_size: int, output: nn.Module, inputs: tuple[Reading], logits: Any
) -> None:
    expected = (*inputs[0].readout.shape[:-1], vocabulary_size)
    _check_tensor(output, "logits", logits, "(..., V), V the target's vocabulary", expected)


def _check_tensor(
    part: nn.Module, what: str, found: Any, legend: str, expected: tuple[int, ...]
) -> None:
    name = type(part).__name__
    if not isinstance(found, Tensor):
        raise ContractError(
            f"{name} must return {what} as a tensor {legend}, got {type(found).__name__}"
        )
    if tuple(found.shape) != expected:
        raise ContractError(
            f"{name} returns {what} of the shape {tuple(found.shape)}, expected {legend} = "
            f"{expected}"
        )
    if bool((found == torch.inf).any()):
        raise ContractError(f"{name} returns infinity among the {what}; look for a division by 0")
    if bool(found.isnan().any()):
        raise ContractError(
            f"{name} returns NaN among the {what}; look for 0 / 0, for the root or the logarithm "
            "of a negative number, and for infinity - infinity"
        )


CHECKS: dict[type[nn.Module], Callable[..., None]] = {
    Score: _check_score,
    Normaliser: _check_weights,
    Encoder: _check_encoded,
}
