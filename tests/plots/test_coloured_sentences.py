"""Sentences coloured by attention, and confusion matrices.

Every token is there, escaped, and dark where it should be.
"""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.figure import png_bytes
from attnlab.plots.histograms import confusion_matrix
from attnlab.plots.sentences import coloured_sentences, sentences_html

TOKENS = ["헤어진지", "$10$", "<script>alert('x')</script>", "日本", "<eos>"]
WEIGHTS = np.array([[0.5, 0.25, 0.0, 0.2, 0.05]], dtype=np.float32)
SENTENCE = AttentionMap(TOKENS, ["break-up"], WEIGHTS, "break-up (0.97) <b>")


def test_coloured_sentences_darken_with_the_weight() -> None:
    texts = coloured_sentences([SENTENCE]).texts
    assert [text.get_text() for text in texts] == ["break-up (0.97) <b>   (darkest: 0.50)", *TOKENS]
    brightness = [sum(text.get_bbox_patch().get_facecolor()[:3]) for text in texts[1:]]
    assert np.argsort(brightness).tolist() == np.argsort(-WEIGHTS[0], kind="stable").tolist()
    assert brightness[2] > 2.9  # nearly white


def test_sentences_colour_negative_weights_by_their_size() -> None:
    signed = AttentionMap(TOKENS, ["break-up"], -WEIGHTS, "negative")
    caption, *tokens = coloured_sentences([signed]).texts
    assert caption.get_text().endswith("(darkest: 0.50)")
    positive = coloured_sentences([SENTENCE]).texts[1:]
    for ours, theirs in zip(tokens, positive, strict=True):
        colours = [text.get_bbox_patch().get_facecolor() for text in (ours, theirs)]
        assert colours[0] == colours[1]
    page = sentences_html([signed], "Step 4")
    assert re.findall(r"--w:([\d.]+)", page) == ["1.00", "0.50", "0.00", "0.40", "0.10"]


def test_coloured_sentences_tokens_do_not_overlap() -> None:
    long = AttentionMap([f"token{i}" for i in range(60)], ["x"], np.full((1, 60), 1 / 60), "long")
    figure = coloured_sentences([SENTENCE, long, SENTENCE])
    png_bytes(figure)
    boxes = [
        patch.get_window_extent()
        for text in figure.texts
        if (patch := text.get_bbox_patch()) is not None
    ]
    assert len(boxes) == 70
    assert all(box.x0 > 0 and box.x1 < figure.bbox.width and box.y0 > 0 for box in boxes)
    # A long sentence has several lines
    assert len({round(box.y0 + box.y1, -1) for box in boxes}) > 5
    for one in boxes:
        assert sum(one.overlaps(other) for other in boxes) == 1  # itself


def test_coloured_sentences_draw_odd_tokens_without_a_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    odd = ["\n", " ", "", "x" * 300, "🧑\u200d🚀", "\u0000", "$\\frac$", "\u202e"]
    png_bytes(coloured_sentences([AttentionMap(odd, ["?"], np.zeros((1, len(odd))), "$x_")]))
    png_bytes(coloured_sentences([AttentionMap([], ["?"], np.zeros((1, 0)), "")]))
    png_bytes(coloured_sentences([]))
    assert [str(warning.message) for warning in recwarn] == []


def test_sentences_html_shows_tokens_and_weights() -> None:
    page = sentences_html([SENTENCE], "Step <4>")
    assert '<meta charset="utf-8">' in page
    shown = [html.unescape(token) for token in re.findall(r"<bdi>(.*?)</bdi></span>", page)]
    assert shown == TOKENS
    assert re.findall(r"--w:([\d.]+)", page) == ["1.00", "0.50", "0.00", "0.40", "0.10"]
    assert [text.rpartition(": ")[2] for text in re.findall(r'data-v="(.*?)"', page)] == [
        "0.500", "0.250", "0.000", "0.200", "0.050",
    ]  # fmt: skip
    assert "There are no sentences" in sentences_html([])


def test_confusion_matrix_shows_counts_and_shares() -> None:
    figure = confusion_matrix(["일상", "break $up$"], [[9, 1], [0, 0]])
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["9\n90 %", "1\n10 %", "0\n0 %", "0\n0 %"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["일상", "break $up$"]
    assert axes.images[0].get_array().tolist() == [[0.9, 0.1], [0.0, 0.0]]
    assert png_bytes(figure).startswith(b"\x89PNG")


def test_confusion_matrix_of_many_classes_has_no_numbers(recwarn: pytest.WarningsRecorder) -> None:
    figure = confusion_matrix(
        [f"a rather long class name {i}" for i in range(40)], np.eye(40, dtype=int)
    )
    assert max(figure.get_size_inches()) < 20
    assert len(figure.axes[0].texts) == 0
    png_bytes(figure)
    assert [str(warning.message) for warning in recwarn] == []
