"""What can be exported, what is refused and how, and how large the page is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import tokenizers
import yaml
from tokenizers import pre_tokenizers

from attnlab.batch import SPECIAL_TOKENS
from attnlab.commands import main
from attnlab.config.part import Part
from attnlab.config.target import class_named
from attnlab.data.corpus import Cleaning
from attnlab.data.tokenizer import Tokenizer
from attnlab.data.trainers import WordTrainer
from attnlab.errors import ExperimentError
from attnlab.explorer import export
from attnlab.explorer.export import page_with
from attnlab.explorer.exported_model import exported
from attnlab.explorer.supported import SUPPORTED, unsupported
from attnlab.model.attention.dot import DotScore
from attnlab.model.fast import speed_up
from attnlab.model.gates import ElementwiseGate, PerHeadGate
from attnlab.model.outputs.pointer_generator import PointerGenerator
from explored_models import BEAM, build_character_translator, build_review_classifier

ROOT = Path(__file__).resolve().parents[2]
CONF = ROOT / "conf"
NOT_EXPORTED = {
    ("model/attention", "delta_rule"),
    ("model/attention", "linear_attention"),
    ("model/decoder", "transformer"),
    ("model/encoder", "averaging"),
    ("model/encoder", "bag_of_words"),
    ("model/encoder", "convolutional"),
    ("model/encoder", "self_attention"),
    ("model/encoder", "stacked"),
    ("model/encoder", "with_features"),
    ("model/gate", "elementwise"),
    ("model/gate", "per_head"),
    ("model/normaliser", "none"),
    ("model/output", "first_order_hard_attention"),
    ("model/output", "hard_attention"),
    ("model/output", "hard_monotonic_attention"),
    ("model/output", "pointer_generator"),
    ("model/output", "pointer_network"),
}
PAGE_AND_ENGINE = 330_000  # bytes, without the weights


@pytest.mark.parametrize("group", [group for group in SUPPORTED if group.startswith("model/")])
def test_every_choice_of_a_group_can_be_exported_and_is_in_the_docs(group):
    table = (ROOT / "docs" / "live_page.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| `{group}` \|(.*)\|$", table, re.MULTILINE)
    for path in (CONF / group).glob("*.yaml"):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert f"`{path.stem}`" in row
        if (group, path.stem) in NOT_EXPORTED:
            continue
        node = content if "_target_" in content else content.get("model", {}).get(path.parent.name)
        if isinstance(node, dict) and "_target_" in node:
            target = class_named(node["_target_"], object)
            assert path.stem in SUPPORTED[group][target].split(", ")


def test_sped_up_model_is_exported_like_the_plain_one(tiny_model):
    plain, fast = (build_character_translator(tiny_model) for _ in range(2))
    speed_up(fast.model)
    assert unsupported(fast) == []
    assert exported("a", fast) == exported("a", plain)


@pytest.mark.parametrize("kind", [ElementwiseGate, PerHeadGate])
def test_classifier_with_a_gate_is_refused_by_a_sentence(kind):
    (problem,) = unsupported(build_review_classifier(gate=Part(kind)))
    assert problem.startswith(
        f"model/gate is attnlab.model.gates.{kind.__name__}, which an exported"
    )


class StrangeScore(DotScore):
    """A score of another package."""


class StrangeCleaning(Cleaning):
    """A cleaning of another package."""


def test_strange_parts_are_refused_each_by_a_sentence(tiny_model):
    translator = build_character_translator(tiny_model, attention="dot")
    translator.model.decoder.attention.score.__class__ = StrangeScore
    translator.cleaning = StrangeCleaning()
    with pytest.raises(ExperimentError) as caught:
        page_with({"runs/a": build_review_classifier(), "runs/b": translator})
    cleaning, score = caught.value.problems
    assert cleaning.startswith("runs/b: data/cleaning is test_export.StrangeCleaning, which")
    assert score.startswith("runs/b: model/attention is test_export.StrangeScore, which")
    assert "it can compute dot, scaled_dot" in score
    assert "docs/live_page.md" in score


@pytest.mark.parametrize("part", ["encoder", "bridge", "decoder"])
def test_subclass_of_a_supported_part_is_refused(tiny_model, part):
    translator = build_character_translator(tiny_model)
    found = getattr(translator.model, part)
    found.__class__ = type("Strange", (type(found),), {})
    (problem,) = unsupported(translator)
    assert problem.startswith(f"model/{part} is ")


SAMPLE = {
    "_target_": "attnlab.search.sample.SampleSearch",
    "temperature": 1.0,
    "top_k": None,
    "top_p": None,
    "seed": 1,
    "max_length": 9,
}


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ({**BEAM, "int8": True}, "search.int8 is true"),
        ({**BEAM, "replace_unknown": True}, "search.replace_unknown is true"),
        (SAMPLE, "search is attnlab.search.sample.SampleSearch"),
    ],
)
def test_search_that_the_engine_lacks_is_refused(tiny_model, search, words):
    (problem,) = unsupported(build_character_translator(tiny_model, search=search))
    assert words in problem


def test_output_that_copies_is_refused(tiny_model):
    translator = build_character_translator(tiny_model)
    copying = {"readout_size": 7, "hidden_size": 8, "context_size": 8, "embedding_size": 3}
    translator.model.output = PointerGenerator(**copying, target_vocabulary_size=9)
    (problem,) = unsupported(translator)
    assert "model/output is attnlab.model.outputs.pointer_generator.PointerGenerator" in problem
    assert "it can compute linear" in problem


def test_numbered_unknown_words_are_refused(tiny_model):
    translator = build_character_translator(tiny_model)
    translator.target_tokenizer = WordTrainer(min_frequency=1, numbered_unknown=2).train(["a b"])
    (problem,) = unsupported(translator)
    assert problem.startswith("the target has numbered unknown words, which an exported page")


def test_tokenizer_that_splits_in_another_way_is_refused(tiny_model):
    translator = build_character_translator(tiny_model)
    translator.target_tokenizer._backend.pre_tokenizer = pre_tokenizers.Digits()
    (problem,) = unsupported(translator)
    assert problem.startswith("data/tokenizer splits the target in a way that")


def changed_tokenizer(trainer, change):
    """A tokenizer whose description is changed, as another package may have trained it."""
    described = trainer.train(["Ab a b Ab"]).as_json()
    change(described)
    return Tokenizer(tokenizers.Tokenizer.from_str(json.dumps(described)))


def lower_case_before_the_normal_form(described):
    described["normalizer"]["normalizers"][:2] = [{"type": "Lowercase"}, {"type": "NFKC"}]


def second_normal_form(described):
    described["normalizer"]["normalizers"].insert(1, {"type": "NFD"})


def token_that_is_found_in_texts(described):
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    described["added_tokens"] = [{"id": 4, "content": "Ab", "special": False, **flags}]


def texts_cut_off(described):
    described["truncation"] = {
        "direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0
    }  # fmt: skip


def gap_in_the_ids(described):
    vocabulary = described["model"]["vocab"]
    vocabulary[max(vocabulary, key=vocabulary.__getitem__)] += 1


def subwords_of_another_model(described):
    described["model"] = {
        "type": "Unigram", "unk_id": 1, "byte_fallback": False,
        "vocab": [[token, 0.0] for token in (*SPECIAL_TOKENS, "a")],
    }  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        lower_case_before_the_normal_form,
        second_normal_form,
        token_that_is_found_in_texts,
        texts_cut_off,
        gap_in_the_ids,
        subwords_of_another_model,
    ],
    ids=lambda change: change.__name__,
)
def test_tokenizer_of_another_package_is_refused(tiny_model, change):
    trainer = WordTrainer(min_frequency=1, lowercase=True, normalization="nfkc")
    translator = build_character_translator(tiny_model)
    translator.target_tokenizer = changed_tokenizer(trainer, lambda described: None)
    assert unsupported(translator) == []
    translator.target_tokenizer = changed_tokenizer(trainer, change)
    (problem,) = unsupported(translator)
    assert problem.startswith("data/tokenizer splits the target in a way that")


def test_models_that_no_browser_could_open_are_refused(tiny_model, monkeypatch):
    translator = build_character_translator(tiny_model)
    size = len(exported("a", translator)["weights"])
    monkeypatch.setattr(export, "MOST_WEIGHTS", size + 4)
    page_with({"a": translator})
    with pytest.raises(ExperimentError, match=r"the weights would take .* export fewer models"):
        page_with({"a": translator, "b": translator})


def test_tied_weights_are_stored_once(tiny_model):
    choices = {"tied_embeddings": "target", "readout": "tanh", "readout_size": 3}
    tied = exported("a", build_character_translator(tiny_model, **choices))
    places = tied["places"]
    assert places["output.weight"] == places["decoder.body.embedding.weight"]


def test_page_is_small_and_asks_nobody(tiny_model):
    translator = build_character_translator(tiny_model)
    page = page_with({"a": translator})
    weights = exported("a", translator)["weights"]
    assert len(page.encode()) - len(weights) < PAGE_AND_ENGINE
    assert "default-src 'none'" in page
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert "https://" not in page


def test_vocabulary_cannot_end_the_script(tiny_model):
    translator = build_character_translator(tiny_model)
    page = page_with({"</script><b>": translator})
    assert "</script><b>" not in page
    (data,) = re.findall(r'id="exported-models">(.*?)</script>', page, re.DOTALL)
    assert json.loads(data)[0]["name"] == "</script><b>"


def test_command_writes_a_page_and_prints_its_size(translator_folder, classifier_folder, tmp_path):
    page = tmp_path / "page.html"
    assert main(["export", str(translator_folder), str(classifier_folder), str(page)]) == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_command_refuses_another_ending(translator_folder, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["export", str(translator_folder), str(tmp_path / "page.txt")])
    assert "must end in .html" in capsys.readouterr().err
