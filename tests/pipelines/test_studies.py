"""The pictures' own commands: files that hold what was measured, the same a second time, and sentences for mistakes."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from entry_points import PIPELINES, Command
from test_refusals import left

SMALL = (
    "data.num_pairs=200",
    "data.test_fraction=0.2",
    "model.encoder.embedding_size=4",
    "model.encoder.hidden_size=6",
    "model.decoder.hidden_size=6",
    "model.readout.size=6",
    "training.batching.size=32",
)
ATTENTIONS = ("without attention", "with attention")
STUDIES = {
    "vanishing_gradients": ("--steps", "2", "--length", "7", "data.min_length=5"),
    "length_curve": ("--steps", "2", "--length", "6", "--test-length", "9"),
}


def run_twice(command: Command, name: str, seeds: str) -> tuple[list[dict[str, str]], str]:
    """The table and what was told the first time; the second time trains nothing and writes the same bytes."""
    arguments = (f"{name}.py", "--seeds", seeds, *STUDIES[name], *SMALL)
    files = [f"{name}.csv", f"{name}.json", f"{name}.png"]
    first, second = (command(*arguments, "--into", into) for into in ("first", "second"))
    assert first.code == second.code == 0, first.err + second.err
    assert first.out.strip() == f"first/{name}.png"
    assert ": training" in first.err
    assert ": training" not in second.err
    assert "already trained" in second.err
    assert sorted(path.name for path in Path("first").iterdir()) == files
    for file in files:
        assert Path("first", file).read_bytes() == Path("second", file).read_bytes()
    facts = json.loads(Path("first", f"{name}.json").read_text(encoding="utf-8"))
    assert facts["seeds"] == [int(seed) for seed in seeds.split(",")]
    assert facts["steps"] == 2
    assert facts["settings"] == [text for text in (*STUDIES[name], *SMALL) if "=" in text]
    assert facts["versions"]["torch"]
    with Path("first", f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file)), first.err


def test_vanishing_gradients(command: Command, folder: Path) -> None:
    rows, told = run_twice(command, "vanishing_gradients", seeds="4")
    assert "[4/4] LSTM, with attention, seed 4: training" in told
    # Every test sequence has 7 symbols and <eos>: 8 states, for 4 models, twice.
    assert len(rows) == 8 * 4 * 2
    assert {row["sentences"] for row in rows} == {"40"}
    assert {row["when"] for row in rows} == {"at initialisation", "after 2 steps"}
    for row in rows:
        assert float(row["state_gradient"]) > 0
        assert ("LSTM" in row["model"]) == (row["cell_gradient"] != "")
    start = {
        (row["model"], row["distance"]): float(row["state_gradient"])
        for row in rows
        if row["when"] == "at initialisation"
    }
    lost, kept = (start[f"RNN, {which}", "0"] / start[f"RNN, {which}", "7"] for which in ATTENTIONS)
    assert lost > 100 * kept


def test_length_curve(command: Command, folder: Path) -> None:
    rows, _ = run_twice(command, "length_curve", seeds="1,2")
    assert [int(row["length"]) for row in rows] == [*range(4, 10)] * 4
    assert sum(int(row["sentences"]) for row in rows) == 4 * 40
    assert all(0 <= float(row["bleu"]) <= 100 and 0 <= float(row["exact_match"]) <= 1 for row in rows)


MISTAKES = {
    "seeds": (("--seeds", "1,x"), "--seeds: must be whole numbers with commas between them, such as 1,2,3, got '1,x'"),
    "option": (("--step", "3"), "unrecognized arguments: --step"),
    "varied": (("model/attention=dot",), "model/attention is what this study varies by itself; leave it out"),
    "seed": (("seed=3",), "seed is what this study varies by itself; leave it out"),
    "steps": (("--steps", "0"), "training.max_steps must be a whole number above 0 or null, got 0"),
    "length": (("--length", "3", "data.min_length=5"), "data.min_length must be at most max_length (3), got 5"),
    "setting": (("training.max_stepz=1",), "did you mean training.max_steps?"),
    "task": (("task=classification",), "goes with task=translation"),
}


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_a_sentence_and_nothing_is_left(command: Command, folder: Path, name: str, mistake: str) -> None:
    arguments, sentence = MISTAKES[mistake]
    ended = command(f"{name}.py", "--seeds", "1", *arguments)
    assert ended.code == 1
    assert sentence in ended.err
    assert "Traceback" not in ended.err
    assert len(set(ended.err.splitlines())) == len(ended.err.splitlines())  # one sentence, not one for each experiment
    assert left(folder) == []


@pytest.mark.parametrize("name", STUDIES)
def test_help_imports_nothing_heavy(folder: Path, name: str) -> None:
    program = (
        f"import runpy, sys; sys.path.insert(0, {str(PIPELINES)!r}); sys.argv = ['{name}.py', '--help']\n"
        f"try: runpy.run_path({str(PIPELINES / f'{name}.py')!r}, run_name='__main__')\n"
        "except SystemExit as end: assert not end.code\n"
        "print(sorted({'torch', 'pytorch_lightning', 'mlflow', 'datasets', 'matplotlib'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    assert f"python pipelines/{name}.py" in ended.stdout
    assert "--seeds" in ended.stdout
    assert ended.stdout.strip().splitlines()[-1] == "[]"
    assert left(folder) == []
