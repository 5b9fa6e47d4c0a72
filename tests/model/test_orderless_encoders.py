"""Encoders without a recurrence, against their equations, sentence by sentence."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import paper_equations as paper
import pytest
import torch
from composed_variants import part_of, usual_first
from encoder_gradients import assert_gradients_are_right
from tiny_folders import classifier_config

from attnlab.batch import EOS, PAD, Padding
from attnlab.config.binding import bind
from attnlab.data.padding import Ragged, make_batch, pad_labelled
from attnlab.errors import ExperimentError
from attnlab.evaluation.explanations import METHODS, is_attention_explanation, relevances
from attnlab.evaluation.gradient_flow import gradient_flow
from attnlab.experiment.composition import compose
from attnlab.explorer.supported import unsupported
from attnlab.model.classifier import Classifier
from attnlab.model.encoders.convolutional import ConvolutionalEncoder
from attnlab.search.beam import BeamSearch
from attnlab.search.greedy import GreedySearch
from attnlab.tasks.edited_source import Edit
from attnlab.tasks.translation.step_numbers import step_numbers
from explored_models import build_character_translator

BLOCKS, WINDOW = 3, 3
SMALL = {"embedding_size": 6, "hidden_size": 4, "blocks": BLOCKS, "kernel": 3, "longest": 8}
SMALL["window"] = WINDOW
EXACT = {"rtol": 0, "atol": 1e-10}

# Of each encoder its equation: weights and tokens -> the encoded sentence.
EQUATIONS: dict[str, Callable[[paper.Weights, list[int]], paper.Encoded]] = {
    "convolutional": lambda w, tokens: paper.convolutional(w, tokens, BLOCKS),
    "averaging": lambda w, tokens: paper.averaging(w, tokens, WINDOW),
    "bag_of_words": paper.bag_of_words,
}
# Of those that `tiny_model` builds at another size.
OF_TINY_MODEL: dict[str, Callable[[paper.Weights, list[int]], paper.Encoded]] = {
    "convolutional": lambda w, tokens: paper.convolutional(w, tokens, 2),
    "averaging": lambda w, tokens: paper.averaging(w, tokens, 5),
}
WITH_POSITIONS = ("convolutional", "averaging")
every_encoder = pytest.mark.parametrize("name", EQUATIONS)
with_positions = pytest.mark.parametrize("name", WITH_POSITIONS)


def encoder_of(name: str, padding: Padding = Padding(), **values: Any) -> Any:  # noqa: B008 (frozen)
    part = part_of("encoder", name, SMALL, **values)
    assert part is not None
    torch.manual_seed(4)
    encoder = part(source_vocabulary_size=11, padding=padding).double().eval()
    with torch.no_grad():
        for parameter in encoder.parameters():  # the paper's first weights make all outputs alike
            parameter.normal_()
        encoder.embedding.weight[PAD].zero_()
    return encoder


def equals(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.detach().numpy(), expected, **EXACT)


@every_encoder
@pytest.mark.parametrize("side", ["pre", "post"])
def test_padded_batch_equals_the_equation_on_each_sentence(name, side, pairs):
    sources, targets = pairs()
    padding = Padding(encoder=side)
    batch = make_batch(sources, targets, padding)
    encoder = encoder_of(name, padding)
    found = encoder(batch.source, batch.source_mask)
    assert found.outputs.shape == (4, 8, encoder.output_size)
    w = paper.weights_of(encoder)
    for row, source in enumerate(sources):
        expected = EQUATIONS[name](w, [*source, EOS])
        equals(found.outputs[row][batch.source_mask[row]], expected.outputs)
        equals(found.final.hidden[:, row], expected.final.hidden)
    assert (found.outputs[~batch.source_mask] == 0).all()
    assert found.final.cell is None
    assert found.backward is None


@every_encoder
@pytest.mark.parametrize("side", ["pre", "post"])
def test_read_takes_pads_for_tokens(name, side, pairs):
    padding = Padding(encoder=side, recurrence="read")
    batch = make_batch(*pairs(), padding)
    encoder = encoder_of(name, padding)
    found = encoder(batch.source, batch.source_mask)
    w = paper.weights_of(encoder)
    for row in range(len(batch)):
        expected = EQUATIONS[name](w, batch.source[row].tolist())
        equals(found.outputs[row], expected.outputs)
        equals(found.final.hidden[:, row], expected.final.hidden)


@with_positions
@pytest.mark.parametrize("side", ["pre", "post"])
def test_source_as_long_as_the_positions_is_read_with_pads_beyond_them(name, side, pairs):
    sources, targets = pairs((7, 2), (1, 1))
    together = make_batch(sources, targets, Padding(encoder=side))
    widened = torch.zeros(2, 11, dtype=torch.long)
    place = slice(3, 11) if side == "pre" else slice(0, 8)
    widened[:, place] = together.source
    encoder = encoder_of(name)
    found = encoder(widened, widened != PAD)
    expected = encoder(together.source, together.source_mask)
    torch.testing.assert_close(found.outputs[:, place], expected.outputs, **EXACT)
    torch.testing.assert_close(found.final.hidden, expected.final.hidden, **EXACT)


@with_positions
@pytest.mark.parametrize("recurrence", ["skip", "read"])
def test_source_longer_than_the_positions_is_refused(name, recurrence, pairs):
    padding = Padding(recurrence=recurrence)
    batch = make_batch(*pairs((3, 8), (1, 1)), padding)
    message = "model.encoder.longest is 8, but a sentence of 9 tokens .* raise it and train anew"
    with pytest.raises(ExperimentError, match=message):
        encoder_of(name, padding)(batch.source, batch.source_mask)


@with_positions
def test_pads_that_are_read_need_positions_too(name, pairs):
    batch = make_batch(*pairs((2, 7), (1, 1)), Padding())
    source = torch.nn.functional.pad(batch.source, (1, 0))
    assert encoder_of(name)(source, source != PAD).outputs.isfinite().all()
    reader = encoder_of(name, Padding(recurrence="read"))
    with pytest.raises(ExperimentError, match="longest is 8, but a sentence of 9 tokens"):
        reader(source, source != PAD)


@every_encoder
def test_gradient_of_every_weight_is_that_of_finite_differences(name, pairs):
    encoder = encoder_of(name)
    batch = make_batch(*pairs((2, 4), (1, 1)), Padding())
    assert_gradients_are_right(encoder, batch)


@every_encoder
def test_skipped_pads_do_not_matter_whatever_their_vector(name, pairs):
    """With tied embeddings the output layer changes it."""
    batch = make_batch(*pairs(), Padding())
    encoder = encoder_of(name)
    before = encoder(batch.source, batch.source_mask)
    with torch.no_grad():
        encoder.embedding.weight[PAD] = 1.0
    after = encoder(batch.source, batch.source_mask)
    assert torch.equal(after.outputs, before.outputs)
    assert torch.equal(after.final.hidden, before.final.hidden)


@every_encoder
def test_pad_vector_is_zero_and_stays_zero(name, pairs):
    part = part_of("encoder", name, SMALL)
    encoder = part(source_vocabulary_size=11, padding=Padding(recurrence="read"))
    assert (encoder.embedding.weight[PAD] == 0).all()
    batch = make_batch(*pairs(), Padding())
    encoder(batch.source, batch.source_mask).outputs.sum().backward()
    assert (encoder.embedding.weight.grad[PAD] == 0).all()
    assert encoder.embedding.weight.grad[EOS].any()


@pytest.mark.parametrize("decoder_cell", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("bridge", usual_first("bridge"))
@every_encoder
def test_bridge_makes_the_first_state_of_its_equation_or_is_refused(
    name, bridge, decoder_cell, tiny_model, pairs
):
    layers = 3 if bridge in ("mean", "zero") else 1
    size = 6 if bridge == "copy" else 5
    choices = {
        "encoder": name,
        "bridge": bridge,
        "decoder_cell": decoder_cell,
        "decoder_layers": layers,
        "decoder_hidden_size": size,
    }
    refusals = {
        "first_backward": "first_backward bridge needs an encoder with a backward direction",
        "copy": "encoder ends with 1 layer.s. of hidden states of size 6",
    }
    has_cell = decoder_cell == "lstm"
    if bridge == "first_backward" or (bridge == "copy" and has_cell):
        with pytest.raises(ExperimentError, match=f"{refusals[bridge]}.*model/bridge=linear"):
            tiny_model(**choices)
        return
    model = tiny_model(**choices, padding=Padding(encoder="post"))
    sources, targets = pairs()
    batch = make_batch(sources, targets, model.padding)
    _, state = model.encode(batch.source, batch.source_mask)
    w = paper.weights_of(model)
    equation = OF_TINY_MODEL.get(name, EQUATIONS[name])
    for row, source in enumerate(sources):
        encoded = equation(paper.part(w, "encoder."), [*source, EOS])
        of_bridge = paper.part(w, "bridge.")
        expected = paper.BRIDGES[bridge](of_bridge, encoded, layers, size, has_cell)
        equals(state.recurrent.hidden[:, row], expected.hidden)
        assert (state.recurrent.cell is not None) == has_cell
        if has_cell:
            equals(state.recurrent.cell[:, row], expected.cell)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize(
    ("name", "setting"), [("convolutional", "kernel"), ("averaging", "window")]
)
def test_even_kernel_or_window_is_refused_with_its_neighbours(name, setting, size):
    message = f"model.encoder.{setting} must be odd.* got {size}; choose {size - 1} or {size + 1}"
    with pytest.raises(ExperimentError, match=message):
        encoder_of(name, **{setting: size})


def test_bag_of_words_knows_no_order_and_the_others_do():
    source = torch.tensor([[4, 5, 6, EOS]])
    mask = source != PAD
    shuffled = source[:, [1, 0, 2, 3]]
    for name in EQUATIONS:
        encoder = encoder_of(name)
        one, other = encoder(source, mask), encoder(shuffled, mask)
        is_same = torch.allclose(one.outputs[:, [1, 0, 2, 3]], other.outputs)
        assert is_same == (name == "bag_of_words"), name


def test_window_wider_than_a_sentence_is_read():
    encoder = encoder_of("averaging", window=9)
    source = torch.tensor([[4, EOS]])
    found = encoder(source, source != PAD)
    equals(found.outputs[0], paper.averaging(paper.weights_of(encoder), [4, EOS], 9).outputs)


def test_block_sees_as_many_tokens_as_its_kernel(pairs):
    """Two of width 3 see two tokens on each side; the mean apart."""
    encoder = encoder_of("convolutional", blocks=2)
    source = torch.tensor([[4, 5, 6, 7, 8, 9, 4, EOS]])
    other = source.clone()
    other[0, 3] = 10
    mask = source != PAD
    differs = (encoder(source, mask).outputs != encoder(other, mask).outputs).any(2)
    assert differs[0].tolist() == [False, True, True, True, True, True, False, False]


def test_convolutional_weights_are_drawn_for_the_dropout():
    """Gehring et al. 2017, 3.5."""
    torch.manual_seed(0)
    encoder = ConvolutionalEncoder(
        embedding_size=200,
        hidden_size=150,
        blocks=2,
        kernel=5,
        longest=300,
        word_dropout=0.0,
        dropout=0.3,
        block_dropout=0.2,
        source_vocabulary_size=300,
        padding=Padding(),
    )
    expected = {
        "embedding.weight": 0.1,
        "positions.vectors.weight": 0.1,
        "W_in.weight": math.sqrt(0.7 / 200),
        "W_out.weight": math.sqrt(1 / 150),
        "convolutions.0.weight": math.sqrt(4 * 0.8 / (5 * 150)),
        "convolutions.1.weight": math.sqrt(4 * 0.8 / (5 * 150)),
    }
    for name, weight in encoder.named_parameters():
        if name.endswith("bias"):
            assert not weight.any(), name
        else:
            assert weight.std().item() == pytest.approx(expected.pop(name), rel=0.02), name
    assert not expected


@every_encoder
def test_dropout_drops_in_training_alone(name, pairs):
    encoder = encoder_of(name, dropout=0.5)
    batch = make_batch(*pairs(), Padding())
    plain = encoder(batch.source, batch.source_mask).outputs
    assert torch.equal(plain, encoder(batch.source, batch.source_mask).outputs)
    dropped = encoder.train()(batch.source, batch.source_mask).outputs
    assert not torch.equal(plain, dropped)
    assert (dropped[~batch.source_mask] == 0).all()


@every_encoder
def test_switched_padding_is_what_the_encoder_goes_by(name, pairs):
    """As One step switches it, for one analysis."""
    batch = make_batch(*pairs(), Padding())
    switched = encoder_of(name)
    switched.padding = replace(switched.padding, recurrence="read")
    reader = encoder_of(name, Padding(recurrence="read"))
    found = switched(batch.source, batch.source_mask)
    assert torch.equal(found.outputs, reader(batch.source, batch.source_mask).outputs)


@every_encoder
def test_one_step_reads_pads_where_it_is_told(name, tiny_model):
    ours = build_character_translator(tiny_model, encoder=name)

    def vectors(before: int, recurrence: str | None) -> tuple[str, np.ndarray]:
        edit = Edit(before=before)
        shown = step_numbers(ours, "May", [5, 3], edit=edit, recurrence=recurrence)
        symbols = {each["id"]: each["values"] for each in shown["symbols"]}
        return shown["recurrence"], np.array(symbols["s_t−1"])

    kind, without = vectors(0, None)
    assert kind == "skip"
    kind, skipped = vectors(2, None)
    assert kind == "skip"
    np.testing.assert_allclose(skipped, without, atol=1e-6)
    kind, read = vectors(2, "read")
    assert kind == "read"
    assert np.abs(read - without).max() > 1e-3


@every_encoder
def test_exported_page_refuses_it_in_a_sentence(name, tiny_model):
    (problem,) = unsupported(build_character_translator(tiny_model, encoder=name))
    assert problem.startswith(f"model/encoder is attnlab.model.encoders.{name}.")
    assert "which an exported page cannot compute; it can compute rnn, gru, lstm" in problem


@every_encoder
def test_gradient_flow_refuses_it_in_a_sentence(name, tiny_model, pairs):
    with pytest.raises(
        ValueError, match=r"states of a recurrent encoder, got .*; choose model/enc"
    ):
        gradient_flow(tiny_model(encoder=name), [make_batch(*pairs(), Padding())])


@every_encoder
def test_every_method_explains_it(name, tiny_model, pairs):
    model = tiny_model(encoder=name, scale=2.0)
    found = relevances(model, make_batch(*pairs(), model.padding), METHODS, steps=3)
    assert all(relevance.any() for relevance in found.values())


@every_encoder
@pytest.mark.parametrize("context", ["initial_state", "every_step"])
def test_decoder_without_attention_reads_its_mean(name, context, tiny_model, pairs):
    choices = {"decoder": "no_attention", "attention": None, "context": context}
    model = tiny_model(encoder=name, **choices)
    batch = make_batch(*pairs(), model.padding)
    memory, _ = model.encode(batch.source, batch.source_mask)
    outputs = model.encoder(batch.source, batch.source_mask).outputs
    lengths = batch.source_mask.sum(1, keepdim=True)
    torch.testing.assert_close(memory.summary, outputs.sum(1) / lengths)
    assert model(batch).reading.readout.isfinite().all()


@every_encoder
def test_beam_of_one_is_greedy_and_a_batch_is_its_sentences(name, tiny_model, pairs):
    model = tiny_model(encoder=name, scale=3.0)
    batch = make_batch(*pairs(), model.padding)
    greedy = GreedySearch(max_length=6)
    beam = BeamSearch(size=1, length_penalty=1.0, max_length=6)
    together = greedy(model, batch.source, batch.source_mask)
    of_beam = beam(model, batch.source, batch.source_mask)
    for row, found in enumerate(together):
        source = batch.source[row : row + 1]
        (alone,) = greedy(model, source, source != PAD)
        assert found[0].tokens == of_beam[row][0].tokens == alone[0].tokens


@every_encoder
def test_classifier_asks_with_its_mean_and_is_explained(name, pairs):
    torch.manual_seed(0)
    encoder = part_of("encoder", name, SMALL)
    node = {"_target_": f"{encoder.target.__module__}.{encoder.target.__name__}", **encoder.values}
    sizes = {"source_vocabulary_size": 40, "num_classes": 3}
    config = classifier_config() | {"encoder": node}
    model = bind(config, Classifier, "model")(**sizes, padding=Padding()).eval()
    sources, _ = pairs()
    rows = np.arange(len(sources))
    batch = pad_labelled(Ragged.from_rows(sources), rows % 3, rows, model.padding)
    found = is_attention_explanation(model, batch, permutations=2, steps=2)
    assert len(found["prediction"]) == len(sources)

    together = model(batch.source, batch.source_mask).log_probabilities
    for row in range(len(sources)):
        source = batch.source[row][batch.source_mask[row]].unsqueeze(0)
        alone = model(source, source != PAD).log_probabilities
        torch.testing.assert_close(together[row], alone[0], rtol=0, atol=1e-6)


@every_encoder
@pytest.mark.parametrize("task", ["translation", "classification"])
def test_choice_composes_for_each_task(name, task):
    experiment = compose([f"task={task}", f"model/encoder={name}", "tracking=none"])
    named = experiment.model.values["encoder"].target.__name__
    assert named.lower() == f"{name.replace('_', '')}encoder"


@with_positions
def test_data_with_a_longer_source_are_refused_before_the_training(name):
    experiment = compose([f"model/encoder={name}", "model.encoder.longest=6", "tracking=none"])
    split = {"source": {"max_length": 6}, "target": {"max_length": 3}}
    data = SimpleNamespace(stats={"splits": {"train": split}})
    message = r"model.encoder.longest is 6, .* the train split has a source of 7; raise it to 7"
    with pytest.raises(ExperimentError, match=message):
        experiment.task.check_data(experiment, data)
