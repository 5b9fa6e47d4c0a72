"""Compare: the runs of a sweep -> which of its systems differ, by how much, and at what price.

    python pipelines/compare.py sweep=last
    python pipelines/compare.py sweep=3f2a metric=exact_match "baseline=no attention"
    python pipelines/compare.py runs=[<MLflow run id>,<another>,...]
    python pipelines/compare.py "filter=tags.sweep = '3f2a...' and params.attention != 'none'"
    python pipelines/compare.py builds=[build/dot-1,build/bahdanau-1]
    into=build/comparison

Runs that agree in all choices but the seed are one system. Prints which are better, by how much and
whether that is certain. Writes one offline page (index.html), what it found (comparison.json,
comparison.csv, systems.csv) and figures, and logs them to the sweep's run in MLflow.
"""

from __future__ import annotations

import sys

from attnlab.experiment.command_settings import CompareSettings, read_settings
from attnlab.experiment.user_errors import report_user_errors

if __name__ == "__main__":
    with report_user_errors():
        settings = read_settings(CompareSettings, sys.argv[1:])
        from attnlab.report.compare import (
            compare,
            find_wanted_sweep,
            log_comparison,
            read_runs,
            show_comparison,
        )

        sweep = find_wanted_sweep(settings)  # None for runs of MLflow's and folders of DVC's
        runs = read_runs(settings, sweep)
        folder, findings = compare(runs, settings, sweep)  # measured again, tested, and drawn
        logged = log_comparison(runs, findings, settings, sweep, folder)  # to the sweep's run
        show_comparison(runs, findings, folder, logged)
