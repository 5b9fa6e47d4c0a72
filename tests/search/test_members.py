"""Which models may form an ensemble, and how they are loaded."""

from __future__ import annotations

import pytest
from torch import nn

from attnlab.batch import Padding
from attnlab.errors import ExperimentError
from attnlab.model.fast.linear import FastLinear
from attnlab.search import ensemble
from attnlab.search.ensemble import TOKENIZERS, load_members


class Stand(nn.Sequential):
    """What stands for a model: a layer and a padding."""

    def __init__(self, padding: Padding) -> None:
        super().__init__(nn.Linear(1, 1))
        self.padding = padding


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Model folders with tokenizers of their own; loading one gives no more than a layer and its
    padding."""
    paddings = {}

    def make(name: str, padding: Padding = Padding(), **tokenizers: str):  # noqa: B008 (frozen)
        folder = tmp_path / name
        folder.mkdir()
        for file in TOKENIZERS:
            (folder / file).write_text(tokenizers.get(file.removesuffix(".json"), "one"))
        paddings[folder] = padding
        return folder

    monkeypatch.setattr(
        ensemble,
        "load_model",
        lambda folder, device, allow=(): Stand(paddings[folder]),
    )
    return make


def test_load_members_accepts_matching_models(folders):
    first = folders("first", Padding("pre", "post"))
    second = folders("second", Padding("pre", "post", attention_masked=False, recurrence="read"))
    loaded = load_members(first, [second])
    assert [model.padding.attention_masked for model in loaded] == [True, False]
    assert len(load_members(first, [])) == 1


def test_members_are_sped_up(folders):
    for (layer,) in load_members(folders("first"), [folders("second")]):
        assert isinstance(layer, FastLinear)


@pytest.mark.parametrize("file", TOKENIZERS)
def test_load_members_refuses_other_vocabularies(folders, file):
    first, second = folders("first"), folders("second", **{file.removesuffix(".json"): "another"})
    with pytest.raises(
        ExperimentError, match=rf"^paths\.ensemble: .*second has another {file} than .*first"
    ):
        load_members(first, [second])


@pytest.mark.parametrize("padding", [Padding("post", "post"), Padding("pre", "pre")])
def test_load_members_refuses_padding_on_other_sides(folders, padding):
    first, second = folders("first", Padding("pre", "post")), folders("second", padding)
    with pytest.raises(
        ExperimentError,
        match=r"^paths\.ensemble: .*second pads source and target .* the same sides",
    ):
        load_members(first, [second])
