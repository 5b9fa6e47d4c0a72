"""The subcommand that grades the exercises of the course."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any


def add_check(parsers: Any) -> None:
    parser = parsers.add_parser(
        "check",
        help="grade an exercise of the course",
        allow_abbrev=False,
        description=(
            "Grade an exercise of the course (docs/course/). Says what is wrong, and exits with 0 "
            "only if everything is right."
        ),
    )
    parser.add_argument("lesson", metavar="LESSON", help="lesson-1 to lesson-12")
    parser.add_argument(
        "file",
        metavar="FILE",
        type=Path,
        help="your functions (.py), settings or conclusion (.yaml)",
    )
    parser.add_argument(
        "--lang",
        choices=("ko", "en"),
        help="language of the answer; the default is Korean where LANG is, and else English",
    )
    parser.add_argument(
        "--seed", metavar="N", type=int, default=1, help="draws the hidden inputs; default: 1"
    )
    parser.set_defaults(run="course.check")


def check(args: argparse.Namespace) -> None:
    """Print what is wrong; exits with 1 where something is."""
    from attnlab.course.check import check as grade
    from attnlab.course.sentence import KOREAN, language_of

    language = args.lang or language_of(os.environ)
    findings = grade(args.lesson, args.file, args.seed)
    for finding in findings:
        print(finding.in_language(language))
    if findings:
        sys.stdout.flush()
        sys.exit(1)
    print("모두 맞았습니다." if language == KOREAN else "All right.")
