"""The test sentences sorted by their loss: the numbers, the progress, and the view."""

from __future__ import annotations

import csv
import threading
import time

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

from attnlab.errors import ExperimentError
from attnlab.explorer.loss_table import LossTable
from attnlab.explorer.server import application
from attnlab.tasks.predictor import ScoredSentences


@pytest.fixture
def reader(translator, corpus):
    """A translator of the corpus's tokens."""
    return translator(tokenizers=(corpus.source_tokenizer, corpus.target_tokenizer))


def finished(client, **body):
    """The answer once all sentences are computed."""
    for _ in range(500):
        answer = client.post("/api/losses", json={"model": "a", **body}).json()
        if answer["done"] == answer["total"]:
            return answer
        time.sleep(0.02)
    raise AssertionError("the losses are never finished")


def test_rows_have_the_mean_loss_of_their_reference_and_come_worst_first(reader, corpus):
    client = TestClient(application({"a": reader}, corpus.folder), base_url="http://localhost")
    split = corpus.split("test")
    answer = finished(client)
    assert answer["total"] == len(split) == len(answer["rows"])
    assert sorted(row["row"] for row in answer["rows"]) == list(range(len(split)))
    for row in answer["rows"]:
        assert row["source"] == split.source_text(row["row"])
        assert row["reference"] == split.target_text(row["row"])
        scored = reader.score(row["source"], row["reference"])
        assert row["loss"] == pytest.approx(-np.mean(scored.log_probs), abs=1e-5)
        assert row["translation"] == reader(row["source"]).text
        assert row["exact"] == (row["translation"] == row["reference"])
    losses = [row["loss"] for row in answer["rows"]]
    assert losses == sorted(losses, reverse=True)
    best = finished(client, order="best", start=1, count=2)["rows"]
    assert [row["loss"] for row in best] == sorted(losses)[1:3]


def test_exact_sentences_are_known(reader, corpus):
    class Knowing(type(reader)):
        """Translates as the first reference."""

        def stream(self, texts, **settings):
            for answer in super().stream(texts, **settings):
                object.__setattr__(answer, "text", corpus.split("test").target_text(0))
                yield answer

    reader.__class__ = Knowing
    from attnlab.tasks.translation.sentence_losses import score_sentences

    scored = score_sentences(reader, corpus)
    rows = [row for batch in scored.batches for row in batch]
    reference = corpus.split("test").target_text(0)
    assert [row["exact"] for row in rows] == [row["reference"] == reference for row in rows]
    assert rows[0]["exact"]


def test_rows_of_a_classifier_have_the_loss_of_their_class(classifier, reviews):
    client = TestClient(application({"a": classifier}, reviews.folder), base_url="http://localhost")
    split = reviews.split("test")
    answer = finished(client)
    assert answer["total"] == len(split) == len(answer["rows"])
    assert sorted(row["row"] for row in answer["rows"]) == list(range(len(split)))
    for row in answer["rows"]:
        assert row["text"] == split.source_text(row["row"])
        assert row["label"] == reviews.labels[split.labels[row["row"]]]
        alone = classifier(row["text"])
        assert row["loss"] == pytest.approx(-np.log(alone.probabilities[row["label"]]), abs=1e-5)
        assert row["prediction"] == alone.label
        assert row["probability"] == pytest.approx(alone.probabilities[alone.label], abs=1e-5)
        assert row["correct"] == (alone.label == row["label"])
    assert {row["correct"] for row in answer["rows"]} == {True, False}
    losses = [row["loss"] for row in answer["rows"]]
    assert losses == sorted(losses, reverse=True)


def test_sure_mistake_of_a_classifier_has_a_finite_loss(classifier, reviews):
    with torch.no_grad():
        for parameter in classifier.model.parameters():
            parameter *= 100
    rows = finished(
        TestClient(application({"a": classifier}, reviews.folder), base_url="http://localhost")
    )["rows"]
    assert max(row["loss"] for row in rows) > 104  # e⁻¹⁰⁴ is 0 in float32
    assert all(np.isfinite(row["loss"]) for row in rows)


def test_data_with_a_class_that_the_model_lacks_are_refused(classifier, reviews):
    classifier.labels = ["bad", "fine"]
    with pytest.raises(ExperimentError, match=r"has the class 'good', but the model knows"):
        application({"a": classifier}, reviews.folder)


