"""The choices that are read from conf/ are those that Hydra composes."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.config.choices import choice_of, default_choices, differences
from attnlab.config.params import value_at
from attnlab.experiment.composition import compose
from attnlab.experiment.config_sources import groups
from attnlab.experiment.hydra_config import compose_config
from attnlab.project import CONF

PRESETS = groups()["experiment"]
# Groups that decide no result, and those whose choice is in no section.
OTHERS = ("experiment", "debug", "task", "tracking", "sweep", "launcher")


def test_conf_is_the_folder_of_the_project() -> None:
    assert Path(__file__).resolve().parents[2] / "conf" == CONF


@pytest.mark.parametrize("decoder", ["attend_then_step", "transformer"])
@pytest.mark.parametrize("encoder", groups()["model/encoder"])
def test_decoder_takes_over_only_what_means_the_same_in_an_encoder(
    encoder: str, decoder: str
) -> None:
    compose([f"model/encoder={encoder}", f"model/decoder={decoder}"])


@pytest.mark.parametrize("preset", [None, *PRESETS])
def test_default_choices_of_a_preset_are_those_of_hydra(preset: str | None) -> None:
    config = compose_config([] if preset is None else [f"experiment={preset}"])
    choices = {
        group: choice
        for group, choice in config.hydra.runtime.choices.items()
        if choice is not None
        and "@" not in group
        and not group.startswith("hydra/")
        and group not in OTHERS
    }
    found = default_choices(config.hydra.runtime.choices["task"], preset)
    of_sections = {
        group: choice for group, choice in found.items() if group not in OTHERS and "@" not in group
    }
    assert of_sections == choices


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["padding=unmasked", "hardware=ddp_cpu", "search=sample"],
        ["model/attention=none", "model/encoder=rnn", "training/schedule=plateau"],
        ["task=classification", "data=sst2", "data/tokenizer=bpe"],
        ["model/encoder=stacked", "model/encoder@model.encoder.first=gru"],
        ["model.encoder.dropout=0.5", "training.max_steps=7", "data.limit=5"],
    ],
)
def test_choice_of_each_section_is_the_one_that_was_composed(overrides: list[str]) -> None:
    experiment = compose(overrides)
    for group, choice in experiment.choices.items():
        if "@" not in group and group not in OTHERS:
            section = value_at(experiment.config, group.replace("/", "."))
            assert choice_of(group, section, choice) == choice, group


def test_choice_of_a_class_from_outside_is_none() -> None:
    assert choice_of("model/encoder", {"_target_": "mine.Transformer"}) is None


def test_differences_follow_references_and_skip_what_a_section_lacks() -> None:
    written = {"dropout": "${model.encoder.dropout}", "size": 3, "rate": "1e-3", "new": 1}
    config = {"model": {"encoder": {"dropout": 0.3}}}
    assert list(differences(written, {"dropout": 0.3, "size": 3, "rate": 0.001}, config)) == []
    changed = {"dropout": 0.1, "size": 4, "rate": 0.002, "more": 5}
    assert list(differences(written, changed, config, "a.")) == [
        ("a.dropout", 0.1),
        ("a.size", 4),
        ("a.rate", 0.002),
        ("a.more", 5),
    ]


def test_differences_take_the_default_of_a_reference_that_leads_nowhere() -> None:
    written = {"layers": "${oc.select:model.encoder.layers,1}"}
    for encoder, meant in (({}, 1), ({"layers": 2}, 2)):
        config = {"model": {"encoder": encoder}}
        assert list(differences(written, {"layers": meant}, config)) == []
        assert list(differences(written, {"layers": 3}, config)) == [("layers", 3)]
