"""Pictures of a run's outbox that MLflow shows in one grid, beside those of other runs.

MLflow keeps a picture by its key and step, and draws a slider over the steps. A key's section of
charts is named by all but its last word.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

import mlflow

from attnlab.runs.run_folder import HEAT_MAPS, IMAGES

if TYPE_CHECKING:
    from pathlib import Path

    from mlflow import MlflowClient

_OF_VALIDATION = f"validation/{HEAT_MAPS}"
_STEP = re.compile(r"step_(\d+)")


class ImagePlace(NamedTuple):
    """Where MLflow shows a picture, `validation/attention/sentence_1` at step 200."""

    key: str
    step: int


def image_place(inside: PurePath) -> ImagePlace | None:
    """The place of a file of the outbox; None where it is not shown in a grid.

    inside: its path in the outbox, `attention/step_000200/sentence_1.png` for a validation's, or
        `images/<key>/step_000000/sentence_1.png`.
    """
    step = _STEP.fullmatch(inside.parent.name)
    if inside.suffix != ".png" or step is None:
        return None
    folder = inside.parts[:-2]
    if folder == (HEAT_MAPS,):
        section = _OF_VALIDATION
    elif folder[0] == IMAGES:
        section = "/".join(folder[1:])
    else:
        return None
    # The characters that MLflow takes
    key = re.sub(r"[^a-zA-Z0-9_\-./ ]", "_", f"{section}/{inside.stem}")
    return ImagePlace(key, int(step[1]))


def log_image(client: MlflowClient, run_id: str, path: Path, place: ImagePlace) -> None:
    """Log a picture, unless MLflow has it already: it would draw it twice.

    Its time is that of the file.
    """
    time = path.stat().st_mtime_ns // 1_000_000
    start = f"{IMAGES}/{place.key.replace('/', '~')}+step+{place.step}+timestamp+{time}+"
    for known in client.list_artifacts(run_id, IMAGES):
        # MLflow logs the small copy last.
        if known.path.startswith(start) and known.path.endswith(".webp"):
            return
    image = mlflow.Image(str(path))
    client.log_image(
        run_id, image, key=place.key, step=place.step, timestamp=time, synchronous=True
    )
