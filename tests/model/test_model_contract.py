"""What a model with any one choice from any group of conf/model must keep."""

from __future__ import annotations

import pytest
import torch
from composed_variants import (
    CONF,
    VARIANTS,
    Variant,
    build,
    choices_of,
    composed,
    config_of,
    sizes_of,
)
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from one_training_step import check_bfloat16

from attnlab.batch import BOS, Padding
from attnlab.data.padding import make_batch
from attnlab.model.model_folder import ModelFacts, load_model, save_model
from attnlab.tasks.translation.task import Translation

SHORT = (4, 1, 3), (2, 3, 1)  # lengths of sources and targets

every_choice = pytest.mark.parametrize("variant", VARIANTS, ids=str)


SPECIAL = [
    Variant("attention", "none"),
    Variant("decoder", "step_then_attend"),
    Variant("decoder", "no_attention"),
    Variant("encoder", "lstm"),
    Variant("encoder", "stacked"),
    Variant("encoder", "with_features"),
]
SPECIAL += [
    Variant("history", "coverage", "step_then_attend"),
    Variant("input_feeding", "attentional_hidden"),
]


@pytest.mark.parametrize("variant", SPECIAL, ids=str)
def test_variants_compose_as_hydra_composes_them(variant):
    choices = choices_of(variant)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", [f"model/{group}={name}" for group, name in choices.items()])
    assert OmegaConf.to_container(config.model, resolve=True) == composed(choices)


@pytest.mark.processor
@every_choice
def test_bfloat16_gives_finite_gradients(variant, pairs):
    check_bfloat16(build(variant, dtype=torch.float32), make_batch(*pairs(*SHORT), Padding()))


@every_choice
def test_decoding_leaves_memory_and_state_as_they_are(variant, pairs):
    model = build(variant)
    batch = make_batch(*pairs(*SHORT), Padding())
    memory, first = model.encode(batch.source, batch.source_mask)
    tensors = [
        memory.values,
        memory.keys,
        memory.summary,
        memory.mask,
        memory.positions,
        memory.lengths,
    ]
    tensors += [
        first.recurrent.hidden,
        first.recurrent.cell,
        first.position,
        first.context,
        first.fed,
    ]
    tensors += [x for head in first.past or () for x in vars(head).values()]
    tensors = [tensor for tensor in tensors if tensor is not None]
    before = [tensor.detach().clone() for tensor in tensors]
    state = first
    for t in range(3):
        _, state, _ = model.step(batch.target_input[:, t], state, memory)
    assert all(torch.equal(now, old) for now, old in zip(tensors, before, strict=True))


@every_choice
def test_nothing_is_kept_from_one_batch_to_the_next(variant, pairs):
    model = build(variant)
    batch, other = (
        make_batch(*pairs(*SHORT), Padding()),
        make_batch(*pairs((2, 9), (4, 5), seed=8), Padding()),
    )
    first = model(batch).reading.readout
    model(other)
    memory, state = model.encode(other.source, other.source_mask)
    model.step(torch.full((2,), BOS), state, memory)
    assert torch.equal(model(batch).reading.readout, first)


@every_choice
def test_saved_model_loads_unchanged(variant: Variant, pairs, tmp_path):
    model = build(variant, dtype=torch.float32)
    padding = {"_target_": "attnlab.batch.Padding", "encoder": "pre", "decoder": "post"}
    config = {"model": config_of(variant), "padding": padding}
    for file in Translation().shared_files:
        (tmp_path / file).write_text("{}")
    facts = ModelFacts(identity="0" * 16, step=3, sizes=sizes_of(variant))
    files = Translation().shared_paths(tmp_path)
    save_model(tmp_path / "model", model.state_dict(), config, facts, files)
    loaded = load_model(tmp_path / "model")
    assert not loaded.training
    batch = make_batch(*pairs(*SHORT), Padding())
    ours, theirs = model(batch), loaded(batch)
    assert torch.equal(theirs.reading.readout, ours.reading.readout)
    assert (theirs.attention_weights is None) == (ours.attention_weights is None)
    assert ours.attention_weights is None or torch.equal(
        theirs.attention_weights, ours.attention_weights
    )
