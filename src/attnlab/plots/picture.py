"""The base class of pictures that a config adds to those of a validation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from attnlab.evaluation.attention_map import AttentionMap


class Picture(ABC):
    """Draws the attention of a validation; a node of the config, `pictures.<name>._target_`.

    The figure becomes `<name>.png` beside the heat maps of the validation.
    """

    @abstractmethod
    def draw(self, maps: Sequence[AttentionMap]) -> Figure:
        """maps: of the same few sentences each time, at least one."""
