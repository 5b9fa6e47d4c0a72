"""The counters of speed, time and memory."""

from __future__ import annotations

import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from attnlab.batch import Padding
from attnlab.data.padding import make_batch
from attnlab.training.speed import SpeedCounters, cpu_seconds, peak_megabytes


class Recorder:
    def __init__(self) -> None:
        self.records: list[tuple[int, dict[str, float]]] = []

    def log_metrics(self, metrics, step):
        self.records.append((step, metrics))


def work(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


@pytest.fixture
def trainer():
    return SimpleNamespace(global_step=0, is_global_zero=True, loggers=[Recorder()], world_size=1)


def train(counters, trainer, batches, validate_after=()):
    counters.on_train_start(trainer, None)
    for number, batch in enumerate(batches):
        counters.on_train_batch_start(trainer, None, batch, number)
        work(0.02)
        trainer.global_step += 1
        counters.on_train_batch_end(trainer, None, None, batch, number)
        if trainer.global_step in validate_after:
            counters.on_validation_start(trainer, None)
            work(0.3)


def test_speed_counts_real_tokens_and_excludes_validations(trainer):
    batch = make_batch([[4, 5], [4]], [[5, 6, 7], [5]], Padding())  # 4 + 2 real target tokens
    train(SpeedCounters(every=2), trainer, [batch] * 6, validate_after=(2, 4))
    steps, records = zip(*trainer.loggers[0].records, strict=True)
    assert steps == (1, 3, 5)
    assert [record["speed/target_tokens"] for record in records] == [12, 24, 36]
    assert [record["speed/sentences"] for record in records] == [4, 8, 12]
    last = records[-1]
    assert 0.1 <= last["time/training_cpu_seconds"] < 0.4
    assert 0.55 <= last["time/validation_cpu_seconds"] < 0.9
    assert last["speed/target_tokens_per_cpu_second"] == pytest.approx(
        36 / last["time/training_cpu_seconds"]
    )
    assert last["system/resident_megabytes"] > 10


def test_what_is_drawn_before_the_first_step_is_no_training(trainer):
    batch = make_batch([[4]], [[5]], Padding())
    counters = SpeedCounters(every=1)
    counters.on_train_start(trainer, None)
    work(0.3)  # as when the attention of the untrained model is drawn
    counters.on_train_batch_start(trainer, None, batch, 0)
    trainer.global_step += 1
    counters.on_train_batch_end(trainer, None, None, batch, 0)
    _, record = trainer.loggers[0].records[0]
    assert record["time/training_cpu_seconds"] < 0.1
    assert record["time/validation_cpu_seconds"] >= 0.28


def test_cpu_seconds_include_child_processes():
    before = cpu_seconds()
    subprocess.run(
        [sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True
    )
    assert cpu_seconds() - before >= 0.28


def test_cpu_seconds_of_several_processes_exclude_children(trainer):
    """Its children may be the other processes, whose tokens it does not count."""
    trainer.world_size = 2
    batch = make_batch([[4]], [[5]], Padding())
    counters = SpeedCounters(every=1)
    counters.on_train_start(trainer, None)
    subprocess.run(
        [sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass"], check=True
    )
    trainer.global_step += 1
    counters.on_train_batch_end(trainer, None, None, batch, 0)
    assert trainer.loggers[0].records[0][1]["time/training_cpu_seconds"] < 0.3


def test_wall_seconds_of_validations_are_counted_separately(trainer, monkeypatch):
    clock = iter([10.0, 11.0, 12.0, 14.0, 19.0, 22.0])
    monkeypatch.setattr(
        "attnlab.training.speed.time", SimpleNamespace(monotonic=lambda: next(clock))
    )
    monkeypatch.setattr("attnlab.training.speed.cpu_seconds", lambda: 1.0)
    batch, counters = make_batch([[4]], [[5]], Padding()), SpeedCounters(every=1)
    # Drawn from 10 to 11; 1st batch to 12, validated from 14 to 19
    train(counters, trainer, [batch] * 2, validate_after=(1,))
    last = trainer.loggers[0].records[-1][1]
    assert (last["time/training_wall_seconds"], last["time/validation_wall_seconds"]) == (6.0, 6.0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports this peak")
def test_memory_peak_of_a_training_excludes_earlier_trainings(trainer):
    large = b"x" * 400_000_000
    assert large[-1]
    del large
    before = peak_megabytes()["system/peak_training_megabytes"]
    train(SpeedCounters(every=1), trainer, [make_batch([[4]], [[5]], Padding())])
    last = trainer.loggers[0].records[-1][1]
    assert (
        0.9 * last["system/resident_megabytes"]
        <= last["system/peak_training_megabytes"]
        < before - 300
    )


def test_counters_of_a_resumed_training_continue_those_of_its_checkpoint(trainer):
    batch, counters = make_batch([[4]], [[5]], Padding()), SpeedCounters(every=1)
    train(counters, trainer, [batch])
    resumed = SpeedCounters(every=1)
    before = {"training_wall": 100.0, "validation_wall": 50.0}
    resumed.load_state_dict({**counters.state_dict(), **before})
    train(resumed, trainer, [batch])
    last = trainer.loggers[0].records[-1][1]
    assert last["speed/sentences"] == 2
    assert 100 < last["time/training_wall_seconds"] < 110
    assert last["time/validation_wall_seconds"] == pytest.approx(50, abs=1)


def test_parts_of_an_accumulated_batch_are_logged_once_a_step(trainer):
    batch = make_batch([[4, 5]], [[5, 6]], Padding())
    counters = SpeedCounters(every=1)
    counters.on_train_start(trainer, None)
    for part in range(8):  # four a step
        counters.on_train_batch_start(trainer, None, batch, part)
        trainer.global_step = (part + 1) // 4
        counters.on_train_batch_end(trainer, None, None, batch, part)
    assert [step for step, _ in trainer.loggers[0].records] == [0, 1]
    assert [found["speed/sentences"] for _, found in trainer.loggers[0].records] == [4, 8]
