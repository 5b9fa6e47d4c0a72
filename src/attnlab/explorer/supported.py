"""What the engine of an exported page computes, and what of a model it does not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.data.corpus import Cleaning, SentenceCleaning
from attnlab.data.tokenizer import Tokenizer
from attnlab.data.trainers import BpeTrainer, CharacterTrainer, WordTrainer
from attnlab.model.attention.attention import Attention, MultiHeadAttention
from attnlab.model.attention.bahdanau import BahdanauScore
from attnlab.model.attention.concat import ConcatScore
from attnlab.model.attention.cosine import CosineScore
from attnlab.model.attention.dot import DotScore
from attnlab.model.attention.general import GeneralScore
from attnlab.model.attention.location import LocationScore
from attnlab.model.attention.mechanism import LinearProjection
from attnlab.model.attention.normed_bahdanau import NormedBahdanauScore
from attnlab.model.attention.scaled_dot import ScaledDotScore
from attnlab.model.attention.scaled_luong import ScaledLuongScore
from attnlab.model.attention.uniform import UniformScore
from attnlab.model.bridges import (
    CopyBridge,
    FirstBackwardBridge,
    LinearBridge,
    MeanBridge,
    ZeroBridge,
)
from attnlab.model.classifier import Classifier
from attnlab.model.decoders.attend_then_step import AttendThenStep
from attnlab.model.decoders.conditional import Conditional
from attnlab.model.decoders.no_attention import NoAttention
from attnlab.model.decoders.step_then_attend import StepThenAttend
from attnlab.model.encoders.recurrent import RecurrentEncoder
from attnlab.model.fast import FASTER
from attnlab.model.histories.coverage import Coverage
from attnlab.model.histories.forward import Forward, ForwardWithAgent
from attnlab.model.histories.last_weights import LastWeights
from attnlab.model.histories.location_sensitive import LocationSensitive
from attnlab.model.histories.mocha import Mocha
from attnlab.model.histories.monotonic import Monotonic
from attnlab.model.input_feeding import (
    AttentionalHiddenFeeding,
    ExpectedEmbeddingFeeding,
    SoftmaxOutputFeeding,
)
from attnlab.model.normalisers.around_best import AroundBest
from attnlab.model.normalisers.entmax import Entmax
from attnlab.model.normalisers.hard import Hard
from attnlab.model.normalisers.learned_temperature import LearnedTemperature
from attnlab.model.normalisers.reinforce import Reinforce
from attnlab.model.normalisers.sigmoid import Sigmoid
from attnlab.model.normalisers.softmax import Softmax
from attnlab.model.normalisers.softmax_with_sink import SoftmaxWithSink
from attnlab.model.normalisers.sparsemax import Sparsemax
from attnlab.model.normalisers.top_k import TopK
from attnlab.model.outputs.linear import LinearOutput
from attnlab.model.readouts import (
    AttentionalReadout,
    MaxoutReadout,
    PlainReadout,
    StateReadout,
    TanhReadout,
)
from attnlab.model.scopes import GlobalScope, LocalM, LocalP
from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.beam import BeamSearch
from attnlab.search.greedy import GreedySearch
from attnlab.tasks.classification.classifier import SentenceClassifier
from attnlab.tasks.edited_source import heads_of, score_of
from attnlab.tasks.predictor import Predictor
from attnlab.tasks.translation.translator import Translator

# What the engine computes: of each group of conf/, the classes, and the names of their choices.
SUPPORTED: dict[str, dict[type, str]] = {
    "model": {Seq2Seq: "seq2seq", Classifier: "classifier"},
    "model/encoder": {RecurrentEncoder: "rnn, gru, lstm"},
    "model/bridge": {
        ZeroBridge: "zero",
        CopyBridge: "copy",
        LinearBridge: "linear",
        FirstBackwardBridge: "first_backward",
        MeanBridge: "mean",
    },
    "model/attention": {
        DotScore: "dot",
        ScaledDotScore: "scaled_dot",
        CosineScore: "cosine",
        GeneralScore: "general",
        ScaledLuongScore: "scaled_luong",
        ConcatScore: "concat",
        BahdanauScore: "bahdanau",
        NormedBahdanauScore: "normed_bahdanau",
        LocationScore: "location",
        UniformScore: "uniform",
    },
    "model/projection": {LinearProjection: "linear"},
    "model/normaliser": {
        Softmax: "softmax",
        Sparsemax: "sparsemax",
        Entmax: "entmax, adaptive_entmax",
        Sigmoid: "sigmoid",
        SoftmaxWithSink: "softmax1, softmax_with_sink",
        LearnedTemperature: "learned_temperature",
        TopK: "top_k",
        AroundBest: "around_best",
        Hard: "hard, gumbel",
        Reinforce: "reinforce",
    },
    "model/scope": {GlobalScope: "global", LocalM: "local_m", LocalP: "local_p"},
    "model/history": {
        Coverage: "coverage",
        LastWeights: "last_weights",
        LocationSensitive: "location_sensitive",
        Forward: "forward",
        ForwardWithAgent: "forward_with_agent",
        Monotonic: "monotonic",
        Mocha: "mocha",
    },
    "model/heads": {MultiHeadAttention: "multi", Attention: "one"},
    "model/gate": {},  # none
    "model/decoder": {
        AttendThenStep: "attend_then_step",
        StepThenAttend: "step_then_attend",
        Conditional: "conditional_gru",
        NoAttention: "no_attention",
    },
    "model/readout": {
        StateReadout: "state",
        PlainReadout: "plain",
        TanhReadout: "tanh",
        AttentionalReadout: "attentional",
        MaxoutReadout: "maxout",
    },
    "model/output": {LinearOutput: "linear"},
    "model/input_feeding": {
        AttentionalHiddenFeeding: "attentional_hidden",
        ExpectedEmbeddingFeeding: "expected_embedding",
        SoftmaxOutputFeeding: "softmax_output",
    },
    "search": {GreedySearch: "greedy", BeamSearch: "beam"},
    "data/cleaning": {Cleaning: "pairs", SentenceCleaning: "sentences"},
}
# The tokenizers that the engine knows: of each name, one that splits texts as it does.
TOKENIZERS = {
    "whitespace": WordTrainer(split="whitespace", min_frequency=1),
    "words": WordTrainer(split="punctuation", min_frequency=1),
    "characters": CharacterTrainer(),
    "bpe": BpeTrainer(vocabulary_size=8),
}
NORMAL_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
# A sped-up layer computes what the plain one does.
PLAIN = {fast: plain for plain, fast in FASTER.items()}


def unsupported(predictor: Predictor) -> list[str]:
    """A sentence for each part of a model that the engine does not know."""
    if type(predictor) not in (Translator, SentenceClassifier):
        return [
            f"an exported page cannot ask a {full_name(type(predictor))}; it asks models that "
            "translate or classify"
        ]
    problems = []
    for place, part in _parts(predictor):
        known = SUPPORTED[place]
        if part is not None and plain_type(part) not in known:
            choices = ", ".join(known.values())
            problems.append(
                f"{place} is {full_name(type(part))}, which an exported page cannot compute; "
                f"it can compute {choices} (docs/live_page.md)"
            )
    if problems:
        return problems

    for side, tokenizer in tokenizers_of(predictor).items():
        if tokenizer.numbered:
            problems.append(
                f"the {side} has numbered unknown words, which an exported page does not know; "
                "train a model with data.tokenizer.numbered_unknown=0 (docs/live_page.md)"
            )
        elif kind_of(tokenizer) is None:
            problems.append(
                f"data/tokenizer splits the {side} in a way that an exported page cannot; it can "
                f"split {', '.join(TOKENIZERS)} (docs/live_page.md)"
            )
    if isinstance(predictor, Translator) and predictor.search({}).int8:
        problems.append(
            "search.int8 is true, but an exported page multiplies no 8-bit integers; choose "
            "search.int8=false"
        )
    if isinstance(predictor, Translator) and predictor.search({}).replace_unknown:
        problems.append(
            "search.replace_unknown is true, but an exported page copies no words of the source; "
            "choose search.replace_unknown=false"
        )
    return problems


def _parts(predictor: Any) -> list[tuple[str, Any]]:
    """The parts of a model with their groups in conf/; None for one that it does not have."""
    model = predictor.model
    parts = [
        ("model", model),
        ("model/encoder", model.encoder),
        ("data/cleaning", predictor.cleaning),
    ]
    if isinstance(model, Classifier):
        return parts + _parts_of_attention(model.attention)

    body = model.decoder.body
    parts += [
        ("model/bridge", model.bridge),
        ("model/decoder", model.decoder),
        ("model/readout", body.readout),
        ("model/output", model.output),
        ("model/input_feeding", body.input_feeding),
        ("search", predictor.search({})),
    ]
    return parts + _parts_of_attention(model.decoder.attention)


def _parts_of_attention(attention: Any) -> list[tuple[str, Any]]:
    if attention is None:
        return []
    parts = [("model/heads", attention), ("model/gate", getattr(attention, "gate", None))]
    for head in heads_of(attention):
        score = score_of(head)
        parts += [
            ("model/attention", score),
            ("model/projection", None if head.score is score else head.score),
            ("model/normaliser", head.normaliser),
            ("model/scope", head.scope),
            ("model/history", head.history),
        ]
        if plain_type(head) is not Attention:
            parts.append(("model/heads", head))
    return parts


def tokenizers_of(predictor: Any) -> dict[str, Tokenizer]:
    """The tokenizers of a model, by the side that they split."""
    tokenizers = {"source": predictor.source_tokenizer}
    if isinstance(predictor, Translator):
        tokenizers["target"] = predictor.target_tokenizer
    return tokenizers


def kind_of(tokenizer: Tokenizer) -> str | None:
    """The name of a tokenizer in TOKENIZERS; None for one that splits texts in another way."""
    state = tokenizer.as_json()
    way = _way_of(state)
    for name, trainer in TOKENIZERS.items():
        if way == _way_of(trainer.train(["a"]).as_json()):
            ids = sorted(state["model"]["vocab"].values())
            return name if ids == [*range(len(ids))] else None
    return None


def _way_of(state: Mapping[str, Any]) -> Any:
    """How a tokenizer splits and joins text, but for its normal form, case and vocabulary."""
    if (state["normalizer"] or {}).get("type") != "Sequence":
        return None
    # A normal form comes first and the case second, each once at most.
    steps = steps_of(state)
    if steps and steps[0]["type"] in NORMAL_FORMS:
        steps = steps[1:]
    if steps and steps[0]["type"] == "Lowercase":
        steps = steps[1:]
    model = {key: each for key, each in state["model"].items() if key not in ("vocab", "merges")}
    others = {key: each for key, each in state.items() if key not in ("normalizer", "model")}
    return steps, model, others


def steps_of(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a tokenizer does to a text before it splits it."""
    steps: list[dict[str, Any]] = state["normalizer"]["normalizers"]
    return steps


def plain_type(part: Any) -> type:
    return PLAIN.get(type(part), type(part))


def name_of(part: Any) -> str:
    return plain_type(part).__name__


def full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
