"""The description of a run in MLflow: which code its command needs."""

import pytest

from attnlab.runs.description import description
from attnlab.runs.run_folder import RunRecord, RunState

METRICS = {
    "validation/nll": 1.0,
    "test/sentences": 20.0,
    "test/loss": 0.5,
    "test/repetition": 3.0,
    "test/tag_accuracy": 0.75,
}
COMMAND = ("attnlab", "train", "seed=2")


def commands(**origin: str) -> list[str]:
    """The lines of the block of commands of a run with these tags of its origin."""
    record = RunRecord({}, "0123456789abcdef", "", command=COMMAND)
    text = description(RunState(record, origin, log_model=False, started=0), metrics={})
    first, *lines, last = text.splitlines()
    assert (first, last) == ("```sh", "```")
    return lines


def test_description_of_an_installed_package_names_its_version():
    lines = commands(git_revision="none: attnlab 0.1.0 (installed package)", git_dirty="unknown")
    assert lines == ["# attnlab 0.1.0 (installed package)", "attnlab train \\", "  seed=2"]


def test_description_of_a_checkout_checks_it_out_and_warns_of_changes():
    checkout = {"mlflow.source.git.commit": "3f2c", "git_revision": "3f2c"}
    assert commands(**checkout, git_dirty="false")[0] == "git checkout 3f2c"
    assert commands(**checkout, git_dirty="true")[:2] == [
        "# there were changes that were not committed",
        "git checkout 3f2c",
    ]


@pytest.mark.parametrize(
    ("main_metrics", "result"),
    [
        (("tag_accuracy", "repetition"), "**Test:** tag_accuracy 0.75 · repetition 3"),
        ((), "**Test:** loss 0.5 · repetition 3 · tag_accuracy 0.75"),
    ],
)
def test_description_shows_the_main_metrics_of_the_task_or_all(main_metrics, result):
    record = RunRecord({}, "0123456789abcdef", "", main_metrics=main_metrics)
    assert description(RunState(record, {}, log_model=False, started=0), METRICS) == result


def test_description_of_a_sweep_has_its_comparison_before_its_ranking():
    record = RunRecord({}, "0123456789abcdef", "", note="A note.")
    state = RunState(
        record, {}, log_model=False, started=0, result="A ranking.", comparison="dot is better."
    )
    assert description(state, {}) == "A note.\n\ndot is better.\n\nA ranking."
