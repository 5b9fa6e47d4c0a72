"""How an explanation agrees with known alignments, over all tokens and where the source matters."""

from __future__ import annotations

from dataclasses import dataclass, field

from attnlab.evaluation.alignments import AlignmentStatistics

GRADED = ("aer", "alignment_precision", "alignment_recall")
"""The metrics of alignments that follow from which source token is the most relevant."""

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
        every_token, dependent = self.every_token.metrics(), self.dependent.metrics()
        found = {name: every_token[name] for name in GRADED}
        return found | {f"{DEPENDENT}{name}": dependent[name] for name in GRADED}
