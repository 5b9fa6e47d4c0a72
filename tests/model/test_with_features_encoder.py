"""An encoder of features beside that of their source, against its two parts, composed by hand."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from classifier_over import assert_batch_is_as_its_rows, classifier_over
from composed_variants import part_of
from encoder_gradients import assert_gradients_are_right

from attnlab.batch import EOS, PAD, UNK, Padding
from attnlab.config.part import Part
from attnlab.data.padding import make_batch
from attnlab.data.trainers import CharacterTrainer, TaggedCharacterTrainer, WordTrainer
from attnlab.errors import ExperimentError
from attnlab.evaluation.explanations import relevances
from attnlab.experiment.composition import compose
from attnlab.explorer.supported import unsupported
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.patch import Patch
from attnlab.model.encoders.encoder import Encoded
from attnlab.model.encoders.stacked import StackedEncoder
from attnlab.model.encoders.with_features import WithFeaturesEncoder
from attnlab.model.fast import speed_up
from attnlab.model.fast.encoder import FastEncoder
from attnlab.model.seq2seq import Seq2Seq
from explored_models import build_character_translator

EXACT: dict[str, Any] = {"rtol": 0, "atol": 1e-10}
SMALL = {
    "embedding_size": 6,
    "hidden_size": 3,
    "layers": 2,
    "blocks": 2,
    "kernel": 3,
    "window": 3,
    "longest": 9,
    "self_attention_heads": 2,
    "feed_forward_size": 5,
}
V = 14
FEATURES = [10, 11, 12, 13]
# Of each row the features and what stands behind them, without <eos>.
ROWS = [
    ([10, 12], [4, 5, 6, 7]),
    ([], [5, 9]),
    ([13, 11, 12], [8]),
    ([11], []),
    # Behind the first other token, a feature is a token like the others.
    ([10], [7, 11, 6]),
    # An unknown token is a feature only where a known one follows it.
    ([UNK, 12], [UNK, 4]),
]
MIXES = [
    ("bag_of_words", "gru"),
    ("self_attention", "lstm"),
    ("lstm", "convolutional"),
    ("lstm", "lstm"),
    ("gru", "self_attention"),
    ("averaging", "rnn"),
]
every_mix = pytest.mark.parametrize("names", MIXES, ids="-".join)


def part(name: str, **values: Any) -> Part[Any]:
    sizes = {**SMALL, "longest": None} if name == "self_attention" else SMALL
    found = part_of("encoder", name, sizes, **values)
    assert found is not None
    return found


def encoder_of(
    names: tuple[str, str],
    padding: Padding = Padding(),  # noqa: B008 (frozen)
    read: Any = "both",
    **of_features: Any,
) -> WithFeaturesEncoder:
    torch.manual_seed(4)
    encoder = WithFeaturesEncoder(
        part(names[0], **of_features),
        part(names[1]),
        read=read,
        source_vocabulary_size=V,
        padding=padding,
    )
    encoder.name_features(FEATURES)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.normal_(std=0.6)
        for each in (encoder.features, encoder.source):
            each.embedding.weight[PAD].zero_()
    return encoder.double().eval()


def composed_by_hand(
    encoder: WithFeaturesEncoder, names: tuple[str, str], features: list[int], rest: list[int]
) -> Encoded:
    """The two parts as encoders of their own, of one row without pads."""
    read = []
    for name, own, tokens in (
        (names[0], encoder.features, [*features, EOS]),
        (names[1], encoder.source, [*rest, EOS]),
    ):
        alone = part(name)(source_vocabulary_size=V, padding=Padding())
        alone.load_state_dict(own.state_dict())
        ids = torch.tensor([tokens])
        read.append(alone.double().eval()(ids, torch.ones_like(ids, dtype=torch.bool)))
    of_features, of_rest = read

    vectors = of_features.outputs[0, : len(features)]
    if isinstance(encoder.W_features, torch.nn.Linear):
        vectors = vectors @ encoder.W_features.weight.mT + encoder.W_features.bias
    outputs = torch.cat([vectors, of_rest.outputs[0]])

    last = of_features.final.hidden[-1]
    hidden = torch.stack([torch.cat([h, last], dim=-1) for h in of_rest.final.hidden])
    cell = None
    if of_rest.final.cell is not None:
        beside = last if of_features.final.cell is None else of_features.final.cell[-1]
        cell = torch.stack([torch.cat([c, beside], dim=-1) for c in of_rest.final.cell])
    final = type(of_rest.final)(hidden, cell)
    return Encoded(outputs.unsqueeze(0), final, of_rest.backward)


def check_row(found: Encoded, row: int, real: torch.Tensor, expected: Encoded) -> None:
    torch.testing.assert_close(found.outputs[row][real], expected.outputs[0], **EXACT)
    states = [(found.final, expected.final)]
    assert (found.backward is None) == (expected.backward is None)
    if found.backward is not None and expected.backward is not None:
        states.append((found.backward, expected.backward))
    for state, alone in states:
        torch.testing.assert_close(state.hidden[:, row], alone.hidden[:, 0], **EXACT)
        assert (state.cell is None) == (alone.cell is None)
        if state.cell is not None and alone.cell is not None:
            torch.testing.assert_close(state.cell[:, row], alone.cell[:, 0], **EXACT)


def batch_of(padding: Padding, rows: Any = ROWS) -> Any:
    sources = [[*features, *rest] for features, rest in rows]
    return make_batch(sources, [[4]] * len(sources), padding)


@every_mix
@pytest.mark.parametrize("side", ["pre", "post"])
def test_padded_batch_equals_the_two_parts_on_each_row(names, side):
    padding = Padding(encoder=side)
    batch = batch_of(padding)
    encoder = encoder_of(names, padding)
    found = encoder(batch.source, batch.source_mask)
    assert found.outputs.shape == (*batch.source.shape, encoder.output_size)
    assert found.final.hidden.shape[::2] == (encoder.state_shape.layers, encoder.state_shape.size)
    assert (found.final.cell is not None) == encoder.state_shape.has_cell
    assert found.attended is None
    for row, (features, rest) in enumerate(ROWS):
        expected = composed_by_hand(encoder, names, features, rest)
        check_row(found, row, batch.source_mask[row], expected)
    assert (found.outputs[~batch.source_mask] == 0).all()


def test_outputs_of_another_width_go_through_a_linear_layer():
    names = ("bag_of_words", "gru")
    wide = encoder_of(names)
    assert isinstance(wide.W_features, torch.nn.Identity)  # 6 and 2 * 3
    narrow = encoder_of(names, embedding_size=5)
    assert narrow.W_features.weight.shape == (6, 5)
    batch = batch_of(Padding())
    found = narrow(batch.source, batch.source_mask)
    features = ROWS[0][0]
    embedded = narrow.features.embedding.weight[features]
    expected = embedded @ narrow.W_features.weight.mT + narrow.W_features.bias
    at_features = found.outputs[0][batch.source_mask[0]][: len(features)]
    torch.testing.assert_close(at_features, expected, **EXACT)


@every_mix
def test_row_is_read_with_pads_on_either_side_of_it(names):
    """Also with those that no batch of the training had."""
    encoder = encoder_of(names, Padding(encoder="post"))
    features, rest = ROWS[0]
    tokens = torch.nn.functional.pad(torch.tensor([[*features, *rest, EOS]]), (2, 1))
    found = encoder(tokens, tokens != PAD)
    check_row(found, 0, tokens[0] != PAD, composed_by_hand(encoder, names, features, rest))


@every_mix
@pytest.mark.parametrize("side", ["pre", "post"])
def test_pads_are_read_by_each_part_where_they_are_words(names, side):
    """A row that needs no pad in either part is as ever; the others have pads among their words."""
    padding = Padding(encoder=side, recurrence="read")
    batch = batch_of(padding)
    encoder = encoder_of(names, padding)
    found = encoder(batch.source, batch.source_mask)
    assert found.outputs.isfinite().all()
    skipped = encoder_of(names, Padding(encoder=side))(batch.source, batch.source_mask)
    assert not torch.allclose(found.final.hidden, skipped.final.hidden)


def test_rows_without_any_feature_are_read_by_the_sources_part_alone():
    names = ("self_attention", "gru")
    encoder = encoder_of(names)
    rows = [([], [4, 5]), ([], [6])]
    batch = batch_of(Padding(), rows)
    found = encoder(batch.source, batch.source_mask)
    alone = encoder.source(batch.source, batch.source_mask)
    torch.testing.assert_close(found.outputs, alone.outputs, **EXACT)
    # The features' encoder reads <eos> alone, so that its half of the state is the same for all.
    half = found.final.hidden[..., alone.final.hidden.shape[2] :]
    torch.testing.assert_close(half[:, 0], half[:, 1], **EXACT)
    untold = encoder_of(names)
    untold.name_features([])
    assert not untold.is_feature.any()


@pytest.mark.parametrize("lengths", ["all", "some"])
def test_fast_recurrences_give_the_numbers_of_the_plain_ones(lengths):
    plain = encoder_of(("lstm", "gru"))
    fast = speed_up(copy.deepcopy(plain))
    assert isinstance(fast.features, FastEncoder)
    assert isinstance(fast.source, FastEncoder)
    batch = batch_of(Padding(), ROWS if lengths == "all" else ROWS[1:2] * 3)
    expected, found = (each(batch.source, batch.source_mask) for each in (plain, fast))
    torch.testing.assert_close(found.outputs, expected.outputs, **EXACT)
    torch.testing.assert_close(found.final.hidden, expected.final.hidden, **EXACT)


@every_mix
def test_gradient_of_every_weight_is_that_of_finite_differences(names):
    encoder = encoder_of(names)
    assert_gradients_are_right(encoder, batch_of(Padding(), ROWS[:3]))


# What the attention reads


def seq2seq(tiny_model: Any, read: str, **choices: Any) -> Seq2Seq:
    model = tiny_model(encoder="with_features", source_vocabulary_size=V, **choices)
    model.encoder.attended_whole = read == "both"
    model.encoder.name_features(FEATURES)
    return model


@pytest.mark.parametrize("side", ["pre", "post"])
@pytest.mark.parametrize("read", ["both", "source"])
def test_attention_sees_the_features_only_where_it_reads_both(tiny_model, side, read):
    padding = Padding(encoder=side)
    model = seq2seq(tiny_model, read, padding=padding)
    batch = batch_of(padding)
    weights = model(batch).attention_weights[:, 0]  # (B, S)
    for row, (features, rest) in enumerate(ROWS):
        of_row = weights[row][batch.source_mask[row]]
        assert of_row.sum().item() == pytest.approx(1)
        assert (of_row[len(features) :] > 0).all()
        assert (of_row[: len(features)] > 0).all() == (read == "both" or not features)
        assert len(of_row) == len(features) + len(rest) + 1
    assert (weights[~batch.source_mask] == 0).all()


@pytest.mark.parametrize("scope", ["local_m", "local_p"])
@pytest.mark.parametrize("attention", ["location", "delta_rule"])
def test_hidden_features_leave_the_positions_of_the_source_as_they_are(
    tiny_model, scope, attention
):
    """A window at the start of the target is one at the start of the source's own part."""
    normaliser = "none" if attention == "delta_rule" else "softmax"
    model = seq2seq(tiny_model, "source", scope=scope, attention=attention, normaliser=normaliser)
    with_features, without = batch_of(Padding(), ROWS[:1]), batch_of(Padding(), [([], ROWS[0][1])])
    encoded = model.encoder(with_features.source, with_features.source_mask)
    memory, _ = model.encode(with_features.source, with_features.source_mask)
    expected, _ = model.encode(without.source, without.source_mask)
    count = len(ROWS[0][0])
    assert encoded.attended.tolist() == memory.mask.tolist()
    assert memory.positions[:, count:].tolist() == expected.positions.tolist()
    assert memory.lengths.tolist() == expected.lengths.tolist()
    torch.testing.assert_close(memory.keys[:, count:], expected.keys, **EXACT)


