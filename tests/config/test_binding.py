"""Binding a config: any class of the right base, and all problems reported at once.

The problems are sentences, reported before anything is built.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import torch
import yaml
from pydantic import Field, NonNegativeFloat, PositiveInt

from attnlab.batch import Padding
from attnlab.config.annotation_text import describe
from attnlab.config.binding import bind, bind_sections
from attnlab.config.part import Part
from attnlab.config.target import known_targets
from attnlab.errors import ExperimentError, show
from attnlab.model.attention.bahdanau import BahdanauScore
from attnlab.model.attention.mechanism import LinearProjection
from attnlab.model.attention.score import Score
from attnlab.model.bridges import Bridge
from attnlab.model.encoders.encoder import Encoder
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.model.normalisers.softmax import Softmax
from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.greedy import GreedySearch
from attnlab.search.search import Search
from attnlab.tasks.translation.settings import TranslationTraining
from attnlab.training.hardware import Hardware

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
    sizes = {
        "cell": "gru",
        "embedding_size": 4,
        "layers": 1,
        "word_dropout": 0.0,
        "dropout": 0.0,
        "layer_dropout": 0.0,
    }
    return {
        "_target_": "attnlab.model.seq2seq.Seq2Seq",
        **dict.fromkeys(("projection", "history", "heads", "input_feeding")),
        "normaliser": node_of("model", "normaliser", "softmax"),
        "scope": node_of("model", "scope", "global"),
        "readout": node_of("model", "readout", "tanh") | {"dropout": 0.0},
        "output": node_of("model", "output", "linear"),
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


def test_bind_valid_node_returns_its_object(training):
    bound = bind(training, TranslationTraining, "training")
    assert isinstance(bound, TranslationTraining)
    assert isinstance(bound.validation_search, GreedySearch)
    chosen = (
        training["max_steps"],
        training["optimizer"]["lr"],
        training["batching"]["size"],
    )
    assert (bound.max_steps, bound.optimizer.values["lr"], bound.batching.size) == chosen
    assert bound.teacher_forcing.ratio_at(0) == 1.0


def test_bind_class_with_run_time_arguments_returns_a_part(model):
    part = bind(model, Seq2Seq, "model")
    assert isinstance(part, Part)
    assert isinstance(part.values["attention"], Part)
    assert part.values["attention"].values == {"size": 128, "bias": False}
    built = part(source_vocabulary_size=8, target_vocabulary_size=9, padding=Padding())
    assert isinstance(built, Seq2Seq)
    assert isinstance(built.decoder.attention.score, BahdanauScore)
    assert built.output.out_features == 9


def test_bind_run_time_argument_in_config_is_refused(model):
    for name in ("source_vocabulary_size", "padding"):
        (problem,) = problems(model | {name: 8}, Seq2Seq, "model")
        assert problem.startswith(f"model.{name} is not a setting")
    model["encoder"]["source_vocabulary_size"] = 8
    (problem,) = problems(model, Seq2Seq, "model")
    assert problem.startswith("model.encoder.source_vocabulary_size is not a setting")


def test_bind_unknown_key_names_the_nearest_and_all_settings(model):
    model["encoder"]["hiden_size"] = 4
    (problem,) = problems(model, Seq2Seq, "model")
    assert problem == (
        "model.encoder.hiden_size is not a setting; did you mean hidden_size? model.encoder has: "
        "bidirectional, cell, dropout, embedding_size, hidden_size, layer_dropout, layers, merge, "
        "output_dropout, reverse_source, word_dropout"
    )
    (problem,) = problems({"_target_": "attnlab.model.attention.dot.DotScore", "zz": 1}, Score)
    assert problem == "here.zz is not a setting; here has: no settings"


def test_bind_missing_key_says_what_it_must_be(model):
    del model["encoder"]["layers"], model["bridge"]
    assert problems(model, Seq2Seq, "model") == [
        "model.encoder.layers is missing; it must be a whole number above 0",
        "model.bridge is missing; it must be a Bridge (a mapping with _target_)",
    ]


SIZE, FLAG = "hidden_size must be a whole number above 0", "bidirectional must be true or false"
CELL = "cell must be one of rnn, gru, lstm"
INVALID = [
    *((SIZE, value) for value in (0, -1, True, "3", 3.0, None, math.inf, math.nan, [3], {})),
    *((FLAG, value) for value in (1, 0, "true", None)),
    *((CELL, value) for value in ("GRU", 1, None, ["gru"])),
]


@pytest.mark.parametrize(("sentence", "value"), INVALID)
def test_bind_invalid_value_is_refused_with_what_is_allowed_and_given(model, sentence, value):
    model["encoder"][sentence.split()[0]] = value
    assert problems(model, Seq2Seq, "model") == [f"model.encoder.{sentence}, got {show(value)}"]


def test_bind_rule_between_fields_names_its_path(training):
    found = problems(training | {"max_steps": None}, TranslationTraining, "training")
    assert found == [
        "training.max_steps and max_epochs are both null; give at least one, or training never ends"
    ]
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
def test_bind_node_without_target_is_refused(node):
    (problem,) = problems(node, Search, "search")
    assert problem.startswith("search must be a Search (a mapping with _target_), got ")


def test_bind_sections_reports_all_problems_with_their_paths(model, training):
    model["encoder"] |= {"hidden_size": -3, "cell": "gur"}
    model["decoder"]["_target_"] = "torch.hub.load"
    model["attention"]["siez"] = 1
    del training["log_every"]
    training["teacher_forcing"]["ratio"] = 1.5
    config = {"model": model, "training": training, "seeds": 1}
    seed = Annotated[int, Field(ge=0)]
    with pytest.raises(ExperimentError) as caught:
        bind_sections(
            config, {"seed": seed, "model": Part[Seq2Seq], "training": TranslationTraining}
        )
    found = caught.value.problems
    starts = (
        "seeds is not a setting; did you mean seed?",
        "seed is missing; it must be a whole number of at least 0",
        "model.encoder.cell must be one of rnn, gru, lstm, got 'gur'",
        "model.encoder.hidden_size must be a whole number above 0, got -3",
        "model.attention.siez is not a setting; did you mean size?",
        "model.decoder._target_ is ",
        "training.log_every is missing",
        "training.teacher_forcing.ratio must be a number between 0 and 1, got 1.5",
    )
    for start in starts:
        assert sum(problem.startswith(start) for problem in found) == 1, (start, found)
    assert len(found) == len(starts)
    assert str(caught.value).splitlines() == found


OWN = """
from attnlab.model.attention.score import Score
from attnlab.model.bridges import Bridge
from attnlab.model.encoders.encoder import Encoder

