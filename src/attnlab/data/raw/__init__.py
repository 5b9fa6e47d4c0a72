"""Users' files, read as they wrote them: every wanted cell as text, with the file and the line that
it stands in.

Nothing here guesses a type, a shape or a line end: `01` stays `01`, `NA` is a word, and only a line
feed ends a line.
"""

SEPARATOR_NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " "}
"""Words for separators, most of which need quotes in a shell or in a config."""
