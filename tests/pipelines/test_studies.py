"""The pictures' own commands: files that hold what was measured, the same a second time, and sentences for mistakes."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from entry_points import Command, succeeded
from test_chain import folder_of
from test_refusals import left

import attnlab.config.identity
from attnlab.config.identity import Code
from attnlab.stages.alignments import markdown

SMALL = (
    "data.num_pairs=200", "data.test_fraction=0.2", "model.encoder.embedding_size=4", "model.encoder.hidden_size=6",
    "model.decoder.hidden_size=6", "model.readout.size=6", "training.batching.size=32",
)  # fmt: skip
ATTENTIONS = ("without attention", "with attention")
STUDIES = {
    "vanishing_gradients": ("--steps", "2", "--length", "7", "data.min_length=5"),
    "length_curve": ("--steps", "2", "--length", "6", "--test-length", "9"),
    "alignments": ("--steps", "2", "--scores", "bahdanau,location", "--decoders", "attend_then_step"),
    "interventions": ("--steps", "2", "--data", "copy", "--scores", "bahdanau,location"),
}
FACTS = {
    "vanishing_gradients": {"length": 7},
    "length_curve": {"length": 6, "test_length": 9},
    "alignments": {"data": "reverse", "scores": ["bahdanau", "location"], "decoders": ["attend_then_step"]},
    "interventions": {"data": "copy", "scores": ["bahdanau", "location"]},
}
TABLES = {"alignments": ["alignments.md"], "interventions": ["interventions.md"]}


def run_twice(command: Command, name: str, seeds: str) -> tuple[list[dict[str, str]], str]:
    """The table and what was printed the first time; the second time trains nothing and writes the same bytes."""
    arguments = (f"studies/{name}.py", "--seeds", seeds, *STUDIES[name], *SMALL)
    files = sorted([f"{name}.csv", f"{name}.json", f"{name}.png", *TABLES.get(name, [])])
    first, second = (command(*arguments, "--into", into) for into in ("first", "second"))
    assert first.code == second.code == 0, first.err + second.err
    printed = [Path("first", file).read_text(encoding="utf-8") for file in TABLES.get(name, [])]
    assert first.out.endswith("".join([*printed, f"first/{name}.png\n"]))
    assert "is finished already" not in first.err
    assert "is finished already" in second.err
    assert sorted(path.name for path in Path("first").iterdir()) == files
    for file in files:
        assert Path("first", file).read_bytes() == Path("second", file).read_bytes()
    facts = json.loads(Path("first", f"{name}.json").read_text(encoding="utf-8"))
    assert facts.pop("machine")["threads"]
    assert facts.pop("versions")["torch"]
    assert facts == {
        "seeds": [int(seed) for seed in seeds.split(",")],
        "steps": 2,
        "settings": [text for text in (*STUDIES[name], *SMALL) if "=" in text],
        **FACTS[name],
    }
    with Path("first", f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file)), first.err


@pytest.mark.slow
def test_vanishing_gradients_study_writes_a_table_and_repeats_it(command: Command, folder: Path) -> None:
    rows, printed = run_twice(command, "vanishing_gradients", seeds="4")
    assert "[4/4] LSTM, with attention, seed 4" in printed
    # Every test sequence has 7 symbols and <eos>: 8 states, for 4 models, twice.
    assert len(rows) == 8 * 4 * 2
    assert {row["sentences"] for row in rows} == {"40"}
    assert {row["when"] for row in rows} == {"at initialisation", "after 2 steps"}
    assert all(float(row["state_gradient"]) > 0 for row in rows)
    first = [row for row in rows if row["when"] == "at initialisation"]
    start = {(row["model"], row["distance"]): float(row["state_gradient"]) for row in first}
    lost, kept = (start[f"RNN, {which}", "0"] / start[f"RNN, {which}", "7"] for which in ATTENTIONS)
    assert lost > 100 * kept


@pytest.mark.slow
def test_length_curve_study_writes_a_table_and_repeats_it(command: Command, folder: Path) -> None:
    rows, _ = run_twice(command, "length_curve", seeds="1,2")
    assert [int(row["length"]) for row in rows] == [*range(4, 10)] * 4
    assert sum(int(row["sentences"]) for row in rows) == 4 * 40
    assert all(0 <= float(row["bleu"]) <= 100 and 0 <= float(row["exact_match"]) <= 1 for row in rows)


@pytest.mark.slow
def test_alignments_study_writes_a_table_and_repeats_it(command: Command, folder: Path) -> None:
    rows, _ = run_twice(command, "alignments", seeds="1,2")
    assert [(row["score"], row["decoder"], row["seed"]) for row in rows] == [
        (score, "attend_then_step", seed) for score in ("bahdanau", "location") for seed in "12"
    ]
    for row in rows:
        assert 0 <= float(row["exact_match"]) <= 1
        assert 0 <= float(row["aer"]) <= 1
        assert sum(found["tokens"] for found in json.loads(row["offsets"])) > 0


@pytest.mark.slow
def test_interventions_study_writes_a_table_and_repeats_it(command: Command, folder: Path) -> None:
    rows, _ = run_twice(command, "interventions", seeds="1,2")
    assert [(row["score"], row["seed"], row["attention"]) for row in rows] == [
        (score, seed, change)
        for score in ("bahdanau", "location")
        for seed in "12"
        for change in ("as trained", "uniform", "permuted", "hidden")
    ]
    assert {row["sentences"] for row in rows} == {"40"}
    assert all(0 <= float(row["bleu"]) <= 100 and 0 <= float(row["exact_match"]) <= 1 for row in rows)


@pytest.mark.slow
def test_study_leaves_the_tracked_runs_of_its_experiments_unchanged(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tracked evaluation, with the study's own search, of a model that was trained with another."""
    setting = ("data=reverse", "model/attention=bahdanau", "training.max_steps=2", "seed=1", *SMALL)
    succeeded(command("train.py", *setting, "search.size=2", "tracking=none"))
    point = folder_of(folder / "runs" / "points", "done.json")
    data = folder_of(folder / "runs" / "data", "stats.json")
    tracked = ("search=greedy", "tracking.system_metrics=false", f"paths.model={point}/model", f"paths.data={data}")
    succeeded(command("evaluate.py", *setting, *tracked))
    state = {path: path.read_bytes() for path in (point / "evaluations").rglob("*") if path.is_file()}
    assert "mlflow.json" in {path.name for path in state}
    study = ("--seeds", "1", "--steps", "2", "--scores", "bahdanau", "--decoders", "attend_then_step", *SMALL)

    def evaluations() -> int:
        ended = succeeded(command("studies/alignments.py", *study))
        assert "is finished already" in ended.err
        return len(list((point / "evaluated").iterdir()))

    before = len(list((point / "evaluated").iterdir()))
    assert evaluations() == evaluations() == before + 1
    assert {path: path.read_bytes() for path in (point / "evaluations").rglob("*") if path.is_file()} == state
    # Other code of the evaluation is not answered with what the code before it found.
    used_code = attnlab.config.identity.used_code

    def changed(roots: Iterable[str]) -> Code:
        code = used_code(roots)
        evaluation = {"attnlab.evaluation.evaluate": "changed"} if "attnlab.evaluation.evaluate" in code.texts else {}
        return Code({**code.texts, **evaluation}, code.libraries)

    monkeypatch.setattr(attnlab.config.identity, "used_code", changed)
    assert evaluations() == before + 2


