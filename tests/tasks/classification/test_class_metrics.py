"""Metrics of classified sentences, against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnlab.tasks.classification.metrics import ClassMetrics


def test_class_metrics_cover_all_sentences_since_the_last_reset() -> None:
    metrics = ClassMetrics(2)
    log_probabilities = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]).log()
    labels = torch.tensor([0, 1, 1])
    metrics.update(log_probabilities[:1], labels[:1])
    metrics.update(log_probabilities[1:], labels[1:])
    found = {name: value.item() for name, value in metrics.compute().items()}
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["nll"] == pytest.approx(-np.log([0.9, 0.8, 0.4]).mean(), rel=1e-6)
    assert metrics.confusions().tolist() == [[1, 0], [1, 1]]
    metrics.reset()
    metrics.update(log_probabilities[:1], labels[:1])
    assert metrics.compute()["accuracy"] == 1