def test_features_stay_hidden_where_the_attention_may_weigh_pads(tiny_model):
    padding = Padding(attention_masked=False)
    model = seq2seq(tiny_model, "source", padding=padding)
    batch = batch_of(padding)
    weights = model(batch).attention_weights[:, 0]
    first = batch.source_mask.int().argmax(1)
    assert (weights[~batch.source_mask] > 0).all()
    for row, (features, _) in enumerate(ROWS):
        start = int(first[row])
        assert (weights[row, start : start + len(features)] == 0).all()


@pytest.mark.parametrize("side", ["pre", "post"])
@pytest.mark.parametrize("read", ["both", "source"])
def test_interventions_name_all_tokens_of_the_source(tiny_model, side, read):
    """Also those that the attention does not look at: as an answer's `.source_tokens`."""
    padding = Padding(encoder=side)
    model = seq2seq(tiny_model, read, padding=padding)
    batch = batch_of(padding, ROWS[:1] * 2)
    own = model(batch).attention_weights[:, 0]  # (B, S)
    tokens = sum(map(len, ROWS[0])) + 1

    features = len(ROWS[0][0])
    for place in range(tokens):
        hidden = model(batch, intervention=Intervention(hide=[place])).attention_weights[:, 0]
        unseen = {place, *range(features)} if read == "source" else {place}
        zeros = (hidden[0] == 0).nonzero().flatten().tolist()
        assert zeros == sorted(unseen)
    rows = own[0].tolist()
    given = model(batch, intervention=Intervention(weights={0: rows}))
    torch.testing.assert_close(given.attention_weights[:, 0], own, **EXACT)
    expected = model(batch).reading.readout
    torch.testing.assert_close(given.reading.readout, expected, **EXACT)