class OwnScore(Score):
    def __init__(self, scale: float, *, query_size: int, key_size: int) -> None:
        super().__init__()
        self.scale, self.projected_key_size = scale, key_size

    def forward(self, query, keys):
        return self.scale * query @ keys.transpose(1, 2)

class Plain(OwnScore):
    def __init__(self, scale, *, query_size, key_size) -> None:
        super().__init__(scale, query_size=query_size, key_size=key_size)

class Greedy(OwnScore):
    def __init__(self, *, query_size: int, key_size: int, text: str) -> None: ...

class KeywordOnly(OwnScore):
    def __init__(self, *, query_size: int, key_size: int, scale: float, path: str = "") -> None:
        super().__init__(scale, query_size=query_size, key_size=key_size)
        self.path = path

class Narrow(OwnScore):
    def __init__(self, key_size: int) -> None:
        super().__init__(1.0, query_size=key_size, key_size=key_size)

class Bare(Score):
    def forward(self, query, keys):
        return query @ keys.transpose(1, 2)

class Passing(OwnScore):
    def __init__(self, note: str = "", **kwargs) -> None:
        super().__init__(**kwargs)

class ByPosition(OwnScore):
    def __init__(
        self, scale: float, offset: float = 0.5, /, *rest, query_size: int, key_size: int
    ) -> None:
        super().__init__(scale, query_size=query_size, key_size=key_size)
        self.offset, self.rest = offset, rest
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_scores.py").write_text(OWN)
    (tmp_path / "unfinished.py").write_text("import a_missing_library")
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_scores"
    sys.modules.pop("own_scores", None)