def test_table_answers_while_it_is_computed_and_computes_once():
    goes_on = threading.Event()
    batches_read = []

    def batches():
        for number in range(3):
            batches_read.append(number)
            yield [{"loss": float(number)}]
            goes_on.wait(10)

    table = LossTable(ScoredSentences(3, batches()), threading.Lock())
    while table.page()["done"] < 1:
        time.sleep(0.005)
    assert table.page() == {"done": 1, "total": 3, "rows": [{"loss": 0.0}]}
    goes_on.set()
    while table.page()["done"] < 3:
        time.sleep(0.005)
    assert [row["loss"] for row in table.page()["rows"]] == [2.0, 1.0, 0.0]
    assert batches_read == [0, 1, 2]


def test_without_data_there_is_no_table(reader):
    client = TestClient(application({"a": reader}), base_url="http://localhost")
    answer = client.post("/api/losses", json={"model": "a"})
    assert answer.status_code == 400
    assert "--data" in answer.json()["error"]
    assert not client.get("/api/models").json()[0]["has_test_set"]


def test_chosen_sentence_opens_its_map_and_its_reference(visit, reader, corpus, tmp_path):
    seen = visit({"a": reader}, corpus)
    seen.open("1 2")
    seen.page.get_by_role("tab", name="Test set").click()
    rows = seen.page.locator(".losses tbody tr")
    rows.nth(len(corpus.split("test")) - 1).wait_for()
    seen.page.locator(".progress").wait_for(state="detached")
    losses = [float(row.locator("td").first.inner_text()) for row in rows.all()]
    assert losses == sorted(losses, reverse=True)

    with seen.page.expect_download() as download:
        seen.page.get_by_role("button", name="CSV", exact=True).click()
    download.value.save_as(tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(encoding="utf-8-sig", newline="") as file:
        table = list(csv.DictReader(file))
    assert [float(row["loss"]) for row in table] == pytest.approx(losses, abs=6e-5)

    source, reference = table[1]["source"], table[1]["reference"]
    seen.page.locator(".losses .link").nth(1).click()
    seen.wait(source)
    assert seen.page.locator("figure[data-key=own]").count() == 1
    seen.page.get_by_role("tab", name="Reference").click()
    box = seen.page.get_by_label("Reference translation")
    box.wait_for()
    assert box.input_value() == reference
    seen.page.go_back()
    seen.page.go_back()
    seen.page.locator(".losses tbody tr").first.wait_for()


def test_chosen_sentence_of_a_classifier_opens_its_weights(visit, classifier, reviews, tmp_path):
    seen = visit({"a": classifier}, reviews)
    seen.open("good film")
    seen.page.get_by_role("tab", name="Test set").click()
    seen.page.locator(".losses tbody tr").nth(len(reviews.split("test")) - 1).wait_for()
    seen.page.locator(".progress").wait_for(state="detached")
    with seen.page.expect_download() as download:
        seen.page.get_by_role("button", name="CSV", exact=True).click()
    download.value.save_as(tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(encoding="utf-8-sig", newline="") as file:
        table = list(csv.DictReader(file))

    rows = seen.page.locator(".losses tbody tr").all()
    for shown, kept in zip(rows, table, strict=True):
        cells = [cell.inner_text() for cell in shown.locator("td, th").all()]
        predicted = f"{kept['prediction']} ({float(kept['probability']):.4f})"
        sign = "✓" if kept["correct"] == "1" else "✗"
        loss = f"{float(kept['loss']):.4f}"
        assert cells == [loss, sign, kept["text"], kept["label"], predicted]
    losses = [float(kept["loss"]) for kept in table]
    assert losses == sorted(losses, reverse=True)

    seen.page.locator(".losses .link").nth(1).click()
    seen.wait(table[1]["text"])
    assert seen.page.locator("textarea").input_value() == table[1]["text"]
    tokens = seen.page.locator("figure[data-key=own] bdi")
    assert tokens.count() == len(table[1]["text"].split()) + 1  # with <eos>
    seen.page.go_back()
    seen.page.locator(".losses tbody tr").first.wait_for()
