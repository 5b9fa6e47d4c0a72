"""A score whose parameters the optimiser does not know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attnlab.faults.fault import Fault
from attnlab.faults.faulty_model import heads_of
from attnlab.model.seq2seq import Seq2Seq


@dataclass(frozen=True)
class ScoreNotLearnt(Fault):
    """The parameters of the score stay as they were drawn.

    Wrong: θ_score is θ_score at birth, for no gradient reaches it.
    Right: θ_score learns from dL/dθ_score, like all other parameters.

    Of RE-Net, issue 6, whose attention was not on the way to the loss, and of COTREC, issue 15,
    whose layers lay in a plain dictionary, which `parameters()` does not search. What is not
    registered is not saved either, and is drawn anew when the model is loaded; here it is saved.
    """

    does: ClassVar[str] = "The score's parameters get no gradient, and stay as they were drawn."
    made_by: ClassVar[str] = (
        "[RE-Net 6](https://github.com/INK-USC/RE-Net/issues/6); "
        "[COTREC 15](https://github.com/xiaxin1998/COTREC/issues/15), layers in a plain `dict`"
    )
    noticed: ClassVar[str] = "Parameters without `.grad`; the number of parameters is too small."
    inspected: ClassVar[str] = "parameters that are not learnt"

    def check(self, model: Seq2Seq) -> None:
        heads = heads_of(model)
        if not heads:
            raise self.refusal("needs an attention; choose a model/attention")
        if not list(heads[0].score.parameters()):
            raise self.refusal(
                f"is about the parameters of a score, of which {type(heads[0].score).__name__} has "
                "none; choose model/attention=bahdanau, general or concat"
            )

    def change_model(self, model: Seq2Seq) -> None:
        for head in heads_of(model):
            head.score.requires_grad_(False)