def found(*offsets: tuple[int, int], exact_match: float = 0.5, aer: float = 0.25) -> dict[str, Any]:
    rows = [{"offset": offset, "tokens": tokens} for offset, tokens in offsets]
    return {"offsets": rows, "exact_match": exact_match, "aer": aer}


def test_alignments_table_has_means_ranges_and_the_most_frequent_offset() -> None:
    table = markdown(
        {
            ("dot", "attend_then_step"): [found((0, 1), (1, 3)), found((1, 4), exact_match=1.0)],
            ("location", "step_then_attend"): [found((0, 2))],
        }
    )
    assert table.splitlines()[2:] == [
        "| dot | previous state asks | 1 of 2 | 0.750 (0.500–1.000) | 0.250 | +1 (88 %) |",
        "| location | current state asks | 0 of 1 | 0.500 | 0.250 | +0 (100 %) |",
    ]


MISTAKES = {
    "seeds": ("alignments", ("--seeds", "1,x"), "--seeds: invalid numbers value: '1,x'"),
    "option": ("length_curve", ("--step", "3"), "unrecognized arguments: --step"),
    "data": ("alignments", ("--data", "wmt14"), "--data: invalid choice: 'wmt14'"),
    "score": ("alignments", ("--scores", "dot,foo"), "model/attention must be one of "),
    "steps": ("vanishing_gradients", ("--steps", "0"), "training.max_steps must be a whole number above 0 or null"),
    "length": ("length_curve", ("data.min_length=50",), "data.min_length must be at most max_length ("),
    "setting": ("alignments", ("training.max_stepz=1",), "did you mean training.max_steps?"),
}


@pytest.mark.parametrize(("name", "arguments", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_wrong_argument_of_a_study_is_refused_and_nothing_is_written(
    command: Command, folder: Path, name: str, arguments: tuple[str, ...], sentence: str
) -> None:
    ended = command(f"studies/{name}.py", *arguments)
    assert ended.code in (1, 2)
    assert ended.err.count(sentence) == 1  # and not once for each experiment
    assert "Traceback" not in ended.err
    assert left(folder) == []
