"""A config as MLflow's params, and what a run's tags say of the code that ran."""

import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from attnlab.config.params import (
    LONGEST_VALUE,
    dotted_params,
    git_tags,
    params_as_today,
    short_params,
)
from attnlab.experiment.composition import compose

CONF = Path(__file__).resolve().parents[2] / "conf"


def test_nested_keys_become_dotted_and_values_become_text():
    model = {"dropout": 0.1, "attention": None, "size": None, "parts": {}}
    assert dotted_params({"seed": 1, "model": model, "data": {"locales": ["de", "ja"]}}) == {
        "seed": "1", "model.dropout": "0.1", "model.attention": "none", "model.parts": "{}",
        "data.locales": '["de", "ja"]',
    }  # fmt: skip


def test_dotted_params_sanitises_keys_and_shortens_values_for_mlflow():
    params = dotted_params({"data": {"files": {"a?b": 1}}, "text": "x" * 10_000})
    assert params == {"data.files.a_b": "1", "text": "x" * LONGEST_VALUE}


def test_dotted_params_mask_passwords_of_addresses_and_keep_references():
    params = dotted_params(
        {"tracking": {"uri": "http://me:hunter2@host"}, "env": "${oc.env:SECRET}"}
    )
    assert params == {"tracking.uri": "http://me:***@host", "env": "${oc.env:SECRET}"}


ENCODER = {"cell": "gru", "layers": 1, "hidden_size": 64, "bidirectional": True}
PADDING = {"encoder": "pre", "decoder": "post", "attention_masked": True, "recurrence": "skip"}
FORCING = {"_target_": "attnlab.training.teacher_forcing.ConstantTeacherForcing", "ratio": 0.5}


def config(decoder="AttendThenStep", attention="BahdanauScore", **sections):
    tokenizer = {"_target_": "attnlab.data.trainers.BpeTrainer"}
    return {
        "seed": 2,
        "model": {
            "_target_": "attnlab.model.seq2seq.Seq2Seq",
            "encoder": {"_target_": "attnlab.model.encoders.recurrent.RecurrentEncoder", **ENCODER},
            "bridge": {"_target_": "attnlab.model.bridges.LinearBridge"},
            "decoder": {"_target_": f"attnlab.model.decoders.x.{decoder}"},
            "attention": attention and {"_target_": f"attnlab.model.attention.x.{attention}"},
        },
        "data": {"_target_": "attnlab.data.dates.DatesCorpus", "tokenizer": tokenizer},
        "padding": {"_target_": "attnlab.batch.Padding", **PADDING},
        "training": {"teacher_forcing": FORCING},
        "search": {"_target_": "attnlab.search.beam.BeamSearch"},
    } | sections


def test_short_params_name_the_choices():
    assert short_params(config()) == {
        "attention": "bahdanau",
        "decoder": "attend_then_step",
        "encoder": "gru 1x64 both ways",
        "bridge": "linear",
        "padding": "pre_post",
        "teacher_forcing": "0.5",
        "data": "dates",
        "tokenizer": "bpe",
        "search": "beam",
        "seed": "2",
    }


def test_short_params_name_no_attention_unmasked_padding_and_a_corpus_from_outside():
    forcing = {"_target_": "attnlab.training.teacher_forcing.x.InverseSigmoidTeacherForcing"}
    sections = {
        "padding": {
            "encoder": "post",
            "decoder": "post",
            "attention_masked": False,
            "recurrence": "read",
        },
        "data": {"_target_": "attnlab.data.hub.HubCorpus", "path": "../data/multi30k_tok/"},
        "training": {"teacher_forcing": forcing},
    }
    short = short_params(config(decoder="NoAttention", attention=None, **sections))
    assert (short["attention"], short["decoder"]) == ("none", "no_attention")
    assert short["padding"] == "post_post_unmasked_read"
    assert short["data"] == "multi30k_tok"
    assert short["teacher_forcing"] == "inverse_sigmoid"


def test_short_param_of_a_stack_names_both_of_its_encoders():
    config = compose(["model/encoder=stacked"]).config
    assert short_params(config)["encoder"] == "lstm 1x64 both ways, self_attention"
    config = compose(["model/encoder=with_features"]).config
    assert short_params(config)["encoder"] == "bag_of_words, gru 1x64 both ways"


def test_short_params_name_the_part_of_a_family_and_the_dataset_of_the_hub():
    scan = {"_target_": "attnlab.data.hub.Scan", "path": "../data", "split": "length"}
    assert short_params({"data": scan})["data"] == "scan_length"
    hub = {"_target_": "attnlab.data.hub.HubCorpus", "path": None, "dataset": "bentrevett/multi30k"}
    assert short_params({"data": hub})["data"] == "multi30k"


@pytest.mark.parametrize("partial", [{}, {"model": None}, {"model": {}, "data": None}])
def test_short_params_of_a_config_without_these_sections_is_empty(partial):
    assert short_params(partial) == {}


@pytest.mark.parametrize("padding", sorted(path.stem for path in (CONF / "padding").glob("*.yaml")))
def test_short_param_of_padding_is_the_choice_as_one_types_it(padding):
    assert short_params(compose([f"padding={padding}"]).config)["padding"] == padding


@pytest.mark.parametrize(
    ("hardware", "shown"),
    [
        ({"accelerator": "cpu", "devices": 1, "nodes": 1, "precision": 32}, "cpu"),
        ({"accelerator": "gpu", "devices": 4, "nodes": 2, "precision": "bf16"}, "8 x gpu bf16"),
    ],
)
def test_short_param_of_hardware_is_its_processes_and_their_precision(hardware, shown):
    assert short_params({"hardware": hardware}) == {"hardware": shown}


def test_params_of_a_run_of_an_older_version_are_read_as_a_run_of_today_has_them():
    config = compose(["padding=unmasked_read", "hardware=ddp_cpu"]).config
    today = {**short_params(config), **dotted_params(config)}
    older = {**today, "padding": "pre-post unmasked read"}
    del older["hardware"]
    assert params_as_today(older) == params_as_today(today) == today
    assert params_as_today({"attention": "dot"}) == {"attention": "dot"}


@pytest.mark.parametrize(
    ("changed", "dirty"),
    [
        ("params.yaml", "true"),
        ("src/package/module.py", "true"),
        ("dvc.lock", "false"),
        ("src/dvc.lock", "false"),
    ],
)
def test_git_dirty_counts_every_change_but_the_lock_files_of_dvc(tmp_path, changed, dirty):
    code = tmp_path / "src" / "package"
    code.mkdir(parents=True)
    (code / "module.py").write_text("")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *arguments], check=True, capture_output=True)
    (tmp_path / changed).write_text("x = 1")
    assert git_tags(code)["git_dirty"] == dirty


@pytest.mark.parametrize(
    ("is_installed", "kind"), [(True, "installed package"), (False, "no git checkout")]
)
def test_git_revision_of_code_outside_of_git_names_the_version(
    tmp_path, monkeypatch, is_installed, kind
):
    monkeypatch.setattr("attnlab.config.params.IS_INSTALLED", is_installed)
    found = git_tags(tmp_path)["git_revision"]
    assert found == f"none: attnlab {version('attnlab')} ({kind})"
