"""`hydra.searchpath`: a folder or a package that does not exist is refused by its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from entry_points import TINY, Command

from attnlab.errors import ExperimentError
from attnlab.experiment.composition import compose
from attnlab.experiment.hydra_config import compose_config
from attnlab.project import CONF


@pytest.mark.parametrize("multirun", [(), ("-m", "seed=1,2")], ids=["run", "sweep"])
@pytest.mark.parametrize(
    "place", ["pkg://does_not_exist.conf", "pkg://json.conf", "file://nowhere"]
)
def test_search_path_that_does_not_exist_is_refused_with_its_name(
    place: str, multirun: tuple[str, ...], command: Command, folder: Path
) -> None:
    ended = command(
        "train.py", *multirun, f"hydra.searchpath=[{place}]", *TINY, "metrics=repetition"
    )
    assert ended.code == 1
    assert ended.err == (
        "error: hydra.searchpath must list folders that exist, such as file://my_conf, and "
        "packages that Python finds (installed, or by PYTHONPATH), such as pkg://my_package.conf; "
        f"got '{place}'\n"
    )
    assert not (folder / "runs").exists()


def test_every_missing_place_of_the_search_path_is_a_problem(tmp_path: Path) -> None:
    places = f"[file://{tmp_path},file://{tmp_path}/a,pkg://attnlab.config,pkg://b]"
    with pytest.raises(ExperimentError) as raised:
        compose_config([f"hydra.searchpath={places}"])
    given = [problem.partition("; got ")[2] for problem in raised.value.problems]
    assert given == [f"'file://{tmp_path}/a'", "'pkg://b'"]


@pytest.mark.parametrize("kind", ["pkg", "file"])
def test_folder_above_the_choices_is_answered_with_theirs(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "lab_above_conf"
    group = package / "conf" / "model" / "history"
    group.mkdir(parents=True)
    for folder in (package, package / "conf"):
        (folder / "__init__.py").touch()
    (group / "mine.yaml").write_text("_target_: attnlab.model.histories.last_weights.LastWeights\n")
    monkeypatch.syspath_prepend(tmp_path)
    above, own = {
        "pkg": ("pkg://lab_above_conf", "pkg://lab_above_conf.conf"),
        "file": (f"file://{package}", f"file://{package}/conf"),
    }[kind]

    compose_config([f"hydra.searchpath=[{own}]", "model/history=mine"])
    with pytest.raises(ExperimentError) as refused:
        compose_config([f"hydra.searchpath=[{above}]", "model/history=mine"])
    assert str(refused.value) == (
        f"hydra.searchpath names '{above}', which holds no choices, but its folder conf does; "
        f"write {own}"
    )


def test_choice_with_the_name_of_another_one_is_refused_unless_it_is_the_same(
    tmp_path: Path,
) -> None:
    """Hydra takes the first of them, and says nothing of the second."""
    theirs = tmp_path / "model" / "history" / "coverage.yaml"
    theirs.parent.mkdir(parents=True)
    ours = CONF / "model" / "history" / "coverage.yaml"
    chosen = [f"hydra.searchpath=[file://{tmp_path}]", "model/history=coverage"]

    theirs.write_bytes(ours.read_bytes())
    compose(chosen)
    theirs.write_text("_target_: attnlab.model.histories.last_weights.LastWeights\n")
    with pytest.raises(ExperimentError) as refused:
        compose(chosen)
    assert str(refused.value) == (
        f"model/history=coverage is in {ours} and in {theirs}, and Hydra takes the first; give "
        "yours a name of its own"
    )
    compose([*chosen[:1], "model/history=last_weights"])  # another choice is not touched


def test_search_path_in_a_package_without_init_file_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_lab" / "conf" / "model" / "attention").mkdir(parents=True)
    (tmp_path / "my_lab" / "conf" / "model" / "attention" / "mine.yaml").write_text(
        "_target_: attnlab.model.attention.dot.DotScore\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(
        UserWarning, match="is not available"
    ):  # Hydra's, which finds it all the same
        config = compose_config(["hydra.searchpath=[pkg://my_lab/conf]", "model/attention=mine"])
    assert config.model.attention._target_ == "attnlab.model.attention.dot.DotScore"
