"""Show what `dvc repro` made: the metrics, the report, and how to open MLflow.

python pipelines/show.py
"""

from __future__ import annotations

from attnlab.experiment.command_help import help_shown
from attnlab.experiment.user_errors import report_user_errors

if __name__ == "__main__":
    with report_user_errors():
        if not help_shown():
            from attnlab.report.reporting import show_build

            show_build()
