"""Targets of fewer than four words, of which BLEU is 0 whatever is written."""

import pytest

from attnlab.errors import ExperimentError
from attnlab.experiment.composition import compose
from attnlab.experiment.preparation import prepare

SHORT = ("data=tracked_recall", "data.num_pairs=60", "tracking=none")


def composed(tmp_path, *overrides):
    places = (f"paths.data={tmp_path / 'data'}", f"paths.runs={tmp_path / 'runs'}")
    return compose([*SHORT, *places, *overrides])


def test_checkpoints_cannot_be_chosen_by_a_bleu_that_is_always_zero(tmp_path):
    with pytest.raises(ExperimentError, match=r"^training\.monitor is bleu, which is 0") as error:
        prepare(composed(tmp_path))
    assert "data.bleu_tokenize=none" in str(error.value)


@pytest.mark.parametrize("monitor", ["exact_match", "chrf", "token_nll"])
def test_checkpoints_can_be_chosen_by_what_the_refusal_names(tmp_path, monitor):
    data = prepare(composed(tmp_path, f"training.monitor={monitor}"))
    assert sum(data.sizes.values()) == 60


def test_words_are_those_that_bleu_counts(tmp_path):
    # `k2 v5` has two words, and four characters beside the space.
    data = prepare(composed(tmp_path, "data.bleu_tokenize=char"))
    assert sum(data.sizes.values()) == 60
