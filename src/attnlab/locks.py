"""Locks between processes, also where a network file system keeps `flock` to one machine.

Most file systems tell every machine of a lock. Where one does not, a lock is a lease: a file that
its holder touches every few seconds, and that another process takes over once nothing was heard of
the holder for a while.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
from filelock import BaseFileLock, FileLock, LeaseCompromise, SoftFileLease

from attnlab.errors import ExperimentError, show

# `flock` or `lease`: what the mount options do not say, or say otherwise on another machine.
VARIABLE = "ATTNLAB_LOCKS"
SILENCE = 60.0  # seconds without a sign of the holder, after which its lease is free
_SUFFIX = ".lease"


def lock(path: Path, timeout: float = -1) -> BaseFileLock:
    """The lock with this path; a lease lies beside it, under another name.

    timeout: seconds to wait for it; -1 waits for ever.

    Raises ExperimentError where the environment asks for another kind than there is.
    """
    if not has_leases(path.parent):
        return FileLock(path, timeout=timeout)
    marker = Path(f"{path}{_SUFFIX}")
    _remove_if_dead(marker)
    return SoftFileLease(marker, lease_duration=SILENCE, on_compromise=_leave, timeout=timeout)


def _remove_if_dead(marker: Path) -> None:
    """Remove a lease of whose holder the file server has not heard for twice the silence.

    A `SoftFileLease` measures the silence itself, but only while one object waits: whoever looks
    once would find the lease of a dead machine held for ever.
    """
    with suppress(OSError):  # released, or taken over, meanwhile
        touched = marker.stat().st_mtime
        # By the clock of the file server, which no machine's own need agree with
        with tempfile.NamedTemporaryFile(dir=marker.parent, prefix=f".{marker.name}.") as now:
            silence = os.stat(now.name).st_mtime - touched
        if silence > 2 * SILENCE:
            marker.unlink()


def lock_files(name: str) -> tuple[str, str]:
    """The names under which a lock of this name may lie in its folder: of a lock, of a lease."""
    return name, f"{name}{_SUFFIX}"


def locks_in(folder: Path, pattern: str) -> list[Path]:
    """The paths of the locks that were taken in a folder and match a pattern, held or not."""
    found = [*folder.glob(pattern), *folder.glob(f"{pattern}{_SUFFIX}")]
    return sorted({path.with_name(path.name.removesuffix(_SUFFIX)) for path in found})


def has_leases(folder: Path) -> bool:
    """Whether the locks in a folder are leases."""
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return not _tells_all_machines(folder.resolve())
    if wanted not in ("flock", "lease"):
        raise ExperimentError(f"{VARIABLE} must be flock or lease, got {show(wanted)}")
    return wanted == "lease"


@functools.lru_cache(maxsize=1_000)
def _tells_all_machines(folder: Path) -> bool:
    """Whether `flock` on a file there holds on every machine that sees the file."""
    mounts = psutil.disk_partitions(all=True)
    around = [each for each in mounts if folder.is_relative_to(each.mountpoint)]
    if not around:
        return True
    # Of several on one place the last one covers the others, as NFS does the automounter.
    mount = max(reversed(around), key=lambda each: len(Path(each.mountpoint).parts))
    return flock_is_shared(mount.fstype, mount.opts.split(","))


def flock_is_shared(kind: str, options: Sequence[str]) -> bool:
    """Whether `flock` is shared on a file system of this kind, mounted with these options.

    NFS keeps it to one machine with `nolock` and `local_lock=flock` or `all` (nfs(5)); Lustre
    shares it with `flock` alone (mount.lustre(8)).
    """
    if kind.startswith("nfs"):
        return not {"nolock", "local_lock=flock", "local_lock=all"} & set(options)
    if kind == "lustre":
        return "flock" in options
    return True


def _leave(lost: LeaseCompromise) -> None:
    """End this process, whose lease another one may have by now.

    At once, since whatever it still wrote would go between what the other one writes.
    """
    print(
        f"the lock {lost.lock_file} was lost ({lost.reason}): this process was not heard of for "
        f"{SILENCE:.0f} seconds, and another one may have taken over; the same command goes on "
        "from the last checkpoint",
        file=sys.stderr,
        flush=True,
    )
    os._exit(1)
