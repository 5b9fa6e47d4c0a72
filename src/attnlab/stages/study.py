"""A study: experiments of train.py that differ in a few choices, each trained once, and what they show together."""

from __future__ import annotations

import platform
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.experiment.experiment import Experiment
from attnlab.files import atomic_file, write_json

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from attnlab.data.prepared import PreparedData


@dataclass(frozen=True)
class Point:
    """One experiment of a study."""

    label: str
    seed: int
    experiment: Experiment


def study_parser(name: str, steps: int) -> ArgumentParser:
    """The command line of a study: where its files go, its seeds, and any setting of train.py; it adds its own.

    steps: of the training, where the command line gives no others.
    """
    doc = str(sys.modules["__main__"].__doc__).strip()
    parser = ArgumentParser(description=doc, formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--into", type=Path, default=Path("runs", name), help="the folder for the files (%(default)s)")
    parser.add_argument("--seeds", type=numbers, default=[1, 2, 3], help="of the initial weights, ... (1,2,3)")
    parser.add_argument("--steps", type=int, default=steps, help="training steps (%(default)s)")
    parser.add_argument("settings", nargs="*", help="settings of train.py, such as model.encoder.hidden_size=32")
    return parser


def numbers(text: str) -> list[int]:
    """Whole numbers with commas between them, each once: `1,2,3`."""
    return list(dict.fromkeys(int(part) for part in text.split(",")))


def compose_points(arguments: Namespace, common: Sequence[str], varied: Mapping[str, Sequence[str]]) -> list[Point]:
    """The experiments, checked before any of them runs.

    Args:
        arguments: of `study_parser`. The settings among them go before what the study varies.
        common: overrides that all of them share.
        varied: {label: overrides}.
    """
    from attnlab.experiment.composition import compose

    common = (*common, f"training.max_steps={arguments.steps}", "search=greedy", "tracking=none")
    return [
        Point(label, seed, compose([*common, *arguments.settings, *overrides, f"seed={seed}", "chain=false"]))
        for label, overrides in varied.items()
        for seed in arguments.seeds
    ]


def trained(points: Sequence[Point]) -> Iterator[tuple[Point, PreparedData, Path]]:
    """Each point with its data and its own folder, where its model is; trained now where it is not there yet."""
    from attnlab.experiment.point import point_of
    from attnlab.stages import chain

    for number, point in enumerate(points, start=1):
        print(f"[{number}/{len(points)}] {point.label}, seed {point.seed}", file=sys.stderr)
        chain.main(point.experiment)
        data = chain.data_to_train_on(point.experiment)
        yield point, data, point_of(point.experiment, data)


def evaluated(points: Sequence[Point]) -> Iterator[tuple[Point, PreparedData, Path]]:
    """Each trained point, and the folder of its evaluation on the test split with the point's own search."""
    from attnlab.stages.evaluate import evaluate, kept_evaluation

    for point, data, folder in trained(points):
        evaluation = kept_evaluation(point.experiment, data, folder)
        if not (evaluation / "metrics.json").is_file():
            evaluate(point.experiment, folder / "model", data.folder, evaluation)
        yield point, data, evaluation


def table_of(rows: Sequence[Mapping[str, Any]], across: str, measured: str) -> tuple[list[int], np.ndarray]:
    """The values of a column, and what was measured there: (seeds, values); NaN where a seed has none."""
    import pandas as pd  # type: ignore[import-untyped]

    table = pd.DataFrame(list(rows)).pivot(index="seed", columns=across, values=measured)
    return table.columns.tolist(), table.to_numpy(float)


def mean_and_range(values: Sequence[float], places: int) -> str:
    """The mean, and in brackets the least and the greatest value where these differ."""
    mean, low, high = (f"{value:.{places}f}" for value in (sum(values) / len(values), min(values), max(values)))
    return mean if low == high else f"{mean} ({low}–{high})"


def write_study(
    name: str,
    arguments: Namespace,
    points: Sequence[Point],
    rows: Sequence[Mapping[str, Any]],
    figure: Figure,
    table: str = "",
) -> None:
    """Write the figure, the rows as CSV, a table in Markdown if there is one, and as JSON what all this depends on.

    Prints the table and the place of the figure.
    """
    import pandas as pd
    import torch

    from attnlab.plots.figure import save_png

    into: Path = arguments.into
    save_png(figure, into / f"{name}.png")
    with atomic_file(into / f"{name}.csv") as temporary:
        pd.DataFrame(list(rows)).to_csv(temporary, index=False)
    content = {
        **{name: value for name, value in vars(arguments).items() if name != "into"},
        "seeds": sorted({point.seed for point in points}),
        "machine": {"processor": platform.processor() or platform.machine(), "threads": torch.get_num_threads()},
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
    }
    write_json(into / f"{name}.json", content)
    if table:
        with atomic_file(into / f"{name}.md") as temporary:
            temporary.write_text(table, encoding="utf-8")
    print(f"{table}{into / f'{name}.png'}")
