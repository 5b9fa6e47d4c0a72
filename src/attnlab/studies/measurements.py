"""Measurements of each trained model of a study.

They are rows {"system", "seed", "at", measure: value, ...}.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from attnlab.evaluation.evaluation_files import read_history
from attnlab.experiment.evaluation import cached_evaluation, write_evaluation
from attnlab.experiment.preparation import prepare
from attnlab.experiment.run import open_run, point_of, set_up
from attnlab.tasks.task import Experiment

Row = dict[str, Any]


@dataclass(frozen=True)
class Point:
    """One experiment of a study."""

    system: str
    seed: int
    experiment: Experiment

    @cached_property
    def data(self) -> Any:
        return prepare(self.experiment)

    @property
    def folder(self) -> Path:
        return point_of(self.experiment, self.data)

    @property
    def cpu_minutes(self) -> float:
        """Of the training."""
        done = json.loads((self.folder / "done.json").read_text(encoding="utf-8"))
        return done["training_cpu_seconds"] / 60

    def evaluated(self) -> Path:
        """The folder of its evaluation on the test split, made now where it is not there."""
        folder = cached_evaluation(self.experiment, self.data, self.folder)
        if not (folder / "metrics.json").is_file():
            write_evaluation(self.experiment, self.folder / "model", self.data.folder, folder)
        return folder

    def row(self, at: float | None = None, part: str = "", **measured: Any) -> Row:
        """part: of the system, where one model gives several rows."""
        return {
            "system": self.system + (f": {part}" if part else ""),
            "seed": self.seed,
            "at": at,
            **measured,
        }


def trained(points: Sequence[Point]) -> Iterator[Point]:
    """Each point, its model trained now where it is not there."""
    for number, point in enumerate(points, start=1):
        print(f"[{number}/{len(points)}] {point.system}, seed {point.seed}", file=sys.stderr)
        train(point)
        yield point


def train(point: Point) -> None:
    """Train a point, unless that was done before, as `pipelines/train.py` does."""
    experiment = point.experiment
    set_up(experiment)
    with open_run(experiment, point.data) as run:
        if not run.is_finished:
            from attnlab.experiment.training import make_batches, make_module, make_trainer

            module = make_module(experiment, point.data)
            batches = make_batches(experiment, point.data)
            trainer = make_trainer(
                experiment, point.data, batches, run.folder, after_checkpoint=run.upload
            )
            trainer.fit(module, batches, ckpt_path=run.last_checkpoint)
            run.keep(trainer)
        run.publish()


def evaluation(point: Point) -> Iterator[Row]:
    """The metrics of the test split and the CPU minutes of the training.

    Where the alignments are known, also the share of target tokens whose strongest source token is
    the right one, the one before and the one after it.
    """
    folder = point.evaluated()
    measured = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    offsets = folder / "alignment_offsets.json"
    if offsets.is_file():
        counts = {
            row["offset"]: row["tokens"] for row in json.loads(offsets.read_text(encoding="utf-8"))
        }
        total = sum(counts.values())  # 0 without attention
        measured |= {
            f"offset {place:+d}": counts.get(place, 0) / total for place in (-1, 0, 1) if total
        }
    yield point.row(**measured, cpu_minutes=point.cpu_minutes)


def by_length(point: Point) -> Iterator[Row]:
    """Quality of ranges of source lengths; a range stands at its upper end."""
    for found in json.loads((point.evaluated() / "by_length.json").read_text(encoding="utf-8")):
        yield point.row(found.pop("to"), **found)


def history(point: Point) -> Iterator[Row]:
    """The validations, by training step."""
    found: dict[int, Row] = {}
    for name, points in read_history(point.folder / "training" / "history.csv").items():
        for step, value in points if name.startswith("validation/") else ():
            found.setdefault(step, {})[name.rpartition("/")[2]] = value
    for place, measured in found.items():
        yield point.row(place, **measured)


def gradients(point: Point) -> Iterator[Row]:
    """log10 of the norm of the loss gradient at the encoder's states.

    The norms are given by the distance of the states from the end of the source, before and after
    the training.
    """
    import pytorch_lightning as pl

    from attnlab.data.datamodule import SeqDataModule
    from attnlab.evaluation.gradient_flow import gradient_flow
    from attnlab.model.model_folder import load_model

    experiment, data = point.experiment, point.data
    batches = SeqDataModule(
        data, experiment.training.batching, experiment.padding
    ).test_dataloader()
    # The weights that the training began with
    pl.seed_everything(point.seed, workers=True, verbose=False)
    first = experiment.model(**experiment.task.sizes(data), padding=experiment.padding).eval()
    flows = [gradient_flow(each, batches) for each in (first, load_model(point.folder / "model"))]
    # float32 has nothing smaller
    before, after = (np.log10(flow.clip(min=1e-38)).tolist() for flow in flows)
    for distance, (start, end) in enumerate(zip(before, after, strict=True)):
        yield point.row(distance, **{"log10 gradient before": start, "log10 gradient after": end})


# Hidden attention sees nothing, so that the context is zero.
CHANGES: dict[str, Row] = {
    "as trained": {},
    "uniform": {"kind": "uniform"},
    "permuted": {"kind": "permuted"},
    "hidden": {"hide": "all"},
}


def interventions(point: Point) -> Iterator[Row]:
    """The quality of the test split with the attention as trained, and changed at every step."""
    from attnlab.model.attention.intervention import Intervention
    from attnlab.tasks.translation.metrics import TextMetrics
    from attnlab.tasks.translation.translator import Translator

    translator, split = Translator.load(point.folder / "model"), point.data.split("test")
    sources = [split.source_text(row) for row in range(len(split))]
    references = [split.target_text(row) for row in range(len(split))]
    for name, values in CHANGES.items():
        metrics = TextMetrics(point.data.info.bleu_tokenize, ter=False)
        answers = translator.stream(sources, intervene=Intervention(**values), with_attention=False)
        metrics.update([answer.text for answer in answers], references)
        yield point.row(part=name, **metrics.compute())


def explanations(point: Point) -> Iterator[Row]:
    """How the most relevant source token of each target token agrees with the known alignments.

    It is measured for each method of explanation, on 200 sentences of the test split.
    """
    from attnlab.evaluation.explanations import METHODS, grades
    from attnlab.model.model_folder import load_model

    for method, found in grades(
        load_model(point.folder / "model"), point.data, METHODS, sentences=200
    ).items():
        yield point.row(part=method.replace("_", " "), **found.metrics())


def attention_as_explanation(point: Point) -> Iterator[Row]:
    """The measures of Jain and Wallace 2019 on 500 sentences of the test split.

    These are means over the sentences of each predicted class, and the share of sentences with an
    adversarial attention whose divergence is above 0.4 nats.
    """
    from attnlab.evaluation.explanations import is_attention_explanation
    from attnlab.model.model_folder import load_classifier

    classifier, split = load_classifier(point.folder / "model"), point.data.split("test")
    batches = (
        range(start, min(start + 50, len(split), 500))
        for start in range(0, min(len(split), 500), 50)
    )
    found = pd.concat(
        pd.DataFrame(
            is_attention_explanation(
                classifier, split.batch(np.array(rows), point.experiment.padding)
            )
        )
        for rows in batches
    )
    found["adversarial share"] = found.pop("adversarial_jsd") > 0.4
    for number, of_class in found.groupby("prediction"):
        yield point.row(
            part=point.data.labels[number], **of_class.drop(columns="prediction").mean().to_dict()
        )


MEASUREMENTS: dict[str, Callable[[Point], Iterator[Row]]] = {
    "evaluation": evaluation,
    "length": by_length,
    "history": history,
    "gradients": gradients,
    "interventions": interventions,
    "explanations": explanations,
    "attention_as_explanation": attention_as_explanation,
}
# What the place of a row is, where it has one.
AXES = {
    "length": "source tokens, at most",
    "history": "training steps",
    "gradients": "tokens from the end of the source",
}
