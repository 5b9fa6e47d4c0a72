"""Addresses: where they lead, and that no password of them is shown."""


def test_relative_sqlite_path_counts_from_the_folder_that_holds_the_runs(tracking, tmp_path):
    runs = tmp_path / "runs"
    assert tracking().address(runs) == f"sqlite:///{runs}/mlflow.db"
    assert tracking(uri="sqlite:///other/a.db").address(runs) == f"sqlite:///{tmp_path}/other/a.db"
    assert tracking(uri="sqlite:////var/a.db").address(runs) == "sqlite:////var/a.db"
    assert tracking(uri="http://host").address(runs) == "http://host"


def test_where_to_look_gives_a_command_bound_to_this_machine_and_the_page_of_the_runs(
    tracking, runs, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    command, page = tracking(experiment="template").where_to_look(runs).split("\n")
    assert command.startswith("MLFLOW_DISABLE_TELEMETRY=true ")
    assert command.endswith("mlflow server --backend-store-uri sqlite:///runs/mlflow.db --host 127.0.0.1 --port 5000")
    assert page == "open http://127.0.0.1:5000/#/experiments/1/runs?workflowType=machine_learning"
    assert tracking().where_to_look(tmp_path).endswith("\nopen http://127.0.0.1:5000/")  # before there are runs
    server = tracking(uri="http://me:hunter2@host:5000")
    assert server.where_to_look(runs) == "open http://me:***@host:5000"
