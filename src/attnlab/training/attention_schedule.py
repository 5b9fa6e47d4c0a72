"""Attention that training switches on late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import PositiveInt

from attnlab.model.attention.intervention import Intervention
from attnlab.training.unlearned_weights import weights_of

_WHILE_OFF = {"uniform": Intervention("uniform"), "none": Intervention(hide="all")}


@dataclass(frozen=True)
class LateAttentionSchedule:
    """Attention that is off in the first `from_step` optimiser steps, and on afterwards.

    While it is off, the scores get no gradient, so that they are learned from step `from_step` on,
    counted from 0; losses on attention weights begin there, too.

    from_step: the number of steps without attention.
    meanwhile: what the decoder gets then: `uniform` is the mean of the values wherever the
        attention may look, `none` is a context of zeros.
    """

    from_step: PositiveInt
    meanwhile: Literal["uniform", "none"]

    def at_step(self, step: int) -> Intervention | None:
        """What stands in the place of the attention in this step; None for nothing.

        step: of the optimiser, counted from 0.
        """
        return None if step >= self.from_step else _WHILE_OFF[self.meanwhile]

    def after_steps(self, steps: int) -> Intervention | None:
        """What stands in its place in a validation after so many steps: as in the last of them."""
        return self.at_step(max(0, steps - 1))


def schedule_problems(
    schedule: LateAttentionSchedule | None, model: Mapping[str, Any]
) -> list[str]:
    """What of a model's settings keeps its attention from being switched off.

    model: the settings by their names, as a config's part has them.
    """
    if schedule is None:
        return []
    if model.get("attention") is None:
        return [
            "training.attention_schedule switches the attention on late, but the model has no "
            "attention; choose training/attention_schedule=always or a model/attention"
        ]
    if schedule.meanwhile == "uniform" and weights_of(model) == "uniform":
        return [
            "training.attention_schedule.meanwhile is uniform, but model.attention is "
            "UniformScore, whose weights always are, so that the schedule changes nothing; choose "
            "training/attention_schedule=always, training.attention_schedule.meanwhile=none or "
            "another model/attention"
        ]
    output = None if model.get("output") is None else model["output"].target
    if output is None or not output.needs_attention:
        return []
    if output.reads_each_value:
        return [
            "training.attention_schedule changes the context, but the output "
            f"{output.__name__} reads each value of the source in place of the context; choose "
            "training/attention_schedule=always or model/output=linear"
        ]
    if output.only_copies:
        return [
            "training.attention_schedule leaves nothing to learn while the attention is off, for "
            f"the output {output.__name__} reads the attention weights alone; choose "
            "training/attention_schedule=always or model/output=pointer_generator"
        ]
    if schedule.meanwhile == "none":
        return [
            "training.attention_schedule.meanwhile is none, which leaves all attention weights at "
            f"0, but the output {output.__name__} reads them as a distribution over the source; "
            "choose training.attention_schedule.meanwhile=uniform or model/output=linear"
        ]
    return []
