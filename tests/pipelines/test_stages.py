"""What dvc.yaml says of the stages is what the code says."""

from __future__ import annotations

import pytest
import yaml
from entry_points import ROOT

from attnlab.experiment import experiment

STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
SECTIONS = {
    "prepare": experiment.PREPARE_SECTIONS,
    "train": experiment.TRAIN_SECTIONS,
    "evaluate": experiment.EVALUATE_SECTIONS,
}
SOURCES = {"prepare": experiment.PREPARE_SOURCES, "train": experiment.TRAIN_SOURCES}


def sections(stage: str) -> set[str]:
    resolved, digests = STAGES[stage]["params"]
    assert resolved["build/resolved.yaml"] == digests["build/digests.yaml"]
    return set(resolved["build/resolved.yaml"])


@pytest.mark.parametrize("stage", SECTIONS)
def test_params_are_the_sections_of_the_stage(stage: str) -> None:
    assert sections(stage) == set(SECTIONS[stage])


@pytest.mark.parametrize("stage", SOURCES)
def test_deps_name_the_sources_of_the_stage(stage: str) -> None:
    needed = {f"src/attnlab/{place}" for place in SOURCES[stage]}
    assert needed <= set(STAGES[stage]["deps"])


@pytest.mark.parametrize("stage", STAGES)
def test_deps_exist_and_name_the_script(stage: str) -> None:
    deps = STAGES[stage]["deps"]
    assert f"pipelines/{stage}.py" in deps
    missing = [dep for dep in deps if not dep.startswith("build/") and not (ROOT / dep).exists()]
    assert missing == []


def test_compose_depends_on_what_it_imports() -> None:
    imported = {"choices", "composed", "experiment", "hydra_node", "launch", "override_problems"}
    imported |= {"task", "translation", "classification"}
    assert {f"src/attnlab/experiment/{name}.py" for name in imported} <= set(STAGES["compose"]["deps"])
