"""All choices of a model, its training and its search; and which do not go together, and why.

Choices that are YAML files of conf/model are found in its folders, so that a new file is covered. A
row is a mapping factor -> value; `arguments` makes of it what the `tiny_model` fixture takes.
`one_training_step` and `one_search` read the rest.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from composed_variants import COPIES, MARGINALISES, ONLY_COPIES, attends, contexts_of, usual_first

from attnlab.batch import Padding

Row = dict[str, Any]

# A Transformer's decoder has no cells, state and bridge; test_transformer.py has its own choices.
RECURRENT = [name for name in usual_first("decoder") if name != "transformer"]
_DECODERS = [(name, context) for name in RECURRENT for context in contexts_of(name)]
ATTENDING = [choice for choice in _DECODERS if attends(choice[0])]
WITHOUT_ATTENTION = [choice for choice in _DECODERS if not attends(choice[0])]
WITHOUT_CONTEXT_IN_READOUT = ("cell", "previous_in_cell", "initial_state")
MAKES_WEIGHTS = ("delta_rule",)  # without a normaliser; test_fast_weights.py has them
SCORES = [name for name in usual_first("attention") if name not in ("none", *MAKES_WEIGHTS)]
EQUAL_WIDTHS = ("dot", "scaled_dot", "cosine")  # scores that compare query and keys as they are
BY_POSITION = ("location", "uniform")  # scores without keys
CHANGES_KEYS = ("coverage", "last_weights", "location_sensitive")
MAKES_ITS_WEIGHTS = ("monotonic", "mocha")  # histories without a normaliser
NEEDS_POSITIVE_WEIGHTS = ("coverage", "forward", "forward_with_agent")
HARD = ("hard", "gumbel", "reinforce")
NO_DISTRIBUTION = ("none", "sigmoid", "softmax1", "softmax_with_sink")
READS_WEIGHTS = (*COPIES, *MARGINALISES)  # as a distribution over the source
SCOPES = [*usual_first("scope"), "local_p_renormalised"]
FEEDINGS = usual_first("input_feeding")

# The first value of each is the usual one.
OF_THE_MODEL: dict[str, list[Any]] = {
    "cell": ["gru", "rnn", "lstm"],
    "decoder_cell": ["gru", "rnn", "lstm"],
    "bidirectional": [True, False],
    "merge": ["concatenate", "sum", "mean"],
    "reverse_source": [False, True],
    "layers": [1, 2],
    "decoder_layers": [1, 2],
    "bridge": usual_first("bridge"),
    "attention": [*SCORES, *MAKES_WEIGHTS, None],
    "projection": [None, 5],
    "normaliser": usual_first("normaliser"),
    "scope": SCOPES,
    "history": usual_first("history"),
    "heads": [None, 2],
    "gate": usual_first("gate"),
    "decoder": [*ATTENDING, *WITHOUT_ATTENTION],
    # None is the encoder's width; 5 differs from every width of the encoder
    "decoder_hidden_size": [None, 5],
    "readout": usual_first("readout"),
    "readout_size": [7, 3],
    "output": usual_first("output"),
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
    "optimizer": ["sgd", "adam", "adadelta", "adagrad"],
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


def _rule(reason: str, refuses: Callable[..., bool]) -> Rule:
    """A rule whose condition names its factors as its parameters."""
    return Rule(reason, tuple(inspect.signature(refuses).parameters), refuses)


def _idle(factor: str) -> Rule:
    return Rule(
        f"{factor} is chosen for an attention, but model.attention is null",
        ("attention", factor),
        lambda attention, value: attention is None and value != USUAL[factor],
    )


# In the order in which a model is built and then searched with: the first that refuses is what the
# user reads.
RULES = [
    _rule(
        "merge must be concatenate where bidirectional is false",
        lambda bidirectional, merge: not bidirectional and merge != "concatenate",
    ),
    *(
        _idle(factor)
        for factor in ("projection", "normaliser", "scope", "history", "heads", "gate")
    ),
    _rule(
        "this decoder asks an attention at every step, but model.attention is null",
        lambda attention, decoder: attention is None and decoder[0] != "no_attention",
    ),
    _rule(
        "this decoder never looks back at the source",
        lambda attention, decoder: attention is not None and decoder[0] == "no_attention",
    ),
    _rule(
        "the location and uniform scores have no keys to project",
        lambda attention, projection: attention in BY_POSITION and projection is not None,
    ),
    _rule(
        "score needs a query and keys of one width",
        lambda attention, projection, heads, decoder_hidden_size: (
            attention in EQUAL_WIDTHS
            and projection is None
            and heads is None
            and decoder_hidden_size is not None
        ),
    ),
    _rule(
        "is added to the keys, but the location and uniform scores have none",
        lambda attention, history: attention in BY_POSITION and history in CHANGES_KEYS,
    ),
    _rule(
        "makes weights of the scores by itself",
        lambda normaliser, history: history in MAKES_ITS_WEIGHTS and normaliser != "softmax",
    ),
    _rule(
        "a renormalised window changes nothing",
        lambda normaliser, scope: normaliser in HARD and scope == "local_p_renormalised",
    ),
    _rule(
        "makes weights of any sign by itself",
        lambda attention, normaliser: attention in MAKES_WEIGHTS and normaliser != "none",
    ),
    _rule(
        "makes weights of 0 of it",
        lambda attention, normaliser: attention == "uniform" and normaliser == "none",
    ),
    _rule(
        "are logarithms, of which normaliser NoneNormaliser would make weights as they are",
        lambda attention, normaliser: attention == "linear_attention" and normaliser == "none",
    ),
    _rule(
        "a renormalised window would divide by a sum near 0",
        lambda normaliser, scope: normaliser == "none" and scope == "local_p_renormalised",
    ),
    _rule(
        "needs weights that are at least 0",
        lambda normaliser, history: normaliser == "none" and history in NEEDS_POSITIVE_WEIGHTS,
    ),
    _rule(
        "would have nothing to learn from what it draws",
        lambda attention, normaliser: attention == "uniform" and normaliser == "reinforce",
    ),
    _rule(
        "are drawn and have no gradient",
        lambda normaliser, history: normaliser == "reinforce" and history == "coverage",
    ),
    _rule(
        "the location and uniform scores have no keys that heads could project",
        lambda attention, heads: attention in BY_POSITION and heads is not None,
    ),
    _rule(
        "this decoder hands its readout no context",
        lambda decoder, readout: (
            readout == "attentional" and decoder[1] in WITHOUT_CONTEXT_IN_READOUT
        ),
    ),
    _rule(
        "the state readout reads no context, but this decoder hands it one",
        lambda decoder, readout: (
            readout == "state" and decoder[1] not in WITHOUT_CONTEXT_IN_READOUT
        ),
    ),
    _rule(
        "feeding the attentional hidden state needs a readout that makes one",
        lambda input_feeding, readout: (
            input_feeding == "attentional_hidden" and readout != "attentional"
        ),
    ),
    _rule(
        "the copy bridge needs equal states",
        lambda bridge, layers, decoder_layers: bridge == "copy" and layers != decoder_layers,
    ),
    _rule(
        "the copy bridge needs equal states",
        lambda bridge, decoder_hidden_size: bridge == "copy" and decoder_hidden_size is not None,
    ),
    _rule(
        "the copy bridge needs equal states",
        lambda bridge, cell, decoder_cell: (
            bridge == "copy" and (cell == "lstm") != (decoder_cell == "lstm")
        ),
    ),
    _rule(
        "the linear bridge maps layer to layer",
        lambda bridge, layers, decoder_layers: bridge == "linear" and layers != decoder_layers,
    ),
    _rule(
        "the first_backward bridge needs an encoder with a backward direction",
        lambda bridge, bidirectional: bridge == "first_backward" and not bidirectional,
    ),
    _rule(
        "the first_backward bridge maps layer to layer",
        lambda bridge, layers, decoder_layers: (
            bridge == "first_backward" and layers != decoder_layers
        ),
    ),
    _rule(
        "bridge hands nothing of the source to a decoder that never looks at it",
        lambda bridge, decoder: bridge == "zero" and decoder == ("no_attention", "initial_state"),
    ),
    _rule(
        "goes by the attention weights, but model.attention is null",
        lambda attention, output: attention is None and output in READS_WEIGHTS,
    ),
    *(
        _rule("reads the attention weights as a distribution over the source", refuses)
        for refuses in (
            lambda normaliser, output: normaliser in NO_DISTRIBUTION and output in READS_WEIGHTS,
            lambda scope, output: scope == "local_p" and output in READS_WEIGHTS,
            lambda history, output: history in MAKES_ITS_WEIGHTS and output in READS_WEIGHTS,
        )
    ),
    _rule(
        "sums over the source tokens that one attention may choose",
        lambda heads, output: heads is not None and output in MARGINALISES,
    ),
    _rule(
        "sums over all source tokens that a token may come from",
        lambda normaliser, output: normaliser in HARD and output in MARGINALISES,
    ),
    _rule(
        "a gate or dropout on the way to the context does nothing",
        lambda gate, output: gate != "none" and output in MARGINALISES,
    ),
    _rule(
        "this decoder hands its readout no context; choose a model.decoder.context",
        lambda decoder, output: (
            decoder in ATTENDING
            and decoder[1] in WITHOUT_CONTEXT_IN_READOUT
            and output in MARGINALISES
        ),
    ),
    _rule(
        "the uniform score has nothing to learn",
        lambda attention, output: attention == "uniform" and output in ONLY_COPIES,
    ),
    _rule(
        "learns nothing of a token whose weight is 0",
        lambda normaliser, output: normaliser in HARD and output in ONLY_COPIES,
    ),
    _rule(
        "would never learn",
        lambda readout, output: readout not in ("plain", "state") and output in ONLY_COPIES,
    ),
    *(
        _rule("nothing reads the context that several heads or a gate make", refuses)
        for refuses in (
            lambda heads, decoder, output: (
                heads is not None and decoder[1] == "readout" and output in ONLY_COPIES
            ),
            lambda gate, decoder, output: (
                gate != "none" and decoder[1] == "readout" and output in ONLY_COPIES
            ),
        )
    ),
    _rule(
        "copies tokens of the source, so that both sides need one vocabulary",
        lambda output, joint_vocabulary: output in COPIES and not joint_vocabulary,
    ),
    _rule(
        "needs a readout as wide as the target embedding",
        lambda tied_embeddings, readout: (
            tied_embeddings != "none" and readout in ("plain", "state")
        ),
    ),
    _rule(
        "needs a readout as wide as the target embedding",
        lambda tied_embeddings, readout_size: (
            tied_embeddings != "none" and readout_size != TARGET_EMBEDDING_SIZE
        ),
    ),
    _rule(
        "needs one vocabulary and one embedding width on both sides",
        lambda tied_embeddings, joint_vocabulary: tied_embeddings == "all" and not joint_vocabulary,
    ),
    _rule(
        "training.label_smoothing spreads probability over the vocabulary",
        lambda label_smoothing, output: label_smoothing > 0 and output in ONLY_COPIES,
    ),
    _rule(
        "search.coverage_penalty goes by the attention weights, but the model has no attention",
        lambda attention, search: attention is None and search == "beam_with_penalties",
    ),
]


def refusal(row: Mapping[str, Any]) -> str | None:
    """Why these choices are refused, as far as they are made; None where they go together."""
    for rule in RULES:
        if all(name in row for name in rule.factors) and rule.refuses(
            *(row[name] for name in rule.factors)
        ):
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
