"""Models of a few units, and their page in a browser."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from attnlab.data.lesson_reviews import LessonReviews
from attnlab.data.prepare import prepare
from attnlab.data.prepared import LabelledData, PreparedData
from attnlab.data.row_kinds import Pairs, Sentences
from attnlab.data.toy import ReverseCorpus
from attnlab.data.trainers import WordTrainer
from attnlab.explorer.server import application
from attnlab.tasks.classification.classifier import SentenceClassifier
from attnlab.tasks.translation.translator import Translator
from chromium import CHROMIUM, started_browser
from explored_models import build_character_translator, build_review_classifier


@pytest.fixture
def translator(tiny_model: Callable[..., Any]) -> Callable[..., Translator]:
    """Builds one that writes Korean characters."""
    return partial(build_character_translator, tiny_model)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    """Six test pairs to reverse, with their alignment."""
    folder = tmp_path_factory.mktemp("corpus") / "data"
    corpus = ReverseCorpus(
        num_pairs=60,
        num_symbols=5,
        min_length=2,
        max_length=6,
        test_min_length=None,
        test_max_length=None,
        distinct=False,
        validation_fraction=0.1,
        test_fraction=0.1,
        seed=1,
        bleu_tokenize="none",
        tokenizer=WordTrainer(split="whitespace", min_frequency=1),
    )
    prepare(corpus, Pairs, folder)
    return PreparedData(folder)


class Opinions(LessonReviews):
    """Film reviews with the classes of `classifier`."""

    def load(self) -> Any:
        names = {"negative": "bad", "positive": "good"}
        splits = super().load()
        return {
            split: rows.map(lambda row: {"label": names[row["label"]]})
            for split, rows in splits.items()
        }


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> LabelledData:
    """Six labelled test sentences."""
    folder = tmp_path_factory.mktemp("reviews") / "data"
    corpus = Opinions(
        language="en",
        num_sentences=60,
        validation_fraction=0.1,
        test_fraction=0.1,
        seed=1,
        tokenizer=WordTrainer(split="whitespace", min_frequency=1),
    )
    prepare(corpus, Sentences, folder)
    return LabelledData(folder)


@pytest.fixture
def classifier() -> SentenceClassifier:
    return build_review_classifier()


@dataclass
class LocalServer:
    """An application on a port of its own, which may be stopped and started again."""

    app: Any
    port: int = 0
    server: uvicorn.Server | None = None
    thread: threading.Thread | None = None

    def start(self) -> None:
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        self.port = listening.getsockname()[1]
        self.server = uvicorn.Server(uvicorn.Config(self.app, log_level="warning"))
        sockets = {"sockets": [listening]}
        self.thread = threading.Thread(target=self.server.run, kwargs=sockets, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def stop(self) -> None:
        assert self.server is not None
        assert self.thread is not None
        self.server.should_exit = True
        self.thread.join(10)


@dataclass
class Visit:
    """A page of the explorer in a browser, and what went wrong on it."""

    page: Any
    address: str
    server: LocalServer | None = None
    problems: list[str] = field(default_factory=list)

    def open(self, text: str | None = None) -> None:
        """Open the page, and type a text where one is given."""
        self.page.goto(self.address)
        if text is not None:
            self.type(text)

    def type(self, text: str) -> None:
        self.page.locator("textarea").fill(text)
        self.wait(text)

    def wait(self, text: str) -> None:
        """Until the picture of a text stands, and nothing newer is being drawn."""
        self.page.locator(f"html[data-shown='{text}']:not([data-drawing])").wait_for(
            state="attached", timeout=20_000
        )

    def settle(self) -> None:
        self.page.locator("html:not([data-drawing])").wait_for(state="attached", timeout=20_000)

    def table(self, name: str) -> list[list[float]]:
        """The numbers of a map, as its table has them."""
        figure = self.page.locator(f"figure[data-key={name}]")
        if figure.locator("details[open]").count() == 0:
            figure.locator("summary").click()
        figure.locator("table").wait_for()
        rows = figure.locator("tbody tr")
        return [[float(cell) for cell in row.locator("td").all_inner_texts()] for row in rows.all()]

    def effects(self) -> list[list[float]]:
        """Log-probability before and after of each target token, from the table of effects."""
        self.settle()
        folded = self.page.locator(".fold button[aria-expanded=false]")
        if folded.count():
            folded.click()
            self.settle()
        rows = self.page.locator("table.effects tbody tr:not(.fold)").all()
        return [[float(cell) for cell in row.locator("td").all_inner_texts()[:2]] for row in rows]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Debian's chromium is not installed")
    with started_browser() as browser:
        yield browser


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Visit]]:
    """Serves models and opens their page; at the end, nothing may have gone wrong on it."""
    visits: list[Visit] = []

    def start(
        models: dict[str, Any],
        corpus: PreparedData | LabelledData | None = None,
        **context: Any,
    ) -> Visit:
        data = None if corpus is None else corpus.folder
        server = LocalServer(application(models, data, command="attnlab explore models"))
        server.start()
        address = f"http://127.0.0.1:{server.port}/"
        page = browser.new_page(
            **({"viewport": {"width": 1200, "height": 900}, "locale": "en-US"} | context)
        )
        here = (address, "data:", "blob:", "file:")
        made = Visit(page, address, server)
        page.on("console", lambda message: made.problems.append(message.text))
        page.on("pageerror", lambda error: made.problems.append(str(error)))
        page.on(
            "request",
            lambda asked: None if asked.url.startswith(here) else made.problems.append(asked.url),
        )
        visits.append(made)
        return made

    yield start
    for each in visits:
        each.page.close()
        each.server.stop()
    assert [problem for each in visits for problem in each.problems] == []


@pytest.fixture
def visit_file(browser: Any) -> Iterator[Callable[..., Visit]]:
    """Opens a page's file with the network off; at the end, nothing may have gone wrong on it."""
    visits: list[Visit] = []

    def start(path: Path, address: str = "", **context: Any) -> Visit:
        page = browser.new_page(
            **({"viewport": {"width": 1200, "height": 900}, "locale": "en-US"} | context)
        )
        page.context.set_offline(True)
        made = Visit(page, path.as_uri() + address)
        here = ("data:", "blob:", "file:")
        page.on("console", lambda message: made.problems.append(message.text))
        page.on("pageerror", lambda error: made.problems.append(str(error)))
        page.on(
            "request",
            lambda asked: None if asked.url.startswith(here) else made.problems.append(asked.url),
        )
        visits.append(made)
        made.open()
        made.settle()
        return made

    yield start
    for each in visits:
        each.page.close()
    assert [problem for each in visits for problem in each.problems] == []
