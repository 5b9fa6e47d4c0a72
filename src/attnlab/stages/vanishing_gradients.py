"""The vanishing-gradient picture: how much of the loss gradient reaches each encoder state, by its distance.

    python pipelines/studies/vanishing_gradients.py

A plain RNN and an LSTM in one direction, with and without attention, at initialisation and after a training on
sequences to copy. Writes vanishing_gradients.png, .csv and .json (what the figures stand on). What is measured, says
attnlab.evaluation.gradient_flow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.stages.study import Point, StudyArguments, compose_points, trained, write_facts, write_table

if TYPE_CHECKING:
    from attnlab.evaluation.gradient_flow import GradientFlow
    from attnlab.model.seq2seq import Seq2Seq
    from attnlab.plots.systems import SeededCurve

NAME = "vanishing_gradients"
COMMON = (
    "data=copy",
    "data.num_pairs=4000",
    "data.num_symbols=10",
    "data.validation_fraction=0.05",
    "data.test_fraction=0.05",
    "search=greedy",
    "tracking=none",
)
ENCODERS = {"RNN": "rnn", "LSTM": "lstm"}
ATTENTIONS = {"without attention": "none", "with attention": "bahdanau"}
FIXED = ("model.encoder.bidirectional=false",)
VARIED = {
    f"{encoder}, {attention}": (f"model/encoder={cell}", f"model/attention={score}", *FIXED)
    for encoder, cell in ENCODERS.items()
    for attention, score in ATTENTIONS.items()
}


def measure(points: Sequence[Point], steps: int) -> Iterator[dict[str, Any]]:
    """A row for each experiment, state of its training and distance."""
    import pytorch_lightning as pl

    from attnlab.data.datamodule import SeqDataModule
    from attnlab.evaluation.gradient_flow import gradient_flow
    from attnlab.model.model_folder import load_model

    for point, data, folder in trained(points):
        experiment = point.experiment
        batches = SeqDataModule(data, experiment.training.batching, experiment.padding).test_dataloader()
        end = load_model(folder / "model")
        # The weights that train.py began with.
        pl.seed_everything(point.seed, workers=True, verbose=False)
        start: Seq2Seq = experiment.model(**experiment.task.sizes(data), padding=experiment.padding)
        for when, model in (("at initialisation", start.eval()), (f"after {steps} steps", end)):
            yield from _rows(point, when, gradient_flow(model, batches))


def _rows(point: Point, when: str, flow: GradientFlow) -> Iterator[dict[str, Any]]:
    for distance, sentences in enumerate(flow.sentences.tolist()):
        yield {
            "model": point.label,
            "when": when,
            "seed": point.seed,
            "distance": distance,
            "sentences": sentences,
            "state_gradient": float(flow.state[distance]),
            "hidden_gradient": float(flow.hidden[distance]),
            "cell_gradient": None if flow.cell is None else float(flow.cell[distance]),
        }


def panels(rows: Sequence[dict[str, Any]]) -> dict[str, list[SeededCurve]]:
    """{when: a curve for each model}, over the seeds."""
    from attnlab.plots.systems import SeededCurve

    found: dict[str, list[SeededCurve]] = {}
    for when in dict.fromkeys(row["when"] for row in rows):
        for label in VARIED:
            chosen = [row for row in rows if (row["when"], row["model"]) == (when, label)]
            by_seed: dict[int, list[float]] = {}
            for row in chosen:
                by_seed.setdefault(row["seed"], []).append(row["state_gradient"])
            distances = range(len(by_seed[chosen[0]["seed"]]))
            encoder, attention = label.split(", ")
            found.setdefault(when, []).append(
                SeededCurve(
                    label,
                    distances,
                    list(by_seed.values()),
                    colour=list(ENCODERS).index(encoder),
                    dashed=ATTENTIONS[attention] == "none",
                )
            )
    return found


def main() -> None:
    parser = StudyArguments(__doc__, into=f"runs/{NAME}", seeds=(1, 2, 3))
    parser.number("--steps", 400, "training steps")
    parser.number("--length", 30, "symbols of a test sequence, and of a training sequence at most")
    arguments = parser.read()
    length, steps = arguments.length, arguments.steps
    common = (
        *COMMON,
        *(f"data.{name}={length}" for name in ("max_length", "test_min_length", "test_max_length")),
        f"training.max_steps={steps}",
        f"training.validate_every={steps}",  # one validation, in the end: the model is that of the last step
    )
    points = compose_points(common, VARIED, arguments.seeds, arguments.settings)
    rows = list(measure(points, steps))

    from attnlab.plots.figure import save_png
    from attnlab.plots.systems import gradient_flow_figure

    into: Path = arguments.into
    save_png(gradient_flow_figure(panels(rows)), into / f"{NAME}.png")
    write_table(into / f"{NAME}.csv", rows)
    write_facts(into / f"{NAME}.json", points, arguments)
    print(into / f"{NAME}.png")
