"""The Transformer's layers against torch's own, and against the equations of their positions."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from composed_variants import SMALL, composed, part_of
from torch import nn

from attnlab.batch import BOS, PAD, Padding
from attnlab.config.binding import bind
from attnlab.config.part import Part
from attnlab.data.padding import make_batch
from attnlab.errors import ExperimentError
from attnlab.experiment.composition import compose
from attnlab.model.encoders.self_attention import SelfAttentionEncoder
from attnlab.model.fast import speed_up
from attnlab.model.seq2seq import Seq2Seq
from attnlab.model.transformer.layers import SelfAttention, causal
from attnlab.model.transformer.positions import LearnedPositions, RotaryPositions, Sinusoids
from attnlab.search.beam import BeamSearch
from attnlab.search.greedy import GreedySearch
from attnlab.search.search import Hypothesis

EXACT: dict[str, Any] = {"rtol": 0, "atol": 1e-10}
SETTINGS: dict[str, Any] = {
    "embedding_size": 8,
    "blocks": 2,
    "self_attention_heads": 2,
    "feed_forward_size": 12,
    "positions": "sinusoidal",
    "longest": None,
    "norm": "before",
    "word_dropout": 0.0,
    "dropout": 0.0,
    "block_dropout": 0.0,
}


def encoder_of(padding: Padding = Padding(), **settings: Any) -> SelfAttentionEncoder:  # noqa: B008 (frozen)
    torch.manual_seed(3)
    encoder = SelfAttentionEncoder(
        **{**SETTINGS, **settings}, source_vocabulary_size=40, padding=padding
    )
    return encoder.double().eval()


def torchs_own(encoder: SelfAttentionEncoder, norm: str) -> nn.TransformerEncoder:
    """torch's encoder with the same weights, its further biases zero."""
    layer = nn.TransformerEncoderLayer(
        8, 2, 12, dropout=0.0, batch_first=True, norm_first=norm == "before", dtype=torch.float64
    )
    last = nn.LayerNorm(8, dtype=torch.float64) if norm == "before" else None
    theirs = nn.TransformerEncoder(layer, 2, last, enable_nested_tensor=False).eval()
    with torch.no_grad():
        for their, our in zip(theirs.layers, encoder.blocks, strict=True):
            their.self_attn.in_proj_weight.copy_(our.attention.W_QKV.weight)
            their.self_attn.in_proj_bias.zero_()
            their.self_attn.out_proj.weight.copy_(our.attention.W_O.weight)
            their.self_attn.out_proj.bias.zero_()
            their.linear1.load_state_dict(our.feed_forward[0].state_dict())
            their.linear2.load_state_dict(our.feed_forward[2].state_dict())
            their.norm1.load_state_dict(our.around_attention.norm.state_dict())
            their.norm2.load_state_dict(our.around_feed_forward.norm.state_dict())
        if last is not None:
            last.load_state_dict(encoder.norm.state_dict())
    return theirs


@pytest.mark.parametrize("norm", ["before", "after"])
@pytest.mark.parametrize("side", ["pre", "post"])
def test_encoder_equals_torchs_own_with_its_weights(side, norm, pairs):
    encoder = encoder_of(norm=norm)
    for parameter in encoder.parameters():  # norms that change something
        nn.init.normal_(parameter, std=0.3)
    theirs = torchs_own(encoder, norm)
    batch = make_batch(*pairs(), Padding(encoder=side))

    found = encoder(batch.source, batch.source_mask)

    for row in range(len(batch)):
        real = batch.source_mask[row]
        embedded = math.sqrt(8) * encoder.embedding(batch.source[row][real])
        x = embedded + Sinusoids(8).added(torch.zeros_like(embedded), torch.arange(len(embedded)))
        expected = theirs(x.unsqueeze(0))[0]
        torch.testing.assert_close(found.outputs[row][real], expected, **EXACT)
        torch.testing.assert_close(found.final.hidden[0, row], expected.mean(0), **EXACT)
    assert (found.outputs[~batch.source_mask] == 0).all()


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_vectors_of_a_sentence_ignore_its_batch_and_its_pads(positions, pairs):
    encoder = encoder_of(positions=positions, longest=8 if positions == "learned" else None)
    sources, targets = pairs()
    found = {}
    for side in ("pre", "post"):
        batch = make_batch(sources, targets, Padding(encoder=side))
        encoded = encoder(batch.source, batch.source_mask)
        found[side] = encoded.outputs[batch.source_mask], encoded.final.hidden
    torch.testing.assert_close(found["pre"], found["post"], **EXACT)
    alone = [make_batch([source], [[]], Padding()) for source in sources]
    each = [encoder(batch.source, batch.source_mask).outputs[0] for batch in alone]
    torch.testing.assert_close(found["pre"][0], torch.cat(each), **EXACT)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_order_of_the_tokens_matters(positions):
    encoder = encoder_of(positions=positions, longest=8 if positions == "learned" else None)
    mask = torch.ones(1, 3, dtype=torch.bool)
    one = encoder(torch.tensor([[5, 6, 7]]), mask).outputs[0, 2]
    other = encoder(torch.tensor([[6, 5, 7]]), mask).outputs[0, 2]
    assert not torch.allclose(one, other, rtol=0, atol=1e-3)


