"""Pictures for tests that do not look at them: figures are made as ever, and stay blank.

What a figure shows is decided before it is drawn, so our own code runs whole; only matplotlib's
drawing, half of the time of a tiny experiment, is left out. Files, sizes and formats stay as they
are.
"""

from __future__ import annotations

import pytest


def leave_pictures_blank(patch: pytest.MonkeyPatch | None = None) -> None:
    """Draw nothing into figures from now on: as long as a patch holds, or in the whole process."""
    from matplotlib.figure import Figure

    def draw_nothing(figure: Figure, renderer: object) -> None:
        del figure, renderer

    if patch is None:
        Figure.draw = draw_nothing
    else:
        patch.setattr(Figure, "draw", draw_nothing)
