"""The subcommand that probes an attention module of anybody's for mistakes."""

from __future__ import annotations

import argparse
import sys
from typing import Any

_SIZE = 16


def add_inspect(parsers: Any) -> None:
    parser = parsers.add_parser(
        "inspect",
        help="probe an attention module of your own for the mistakes that such modules have",
        allow_abbrev=False,
        description=(
            "Call an attention module with made-up sentences, and say which mistakes it has. The "
            "module is called as forward(query, keys, values, mask): a query (B, D) or queries "
            "(B, T, D), keys (B, S, D), values (B, S, V), and a mask (B, S) that is True at real "
            "tokens. It returns the context, or the context and the weights. Where yours takes "
            "something else, write a few lines around it. The file's code runs here."
        ),
    )
    parser.add_argument(
        "target",
        metavar="FILE.py:NAME",
        help="a class, or a function that makes the module; called without arguments",
    )
    for name in ("query", "key", "value"):
        parser.add_argument(
            f"--{name}-size",
            type=int,
            metavar="N",
            default=_SIZE,
            help=f"numbers of a {name}; default: %(default)s",
        )
    parser.set_defaults(run="inspect_module.inspect")


def inspect(args: argparse.Namespace) -> None:
    from attnlab.inspection.probes import inspect_module
    from attnlab.inspection.stranger import Sizes, Stranger, load

    sizes = Sizes(args.query_size, args.key_size, args.value_size)
    stranger = Stranger(load(args.target), sizes)
    faults = 0
    for probed in inspect_module(stranger):
        if probed.error:
            print(f"?  {probed.asked}: the call failed with {probed.error}")
        elif probed.fault is None:
            print(f"ok {probed.asked}")
        else:
            faults += 1
            print(f"-- {probed.asked}: {probed.fault.name.upper()}")
            print(f"     seen: {probed.fault.found}")
            print(f"     cost: {probed.fault.cost}")
    if faults:
        print(f"{faults} mistake(s) found")
        sys.exit(1)
    print("no mistake found")