def test_pads_that_are_read_are_looked_at_like_words(pairs):
    padding = Padding(encoder="post", recurrence="read")
    encoder = encoder_of(padding)
    batch = make_batch(*pairs(), padding)
    found = encoder(batch.source, batch.source_mask)
    everything = torch.ones_like(batch.source_mask)
    torch.testing.assert_close(
        found.outputs, encoder_of()(batch.source, everything).outputs, **EXACT
    )


def test_sinusoids_are_the_papers():
    found = Sinusoids(6).added(torch.zeros(1, 5, 6).double(), torch.arange(5).unsqueeze(0))
    for p in range(5):
        for i in range(3):
            angle = p / 10_000 ** (2 * i / 6)
            np.testing.assert_allclose(found[0, p, 2 * i], math.sin(angle), rtol=0, atol=1e-12)
            np.testing.assert_allclose(found[0, p, 2 * i + 1], math.cos(angle), rtol=0, atol=1e-12)


def test_products_of_turned_vectors_know_their_distance_alone():
    torch.manual_seed(0)
    query, key = torch.randn(2, 1, 1, 1, 8, dtype=torch.float64)
    rotary = RotaryPositions(head_size=8)

    def product(p: int, q: int) -> torch.Tensor:
        turned = [
            rotary.turn(torch.tensor([[position]]), vector.dtype)(vector)
            for vector, position in ((query, p), (key, q))
        ]
        return (turned[0] * turned[1]).sum()

    torch.testing.assert_close(product(0, 3), product(20, 23), rtol=0, atol=1e-12)
    assert not torch.isclose(product(0, 3), product(0, 4), rtol=0, atol=1e-3)
    torch.testing.assert_close(product(7, 7), (query * key).sum(), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            {"embedding_size": 10, "self_attention_heads": 4},
            "must be a multiple of .*, got 10 and 4",
        ),
        ({"embedding_size": 7, "self_attention_heads": 1}, "must be even, got 7"),
        ({"embedding_size": 6, "positions": "rotary"}, "each of 2 heads has 3"),
        ({"positions": "learned"}, "positions=learned needs longest"),
        ({"longest": 9}, "positions=sinusoidal have no limit"),
    ],
)
def test_widths_that_do_not_go_together_are_refused(settings, reason):
    with pytest.raises(ValueError, match=reason):
        encoder_of(**settings)


def test_sentence_beyond_the_learned_positions_is_refused():
    encoder = encoder_of(positions="learned", longest=3)
    source, mask = torch.tensor([[5, 6, 7, 3]]), torch.ones(1, 4, dtype=torch.bool)
    assert encoder(source[:, 1:], mask[:, 1:]).outputs.shape == (1, 3, 8)
    with pytest.raises(ExperimentError, match=r"model.encoder.longest is 3, but .* 4 tokens"):
        encoder(source, mask)


def test_search_beyond_the_learned_positions_names_its_limit():
    positions = LearnedPositions(4, longest=3, path="model.decoder.longest")
    token = torch.zeros(2, 1, 4)
    positions.added(token, torch.tensor([[1], [2]]))
    message = "longest is 3, but a search goes on to 4 tokens; lower search.max_length to 3"
    with pytest.raises(ExperimentError, match=message):
        positions.added(token, torch.tensor([[1], [3]]))


def test_a_pad_stands_where_no_position_is_learned():
    """Pads count on behind the last real token, and are never looked at."""
    encoder = encoder_of(positions="learned", longest=3)
    batch = make_batch([[5, 6], [7]], [[], []], Padding(encoder="post"))
    source = torch.nn.functional.pad(batch.source, (0, 2), value=PAD)
    mask = source != PAD
    found = encoder(source, mask)
    expected = encoder(batch.source, batch.source_mask)
    torch.testing.assert_close(found.outputs[:, :3], expected.outputs, **EXACT)