@pytest.mark.parametrize("read", ["both", "source"])
def test_patch_takes_the_values_of_the_tokens_that_it_names(tiny_model, read):
    """The last two characters exchange their values, behind more features there than here."""
    model = seq2seq(tiny_model, read)
    here, there = batch_of(Padding(), ROWS[:1]), batch_of(Padding(), ROWS[2:3])
    features, others = len(ROWS[0][0]), len(ROWS[2][0])
    patch = Patch("", values={features: others}).read(there)
    memory, _ = model.encode(here.source, here.source_mask)
    of_other, _ = model.encode(there.source, there.source_mask)
    patched, _ = model.encode(here.source, here.source_mask, Intervention(patch=patch))
    expected = memory.values.clone()
    expected[0, features] = of_other.values[0, others]
    torch.testing.assert_close(patched.values, expected, **EXACT)


def test_mean_bridge_leaves_out_what_the_attention_does(tiny_model):
    model = seq2seq(tiny_model, "source", bridge="mean")
    batch = batch_of(Padding(), ROWS[:1])
    encoded = model.encoder(batch.source, batch.source_mask)
    rest = encoded.outputs[0, len(ROWS[0][0]) :]
    expected = torch.tanh(model.bridge.hidden(rest.mean(0)))
    found = model.bridge(encoded, batch.source_mask).hidden[:, 0].flatten()
    torch.testing.assert_close(found, expected, **EXACT)


