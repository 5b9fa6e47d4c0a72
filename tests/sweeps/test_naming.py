"""What points are called."""

from __future__ import annotations

import pytest

from attnlab.sweeps.naming import choices_of, name_of, short_key


@pytest.mark.parametrize(
    ("choices", "name"),
    [
        ({"model/attention": "bahdanau", "seed": "2"}, "bahdanau · seed 2"),
        ({"model/attention": "none"}, "no attention"),
        ({"search.size": "5"}, "search size 5"),
        ({"training.teacher_forcing.ratio": "0.5"}, "teacher forcing ratio 0.5"),
        ({"training.optimizer.learning_rate": "0.00012345678901"}, "optimizer learning rate 0.0001235"),
        ({"data.path": "/corpora/multi30k"}, "multi30k"),
        ({"model.encoder.bidirectional": "false"}, "encoder bidirectional false"),
        ({"data.languages": "[de,ko]"}, "languages [de,ko]"),
        ({}, "as given"),
    ],
)
def test_a_point_is_called_by_what_varies(choices, name):
    assert name_of(choices) == name


def test_choices_are_those_that_vary():
    overrides = ["model/attention=dot", "+training.more='a \\'b\\''", "seed=3", "data.path=x=y"]
    assert choices_of(overrides, ["seed", "training.more", "data.path"]) == {
        "seed": "3",
        "training.more": "a 'b'",
        "data.path": "x=y",
    }


def test_short_keys():
    assert [short_key(key) for key in ("model/attention", "training.optimizer.learning_rate", "seed")] == [
        "attention",
        "learning_rate",
        "seed",
    ]
