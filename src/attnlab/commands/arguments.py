"""The arguments of the subcommands that ask a trained model."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any


def add_translate(parsers: Any) -> None:
    parser = _model_parser(
        parsers, "translate", "translate each TEXT, or each line of stdin",
        "Prints one line for each text, in their order. A blank text gives an empty line; line "
        "breaks in a translation become spaces.",
    )  # fmt: skip
    parser.add_argument("text", metavar="TEXT", nargs="*")
    search = parser.add_argument_group("search (without these, the model's own)")
    search.add_argument(
        "--beam", metavar="N", type=int, help="beam search that follows N hypotheses"
    )
    search.add_argument(
        "--n-best", metavar="N", type=int,
        help="up to N lines for each text, the best first: the text's number from 1 on, a tab, the "
        "score, a tab, the translation",
    )  # fmt: skip
    search.add_argument(
        "--set", metavar="NAME=VALUE", dest="settings", type=_setting, action="append", default=[],
        help="another setting of conf/search: search=greedy, length_penalty=0.6, max_length=50, or "
        "temperature=0.7, which draws",
    )  # fmt: skip
    parser.set_defaults(run="ask.translate")


def add_classify(parsers: Any) -> None:
    parser = _model_parser(
        parsers, "classify", "classify each TEXT, or each line of stdin",
        "Prints one line for each text, in their order: the likeliest class, a tab, its "
        "probability.",
    )  # fmt: skip
    parser.add_argument("text", metavar="TEXT", nargs="*")
    parser.set_defaults(run="ask.classify")


def add_score(parsers: Any) -> None:
    parser = _model_parser(
        parsers, "score", "give the log-probability of translations",
        "Prints one line for each pair, in their order: the log-probability of the target in "
        "nats, <eos> included. Without SOURCE TARGET, each line of stdin is a source, a tab and a "
        "target.",
    )  # fmt: skip
    parser.add_argument("text", metavar="SOURCE TARGET", nargs="*")
    parser.add_argument(
        "--tokens", action="store_true", help="add each token and its log-probability to the line"
    )
    parser.set_defaults(run="ask.score")


def add_explore(parsers: Any) -> None:
    parser = parsers.add_parser(
        "explore",
        help="open a page on which to question models",
        allow_abbrev=False,
        description=(
            "Serve a page on which to question models, on this machine alone, until Ctrl-C."
        ),
    )
    parser.add_argument(
        "models",
        metavar="MODEL",
        nargs="+",
        help="a model folder, or MLflow's runs:/... or models:/...",
    )
    parser.add_argument(
        "--port",
        metavar="N",
        type=int,
        help="of the page; default: 8765, or the next one that is free; 0 is any free one",
    )
    parser.add_argument(
        "--data", metavar="FOLDER", type=Path,
        help="prepared data, such as build/data: its test sentences can be chosen by their loss, "
        "and test pairs with their gold alignment",
    )  # fmt: skip
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    _add_device(parser)
    _add_allow(parser)
    parser.set_defaults(run="ask.explore")


def add_export(parsers: Any) -> None:
    parser = parsers.add_parser(
        "export",
        help="write one HTML file that runs models in a browser",
        allow_abbrev=False,
        description=(
            "Write the page of `attnlab explore` as one HTML file with the models inside. It needs "
            "no server, no network and no installation."
        ),
    )
    parser.add_argument(
        "models",
        metavar="MODEL",
        nargs="+",
        help="a model folder, or MLflow's runs:/... or models:/...",
    )
    parser.add_argument("page", metavar="PAGE.html", type=_page, help="the file to write")
    parser.add_argument(
        "--data", metavar="FOLDER", type=Path,
        help="prepared data, such as build/data: its test pairs can be chosen, with their gold "
        "alignment",
    )  # fmt: skip
    parser.set_defaults(run="ask.export")


def _add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", default="cpu", help="cpu, cuda, cuda:1, ...; default: %(default)s"
    )


def _add_allow(parser: argparse.ArgumentParser) -> None:
    foreign = "module outside of attnlab that the model may use"
    parser.add_argument("--allow", metavar="MODULE", action="append", default=[], help=foreign)


def _model_parser(
    parsers: Any, name: str, summary: str, description: str
) -> argparse.ArgumentParser:
    """The parser of a command that asks a model, with the arguments that all of them have."""
    parser: argparse.ArgumentParser = parsers.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}. {description}",
        allow_abbrev=False,
    )
    parser.add_argument(
        "model", metavar="MODEL", help="a model folder, or MLflow's runs:/... or models:/..."
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object a line, with tokens and attention",
    )
    parser.add_argument(
        "--heat-map", metavar="FILE", type=_picture,
        help="also draw the attention: .html for one page, .png for a picture (heat maps of "
        "several texts: FILE_1.png, FILE_2.png, ...); few texts, since they are drawn at the end",
    )  # fmt: skip
    _add_device(parser)
    parser.add_argument(
        "--threads", metavar="N", type=_at_least_one, default=1, help="of the processor; default: 1"
    )
    parser.add_argument(
        "--batch-size", metavar="N", type=_at_least_one,
        help="texts that are computed together; default: 64, and 1 at a terminal, where each line "
        "is answered at once",
    )  # fmt: skip
    _add_allow(parser)
    change = parser.add_argument_group(
        "change the attention (positions count source tokens from 0)"
    )
    change.add_argument(
        "--intervene",
        choices=("uniform", "permuted"),
        help="equal weights, or weights that swap places",
    )
    change.add_argument(
        "--hide",
        metavar="0,4,...",
        type=positions,
        action="extend",
        default=[],
        help="positions that get no weight",
    )
    change.add_argument(
        "--heads",
        metavar="0,2,...",
        type=positions,
        action="extend",
        help="heads that these change, counted from 0; default: all",
    )
    if name != "classify":
        change.add_argument(
            "--force", metavar="STEP=TOKEN", type=forced_token, action="append", default=[],
            help="write this token at that step, counted from 0",
        )  # fmt: skip
    change.add_argument(
        "--attention-temperature", metavar="X", type=float, default=1.0, help="divides the scores"
    )
    change.add_argument(
        "--seed", metavar="N", type=int, default=0, help="of --intervene permuted; default: 0"
    )
    return parser


def _setting(text: str) -> tuple[str, Any]:
    """`name=value`, the value as JSON where it can be read as such."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


# argparse names these functions where one raises ValueError: "invalid forced token value: 'x'".
def forced_token(text: str) -> tuple[int, str]:
    """`step=token`."""
    step, token = text.split("=", 1)
    return int(step), token


def _at_least_one(text: str) -> int:
    """A whole number from 1 on."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, got {text!r}")
    return number


def positions(text: str) -> list[int]:
    """`0,4`."""
    return [int(part) for part in text.split(",")]


def _page(text: str) -> Path:
    if Path(text).suffix != ".html":
        raise argparse.ArgumentTypeError(f"must end in .html, got {text!r}")
    return Path(text)


def _picture(text: str) -> Path:
    if Path(text).suffix not in (".png", ".html"):
        raise argparse.ArgumentTypeError(f"must end in .png or .html, got {text!r}")
    return Path(text)
