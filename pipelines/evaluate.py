"""Evaluate: a trained model on the test split -> metrics, hypotheses, quality by length, attention.

python pipelines/evaluate.py paths.model=build/model paths.data=build/data search.size=10
"""

from __future__ import annotations

from pathlib import Path

from omegaconf import DictConfig

from experiment import Experiment, check, here, output_folder
from launch import launch


def evaluate(
    experiment: Experiment, model_folder: Path, data_folder: Path, into: Path
) -> dict[str, float | int | None]:
    """Write the evaluation folder, whole or not at all, and return its metrics."""
    import functools

    import torch

    from attnlab.data.prepared import PreparedData
    from attnlab.evaluation.evaluate import evaluate as evaluate_model
    from attnlab.evaluation.write import write_evaluation
    from attnlab.model.model_folder import load_model
    from progress import progress_bars

    device = experiment.hardware.device
    model = load_model(model_folder, device)
    data = PreparedData(data_folder)
    check_vocabulary(model_folder, data_folder)
    half = (
        functools.partial(torch.autocast, device, torch.bfloat16) if experiment.hardware.precision == "bf16" else None
    )
    with progress_bars() as tell:
        found = evaluate_model(model, experiment.search, data, model.padding, autocast=half, progress=tell)
    write_evaluation(into, found.metrics, found.signatures, found.sentences, found.by_length, found.maps)
    return found.metrics


def check_vocabulary(model_folder: Path, data_folder: Path) -> None:
    """Raise ExperimentError where the data were not encoded with the model's own tokenizers."""
    from attnlab.composition.error import ExperimentError

    for name in ("source_tokenizer.json", "target_tokenizer.json"):
        ours, theirs = model_folder / name, data_folder / name
        if not ours.is_file() or not theirs.is_file() or ours.read_bytes() != theirs.read_bytes():
            raise ExperimentError(
                f"paths.data: {data_folder} was not prepared with the {name} of the model in {model_folder}; "
                "give the data that the model was trained on"
            )


def evaluate_and_track(
    experiment: Experiment, model_folder: Path, data_folder: Path, into: Path
) -> dict[str, float | int | None]:
    """Evaluate, log what was found to the run that trained the model (or to one of its own, where the search is
    another), and print it."""
    from attnlab.composition.identity import config_digest
    from attnlab.data.prepared import PreparedData
    from attnlab.model.model_folder import read_config, read_facts
    from attnlab.tracking.settings import RunRecord

    facts = read_facts(model_folder)
    metrics = evaluate(experiment, model_folder, data_folder, into)
    point = experiment.paths.runs_folder / "points" / facts.identity
    search = experiment.config["search"]
    if read_config(model_folder).get("search") != search:
        # Another search is another run: a run's params say what its metrics were measured with.
        point = point / "evaluations" / config_digest(search)[:16]
    point.mkdir(parents=True, exist_ok=True)
    record = RunRecord(
        config=experiment.config,
        identity=facts.identity,
        data_digest=PreparedData(data_folder).digest,
        data_source=str(data_folder),
    )
    with experiment.tracking.start(experiment.paths.runs_folder, point, record) as run:
        measured = {f"test/{name}": value for name, value in metrics.items() if value is not None}
        run.log_metrics(measured, facts.step)
        run.log_artifact(into)
    print_metrics(metrics)
    return metrics


def print_metrics(metrics: dict[str, float | int | None]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("metric", "test split", title="Results")
    for name, value in sorted(metrics.items()):
        table.add_row(name, "–" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value))
    Console().print(table)


def main(config: DictConfig) -> None:
    from attnlab.composition.error import ExperimentError

    experiment = check(config)
    experiment.use_hardware()
    paths = experiment.paths
    if paths.model is None or paths.data is None:
        raise ExperimentError("paths.model and paths.data must name a model folder and the prepared data; give both")
    into = output_folder() / "evaluation" if paths.evaluation is None else here(paths.evaluation)
    evaluate_and_track(experiment, here(paths.model), here(paths.data), into)


if __name__ == "__main__":
    launch(main)
