"""Reports and heat maps escape every text that comes from data."""

from __future__ import annotations

import json
import random
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from page_structure import HOSTILE, Structure, check_same_structure

import made_sweep
from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.experiment.changes import Change
from attnlab.plots.heat_map_html import heat_map_page
from attnlab.plots.labels import visible
from attnlab.plots.sentences import sentences_html
from attnlab.report.asked import Asked, AskedSweep
from attnlab.report.comparison import write_comparison
from attnlab.report.findings import Wanted, findings_of
from attnlab.report.page import write_report
from attnlab.report.run_sources import runs_of_sweep
from attnlab.runs.sweep_record import find_sweep
from attnlab.tasks.translation.report.section import TranslationSection
from made_sweep import SIDE, write_stages, write_sweep

# Any code point, also surrogates, but not the characters whose glyphs are cut from fonts:
# that would be done for each example.
ANY = st.text(
    st.one_of(st.characters(exclude_categories=()), st.sampled_from("<>&\"'/=-!`;:{}")), max_size=12
).filter(lambda text: not any("\u1100" <= character <= "\ufaff" for character in text))
SOME = settings(max_examples=settings.default.max_examples // 5)  # a page takes a tenth of a second
TOKENS = st.lists(st.one_of(ANY, st.sampled_from(HOSTILE)), min_size=1, max_size=4)


def maps(source: list[str], target: list[str], title: str) -> list[AttentionMap]:
    return [AttentionMap(source, target, np.full((len(target), len(source)), 0.25), title)]


def plain(token: str) -> str:
    """A token of as many letters as a page shows of it, and as wide.

    Wide tokens have a style of their own.
    """
    letters = []
    for character in visible(token):
        is_wide = unicodedata.east_asian_width(character) in "FW"
        letters.append("Ｘ" if is_wide else "x")
    return "".join(letters)


@SOME
@given(source=TOKENS, target=TOKENS, title=ANY)
@example(source=list(HOSTILE), target=list(HOSTILE), title=HOSTILE[0])
def test_heat_map_page_escapes_tokens(source: list[str], target: list[str], title: str) -> None:
    page = heat_map_page(maps(source, target, title), title=title)
    ordinary = [[*map(plain, tokens)] for tokens in (source, target)]
    # A map without a title has no caption.
    ordinary_title = title and "x"
    check_same_structure(page, heat_map_page(maps(*ordinary, ordinary_title), title="x"))
    texts = Structure(page).texts
    # A parser turns U+000D into another line end; what is visible has none.
    assert all(visible(token) in texts for token in [*source, *target])


@SOME
@given(source=TOKENS, title=ANY)
@example(source=list(HOSTILE), title=HOSTILE[0])
def test_coloured_sentences_page_escapes_tokens(source: list[str], title: str) -> None:
    page = sentences_html(maps(source, ["y"], title), title)
    check_same_structure(page, sentences_html(maps([*map(plain, source)], ["y"], "x"), "x"))


def report(folder: Path, texts: list[str], word: str) -> str:
    """A page with these texts wherever a stage writes one."""
    split = {
        "rows": 12,
        "pairs": 10,
        "dropped": dict.fromkeys(texts, 2),
        "source": SIDE,
        "target": SIDE,
    }
    evaluation, data, training = (folder / name for name in ("evaluation", "data", "training"))
    made_sweep.write_translations(evaluation, 0.9, 1)
    save_maps([], evaluation / "attention.npz")
    info = {"source_language": word, "target_language": word, "bleu_tokenize": word, "joint": False}
    write_stages(folder, info, {"source": 4, "target": 4}, split, "10,0,train/token_nll,0.5")
    rows = [
        {
            "source": text,
            "reference": f"r {i}",
            "hypothesis": text,
            "score": 0.5,
            "exact": False,
            "source_length": 3,
        }
        for i, text in enumerate(texts[:4])
    ]
    (evaluation / "hypotheses.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    notes = {"bleu": word, **{f"z{i} {text}": text for i, text in enumerate(texts)}}
    (evaluation / "signatures.json").write_text(json.dumps(notes))
    config = {
        "seed": word, "data": {"_target_": f"attnlab.data.hub.{word}", "path": word},
        "model": {"attention": {f"z{i}": text for i, text in enumerate(texts)}},
    }  # fmt: skip
    asked = Asked(
        changes=[Change(text, f"{text}={text}", text) for text in texts],
        choices={f"z{i}": text for i, text in enumerate(texts)},
        command=word,
        revision=word,
        started=word,
        run_id=word,
        run_page=f"http://localhost/{word}",
        server=word,
        sweep=AskedSweep(word, 2, word, f"http://localhost/{word}", word, comparison=""),
    )
    write_report(
        config, asked, TranslationSection(), {}, data, training, evaluation, folder / "report"
    )
    return (folder / "report" / "index.html").read_text(encoding="utf-8")


def test_report_page_escapes_texts_of_data(tmp_path: Path) -> None:
    # No half characters: they are in no data that was prepared.
    hostile = [text for text in HOSTILE if text.encode("utf-8", "ignore").decode() == text]
    ordinary = report(tmp_path / "plain", [f"plain {i}" for i in range(len(hostile))], "plain")
    page = report(tmp_path / "hostile", hostile, hostile[1])
    check_same_structure(page, ordinary)
    assert "<script>alert(1)</script>" in "".join(Structure(page).texts)


def comparison(folder: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(made_sweep, "FIRST", " ".join(words[:6]))
    monkeypatch.setattr(made_sweep, "WORDS", words)
    write_sweep(folder / "runs", {"dot": 0.9, "none": 0.3}, (1,))
    compared = runs_of_sweep(find_sweep(folder / "runs", "last"), folder / "runs")
    findings = findings_of(compared.runs, Wanted("bleu", None, 50, 0.95, 1), lambda *_: None)
    write_comparison(compared, findings, folder / "comparison", sentences=2)
    return (folder / "comparison" / "index.html").read_text(encoding="utf-8")


def test_comparison_page_escapes_texts_of_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without surrogates, which our JSON cannot hold, and white space, which separates words.
    hostile = [
        word
        for word in HOSTILE
        if word.split() == [word] and word.encode("utf-8", "ignore").decode() == word
    ]
    random.Random(0).shuffle(hostile)
    ordinary = comparison(
        tmp_path / "plain", [f"w{i:02}" for i in range(len(hostile))], monkeypatch
    )
    page = comparison(tmp_path / "hostile", hostile, monkeypatch)
    assert Structure(page).other == []
    assert {tag for tag, _ in Structure(page).elements} == {
        tag for tag, _ in Structure(ordinary).elements
    }
    assert {*Structure(page).elements} <= {
        *Structure(ordinary).elements,
        ("th", ("scope", "class")),
        ("details", ()),  # around more sentences that systems disagree on
    }
