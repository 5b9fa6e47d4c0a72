"""Studies: the files of pipelines/studies and the command that runs them.

The tests also run the command a second time, and with mistakes.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from entry_points import Command, succeeded
from test_chain import folder_of
from test_classification import TASK, corpus
from test_refusals import left

import attnlab.config.identity
from attnlab.config.identity import Code
from attnlab.studies.measured_rows import at_place
from attnlab.studies.measurements import AXES, MEASUREMENTS, gradients, train
from attnlab.studies.sentence_counts import SENTENCE_COUNTS
from attnlab.studies.sentence_scatter import read_covariances
from attnlab.studies.study import STUDIES, read_study

SMALL = (
    "data.num_pairs=200", "data.test_fraction=0.2", "model.encoder.embedding_size=4",
    "model.encoder.hidden_size=6", "model.decoder.hidden_size=6", "model.readout.size=6",
    "training.batching.size=32", "training.max_steps=2", "training.validate_every=2",
    "search=greedy",
)  # fmt: skip
OURS = sorted(STUDIES.rglob("*.yaml"))


@pytest.mark.parametrize("path", OURS, ids=[path.stem for path in OURS])
def test_every_experiment_of_a_study_composes(path: Path) -> None:
    study = read_study(path)
    corpora = ("multi30k", "scan", "sigmorphon", "sst2", "rt_polarity")
    data = ["data.path=unread"] if any(name in str(study.settings) for name in corpora) else []
    assert len(study.points(1, data)) == len(study.systems)


def write_study(path: Path, **changed: Any) -> None:
    study = {
        "title": "주의가 도움이 되는가",
        "text": "Sequences to copy.",
        "settings": ["data=copy", *SMALL],
        "systems": {"none": ["model/attention=none"], "general": ["model/attention=general"]},
        "measures": ["token_nll"],
        "expect": [
            {"says": "general is better", "measure": "token_nll", "more": "none", "less": "general"}
        ],
    }
    path.write_text(
        yaml.safe_dump({**study, **changed}, allow_unicode=True, sort_keys=False), encoding="utf-8"
    )


@pytest.mark.slow
def test_study_writes_what_it_found_and_trains_nothing_twice(
    command: Command, folder: Path
) -> None:
    write_study(folder / "mine.yaml")
    first = succeeded(command("replicate.py", "mine.yaml", "--seeds", "2", "--into", "first"))
    second = succeeded(command("replicate.py", "mine.yaml", "--seeds", "2", "--into", "second"))
    assert "[4/4] general, seed 2" in first.err
    assert "is finished already" not in first.err
    assert second.err.count("is finished already") == 4
    files = sorted(path.name for path in Path("first/studies/mine").iterdir())
    assert files == ["figure.png", "result.json", "rows.csv", "sentences.csv"]
    assert differing("first", "second") == []
    result = json.loads(Path("first/studies/mine/result.json").read_text(encoding="utf-8"))
    (expectation,) = result["expectations"]
    assert expectation[1] == "token NLL"
    assert expectation[3:5] == ["above 0", "Welch's t, 2 seeds, 40 sentences"]
    assert f"주의가 도움이 되는가: {result['verdict_alone']}" in first.out
    assert (result["run_seeds"], result["verdict_alone"], len(result["table"])) == (
        2,
        "fewer than 3 seeds",
        2,
    )
    assert result["registered"]["commit"] == ""
    assert not result["registered"]["before"]
    # The sentences' scatter: of exact matches, which are at 0 after two steps, and of others.
    scatter = read_covariances(Path("first/studies/mine/sentences.csv"))
    assert scatter.sentences == 40
    assert scatter.of_difference("chrf", "none", "general") is not None
    assert scatter.of_difference("chrf", "none", "none").variance == pytest.approx(0, abs=1e-12)

    shutil.copytree("first", "third")
    succeeded(command("replicate.py", "mine.yaml", "--into", "third", "--judge"))
    assert differing("first", "third") == []
    write_study(folder / "mine.yaml", first_seed=7)
    anew = command("replicate.py", "mine.yaml", "--into", "third", "--judge")
    assert anew.code == 1
    assert "their seeds begin at 1, those of the study at 7; run it anew" in anew.err
    write_study(folder / "mine.yaml", systems={"none": ["model/attention=none"], "general": []})
    anew = command("replicate.py", "mine.yaml", "--into", "third", "--judge")
    assert "they were trained with other systems, settings or seeds; run it anew" in anew.err
    write_study(
        folder / "mine.yaml",
        systems={"none": ["model/attention=none"], "general": []},
        first_seed=7,
    )
    anew = command("replicate.py", "mine.yaml", "--into", "third", "--judge")
    assert "other systems, settings or seeds; their seeds begin at 1, those of" in anew.err
    write_study(folder / "mine.yaml")
    few = command("replicate.py", "mine.yaml", "--into", "third", "--judge", "--seeds", "1")
    assert few.code == 2
    assert "--judge trains nothing: it takes no --seeds and no settings" in few.err
    Path("third/studies/mine/rows.csv").unlink()
    refused = command("replicate.py", "mine.yaml", "--into", "third", "--judge")
    assert refused.code == 1
    assert "--judge needs the rows of a study that was run" in refused.err


@pytest.mark.slow
def test_study_with_looks_trains_the_next_seeds_only_where_it_is_open(
    command: Command, folder: Path
) -> None:
    asked = {"measure": "token_nll", "more": "none", "less": "general"}
    clear = {"says": "they do not lie 9 apart", "by": -9.0, **asked}
    write_study(folder / "clear.yaml", seeds=12, looks=[6, 12], expect=[clear])
    ended = succeeded(command("replicate.py", "clear.yaml"))
    assert "6 seeds: decided at look 1 of 2" in ended.err
    assert ended.err.count("seed 6") == 2
    assert "seed 7" not in ended.err
    result = json.loads(Path("runs/studies/clear/result.json").read_text(encoding="utf-8"))
    assert (result["verdict_alone"], result["run_seeds"]) == ("holds", 6)
    assert result["look"]["why"].startswith("decided at look 1 of 2")


@pytest.mark.slow
def test_setting_is_tuned_for_each_system_with_seeds_of_its_own(
    command: Command, folder: Path
) -> None:
    rates = {"setting": "training.optimizer.lr", "values": [1e-9, 0.01]}
    tune = {**rates, "by": "token_nll", "seeds": [9]}
    write_study(folder / "tuned.yaml", tune=tune)
    succeeded(command("replicate.py", "tuned.yaml", "--seeds", "1"))
    result = json.loads(Path("runs/studies/tuned/result.json").read_text(encoding="utf-8"))
    tuned = result["tuned"]
    assert tuned["headings"] == ["system", "1e-09", "0.01", "chosen"]
    assert [row[-1] for row in tuned["table"]] == ["0.01 (an end of what was tried)"] * 2
    with Path("runs/studies/tuned/rows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["seed"] for row in rows] == ["1", "1"]
    # As the trial of another seed with the chosen rate, and not as that with the other one.
    shown = [float(row[2]) for row in tuned["table"]]
    assert [float(row["token_nll"]) for row in rows] == pytest.approx(shown, rel=0.1)


def differing(first: str, second: str) -> list[str]:
    """The files of a study that differ between two folders of pages."""
    folders = Path(first, "studies", "mine"), Path(second, "studies", "mine")
    names = [sorted(path.name for path in folder.iterdir()) for folder in folders]
    assert names[0] == names[1]
    return [
        name
        for name in names[0]
        if (folders[0] / name).read_bytes() != (folders[1] / name).read_bytes()
    ]


@pytest.mark.slow
def test_study_by_a_launcher_and_in_parts_measures_what_one_process_measures(
    command: Command, folder: Path, warm_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(warm_python))
    write_study(folder / "mine.yaml")
    study = ("replicate.py", "mine.yaml", "--seeds", "2")
    succeeded(command(*study, "--into", "alone", "paths.runs=alone"))

    part = succeeded(command(*study, "--into", "parts", "paths.runs=parts", "sweep.shard=1/2"))
    assert "2 of 4 points are not trained yet, so nothing is measured" in part.out
    assert not Path("parts/studies/mine/rows.csv").exists()
    succeeded(
        command(*study, "--into", "parts", "paths.runs=parts", "launcher=joblib", "sweep.shard=2/2")
    )
    assert rows_without_cost("parts") == rows_without_cost("alone")


def rows_without_cost(folder: str) -> list[dict[str, str]]:
    with Path(folder, "studies", "mine", "rows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4
    for row in rows:
        del row["cpu_minutes"]
    return rows


def test_gradients_before_the_training_are_those_of_the_experiments_seed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a system sets the seed itself, the study's seed draws something else."""
    monkeypatch.chdir(folder)
    lengths = ["data.min_length=5", "data.max_length=7"]
    one_way = ["model.encoder.bidirectional=false"]
    write_study(
        folder / "mine.yaml",
        settings=["data=copy", *SMALL, *lengths, *one_way],
        systems={"order": ["seed=1", "training.batching.seed=<seed>"]},
        measurement="gradients",
        measures=["log10 gradient before"],
        expect=[],
    )
    before = {}
    for point in read_study(folder / "mine.yaml").points(2, []):
        train(point)
        before[point.seed] = [row["log10 gradient before"] for row in gradients(point)]
    assert list(before) == [1, 2]
    assert before[1] == before[2]


