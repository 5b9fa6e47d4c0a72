"""A tiny classifier whose analysis is compared."""

from __future__ import annotations

import pytest

from attnlab.tasks.classification.classifier import SentenceClassifier
from explored_models import build_review_classifier


@pytest.fixture
def review_classifier() -> SentenceClassifier:
    return build_review_classifier()
