"""The explorer's heat map is that of the pages: the same labels, texts, colours and outlines."""

from __future__ import annotations

import pytest

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.evaluation.edit_alignment import (
    links_of_hypothesis,
    places_in_reference,
    wrong_tokens,
)
from attnlab.plots.heat_map_html import heat_map_page
from attnlab.plots.labels import visible
from attnlab.tasks.translation.explorer_page import first_pairs

# What a heat map shows, as text that does not depend on the program that drew it.
DRAWN = """figure => {
  const all = (selector) => [...figure.querySelectorAll(selector)];
  const has = (element, name) => element.classList.contains(name);
  const place = (element) =>
    ["x", "y", "width", "height"].map((name) => element.getAttribute(name)).join(" ");
  return {
    sizes: ["--columns", "--rows", "--label-width"].map((name) =>
      figure.style.getPropertyValue(name)),
    heads: all(".heat-heads > *").map((head) => [head.textContent, has(head, "long")]),
    labels: all(".heat-labels > *").map((label) => [label.textContent, has(label, "wrong")]),
    cells: all(".heat-cells g").map((cell) =>
      [cell.getAttribute("class"), cell.querySelector("text").textContent,
        place(cell.querySelector("rect")), cell.querySelector("text").getAttribute("x")]),
    links: all(".heat-link").map((link) => [link.getAttribute("class"), place(link)]).sort(),
  };
}"""


def drawn_by_python(browser, attention: AttentionMap):
    page = browser.new_page()
    page.set_content(heat_map_page([attention]))
    drawn = page.locator("figure.heat-map").evaluate(DRAWN)
    page.close()
    return drawn


@pytest.mark.parametrize("text", ["May 13, 2026", "<b>May</b> \u202e&\u200b 14", "1"])
def test_explorer_draws_the_map_that_pages_draw(visit, translator, browser, text):
    ours = translator()
    answer = ours(text)
    seen = visit({"a": ours})
    seen.open()
    seen.page.locator("textarea").fill(text)
    seen.settle()
    seen.page.locator(f".heat-map >> text={answer.source_tokens[0]}").first.wait_for()
    drawn = seen.page.locator("figure[data-key=own]").evaluate(DRAWN)
    assert drawn == drawn_by_python(browser, answer.map)


def test_source_of_a_test_pair_shows_known_links_and_wrong_words(
    visit, translator, corpus, browser
):
    ours = translator(tokenizers=(corpus.source_tokenizer, corpus.target_tokenizer))
    pair = first_pairs(ours, corpus)[2]
    answer = ours(pair["source"])
    reference = [*pair["target"].split(), "<eos>"]
    places = places_in_reference(answer.tokens, reference)
    expected = AttentionMap(
        answer.source_tokens,
        answer.tokens,
        answer.attention,
        sure_links=links_of_hypothesis(corpus.split("test").links("sure", 2), places),
        possible_links=links_of_hypothesis(corpus.split("test").links("possible", 2), places),
        wrong_targets=wrong_tokens(answer.tokens, reference),
    )
    seen = visit({"a": ours}, corpus)
    seen.open(pair["source"])
    drawn = seen.page.locator("figure[data-key=own]").evaluate(DRAWN)
    assert drawn == drawn_by_python(browser, expected)
    assert drawn["links"]
    assert any(is_wrong for _, is_wrong in drawn["labels"])


NO_MAP = {
    "en-US": "This model has no attention.",
    "ko-KR": "이 모델에는 어텐션이 없습니다.",
}


@pytest.mark.parametrize("locale", NO_MAP)
def test_model_without_attention_has_a_sentence_in_place_of_a_map(visit, translator, locale):
    ours = translator(decoder="no_attention")
    seen = visit({"a": ours}, locale=locale)
    seen.open("May 13, 2026")
    figure = seen.page.locator("figure[data-key=own]")
    assert figure.locator("p").inner_text() == NO_MAP[locale]
    assert figure.locator("[class*=heat-]").count() == 0
    # The steps can still be chosen, for the panel of likeliest tokens
    tokens = ours("May 13, 2026").tokens
    figure.get_by_role("button").nth(1).click()
    seen.settle()
    assert figure.locator("[aria-pressed=true]").inner_text() == visible(tokens[1])
    assert seen.page.locator(".panel h2 .token").inner_text() == tokens[1]


def test_relative_colours_are_a_state_of_the_page(visit, translator):
    seen = visit({"a": translator()})
    seen.open("May 13, 2026")
    cell = seen.page.locator(".heat-cells g rect").first
    fill = "cell => getComputedStyle(cell).fill"
    absolute = cell.evaluate(fill)
    seen.page.get_by_label("Colour each row by its own largest weight").check()
    seen.settle()
    assert "relative" in seen.page.url
    assert cell.evaluate(fill) != absolute


def test_hangul_is_drawn_without_fonts_of_the_machine(visit, translator):
    seen = visit({"a": translator()})
    seen.open("May 13, 2026")
    loaded = "document.fonts.load('15px \"attnlab hangul\"', '한').then(fonts => fonts.length)"
    assert seen.page.evaluate(loaded) == 1


def test_short_sentence_has_large_cells_with_numbers(visit, translator):
    seen = visit({"a": translator()}, viewport={"width": 1280, "height": 900})
    seen.open("May")
    cell = seen.page.locator(".heat-cells g").first
    box = cell.locator("rect").bounding_box()
    assert 60 < box["width"] <= 74
    assert 60 < box["height"] <= 74
    size = cell.locator("text").evaluate("text => parseFloat(getComputedStyle(text).fontSize)")
    assert size >= 14
