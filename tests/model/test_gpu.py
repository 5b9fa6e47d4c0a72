"""A model computes on a GPU what it computes on a processor.

Skipped where there is no GPU. Sizes are small and numbers are 64 bits wide, so that what differs
is a fault and not a rounding.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from composed_variants import VARIANTS, Variant, build
from torch import Tensor
from without_draws import without_draws

from attnlab.batch import Batch, Padding
from attnlab.data.padding import make_batch
from attnlab.errors import ExperimentError
from attnlab.model.fast import speed_up
from attnlab.model.seq2seq import Seq2Seq
from attnlab.model.unrolled import Unrolled
from attnlab.search.beam import BeamSearch
from attnlab.search.greedy import GreedySearch
from attnlab.training.graphs import GraphedPasses, lengthened

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

LENGTHS = (4, 1, 3), (2, 3, 1)  # of sources and targets
SEARCHES = {
    "greedy": GreedySearch(6, 1.5, min_length=1),
    "beam": BeamSearch(3, 0.6, 6, 1.5, min_length=1, n_best=3),
}
every_choice = pytest.mark.parametrize("variant", VARIANTS, ids=str)


def outputs_and_gradients(
    model: Seq2Seq, batch: Batch, pass_over: Callable[[Batch], Unrolled] | None = None
) -> dict[str, Tensor]:
    """What a training step reads of a model: readouts, weights, history loss, and all gradients.

    pass_over: in place of the model's own pass.
    """
    model.zero_grad()
    output = (pass_over or model)(batch)
    logits = model.output(output.reading)
    loss = logits.square().sum()
    read = {"readout": output.reading.readout, "logits": logits}
    if output.history_loss is not None:
        loss = loss + output.history_loss
        read["history_loss"] = output.history_loss
    loss.backward()
    if output.attention_weights is not None:
        read["attention_weights"] = output.attention_weights
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            read[name] = parameter.grad
    return {name: tensor.detach().cpu() for name, tensor in read.items()}


@pytest.mark.parametrize("fast", [False, True], ids=["formulas", "fast"])
@every_choice
def test_training_step_on_a_gpu_equals_the_processors(variant: Variant, fast: bool, pairs):
    # A GPU draws other numbers than a processor.
    on_processor = without_draws(build(variant).train())
    on_gpu = copy.deepcopy(on_processor).to("cuda")
    if fast:
        speed_up(on_processor)
        speed_up(on_gpu)
    batch = make_batch(*pairs(*LENGTHS), Padding())
    expected = outputs_and_gradients(on_processor, batch)
    found = outputs_and_gradients(on_gpu, batch.to("cuda"))
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=1e-9, atol=1e-10, msg=name)


@every_choice
def test_graph_of_a_pass_computes_what_the_model_does(variant: Variant, pairs):
    model = build(variant)
    if model.output.reads_each_value:
        pytest.skip("refused when an experiment is composed")
    model = speed_up(without_draws(model.train()).to("cuda"))
    passes = GraphedPasses(model)
    if variant.name == "with_features":
        batch = make_batch(*pairs(*LENGTHS), Padding()).to("cuda")
        passes(batch)
        with pytest.raises(ExperimentError, match=r"hardware\.graphs must be false"):
            passes(batch)
        return
    # Other lengths and another order, in the same shape
    for lengths in (LENGTHS, LENGTHS, ((2, 3, 4), (1, 2, 3)), LENGTHS):
        batch = lengthened(make_batch(*pairs(*lengths), Padding()).to("cuda"), Padding())
        expected = outputs_and_gradients(model, batch)
        found = outputs_and_gradients(model, batch, passes)
        assert found.keys() == expected.keys()
        for name, tensor in expected.items():
            torch.testing.assert_close(found[name], tensor, rtol=1e-9, atol=1e-10, msg=name)
    assert passes.graphs == 1


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
@every_choice
def test_search_on_a_gpu_finds_the_processors_tokens(variant: Variant, search, pairs):
    model = build(variant)
    batch = make_batch(*pairs(*LENGTHS), Padding())
    expected = search(model, batch.source, batch.source_mask)
    model.to("cuda")
    found = search(model, batch.source.to("cuda"), batch.source_mask.to("cuda"))
    for found_row, expected_row in zip(found, expected, strict=True):
        assert [h.tokens for h in found_row] == [h.tokens for h in expected_row]


@every_choice
def test_bfloat16_on_a_gpu_gives_finite_gradients(variant: Variant, pairs):
    model = build(variant, dtype=torch.float32).train().to("cuda")
    batch = make_batch(*pairs(*LENGTHS), Padding()).to("cuda")
    with torch.autocast("cuda", torch.bfloat16):
        output = model(batch)
        loss = output.reading.readout.float().square().sum()
    loss.backward()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert gradients
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