# The decoder

SETTINGS_OF_DECODER: dict[str, Any] = {
    "embedding_size": 8,
    "blocks": 2,
    "self_attention_heads": 2,
    "feed_forward_size": 12,
    "alignment_block": 2,
}


def transformer(
    padding: Padding = Padding(),  # noqa: B008 (frozen)
    encoder: str = "self_attention",
    seed: int = 3,
    attention: str = "scaled_dot",
    normaliser: str = "softmax",
    scope: str = "global",
    projection: int | None = None,
    heads: int | None = 2,
    readout: str = "state",
    output: str = "linear",
    **settings: Any,
) -> Seq2Seq:
    """A small Transformer, with any attention to the source."""
    of_encoder = {"embedding_size": 8, "blocks": 2, "self_attention_heads": 2}
    if encoder != "self_attention":
        of_encoder = {"embedding_size": 8, "hidden_size": 3}  # outputs of another width
    torch.manual_seed(seed)
    of_decoder = {"positions": "sinusoidal", **SETTINGS_OF_DECODER, **settings}
    model = Part(
        Seq2Seq,
        "model",
        encoder=part_of("encoder", encoder, SMALL, **of_encoder),
        bridge=part_of("bridge", "zero"),
        attention=part_of("attention", attention),
        projection=None if projection is None else part_of("projection", "linear", size=projection),
        normaliser=part_of("normaliser", normaliser),
        scope=part_of("scope", scope),
        history=None,
        heads=None if heads is None else part_of("heads", "multi", heads=heads, size=4),
        decoder=part_of("decoder", "transformer", SMALL, **of_decoder),
        readout=part_of("readout", readout),
        output=part_of("output", output),
        input_feeding=None,
        tied_embeddings="none",
        initialisation=None,
    )
    vocabularies = {"source_vocabulary_size": 40, "target_vocabulary_size": 40}
    return model(**vocabularies, padding=padding).double().eval()


@pytest.mark.parametrize("norm", ["before", "after"])
def test_decoder_equals_torchs_own_with_its_weights(norm, pairs):
    model = transformer(norm=norm)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    batch = make_batch(*pairs(), Padding(encoder="post"))
    memory, _ = model.encode(batch.source, batch.source_mask)
    encoded = model.encoder(batch.source, batch.source_mask).outputs
    embedded = math.sqrt(8) * model.decoder.body.embedding(batch.target_input)
    places = torch.arange(embedded.shape[1]).expand(embedded.shape[:2])
    x = embedded + Sinusoids(8).added(torch.zeros_like(embedded), places)

    theirs = torchs_decoder(model, norm)
    ahead = nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=torch.float64)
    expected = theirs(x, encoded, tgt_mask=ahead, memory_key_padding_mask=~batch.source_mask)

    found = model.forward(batch).reading.readout
    real = batch.target_mask
    torch.testing.assert_close(found[real], expected[real], **EXACT)
    assert memory.of_blocks[1] is not memory.of_blocks[0]


def torchs_decoder(model: Seq2Seq, norm: str) -> nn.TransformerDecoder:
    """torch's decoder with the same weights, its further biases zero."""
    layer = nn.TransformerDecoderLayer(
        8, 2, 12, dropout=0.0, batch_first=True, norm_first=norm == "before", dtype=torch.float64
    )
    last = nn.LayerNorm(8, dtype=torch.float64) if norm == "before" else None
    theirs = nn.TransformerDecoder(layer, 2, last).eval()
    with torch.no_grad():
        for their, our in zip(theirs.layers, model.decoder.blocks, strict=True):
            their.self_attn.in_proj_weight.copy_(our.self_attention.W_QKV.weight)
            their.self_attn.out_proj.weight.copy_(our.self_attention.W_O.weight)
            looks = our.attention
            into = [looks.W_Q.weight, looks.W_K.weight, looks.W_V.weight]
            their.multihead_attn.in_proj_weight.copy_(torch.cat(into))
            their.multihead_attn.out_proj.weight.copy_(looks.W_O.weight)
            for attention in (their.self_attn, their.multihead_attn):
                attention.in_proj_bias.zero_()
                attention.out_proj.bias.zero_()
            their.linear1.load_state_dict(our.feed_forward[0].state_dict())
            their.linear2.load_state_dict(our.feed_forward[2].state_dict())
            their.norm1.load_state_dict(our.around_self_attention.norm.state_dict())
            their.norm2.load_state_dict(our.around_attention.norm.state_dict())
            their.norm3.load_state_dict(our.around_feed_forward.norm.state_dict())
        if last is not None:
            last.load_state_dict(model.decoder.norm.state_dict())
    return theirs


