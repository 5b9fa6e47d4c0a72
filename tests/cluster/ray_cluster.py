"""A cluster of Ray: two nodes with one processor each, both of them on this machine."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from slurm_cluster import wait_until

HOST = "127.0.0.1"
SECONDS = 120.0  # that a node needs at most to start


class RayCluster:
    """The nodes, the first of which has the cluster's own records."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.create_server((HOST, 0)) as free:
            self.address = f"{HOST}:{free.getsockname()[1]}"
        self.nodes: list[subprocess.Popen[bytes]] = []

    @property
    def environment(self) -> dict[str, str]:
        """Of a command on the cluster."""
        return {
            "RAY_AUTH_MODE": "disabled",
            "RAY_TMPDIR": str(self._folder),
        }

    def start_node(self) -> None:
        """Start a node, and wait until the cluster has it."""
        port = self.address.rpartition(":")[2]
        place = [f"--address={self.address}"]
        if not self.nodes:
            place = ["--head", f"--port={port}", "--include-dashboard=false"]
        log = self._folder / f"node-{len(self.nodes)}.txt"
        with log.open("w") as file:
            node = subprocess.Popen(
                [
                    str(Path(sys.executable).with_name("ray")),
                    "start",
                    *place,
                    f"--node-ip-address={HOST}",
                    "--num-cpus=1",
                    f"--object-store-memory={100 * 2**20}",
                    "--disable-usage-stats",
                    "--block",
                ],
                env={**os.environ, **self.environment},
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self.nodes.append(node)
        wait_until(
            lambda: "Ray runtime started" in log.read_text(), "a node", log.read_text, SECONDS
        )

    def kill_node(self, number: int) -> None:
        """As if its machine lost power: nothing on it can say goodbye."""
        node = self.nodes[number]
        processes = psutil.Process(node.pid).children(recursive=True)
        for process in [psutil.Process(node.pid), *processes]:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        node.wait()

    def stop(self) -> None:
        for number, node in enumerate(self.nodes):
            if node.poll() is None:
                self.kill_node(number)


@contextmanager
def started_ray() -> Iterator[RayCluster]:
    """Two nodes for as long as the block runs."""
    # The path of a socket has few characters.
    folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))
    cluster = RayCluster(folder)
    try:
        cluster.start_node()
        cluster.start_node()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
