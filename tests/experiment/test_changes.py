"""What differs from the defaults is listed as one types it, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.experiment.changes import changes, with_typed
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
        ["model/encoder=stacked"],
        [
            "model/encoder=stacked",
            "model/encoder@model.encoder.first=convolutional",
            "model/encoder@model.encoder.then=gru",
            "model.encoder.then.embedding_size=64",
        ],
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


def typed_and_others(*typed: str, preset: str | None = None) -> tuple[list[str], list[str]]:
    """What is marked as typed, and what is listed beside it."""
    given = typed if preset is None else (f"experiment={preset}", *typed)
    experiment = compose(given)
    found = changes(experiment.config, experiment.choices)
    listed = with_typed(found, typed, experiment.choices)
    marked = [each.override for each in listed if each.is_typed]
    return marked, [each.override for each in listed if not each.is_typed]


def test_typed_value_that_is_the_default_is_listed_and_marked() -> None:
    typed = ("training.teacher_forcing.ratio=1.0", "model/attention=bahdanau", "seed=1")
    assert typed_and_others(*typed) == (list(typed), [])
    experiment = compose(typed)
    (ratio, *_) = with_typed([], typed, experiment.choices)
    assert ratio.default == "1.0"


def test_changes_that_nobody_typed_are_not_marked() -> None:
    marked, others = typed_and_others("search.size=10", preset="see2017")
    assert marked == ["search.size=10"]
    assert others == ["experiment=see2017"]


def test_typed_section_marks_each_of_its_settings() -> None:
    marked, others = typed_and_others("training.optimizer={lr: 0.5}")
    assert (marked, others) == (["training.optimizer.lr=0.5"], [])


def test_typed_choice_marks_none_of_its_settings() -> None:
    experiment = compose(["data=dates", "data.num_pairs=200"])
    found = changes(experiment.config, experiment.choices)
    listed = with_typed(found, ["data=dates"], experiment.choices)
    assert [each.override for each in listed if each.is_typed] == ["data=dates"]


def test_typed_places_of_outputs_and_options_are_not_listed() -> None:
    given = ("--config-dir", "conf", "paths.runs=elsewhere", "hydra/launcher=joblib", "rerun=true")
    assert with_typed([], given, {}) == []


def test_password_in_a_typed_setting_is_masked() -> None:
    (found,) = with_typed([], ["tracking.uri=https://me:secret@host"], {})
    assert "secret" not in found.override + found.default


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
