"""`python -m attnlab.explorer MODEL [MODEL ...]`: start the explorer."""

from __future__ import annotations

import argparse
import sys

from attnlab.errors import ExperimentError
from attnlab.explorer.server import explore

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m attnlab.explorer", description=__doc__)
    parser.add_argument(
        "models", nargs="+", metavar="MODEL", help="a model folder, runs:/ID/model or models:/NAME@ALIAS"
    )
    parser.add_argument("--port", type=int, default=0, help="of the page; 0, the default, is any that is free")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    given = parser.parse_args()
    try:
        explore(given.models, given.port, not given.no_browser)
    except ExperimentError as error:
        sys.exit(str(error))
