"""attnlab: a laboratory for attention in sequence-to-sequence learning."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnlab.api import compose, load
    from attnlab.errors import ExperimentError
    from attnlab.model.attention.intervention import Intervention
    from attnlab.model.attention.layer import Attention
    from attnlab.model.attention.patch import Patch

__all__ = [
    "Attention",
    "ExperimentError",
    "Intervention",
    "Patch",
    "__version__",
    "compose",
    "load",
]
__version__ = "0.1.0"

# Name -> the module that it is imported from at its first use: `import attnlab` alone loads neither
# torch nor Hydra.
_EXPORTS = {
    "Attention": "attnlab.model.attention.layer",
    "ExperimentError": "attnlab.errors",
    "Intervention": "attnlab.model.attention.intervention",
    "Patch": "attnlab.model.attention.patch",
    "compose": "attnlab.api",
    "load": "attnlab.api",
}


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(
            f"module 'attnlab' has no attribute {name!r}; it offers {', '.join(_EXPORTS)}"
        )
    return getattr(importlib.import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS})
