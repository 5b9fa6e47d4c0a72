"""The sentences of an evaluation that a report looks at closely, with their attention.

`examples.json` has their numbers in the split, from 0 on; `attention.npz` has the maps of the
typical ones and `attention_worst.npz` those of the worst, in the same order. Without attention the
maps are missing. An older evaluation has the typical maps alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attnlab.evaluation.attention_map import AttentionMap, load_maps, save_maps
from attnlab.files import read_own_record, write_json

ATTENTION = "attention.npz"
WORST_ATTENTION = "attention_worst.npz"
EXAMPLES = "examples.json"
WORST = 6  # sentences
# A picture of a longer sentence is unreadable: tokens of each side of a pair, and of a text alone.
LONGEST_PAIR, LONGEST_TEXT = 60, 80


@dataclass(frozen=True, eq=False)
class Examples:
    """Rows of the split with a map each; no maps where the model does not attend."""

    typical: Sequence[int]
    worst: Sequence[int]
    typical_maps: Sequence[AttentionMap]
    worst_maps: Sequence[AttentionMap]


def write_worst(
    folder: Path, typical: Sequence[int], worst: Sequence[int], worst_maps: Sequence[AttentionMap]
) -> None:
    """Write which sentences are the typical and the worst ones, and the maps of the worst."""
    write_json(folder / EXAMPLES, {"typical": list(typical), "worst": list(worst)})
    save_maps(worst_maps, folder / WORST_ATTENTION)


def read_examples(folder: Path) -> Examples | None:
    """The examples of an evaluation folder; None for an older one, which does not name them.

    Raises ExperimentError where a file is damaged.
    """
    rows = read_example_rows(folder)
    if rows is None:
        return None
    return Examples(
        typical=rows["typical"],
        worst=rows["worst"],
        typical_maps=load_maps(folder / ATTENTION),
        worst_maps=load_maps(folder / WORST_ATTENTION),
    )


def read_example_rows(folder: Path) -> dict[str, list[int]] | None:
    """The rows "typical" and "worst" of the examples; None for an older evaluation."""
    path = folder / EXAMPLES
    if not path.is_file():
        return None
    return read_own_record(path, dict[str, list[int]], "run the evaluate stage again")
