"""YAML that may come from anybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml  # type: ignore[import-untyped]


def parse_yaml(text: str, load: Callable[[str], Any] = yaml.safe_load) -> Any:
    """What the text holds.

    load: `OmegaConf.create` refuses a key that comes twice, as it does in configs.

    Raises:
        ValueError: it cannot be read; its sentence lacks but the name of the file.
    """
    try:
        found = load(text)
        _check_ends(found)
        return found
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ValueError(f"is not valid YAML{line}: {error.problem}; correct it there") from None
    except yaml.YAMLError as error:
        raise ValueError(f"is not valid YAML: {' '.join(str(error).split())}; correct it there") from None
    except RecursionError:
        raise ValueError("has too many brackets within brackets, or holds itself; write it flatter") from None
    except ValueError as error:  # as for a date that does not exist
        reason = str(error).partition(";")[0]
        raise ValueError(
            f"holds a value that cannot be read ({reason}); put it in quotes if it is text, or correct it"
        ) from None
    except (LookupError, AttributeError):
        raise ValueError("holds a value that is not what the tag before it (!!) says; correct it") from None


def _check_ends(node: Any) -> None:
    """Raise RecursionError for what is nested too deeply, or holds itself by an alias."""
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _check_ends(inner)
