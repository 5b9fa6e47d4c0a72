"""The metric spool: appending, reading, damage, and the history."""

import json
import math
import os

import pytest

from attnlab.errors import ExperimentError
from attnlab.training.spool import HistoryRow, MetricSpool, history, write_history
from attnlab.training.spool_logger import SpoolLogger


@pytest.fixture
def spool(tmp_path):
    return MetricSpool(tmp_path / "deep" / "metrics.jsonl")


def test_spool_reads_appended_records_at_once_and_without_those_that_were_read(spool):
    spool.append({"loss": 2.5, "bleu": 10}, step=10, epoch=0)
    first, offset = spool.read()
    spool.append({"loss": 1.5}, step=20)
    second, end = spool.read(skip=1)

    assert (first[0].step, first[0].epoch, first[0].metrics) == (10, 0, {"loss": 2.5, "bleu": 10.0})
    assert [(record.step, record.epoch, record.metrics) for record in second] == [
        (20, None, {"loss": 1.5})
    ]
    assert second[0].time >= first[0].time > 1_600_000_000_000
    assert end == spool.size() == spool.path.stat().st_size
    assert spool.read(up_to=offset) == (first, offset)
    assert spool.read(skip=2) == ([], end)


def test_spool_writes_nan_and_infinity_as_valid_json(spool):
    spool.append({"a": math.nan, "b": math.inf, "c": -math.inf}, step=1)
    line = spool.path.read_text()
    json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    metrics = spool.read()[0][0].metrics
    assert math.isnan(metrics["a"])
    assert (metrics["b"], metrics["c"]) == (math.inf, -math.inf)


def test_spool_with_an_incomplete_last_line_ignores_and_removes_it(spool):
    spool.append({"loss": 1.0}, step=1)
    whole = spool.size()
    spool.close()
    with spool.path.open("ab") as file:
        file.write(b'{"time": 1, "st')

    assert len(spool.read()[0]) == 1
    assert spool.read()[1] == spool.size() == whole
    MetricSpool(spool.path).append({"loss": 0.5}, step=2)
    assert [record.step for record in spool.read()[0]] == [1, 2]


def test_spool_without_a_file_is_empty(spool):
    assert spool.read() == ([], 0)
    assert spool.size() == 0
    spool.cut(0)


def test_spool_cut_removes_the_records_after_an_offset(spool):
    spool.append({"loss": 3.0}, step=1)
    checkpoint = spool.size()
    spool.append({"loss": 2.0}, step=2)
    spool.cut(checkpoint)
    spool.append({"loss": 1.0}, step=2)
    assert [record.metrics["loss"] for record in spool.read()[0]] == [3.0, 1.0]


@pytest.mark.parametrize(
    "damage", [b"x", b"\xff", b"[]", b"{}", b'{"metrics": 3}', b'{"metrics": {"loss": {}}}']
)
def test_spool_with_a_damaged_record_reports_its_place(spool, damage):
    spool.append({"loss": 3.0}, step=1)
    first = spool.size()
    with spool.path.open("ab") as file:
        file.write(damage + b"\n")
    spool.append({"loss": 2.0}, step=2)
    damaged = f"metrics.jsonl is damaged: invalid record at byte {first}"
    for read in (spool.read, lambda: spool.read(skip=1), lambda: spool.cut(spool.size())):
        with pytest.raises(ExperimentError, match=damaged):
            read()
    assert len(spool.read(up_to=first)[0]) == 1
    spool.cut(first)  # a checkpoint from before the damage
    assert len(spool.read()[0]) == 1


@pytest.mark.parametrize("left", [0, 5, 60])
def test_spool_shorter_than_its_checkpoint_is_refused_on_resume(spool, left):
    for step in (1, 2):
        spool.append({"loss": 3.0}, step)
    checkpoint = spool.size()
    os.truncate(spool.path, left)
    with pytest.raises(ExperimentError, match="no record ends at the offset of the checkpoint"):
        spool.cut(checkpoint)
    assert spool.path.stat().st_size == left


def test_spool_in_a_forked_process_appends_to_the_same_file(spool):
    spool.append({"loss": 3.0}, step=1)
    child = os.fork()
    if child == 0:
        spool.append({"loss": 2.0}, step=2)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    spool.append({"loss": 1.0}, step=3)
    assert [record.step for record in spool.read()[0]] == [1, 2, 3]


def test_spool_that_cannot_be_written_raises_an_experiment_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ExperimentError, match="metrics could not be written to"):
        MetricSpool(tmp_path / "file" / "metrics.jsonl").append({"loss": 1.0}, step=1)


def test_spool_logger_separates_the_epoch_from_the_metrics(spool):
    logger = SpoolLogger(spool)
    logger.log_hyperparams({"size": 3})
    logger.log_metrics({"loss": 1.0, "epoch": 2}, step=7)
    logger.log_metrics({"epoch": 3}, step=8)
    logger.finalize("success")
    (record,) = spool.read()[0]
    # Lightning counts from 0
    assert (record.step, record.epoch, record.metrics) == (8, 2, {"loss": 1.0})
    assert (logger.name, logger.version) == ("spool", "")


def test_history_has_no_times_and_a_fixed_order(tmp_path):
    tables = []
    for name in ("one", "two"):
        spool = MetricSpool(tmp_path / name)
        spool.append(
            {"b": 2.0, "a": 1.0, "speed/tokens_per_second": float(os.getpid())}, step=1, epoch=0
        )
        spool.append({"a": 0.1}, step=2, epoch=0)
        tables.append(list(history(spool.path)))
        write_history(spool.path, tmp_path / f"{name}.csv")
    assert (
        tmp_path / "one.csv"
    ).read_text() == "step,epoch,name,value\n1,0,a,1.0\n1,0,b,2.0\n2,0,a,0.1\n"
    assert tables[0] == tables[1]
    assert tables[0] == [
        HistoryRow(1, 0, "a", 1.0),
        HistoryRow(1, 0, "b", 2.0),
        HistoryRow(2, 0, "a", 0.1),
    ]
