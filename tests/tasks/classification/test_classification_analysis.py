"""The analysis of a classifier, held against the Python API."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attnlab.model.attention.intervention import Intervention
from attnlab.tasks.classification.analysis import classify


@pytest.mark.parametrize(
    "intervene", [Intervention(), Intervention("permuted", hide=[1]), Intervention(temperature=9.0)]
)
def test_classify_gives_the_values_of_the_api(review_classifier, intervene):
    shown = classify(review_classifier, "good film", intervene)
    found = review_classifier("good film", intervene=intervene)
    json.dumps(shown, allow_nan=False)
    assert (shown["source"], shown["label"], shown["probabilities"]) == (
        found.tokens,
        found.label,
        found.probabilities,
    )
    np.testing.assert_allclose(shown["attention"], found.attention, atol=1e-6)
