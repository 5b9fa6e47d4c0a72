"""What every attention in conf/model/attention must keep: found by looking into the folder, so a new one is covered."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import yaml

from attnlab.batch import EOS, Padding
from attnlab.composition.binding import bind
from attnlab.composition.part import Part
from attnlab.data.padding import make_batch
from attnlab.model.attention.attention import Attention
from attnlab.model.attention.score import Score
from attnlab.model.model_folder import FROM_PREPARED_DATA, ModelFacts, load_model, save_model
from attnlab.training.loss import summed_nll

CONF = Path(__file__).resolve().parents[2] / "conf"
FOLDER = CONF / "model" / "attention"
NODES = {
    str(path.relative_to(FOLDER).with_suffix("")): yaml.safe_load(path.read_text())
    for path in sorted(FOLDER.rglob("*.yaml"))
}
del NODES["none"]  # the absence of attention; it must be there, or this line fails

B, T, S, D = 3, 4, 6, 8
MASK = torch.tensor([[True] * 6, [False] * 2 + [True] * 4, [False] * 5 + [True]])
DECODERS = ["attend_then_step", "step_then_attend"]

every_attention = pytest.mark.parametrize("name", NODES)


def test_the_folder_is_not_empty():
    assert {"dot", "general", "bahdanau"} <= set(NODES)


def part_of(name: str) -> Part[Score]:
    part = bind(NODES[name], Score, "model.attention")
    assert isinstance(part, Part)
    return part


def attention_of(name: str, dtype: torch.dtype = torch.float32) -> Attention:
    torch.manual_seed(0)
    return Attention(part_of(name)(query_size=D, key_size=D)).to(dtype)


def attend(attention, query, values, mask):
    return attention(query, attention.score.project_keys(values), values, mask)


def drawn(*shape: int, seed: int = 1, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@every_attention
@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("half", [False, True])
def test_weights_sum_to_one_and_are_exactly_zero_at_pads(name, scale, half):
    attention = attention_of(name)
    query, values = scale * drawn(B, T, D), scale * drawn(B, S, D, seed=2)
    # The largest keys stand at pads: a finite mask value would leak there.
    values = torch.where(MASK.unsqueeze(2), values, 100 * values)
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        context, weights = attend(attention, query, values, MASK)
    assert weights.shape == (B, T, S)
    assert context.shape == (B, T, D)
    assert weights.isfinite().all()
    assert context.isfinite().all()
    assert weights.dtype == torch.float32
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, T), rtol=0, atol=1e-6)
    assert (weights.masked_select(~MASK.unsqueeze(1)) == 0).all()
    assert (weights >= 0).all()
    assert (weights[2, :, 5] == 1).all()  # one real token takes all


@every_attention
@pytest.mark.parametrize("half", [False, True])
def test_gradients_are_finite_and_reach_every_parameter(name, half):
    attention = attention_of(name)
    query, values = drawn(B, T, D).requires_grad_(), drawn(B, S, D, seed=2).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        context, _ = attend(attention, query, values, MASK)
    (context.float() * drawn(B, T, D, seed=3)).sum().backward()
    for where, tensor in {**dict(attention.named_parameters()), "query": query, "values": values}.items():
        assert tensor.grad is not None, where
        assert tensor.grad.isfinite().all(), where
        assert tensor.grad.any(), where


@every_attention
def test_gradients_stay_finite_for_large_logits(name):
    attention = attention_of(name)
    query, values = (1e3 * drawn(B, T, D)).requires_grad_(), (1e3 * drawn(B, S, D, seed=2)).requires_grad_()
    context, _ = attend(attention, query, values, MASK)
    context.sum().backward()
    for tensor in (query, values, *attention.parameters()):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()


@every_attention
@pytest.mark.parametrize(("b", "t", "s"), [(1, 1, 1), (1, 3, 1), (1, 2, 5), (2, 1, 5), (1, 5, 2)])
def test_smallest_and_unequal_sizes(name, b, t, s):
    attention = attention_of(name)
    context, weights = attend(attention, drawn(b, t, D), drawn(b, s, D, seed=2), torch.ones(b, s, dtype=torch.bool))
    assert weights.shape == (b, t, s)
    assert context.shape == (b, t, D)
    torch.testing.assert_close(weights.sum(-1), torch.ones(b, t))


@every_attention
def test_each_query_is_answered_alone(name):
    """All target steps at once give what step after step gives."""
    attention = attention_of(name, torch.float64)
    query, values = drawn(B, T, D, dtype=torch.float64), drawn(B, S, D, seed=2, dtype=torch.float64)
    context, weights = attend(attention, query, values, MASK)
    for t in range(T):
        alone_context, alone_weights = attend(attention, query[:, t : t + 1], values, MASK)
        torch.testing.assert_close(alone_context[:, 0], context[:, t], rtol=0, atol=1e-12)
        torch.testing.assert_close(alone_weights[:, 0], weights[:, t], rtol=0, atol=1e-12)


@every_attention
def test_without_a_mask_pads_are_weighed(name):
    _, weights = attend(attention_of(name), drawn(B, T, D), drawn(B, S, D, seed=2), None)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, T))
    assert (weights > 0).all()


@every_attention
def test_inputs_stay_as_they_are(name):
    attention = attention_of(name)
    query, values, mask = drawn(B, T, D), drawn(B, S, D, seed=2), MASK.clone()
    keys = attention.score.project_keys(values)
    before = [x.detach().clone() for x in (query, keys, values, mask)]
    attention(query, keys, values, mask)
    for ours, old in zip((query, keys, values, mask), before, strict=True):
        assert torch.equal(ours, old)


@every_attention
def test_nothing_is_kept_from_one_batch_to_the_next(name):
    attention = attention_of(name)
    query, values = drawn(B, T, D), drawn(B, S, D, seed=2)
    first, _ = attend(attention, query, values, MASK)
    attend(attention, drawn(2, 1, D, seed=7), drawn(2, 9, D, seed=8), None)
    assert torch.equal(attend(attention, query, values, MASK)[0], first)


@every_attention
@pytest.mark.parametrize("decoder", DECODERS)
def test_every_parameter_of_a_model_learns(name, decoder, tiny_model, pairs):
    model = tiny_model(attention=part_of(name), decoder=decoder, cell="lstm").train()
    batch = make_batch(*pairs(), Padding())
    summed_nll(model.output, model(batch), batch).backward()
    for where, parameter in model.named_parameters():
        assert parameter.grad is not None, where
        assert parameter.grad.isfinite().all(), where
        assert parameter.grad.any(), where


@every_attention
@pytest.mark.parametrize("decoder", DECODERS)
def test_decoding_leaves_the_encoded_source_as_it_is(name, decoder, tiny_model, pairs):
    model = tiny_model(attention=part_of(name), decoder=decoder)
    batch = make_batch(*pairs(), Padding())
    memory, state = model.encode(batch.source, batch.source_mask)
    before = [x.detach().clone() for x in (memory.values, memory.keys, memory.summary, memory.mask, state.hidden)]
    first_state = state
    for t in range(3):
        _, state, _ = model.step(batch.target_input[:, t], state, memory)
    now = (memory.values, memory.keys, memory.summary, memory.mask, first_state.hidden)
    assert all(torch.equal(a, b) for a, b in zip(now, before, strict=True))


@every_attention
@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("side", ["pre", "post"])
def test_alone_as_in_a_batch_and_extra_pads_change_nothing(name, decoder, side, tiny_model, pairs):
    padding = Padding(encoder=side, decoder=side)
    model = tiny_model(attention=part_of(name), decoder=decoder, cell="lstm", layers=2, padding=padding)
    sources, targets = pairs()
    together = make_batch(sources, targets, padding)
    many = model(together)
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        alone = make_batch([source], [target], padding)
        one = model(alone)
        real, words = together.target_mask[row], together.source_mask[row]
        torch.testing.assert_close(many.readout[row][real], one.readout[0], rtol=0, atol=1e-12)
        weights = many.attention_weights[row][real]
        torch.testing.assert_close(weights[:, words], one.attention_weights[0], rtol=0, atol=1e-12)
        assert (weights[:, ~words] == 0).all()


@every_attention
@pytest.mark.parametrize("decoder", DECODERS)
def test_a_saved_model_comes_back_the_same(name, decoder, tiny_model, pairs, tmp_path):
    sizes = {"cell": "gru", "embedding_size": 3, "layers": 1, "dropout": 0.0}
    recurrent = yaml.safe_load((CONF / "model" / "decoder" / f"{decoder}.yaml").read_text())
    config = {
        "model": {
            "_target_": "attnlab.model.seq2seq.Seq2Seq",
            "encoder": {
                "_target_": "attnlab.model.encoder.Encoder",
                **sizes,
                "hidden_size": 4,
                "bidirectional": True,
            },
            "bridge": {"_target_": "attnlab.model.bridge.linear.LinearBridge"},
            "attention": NODES[name],
            "decoder": recurrent | sizes | {"hidden_size": 8, "readout_size": 7},
        },
        "padding": yaml.safe_load((CONF / "padding" / "pre_post.yaml").read_text()),
    }
    part = bind(config["model"], torch.nn.Module, "model")
    torch.manual_seed(5)
    model = part(source_vocabulary_size=11, target_vocabulary_size=9, padding=Padding()).eval()
    for file in FROM_PREPARED_DATA:
        (tmp_path / file).write_text("{}")
    save_model(tmp_path / "model", model.state_dict(), config, ModelFacts(11, 9, "0" * 16, 3), tmp_path)
    loaded = load_model(tmp_path / "model")
    assert not loaded.training
    batch = make_batch(*pairs(), Padding())
    with torch.no_grad():
        assert torch.equal(loaded(batch).readout, model(batch).readout)
        assert torch.equal(loaded(batch).attention_weights, model(batch).attention_weights)


@every_attention
def test_a_source_of_one_token_is_its_whole_context(name, tiny_model):
    model = tiny_model(attention=part_of(name))
    batch = make_batch([[]], [[4, 5]], Padding())
    assert batch.source.tolist() == [[EOS]]
    assert (model(batch).attention_weights == 1).all()
