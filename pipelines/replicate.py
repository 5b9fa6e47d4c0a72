"""Train the experiments of a study with several seeds, and judge its claim or published result.

    python pipelines/replicate.py 01_bottleneck
    python pipelines/replicate.py scan --seeds 5 data.path=<folder with the corpora>
    python pipelines/replicate.py my_study.yaml

The studies are the files of pipelines/studies; without a name it lists them. Writes
runs/studies/<name> (rows.csv, figure.png, result.json), and the page of all claims, or of all
replications, beside it. What is trained already is not trained again.
"""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path

from attnlab.experiment.user_errors import report_user_errors
from attnlab.project import pipeline_command, with_pipeline_commands

if __name__ == "__main__":
    parser = ArgumentParser(
        description=with_pipeline_commands(str(__doc__)),
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
        usage=f"{pipeline_command('replicate')} STUDY ...",
    )
    parser.add_argument(
        "name",
        metavar="STUDY",
        nargs="?",
        default="",
        help="one of pipelines/studies, or a YAML file of your own",
    )
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="how many; as many as the study says without it"
    )
    parser.add_argument(
        "--into",
        type=Path,
        default=Path("runs"),
        help="the folder for pages and files (%(default)s)",
    )
    parser.add_argument(
        "settings",
        nargs="*",
        help="settings of all experiments, such as data.path=... or hardware.threads=1",
    )
    arguments = parser.parse_intermixed_args()
    with report_user_errors():
        from attnlab.studies.study import (
            conditions,
            find_study,
            measure,
            read_study,
            show_result,
            write_result,
        )
        from attnlab.studies.study_page import write_page

        path = find_study(arguments.name)
        study = read_study(path)
        points = study.points(arguments.seeds, arguments.settings)  # all checked before one runs
        rows = measure(study, points)  # trains what is missing
        result = study.result(rows) | conditions(points, arguments.settings)

        folder = arguments.into / "studies" / path.stem
        write_result(study, rows, result, folder)
        show_result(study, result, folder)
        page = write_page(path, arguments.into)  # of all claims, or all replications
        if page is not None:
            print(f"page: {page}")
