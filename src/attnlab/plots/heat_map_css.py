"""The style of heat maps, shared by all pages."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from attnlab.plots.colour_scale import css_colours


@cache
def heat_map_css() -> str:
    """The style rules of heat maps and their legends, with the colours of light and dark pages."""
    layout = Path(__file__).with_name("heat_map.css").read_text(encoding="utf-8")
    return f"{css_colours()}\n{layout}"
