"""The files in examples/ agree with the commands that they show."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def test_job_of_kubernetes_has_as_many_pods_as_its_command_has_parts() -> None:
    job = yaml.safe_load((EXAMPLES / "kubernetes" / "sweep.yaml").read_text(encoding="utf-8"))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    (command,) = container["args"]
    parts = re.search(r"sweep\.shard=\$\(\(JOB_COMPLETION_INDEX \+ 1\)\)/(\d+)", command)
    assert parts is not None
    assert job["spec"]["completions"] == int(parts[1])
    assert "\n" not in command.strip()
