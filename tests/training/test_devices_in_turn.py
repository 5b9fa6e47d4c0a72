"""Jobs of sweeps take the devices of a machine in turn."""

from __future__ import annotations

import getpass
import os
import subprocess
import sys

import pytest
import torch

from attnlab.training import devices
from attnlab.training.devices import free_device, names_of_devices
from attnlab.training.trainer import _hardware_arguments


def test_each_process_gets_the_device_that_the_fewest_have(tmp_path):
    turns = [free_device(["0", "1", "2", "3"], tmp_path) for _ in range(6)]
    assert [turn.index for turn in turns] == [0, 1, 2, 3, 0, 1]
    turns[2].lock.release()
    assert free_device(["0", "1", "2", "3"], tmp_path).index == 2


def test_processes_that_see_different_devices_share_none(tmp_path):
    first = free_device(["2", "3"], tmp_path)
    second = free_device(["3", "2"], tmp_path)
    third = free_device(["2", "3", "5"], tmp_path)
    assert [turn.index for turn in (first, second, third)] == [0, 0, 2]


@pytest.mark.parametrize(
    ("visible", "count", "names"),
    [
        (None, 2, ["0", "1"]),
        ("", 1, ["0"]),
        ("3, 5", 2, ["3", "5"]),
        ("GPU-8a/b", 1, ["GPU-8a_b"]),
        ("7", 2, ["0", "1"]),  # of another kind of device
    ],
)
def test_devices_have_the_names_of_the_machine(visible, count, names, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert names_of_devices(count) == names


ASK = """
import sys
from attnlab.training.devices import device_in_turn
print(device_in_turn(4), device_in_turn(4), flush=True)
sys.stdin.read()
"""


def test_processes_beside_each_other_get_different_devices(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ASK],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(4)
    ]
    said = [process.stdout.readline().split() for process in processes]
    for process in processes:
        process.communicate(timeout=60)
    assert sorted(said) == [[str(index)] * 2 for index in range(4)]


def test_job_computes_and_trains_on_its_device(hardware, tmp_path, monkeypatch):
    chosen = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(devices, "_OWN", [])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gpu = hardware(accelerator="gpu")
    assert _hardware_arguments(gpu, has_unused=False)["devices"] == 1
    held = free_device(["0"], folder_of_locks(tmp_path))
    gpu.take_turn()
    gpu.take_turn()
    assert chosen == [1, 1]
    assert _hardware_arguments(gpu, has_unused=False)["devices"] == [1]
    held.lock.release()


def folder_of_locks(temporary):
    """The folder where `device_in_turn` looks, made by another process before it."""
    folder = temporary / f"attnlab-devices-{getpass.getuser()}"
    folder.mkdir()
    return folder


def test_job_on_a_cpu_takes_no_device(hardware, monkeypatch):
    monkeypatch.setattr(devices, "_OWN", [])
    hardware().take_turn()
    assert devices.own_device() is None


def test_user_without_a_name_has_a_folder_by_its_number(monkeypatch):
    def nameless():
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr(devices.getpass, "getuser", nameless)
    assert devices._user() == str(os.getuid())
