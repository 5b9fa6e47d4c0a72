"""Readers of users' files: every wanted cell as text, with its file and line.

Nothing here guesses a type, a shape or a line end: `01` stays `01`, `NA` is a word, and only a line
feed ends a line.
"""

SEPARATOR_NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " "}
"""Words for separators, most of which need quotes in a shell or in a config."""


def is_text_encoding(name: str) -> bool:
    """Whether Python reads text in an encoding of this name."""
    try:
        "".encode(name)
    except (LookupError, ValueError):
        return False
    return True
