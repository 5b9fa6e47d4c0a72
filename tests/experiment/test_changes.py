"""What differs from the defaults is listed as one types it, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.experiment.changes import changes
from attnlab.experiment.composition import compose
from attnlab.project import CONF


def overrides_of(*given: str, folders: tuple[Path, ...] = (CONF,)) -> list[str]:
    experiment = compose(given)
    return [each.override for each in changes(experiment.config, experiment.choices, folders)]


@pytest.mark.parametrize(
    "given",
    [
        [],
        ["seed=3", "training.max_steps=20"],
        ["model/attention=none"],
        ["model/decoder=step_then_attend"],
        ["model/decoder=step_then_attend", "model/readout=maxout"],
        ["data=copy", "data.num_pairs=200", "search=greedy", "training.patience=3"],
        ["data=sigmorphon2020"],
        ["data=copy", "data/tokenizer@data.source_tokenizer=word"],
        ["task=classification", "data=sst2", "model.encoder.hidden_size=32"],
        ["experiment=multi30k_small", "data.path=corpus", "model/attention=dot"],
        ["debug=profile"],
        ["callbacks=[device_stats,lr_monitor]", "callbacks.lr_monitor.logging_interval=epoch"],
        ["data.source_locales=[en_US]", "+tracking.tags.team=a"],
        ["tracking.note=${oc.env:HOME}"],
        ["tracking.note='a b, c'"],
    ],
    ids=lambda given: " ".join(given) or "nothing",
)
def test_changes_are_what_was_typed(given: list[str]) -> None:
    assert sorted(overrides_of(*given)) == sorted(given)


def test_changes_leave_out_what_is_the_default_though_it_was_typed() -> None:
    given = ("data=dates", "model/attention=bahdanau", "training.max_steps=500", "seed=1")
    assert overrides_of(*given) == []


def test_changes_leave_out_places_of_outputs() -> None:
    assert overrides_of("paths.runs=elsewhere", "chain=false", "rerun=true") == []


def test_change_names_the_default() -> None:
    experiment = compose(
        ["model/attention=dot", "model/projection=linear", "training.max_steps=20"]
    )
    found = changes(experiment.config, experiment.choices)
    assert {each.place: each.default for each in found} == {
        "model/attention": "bahdanau",
        "model/projection": "none",
        "training.max_steps": "500",
    }


def test_choice_of_the_users_own_folder_is_a_change_without_its_settings(tmp_path: Path) -> None:
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "wide.yaml").write_text(
        "defaults:\n  - beam\nsize: 9\n", encoding="utf-8"
    )
    own = f"hydra.searchpath=[file://{tmp_path}]"
    folders = (CONF, tmp_path)
    assert overrides_of(own, "search=wide", folders=folders) == ["search=wide"]
    assert overrides_of(own, "search=wide", "search.min_length=2", folders=folders) == [
        "search=wide",
        "search.min_length=2",
    ]


def test_password_in_a_changed_setting_is_masked() -> None:
    experiment = compose(["data=copy"])
    config = {**experiment.config, "tracking": {"uri": "https://me:secret@host"}}
    found = [each.override for each in changes(config, experiment.choices)]
    assert found[-1] == "tracking.uri=https://me:***@host"
