"""Deliver: upload what runs could not, because their tracker was away.

    python pipelines/deliver.py
    python pipelines/deliver.py tracking.uri=http://localhost:5000

Runs that go on at this moment upload by themselves; those that were killed do when their command is given again.
"""

from __future__ import annotations

from attnlab.experiment.console import mistakes_as_sentences
from attnlab.stages.deliver import main

if __name__ == "__main__":
    with mistakes_as_sentences():
        main()
