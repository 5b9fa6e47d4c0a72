"""What the words of the command line mean to a search."""

from __future__ import annotations

import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from attnlab.errors import ExperimentError
from made_search import space_of


@pytest.mark.parametrize(
    ("words", "distribution"),
    [
        ("interval(0,0.5)", FloatDistribution(0.0, 0.5)),
        ("interval(0,1)", FloatDistribution(0.0, 1.0)),
        ("tag(log,interval(1e-4,1e-2))", FloatDistribution(1e-4, 1e-2, log=True)),
        ("int(interval(1,8))", IntDistribution(1, 8)),
        ("tag(log,int(interval(1,100)))", IntDistribution(1, 100, log=True)),
        ("range(1,10,2)", IntDistribution(1, 9, step=2)),
        ("range(4)", IntDistribution(0, 3)),
        ("range(10,1,-3)", IntDistribution(4, 10, step=3)),
        ("tag(log,range(1,65))", IntDistribution(1, 64, log=True)),
        ("range(0,1,0.25)", FloatDistribution(0.0, 0.75, step=0.25)),
        ("choice(0.1,0.2)", CategoricalDistribution(["0.1", "0.2"])),
        ("dot,general", CategoricalDistribution(["dot", "general"])),
        ("true,null", CategoricalDistribution(["True", "null"])),
        ("[1,2],[3]", CategoricalDistribution(["[1,2]", "[3]"])),
        ("choice(1)", CategoricalDistribution(["1"])),
        ("choice(1,1)", CategoricalDistribution(["1"])),
    ],
)
def test_words_of_hydra_have_a_distribution(words: str, distribution: BaseDistribution) -> None:
    assert space_of(f"model.a={words}").varied == {"model.a": distribution}


def test_point_has_what_varies_and_what_is_fixed() -> None:
    space = space_of("+a=interval(0,1)", "b='x y'", "~c", "d=dot,general", "e=range(0,1,0.1)")
    values = {"+a": 1e-05, "d": "dot", "e": 0.30000000000000004}
    assert space.overrides(values) == ["+a=1e-05", "d=dot", "e=0.3", "b='x y'", "~c"]


def test_last_override_of_a_key_counts() -> None:
    space = space_of("a=interval(0,1)", "a=2", "b=1", "b=1,2")
    assert list(space.varied) == ["b"]
    assert space.fixed == {"a": "a=2"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("interval(1,0)", "must be an interval that starts below its end, got interval(1,0)"),
        ("interval(1,1)", "must be an interval that starts below its end"),
        ("tag(log,interval(0,1))", "must be an interval above 0 for the tag log"),
        ("tag(lgo,interval(0,1))", "must have the tag log or none"),
        ("tag(log,range(1,9,2))", "must be a range of whole numbers above 0"),
        ("tag(log,choice(1,2))", "must be an interval or a range for the tag log"),
        ("range(3,3)", "must be a range with a value in it"),
    ],
)
def test_words_that_mean_no_values_are_refused(words: str, sentence: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        space_of(f"training.optimizer.lr={words}", "model.a=interval(2,1)")
    first, second = refused.value.problems
    assert first.startswith(f"training.optimizer.lr {sentence}")
    assert second.startswith("model.a must be")


def test_grid_has_all_values_and_refuses_an_interval() -> None:
    space = space_of("a=range(0,1,0.5)", "b=range(1,6,2)", "c=x,y")
    assert space.grid() == {"a": [0.0, 0.5], "b": [1, 3, 5], "c": ["x", "y"]}
    with pytest.raises(ExperimentError, match=r"a must be a choice.* for the sampler grid"):
        space_of("a=interval(0,1)").grid()
