"""params.yaml -> build/resolved.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest
from entry_points import Command, succeeded
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf
from test_refusals import left, refused

from attnlab.experiment.override_text import as_override, quoted
from attnlab.experiment.params_file import compose

VALUES = [
    "bahdanau",
    "12",
    "true",
    "null",
    "",
    "a b",
    "it's",
    'say "so"',
    "back\\slash",
    "end\\",
    "x\\'y",
    "한글 폴더/데이터",
    "a,b",
    "[x]",
    "{y: 1}",
    "k=v",
    "line\nbreak",
    "${oc.env:HOME}",
    "1e5",
    12,
    -3,
    0.5,
    1e-05,
    True,
    None,
    ["a", "b c", None],
    [1, [2, "x"]],
    [],
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_as_override_value_is_parsed_back_the_same(value: object) -> None:
    override = f"data.path={as_override(value, quoted)}"
    parsed = OverridesParser.create().parse_override(override).value()
    assert parsed == value
    assert type(parsed) is type(value)


def test_resolved_config_has_the_same_keys_whatever_is_chosen() -> None:
    def keys(**params: object) -> set[str]:
        return set(compose({key.replace("__", "/"): value for key, value in params.items()}))

    first = keys()
    assert {
        "seed",
        "data",
        "padding",
        "model",
        "search",
        "training",
        "hardware",
        "tracking",
        "paths",
    } <= first
    assert keys(model__attention="none", search="greedy", data="multi30k", tracking="none") == first
    assert keys(experiment="multi30k_bahdanau", data=None) == first


def test_nested_settings_are_composed_and_null_leaves_them_to_the_config() -> None:
    training = {"max_steps": 60, "validate_every": None, "teacher_forcing": {"ratio": 0.5}}
    resolved = compose(
        {"data": "copy", "training": training, "overrides": ["data.num_pairs=300", "search.size=3"]}
    )
    assert (resolved["training"]["max_steps"], resolved["training"]["validate_every"]) == (60, 100)
    assert resolved["training"]["teacher_forcing"]["ratio"] == 0.5
    assert (resolved["data"]["num_pairs"], resolved["search"]["size"]) == (300, 3)


INVALID = {
    "broken": (b"seed: [\n", 'params.yaml", line 2'),
    "twice": (b"seed: 1\nseed: 2\n", "found duplicate key seed"),
    "unknown key": (b"sed: 1\n", "sed"),
    "wrong type": (
        b"seed: one\n",
        "seed must be a whole number of at least 0 and below 4294967296, got 'one'",
    ),
    "settings in the place of a choice": (
        b"data: {num_pairs: 300}\n",
        "data must be the name of a choice in params.yaml, got settings; restore the file with "
        "`git checkout params.yaml`, and set them with -S 'overrides=[\"data.<setting>=<value>\"]'",
    ),
    "overrides": (b"overrides: seed=2\n", "overrides must be a list of texts"),
    "override": (b"overrides: [seed]\n", "seed"),
}


@pytest.mark.parametrize(("content", "said"), INVALID.values(), ids=INVALID)
def test_invalid_params_are_refused_in_a_sentence(
    command: Command, folder: Path, content: bytes, said: str
) -> None:
    (folder / "params.yaml").write_bytes(content)
    refused(command("compose.py"), said)
    assert left(folder) == ["params.yaml"]


def test_missing_params_are_refused(command: Command) -> None:
    refused(command("compose.py"), "params.yaml cannot be used: No such file or directory")


def test_overrides_of_the_command_take_precedence_over_params(
    command: Command, folder: Path
) -> None:
    params = "seed: 1\ndata: multi30k\noverrides: [\"data.path='한글 폴더/it\\\\'s'\"]\n"
    (folder / "params.yaml").write_text(params, encoding="utf-8")
    succeeded(command("compose.py", "seed=2", "into=elsewhere"))
    resolved = OmegaConf.load(folder / "elsewhere" / "resolved.yaml")
    assert resolved.seed == 2
    assert resolved.data.path == "한글 폴더/it's"
    assert (resolved.paths.data, resolved.paths.model) == ("build/data", "elsewhere/model")
