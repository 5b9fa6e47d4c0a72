"""How an explanation agrees with known alignments, over all tokens and where the source matters."""

from __future__ import annotations

from dataclasses import dataclass, field

from attnlab.evaluation.alignments import AlignmentStatistics

DEPENDENT = "dependent_"
"""The start of the names of metrics of the tokens whose likelihood depends on the source."""


@dataclass(frozen=True)
class Grades:
    """How the most relevant source tokens of a method agree with the known alignments.

    every_token: of all target tokens that have links.
    dependent: of those whose likelihood depends on the source. A model can write the others without
        looking, and where it looks then shows nothing.
    """

    every_token: AlignmentStatistics = field(default_factory=AlignmentStatistics)
    dependent: AlignmentStatistics = field(default_factory=AlignmentStatistics)

    def metrics(self) -> dict[str, float | None]:
        """`aer` is the alignment error rate, `alignment_precision` the precision at 1 over the
        target tokens that have links; `dependent_aer`, ... are of those that depend on the source.
        """
        dependent = self.dependent.metrics()
        named = {f"{DEPENDENT}{name}": value for name, value in dependent.items()}
        return {**self.every_token.metrics(), **named}
