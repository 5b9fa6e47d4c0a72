"""One encoder over the vectors of another, against its two parts, composed by hand."""

from __future__ import annotations

import copy
import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from classifier_over import assert_batch_is_as_its_rows, classifier_over
from composed_variants import part_of
from convolutional import GatedConvolutionsEncoder
from encoder_gradients import assert_gradients_are_right
from lab_extras.encoders import GatedConvolutionsEncoder as OwnEncoder
from one_training_step import exact_loss
from torch import Tensor

from attnlab.batch import EOS, PAD, Padding
from attnlab.config.binding import bind
from attnlab.config.part import Part
from attnlab.data.padding import Ragged, make_batch, pad_labelled
from attnlab.errors import ExperimentError
from attnlab.evaluation.explanations import METHODS, relevances
from attnlab.evaluation.gradient_flow import gradient_flow
from attnlab.experiment.composition import compose
from attnlab.explorer.supported import unsupported
from attnlab.model.encoders.encoder import Encoded, Encoder, VectorEncoder, mean_state
from attnlab.model.encoders.stacked import StackedEncoder
from attnlab.model.fast import speed_up
from attnlab.model.fast.encoder import FastEncoder
from attnlab.model.recurrence import StateShape
from attnlab.tasks.edited_source import Edit
from attnlab.tasks.symbols.pads import recurrence_at_pads
from attnlab.tasks.translation.step_numbers import step_numbers
from explored_models import build_character_translator

EXACT: dict[str, Any] = {"rtol": 0, "atol": 1e-10}
SMALL = {
    "embedding_size": 6,
    "hidden_size": 3,
    "layers": 2,
    "blocks": 2,
    "kernel": 3,
    "window": 3,
    "longest": 8,
    "self_attention_heads": 2,
    "feed_forward_size": 5,
}
MIXES = [
    ("lstm", "self_attention"),
    ("convolutional", "gru"),
    ("self_attention", "lstm"),
    ("averaging", "rnn"),
    ("gru", "convolutional"),
    ("bag_of_words", "averaging"),
    ("rnn", "bag_of_words"),
]
every_mix = pytest.mark.parametrize("names", MIXES, ids="-".join)
WIDTHS = {"as wide": {}, "wider": {"embedding_size": 8}}
SOURCE_VOCABULARY_SIZE = 11
STACKED = "attnlab.model.encoders.stacked.StackedEncoder"


def sizes_of(name: str) -> dict[str, Any]:
    """The small sizes, but positions that count on for ever have no last one."""
    return {**SMALL, "longest": None} if name == "self_attention" else SMALL


def part(name: str, **values: Any) -> Part[Any]:
    found = part_of("encoder", name, sizes_of(name), **values)
    assert found is not None
    return found


def stack_of(
    names: tuple[str, str],
    padding: Padding = Padding(),  # noqa: B008 (frozen)
    below: dict[str, Any] | None = None,
    above: dict[str, Any] | None = None,
    norm: bool = True,
) -> StackedEncoder:
    first, then = names
    torch.manual_seed(4)
    stack = StackedEncoder(
        part(first, **(below or {})),
        part(then, **(above or {})),
        layer_norm=norm,
        source_vocabulary_size=SOURCE_VOCABULARY_SIZE,
        padding=padding,
    )
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter.normal_(std=0.6)
        stack.first.embedding.weight[PAD].zero_()
    return stack.double().eval()


def composed_by_hand(
    stack: StackedEncoder, names: tuple[str, str], above: dict[str, Any], tokens: list[int]
) -> Encoded:
    """The two parts as encoders of their own, of one sentence without pads.

    The words of the upper one are the vectors of the first.
    """
    everything = torch.ones(1, len(tokens), dtype=torch.bool)
    first = part(names[0])(source_vocabulary_size=SOURCE_VOCABULARY_SIZE, padding=Padding())
    first.load_state_dict(stack.first.state_dict())
    vectors = first.double().eval()(torch.tensor([tokens]), everything).outputs[0]
    if isinstance(stack.norm, torch.nn.LayerNorm):
        centred = vectors - vectors.mean(1, keepdim=True)
        scaled = centred / (centred.square().mean(1, keepdim=True) + 1e-5).sqrt()
        vectors = scaled * stack.norm.weight + stack.norm.bias
    if isinstance(stack.W_between, torch.nn.Linear):
        vectors = vectors @ stack.W_between.weight.mT + stack.W_between.bias

    words = torch.arange(len(tokens)) + PAD + 1
    then = part(names[1], **above)(source_vocabulary_size=len(tokens) + 1, padding=Padding())
    then.double().eval().load_state_dict(stack.then.state_dict(), strict=False)
    scale = math.sqrt(then.vector_size) if names[1] == "self_attention" else 1.0
    with torch.no_grad():
        then.embedding.weight[words] = vectors / scale
    return then(words.unsqueeze(0), everything)


