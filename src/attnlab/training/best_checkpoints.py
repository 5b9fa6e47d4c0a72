"""The checkpoints of the best validations, of which the model is made in the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytorch_lightning.callbacks import ModelCheckpoint

_PATHS = ("best_model_path", "kth_best_model_path", "last_model_path")


class BestCheckpoints(ModelCheckpoint):
    """Lightning's, but what it remembers are names in its folder, which may be moved before training goes on.

    By their whole paths it would forget all but the best, or make the model of what still lies in the old place.
    """

    def state_dict(self) -> dict[str, Any]:
        return {**_renamed(super().state_dict(), lambda path: Path(path).name), "dirpath": None}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        placed = _renamed(state_dict, lambda name: str(Path(str(self.dirpath)) / name))
        super().load_state_dict({**placed, "dirpath": self.dirpath})


def _renamed(state: dict[str, Any], rename: Callable[[str], str]) -> dict[str, Any]:
    # An empty text stands for none.
    single = {key: rename(state[key]) if state[key] else "" for key in _PATHS}
    return {**state, **single, "best_k_models": {rename(path): score for path, score in state["best_k_models"].items()}}
