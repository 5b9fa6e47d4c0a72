"""Downloaded model folders and checkpoints: no pickle runs, and only allowed classes are built."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from composed_variants import Variant, config_of
from entry_points import Command
from hostile import Payload

from attnlab.batch import Padding
from attnlab.config.binding import bind
from attnlab.errors import ExperimentError
from attnlab.model.model_folder import (
    ModelFacts,
    load_model,
    read_facts,
    save_model,
)
from attnlab.model.seq2seq import Seq2Seq
from attnlab.tasks.translation.task import Translation

FACTS = ModelFacts(
    "f" * 16, step=7, sizes={"source_vocabulary_size": 11, "target_vocabulary_size": 9}
)


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    padding = {"encoder": "pre", "decoder": "post", "attention_masked": True, "recurrence": "skip"}
    config = {
        "model": config_of(Variant("decoder", "step_then_attend")),
        "padding": {"_target_": "attnlab.batch.Padding", **padding},
    }
    model = bind(config["model"], Seq2Seq, "model")(**FACTS.sizes, padding=Padding())
    for name in Translation().shared_files:
        (tmp_path / name).write_text("{}")
    save_model(
        tmp_path / "theirs",
        model.state_dict(),
        config,
        FACTS,
        Translation().shared_paths(tmp_path),
    )
    load_model(tmp_path / "theirs")
    return tmp_path / "theirs"


def changed(theirs: Path, name: str, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads((theirs / name).read_text())
    change(content)
    (theirs / name).write_text(json.dumps(content))


def as_pickle(mark: Path, path: Path) -> None:
    path.write_bytes(pickle.dumps(Payload(mark)))


def as_torch_file(mark: Path, path: Path) -> None:
    torch.save({"weights": Payload(mark)}, path)


@pytest.mark.parametrize("write", [as_pickle, as_torch_file])
@pytest.mark.parametrize("link", [False, True])
def test_load_model_with_pickled_weights_runs_no_code(
    theirs: Path, mark: Path, write: Callable[[Path, Path], None], link: bool
) -> None:
    weights = theirs / "weights.safetensors"
    weights.unlink()
    write(mark, theirs.parent / "pickle" if link else weights)
    if link:
        weights.symlink_to(theirs.parent / "pickle")
    with pytest.raises(ExperimentError, match="must be a whole model folder, but"):
        load_model(theirs)
    assert not mark.exists()


TARGETS: dict[str, Any] = {
    "os": {"_target_": "os.mkdir", "path": "MARK"},
    "subprocess": {"_target_": "subprocess.run", "args": ["mkdir", "MARK"]},
    "eval": {"_target_": "builtins.eval", "_args_": ["__import__('os').mkdir('MARK')"]},
    "hub": {"_target_": "torch.hub.load", "repo_or_dir": "x", "model": "y"},
    "hydra": {"_target_": "hydra.utils.call", "config": {"_target_": "os.mkdir", "path": "MARK"}},
    "partial": {"_target_": "functools.partial", "_partial_": True, "_args_": ["os.mkdir", "MARK"]},
    "through us": {"_target_": "attnlab.model.model_folder.shutil.rmtree", "path": "MARK"},
    "a function of ours": {"_target_": "attnlab.model.model_folder.save_model", "folder": "MARK"},
    "ours, of another kind": {"_target_": "attnlab.training.spool.MetricSpool", "path": "MARK"},
    "a class of ours, called in part": {
        "_target_": "attnlab.model.attention.dot.DotScore",
        "_partial_": True,
    },
    "with arguments in a row": {
        "_target_": "attnlab.model.attention.bahdanau.BahdanauScore",
        "_args_": ["MARK"],
    },
    "an interpolation": {"_target_": "${oc.env:HOME}"},
}


PLACES = ("encoder", "decoder", "attention", "bridge", "readout", "padding")


@pytest.mark.parametrize(
    ("name", "place"), [*((name, "") for name in TARGETS), *(("os", place) for place in PLACES)]
)
def test_load_model_with_a_foreign_class_is_refused(
    theirs: Path, mark: Path, name: str, place: str
) -> None:
    hostile = json.loads(json.dumps(TARGETS[name]).replace("MARK", str(mark)))

    def change(config: dict[str, Any]) -> None:
        if place == "padding":
            config["padding"] = hostile
        elif place:
            config["model"][place] = hostile
        else:
            config["model"] = hostile

    changed(theirs, "config.json", change)
    with pytest.raises(
        ExperimentError,
        match=r"names classes of|is needed here|_target_ is .*must be one of at|is not a setting",
    ):
        load_model(theirs)
    assert not mark.exists()


@pytest.mark.parametrize(
    "facts",
    [
        {"identity": "../../../theirs"},
        {"identity": "f" * 16 + "\n"},
        {"identity": "/tmp"},
        {"identity": 3},
        {"source_vocabulary_size": "11"},
        {"source_vocabulary_size": -1},
        {"step": 1.5},
        {"step": True},
        {"x": "1"},
    ],
)
def test_read_facts_with_a_wrong_value_is_refused(theirs: Path, facts: dict[str, Any]) -> None:
    changed(theirs, "model.json", lambda found: found.update(facts))
    with pytest.raises(
        ExperimentError, match=rf"its model.json cannot be read \({next(iter(facts))}: "
    ):
        read_facts(theirs)


def test_load_model_with_sizes_beyond_its_weights_is_refused(theirs: Path) -> None:
    changed(theirs, "model.json", lambda found: found.update(source_vocabulary_size=2**31 - 1))
    with pytest.raises(
        ExperimentError,
        match=r"do not fit the config: .* size mismatch for encoder.embedding.weight",
    ):
        load_model(theirs)


def test_train_with_a_pickle_as_checkpoint_runs_no_code(
    command: Command, folder: Path, mark: Path, tiny: tuple[str, ...]
) -> None:
    assert command("train.py", *tiny, "chain=false").code == 0
    (point,) = (folder / "runs" / "points").iterdir()
    checkpoints = sorted(point.rglob("*.ckpt"))
    assert checkpoints
    (point / "done.json").unlink()
    for path in checkpoints:
        as_torch_file(mark, path)
    ended = command("train.py", *tiny, "chain=false")
    assert not mark.exists()
    assert "Traceback" not in ended.err
    assert "cannot be" in ended.err or "warning" in ended.err
