"""Compose: params.yaml -> build/resolved.yaml, the one config that all later stages read.

    python pipelines/compose.py [overrides, which take precedence over params.yaml]
    python pipelines/compose.py into=build/dot-1 model/attention=dot seed=1

`into` is the folder of the result, and of what the stages write that read it. The prepared data lie
in build/data.

`dvc repro` composes nothing by itself, so this stage does; each later stage depends on its own
sections of the result.
"""

from __future__ import annotations

import sys

from attnlab.experiment.command_help import help_shown
from attnlab.experiment.user_errors import report_user_errors

if __name__ == "__main__":
    with report_user_errors():
        if not help_shown():
            from attnlab.experiment.params_file import (
                compose,
                read_arguments,
                read_params,
                write_resolved,
            )

            into, overrides = read_arguments(sys.argv[1:])
            resolved = compose(read_params(), overrides, into)
            write_resolved(resolved, into)  # and each section as a file
