"""Normaliser, decoder, readout and scope of somebody's own, with what is optional in each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import pytest
import torch
from composed_variants import Variant, config_of
from tiny_folders import classifier_config
from torch import Tensor, nn

from attnlab.batch import BOS, Padding
from attnlab.config.binding import bind
from attnlab.data.padding import Ragged, make_batch, pad_labelled
from attnlab.errors import ExperimentError
from attnlab.evaluation.explanations import is_attention_explanation
from attnlab.model.attention.memory import Memory
from attnlab.model.classifier import Classifier
from attnlab.model.decoders.decoder import look
from attnlab.model.decoders.recurrent_decoder import RecurrentDecoder
from attnlab.model.decoders.step import DecoderState, StepOutput, Token
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.model.readouts import Readout
from attnlab.model.scopes import Scope, Window
from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.beam import BeamSearch

VARIANT = Variant("decoder", "attend_then_step")
VOCABULARY = {"source_vocabulary_size": 40, "target_vocabulary_size": 40}
HERE = "test_own_seams"


class SoftmaxWithSink(Normaliser):
    """exp(z_i) / (exp(b) + sum_j exp(z_j)): what is left goes to no token; b is learned."""

    rows_sum_to_one = False

    def __init__(self, initial: float) -> None:
        super().__init__()
        self.sink = nn.Parameter(torch.tensor([initial]))

    def forward(self, scores: Tensor) -> Tensor:
        sink = self.sink.to(scores.dtype).expand(*scores.shape[:-1], 1)
        return torch.cat([scores, sink], dim=-1).softmax(-1)[..., :-1]


@dataclass(frozen=True)
class CountingState(DecoderState):
    """written: (B,) how many steps there were, in float."""

    written: Tensor | None = None


class StepByStep(RecurrentDecoder[Literal["readout"]]):
    """Step, then look, with a record of its own and without `all_steps`."""

    destinations: ClassVar = {"readout": (False, True)}

    def first_state(self, recurrent: Any, encoded: Any) -> CountingState:
        usual = super().first_state(recurrent, encoded)
        return CountingState(**vars(usual), written=encoded.outputs.new_zeros(len(encoded.outputs)))

    def step(
        self, token: Token, state: DecoderState, memory: Memory
    ) -> tuple[StepOutput, DecoderState]:
        assert isinstance(state, CountingState)
        assert state.written is not None
        assert torch.equal(state.written.long(), state.position)  # also of selected hypotheses
        hidden, after = self.body(token, None, state)
        assert self.attention is not None
        context, weights, past = look(self.attention, hidden, state, memory)
        output = StepOutput(hidden, context, token.embedded, weights)
        return output, replace(after, past=past, written=state.written + 1)


class Gated(Readout):
    """sigmoid(W s) c, an attentional hidden state of another kind."""

    makes_attentional_hidden = True

    def __init__(self, *, hidden_size: int, context_size: int) -> None:
        super().__init__()
        self.size = context_size
        self.W = nn.Linear(hidden_size, context_size)

    def forward(self, hidden: Tensor, context: Tensor | None, token: Tensor) -> Tensor:
        assert context is not None
        return torch.sigmoid(self.W(hidden)) * context


class NoFurther(Scope):
    """The source up to the position of the target."""

    follows_the_target = True

    def forward(self, query: Tensor, t: Tensor, positions: Tensor, lengths: Tensor) -> Window:
        return Window(inside=positions.unsqueeze(1) <= t.unsqueeze(2))


def built(padding: Padding = Padding(), **replaced: Any) -> Seq2Seq:  # noqa: B008 (frozen)
    torch.manual_seed(0)
    part = bind(config_of(VARIANT) | replaced, Seq2Seq, "model")
    return part(**VOCABULARY, padding=padding).double().eval()


def test_normaliser_with_weights_is_learned_one_for_each_head(pairs):
    sink = {"_target_": f"{HERE}.SoftmaxWithSink", "initial": 0.5}
    heads = config_of(Variant("heads", "multi"))["heads"]
    bound = bind(config_of(VARIANT) | {"normaliser": sink, "heads": heads}, Seq2Seq, "model")
    model, other = (bound(**VOCABULARY, padding=Padding()).double() for _ in range(2))
    sinks = [each for name, each in model.named_parameters() if name.endswith("sink")]
    assert len(sinks) == heads["heads"]

    batch = make_batch(*pairs(), model.padding)
    unrolled = model(batch)
    sums = unrolled.attention_weights.sum(-1)[batch.target_mask]
    assert ((sums > 0) & (sums < 1)).all()
    model.output(unrolled.reading).square().sum().backward()
    assert all(each.grad is not None and each.grad.any() for each in sinks)
    # Two models of one config share nothing.
    theirs = dict(other.named_parameters())
    assert not any(each is theirs[name] for name, each in model.named_parameters())


def test_explanation_by_divergences_refuses_weights_that_are_no_distribution(pairs):
    sink = {"_target_": f"{HERE}.SoftmaxWithSink", "initial": 0.5}
    sizes = {"source_vocabulary_size": 40, "num_classes": 3}
    config = classifier_config() | {"normaliser": sink}
    model = bind(config, Classifier, "model")(**sizes, padding=Padding()).eval()
    sources, _ = pairs()
    rows = torch.arange(len(sources)).numpy()
    batch = pad_labelled(Ragged.from_rows(sources), rows % 3, rows, model.padding)
    with pytest.raises(ValueError, match="need not sum to 1; choose model/normaliser=softmax"):
        is_attention_explanation(model, batch)


def test_decoder_with_a_step_alone_takes_its_steps_one_by_one_with_its_own_record(pairs):
    decoder = config_of(VARIANT)["decoder"]
    own = decoder | {"_target_": f"{HERE}.StepByStep", "context": "readout"}
    model = built(decoder=own)
    assert not model.decoder.feeds_back
    batch = make_batch(*pairs(), model.padding)
    readouts = model(batch).reading.readout  # (B, T, R)

    # The same numbers as of torch's own decoder of this kind, which takes all steps at once.
    named = "attnlab.model.decoders.step_then_attend.StepThenAttend"
    theirs = built(decoder=decoder | {"_target_": named, "context": "readout"})
    assert theirs.decoder.reads_all_steps_at_once
    theirs.load_state_dict(model.state_dict())
    real = batch.target_mask
    torch.testing.assert_close(readouts[real], theirs(batch).reading.readout[real])

    search = BeamSearch(size=3, length_penalty=1.0, max_length=5)
    assert search(model, batch.source, batch.source_mask, with_attention=True)
    memory, state = model.encode(batch.source, batch.source_mask)
    _, state, _ = model.step(torch.full((len(batch.source),), BOS), state, memory)
    assert state.written.tolist() == [1.0] * len(batch.source)


def test_readout_that_makes_an_attentional_hidden_state_may_be_fed(pairs):
    feeding = config_of(Variant("input_feeding", "attentional_hidden"))["input_feeding"]
    model = built(readout={"_target_": f"{HERE}.Gated"}, input_feeding=feeding)
    batch = make_batch(*pairs(), model.padding)
    assert model(batch).reading.readout.shape[-1] == model.encoder.output_size


def test_scope_that_follows_the_target_is_refused_by_a_classifier():
    scope = {"_target_": f"{HERE}.NoFurther"}
    assert built(scope=scope).decoder.attention is not None
    part = bind(classifier_config() | {"scope": scope}, Classifier, "model")
    with pytest.raises(ExperimentError, match="scope NoFurther follows the target word by word"):
        part(source_vocabulary_size=40, num_classes=3, padding=Padding())
