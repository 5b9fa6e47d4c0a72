"""`attnlab translate`, `attnlab classify`, `attnlab score` and `attnlab explore`: ask a trained model."""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.commands.arguments import (
    batch_size,
    forced_token,
    intervention,
    loaded_model,
    model_parser,
    setting,
    typed,
)
from attnlab.commands.lines import draw, given_pairs, given_texts, print_fields, print_json, with_progress

if TYPE_CHECKING:
    from attnlab.evaluation.attention_map import AttentionMap
    from attnlab.inference.translator import Translation, Translator


def add_translate(parsers: Any) -> None:
    parser = model_parser(
        parsers, "translate", "translate each TEXT, or each line of stdin",
        "Prints one line for each text, in their order. A blank text gives an empty line; line breaks in a translation "
        "become spaces.",
    )  # fmt: skip
    parser.add_argument("text", metavar="TEXT", nargs="*")
    search = parser.add_argument_group("search (without these, the model's own)")
    search.add_argument("--beam", metavar="N", type=int, help="beam search that follows N hypotheses")
    search.add_argument(
        "--n-best", metavar="N", type=int,
        help="up to N lines for each text, the best first: the text's number from 1 on, a tab, the score, a tab, the "
        "translation",
    )  # fmt: skip
    search.add_argument(
        "--set", metavar="NAME=VALUE", dest="settings", type=setting, action="append", default=[],
        help="another setting of conf/search: search=greedy, length_penalty=0.6, max_length=50, or temperature=0.7, "
        "which draws",
    )  # fmt: skip
    search.add_argument(
        "--force", metavar="STEP=TOKEN", type=forced_token, action="append", default=[],
        help="write this token at that step, counted from 0",
    )  # fmt: skip
    parser.set_defaults(run=translate)


def translate(args: argparse.Namespace) -> None:
    settings = dict(args.settings)
    settings |= {name: getattr(args, name) for name in ("beam", "n_best") if getattr(args, name) is not None}
    answers = translations(
        loaded_model(args, "translates", "classify"),
        given_texts(args.text),
        intervene=intervention(args),
        with_attention=args.json or args.heat_map is not None,
        batch_size=batch_size(args),
        **settings,
    )
    maps: list[AttentionMap] = []
    for number, answer in enumerate(with_progress(answers, not args.text and not typed(args)), 1):
        if args.json:
            print_json(answer)
        elif "n_best" in settings:
            for each in (answer, *answer.alternatives):
                print_fields(str(number), f"{each.score:.4f}", each.text)
        else:
            print_fields(answer.text)
        if args.heat_map is not None and answer.tokens:
            maps.append(answer.map)
    draw(maps, args.heat_map)


def translations(model: Translator, texts: Iterable[str], **options: Any) -> Iterator[Translation]:
    """One for each text, in their order; a blank text gets an empty one, and the model is not asked.

    options: of `Translator.stream`.
    """
    from attnlab.inference.translator import Translation

    pending: deque[str] = deque()

    def not_blank() -> Iterator[str]:
        for text in texts:
            pending.append(text)
            if text.strip():
                yield text

    def blank() -> Iterator[Translation]:
        while pending and not pending[0].strip():
            yield Translation(pending.popleft(), "", [], 0.0, [], None)

    for answer in model.stream(not_blank(), **options):
        yield from blank()
        pending.popleft()
        yield answer
    yield from blank()


def add_classify(parsers: Any) -> None:
    parser = model_parser(
        parsers, "classify", "classify each TEXT, or each line of stdin",
        "Prints one line for each text, in their order: the likeliest class, a tab, its probability.",
    )  # fmt: skip
    parser.add_argument("text", metavar="TEXT", nargs="*")
    parser.set_defaults(run=classify)


def classify(args: argparse.Namespace) -> None:
    model = loaded_model(args, "classifies", "translate")
    answers = model.stream(given_texts(args.text), intervention(args), batch_size(args))
    maps: list[AttentionMap] = []
    for answer in with_progress(answers, not args.text and not typed(args)):
        if args.json:
            print_json(answer, label=answer.label)
        else:
            print_fields(answer.label, f"{answer.probabilities[answer.label]:.4f}")
        if args.heat_map is not None:
            maps.append(answer.map)
    draw(maps, args.heat_map, as_sentences=True)


def add_score(parsers: Any) -> None:
    parser = model_parser(
        parsers, "score", "give the log-probability of translations",
        "Prints one line for each pair, in their order: the log-probability of the target in nats, <eos> included. "
        "Without SOURCE TARGET and files, each line of stdin is a source, a tab and a target.",
    )  # fmt: skip
    parser.add_argument("text", metavar="SOURCE TARGET", nargs="*")
    parser.add_argument("--source", metavar="FILE", type=Path, help="sources, one a line")
    parser.add_argument("--target", metavar="FILE", type=Path, help="their targets, one a line")
    parser.add_argument("--tokens", action="store_true", help="add each token and its log-probability to the line")
    parser.set_defaults(run=score)


def score(args: argparse.Namespace) -> None:
    model = loaded_model(args, "translates", "classify")
    pairs = given_pairs(args.text, args.source, args.target)
    answers = model.stream_scores(pairs, intervention(args), batch_size(args))
    maps: list[AttentionMap] = []
    for answer in with_progress(answers, not args.text and not typed(args)):
        if args.json:
            print_json(answer, total=answer.total)
        else:
            tokens = zip(answer.tokens, answer.log_probs.tolist(), strict=True) if args.tokens else ()
            print_fields(f"{answer.total:.4f}", *(f"{token} {log_prob:.4f}" for token, log_prob in tokens))
        if args.heat_map is not None:
            maps.append(answer.map)
    draw(maps, args.heat_map)


def add_explore(parsers: Any) -> None:
    parser = parsers.add_parser(
        "explore", help="open a page on which to question models", allow_abbrev=False,
        description="Serve a page on which to question models, on this machine alone, until Ctrl-C.",
    )  # fmt: skip
    parser.add_argument(
        "models", metavar="MODEL", nargs="+", help="a model folder, or MLflow's runs:/... or models:/..."
    )
    parser.add_argument("--port", metavar="N", type=int, default=0, help="of the page; 0, the default, is any free one")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.set_defaults(run=explore)


def explore(args: argparse.Namespace) -> None:
    from attnlab.explorer.server import explore as serve  # costs imports of torch and the server

    serve(args.models, args.port, not args.no_browser)
