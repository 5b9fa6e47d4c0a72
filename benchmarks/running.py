"""Run one job of a system in its own process."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from configuration import ALL_PEERS, ROOT, Peer
from process_cost import Cost, run_measured

Value = TypeVar("Value")


def run_attnlab(script: str, *overrides: str) -> tuple[Cost, str]:
    """One of attnlab's pipelines; its cost and its output."""
    return run_or_exit(sys.executable, ROOT / "pipelines" / script, *overrides)


def run_or_exit(*command: str | Path) -> tuple[Cost, str]:
    """Run a command from the repository's folder, and measure it as `run_measured` does.

    Raises SystemExit with the messages of a failing command.
    """
    try:
        return run_measured(command, cwd=ROOT)
    except RuntimeError as error:
        sys.exit(str(error))


def run_peer(peer: Peer, job: Mapping[str, Any]) -> tuple[dict[str, float], Cost]:
    """What a peer's runner counted at a job, and what the whole process cost."""
    cost, said = run_or_exit(
        peer.python, ROOT / "benchmarks" / "peers" / peer.runner, json.dumps(job)
    )
    return json.loads(said.splitlines()[-1]), cost


def check_installed(names: Iterable[str]) -> None:
    """Raise SystemExit if a peer is not installed, before anything is measured in vain.

    names: of contestants; a peer's name has the form `<peer> · ...`.
    """
    wanted = {name.partition(" · ")[0] for name in names}
    missing = sorted(
        {peer.environment for peer in ALL_PEERS if peer.name in wanted and not peer.python.exists()}
    )
    if missing:
        sys.exit(
            f"not installed: {', '.join(missing)}; python benchmarks/peers/install.py --only "
            f"{' '.join(missing)}"
        )


def chosen(every: Mapping[str, Value], words: Sequence[str]) -> dict[str, Value]:
    """The entries with one of the words in their names, or all if there are no words.

    Raises SystemExit if no name has one.
    """
    found = {
        name: value
        for name, value in every.items()
        if not words or any(word in name for word in words)
    }
    if not found:
        sys.exit(f"--only must be parts of these names, got {', '.join(words)}: {'; '.join(every)}")
    return found


def slug(name: str) -> str:
    """A name as a folder's: `OpenNMT-py mlp, fed` is `opennmt-py-mlp-fed`."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
