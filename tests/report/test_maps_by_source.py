"""Which sentence of an evaluation an attention map belongs to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.evaluation.evaluation_files import read_evaluation
from attnlab.evaluation.examples import ATTENTION, EXAMPLES, write_worst
from attnlab.files import write_json, write_json_lines
from attnlab.tasks.classification.report.section import ClassificationSection
from attnlab.tasks.report_section import ReportSection
from attnlab.tasks.translation.report.section import TranslationSection

SECTIONS = {"text": ClassificationSection, "source": TranslationSection}


def map_of(*tokens: str, title: str = "") -> AttentionMap:
    return AttentionMap([*tokens], ["x"], np.ones((1, len(tokens)), np.float32), title)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_json(tmp_path / "metrics.json", {})
    write_json(tmp_path / "signatures.json", {})
    return tmp_path


def maps_by_source(
    folder: Path, key: str, texts: list[str], rows: list[int], maps: list[AttentionMap]
) -> dict[str, AttentionMap]:
    section: ReportSection = SECTIONS[key]()
    write_json_lines(folder / section.sentences_file, [{key: text} for text in texts])
    save_maps(maps, folder / ATTENTION)
    write_worst(folder, rows, [], [])
    return section.maps_by_source(read_evaluation(folder, section.sentences_file))


def test_map_of_a_sentence_with_punctuation_has_its_text(folder: Path) -> None:
    texts = ["fine", "Isn't it good, really?", "It's not."]
    maps = [map_of("is", "##n", "'", "t", "<eos>"), map_of("it", "'", "s", "<eos>")]
    found = maps_by_source(folder, "text", texts, [1, 2], maps)
    assert {text: each.source_tokens for text, each in found.items()} == {
        texts[1]: maps[0].source_tokens,
        texts[2]: maps[1].source_tokens,
    }


def test_map_of_a_source_that_begins_another_one_has_its_own_text(folder: Path) -> None:
    texts = ["a", "a → b"]
    maps = [map_of("a", title="a → b → c")]  # `a` became `b → c`
    assert [*maps_by_source(folder, "source", texts, [0], maps)] == ["a"]


def test_maps_of_an_older_evaluation_are_known_by_tokens(folder: Path) -> None:
    maps = [map_of("so", "good", "<eos>")]
    maps_by_source(folder, "text", ["so good"], [0], maps)
    (folder / EXAMPLES).unlink()
    section = ClassificationSection()
    older = read_evaluation(folder, section.sentences_file)
    assert [*section.maps_by_source(older)] == ["so good"]
