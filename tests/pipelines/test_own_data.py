"""The user's own corpora at the real commands: gold word alignments, and summaries with ROUGE."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from entry_points import TINY, Command, mlflow_client, succeeded
from test_refusals import refused

import attnlab
from attnlab.model.encoders.with_features import WithFeaturesEncoder

SIZES = tuple(choice for choice in TINY if not choice.startswith("data"))
GOLD = [
    {"de": "ein Hund läuft", "en": "a dog runs", "gold": "0-0 1-1 2-2"},
    {"de": "zwei Hunde laufen", "en": "two dogs run", "gold": "0-0 1?1 2p2"},
    {"de": "고양이 schläft", "en": "the cat sleeps", "gold": None},
]
TEXTS = [
    {"text": "The cat sat on the mat all day.", "summary": "The cat sat."},
    {"text": "오늘 고양이가 학교에 갔다. 비가 왔다.", "summary": "고양이가 학교에 갔다."},
]


def write(folder: Path, rows: list[dict[str, Any]], **others: list[dict[str, Any]]) -> str:
    """A corpus of JSON lines; `others` are rows of single splits."""
    folder.mkdir()
    for split in ("train", "validation", "test"):
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in others.get(split, rows * 4))
        (folder / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    return f"data.path={folder}"


def metrics_of(folder: Path) -> Any:
    (found,) = folder.glob("runs/plain/*/*/evaluation/metrics.json")
    return json.loads(found.read_text())


def test_training_on_a_corpus_with_gold_alignments_measures_the_alignment_error_rate(
    command: Command, folder: Path
) -> None:
    corpus = (
        "data=hub",
        write(folder / "corpus", GOLD),
        "data.source=de",
        "data.target=en",
        "data.alignments=gold",
        "training.monitor=token_nll",
    )
    succeeded(command("train.py", *SIZES, *corpus, "data/tokenizer=character", "tracking=none"))
    metrics = metrics_of(folder)
    # Of 12 test sentences 8 have links, with three target words each; four have three sure links,
    # four have one.
    hit_possible, hit_sure = metrics["alignment_precision"] * 24, metrics["alignment_recall"] * 16
    assert metrics["aer"] == pytest.approx(1 - (hit_sure + hit_possible) / (24 + 16))
    assert [round(hit_possible, 6) % 1, round(hit_sure, 6) % 1] == [0, 0]
    (page,) = folder.glob("runs/plain/*/*/report/index.html")
    assert "alignment recall" in page.read_text(encoding="utf-8")


def test_gold_alignments_lie_in_parallel_text_files_of_the_test_split_alone(
    command: Command, folder: Path
) -> None:
    for split in ("train", "validation", "test"):
        for side in ("de", "en"):
            (folder / f"{split}.{side}").write_text(
                "".join(f"{row[side]}\n" for row in GOLD), encoding="utf-8"
            )
    (folder / "test.sure").write_text("1-1 3-3\n1-1\n\n")
    (folder / "test.possible").write_text("2-2\n\n2-1\n")
    corpus = (
        "data=hub",
        f"data.path={folder}",
        "data.source=de",
        "data.target=en",
        "data.first_word=1",
    )
    columns = ("data.alignments=sure", "data.possible_alignments=possible", "paths.data=prepared")
    succeeded(command("prepare.py", *corpus, *columns, "data.tokenizer.min_frequency=1"))
    from attnlab.data.prepared import PreparedData

    data = PreparedData(folder / "prepared")
    test = data.split("test")
    assert [test.links("sure", row).tolist() for row in range(3)] == [
        [[0, 0], [2, 2]],
        [[0, 0]],
        [],
    ]
    assert test.links("possible", 0).tolist() == [[0, 0], [1, 1], [2, 2]]
    assert test.links("possible", 2).tolist() == [[0, 1]]
    assert data.split("train").links("possible", 0).tolist() == []


WRONG = {
    "other words": (
        "eins-2",
        "has 'eins-2', which is no link; write the numbers of a source word and of a target",
    ),
    "behind the end": ("0-0 1-3", "has the link 1-3, but its target has 3 words, numbered 0 to 2"),
    "number": (7, "has '7', which is no link"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_gold_alignment_is_refused_with_its_row(
    case: str, command: Command, folder: Path
) -> None:
    given, said = WRONG[case]
    rows = (
        [GOLD[0], {**GOLD[1], "gold": given}]
        if isinstance(given, str)
        else [{**GOLD[0], "gold": given}]
    )
    place = write(folder / "corpus", rows, **({} if given == 7 else {"train": GOLD}))
    corpus = (
        "data=hub",
        place,
        "data.source=de",
        "data.target=en",
        "data.alignments=gold",
        "paths.data=prepared",
    )
    number, split = (1, "train") if given == 7 else (2, "validation")
    refused(
        command("prepare.py", *corpus),
        f"data.alignments: {split}.jsonl, line {number} of split '{split}' {said}",
    )
    assert not (folder / "prepared").exists()


def test_missing_column_of_alignments_is_refused_with_the_columns(
    command: Command, folder: Path
) -> None:
    corpus = ("data=hub", write(folder / "corpus", GOLD), "data.source=de", "data.target=en")
    refused(
        command("prepare.py", *corpus, "data.alignments=links"),
        "data.alignments: there is no column 'links'",
    )


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("unit", ["word", "character"])
def test_summarisation_with_coverage_reports_rouge_in_page_and_mlflow(
    unit: str, command: Command, folder: Path
) -> None:
    corpus = ("data=summarisation", write(folder / "corpus", TEXTS), f"data.rouge={unit}")
    sizes = (each for each in SIZES if "readout" not in each)
    succeeded(
        command("train.py", "experiment=see2017", *sizes, *corpus, "data.tokenizer.min_frequency=1")
    )
    metrics = metrics_of(folder)
    assert {"rouge1", "rouge2", "rougeL"} < set(metrics)
    (page,) = folder.glob("runs/plain/*/*/report/index.html")
    text = page.read_text(encoding="utf-8")
    assert f"F1|unit:{unit}|case:lc" in text
    assert "ROUGE-L" in text
    client = mlflow_client(folder)
    (run,) = (
        run
        for experiment in client.search_experiments()
        for run in client.search_runs([experiment.experiment_id])
    )
    assert any(name.endswith("rougeL") for name in run.data.metrics)
    assert "coverage" in (next(folder.glob("runs/points/*/model/config.json"))).read_text()


def test_encoder_with_features_is_trained_saved_and_asked_with_the_tags_of_the_data(
    command: Command, folder: Path
) -> None:
    rows = [
        {"lemma": "gehen", "tags": "pos=V tense=PST", "form": "ging"},
        {"lemma": "Haus", "tags": "pos=N num=PL", "form": "Häuser"},
        {"lemma": "ab", "tags": None, "form": "ab"},
    ]
    of_corpus = (
        "data=hub",
        write(folder / "corpus", rows),
        "data.source=lemma",
        "data.target=form",
        "data.features=[tags]",
        "data/tokenizer=tagged_character",
        "training.monitor=exact_match",
    )
    sizes = [choice for choice in SIZES if not choice.startswith("model.encoder")]
    choices = ("model/encoder=with_features", "tracking=none")
    succeeded(command("train.py", *sizes, *of_corpus, *choices))
    (model,) = folder.glob("runs/points/*/model")
    translator = attnlab.load(model)
    encoder = translator.model.encoder
    assert isinstance(encoder, WithFeaturesEncoder)
    ids = encoder.is_feature.nonzero().flatten().tolist()
    tags = sorted(translator.source_tokenizer.tokens(ids))
    assert tags == ["<num=PL>", "<pos=N>", "<pos=V>", "<tense=PST>"]
    for text in ("<pos=N> <num=PL> Haus", "Haus"):
        answer = translator(text)
        assert (
            answer.attention.shape[1] == len(translator.source_tokenizer.encode_ids([text])[0]) + 1
        )
