"""One HTML file that runs trained models in a browser: the explorer's page with an engine in it.

The engine, `engine/`, computes in plain JavaScript what the server would answer. It knows the parts
in the tables below, each by its class; every other class is refused.
"""

from __future__ import annotations

import base64
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.api import load
from attnlab.data.corpus import Cleaning, SentenceCleaning
from attnlab.data.tokenizer import Tokenizer
from attnlab.data.trainers import BpeTrainer, CharacterTrainer, WordTrainer
from attnlab.errors import ExperimentError
from attnlab.explorer.formed import formed, trainings_of
from attnlab.explorer.server import (
    PAGE,
    describe,
    model_title,
    open_data,
    page_of,
    pairs_of,
)
from attnlab.files import atomic_file
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
from attnlab.model.model_folder import ForeignCodeError
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
from attnlab.plots.heat_map_css import heat_map_css
from attnlab.search.beam import BeamSearch
from attnlab.search.greedy import GreedySearch
from attnlab.tasks.classification.classifier import SentenceClassifier
from attnlab.tasks.edited_source import heads_of, score_of
from attnlab.tasks.predictor import Predictor
from attnlab.tasks.translation.translator import Translator

ENGINE = Path(__file__).parent / "engine"

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
# How the attention formed takes at most so many bytes of a page for each model, with as many
# validations as fit.
MOST_FORMED = 200_000
VALIDATIONS = (100, 50, 25, 12)
# Chromium reads no text of more than 512 MB.
MOST_WEIGHTS = 400_000_000
# A sped-up layer computes what the plain one does.
PLAIN = {fast: plain for plain, fast in FASTER.items()}


def export(models: Sequence[str], path: Path, data: Path | None = None) -> None:
    """Write a page that runs some models.

    Args:
        models: model folders, or what else `attnlab.api.load` takes.
        path: of the page.
        data: a folder of prepared data, whose test pairs the page offers.

    Raises ExperimentError for a model that cannot be loaded or exported, with all that speaks
    against it.
    """
    with tempfile.TemporaryDirectory(prefix="attnlab-") as downloads:
        page = page_with(load_all(models), data, Path(downloads))
    with atomic_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def load_all(models: Sequence[str]) -> dict[str, Predictor]:
    """The models by their names.

    Raises ExperimentError as `export`, also for models with classes outside of attnlab, whose code
    is not run.
    """
    predictors = {}
    problems = []
    for name in models:
        try:
            predictors[name] = load(name)
        except ForeignCodeError as error:
            problems.append(
                f"{name}: {error.section} names {', '.join(error.classes)}, which an exported page "
                "cannot compute; it computes choices of attnlab (docs/live_page.md)"
            )
    if problems:
        raise ExperimentError(problems)
    return predictors


def page_with(
    predictors: Mapping[str, Predictor], data: Path | None = None, downloads: Path | None = None
) -> str:
    """The page of models by their names.

    Arguments and errors as for `export`; `downloads` as for `trainings_of`.
    """
    problems = []
    for name, predictor in predictors.items():
        problems += [f"{name}: {problem}" for problem in unsupported(predictor)]
    size = sum(size_of_weights(predictor.model) for predictor in predictors.values())
    if size > MOST_WEIGHTS:
        problems.append(
            f"the weights would take {size / 1e6:.0f} MB of the page, but browsers open no more "
            f"than {MOST_WEIGHTS // 1_000_000} MB; export fewer models, or smaller ones"
        )
    if problems:
        raise ExperimentError(problems)

    pages = {name: page_of(name, predictor) for name, predictor in predictors.items()}
    pairs = pairs_of(pages, open_data(pages, data))
    trainings = trainings_of(predictors, downloads)
    models = []
    for name, predictor in predictors.items():
        maps = small_formed(name, trainings[name], predictor) if name in trainings else None
        examples = [pair["source"] for pair in pairs[name][:1]]
        facts = {
            "name": name,
            "title": model_title(predictor),
            "has_formed": maps is not None,
            **describe(predictor, pages[name], examples),
        }
        model = exported(name, predictor)
        models.append({**model, "facts": facts, "pairs": pairs[name], "formed": maps})
    return html_page(models)


