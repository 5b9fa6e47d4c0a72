"""`attnlab explore`: a page on which to question models."""

import argparse

from attnlab.explorer import server


def explore(args: argparse.Namespace) -> None:
    server.explore(args.models, args.port, not args.no_browser, args.data)
