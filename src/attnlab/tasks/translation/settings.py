"""Settings of a translation model's training, and the names of its validation's metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from attnlab.search.search import Search
from attnlab.training.settings import Training
from attnlab.training.teacher_forcing import TeacherForcing

TOKEN_NLL = "validation/teacher_forced/token_nll"
PERPLEXITY = "validation/teacher_forced/perplexity"
FREE_RUNNING = "validation/free_running"


@dataclass(frozen=True)
class TranslationTraining(Training):
    """Training of a translation model.

    validation_search: how validation decodes for the free-running metrics. It is part of training,
        because the best checkpoint depends on it; the evaluation has a search of its own.
    """

    teacher_forcing: TeacherForcing
    validation_search: Search
    monitor: Literal["bleu", "chrf", "exact_match", "token_nll"]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.validation_search.replace_unknown:
            raise ValueError(
                "validation_search.replace_unknown must be false, because validation has no source "
                "text, got true; choose search.replace_unknown=true, which the evaluation uses"
            )

    @property
    def monitored_metric(self) -> str:
        return TOKEN_NLL if self.monitor == "token_nll" else f"{FREE_RUNNING}/{self.monitor}"
