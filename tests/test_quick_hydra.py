"""The tests' own composition gives what Hydra gives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from omegaconf import OmegaConf

from attnlab.errors import ExperimentError
from attnlab.experiment.hydra_config import compose_config

OVERRIDES = (
    [],
    ["task=classification"],
    ["experiment=lesson/bahdanau", "data=copy", "seed=3"],
    ["experiment=luong2015_concat", "model/normaliser=sparsemax"],
    ["model/attention=nonsense"],
    ["hydra.mode=MULTIRUN", "hydra/launcher=joblib"],
)


def composed() -> list[str]:
    """Each composed config as text, or why it is refused."""
    texts = []
    for overrides in OVERRIDES:
        try:
            texts.append(OmegaConf.to_yaml(compose_config(overrides)))
        except ExperimentError as error:
            texts.append(str(error))
    return texts


def test_config_is_composed_as_by_a_new_interpreter() -> None:
    folder = str(Path(__file__).parent)
    program = (
        f"import json, sys; sys.path.insert(0, {folder!r}); "
        "import test_quick_hydra; print(json.dumps(test_quick_hydra.composed()))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    expected = json.loads(ended.stdout)
    assert composed() == expected
    assert composed() == expected  # from files that were read before
    assert "mode: MULTIRUN" in expected[-1]
