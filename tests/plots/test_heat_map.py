"""Heat maps: their description, and that a figure and a page draw just what it says."""

from __future__ import annotations

from io import BytesIO
from xml.etree import ElementTree

import matplotlib.image as mpimg
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.colour_scale import DARK, LEVELS, LIGHT, ColourScale, as_hex, contrast
from attnlab.plots.figure import png_bytes
from attnlab.plots.heat_map import HeatMap, colour_level, weight_text
from attnlab.plots.heat_map_figure import heat_map_figure
from attnlab.plots.heat_map_html import heat_map_page

# "14. März 2023" becomes "2023년 3월 14일": target token t came from source token ORDER[t].
SOURCE = ["14.", "März", "2023", "<eos>"]
TARGET = ["2023년", "3월", "14일", "!", "<eos>"]
ORDER = [2, 1, 0, 3, 3]
SURE = [[0, 2], [1, 1], [2, 0]]
POSSIBLE = [[2, 0], [3, 3]]
KNOWN = AttentionMap(
    SOURCE,
    TARGET,
    np.eye(4)[ORDER],
    "14. März 2023 → 2023년 3월 14일",
    sure_links=np.array(SURE),
    possible_links=np.array(POSSIBLE),
    wrong_targets=[3],
)
SPREAD = AttentionMap(
    ["a", "b", "c"], ["x", "y"], np.array([[0.004, 0.166, 0.83], [0.05, 0.1, 0.2]]), "spread"
)
ODD = ["$x$", "$", "\\frac", "_", "", " ", "a" * 100, "😀", "🧑‍🚀", "שלום", "\n", "%s", "{x}"]


# The description


@pytest.mark.parametrize(
    ("weight", "text"),
    [(0, ""), (0.0049, ""), (0.005, ".01"), (0.834, ".83"), (0.9949, ".99"), (0.995, "1"),
     (1, "1"), (1.26, "1.3"), (12, "12"), (-0.0049, ""), (-0.834, "−.83"), (-1.26, "−1.3")],
)  # fmt: skip
def test_weight_text_has_two_digits(weight: float, text: str) -> None:
    assert weight_text(weight) == text


def test_colour_level_goes_from_zero_to_the_last_and_no_further() -> None:
    shares = (-0.1, 0, 0.02, 0.03, 0.5, 1, 1.5)
    assert [colour_level(share) for share in shares] == [0, 0, 0, 1, 10, LEVELS, LEVELS]


def test_cells_have_a_level_of_the_scale_and_one_of_the_row() -> None:
    cells = list(HeatMap.of(SPREAD).cells)
    assert [(cell.row, cell.column, cell.text) for cell in cells] == [
        (0, 1, ".17"), (0, 2, ".83"), (1, 0, ".05"), (1, 1, ".10"), (1, 2, ".20"),
    ]  # fmt: skip
    assert [cell.level for cell in cells] == [3, 17, 1, 2, 4]
    assert [cell.row_level for cell in cells] == [4, 20, 5, 10, 20]


SIGNED = AttentionMap(["a", "b"], ["x", "y"], np.array([[-0.8, 0.4], [-0.02, -0.001]]), "signed")


def test_negative_weights_are_coloured_by_their_size_and_written_with_a_minus() -> None:
    described = HeatMap.of(SIGNED)
    assert [(cell.text, cell.level, cell.row_level) for cell in described.cells] == [
        ("−.80", 16, 20), (".40", 8, 10), ("−.02", 0, 20), ("", 0, 1),
    ]  # fmt: skip
    assert "x\u2069: \u2068a\u2069 -0.80" in described.summary
    page = heat_map_page([SIGNED], "signed")
    explained = "The colour of a negative weight, written with a minus sign, is that of its size."
    assert explained in page
    assert explained not in heat_map_page([SPREAD], "spread")
    drawn = heat_map_figure(SIGNED).axes[0].get_images()[0].get_array()
    np.testing.assert_allclose(drawn, abs(SIGNED.weights))


def test_links_are_outlined_once_as_sure_or_possible() -> None:
    described = HeatMap.of(KNOWN)
    assert described.links == [
        ((0, 2), "sure"), ((1, 1), "sure"), ((2, 0), "sure"), ((3, 3), "possible"),
    ]  # fmt: skip
    assert described.wrong == {3}
    assert described.knows_reference
    assert not HeatMap.of(SPREAD).knows_reference


def test_labels_show_control_characters_as_code_points() -> None:
    described = HeatMap.of(AttentionMap(["\n", "\u202e", "\0"], ["", " "], np.zeros((2, 3))))
    assert described.source == ("U+000A", "U+202E", "U+0000")
    assert described.target == ("∅", "␣")


