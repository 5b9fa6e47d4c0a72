"""Way back: from a run in MLflow to the commands that give its metrics again.

    python pipelines/way_back.py run=<MLflow run id>

The run's config is copied to runs/way_back/<run id>/, and what is printed can be given to a shell.
"""

from __future__ import annotations

import sys

from attnlab.experiment.command_settings import WayBackSettings, read_settings
from attnlab.experiment.launch import mistakes_as_sentences

if __name__ == "__main__":
    with mistakes_as_sentences():
        settings = read_settings(WayBackSettings, sys.argv[1:])
        from attnlab.stages.way_back import main

        main(settings)