def test_bind_class_of_the_users_module_is_checked_like_ours(own_module):
    part = bind({"_target_": f"{own_module}.OwnScore", "scale": 2}, Score, "model.attention")
    assert part(query_size=3, key_size=3).scale == 2
    found = problems(
        {"_target_": f"{own_module}.OwnScore", "scale": "x", "b": 1}, Score, "model.attention"
    )
    assert found == [
        "model.attention.b is not a setting; model.attention has: scale",
        "model.attention.scale must be a number, got 'x'",
    ]


def test_bind_setting_without_annotation_takes_any_value(own_module):
    part = bind({"_target_": f"{own_module}.Plain", "scale": [1, "x"]}, Score, "model.attention")
    assert part(query_size=3, key_size=3).scale == [1, "x"]
    assert problems({"_target_": f"{own_module}.Plain"}, Score, "model.attention") == [
        "model.attention.scale is missing; it must be a value"
    ]


def test_bind_keyword_only_parameter_is_a_setting(own_module):
    node = {"_target_": f"{own_module}.KeywordOnly", "scale": 3, "path": "x"}
    made = bind(node, Score, "model.attention")(query_size=3, key_size=3)
    assert (made.scale, made.path) == (3, "x")
    assert problems(node | {"scale": "x"}, Score) == ["here.scale must be a number, got 'x'"]
    assert problems({"_target_": f"{own_module}.Greedy"}, Score) == [
        "here.text is missing; it must be text; the program itself gives query_size, key_size"
    ]


@pytest.mark.parametrize("name", ["Narrow", "Bare"])
def test_part_gives_a_constructor_the_run_time_arguments_that_it_takes(own_module, name):
    part = bind({"_target_": f"{own_module}.{name}"}, Score, "model.attention")
    assert isinstance(part(query_size=3, key_size=3), Score)
    (problem,) = problems({"_target_": f"{own_module}.{name}", "key_size": 3}, Score)
    assert problem.startswith("here.key_size is not a setting")


def test_part_lacking_a_run_time_argument_says_which_are_given():
    part = bind(
        {"_target_": f"{LinearProjection.__module__}.LinearProjection", "size": 3},
        Score,
        "model.attention",
    )
    with pytest.raises(
        ExperimentError, match=r"model.attention: LinearProjection does not fit .*key_size.*'score'"
    ):
        part(query_size=3, key_size=3)


def test_bind_further_keyword_arguments_are_passed_on_as_they_are(own_module):
    node = {"_target_": f"{own_module}.Passing", "scale": [1, {"a": 2}]}
    assert bind(node, Score)(query_size=3, key_size=3).scale == [1, {"a": 2}]
    assert problems(node | {"note": 3}, Score) == ["here.note must be text, got 3"]
    (problem,) = problems(node | {"query_size": 3}, Score)
    assert problem.startswith("here.query_size is not a setting")


@pytest.mark.parametrize("name", ["Passing", "OwnScore"])
@pytest.mark.parametrize("key", ["_convert_", "_recursive_", "_args_"])
def test_bind_key_of_hydra_is_refused_by_its_name(own_module, name, key):
    node = {"_target_": f"{own_module}.{name}", "scale": 1.0, key: "all"}
    assert problems(node, Score, "model.attention") == [
        f"model.attention.{key} is a key of Hydra's `instantiate`, which attnlab does not use to "
        "build a part; leave it out"
    ]


