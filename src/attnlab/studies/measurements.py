"""Measurements of each trained model of a study.

They are rows {"system", "seed", "at", measure: value, ...}.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from attnlab.evaluation.evaluation_files import read_history
from attnlab.evaluation.grades import Grades
from attnlab.experiment.evaluation import cached_evaluation, write_evaluation
from attnlab.experiment.point import point_of
from attnlab.experiment.preparation import prepare
from attnlab.experiment.run import open_run, set_up
from attnlab.runs.run_folder import DONE
from attnlab.tasks.task import Experiment
from attnlab.training.spool import SPOOL_NAME, MetricSpool

Row = dict[str, Any]

UNCHANGED = {"as trained": Row()}
# Hidden attention sees nothing, so that the context is zero.
CHANGES: dict[str, Row] = UNCHANGED | {
    "uniform": {"kind": "uniform"},
    "permuted": {"kind": "permuted"},
    "hidden": {"hide": "all"},
}
GRADED_SENTENCES = 200  # of the test split, whose explanations are compared with alignments


@dataclass(frozen=True)
class Point:
    """One experiment of a study.

    overrides: of `train.py`, that compose it.
    """

    system: str
    seed: int
    experiment: Experiment
    overrides: Sequence[str] = ()

    @cached_property
    def data(self) -> Any:
        return prepare(self.experiment)

    @property
    def folder(self) -> Path:
        return point_of(self.experiment, self.data)

    @property
    def is_trained(self) -> bool:
        return (self.folder / DONE).is_file()

    @property
    def cpu_minutes(self) -> float:
        """Of the training."""
        return _read(self.folder / DONE)["training_cpu_seconds"] / 60

    @property
    def began(self) -> datetime:
        """When the training logged its first numbers."""
        records, _ = MetricSpool(self.folder / SPOOL_NAME).read()
        return datetime.fromtimestamp(records[0].time / 1000, tz=UTC)

    def evaluated(self) -> Path:
        """The folder of its evaluation on the test split, made now where it is not there."""
        folder = cached_evaluation(self.experiment, self.data, self.folder)
        if not (folder / "metrics.json").is_file():
            write_evaluation(self.experiment, self.folder / "model", self.data.folder, folder)
        return folder

    @cached_property
    def changed_answers(self) -> dict[str, list[str]]:
        """What is written of the test split under each of `CHANGES`; without attention as it is."""
        from attnlab.model.attention.intervention import Intervention
        from attnlab.tasks.translation.translator import Translator

        translator = Translator.load(self.folder / "model")
        split = self.data.split("test")
        sources = [split.source_text(row) for row in range(len(split))]
        written = {}
        attends = translator.model.decoder.attention is not None
        changes = CHANGES if attends else UNCHANGED
        for name, values in changes.items():
            change = Intervention(**values)
            answers = translator.stream(sources, intervene=change, with_attention=False)
            written[name] = [answer.text for answer in answers]
        return written

    @cached_property
    def grades(self) -> dict[str, Grades]:
        """How each method of explanation agrees with the known alignments of test sentences."""
        from attnlab.evaluation.explanations import METHODS, grades
        from attnlab.model.model_folder import load_model

        model = load_model(self.folder / "model")
        of_methods = grades(model, self.data, METHODS, sentences=GRADED_SENTENCES)
        return {method.replace("_", " "): found for method, found in of_methods.items()}

    def part(self, name: str) -> str:
        """What is called the system in rows of a part of it: `dot: uniform`."""
        return f"{self.system}: {name}"

    def row(self, at: float | None = None, part: str = "", **measured: Any) -> Row:
        """part: of the system, where one model gives several rows."""
        system = self.part(part) if part else self.system
        return {"system": system, "seed": self.seed, "at": at, **measured}


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def train_each(points: Sequence[Point]) -> Iterator[Point]:
    """Train what is missing, point by point; each is handed out once its model is there."""
    for number, point in enumerate(points, start=1):
        print(f"[{number}/{len(points)}] {point.system}, seed {point.seed}", file=sys.stderr)
        train(point)
        yield point


def train(point: Point) -> None:
    """Train a point, unless that was done before."""
    set_up(point.experiment)
    with open_run(point.experiment, point.data) as run:
        run.train()
        run.publish()


def evaluation(point: Point) -> Iterator[Row]:
    """The metrics of the test split and the CPU minutes of the training.

    Where the alignments are known, also the share of target tokens whose strongest source token is
    the right one, the one before and the one after it.
    """
    folder = point.evaluated()
    measured = _read(folder / "metrics.json")
    offsets = folder / "alignment_offsets.json"
    if offsets.is_file():
        measured |= _shares_of_offsets(_read(offsets))
    yield point.row(**measured, cpu_minutes=point.cpu_minutes)


def _shares_of_offsets(rows: Sequence[Row]) -> dict[str, float]:
    """{`offset -1`: its share} of the three offsets around the right token, and `within 1`."""
    counts = {row["offset"]: row["tokens"] for row in rows}
    total = sum(counts.values())
    if total == 0:  # without attention
        return {}
    shares = {f"offset {place:+d}": counts.get(place, 0) / total for place in (-1, 0, 1)}
    return shares | {"within 1": sum(shares.values())}


def by_length(point: Point) -> Iterator[Row]:
    """Quality of ranges of source lengths; a range stands at its upper end."""
    for found in _read(point.evaluated() / "by_length.json"):
        upper_end = found.pop("to")
        yield point.row(upper_end, **found)


def history(point: Point) -> Iterator[Row]:
    """The validations, by training step."""
    logged = read_history(point.folder / "training" / "history.csv")
    by_step: dict[int, Row] = {}
    for name, points in logged.items():
        if not name.startswith("validation/"):
            continue
        measure = name.rpartition("/")[2]
        for step, value in points:
            by_step.setdefault(step, {})[measure] = value
    for step, measured in by_step.items():
        yield point.row(step, **measured)


def gradients(point: Point) -> Iterator[Row]:
    """log10 of the norm of the loss gradient at the encoder's states.

    The norms are given by the distance of the states from the end of the source, before and after
    the training.
    """
    from attnlab.data.datamodule import SeqDataModule
    from attnlab.evaluation.gradient_flow import gradient_flow
    from attnlab.experiment.training import make_model
    from attnlab.model.model_folder import load_model

    experiment, data = point.experiment, point.data
    module = SeqDataModule(data, experiment.training.batching, experiment.padding)
    batches = module.test_dataloader()
    untrained = make_model(experiment, data).eval()
    learned = load_model(point.folder / "model")
    flow_before = gradient_flow(untrained, batches)
    flow_after = gradient_flow(learned, batches)

    smallest = 1e-38  # of float32
    before = np.log10(flow_before.clip(min=smallest)).tolist()
    after = np.log10(flow_after.clip(min=smallest)).tolist()
    for distance, (start, end) in enumerate(zip(before, after, strict=True)):
        yield point.row(distance, **{"log10 gradient before": start, "log10 gradient after": end})


def interventions(point: Point) -> Iterator[Row]:
    """The quality of the test split with the attention as trained, and changed at every step."""
    from attnlab.tasks.translation.metrics import TextMetrics

    split = point.data.split("test")
    references = [split.target_text(row) for row in range(len(split))]
    for name, hypotheses in point.changed_answers.items():
        metrics = TextMetrics(point.data.info.bleu_tokenize, ter=False)
        metrics.update(hypotheses, references)
        yield point.row(part=name, **metrics.compute())


def explanations(point: Point) -> Iterator[Row]:
    """How the most relevant source token of each target token agrees with the known alignments.

    It is measured for each method of explanation, on 200 sentences of the test split, over all
    tokens and over those that depend on the source.
    """
    for method, found in point.grades.items():
        yield point.row(part=method, **found.metrics())


def attention_as_explanation(point: Point) -> Iterator[Row]:
    """The measures of Jain and Wallace 2019 on 500 sentences of the test split.

    These are means over the sentences of each predicted class, and the share of sentences with an
    adversarial attention whose divergence is above 0.4 nats.
    """
    from attnlab.evaluation.explanations import is_attention_explanation
    from attnlab.model.model_folder import load_classifier

    classifier = load_classifier(point.folder / "model")
    split = point.data.split("test")
    sentences = min(len(split), 500)
    tables = []
    for start in range(0, sentences, 50):
        rows = np.arange(start, min(start + 50, sentences))
        batch = split.batch(rows, point.experiment.padding)
        tables.append(pd.DataFrame(is_attention_explanation(classifier, batch)))

    found = pd.concat(tables)
    found["adversarial share"] = found.pop("adversarial_jsd") > 0.4
    for number, of_class in found.groupby("prediction"):
        means = of_class.drop(columns="prediction").mean()
        yield point.row(part=point.data.labels[number], **means.to_dict())


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
