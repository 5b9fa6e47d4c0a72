"""Hypotheses that were written with the reference at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor

from attnlab.batch import BOS, EOS, PAD, Batch
from attnlab.data.prepared import PreparedData, PreparedSplit
from attnlab.faults.fault import Fault
from attnlab.model.attention.intervention import Intervention
from attnlab.model.seq2seq import Seq2Seq

if TYPE_CHECKING:
    from attnlab.tasks.translation.evaluation import Evaluation
    from attnlab.tasks.translation.module import Seq2SeqModule

ROWS = 64  # that are read together


@dataclass(frozen=True)
class TeacherForcingInValidation(Fault):
    """Hypotheses are the likeliest token at each place after the reference's own tokens.

    Wrong: ŷ_t = argmax p(y | y_1, ..., y_t-1, x).
    Right: ŷ_t = argmax p(y | ŷ_1, ..., ŷ_t-1, x), or a beam of such.

    A hypothesis is as long as its reference, unless it ends before. Validation and evaluation
    measure these; the trained model writes as it should. Of keon/seq2seq, issue 8, and of yoyodyne,
    issue 70.
    """

    does: ClassVar[str] = (
        "Validation and test measure what the model writes after the reference's own tokens, in "
        "place of its own."
    )
    made_by: ClassVar[str] = (
        "[keon/seq2seq 8](https://github.com/keon/seq2seq/issues/8); "
        "[yoyodyne 70](https://github.com/CUNY-CL/yoyodyne/issues/70)"
    )
    noticed: ClassVar[str] = (
        "Hypotheses are as long as their references; the model's own translations are worse than "
        "its BLEU."
    )
    changes_evaluation: ClassVar[bool] = True

    def check(self, model: Seq2Seq) -> None:
        """Every translation model is validated."""

    def change_training(self, module: Seq2SeqModule, data: PreparedData) -> None:
        right_decode = module.decode
        validation = data.split("validation")

        def decode(rows: Sequence[int], searched: Sequence[list[int]]) -> list[str]:
            intervention = module.validated_intervention
            forced = forced_hypotheses(module.model, validation, rows, intervention)
            return right_decode(rows, forced)

        module.decode = decode

    def change_evaluation(
        self, found: Evaluation, model: Seq2Seq, data: PreparedData
    ) -> Evaluation:
        from attnlab.tasks.translation.metrics import TextMetrics, by_length

        split = data.split("test")
        words = data.source_tokenizer.numbered_words([each["source"] for each in found.sentences])
        texts = []
        for start in range(0, len(split), ROWS):
            rows = range(start, min(start + ROWS, len(split)))
            tokens = forced_hypotheses(model, split, rows)
            for row, its_tokens in zip(rows, tokens, strict=True):
                texts.append(data.target_tokenizer.decode(its_tokens, numbered=words[row]))
        references = [each["reference"] for each in found.sentences]
        sentences = []
        for each, text in zip(found.sentences, texts, strict=True):
            without_n_best = {key: value for key, value in each.items() if key != "n_best"}
            exact = text == each["reference"]
            sentences.append({**without_n_best, "hypothesis": text, "exact": exact})

        text_metrics = TextMetrics(data.info.bleu_tokenize, ter=True, rouge=data.info.rouge)
        text_metrics.update(texts, references)
        lengths = [each["source_length"] for each in found.sentences]
        return replace(
            found,
            metrics={**found.metrics, **text_metrics.compute()},
            signatures={**found.signatures, "search": "none: the reference's tokens are fed"},
            sentences=sentences,
            by_length=by_length(lengths, texts, references, data.info.bleu_tokenize),
        )


@torch.no_grad()
def forced_hypotheses(
    model: Seq2Seq,
    split: PreparedSplit,
    rows: Sequence[int],
    intervention: Intervention | None = None,
) -> list[list[int]]:
    """The likeliest token after each real one of the references of some rows, up to `<eos>`."""
    device = next(model.parameters()).device
    batch: Batch = split.batch(np.asarray(rows), model.padding).to(device)
    logits: Tensor = model.output(model(batch, intervention=intervention).reading)  # (B, T, V)
    logits[..., [PAD, BOS]] = -torch.inf
    hypotheses = []
    for likeliest, mask in zip(logits.argmax(-1), batch.target_mask, strict=True):
        tokens = likeliest[mask].tolist()
        end = tokens.index(EOS) if EOS in tokens else len(tokens)
        hypotheses.append(tokens[:end])
    return hypotheses
