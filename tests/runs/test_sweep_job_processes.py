"""A worker ends when the process that started it is killed."""

from __future__ import annotations

import signal
import subprocess
import sys

import psutil

from attnlab.runs.sweep_job import this_process

WORKER = """
import subprocess, sys, time
from attnlab.runs.sweep_job import exit_with
exit_with(sys.argv[1])
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""
LEADER = """
import subprocess, sys, time
from attnlab.runs.sweep_job import this_process
command = [sys.executable, "-c", sys.argv[1], this_process()]
worker = subprocess.Popen(command, start_new_session=True)
print(worker.pid, flush=True)
time.sleep(60)
"""


def test_worker_and_its_children_end_with_a_leader_that_is_killed():
    leader = subprocess.Popen(
        [sys.executable, "-c", LEADER, WORKER], stdout=subprocess.PIPE, text=True
    )
    pids = [int(leader.stdout.readline()) for _ in range(2)]
    processes = [psutil.Process(pid) for pid in pids]
    assert all(process.is_running() for process in processes)
    leader.send_signal(signal.SIGKILL)
    leader.wait()
    _, alive = psutil.wait_procs(processes, timeout=20)
    assert not alive


def test_worker_ends_when_its_leaders_number_belongs_to_another_process():
    """The number is this very process's, but its birth is another's: the worker must end."""
    host, pid, birth = this_process().rsplit(" ", 2)
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, f"{host} {pid} {float(birth) - 1000}"],
        stdout=subprocess.DEVNULL,
    )
    assert worker.wait(timeout=20) == 128 + signal.SIGKILL


def test_starter_of_a_process_is_found_through_a_shell():
    program = "from attnlab.runs.sweep_job import starting_process; print(starting_process())"
    for command in (
        [sys.executable, "-c", program],
        ["bash", "-c", f"'{sys.executable}' -c '{program}'; true"],
    ):
        ended = subprocess.run(command, capture_output=True, text=True, check=True)
        assert ended.stdout.strip() == this_process()


def test_worker_of_a_leader_on_another_machine_lives_on():
    """There is no such process here, and none is looked for: the worker lives on."""
    own = "import sys, time\nfrom attnlab.runs.sweep_job import exit_with\nexit_with(sys.argv[1])\n"
    ended = subprocess.run(
        [sys.executable, "-c", f"{own}time.sleep(3)", "elsewhere 1 0.0"], check=False
    )
    assert ended.returncode == 0
