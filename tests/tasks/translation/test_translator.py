"""What a translator answers, held against the search and the model that it asks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_folders import SOURCES, TARGETS

from attnlab.batch import EOS, Padding
from attnlab.data.padding import make_batch
from attnlab.errors import ExperimentError
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.patch import Patch
from attnlab.model.fast.seq2seq import FastSeq2Seq
from attnlab.search.beam import BeamSearch
from attnlab.tasks import requests
from attnlab.tasks.translation.translator import Translator


def test_loaded_translator_has_a_sped_up_model(translator_folder):
    assert isinstance(Translator.load(translator_folder).model, FastSeq2Seq)


@pytest.mark.parametrize("side", ["pre", "post"])
def test_answer_is_the_best_hypothesis_of_the_search(translator, side):
    ours = translator(padding=Padding(side))
    for text in SOURCES:
        answer = ours(text)
        ids = ours.source_tokenizer.encode_ids([text])
        batch = make_batch(ids, [[]], ours.padding)
        ((best,),) = BeamSearch(2, 1.0, 7)(
            ours.model, batch.source, batch.source_mask, with_attention=True
        )
        assert answer.text == ours.target_tokenizer.decode(best.tokens)
        assert answer.tokens == ours.target_tokenizer.tokens(best.tokens + [EOS] * best.finished)
        assert answer.source_tokens == ours.source_tokenizer.tokens([*ids[0], EOS])
        assert answer.score == pytest.approx(best.score)
        np.testing.assert_allclose(answer.attention, best.attention_weights.numpy(), atol=1e-6)


def test_list_gives_the_answers_of_its_texts_in_their_order(translator, monkeypatch):
    ours = translator()
    alone = [ours(text) for text in SOURCES]
    monkeypatch.setattr(requests, "WINDOW", 2)  # sentences are sorted within four only
    together = list(ours.stream(SOURCES * 2, batch_size=2))
    assert [each.text for each in together] == [each.text for each in alone * 2]
    for one, other in zip(together, alone * 2, strict=True):
        np.testing.assert_allclose(one.attention, other.attention, atol=1e-5)
    assert ours([]) == []


def test_stream_of_one_text_is_refused_and_not_read_letter_by_letter(translator):
    with pytest.raises(TypeError, match="texts must be a list of texts, got one text, 'Guten Tag'"):
        list(translator().stream("Guten Tag"))


@pytest.mark.parametrize(("batch_size", "ahead"), [(3, 6), (1, 1)])
def test_stream_reads_no_farther_than_its_window(translator, monkeypatch, batch_size, ahead):
    monkeypatch.setattr(requests, "WINDOW", 2)
    read = []

    def texts():
        for text in SOURCES * 3:
            read.append(text)
            yield text

    answers = translator().stream(texts(), with_attention=False, batch_size=batch_size)
    assert next(answers).attention is None
    assert len(read) == ahead


def test_alternatives_are_the_rest_of_the_n_best_list(translator):
    ours = translator()
    answer = ours(SOURCES[0], beam=5, n_best=3)
    scores = [answer.score, *(each.score for each in answer.alternatives)]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    assert len({answer.text, *(each.text for each in answer.alternatives)}) == 3
    assert all(each.attention.shape == (len(each.tokens), 5) for each in answer.alternatives)


def test_settings_change_the_search_for_one_call(translator):
    ours = translator()
    own = ours(SOURCES[0])
    assert len(ours(SOURCES[0], max_length=2).tokens) <= 2
    assert (
        ours(SOURCES[0], search="greedy").text == ours(SOURCES[0], beam=1, length_penalty=0.0).text
    )
    drawn = {ours(SOURCES[0], temperature=5.0, seed=seed).text for seed in range(5)}
    assert len(drawn) > 1
    assert ours(SOURCES[0]).text == own.text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bean": 3}, "bean is no setting of a search; there are beam, search, coverage_penalty"),
        ({"beam": 0}, "search.size must be .*got 0"),
        ({"beam": 3, "n_best": 4}, "n_best must be at most the beam's size"),
        (
            {"beam": 3, "temperature": 2.0},
            "'beam', 'temperature' do not go together with one search",
        ),
        ({"search": "greedy", "beam": 3}, "do not go together with search='greedy'"),
        ({"search": "best"}, "search must be one of greedy, beam, sample; got 'best'"),
    ],
)
def test_wrong_setting_is_refused_in_a_sentence(translator, settings, message):
    with pytest.raises(ExperimentError, match=message):
        translator()("나는", **settings)


@pytest.mark.parametrize("decoder", ["attend_then_step", "step_then_attend", "no_attention"])
@pytest.mark.parametrize("side", ["pre", "post"])
def test_score_is_the_log_probability_of_each_token(translator, decoder, side):
    """The sum is what the search gives a hypothesis without a length penalty."""
    ours = translator(decoder=decoder, padding=Padding("post", side))
    ends = Intervention(force={3: "<eos>"})  # many would go on to the length limit
    answers = ours(SOURCES, beam=3, length_penalty=0.0, n_best=2, intervene=ends)
    scored = ours.score([each.source for each in answers], [each.text for each in answers])
    finished = 0
    for answer, each in zip(answers, scored, strict=True):
        assert each.total == pytest.approx(each.log_probs.sum(), abs=1e-5)
        if answer.tokens[-1] != "<eos>" or "<unk>" in answer.tokens:
            continue
        finished += 1
        assert each.tokens == answer.tokens
        assert each.total == pytest.approx(answer.score, abs=1e-4)
        if decoder == "no_attention":
            assert each.attention is None
        else:
            np.testing.assert_allclose(each.attention, answer.attention, atol=1e-5)
    assert finished


def test_interventions_reach_the_searches_and_the_score(translator):
    ours = translator()
    for search in ("greedy", "beam", "sample"):
        answer = ours(SOURCES[0], search=search, intervene=Intervention("uniform"))
        np.testing.assert_allclose(answer.attention, 0.2, atol=1e-6)
    scored = ours.score(SOURCES[0], "i go home", intervene=Intervention(hide=[0, 4]))
    assert scored.target == "i go home"
    assert (scored.attention[:, [0, 4]] == 0).all()
    assert (scored.attention[:, 1:4].sum(1) > 0.99).all()


def test_own_weights_given_back_translate_the_same(translator):
    ours = translator()
    for text in SOURCES:
        answer = ours(text, beam=1)
        again = ours(
            text, beam=1, intervene=Intervention(weights=dict(enumerate(answer.attention.tolist())))
        )
        assert again.tokens == answer.tokens
        assert again.score == pytest.approx(answer.score, abs=1e-6)


def test_forced_token_stands_where_it_was_asked_for(translator):
    ours = translator()
    answer = ours(SOURCES[0], intervene=Intervention(force={1: "school", 2: "<eos>"}))
    assert answer.tokens[1:] == ["school", "<eos>"]
    by_id = ours(
        SOURCES[0], intervene=Intervention(force={1: ours.target_tokenizer.id_of("school"), 2: EOS})
    )
    assert by_id.tokens == answer.tokens


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Intervention(force={0: "수"}), "force: '수' is no token that the model can write"),
        (Intervention(force={0: "<bos>"}), "force: '<bos>' is no token"),
        (Intervention(force={0: 10_000}), "force: 10000 is no token"),
        (Intervention(hide=[5]), "intervene: hide must name positions below 5"),
        (Intervention(weights={0: [1.0]}), "intervene: weights of step 0 must be 5"),
        (Intervention(force={60: "school"}), "intervene: weights and force must name steps below"),
        (Intervention(hide=[0], heads=[1]), "intervene: heads must be below 1, .* got 1"),
        (Intervention(patch=Patch(SOURCES[1], values={0: 40})), "intervene: patch must take"),
        (Intervention(patch=Patch(SOURCES[1], values={40: 0})), "intervene: patch must name"),
    ],
)
def test_intervention_that_does_not_fit_is_refused(translator, change, message):
    with pytest.raises(ExperimentError, match=message):
        translator()(SOURCES[0], intervene=change)


def test_score_takes_a_forced_token_in_the_place_of_the_targets(translator):
    ours = translator()
    (wanted, _), words = ours.score(SOURCES[0], [TARGETS[1], TARGETS[0]]), TARGETS[0].split()
    first = wanted.tokens[0]
    forced = ours.score(SOURCES[0], TARGETS[0], Intervention(force={0: first, 2: "<eos>"}))
    assert forced.tokens == [first, words[1], "<eos>"]
    np.testing.assert_allclose(
        forced.log_probs, ours.score(SOURCES[0], f"{first} {words[1]}").log_probs, atol=1e-6
    )
    with pytest.raises(
        ExperimentError, match="must name steps below 5, the most tokens of this target, got 7"
    ):
        ours.score(SOURCES[0], TARGETS[0], Intervention(force={7: first}))
    with pytest.raises(
        ExperimentError, match=r"must name steps below 4, .* step 4 is that of its <eos>"
    ):
        ours.score(SOURCES[0], TARGETS[0], Intervention(force={4: first}))


@pytest.mark.parametrize("blank", ["", "  "])
def test_blank_text_gets_a_translation_without_tokens(translator, blank):
    answers = translator()([SOURCES[0], blank])
    assert answers[0].tokens
    assert (answers[1].text, answers[1].tokens, answers[1].score) == ("", [], 0.0)


def test_model_without_attention_translates_and_refuses_to_change_it(translator):
    ours = translator(decoder="no_attention")
    answer = ours(SOURCES[0], intervene=Intervention(force={0: "school"}))
    assert answer.tokens[0] == "school"
    assert answer.attention is None
    assert "<p>" in answer._repr_html_()
    with pytest.raises(ExperimentError, match="the model has none"):
        ours(SOURCES[0], intervene=Intervention("uniform"))


def test_patched_first_state_is_all_that_a_model_without_attention_knows(translator):
    ours = translator(decoder="no_attention", scale=3.0)
    of_other = Intervention(patch=Patch(SOURCES[1], state=True))
    plain, other = ours(SOURCES[0]), ours(SOURCES[1])
    patched = ours(SOURCES[0], intervene=of_other)
    assert (patched.text, patched.score) == (other.text, pytest.approx(other.score))
    assert plain.score != pytest.approx(other.score)
    scored = ours.score([SOURCES[0], SOURCES[1]], [TARGETS[0], TARGETS[0]], of_other)
    np.testing.assert_allclose(scored[0].log_probs, scored[1].log_probs, atol=1e-6)
    with pytest.raises(ExperimentError, match="the model has none"):
        ours(SOURCES[0], intervene=Intervention(patch=Patch(SOURCES[1], values={0: 0})))


def test_decoder_that_starts_with_nothing_has_no_state_to_patch(translator):
    ours = translator(bridge="zero")
    with pytest.raises(ExperimentError, match=r"patch takes the state, but the decoder .* none"):
        ours(SOURCES[0], intervene=Intervention(patch=Patch(SOURCES[1], state=True)))


def test_model_that_scores_by_position_has_no_keys_to_patch(translator):
    ours = translator(attention="location")
    with pytest.raises(ExperimentError, match="patch takes keys, but the score"):
        ours(SOURCES[0], intervene=Intervention(patch=Patch(SOURCES[1], keys={0: 0})))


def test_notebook_shows_the_heat_map_with_tokens_escaped(translator):
    page = translator()(SOURCES[3])._repr_html_()
    assert page.startswith("<iframe srcdoc=")
    assert "집" in page
    assert "<b>" not in page


def test_translation_without_intervention_is_the_same_to_the_bit(translator):
    ours = translator()
    plain, empty = ours(SOURCES[0]), ours(SOURCES[0], intervene=Intervention())
    assert plain.score == empty.score
    assert torch.equal(torch.from_numpy(plain.attention), torch.from_numpy(empty.attention))
