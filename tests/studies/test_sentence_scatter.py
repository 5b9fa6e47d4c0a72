"""How the means of a study scatter by the choice of its test sentences."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from attnlab.evaluation.alignments import ALIGNMENT_METRICS, LinkCounts, statistics_of_links
from attnlab.evaluation.sentence_statistics import Perplexity, Share, TokenNll
from attnlab.evaluation.significance import scores_of_samples
from attnlab.studies import sentence_scatter
from attnlab.studies.measured_rows import MeasuredRows, at_place
from attnlab.studies.sentence_counts import Counts, SentenceCounts

SENTENCES = 400


def share_of(right: NDArray[np.bool_]) -> dict[str, Counts]:
    metric = Share("exact")
    rows = [{"exact": bool(each)} for each in right]
    return {"exact_match": Counts(metric, metric.statistics(rows))}


def scatter_of(
    models: Sequence[SentenceCounts], monkeypatch: pytest.MonkeyPatch
) -> sentence_scatter.SentenceCovariances:
    """That of models with one seed each, `dot` and others, by their places in the list."""
    points: list[Any] = [
        SimpleNamespace(system=str(place), seed=1, model=model)
        for place, model in enumerate(models)
    ]
    rows = [{"system": point.system, "seed": 1, "at": None} for point in points]
    measured = MeasuredRows(rows, [point.system for point in points])
    monkeypatch.setitem(sentence_scatter.SENTENCE_COUNTS, "made", lambda point: point.model)
    return sentence_scatter.sentence_covariances(points, measured, "made")


def test_variance_of_a_mean_is_that_of_the_sentences_over_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(11)
    one, other = random.random((2, SENTENCES)) < [[0.3], [0.6]]
    models = [
        SentenceCounts("a test set", SENTENCES, {"one": share_of(one)}),
        SentenceCounts("a test set", SENTENCES, {"other": share_of(other)}),
    ]
    scatter = scatter_of(models, monkeypatch)
    of_mean = scatter.of_mean("exact_match", "one")
    of_difference = scatter.of_difference("exact_match", "one", "other")
    assert of_mean is not None
    assert of_difference is not None
    assert of_mean.variance == pytest.approx(one.var() / SENTENCES, rel=0.15)
    paired = (one.astype(float) - other).var() / SENTENCES
    assert of_difference.variance == pytest.approx(paired, rel=0.15)


def test_range_of_lengths_scatters_by_its_own_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(12)
    right = random.random(SENTENCES) < 0.5
    counts = share_of(right)["exact_match"]
    short = np.arange(SENTENCES) < 40
    of_short = Counts(counts.metric, counts.statistics * short[:, np.newaxis])
    of_none = Counts(counts.metric, counts.statistics * 0)
    systems = {
        at_place("dot", 10.0): {"exact_match": of_short},
        at_place("dot", 20.0): {"exact_match": of_none},
    }
    scatter = scatter_of([SentenceCounts("a test set", SENTENCES, systems)], monkeypatch)
    found = scatter.of_mean("exact_match", "dot @ 10.0")
    assert found is not None
    assert found.variance == pytest.approx(right[short].var() / 40, rel=0.2)


def test_systems_that_were_tested_on_other_sentences_vary_independently(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As those of two languages; the same answers on the same sentences would leave no scatter."""
    right = np.random.default_rng(13).random(SENTENCES) < 0.5
    scatter = scatter_of(
        [
            SentenceCounts("Finnish", SENTENCES, {"soft, Finnish": share_of(right)}),
            SentenceCounts("Finnish", SENTENCES, {"hard, Finnish": share_of(~right)}),
            SentenceCounts("German", SENTENCES // 2, {"soft, German": share_of(right[::2])}),
        ],
        monkeypatch,
    )
    of_finnish = scatter.by_measure["exact_match"]["soft, Finnish", "soft, Finnish"]
    of_german = scatter.by_measure["exact_match"]["soft, German", "soft, German"]
    within = scatter.of_difference("exact_match", "soft, Finnish", "hard, Finnish")
    across = scatter.of_difference("exact_match", "soft, Finnish", "soft, German")
    assert within is not None
    assert across is not None
    assert within.variance == pytest.approx(4 * of_finnish)  # they err on opposite sentences
    assert across.variance == pytest.approx(of_finnish + of_german)
    assert scatter.sentences == SENTENCES // 2


def test_system_whose_seeds_were_tested_on_other_sentences_has_no_scatter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = np.ones(SENTENCES, dtype=bool)
    models = [
        SentenceCounts(test_set, SENTENCES, {"dot": share_of(right)})
        for test_set in ("one", "other")
    ]
    assert scatter_of(models, monkeypatch).by_measure == {}


def test_sample_without_links_gets_the_mean_of_the_others() -> None:
    links = statistics_of_links([LinkCounts(4, 4, 3, 3, 4, 2.0), LinkCounts(4, 4, 1, 1, 4, 1.0)])
    sums = np.stack([links[0], links[1], np.zeros(6)])
    found = scores_of_samples(ALIGNMENT_METRICS["aer"], sums)
    assert found == pytest.approx([0.25, 0.75, 0.5])
    assert np.isnan(scores_of_samples(ALIGNMENT_METRICS["aer"], np.zeros((2, 6)))).all()


def test_likelihood_is_a_mean_over_tokens_and_perplexity_its_exponential() -> None:
    rows = [{"nll": 3.0, "target_tokens": 2}, {"nll": 1.0, "target_tokens": 6}]
    sums = TokenNll().statistics(rows).sum(axis=0, keepdims=True)
    assert TokenNll().scores(sums) == pytest.approx([0.5])
    assert Perplexity().scores(sums) == pytest.approx([np.exp(0.5)])