def test_bind_partial_node_of_a_library_is_called_with_its_first_parameter():
    node = {"_target_": "torch.optim.SGD", "_partial_": True, "lr": 0.5}
    bound = bind_sections({"it": node}, {"it": Part[torch.optim.Optimizer]})
    (parameter,) = parameters = [torch.nn.Parameter(torch.ones(1))]
    made = bound["it"](parameters)
    assert isinstance(made, torch.optim.SGD)
    assert made.param_groups[0]["params"] == [parameter]
    assert made.defaults["lr"] == 0.5


def test_bind_partial_node_of_a_seam_is_the_same_as_without(own_module):
    node = {"_target_": f"{own_module}.OwnScore", "scale": 2, "_partial_": True}
    assert bind(node, Score)(query_size=3, key_size=3).scale == 2


def test_bind_node_of_a_seam_without_runtime_arguments_needs_no_partial():
    node = {"_target_": "attnlab.model.normalisers.softmax.Softmax"}
    bound = bind_sections({"it": node}, {"it": Part[Normaliser]})
    assert isinstance(bound["it"](), Softmax)


@pytest.mark.parametrize("given", ["all", 1, None])
def test_bind_partial_that_is_no_truth_value_is_refused(own_module, given):
    node = {"_target_": f"{own_module}.OwnScore", "scale": 2.0, "_partial_": given}
    (problem,) = problems(node, Score, "model.attention")
    assert problem.startswith("model.attention._partial_ must be true or false, got ")


def test_bind_partial_node_where_an_object_is_needed_is_refused():
    node = node_of("search", "greedy") | {"_partial_": True}
    (problem,) = problems(node, Search, "search")
    assert problem == (
        "search._partial_ must be false: it makes a function here, which is no Search"
    )


def test_bind_partial_node_without_annotation_leaves_the_rest_to_its_caller(own_module):
    inner = {"_target_": f"{own_module}.OwnScore", "_partial_": True}
    node = {"_target_": f"{own_module}.Plain", "scale": inner}
    make = bind(node, Score)(query_size=3, key_size=3).scale
    assert make(scale=4, query_size=3, key_size=3).scale == 4


class Calls:
    def __init__(self, make: Callable[[float], object]) -> None:
        self.made = make(0.25)


def test_bind_partial_node_where_a_function_is_needed_is_one():
    node = {
        "_target_": "attnlab.training.teacher_forcing.ConstantTeacherForcing",
        "_partial_": True,
        "coin": "batch",
    }
    made = bind({"_target_": f"{Calls.__module__}.Calls", "make": node}, Calls).made
    assert (made.ratio, made.coin) == (0.25, "batch")


def test_bind_union_of_kinds_takes_a_node_of_each():
    kinds = {"it": Search | Part[torch.optim.Optimizer]}
    node = {"_target_": "torch.optim.SGD", "_partial_": True}
    assert isinstance(bind_sections({"it": node_of("search", "greedy")}, kinds)["it"], Search)
    assert isinstance(bind_sections({"it": node}, kinds)["it"], Part)
    with pytest.raises(ExperimentError) as caught:
        bind_sections({"it": node | {"_partial_": False}}, kinds)
    assert caught.value.problems == [
        "it._partial_ must be true: the program itself gives SGD its params"
    ]


@pytest.mark.parametrize("name", ["Plain", "Passing"])
def test_bind_nested_target_without_annotation_is_built(own_module, name):
    inner = {"_target_": "attnlab.batch.Padding"}
    node = {"_target_": f"{own_module}.{name}", "scale": [inner, {"a": inner}]}
    first, second = bind(node, Score)(query_size=3, key_size=3).scale
    assert isinstance(first, Padding)
    assert isinstance(second["a"], Padding)
    inner["colour"] = "red"
    assert [problem.split(" is not")[0] for problem in problems(node, Score)] == [
        "here.scale[0].colour",
        "here.scale[1].a.colour",
    ]
    assert problems(node | {"scale": {"_target_": "os.system"}}, Score) == [
        "here.scale._target_ must be a class, got 'os.system': it is not a class"
    ]
    assert problems(node | {"scale": {"_target_": "builtins.dict"}}, Score) == [
        "here.scale._target_ must be a class, got 'builtins.dict': "
        "its constructor does not say what it takes"
    ]