# Each has other choices of several factors.
CHOICES = [
    {"attention": "bahdanau", "heads": None, "output": "pointer_generator"},
    {"attention": "dot", "heads": None, "normaliser": "sparsemax", "positions": "rotary"},
    {"attention": "general", "heads": None, "encoder": "gru", "scope": "local_m"},
    {"attention": "concat", "heads": None, "encoder": "lstm", "readout": "tanh"},
    {"attention": "location", "heads": None, "positions": "rotary", "norm": "after"},
    {"attention": "scaled_dot", "normaliser": "entmax", "context": "blocks_and_readout",
     "readout": "attentional", "encoder": "gru"},
    {"attention": "scaled_dot", "scope": "local_p", "positions": "learned", "longest": 9},
    {"attention": "cosine", "heads": None, "projection": 5, "normaliser": "top_k",
     "encoder": "gru"},
    {"attention": "bahdanau", "heads": 2, "alignment_block": 1, "norm": "after"},
    {"attention": "dot", "normaliser": "softmax_with_sink", "readout": "maxout"},
]  # fmt: skip
PADDINGS = [
    Padding("pre", "post"),
    Padding("post", "pre"),
    Padding("post", "post", attention_masked=False, recurrence="read"),
    Padding("pre", "pre", recurrence="read"),
]


def named(choice: dict[str, Any]) -> str:
    return "-".join(str(value) for value in choice.values())


@pytest.mark.parametrize("padding", PADDINGS, ids=str)
@pytest.mark.parametrize("choice", CHOICES, ids=named)
def test_all_steps_at_once_are_the_steps_one_by_one(choice, padding, pairs):
    """In values, weights and gradients."""
    model = transformer(padding, **choice)
    batch = make_batch(*pairs(), padding)
    assert model.decoder.reads_all_steps_at_once
    at_once = model.forward(batch)
    one_by_one = model.forward(batch, feed_reference=torch.ones_like(batch.target_mask))
    real = batch.target_mask
    gradients = []
    for unrolled in (at_once, one_by_one):
        logits = model.output(unrolled.reading[real])
        weight = torch.linspace(-1, 1, logits.numel(), dtype=torch.float64).view_as(logits)
        loss = (logits * weight).sum()
        known = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
        gradients.append([each for each in known if each is not None])
    torch.testing.assert_close(
        model.output(at_once.reading[real]), model.output(one_by_one.reading[real]), **EXACT
    )
    torch.testing.assert_close(
        at_once.attention_weights[real], one_by_one.attention_weights[real], **EXACT
    )
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("choice", CHOICES, ids=named)
def test_batch_is_as_each_sentence_alone(choice, pairs):
    model = transformer(**choice)
    sources, targets = pairs()
    batch = make_batch(sources, targets, Padding())
    together = model.forward(batch)
    logits = model.output(together.reading)
    for row, pair in enumerate(zip(sources, targets, strict=True)):
        alone = model.forward(make_batch([pair[0]], [pair[1]], Padding()))
        expected = model.output(alone.reading)[0]
        torch.testing.assert_close(logits[row][batch.target_mask[row]], expected, **EXACT)


@pytest.mark.parametrize("choice", CHOICES, ids=named)
def test_searches_agree(choice, pairs):
    """Greedy search is a beam of one, and a beam's score is the sentence's log-probability."""
    model = transformer(**choice)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 2  # decided
    batch = make_batch(*pairs(), Padding())
    searches = [GreedySearch(6), BeamSearch(1, 0.0, 6), BeamSearch(3, 0.0, 6)]
    with torch.no_grad():
        found = [search(model, batch.source, batch.source_mask) for search in searches]
    for source, *hypotheses in zip(pairs()[0], *found, strict=True):
        greedy, one, wide = (each[0] for each in hypotheses)
        assert greedy.tokens == one.tokens
        assert abs(log_probability(model, source, wide) - wide.score) < 1e-4  # of float32


def log_probability(model: Seq2Seq, source: list[int], found: Hypothesis) -> float:
    """As the search has it, which never writes a pad or `<bos>`."""
    batch = make_batch([source], [found.tokens], Padding())
    logits = model.output(model.forward(batch).reading)[0].detach()
    logits[:, [PAD, BOS]] = -torch.inf
    log_probabilities = logits.log_softmax(-1)
    written = len(found.tokens) + found.finished
    labels = batch.target_output[0, :written]
    return float(log_probabilities[range(written), labels].sum())


