"""A picture of the attention."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.picture import Picture


class EntropyCurves(Picture):
    """How widely each step looks: the entropy of its weights, a curve a sentence."""

    def draw(self, maps: Sequence[AttentionMap]) -> Figure:
        figure = Figure(figsize=(6, 3), layout="constrained")
        axes = figure.add_subplot()
        for each in maps:
            weights = np.clip(each.weights, 1e-9, None)
            entropy = -(weights * np.log(weights)).sum(axis=1)  # (T,)
            axes.plot(range(1, len(entropy) + 1), entropy, marker="o")
        axes.set_xlabel("target token")
        axes.set_ylabel("entropy, nats")
        return figure
