"""params.yaml -> build/resolved.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest
from entry_points import Command
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf
from test_refusals import left, refused

from attnlab.stages.compose import _as_override, compose

VALUES = [
    "bahdanau", "12", "true", "null", "", "a b", "it's", 'say "so"', "back\\slash", "end\\", "x\\'y",
    "한글 폴더/데이터", "a,b", "[x]", "{y: 1}", "k=v", "line\nbreak", "${oc.env:HOME}", "1e5",
    12, -3, 0.5, 1e-05, True, None, ["a", "b c", None], [1, [2, "x"]], [], {"train": 0.8, "a b": "c,d", "x:y": None},
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_survives_the_override_grammar(value: object) -> None:
    parsed = OverridesParser.create().parse_override(f"data.path={_as_override(value)}").value()
    assert parsed == value
    assert type(parsed) is type(value)


def test_the_same_keys_whatever_is_chosen() -> None:
    def keys(**params: object) -> set[str]:
        return set(compose({key.replace("__", "/"): value for key, value in params.items()}))

    first = keys()
    assert {"seed", "data", "padding", "model", "search", "training", "hardware", "tracking", "paths"} <= first
    assert keys(model__attention="none", search="greedy", data="multi30k", tracking="none") == first
    assert keys(experiment="multi30k_bahdanau", data=None) == first


def test_nested_settings_are_composed_and_null_leaves_them_to_the_config() -> None:
    training = {"max_steps": 60, "validate_every": None, "teacher_forcing": {"ratio": 0.5}}
    settings = {"data": {"num_pairs": 300, "path": None}, "search": {"size": 3}}
    resolved = compose({"data": "copy", "training": training, "settings": settings})
    assert (resolved["training"]["max_steps"], resolved["training"]["validate_every"]) == (60, 100)
    assert resolved["training"]["teacher_forcing"]["ratio"] == 0.5
    assert (resolved["data"]["num_pairs"], resolved["search"]["size"]) == (300, 3)


NONSENSE = {
    "no mapping": (b"- a\n", "params.yaml must be a mapping"),
    "text": (b"hello\n", "params.yaml must be a mapping"),
    "number": (b"3\n", "params.yaml must be a mapping"),
    "broken": (b"seed: [\n", "params.yaml is not valid YAML in line 2"),
    "not UTF-8": (b"seed: \xff\n", "params.yaml is not UTF-8"),
    "no date": (b"data: {path: 2024-02-30}\n", "holds a value that cannot be read (day is out of range for month)"),
    "long number": (b"seed: " + b"9" * 5_000 + b"\n", "holds a value that cannot be read (Exceeds the limit"),
    "no number": (b"seed: !!int foo\n", "holds a value that cannot be read (invalid literal for int()"),
    "no truth": (b"chain: !!bool foo\n", "holds a value that is not what the tag before it (!!) says"),
    "no time": (b"seed: !!timestamp foo\n", "holds a value that is not what the tag before it"),
    "nested": (b"seed: " + b"[" * 3_000 + b"]" * 3_000 + b"\n", "too many brackets within brackets"),
    "twice": (b"seed: 1\nseed: 2\n", "is not valid YAML in line 2: found duplicate key seed"),
    "no end": (b"data: &data [*data]\n", "or holds itself; write it flatter"),
    "unknown key": (b"sed: 1\n", "sed is not a setting; did you mean seed? "),
    "wrong type": (b"seed: one\n", "seed must be a whole number of at least 0 and below 4294967296, got 'one'"),
    "target": (b"settings: {data: {_target_: os.system}}\n", "data._target_ must be one of"),
    "no settings": (b"settings: 3\n", "settings must be a mapping such as {data: {num_pairs: 300}}, got 3"),
    "dotted": (
        b"seed: 1\ntraining.max_steps: 60\ndata.path: x\n",
        "has keys with dots, which DVC takes for nested ones: training.max_steps, data.path; nest them, as "
        "`training: {max_steps: ...}` and `settings: {data: {path: ...}}`, or restore the file with "
        "`git checkout params.yaml`",
    ),
    "dotted and nested": (
        b"training.max_steps: null\ntraining: {max_steps: 60}\n",
        "nest them, as `training: {max_steps: ...}`, or restore the file with `git checkout params.yaml`",
    ),
    "settings in the place of a choice": (
        b"data: {num_pairs: 300}\n",
        "params.yaml has settings where the name of a choice belongs: data; put them under `settings`, as -S "
        "++settings.data.<setting>=<value> does, or restore the file",
    ),
    "overrides": (b"overrides: seed=2\n", "overrides must be a list of texts"),
    "override": (b"overrides: [seed]\n", "'seed' cannot be read"),
    "override target": (b"overrides: ['+model.encoder.x._target_=os.system']\n", "model.encoder.x is not a setting"),
}


@pytest.mark.parametrize(("content", "said"), NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_refused_in_a_sentence(command: Command, folder: Path, content: bytes, said: str) -> None:
    (folder / "params.yaml").write_bytes(content)
    refused(command("compose.py"), said, "params.yaml")
    assert left(folder) == ["params.yaml"]


def test_error_names_params_yaml_only_for_settings_chosen_there(command: Command, folder: Path) -> None:
    (folder / "params.yaml").write_text("save_every_minutes: -1\n")
    ended = command("compose.py", "training.max_steps=-1")
    refused(ended, "training.max_steps", "save_every_minutes")
    said = {line.split()[1]: "(chosen in params.yaml)" in line for line in ended.err.splitlines()}
    assert said == {"training.max_steps": False, "save_every_minutes": True}, ended.err


def test_without_params(command: Command) -> None:
    refused(command("compose.py"), "there is no params.yaml")


def test_overrides_go_before_the_choices(command: Command, folder: Path) -> None:
    params = "seed: 1\nsettings: {data: {path: 한글 폴더/it's}}\ndata: multi30k\n"
    (folder / "params.yaml").write_text(params, encoding="utf-8")
    ended = command("compose.py", "seed=2")
    assert ended.code == 0, ended.err
    resolved = OmegaConf.load(folder / "build" / "resolved.yaml")
    assert resolved.seed == 2
    assert resolved.data.path == "한글 폴더/it's"