def check_row(found: Encoded, row: int, real: Tensor, expected: Encoded) -> None:
    torch.testing.assert_close(found.outputs[row][real], expected.outputs[0], **EXACT)
    pairs = [(found.final, expected.final)]
    if found.backward is not None and expected.backward is not None:
        pairs.append((found.backward, expected.backward))
    for state, alone in pairs:
        torch.testing.assert_close(state.hidden[:, row], alone.hidden[:, 0], **EXACT)
        assert (state.cell is None) == (alone.cell is None)
        if state.cell is not None and alone.cell is not None:
            torch.testing.assert_close(state.cell[:, row], alone.cell[:, 0], **EXACT)


@every_mix
@pytest.mark.parametrize("above", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize(("side", "norm"), [("pre", True), ("post", False)])
def test_padded_batch_equals_the_two_parts_on_each_sentence(names, above, side, norm, pairs):
    sources, targets = pairs()
    padding = Padding(encoder=side)
    batch = make_batch(sources, targets, padding)
    stack = stack_of(names, padding, above=above, norm=norm)
    assert isinstance(stack.W_between, torch.nn.Linear) == bool(above)
    assert isinstance(stack.norm, torch.nn.LayerNorm) == norm
    found = stack(batch.source, batch.source_mask)
    assert found.outputs.shape == (4, 8, stack.output_size)
    assert (found.backward is not None) == (names[1] in ("gru", "lstm", "rnn"))
    for row, source in enumerate(sources):
        expected = composed_by_hand(stack, names, above, [*source, EOS])
        check_row(found, row, batch.source_mask[row], expected)
    assert (found.outputs[~batch.source_mask] == 0).all()


@every_mix
@pytest.mark.parametrize("side", ["pre", "post"])
def test_read_takes_pads_for_tokens(names, side, pairs):
    padding = Padding(encoder=side, recurrence="read")
    batch = make_batch(*pairs(), padding)
    stack = stack_of(names, padding)
    found = stack(batch.source, batch.source_mask)
    everything = torch.ones(batch.source.shape[1], dtype=torch.bool)
    for row, tokens in enumerate(batch.source.tolist()):
        check_row(found, row, everything, composed_by_hand(stack, names, {}, tokens))


@every_mix
def test_sentence_is_read_with_pads_on_either_side_of_it(names, pairs):
    """Also with those that no batch of the training had."""
    (source, *_), _ = pairs((6,), (1,))
    stack = stack_of(names, Padding(encoder="post"))
    tokens = torch.tensor([[*source, EOS]])
    alone = stack(tokens, tokens != PAD)
    padded = torch.nn.functional.pad(tokens, (2, 1))
    check_row(stack(padded, padded != PAD), 0, padded[0] != PAD, alone)


@pytest.mark.parametrize("names", [names for names in MIXES if {"gru", "lstm", "rnn"} & {*names}])
@pytest.mark.parametrize("lengths", [(7, 7, 6), (1, 7, 2)])
def test_fast_recurrence_in_a_stack_gives_the_numbers_of_the_plain_one(names, lengths, pairs):
    batch = make_batch(*pairs(lengths, (1, 1, 1)), Padding())
    plain = stack_of(names)
    fast = speed_up(copy.deepcopy(plain))
    assert any(isinstance(each, FastEncoder) for each in (fast.first, fast.then))
    expected, found = (each(batch.source, batch.source_mask) for each in (plain, fast))
    torch.testing.assert_close(found.outputs, expected.outputs, **EXACT)
    torch.testing.assert_close(found.final.hidden, expected.final.hidden, **EXACT)


@every_mix
def test_gradient_of_every_weight_is_that_of_finite_differences(names, pairs):
    stack = stack_of(names, above={"embedding_size": 8})
    batch = make_batch(*pairs((2, 4), (1, 1)), Padding())
    assert_gradients_are_right(stack, batch)


def test_training_step_of_the_fast_model_is_that_of_the_plain_one(tiny_model, pairs):
    batch = make_batch(*pairs(), Padding())

    def trained(model: Any) -> dict[str, Tensor]:
        model.train()
        loss = exact_loss(model, model(batch), batch)
        loss.backward()
        torch.optim.SGD(model.parameters(), lr=0.1).step()
        assert exact_loss(model, model(batch), batch) < loss
        return {name: parameter.grad for name, parameter in model.named_parameters()}

    plain, fast = (trained(speeds(tiny_model(encoder="stacked"))) for speeds in (_as_is, speed_up))
    assert all(gradient.any() for gradient in plain.values())
    torch.testing.assert_close(fast, plain, **EXACT)


def _as_is(model: Any) -> Any:
    return model


def test_weight_names_say_the_part_and_the_embedding_is_the_first_ones():
    stack = stack_of(("lstm", "self_attention"))
    assert stack.embedding is stack.first.embedding
    assert stack.then.embedding is None
    names = [name for name, _ in stack.named_parameters()]
    assert {name.partition(".")[0] for name in names} == {"first", "then", "norm"}
    wider = stack_of(("lstm", "self_attention"), above={"embedding_size": 8})
    assert {name.partition(".")[0] for name, _ in wider.named_parameters()} == {
        "first",
        "then",
        "norm",
        "W_between",
    }


def test_upper_part_embeds_nothing():
    upper = stack_of(("gru", "lstm")).then
    tokens = torch.tensor([[4, EOS]])
    with pytest.raises(AssertionError, match="embeds nothing"):
        upper(tokens, tokens != PAD)


def test_tied_embeddings_are_those_of_the_first_part(tiny_model, pairs):
    model = tiny_model(
        encoder="stacked",
        tied_embeddings="all",
        source_vocabulary_size=9,
        embedding_size=6,
        decoder_embedding_size=6,
        readout_size=6,
    )
    assert model.encoder.first.embedding.weight is model.output.vocabulary.weight
    assert model.encoder.embedding.weight is model.decoder.body.embedding.weight
    again = copy.deepcopy(model)
    again.load_state_dict(model.state_dict())
    assert again.encoder.first.embedding.weight is again.output.vocabulary.weight


@pytest.mark.parametrize("where", ["first", "then"])
@pytest.mark.parametrize("setting", ["dropout", "word_dropout", "block_dropout"])
def test_dropout_of_either_part_drops_in_training_alone(where, setting, pairs):
    place = {"first": "below", "then": "above"}[where]
    names = ("convolutional", "self_attention")
    stack = stack_of(names, **{place: {setting: 0.5}})
    batch = make_batch(*pairs(), Padding())
    plain = stack(batch.source, batch.source_mask).outputs
    assert torch.equal(plain, stack(batch.source, batch.source_mask).outputs)
    dropped = stack.train()(batch.source, batch.source_mask).outputs
    assert not torch.equal(plain, dropped)
    assert (dropped[~batch.source_mask] == 0).all()


# Limits


@pytest.mark.parametrize(
    ("names", "where"),
    [
        (("convolutional", "gru"), "first"),
        (("gru", "averaging"), "then"),
        (("lstm", "self_attention"), "then"),
    ],
    ids=str,
)
def test_source_longer_than_the_positions_of_a_part_is_refused_by_its_place(names, where):
    learned = {"positions": "learned", "longest": 8} if "self_attention" in names else {}
    nodes = {}
    for place, name in zip(("first", "then"), names, strict=True):
        of_part = part(name, **(learned if place == where else {}))
        target = f"{of_part.target.__module__}.{of_part.target.__name__}"
        nodes[place] = {"_target_": target, **of_part.values}
    stacked = {"_target_": STACKED, "layer_norm": True, **nodes}
    stack = bind(stacked, Encoder, "model.encoder")(source_vocabulary_size=11, padding=Padding())
    source = torch.full((1, 9), 4)
    message = f"^model.encoder.{where}.longest is 8, but a sentence of 9 tokens was met"
    with pytest.raises(ExperimentError, match=message):
        stack(source, source != PAD)


@pytest.mark.parametrize(("first", "then"), [("averaging", "gru"), ("gru", "averaging")])
def test_data_with_a_longer_source_are_refused_before_the_training(first, then):
    where = "first" if first == "averaging" else "then"
    experiment = compose(
        [
            "model/encoder=stacked",
            f"model/encoder@model.encoder.first={first}",
            f"model/encoder@model.encoder.then={then}",
            f"model.encoder.{where}.longest=6",
            "tracking=none",
        ]
    )
    split = {"source": {"max_length": 6}, "target": {"max_length": 3}}
    data = SimpleNamespace(stats={"splits": {"train": split}})
    message = (
        rf"^model.encoder.{where}.longest is 6, .* source that AveragingEncoder reads, but the "
        "train split has a source of 7; raise it to 7"
    )
    with pytest.raises(ExperimentError, match=message):
        experiment.task.check_data(experiment, data)


# What works on encoders


@pytest.mark.parametrize("task", ["translation", "classification"])
def test_choice_composes_for_each_task(task):
    experiment = compose([f"task={task}", "model/encoder=stacked", "tracking=none"])
    assert experiment.model.values["encoder"].target is StackedEncoder


def test_stack_as_first_part_makes_three():
    experiment = compose(
        [
            "model/encoder=stacked",
            "model/encoder@model.encoder.first=stacked",
            "model/encoder@model.encoder.first.first=convolutional",
            "model/encoder@model.encoder.first.then=gru",
            "model.encoder.then.blocks=1",
            "tracking=none",
        ]
    )
    sizes = {"source_vocabulary_size": 11, "target_vocabulary_size": 9}
    encoder = experiment.model(**sizes, padding=Padding()).encoder.eval()
    source = torch.full((1, 300), 4)
    assert encoder(source[:, :5], source[:, :5] != PAD).outputs.shape == (1, 5, 128)
    assert encoder.embedding is encoder.first.first.embedding
    message = "^model.encoder.first.first.longest is 256, but a sentence of 300"
    with pytest.raises(ExperimentError, match=message):
        encoder(source, source != PAD)


def test_first_backward_bridge_reads_the_upper_part(tiny_model, pairs):
    names = ("convolutional", "gru")
    stack = stack_of(names)
    batch = make_batch(*pairs(), Padding())
    assert stack.backward_size == SMALL["hidden_size"]
    backward = stack(batch.source, batch.source_mask).backward
    assert backward.hidden.shape == (SMALL["layers"], len(batch), SMALL["hidden_size"])
    with pytest.raises(ExperimentError, match="needs an encoder with a backward direction"):
        tiny_model(encoder="stacked", bridge="first_backward")


@pytest.mark.parametrize("names", [("lstm", "self_attention"), ("self_attention", "gru")])
def test_switched_recurrence_is_that_of_both_parts(names, pairs):
    batch = make_batch(*pairs(), Padding())
    inputs = (batch.source, batch.source_mask)
    stack = stack_of(names)
    skipped = stack(*inputs).outputs
    with recurrence_at_pads(stack, "read") as kind:
        assert kind == "read"
        read = stack(*inputs).outputs
    assert torch.equal(read, stack_of(names, Padding(recurrence="read"))(*inputs).outputs)
    assert torch.equal(stack(*inputs).outputs, skipped)


def test_one_step_reads_pads_where_it_is_told(tiny_model):
    ours = build_character_translator(tiny_model, encoder="stacked")

    def vectors(before: int, recurrence: str | None) -> Tensor:
        edit = Edit(before=before)
        shown = step_numbers(ours, "May", [5, 3], edit=edit, recurrence=recurrence)
        symbols = {each["id"]: each["values"] for each in shown["symbols"]}
        return torch.tensor(symbols["s_t−1"])

    without = vectors(0, None)
    # In 32 bits, behind a layer norm
    torch.testing.assert_close(vectors(2, None), without, rtol=0, atol=1e-5)
    assert (vectors(2, "read") - without).abs().max() > 1e-3


def test_every_method_explains_it(tiny_model, pairs):
    model = tiny_model(encoder="stacked", scale=2.0)
    found = relevances(model, make_batch(*pairs(), model.padding), METHODS, steps=3)
    assert all(relevance.any() for relevance in found.values())


def test_classifier_over_it_gives_a_batch_what_it_gives_a_sentence(pairs):
    torch.manual_seed(0)
    parts = {"first": part("lstm"), "then": part("self_attention")}
    model = classifier_over(StackedEncoder, 40, parts, layer_norm=True)
    sources, _ = pairs()
    rows = torch.arange(len(sources)).numpy()
    batch = pad_labelled(Ragged.from_rows(sources), rows % 3, rows, model.padding)
    assert_batch_is_as_its_rows(model, batch)


def test_exported_page_refuses_it_in_a_sentence(tiny_model):
    (problem,) = unsupported(build_character_translator(tiny_model, encoder="stacked"))
    assert problem.startswith("model/encoder is attnlab.model.encoders.stacked.StackedEncoder, ")
    assert "which an exported page cannot compute; it can compute rnn, gru, lstm" in problem


def test_gradient_flow_refuses_it_in_a_sentence(tiny_model, pairs):
    with pytest.raises(ValueError, match="recurrent encoder, got StackedEncoder; choose model/enc"):
        gradient_flow(tiny_model(encoder="stacked"), [make_batch(*pairs(), Padding())])


# Parts of somebody's own


class Doubled(VectorEncoder):
    """Twice each vector, zero at pads."""

    def __init__(self, *, source_vocabulary_size: int | None) -> None:
        super().__init__()
        self.vector_size = self.output_size = 128
        self.state_shape = StateShape(layers=1, size=128, has_cell=False)

    def read_vectors(self, vectors: Tensor, source_mask: Tensor) -> Encoded:
        outputs = 2 * vectors.masked_fill(~source_mask.unsqueeze(2), 0)
        return Encoded(outputs, mean_state(outputs, source_mask))


class Narrowed(Doubled):
    def read_vectors(self, vectors: Tensor, source_mask: Tensor) -> Encoded:
        encoded = super().read_vectors(vectors, source_mask)
        return Encoded(encoded.outputs[..., 1:], encoded.final)


class MixesPads(Doubled):
    def read_vectors(self, vectors: Tensor, source_mask: Tensor) -> Encoded:
        encoded = super().read_vectors(vectors, source_mask)
        return Encoded(encoded.outputs + vectors.mean(1, keepdim=True), encoded.final)


def with_own(place: str, node: str) -> list[str]:
    own = f"+model.encoder.{place}={{_target_: {node}}}"
    return ["model/encoder=stacked", f"~model.encoder.{place}", own, "data=copy", "tracking=none"]


def test_own_encoder_is_a_first_part_as_it_is(pairs):
    own = Part(
        OwnEncoder,
        "model.encoder.first",
        embedding_size=6,
        blocks=1,
        kernel=3,
        summary_size=5,
        dropout=0.0,
    )
    sizes = {"source_vocabulary_size": 11, "padding": Padding()}
    stack = StackedEncoder(own, part("gru"), layer_norm=True, **sizes).eval()
    assert isinstance(stack.first, GatedConvolutionsEncoder)
    batch = make_batch(*pairs(), Padding())
    together = stack(batch.source, batch.source_mask).outputs
    source = batch.source[1][batch.source_mask[1]].unsqueeze(0)
    alone = stack(source, source != PAD).outputs[0]
    torch.testing.assert_close(together[1][batch.source_mask[1]], alone)
    message = "GatedConvolutionsEncoder has no recurrence that reads or skips pads"
    with pytest.raises(ExperimentError, match=message), recurrence_at_pads(stack, "read"):
        pass


def test_own_encoder_that_reads_vectors_is_an_upper_part():
    model = compose(with_own("then", f"{__name__}.Doubled")).model
    sizes = {"source_vocabulary_size": 11, "target_vocabulary_size": 9}
    stack = model(**sizes, padding=Padding()).encoder
    source = torch.tensor([[4, 5, EOS]])
    below = stack.norm(stack.first(source, source != PAD).outputs)
    assert torch.equal(stack(source, source != PAD).outputs, 2 * below)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Narrowed, "StackedEncoder returns outputs of the shape .2, 3, 127., expected"),
        (MixesPads, "StackedEncoder gives a token another vector when a pad stands beside the"),
    ],
)
def test_own_upper_part_is_held_to_its_promises(kind, message):
    with pytest.raises(ExperimentError, match=message):
        compose(with_own("then", f"{__name__}.{kind.__name__}"))


@pytest.mark.parametrize(
    "target",
    [
        "lab_extras.encoders.GatedConvolutionsEncoder",
        "attnlab.model.encoders.stacked.StackedEncoder",
    ],
)
def test_encoder_that_reads_no_vectors_is_refused_as_the_upper_part(target):
    with pytest.raises(ExperimentError) as refused:
        compose(with_own("then", target))
    (problem,) = refused.value.problems
    assert problem.startswith(
        f"model.encoder.then._target_ is '{target}', but it is not a subclass of "
        "attnlab.model.encoders.encoder.VectorEncoder; "
    )
    assert "t must be one of attnlab.model.encoders." in problem  # a near name may stand before it
    assert "RecurrentEncoder" in problem
    assert problem.endswith("or a VectorEncoder of your own")
