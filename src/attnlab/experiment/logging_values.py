"""Which values a description of loggers may have, where `logging.config` would end in a stack trace over another."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Set
from typing import Any

_LEVELS = ("DEBUG", "INFO", "WARNING", "WARN", "ERROR", "CRITICAL", "FATAL", "NOTSET")
_TIMES = ("S", "M", "H", "D", "MIDNIGHT", *(f"W{day}" for day in range(7)))
# What they name, by the key that names it.
_NAMING = {"formatter": "formatters", "handlers": "handlers", "filters": "filters"}


def value_problem(keys: tuple[str | int, ...], value: Any, names: Mapping[str, Set[str]]) -> str | None:
    """What is wrong with a value: `("handlers", "file", "level")`, and for a part of a list its place in it.

    names: of the handlers, formatters and filters that are described beside it.
    """
    match keys:
        case ("version",):
            return None if value == 1 else "must be 1"
        case (*_, "level"):
            is_known = value is None or value in _LEVELS or (isinstance(value, int) and not isinstance(value, bool))
            return None if is_known else f"must be one of {', '.join(_LEVELS)}, or a whole number"
        case ("formatters", str(), "style"):
            # One with braces could walk from a record to whatever Python holds.
            return None if value == "%" else "must be %"
        case ("formatters", str(), "format") if isinstance(value, str):
            try:
                logging.Formatter(value)
            except ValueError:
                return "must have a field, such as %(message)s"
        case ("handlers", str(), "when"):
            return None if str(value).upper() in _TIMES else f"must be one of {', '.join(_TIMES)}"
        case (*_, "handlers" | "filters") if value is not None:
            return f"must be a list of names, as [{value}]"
        case (*_, "handlers" | "filters" as key, int()) | ("handlers", str(), "formatter" as key):
            there = sorted(names[_NAMING[key]])
            what = _NAMING[key].removesuffix("s")
            if value is not None and value not in there:
                return f"must name a {what} that there is: {', '.join(there) or 'none'}"
    return None
