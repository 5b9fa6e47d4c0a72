"""A tiny experiment through the real entry points."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from entry_points import TINY, Command
from mlflow import MlflowClient
from omegaconf import OmegaConf
from test_refusals import refused


def folder_of(base: Path, name: str) -> Path:
    """The one folder that has a file of this name directly in it."""
    (found,) = {path.parent for path in base.rglob(name)}
    return found


def test_train_then_again_then_evaluate_and_report(command: Command, folder: Path, tiny: tuple[str, ...]) -> None:
    ended = command("train.py", *tiny)
    assert ended.code == 0, ended.err
    output = next(path.parent for path in (folder / "runs" / "plain").glob("*/*/metrics.json"))
    metrics = json.loads((output / "metrics.json").read_text())
    assert {"bleu", "exact_match", "token_nll", "aer"} <= set(metrics)
    model, data = folder_of(folder / "runs" / "points", "model.json"), folder_of(folder / "runs" / "data", "data.json")
    log = (output / "train.log").read_text(encoding="utf-8")
    assert "fontTools" not in log
    for line in (
        f"experiment {model.parent.name}: bahdanau · copy · seed 1",
        "training: at most 4 steps",
        "step      4  validation: ",
        "trained: the model is of step 4",
        "test split: ",
        f"report:  {output / 'report' / 'index.html'}",
    ):
        assert line in log, line

    again = command("train.py", *tiny)
    assert again.code == 0, again.err
    assert "is finished already; rerun=true trains it again" in again.err
    assert len(list((folder / "runs" / "points").iterdir())) == 1

    paths = (f"paths.model={model}", f"paths.data={data}", "paths.evaluation=evaluation")
    greedy = ("search=greedy", "search.max_length=3", "tracking=none")
    ended = command("evaluate.py", *greedy, *paths)
    assert ended.code == 0, ended.err
    assert "Greedy" in json.loads((folder / "evaluation" / "signatures.json").read_text())["search"]

    ended = command("report.py", *tiny, *paths, f"paths.training={model.parent / 'training'}", "paths.report=report")
    assert ended.code == 0, ended.err
    assert (folder / "report" / "index.html").is_file()

    weights = model / "weights.safetensors"
    for break_it, said in (
        (lambda: weights.write_bytes(weights.read_bytes()[:100]), "must be a whole model folder"),
        (lambda: (model / "model.json").write_text("{"), "must be a model folder"),
        (lambda: shutil.rmtree(model), "must be a model folder"),
    ):
        break_it()
        shutil.rmtree(folder / "evaluation", ignore_errors=True)
        refused(command("evaluate.py", *greedy, *paths), said)
        assert not (folder / "evaluation").exists()


def test_chain_false_trains_without_evaluating(command: Command, folder: Path, tiny: tuple[str, ...]) -> None:
    """Data of its own it prepares all the same; a folder that paths.data names must hold them."""
    ended = command("train.py", *tiny, "chain=false")
    assert ended.code == 0, ended.err
    assert folder_of(folder / "runs" / "points", "done.json")
    assert not list((folder / "runs").rglob("metrics.json"))
    refused(command("train.py", *tiny, "chain=false", "paths.data=elsewhere"), "holds no prepared data")


def test_refused_rerun_leaves_the_finished_experiment_unchanged(
    command: Command, folder: Path, tiny: tuple[str, ...]
) -> None:
    assert command("train.py", *tiny).code == 0
    point = folder_of(folder / "runs" / "points", "done.json")
    before = {path: path.read_bytes() for path in point.rglob("*") if path.is_file()}
    away = ("tracking=mlflow", "tracking.uri=http://127.0.0.1:9")
    ended = command("train.py", *TINY, *away, "rerun=true")
    assert ended.code == 1
    assert "error: tracking.uri: http://127.0.0.1:9 cannot be used" in ended.err
    assert {path: path.read_bytes() for path in point.rglob("*") if path.is_file()} == before


def test_weights_that_do_not_fit_the_config_are_refused(command: Command, folder: Path, tiny: tuple[str, ...]) -> None:
    ended = command("train.py", *tiny)
    assert ended.code == 0, ended.err
    model, data = folder_of(folder / "runs" / "points", "model.json"), folder_of(folder / "runs" / "data", "data.json")
    config = json.loads((model / "config.json").read_text())
    config["model"]["encoder"]["embedding_size"] = 9
    (model / "config.json").write_text(json.dumps(config))
    paths = (f"paths.model={model}", f"paths.data={data}", "paths.evaluation=evaluation", "tracking=none")
    refused(command("evaluate.py", *paths), "the weights do not fit the config")
    config["model"]["encoder"]["_target_"] = "os.system"
    (model / "config.json").write_text(json.dumps(config))
    refused(command("evaluate.py", *paths), "model of this model folder names classes of os")


@pytest.mark.slow
def test_sweep_of_two_points_trains_and_evaluates_both(command: Command, folder: Path, tiny: tuple[str, ...]) -> None:
    choices = [choice for choice in tiny if not choice.startswith("model.attention.size")]
    ended = command("train.py", "-m", "model/attention=dot,general", *choices)
    assert ended.code == 0, ended.err
    assert len(list((folder / "runs" / "sweeps").glob("*/*/*/metrics.json"))) == 2
    assert len(list((folder / "runs" / "points").iterdir())) == 2


@pytest.mark.parametrize("tracking", ["mlflow"])
def test_environment_variables_stay_unresolved_in_what_is_written(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, tracking: str
) -> None:
    secret = "918273645"
    monkeypatch.setenv("ATTNLAB_DATA_SEED", secret)
    seed = "${oc.decode:${oc.env:ATTNLAB_DATA_SEED}}"
    (folder / "params.yaml").write_text(f"data: copy\noverrides: [\"data.seed='{seed}'\"]\n")
    assert command("compose.py").code == 0
    assert OmegaConf.to_container(OmegaConf.load(folder / "build" / "resolved.yaml"))["data"]["seed"] == seed

    small = (f"tracking={tracking}", "tracking.heat_map_sentences=0", "tracking.log_model=false")
    ended = command("train.py", *TINY, *small, "tracking.system_metrics=false", f"data.seed='{seed}'")
    assert ended.code == 0, ended.err
    config = json.loads(next((folder / "runs" / "points").glob("*/model/config.json")).read_text())
    assert config["data"]["seed"] == seed
    holding = [path for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert holding == []


def test_another_environment_is_another_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnlab.experiment.composition import compose

    def identity(value: str) -> str:
        monkeypatch.setenv("ATTNLAB_SEED", value)
        return compose(["seed='${oc.decode:${oc.env:ATTNLAB_SEED}}'"]).identity(("seed",), "", ())

    assert identity("1") != identity("2")
    assert identity("1") == identity("1")


def test_model_that_depends_on_the_environment_is_refused(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_SIZE", "8")
    ended = command("train.py", "model.encoder.hidden_size='${oc.decode:${oc.env:ATTNLAB_SIZE}}'")
    refused(ended, "model takes a value from an environment variable")


def test_ensemble_of_two_models_is_evaluated_as_one(command: Command, folder: Path, tiny: tuple[str, ...]) -> None:
    assert command("prepare.py", *tiny, "paths.data=data").code == 0
    for seed in (1, 2):
        ended = command("train.py", *tiny, f"seed={seed}", f"paths.model=model{seed}", "paths.data=data", "chain=false")
        assert ended.code == 0, ended.err
    search = ("search.n_best=2", "search.replace_unknown=true", "search.coverage_penalty=0.2", "search.min_length=1")
    common = (*tiny, "paths.data=data", "paths.evaluation=evaluation", *search, "paths.model=model1")
    ended = command("evaluate.py", *common, "paths.ensemble=[model2]")
    assert ended.code == 0, ended.err
    signatures = json.loads((folder / "evaluation" / "signatures.json").read_text())
    assert signatures["models"] == "2, their probabilities averaged"
    rows = [json.loads(line) for line in (folder / "evaluation" / "hypotheses.jsonl").read_text().splitlines()]
    assert all(len(row["n_best"]) == 2 and row["hypothesis"] for row in rows)

    alone = command("evaluate.py", *common)
    assert alone.code == 0, alone.err
    runs = [path for path in (folder / "runs" / "points").glob("*/evaluations/*") if path.is_dir()]
    assert len(runs) == 2  # the ensemble's metrics are not taken for the model's

    config = json.loads((folder / "model2" / "config.json").read_text())
    config["padding"]["encoder"] = "post"
    (folder / "model2" / "config.json").write_text(json.dumps(config))
    refused(command("evaluate.py", *common, "paths.ensemble=[model2]"), "give models that pad on the same sides")
    (folder / "model2" / "source_tokenizer.json").write_text("{}")
    refused(command("evaluate.py", *common, "paths.ensemble=[model2]"), "has another source_tokenizer.json")


@pytest.mark.slow
def test_run_of_an_evaluation_has_the_parameters_of_its_model(
    command: Command, folder: Path, tiny: tuple[str, ...]
) -> None:
    tracked = (*tiny[:-1], "tracking.system_metrics=false", "tracking.heat_map_sentences=0")
    dot = [choice for choice in tracked if not choice.startswith("model.attention.")]
    assert command("prepare.py", *dot, "paths.data=data").code == 0
    for seed in (1, 2):
        of_model = ("model/attention=dot", f"seed={seed}", f"paths.model=model{seed}", "paths.data=data", "chain=false")
        assert command("train.py", *dot, *of_model).code == 0
    common = ("paths.model=model2", "paths.data=data", *tracked[-2:])
    evaluations = {
        "dot · copy · seed 2 · beam max_length=8 size=3": ("search.size=3", "search.max_length=8"),
        "dot · copy · seed 2 · beam max_length=8 size=4": ("search.size=4", "search.max_length=8"),
        "dot · copy · seed 2 · greedy": ("search=greedy",),
        "dot · copy · seed 2 + dot · copy · seed 1 · greedy": ("search=greedy", "paths.ensemble=[model1]"),
    }
    for number, search in enumerate(evaluations.values()):
        ended = command("evaluate.py", *common, *search, f"paths.evaluation=evaluation{number}")
        assert ended.code == 0, ended.err

    client = MlflowClient(f"sqlite:///{folder}/runs/mlflow.db")
    found = {run.info.run_name: run.data.params for run in client.search_runs(["1"])}
    assert set(found) == {*evaluations, "dot · copy · seed 1", "dot · copy · seed 2"}
    for name in evaluations:
        params = found[name]
        of_model = (params["attention"], params["data"], params["seed"], params["training.max_steps"])
        assert of_model == ("dot", "copy", "2", "4"), name
    assert found["dot · copy · seed 2 · beam max_length=8 size=3"]["search.size"] == "3"
    assert found["dot · copy · seed 2 · greedy"]["search"] == "greedy"


def test_evaluation_under_dvc_uses_the_model_that_was_trained(command: Command, folder: Path) -> None:
    (folder / "params.yaml").write_text("overrides: ['paths.ensemble=[other]']\n")
    refused(command("compose.py"), "paths.ensemble names models that no stage makes")


def test_data_of_another_vocabulary_are_refused(command: Command, folder: Path, tiny: tuple[str, ...]) -> None:
    assert command("train.py", *tiny, "paths.model=model").code == 0
    assert command("prepare.py", *tiny, "data.num_symbols=5", "paths.data=other").code == 0
    ended = command("evaluate.py", *tiny, "paths.model=model", "paths.data=other", "paths.evaluation=evaluation")
    assert ended.code == 1
    assert "was not prepared with the source_tokenizer.json of the model" in ended.err
    assert "Traceback" not in ended.err
    assert not (folder / "evaluation").exists()
