"""The one identity of an experiment: what was chosen, what it learns from, and the code that does it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PACKAGE_ROOT = Path(__file__).resolve().parent.parent


def config_digest(config: Mapping[str, Any]) -> str:
    """SHA-256 of a plain, resolved config, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def source_digest(places: Iterable[str]) -> str:
    """SHA-256 over the package's Python files under `places` (relative to the package), names and contents."""
    digest = hashlib.sha256()
    for place in sorted(places):
        root = PACKAGE_ROOT / place
        if not root.exists():
            raise FileNotFoundError(f"{root} is named as a source, but it does not exist")
        for path in [root] if root.is_file() else sorted(root.rglob("*.py")):
            digest.update(path.relative_to(PACKAGE_ROOT).as_posix().encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def experiment_identity(sections: Mapping[str, Any], data_digest: str, sources: Iterable[str]) -> str:
    """Sixteen hexadecimal digits that two runs share only where they must give the same bytes."""
    parts = (config_digest(sections), data_digest, source_digest(sources))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
