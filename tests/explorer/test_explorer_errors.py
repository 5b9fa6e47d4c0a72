"""Messages of the explorer's page in both languages, and a server that stops and comes back."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from starlette.testclient import TestClient
from torch import nn

from attnlab.explorer import PAGE
from attnlab.explorer.server import application

TEXT = "May 13, 2026"
HANGUL = re.compile("[가-힣]")
ENGLISH_WORD = re.compile("[A-Za-z]{3,}")


def patching(**taken: Any) -> dict[str, Any]:
    return {"intervene": {"patch": {"text": "May", **taken}}}


# What a person can make the server refuse from the page, or by an old link.
REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "unknown token": ("translate", {"intervene": {"force": {"0": "ん"}}}),
    "lone surrogate": ("translate", {"text": "May \ud800"}),
    "unknown model": ("translate", {"model": "other"}),
    "hidden position": ("translate", {"intervene": {"hide": [99]}}),
    "number of weights": ("translate", {"intervene": {"weights": {"0": [1.0]}}}),
    "position of the patch": ("translate", patching(values={"0": 99})),
    "patched position": ("translate", patching(values={"99": 0})),
    "length of the patch": ("translate", patching(keys="all")),
    "head": ("translate", {"intervene": {"kind": "uniform", "heads": [5]}}),
    "dropped position": ("translate", {"edit": {"drop": [99]}}),
    "size of the beam": ("beam", {"settings": {"size": 21}}),
    "no attention": ("translate", {"model": "none", "intervene": {"kind": "uniform"}}),
    "other kind": ("classify", {}),
    "long source": ("translate", {"model": "location", "text": "May " * 40}),
    "no test sentences": ("losses", {"text": None}),
    "recurrence": ("step_numbers", {"model": "own", "target": [3], "recurrence": "read"}),
}


@pytest.fixture
def refuse(translator, classifier):
    """Makes the server refuse a request, and returns its sentence."""
    models = {
        "a": translator(),
        "none": translator(decoder="no_attention"),
        "location": translator(attention="location"),
        "classifier": classifier,
        "own": translator(),
    }
    models["own"].model.encoder = nn.Identity()
    client = TestClient(application(models), base_url="http://localhost")

    def ask(name: str) -> str:
        analysis, body = REFUSED[name]
        given = {"model": "a", "text": TEXT} | body
        given = {key: value for key, value in given.items() if value is not None}
        content = json_of(given)
        answer = client.post(
            f"/api/{analysis}", content=content, headers={"content-type": "application/json"}
        )
        assert answer.status_code == 400, answer.text
        sentence: str = answer.json()["error"]
        return sentence

    return ask


def json_of(given: dict[str, Any]) -> bytes:
    return json.dumps(given).encode("ascii")  # a lone surrogate is escaped


@pytest.fixture
def korean(visit, translator):
    seen = visit({"a": translator()}, locale="ko-KR")
    seen.open(TEXT)

    def sentence_of(english: str) -> str:
        script = (
            "async sentence => (await import('explorer/errors.js')).sentenceOf(new Error(sentence))"
        )
        found: str = seen.page.evaluate(script, english)
        return found

    return sentence_of


def test_refusals_have_a_korean_sentence_of_their_own(refuse, korean):
    unknown = korean("a sentence that nobody has translated")
    prefix = unknown.partition(":")[0]
    for name in REFUSED:
        sentence = korean(refuse(name))
        assert HANGUL.search(sentence), name
        assert not sentence.startswith(prefix), (name, sentence)


def test_every_phrase_has_two_languages():
    words = (PAGE / "words.js").read_text(encoding="utf-8")
    of_server = (PAGE / "server_words.js").read_text(encoding="utf-8")
    tables = words[words.index("const WORDS") : words.index("\n};")], of_server.partition("({")[2]
    table = "\n".join(tables)
    entries = re.findall(r'^  "?([\w.]+)"?: \[(.*?)\],$', table, re.MULTILINE | re.DOTALL)
    assert len(entries) > 100
    for name, phrases in entries:
        texts = re.findall(r'"((?:[^"\\]|\\.)*)"', phrases)
        assert len(texts) == 2, name
        # The names of scores are those of the choices, in both languages.
        if name != "language" and not name.startswith("score."):
            assert HANGUL.search(texts[1]), name


def test_every_phrase_that_the_page_says_is_known_and_none_is_left_over():
    words = (PAGE / "words.js").read_text(encoding="utf-8")
    known = set(re.findall(r'^  "?([\w.]+)"?: \[', words, re.MULTILINE))
    scripts = "".join(path.read_text(encoding="utf-8") for path in PAGE.rglob("*.js"))
    said = set(re.findall(r'say\("([\w.]+)"', scripts))
    assert said <= known
    quoted = set(re.findall(r'"([\w.]+)"', scripts))
    views = {f"view.{name}" for name in re.findall(r'^  name: "(\w+)"', scripts, re.MULTILINE)}
    hints = {f"{mode}Hint" for mode in ("hide", "drop", "swap")}
    assert known - said - quoted - views - hints == set()


def test_korean_page_shows_no_english_message(visit, translator):
    seen = visit({"a": translator()}, locale="ko-KR")
    seen.open(TEXT)
    seen.page.locator("input[name=token]").fill("ん")
    seen.page.keyboard.press("Enter")
    alert = seen.page.get_by_role("alert").inner_text()
    assert "모델이 쓸 수 있는 토큰이 아닙니다" in alert
    assert not ENGLISH_WORD.search(alert)
    seen.problems.clear()  # the browser reports the refusal


@pytest.mark.parametrize(
    ("locale", "sentence"), [("en-US", "server has stopped"), ("ko-KR", "서버가 멈췄습니다")]
)
def test_page_says_that_the_server_has_stopped_and_goes_on_when_it_is_back(
    visit, translator, locale, sentence
):
    seen = visit({"a": translator()}, locale=locale)
    seen.open(TEXT)
    seen.server.stop()
    seen.page.locator("textarea").fill("March 1")
    alert = seen.page.get_by_role("alert")
    alert.wait_for()
    assert sentence in alert.inner_text()
    assert "attnlab explore models" in alert.inner_text()
    assert "fetch" not in alert.inner_text()
    seen.server.start()
    seen.page.locator("figure[data-key=own]").wait_for()
    assert seen.page.get_by_role("alert").count() == 0
    assert seen.page.locator("textarea").input_value() == "March 1"
    assert all("ERR_CONNECTION" in problem for problem in seen.problems)
    seen.problems.clear()
