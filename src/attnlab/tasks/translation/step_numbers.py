"""One decoder step with all of its numbers: a sheet of symbols (tasks/symbols/sheet.py).

The sheet computes each symbol by a plain formula from the model's weights, and the tests hold its
end, the logits and the next state, against `Seq2Seq.step`. Of a part from outside it takes what the
model itself computed, as far as it can be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from attnlab.batch import BOS
from attnlab.errors import ExperimentError
from attnlab.model.attention.intervention import Intervention
from attnlab.model.decoders.body import DecoderBody
from attnlab.model.fast.decoder import FastDecoderBody
from attnlab.tasks.edited_source import NO_EDIT, Edit, Source
from attnlab.tasks.requests import NO_CHANGE
from attnlab.tasks.symbols.five_scores import five_scores_of_heads
from attnlab.tasks.symbols.look import Masking
from attnlab.tasks.symbols.pads import Recurrence, recurrence_at_pads
from attnlab.tasks.symbols.sheet import Sheet, Windows
from attnlab.tasks.translation.analysis import known_ids, read_target
from attnlab.tasks.translation.decoder_symbols import DECODERS, embed, unknown_decoder
from attnlab.tasks.translation.output_symbols import predict
from attnlab.tasks.translation.readout_symbols import read_out
from attnlab.tasks.translation.taken_step import TakenStep, take_step
from attnlab.tasks.translation.translator import Translator


@torch.no_grad()
def step_numbers(
    translator: Translator,
    text: str,
    target: Sequence[int],
    step: int = 0,
    intervene: Intervention = NO_CHANGE,
    edit: Edit = NO_EDIT,
    masking: Masking = "before",
    recurrence: Recurrence | None = None,
    windows: Windows | None = None,
) -> dict[str, Any]:
    """All numbers that one step of a given target computes.

    Args:
        step: from 0 on.
        masking: `before` hides pads by minus infinity before the softmax, as the model does;
            `after` puts zeros in the place of their weights after it, at this step alone.
        recurrence: whether the encoder's recurrence reads pads or skips them; None for what it was
            trained with.
        windows: where the windows of large matrices start.

    Returns:
        as `score`, and step, recurrence (what the encoder does at pads, None for an encoder from
        outside), `groups` and `symbols` as tasks/symbols/sheet.py describes them, and
        `scores`, of each head five scores on this step's query, as `five_scores` describes them;
        None for a decoder that asks no attention.

    Raises ExperimentError for a step behind the target, for a patch, for a model with a fault, and
    as `score`.
    """
    if getattr(translator.model, "fault", None) is not None:
        raise ExperimentError(
            "the formulas of a step are those of a right model, but this one was trained with a "
            "fault of docs/museum.md; look at it in the other views"
        )
    if intervene.patch is not None:
        raise ExperimentError(
            "intervene: the formulas of a step are those of the sentence's own keys, values and "
            "state; leave patch out"
        )
    source = Source.read(translator, text, edit, intervene)
    ids = known_ids(translator, target)
    if not 0 <= step < len(ids):
        raise ExperimentError(
            f"step must be at least 0 and below {len(ids)}, the tokens of this target, got {step}"
        )
    with recurrence_at_pads(translator.model.encoder, recurrence) as at_pads:
        answer = read_target(translator, source, ids, intervene)
        taken = take_step(translator, source, [BOS, *ids][: step + 1], intervene, masking)
    sheet = sheet_of(taken)
    return {
        **answer,
        "step": step,
        "recurrence": at_pads,
        **sheet.as_json(windows),
        "scores": scores_on_query(taken),
    }


def scores_on_query(taken: TakenStep) -> list[list[dict[str, Any]]] | None:
    """Five scores of each head on what it was asked with; None where nothing was asked."""
    module = taken.model.decoder.attention
    if module is None or taken.calls.attention is None:
        return None
    query = taken.calls.attention[0][0, 0]
    return five_scores_of_heads(module, query, taken.outputs, taken.memory)


def sheet_of(taken: TakenStep) -> Sheet:
    """The sheet of a step, sentence by sentence of its decoder."""
    sheet = Sheet()
    sheet.begin("before")
    token = embed(sheet, taken)
    decoder = taken.model.decoder
    is_known = type(taken.body) in (DecoderBody, FastDecoderBody) and type(decoder) in DECODERS
    step = DECODERS[type(decoder)] if is_known else unknown_decoder
    stepped = step(sheet, taken, token)
    output = read_out(sheet, taken, stepped)
    predict(sheet, taken, stepped, output)
    return sheet
