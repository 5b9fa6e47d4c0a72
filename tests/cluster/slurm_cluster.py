"""A Slurm cluster of two nodes on this machine, with everything of it in one temporary folder.

Two `slurmd` stand for two nodes, which Debian's build allows (`slurmd -N`). All daemons listen on
ports of the loopback address that were free, and leave /etc, /var and /run alone.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

NODES = ("n1", "n2")
CPUS_OF_A_NODE = 1  # so that two jobs are on two nodes
MEGABYTES_OF_A_NODE = 4000

_CONTROLLER = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel")
_ACCOUNTING = ("slurmdbd", "sacct", "sacctmgr", "mariadbd", "mariadb-install-db")
_PATIENCE = 60.0  # seconds for a daemon to answer
_PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>


def missing_for_a_cluster(accounting: bool) -> str | None:
    """Why no cluster can be started here, in a sentence; None where it can."""
    if os.name != "posix" or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "the cluster's daemons need root"
    wanted = (*_CONTROLLER, *(_ACCOUNTING if accounting else ()))
    missing = [name for name in wanted if _program(name) is None]
    if missing:
        return (
            f"there is no {', '.join(missing)} on this machine; "
            "apt-get install slurm-wlm slurmdbd mariadb-server munge"
        )
    return None


def _program(name: str) -> str | None:
    """The path of a program; daemons lie in folders that not every PATH has."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


