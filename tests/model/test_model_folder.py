"""Model folders: complete, without pickles, without foreign code.

They are readable after classes have moved.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from composed_variants import Variant, config_of
from safetensors.torch import load_file

from attnlab.batch import Padding
from attnlab.config.binding import bind
from attnlab.config.target import class_named
from attnlab.data.padding import make_batch
from attnlab.errors import ExperimentError
from attnlab.model.model_folder import (
    FORMER_CLASSES,
    ModelFacts,
    load_model,
    read_config,
    read_example,
    read_facts,
    save_model,
)
from attnlab.model.seq2seq import Seq2Seq
from attnlab.tasks.translation.task import Translation

FACTS = ModelFacts(
    "f" * 16, step=7, sizes={"source_vocabulary_size": 11, "target_vocabulary_size": 9}
)
MODEL = config_of(Variant("decoder", "step_then_attend"))
CONFIG = {
    "model": MODEL
    | {
        "encoder": MODEL["encoder"] | {"cell": "lstm"},
        "decoder": MODEL["decoder"] | {"cell": "lstm"},
        "bridge": {"_target_": "attnlab.model.bridges.CopyBridge"},
        "attention": {"_target_": "attnlab.model.attention.dot.DotScore"},
    },
    "padding": {"_target_": "attnlab.batch.Padding"}
    | dataclasses.asdict(Padding("post", "pre", False, "read")),
    "seed": 1,
}

OWN_SCORE = """
from torch import nn
import torch
from attnlab.model.attention.score import Score

class EuclideanScore(Score):
    def __init__(self, scale: float, *, query_size: int, key_size: int) -> None:
        super().__init__()
        self.scale, self.projected_key_size = scale, query_size
        self.W = nn.Linear(key_size, query_size, bias=False)

    def project_keys(self, keys):
        return self.W(keys)

    def forward(self, query, keys):
        return -self.scale * torch.cdist(query, keys)