@pytest.mark.parametrize(
    ("annotation", "value", "said"),
    [
        (
            dict[str, dict[str, Any]],
            {"good": {}, "i": 3},
            ["it.i must be a mapping of text to a value, got 3"],
        ),
        (
            dict[str, str | int] | None,
            {"a": None},
            ["it.a must be text or a whole number, got null"],
        ),
        (dict[str, list[int]], {"a": [1, "x"], "b": 2}, [
            "it.a[1] must be a whole number, got 'x'",
            "it.b must be a list of a whole number, got 2",
        ]),
        (
            list[int] | str,
            [1, None],
            ["it must be a list of a whole number or text, got [1, null]"],
        ),
        (tuple[int, str], [1, 2], ["it[1] must be text, got 2"]),
        (dict[str, int], None, ["it must be a mapping of text to a whole number, got null"]),
    ],
)  # fmt: skip
def test_bind_wrong_entry_is_named_alone(annotation, value, said):
    with pytest.raises(ExperimentError) as caught:
        bind_sections({"it": value}, {"it": annotation})
    assert caught.value.problems == said


LARGEST = 9223372036854775807


@pytest.mark.parametrize(
    ("annotation", "value", "said"),
    [
        (PositiveInt, 10**20, f"it must be at most {LARGEST} in size, got {10**20}"),
        (int | None, -(10**20), f"it must be at most {LARGEST} in size, got -{10**20}"),
        (float, 1e39, "it must be at most 3.4e+38 in size, as single precision, got 1e+39"),
        (
            list[float],
            [1.0, -1e39],
            "it[1] must be at most 3.4e+38 in size, as single precision, got -1e+39",
        ),
        (dict[str, int], {"a": 10**20}, f"it.a must be at most {LARGEST} in size, got {10**20}"),
    ],
)
def test_bind_number_that_no_tensor_holds_is_refused(annotation, value, said):
    with pytest.raises(ExperimentError) as caught:
        bind_sections({"it": value}, {"it": annotation})
    assert caught.value.problems == [said]


@pytest.mark.parametrize(
    ("annotation", "value"), [(int, LARGEST), (float, 3e38), (str, "1" * 40), (bool, True)]
)
def test_bind_number_that_a_tensor_holds_is_taken(annotation, value):
    assert bind_sections({"it": value}, {"it": annotation}) == {"it": value}


def test_part_with_a_keyword_argument_that_its_base_refuses_says_so(own_module):
    part = bind(
        {"_target_": f"{own_module}.Passing", "scale": 1, "colour": "red"}, Score, "model.attention"
    )
    with pytest.raises(
        ExperimentError, match=r"^model.attention: Passing cannot be made of .* argument 'colour'$"
    ):
        part(query_size=3, key_size=3)


def test_bind_positional_only_parameter_is_a_setting_and_further_positions_stay_empty(own_module):
    node = {"_target_": f"{own_module}.ByPosition", "scale": 2}
    made = bind(node, Score)(query_size=3, key_size=3)
    assert (made.scale, made.offset, made.rest) == (2, 0.5, ())
    assert bind(node | {"offset": 1}, Score)(query_size=3, key_size=3).offset == 1
    assert problems(node | {"rest": [1]}, Score) == [
        "here.rest is not a setting; here has: offset, scale"
    ]


TYPED = """
from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Optional, Union

import torch

from attnlab.search.beam import BeamSearch
from attnlab.search.search import Search

if TYPE_CHECKING:
    from a_missing_library import Run

class Colour(Enum):
    RED = "red"

class Searching(Search):
    def __init__(
        self,
        size: int,
        run: Optional[Run] = None,
        device: Union[torch.device, str] = "cpu",
        devices: dict[str, torch.device] | None = None,
        colour: Colour = Colour.RED,
    ) -> None:
        self.max_length, self.max_length_ratio, self.min_length, self.n_best = 3, None, 0, 1
        self.replace_unknown = self.int8 = False
        self.given = [size, run, device, devices, colour]

    def __call__(self, model, source, source_mask, with_attention=False, forced=None): ...

@dataclass(frozen=True)
class Wider(BeamSearch):
    factor: float = 2.0

class Inner:
    pass

class Outer(Searching):
    def __init__(self, inner: Inner) -> None:
        super().__init__(3)
        self.inner = inner

class Unfinished(Searching):
    def __init__(self) -> None:
        self.max_length = 3
"""


