"""A tiny experiment through the real entry points."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from entry_points import TINY, Command, mlflow_client, succeeded
from omegaconf import OmegaConf
from test_refusals import refused

from attnlab.config.identity import config_digest
from attnlab.config.names import readable_name
from attnlab.experiment.composition import compose
from attnlab.experiment.preparation import prepare
from attnlab.project import PIPELINES
from attnlab.runs.connection import Connection
from attnlab.runs.tracking import MlflowTracking


def folder_of(base: Path, name: str) -> Path:
    """The one folder that has a file of this name directly in it."""
    (found,) = {path.parent for path in base.rglob(name)}
    return found


def heavy_imports_of_training(folder: Path, overrides: tuple[str, ...]) -> list[str]:
    """The packages that a command imports of those that take a second, in a process of its own."""
    script = str(PIPELINES / "train.py")
    program = (
        "import runpy, sys\n"
        f"sys.argv = {[script, *overrides]!r}\n"
        f"runpy.run_path({script!r}, run_name='__main__')\n"
        "heavy = {'pytorch_lightning', 'torchmetrics', 'datasets', 'scipy', 'sqlalchemy'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True
    )
    return ended.stdout.splitlines()[-1].split()


@pytest.mark.pictures
def test_train_then_again_then_evaluate_and_report(
    command: Command, folder: Path, tiny: tuple[str, ...]
) -> None:
    first = succeeded(command("train.py", *tiny))
    output = next(path.parent for path in (folder / "runs" / "plain").glob("*/*/metrics.json"))
    metrics = json.loads((output / "metrics.json").read_text())
    assert {"bleu", "exact_match", "token_nll", "aer"} <= set(metrics)
    model, data = (
        folder_of(folder / "runs" / "points", "model.json"),
        folder_of(folder / "runs" / "data", "data.json"),
    )
    log = (output / "train.log").read_text(encoding="utf-8")
    assert "fontTools" not in log
    for line in (
        f"experiment {model.parent.name}: {readable_name(compose(tiny).logged)}",
        "training: at most 4 steps",
        "step      4  validation: ",
        "trained: the model is of step 4",
        "test split: ",
        f"report:  {output / 'report' / 'index.html'}",
    ):
        assert line in log, line

    again = succeeded(command("train.py", *tiny))
    assert "is finished already; rerun=true trains it again" in again.err
    shown, shown_again = (
        [line for line in each.out.splitlines() if "bleu" in line] for each in (first, again)
    )
    assert shown == shown_again != []
    assert len(list((folder / "runs" / "points").iterdir())) == 1
    assert heavy_imports_of_training(folder, tiny) == []

    paths = (f"paths.model={model}", f"paths.data={data}", "paths.evaluation=evaluation")
    greedy = ("search=greedy", "search.max_length=3", "tracking=none")
    succeeded(command("evaluate.py", *greedy, *paths))
    assert "Greedy" in json.loads((folder / "evaluation" / "signatures.json").read_text())["search"]

    succeeded(
        command(
            "report.py",
            *tiny,
            *paths,
            f"paths.training={model.parent / 'training'}",
            "paths.report=report",
        )
    )
    assert (folder / "report" / "index.html").is_file()

    before = {path: path.read_bytes() for path in model.parent.rglob("*") if path.is_file()}
    ended = command(
        "train.py", *TINY, "tracking=mlflow", "tracking.uri=http://127.0.0.1:9", "rerun=true"
    )
    refused(ended, "tracking.uri: http://127.0.0.1:9 cannot be used")
    assert {path: path.read_bytes() for path in model.parent.rglob("*") if path.is_file()} == before


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_finished_run_asks_mlflow_only_where_something_is_missing_there(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    def connection(self: MlflowTracking, runs_folder: Path) -> Connection:
        opened.append(runs_folder)
        return connect(self, runs_folder)

    connect = MlflowTracking.connection
    tracked = (*TINY, "tracking.system_metrics=false", "tracking.heat_map_sentences=0")
    succeeded(command("train.py", *tracked))
    monkeypatch.setattr(MlflowTracking, "connection", connection)
    succeeded(command("train.py", *tracked))
    assert opened == []
    succeeded(command("train.py", *tracked, "tracking.note=new"))
    assert opened
    (run,) = mlflow_client(folder).search_runs(["1"])
    assert run.data.tags["mlflow.note.content"].startswith("new")
    mlflow_client(folder).delete_run(run.info.run_id)
    succeeded(command("train.py", *tracked, "tracking.note=new"))
    (again,) = mlflow_client(folder).search_runs(["1"])
    assert again.data.metrics == run.data.metrics


def test_evaluation_refuses_a_damaged_model_and_data_of_another_vocabulary(
    command: Command, folder: Path, tiny: tuple[str, ...]
) -> None:
    succeeded(command("prepare.py", *tiny, "paths.data=data"))
    succeeded(command("prepare.py", *tiny, "data.num_symbols=5", "paths.data=other"))
    succeeded(command("train.py", *tiny, "paths.data=data", "paths.model=model", "chain=false"))
    model = folder / "model"

    def evaluation_is_refused(said: str, data: str = "data") -> None:
        ended = command(
            "evaluate.py",
            *tiny,
            f"paths.data={data}",
            "paths.model=model",
            "paths.evaluation=evaluation",
        )
        refused(ended, said)
        assert not (folder / "evaluation").exists()

    evaluation_is_refused(
        "was not prepared with the source_tokenizer.json of the model", data="other"
    )
    config = json.loads((model / "config.json").read_text())
    config["model"]["encoder"]["_target_"] = "os.system"
    (model / "config.json").write_text(json.dumps(config))
    evaluation_is_refused("would run code of os")
    shutil.rmtree(model)
    evaluation_is_refused("must be a model folder")


def test_chain_false_trains_without_evaluating(
    command: Command, folder: Path, tiny: tuple[str, ...]
) -> None:
    """Data of its own it prepares all the same; a folder that paths.data names must hold them."""
    succeeded(command("train.py", *tiny, "chain=false"))
    assert folder_of(folder / "runs" / "points", "done.json")
    assert not list((folder / "runs").rglob("metrics.json"))
    refused(
        command("train.py", *tiny, "chain=false", "paths.data=elsewhere"), "holds no prepared data"
    )


@pytest.mark.usefixtures("database")
def test_environment_variables_stay_unresolved_in_what_is_written(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "918273645"
    monkeypatch.setenv("ATTNLAB_DATA_SEED", secret)
    seed = "${oc.decode:${oc.env:ATTNLAB_DATA_SEED}}"
    (folder / "params.yaml").write_text(f"data: copy\noverrides: [\"data.seed='{seed}'\"]\n")
    succeeded(command("compose.py"))
    assert (
        OmegaConf.to_container(OmegaConf.load(folder / "build" / "resolved.yaml"))["data"]["seed"]
        == seed
    )

    small = ("tracking=mlflow", "tracking.heat_map_sentences=0", "tracking.log_model=false")
    succeeded(
        command("train.py", *TINY, *small, "tracking.system_metrics=false", f"data.seed='{seed}'")
    )
    config = json.loads(next((folder / "runs" / "points").glob("*/model/config.json")).read_text())
    assert config["data"]["seed"] == seed
    holding = [
        path
        for path in folder.rglob("*")
        if path.is_file() and secret.encode() in path.read_bytes()
    ]
    assert holding == []


def test_another_environment_is_another_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnlab.experiment.composition import compose

    def identity(value: str) -> str:
        monkeypatch.setenv("ATTNLAB_SEED", value)
        return compose(["seed='${oc.decode:${oc.env:ATTNLAB_SEED}}'"]).identity(("seed",), "", ())

    assert identity("1") != identity("2")
    assert identity("1") == identity("1")


def test_model_that_depends_on_the_environment_is_refused(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTNLAB_SIZE", "8")
    ended = command("train.py", "model.encoder.hidden_size='${oc.decode:${oc.env:ATTNLAB_SIZE}}'")
    refused(ended, "model takes a value from an environment variable")


def test_ensemble_of_two_models_is_evaluated_as_one(
    command: Command, folder: Path, tiny: tuple[str, ...]
) -> None:
    succeeded(command("prepare.py", *tiny, "paths.data=data"))
    for seed in (1, 2):
        succeeded(
            command(
                "train.py",
                *tiny,
                f"seed={seed}",
                f"paths.model=model{seed}",
                "paths.data=data",
                "chain=false",
            )
        )
    search = (
        "search.n_best=2",
        "search.replace_unknown=true",
        "search.coverage_penalty=0.2",
        "search.min_length=1",
    )
    common = (
        *tiny,
        "paths.data=data",
        "paths.evaluation=evaluation",
        *search,
        "paths.model=model1",
    )
    succeeded(command("evaluate.py", *common, "paths.ensemble=[model2]"))
    signatures = json.loads((folder / "evaluation" / "signatures.json").read_text())
    assert signatures["models"] == "2, their probabilities averaged"
    rows = [
        json.loads(line)
        for line in (folder / "evaluation" / "hypotheses.jsonl").read_text().splitlines()
    ]
    assert all(len(row["n_best"]) == 2 and row["hypothesis"] for row in rows)

    succeeded(command("evaluate.py", *common))
    runs = [path for path in (folder / "runs" / "points").glob("*/evaluations/*") if path.is_dir()]
    assert len(runs) == 2  # the ensemble's metrics are not taken for the model's

    config = json.loads((folder / "model2" / "config.json").read_text())
    config["padding"]["encoder"] = "post"
    (folder / "model2" / "config.json").write_text(json.dumps(config))
    refused(
        command("evaluate.py", *common, "paths.ensemble=[model2]"),
        "give models that pad on the same sides",
    )
    (folder / "model2" / "source_tokenizer.json").write_text("{}")
    refused(
        command("evaluate.py", *common, "paths.ensemble=[model2]"),
        "has another source_tokenizer.json",
    )


@pytest.mark.slow
def test_run_of_an_evaluation_has_the_parameters_of_its_model(
    command: Command, folder: Path, tiny: tuple[str, ...]
) -> None:
    tracked = (*tiny[:-1], "tracking.system_metrics=false", "tracking.heat_map_sentences=0")
    dot = [choice for choice in tracked if not choice.startswith("model.attention.")]
    succeeded(command("prepare.py", *dot, "paths.data=data"))
    for seed in (1, 2):
        of_model = (
            "model/attention=dot",
            f"seed={seed}",
            f"paths.model=model{seed}",
            "paths.data=data",
            "chain=false",
        )
        succeeded(command("train.py", *dot, *of_model))
    common = ("paths.model=model2", "paths.data=data", *tracked[-2:])
    configs = [compose([*dot, "model/attention=dot", f"seed={seed}"]).logged for seed in (1, 2)]
    trained = [readable_name(config) for config in configs]
    # The search of an evaluation stands in the place of the training's.
    one, two = [
        readable_name({key: config[key] for key in config if key != "search"}) for config in configs
    ]
    # Two names are too long for MLflow
    both = f"{two} + 1 more ({config_digest({'names': [two, one]})[:4]})"
    evaluations = {
        f"{two} · beam max_length=8 size=3": ("search.size=3", "search.max_length=8"),
        f"{two} · beam max_length=8 size=4": ("search.size=4", "search.max_length=8"),
        f"{two} · greedy": ("search=greedy",),
        f"{both} · greedy": ("search=greedy", "paths.ensemble=[model1]"),
    }
    for number, search in enumerate(evaluations.values()):
        succeeded(command("evaluate.py", *common, *search, f"paths.evaluation=evaluation{number}"))

    found = {run.info.run_name: run.data.params for run in mlflow_client(folder).search_runs(["1"])}
    assert set(found) == {*evaluations, *trained}
    for name in evaluations:
        params = found[name]
        of_model = (
            params["attention"],
            params["data"],
            params["seed"],
            params["training.max_steps"],
        )
        assert of_model == ("dot", "copy", "2", "4"), name
    assert found[f"{two} · beam max_length=8 size=3"]["search.size"] == "3"
    assert found[f"{two} · greedy"]["search"] == "greedy"


def test_search_that_cannot_write_the_references_of_its_split_is_a_warning(tmp_path, capsys):
    made = ["data=copy", "data.num_pairs=100", f"paths.runs={tmp_path}", "tracking=none"]
    prepare(compose([*made, "search.max_length_ratio=0.5"]))
    err = capsys.readouterr().err
    assert (
        "warning: 100% of the test split's references are longer than search can write; "
        "raise search.max_length" in err
    )
    assert "validation" not in err


def test_ctrl_c_before_a_checkpoint_says_that_nothing_was_saved(
    command: Command, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("attnlab.experiment.training.make_module", interrupted)
    ended = command("train.py", *tiny, "tracking=none")
    assert ended.code == 130
    assert ended.err.endswith(
        "nothing was saved yet; the same command starts the training again\nstopped by Ctrl-C\n"
    )


def test_ctrl_c_after_a_training_does_not_say_that_nothing_was_saved(
    command: Command, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("attnlab.experiment.run.ExperimentRun.publish", interrupted)
    ended = command("train.py", *tiny, "tracking=none")
    assert ended.code == 130
    assert "nothing was saved" not in ended.err
