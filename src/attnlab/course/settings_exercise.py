"""Exercises in which a student chooses settings: they are composed, and what they do is measured.

The file is a YAML list of overrides, as they stand on the command line of train.py.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnlab.course.sentence import Sentence
from attnlab.errors import ExperimentError
from attnlab.experiment.notebook import NotebookExperiment

Goals = Callable[[NotebookExperiment], list[Sentence]]


@dataclass(frozen=True, eq=False)
class SettingsExercise:
    """overrides: what the student's are added to. goals: those that an experiment misses."""

    overrides: tuple[str, ...]
    missed_goals: Goals


def grade_settings(exercise: SettingsExercise, overrides: Sequence[str]) -> list[Sentence]:
    """The goals that the settings miss; the problems of settings that cannot be composed."""
    with tempfile.TemporaryDirectory(prefix="attnlab-check-") as runs:
        given = [*exercise.overrides, "tracking=none", f"paths.runs={runs}", *overrides]
        try:
            experiment = NotebookExperiment.compose(given)
            return exercise.missed_goals(experiment)
        except ExperimentError as error:
            return [Sentence(problem, problem) for problem in error.problems]


# A ratio of teacher forcing that falls from nearly always to nearly never within these steps.
LAST_STEP = 600
HIGH, LOW = 0.9, 0.1
# What one toss decides for, in Korean.
_COINS = {"token": "토큰", "sequence": "문장", "batch": "배치"}


def _falling_ratio(experiment: NotebookExperiment) -> list[Sentence]:
    """Goals of lesson 11: the ratio falls from high to low, and a toss is for a whole sentence."""
    forcing = experiment.training.teacher_forcing
    ratios = [forcing.ratio_at(step) for step in range(LAST_STEP + 1)]
    missed = []
    if ratios[0] < HIGH:
        missed.append(
            Sentence(
                f"첫 스텝의 교사 강요 비율이 {ratios[0]:.2f}입니다. {HIGH} 이상이어야 합니다.",
                f"the ratio of the first step is {ratios[0]:.2f}; it must be {HIGH} or more.",
            )
        )
    if ratios[-1] > LOW:
        missed.append(
            Sentence(
                f"{LAST_STEP}스텝의 교사 강요 비율이 {ratios[-1]:.2f}입니다. "
                f"{LOW} 이하여야 합니다.",
                f"the ratio at step {LAST_STEP} is {ratios[-1]:.2f}; it must be {LOW} or less.",
            )
        )
    if forcing.coin != "sequence":
        missed.append(
            Sentence(
                f"동전을 {_COINS[forcing.coin]}마다 던집니다. 문장마다 한 번 던져야 합니다.",
                f"a coin is tossed for each {forcing.coin}; it must be one for a sentence.",
            )
        )
    return missed


def _hidden_pads(experiment: NotebookExperiment) -> list[Sentence]:
    """Goals of lesson 9: the encoder reads pads, in front, and attention gives them no weight.

    Measured with first weights on sentences of different lengths.
    """
    data = experiment.prepare()
    model: Any = experiment.module(data).model
    model.eval()
    batch = next(iter(experiment.datamodule(data).val_dataloader()))
    with torch.no_grad():
        weights = model(batch).attention_weights  # (B, T, S)
        reads = _reads_pads(model, batch.source, batch.source_mask)

    missed = []
    if not _pads_are_in_front(batch.source_mask):
        missed.append(
            Sentence(
                "입력 문장의 패딩이 문장 뒤에 있습니다. 앞에 있어야 합니다.",
                "the pads stand behind the source sentence; they must stand in front.",
            )
        )
    if not reads:
        missed.append(
            Sentence(
                "패딩을 붙여도 인코더의 은닉 상태가 그대로입니다. 패딩을 읽어야 합니다.",
                "pads do not change the encoder's states; it must read them.",
            )
        )
    on_pads = weights.masked_fill(batch.source_mask.unsqueeze(1), 0).sum(2)
    share = float(on_pads[batch.target_mask].mean())
    if share > 0:
        missed.append(
            Sentence(
                f"패딩이 가중치를 평균 {share:.2f}만큼 받습니다. 0이어야 합니다.",
                f"the pads get a weight of {share:.2f} on average; it must be 0.",
            )
        )
    return missed


def _pads_are_in_front(mask: Tensor) -> bool:
    """Whether each sentence ends at the last position."""
    return bool(mask[:, -1].all())


def _reads_pads(model: Any, source: Tensor, mask: Tensor) -> bool:
    """Whether the shortest sentence has other states, or another last one, without its pads."""
    shortest = int(mask.sum(1).argmin())
    real = mask[shortest]
    padded, _ = model.encode(source[shortest][None], real[None])
    alone, _ = model.encode(source[shortest, real][None], real[real][None])

    states_agree = torch.allclose(alone.values, padded.values[:, real], atol=1e-5)
    last_agrees = torch.allclose(alone.summary, padded.summary, atol=1e-5)
    return not (states_agree and last_agrees)


SETTINGS = {
    9: SettingsExercise(("experiment=lesson/pads_and_masks",), _hidden_pads),
    11: SettingsExercise(("experiment=lesson/unidirectional",), _falling_ratio),
}
