"""Names by which people distinguish points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# Sections whose names say nothing that the setting itself does not.
_PLAIN = ("data", "hardware", "model", "training")


def choices_of(overrides: Iterable[str], varies: Iterable[str]) -> dict[str, str]:
    """What the overrides of one point choose for the keys that vary, as text."""
    chosen = {}
    for text in overrides:
        key, _, value = text.partition("=")
        chosen[key.lstrip("+~")] = _unquoted(value)
    return {key: chosen[key] for key in varies if key in chosen}


def _unquoted(value: str) -> str:
    """As Hydra reads a text in quotes."""
    quote = value[:1]
    if len(value) < 2 or quote not in ("'", '"') or value[-1] != quote:
        return value
    return value[1:-1].replace(f"\\{quote}", quote)


def name_of(choices: Mapping[str, str]) -> str:
    """`bahdanau · seed 2`: a word stands for itself, a number behind the name of its setting."""
    return " · ".join(_label(key, value) for key, value in choices.items()) or "as given"


def short_key(key: str) -> str:
    """`attention` of `model/attention`, `learning_rate` of `training.optimizer.learning_rate`."""
    return key.replace("/", ".").rpartition(".")[2]


def _label(key: str, value: str) -> str:
    parts = key.replace("/", ".").split(".")
    setting = " ".join(parts[1:] if parts[0] in _PLAIN and parts[1:] else parts).replace("_", " ")
    if value == "none":
        return f"no {setting}"
    if _is_word(value):
        return value.rstrip("/").rpartition("/")[2]
    return f"{setting} {_rounded(value)}"


def _is_word(value: str) -> bool:
    return _number(value) is None and value.lower() not in ("true", "false", "null") and value[:1] not in ("[", "{")


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _rounded(value: str) -> str:
    """A number with as many digits as distinguish it; a sampler draws seventeen."""
    number = _number(value)
    return value if number is None or len(value) <= 6 else f"{number:.4g}"
