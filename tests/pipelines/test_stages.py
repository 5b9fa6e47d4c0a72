"""dvc.yaml and the examples name the sections and the code that the stages depend on.

The tests derive both from the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml
from entry_points import ROOT

from attnlab.config.identity import (
    NOT_FOLLOWED,
    PACKAGE_ROOT,
    module_file,
    target_modules,
    used_code,
)
from attnlab.experiment import sections as experiment
from attnlab.experiment.evaluation import EVALUATE_SOURCES
from attnlab.experiment.point import TRAIN_SOURCES
from attnlab.experiment.preparation import PREPARE_SOURCES
from attnlab.report.reporting import REPORT_SOURCES
from attnlab.tasks.saved import SHIPPED

STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
_EXAMPLE = yaml.safe_load((ROOT / "examples/compare_attentions/dvc.yaml").read_text())
EXAMPLE, EXAMPLE_VARS = _EXAMPLE["stages"], _EXAMPLE["vars"]
SECTIONS = {
    "prepare": experiment.PREPARE_SECTIONS,
    "train": experiment.TRAIN_SECTIONS,
    "evaluate": experiment.EVALUATE_SECTIONS,
}
SOURCES = {
    "compose": ("task:check,monitored",),
    "prepare": PREPARE_SOURCES,
    "train": TRAIN_SOURCES,
    "evaluate": EVALUATE_SOURCES,
    "report": REPORT_SOURCES,
    "compare": ("attnlab.report.compare",),
}


def code_of(stage: str) -> list[str]:
    """The code that a stage runs.

    It is its script, its function, what checks its config, the classes that conf/ offers for its
    sections, and what these import. A package stands for its files where more than two of them are
    used.
    """
    # The model that is evaluated is of the classes that its folder names.
    sections = {"compose": ("",), "evaluate": (*experiment.EVALUATE_SECTIONS, "model")}.get(
        stage, SECTIONS.get(stage, ())
    )
    choices = [
        file
        for section in sections
        for file in (ROOT / "conf" / section).rglob("*.yaml")
        # What a stage calls of a task stands in SOURCES; its class names all that the others call.
        # Hydra's sweepers and launchers run commands, and no stage.
        if file.parent.name != "task" and "hydra" not in file.relative_to(ROOT / "conf").parts
    ]
    roots = {
        module for file in choices for module in target_modules(yaml.safe_load(file.read_text()))
    }
    for task in SHIPPED:
        roots |= set(task.with_own(SOURCES[stage]))
    names = {*used_code(roots).texts, "attnlab.config.binding"}
    used = {path for name in names if (path := module_file(name.partition(":")[0])) is not None}

    places = {PACKAGE_ROOT / "experiment"}
    # A fault stands in the section of the model, though its group is another one. What it imports
    # beside what a right model does is of the training, on whose output an evaluation depends.
    if stage in ("train", "evaluate"):
        places.add(PACKAGE_ROOT / "faults")
    for file in used:
        package = PACKAGE_ROOT / file.relative_to(PACKAGE_ROOT).parts[0]
        of_package = [path for path in used if path.is_relative_to(package)]
        # A task has its report beside its training, and no stage depends on both.
        in_parts = package.name == "tasks" and stage != "compare"
        stands_for_its_files = len(of_package) > 2 and not in_parts
        places.add(package if stands_for_its_files else file)
    return without_inner(
        [f"pipelines/{stage}.py", *(str(place.relative_to(ROOT)) for place in places)]
    )


def without_inner(places: Iterable[str]) -> list[str]:
    """The places without those that lie in another one of them."""
    all_places = set(places)
    return sorted(
        place
        for place in all_places
        if not all_places & {str(parent) for parent in Path(place).parents}
    )


def code_in(deps: list[str]) -> list[str]:
    """The code among the dependencies, by its place in the main project."""
    places = [dep.removeprefix("../../") for dep in deps]
    return sorted(place for place in places if place.startswith(("src/", "pipelines/")))


def sections(stage: str) -> set[str]:
    files = (Path(dep) for dep in STAGES[stage]["deps"])
    return {file.stem for file in files if file.parent == Path("build/sections")}


@pytest.mark.parametrize("stage", SECTIONS)
def test_sections_of_a_stage_are_those_that_decide_its_output(stage: str) -> None:
    assert sections(stage) == set(SECTIONS[stage])


@pytest.mark.parametrize("stage", STAGES)
def test_code_dependencies_of_a_stage_are_what_it_imports(stage: str) -> None:
    assert code_in(STAGES[stage]["deps"]) == code_of(stage)


def test_code_dependencies_of_the_example_are_those_of_its_commands() -> None:
    of_stages = (dep for stage in ("compose", "train", "evaluate") for dep in code_of(stage))
    assert code_in(EXAMPLE["model"]["deps"]) == without_inner(of_stages)
    assert code_in(EXAMPLE["compare"]["deps"]) == code_of("compare")


def test_example_compares_all_models_of_its_matrix() -> None:
    variables = {name: value for each in EXAMPLE_VARS for name, value in each.items()}
    attentions, seeds = variables["attentions"], variables["seeds"]
    names = [f"{attention}-{seed}" for attention in attentions for seed in seeds]
    deps = [dep for dep in EXAMPLE["compare"]["deps"] if dep.startswith("build/")]
    assert deps == [f"build/{name}" for name in names]
    assert re.findall(r"\$\{build\}/(\w+-\d)", EXAMPLE["compare"]["cmd"]) == names


@pytest.mark.parametrize("stage", ["compose", "prepare", "train"])
def test_edit_of_a_plot_leaves_the_model_as_it_is(stage: str) -> None:
    deps = [Path(ROOT, dep) for dep in STAGES[stage]["deps"]]
    assert not any((PACKAGE_ROOT / "plots").is_relative_to(dep) for dep in deps)
    assert any(
        (PACKAGE_ROOT / "plots").is_relative_to(Path(ROOT, dep))
        for dep in STAGES["evaluate"]["deps"]
    )


def test_every_dependency_of_a_stage_exists() -> None:
    deps = [
        dep for stage in STAGES.values() for dep in stage["deps"] if not dep.startswith("build/")
    ]
    deps += [dep for dep in EXAMPLE["model"]["deps"] if dep.startswith("../../src/")]
    assert [dep for dep in deps if not (ROOT / dep.removeprefix("../../")).exists()] == []
    assert [name for name in NOT_FOLLOWED if module_file(name) is None] == []
