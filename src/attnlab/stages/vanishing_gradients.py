"""The study of how much gradient reaches each encoder state: see pipelines/studies/vanishing_gradients.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from attnlab.stages.study import Point, compose_points, study_parser, table_of, trained, write_study

if TYPE_CHECKING:
    from attnlab.model.seq2seq import Seq2Seq
    from attnlab.plots.systems import SeededCurve

NAME = "vanishing_gradients"
COMMON = (
    "data=copy",
    "data.num_pairs=4000",
    "data.num_symbols=10",
    "data.validation_fraction=0.05",
    "data.test_fraction=0.05",
)
ENCODERS = {"RNN": "rnn", "LSTM": "lstm"}
ATTENTIONS = {"without attention": "none", "with attention": "bahdanau"}
VARIED = {
    f"{encoder}, {attention}": (
        f"model/encoder={cell}",
        f"model/attention={score}",
        "model.encoder.bidirectional=false",
    )
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
            flow = gradient_flow(model, batches)
            for distance, sentences in enumerate(flow.sentences.tolist()):
                yield {
                    "model": point.label,
                    "when": when,
                    "seed": point.seed,
                    "distance": distance,
                    "sentences": sentences,
                    "state_gradient": float(flow.state[distance]),
                }


def panels(rows: Sequence[dict[str, Any]]) -> dict[str, list[SeededCurve]]:
    """{when: a curve for each model}, over the seeds."""
    from attnlab.plots.systems import SeededCurve

    found: dict[str, list[SeededCurve]] = {}
    for when in dict.fromkeys(row["when"] for row in rows):
        for label in VARIED:
            chosen = [row for row in rows if (row["when"], row["model"]) == (when, label)]
            distances, values = table_of(chosen, "distance", "state_gradient")
            encoder, attention = label.split(", ")
            colour, dashed = list(ENCODERS).index(encoder), ATTENTIONS[attention] == "none"
            found.setdefault(when, []).append(SeededCurve(label, distances, values, colour=colour, dashed=dashed))
    return found


def main() -> None:
    parser = study_parser(NAME, steps=400)
    parser.add_argument("--length", type=int, default=30, help="symbols of a sequence at most (%(default)s)")
    arguments = parser.parse_intermixed_args()
    length, steps = arguments.length, arguments.steps
    common = (
        *COMMON,
        *(f"data.{name}={length}" for name in ("max_length", "test_min_length", "test_max_length")),
        f"training.validate_every={steps}",  # one validation, in the end: the model is that of the last step
    )
    points = compose_points(arguments, common, VARIED)
    rows = list(measure(points, steps))

    from attnlab.plots.systems import gradient_flow_figure

    write_study(NAME, arguments, points, rows, gradient_flow_figure(panels(rows)))
