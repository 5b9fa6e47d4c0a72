"""A study: experiments that differ in a few choices, each trained once, and what they show together.

No stage of the chain: its experiments are those of train.py, under the same identities, and what is trained already is
not trained again.
"""

from __future__ import annotations

import csv
import json
import platform
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from attnlab.errors import ExperimentError
from attnlab.experiment.experiment import EVALUATE_SECTIONS, EVALUATE_SOURCES, TRAIN_SECTIONS, TRAIN_SOURCES, Experiment
from attnlab.files import atomic_file

if TYPE_CHECKING:
    from attnlab.data.prepared import PreparedData

T = TypeVar("T")


@dataclass(frozen=True)
class Point:
    """One experiment of a study."""

    label: str
    seed: int
    experiment: Experiment


class StudyArguments(ArgumentParser):
    """The command line of a study: where its files go, its seeds, numbers of its own, and any setting of train.py."""

    def __init__(self, doc: str, into: str, seeds: Sequence[int]) -> None:
        super().__init__(description=doc.strip(), formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False)
        given = ",".join(map(str, seeds))
        self.add_argument("--into", type=Path, default=Path(into), help="the folder for the files (%(default)s)")
        self.add_argument("--seeds", type=_numbers, default=list(seeds), help=f"of the initial weights, ... ({given})")
        self.add_argument("settings", nargs="*", help="settings of train.py, such as model.encoder.hidden_size=32")

    def number(self, name: str, default: int, what: str) -> None:
        self.add_argument(name, type=int, default=default, help=f"{what} (%(default)s)")

    def several(self, name: str, allowed: Sequence[str], what: str) -> None:
        """An option that takes some of `allowed`; without it all of them."""

        def read(text: str) -> list[str]:
            chosen = text.split(",")
            if not set(chosen) <= set(allowed):
                raise ArgumentTypeError(f"must be of {', '.join(allowed)}, with commas between them, got {text!r}")
            return _each_once(chosen)

        self.add_argument(name, type=read, default=list(allowed), help=f"{what} ({','.join(allowed)})")

    def read(self) -> Namespace:
        return self.parse_intermixed_args()

    def error(self, message: str) -> NoReturn:
        raise ExperimentError(f"{message}; --help shows what there is")


def compose_points(
    common: Sequence[str], varied: Mapping[str, Sequence[str]], seeds: Sequence[int], settings: Sequence[str]
) -> list[Point]:
    """The experiments, checked before any of them runs; raises ExperimentError with every problem.

    Args:
        common: overrides that all of them share. Of these, `settings` may change the values, but not the groups.
        varied: {label: overrides}.
        settings: more of the common ones, as the command line gave them; they go last.
    """
    from attnlab.experiment.composition import compose

    keys = {override.split("=", 1)[0] for overrides in (["seed="], *varied.values()) for override in overrides}
    theirs = [setting.split("=", 1)[0].lstrip("+~") for setting in settings]
    taken = [f"{key} is what this study varies by itself; leave it out" for key in theirs if key in keys]
    groups = {key for key in (override.split("=", 1)[0] for override in common) if "." not in key}
    taken += [f"{key} is what this study fixes by itself; leave it out" for key in theirs if key in groups]
    if taken:
        raise ExperimentError(taken)
    problems: list[str] = []
    points = []
    for label, overrides in varied.items():
        for seed in seeds:
            try:
                experiment = compose([*common, *overrides, f"seed={seed}", *settings])
            except ExperimentError as error:
                problems += error.problems
                break  # its other seeds would say the same
            points.append(Point(label, seed, experiment))
    if problems:
        raise ExperimentError(list(dict.fromkeys(problems)))
    return points


def trained(points: Sequence[Point]) -> Iterator[tuple[Point, PreparedData, Path]]:
    """Each point with its data and its own folder, where its model is; trained now where it is not there yet."""
    from attnlab.experiment.point import checkpoint_to_go_on_from, clear, only_one_at_a_time
    from attnlab.stages.train import data_to_train_on, train
    from attnlab.tracking.run import UntrackedRun

    for point in points:
        point.experiment.use_hardware()
    opened = [data_to_train_on(point.experiment) for point in points]  # what is wrong with them shows before a training
    for number, (point, data) in enumerate(zip(points, opened, strict=True), start=1):
        experiment = point.experiment
        experiment.use_hardware()
        identity = experiment.identity(TRAIN_SECTIONS, data.digest, TRAIN_SOURCES)
        folder = experiment.paths.runs_folder / "points" / identity
        folder.mkdir(parents=True, exist_ok=True)
        what = f"[{number}/{len(points)}] {point.label}, seed {point.seed}"
        with only_one_at_a_time(folder):
            if (folder / "done.json").is_file() and not experiment.rerun:
                print(f"{what}: already trained ({identity})", file=sys.stderr)
            else:
                print(f"{what}: training", file=sys.stderr)
                last = None if experiment.rerun else checkpoint_to_go_on_from(folder)
                if last is None:
                    clear(folder)
                train(experiment, data, folder, UntrackedRun(), last)
        yield point, data, folder


def evaluated(points: Sequence[Point]) -> Iterator[tuple[Point, PreparedData, Path, Path]]:
    """Each trained point, and the folder of its evaluation on the test split with the point's own search."""
    from attnlab.stages.evaluate import evaluate

    for point, data, folder in trained(points):
        # Not below evaluations/, where the tracked runs of evaluate.py keep their state.
        evaluation = folder / "studies" / point.experiment.identity(EVALUATE_SECTIONS, data.digest, EVALUATE_SOURCES)
        if not (evaluation / "metrics.json").is_file():
            evaluate(point.experiment, folder / "model", data.folder, evaluation)
        yield point, data, folder, evaluation


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows of the same columns as CSV, whole or not at all."""
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_facts(path: Path, points: Sequence[Point], arguments: Namespace) -> None:
    """What the figures stand on: all that the command line decided, and the versions that decide them too."""
    import torch

    content = {
        **{name: value for name, value in vars(arguments).items() if name != "into"},
        "seeds": sorted({point.seed for point in points}),
        "machine": {"processor": processor(), "threads": torch.get_num_threads()},
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
    }
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(content, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def processor() -> str:
    """The processor's name, as far as the system knows it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise ArgumentTypeError(
            f"must be whole numbers with commas between them, such as 1,2,3, got {text!r}"
        ) from None
    return _each_once(numbers)


def _each_once(chosen: list[T]) -> list[T]:
    if len(set(chosen)) < len(chosen):
        given = ",".join(map(str, chosen))
        raise ArgumentTypeError(f"must name each only once, or an experiment would count twice, got {given!r}")
    return chosen
