"""Several models that write one sentence together, and how they are loaded."""

from __future__ import annotations

import filecmp
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.errors import ExperimentError
from attnlab.model.fast import speed_up
from attnlab.model.model_folder import load_model
from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.search import next_log_probs


@dataclass(frozen=True)
class EnsembleState:
    """The memories, or the states, of all members."""

    by_member: tuple[Any, ...]

    def select(self, rows: Tensor) -> EnsembleState:
        return EnsembleState(tuple(each.select(rows) for each in self.by_member))


class Ensemble(nn.Module):
    """The mean of the members' probabilities of each next token, and of their attention weights.

    Members without attention have no say in where the others look. All must have the same
    vocabularies.

    Axes: M members.
    """

    def __init__(self, members: Sequence[Seq2Seq]) -> None:
        super().__init__()
        self.padding = members[0].padding
        self.members: Sequence[Seq2Seq] = nn.ModuleList(members)  # type: ignore[assignment]

    def encode(self, source: Tensor, source_mask: Tensor) -> tuple[EnsembleState, EnsembleState]:
        memories = []
        states = []
        for member in self.members:
            memory, state = member.encode(source, source_mask)
            memories.append(memory)
            states.append(state)
        return EnsembleState(tuple(memories)), EnsembleState(tuple(states))

    def step(
        self, tokens: Tensor, state: EnsembleState, memory: EnsembleState
    ) -> tuple[Tensor, EnsembleState, Tensor | None]:
        """A step as of one model, with the log of the mean probability in place of the logits."""
        # 1. Each member's step.
        log_probs = []
        next_states = []
        weights = []
        members = zip(self.members, state.by_member, memory.by_member, strict=True)
        for member, its_state, its_memory in members:
            logits, next_state, its_weights = member.step(tokens, its_state, its_memory)
            log_probs.append(next_log_probs(logits))
            next_states.append(next_state)
            weights.append(its_weights)

        # 2. log(1/M sum_m p_m), from the log-probabilities (M, B, V).
        log_sum = torch.stack(log_probs).logsumexp(0)
        mean_log_probs = log_sum - math.log(len(log_probs))
        return mean_log_probs, EnsembleState(tuple(next_states)), mean_attention(weights)


def mean_attention(weights: Sequence[Tensor | None]) -> Tensor | None:
    """The mean over the members that attend; None where none does."""
    attending = [each for each in weights if each is not None]
    if not attending:
        return None
    return torch.stack(attending).mean(0)


TOKENIZERS = ("source_tokenizer.json", "target_tokenizer.json")


def load_members(
    folder: Path, others: Sequence[Path], device: str = "cpu", allow: Collection[str] = ()
) -> list[Seq2Seq]:
    """The model of a folder, and of others that can form an ensemble with it.

    All need the same tokenizers, because they write one sentence, and padding on the same sides,
    because they read one batch. Masking may differ.

    Raises ExperimentError for a broken folder, or a model that does not match the first.
    """
    models = [speed_up(load_model(each, device, allow)) for each in (folder, *others)]

    for other in others:
        for name in TOKENIZERS:
            if not filecmp.cmp(folder / name, other / name, shallow=False):
                raise ExperimentError(
                    f"paths.ensemble: the model in {other} has another {name} than the one in "
                    f"{folder}; give models that were trained on the same prepared data"
                )

    first = models[0].padding
    for other, model in zip(others, models[1:], strict=True):
        padding = model.padding
        if (padding.encoder, padding.decoder) != (first.encoder, first.decoder):
            raise ExperimentError(
                f"paths.ensemble: the model in {other} pads source and target "
                f"{padding.encoder} and {padding.decoder}, the one in {folder} "
                f"{first.encoder} and {first.decoder}; give models that pad on the same sides"
            )
    return models
