"""Mistakes of users in configs and data files: each ends in a sentence with place and remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bad_configs import Fault, bad_configs, groups
from entry_points import TINY, Command

from attnlab.errors import ExperimentError
from attnlab.experiment.composition import check

# The wrong values are many. The first part has those of the default config.
PARTS = 4


def unlike(problems: list[str], faults: list[Fault]) -> list[str]:
    """What is wrong with the sentences for these faults.

    Empty where each fault has one, and there are no more.
    """
    wrong, left = [], list(problems)
    for fault in faults:
        found = [
            problem for problem in left if problem.startswith((f"{fault.path} ", f"{fault.path}:"))
        ]
        if len(found) != 1:
            wrong.append(f"{fault.path}={fault.value!r} has {len(found)} sentences")
        for problem in found:
            left.remove(problem)
            wrong += [
                f"{text!r} is missing in: {problem}" for text in fault.said if text not in problem
            ]
    return wrong + [f"one sentence too many: {problem}" for problem in left]


@pytest.mark.timeout(1_800)  # many configs, and a busy machine takes long for each
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS))]
)
def test_config_with_wrong_values_is_refused_with_a_sentence_for_each(part: int) -> None:
    number, wrong = 0, []
    for config, faults in bad_configs(part, PARTS):
        number += len(faults)
        problems: list[str] = []
        try:
            check(config)
        except ExperimentError as error:
            problems = error.problems
        wrong += unlike(problems, faults)
    assert wrong == [], "\n" + "\n".join(wrong)
    assert number > 300 / PARTS


def refused(command: Command, *arguments: str) -> str:
    """The sentences of a command that must end with code 1, a sentence a line and nothing else."""
    ended = command(*arguments)
    assert ended.code == 1, (arguments, ended)
    lines = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert lines, ended.err
    assert "Traceback" not in ended.err + ended.out
    return "\n".join(lines)


@pytest.mark.parametrize(("group", "choices"), groups())
def test_unknown_choice_is_refused_with_the_choices_of_its_group(
    group: str, choices: list[str], command: Command
) -> None:
    said = refused(command, "train.py", f"{group}=nonsense")
    assert f"{group} must be one of {', '.join(choices)}" in said
    assert "'nonsense'" in said


PAIRS = "".join(
    json.dumps({"source": f"ein Hund {i}", "target": f"a dog {i}"}) + "\n" for i in range(30)
)
HUB = ("data=hub", "data.splits.train=0.6", "data.splits.validation=0.2", "data.splits.test=0.2")
FILES: dict[str, tuple[dict[str, str | bytes], tuple[str, ...], tuple[str, ...]]] = {
    "wrong path": ({}, (*HUB, "data.path=nowhere"), ("nowhere",)),
    "empty file": ({"a.jsonl": ""}, (*HUB, "data.path=a.jsonl"), ("a.jsonl",)),
    "header alone": ({"a.csv": "source,target\n"}, (*HUB, "data.path=a.csv"), ("a.csv",)),
    "torn row": (
        {"a.jsonl": PAIRS + '{"source": "a", \n'},
        (*HUB, "data.path=a.jsonl"),
        ("a.jsonl", "line 31"),
    ),
    "semicolons": (
        {"a.csv": "source;target\n" + "a;b\n" * 30},
        (*HUB, "data.path=a.csv"),
        ("data.source",),
    ),
    "lists for text": (
        {"a.jsonl": '{"source": [1], "target": "a"}\n' * 30},
        (*HUB, "data.path=a.jsonl"),
        ("source",),
    ),
    "empty texts": (
        {"a.jsonl": '{"source": "", "target": "a"}\n' * 30},
        (*HUB, "data.path=a.jsonl"),
        ("data",),
    ),
    "too few rows": ({"a.jsonl": PAIRS[:40] + "\n"}, (*HUB, "data.path=a.jsonl"), ("data",)),
    "fractions above 1": (
        {"a.jsonl": PAIRS},
        (*HUB, "data.path=a.jsonl", "data.splits.test=0.9"),
        ("data.splits",),
    ),
    "nothing short enough": (
        {"a.jsonl": PAIRS},
        (*HUB, "data.path=a.jsonl", "data.cleaning.max_source_length=1"),
        ("data.cleaning",),
    ),
    "one side alone": (
        {"data/train.de": "a\n" * 30},
        (*HUB, "data.path=data", "data.source=de", "data.target=en"),
        ("data",),
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_data_with_a_mistake_are_refused_with_the_place(
    name: str, command: Command, folder: Path
) -> None:
    files, arguments, said = FILES[name]
    for path, content in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    sentences = refused(command, "prepare.py", *arguments, "paths.data=prepared")
    assert [text for text in said if text not in sentences] == [], sentences
    assert not (folder / "prepared").exists()


STAGES = {
    "train.py": (("chain=false", "paths.data=nowhere"), "nowhere"),
    "evaluate.py": (("paths.model=nowhere", "paths.data=nowhere"), "nowhere"),
    "evaluate.py ": (("paths.model=nowhere",), "paths.data"),
    "report.py": (("paths.evaluation=nowhere",), "paths.training"),
}


@pytest.mark.parametrize("script", STAGES)
def test_stage_without_its_input_is_refused_with_the_path(script: str, command: Command) -> None:
    arguments, said = STAGES[script]
    assert said in refused(command, script.strip(), *TINY, "tracking=none", *arguments)