@pytest.mark.slow
@pytest.mark.parametrize("measurement", MEASUREMENTS)
def test_measurement_gives_its_rows_of_each_model(
    command: Command, folder: Path, measurement: str
) -> None:
    systems = {"concat": ["model/attention=concat"], "bahdanau": []}
    lengths = ["data.min_length=5", "data.max_length=7", "data.test_min_length=7"]
    one_way = ["model.encoder.bidirectional=false"]
    measures = {
        "gradients": "log10 gradient before",
        "interventions": "bleu",
        "length": "bleu",
        "explanations": "aer",
    }
    measure = measures.get(measurement, "token_nll")
    settings = ["data=copy", *SMALL, *lengths, *one_way]
    if measurement == "attention_as_explanation":
        measure = "tau_gradient"
        settings = [
            *TASK,
            f"data.path={corpus(folder / 'corpus')}",
            "data.tokenizer.min_frequency=1",
        ]
    changed = {
        "settings": settings,
        "systems": systems,
        "measurement": measurement,
        "measures": [measure],
    }
    write_study(folder / "mine.yaml", **changed, expect=[])
    succeeded(command("replicate.py", "mine.yaml", "--seeds", "1"))
    with Path("runs/studies/mine/rows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    # Every test sequence has 7 symbols and <eos>: one length, 8 states.
    many = {"gradients": 8, "interventions": 4, "explanations": 6, "attention_as_explanation": 2}
    expected = many.get(measurement, 1)
    assert [row["system"].partition(":")[0] for row in rows] == ["concat"] * expected + [
        "bahdanau"
    ] * expected
    assert all(row[measure] for row in rows)
    assert all(bool(row["at"]) == (measurement in AXES) for row in rows)
    scatter = read_covariances(Path("runs/studies/mine/sentences.csv"))
    assert bool(scatter.by_measure) == (measurement in SENTENCE_COUNTS)
    for row in rows if scatter.by_measure else []:
        name = at_place(row["system"], float(row["at"])) if row["at"] else row["system"]
        assert scatter.of_mean(measure, name) is not None


@pytest.mark.slow
def test_study_leaves_the_tracked_runs_of_its_experiments_unchanged(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tracked evaluation, with the study's own search.

    The model was trained with another search.
    """
    setting = ("data=reverse", "model/attention=bahdanau", "seed=1", *SMALL)
    succeeded(command("train.py", *setting, "search=beam", "search.size=2", "tracking=none"))
    point = folder_of(folder / "runs" / "points", "done.json")
    data = folder_of(folder / "runs" / "data", "stats.json")
    tracked = ("tracking.system_metrics=false", f"paths.model={point}/model", f"paths.data={data}")
    succeeded(command("evaluate.py", *setting, *tracked))
    state = {
        path: path.read_bytes() for path in (point / "evaluations").rglob("*") if path.is_file()
    }
    assert "mlflow.json" in {path.name for path in state}
    write_study(
        folder / "mine.yaml", settings=["data=reverse", *SMALL], systems={"bahdanau": []}, expect=[]
    )

    def evaluations() -> int:
        ended = succeeded(command("replicate.py", "mine.yaml", "--seeds", "1"))
        assert "is finished already" in ended.err
        return len(list((point / "evaluated").iterdir()))

    before = len(list((point / "evaluated").iterdir()))
    assert evaluations() == evaluations() == before + 1
    assert {
        path: path.read_bytes() for path in (point / "evaluations").rglob("*") if path.is_file()
    } == state
    # Other code of the evaluation is not answered with what the code before it found.
    used_code = attnlab.config.identity.used_code

    def changed(roots: Iterable[str]) -> Code:
        code = used_code(roots)
        evaluation = (
            {"attnlab.tasks.translation.evaluation": "changed"}
            if "attnlab.tasks.translation.evaluation" in code.texts
            else {}
        )
        return Code({**code.texts, **evaluation}, code.libraries)

    monkeypatch.setattr(attnlab.config.identity, "used_code", changed)
    assert evaluations() == before + 2


MISTAKES = {
    "name": ({}, ("bottleneck",), "the study must be one of 01_bottleneck, "),
    "file": ({}, ("yours.yaml",), "the study yours.yaml cannot be read"),
    "key": (
        {"stps": 3},
        ("mine.yaml",),
        "mine.yaml: stps is not a setting; the config has: background, comparable, ",
    ),
    "measurement": (
        {"measurement": "foo"},
        ("mine.yaml",),
        "mine.yaml: measurement must be one of evaluation, ",
    ),
    "expectation": (
        {"expect": [{"says": "", "measure": "bleu", "more": "dotty", "less": "none"}]},
        ("mine.yaml",),
        "mine.yaml: expect and published must name systems (none, general), got 'dotty'",
    ),
    "key of an expectation": (
        {
            "expect": [
                {"says": "", "measure": "bleu", "more": "general", "less": "none", "withn": 1}
            ]
        },
        ("mine.yaml",),
        "mine.yaml: expect[0] must be a mapping with says, measure, more, less, ",
    ),
    "tuned on its own seeds": (
        {
            "tune": {
                "setting": "training.optimizer.lr",
                "values": [0.1, 1],
                "by": "bleu",
                "seeds": [5, 6],
            }
        },
        ("mine.yaml",),
        "mine.yaml: tune.seeds must not be seeds of the study (1 to 5), got [5]",
    ),
    "setting": ({}, ("mine.yaml", "training.max_stepz=1"), "did you mean training.max_steps?"),
    "steps": (
        {},
        ("mine.yaml", "training.max_steps=0"),
        "training.max_steps must be a whole number above 0 or null",
    ),
    "seeds": ({}, ("mine.yaml", "--seeds", "x"), "--seeds: invalid int value: 'x'"),
    "no seeds": (
        {},
        ("mine.yaml", "--seeds", "0"),
        "--seeds must be a whole number above 0, got 0",
    ),
    "no name": ({}, (), "the study must be one of 01_bottleneck, "),
}


@pytest.mark.parametrize(("changed", "arguments", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_mistake_in_a_study_is_refused_and_nothing_is_written(
    command: Command,
    folder: Path,
    changed: dict[str, Any],
    arguments: tuple[str, ...],
    sentence: str,
) -> None:
    write_study(folder / "mine.yaml", **changed)
    ended = command("replicate.py", *arguments)
    assert ended.code in (1, 2)
    assert ended.err.count(sentence) == 1, ended.err  # and not once for each experiment
    assert "Traceback" not in ended.err
    assert left(folder) == ["mine.yaml"]