OF_SOURCE = ("model/encoder=with_features", "model.encoder.read=source", "tracking=none")


@pytest.mark.parametrize("bridge", ["zero", "mean", "first_backward"])
def test_features_that_would_reach_nothing_are_refused(bridge):
    with pytest.raises(ExperimentError) as refused:
        compose([*OF_SOURCE, f"model/bridge={bridge}"])
    (problem,) = refused.value.problems
    assert problem.startswith("model.encoder keeps a part of the source from the attention, and ")
    assert problem.endswith("; choose model/bridge=linear or model.encoder.read=both")
    compose([*OF_SOURCE, f"model/bridge={bridge}", "model.encoder.read=both"])


def test_decoder_without_attention_reads_the_features_in_the_summary():
    without = ("model/attention=none", "model.decoder.context=every_step", "model/bridge=zero")
    compose([*OF_SOURCE, *without])


# Where it stands among others


def test_it_may_be_the_first_part_of_a_stack():
    first = Part(
        WithFeaturesEncoder, features=part("bag_of_words"), source=part("gru"), read="both"
    )
    stack = StackedEncoder(first, part("lstm"), True, source_vocabulary_size=V, padding=Padding())
    stack.name_features(FEATURES)
    assert stack.first.is_feature.nonzero().flatten().tolist() == FEATURES


