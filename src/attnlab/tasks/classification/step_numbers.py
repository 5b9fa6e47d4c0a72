"""A classifier's one look at its sentence, with all of its numbers (tasks/symbols/sheet.py).

Axes: S source tokens, D context, R dense layer, C classes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from attnlab.model.attention.intervention import Intervention
from attnlab.tasks.classification.classifier import SentenceClassifier
from attnlab.tasks.edited_source import NO_EDIT, Edit, Source, heads_of
from attnlab.tasks.requests import NO_CHANGE
from attnlab.tasks.symbols.attention import attend
from attnlab.tasks.symbols.five_scores import five_scores_of_heads
from attnlab.tasks.symbols.look import Look, Masking
from attnlab.tasks.symbols.pads import Recurrence, recurrence_at_pads
from attnlab.tasks.symbols.sheet import Axis, Sheet, Symbol, Windows


@torch.no_grad()
def step_numbers(
    classifier: SentenceClassifier,
    text: str,
    intervene: Intervention = NO_CHANGE,
    edit: Edit = NO_EDIT,
    masking: Masking = "before",
    recurrence: Recurrence | None = None,
    windows: Windows | None = None,
) -> dict[str, Any]:
    """All numbers of a classifier's look at a sentence.

    `masking`, `recurrence` and `windows` as for a translation.

    Returns:
        source (S tokens, pads among them), and recurrence, `groups`, `symbols` and `scores` as for
        a translation.

    Raises ExperimentError as `classify`.
    """
    source = Source.read(classifier, text, edit, intervene)
    model = classifier.model
    batch = source.batch([])
    with recurrence_at_pads(model.encoder, recurrence) as at_pads:
        memory = model.read(batch.source, batch.source_mask, intervene)
        outputs = model.encoder(batch.source, batch.source_mask).outputs[0]

    # Listen to the heads, so that weights under an intervention are those that the model used.
    heads = heads_of(model.attention)
    weights: dict[nn.Module, Tensor] = {}

    def record(head: nn.Module, given: tuple[Any, ...], found: tuple[Tensor, Tensor]) -> None:
        weights[head] = found[1][0, 0, 0]

    hooks = [head.register_forward_hook(record) for head in heads]
    try:
        query = model.ask(memory)
        context, _ = model.attention(query, memory, memory.positions.new_zeros(1, 1))
    finally:
        for hook in hooks:
            hook.remove()

    look = Look(
        memory=memory,
        position=0,
        weights=[weights[head] for head in heads],
        context=context[0, 0],
        tokens=source.tokens,
    )
    sheet = Sheet()
    sheet.begin("sentence")
    asked = query[0, 0]
    name = "sentence_query" if model.learned_query is None else "learned_query"
    q = sheet.given("q", name, asked, Axis("Q", len(asked)))
    sheet.begin("look_back")
    c = attend(sheet, model.attention, q, outputs, look, masking)
    decide(sheet, classifier, c)
    scores = five_scores_of_heads(model.attention, asked, outputs, memory)
    return {
        "source": source.tokens,
        "recurrence": at_pads,
        **sheet.as_json(windows),
        "scores": scores,
    }


def decide(sheet: Sheet, classifier: SentenceClassifier, context: Symbol) -> None:
    """d = relu(W_d c + b_d), and the probability of the classes."""
    model = classifier.model
    sheet.begin("decide")
    width = Axis("R", model.dense.weight.shape[0])
    W = sheet.weight("W_d", "dense_W", model.dense.weight, width, context.axes[0])
    b = sheet.weight("b_d", "bias", model.dense.bias, width)
    total = sheet.compute("W c", "dense_sum", "linear", W, context, b)
    d = sheet.compute("d", "dense", "relu", total)
    sheet.formula("{} = {} {} + {}", total, W, context, b)
    sheet.formula("{} = max(0, {})", d, total)

    # Of two classes there is one number, whose sigmoid is the probability of the second.
    two = len(classifier.labels) == 2
    labels = classifier.labels[1:] if two else classifier.labels
    classes = Axis("C", len(labels), labels)
    W_o = sheet.weight("W_o", "class_W", model.output.weight, classes, width)
    b_o = sheet.weight("b_o", "bias", model.output.bias, classes)
    logits = sheet.compute("logits", "class_logits", "linear", W_o, d, b_o)
    function = "sigmoid" if two else "softmax"
    p = sheet.compute("p", "class_probability" if two else "class_distribution", function, logits)
    sheet.formula("{} = {} {} + {}", logits, W_o, d, b_o)
    sheet.formula("{} = " + function + "({})", p, logits)
