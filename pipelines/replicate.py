"""Train the experiments of a study with several seeds, and judge its claim or published result.

    python pipelines/replicate.py 01_bottleneck
    python pipelines/replicate.py scan --seeds 5 data.path=<folder with the corpora>
    python pipelines/replicate.py my_study.yaml
    python pipelines/replicate.py 01_bottleneck launcher=joblib launcher.workers=4
    python pipelines/replicate.py 01_bottleneck --into docs --judge
    python pipelines/replicate.py museum

The studies are the files of pipelines/studies; without a name it lists them. Writes
runs/studies/<name> (rows.csv, sentences.csv, figure.png, result.json), and the page of all claims,
of all replications or of the museum of mistakes, beside it. The name of a folder of studies,
`museum`, runs all of them, one after the other. What is trained already is not trained again. With
a launcher the points are trained as a sweep; `sweep.shard=3/8` trains a part of them. `--judge`
trains and measures nothing: it judges the rows that lie there; without a name those of all studies.
"""

from __future__ import annotations

import sys
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
        help="one of pipelines/studies, a folder of them, or a YAML file of your own",
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
        "--judge", action="store_true", help="judge the rows of the folder anew, without a training"
    )
    parser.add_argument(
        "settings",
        nargs="*",
        help="settings of all experiments, such as data.path=... or hardware.threads=1, and of a "
        "launcher",
    )
    arguments = parser.parse_intermixed_args()
    if arguments.judge and (arguments.seeds is not None or arguments.settings):
        parser.error("--judge trains nothing: it takes no --seeds and no settings")
    with report_user_errors():
        from attnlab.studies.judging import judge, judge_all, show_result
        from attnlab.studies.run_study import StudyRequest, run_study
        from attnlab.studies.study import find_studies, read_study
        from attnlab.studies.study_files import (
            check_rows,
            read_measurements,
            write_measurements,
        )
        from attnlab.studies.study_pages import write_pages
        from attnlab.studies.study_sweep import is_of_sweep

        if arguments.judge and not arguments.name:
            judge_all(arguments.into)
            sys.exit()
        settings = [text for text in arguments.settings if not is_of_sweep(text)]
        of_sweep = [text for text in arguments.settings if is_of_sweep(text)]
        for path in find_studies(arguments.name):
            study = read_study(path)
            folder = arguments.into / "studies" / path.stem
            if arguments.judge:
                measurements = read_measurements(folder)
                check_rows(study, path, measurements)
            else:
                wanted = StudyRequest(path, arguments.seeds, settings, of_sweep, folder)
                found = run_study(study, wanted)
                if found is None:
                    continue
                measurements = found
                write_measurements(measurements, folder)
            result = judge(study, path, measurements, folder)
            show_result(study, result, folder)
            page = write_pages(path, arguments.into)  # of all studies of its kind
            if page is not None:
                print(f"page: {page}")
