"""What a part of an attention makes of scores that are all equal, as those of a uniform one are."""

from __future__ import annotations

from typing import Literal

OfEqualScores = Literal["uniform", "fixed", "learned"]
"""The same weight for all that may be seen, others that no parameter changes, or what training may
change yet."""
