"""The models that the course looks at, and their training one after the other."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.errors import ExperimentError

# {name: overrides}, in the order in which the lessons come to them.
MODELS: dict[str, tuple[str, ...]] = {
    "context_once": ("experiment=lesson/context_once",),
    "context_every_step": ("experiment=lesson/context_every_step",),
    "one_vector": ("experiment=lesson/one_vector",),
    "dot": ("experiment=lesson/dot",),
    "dot_ko": ("experiment=lesson/dot", "data=lesson_handful_ko_en"),
    "scaled_dot": ("experiment=lesson/scaled_dot",),
    "general": ("experiment=lesson/general",),
    "concat": ("experiment=lesson/concat",),
    "location": ("experiment=lesson/location",),
    "bahdanau": ("experiment=lesson/bahdanau",),
    "bahdanau_ko": ("experiment=lesson/bahdanau", "data=lesson_handful_ko_en"),
    "luong": ("experiment=lesson/luong",),
    "projection": ("experiment=lesson/projection",),
    "pads_and_masks": ("experiment=lesson/pads_and_masks",),
    "input_feeding_hidden": ("experiment=lesson/input_feeding_hidden",),
    "input_feeding_softmax": ("experiment=lesson/input_feeding_softmax",),
    "teacher_forcing": ("experiment=lesson/teacher_forcing",),
    "unidirectional": ("experiment=lesson/unidirectional",),
    "bidirectional": ("experiment=lesson/bidirectional",),
    "classifier": ("experiment=lesson/classifier",),
    "classifier_ko": ("experiment=lesson/classifier", "data.language=ko"),
}
# The explorer shows how the attention of these sentences formed.
UNTRACKED = ("tracking=none", "tracking.heat_map_sentences=4")


@dataclass(frozen=True)
class CourseModel:
    """A trained model of the course.

    folder: the model folder.
    data: the folder of the prepared data.
    quality: of its best validation, by `monitor`.
    seconds: that it took to train; None where it was trained before.
    """

    name: str
    folder: Path
    data: Path
    quality: float
    monitor: str
    seconds: float | None


def known(names: Sequence[str]) -> list[str]:
    """The names, or all models where there are none.

    Raises ExperimentError for a name that is no model of the course.
    """
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        raise ExperimentError(
            f"the course has no model {', '.join(unknown)}; it has {', '.join(MODELS)}"
        )
    return list(names) or list(MODELS)


def train(name: str, into: Path, overrides: Sequence[str] = ()) -> CourseModel:
    """Train a model of the course, or find it where it was trained before.

    Its folder is `into/<name>`; all else of its run lies where every run does. What a training
    prints is not shown, unless it fails.

    overrides: more of them, for this training.
    """
    # Imports Lightning, which takes seconds
    from attnlab.experiment.composition import compose
    from attnlab.experiment.override_text import quoted
    from attnlab.experiment.point import read_done
    from attnlab.experiment.preparation import prepare
    from attnlab.experiment.run import open_run, set_up

    folder = into / name
    start = time.monotonic()
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            experiment = compose(
                [*MODELS[name], *UNTRACKED, f"paths.model={quoted(str(folder))}", *overrides]
            )
            set_up(experiment)
            data: Any = prepare(experiment)
            with open_run(experiment, data) as run:
                is_new = not run.is_finished
                run.train()
                run.publish()
            found = read_done(run.folder)
    except BaseException:
        print(printed.getvalue(), end="")
        raise
    return CourseModel(
        name=name,
        folder=folder,
        data=data.folder,
        quality=found["quality"],
        monitor=str(found["monitor"]).rpartition("/")[2].replace("_", " "),
        seconds=time.monotonic() - start if is_new else None,
    )
