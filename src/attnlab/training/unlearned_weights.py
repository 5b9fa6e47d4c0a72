"""Attention weights that no training changes: those of a uniform score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.model.attention.equal_scores import OfEqualScores
from attnlab.model.attention.uniform import UniformScore
from attnlab.model.normalisers.softmax_with_sink import SoftmaxWithSink

_PARTS = ("normaliser", "scope", "history")


def weights_of(model: Mapping[str, Any]) -> OfEqualScores:
    """What the weights of a model's attention are; `learned` wherever the scores may differ.

    model: the settings by their names, as a config's part has them.
    """
    if model["attention"].target is not UniformScore:
        return "learned"
    parts = [model[name] for name in _PARTS if model.get(name) is not None]
    made = {_made_of_equal_scores(part) for part in parts}
    if "learned" in made:
        return "learned"
    return "fixed" if "fixed" in made else "uniform"


def _made_of_equal_scores(part: Any) -> OfEqualScores:
    if part.target is SoftmaxWithSink and not part.values.get("learned"):
        return "fixed"
    return part.target.of_equal_scores