@pytest.mark.parametrize("choice", CHOICES, ids=named)
def test_fast_model_is_the_plain_one(choice, pairs):
    plain, fast = transformer(**choice), transformer(**choice)
    speed_up(fast)
    batch = make_batch(*pairs(), Padding())
    losses = []
    for model in (plain, fast):
        unrolled = model.train().forward(batch)
        loss = model.output(unrolled.reading)[batch.target_mask].log_softmax(-1).square().sum()
        loss.backward()
        losses.append(loss)
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-10, atol=0)
    for (name, one), other in zip(plain.named_parameters(), fast.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None), name
        if one.grad is not None:
            torch.testing.assert_close(one.grad, other.grad, rtol=1e-8, atol=1e-8)


def test_no_step_sees_what_comes_after(pairs):
    model = transformer()
    batch = make_batch(*pairs(), Padding())
    changed = batch.target_input.clone()
    changed[:, 3:] = 7
    logits = model.output(model.forward(batch).reading)
    other = model.output(model.forward(replace(batch, target_input=changed)).reading)
    assert torch.equal(logits[:, :3], other[:, :3])
    assert not torch.equal(logits[:, 3:], other[:, 3:])


def test_shown_weights_are_those_of_the_alignment_block(pairs):
    batch = make_batch(*pairs(), Padding())
    shown = {n: transformer(alignment_block=n).forward(batch).attention_weights for n in (1, 2)}
    assert not torch.allclose(shown[1], shown[2], atol=1e-6)


@pytest.mark.parametrize(
    ("replaced", "reason"),
    [
        ({"bridge": "linear"}, "makes a first recurrent state, but this decoder has none"),
        ({"history": "coverage"}, "remembers from step to step"),
        (
            {"input_feeding": "expected_embedding"},
            "model/input_feeding (ExpectedEmbeddingFeeding) feeds what a step found to the next",
        ),
        ({"attention": "none"}, "asks an attention at every step"),
    ],
)
def test_choices_that_a_transformer_cannot_use_are_refused(replaced, reason):
    config = composed({"decoder": "transformer"} | replaced)
    with pytest.raises(ExperimentError) as caught:
        bind(config, Seq2Seq, "model")(
            source_vocabulary_size=9, target_vocabulary_size=9, padding=Padding()
        )
    assert reason in str(caught.value)


def test_alignment_block_that_is_not_there_is_refused():
    with pytest.raises(ExperimentError, match="alignment_block is 3, but there are 2 blocks"):
        transformer(alignment_block=3)


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        ([], "but the train split has a target of 12; raise it to 12"),
        (
            ["model.decoder.longest=12", "search.max_length=13"],
            "training.validation_search.max_length lets a search write 100; raise the one to 100, "
            "or lower the other to 12",
        ),
        (
            ["model.decoder.longest=12", "training.validation_search.max_length=12"],
            "but search.max_length lets a search write 100",
        ),
    ],
    ids=["data", "validation", "test"],
)
def test_targets_beyond_the_learned_positions_are_refused_before_the_training(overrides, reason):
    learned = ["model.encoder.positions=learned", "model.encoder.longest=9"]
    experiment = compose(
        [
            "experiment=vaswani2017",
            "tracking=none",
            *learned,
            "model.decoder.longest=9",
            *overrides,
        ]
    )
    split = {"source": {"max_length": 6}, "target": {"max_length": 11}}
    data = SimpleNamespace(
        stats={"splits": {"train": split}},
        source_tokenizer=None,
        info=SimpleNamespace(has_alignments=False),
    )
    with pytest.raises(ExperimentError, match=r"model.decoder.longest is \d+, .*" + reason):
        experiment.task.check_data(experiment, data)


@pytest.mark.processor
def test_self_attention_averages_in_float32_where_a_cpu_computes_in_bfloat16():
    torch.manual_seed(1)
    attention = SelfAttention(size=8, heads=2)
    attention.W_O = nn.Identity()
    query, key, value = torch.randn(3, 2, 2, 5, 4, dtype=torch.bfloat16)  # (B, N, T, d) each
    seen = causal(5, query.device)
    with torch.autocast("cpu", torch.bfloat16):
        found = attention.attend(query, key, value, seen)
    exact = attention.attend(query.float(), key.float(), value.float(), seen)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, exact.to(torch.bfloat16))
