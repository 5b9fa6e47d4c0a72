"""Fault: the base class of all faults."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from attnlab.data.prepared import PreparedData
    from attnlab.model.seq2seq import Seq2Seq
    from attnlab.tasks.translation.evaluation import Evaluation
    from attnlab.tasks.translation.module import Seq2SeqModule


class Fault(ABC):
    """A mistake that somebody's code has made, put into a model that is right without it.

    A fault switches the class of a built part to a faulty subclass of it, replaces a value that a
    part goes by, or listens to what a part returns. Parameters, their names and the random numbers
    that drew them stay as they are, so that two experiments with one seed differ in the fault
    alone. A part of a faulty class is none of those that `attnlab.model.fast` makes faster, so that
    no faster path leaves the fault out.

    A subclass is a frozen dataclass whose fields are its settings. It sets the texts below, in
    Markdown, which docs/museum.md shows, and defines `check` and what it changes.

    does: what is wrong, in one sentence.
    made_by: whose mistake it was.
    noticed: how one notices it.
    inspected: what `attnlab inspect` calls the same mistake; empty where it cannot see it.
    changes_evaluation: whether the evaluation of a trained model is what is wrong.
    """

    does: ClassVar[str]
    made_by: ClassVar[str]
    noticed: ClassVar[str]
    inspected: ClassVar[str] = ""
    changes_evaluation: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """Its choice in conf/fault."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(self).__name__).lower()

    @abstractmethod
    def check(self, model: Seq2Seq) -> None:
        """Raise the ValueError of `refusal` where the fault would change nothing in a model.

        model: newly built and right.
        """

    def refusal(self, reason: str) -> ValueError:
        """The error of a model without what the fault is about; `reason` goes on after its name."""
        return ValueError(f"fault {self.name} {reason}")

    def problems(self, bound: Mapping[str, Any]) -> list[str]:
        """What of an experiment's other sections the fault does not go with, as sentences.

        bound: the bound sections of its config.
        """
        return []

    def change_model(self, model: Seq2Seq) -> None:  # noqa: B027 (optional)
        """Put the fault into a newly built model."""

    def change_training(  # noqa: B027 (optional)
        self, module: Seq2SeqModule, data: PreparedData
    ) -> None:
        """Put the fault into what trains and validates a model."""

    def change_evaluation(
        self, found: Evaluation, model: Seq2Seq, data: PreparedData
    ) -> Evaluation:
        """What code with the fault would have measured in place of a right evaluation."""
        return found