@pytest.fixture
def typed_module(tmp_path, monkeypatch):
    (tmp_path / "own_searches.py").write_text(TYPED)
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_searches"
    sys.modules.pop("own_searches", None)


def test_bind_parameter_whose_annotation_does_not_resolve_takes_any_value(typed_module):
    node = {"_target_": f"{typed_module}.Searching", "size": 3, "run": [1], "devices": {"a": "cpu"}}
    made = bind(node, Search)
    assert made.given[:4] == [3, [1], "cpu", {"a": "cpu"}]
    # The others are checked all the same.
    assert problems(node | {"size": "x"}, Search) == ["here.size must be a whole number, got 'x'"]


def test_bind_union_of_a_class_and_plain_values_takes_both(typed_module):
    node = {"_target_": f"{typed_module}.Searching", "size": 3}
    assert bind(node | {"device": "cuda"}, Search).given[2] == "cuda"
    assert problems(node | {"device": 3}, Search) == ["here.device must be text, got 3"]


def test_bind_enumeration_takes_the_value_of_a_member(typed_module):
    node = {"_target_": f"{typed_module}.Searching", "size": 3}
    assert bind(node | {"colour": "red"}, Search).given[4].name == "RED"
    assert problems(node | {"colour": "blue"}, Search) == [
        "here.colour must be one of red, got 'blue'"
    ]


def test_bind_dataclass_of_another_module_checks_its_inherited_fields(typed_module):
    search = node_of("search", "beam")
    node = search | {"_target_": f"{typed_module}.Wider", "factor": 3}
    assert bind(node, Search).factor == 3
    (problem,) = problems(node | {"n_best": "x"}, Search)
    assert problem.startswith("here.n_best must be a whole number")


def test_bind_class_of_the_users_module_is_checked_as_a_setting_too(typed_module):
    node = {"_target_": f"{typed_module}.Outer", "inner": {"_target_": f"{typed_module}.Inner"}}
    assert type(bind(node, Search).inner).__name__ == "Inner"
    (problem,) = problems(node | {"inner": {"_target_": "pathlib.Path"}}, Search)
    assert problem == (
        "here.inner._target_ is 'pathlib.Path', but it is not a subclass of own_searches.Inner; "
        "it must be an Inner"
    )


def test_bind_object_without_the_attributes_of_its_base_names_them_all(typed_module):
    assert problems({"_target_": f"{typed_module}.Unfinished"}, Search, "search") == [
        "search: Unfinished lacks max_length_ratio, min_length, n_best, replace_unknown, int8, "
        "which every Search sets in its constructor"
    ]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (
            "attnlab.model.attention.dott.DotScore",
            "it cannot be imported (No module named 'attnlab.model.attention.dott')",
        ),
        ("os.system", "it is not a subclass of attnlab.model.attention.score.Score"),
        (
            "attnlab.model.encoders.encoder.Encoder",
            "it is not a subclass of attnlab.model.attention.score.Score",
        ),
        ("attnlab.model.attention.score.Score", "it is an abstract base class"),
        ("attnlab.model.attention.dot.Dot", "attnlab.model.attention.dot has no Dot"),
        (
            "no_such_module.Score",
            "it cannot be imported (No module named 'no_such_module'); install it",
        ),
        ("unfinished.Score", "it cannot be imported (No module named 'a_missing_library')"),
        ("DotScore", "it is not the dotted name of a class"),
        ("..DotScore", "it is not the dotted name of a class"),
        ("", "it is not the dotted name of a class"),
        (3, "it is not the dotted name of a class"),
    ],
)
@pytest.mark.usefixtures("own_module")
def test_bind_unusable_target_says_why_and_offers_the_known_ones(target, reason):
    (problem,) = problems({"_target_": target}, Score, "model.attention")
    assert problem.startswith(f"model.attention._target_ is {show(target)}, but {reason}")
    assert "t must be one of attnlab.model.attention.bahdanau.BahdanauScore, " in problem
    assert problem.endswith(", or a Score of your own")
    (misspelt,) = problems({"_target_": "attnlab.model.attention.dott.DotScore"}, Score)
    assert "; did you mean attnlab.model.attention.dot.DotScore? It must be one of " in misspelt


