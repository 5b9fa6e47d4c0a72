"""Arguments that benchmarks share, and their types."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from pathlib import Path


def corpus_parser(description: str | None) -> ArgumentParser:
    """The parser of a benchmark that reads the corpus of `--data`."""
    parser = ArgumentParser(description=description, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, required=True, help="the corpus, as data.path of train.py"
    )
    return parser


def add_only(parser: ArgumentParser) -> None:
    """Add `--only`, which chooses among the contestants."""
    parser.add_argument(
        "--only", nargs="+", default=[], help="those whose names have one of these in them"
    )


def at_least_one(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"must be a whole number of at least 1, got {text}")
    return int(text)


def add_lengths(parser: ArgumentParser, what: str, default: list[int]) -> None:
    """--lengths, tokens of `what`."""
    parser.add_argument(
        "--lengths",
        type=at_least_one,
        nargs="+",
        default=default,
        help=f"tokens of {what}, <eos> counted",
    )


def step_parser(doc: str | None, rounds: int) -> ArgumentParser:
    """The parser of a benchmark that times a training step: --length and --rounds."""
    parser = ArgumentParser(description=doc, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument(
        "--length", type=at_least_one, default=14, help="tokens of a sentence, <eos> counted"
    )
    parser.add_argument("--rounds", type=at_least_one, default=rounds)
    return parser
