"""Locks between processes: where they are leases, and what becomes of a lease without a holder."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock, SoftFileLease, Timeout

from attnlab import locks
from attnlab.errors import ExperimentError

SILENCE = 1.5
HOLDER = f"""
import sys, time
from pathlib import Path
from attnlab import locks
locks.SILENCE = {SILENCE}
with locks.lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(
    ("kind", "options", "shared"),
    [
        ("ext4", ["rw"], True),
        ("nfs4", ["rw", "vers=4.2", "local_lock=none"], True),
        ("nfs", ["rw", "local_lock=flock"], False),
        ("nfs", ["rw", "local_lock=all"], False),
        ("nfs", ["rw", "local_lock=posix"], True),
        ("nfs", ["rw", "nolock"], False),
        ("lustre", ["rw", "flock"], True),
        ("lustre", ["rw", "localflock"], False),
        ("lustre", ["rw"], False),
    ],
)
def test_mount_options_say_whether_other_machines_see_a_lock(kind, options, shared):
    assert locks.flock_is_shared(kind, options) is shared


def test_folder_goes_by_the_mount_that_is_nearest_to_it(tmp_path, monkeypatch):
    class Mount:
        def __init__(self, mountpoint: Path, fstype: str, opts: str) -> None:
            self.mountpoint, self.fstype, self.opts = str(mountpoint), fstype, opts

    shared, local = tmp_path / "shared", tmp_path / "shared" / "disk"
    mounts = [Mount(Path("/"), "ext4", "rw"), Mount(shared, "nfs", "rw,nolock")]
    mounts.append(Mount(local, "ext4", "rw"))
    monkeypatch.setattr(locks.psutil, "disk_partitions", lambda all: mounts)
    monkeypatch.delenv(locks.VARIABLE, raising=False)
    locks._tells_all_machines.cache_clear()
    assert locks.has_leases(shared / "runs")
    assert not locks.has_leases(local / "runs")
    automounted = tmp_path / "auto"
    mounts += [Mount(automounted, "autofs", "rw"), Mount(automounted, "nfs", "rw,nolock")]
    assert locks.has_leases(automounted / "runs")
    assert not locks.has_leases(tmp_path)
    locks._tells_all_machines.cache_clear()


def test_environment_decides_before_the_mount(tmp_path, monkeypatch):
    monkeypatch.setenv(locks.VARIABLE, "lease")
    assert isinstance(locks.lock(tmp_path / "lock"), SoftFileLease)
    monkeypatch.setenv(locks.VARIABLE, "flock")
    assert isinstance(locks.lock(tmp_path / "lock"), FileLock)
    monkeypatch.setenv(locks.VARIABLE, "hope")
    with pytest.raises(ExperimentError, match="ATTNLAB_LOCKS must be flock or lease, got 'hope'"):
        locks.lock(tmp_path / "lock")


@pytest.mark.parametrize("kind", ["flock", "lease"])
def test_locks_of_either_kind_are_found_by_their_own_names(kind, tmp_path, monkeypatch):
    monkeypatch.setenv(locks.VARIABLE, kind)
    with locks.lock(tmp_path / "lock"), locks.lock(tmp_path / "lock.3-of-8"):
        assert locks.locks_in(tmp_path, "lock*") == [tmp_path / "lock", tmp_path / "lock.3-of-8"]
        with pytest.raises(Timeout):
            locks.lock(tmp_path / "lock").acquire(timeout=0)
    with locks.lock(tmp_path / "lock").acquire(timeout=0):
        pass


@pytest.fixture
def holder(tmp_path, monkeypatch):
    """A process that holds a lease."""
    monkeypatch.setattr(locks, "SILENCE", SILENCE)
    monkeypatch.setenv(locks.VARIABLE, "lease")
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "lock")]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(Timeout):
        locks.lock(tmp_path / "lock").acquire(timeout=0)
    yield process
    process.kill()
    process.wait()


def test_lease_of_a_killed_process_is_taken_over(holder, tmp_path):
    holder.kill()
    holder.wait()
    taken = locks.lock(tmp_path / "lock")
    with taken.acquire(timeout=20):
        assert taken.is_locked


def test_process_that_was_silent_for_too_long_leaves_when_it_goes_on(holder, tmp_path):
    holder.send_signal(signal.SIGSTOP)
    started = time.monotonic()
    with locks.lock(tmp_path / "lock").acquire(timeout=20):
        assert time.monotonic() - started >= SILENCE / 2
        holder.send_signal(signal.SIGCONT)
        assert holder.wait(20) == 1
    assert "was lost" in holder.stderr.read()


def test_process_that_goes_on_keeps_its_lease(holder, tmp_path):
    with pytest.raises(Timeout):
        locks.lock(tmp_path / "lock").acquire(timeout=2.5 * SILENCE)
    assert holder.poll() is None


FOREIGN = """import json, os, sys
from pathlib import Path
from attnlab import locks
lease = locks.lock(Path(sys.argv[1]))
lease.acquire()
os._exit(0)  # as where the machine dies
"""


@pytest.mark.parametrize(("silence", "is_free"), [(3.0, True), (1.0, False)])
def test_lease_of_a_dead_machine_is_free_at_the_first_look(silence, is_free, tmp_path, monkeypatch):
    """`silence` is in units of that after which who waits takes it over."""
    monkeypatch.setenv(locks.VARIABLE, "lease")
    marker = tmp_path / "lock.lease"
    subprocess.run(
        [sys.executable, "-c", FOREIGN, str(tmp_path / "lock")], check=True, env=os.environ
    )
    # Of another host nobody can ask whether the process lives.
    host, elsewhere = platform.node(), "another-host"
    marker.write_text(marker.read_text().replace(host, elsewhere))
    heard = time.time() - silence * locks.SILENCE
    os.utime(marker, (heard, heard))
    if is_free:
        with locks.lock(tmp_path / "lock").acquire(timeout=0):
            pass
    else:
        with pytest.raises(Timeout):
            locks.lock(tmp_path / "lock").acquire(timeout=0)
    assert [path.name for path in tmp_path.iterdir()] == ([] if is_free else ["lock.lease"])
