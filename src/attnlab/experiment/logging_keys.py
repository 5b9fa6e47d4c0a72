"""Which keys a description of loggers may have, for `logging.config` does more with some of them than their names say.

Of a handler or a formatter the key `.` sets any attribute, such as the file that a handler writes to, once the one that
it names is checked. So the keys are those of Hydra's own choices, and what the allowed handlers take besides.
"""

from __future__ import annotations

# "()" and `class` name what is made, whose values are checked by themselves.
_SECTIONS = {
    "formatters": ("()", "class", "format", "datefmt", "style", "validate", "reset", "no_color", "force_color"),
    "filters": ("()", "name"),
    "handlers": (
        "()", "class", "level", "formatter", "filters", "filename", "stream", "mode", "encoding", "errors", "delay",
        "maxBytes", "backupCount", "when", "interval", "utc",
    ),
    "loggers": ("level", "handlers", "filters", "propagate"),
}  # fmt: skip
_LISTS = ("handlers", "filters")
_COLOURS = ("log_colors", "secondary_log_colors")


def is_known_key(keys: tuple[str | int, ...], is_null: bool) -> bool:
    """Whether a value may be there: `("handlers", "file", "mode")`, and for a part of a list its place in it.

    is_null: whether there is nothing, which may also stand for a whole handler or for all of them.
    """
    match keys:
        case ("version" | "disable_existing_loggers",):
            return True
        case () | ("root",):
            return is_null
        case ("root", key):
            return key in _SECTIONS["loggers"]
        case ("root", key, int()):
            return key in _LISTS
        case (section,) | (section, str()):
            return is_null and section in _SECTIONS
        case (str(section), str(), key):
            return key in _SECTIONS.get(section, ())
        case ("handlers" | "loggers" as section, str(), key, int()):
            return key in _LISTS and key in _SECTIONS[section]
        case ("formatters", str(), key, *levels):
            return key in _COLOURS and all(str(level).isidentifier() for level in levels)
    return False
