"""What the commands that ask a model have in common: arguments, and what these stand for."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.errors import ExperimentError

if TYPE_CHECKING:
    from attnlab.model.attention.intervention import Intervention


def model_parser(parsers: Any, name: str, summary: str, description: str) -> argparse.ArgumentParser:
    """The parser of a command that asks a model, with the arguments that all of them have."""
    parser: argparse.ArgumentParser = parsers.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}. {description}", allow_abbrev=False
    )
    parser.add_argument("model", metavar="MODEL", help="a model folder, or MLflow's runs:/... or models:/...")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line, with tokens and attention")
    parser.add_argument(
        "--heat-map", metavar="FILE", type=_picture,
        help="also draw the attention: .html for one page, .png for a picture (heat maps of several texts: FILE_1.png, "
        "FILE_2.png, ...); few texts, since they are drawn at the end",
    )  # fmt: skip
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...; default: %(default)s")
    parser.add_argument("--threads", metavar="N", type=_positive, default=1, help="of the processor; default: 1")
    parser.add_argument(
        "--batch-size", metavar="N", type=_positive,
        help="texts that are computed together; default: 64, and 1 at a terminal, where each line is answered at once",
    )  # fmt: skip
    foreign = "module outside of attnlab that the model may use"
    parser.add_argument("--allow", metavar="MODULE", action="append", default=[], help=foreign)
    change = parser.add_argument_group("change the attention (positions count source tokens from 0)")
    change.add_argument(
        "--intervene", choices=("uniform", "permuted"), help="equal weights, or weights that swap places"
    )
    change.add_argument("--hide", metavar="0,4,...", type=_positions, default=(), help="positions that get no weight")
    change.add_argument("--attention-temperature", metavar="X", type=float, default=1.0, help="divides the scores")
    change.add_argument("--seed", metavar="N", type=int, default=0, help="of --intervene permuted; default: 0")
    return parser


def loaded_model(args: argparse.Namespace, does: str, other: str) -> Any:
    """The translator or the classifier on its device.

    does: `translates` or `classifies`.

    Raises ExperimentError for a model that does not, and names the `other` command.
    """
    import torch

    from attnlab.api import load
    from attnlab.inference.classifier import SentenceClassifier

    torch.set_num_threads(args.threads)
    try:
        torch.empty(0, device=args.device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise ExperimentError(f"--device {args.device} cannot be used here: {reason}") from None
    model = load(args.model, args.device, args.allow)
    if isinstance(model, SentenceClassifier) != (does == "classifies"):
        raise ExperimentError(f"{args.model} holds no model that {does}; use attnlab {other}")
    return model


def intervention(args: argparse.Namespace) -> Intervention | None:
    """What the arguments change; raises ExperimentError where they are out of range."""
    from attnlab.model.attention.intervention import Intervention

    try:
        change = Intervention(
            kind=args.intervene,
            temperature=args.attention_temperature,
            hide=tuple(args.hide),
            force=dict(getattr(args, "force", ())),
            seed=args.seed,
        )
    except ValueError as error:
        raise ExperimentError(f"intervene: {error}") from None
    return change if change.changes_weights or change.force else None


def typed(args: argparse.Namespace) -> bool:
    """Whether somebody types the texts at the terminal, and waits for each answer."""
    from_stdin = not args.text and getattr(args, "source", None) is None
    return from_stdin and sys.stdin is not None and sys.stdin.isatty()


def batch_size(args: argparse.Namespace) -> int:
    """How many texts to compute together."""
    return args.batch_size or (1 if typed(args) else 64)


def setting(text: str) -> tuple[str, Any]:
    """`name=value`, the value as JSON where it can be read as such."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def forced_token(text: str) -> tuple[int, str]:
    """`step=token`."""
    step, equals, token = text.partition("=")
    if not step.isdecimal() or not equals:
        raise argparse.ArgumentTypeError(f"must be STEP=TOKEN, got {text!r}")
    return int(step), token


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text!r}")
    return int(text)


def _positions(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers with commas between them, got {text!r}") from None


def _picture(text: str) -> Path:
    if Path(text).suffix not in (".png", ".html"):
        raise argparse.ArgumentTypeError(f"must end in .png or .html, got {text!r}")
    return Path(text)