def test_known_targets_are_the_concrete_classes_of_the_kind():
    assert known_targets(Search) == [
        "attnlab.search.beam.BeamSearch",
        "attnlab.search.greedy.GreedySearch",
        "attnlab.search.sample.SampleSearch",
    ]
    encoders = known_targets(Encoder)
    assert "attnlab.model.encoders.recurrent.RecurrentEncoder" in encoders
    assert "attnlab.model.encoders.encoder.Encoder" not in encoders  # abstract
    assert "attnlab.model.bridges.ZeroBridge" in known_targets(Bridge)


def test_known_targets_leave_out_what_the_program_puts_around_the_chosen_one():
    projection = "attnlab.model.attention.mechanism.LinearProjection"
    assert issubclass(LinearProjection, Score)
    assert projection not in known_targets(Score)
    assert known_targets(LinearProjection) == [projection]


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (Path, "a path"),
        (str | None, "text or null"),
        (NonNegativeFloat, "a number of at least 0"),
        (PositiveInt | None, "a whole number above 0 or null"),
        (Annotated[float, Field(ge=0, le=1)], "a number between 0 and 1"),
        (Annotated[float, Field(ge=0, lt=1)], "a number of at least 0 and below 1"),
        (Annotated[int, Field(le=5)], "a whole number of at most 5"),
        (Annotated[str, Field(min_length=1)], "text that is not empty"),
        (Literal[32, "bf16"], "one of 32, bf16"),
        (Literal["only"], "only"),
        (str | int | float | bool, "text, a number, true or false"),
        (
            dict[str, str | float | bool] | None,
            "a mapping of text to text, a number, true or false, or null",
        ),
        (dict[str, bool], "a mapping of text to true or false"),
        (
            Annotated[list[Literal["a", "b"]], Field(min_length=1)],
            "a list of one of a, b with at least 1 entry",
        ),
    ],
)
def test_describe_puts_an_annotation_in_words(annotation, words):
    assert describe(annotation) == words


def test_show_writes_what_the_user_wrote_and_shortens_it():
    assert [show(v) for v in ("abc", 3, True, None, [1, "ä"])] == [
        "'abc'",
        "3",
        "true",
        "null",
        '[1, "ä"]',
    ]
    assert len(show("x" * 500)) == 120


def test_constructor_hints_fill_in_the_type_argument_of_a_generic_base(model):
    model["decoder"]["context"] = "nowhere"
    (problem,) = problems(model, Seq2Seq, "model")
    assert (
        problem
        == "model.decoder.context must be one of cell, readout, cell_and_readout, got 'nowhere'"
    )


class Broken:
    def __init__(self, kind: str) -> None:
        raise {
            "key": KeyError("nokey"),
            "file": FileNotFoundError("nofile"),
            "runtime": RuntimeError("no"),
        }[kind]


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("key", "KeyError: 'nokey'"),
        ("file", "FileNotFoundError: nofile"),
        ("runtime", "RuntimeError: no"),
    ],
)
def test_constructor_that_fails_is_reported_with_its_path_and_line(kind, error):
    with pytest.raises(ExperimentError) as caught:
        Part(Broken, "model.bridge", kind=kind)()
    (problem,) = caught.value.problems
    assert problem.startswith(
        f"model.bridge: Broken cannot be made: {error} (test_binding.py, line "
    )
