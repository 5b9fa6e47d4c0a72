"""Binding a config: what is wrong with it is said, all at once and in sentences, before anything is built."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from pydantic import Field

from attnlab.batch import Padding
from attnlab.config.binding import bind, bind_sections
from attnlab.config.part import RUNTIME_ARGUMENTS, Part
from attnlab.errors import ExperimentError
from attnlab.model.attention.bahdanau import BahdanauScore
from attnlab.model.attention.score import Score
from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.greedy import GreedySearch
from attnlab.search.search import Search
from attnlab.training.hardware import Hardware
from attnlab.training.settings import TranslationTraining
from attnlab.training.teacher_forcing import TeacherForcing

CONF = Path(__file__).resolve().parents[2] / "conf"
RATIO = "attnlab.training.teacher_forcing.ConstantTeacherForcing"


def node_of(*parts: str) -> dict[str, Any]:
    node = yaml.safe_load((CONF.joinpath(*parts)).with_suffix(".yaml").read_text())
    node.pop("defaults", None)
    return node


@pytest.fixture
def training() -> dict[str, Any]:
    node = node_of("training", "classification") | node_of("training", "standard")
    node["batching"]["pool"] = None  # in the composed config that of the hardware
    return node | {
        "optimizer": node_of("training", "optimizer", "adam"),
        "schedule": node_of("training", "schedule", "constant"),
        "teacher_forcing": node_of("training", "teacher_forcing", "constant"),
    }


@pytest.fixture
def model() -> dict[str, Any]:
    sizes = {"cell": "gru", "embedding_size": 4, "layers": 1, "dropout": 0.0, "layer_dropout": 0.0}
    return {
        "_target_": "attnlab.model.seq2seq.Seq2Seq",
        **dict.fromkeys(("projection", "coverage", "heads", "input_feeding")),
        "normaliser": node_of("model", "normaliser", "softmax"),
        "scope": node_of("model", "scope", "global"),
        "readout": node_of("model", "readout", "tanh") | {"dropout": 0.0},
        "tied_embeddings": "none",
        "encoder": node_of("model", "encoder", "gru") | sizes | {"hidden_size": 4},
        "bridge": node_of("model", "bridge", "linear"),
        "attention": node_of("model", "attention", "bahdanau"),
        "decoder": node_of("model", "decoder", "attend_then_step") | sizes | {"hidden_size": 8},
    }


def problems(node: Any, kind: type, path: str = "here") -> list[str]:
    with pytest.raises(ExperimentError) as caught:
        bind(node, kind, path)
    return caught.value.problems


def test_a_good_node_becomes_its_object(training):
    bound = bind(training, TranslationTraining, "training")
    assert isinstance(bound, TranslationTraining)
    assert isinstance(bound.validation_search, GreedySearch)
    chosen = (training["max_steps"], training["optimizer"]["learning_rate"], training["batching"]["size"])
    assert (bound.max_steps, bound.optimizer.learning_rate, bound.batching.size) == chosen
    assert bound.teacher_forcing.ratio_at(0) == 1.0


def test_binding_leaves_the_config_as_it_was(training, model):
    before = copy.deepcopy((training, model))
    bind(training, TranslationTraining, "training")
    bind(model, Seq2Seq, "model")
    assert (training, model) == before


def test_a_class_that_waits_for_run_time_becomes_a_part(model):
    part = bind(model, Seq2Seq, "model")
    assert isinstance(part, Part)
    assert isinstance(part.values["attention"], Part)
    assert part.values["attention"].values == {"size": 128}
    built = part(source_vocabulary_size=8, target_vocabulary_size=9, padding=Padding())
    assert isinstance(built, Seq2Seq)
    assert isinstance(built.decoder.attention.score, BahdanauScore)
    assert built.output.out_features == 9


def test_two_calls_of_a_part_share_no_parameters(model):
    part = bind(model, Seq2Seq, "model")
    one, two = (part(source_vocabulary_size=8, target_vocabulary_size=9, padding=Padding()) for _ in range(2))
    assert not {id(p) for p in one.parameters()} & {id(p) for p in two.parameters()}


def test_run_time_arguments_cannot_be_configured(model):
    for name in ("source_vocabulary_size", "padding"):
        (problem,) = problems(model | {name: 8}, Seq2Seq, "model")
        assert problem.startswith(f"model.{name} is not a setting")
    model["encoder"]["source_vocabulary_size"] = 8
    (problem,) = problems(model, Seq2Seq, "model")
    assert problem.startswith("model.encoder.source_vocabulary_size is not a setting")


def test_an_unknown_key_is_named_with_the_nearest_and_all(model):
    model["encoder"]["hiden_size"] = 4
    (problem,) = problems(model, Seq2Seq, "model")
    assert problem == (
        "model.encoder.hiden_size is not a setting; did you mean hidden_size? model.encoder has: "
        "bidirectional, cell, dropout, embedding_size, hidden_size, layer_dropout, layers, merge, reverse_source, "
        "skipping"
    )
    (problem,) = problems({"_target_": "attnlab.model.attention.dot.DotScore", "zz": 1}, Score)
    assert problem == "here.zz is not a setting; here has: no settings"


def test_a_missing_key_is_named_with_what_it_must_be(model):
    del model["encoder"]["layers"], model["bridge"]
    assert problems(model, Seq2Seq, "model") == [
        "model.encoder.layers is missing; it must be a whole number above 0",
        "model.bridge is missing; it must be a Bridge (a mapping with _target_)",
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.5, "1.5"),
        (-0.1, "-0.1"),
        ("0.5", "'0.5'"),
        (True, "true"),
        (None, "null"),
        ([0.5], "[0.5]"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        ({"ratio": 0.5}, '{"ratio": 0.5}'),
    ],
)
def test_a_ratio_that_is_none(value, shown):
    found = problems({"_target_": RATIO, "ratio": value}, TeacherForcing, "training.teacher_forcing")
    assert found == [f"training.teacher_forcing.ratio must be a number between 0 and 1, got {shown}"]


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, 0.25])
def test_a_ratio_that_is_one(value):
    assert bind({"_target_": RATIO, "ratio": value}, TeacherForcing, "x").ratio_at(0) == value


@pytest.mark.parametrize("value", [0, -1, True, "3", 3.0, 2.5, None, math.inf, math.nan, [3], {}])
def test_a_size_that_is_none(model, value):
    model["encoder"]["hidden_size"] = value
    (problem,) = problems(model, Seq2Seq, "model")
    assert problem.startswith("model.encoder.hidden_size must be a whole number above 0, got ")


@pytest.mark.parametrize("value", [1, 0, "true", "yes", None])
def test_a_truth_that_is_none(model, value):
    model["encoder"]["bidirectional"] = value
    (problem,) = problems(model, Seq2Seq, "model")
    assert problem.startswith("model.encoder.bidirectional must be true or false, got ")


@pytest.mark.parametrize("value", ["GRU", "transformer", 1, None, ["gru"]])
def test_a_choice_that_is_none(model, value):
    model["encoder"]["cell"] = value
    (problem,) = problems(model, Seq2Seq, "model")
    assert problem.startswith("model.encoder.cell must be one of rnn, gru, lstm, got ")


@pytest.mark.parametrize("value", [16, "32", "fp16", True])
def test_a_choice_of_two_types_that_is_none(value):
    (problem,) = problems(node_of("hardware", "cpu") | {"precision": value}, Hardware, "hardware")
    assert problem.startswith("hardware.precision must be one of 32, bf16, auto, got ")


def test_numbers_of_an_unbounded_kind_are_finite_too(training):
    for value in (math.inf, math.nan):
        training["gradient_clip"] = value
        (problem,) = problems(training, TranslationTraining, "training")
        assert problem.startswith("training.gradient_clip must be a number of at least 0, got ")


def test_null_is_legal_only_where_it_is_written(training):
    bind(training | {"patience": None}, TranslationTraining, "training")
    (problem,) = problems(training | {"log_every": None}, TranslationTraining, "training")
    assert problem == "training.log_every must be a whole number above 0, got null"


def test_a_rule_between_fields_is_told_with_its_path(training):
    found = problems(training | {"max_steps": None}, TranslationTraining, "training")
    assert found == ["training.max_steps and max_epochs are both null; give at least one, or training never ends"]
    (problem,) = problems(node_of("hardware", "cpu") | {"devices": 2}, Hardware, "hardware")
    assert problem.startswith("hardware.strategy single has one process, but there are 2 device(s)")


def test_bound_part_that_fails_at_run_time_reports_its_config_path(model):
    model["attention"] = {"_target_": "attnlab.model.attention.dot.DotScore"}
    model["decoder"]["hidden_size"] = 5
    part = bind(model, Seq2Seq, "model")
    with pytest.raises(ExperimentError) as caught:
        part(source_vocabulary_size=8, target_vocabulary_size=9, padding=Padding())
    (problem,) = caught.value.problems
    assert problem.startswith("model.attention: the dot score needs a query and keys of one width")
    assert "has 5 and the encoder's output 8" in problem
    assert "model/attention=general" in problem


@pytest.mark.parametrize("node", [None, 3, "gru", [], {}, {"size": 3}, {"_target_": None}])
def test_a_component_that_is_no_mapping_with_a_target(node):
    (problem,) = problems(node, Search, "search")
    assert problem.startswith("search must be a Search (a mapping with _target_), got ")


def test_all_problems_are_told_together_each_with_its_path(model, training):
    model["encoder"] |= {"hidden_size": -3, "cell": "gur"}
    model["decoder"]["_target_"] = "torch.hub.load"
    model["attention"]["siez"] = 1
    del training["log_every"]
    training["teacher_forcing"]["ratio"] = 1.5
    config = {"model": model, "training": training, "seeds": 1}
    seed = Annotated[int, Field(ge=0)]
    with pytest.raises(ExperimentError) as caught:
        bind_sections(config, {"seed": seed, "model": Part[Seq2Seq], "training": TranslationTraining})
    found = caught.value.problems
    starts = (
        "seeds is not a setting; did you mean seed?",
        "seed is missing; it must be a whole number of at least 0",
        "model.encoder.cell must be one of rnn, gru, lstm, got 'gur'",
        "model.encoder.hidden_size must be a whole number above 0, got -3",
        "model.attention.siez is not a setting; did you mean size?",
        "model.decoder._target_ must be one of attnlab.model.decoder.",
        "training.log_every is missing",
        "training.teacher_forcing.ratio must be a number between 0 and 1, got 1.5",
    )
    for start in starts:
        assert sum(problem.startswith(start) for problem in found) == 1, (start, found)
    assert len(found) == len(starts)
    assert str(caught.value).splitlines() == found


def test_sections_of_plain_values():
    sections = {"seed": Annotated[int, Field(ge=0, lt=2**32)], "chain": bool, "padding": Padding}
    padding = node_of("padding", "post_pre")
    bound = bind_sections({"seed": 3, "chain": False, "padding": padding}, sections)
    assert bound == {"seed": 3, "chain": False, "padding": Padding(encoder="post", decoder="pre")}
    with pytest.raises(ExperimentError, match="seed must be a whole number of at least 0 and below 4294967296, got -1"):
        bind_sections({"seed": -1, "chain": False, "padding": padding}, sections)


def test_without_a_path_a_problem_begins_with_the_field():
    (problem,) = problems({"_target_": RATIO, "ratio": 2}, TeacherForcing, path="")
    assert problem.startswith("ratio must be")


def test_part_says_what_it_is_and_passes_values_and_run_time_arguments():
    part: Part[BahdanauScore] = Part(BahdanauScore, "model.attention", size=3)
    assert repr(part) == "Part(BahdanauScore, size=3)"
    score = part(query_size=4, key_size=5)
    assert (score.W.weight.shape, score.U.weight.shape, score.v.shape) == ((3, 4), (3, 5), (3,))
    assert {"query_size", "key_size", "padding"} <= RUNTIME_ARGUMENTS


def test_every_choice_in_conf_that_stands_alone_binds():
    """Nodes with interpolations or sub-choices need a composition; all the others are tried here."""
    tried = 0
    for path in sorted(CONF.rglob("*.yaml")):
        text = path.read_text()
        node = yaml.safe_load(text)
        if "${" in text or "defaults" in node or "_target_" not in node:
            continue
        module, _, name = node["_target_"].rpartition(".")
        kind = vars(__import__(module, fromlist=[name]))[name]
        bind(node, kind, path.stem)
        tried += 1
    assert tried >= 25
