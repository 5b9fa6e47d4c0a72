"""The tree of a beam search, held against the search itself."""

from __future__ import annotations

import pytest

from attnlab.model.attention.intervention import Intervention
from attnlab.tasks.translation.beam_tree import beam


def path(nodes, end):
    tokens = []
    while nodes[end]["parent"] is not None:
        tokens.append(nodes[end]["token"])
        end = nodes[end]["parent"]
    return tokens[::-1]


@pytest.mark.parametrize("size", [1, 3, 8])
@pytest.mark.parametrize(
    "more", [{}, {"length_penalty": 0.0}, {"min_length": 4}, {"coverage_penalty": 0.2}]
)
def test_hypotheses_are_those_of_the_search(character_translator, size, more):
    ours = character_translator()
    tree = beam(ours, "May 13", {"beam": size, **more})
    answer = ours("May 13", beam=size, n_best=size, **more)
    expected = [answer, *answer.alternatives]
    assert [each["text"] for each in tree["hypotheses"]] == [each.text for each in expected]
    for found, each in zip(tree["hypotheses"], expected, strict=True):
        assert found["score"] == pytest.approx(each.score, abs=1e-6)
        assert path(tree["nodes"], found["node"]) == each.tokens
        if "coverage_penalty" not in more:
            penalty = ((5 + found["length"]) / 6) ** tree["length_penalty"]
            assert found["log_prob"] / penalty == pytest.approx(each.score, abs=1e-5)


def test_every_step_keeps_the_beam_and_shows_what_is_pruned(character_translator):
    nodes = beam(character_translator(), "May 13", {"beam": 3})["nodes"]
    steps = max(node["step"] for node in nodes)
    for step in range(steps):
        here = [node for node in nodes if node["step"] == step]
        kept = [node["log_prob"] for node in here if node["status"] == "kept"]
        pruned = [
            node["log_prob"]
            for node in here
            if node["status"] == "pruned" and node["token"] != "<eos>"
        ]
        assert len(kept) == 3
        assert len(here) == 6
        assert min(kept) >= max(pruned)
    assert all(nodes[node["parent"]]["status"] == "kept" for node in nodes[1:])
    assert {node["status"] for node in nodes} <= {"kept", "pruned", "finished", "cut_off"}


def test_forced_tokens_stand_in_every_hypothesis(character_translator):
    tree = beam(character_translator(), "May 13", {"beam": 3}, Intervention(force={1: "월"}))
    assert all(path(tree["nodes"], each["node"])[1] == "월" for each in tree["hypotheses"])


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_beam_that_a_forced_first_token_leaves_with_one_hypothesis_fills_up(
    character_translator, size
):
    tree = beam(character_translator(), "May 13", {"beam": size}, Intervention(force={0: "월"}))
    first = [node for node in tree["nodes"] if node["step"] == 0]
    assert [(node["token"], node["status"]) for node in first] == [("월", "kept")]
    assert len(tree["hypotheses"]) == size
    assert all(path(tree["nodes"], each["node"])[0] == "월" for each in tree["hypotheses"])
    second = [node for node in tree["nodes"] if node["step"] == 1]
    assert len(second) == 2 * size


def test_tree_of_a_greedy_model_takes_its_length_limit(character_translator):
    greedy = {"_target_": "attnlab.search.greedy.GreedySearch", "max_length": 3}
    tree = beam(character_translator(search=greedy), "May 13")
    assert max(each["length"] for each in tree["hypotheses"]) <= 3


def test_beam_may_be_smaller_than_the_models_own_list(character_translator):
    search = {"_target_": "attnlab.search.beam.BeamSearch", "size": 5, "n_best": 3, "max_length": 8}
    tree = beam(character_translator(search=search), "May 13", {"beam": 2})
    assert tree["size"] == 2
    assert len(tree["hypotheses"]) == 2


def test_beam_wider_than_the_vocabulary_is_drawn(character_translator):
    ours = character_translator()
    size = 20
    tree = beam(ours, "May 13", {"beam": size, "max_length": 3})
    assert len(tree["hypotheses"]) == size
