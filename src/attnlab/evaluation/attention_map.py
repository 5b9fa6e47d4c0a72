"""Attention maps: the attention weights of one sentence with its tokens, and their file.

Axes: T target tokens (rows), S source tokens (columns), `<eos>` on both sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import ExperimentError
from attnlab.files import atomic_file


def _no_links() -> NDArray[np.int64]:
    return np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Row t, column s: the weight of source token s for target token t.

    source_tokens: S tokens in the order of the text.
    target_tokens: T tokens in the order of the text.
    weights: (T, S) float32.
    title: a line above the picture.
    sure_links, possible_links: (n, 2) [row, column] of a known alignment; empty where none is
        known. A sure link is possible too, and need not be repeated there.
    wrong_targets: the rows whose token differs from the reference at its place (see
        `edit_alignment.wrong_tokens`); None where no reference is known.
    """

    source_tokens: list[str]
    target_tokens: list[str]
    weights: NDArray[np.float32]
    title: str = ""
    sure_links: NDArray[np.int64] = field(default_factory=_no_links)
    possible_links: NDArray[np.int64] = field(default_factory=_no_links)
    wrong_targets: list[int] | None = None

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, dtype=np.float32)
        target_length = len(self.target_tokens)
        source_length = len(self.source_tokens)
        expected = (target_length, source_length)
        if weights.shape != expected:
            raise ValueError(
                f"weights must be (T, S) = {expected} for {target_length} target and "
                f"{source_length} source tokens, got {weights.shape}"
            )
        # The dataclass is frozen, so this is how its own constructor assigns, too.
        object.__setattr__(self, "weights", weights)


def save_maps(maps: Sequence[AttentionMap], path: Path) -> None:
    """Write maps as one `.npz` without pickles; the same maps give the same bytes.

    Arrays: `titles` (n,), and for map i `i.weights` (T, S), `i.source_tokens` (S,) and
    `i.target_tokens` (T,). Where they are known, also `i.sure_links` and `i.possible_links` (n, 2),
    and `i.wrong_targets` (n,).

    NumPy cuts zero characters off the end of a text, so U+0000 is written as its picture, ␀.
    """
    titles = [attention_map.title for attention_map in maps]
    arrays: dict[str, NDArray[np.generic]] = {"titles": _text_array(titles)}
    for number, attention_map in enumerate(maps):
        arrays[f"{number}.weights"] = attention_map.weights
        arrays[f"{number}.source_tokens"] = _text_array(attention_map.source_tokens)
        arrays[f"{number}.target_tokens"] = _text_array(attention_map.target_tokens)
        for name in ("sure_links", "possible_links"):
            links = getattr(attention_map, name)
            if len(links):
                arrays[f"{number}.{name}"] = links
        if attention_map.wrong_targets is not None:
            wrong = np.array(attention_map.wrong_targets, dtype=np.int64)
            arrays[f"{number}.wrong_targets"] = wrong
    with atomic_file(Path(path)) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)


def load_maps(path: Path) -> list[AttentionMap]:
    """Read a file of `save_maps`; raises ExperimentError where it holds no valid maps."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            maps = []
            for number, title in enumerate(arrays["titles"].tolist()):
                attention_map = AttentionMap(
                    source_tokens=arrays[f"{number}.source_tokens"].tolist(),
                    target_tokens=arrays[f"{number}.target_tokens"].tolist(),
                    weights=arrays[f"{number}.weights"],
                    title=title,
                    **_known_marks(arrays, number),
                )
                maps.append(attention_map)
            return maps
    except Exception as error:  # whatever numpy, zipfile and zlib raise for an invalid file
        raise ExperimentError(
            f"{path} holds no attention that can be read ({error}); run the evaluate stage again"
        ) from error


def _known_marks(arrays: Mapping[str, NDArray[Any]], number: int) -> dict[str, Any]:
    """The marks that a file has of a map; an older file has none."""
    marks: dict[str, Any] = {}
    for name in ("sure_links", "possible_links"):
        if f"{number}.{name}" in arrays:
            marks[name] = arrays[f"{number}.{name}"]
    if f"{number}.wrong_targets" in arrays:
        marks["wrong_targets"] = arrays[f"{number}.wrong_targets"].tolist()
    return marks


def _text_array(texts: Sequence[str]) -> NDArray[np.str_]:
    return np.array([text.replace("\0", "␀") for text in texts], dtype=np.str_)


def evenly_spaced(rows: NDArray[np.int64], count: int) -> list[int]:
    """Up to `count` of the rows, at even distances."""
    places = np.linspace(0, len(rows) - 1, num=min(count, len(rows)))
    return rows[places.round().astype(int)].tolist()
