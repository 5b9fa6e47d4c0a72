"""All choices of a model, of how it is trained and of what searches with it; which do not go together, and why.

Choices that are YAML files of conf/model are found in its folders, so that a new file is covered.
A row is a mapping factor -> value; `arguments` makes of it what the `tiny_model` fixture takes. `one_training_step`
and `one_search` read the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from composed_variants import attends, contexts_of, usual_first

from attnlab.batch import Padding

Row = dict[str, Any]

_DECODERS = [(name, context) for name in usual_first("decoder") for context in contexts_of(name)]
ATTENDING = [choice for choice in _DECODERS if attends(choice[0])]
WITHOUT_ATTENTION = [choice for choice in _DECODERS if not attends(choice[0])]
WITHOUT_CONTEXT_IN_READOUT = ("cell", "previous_in_cell", "initial_state")
SCORES = [name for name in usual_first("attention") if name != "none"]
EQUAL_WIDTHS = ("dot", "scaled_dot", "cosine")  # scores that compare query and keys as they are
SCOPES = [*usual_first("scope"), "local_p_renormalised"]
FEEDINGS = usual_first("input_feeding")

# The first value of each is the usual one.
OF_THE_MODEL: dict[str, list[Any]] = {
    "cell": ["gru", "rnn", "lstm"],
    "decoder_cell": ["gru", "rnn", "lstm"],
    "bidirectional": [True, False],
    "merge": ["concatenate", "sum", "mean"],
    "reverse_source": [False, True],
    "skipping": ["packed", "flipped"],
    "layers": [1, 2],
    "decoder_layers": [1, 2],
    "bridge": usual_first("bridge"),
    "attention": [*SCORES, None],
    "projection": [None, 5],
    "normaliser": usual_first("normaliser"),
    "scope": SCOPES,
    "coverage": [None, 1.0],
    "heads": [None, 2],
    "decoder": [*ATTENDING, *WITHOUT_ATTENTION],
    "decoder_hidden_size": [None, 5],  # None is the encoder's width; 5 differs from every width of the encoder
    "readout": usual_first("readout"),
    "readout_size": [7, 3],
    "input_feeding": FEEDINGS,
    "tied_embeddings": ["none", "target", "all"],
    "joint_vocabulary": [False, True],
    "padding": [
        Padding("pre", "post"),
        Padding("post", "post"),
        Padding("pre", "pre"),
        Padding("post", "pre"),
        Padding("pre", "pre", attention_masked=False),
        Padding("post", "post", attention_masked=False, recurrence="read"),
        Padding("pre", "pre", recurrence="read"),
    ],
}
# The first value of each is the simplest one: plain descent on the plain loss.
OF_TRAINING_AND_SEARCH: dict[str, list[Any]] = {
    "teacher_forcing": ["constant_1", "constant_half", "linear", "exponential", "inverse_sigmoid"],
    "coin": ["token", "sequence", "batch"],
    "guess": ["argmax", "sample"],
    "label_smoothing": [0.0, 0.1],
    "optimizer": ["sgd", "adam", "adadelta"],
    "precision": ["full", "bf16"],
    "search": ["greedy", "beam", "beam_with_penalties", "sample"],
}
FACTORS = OF_THE_MODEL | OF_TRAINING_AND_SEARCH
USUAL: Row = {name: values[0] for name, values in FACTORS.items()}
TARGET_EMBEDDING_SIZE = 3


class Rule(NamedTuple):
    reason: str  # words of the refusal
    factors: tuple[str, ...]  # what the condition reads
    refuses: Callable[..., bool]


def _idle(factor: str) -> Rule:
    return Rule(
        f"{factor} is chosen for an attention, but model.attention is null",
        ("attention", factor),
        lambda attention, value: attention is None and value != USUAL[factor],
    )


# In the order in which a model is built and then searched with: the first that refuses is what the user reads.
RULES = [
    Rule(
        "merge must be concatenate where bidirectional is false",
        ("bidirectional", "merge"),
        lambda bidirectional, merge: not bidirectional and merge != "concatenate",
    ),
    *(_idle(factor) for factor in ("projection", "normaliser", "scope", "coverage", "heads")),
    Rule(
        "this decoder asks an attention at every step, but model.attention is null",
        ("attention", "decoder"),
        lambda attention, decoder: attention is None and decoder[0] != "no_attention",
    ),
    Rule(
        "this decoder never looks back at the source",
        ("attention", "decoder"),
        lambda attention, decoder: attention is not None and decoder[0] == "no_attention",
    ),
    Rule(
        "the location score has no keys to project",
        ("attention", "projection"),
        lambda attention, projection: attention == "location" and projection is not None,
    ),
    Rule(
        "score needs a query and keys of one width",
        ("attention", "projection", "heads", "decoder_hidden_size"),
        lambda attention, projection, heads, size: (
            attention in EQUAL_WIDTHS and projection is None and heads is None and size is not None
        ),
    ),
    Rule(
        "coverage is added to the keys, but the location score has none",
        ("attention", "coverage"),
        lambda attention, coverage: attention == "location" and coverage is not None,
    ),
    Rule(
        "the location score has no keys that heads could project",
        ("attention", "heads"),
        lambda attention, heads: attention == "location" and heads is not None,
    ),
    Rule(
        "this decoder hands its readout no context",
        ("decoder", "readout"),
        lambda decoder, readout: readout == "attentional" and decoder[1] in WITHOUT_CONTEXT_IN_READOUT,
    ),
    Rule(
        "the state readout reads no context, but this decoder hands it one",
        ("decoder", "readout"),
        lambda decoder, readout: readout == "state" and decoder[1] not in WITHOUT_CONTEXT_IN_READOUT,
    ),
    Rule(
        "feeding the attentional hidden state needs a readout that makes one",
        ("input_feeding", "readout"),
        lambda feeding, readout: feeding == "attentional_hidden" and readout != "attentional",
    ),
    Rule(
        "the copy bridge needs equal states",
        ("bridge", "layers", "decoder_layers"),
        lambda bridge, layers, decoder_layers: bridge == "copy" and layers != decoder_layers,
    ),
    Rule(
        "the copy bridge needs equal states",
        ("bridge", "decoder_hidden_size"),
        lambda bridge, size: bridge == "copy" and size is not None,
    ),
    Rule(
        "the copy bridge needs equal states",
        ("bridge", "cell", "decoder_cell"),
        lambda bridge, cell, decoder_cell: bridge == "copy" and (cell == "lstm") != (decoder_cell == "lstm"),
    ),
    Rule(
        "the linear bridge maps layer to layer",
        ("bridge", "layers", "decoder_layers"),
        lambda bridge, layers, decoder_layers: bridge == "linear" and layers != decoder_layers,
    ),
    Rule(
        "the first_backward bridge needs an encoder that reads backwards",
        ("bridge", "bidirectional"),
        lambda bridge, bidirectional: bridge == "first_backward" and not bidirectional,
    ),
    Rule(
        "the first_backward bridge maps layer to layer",
        ("bridge", "layers", "decoder_layers"),
        lambda bridge, layers, decoder_layers: bridge == "first_backward" and layers != decoder_layers,
    ),
    Rule(
        "bridge hands nothing of the source to a decoder that never looks at it",
        ("bridge", "decoder"),
        lambda bridge, decoder: bridge == "zero" and decoder == ("no_attention", "initial_state"),
    ),
    Rule(
        "needs a readout as wide as the target embedding",
        ("tied_embeddings", "readout"),
        lambda tied, readout: tied != "none" and readout in ("plain", "state"),
    ),
    Rule(
        "needs a readout as wide as the target embedding",
        ("tied_embeddings", "readout_size"),
        lambda tied, size: tied != "none" and size != TARGET_EMBEDDING_SIZE,
    ),
    Rule(
        "needs one vocabulary and one embedding width on both sides",
        ("tied_embeddings", "joint_vocabulary"),
        lambda tied, joint: tied == "all" and not joint,
    ),
    Rule(
        "search.coverage_penalty goes by the attention weights, but the model has no attention",
        ("attention", "search"),
        lambda attention, search: attention is None and search == "beam_with_penalties",
    ),
]


def refusal(row: Mapping[str, Any]) -> str | None:
    """Why these choices are refused, as far as they are made; None where they go together."""
    for rule in RULES:
        if all(name in row for name in rule.factors) and rule.refuses(*(row[name] for name in rule.factors)):
            return rule.reason
    return None


def arguments(row: Row) -> Row:
    """A row's model as the arguments of `tiny_model`."""
    made_otherwise = {"decoder", "joint_vocabulary", *OF_TRAINING_AND_SEARCH}
    given = {name: value for name, value in row.items() if name not in made_otherwise}
    given["decoder"], given["context"] = row["decoder"]
    given["decoder_embedding_size"] = TARGET_EMBEDDING_SIZE
    if row["joint_vocabulary"]:
        given |= {"target_vocabulary_size": 11, "embedding_size": TARGET_EMBEDDING_SIZE}
    return given
