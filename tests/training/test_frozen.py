"""Parts of a model that are not trained."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from attnlab.config.part import Part
from attnlab.errors import ExperimentError
from attnlab.training.frozen import freeze

FROZEN = ["encoder", "decoder.attention", "output.bias"]


@pytest.mark.parametrize("accumulate", [1, 2])
def test_frozen_parts_keep_their_weights_and_others_learn(train: Any, accumulate: int) -> None:
    begun = _weights(train(max_steps=1, frozen=FROZEN, optimizer=Part(torch.optim.SGD, lr=0.0)))
    trained = _weights(train(max_steps=4, frozen=FROZEN, accumulate=accumulate, average_decay=0.5))
    for name, weight in begun.items():
        is_frozen = any(f"{name}.".startswith(f"{part}.") for part in FROZEN)
        assert torch.equal(trained[name], weight) == is_frozen, name


def _weights(run: Any) -> dict[str, torch.Tensor]:
    return dict(run.module.model.state_dict())


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["decoder.atention"],
            "must name parts of the model .*decoder.attention.*'decoder.atention",
        ),
        (["encoder.dropout"], "names 'encoder.dropout', which has no weights"),
        (["encoder", "decoder", "bridge", "output"], "so that nothing is left to train"),
    ],
)
def test_mistake_in_frozen_is_refused(tiny_model: Any, names: list[str], message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        freeze(tiny_model(), names)
