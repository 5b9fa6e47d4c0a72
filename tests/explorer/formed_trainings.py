"""Model folders with a training whose validations kept attention maps."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.evaluation.formed_attention import formed_maps
from attnlab.model.model_folder import read_facts

SENTENCES = [["나는", "학교", "에", "<eos>"], ["나는", "집", "<eos>"]]
TARGET = ["g", "o", "<eos>"]


def weights_of(sentence: int, step: int, sharpness: float = 1.0) -> np.ndarray:
    """(T, S) weights that are uniform at step 0, and sharper at each step."""
    energies = np.arange(len(SENTENCES[sentence])) * step * sharpness / 100
    row = np.exp(energies) / np.exp(energies).sum()
    return np.tile(row, (len(TARGET), 1))


def write_training(training: Path, steps: Sequence[int], sharpness: float = 1.0) -> None:
    """Maps of SENTENCES at these steps, and curves that begin at the second one."""
    for step in steps:
        maps = [
            AttentionMap(source, TARGET, weights_of(number, step, sharpness), wrong_targets=[1])
            for number, source in enumerate(SENTENCES)
        ]
        save_maps(maps, formed_maps(training, f"step_{step:06}"))
    lines = ["step,epoch,name,value"]
    for step in steps[1:]:
        lines.append(f"{step},1,validation/teacher_forced/token_nll,{100 / step}")
        lines.append(f"{step},1,validation/free_running/bleu,{step / 10}")
    (training / "history.csv").write_text("\n".join(lines) + "\n")


def write_point(runs: Path, model: Path, name: str, steps: Sequence[int], sharpness: float) -> Path:
    """A copy of a model folder beside its training, as in a runs folder."""
    copy = Path(shutil.copytree(model, runs / "points" / name / "model"))
    write_training(copy.parent / "training", steps, sharpness)
    return copy


def identity_of(model: Path) -> str:
    return read_facts(model).identity
