"""What was chosen, as a report shows it."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
import yaml
from entry_points import TINY, Command, succeeded

from attnlab.experiment.composition import compose
from attnlab.experiment.hydra_config import changed_values, compose_config, shown_choices

CHOSEN = ("padding=post_post", "model/encoder=lstm", "search.size=3")


def shown(*overrides: str) -> dict[str, str]:
    experiment = compose(overrides)
    return shown_choices(experiment.choices, experiment.config)


def test_choice_with_a_changed_value_is_shown_as_changed() -> None:
    plain = shown(*CHOSEN[:2])
    assert (plain["padding"], plain["model/encoder"], plain["hardware"]) == (
        "post_post",
        "lstm",
        "cpu",
    )
    assert (plain["search"], plain["training/schedule"], plain["model/attention"]) == (
        "beam",
        "cosine",
        "bahdanau",
    )
    changed = shown("padding.encoder=post", "search.size=3", "model/attention=none")
    assert (changed["padding"], changed["search"], changed["hardware"]) == (
        "pre_post, changed",
        "beam, changed",
        "cpu",
    )
    assert changed["model/attention"] == "none"


def test_unknown_choice_has_no_changed_values() -> None:
    assert changed_values("search", "mine", {"size": 3}) == {}


def choices_shown(page: Path) -> dict[str, str]:
    """{group: choice} of the folded table."""
    text = page.read_text(encoding="utf-8")
    return dict(re.findall(r'<tr><th scope="row"><code>([^<]*)</code></th><td>([^<]*)</td>', text))


def changes_shown(page: Path) -> set[str]:
    text = page.read_text(encoding="utf-8").partition('<dl class="facts">')[0]
    found = re.findall(r'<tr><th scope="row"><code>([^<]*)</code></th>', text)
    return {html.unescape(override) for override in found}


@pytest.mark.slow
def test_report_shows_what_was_typed_under_dvc_too(command: Command, folder: Path) -> None:
    overrides = [
        *(choice for choice in TINY if not choice.startswith("search.size")),
        "tracking=none",
        *CHOSEN,
    ]
    stages = {
        stage: f"paths.{stage}={folder}/build/{stage}"
        for stage in ("data", "training", "evaluation", "report")
    }
    succeeded(command("train.py", *overrides, stages["data"], stages["training"]))
    (page,) = (folder / "runs" / "plain").rglob("report/index.html")
    expected = {
        "data": "copy, changed",
        "padding": "post_post",
        "model/encoder": "lstm, changed",
        "hardware": "cpu",
        "model/attention": "bahdanau, changed",
        "search": "beam, changed",
        "training/schedule": "cosine",
    }
    choices = choices_shown(page)
    assert {name: choices.get(name) for name in expected} == expected
    # Precision 32 is the default.
    assert changes_shown(page) == set(overrides) - {"hardware.precision=32"}

    # Under DVC the stages read a config that is composed already.
    (folder / "params.yaml").write_text(yaml.safe_dump({"overrides": overrides}))
    succeeded(command("compose.py"))
    evaluation = page.parents[1] / "evaluation"
    succeeded(
        command(
            "report.py",
            "-cp",
            str(folder / "build"),
            "-cn",
            "resolved",
            f"paths.evaluation={evaluation}",
        )
    )
    staged = folder / "build" / "report" / "index.html"
    assert choices_shown(staged) == choices
    assert changes_shown(staged) == changes_shown(page)


def test_decoder_takes_over_what_is_chosen_for_the_encoder_alone() -> None:
    both = compose_config(["model/encoder=lstm", "model.encoder.layers=2"]).model
    assert (both.decoder.cell, both.decoder.layers, both.encoder.layers) == ("lstm", 2, 2)
    one = compose_config(["model.encoder.layers=2", "model.decoder.layers=1"]).model
    assert (one.decoder.layers, one.encoder.layers) == (1, 2)


def test_changed_value_of_a_choice_that_builds_on_another_is_found() -> None:
    section = {"cell": "lstm", "layers": 2}
    assert changed_values("model/encoder", "lstm", section) == {"layers": 2}
