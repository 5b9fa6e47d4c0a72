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
class OfEach:
    """The memories, or the states, of all members."""

    parts: tuple[Any, ...]

    def select(self, rows: Tensor) -> OfEach:
        return OfEach(tuple(part.select(rows) for part in self.parts))


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

    def encode(self, source: Tensor, source_mask: Tensor) -> tuple[OfEach, OfEach]:
        memories, states = zip(
            *(member.encode(source, source_mask) for member in self.members), strict=True
        )
        return OfEach(memories), OfEach(states)

    def step(
        self, tokens: Tensor, state: OfEach, memory: OfEach
    ) -> tuple[Tensor, OfEach, Tensor | None]:
        """A step as of one model, with the log of the mean probability in place of the logits."""
        steps = [
            member.step(tokens, its_state, its_memory)
            for member, its_state, its_memory in zip(
                self.members, state.parts, memory.parts, strict=True
            )
        ]
        log_probs = torch.stack([next_log_probs(logits) for logits, _, _ in steps])  # (M, B, V)
        return (
            log_probs.logsumexp(0) - math.log(len(steps)),
            OfEach(tuple(its_state for _, its_state, _ in steps)),
            mean_attention([weights for _, _, weights in steps]),
        )


def mean_attention(weights: Sequence[Tensor | None]) -> Tensor | None:
    """The mean over the members that attend; None where none does."""
    attending = [each for each in weights if each is not None]
    return torch.stack(attending).mean(0) if attending else None


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
        if (model.padding.encoder, model.padding.decoder) != (first.encoder, first.decoder):
            raise ExperimentError(
                f"paths.ensemble: the model in {other} pads source and target "
                f"{model.padding.encoder} and {model.padding.decoder}, the one in {folder} "
                f"{first.encoder} and {first.decoder}; give models that pad on the same sides"
            )
    return models
