"""`attnlab translate`, `attnlab classify`, `attnlab score` and `attnlab explore`: ask a trained
model.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from attnlab.api import load
from attnlab.commands.lines import given_pairs, given_texts, print_fields, print_json, with_progress
from attnlab.errors import ExperimentError
from attnlab.evaluation.attention_map import AttentionMap
from attnlab.files import atomic_file
from attnlab.inference.classifier import ClassifiedText, SentenceClassifier
from attnlab.inference.translator import Scored, Translation
from attnlab.model.attention.intervention import Intervention


def translate(args: argparse.Namespace) -> None:
    settings = dict(args.settings)
    settings |= {
        name: getattr(args, name) for name in ("beam", "n_best") if getattr(args, name) is not None
    }
    model = _model(args, "translates", "classify")
    model.search(settings)  # a wrong setting is refused before a line is read
    answers = model.stream(
        given_texts(args.text),
        intervene=_intervention(args),
        with_attention=args.json or args.heat_map is not None,
        batch_size=_batch_size(args),
        **settings,
    )

    def lines(number: int, answer: Translation) -> list[tuple[str, ...]]:
        if "n_best" not in settings:
            return [(answer.text,)]
        return [
            (str(number), f"{each.score:.4f}", each.text) for each in (answer, *answer.alternatives)
        ]

    _show(answers, args, lines)


def classify(args: argparse.Namespace) -> None:
    model = _model(args, "classifies", "translate")
    answers = model.stream(given_texts(args.text), _intervention(args), _batch_size(args))

    def lines(_: int, answer: ClassifiedText) -> list[tuple[str, ...]]:
        return [(answer.label, f"{answer.probabilities[answer.label]:.4f}")]

    _show(answers, args, lines, "label", as_sentences=True)


def score(args: argparse.Namespace) -> None:
    model = _model(args, "translates", "classify")
    pairs = given_pairs(args.text)
    answers = model.stream_scores(pairs, _intervention(args), _batch_size(args))

    def lines(_: int, answer: Scored) -> list[tuple[str, ...]]:
        tokens = zip(answer.tokens, answer.log_probs.tolist(), strict=True) if args.tokens else ()
        return [(f"{answer.total:.4f}", *(f"{token} {log_prob:.4f}" for token, log_prob in tokens))]

    _show(answers, args, lines, "total")


def explore(args: argparse.Namespace) -> None:
    from attnlab.explorer import server  # costs an import of a web framework

    server.explore(args.models, args.port, not args.no_browser, args.data)


def _model(args: argparse.Namespace, does: str, other: str) -> Any:
    """The translator or the classifier on its device.

    does: `translates` or `classifies`.

    Raises ExperimentError for a model that does not, and names the `other` command.
    """
    torch.set_num_threads(args.threads)
    model = load(args.model, args.device, args.allow)
    if isinstance(model, SentenceClassifier) != (does == "classifies"):
        raise ExperimentError(f"{args.model} holds no model that {does}; use attnlab {other}")
    return model


def _intervention(args: argparse.Namespace) -> Intervention:
    """What the arguments change; raises ExperimentError where they are out of range."""
    try:
        return Intervention(
            kind=args.intervene,
            temperature=args.attention_temperature,
            hide=tuple(args.hide),
            force=dict(getattr(args, "force", ())),
            seed=args.seed,
        )
    except ValueError as error:
        raise ExperimentError(f"intervene: {error}") from None


def _typed(args: argparse.Namespace) -> bool:
    """Whether somebody types the texts at the terminal, and waits for each answer."""
    return not args.text and sys.stdin.isatty()


def _batch_size(args: argparse.Namespace) -> int:
    """How many texts to compute together."""
    return args.batch_size or (1 if _typed(args) else 64)


def _show(
    answers: Iterable[Any],
    args: argparse.Namespace,
    lines: Callable[[int, Any], list[tuple[str, ...]]],
    *more: str,
    as_sentences: bool = False,
) -> None:
    """Print the answers, and draw their attention at the end.

    Args:
        lines: makes the fields of each line of an answer and its number, from 1 on.
        more: properties of an answer that are added to its JSON.
    """
    maps: list[AttentionMap] = []
    for number, answer in enumerate(with_progress(answers, not args.text and not _typed(args)), 1):
        if args.json:
            print_json(answer, **{name: getattr(answer, name) for name in more})
        else:
            for fields in lines(number, answer):
                print_fields(*fields)
        if args.heat_map is not None and answer.tokens:
            maps.append(answer.map)
    if args.heat_map is not None:
        draw(maps, args.heat_map, as_sentences)


def draw(maps: Sequence[AttentionMap], path: Path, as_sentences: bool = False) -> None:
    """Write heat maps, a .png for each, or coloured sentences; or a page with all of them.

    Raises ExperimentError where there is nothing to draw, or too much.
    """
    from attnlab.plots.attention import coloured_sentences, heat_map, heat_map_html, sentences_html
    from attnlab.plots.figure import save_png  # both cost an import of matplotlib

    if not maps:
        raise ExperimentError(f"there is no attention to draw; {path} is not written")
    try:
        if path.suffix == ".html":
            with atomic_file(path) as temporary:
                temporary.write_text(
                    sentences_html(maps) if as_sentences else heat_map_html(maps), encoding="utf-8"
                )
        elif as_sentences:
            save_png(coloured_sentences(maps), path)
        else:
            for number, each in enumerate(maps, 1):
                save_png(
                    heat_map(each),
                    path if len(maps) == 1 else path.with_stem(f"{path.stem}_{number}"),
                )
    except ValueError as error:  # matplotlib's for a picture of many thousand pixels
        raise ExperimentError(
            f"{path} cannot be drawn ({error}); give fewer texts, or a .html file"
        ) from None