def small_formed(name: str, training: Path, predictor: Predictor) -> dict[str, Any] | None:
    """How the attention of a model formed, with as many validations as a page has room for.

    None, with a printed line, where even a few are too large.
    """
    for most in VALIDATIONS:
        answer = formed(training, predictor.config, most)
        if len(_compact(answer).encode()) <= MOST_FORMED:
            return answer
    print(
        f"{name}: the page leaves out how the attention formed, for the maps of "
        f"{min(VALIDATIONS)} validations have more than {MOST_FORMED // 1000} kB"
    )
    return None


def unsupported(predictor: Predictor) -> list[str]:
    """A sentence for each part of a model that the engine does not know."""
    if type(predictor) not in (Translator, SentenceClassifier):
        return [
            f"an exported page cannot ask a {_full_name(type(predictor))}; it asks models that "
            "translate or classify"
        ]
    problems = []
    for place, part in _parts(predictor):
        known = SUPPORTED[place]
        if part is not None and _plain_type(part) not in known:
            choices = ", ".join(known.values())
            problems.append(
                f"{place} is {_full_name(type(part))}, which an exported page cannot compute; "
                f"it can compute {choices} (docs/live_page.md)"
            )
    if problems:
        return problems

    for side, tokenizer in _tokenizers(predictor).items():
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


def exported(name: str, predictor: Predictor) -> dict[str, Any]:
    """What the engine needs of a supported model, as JSON can hold it."""
    weights, places = packed_weights(predictor.model)
    tokenizers = {
        f"{side}_tokenizer": tokenizer_config(tokenizer)
        for side, tokenizer in _tokenizers(predictor).items()
    }
    common = {
        "name": name,
        "model": model_config(predictor.model),
        "weights": weights,
        "places": places,
        "cleaning": {
            "unicode": predictor.cleaning.unicode,
            "whitespace": predictor.cleaning.whitespace,
        },
        **tokenizers,
    }
    if isinstance(predictor, SentenceClassifier):
        return {"kind": "classification", "labels": predictor.labels, **common}
    assert isinstance(predictor, Translator)
    search = predictor.search({})
    kind = SUPPORTED["search"][type(search)]
    settings = {"name": kind, **asdict(search)}  # type: ignore[call-overload]
    return {"kind": "translation", "search": settings, **common}


def model_config(model: Any) -> dict[str, Any]:
    """The parts of a supported model, by the names of their classes, with their settings."""
    encoder = model.encoder
    padding = asdict(model.padding)
    config: dict[str, Any] = {
        "padding": padding,
        "encoder": {
            "cell": _cell_of(encoder.forward_layers[0]),
            "layers": len(encoder.forward_layers),
            "bidirectional": len(encoder.backward_layers) > 0,
            "merge": encoder.merge,
            "reverse_source": encoder.reverse_source,
        },
    }
    if isinstance(model, Classifier):
        query = "sentence" if model.learned_query is None else "learned"
        return {**config, "query": query, "attention": attention_config(model.attention)}

    decoder = model.decoder
    feeding = decoder.body.input_feeding
    shape = decoder.body.state_shape
    return {
        **config,
        "bridge": {"name": _name(model.bridge), **asdict(shape)},
        "decoder": {
            "name": _name(decoder),
            "cell": _cell_of(decoder.body.cell.cells[0]),
            "layers": shape.layers,
            "into_cell": decoder.into_cell,
            "into_readout": decoder.into_readout,
            "fed_size": None if feeding is None else feeding.size,
            "attention": attention_config(decoder.attention),
        },
        "readout": _name(decoder.body.readout),
        "input_feeding": None if feeding is None else _name(feeding),
    }


def attention_config(attention: Any) -> dict[str, Any] | None:
    """The parts of an attention; None for a model without."""
    if attention is None:
        return None
    head = heads_of(attention)[0]  # all heads have the same parts
    score = score_of(head)
    scope = head.scope
    return {
        "heads": None if head is attention else attention.heads,
        "score": _name(score),
        "query_size": getattr(score, "query_size", None),
        "projected": head.score is not score,
        "normaliser": {
            "name": _name(head.normaliser),
            "alpha": getattr(head.normaliser, "fixed_alpha", None),
            "k": getattr(head.normaliser, "k", None),
            "reach": getattr(head.normaliser, "reach", None),
        },
        "scope": {
            "name": _name(scope),
            "width": getattr(scope, "width", None),
            "renormalise": getattr(scope, "renormalise", False),
        },
        "history": history_config(head.history),
    }


