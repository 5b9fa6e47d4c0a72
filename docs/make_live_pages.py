"""Train the models that the lessons show, and export each as a page: docs/course/live/<name>.html.

    python docs/make_live_pages.py            # all that docs/course/live.yaml names
    python docs/make_live_pages.py dot luong

A model that was trained before is not trained again.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent
COURSE = ROOT / "docs" / "course"
MODELS = Path("runs") / "lessons"  # where `attnlab lesson` leaves them


def live_models() -> list[str]:
    """The names of the models, in the order of the lessons."""
    return list(yaml.safe_load((COURSE / "live.yaml").read_text(encoding="utf-8")))


def commands_of(model: str) -> list[list[str]]:
    """Those that train and export a model."""
    attnlab = str(Path(sys.executable).parent / "attnlab")
    page = COURSE / "live" / f"{model}.html"
    return [
        [attnlab, "lesson", model, "--train-only"],
        [attnlab, "export", str(MODELS / model), str(page)],
    ]


def main(names: Sequence[str]) -> None:
    (COURSE / "live").mkdir(exist_ok=True)
    for name in names or live_models():
        for command in commands_of(name):
            subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
