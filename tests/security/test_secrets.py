"""Secrets stay where they were given: no byte of them is in what attnlab writes, prints or sends to be kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from entry_points import PIPELINES, TINY, Command, Ended
from hypothesis import example, given
from hypothesis import strategies as st
from servers import free_port, mlflow_server

from attnlab.config.secrets import HIDDEN, into_environment, literal_secrets, masked

LITERAL, BY_VARIABLE, TOKEN, OTHER = "kanarie-w1-letter", "kanarie-w2-omgeving", "kanarie-w3-teken", "kanarie-w4-elders"
CANARY = "kanarie"
SHORT = (*TINY, "chain=true", "++tracking.log_model=false")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    with mlflow_server(
        folder, "sqlite:///served.db", "--artifacts-destination", str(folder / "kept"), "--workers", "1"
    ) as address:
        yield address
        assert holding(folder) == []


def holding(folder: Path) -> list[str]:
    """The files with a canary in their bytes or names."""
    return sorted(
        str(path)
        for path in folder.rglob("*")
        if CANARY in path.name or (path.is_file() and CANARY.encode() in path.read_bytes())
    )


def tells_nothing(ended: Ended, folder: Path) -> None:
    assert CANARY not in ended.out
    assert CANARY not in ended.err
    assert holding(folder) == []


@pytest.mark.slow
def test_no_secret_is_left_behind(folder: Path, server: str) -> None:
    """At the shell: a run and a sweep, whose every byte is looked at."""
    address = server.removeprefix("http://")
    given = {"THE_ADDRESS": f"http://me:{BY_VARIABLE}@{address}", "HF_TOKEN": TOKEN, "MLFLOW_TRACKING_TOKEN": OTHER}

    def train(*arguments: str) -> None:
        command = [sys.executable, str(PIPELINES / "train.py"), *arguments]
        ended = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        tells_nothing(Ended(ended.returncode, ended.stdout, ended.stderr), folder)

    train(*SHORT, f"tracking.uri=http://me:{LITERAL}@{address}")
    (overrides,) = (folder / "runs" / "plain").rglob(".hydra/overrides.yaml")
    assert f"tracking.uri=http://${{oc.env:ATTNLAB_SECRET_1}}@{address}" in yaml.safe_load(overrides.read_text())
    workers = ("launcher=joblib", "launcher.workers=2")
    train("-m", *SHORT, "seed=1,2", *workers, f"tracking.uri='http://me:{LITERAL}@{address}'")
    train("-m", *SHORT, "seed=3,4", "tracking.uri=${oc.env:THE_ADDRESS}")


FAILURES = {
    "nobody there": (f"tracking.uri=http://me:{LITERAL}@127.0.0.1:{{port}}",),
    "a sweep without a server": ("-m", "seed=1,2", f"tracking.uri=http://me:{LITERAL}@127.0.0.1:{{port}}"),
    "no driver": (f"tracking.uri=mysql+pymysql://me:{LITERAL}@127.0.0.1:{{port}}/x?ssl_key={OTHER}",),
    "another scheme": (f"tracking.uri=ftp://me:{LITERAL}@host",),
    "another type": (f"tracking.uri=[http://me:{LITERAL}@host]",),
    "a token for a number": ("seed=${oc.env:HF_TOKEN}",),
    "a token for a choice": ("model.encoder.cell=${oc.env:HF_TOKEN}",),
    "a token for a class": ("model.encoder._target_=${oc.env:HF_TOKEN}",),
    "a token for a dataset": ("data=hub", "data.dataset=${oc.env:HF_TOKEN}"),
    "an address for a number": ("seed=${oc.env:THE_ADDRESS}",),
    "a key that there is not": (f"+tracking.password={LITERAL}",),
    "a secret that cannot be read": (f"tracking.password=my(pass,{LITERAL}",),
    "a secret with several values": (f"+tracking.password={LITERAL},b",),
    "a secret that leads nowhere": (f"+password=${{{LITERAL}",),
    "a secret twice in a sweep": ("-m", f"+tracking.password={LITERAL},{LITERAL}"),
    "a text that cannot be read": (f"tracking.uri=http://me:{LITERAL}@host]",),
    "a slash in a password": (f"tracking.uri=http://me:{LITERAL}/x@host",),
    "two in a sweep": ("-m", f"tracking.uri=http://me:{LITERAL}@a,http://me:{OTHER}@b"),
}


@pytest.mark.parametrize("overrides", FAILURES.values(), ids=FAILURES)
def test_no_secret_is_told_of_a_failure(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, overrides: tuple[str, ...]
) -> None:
    monkeypatch.setenv("THE_ADDRESS", f"http://me:{BY_VARIABLE}@host")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    port = str(free_port())
    options = [text for text in overrides if text == "-m"]
    chosen = [text.replace("{port}", port) for text in overrides if text != "-m"]
    ended = command("train.py", *options, *SHORT, *chosen)
    assert ended.code == 1
    assert "error: " in ended.err
    assert "Traceback" not in ended.err
    tells_nothing(ended, folder)


@pytest.mark.parametrize("uri", [f"http://me:{LITERAL}@host", f"${{oc.env:ABSENT,'http://me:{LITERAL}@host'}}"])
def test_a_secret_in_a_config_file_is_refused(command: Command, folder: Path, uri: str) -> None:
    (folder / "theirs" / "experiment").mkdir(parents=True)
    text = f"# @package _global_\ntracking:\n  uri: {uri}\n"
    (folder / "theirs" / "experiment" / "mine.yaml").write_text(text)
    ended = command("train.py", "-cd", "theirs", "experiment=mine")
    assert ended.code == 1
    assert "tracking.uri holds a secret" in ended.err
    assert CANARY not in ended.err
    assert not (folder / "runs").exists()
    (folder / "params.yaml").write_text(json.dumps({"overrides": [f"tracking.uri=http://me:{LITERAL}@host"]}))
    ended = command("compose.py")
    assert ended.code == 1
    assert "tracking.uri holds a secret" in ended.err
    assert CANARY not in ended.err
    assert not (folder / "build").exists()


WORD = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C"), exclude_characters="\"'<>"), min_size=6)


@given(password=WORD, before=st.text(), after=st.text())
@example(password="pa/ss@w?rd#", before="see ", after="")
def test_any_password_of_an_address_is_hidden(password: str, before: str, after: str) -> None:
    text = masked(f"{before} http://me:{password}@host/x {after}")
    assert f"http://{HIDDEN}@host/x" in text


@given(
    password=st.text(
        st.characters(codec="utf-8", exclude_categories=("Z", "C"), exclude_characters="\"',@/${}"), min_size=1
    )
)
def test_password_moved_into_the_environment_is_referenced_from_there(password: str) -> None:
    environment: dict[str, str] = {}
    (told,) = into_environment([f"tracking.uri=http://me:{password}@host"], environment)
    assert told == "tracking.uri=http://${oc.env:ATTNLAB_SECRET_1}@host"
    assert environment == {"ATTNLAB_SECRET_1": f"me:{password}"}
    assert list(literal_secrets({"uri": told})) == []
    assert into_environment([told], environment) == [told]


# What is written, what of it is secret, and what is left.
OF_ADDRESSES = {
    "token alone": ("https://ghp_kanarie@host/x", "ghp_kanarie", "https://{}@host/x"),
    "token without a password": ("https://ghp_kanarie:@host/x", "ghp_kanarie:", "https://{}@host/x"),
    "comma": ("https://me:kan,arie@host", "me:kan,arie", "https://{}@host"),
    "quote": ("https://me:kan'arie@host", "me:kan'arie", "https://{}@host"),
    "other quote": ('https://me:kan"arie@host', 'me:kan"arie', "https://{}@host"),
    "angle": ("https://me:kan<arie@host", "me:kan<arie", "https://{}@host"),
    "quoted": ("'https://me:kan\\'arie@host'", "me:kan'arie", "'https://{}@host'"),
    "parameter with a quote": ("https://host?password=kan'arie12345", "kan'arie12345", "https://host?password={}"),
    "parameter with a comma": ("https://host?token=kan,arie&b=2", "kan,arie", "https://host?token={}&b=2"),
    "quoted parameter": ("'https://host?password=kanarie'", "kanarie", "'https://host?password={}'"),
    "signature": ("https://host?sig=kanarie;b=2", "kanarie", "https://host?sig={};b=2"),
    "parameter of a list": ("[https://host?api_key=kanarie]", "kanarie", "[https://host?api_key={}]"),
    "database": ("postgresql+psycopg2://me:kanarie@host/x", "me:kanarie", "postgresql+psycopg2://{}@host/x"),
}  # fmt: skip


@pytest.mark.parametrize(("value", "secret", "left"), OF_ADDRESSES.values(), ids=OF_ADDRESSES)
def test_secret_in_an_address_is_moved_masked_and_found(value: str, secret: str, left: str) -> None:
    environment: dict[str, str] = {}
    (told,) = into_environment([f"tracking.uri={value}"], environment)
    assert told == "tracking.uri=" + left.format("${oc.env:ATTNLAB_SECRET_1}")
    assert environment == {"ATTNLAB_SECRET_1": secret}
    assert masked(value) == left.format(HIDDEN)
    assert list(literal_secrets({"tracking": {"uri": value}})) == ["tracking.uri"]
    assert list(literal_secrets({"uri": told.partition("=")[2]})) == []
    assert into_environment([told], environment) == [told]


BY_NAME = [
    "+hydra.job.env_set.MLFLOW_TRACKING_PASSWORD=kanarie", "hydra.job.env_set={PGPASSWORD: kanarie}",
    "tracking={password:kanarie}", "tracking={uri:x,password:'kanarie'}", "+seed.password.x=kanarie",
    "+tracking.password=[kanarie", "+tracking.password='kanarie", "++a.api_key=kanarie", "+x/hf_token=kanarie",
]  # fmt: skip


@pytest.mark.parametrize("text", BY_NAME)
def test_error_output_hides_values_of_secret_names(
    command: Command, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    ended = command("train.py", text)
    assert ended.code == 1
    assert "error: " in ended.err
    assert "kanarie" not in ended.err


def test_error_output_hides_a_secret_of_a_config_file(command: Command, folder: Path) -> None:
    (folder / "theirs" / "experiment").mkdir(parents=True)
    text = "# @package _global_\nhydra: {job: {env_set: {MLFLOW_TRACKING_PASSWORD: kanarie}}}\n"
    (folder / "theirs" / "experiment" / "mine.yaml").write_text(text)
    ended = command("train.py", "-cd", "theirs", "experiment=mine")
    assert "hydra.job.env_set.MLFLOW_TRACKING_PASSWORD must not be set" in ended.err
    assert "kanarie" not in ended.err


def test_a_long_command_is_looked_through_at_once() -> None:
    before = time.process_time()
    into_environment(["a" * 100_000, "a." * 50_000, "a " * 50_000], {})
    assert time.process_time() - before < 5


def test_a_name_that_is_no_secret_hides_nothing() -> None:
    environment: dict[str, str] = {}
    texts = ["data.dataset=kanarie", "seed=1,2", "tracking.password=${oc.env:MINE}", "+data.unknown_token=kanarie"]
    assert into_environment(texts, environment) == texts
    assert environment == {}


def test_each_address_of_a_sweep_has_its_own_secret() -> None:
    environment: dict[str, str] = {}
    (told,) = into_environment(["tracking.uri=http://me:one@a,http://tok@b,'http://c?token=two'"], environment)
    named = [f"${{oc.env:ATTNLAB_SECRET_{i}}}" for i in (1, 2, 3)]
    assert told == f"tracking.uri=http://{named[0]}@a,http://{named[1]}@b,'http://c?token={named[2]}'"
    assert list(environment.values()) == ["me:one", "tok", "two"]


def test_a_secret_is_no_name_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from attnlab.tracking.run import run_of
    from attnlab.tracking.settings import MlflowTracking, RunRecord

    monkeypatch.setenv("MY_API_TOKEN", TOKEN)

    def tracking(**names: str) -> MlflowTracking:
        rest = {"system_metrics": False, "heat_map_sentences": 0, "keep_heat_maps": 0, "log_model": False}
        return MlflowTracking(uri=None, when_unreachable="refuse", **rest, **names)  # type: ignore[arg-type]

    with pytest.raises(ValueError, match="experiment must be a name without a secret"):
        tracking(experiment=f"of {TOKEN}", run_name="x")
    point = tmp_path / "runs" / "points" / "1"
    point.mkdir(parents=True)
    record = RunRecord({}, identity="1", data_digest="")
    for _ in range(2):  # opened again it is named again
        tracking(experiment="x", run_name=f"of {TOKEN}").start(tmp_path / "runs", point, record).finish()
    assert run_of(point)
    assert holding(tmp_path / "runs") == []


DEFAULTS = {
    "${oc.env:URI,http://me:kanarie@host}": True,
    '${oc.env:URI,"https://me:kanarie@host"}': True,
    "${oc.env:URI,'https://host?token=kanarie'}": True,
    "http://me:${oc.env:PASSWORD,kanarie}@host": True,
    "http://host?token=${oc.env:TOKEN, kanarie}": True,
    "${oc.env:URI,'http://me:${oc.env:OTHER,kanarie}@host'}": True,
    "${oc.select:nowhere,http://me:kanarie@host}": True,
    "${oc.env:URI,null}": False,
    "${oc.env:URI,http://127.0.0.1:5000}": False,
    "${oc.env:URI,'http://me:${oc.env:PASSWORD}@host'}": False,
    "http://me:${oc.env:PASSWORD,''}@host": False,
    "http://me:${oc.env:PASSWORD,${oc.env:OTHER}}@host": False,
    "${oc.env:URI,sqlite:///runs/x.db}": False,
}


@pytest.mark.parametrize(("value", "is_secret"), DEFAULTS.items())
def test_literal_secrets_finds_a_secret_in_the_default_of_a_reference(value: str, is_secret: bool) -> None:
    assert list(literal_secrets({"uri": value})) == (["uri"] if is_secret else [])


@pytest.mark.parametrize(
    ("value", "is_secret"),
    {
        "${oc.env:PASSWORD,kanarie}": True,
        "${oc.env:PASSWORD,'kanarie'}": True,
        "${oc.env:PASSWORD,${oc.env:OTHER,kanarie}}": True,
        "${oc.decode:kanarie}": True,
        "${oc.env:PASSWORD,null}": False,
        "${oc.env:PASSWORD,''}": False,
        "${oc.env:PASSWORD,${oc.env:OTHER}}": False,
        "${oc.decode:${oc.env:PASSWORD}}": False,
        "${another.password}": False,
    }.items(),
)
def test_literal_secrets_finds_a_literal_in_a_reference_below_a_secret_key(value: str, is_secret: bool) -> None:
    assert list(literal_secrets({"x": {"password": value}})) == (["x.password"] if is_secret else [])


def test_text_without_a_secret_stays_unchanged() -> None:
    for text in (
        "data.path=/home/me@work/data", "tracking.uri=postgresql+psycopg2://user@host/mlflow", "data.dataset=a/b",
        "tracking.uri=sqlite:////home/me@work/x.db", "data.path='C:\\x'", "x=http://me:${oc.env:PASSWORD}@host",
        "x=http://${oc.env:TOKEN}@host", "x=https://host/a@b", "x=http://host?password=${oc.env:PASSWORD}",
        "data.path=hf://datasets/a/b@main/c", "x=https://***@host", "x=ssh://git@host/x", "x=https://host?page=1&x=@",
    ):  # fmt: skip
        environment: dict[str, str] = {}
        assert into_environment([text], environment) == [text]
        assert environment == {}
        assert list(literal_secrets({"x": text.partition("=")[2]})) == []
    assert masked("sqlite:////home/me@work/x.db") == "sqlite:////home/me@work/x.db"


def test_a_variable_of_the_environment_is_hidden_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "HF_TOKEN",
        "MLFLOW_TRACKING_PASSWORD",
        "AWS_SECRET_ACCESS_KEY",
        "MY_API_KEY",
        "DB_PASSWD",
        "PGPASSWORD",
        "MYSQL_PWD",
    ):
        monkeypatch.setenv(name, f"kanarie {name}")
        assert masked(f"it says kanarie {name}!") == f"it says {HIDDEN}!"
    monkeypatch.setenv("PWD", "/home/me/work")
    assert masked("/home/me/work") == "/home/me/work"
    monkeypatch.setenv("KEYBOARD", "layout-of-the-keys")
    assert masked("layout-of-the-keys") == "layout-of-the-keys"
    assert os.environ["KEYBOARD"]
