"""Deliver: upload what runs could not, because their tracker was away.

    python pipelines/deliver.py
    python pipelines/deliver.py tracking.uri=http://localhost:5000

Runs that go on at this moment upload by themselves; those that were killed do when their command is
given again.
"""

from __future__ import annotations

import sys

from attnlab.experiment.command_settings import DeliverSettings, read_settings
from attnlab.experiment.user_errors import report_user_errors

if __name__ == "__main__":
    with report_user_errors():
        settings = read_settings(DeliverSettings, sys.argv[1:])
        from attnlab.errors import ExperimentError
        from attnlab.runs.delivery import deliver

        settings.tracking.follow_moved_folder(settings.runs_folder)
        _, problems = deliver(settings.tracking, settings.runs_folder)
        if problems:
            raise ExperimentError(problems)
