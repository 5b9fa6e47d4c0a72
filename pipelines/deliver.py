"""Deliver: upload what runs could not, because their tracker was away.

    python pipelines/deliver.py
    python pipelines/deliver.py tracking.uri=http://localhost:5000

Runs that go on at this moment upload by themselves; those that were killed do when their command is
given again.
"""

from __future__ import annotations

import sys

from attnlab.experiment.command_settings import DeliverSettings, read_settings
from attnlab.experiment.launch import mistakes_as_sentences

if __name__ == "__main__":
    with mistakes_as_sentences():
        settings = read_settings(DeliverSettings, sys.argv[1:])
        from attnlab.runs.delivery import main

        main(settings)