def history_config(history: Any) -> dict[str, Any] | None:
    """What the engine must know of a history beside its weights; None without one."""
    if history is None:
        return None
    settings = {
        name: getattr(history, name) for name in ("hard", "chunk_size") if hasattr(history, name)
    }
    return {"name": _name(history), **settings}


def size_of_weights(model: nn.Module) -> int:
    """The characters that the weights of a model take in a page."""
    numbers = sum(weight.numel() for weight in model.parameters())
    return numbers * 4 * 4 // 3  # four bytes each, and four characters for three bytes


def packed_weights(model: nn.Module) -> tuple[str, dict[str, tuple[int, list[int]]]]:
    """The weights of a model in float32, as base64, and of each its start and its shape.

    Tied weights, which share their memory, are stored once.
    """
    places: dict[str, tuple[int, list[int]]] = {}
    start_of: dict[int, int] = {}
    packed: list[Tensor] = []
    size = 0
    for name, weight in model.state_dict().items():
        memory = weight.data_ptr()
        if memory not in start_of:
            start_of[memory] = size
            packed.append(weight.detach().to("cpu", torch.float32).reshape(-1))
            size += weight.numel()
        places[name] = (start_of[memory], list(weight.shape))
    numbers = torch.cat(packed).numpy().astype("<f4")
    return base64.b64encode(numbers.tobytes()).decode("ascii"), places


def kind_of(tokenizer: Tokenizer) -> str | None:
    """The name of a tokenizer in TOKENIZERS; None for one that splits texts in another way."""
    state = tokenizer.as_json()
    way = _way_of(state)
    for name, trainer in TOKENIZERS.items():
        if way == _way_of(trainer.train(["a"]).as_json()):
            ids = sorted(state["model"]["vocab"].values())
            return name if ids == [*range(len(ids))] else None
    return None


def tokenizer_config(tokenizer: Tokenizer) -> dict[str, Any]:
    """What the engine needs of a supported tokenizer."""
    state = tokenizer.as_json()
    ids = state["model"]["vocab"]
    steps = [step["type"] for step in _steps_of(state)]
    forms = [step.lower() for step in steps if step in NORMAL_FORMS]
    return {
        "pieces": kind_of(tokenizer),
        "lowercase": "Lowercase" in steps,
        "normalization": forms[0] if forms else "none",
        "vocabulary": sorted(ids, key=ids.__getitem__),
        "merges": state["model"].get("merges", []),
    }


def html_page(models: Sequence[Mapping[str, Any]]) -> str:
    """The explorer's page with its modules, its style, the engine and the models inside."""
    modules = [_module(name, text) for name, text in page_modules().items()]
    # No token of a vocabulary may end the script.
    data = _compact(models).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>attnlab explorer</title>
