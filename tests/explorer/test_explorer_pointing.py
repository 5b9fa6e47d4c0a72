"""The explorer's map under a finger, and drawn as lines."""

from __future__ import annotations

import re

import pytest

TEXT = "May 13, 2026"


def middle_of(seen, row, column, shape):
    """Where a cell of the map is on the screen."""
    box = seen.page.locator("svg.heat-cells").bounding_box()
    return (
        box["x"] + (column + 0.5) * box["width"] / shape[1],
        box["y"] + (row + 0.5) * box["height"] / shape[0],
    )


def test_tap_chooses_the_row_and_the_column_under_the_finger(visit, translator):
    ours = translator()
    answer = ours(TEXT)
    seen = visit({"a": ours}, has_touch=True)
    seen.open(TEXT)
    for row, column in ((2, 5), (0, 1)):
        seen.page.touchscreen.tap(*middle_of(seen, row, column, answer.attention.shape))
        seen.page.locator(f".panel h2:has-text('Step {row + 1}')").wait_for()
        seen.settle()
        words = f"{answer.tokens[row]} ← {answer.source_tokens[column]}: "
        assert seen.page.locator("figure output").inner_text().startswith(words)
        here = "all => all.flatMap((each, i) => each.classList.contains('here') ? [i] : [])"
        assert seen.page.locator(".heat-labels > *").nth(row).get_attribute("aria-pressed") == (
            "true"
        )
        assert seen.page.locator(".heat-heads > *").evaluate_all(here) in ([column], [])


def test_click_without_a_move_of_the_mouse_chooses_the_cell(visit, translator):
    ours = translator()
    seen = visit({"a": ours})
    seen.open(TEXT)
    shape = ours(TEXT).attention.shape
    x, y = middle_of(seen, 1, 3, shape)
    box = seen.page.locator("svg.heat-cells").bounding_box()
    position = {"x": x - box["x"], "y": y - box["y"]}
    seen.page.locator("svg.heat-cells").dispatch_event(
        "click", {"clientX": x, "clientY": y, "detail": 1}
    )
    seen.page.locator(".panel h2:has-text('Step 2')").wait_for()
    assert position["x"] > 0


def test_enter_chooses_the_row_of_the_cursor(visit, translator):
    seen = visit({"a": translator()})
    seen.open(TEXT)
    seen.page.locator("svg.heat-cells").focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        seen.page.keyboard.press(key)
    seen.page.locator(".panel h2:has-text('Step 3')").wait_for()


def test_lines_have_the_weights_of_the_cells_and_keep_those_of_a_token(visit, translator):
    ours = translator()
    answer = ours(TEXT)
    seen = visit({"a": ours})
    seen.open(TEXT)
    seen.page.get_by_role("button", name="lines").click()
    seen.page.locator(".line-drawing path").first.wait_for()
    drawn = seen.page.locator(".line-drawing path").evaluate_all(
        "all => all.map(each => [+each.dataset.row, +each.dataset.column,"
        " +each.style.getPropertyValue('--share')])"
    )
    for row, column, share in drawn:
        assert share == pytest.approx(answer.attention[row, column], abs=1e-5)
    strong = [
        (row, column) for row, column in zip(*(answer.attention > 0.02).nonzero(), strict=True)
    ]
    assert {(row, column) for row, column, _ in drawn} >= set(strong)

    seen.page.locator(".line-tokens.target button").nth(1).hover()
    lit = seen.page.locator(".line-drawing.lit path.here")
    rows = lit.evaluate_all("all => all.map(each => each.dataset.row)")
    assert set(rows) == {"1"}
    assert seen.page.locator("figure output").inner_text().startswith(f"{answer.tokens[1]} ← ")

    # By the keyboard
    seen.page.locator(".line-tokens.source button").first.focus()
    seen.page.keyboard.press("ArrowRight")
    seen.page.keyboard.press("ArrowRight")
    assert (
        seen.page.locator("figure output").inner_text().startswith(f"{answer.source_tokens[2]} →")
    )
    seen.page.locator(".line-tokens.target button").nth(2).click()
    seen.page.locator(".panel h2:has-text('Step 3')").wait_for()
    assert seen.page.locator("details.table").count() == 1


def test_each_line_runs_from_its_source_token_to_its_target_token(visit, translator):
    seen = visit({"a": translator()})
    seen.open(TEXT)
    seen.page.get_by_role("button", name="lines").click()
    lines = seen.page.locator(".line-drawing path")
    lines.first.wait_for()
    ends = """all => all.map(each => {
        const line = each.getBoundingClientRect();
        const figure = each.closest("figure");
        const of = name => figure.querySelector(
            `.line-tokens [data-${name}="${each.dataset[name]}"]`).getBoundingClientRect();
        const middle = box => (box.left + box.right) / 2;
        const [source, target] = [of("column"), of("row")];
        return [
            [Math.min(middle(source), middle(target)), line.left],
            [Math.max(middle(source), middle(target)), line.right],
            [source.bottom, line.top],
            [target.top, line.bottom],
        ];
    })"""
    for pairs in lines.evaluate_all(ends):
        for token, line in pairs:
            assert line == pytest.approx(token, abs=12)


def test_long_sentence_is_coloured_by_the_row_until_a_person_chooses(visit, translator):
    ours = translator()
    seen = visit({"a": ours})
    seen.open("May 13")
    box = seen.page.get_by_label("Colour each row by its own largest weight")
    assert not box.is_checked()
    seen.type("March 1, 2026 " * 18)
    assert box.is_checked()
    levels = seen.page.locator(".heat-cells g").evaluate_all(
        "all => all.map(each => each.getAttribute('class'))"
    )
    assert any(re.search("heat-row-20", level) for level in levels)
    box.uncheck()
    seen.settle()
    seen.type("March 2, 2026 " * 18)
    assert not box.is_checked()
