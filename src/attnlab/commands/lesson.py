"""The subcommand that trains the models of the course and opens the explorer with them."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from attnlab.course.models import CourseModel, known, train

INTO = Path("runs/lessons")


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
        "--into", metavar="FOLDER", type=Path, default=INTO,
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

    command = _command(args)
    if args.train_only:
        print(f"explorer: {command}")
        return
    from attnlab.explorer import server  # costs an import of a web framework

    folders = {str(model.folder): model for model in models}
    corpora = {folder: model.data for folder, model in folders.items()}
    server.explore(list(folders), browser=not args.no_browser, data=corpora, command=command)


def _command(args: argparse.Namespace) -> str:
    """The command that finds these models trained, and opens the page."""
    words = ["attnlab", "lesson", *args.names]
    if args.into != INTO:
        words += ["--into", str(args.into)]
    return shlex.join(words)


def _outcome(model: CourseModel) -> str:
    took = "trained before" if model.seconds is None else f"{model.seconds:.0f} s"
    return f"{took}, {model.monitor} {model.quality:.3f}"
