"""Formulas: LaTeX between dollars becomes MathML, which browsers draw without a script or a font.

A hook of MkDocs. The extension `pymdownx.arithmatex` finds the formulas of a page.
"""

from __future__ import annotations

import html
import re

from math_core import LatexError, LatexToMathML
from mkdocs.exceptions import PluginError
from mkdocs.structure.pages import Page

# What arithmatex writes with `generic: true`.
_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)
_LONG = 24  # characters of a formula that may be wider than a telephone
_CONVERTER = LatexToMathML(fancy_error=False)


def on_page_content(content: str, page: Page, **_: object) -> str:
    """Draw the formulas of a page."""

    def draw(found: re.Match[str]) -> str:
        latex = html.unescape(found["latex"]).strip()
        try:
            return math_markup(latex, display=found["tag"] == "div")
        except LatexError as error:
            raise PluginError(f"{page.file.src_uri}: the formula {latex!r}: {error}") from error

    return _FORMULA.sub(draw, content)


def math_markup(latex: str, display: bool) -> str:
    """The MathML of a formula.

    Args:
        latex: the formula without its dollars.
        display: whether it stands in a line of its own, where it scrolls if it is too wide. A long
            formula within a text does so on a narrow screen.

    Raises LatexError for a command that does not exist.
    """
    markup = _CONVERTER.convert_with_local_state(latex, displaystyle=display)
    if not display:
        text = re.sub("<[^>]+>", "", markup)
        is_long = len(html.unescape(text)) > _LONG
        return f'<span class="long-formula" tabindex="0">{markup}</span>' if is_long else markup
    # Chromium scrolls no <math>, and a region that scrolls must be reachable by the keyboard.
    return f'<div class="formula" tabindex="0">{markup}</div>'
