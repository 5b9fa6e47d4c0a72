"""A model folder: complete, without pickles, and read with the same care as any config."""

from __future__ import annotations

import json

import pytest
import torch
from composed_variants import Variant, config_of
from safetensors.torch import load_file

from attnlab.batch import Padding
from attnlab.config.binding import bind
from attnlab.errors import ExperimentError
from attnlab.model.model_folder import FROM_PREPARED_DATA, ModelFacts, load_model, read_facts, save_model
from attnlab.model.seq2seq import Seq2Seq

FACTS = ModelFacts(source_vocabulary_size=11, target_vocabulary_size=9, identity="f" * 16, step=7)
MODEL = config_of(Variant("decoder", "step_then_attend"))
CONFIG = {
    "model": MODEL
    | {
        "encoder": MODEL["encoder"] | {"cell": "lstm"},
        "decoder": MODEL["decoder"] | {"cell": "lstm"},
        "bridge": {"_target_": "attnlab.model.bridge.copy.CopyBridge"},
        "attention": {"_target_": "attnlab.model.attention.dot.DotScore"},
    },
    "padding": {
        "_target_": "attnlab.batch.Padding",
        "encoder": "post",
        "decoder": "pre",
        "attention_masked": False,
        "recurrence": "read",
    },
    "seed": 1,
}


@pytest.fixture
def weights():
    torch.manual_seed(2)
    part = bind(CONFIG["model"], Seq2Seq, "model")
    return part(source_vocabulary_size=11, target_vocabulary_size=9, padding=Padding()).state_dict()


@pytest.fixture
def prepared(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for name in FROM_PREPARED_DATA:
        (folder / name).write_text(f'{{"name": "{name}"}}')
    return folder


@pytest.fixture
def folder(tmp_path, weights, prepared):
    save_model(tmp_path / "build" / "model", weights, CONFIG, FACTS, prepared)
    return tmp_path / "build" / "model"


def test_model_folder_holds_weights_config_facts_and_tokenizers(folder, weights):
    assert {path.name for path in folder.iterdir()} == {
        "weights.safetensors",
        "config.json",
        "model.json",
        *FROM_PREPARED_DATA,
    }
    assert read_facts(folder) == FACTS
    assert json.loads((folder / "config.json").read_text()) == CONFIG
    saved = load_file(folder / "weights.safetensors")
    assert saved.keys() == weights.keys()
    assert all(torch.equal(saved[name], weights[name]) for name in weights)


def test_the_same_model_gives_the_same_bytes(folder, tmp_path, weights, prepared):
    turned = dict(reversed(CONFIG.items()))
    save_model(tmp_path / "again", dict(reversed(weights.items())), turned, FACTS, prepared)
    for path in folder.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes(), path.name


def test_it_loads_with_its_padding_and_ready_to_use(folder):
    model = load_model(folder)
    assert not model.training
    assert model.padding == model.encoder.padding == Padding("post", "pre", False, "read")


def test_a_failed_save_leaves_the_old_model(folder, weights, tmp_path):
    before = (folder / "model.json").read_bytes()
    with pytest.raises(OSError):  # noqa: PT011 (the system's words)
        save_model(folder, weights, CONFIG, FACTS, tmp_path / "nowhere")
    assert (folder / "model.json").read_bytes() == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def rewrite(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    config["model"] |= changes
    (folder / "config.json").write_text(json.dumps(config))


def test_a_folder_of_foreign_code_runs_none(folder):
    rewrite(folder, encoder={"_target_": "torch.hub.load", "repo_or_dir": "x"})
    with pytest.raises(ExperimentError, match=r"model.encoder._target_ must be one of attnlab.model.encoder.Encoder"):
        load_model(folder)


def test_broken_model_folders_are_refused_with_a_message(folder, tmp_path):
    with pytest.raises(ExperimentError, match="must be a model folder"):
        load_model(tmp_path / "nothing")

    rewrite(folder, readout=MODEL["readout"] | {"size": 6})
    with pytest.raises(ExperimentError, match="the weights do not fit the config"):
        load_model(folder)

    (folder / "config.json").write_text("{")
    with pytest.raises(ExperimentError, match="must be a whole model folder"):
        load_model(folder)
    (folder / "config.json").write_text("{}")
    with pytest.raises(ExperimentError, match="must be a"):
        load_model(folder)

    whole = (folder / "weights.safetensors").read_bytes()
    (folder / "weights.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ExperimentError, match="must be a whole model folder"):
        load_model(folder)
    (folder / "model.json").write_text('{"step": 3}')
    with pytest.raises(ExperimentError, match=r"its model.json cannot be read"):
        load_model(folder)


def test_model_folder_whose_config_is_no_mapping_is_refused(folder):
    (folder / "config.json").write_text("[1, 2]")
    with pytest.raises(ExperimentError):
        load_model(folder)


@pytest.mark.parametrize("which", ["target", "all"])
def test_tied_weights_stay_tied(which, tmp_path, prepared):
    """One matrix in memory before and after, so that a further training step moves it everywhere."""
    size = {"embedding_size": 5}
    model = MODEL | {"encoder": MODEL["encoder"] | size, "decoder": MODEL["decoder"] | size, "tied_embeddings": which}
    vocabulary = {"source_vocabulary_size": 9, "target_vocabulary_size": 9}
    torch.manual_seed(2)
    saved = bind(model, Seq2Seq, "model")(**vocabulary, padding=Padding())
    facts = ModelFacts(identity="f" * 16, step=7, **vocabulary)
    save_model(tmp_path / "tied", saved.state_dict(), CONFIG | {"model": model}, facts, prepared)
    loaded = load_model(tmp_path / "tied")
    for one in (saved, loaded):
        target = one.decoder.body.embedding.weight
        assert one.output.weight is target
        assert (one.encoder.embedding.weight is target) == (which == "all")
    assert torch.equal(loaded.output.weight, saved.output.weight)
    with torch.no_grad():
        loaded.output.weight += 1.0
    assert torch.equal(loaded.decoder.body.embedding.weight, saved.output.weight + 1.0)
