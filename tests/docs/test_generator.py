"""The hooks that build the docs site: formulas, diagrams, notebooks, links, languages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from generator import (
    diagrams,
    formulas,
    github_markdown,
    languages,
    live_models,
    navigation,
    notebooks,
    repository,
    setting_lists,
    tables,
)
from markdown import Markdown
from mkdocs.exceptions import PluginError

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted((ROOT / "docs" / "course").glob("??/[01]*.md"))
PAGE = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"))


def test_inline_formula_becomes_mathml():
    content = r'<p>at <span class="arithmatex">\(s_t &lt; 1\)</span></p>'
    drawn = formulas.on_page_content(content, PAGE)
    assert drawn.startswith("<p>at <math><msub><mi>s</mi><mi>t</mi></msub>")
    assert drawn.endswith("</math></p>")
    assert "arithmatex" not in drawn


def test_formula_in_a_line_of_its_own_can_be_scrolled():
    content = '<div class="arithmatex">\\[\n\\sum_{i=1}^{N} \\alpha_i h_i\n\\]</div>'
    drawn = formulas.on_page_content(content, PAGE)
    assert drawn.startswith('<div class="formula" tabindex="0"><math')
    assert "<munderover>" in drawn


def test_long_formula_within_a_text_may_have_a_line_of_its_own():
    short = formulas.math_markup(r"\alpha_i^t h_i", display=False)
    long = formulas.math_markup(r"0.3\cdot0.2+0.2\cdot0.1+1.5\cdot0.9=1.43", display=False)
    assert short.startswith("<math>")
    assert long.startswith('<span class="long-formula" tabindex="0"><math>')


def test_aligned_formulas_keep_their_rows_and_columns():
    drawn = formulas.math_markup(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", display=True)
    assert drawn.count("<mtr>") == 2
    assert drawn.count("<mtd") == 4


def test_unknown_command_of_a_formula_stops_the_build_and_names_the_page():
    with pytest.raises(PluginError, match=r"page\.md: the formula .*nonsense"):
        formulas.on_page_content(r'<span class="arithmatex">\(\nonsense\)</span>', PAGE)


def test_diagram_has_its_labels_and_no_colour_of_its_own():
    drawn = diagrams.draw('flowchart TB\n  a["first"] --> b["second<br><i>file.py</i>"]\n')
    assert drawn.startswith("<svg")
    for label in ("first", "second", "file.py"):
        assert label in drawn
    assert "var(--diagram-box)" in drawn
    assert not re.search("#ECECFF|#9370DB|#333", drawn)


def test_diagrams_of_a_page_do_not_share_names():
    first, second = (diagrams.draw(f"flowchart LR\n  a --> {name}\n") for name in "bc")
    ids = [set(re.findall(r'\bid="([^"]+)"', each)) for each in (first, second)]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_notebook_shows_printed_lines_and_the_richest_form_of_a_value():
    cell = {
        "cell_type": "code",
        "source": ["print(1)\n", "answer"],
        "outputs": [
            {"output_type": "stream", "name": "stdout", "text": ["a < b\n"]},
            {"output_type": "stream", "name": "stdout", "text": ["c\n"]},
            {
                "output_type": "execute_result",
                "data": {"text/html": ["<b>rich</b>"], "text/plain": ["plain"]},
            },
        ],
    }
    text = {"cell_type": "markdown", "source": ["# Title"]}
    page, outputs = notebooks.page_of({"cells": [text, cell]})
    assert page.startswith("# Title\n\n```python\nprint(1)\nanswer\n```\n\n<div")
    assert outputs == ['<div class="output"><pre tabindex="0">a &lt; b\nc</pre><b>rich</b></div>']


def test_notebook_in_the_docs_was_saved_with_all_of_its_outputs():
    path = ROOT / "docs" / "notebooks" / "question_a_model.ipynb"
    _, outputs = notebooks.page_of(json.loads(path.read_text(encoding="utf-8")))
    assert len(outputs) >= 7
    assert "<iframe" in outputs[0]


def test_link_to_a_notebook_leads_to_its_page():
    markdown = "[one](notebooks/question_a_model.ipynb), `x.ipynb`"
    found = notebooks.on_page_markdown(markdown, PAGE)
    assert found == "[one](notebooks/question_a_model.md), `x.ipynb`"


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("architecture.md", "../pipelines/train.py", "source/pipelines/train.py.md"),
        ("extend.md", "../tests/extension/lab_extras", "source/tests/extension/lab_extras.md"),
        ("how-to/x.md", "../../SECURITY.md#reports", "../security.md#reports"),
        ("tour.md", "docs/use_a_model.md#ask", "use_a_model.md#ask"),
        ("tour.md", "docs/images/dates_heat_map.png", "images/dates_heat_map.png"),
        ("tour.md", "LICENSE", "license.md"),
        ("choices.md", "settings.md", "settings.md"),
        ("choices.md", "missing.md", "missing.md"),
        ("choices.md", "https://example.org/a.md", "https://example.org/a.md"),
    ],
)
def test_link_of_a_page_leads_to_a_page_of_the_site(page, link, expected):
    assert repository.with_links(f"See [it]({link}).", page) == f"See [it]({expected})."


def test_links_in_code_stay_as_they_are():
    code = "```md\n[it](../pipelines/train.py)\n```\n"
    assert repository.with_links(code, "architecture.md") == code


def test_long_names_in_the_code_of_a_cell_may_break_after_a_separator():
    content = "<p><code>a/b</code></p><td><code>model/x=local_p a / b</code> c/d</td>"
    expected = (
        "<p><code>a/b</code></p><td><code>model/<wbr>x=<wbr>local_<wbr>p a / b</code> c/d</td>"
    )
    assert tables.on_page_content(content) == expected


def test_markdown_within_folded_text_is_read():
    text = "<details>\n<summary>more</summary>\n\n**bold**\n\n</details>"
    read = github_markdown.on_page_markdown(text)
    html = Markdown(extensions=["md_in_html"]).convert(read)
    assert "<strong>bold</strong>" in html
    assert "<summary>more</summary>" in html


def test_pipes_in_the_code_of_a_table_lose_their_backslash():
    row = r"| `a\|b` | c \| d |"
    assert github_markdown.on_page_markdown(f"`x\\|y`\n\n{row}") == (
        f"`x\\|y`\n\n{row.replace('a' + chr(92), 'a')}"
    )


def test_missing_live_model_gives_way_to_the_command_that_makes_it(tmp_path):
    frame = '<iframe class="live" src="../live/dot.html" title="dot" height="640"></iframe>'
    source = tmp_path / "course" / "ko" / "04.md"
    source.parent.mkdir(parents=True)
    file = SimpleNamespace(src_uri="course/ko/04.md", abs_src_path=str(source))
    page = SimpleNamespace(file=file)
    note = live_models.on_page_content(frame, page)
    assert "<iframe" not in note
    assert "make course-pages" in note
    assert "모델" in note

    (tmp_path / "course" / "live").mkdir()
    (tmp_path / "course" / "live" / "dot.html").touch()
    assert live_models.on_page_content(frame, page) == frame.replace(".html", ".html?lang=ko")
    with_text = frame.replace(' title="', ' data-text="a b" title="')
    assert "dot.html?lang=ko&amp;text=a+b" in live_models.on_page_content(with_text, page)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_site_leaves_out_what_is_said_to_readers_who_see_no_frame(lesson):
    text = lesson.read_text("utf-8")
    shown = live_models.on_page_markdown(text)
    frames = text.count('<iframe class="live"')
    assert len(text.splitlines()) - len(shown.splitlines()) == 2 * frames
    assert shown.count('<iframe class="live"') == frames


@pytest.mark.parametrize(
    ("page", "korean", "english"),
    [
        ("explorer.md", "ko/explorer.md", "explorer.md"),
        ("ko/explorer.md", "ko/explorer.md", "explorer.md"),
        ("course/en/01.md", "course/ko/01.md", "course/en/01.md"),
        ("course/ko/01.md", "course/ko/01.md", "course/en/01.md"),
    ],
)
def test_page_knows_its_twins(page, korean, english):
    assert languages.twin_of(page, "ko") == korean
    assert languages.twin_of(page, "en") == english


def test_folder_in_the_navigation_stands_for_its_pages_that_are_named_nowhere_else():
    nav = [{"Home": "index.md"}, {"API": ["api/*", {"Load": "api/load.md"}]}, {"None": ["no/*"]}]
    pages = ["index.md", "api/b.md", "api/README.md", "api/load.md", "api/a.md", "api/more/c.md"]
    assert navigation.expanded(nav, pages) == [
        {"Home": "index.md"},
        {"API": ["api/README.md", "api/a.md", "api/b.md", {"Load": "api/load.md"}]},
    ]


@pytest.mark.parametrize(("pages", "found"), [(["ko/tour.md"], [{"T": "ko/tour.md"}]), ([], [])])
def test_titled_page_is_left_out_of_the_navigation_where_it_does_not_exist(pages, found):
    assert navigation.expanded([{"T": "ko/tour*"}], pages) == found


def test_titled_page_stands_once_in_the_navigation():
    nav = [{"K": [{"T": "ko/tour*"}, "ko/*"]}]
    pages = ["ko/tour.md", "ko/a.md"]
    assert navigation.expanded(nav, pages) == [{"K": [{"T": "ko/tour.md"}, "ko/a.md"]}]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("course/en/02.md", "course/en/01.md"), "## Lessons\n\n- [01](../course/en/01.md)\n"),
        ((), ""),
    ],
)
def test_list_of_a_folder_on_a_page_names_its_pages_in_order(names, expected):
    files = [SimpleNamespace(src_uri=name, content_string=f"# {name[10:12]}\n") for name in names]
    page = SimpleNamespace(file=SimpleNamespace(src_uri="ko/index.md"))
    all_files = SimpleNamespace(documentation_pages=lambda: files)
    line = "<!-- pages: course/en, Lessons -->"
    config = SimpleNamespace(site_name="attnlab")
    written = navigation.on_page_markdown(line, page, config, all_files)
    assert written.startswith(expected)
    assert written.count("\n- ") == len(names)


def test_settings_of_a_docstring_become_a_list():
    docstring = (
        "What it is.\n\nsource, target: texts, which\n    are cleaned.\nlimit: of rows.\n\nEnd."
    )
    listed = "- `source`, `target`: texts, which\n    are cleaned.\n- `limit`: of rows."
    assert setting_lists.with_lists(docstring) == f"What it is.\n\n{listed}\n\nEnd."


@pytest.mark.parametrize(
    "docstring",
    ["Summary: what it is.", "What it is.\n\nArgs:\n    x: a number.", "One.\n\nShapes (B, S)."],
)
def test_other_paragraphs_of_a_docstring_stay_as_they_are(docstring):
    assert setting_lists.with_lists(docstring) == docstring
