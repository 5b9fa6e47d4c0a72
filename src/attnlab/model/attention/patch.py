"""Patches: parts of another sentence's run, in place of a sentence's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from attnlab.batch import Batch

Places = Mapping[int, int] | Literal["all"]
"""{position here: position there}, or each position's own of a sentence of the same length."""


@dataclass(frozen=True)
class Patch:
    """Takes keys, values or the decoder's first state from another sentence.

    It shows which of them carries what the model writes (activation patching; Vig et al. 2020).
    The weights of another sentence are patched in by `Intervention(weights=other.attention)`.

    Args:
        text: the other sentence.
        keys: {position here: position there}, counted as in `Intervention`; "all" where both
            sentences have as many tokens. What the scores compare.
        values: likewise; what the weights average.
        state: whether the decoder starts with the other sentence's state.

    Raises ValueError for a negative position, for places of another form, and where nothing is
    taken.
    """

    text: str
    keys: Places = field(default_factory=dict)
    values: Places = field(default_factory=dict)
    state: bool = False
    batch: Batch | None = field(default=None, repr=False)  # the other sentence, once it is read

    def __post_init__(self) -> None:
        for name, places in (("keys", self.keys), ("values", self.values)):
            if places != "all" and not isinstance(places, Mapping):
                raise ValueError(
                    f"patch {name} must be 'all' or {{position here: position there}}, got "
                    f"{places!r}"
                )
        if not (self.keys or self.values or self.state):
            raise ValueError("patch must take keys, values or the state of the other sentence")
        for places in (self.keys, self.values):
            named = () if isinstance(places, str) else (*places.keys(), *places.values())
            if any(place < 0 for place in named):
                raise ValueError("patch counts positions from 0 on, got a negative number")

    @property
    def needs_attention(self) -> bool:
        """Whether it takes what an attention looks at."""
        return bool(self.keys or self.values)

    def read(self, batch: Batch) -> Patch:
        """The patch with its sentence, a batch of one.

        Raises ValueError where it takes a position that the sentence does not have.
        """
        length = int(batch.source_mask.sum())
        for places in (self.keys, self.values):
            for place in () if isinstance(places, str) else places.values():
                if place >= length:
                    raise ValueError(
                        f"patch must take positions below {length}, the tokens of "
                        f"{self.text!r}, got {place}"
                    )
        return replace(self, batch=batch)

    def check_source(self, length: int) -> None:
        """Raise ValueError where it does not fit a source of so many tokens."""
        assert self.batch is not None
        of_other = int(self.batch.source_mask.sum())
        for places in (self.keys, self.values):
            if places == "all" and length != of_other:
                raise ValueError(
                    f'patch "all" needs sentences of the same length, but the source has {length} '
                    f"tokens and {self.text!r} has {of_other}"
                )
            for place in () if isinstance(places, str) else places:
                if place >= length:
                    raise ValueError(
                        f"patch must name positions below {length}, the source's tokens, got "
                        f"{place}"
                    )
