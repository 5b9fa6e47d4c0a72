"""A stage in another process: found by its script, for a worker may have been started in any folder."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any


def job_of_script(script: str) -> Any:
    """What Hydra calls for the stage `main` of a script, unpickled."""
    path = Path(script)
    # The modules that a script imports lie beside it, and go before others of these names in the worker's folder.
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    stage = importlib.import_module(path.stem).main
    return importlib.import_module("launch").Job(stage)