def test_row_of_features_alone_leaves_its_last_token_to_the_source():
    """As where somebody takes <eos> away."""
    encoder = encoder_of(("gru", "lstm"))
    tokens = torch.tensor([FEATURES[:3], [PAD, 10, UNK]])
    found = encoder(tokens, tokens != PAD)
    alone = encoder.source(torch.tensor([[12], [UNK]]), torch.ones(2, 1, dtype=torch.bool))
    torch.testing.assert_close(found.outputs[:, 2:], alone.outputs, **EXACT)


def test_embedding_is_not_one_that_could_be_tied_or_explained(tiny_model):
    model = seq2seq(tiny_model, "both")
    assert model.encoder.embedding is None
    batch = batch_of(Padding())
    assert relevances(model, batch, ["leave_one_out"])["leave_one_out"].any()
    with pytest.raises(ValueError, match="WithFeaturesEncoder has None for embedding; choose met"):
        relevances(model, batch, ["gradient"])


def test_classifier_gives_a_batch_what_it_gives_a_row():
    torch.manual_seed(0)
    parts = {"features": part("bag_of_words"), "source": part("lstm")}
    model = classifier_over(WithFeaturesEncoder, V, parts, read="source")
    model.encoder.name_features(FEATURES)
    assert_batch_is_as_its_rows(model, batch_of(Padding()))


def test_exported_page_refuses_it_in_a_sentence(tiny_model):
    (problem,) = unsupported(build_character_translator(tiny_model, encoder="with_features"))
    assert problem.startswith("model/encoder is attnlab.model.encoders.with_features.WithFeatures")


# The vocabulary


def test_features_of_a_vocabulary_are_its_words_in_angle_brackets():
    texts = ["<pos=V> <num=PL> ab < c>", "<pos=N> <eos> <unk:7> ba"]
    tagged = TaggedCharacterTrainer().train(texts)
    names = tagged.tokens(tagged.feature_ids)
    assert sorted(names) == ["<num=PL>", "<pos=N>", "<pos=V>"]
    assert CharacterTrainer().train(texts).feature_ids == []
    words = WordTrainer(split="whitespace", min_frequency=1, numbered_unknown=2).train(texts)
    found = words.tokens(words.feature_ids)
    assert {"<pos=V>", "<num=PL>", "<pos=N>"} == set(found)


@pytest.mark.parametrize(("texts", "warns"), [(["<PL> ab"], False), (["ab"], True)])
def test_vocabulary_without_features_is_warned_of(capsys, texts, warns):
    experiment = compose(["model/encoder=with_features", "tracking=none"])
    experiment.task.warn_without_features(experiment, TaggedCharacterTrainer().train(texts))
    said = capsys.readouterr().err
    assert ("warning: model.encoder has an encoder for features" in said) == warns
    usual = compose(["tracking=none"])
    usual.task.warn_without_features(usual, TaggedCharacterTrainer().train(texts))
    assert capsys.readouterr().err == ""


def test_weights_hold_the_features_and_a_loaded_model_has_them(tiny_model):
    ours, theirs = (tiny_model(encoder="with_features", source_vocabulary_size=V) for _ in "ab")
    ours.encoder.name_features(FEATURES)
    theirs.load_state_dict(ours.state_dict())
    batch = batch_of(Padding())
    found = theirs.encoder(batch.source, batch.source_mask)
    expected = ours.encoder(batch.source, batch.source_mask)
    assert torch.equal(found.final.hidden, expected.final.hidden)
    assert theirs.encoder.is_feature.nonzero().flatten().tolist() == FEATURES