def test_label_width_grows_with_hangul_and_the_sign_of_a_wrong_word() -> None:
    def width(token: str, wrong: list[int] | None = None) -> int:
        return HeatMap.of(AttentionMap(["a"], [token], [[1.0]], wrong_targets=wrong)).label_width

    assert width("ab") == width("나") < width("나는") == width("나", [0])


def test_summary_names_the_strongest_source_token_and_wrong_words() -> None:
    summary = HeatMap.of(KNOWN).summary.replace("\u2068", "").replace("\u2069", "")
    assert "2023년: 2023 1.00; 3월: März 1.00" in summary
    assert "!, differs from the reference: <eos> 1.00" in summary


@pytest.mark.parametrize("scale", [LIGHT, DARK], ids=["light", "dark"])
def test_type_and_marks_are_readable_on_every_colour(scale: ColourScale) -> None:
    assert scale.colours[0] == scale.stops[0]
    assert scale.colours[LEVELS] == scale.stops[-1]
    for colour in scale.colours:
        assert contrast(scale.ink_on(colour), colour) >= 4.5
    assert contrast(scale.wrong, scale.stops[0]) >= 4.5
    # A link has a halo in the colour of the ground.
    assert contrast(scale.link, scale.stops[0]) >= 3


# The figure


def test_figure_cells_match_their_tokens() -> None:
    axes = heat_map_figure(KNOWN).axes[0]
    (image,) = axes.images
    np.testing.assert_array_equal(image.get_array(), KNOWN.weights)
    # Cell (s, t) is centred on (s, t); row 0 is at the top.
    assert tuple(image.get_extent()) == (-0.5, 3.5, 4.5, -0.5)
    assert image.origin == "upper"
    assert list(axes.get_xticks()) == [0, 1, 2, 3]
    assert list(axes.get_yticks()) == [0, 1, 2, 3, 4]
    assert [label.get_text() for label in axes.get_xticklabels()] == SOURCE
    assert [label.get_text() for label in axes.get_yticklabels()] == [*TARGET[:3], "✗ !", "<eos>"]


def test_figure_takes_texts_and_colours_from_the_description() -> None:
    axes = heat_map_figure(SPREAD).axes[0]
    (image,) = axes.images
    described = HeatMap.of(SPREAD)
    drawn = {}
    for text in axes.texts:
        column, row = text.get_position()
        drawn[row, column] = (text.get_text(), text.get_color())
    expected = {}
    for cell in described.cells:
        colour = LIGHT.colours[cell.level]
        expected[cell.row, cell.column] = (cell.text, as_hex(LIGHT.ink_on(colour)))
        shown = image.to_rgba(np.array([cell.weight]))[0][:3]
        assert np.allclose(shown, to_rgb(as_hex(colour)))
    assert drawn == expected


@pytest.mark.parametrize(("largest", "label"), [(1.0, "1.0"), (1.9, "≥ 1.0")])
def test_colour_bar_says_where_a_weight_is_beyond_its_end(largest: float, label: str) -> None:
    figure = heat_map_figure(AttentionMap(["a", "b"], ["x"], np.array([[0.1, largest]])))
    figure.canvas.draw()
    _, bar = figure.axes
    assert bar.get_yticklabels()[-1].get_text() == label


def outlines(figure: Figure) -> dict[tuple[int, int], str]:
    """The line style of each outlined cell, (row, column)."""
    found = {}
    for patch in figure.axes[0].patches:
        assert isinstance(patch, Rectangle)
        left, top = patch.get_xy()
        column = round(left + patch.get_width() / 2)
        row = round(top + patch.get_height() / 2)
        assert to_rgb(patch.get_edgecolor()) == to_rgb(as_hex(LIGHT.link))
        found[row, column] = str(patch.get_linestyle())
    return found


def test_figure_outlines_just_the_links_and_colours_wrong_words() -> None:
    figure = heat_map_figure(KNOWN)
    assert outlines(figure) == {(0, 2): "-", (1, 1): "-", (2, 0): "-", (3, 3): "--"}
    red = as_hex(LIGHT.wrong)
    labels = figure.axes[0].get_yticklabels()
    assert [label.get_color() == red for label in labels] == [False, False, False, True, False]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "known alignment", "possible alignment", "✗ token: differs from the reference at its place",
    ]  # fmt: skip
    assert outlines(heat_map_figure(SPREAD)) == {}
    assert heat_map_figure(SPREAD).legends == []


def test_figure_pixels_of_the_alignment_are_dark() -> None:
    figure = heat_map_figure(KNOWN)
    pixels = mpimg.imread(BytesIO(png_bytes(figure, dpi=100)))[..., :3].mean(axis=-1)
    axes = figure.axes[0]
    scale = 100 / figure.dpi
    for t in range(len(TARGET)):
        for s in range(len(SOURCE)):
            # Between the outline and the number. Pixel rows count from the top.
            x, y = axes.transData.transform((s - 0.28, t - 0.28)) * scale
            brightness = pixels[round(pixels.shape[0] - y), round(x)]
            assert (brightness < 0.35) if ORDER[t] == s else (brightness > 0.9), (t, s, brightness)


