"""A classifier on a GPU answers as on a processor. Skipped where there is no GPU."""

from __future__ import annotations

import copy

import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


@pytest.fixture(autouse=True)
def plain_float32(monkeypatch):
    """A GPU's recurrences round to TF32 otherwise."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


def test_probabilities_and_weights_on_a_gpu_equal_the_processors(review_classifier):
    texts = ["good film", "bad film bad film", "good"]
    expected = list(review_classifier.stream(texts))
    review_classifier.model.to("cuda")
    found = list(review_classifier.stream(texts))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.label == theirs.label
        assert ours.probabilities == pytest.approx(theirs.probabilities, abs=1e-5)
        torch.testing.assert_close(
            torch.as_tensor(ours.attention), torch.as_tensor(theirs.attention), atol=1e-5, rtol=0
        )


def test_gradients_of_a_classifier_on_a_gpu_equal_the_processors(review_classifier):
    here = review_classifier.model.double().train()
    there = copy.deepcopy(here).to("cuda")
    source = torch.tensor([[0, 4, 5, 3], [4, 5, 6, 3]])
    for model, device in ((here, "cpu"), (there, "cuda")):
        given = source.to(device)
        model(given, given != 0).log_probabilities[:, 1].sum().backward()
    found = dict(there.named_parameters())
    for name, parameter in here.named_parameters():
        torch.testing.assert_close(found[name].grad.cpu(), parameter.grad, msg=name)
