"""Settings of a translation model's training, and the names of its validation's metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from attnlab.search.search import Search
from attnlab.training.attention_schedule import LateAttentionSchedule
from attnlab.training.settings import Training
from attnlab.training.teacher_forcing import TeacherForcing

TOKEN_NLL = "validation/teacher_forced/token_nll"
PERPLEXITY = "validation/teacher_forced/perplexity"
FREE_RUNNING = "validation/free_running"
ATTENTION_IS_ON = "train/attention_is_on"


@dataclass(frozen=True)
class TranslationTraining(Training):
    """Training of a translation model.

    validation_search: how validation decodes for the free-running metrics. It is part of training,
        because the best checkpoint depends on it; the evaluation has a search of its own.
    attention_schedule: when the attention is on; None for always.
    """

    teacher_forcing: TeacherForcing
    validation_search: Search
    monitor: Literal["bleu", "chrf", "exact_match", "token_nll"]
    attention_schedule: LateAttentionSchedule | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.validation_search.replace_unknown:
            raise ValueError(
                "validation_search.replace_unknown must be false, because validation has no source "
                "text, got true; choose search.replace_unknown=true, which the evaluation uses"
            )
        if self.attention_schedule is not None:
            self._check_attention_is_on_at_the_end(self.attention_schedule)

    def _check_attention_is_on_at_the_end(self, schedule: LateAttentionSchedule) -> None:
        if self.max_steps is not None and schedule.from_step >= self.max_steps:
            raise ValueError(
                "attention_schedule.from_step must be below max_steps, so that the attention is on "
                f"in the end, got from_step {schedule.from_step} and max_steps {self.max_steps}; "
                "choose fewer steps without attention, or a longer training"
            )
        if self.max_minutes is not None:
            raise ValueError(
                "attention_schedule counts steps, but max_minutes may end the training before the "
                "attention is on; choose training.max_minutes=null, or "
                "training/attention_schedule=always"
            )

    @property
    def preliminary_steps(self) -> int:
        return 0 if self.attention_schedule is None else self.attention_schedule.from_step

    @property
    def monitored_metric(self) -> str:
        return TOKEN_NLL if self.monitor == "token_nll" else f"{FREE_RUNNING}/{self.monitor}"
