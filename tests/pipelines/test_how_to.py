"""Every command of docs/how-to/coming-from-hydra-lightning-mlflow.md, in its order.

They run on a tiny experiment.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from entry_points import ANY_ATTENTION, ROOT, Command, mlflow_client, succeeded

PAGE = (ROOT / "docs" / "how-to" / "coming-from-hydra-lightning-mlflow.md").read_text(
    encoding="utf-8"
)
COMMANDS = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
]
COMPOSING = ("train.py", "evaluate.py")
QUIET = ("tracking.system_metrics=false", "tracking.heat_map_sentences=0")
SHORTER = {"max_steps=200": "max_steps=6", "max_steps=400": "max_steps=8"}


def filled_in(line: str, folder: Path) -> str:
    """A command with values for its `<...>`.

    They stand for the experiment that was finished last, its run and its data.
    """
    done = sorted(folder.glob("runs/points/*/done.json"), key=lambda path: path.stat().st_mtime)
    if done and "<" in line:
        place = done[-1].parent
        data = Path(json.loads((place / "run" / "run.json").read_text())["record"]["data_source"])
        for name, value in (("identity", place.name), ("data", data.name)):
            line = line.replace(f"<{name}>", value)
    for long, short in SHORTER.items():
        line = line.replace(long, short)
    return line


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_every_command_of_the_page_runs(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    assert len(COMMANDS) >= 20
    for line in COMMANDS:
        python, script, *arguments = shlex.split(filled_in(line, folder))
        assert python == "python"
        assert "<" not in "".join(arguments)
        script = script.removeprefix("pipelines/")
        tiny = ANY_ATTENTION if script in COMPOSING and "--help" not in arguments else ()
        if script == "train.py" and "-m" not in arguments:
            tiny += ("chain=false",)  # the sweeps are evaluated
        # Which does without MLflow
        if tiny and not any(part.startswith("debug=") for part in arguments):
            tiny += QUIET
        flags = [part for part in arguments if part == "-m"]
        ended = succeeded(
            command(script, *flags, *tiny, *(part for part in arguments if part not in flags))
        )
        assert "Traceback" not in ended.err, line

    runs = {run.info.run_name: run for run in mlflow_client(folder).search_runs(["1"])}
    assert runs["baseline"].data.tags["paper"] == "acl"
    assert (
        runs["baseline"]
        .data.tags["mlflow.note.content"]
        .startswith("Does a **wider** encoder help?")
    )
    assert list(folder.glob("runs/points/*/loggers/csv/**/metrics.csv"))
