"""What may stand in a tokeniser's file: the parts that the trainers of this package write, and no other.

The library knows many more. A foreign pattern may take forever on some sentence, another part end the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attnlab.files import parse_json

WORD_START = "▁"
# A word with the mark of its start, or one punctuation mark: no piece spans the border between two of them.
WORD_OR_MARK = rf"{WORD_START}?\w+|{WORD_START}?[^\w{WORD_START}]|{WORD_START}"
ANY_CHARACTER = r"[\s\S]"

_PATTERNS = (WORD_OR_MARK, ANY_CHARACTER)
_PARTS = {
    "normalizer": ("Sequence", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Replace", "Prepend"),
    "pre_tokenizer": ("WhitespaceSplit", "Split"),
    "decoder": ("Sequence", "Replace", "Fuse", "Strip"),
    "model": ("WordLevel", "BPE", "Unigram"),
}
# Of a model; a prefix that is longer than a piece ends the library in a panic.
_OFF = ("byte_fallback", "continuing_subword_prefix", "dropout", "end_of_word_suffix", "fuse_unk", "ignore_merges")
_UNUSED = ("added_tokens", "padding", "post_processor", "truncation")


def check_tokenizer_file(text: str) -> None:
    """Raise ValueError for a part that no trainer of this package writes."""
    state = parse_json(text)
    if not isinstance(state, dict):
        raise ValueError("it is no JSON object")
    used = [name for name in _UNUSED if state.get(name)]
    if used:
        raise ValueError(f"{used[0]} must be empty")
    for name, allowed in _PARTS.items():
        vocabulary = ("vocab", "merges") if name == "model" else ()
        for part in _objects(state.get(name), vocabulary):
            _check_part(name, part, allowed)
    model = state.get("model")
    if isinstance(model, dict):
        on = [name for name in _OFF if model.get(name)]
        if on:
            raise ValueError(f"its model must have no {on[0]}")
        _check_vocabulary(model.get("vocab"))


def _check_part(name: str, part: dict[str, Any], allowed: tuple[str, ...]) -> None:
    if "Regex" in part and part["Regex"] not in _PATTERNS:
        raise ValueError(f"its {name} has an unsupported pattern: {str(part['Regex'])[:60]!r}")
    if part.keys() in ({"Regex"}, {"String"}):
        return
    # The library would guess at one without a type.
    if part.get("type") not in allowed:
        raise ValueError(f"its {name} must be of {', '.join(allowed)}, got {part.get('type')!r}")
    if part["type"] == "Strip" and (part.get("start"), part.get("stop")) != (1, 0):
        raise ValueError(f"its {name} strips something else than the first character")
    for key in ("content", "prepend"):
        if len(str(part.get(key, ""))) > 1:
            raise ValueError(f"its {name} puts more than one character in the place of another")


def _check_vocabulary(vocabulary: Any) -> None:
    if isinstance(vocabulary, dict) and sorted(vocabulary.values(), key=repr) != sorted(
        range(len(vocabulary)), key=repr
    ):
        raise ValueError("its vocabulary must number the tokens from 0 on, each once")


def _objects(node: Any, without: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for key, value in node.items():
            if key not in without:
                yield from _objects(value, without)
    elif isinstance(node, list):
        for value in node:
            yield from _objects(value, without)
