"""Heat maps as vector graphics in pages that work offline and without scripts."""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.heat_map import HeatMap
from attnlab.plots.html import render


def heat_map_page(maps: Sequence[AttentionMap], title: str | None = "Attention") -> str:
    """A complete page with all maps.

    Other pages import the macros of heat_map.html: `style()` for their style element, `maps(...)`
    with a list of `HeatMap`, or `legend(...)` once and `figure(...)` for each map.

    title: None leaves title and explanation out.
    """
    described = [HeatMap.of(attention) for attention in maps]
    return render("heat_map_page.html", {"title": title, "maps": described})
