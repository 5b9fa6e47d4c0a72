"""Tokens as labels, with visible control characters."""

from __future__ import annotations

import unicodedata


def visible(token: str) -> str:
    """A token with its invisible control and format characters as code points.

    Joiners stay: emoji and Indic scripts need them.
    """
    shown = []
    for character in unicodedata.normalize("NFC", token):
        is_invisible = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        is_joiner = character in ("\u200c", "\u200d")
        if character == " ":
            shown.append("␣")
        elif is_invisible and not is_joiner:
            shown.append(f"U+{ord(character):04X}")
        else:
            shown.append(character)
    return "".join(shown) or "∅"
