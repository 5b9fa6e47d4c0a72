"""Diagrams: a fence of Mermaid becomes an SVG when the site is built.

A hook of MkDocs. Pages need neither Mermaid's script nor a network, and the drawing takes the
colours of the page, in light and in dark.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import mermaidx
from markdown import Markdown
from mkdocs.config.defaults import MkDocsConfig

# The colours of Mermaid's default theme, and the page's own in their place.
_COLOURS = {
    "#ECECFF": "var(--diagram-box)",
    "#9370DB": "var(--diagram-border)",
    "#333333": "currentColor",
    "#333": "currentColor",
    "rgba(232,232,232, 0.8)": "var(--md-default-bg-color)",
    "rgba(232, 232, 232, 0.5)": "var(--md-default-bg-color)",
}
# A drawing shrinks to this share of its size where the page is narrow; beyond that it scrolls.
_SMALLEST = 0.8


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Let `superfences` draw the fences of the language `mermaid`."""
    fence = {"name": "mermaid", "class": "diagram", "format": _draw_fence}
    options = config.mdx_configs.setdefault("pymdownx.superfences", {})
    options["custom_fences"] = [*options.get("custom_fences", ()), fence]
    return config


def _draw_fence(
    source: str, language: str, css_class: str, options: Any, md: Markdown, **_: Any
) -> str:
    return f'<div class="{css_class}" tabindex="0">{draw(source)}</div>'


def draw(source: str) -> str:
    """The SVG of a diagram in Mermaid's language, in the colours of the page around it."""
    svg: str = mermaidx.Diagram(source).svg()
    # Each diagram of a page needs names of its own.
    name = "diagram-" + hashlib.sha256(source.encode()).hexdigest()[:8]
    svg = svg.replace("my-svg", name)
    for colour, variable in _COLOURS.items():
        svg = svg.replace(colour, variable)
    svg = re.sub(r"font-family:[^;}]*", "font-family:var(--md-text-font-family)", svg)
    width = float(re.findall(r"max-width: ([\d.]+)px", svg)[0])
    return svg.replace("max-width:", f"min-width: {_SMALLEST * width:.0f}px; max-width:", 1)
