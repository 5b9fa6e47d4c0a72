"""Cleaning of a model's inputs: Unicode, white space and byte order mark as in training."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from attnlab.config.target import TARGET
from attnlab.data.corpus import AS_IT_IS, Cleaning, TextCleaning
from attnlab.errors import ExperimentError, show
from attnlab.model.model_folder import bind_section

SECTION = "data.cleaning"
# The settings that `TextCleaning.tidy` reads. The limits of length decide which rows train a model;
# they drop no user's text.
TIDY_SETTINGS = ("unicode", "whitespace")


def cleaning_of(config: Mapping[str, Any], allow: Collection[str] = ()) -> TextCleaning:
    """How the training data of a model folder were cleaned.

    Args:
        config: the sections of the folder. The cleaning is `data.cleaning`, or `cleaning` where the
            corpus sets it in code.
        allow: as for `load_model`.

    A folder without either is older than that section and comes from a generated corpus: those of
    attnlab keep their texts as they are, and every other corpus of attnlab has `data.cleaning`.

    Raises ExperimentError for values that are not allowed, and for a class of cleaning that is not
    in `allow`.
    """
    data = config.get("data")
    node = data.get("cleaning") if isinstance(data, Mapping) else None
    if node is None:
        node = config.get("cleaning")
    if node is None:
        return AS_IT_IS

    if isinstance(node, Mapping) and is_ours(node):
        # Only the plain values count: older folders name a class, and limits, that exist no more.
        settings = {name: node[name] for name in TIDY_SETTINGS if name in node}
        node = {TARGET: f"{Cleaning.__module__}.{Cleaning.__name__}", **settings}
    cleaning: TextCleaning = bind_section({SECTION: node}, SECTION, TextCleaning, allow)
    return cleaning


def is_ours(node: Mapping[str, Any]) -> bool:
    """Whether a node names a class of attnlab, not one from outside with a `tidy` of its own."""
    return str(node.get(TARGET)).startswith("attnlab.")


def cleaned(texts: Iterable[str], cleaning: TextCleaning) -> list[str]:
    """The texts in the form of the training data, all of them, however long.

    Raises ExperimentError for what is not a text.
    """
    tidied = []
    for text in texts:
        check_text(text)
        tidied.append(cleaning.tidy(text))
    return tidied


def check_text(text: str) -> None:
    """Raise ExperimentError for another type than a string, and for one that UTF-8 cannot write."""
    if not isinstance(text, str):
        raise ExperimentError(f"each text must be a string, got {show(text)}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ExperimentError(
            f"each text must be Unicode text, but character {error.start + 1} of {show(text)} is a "
            "lone surrogate"
        ) from None
