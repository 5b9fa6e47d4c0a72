"""The one name of an experiment: the score, what is not the default, the data, the seed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attnlab.config import names
from attnlab.config.names import LONGEST, readable_name
from attnlab.experiment.composition import compose
from attnlab.experiment.sections import TRAIN_SECTIONS

NAMES = {
    "bahdanau · dates · seed 1": [],
    "no attention · dates · seed 3": ["model/attention=none", "seed=3"],
    "general · post_post · dates · seed 1": ["model/attention=general", "padding=post_post"],
    "general · unmasked_read · dates · seed 1": [
        "model/attention=general",
        "padding=unmasked_read",
    ],
    "general · teacher forcing ratio 0.5 · dates · seed 1": [
        "model/attention=general",
        "training.teacher_forcing.ratio=0.5",
    ],
    "general · teacher forcing inverse_sigmoid · dates · seed 1": [
        "model/attention=general",
        "training/teacher_forcing=inverse_sigmoid",
    ],
    "bahdanau · attention schedule late · dates · seed 1": ["training/attention_schedule=late"],
    "general · ddp_cpu · dates · seed 1": ["model/attention=general", "hardware=ddp_cpu"],
    "bahdanau · lstm · bridge mean · dates · seed 1": ["model/encoder=lstm", "model/bridge=mean"],
    "bahdanau · stacked · dates · seed 1": ["model/encoder=stacked"],
    "bahdanau · with_features · dates · seed 1": ["model/encoder=with_features"],
    "bahdanau · with_features · encoder features self_attention · dates · seed 1": [
        "model/encoder=with_features",
        "model/encoder@model.encoder.features=self_attention",
    ],
    "bahdanau · stacked · encoder first convolutional · encoder then gru · dates · seed 1": [
        "model/encoder=stacked",
        "model/encoder@model.encoder.first=convolutional",
        "model/encoder@model.encoder.then=gru",
    ],
    "bahdanau · stacked · encoder then blocks 1 · dates · seed 1": [
        "model/encoder=stacked",
        "model.encoder.then.blocks=1",
    ],
    # Its readout is no choice
    "bahdanau · step_then_attend · dates · seed 1": ["model/decoder=step_then_attend"],
    "bahdanau · step_then_attend · readout tanh · dates · seed 1": [
        "model/decoder=step_then_attend",
        "model/readout=tanh",
    ],
    "bahdanau · tokenizer bpe · greedy · dates · seed 1": ["data/tokenizer=bpe", "search=greedy"],
    "bahdanau · source tokenizer bpe · dates · seed 1": [
        "data/tokenizer@data.source_tokenizer=bpe"
    ],
    "bahdanau · search size 10 · dates · seed 1": ["search.size=10"],
    "bahdanau · attention size 32 · dates · seed 1": ["model.attention.size=32"],
    "bahdanau · optimizer lr 0.00123457 · dates · seed 1": [
        "training.optimizer.lr=0.0012345678912"
    ],
    "bahdanau · patience 4 · data seed 3 · dates · seed 1": ["training.patience=4", "data.seed=3"],
    "bahdanau · trainer benchmark true · dates · seed 1": ["+trainer.benchmark=true"],
    "bahdanau · callbacks lr_monitor · dates · seed 1": ["callbacks=lr_monitor"],
    "bahdanau · callbacks early_stopping · callbacks early stopping patience 4 · dates · seed 1": [
        "callbacks=early_stopping",
        "callbacks.early_stopping.patience=4",
    ],
    "bahdanau · callbacks mine · dates · seed 1": [
        "+callbacks.mine._target_=pytorch_lightning.callbacks.LearningRateMonitor"
    ],
    "bahdanau · copy · seed 1": ["data=copy"],  # with the tokenizer that its file chooses
    "bahdanau · mine · seed 1": ["task=classification", "data.path=corpora/mine"],
    "bahdanau · multi30k_bahdanau · multi30k · seed 1": [
        "experiment=multi30k_bahdanau",
        "data.path=/data/multi30k",
    ],
    "bahdanau · multi30k_bahdanau · encoder dropout 0.5 · multi30k · seed 1": [
        "experiment=multi30k_bahdanau",
        "data.path=/data/multi30k",
        "model.encoder.dropout=0.5",
    ],
    "dot · see2017 · dates · seed 1": ["experiment=see2017", "model/attention=dot"],
    "scaled_dot · luong2015_general · dates · seed 1": [
        "experiment=luong2015_general",
        "model/attention=scaled_dot",
    ],
    "bahdanau · rt_polarity · mine · seed 1": ["experiment=rt_polarity", "data.path=corpora/mine"],
}


@pytest.mark.parametrize("name", NAMES)
def test_name_has_the_score_and_every_choice_that_is_not_the_default(name: str) -> None:
    experiment = compose(NAMES[name])
    assert readable_name(experiment.logged) == name
    # A model folder has these sections, and neither choices nor a task.
    of_model = {
        section: experiment.config[section] for section in ("data", *TRAIN_SECTIONS, "search")
    }
    assert readable_name(of_model) == name


def test_names_in_the_documentation_are_those_of_their_commands() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "mlflow.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `train\.py(.*?)` \| `(.*)` \|$", page, re.MULTILINE)
    assert len(rows) == 4
    for overrides, name in rows:
        assert readable_name(compose(overrides.split()).logged) == name


def test_name_of_what_decides_no_result_is_that_of_the_default() -> None:
    others = [
        "tracking=none",
        "paths.runs=elsewhere",
        "rerun=true",
        "save_every_minutes=1",
        "chain=false",
    ]
    assert readable_name(compose(others).logged) == "bahdanau · dates · seed 1"


MANY = (
    "model.encoder.embedding_size=8", "model.encoder.hidden_size=8", "model.decoder.hidden_size=16",
    "model.readout.size=16", "training.max_steps=4", "training.batching.size=16",
    "data.num_pairs=200",
)  # fmt: skip


def test_long_names_are_shortened_and_still_differ() -> None:
    found = {
        readable_name(compose([*MANY, f"data.num_pairs={pairs}"]).logged)
        for pairs in (200, 300, 400)
    }
    assert len(found) == 3
    for name in found:
        assert len(name) <= LONGEST + len("bahdanau ·  · dates · seed 1")
        assert " more (" in name
        assert "num pairs" not in name
        assert name.endswith(" · dates · seed 1")


IN_A_SWEEP = [
    # The default is named, too.
    (
        {"model/attention": "bahdanau", "training.teacher_forcing.ratio": "1.0", "seed": "1"},
        (),
        "bahdanau · 1.0 teacher forcing ratio · seed 1 · dates",
    ),
    # In the order of the command
    (
        {"seed": "2", "training.teacher_forcing.ratio": "0.5", "model/attention": "dot"},
        (),
        "seed 2 · 0.5 teacher forcing ratio · dot · dates",
    ),
    # Before what all of its runs share
    (
        {"model.encoder.hidden_size": "24"},
        ("model/encoder=lstm",),
        "24 encoder hidden size · bahdanau · lstm · dates · seed 1",
    ),
    ({"model/attention": "none"}, (), "no attention · dates · seed 1"),
    (
        {"training/teacher_forcing": "constant"},
        (),
        "constant teacher forcing · bahdanau · dates · seed 1",
    ),
    ({"data": "copy"}, (), "copy · bahdanau · seed 1"),
    ({"training.patience": "null"}, (), "no patience · bahdanau · dates · seed 1"),
    ({"callbacks": "lr_monitor"}, (), "callbacks lr_monitor · bahdanau · dates · seed 1"),
    (
        {"experiment": "see2017"},
        ("model/attention=dot",),
        "see2017 · dot · dates · seed 1",
    ),
    ({"tracking": "none"}, (), "no tracking · bahdanau · dates · seed 1"),
]


@pytest.mark.parametrize(("varied", "shared", "name"), IN_A_SWEEP)
def test_name_in_a_sweep_begins_with_what_the_sweep_varies(
    varied: dict[str, str], shared: tuple[str, ...], name: str
) -> None:
    point = [f"{key}={value}" for key, value in varied.items()]
    assert readable_name(compose([*point, *shared]).logged, varied) == name


@pytest.mark.parametrize(
    ("varied", "values"),
    [
        ("training/teacher_forcing", ("constant", "inverse_sigmoid")),
        ("training.teacher_forcing.ratio", ("1.0", "0.5")),
    ],
)
def test_names_of_a_sweep_differ_where_a_narrow_column_ends(
    varied: str, values: tuple[str, str]
) -> None:
    """MLflow shows some 18 letters beside its charts."""
    config = compose().logged
    starts = {
        readable_name(config, {"model/attention": attention, varied: value})[:18]
        for attention in ("dot", "general", "bahdanau")
        for value in values
    }
    assert len(starts) == 6


def test_what_a_sweep_varies_stays_in_a_long_name() -> None:
    varied = {"seed": "1", "data.num_pairs": "200"}
    name = readable_name(compose(MANY).logged, varied)
    assert name.startswith("seed 1 · 200 num pairs · bahdanau · ")
    assert " more (" in name
    assert len(name) <= LONGEST + len(" · bahdanau ·  · dates")


def test_name_with_more_varied_settings_than_fit_has_all_of_them() -> None:
    varied = dict(override.split("=") for override in MANY)
    name = readable_name(compose(MANY).logged, varied)
    for words in ("8 encoder embedding size", "4 max steps", "200 num pairs"):
        assert words in name
    other = readable_name(compose([*MANY, "padding=post_post"]).logged, varied)
    assert other != name


def test_name_of_a_class_from_outside_and_of_a_moved_one() -> None:
    config = compose(["model/encoder=lstm"]).logged
    moved = config["model"]["encoder"] | {"_target_": "attnlab.somewhere.else.RecurrentEncoder"}
    assert readable_name(
        {**config, "model": {**config["model"], "encoder": moved}}
    ) == readable_name(config)
    foreign = {"_target_": "mine.WindowBridge", "width": 3}
    name = readable_name({**config, "model": {**config["model"], "bridge": foreign}})
    assert name == "bahdanau · lstm · bridge window · bridge width 3 · dates · seed 1"


@pytest.mark.parametrize(
    "config", [{}, {"model": None}, {"model": {}, "data": None, "training": None}]
)
def test_name_of_a_config_without_these_sections_is_run(config: dict[str, object]) -> None:
    assert readable_name(config) == "run"


def test_name_without_conf_has_the_score_the_data_and_the_seed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As where the package lies without the project."""
    config = compose(["model/encoder=lstm"]).logged
    monkeypatch.setattr(names, "CONF", tmp_path / "none")
    names._name_of.cache_clear()
    assert readable_name(config) == "bahdanau · dates · seed 1"
    names._name_of.cache_clear()


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        ("lesson", "lesson_en_fr"),
        ("lesson_ko_en", "lesson_ko_en"),
        ("lesson_handful_ko_en", "lesson_handful_ko_en"),
        ("lesson_handful", "lesson_handful_en_fr"),
    ],
)
def test_lessons_of_other_languages_have_other_names(choice: str, name: str) -> None:
    config = compose([f"data={choice}"]).logged
    assert readable_name(config) == f"bahdanau · {name} · seed 1"