<link rel="icon" href="data:,">
<style>{page_style()}</style>
{"".join(modules)}<script>{IMPORT_MAP}</script>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript. 자바스크립트를 켜야 이 페이지를 볼 수 있습니다.</noscript>
<script>{OLD_BROWSER}</script>
<script type="application/json" id="exported-models">{data}</script>
<script type="module">import "explorer/engine/start.js";</script>
</body>
</html>
"""


# The page may ask nobody: neither this machine nor any other.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)

# A file has no addresses for its modules: each becomes a data: URL.
IMPORT_MAP = """
const imports = {};
for (const module of document.querySelectorAll("script[data-module]")) {
  const text = encodeURIComponent(module.textContent);
  imports[module.dataset.module] = `data:text/javascript;charset=utf-8,${text}`;
}
const map = document.createElement("script");
map.type = "importmap";
map.textContent = JSON.stringify({ imports });
document.head.append(map);
"""

# In the words of old browsers; a newer one draws the page over it.
OLD_BROWSER = """
if (!("supports" in HTMLScriptElement && HTMLScriptElement.supports("importmap")
  && String.prototype.isWellFormed && CSS.supports("selector(:has(a))"))) {
  document.getElementById("app").textContent = "This browser is too old for this page. It needs "
    + "Chrome or Edge 111, Firefox 121, Safari 16.4, or a newer version. "
    + "이 페이지를 보려면 더 새로운 브라우저가 필요합니다.";
}
"""


def page_modules() -> dict[str, str]:
    """The scripts of the page and of the engine, by the names that they import each other by."""
    modules = {}
    for path in sorted(PAGE.rglob("*.js")):
        if path.name == "server_words.js":  # of what the engine cannot compute
            continue
        modules[f"explorer/{path.relative_to(PAGE).as_posix()}"] = path.read_text("utf-8")
    for path in sorted(ENGINE.glob("*.js")):
        # A module in a data: URL has no neighbours.
        text = re.sub(r'from "\./', 'from "explorer/engine/', path.read_text("utf-8"))
        modules[f"explorer/engine/{path.name}"] = text
    return modules


def page_style() -> str:
    """The page's style, with the fonts of the reader's machine alone."""
    style = (PAGE / "style.css").read_text("utf-8")
    style = re.sub(r',\s*url\("fonts/[^"]*"\)', "", style)
    embedded = (ENGINE / "embed.css").read_text("utf-8")
    bare = without_comments(f"{heat_map_css()}\n{style}\n{embedded}")
    return re.sub(r"\s*([{};])\s*", r"\1", bare)  # white space between rules has no meaning


def without_comments(script: str) -> str:
    """A script or style without indentation, empty lines and comments.

    A comment behind code stays where it has a quotation mark: what looks like one may then stand in
    a string.
    """
    bare = re.sub(r"^[ \t]*/\*(?:(?!\*/).)*\*/[ \t]*$", "", script, flags=re.DOTALL | re.MULTILINE)
    lines = [re.sub(r"\s//\s[^\"'`]*$", "", line).strip() for line in bare.splitlines()]
    return "\n".join(line for line in lines if line and not line.startswith("//")) + "\n"


def _compact(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _module(name: str, script: str) -> str:
    """A module as text of the page, from which IMPORT_MAP makes an address."""
    text = without_comments(script)
    assert not re.search("</script|<!--", text, re.IGNORECASE), name  # they would end the text
    return f'<script type="text/plain" data-module="{name}">\n{text}</script>\n'


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
        if _plain_type(head) is not Attention:
            parts.append(("model/heads", head))
    return parts


def _tokenizers(predictor: Any) -> dict[str, Tokenizer]:
    """The tokenizers of a model, by the side that they split."""
    tokenizers = {"source": predictor.source_tokenizer}
    if isinstance(predictor, Translator):
        tokenizers["target"] = predictor.target_tokenizer
    return tokenizers


def _steps_of(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a tokenizer does to a text before it splits it."""
    steps: list[dict[str, Any]] = state["normalizer"]["normalizers"]
    return steps


def _way_of(state: Mapping[str, Any]) -> Any:
    """How a tokenizer splits and joins text, but for its normal form, case and vocabulary."""
    if (state["normalizer"] or {}).get("type") != "Sequence":
        return None
    # A normal form comes first and the case second, each once at most.
    steps = _steps_of(state)
    if steps and steps[0]["type"] in NORMAL_FORMS:
        steps = steps[1:]
    if steps and steps[0]["type"] == "Lowercase":
        steps = steps[1:]
    model = {key: each for key, each in state["model"].items() if key not in ("vocab", "merges")}
    others = {key: each for key, each in state.items() if key not in ("normalizer", "model")}
    return steps, model, others


def _cell_of(layer: nn.Module) -> str:
    """rnn, gru or lstm."""
    for kind, names in {
        "rnn": (nn.RNN, nn.RNNCell),
        "gru": (nn.GRU, nn.GRUCell),
        "lstm": (nn.LSTM, nn.LSTMCell),
    }.items():
        if isinstance(layer, names):
            return kind
    raise TypeError(f"{_full_name(type(layer))} is no recurrent layer of torch")


def _plain_type(part: Any) -> type:
    return PLAIN.get(type(part), type(part))


def _name(part: Any) -> str:
    return _plain_type(part).__name__


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
