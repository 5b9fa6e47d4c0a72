"""The evaluation as a whole: unknown words, n-best lists and ensembles in its numbers and files."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from attnlab.batch import Padding
from attnlab.errors import ExperimentError
from attnlab.evaluation.examples import WORST, read_examples
from attnlab.search.beam import BeamSearch
from attnlab.search.greedy import GreedySearch
from attnlab.search.sample import SampleSearch
from attnlab.tasks.translation.evaluation import Evaluation, evaluate
from attnlab.tasks.translation.metrics import metrics_of_references
from attnlab.tasks.translation.sentence_scores import sentence_scores
from attnlab.tasks.translation.translator import Translator
from copier import Copier

SEARCHES = {
    "greedy": lambda **more: GreedySearch(12, **more),
    "beam": lambda **more: BeamSearch(3, 1.0, 12, **more),
    "sample": lambda **more: SampleSearch(1.0, 2, None, 1, 12, **more),
}


@pytest.fixture
def model(tiny_model, copies):
    def build(seed: int = 1, **choices):
        source, target = copies.source_tokenizer.size, copies.target_tokenizer.size
        sizes = {"source_vocabulary_size": source, "target_vocabulary_size": target}
        return tiny_model(seed=seed, scale=3.0, dtype=torch.float32, **sizes, **choices)

    return build


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
@pytest.mark.parametrize("side", ["pre", "post"])
def test_evaluate_replacing_unknown_words_gives_exact_matches(search, side, copies):
    copier = Copier(copies.target_tokenizer.size)
    copier.padding = Padding(encoder=side)
    found = evaluate([copier], search(replace_unknown=True), copies)
    assert found.metrics["exact_match"] == 1.0
    assert found.metrics["token_nll"] == pytest.approx(math.log(copies.target_tokenizer.size))
    assert "replace_unknown True" in found.signatures["search"]
    without = evaluate([copier], search(), copies)
    assert without.metrics["exact_match"] == 0.0
    assert {word for sentence in without.sentences for word in sentence["hypothesis"].split()} == {
        "<unk>"
    }


def test_translator_replaces_unknown_words(copies):
    for side in ("pre", "post"):
        copier = Copier(copies.target_tokenizer.size)
        copier.padding = Padding(encoder=side)
        search = {
            "_target_": "attnlab.search.greedy.GreedySearch",
            "max_length": 12,
            "replace_unknown": True,
        }
        translator = Translator(copier, copies.source_tokenizer, copies.target_tokenizer, search)
        texts = ["Rom", "Bern Zürich  Basel", "", "Ulm Ulm"]
        assert [each.text for each in translator(texts)] == [
            "Rom",
            "Bern Zürich Basel",
            "",
            "Ulm Ulm",
        ]


def test_evaluate_replacing_unknown_words_requires_attention(copies):
    copier = Copier(copies.target_tokenizer.size, attends=False)
    with pytest.raises(ExperimentError, match=r"search\.replace_unknown goes by"):
        evaluate([copier], GreedySearch(12, replace_unknown=True), copies)
    assert evaluate([copier], GreedySearch(12), copies).maps == []


def test_maps_know_the_alignment_and_the_tokens_that_differ_from_the_reference(copies):
    maps = evaluate([Copier(copies.target_tokenizer.size)], GreedySearch(12), copies).maps
    sources = [attention_map.source_tokens for attention_map in maps]
    # Unknown source tokens are copied as `<unk>`, and so are the known ones, which is wrong.
    assert any(token not in ("<unk>", "<eos>") for source in sources for token in source)
    for attention_map in maps:
        reference = attention_map.source_tokens
        wrong = [i for i, token in enumerate(reference) if token not in ("<unk>", "<eos>")]
        assert attention_map.wrong_targets == wrong
        diagonal = [[i, i] for i in range(len(reference) - 1)]
        assert attention_map.sure_links.tolist() == diagonal


def test_evaluate_keeps_the_maps_of_the_worst_sentences(model, copies, tmp_path):
    found = evaluate([model()], GreedySearch(12), copies)
    scores = sentence_scores(found.sentences)
    worst_first = sorted(range(len(scores)), key=lambda row: scores[row])
    kept = [scores[row] for row in found.worst]
    assert kept == [scores[row] for row in worst_first[: len(kept)]]
    assert len(found.worst) == len(found.worst_maps) == WORST

    for row, attention_map in zip(found.worst, found.worst_maps, strict=True):
        sentence = found.sentences[row]
        assert attention_map.title == f"{sentence['source']} → {sentence['hypothesis']}"

    found.write(tmp_path / "out")
    examples = read_examples(tmp_path / "out")
    assert (examples.typical, examples.worst) == (found.typical, found.worst)
    titles = [each.title for each in found.worst_maps]
    assert [each.title for each in examples.worst_maps] == titles


def test_records_of_sentences_have_what_the_metrics_of_references_sum(model, copies) -> None:
    found = evaluate([model()], GreedySearch(6), copies)
    metrics = metrics_of_references(found.sentences)
    assert list(metrics) == [
        "token_nll", "perplexity",
        "aer", "alignment_precision", "alignment_recall", "alignment_mass",
    ]  # fmt: skip
    for name, metric in metrics.items():
        sums = metric.statistics(found.sentences).sum(axis=0, keepdims=True)
        assert metric.scores(sums)[0] == pytest.approx(found.metrics[name], rel=1e-5)
    tokens = [sentence["target_tokens"] for sentence in found.sentences]
    assert tokens == (copies.split("test").target_lengths + 1).tolist()
    older = [{"hypothesis": sentence["hypothesis"]} for sentence in found.sentences]
    assert metrics_of_references(older) == {}


@pytest.mark.parametrize("n_best", [1, 3])
def test_evaluate_writes_n_best_hypotheses(n_best, model, copies, tmp_path):
    found = evaluate([model()], BeamSearch(4, 1.0, 6, n_best=n_best), copies)
    found.write(tmp_path / "out")
    rows = [
        json.loads(line)
        for line in (tmp_path / "out" / "hypotheses.jsonl").read_text().splitlines()
    ]
    assert len(rows) == len(copies.split("test"))
    for row in rows:
        assert ("n_best" in row) == (n_best > 1)
        if n_best > 1:
            scores = [each["score"] for each in row["n_best"]]
            assert len(scores) == n_best
            assert scores == sorted(scores, reverse=True)
            assert row["n_best"][0] == {"hypothesis": row["hypothesis"], "score": row["score"]}


def test_evaluate_ensemble_of_one_model_twice_equals_the_model(model, copies):
    search = BeamSearch(3, 1.0, 6)
    single, twice = (evaluate([model()] * count, search, copies) for count in (1, 2))
    assert twice.metrics == pytest.approx(single.metrics, abs=1e-5)
    assert [s["hypothesis"] for s in twice.sentences] == [s["hypothesis"] for s in single.sentences]
    assert (single.signatures["models"], twice.signatures["models"]) == (
        "one",
        "2, their probabilities averaged",
    )
    assert len(twice.maps) == len(single.maps) > 0


def test_evaluate_ensemble_likelihood_is_the_mean_of_members(model, copies):
    models = [model(1), model(2, decoder="no_attention")]
    found = evaluate(models, GreedySearch(6), copies)
    split = copies.split("test")
    nll, tokens = 0.0, 0
    with torch.no_grad():
        for row in range(len(split)):
            batch = split.batch(np.array([row]), Padding())
            probs = [torch.softmax(m.output(m(batch).reading[0]), -1) for m in models]
            for t, token in enumerate(batch.target_output[0].tolist()):
                nll -= math.log((probs[0][t, token] + probs[1][t, token]) / 2)
                tokens += 1
    assert found.metrics["token_nll"] == pytest.approx(nll / tokens, abs=1e-5)
    assert found.metrics["target_tokens"] == tokens
    attending = evaluate(models[:1], GreedySearch(6), copies)
    assert found.metrics["attention_entropy"] == pytest.approx(
        attending.metrics["attention_entropy"], abs=1e-6
    )


def test_evaluate_sampling_ignores_the_sentence_order(model, copies):
    """Evaluating again, in whatever batches, gives the same hypotheses."""
    search = SampleSearch(1.0, None, None, 7, 6)
    found = evaluate([model()], search, copies)
    node = {"_target_": "attnlab.search.sample.SampleSearch", **vars(search)}
    translator = Translator(model(), copies.source_tokenizer, copies.target_tokenizer, node)
    answers = translator([s["source"] for s in found.sentences][::-1])
    assert [each.text for each in answers] == [s["hypothesis"] for s in found.sentences[::-1]]


def test_evaluation_write_replaces_the_folder_and_writes_null_for_infinity(tmp_path: Path) -> None:
    sentences = [
        {"source": "Hallo\u2028Welt", "hypothesis": "안녕", "score": -0.5},
        {"source": "x", "hypothesis": "z", "score": float("-inf")},
    ]
    folder = tmp_path / "evaluation"
    metrics = {"bleu": 1.5, "perplexity": float("inf"), "aer": None}
    for _ in range(2):  # a second time replaces
        Evaluation(metrics, {"bleu": "tok:13a"}, sentences, [], [], [], []).write(folder)
    assert json.loads((folder / "metrics.json").read_text()) == {
        "aer": None,
        "bleu": 1.5,
        "perplexity": None,
    }
    lines = (folder / "hypotheses.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
    rows = [json.loads(line) for line in lines]
    assert rows[0]["source"] == "Hallo\u2028Welt"
    assert rows[1]["score"] is None
    assert [path.name for path in tmp_path.iterdir()] == ["evaluation"]


def test_evaluation_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        Evaluation({"bleu": object()}, {}, [], [], [], [], []).write(tmp_path / "evaluation")  # type: ignore[dict-item]
    assert list(tmp_path.iterdir()) == []