def test_figure_draws_odd_tokens_and_sizes_without_a_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    for attention in (
        AttentionMap(ODD, ODD[::-1], np.eye(len(ODD)), "$a$ \n 🧑 " * 30),
        AttentionMap(["<eos>"], ["<eos>"], np.ones((1, 1))),
        AttentionMap([], [], np.zeros((0, 0))),
        AttentionMap(["가"] * 150, ["나"], np.full((1, 150), 1 / 150)),
    ):
        assert png_bytes(heat_map_figure(attention), dpi=40).startswith(b"\x89PNG")
    assert [str(warning.message) for warning in recwarn] == []


def test_figure_of_long_sentences_grows_up_to_a_limit() -> None:
    def size(tokens: int) -> float:
        return heat_map_figure(
            AttentionMap(["a"] * tokens, ["b"] * 2, np.zeros((2, tokens)))
        ).get_size_inches()[0]

    assert size(10) < size(40) < size(300) < 28


# The page


def parts(page: str, name: str) -> list[ElementTree.Element]:
    """The elements with a class, of the first map of a page."""
    figure = page[page.index("<figure") : page.index("</figure>") + len("</figure>")]
    found = []
    for element in ElementTree.fromstring(figure).iter():
        if name in element.get("class", "").split():
            found.append(element)
    return found


def labels(page: str, name: str) -> list[str]:
    (column,) = parts(page, name)
    return ["".join(label.itertext()) for label in column]


def place(element: ElementTree.Element, rows: int, columns: int) -> tuple[int, int]:
    """The cell (row, column) whose corner an element has."""
    row = float(element.attrib["y"].rstrip("%")) * rows / 100
    column = float(element.attrib["x"].rstrip("%")) * columns / 100
    return round(row), round(column)


@pytest.mark.parametrize("attention", [KNOWN, SPREAD], ids=["known", "spread"])
def test_page_draws_the_cells_of_the_description(attention: AttentionMap) -> None:
    page = heat_map_page([attention])
    assert labels(page, "heat-heads") == attention.source_tokens
    assert labels(page, "heat-labels") == attention.target_tokens
    (drawing,) = parts(page, "heat-cells")
    rows, columns = attention.weights.shape
    drawn = []
    for group in drawing.findall("g"):
        row, column = place(group.find("rect"), rows, columns)
        drawn.append((row, column, group.find("text").text, group.get("class")))
    assert drawn == [
        (cell.row, cell.column, cell.text, f"heat-{cell.level} heat-row-{cell.row_level}")
        for cell in HeatMap.of(attention).cells
    ]


def test_page_outlines_just_the_links_and_marks_wrong_words() -> None:
    page = heat_map_page([KNOWN])
    drawn = {}
    for link in parts(page, "heat-link"):
        drawn[place(link, 5, 4)] = link.get("class")
    assert drawn == {
        (0, 2): "heat-link sure",
        (1, 1): "heat-link sure",
        (2, 0): "heat-link sure",
        (3, 3): "heat-link possible",
    }
    (column,) = parts(page, "heat-labels")
    assert [label.get("class") for label in column] == [None, None, None, "wrong", None]


def test_page_explains_only_the_marks_that_it_has() -> None:
    explained = ("known alignment", "possible alignment", "differs from the reference token")
    assert all(words in heat_map_page([SPREAD, KNOWN]) for words in explained)
    assert not any(words in heat_map_page([SPREAD]) for words in explained)


def test_page_describes_each_map_to_screen_readers() -> None:
    (drawing,) = parts(heat_map_page([KNOWN]), "heat-cells")
    assert drawing.get("role") == "img"
    assert drawing.find("title").text == "Attention from 5 target to 4 source tokens"
    assert drawing.find("desc").text == HeatMap.of(KNOWN).summary


def test_page_of_odd_tokens_shows_all_of_them_as_text() -> None:
    attention = AttentionMap(ODD, ODD[::-1], np.eye(len(ODD)), "<b>")
    assert labels(heat_map_page([attention]), "heat-heads") == list(HeatMap.of(attention).source)


@pytest.mark.parametrize("shape", [(0, 0), (1, 0), (0, 1)])
def test_page_of_an_empty_sentence_says_so(shape: tuple[int, int]) -> None:
    rows, columns = shape
    attention = AttentionMap(["a"] * columns, ["b"] * rows, np.zeros(shape), "empty")
    page = heat_map_page([attention])
    assert "<p>no tokens</p>" in page
    assert "<svg" not in page


def test_page_without_maps_says_so() -> None:
    assert "There is no attention to show" in heat_map_page([])