class SlurmCluster:
    """The daemons of a cluster; `started_cluster` starts and ends them.

    folder: configuration, state, sockets, logs and database.
    accounting: whether slurmdbd keeps the jobs in a MariaDB, so that `sacct` answers.
    """

    def __init__(self, folder: Path, accounting: bool) -> None:
        self.folder, self.accounting = folder, accounting
        # Jobs inherit this variable too, so that no process of the cluster is overlooked.
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._ports = dict(
            zip(("slurmctld", "slurmdbd", "mariadbd", *NODES), _free_ports(5), strict=True)
        )

    def start(self) -> None:
        (self.folder / "state").mkdir()
        self._start_munge()
        if self.accounting:
            self._start_accounting()
        _write_private(self.folder / "slurm.conf", self._configuration())
        self._start("slurmctld", "-D", "-c")
        for node in NODES:
            self._start_node(node)
        self.wait_for_nodes()

    def stop(self) -> None:
        """End the jobs and all daemons, also those that jobs or tests left behind."""
        for name in reversed(self._daemons):
            self._daemons[name].terminate()
        for process in self._daemons.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
        for left in self._own_processes():
            with suppress(psutil.NoSuchProcess):
                left.kill()
        for process in self._daemons.values():
            process.kill()
            process.wait()

    def run(
        self, *command: str, check: bool = True, environment: Mapping[str, str] = os.environ
    ) -> str:
        """What a command of Slurm prints."""
        ended = subprocess.run(
            command,
            env={**environment, **self.environment},
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )
        if check and ended.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {ended.stdout}{ended.stderr}")
        return ended.stdout.strip()

    def jobs(self) -> dict[str, str]:
        """Queued and running jobs, `12_3` of an array, with their states."""
        options = ("--noheader", "--array", "--format=%i %T")
        return dict(line.split() for line in self.run("squeue", *options).splitlines())

    def nodes_of_jobs(self) -> dict[str, str]:
        """The running jobs and the node, or nodes, that each runs on."""
        options = ("--noheader", "--states=running", "--format=%i %N")
        return dict(line.split() for line in self.run("squeue", *options).splitlines())

    def states_of_nodes(self) -> dict[str, str]:
        """Such as `idle`, of each node; empty where the controller does not answer."""
        options = ("--noheader", "--Node", "--format=%N %t")
        return dict(line.split() for line in self.run("sinfo", *options, check=False).splitlines())

    def kill_node(self, node: str) -> None:
        """Let a node fail: its daemons and jobs are killed at once, and the controller is told."""
        self._daemons[node].kill()
        self._daemons[node].wait()
        # First the daemons of the steps: these would report the end of the jobs, as no dead
        # machine does.
        of_steps = [each for each in self._own_processes() if self._is_step_of(each, node)]
        of_jobs = [each for each in self._own_processes() if _runs_on(each, node)]
        for process in (*of_steps, *of_jobs):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.run("scontrol", "update", f"nodename={node}", "state=down", "reason=killed")

    def restart_node(self, node: str) -> None:
        """Bring back a node that was killed."""
        self._start_node(node)
        # It may register itself before this command.
        self.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)

    def _is_step_of(self, process: psutil.Process, node: str) -> bool:
        """Whether this is the daemon of a step, which outlives the node's `slurmd`."""
        with suppress(psutil.Error):
            sockets = process.net_connections("unix")
            return any(str(each.laddr).startswith(f"{self.folder / node}/") for each in sockets)
        return False

    def restore(self) -> None:
        """End all jobs, and bring back the nodes that a test killed."""
        self.run("scancel", "--user=root")
        wait_until(lambda: not self.jobs(), "the jobs' end")
        for node in NODES:
            if self._daemons[node].poll() is not None:
                self.restart_node(node)
        self.wait_for_nodes()

    def wait_for_nodes(self) -> None:
        def are_idle() -> bool:
            return self.states_of_nodes() == dict.fromkeys(NODES, "idle")

        wait_until(are_idle, "idle nodes", lambda: self.logs())

    def logs(self) -> str:
        """The last lines of all logs."""
        ends = []
        for path in sorted(self.folder.glob("*.log")):
            lines = path.read_text(errors="replace").splitlines()[-15:]
            ends += [f"--- {path.name}", *lines]
        return "\n".join(ends)

    def _start(self, name: str, *arguments: str, log: str | None = None) -> None:
        path = _program(name)
        assert path is not None
        log_file = self.folder / f"{log or name}.log"
        with log_file.open("ab") as output:
            self._daemons[log or name] = subprocess.Popen(
                [path, *arguments],
                env={**os.environ, **self.environment},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=_die_with_parent,
            )

    def _start_node(self, node: str) -> None:
        (self.folder / node).mkdir(exist_ok=True)
        self._start("slurmd", "-D", "-N", node, log=node)

    def _start_munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        self._start(
            "munged",
            "--foreground",
            "--force",  # the sockets' folder is not one of the system's
            f"--key-file={key}",
            f"--socket={self._munge_socket}",
            f"--pid-file={self.folder / 'munged.pid'}",
            f"--seed-file={self.folder / 'munged.seed'}",
            f"--log-file={self.folder / 'munged-own.log'}",
        )
        wait_until(self._munge_socket.exists, "munged", self.logs)

    @property
    def _munge_socket(self) -> Path:
        return self.folder / "munge.socket"

    def _start_accounting(self) -> None:
        database = self.folder / "mariadb"
        install = _program("mariadb-install-db")
        assert install is not None
        subprocess.run(
            [
                install,
                "--no-defaults",
                f"--datadir={database}",
                "--user=root",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--skip-name-resolve",
            ],
            check=True,
            capture_output=True,
        )
        self._start(
            "mariadbd",
            "--no-defaults",
            f"--datadir={database}",
            "--user=root",
            "--bind-address=127.0.0.1",
            f"--port={self._ports['mariadbd']}",
            f"--socket={self.folder / 'mariadb.socket'}",
            f"--pid-file={self.folder / 'mariadbd.pid'}",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-lock-wait-timeout=900",
            "--skip-name-resolve",
        )
        wait_until(lambda: _answers(self._ports["mariadbd"]), "mariadbd", self.logs)
        _write_private(self.folder / "slurmdbd.conf", self._accounting_configuration())
        self._start("slurmdbd", "-D")
        wait_until(lambda: _answers(self._ports["slurmdbd"]), "slurmdbd", self.logs)

    def _accounting_configuration(self) -> str:
        return _lines(
            {
                "AuthType": "auth/munge",
                "AuthInfo": f"socket={self._munge_socket}",
                "DbdHost": socket.gethostname(),
                "DbdAddr": "127.0.0.1",
                "DbdPort": self._ports["slurmdbd"],
                "SlurmUser": "root",
                "StorageType": "accounting_storage/mysql",
                "StorageHost": "127.0.0.1",
                "StoragePort": self._ports["mariadbd"],
                "StorageUser": "root",
                "StorageLoc": "slurm",
                "PidFile": self.folder / "slurmdbd.pid",
            }
        )

    def _configuration(self) -> str:
        settings: dict[str, object] = {
            "ClusterName": "attnlab",
            "SlurmctldHost": f"{socket.gethostname()}(127.0.0.1)",
            "SlurmctldPort": self._ports["slurmctld"],
            "AuthType": "auth/munge",
            # A requeued job waits until its credentials have expired, which takes 120 s by default.
            "AuthInfo": f"socket={self._munge_socket},cred_expire=5",
            "CredType": "cred/munge",
            "SlurmUser": "root",
            "SlurmdUser": "root",
            "StateSaveLocation": self.folder / "state",
            "SlurmdSpoolDir": f"{self.folder}/%n",
            "SlurmctldPidFile": self.folder / "slurmctld.pid",
            "SlurmdPidFile": f"{self.folder}/%n.pid",
            # Processes are not put into control groups, which containers do not allow.
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none",
            "JobAcctGatherType": "jobacct_gather/none",
            "MpiDefault": "none",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_CPU_Memory",
            # The nodes have what is written here, whatever the machine has.
            "SlurmdParameters": "config_overrides",
            "ReturnToService": 2,
            # A lost node is noticed, and a job that ignores SIGTERM killed, within seconds.
            "SlurmdTimeout": 10,
            "KillWait": 5,
            "SchedulerParameters": "sched_interval=1,bf_interval=1",
        }
        if self.accounting:
            settings |= {
                "AccountingStorageType": "accounting_storage/slurmdbd",
                "AccountingStorageHost": "127.0.0.1",
                "AccountingStoragePort": self._ports["slurmdbd"],
                "AccountingStoragePass": self._munge_socket,
            }
        nodes = []
        for node in NODES:
            nodes.append(
                f"NodeName={node} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 "
                f"Port={self._ports[node]} CPUs={CPUS_OF_A_NODE} RealMemory={MEGABYTES_OF_A_NODE}"
            )
        partition = f"PartitionName=cpu Nodes={','.join(NODES)} Default=YES MaxTime=60 State=UP"
        return _lines(settings) + "\n".join([*nodes, partition, ""])

    def _own_processes(self) -> list[psutil.Process]:
        """All processes of the cluster and of its jobs, but not those that tests started."""
        found = []
        for process in psutil.process_iter():
            if process.pid == os.getpid():
                continue
            # Daemons of steps write their titles over their environment.
            with suppress(psutil.Error):
                is_daemon = process.cwd() == str(self.folder)
                is_job = "SLURM_JOB_ID" in process.environ()
                if is_daemon or (is_job and self._has_our_configuration(process)):
                    found.append(process)
        return found

    def _has_our_configuration(self, process: psutil.Process) -> bool:
        return process.environ().get("SLURM_CONF") == self.environment["SLURM_CONF"]


@contextmanager
def started_cluster(accounting: bool) -> Iterator[SlurmCluster]:
    """A cluster while the block uses it; all its processes end with the block."""
    # Not pytest's own folder: the path of a socket may have 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="attnlab-slurm-"))
    cluster = SlurmCluster(folder, accounting)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _runs_on(process: psutil.Process, node: str) -> bool:
    """Whether this process is part of a job on the node."""
    with suppress(psutil.Error):
        return bool(process.environ().get("SLURMD_NODENAME") == node)
    return False


def wait_until(
    is_so: Callable[[], object],
    what: str,
    explain: Callable[[], str] = lambda: "",
    seconds: float = _PATIENCE,
) -> None:
    """Wait for a condition; AssertionError with an explanation where it does not come."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds:.0f} s for {what}\n{explain()}")
        time.sleep(0.2)


def _free_ports(count: int) -> Sequence[int]:
    """Ports that are free now, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _lines(settings: Mapping[str, object]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner reads: slurmdbd refuses another."""
    path.touch(mode=0o600)
    path.write_text(text)


def _die_with_parent() -> None:
    """End this daemon with the tests, also where these are killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
