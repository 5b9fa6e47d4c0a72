"""A foreign package adds one of each part without touching attnlab, as docs/extend.md says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
import yaml
from command_fixtures import MadeOnce
from entry_points import PIPELINES, Command, Ended, mlflow_client, succeeded
from lab_extras.encoders import GatedConvolutionsEncoder
from lab_extras.metrics import Repetition
from lab_extras.tagging.predictor import SentenceTagger
from lab_extras.tagging.task import Tagging
from lab_extras.weights import GainedSoftmax
from starlette.testclient import TestClient
from test_refusals import refused

import attnlab
from attnlab.commands import main
from attnlab.config.names import readable_name
from attnlab.errors import ExperimentError
from attnlab.evaluation.corpus_metric import CorpusMetric
from attnlab.evaluation.own_metrics import measured
from attnlab.experiment.composition import compose
from attnlab.project import CONF as PROJECT_CONF
from attnlab.runs.shown_params import shown_params
from attnlab.tasks.saved import task_of_evaluation

SEARCH_PATH = "hydra.searchpath=[pkg://lab_extras.conf]"
CONF = Path(__file__).parent / "lab_extras" / "conf"
SHORT = ("training.max_steps=20", "training.validate_every=10", "training.batching.size=16")
TRACKED = ("tracking.system_metrics=false",)
OWN_PARTS = (
    "model/attention=euclidean", "model/normaliser=gained", "model/encoder=gated_convolutions",
    "model/history=fading", "model/decoder=gated", "model/output=capped",
    "data=numbers", "metrics=repetition", "pictures=entropy",
)  # fmt: skip
MODEL_OF_TAGGER = ("model.encoder.embedding_size=8", "model.encoder.hidden_size=8")


def the_model(folder: Path) -> Path:
    (found,) = folder.glob("runs/points/*/model")
    return found


def the_output(folder: Path) -> Path:
    (found,) = folder.glob("runs/plain/*/*/metrics.json")
    return found.parent


def text_of_page(folder: Path) -> str:
    page = (the_output(folder) / "report" / "index.html").read_text(encoding="utf-8")
    return " ".join(re.sub(r"<[^>]+>", " ", page.split("</style>")[1]).split())


@pytest.fixture
def trained(command: Command, database: Path, folder: Path, made_once: MadeOnce) -> Ended:
    """A translation of foreign parts alone."""
    arguments = (SEARCH_PATH, *OWN_PARTS, *SHORT, *TRACKED)
    return made_once("trained", folder, lambda: succeeded(command("train.py", *arguments)))


@pytest.mark.pictures
def test_foreign_parts_train_are_measured_shown_and_drawn(trained: Ended, folder: Path) -> None:
    metrics = json.loads((the_output(folder) / "metrics.json").read_text())
    assert 0 <= metrics["repetition"] <= 100
    assert f"{metrics['repetition']:.2f}" in text_of_page(folder)
    assert "tokens that repeat the one before them" in text_of_page(folder)

    client = mlflow_client(folder)
    (run,) = client.search_runs(["1"])
    assert run.data.metrics["test/repetition"] == pytest.approx(metrics["repetition"])
    drawn = [file.path for file in client.list_artifacts(run.info.run_id, "images")]
    entropy = "images/validation~attention~entropy+step+20+"
    assert any(path.startswith(entropy) for path in drawn)
    assert run.data.params["attention"] == "euclidean"
    assert run.data.params["normaliser"] == "gained"
    assert run.data.params["history"] == "fading"
    assert run.data.params["output"] == "capped"
    assert " · normaliser gained · " in run.info.run_name


def test_history_with_a_record_of_its_own_goes_through_a_model(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """And a score that nobody reads is warned of."""
    chosen = (SEARCH_PATH, "data=copy", "tracking=none", "model/history=moving_window")
    compose([*chosen, "model/attention=uniform"])
    assert "would never be learned" not in capfd.readouterr().err
    compose([*chosen, "model/attention=general"])
    assert "decoder.attention.score.W.weight, which would never be" in capfd.readouterr().err


def test_model_of_foreign_parts_is_loaded_where_they_are_allowed(
    trained: Ended, folder: Path
) -> None:
    with pytest.raises(ExperimentError, match=r"names classes of lab_extras.* allow=\("):
        attnlab.load(the_model(folder))
    translator = attnlab.load(the_model(folder), allow=["lab_extras"])
    assert isinstance(translator.model.encoder, GatedConvolutionsEncoder)
    assert isinstance(translator("4 0 7").text, str)
    weights = translator("4 0 7").attention
    assert (abs(weights.sum(axis=1) - 1) > 1e-3).all()  # as the gain that it has learned


def test_model_of_foreign_parts_is_explored_where_they_are_allowed_and_never_exported(
    trained: Ended,
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = str(the_model(folder))
    assert main(["export", model, str(folder / "page.html")]) == 1
    assert f"{model}: model names lab_extras.decoders.GatedDecoder, " in capfd.readouterr().err
    assert not (folder / "page.html").exists()

    assert main(["explore", model, "--no-browser"]) == 1
    assert "--allow lab_extras.decoders" in capfd.readouterr().err
    served: list[Any] = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda server, **_: served.append(server))
    assert main(["explore", model, "--no-browser", "--port", "0", "--allow", "lab_extras"]) == 0
    client = TestClient(served[0].config.app, base_url="http://localhost")
    assert client.get("/api/about").json()["command"].endswith(" --allow lab_extras")
    answer = client.post("/api/translate", json={"model": model, "text": "4 0 7"}).json()
    assert answer["attention"]


def test_evaluation_of_foreign_parts_names_the_choices_that_allow_them(
    trained: Ended, command: Command, folder: Path
) -> None:
    (info,) = folder.glob("runs/data/*/data.json")
    paths = (f"paths.model={the_model(folder)}", f"paths.data={info.parent}", "tracking=none")
    refused(
        command("evaluate.py", SEARCH_PATH, *paths),
        "loading the model in",
        "repeat the choices that the model was trained with",
        "model/attention=euclidean",
        "model/encoder=gated_convolutions",
    )
    refused(
        command("evaluate.py", *paths),
        "model/encoder=<the choice of lab_extras.encoders.GatedConvolutionsEncoder, by hydra",
    )
    parts = [choice for choice in OWN_PARTS if choice.startswith("model/")]
    succeeded(command("evaluate.py", SEARCH_PATH, *parts, *paths))


def test_foreign_choice_is_listed_and_marked_as_changed(command: Command, folder: Path) -> None:
    listed = succeeded(command("train.py", SEARCH_PATH, "--help")).out
    assert re.search(r"^model/attention: .*\beuclidean\b", listed, re.MULTILINE)
    assert re.search(r"^task: .*\btagging\b", listed, re.MULTILINE)

    other = ("model/attention=euclidean", "model.attention.temperature=2.0", "tracking=none")
    succeeded(command("train.py", SEARCH_PATH, "data=numbers", *other, *SHORT))
    assert "euclidean, changed" in text_of_page(folder)
    assert "numbers, changed" not in text_of_page(folder)


FOLDERS = (PROJECT_CONF, CONF)


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        (["data=numbers"], "bahdanau · numbers · seed 1"),
        (["data=numbers", "data.digits=4"], "bahdanau · digits 4 · numbers · seed 1"),
        (["model/encoder=gated_convolutions"], "bahdanau · gated_convolutions · dates · seed 1"),
        (
            ["model/normaliser=gained", "model.normaliser.initial=0.5"],
            "bahdanau · normaliser gained · normaliser initial 0.5 · dates · seed 1",
        ),
        (["task=tagging"], "bahdanau · comparisons · seed 1"),
    ],
)
def test_name_says_a_foreign_choice_and_what_differs_from_it(
    overrides: list[str], name: str
) -> None:
    experiment = compose([SEARCH_PATH, *overrides])
    assert readable_name(experiment.logged, folders=FOLDERS) == name


def test_params_are_foreign_choices_and_what_differs_from_them() -> None:
    chosen = ["task=tagging", "model/normaliser=gained", "model.encoder.hidden_size=8"]
    params = shown_params(compose([SEARCH_PATH, *chosen]).logged, FOLDERS)
    assert (params["task"], params["data"], params["normaliser"]) == (
        "tagging",
        "comparisons",
        "gained",
    )
    settings = {name: value for name, value in params.items() if "." in name}
    assert settings == {"model.encoder.hidden_size": "8"}


def test_foreign_choices_come_from_a_folder_of_configs_too(command: Command, folder: Path) -> None:
    refused = command("train.py", "model/attention=euclidean")
    assert refused.code == 1
    assert "model/attention must be one of" in refused.err
    own = ("--config-dir", str(CONF), "model/attention=euclidean", "data=numbers")
    succeeded(command("train.py", *own, "tracking=none", *SHORT))


def test_sweep_over_a_foreign_choice_is_compared(command: Command, database: Path) -> None:
    points = ("model/attention=dot,euclidean", "seed=1,2", "model/projection=linear")
    sizes = ("model.encoder.embedding_size=8", "model.encoder.hidden_size=8", "search=greedy")
    steps = ("training.max_steps=4", "training.validate_every=4", "training.batching.size=16")
    data = ("data=numbers", "metrics=repetition")
    arguments = (SEARCH_PATH, *points, *data, *sizes, *steps, *TRACKED)
    ended = succeeded(command("train.py", "-m", *arguments))
    assert "repetition" in ended.out.partition("Ranking by validation")[2]

    without = succeeded(command("compare.py", "sweep=last", "metric=repetition"))
    assert "not resampled, for its code is lab_extras's; allow=[lab_extras] lets it run" in (
        " ".join(without.out.split())
    )
    allowed = succeeded(
        command("compare.py", "sweep=last", "metric=repetition", "allow=[lab_extras]")
    )
    assert "drawn over seeds and sentences" in " ".join(allowed.out.split())


@pytest.fixture
def tagged(command: Command, database: Path, folder: Path, made_once: MadeOnce) -> Ended:
    """A model of the foreign task."""
    steps = ("training.max_steps=60", "training.validate_every=30")
    arguments = (SEARCH_PATH, "task=tagging", *MODEL_OF_TAGGER, *steps, *TRACKED)
    return made_once("tagged", folder, lambda: succeeded(command("train.py", *arguments)))


def test_foreign_task_trains_evaluates_and_reports(tagged: Ended, folder: Path) -> None:
    metrics = json.loads((the_output(folder) / "metrics.json").read_text())
    assert metrics["tag_accuracy"] > 0.4
    page = text_of_page(folder)
    assert "Mistakes" in page
    assert "share of words with the right tag" in page
    with pytest.raises(ExperimentError, match=r"allow it: allow=\[lab_extras.tagging.task\]"):
        task_of_evaluation(the_output(folder) / "evaluation")
    task = task_of_evaluation(the_output(folder) / "evaluation", ["lab_extras"])
    assert task.name == "tagging"

    (run,) = mlflow_client(folder).search_runs(["1"])
    assert run.data.params["task"] == "tagging"
    assert "**Test:** tag_accuracy" in run.data.tags["mlflow.note.content"]
    in_mlflow = mlflow_client(folder).get_experiment("1")
    assert "mlflow.sharedViewState.attnlab-tagging" in in_mlflow.tags
    (model,) = run.outputs.model_outputs
    assert mlflow_client(folder).get_logged_model(model.model_id).model_type == "tagger"


def test_main_metrics_of_a_foreign_task_are_the_headlines_of_its_report() -> None:
    assert Tagging().main_metrics == ("tag_accuracy",)
    assert Tagging().view.metrics == ("test/tag_accuracy",)


def test_metrics_that_the_config_adds_are_among_the_main_ones() -> None:
    experiment = compose([SEARCH_PATH, "data=numbers", "metrics=[repetition,length_ratio]"])
    assert experiment.main_metrics[:2] == ("bleu", "chrf")
    assert experiment.main_metrics[-2:] == ("repetition", "length_ratio")


def test_model_of_a_foreign_task_is_asked_and_evaluated_again(
    tagged: Ended, command: Command, folder: Path
) -> None:
    tagger = attnlab.load(the_model(folder), allow=["lab_extras"])
    assert isinstance(tagger, SentenceTagger)
    answer = tagger("a b b a")
    assert len(answer.tags) == 4
    assert answer.attention.shape == (5, 5)
    assert tagger.plain_answers(["a b b a"]) == [{"tags": answer.tags}]

    (data,) = folder.glob("runs/data/*/data.json")
    paths = (f"paths.model={the_model(folder)}", f"paths.data={data.parent}", "tracking=none")
    succeeded(command("evaluate.py", SEARCH_PATH, "task=tagging", *paths, "paths.evaluation=again"))
    for name in ("metrics.json", "predictions.jsonl"):
        first = (the_output(folder) / "evaluation" / name).read_bytes()
        assert (folder / "again" / name).read_bytes() == first


def test_foreign_task_without_a_page_is_refused_by_the_explorer(
    tagged: Ended, folder: Path
) -> None:
    from attnlab.explorer.server import application

    tagger = attnlab.load(the_model(folder), allow=["lab_extras"])
    with pytest.raises(ExperimentError, match="the explorer has no page for a SentenceTagger"):
        application({"tagger": tagger})


def test_composed_config_of_a_foreign_task_is_trained_without_a_search_path(
    command: Command, folder: Path
) -> None:
    overrides = [SEARCH_PATH, "task=tagging", "tracking=none", *MODEL_OF_TAGGER, *SHORT]
    (folder / "params.yaml").write_text(yaml.safe_dump({"overrides": overrides}))
    succeeded(command("compose.py"))
    resolved = ("-cp", str(folder / "build"), "-cn", "resolved")
    succeeded(command("prepare.py", *resolved))
    succeeded(command("train.py", *resolved))
    assert (folder / "build" / "model" / "weights.safetensors").is_file()


class TooFew(CorpusMetric):
    """Statistics of one sentence alone."""

    sums = 1

    def statistics(self, rows: Any) -> np.ndarray:
        return np.ones((1, 1))

    def scores(self, sums: np.ndarray) -> np.ndarray:
        return sums[:, 0]


class Failing(TooFew):
    def statistics(self, rows: Any) -> np.ndarray:
        return rows[0]["no such column"]


class BetterUp(TooFew):
    better = "up"


def test_metric_that_breaks_its_contract_is_named_with_what_it_must_return() -> None:
    rows = [{"hypothesis": "a"}, {"hypothesis": "b"}]
    with pytest.raises(ExperimentError, match=r"metrics.few: TooFew.statistics must return .*2, 1"):
        measured({"few": TooFew()}, rows)
    with pytest.raises(ExperimentError, match=r"Failing.statistics failed: KeyError: 'no such col"):
        measured({"bad": Failing()}, rows)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("+metrics.bleu._target_=lab_extras.metrics.Repetition", "task=translation has a metric"),
        ("+metrics.mine._target_=lab_extras.scores.EuclideanScore", "metrics.mine._target_ is"),
        (
            f"+metrics.mine._target_={__name__}.BetterUp",
            "metrics.mine: BetterUp.better must be ↑, ↓ or empty text, got 'up'",
        ),
        ("+metrics.mine=repetition", "metrics.mine must be a CorpusMetric"),
        ("+metrics={mine: {_target_: lab_extras.metrics.Repetition, case: 3}}", "true or false"),
        ("+pictures.mine._target_=lab_extras.pictures.Entropy", "has no"),
    ],
)
def test_wrong_metric_or_picture_is_refused_at_composition(override: str, message: str) -> None:
    with pytest.raises(ExperimentError, match=re.escape(message)):
        compose([override])


def test_setting_that_a_file_leaves_out_is_said_to_be_added(command: Command, folder: Path) -> None:
    own = ("--config-dir", str(CONF), "pictures=entropy", "pictures.entropy.colour=red")
    refused = command("train.py", *own)
    assert refused.code == 1
    assert "pictures.entropy holds none; write +pictures.entropy.colour=... to add it" in (
        " ".join(refused.err.split())
    )


def test_repetition_counts_neighbours() -> None:
    metric = Repetition(case=False)
    rows = [{"hypothesis": "The the cat"}, {"hypothesis": ""}, {"hypothesis": "a b"}]
    (value,) = metric.scores(metric.statistics(rows).sum(axis=0, keepdims=True))
    assert value == pytest.approx((100 / 3 + 0 + 0) / 3)


def test_rows_of_the_gained_softmax_sum_to_its_gain() -> None:
    import torch

    weights = GainedSoftmax(initial=1.5)(torch.zeros(1, 3))
    torch.testing.assert_close(weights, torch.full((1, 3), 0.5))


def test_every_foreign_choice_is_a_file_that_attnlab_does_not_have() -> None:
    ours = PIPELINES.parent / "conf"
    for file in CONF.rglob("*.yaml"):
        assert not (ours / file.relative_to(CONF)).exists(), file
