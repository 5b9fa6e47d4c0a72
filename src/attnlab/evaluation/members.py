"""The members of an ensemble from their folders."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from attnlab.errors import ExperimentError
from attnlab.model.model_folder import load_model
from attnlab.model.seq2seq import Seq2Seq

TOKENIZERS = ("source_tokenizer.json", "target_tokenizer.json")


def load_members(
    folder: Path, others: Sequence[Path], device: str = "cpu", allow: Collection[str] = ()
) -> list[Seq2Seq]:
    """The model of a folder, and of others that can form an ensemble with it.

    All must have the same tokenizers, for they write one sentence, and pad on the same sides, for they read one
    batch; whether a member weighs pads or reads them is its own affair.

    Raises ExperimentError where a folder is broken, or does not go with the first.
    """
    for other in others:
        for name in TOKENIZERS:
            if not _same_bytes(folder / name, other / name):
                raise ExperimentError(
                    f"paths.ensemble: the model in {other} has another {name} than the one in {folder}; give models "
                    "that were trained on the same prepared data"
                )
    models = [load_model(each, device, allow) for each in (folder, *others)]
    first = models[0].padding
    for other, model in zip(others, models[1:], strict=True):
        if (model.padding.encoder, model.padding.decoder) != (first.encoder, first.decoder):
            raise ExperimentError(
                f"paths.ensemble: the model in {other} pads source and target {model.padding.encoder} and "
                f"{model.padding.decoder}, the one in {folder} {first.encoder} and {first.decoder}; give models that "
                "pad on the same sides"
            )
    return models


def _same_bytes(one: Path, other: Path) -> bool:
    for path in (one, other):
        if not path.is_file():
            raise ExperimentError(f"{path.parent} must be a whole model folder, but {path.name} is missing")
    return one.read_bytes() == other.read_bytes()
