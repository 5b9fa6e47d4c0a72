"""A tiny classifier through the real entry points, its files, and mixtures of the two tasks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import mlflow.pyfunc
import pytest
import yaml
from dvc_project import choose, copy_of_project, dvc, hashes, ran
from entry_points import ROOT, TINY, Command, succeeded
from mlflow import MlflowClient
from test_chain import folder_of
from test_refusals import left, refused

from attnlab.config.names import readable_name
from attnlab.experiment.composition import compose
from attnlab.tasks.classification.task import Classification

TASK = (
    "task=classification", "model.encoder.embedding_size=8", "model.encoder.hidden_size=8",
    "model.attention.size=8", "training.max_steps=30", "training.validate_every=10",
    "training.batching.size=16", "training.optimizer.lr=0.03",
)  # fmt: skip
CORPORA = ROOT.parent / "shared" / "data"


def corpus(folder: Path) -> Path:
    """Sentences that one word tells apart."""
    folder.mkdir()
    for split, size in (("train", 96), ("validation", 24), ("test", 24)):
        rows = [
            {"text": f"w{i % 5} {('좋아', 'bad')[i % 2]} <b> w{i % 7}", "label": i % 2}
            for i in range(size)
        ]
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (folder / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.fixture
def tiny(folder: Path) -> tuple[str, ...]:
    names = "data.label_names=[good,bad]"
    return (
        *TASK,
        f"data.path={corpus(folder / 'corpus')}",
        "data.tokenizer.min_frequency=1",
        names,
    )


@pytest.mark.slow
@pytest.mark.pictures
def test_train_then_again_then_evaluate_and_report(
    command: Command, folder: Path, tiny: tuple[str, ...]
) -> None:
    ended = succeeded(command("train.py", *tiny, "tracking=none"))
    assert "validation: nll " in ended.err
    output = next(path.parent for path in (folder / "runs" / "plain").glob("*/*/metrics.json"))
    metrics = json.loads((output / "metrics.json").read_text())
    assert metrics["accuracy"] == metrics["f1"] == 1.0
    assert {path.name for path in (output / "evaluation").iterdir()} == {
        "metrics.json", "signatures.json", "confusions.json", "predictions.jsonl", "attention.npz",
        "sentences.png", "sentences.html", "confusion_matrix.png", "task.json",
        "attention_worst.npz", "examples.json",
    }  # fmt: skip
    confusions = json.loads((output / "evaluation" / "confusions.json").read_text())
    assert confusions == {"labels": ["good", "bad"], "counts": [[12, 0], [0, 12]]}
    assert (output / "report" / "index.html").read_text(encoding="utf-8").count("좋아") > 1
    model, data = (
        folder_of(folder / "runs" / "points", "model.json"),
        folder_of(folder / "runs" / "data", "stats.json"),
    )
    assert "test/accuracy" not in (model.parent / "training" / "history.csv").read_text()

    again = command("train.py", *tiny, "tracking=none")
    assert "is finished already; rerun=true trains it again" in again.err

    paths = (
        f"paths.model={model}",
        f"paths.data={data}",
        "paths.evaluation=evaluation",
        "tracking=none",
    )
    succeeded(command("evaluate.py", *tiny, *paths))
    for path in (output / "evaluation").iterdir():
        assert path.read_bytes() == (folder / "evaluation" / path.name).read_bytes()
    shutil.rmtree(folder / "evaluation")
    ended = succeeded(command("evaluate.py", *paths))  # the task is the model's
    assert "metrics: evaluation/metrics.json" in ended.out.replace(f"{folder}/", "")
    shutil.rmtree(folder / "evaluation")
    succeeded(command("prepare.py", *TINY, "paths.data=pairs", "tracking=none"))
    said = "pairs was prepared for another task than task=classification; choose that task, or"
    for script in ("evaluate.py", "train.py"):
        refused(command(script, *tiny, *paths, "paths.data=pairs"), said)
    named = (*tiny[:-1], "data.label_names=[bad,good]", "paths.data=renamed", "tracking=none")
    succeeded(command("prepare.py", *named))
    refused(
        command("evaluate.py", *named, *paths[:1]),
        "was not prepared with the data.json of the model",
    )
    other = json.loads((model / "tokenizer.json").read_text())
    (model / "tokenizer.json").write_text(json.dumps(other))
    refused(
        command("evaluate.py", *tiny, *paths),
        "was not prepared with the tokenizer.json of the model",
    )
    assert not (folder / "evaluation").exists()


@pytest.mark.slow
@pytest.mark.pictures
def test_tracked_classifier_has_pictures_and_a_model_that_names_classes(
    command: Command, folder: Path, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    succeeded(command("train.py", *tiny, "tracking.system_metrics=false"))
    client = MlflowClient(tracking_uri=f"sqlite:///{folder}/runs/mlflow.db")
    (run,) = client.search_runs([client.get_experiment_by_name("attnlab").experiment_id])
    assert run.info.run_name == readable_name(compose(tiny).logged)
    assert run.data.params["task"] == "classification"
    assert {
        "validation/accuracy",
        "validation/f1",
        "validation/nll",
        "train/nll",
        "test/accuracy",
        "test/f1",
    } <= set(run.data.metrics)
    places = {info.path for info in client.list_artifacts(run.info.run_id, "attention/step_000030")}
    names = ("attention.npz", "sentences.html")
    assert places == {f"attention/step_000030/{name}" for name in names}
    images = [info.path for info in client.list_artifacts(run.info.run_id, "images")]
    for name in ("sentences", "confusion_matrix"):
        for shown in (f"validation~attention~{name}+step+30+", f"test~attention~{name}+step+0+"):
            assert any(path.startswith(f"images/{shown}") for path in images), shown
    (output,) = run.outputs.model_outputs
    location = client.get_logged_model(output.model_id).artifact_location.removeprefix("file://")
    # MLflow puts the model's code there
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    answers = mlflow.pyfunc.load_model(location).predict(["w1 bad w3", "좋아"])
    assert [answer["label"] for answer in answers] == ["bad", "good"]


def test_classifier_trains_on_data_that_prepare_wrote(
    command: Command, folder: Path, tiny: tuple[str, ...]
) -> None:
    prepared = (*tiny, "paths.data=prepared", "tracking=none")
    ended = succeeded(command("prepare.py", *prepared))
    assert "prepared 96 train, 24 validation, 24 test rows in" in ended.out
    succeeded(
        command(
            "train.py", *prepared, "chain=false", "paths.model=model", "paths.training=training"
        )
    )
    assert (folder / "model" / "tokenizer.json").read_bytes() == (
        folder / "prepared" / "tokenizer.json"
    ).read_bytes()
    assert "validation/accuracy" in (folder / "training" / "history.csv").read_text()


MIXTURES = {
    "pairs": (("task=classification", "data=dates"), "it may go with task=translation"),
    "labels": (("data=rt_polarity",), "it may go with task=classification"),
    "model alone": (("model=classifier",), "it may go with task=classification"),
    "other model": (("task=classification", "model=seq2seq"), "it may go with task=translation"),
    "training alone": (("training=classification",), "it may go with task=classification"),
    "other training": (
        ("task=classification", "training=standard"),
        "task=translation (here task=classification)",
    ),
    "search": (("task=classification", "search=greedy"), "search must be null"),
    "no search": (("search=none",), "got null; it may go with"),
    "unknown": (
        ("task=tagging",),
        "task must be one of classification, translation; got 'tagging'",
    ),
    "teacher forcing": (
        ("task=classification", "training.teacher_forcing.ratio=1"),
        "teacher_forcing is not",
    ),
    "no attention": (
        ("task=classification", "model/attention=none"),
        "model/attention=none also chooses model/decoder, but the model of task=classification has "
        "no such part; leave it out",
    ),
    "coverage": (
        ("task=classification", "model/history=coverage"),
        "model/history cannot be chosen: the model of task=classification has no such part; leave "
        "model/history out",
    ),
    "former coverage": (
        ("task=classification", "model/coverage=see2017"),
        "model/coverage is now model/history: model/coverage=see2017 is model/history=coverage",
    ),
    "gold links": (
        ("task=classification", "training/attention_loss=guided_alignment"),
        "learns from gold links, which labelled sentences have not; choose",
    ),
    "window": (
        ("task=classification", "model/scope=local_m"),
        "model.scope LocalM follows the target word by word",
    ),
    "ensemble": (("task=classification", "paths.ensemble=[other]"), "paths.ensemble must be null"),
}


@pytest.mark.parametrize(("overrides", "said"), MIXTURES.values(), ids=MIXTURES)
def test_sections_of_another_task_are_refused_in_a_sentence(
    command: Command, folder: Path, overrides: tuple[str, ...], said: str
) -> None:
    refused(command("train.py", *overrides), said)
    assert left(folder) == []


CHOICES = [
    "experiment=rt_polarity", "experiment=korean_chatbot", "experiment=lesson/classifier",
    "model/encoder=gru", "model/attention=general", "model/normaliser=sparsemax",
    "model/projection=linear", "model/heads=multi", "model/scope=local_p", "padding=unmasked_read",
    "data/tokenizer=character", "training/schedule=plateau",
]  # fmt: skip


def test_classification_composes_with_a_choice_of_each_of_its_groups() -> None:
    for choice in CHOICES:
        assert compose(["task=classification", choice]).task.name == "classification"


def test_params_yaml_chooses_the_task(command: Command, folder: Path) -> None:
    params = "overrides: [task=classification, data=rt_polarity, search=none, data.path=nowhere]\n"
    (folder / "params.yaml").write_text(params)
    succeeded(command("compose.py"))
    resolved = yaml.safe_load((folder / "build" / "resolved.yaml").read_text())
    assert resolved["task"] == Classification().node
    refused(
        command("prepare.py", "-cp", str(folder / "build"), "-cn", "resolved"),
        "data.path: there is no",
    )


@pytest.mark.slow
def test_dvc_repro_of_a_classifier(tmp_path: Path, warm_path: None) -> None:
    folder = copy_of_project(tmp_path / "project")
    dvc(folder, "config", "--local", "core.no_scm", "true")
    path = str(corpus(tmp_path / "corpus"))
    choose(folder, data="labelled", overrides=[*TASK, f"data.path={path}", "tracking=none"])
    assert ran(dvc(folder, "repro")) == ["compose", "prepare", "train", "evaluate", "report"]
    built = hashes(folder / "build")
    expected = {
        "evaluation/metrics.json",
        "evaluation/sentences.html",
        "model/tokenizer.json",
        "report/index.html",
    }
    assert expected <= set(built)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("rt_polarity", 0.55), ("korean_chatbot", 0.5)])
def test_classification_preset_is_better_than_chance_after_200_steps(
    command: Command, name: str, least: float
) -> None:
    """The whole presets, cut short to an epoch and a half.

    Chance is 0.5 and 0.45.
    """
    if not (CORPORA / name).is_dir():
        pytest.skip(f"there is no copy of {name} in {CORPORA}")
    short = ("training.max_epochs=null", "training.max_steps=200", "training.average_checkpoints=1")
    succeeded(
        command(
            "train.py", f"experiment={name}", f"data.path={CORPORA / name}", *short, "tracking=none"
        )
    )
    metrics = json.loads(next(Path("runs/plain").glob("*/*/metrics.json")).read_text())
    assert metrics["accuracy"] > least
