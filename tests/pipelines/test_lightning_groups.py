"""The groups `trainer`, `callbacks` and `loggers`: choices for Lightning's parts."""

from __future__ import annotations

import csv
from importlib.util import find_spec
from pathlib import Path

import pytest
from entry_points import ROOT, Command, succeeded
from test_refusals import refused

from attnlab.config.names import readable_name
from attnlab.errors import ExperimentError
from attnlab.experiment.composition import check, compose
from attnlab.experiment.hydra_config import compose_config

GROUPS = ("callbacks", "loggers", "trainer")
HAS_TENSORBOARD = any(map(find_spec, ("tensorboard", "tensorboardX")))
EVERY = {
    group: sorted(path.stem for path in (ROOT / "conf" / group).glob("*.yaml")) for group in GROUPS
}
# Each in a training below, or, as it needs a package, by its own tests.
TRAINED = {
    "callbacks": {"none", "lr_monitor", "device_stats", "early_stopping"},
    "loggers": {"none", "csv"},
    "trainer": {"default", "deterministic", "anomaly", "profiler", "summary"},
}
MONITOR = "pytorch_lightning.callbacks.LearningRateMonitor"


def test_every_choice_is_trained_with_or_needs_a_package() -> None:
    by_package = {"loggers": {"tensorboard"}}
    expected = {
        group: sorted(names | by_package.get(group, set())) for group, names in TRAINED.items()
    }
    assert expected == EVERY


@pytest.mark.parametrize(
    ("group", "choice"), [(group, choice) for group in GROUPS for choice in sorted(TRAINED[group])]
)
def test_choice_alone_composes_into_an_experiment(group: str, choice: str) -> None:
    experiment = compose(["data=copy", f"{group}={choice}"])
    section = experiment.config[group]
    is_empty = choice in ("none", "default")
    assert (section == {}) == is_empty
    for other in GROUPS:
        if other != group:
            assert experiment.config[other] == {}


def test_empty_choices_are_the_default_and_change_no_name() -> None:
    plain = compose(["data=copy"])
    chosen = compose(["data=copy", "callbacks=none", "loggers=none", "trainer=default"])
    assert chosen.config == plain.config
    assert readable_name(chosen.logged) == readable_name(plain.logged)


@pytest.mark.parametrize(
    "overrides",
    [
        ["callbacks=[lr_monitor,device_stats]"],
        ["+callbacks=[lr_monitor,device_stats]"],
        ["callbacks=device_stats", f"+callbacks.lr_monitor._target_={MONITOR}"],
    ],
    ids=" ".join,
)
def test_choices_and_nodes_of_callbacks_go_together(overrides: list[str]) -> None:
    assert compose(["data=copy", *overrides]).callbacks.keys() == {"lr_monitor", "device_stats"}


def test_setting_of_a_chosen_callback_is_changed_without_a_plus() -> None:
    chosen = ["callbacks=lr_monitor", "callbacks.lr_monitor.logging_interval=epoch"]
    section = compose(["data=copy", *chosen]).callbacks
    assert section["lr_monitor"]["logging_interval"] == "epoch"


def test_preset_chooses_callbacks_and_a_user_adds_a_group_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text(
        "# @package _global_\ndefaults:\n  - override /callbacks: [lr_monitor, device_stats]\n"
    )
    searched = f"hydra.searchpath=[file://{tmp_path}]"
    config = compose_config(["data=copy", "experiment=mine", searched])
    assert set(config.callbacks) == {"lr_monitor", "device_stats"}


def test_unknown_choice_names_the_known_ones(command: Command, tiny: tuple[str, ...]) -> None:
    refused(
        command("train.py", *tiny, "callbacks=lr_monitr"),
        "callbacks must be one of device_stats, early_stopping, lr_monitor, none; got "
        "'lr_monitr' (did you mean lr_monitor?)",
    )


@pytest.mark.skipif(HAS_TENSORBOARD, reason="TensorBoard is installed")
def test_logger_whose_package_is_missing_is_refused(
    command: Command, folder: Path, tiny: tuple[str, ...]
) -> None:
    refused(
        command("train.py", *tiny, "loggers=tensorboard"),
        "loggers.tensorboard: a package is missing, install it with pip or leave "
        "loggers.tensorboard out",
    )
    assert not (folder / "runs" / "points").exists()


@pytest.mark.skipif(not HAS_TENSORBOARD, reason="TensorBoard is not installed")
def test_tensorboard_logger_writes_event_files(
    command: Command, folder: Path, tiny: tuple[str, ...]
) -> None:
    succeeded(command("train.py", *tiny, "chain=false", "loggers=tensorboard"))
    assert list((folder / "runs" / "points").rglob("events.out.tfevents*"))


def test_training_with_every_choice_at_once_writes_and_prints_what_they_promise(
    command: Command, folder: Path, tiny: tuple[str, ...]
) -> None:
    chosen = [
        f"{group}=[{','.join(sorted(names - {'none', 'default'}))}]"
        for group, names in TRAINED.items()
    ]
    ended = succeeded(command("train.py", *tiny, "chain=false", "training.log_every=1", *chosen))
    assert "Profiler Report" in ended.err

    (file,) = (folder / "runs" / "points").rglob("metrics.csv")
    with file.open(encoding="utf-8") as lines:
        columns = set(csv.DictReader(lines).fieldnames or ())
    assert "lr-AdamW" in columns
    assert any(name.startswith("DeviceStatsMonitor") for name in columns)


def test_section_of_callbacks_that_is_null_is_refused() -> None:
    config = compose_config(["data=copy"])
    config.callbacks = None
    with pytest.raises(
        ExperimentError,
        match=r"^callbacks must be a mapping of names to Callbacks, \{\} for none, got null$",
    ):
        check(config)
