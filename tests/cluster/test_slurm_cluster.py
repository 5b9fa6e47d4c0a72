"""The cluster that the tests of this folder run on."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import slurm_cluster
from slurm_cluster import missing_for_a_cluster, started_cluster, wait_until


def processes_of(folder: Path) -> list[psutil.Process]:
    """Those that work in a folder, or have the configuration in it."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            configuration = process.environ().get("SLURM_CONF", "")
            if process.cwd().startswith(str(folder)) or configuration.startswith(str(folder)):
                found.append(process)
    return found


@pytest.mark.cluster
def test_cluster_leaves_nothing_behind_after_a_failed_test(tmp_path: Path) -> None:
    missing = missing_for_a_cluster(accounting=False)
    if missing is not None:
        pytest.skip(missing)

    def fail_while_a_job_runs() -> None:
        with started_cluster(accounting=False) as cluster:
            folders.append(cluster.folder)
            cluster.run("sbatch", f"--chdir={tmp_path}", "--wrap=trap '' TERM; srun sleep 1000")
            wait_until(lambda: "RUNNING" in cluster.jobs().values(), "a job")
            wait_until(lambda: len(processes_of(cluster.folder)) > 8, "its processes")
            raise ZeroDivisionError

    folders: list[Path] = []
    with pytest.raises(ZeroDivisionError):
        fail_while_a_job_runs()
    assert not processes_of(folders[0])
    assert not folders[0].exists()


def test_missing_programs_and_rights_are_reasons_to_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert missing_for_a_cluster(accounting=True) == "the cluster's daemons need root"

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(slurm_cluster, "_program", lambda name: None if name == "sacct" else name)
    assert missing_for_a_cluster(accounting=False) is None
    assert "there is no sacct on this machine" in str(missing_for_a_cluster(accounting=True))
