"""One search by the choices of a row, and what it must find."""

from __future__ import annotations

import torch
from legal_choices import Row
from one_training_step import in_precision

from attnlab.batch import BOS, EOS, PAD, Batch
from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.beam import BeamSearch
from attnlab.search.greedy import GreedySearch
from attnlab.search.sample import SampleSearch
from attnlab.search.search import Hypothesis, Search

LONGEST = 4
SEARCHES: dict[str, Search] = {
    "greedy": GreedySearch(LONGEST),
    "beam": BeamSearch(3, 0.0, LONGEST),
    "beam_with_penalties": BeamSearch(
        3, 1.0, LONGEST, coverage_penalty=0.2, min_length=1, n_best=2
    ),
    "sample": SampleSearch(1.5, 6, 0.9, 1, LONGEST, n_best=2),
}


def search_once(model: Seq2Seq, batch: Batch, row: Row) -> list[list[Hypothesis]]:
    model.eval()
    with in_precision(row):
        return SEARCHES[row["search"]](model, batch.source, batch.source_mask, with_attention=True)


def check_hypotheses(found: list[list[Hypothesis]], batch: Batch, row: Row) -> None:
    """For each sentence some, the best first, of real tokens.

    They have attention weights where the model attends.
    """
    assert len(found) == len(batch)
    for hypotheses in found:
        assert 1 <= len(hypotheses) <= SEARCHES[row["search"]].n_best
        scores = torch.tensor([hypothesis.score for hypothesis in hypotheses])
        assert scores.isfinite().all()
        assert (scores.diff() <= 0).all()
        for hypothesis in hypotheses:
            written, weights = (
                len(hypothesis.tokens) + hypothesis.finished,
                hypothesis.attention_weights,
            )
            assert written == LONGEST or (hypothesis.finished and written < LONGEST)
            assert not {PAD, BOS, EOS} & set(hypothesis.tokens)
            assert (weights is None) == (row["attention"] is None)
            if weights is not None:
                assert weights.shape == (written, batch.source.shape[1])
                assert (weights >= 0).all() or row["normaliser"] == "none"
                assert weights.isfinite().all()
