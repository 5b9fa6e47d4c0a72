"""An encoder of somebody's own, which is no recurrence, in everything that works on an encoder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from composed_variants import Variant, config_of, files_of
from convolutional import GatedConvolutionsEncoder, NamelessEncoder
from tiny_folders import classifier_config

from attnlab.batch import BOS, Padding
from attnlab.config.binding import bind
from attnlab.data.padding import Ragged, make_batch, pad_labelled
from attnlab.errors import ExperimentError
from attnlab.evaluation.explanations import METHODS, is_attention_explanation, relevances
from attnlab.evaluation.gradient_flow import gradient_flow
from attnlab.model.classifier import Classifier
from attnlab.model.fast import speed_up
from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.beam import BeamSearch

SETTINGS = {
    "embedding_size": 6,
    "blocks": 2,
    "kernel": 3,
    "summary_size": 5,  # another width than that of the outputs
    "dropout": 0.0,
}
ENCODER = {"_target_": "convolutional.GatedConvolutionsEncoder", **SETTINGS}
VOCABULARY = {"source_vocabulary_size": 40, "target_vocabulary_size": 40}


def translator(
    variant: Variant,
    padding: Padding = Padding(),  # noqa: B008 (frozen)
    **replaced: Any,
) -> Seq2Seq:
    torch.manual_seed(0)
    config = config_of(variant) | {"encoder": ENCODER} | replaced
    return bind(config, Seq2Seq, "model")(**VOCABULARY, padding=padding).double().eval()


@pytest.mark.parametrize("side", ["pre", "post"])
def test_vectors_of_a_sentence_ignore_its_batch_and_its_pads(side, pairs):
    torch.manual_seed(0)
    encoder = GatedConvolutionsEncoder(**SETTINGS, source_vocabulary_size=40).double().eval()
    sources, targets = pairs()
    together = make_batch(sources, targets, Padding(encoder=side))
    found = encoder(together.source, together.source_mask)
    for row, source in enumerate(sources):
        alone = make_batch([source], [[]], Padding())
        expected = encoder(alone.source, alone.source_mask)
        real = found.outputs[row][together.source_mask[row]]
        torch.testing.assert_close(real, expected.outputs[0])
        torch.testing.assert_close(found.final.hidden[:, row], expected.final.hidden[:, 0])


@pytest.mark.parametrize(
    ("bridge", "decoder"),
    [
        (bridge, decoder)
        for bridge in ("zero", "linear", "mean")
        for decoder in files_of("decoder")
        if decoder != "transformer" or bridge == "zero"  # it has no state to begin with
    ],
)
def test_every_decoder_learns_from_it_and_writes(decoder, bridge, pairs):
    context = {} if decoder != "no_attention" else {"context": "every_step"}
    variant = Variant("decoder", decoder)
    chosen = {
        "bridge": config_of(Variant("bridge", bridge))["bridge"],
        "decoder": config_of(variant)["decoder"] | context,
    }
    model = speed_up(translator(variant, Padding("pre"), **chosen)).train()
    batch = make_batch(*pairs(), model.padding)
    model.output(model(batch).reading).square().sum().backward()
    gradients = [each.grad for each in model.encoder.parameters()]
    assert sum(gradient is not None and bool(gradient.any()) for gradient in gradients) > 4

    search = BeamSearch(size=2, length_penalty=1.0, max_length=5)
    found = search(model.eval(), batch.source, batch.source_mask, with_attention=True)
    assert len(found) == len(batch.source)


def test_steps_give_the_numbers_of_the_whole_pass(pairs):
    model = translator(Variant("decoder", "no_attention"))
    batch = make_batch(*pairs(), model.padding)
    memory, state = model.encode(batch.source, batch.source_mask)
    first = torch.full((len(batch.source),), BOS)
    logits, _, _ = model.step(first, state, memory)
    torch.testing.assert_close(logits, model.output(model(batch).reading[:, 0]))


def test_every_method_explains_it(pairs):
    model = translator(Variant("decoder", "attend_then_step"))
    batch = make_batch(*pairs(), model.padding)
    found = relevances(model, batch, METHODS, steps=3)
    assert all(relevance.any() for relevance in found.values())


def test_gradient_method_is_refused_where_no_embedding_is_named(pairs):
    encoder = {"_target_": "convolutional.NamelessEncoder", "embedding_size": 6}
    model = translator(Variant("decoder", "attend_then_step"), encoder=encoder)
    assert isinstance(model.encoder, NamelessEncoder)
    batch = make_batch(*pairs(), model.padding)
    assert relevances(model, batch, ["leave_one_out"])["leave_one_out"].any()
    with pytest.raises(ValueError, match=r"names its source embedding, but NamelessEncoder has No"):
        relevances(model, batch, ["gradient"])


@pytest.mark.parametrize(
    ("encoder", "replaced", "message"),
    [
        (
            ENCODER,
            {"bridge": {"_target_": "attnlab.model.bridges.FirstBackwardBridge"}},
            "the first_backward bridge needs an encoder with a backward direction; choose "
            "model/bridge=linear",
        ),
        (
            {"_target_": "convolutional.NamelessEncoder", "embedding_size": 6},
            {"tied_embeddings": "all"},
            "needs an encoder that names its source embedding, .* choose tied_embeddings=target",
        ),
    ],
)
def test_what_it_does_not_have_is_refused_with_another_choice(encoder, replaced, message):
    variant = Variant("decoder", "attend_then_step")
    config = config_of(variant)
    wide = config["decoder"] | {"embedding_size": config["readout"]["size"]}
    with pytest.raises(ExperimentError, match=message):
        translator(variant, encoder=encoder, decoder=wide, **replaced)


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (
            ENCODER,
            "states of a recurrent encoder, got GatedConvolutionsEncoder; choose model/encoder=",
        ),
        (config_of(Variant("encoder", "gru"))["encoder"], "but this encoder has two; choose"),
    ],
    ids=["convolutional", "both ways"],
)
def test_gradient_flow_is_refused_without_a_recurrence_of_one_direction(encoder, message, pairs):
    model = translator(Variant("decoder", "attend_then_step"), encoder=encoder)
    with pytest.raises(ValueError, match=message):
        gradient_flow(model, [make_batch(*pairs(), model.padding)])


def test_classifier_over_it_decides_and_is_explained(pairs):
    torch.manual_seed(0)
    config = classifier_config() | {"encoder": ENCODER}
    sizes = {"source_vocabulary_size": 40, "num_classes": 3}
    model = bind(config, Classifier, "model")(**sizes, padding=Padding()).eval()
    sources, _ = pairs()
    rows = np.arange(len(sources))
    batch = pad_labelled(Ragged.from_rows(sources), rows % 3, rows, model.padding)
    found = is_attention_explanation(model, batch, permutations=2, steps=2)
    assert len(found["prediction"]) == len(sources)
