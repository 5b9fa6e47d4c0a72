"""The subcommand that trains the models of the course and opens the explorer with them."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attnlab.course.models import CourseModel, known, train


def add_lesson(parsers: Any) -> None:
    parser = parsers.add_parser(
        "lesson",
        help="train the small models of the course, and open a page on which to question them",
        allow_abbrev=False,
        description=(
            "Train the small models of the course, some seconds each, and serve a page on which to "
            "question them. What was trained before is found again."
        ),
    )
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="of a model, such as dot; default: all of them"
    )
    parser.add_argument(
        "--into", metavar="FOLDER", type=Path, default=Path("runs/lessons"),
        help="of the model folders; default: %(default)s",
    )  # fmt: skip
    parser.add_argument("--train-only", action="store_true", help="do not open the page")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.set_defaults(run="lesson.lesson")


def lesson(args: argparse.Namespace) -> None:
    names = known(args.names)
    models = []
    for number, name in enumerate(names, start=1):
        print(f"[{number}/{len(names)}] {name}: ", end="", flush=True)
        model = train(name, args.into)
        print(_outcome(model), flush=True)
        models.append(model)

    first, *others = _by_data(models)
    for group in others:
        print(f"more:     {shlex.join(['attnlab', 'explore', *_arguments(group)])}")
    if args.train_only:
        print(f"explorer: {shlex.join(['attnlab', 'explore', *_arguments(first)])}")
        return
    from attnlab.explorer import server  # costs an import of a web framework

    server.explore(
        [str(model.folder) for model in first],
        browser=not args.no_browser,
        data=first[0].data if first[0].reads_pairs else None,
    )


def _outcome(model: CourseModel) -> str:
    took = "trained before" if model.seconds is None else f"{model.seconds:.0f} s"
    return f"{took}, {model.monitor} {model.quality:.3f}"


def _by_data(models: Iterable[CourseModel]) -> list[list[CourseModel]]:
    """The models in groups, each with the same data: a page offers the sentences of one corpus."""
    groups: dict[Path, list[CourseModel]] = {}
    for model in models:
        groups.setdefault(model.data, []).append(model)
    return list(groups.values())


def _arguments(group: list[CourseModel]) -> list[str]:
    """Those of `attnlab explore`."""
    folders = [str(model.folder) for model in group]
    if not group[0].reads_pairs:
        return folders
    return [*folders, "--data", str(group[0].data)]
