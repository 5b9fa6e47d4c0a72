"""Windows of a browser: CI takes a narrow dark one and a wide light one, `make test-all` all."""

from __future__ import annotations

import pytest

ALWAYS = ((400, "dark"), (1280, "light"))


def windows(*widths: int) -> pytest.MarkDecorator:
    """Parametrise a test by `width` and `scheme`, each width in light and dark."""
    cases = []
    for width in widths:
        for scheme in ("light", "dark"):
            marks = () if (width, scheme) in ALWAYS else (pytest.mark.long,)
            cases.append(pytest.param(width, scheme, marks=marks))
    return pytest.mark.parametrize(("width", "scheme"), cases)