"""


@pytest.fixture
def weights():
    torch.manual_seed(2)
    part = bind(CONFIG["model"], Seq2Seq, "model")
    return part(source_vocabulary_size=11, target_vocabulary_size=9, padding=Padding()).state_dict()


@pytest.fixture
def prepared(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for name in Translation().shared_files:
        (folder / name).write_text(f'{{"name": "{name}"}}')
    return folder


@pytest.fixture
def folder(tmp_path, weights, prepared):
    save_model(
        tmp_path / "build" / "model",
        weights,
        CONFIG,
        FACTS,
        Translation().shared_paths(prepared),
    )
    return tmp_path / "build" / "model"


def test_model_folder_holds_weights_config_facts_and_tokenizers(folder, weights):
    names = {"weights.safetensors", "config.json", "model.json", *Translation().shared_files}
    assert {path.name for path in folder.iterdir()} == names
    for name, content in (("config.json", CONFIG), ("model.json", FACTS.as_json())):
        text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        assert (folder / name).read_bytes() == text.encode(), name
    assert read_facts(folder) == FACTS
    saved = load_file(folder / "weights.safetensors")
    assert saved.keys() == weights.keys()
    assert all(torch.equal(saved[name], weights[name]) for name in weights)


def test_model_folder_keeps_an_example_of_the_data(folder, tmp_path, weights, prepared):
    assert read_example(folder) == ""
    files = Translation().shared_paths(prepared)
    save_model(tmp_path / "other", weights, CONFIG, FACTS, files, example="Ich möchte ein Bier")
    assert read_example(tmp_path / "other") == "Ich möchte ein Bier"


def test_save_model_same_model_writes_the_same_bytes(folder, tmp_path, weights, prepared):
    turned = dict(reversed(CONFIG.items()))
    save_model(
        tmp_path / "again",
        dict(reversed(weights.items())),
        turned,
        FACTS,
        Translation().shared_paths(prepared),
    )
    for path in folder.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.parametrize("kind", [str, Path])
def test_load_model_returns_it_with_its_padding_in_evaluation_mode(folder, kind):
    model = load_model(kind(folder))
    assert not model.training
    assert model.padding == model.encoder.padding == Padding("post", "pre", False, "read")


def test_save_model_failing_leaves_the_old_model(folder, weights, tmp_path):
    before = (folder / "model.json").read_bytes()
    with pytest.raises(OSError):  # noqa: PT011 (the system's words)
        save_model(
            folder,
            weights,
            CONFIG,
            FACTS,
            Translation().shared_paths(tmp_path / "nowhere"),
        )
    assert (folder / "model.json").read_bytes() == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def rewrite(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    config["model"] |= changes
    (folder / "config.json").write_text(json.dumps(config))


def with_former_names(node, names):
    """A config with the names that its classes had before."""
    if isinstance(node, dict):
        return {key: with_former_names(value, names) for key, value in node.items()}
    return names.get(node, node) if isinstance(node, str) else node


def test_model_folder_with_former_names_of_classes_loads_as_today(folder):
    today = load_model(folder).state_dict()
    former = {new: old for old, new in FORMER_CLASSES.items()}
    config = json.loads((folder / "config.json").read_text())
    older = with_former_names(config, former)
    assert older["model"]["encoder"]["_target_"] == "attnlab.model.encoder.Encoder"
    (folder / "config.json").write_text(json.dumps(older))
    assert read_config(folder) == config
    for name, tensor in load_model(folder).state_dict().items():
        assert torch.equal(tensor, today[name]), name


def test_every_former_name_is_gone_and_leads_to_a_class():
    for old, new in FORMER_CLASSES.items():
        assert class_named(new, object)
        with pytest.raises(ValueError, match=r"it cannot be imported|has no"):
            class_named(old, object)


def test_former_name_in_a_composed_config_is_refused():
    encoder = MODEL["encoder"] | {"_target_": "attnlab.model.encoder.Encoder"}
    with pytest.raises(
        ExperimentError, match=r"did you mean attnlab.model.encoders\.\w+\.\w+Encoder"
    ):
        bind(MODEL | {"encoder": encoder}, Seq2Seq, "model")


def test_model_folder_with_foreign_code_is_refused_before_its_import(folder, tmp_path, monkeypatch):
    (tmp_path / "attnlab_evil.py").write_text("raise SystemExit('this ran')")
    monkeypatch.syspath_prepend(tmp_path)
    for target, module in (
        ("torch.hub.load", "torch.hub"),
        ("attnlab_evil.Encoder", "attnlab_evil"),
        ("builtins.eval", "builtins"),
    ):
        rewrite(folder, encoder={"_target_": target, "x": 1})
        with pytest.raises(
            ExperimentError,
            match=f"model of this model folder names classes of {module}; .* allow=",
        ):
            load_model(folder, allow=("attnlab_e",))
    rewrite(folder, encoder={"_target_": "attnlab.model.encoders.recurrent.nn.Linear"})
    with pytest.raises(
        ExperimentError,
        match=r"model.encoder._target_ is .*t must be one of .*encoders.recurrent.Recurrent",
    ):
        load_model(folder)


def test_model_with_a_score_of_the_users_module_trains_is_saved_and_loads_where_allowed(
    tmp_path, prepared, pairs, monkeypatch
):
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "scores.py").write_text(OWN_SCORE)
    monkeypatch.syspath_prepend(tmp_path)
    model = MODEL | {"attention": {"_target_": "my_package.scores.EuclideanScore", "scale": 0.5}}
    sizes = {"source_vocabulary_size": 40, "target_vocabulary_size": 40}
    trained = bind(model, Seq2Seq, "model")(**sizes, padding=Padding())
    before = trained.decoder.attention.score.W.weight.clone()
    optimizer = torch.optim.SGD(trained.parameters(), 0.1)
    batch = make_batch(*pairs(), Padding())
    trained.output(trained(batch).reading).square().sum().backward()
    optimizer.step()
    assert not torch.equal(trained.decoder.attention.score.W.weight, before)

    facts = ModelFacts("f" * 16, step=1, sizes=sizes)
    save_model(
        tmp_path / "own",
        trained.state_dict(),
        CONFIG | {"model": model},
        facts,
        Translation().shared_paths(prepared),
    )
    with pytest.raises(
        ExperimentError,
        match=r"names classes of my_package.scores; .*allow=\('my_package.scores',\)",
    ):
        load_model(tmp_path / "own")
    others = {
        "search": {"_target_": "their_search.beams.Beam"},
        "data": {"_target_": "their_data.Corpus", "cleaning": {"_target_": "their_text.Tidy"}},
    }
    save_model(
        tmp_path / "more",
        trained.state_dict(),
        CONFIG | {"model": model} | others,
        facts,
        Translation().shared_paths(prepared),
    )
    with pytest.raises(
        ExperimentError,
        match=r"^model of .* classes of my_package.scores; .*"
        r"--allow my_package.scores --allow their_search.beams --allow their_text at the shell$",
    ):
        load_model(tmp_path / "more")
    # A text alone is one module.
    for allow in (("my_package",), "my_package"):
        loaded = load_model(tmp_path / "own", allow=allow)
        for name, weight in trained.state_dict().items():
            assert torch.equal(loaded.state_dict()[name], weight), name


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", "{", "take a whole model folder"),
        ("config.json", "{}", "must be a"),
        ("config.json", "[1, 2]", "is damaged"),
        ("weights.safetensors", None, "must be a whole model folder"),
        ("model.json", '{"step": 3}', r"its model.json cannot be read"),
    ],
)
def test_load_model_broken_file_is_refused_with_a_reason(file, content, message, folder):
    half = (folder / file).read_bytes()[: (folder / file).stat().st_size // 2]
    (folder / file).write_bytes(half if content is None else content.encode())
    with pytest.raises(ExperimentError, match=message):
        load_model(folder)


def test_load_model_missing_folder_or_other_sizes_are_refused_with_a_reason(folder, tmp_path):
    with pytest.raises(ExperimentError, match="must be a model folder"):
        load_model(tmp_path / "nothing")
    rewrite(folder, readout=MODEL["readout"] | {"size": 6})
    with pytest.raises(ExperimentError, match="the weights do not fit the config"):
        load_model(folder)


@pytest.mark.parametrize("which", ["target", "all"])
def test_load_model_tied_weights_stay_tied(which, tmp_path, prepared):
    """One matrix in memory before and after.

    A further training step so moves it everywhere.
    """
    size = {"embedding_size": 5}
    model = MODEL | {
        "encoder": MODEL["encoder"] | size,
        "decoder": MODEL["decoder"] | size,
        "tied_embeddings": which,
    }
    vocabulary = {"source_vocabulary_size": 9, "target_vocabulary_size": 9}
    torch.manual_seed(2)
    saved = bind(model, Seq2Seq, "model")(**vocabulary, padding=Padding())
    facts = ModelFacts("f" * 16, step=7, sizes=vocabulary)
    save_model(
        tmp_path / "tied",
        saved.state_dict(),
        CONFIG | {"model": model},
        facts,
        Translation().shared_paths(prepared),
    )
    loaded = load_model(tmp_path / "tied")
    for one in (saved, loaded):
        target = one.decoder.body.embedding.weight
        assert one.output.weight is target
        assert (one.encoder.embedding.weight is target) == (which == "all")
    assert torch.equal(loaded.output.weight, saved.output.weight)
    with torch.no_grad():
        loaded.output.weight += 1.0
    assert torch.equal(loaded.decoder.body.embedding.weight, saved.output.weight + 1.0)
