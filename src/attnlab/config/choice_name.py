"""A chosen class in the config's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_KIND = re.compile(
    r"_(score|projection|scope|readout|feeding|corpus|search|trainer|bridge|encoder|schedule|teacher_forcing)$"
)


def choice_name(node: Any) -> str | None:
    """`{"_target_": "...BahdanauScore"}` is `bahdanau`; null is `none`; a node without a target has no name."""
    if node is None:
        return "none"
    target = node.get("_target_") if isinstance(node, Mapping) else None
    if not isinstance(target, str):
        return None
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", target.rpartition(".")[2]).lower()
    return _KIND.sub("", words)
