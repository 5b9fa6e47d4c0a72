"""Attention weights of what a search wrote: the posterior, held to the sums over alignments."""

from __future__ import annotations

import numpy as np
import paper_equations as paper
import pytest
import torch
from composed_variants import MARGINALISES
from paper_equations.alignments import posterior
from tiny_folders import SOURCES

from attnlab.batch import EOS, Padding
from attnlab.data.padding import make_batch
from attnlab.model.attention.intervention import Intervention
from attnlab.search.beam import BeamSearch
from attnlab.search.ensemble import Ensemble
from attnlab.tasks.translation import analysis
from attnlab.tasks.translation.posterior import with_posteriors

PAPER = {"decoder": "step_then_attend", "context": "readout", "readout": "tanh"}
THREE_BEST = {"_target_": "attnlab.search.beam.BeamSearch", "size": 4, "n_best": 3}
THREE_BEST |= {"length_penalty": 0.0, "max_length": 3}
every_output = pytest.mark.parametrize("output", MARGINALISES)


@every_output
@pytest.mark.parametrize("padding", [Padding("pre", "pre"), Padding("post", "post")])
def test_translations_show_the_posterior_of_what_was_written(output, padding, translator):
    choices = {**PAPER, "output": output}
    choices_of_ours = choices | {"padding": padding, "dtype": torch.float64, "scale": 2.0}
    ours = translator(search=THREE_BEST, **choices_of_ours)
    by_paper = paper.Model(**choices)
    finished = []
    for text, answer in zip(SOURCES, ours(list(SOURCES)), strict=True):
        (source,) = ours.source_tokenizer.encode_ids([text])
        for translation in [answer, *answer.alternatives]:
            written = [ours.target_tokenizer.id_of(token) for token in translation.tokens]
            computed = by_paper.compute(paper.weights_of(ours.model), source, written)
            length = len(written)
            wanted = posterior(computed.transitions[:length], computed.emissions[:length], written)
            np.testing.assert_allclose(translation.attention, wanted, rtol=0, atol=1e-6)
            finished.append(written[-1] == EOS)
            read = analysis.score(ours, text, written)
            np.testing.assert_allclose(read["attention"], wanted, rtol=0, atol=1e-5)
    assert set(finished) == {True, False}


@every_output
def test_posterior_of_an_intervention_is_that_of_the_target(output, translator):
    ours = translator(output=output, scale=1.0)
    hidden = Intervention(hide=[1])
    answers = [ours(text, intervene=hidden) for text in SOURCES]
    finished = [answer for answer in answers if answer.tokens[-1] == "<eos>"]
    for answer in finished:
        scored = ours.score(answer.source, answer.text, hidden)
        np.testing.assert_allclose(answer.attention, scored.attention, atol=1e-5)
        assert (answer.attention[:, 1] == 0).all()
    assert finished


def test_ensemble_shows_the_mean_of_posteriors_and_weights(tiny_model, pairs):
    models = [tiny_model(scale=3.0, output=output) for output in ("hard_attention", "linear")]
    source = make_batch(*pairs(), models[0].padding)
    search = BeamSearch(2, 0.0, 5, n_best=2)
    ensemble = Ensemble(models)
    found = search(ensemble, source.source, source.source_mask, with_attention=True)
    shown = with_posteriors(ensemble, source.source, source.source_mask, found)
    for row, hypotheses in enumerate(shown):
        ids = source.source[row][source.source_mask[row]].tolist()[:-1]
        for before, after in zip(found[row], hypotheses, strict=True):
            assert (before.tokens, before.score) == (after.tokens, after.score)
            if after.finished:
                one = make_batch([ids], [after.tokens], models[0].padding)
                each = [model(one).attention_weights[0] for model in models]
                weights = after.attention_weights[:, source.source_mask[row]]
                mean = (each[0] + each[1]).float() / 2
                torch.testing.assert_close(weights, mean, rtol=0, atol=1e-6)


def test_search_without_a_posterior_keeps_its_hypotheses(tiny_model, pairs):
    search = BeamSearch(2, 0.0, 5)
    for output, with_attention in (("linear", True), ("hard_attention", False)):
        model = tiny_model(output=output)
        batch = make_batch(*pairs(), model.padding)
        found = search(model, batch.source, batch.source_mask, with_attention=with_attention)
        assert with_posteriors(model, batch.source, batch.source_mask, found) is found
