"""Where prepared data lie: what they are made of decides, and nothing else."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from attnlab.experiment import training
from attnlab.experiment.composition import compose
from attnlab.experiment.point import TRAIN_SOURCES
from attnlab.experiment.preparation import prepared_folder


def test_data_are_prepared_anew_where_a_model_has_other_tokenizers(tmp_path: Path) -> None:
    for side in ("source", "target"):
        (tmp_path / f"{side}_tokenizer.json").write_text("{}")
    experiment = compose(["data/tokenizer=of_model", f"data.tokenizer.folder={tmp_path}"])
    before = prepared_folder(experiment)
    assert prepared_folder(experiment) == before
    (tmp_path / "target_tokenizer.json").write_text('{"version": "1.0"}')
    assert prepared_folder(experiment) != before
    after = prepared_folder(experiment)
    (tmp_path / "weights.safetensors").touch()  # no tokenizer
    assert prepared_folder(experiment) == after


def test_identity_of_a_training_counts_all_that_makes_its_weights() -> None:
    """What the task is asked for while model and module are made; a check makes nothing."""
    making = (training.make_model, training.make_module)
    asked = set()
    for function in making:
        asked |= set(re.findall(r"experiment\.task\.(\w+)", inspect.getsource(function)))
    (of_task,) = (text for text in TRAIN_SOURCES if text.startswith("task:"))
    counted = set(of_task.removeprefix("task:").split(","))
    assert asked - {"check_same_tokens"} <= counted
