"""The lessons: every statement is covered, every part is there, and every number is right."""

from __future__ import annotations

import doctest
import re
import runpy
from pathlib import Path

import pytest
import yaml

from attnlab.course.lessons import LESSONS, functions_of

COURSE = Path(__file__).resolve().parents[2] / "docs" / "course"
LIVE_PAGES = runpy.run_path(str(COURSE.parent / "make_live_pages.py"))
LANGUAGES = ("ko", "en")
PAGES = sorted(COURSE.glob("??/[0-9]*.md"))
STATEMENTS = range(1, 27)


def pages_of(language: str) -> list[Path]:
    return [page for page in PAGES if page.parent.name == language]


def id_of(page: Path) -> str:
    return f"{page.parent.name}-{page.stem}"


def number_of(page: Path) -> int:
    return int(page.name[:2])


def live_models(page: Path) -> list[str]:
    return re.findall(r'<iframe class="live" src="\.\./live/(\w+)\.html"', page.read_text("utf-8"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_course_has_twelve_lessons_in_each_language(language):
    assert [number_of(page) for page in pages_of(language)] == [*LESSONS]


def test_lessons_have_the_same_file_names_in_both_languages():
    korean, english = ([page.name for page in pages_of(language)] for language in LANGUAGES)
    assert korean == english


@pytest.mark.parametrize("language", LANGUAGES)
def test_index_covers_every_statement_with_a_lesson(language):
    text = (COURSE / language / "README.md").read_text("utf-8")
    table = re.split(r"^### ", text, flags=re.MULTILINE)[1]
    rows = re.findall(r"^\| (\d+) \| .* \| \[(\d+)\]\(\d+_\w+\.md\) \|$", table, flags=re.MULTILINE)
    assert [int(statement) for statement, _ in rows] == [*STATEMENTS]
    said = {}
    for page in pages_of(language):
        line = re.search(r"^(?:다루는 명제|Statements): ([\d, ]+)", page.read_text("utf-8"), re.M)
        assert line is not None, page
        for statement in line[1].split(","):
            said[int(statement)] = number_of(page)
    assert said == {int(statement): int(lesson) for statement, lesson in rows}


@pytest.mark.parametrize("page", PAGES, ids=id_of)
def test_lesson_has_every_part(page):
    text = page.read_text("utf-8")
    assert "$$" in text
    assert "<details>" in text
    assert live_models(page)
    assert "python pipelines/train.py" in text
    assert f"attnlab check lesson-{number_of(page)} " in text


@pytest.mark.parametrize("page", PAGES, ids=id_of)
def test_lesson_shows_only_models_of_the_list(page):
    listed = yaml.safe_load((COURSE / "live.yaml").read_text("utf-8"))
    for model in live_models(page):
        assert number_of(page) in listed[model]


def test_live_models_are_presets_of_the_course():
    presets = COURSE.parents[1] / "conf" / "experiment" / "lesson"
    for model in LIVE_PAGES["live_models"]():
        assert (presets / f"{model.removesuffix('_ko')}.yaml").is_file(), model


def test_live_page_is_exported_from_the_trained_model():
    train, export = LIVE_PAGES["commands_of"]("dot")
    assert train[1:] == ["lesson", "dot", "--train-only"]
    assert export[1:] == ["export", "runs/lessons/dot", str(COURSE / "live" / "dot.html")]


@pytest.mark.parametrize("page", PAGES, ids=id_of)
def test_lesson_describes_the_arguments_of_each_function(page):
    text = page.read_text("utf-8")
    for function in functions_of(number_of(page)):
        assert f"`{function.name}({', '.join(function.arguments)})`" in text


@pytest.mark.parametrize("page", PAGES, ids=id_of)
def test_numbers_of_a_lesson_are_what_python_computes(page):
    blocks = re.findall(r"^```pycon\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.M)
    assert blocks
    namespace: dict[str, object] = {}
    examples = doctest.DocTestParser().get_doctest(
        "\n".join(blocks), namespace, page.name, str(page), 0
    )
    assert examples.examples
    said: list[str] = []
    results = doctest.DocTestRunner(verbose=False).run(examples, out=said.append)
    assert results.failed == 0, "".join(said)


@pytest.mark.parametrize("page", pages_of("en"), ids=id_of)
def test_lesson_has_the_same_code_in_both_languages(page):
    def code(path: Path) -> list[str]:
        text = path.read_text("utf-8")
        found = re.findall(r"^```(?:pycon|sh|yaml)\n(.*?)^```$", text, re.DOTALL | re.M)
        # Comments are of the language.
        return [re.sub(r" *# .*", "", block) for block in found]

    assert code(page) == code(COURSE / "ko" / page.name)
