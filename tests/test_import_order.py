"""Imports point one way, and each heavy dependency is imported in one place.

Imports for type checkers count too.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import attnlab

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "attnlab"
PIPELINES = ROOT / "pipelines"

# Each place may import itself and what stands on a lower level. Data and model share a level, and
# do not import each other.
LEVELS = {
    "batch": 0,
    "errors": 0,
    "progress": 0,
    "terminal": 1,
    "project": 0,
    "files": 1,
    "locks": 1,
    "inspection": 1,
    "config": 2,
    "data": 3,
    "model": 3,
    "search": 4,
    "training": 5,
    "evaluation": 6,
    "plots": 7,
    "runs": 8,
    "tasks": 9,
    "faults": 10,
    "experiment": 11,
    "report": 12,
    "studies": 13,
    "api": 14,
    "course": 15,
    "explorer": 15,
    "commands": 16,
    "__init__": 17,  # the names that `import attnlab` offers
}
HOMES = {
    "mlflow": {"runs"},
    "datasets": {"data"},
    "hydra": {"experiment", "pipelines"},
    "omegaconf": {"experiment", "pipelines"},
}
# MLflow runs it by its path, as a program of a user's; no module of the package imports it.
SERVED = PACKAGE / "runs" / "served_model.py"
FILES = sorted([*PACKAGE.rglob("*.py"), *PIPELINES.rglob("*.py")])


def place_of(path: Path) -> str:
    if path.is_relative_to(PIPELINES):
        return "pipelines"
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> list[str]:
    """Dotted names of all that a file imports, wherever in the file it does so.

    Relative imports are made absolute.
    """
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            assert node.module is not None
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def test_import_check_finds_the_files():
    places = {place_of(path) for path in FILES}
    assert places == {*LEVELS, "pipelines"}
    assert "attnlab.batch.Padding" in imports_of(PACKAGE / "model" / "seq2seq.py")


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if path != SERVED],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_imports_point_only_to_lower_levels(path: Path):
    here = place_of(path)
    for name in imports_of(path):
        parts = name.split(".")
        if parts[0] != "attnlab" or len(parts) == 1:
            continue  # its version
        there = parts[1]
        assert there in LEVELS, f"{path.name} imports {name}, which has no place in the order"
        if here in ("pipelines", there):
            continue
        assert LEVELS[there] < LEVELS[here], (
            f"{here} must not import {there}, but {path.name} imports {name}"
        )


@pytest.mark.parametrize("dependency", HOMES)
def test_heavy_dependency_is_imported_in_one_room(dependency: str):
    users = {
        place_of(path)
        for path in FILES
        if any(name.split(".")[0] == dependency for name in imports_of(path))
    }
    assert users == HOMES[dependency]


FAST = PACKAGE / "model" / "fast"
PRIVATE = re.compile(r"torch\._C|torch\.ops\.(mkldnn|onednn)")


def test_model_is_complete_without_what_makes_it_faster():
    users = {
        path
        for path in FILES
        if any(f"{name}.".startswith("attnlab.model.fast.") for name in imports_of(path))
    }
    outside = {path for path in users if not path.is_relative_to(FAST)}
    assert PACKAGE / "experiment" / "training.py" in outside
    assert not [path for path in outside if place_of(path) == "model"]


def test_private_parts_of_torch_are_used_in_one_room():
    users = {path for path in FILES if PRIVATE.search(path.read_text(encoding="utf-8"))}
    assert users
    assert {path for path in users if not path.is_relative_to(FAST)} == set()


def test_lightning_is_imported_by_one_name():
    for path in FILES:
        assert not any(name.split(".")[0] == "lightning" for name in imports_of(path)), path


def module_files(name: str) -> list[Path]:
    """The file of a dotted name of the package; a class or function is in its module's file."""
    parts = name.split(".")[1:]
    paths = [PACKAGE.joinpath(*parts[:n]).with_suffix(".py") for n in range(1, len(parts) + 1)]
    return [path for path in paths if path.is_file()]


def test_settings_import_neither_lightning_nor_torchmetrics():
    """Both take seconds to import, and a wrong value is refused before training starts."""
    pending, seen = (
        [PACKAGE / "training" / "settings.py", PACKAGE / "training" / "hardware.py"],
        set(),
    )
    while pending:
        path = pending.pop()
        seen.add(path)
        names = imports_of(path)
        assert not {"pytorch_lightning", "torchmetrics"} & {name.split(".")[0] for name in names}, (
            path
        )
        pending += [
            file for name in names if name.startswith("attnlab.") for file in module_files(name)
        ]
        pending = [file for file in pending if file not in seen]
    assert PACKAGE / "training" / "optimisation.py" in seen


def test_import_of_the_package_alone_loads_no_library():
    code = (
        "import sys; before = set(sys.modules); import attnlab; print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "attnlab" in loaded
    libraries = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    assert libraries == {"attnlab"}
    assert not [name for name in loaded if name.startswith("attnlab.")]


def test_package_offers_what_type_checkers_see():
    seen = imports_of(PACKAGE / "__init__.py")
    offered = {f"{module}.{name}": name for name, module in attnlab._EXPORTS.items()}
    assert {*offered} == {name for name in seen if name.startswith("attnlab.")}
    assert sorted(attnlab.__all__) == sorted(["__version__", *offered.values()])
    assert {*attnlab.__all__} <= {*dir(attnlab)}
    for path, name in offered.items():
        found = getattr(attnlab, name)
        assert f"{found.__module__}.{found.__qualname__}" == path
    with pytest.raises(
        AttributeError, match="module 'attnlab' has no attribute 'attention'; it offers Attention, "
    ):
        attnlab.attention  # noqa: B018


def test_no_module_is_called_utils_or_helpers():
    names = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert not [path for path in FILES if names & {path.stem, path.parent.name}]


def test_pipelines_answer_help_quickly():
    """Importing all pipelines loads nothing that costs seconds.

    Such imports must stand inside their functions.
    """
    heavy = {"torch", "pytorch_lightning", "mlflow", "torchmetrics", "datasets", "matplotlib"}
    code = (
        "import runpy, sys; [runpy.run_path(script) for script in sys.argv[1:]]; "
        "print(*sys.modules)"
    )
    command = [sys.executable, "-c", code, *map(str, sorted(PIPELINES.rglob("*.py")))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not heavy & set(done.stdout.split())
