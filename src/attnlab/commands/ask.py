"""The subcommands that ask a trained model: translate, classify, score, explore, export."""

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
from attnlab.model.attention.intervention import Intervention
from attnlab.tasks.classification.classifier import ClassifiedText
from attnlab.tasks.requests import BATCH_SIZE
from attnlab.tasks.translation.answers import Scored, Translation
from attnlab.training.hardware import use_plain_float32

# What goes into one line of the output.
Fields = tuple[str, ...]


def translate(args: argparse.Namespace) -> None:
    settings = dict(args.settings)
    if args.beam is not None:
        settings["beam"] = args.beam
    if args.n_best is not None:
        settings["n_best"] = args.n_best
    model = _load_model(args, "translate")
    model.search(settings)  # a wrong setting is refused before a line is read

    answers = model.stream(
        given_texts(args.text),
        intervene=_intervention(args),
        with_attention=args.json or args.heat_map is not None,
        batch_size=_batch_size(args),
        **settings,
    )

    def lines(number: int, answer: Translation) -> list[Fields]:
        if "n_best" not in settings:
            return [(answer.text,)]
        n_best = (answer, *answer.alternatives)
        return [(str(number), f"{each.score:.4f}", each.text) for each in n_best]

    _show(answers, args, lines)


def classify(args: argparse.Namespace) -> None:
    model = _load_model(args, "classify")
    answers = model.stream(given_texts(args.text), _intervention(args), _batch_size(args))

    def lines(_: int, answer: ClassifiedText) -> list[Fields]:
        return [(answer.label, f"{answer.probabilities[answer.label]:.4f}")]

    _show(answers, args, lines, json_properties=["label"], as_sentences=True)


def score(args: argparse.Namespace) -> None:
    model = _load_model(args, "score")
    pairs = given_pairs(args.text)
    answers = model.stream_scores(pairs, _intervention(args), _batch_size(args))

    def lines(_: int, answer: Scored) -> list[Fields]:
        fields = [f"{answer.total:.4f}"]
        if args.tokens:
            for token, log_prob in zip(answer.tokens, answer.log_probs.tolist(), strict=True):
                fields.append(f"{token} {log_prob:.4f}")
        return [tuple(fields)]

    _show(answers, args, lines, json_properties=["total"])


def explore(args: argparse.Namespace) -> None:
    from attnlab.explorer import server  # costs an import of a web framework

    server.explore(
        args.models,
        port=args.port,
        browser=not args.no_browser,
        data=args.data,
        allow=args.allow,
        device=args.device,
    )


def export(args: argparse.Namespace) -> None:
    from attnlab.explorer.export import export as export_page  # costs an import of a web framework

    export_page(args.models, args.page, args.data)
    size = args.page.stat().st_size / 1e6
    print(f"{args.page}: {size:.2f} MB; open it in a browser")


def _load_model(args: argparse.Namespace, command: str) -> Any:
    """What asks the model, on its device.

    Raises ExperimentError for a model that the command does not take, and names those that do.
    """
    torch.set_num_threads(args.threads)
    use_plain_float32()
    model = load(args.model, args.device, args.allow)
    if command not in model.commands:
        others = " or ".join(f"attnlab {name}" for name in model.commands)
        remedy = f"use {others}" if others else f'ask it in Python: attnlab.load("{args.model}")'
        raise ExperimentError(
            f"{args.model} holds a model that {model.does}, which attnlab {command} does not take; "
            f"{remedy}"
        )
    return model


def _intervention(args: argparse.Namespace) -> Intervention:
    """The change of the attention that the arguments describe.

    Raises ExperimentError where they are out of range.
    """
    try:
        return Intervention(
            kind=args.intervene,
            temperature=args.attention_temperature,
            hide=tuple(args.hide),
            force=dict(getattr(args, "force", ())),
            seed=args.seed,
            heads=args.heads,
        )
    except ValueError as error:
        raise ExperimentError(f"intervene: {error}") from None


def _is_interactive(args: argparse.Namespace) -> bool:
    """Whether somebody types the texts at the terminal, and waits for each answer."""
    return not args.text and sys.stdin.isatty()


def _batch_size(args: argparse.Namespace) -> int:
    """How many texts to compute together."""
    if args.batch_size:
        return int(args.batch_size)
    return 1 if _is_interactive(args) else BATCH_SIZE


def _show(
    answers: Iterable[Any],
    args: argparse.Namespace,
    lines: Callable[[int, Any], list[Fields]],
    *,
    json_properties: Sequence[str] = (),
    as_sentences: bool = False,
) -> None:
    """Print the answers, and draw their attention at the end.

    Args:
        lines: makes the fields of each line of an answer and its number, from 1 on.
        json_properties: properties of an answer that are added to its JSON.
        as_sentences: whether to draw coloured sentences instead of heat maps.
    """
    reads_file = not args.text and not _is_interactive(args)
    maps: list[AttentionMap] = []
    for number, answer in enumerate(with_progress(answers, reads_file), start=1):
        if args.json:
            properties = {name: getattr(answer, name) for name in json_properties}
            print_json(answer, **properties)
        else:
            for fields in lines(number, answer):
                print_fields(*fields)
        # A blank text has no tokens, and so no attention.
        if args.heat_map is not None and answer.tokens:
            maps.append(answer.map)
    if args.heat_map is not None:
        draw(maps, args.heat_map, as_sentences)


def draw(maps: Sequence[AttentionMap], path: Path, as_sentences: bool = False) -> None:
    """Write the maps as pictures or as a page, by the ending of `path`.

    A .png holds one heat map (several are numbered), or all coloured sentences; a .html holds all
    of either.

    Raises ExperimentError where there is nothing to draw, or too much.
    """
    if not maps:
        raise ExperimentError(f"there is no attention to draw; {path} is not written")
    try:
        if path.suffix == ".html":
            _write_page(maps, path, as_sentences)
        else:
            _write_pictures(maps, path, as_sentences)
    except ValueError as error:  # matplotlib's for a picture of many thousand pixels
        raise ExperimentError(
            f"{path} cannot be drawn ({error}); give fewer texts, or a .html file"
        ) from None


def _write_page(maps: Sequence[AttentionMap], path: Path, as_sentences: bool) -> None:
    from attnlab.plots.heat_map_html import heat_map_page  # imports matplotlib
    from attnlab.plots.sentences import sentences_html

    page = sentences_html(maps) if as_sentences else heat_map_page(maps)
    with atomic_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _write_pictures(maps: Sequence[AttentionMap], path: Path, as_sentences: bool) -> None:
    from attnlab.plots.figure import save_png  # imports matplotlib
    from attnlab.plots.heat_map_figure import heat_map_figure
    from attnlab.plots.sentences import coloured_sentences

    if as_sentences:
        save_png(coloured_sentences(maps), path)
    elif len(maps) == 1:
        save_png(heat_map_figure(maps[0]), path)
    else:
        for number, attention_map in enumerate(maps, start=1):
            save_png(heat_map_figure(attention_map), path.with_stem(f"{path.stem}_{number}"))
