"""Params of a run in MLflow: what one types."""

import dataclasses

import pytest

from attnlab.experiment.composition import compose
from attnlab.runs.shown_params import shown_params


def shown(*overrides):
    return shown_params(compose(overrides).logged)


def test_params_of_the_defaults_are_choices_and_the_seed_alone():
    params = shown()
    assert [name for name in params if "." in name] == []
    expected = {"attention": "bahdanau", "padding": "pre_post", "teacher_forcing": "constant"}
    assert params.items() >= {**expected, "hardware": "cpu", "data": "dates", "seed": "1"}.items()


@pytest.mark.parametrize(
    "typed",
    [
        "padding=pre_post",
        "padding=post_pre",
        "padding=unmasked_read",
        "model/attention=none",
        "training/teacher_forcing=inverse_sigmoid",
        "training/attention_schedule=always",
        "training/attention_schedule=late",
        "training/optimizer=sgd",
        "data=scan",
        "search=greedy",
        "hardware=ddp_cpu",
    ],
)
def test_choice_is_the_param_that_was_typed(typed):
    more = ["model/decoder=no_attention"] if typed == "model/attention=none" else []
    group, _, choice = typed.partition("=")
    assert shown(typed, *more)[group.rpartition("/")[2]] == choice


def test_changed_setting_is_a_param_by_its_path():
    params = shown("model.encoder.hidden_size=24", "training.teacher_forcing.ratio=0.5")
    settings = {name: value for name, value in params.items() if "." in name}
    assert settings == {
        "model.encoder.hidden_size": "24",
        "training.teacher_forcing.ratio": "0.5",
    }


def test_parts_of_a_stack_are_params_by_their_places():
    params = shown("model/encoder=stacked", "model/encoder@model.encoder.then=gru")
    assert params["encoder"] == "stacked"
    parts = {name: value for name, value in params.items() if "." in name}
    assert parts == {"model.encoder.first": "lstm", "model.encoder.then": "gru"}


def test_what_a_sweep_varies_is_a_param_also_where_it_is_the_default():
    config = compose(["training.teacher_forcing.ratio=1.0"]).logged
    assert "training.teacher_forcing.ratio" not in shown_params(config)
    varied = {"training.teacher_forcing.ratio": "1", "training.patience": "null"}
    params = shown_params(config, varied=varied)
    assert params["training.teacher_forcing.ratio"] == "1.0"
    assert params["training.patience"] == "null"


def test_preset_that_a_sweep_varies_is_a_param():
    config = compose(["experiment=see2017"]).logged
    assert shown_params(config, varied={"experiment": "see2017"})["experiment"] == "see2017"


def test_choices_that_a_sweep_varies_have_one_param_each():
    config = compose([]).logged
    varied = {"model/attention": "bahdanau", "seed": "1", "tracking": "none", "hydra/launcher": "x"}
    assert shown_params(config, varied=varied) == shown_params(config)


def test_corpus_from_outside_has_its_own_name():
    params = shown("data=hub", "data.dataset=me/corpus", "data.source=en", "data.target=de")
    assert (params["data"], params["data.dataset"]) == ("corpus", "me/corpus")


def test_class_of_the_user_is_named_with_its_settings():
    score = {"_target_": "their_package.EuclideanScore", "size": 8}
    params = shown_params({"model": {"attention": score}})
    assert params == {"attention": "euclidean", "model.attention.size": "8"}


def test_filter_finds_the_run_by_the_padding_that_was_typed(tracking, runs, point, record, client):
    config = compose(["padding=pre_post"]).logged
    with tracking().start(runs, point, dataclasses.replace(record, config=config)) as run:
        pass
    experiment = client.get_run(run.run_id).info.experiment_id
    found = client.search_runs([experiment], "params.padding = 'pre_post'")
    assert [each.info.run_id for each in found] == [run.run_id]
