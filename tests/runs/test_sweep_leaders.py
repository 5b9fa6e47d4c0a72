"""Processes that lead the parts of one sweep, beside each other and one after the other."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from attnlab.errors import ExperimentError
from attnlab.runs.search_result import FoundSetting, SearchResult
from attnlab.runs.sweep_leader import lead_sweep
from attnlab.runs.sweep_numbers import PointNumbers
from attnlab.runs.sweep_record import JobRecord, SweepRecord
from attnlab.runs.sweep_settings import JobProcesses, part_of

RECORD = SweepRecord("0123456789abcdef", "seed", ["seed"], ["seed=1,2"], 2, None, 0.0)


@pytest.mark.parametrize("points", [1, 2, 7, 24])
@pytest.mark.parametrize("parts", [1, 2, 3, 8])
def test_parts_have_every_point_once_and_differ_by_one_at_most(points, parts):
    numbers = [part_of(f"{number}/{parts}", points) for number in range(1, parts + 1)]
    assert [point for part in numbers for point in part] == list(range(points))
    sizes = [len(part) for part in numbers]
    assert max(sizes) - min(sizes) <= 1


@pytest.fixture
def lead(tracking, runs):
    """Leads a part of a sweep of two points, or all of it."""

    def lead(shard):
        return lead_sweep(RECORD, tracking(), runs, JobProcesses("serial", 1), None, shard)

    return lead


def end(folder, number, status="finished"):
    """Write down how a point of the sweep ended."""
    start = folder.read().started
    choices = {"seed": str(number + 1)}
    job = JobRecord(
        number, f"seed {number + 1}", choices, [], status, start, start, "out", ended=start
    )
    folder.write_job(job)


def status_of_run(client, folder):
    return client.get_run(folder.read().run_id).info.status


def note(client, folder):
    return client.get_run(folder.read().run_id).data.tags["mlflow.note.content"]


def test_last_of_the_leaders_closes_the_run_that_the_first_one_opened(lead, client, capsys):
    with ExitStack() as second:
        with lead("1/2") as folder:
            record = folder.read()
            second.enter_context(lead("2/2"))
            assert folder.read() == record
            end(folder, 0)
        said = capsys.readouterr().err
        assert "1 of the 1 points of part 1/2 finished; other parts still run" in said
        assert status_of_run(client, folder) == "RUNNING"
        assert folder.read().ended is None
        end(folder, 1)
    assert status_of_run(client, folder) == "FINISHED"
    assert folder.read().run_id == record.run_id
    assert folder.read().ended is not None
    assert "2 of 2 points finished, 0 failed" in note(client, folder)
    experiment = client.get_run(record.run_id).info.experiment_id
    assert len(client.search_runs([experiment])) == 1


def test_parts_one_after_the_other_complete_the_same_run(lead, client):
    with lead("2/2") as folder:
        end(folder, 1)
    first = folder.read()
    assert first.ended is None
    assert "1 of 2 points finished, 0 failed" in note(client, folder)
    with lead("1/2") as folder:
        end(folder, 0)
    assert folder.read().run_id == first.run_id
    assert folder.read().ended is not None
    assert "2 of 2 points finished, 0 failed" in note(client, folder)
    assert status_of_run(client, folder) == "FINISHED"


def test_failed_point_fails_the_run_and_the_command_of_its_part_alone(lead, client):
    with ExitStack() as second:
        first = ExitStack()
        folder = first.enter_context(lead("1/2"))
        second.enter_context(lead("2/2"))
        end(folder, 0, "failed")
        with pytest.raises(ExperimentError, match="1 of 1 jobs failed: seed 1;"):
            first.close()
        end(folder, 1)
    assert status_of_run(client, folder) == "FAILED"
    assert "1 of 2 points finished, 1 failed" in note(client, folder)


@pytest.mark.parametrize(
    ("running", "started", "says"),
    [
        ("1/2", "1/2", "part 1/2 of the sweep 0123456789abcdef is running already; wait for it"),
        ("1/2", "1/4", r"is running already \(1/2\), divided in another way than 1/4"),
        ("1/2", None, r"is running already \(1/2\), divided in another way than by this command"),
        (None, "1/2", r"is running already \(the whole of it\), divided in another way"),
        (None, None, "the sweep 0123456789abcdef is running already; wait for it, or stop it"),
    ],
)
def test_process_with_the_same_points_is_refused(running, started, says, lead, client):
    with lead(running) as folder:
        end(folder, 0)
        end(folder, 1)
        with pytest.raises(ExperimentError, match=says), lead(started):
            pass
    assert status_of_run(client, folder) == "FINISHED"


@pytest.fixture
def share(tracking, runs):
    """Leads a search that any number of processes share."""

    def share():
        processes = JobProcesses("serial", 1)
        return lead_sweep(RECORD, tracking(), runs, processes, None, None, True)

    return share


def of_search(folder, number):
    """Write down a point that this process took and finished."""
    taken = PointNumbers(folder).take([[f"seed={number + 1}"]])
    assert taken == number
    end(folder, number)


def test_leaders_of_a_search_are_any_number_and_the_last_one_closes_its_run(
    share, lead, client, capsys
):
    with ExitStack() as last:
        with share() as folder:
            last.enter_context(share())
            third = share()
            with third:
                pass
            with pytest.raises(ExperimentError, match="is running already"), lead(None):
                pass
            of_search(folder, 0)
        assert "other commands still search" in capsys.readouterr().err
        assert status_of_run(client, folder) == "RUNNING"
        of_search(folder, 1)
        found = FoundSetting(0, ["lr=0.1"], [[1.0, 3.0]])
        SearchResult("made", ["bleu"], 2, 1, 3, 0, [found]).write(folder.path)
    assert status_of_run(client, folder) == "FINISHED"
    assert folder.read().ended is not None
    said = note(client, folder)
    assert "4 trials: 1 complete, 3 pruned, 0 failed" in said
    assert "bleu 2 ± 1.4 (2 seeds): lr=0.1" in said
    assert "best over seeds: bleu 2 ± 1.4 (2 seeds): lr=0.1" in capsys.readouterr().out


def test_search_that_starts_again_ranks_the_points_of_earlier_starts(share, client):
    with share() as folder:
        of_search(folder, 0)
    with share():
        of_search(folder, 1)
    assert "2 of 2 points finished, 0 failed" in note(client, folder)
