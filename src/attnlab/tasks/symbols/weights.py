"""The formulas of the weights: masked energies, the normaliser, and the scope's factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from attnlab.model.attention.intervention import Intervention
from attnlab.model.normalisers.around_best import AroundBest
from attnlab.model.normalisers.entmax import Entmax
from attnlab.model.normalisers.hard import Hard
from attnlab.model.normalisers.learned_temperature import LearnedTemperature
from attnlab.model.normalisers.none import NoneNormaliser
from attnlab.model.normalisers.reinforce import Reinforce
from attnlab.model.normalisers.sigmoid import Sigmoid
from attnlab.model.normalisers.softmax import Softmax
from attnlab.model.normalisers.softmax_with_sink import SoftmaxWithSink
from attnlab.model.normalisers.sparsemax import Sparsemax
from attnlab.model.normalisers.top_k import TopK
from attnlab.tasks.symbols.histories import (
    Weighing,
    makes_weights,
    weigh_by_history,
)
from attnlab.tasks.symbols.look import Look, Masking
from attnlab.tasks.symbols.outside import part_of, run
from attnlab.tasks.symbols.sheet import Sheet, Symbol


def weigh(
    sheet: Sheet,
    attention: Any,
    e: Symbol,
    visible: Symbol | None,
    emphasis: Symbol | None,
    look: Look,
    number: int,
    masking: Masking,
) -> Symbol:
    """The weights: the normaliser, with the mask before or after it, and the scope's factors."""
    scores = e
    if visible is not None and masking == "before":
        scores = sheet.compute("e′", "masked_energy", "mask", e, visible)
        sheet.formula("{} = {};  {} = 0 ⇒ −∞", scores, e, visible)
    intervention = look.memory_of(number).intervention
    if is_changed(intervention, scores):
        alpha = sheet.opaque(
            "α",
            "weights",
            look.weights[number],
            e.axes[0],
            of=[scores],
            part=None,
            operation="change",
        )
        sheet.formula("{} = change({})", alpha, scores)
        return alpha

    stages = ["normalise"]
    if visible is not None and masking == "after":
        stages.append("hide")
    if emphasis is not None:
        stages.append("favour")
        if getattr(attention.scope, "renormalise", False):
            stages.append("share out")
    # The last of them makes α; those before have names of their own.
    names = ["a", "a′", "a″"][: len(stages) - 1]
    abouts = ["weights_before_change"] * len(names)
    names.append("α")
    abouts.append("weights")

    alpha = scores
    for stage, name, about in zip(stages, names, abouts, strict=True):
        if stage == "normalise":
            alpha = weights_of(sheet, attention, scores, look, number, name, about)
        elif stage == "hide":
            assert visible is not None
            alpha = product_of(sheet, name, about, alpha, visible)
        elif stage == "favour":
            assert emphasis is not None
            alpha = product_of(sheet, name, about, alpha, emphasis)
        else:
            alpha = shared_out(sheet, name, about, alpha)
    return alpha


def weights_of(
    sheet: Sheet, attention: Any, scores: Symbol, look: Look, number: int, name: str, about: str
) -> Symbol:
    """The weights that the normaliser makes, or the history of it."""
    past = None if look.past is None else look.past[number][-1]
    if past is None or not makes_weights(attention.history):
        return normalise(sheet, attention.normaliser, scores, name, about)

    def normalised(its_name: str, its_about: str) -> Symbol:
        return normalise(sheet, attention.normaliser, scores, its_name, its_about)

    weighing = Weighing(scores, normalised, attention.normaliser, past, name, about)
    return weigh_by_history(sheet, attention.history, weighing)


def product_of(sheet: Sheet, name: str, about: str, weights: Symbol, factors: Symbol) -> Symbol:
    found = sheet.compute(name, about, "multiply", weights, factors)
    sheet.formula("{} = {} ∘ {}", found, weights, factors)
    return found


def shared_out(sheet: Sheet, name: str, about: str, weights: Symbol) -> Symbol:
    """The weights divided by their sum."""
    whole = sheet.compute("Σa", "sum_of_weights", "total", weights)
    found = sheet.compute(name, about, "divide", weights, whole)
    sheet.formula("{} = Σ {}", whole, weights)
    sheet.formula("{} = {} / {}", found, weights, whole)
    return found


def is_changed(intervention: Intervention | None, scores: Symbol) -> bool:
    """Whether an intervention puts other weights in the place of the normaliser's."""
    if not np.isfinite(scores.values).any():
        return True
    if intervention is None:
        return False
    return (
        intervention.kind is not None or bool(intervention.weights) or intervention.temperature != 1
    )


@dataclass(frozen=True)
class Written:
    """How a normaliser is written as a formula.

    operation: on the scores, and on the number that it learns.
    formula: the weights, the scores, and the number that it learns.
    learned: that number's attribute, its name and what it is; None where there is none.
    settings: of the operation, by the attributes that hold them.
    """

    operation: str
    formula: str
    learned: tuple[str, str, str] | None = None
    settings: tuple[str, ...] = ()


NORMALISERS: Mapping[type, Written] = {
    Softmax: Written("softmax", "{} = softmax({})"),
    Sparsemax: Written("sparsemax", "{} = sparsemax({})"),
    Entmax: Written("entmax", "{} = entmax({})", settings=("alpha",)),
    Sigmoid: Written(
        "sigmoid_weights", "{} = σ({} + {} − log n)", ("b", "b_α", "normaliser_offset")
    ),
    SoftmaxWithSink: Written(
        "softmax_with_sink", "{} = exp({}) / (exp({}) + Σ exp)", ("b", "b_α", "normaliser_sink")
    ),
    LearnedTemperature: Written(
        "tempered_softmax", "{} = softmax({} / exp({}))", ("a", "log_τ", "normaliser_temperature")
    ),
    TopK: Written("top_k", "{} = top-k({})", settings=("k",)),
    AroundBest: Written("around_best", "{} = softmax around max {}", settings=("reach",)),
    NoneNormaliser: Written("seen_alone", "{} = {}"),
    Hard: Written("greatest", "{} = one-hot(argmax {})"),
    Reinforce: Written("greatest", "{} = one-hot(argmax {})"),
}


def normalise(sheet: Sheet, normaliser: Any, scores: Symbol, name: str, about: str) -> Symbol:
    written = NORMALISERS.get(type(normaliser))
    if written is None:
        found = run(normaliser, scores.values[None, None])[0, 0]
        alpha = sheet.opaque(
            name, about, found, *scores.axes, of=[scores], part=part_of(normaliser)
        )
        sheet.formula("{} = weights({})", alpha, scores)
        return alpha

    of = [scores]
    if written.learned is not None:
        attribute, its_name, its_about = written.learned
        of.append(sheet.weight(its_name, its_about, getattr(normaliser, attribute)))
    settings: dict[str, Any] = {
        key: plain_number(getattr(normaliser, key)) for key in written.settings
    }
    alpha = sheet.compute(name, about, written.operation, *of, **settings)
    sheet.formula(written.formula, alpha, *of)
    return alpha


def plain_number(setting: float | Tensor) -> float:
    return setting.item() if isinstance(setting, Tensor) else setting
