"""The servers that the docs tell people to start answer this machine alone, and to its own name alone."""

from __future__ import annotations

import http.client
import itertools
import re
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from entry_points import ROOT
from servers import mlflow_server

from attnlab.tracking.address import where_to_look

PAGES = ("README.md", "SECURITY.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))


def server_commands() -> list[tuple[str, list[str]]]:
    """Every command of the docs that starts MLflow's server, with its page; lines that go on are one."""
    found = []
    for name in PAGES:
        text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
        for line in text.splitlines():
            command = re.search(r"\bmlflow (?:server|ui) [^`#]*", line)
            if command:
                found.append((name, shlex.split(command[0])))
    return found


def test_every_command_of_the_docs_binds_to_this_machine_or_names_its_hosts() -> None:
    commands = server_commands()
    assert {name for name, _ in commands} >= {"README.md", "SECURITY.md"}
    for name, words in commands:
        options = dict(itertools.pairwise(words))
        assert "--host" in options, f"{name}: {words}"
        if options["--host"] != "127.0.0.1":
            assert "--allowed-hosts" in options, f"{name}: {words}"
            assert "*" not in options["--allowed-hosts"], f"{name}: {words}"
        assert not {"--disable-security-middleware", "--cors-allowed-origins"} & set(words)


def test_the_command_that_a_run_prints_is_one_of_them(tmp_path: Path) -> None:
    words = shlex.split(where_to_look(None, "attnlab", tmp_path).split("\n")[0])
    assert words[words.index("--host") + 1] == "127.0.0.1"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Started with the options of the README's first command."""
    (words, *_) = [words for name, words in server_commands() if name == "README.md"]
    assert words[2:] == ["--backend-store-uri", "sqlite:///runs/mlflow.db", "--host", "127.0.0.1", "--port", "5000"]
    folder = tmp_path_factory.mktemp("server")
    (folder / "runs").mkdir()
    with mlflow_server(folder, words[3], "--workers", "1") as address:
        yield address


def asked(address: str, method: str, place: str, body: str | None = None, **headers: str) -> int:
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=30)
    try:
        connection.request(method, place, body, {name.replace("_", "-"): value for name, value in headers.items()})
        return connection.getresponse().status
    finally:
        connection.close()


SEARCH = "/api/2.0/mlflow/experiments/search?max_results=5"


@pytest.mark.slow
def test_a_foreign_name_gets_no_answer(server: str) -> None:
    """As where a page of the web has its own name lead to this machine (DNS rebinding)."""
    assert asked(server, "GET", SEARCH) == 200
    for host in ("evil.example", "evil.example:5000", "127.0.0.1.evil.example", "localhost.evil.example"):
        assert asked(server, "GET", SEARCH, Host=host) == 403, host


@pytest.mark.slow
def test_a_foreign_page_changes_nothing(server: str) -> None:
    place, body = "/api/2.0/mlflow/experiments/create", '{"name": "theirs"}'
    own = {"Content_Type": "application/json"}
    assert asked(server, "POST", place, body, Origin="http://evil.example", **own) == 403
    assert asked(server, "POST", place, body, **own) == 200  # that nobody has made it before


@pytest.mark.slow
def test_nobody_else_reaches_it(server: str) -> None:
    port = int(server.rpartition(":")[2])
    listening = {
        connection.laddr.ip
        for connection in psutil.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
    }
    assert listening == {"127.0.0.1"}
    others = {each.address for of in psutil.net_if_addrs().values() for each in of if each.family == socket.AF_INET}
    for address in others - {"127.0.0.1"}:
        with pytest.raises(OSError):  # noqa: PT011 (refused, or no way there)
            socket.create_connection((address, port), timeout=2).close()
