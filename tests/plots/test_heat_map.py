"""Heat maps of a known alignment: the picture's data, its pixels, and the page."""

from __future__ import annotations

import html
import re
from io import BytesIO

import matplotlib.image as mpimg
import numpy as np
import pytest

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.attention import heat_map, heat_map_html
from attnlab.plots.figure import png_bytes

# "14. März 2023" becomes "2023년 3월 14일": target token t came from source token ORDER[t].
SOURCE = ["14.", "März", "2023", "<eos>"]
TARGET = ["2023년", "3월", "14일", "!", "<eos>"]
ORDER = [2, 1, 0, 3, 3]
KNOWN = AttentionMap(SOURCE, TARGET, np.eye(4)[ORDER], "14. März 2023 → 2023년 3월 14일")


def test_heat_map_cells_match_their_tokens() -> None:
    figure = heat_map(KNOWN)
    axes = figure.axes[0]
    (image,) = axes.images
    np.testing.assert_array_equal(image.get_array(), KNOWN.weights)
    # Cell (s, t) is centred on (s, t); row 0 is at the top.
    assert tuple(image.get_extent()) == (-0.5, 3.5, 4.5, -0.5)
    assert image.origin == "upper"
    assert image.get_clim() == (0, 1)
    assert list(axes.get_xticks()) == [0, 1, 2, 3]
    assert list(axes.get_yticks()) == [0, 1, 2, 3, 4]
    assert [label.get_text() for label in axes.get_xticklabels()] == SOURCE
    assert [label.get_text() for label in axes.get_yticklabels()] == TARGET


def test_heat_map_pixels_of_the_alignment_are_dark() -> None:
    figure = heat_map(KNOWN)
    pixels = mpimg.imread(BytesIO(png_bytes(figure, dpi=100)))[..., :3].mean(axis=-1)
    axes = figure.axes[0]
    scale = 100 / figure.dpi
    for t in range(len(TARGET)):
        for s in range(len(SOURCE)):
            # Beside the number in the middle of the cell. Pixel rows count from the top.
            x, y = axes.transData.transform((s - 0.38, t - 0.38)) * scale
            brightness = pixels[round(pixels.shape[0] - y), round(x)]
            assert (brightness < 0.35) if ORDER[t] == s else (brightness > 0.9), (t, s, brightness)


def test_heat_map_draws_odd_tokens_and_sizes_without_a_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    odd = ["$x$", "$", "\\frac", "_", "", " ", "a" * 100, "😀", "🧑‍🚀", "שלום", "\n", "%s", "{x}"]
    for attention in (
        AttentionMap(odd, odd[::-1], np.eye(len(odd)), "$a$ \n 🧑 " * 30),
        AttentionMap(["<eos>"], ["<eos>"], np.ones((1, 1))),
        AttentionMap(["가"] * 150, ["나"], np.full((1, 150), 1 / 150)),
    ):
        assert png_bytes(heat_map(attention), dpi=40).startswith(b"\x89PNG")
    assert [str(warning.message) for warning in recwarn] == []


def test_heat_map_of_long_sentences_grows_up_to_a_limit() -> None:
    def size(tokens: int) -> float:
        return heat_map(
            AttentionMap(["a"] * tokens, ["b"] * 2, np.zeros((2, tokens)))
        ).get_size_inches()[0]

    assert size(10) < size(40) < size(300) < 28


def tokens(page: str, scope: str) -> list[str]:
    """Head cells of the columns or of the rows."""
    return [
        html.unescape(text)
        for text in re.findall(rf'<th scope="{scope}"[^>]*><bdi>(.*?)</bdi></th>', page)
    ]


def test_heat_map_html_holds_the_same_cells() -> None:
    page = heat_map_html([KNOWN])
    assert (tokens(page, "col"), tokens(page, "row")) == (SOURCE, TARGET)
    expected = [
        f"\u2068{t}\u2069 ← \u2068{s}\u2069: {KNOWN.weights[i, j]:.3f}"
        for i, t in enumerate(TARGET)
        for j, s in enumerate(SOURCE)
    ]
    cells = re.findall(r'<td style="(.*?)" data-v="(.*?)"></td>', page)
    assert [html.unescape(value) for _, value in cells] == expected
    assert [shade for shade, _ in cells] == [
        f"--w:{weight:.2f}" for weight in KNOWN.weights.ravel()
    ]


def test_heat_map_html_without_maps_says_so() -> None:
    assert "There is no attention to show" in heat_map_html([])
