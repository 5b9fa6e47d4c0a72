"""Bad files between the stages: what another stage wrote, and somebody tore, swapped or made up."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bad_case import CLASSIFICATION, TRANSLATION, Case, Expected, labelled_file
from warmed import Warmed

Spoil = Callable[[Path], object]
TASKS = {"translation": TRANSLATION, "classification": CLASSIFICATION}
PLACES = (
    "paths.data=build/data",
    "paths.model=build/model",
    "paths.training=build/training",
    "paths.evaluation=build/evaluation",
    "paths.report=build/report",
    "chain=false",
)


def make_stages(into: Path, warmed: Warmed, environment: Mapping[str, str]) -> dict[str, Path]:
    """For each task a folder in which all stages have run."""
    made = {}
    for task, arguments in TASKS.items():
        folder = into / task
        folder.mkdir(parents=True)
        labelled_file(folder)
        for script in ("prepare.py", "train.py", "evaluate.py", "report.py"):
            ended = warmed.run(script, (*arguments, *PLACES), folder, environment, 300.0)
            assert ended.code == 0, ended.err
        made[task] = folder
    return made


def cases(stages: Mapping[str, Path]) -> Iterator[Case]:
    """For every file that a stage reads, every way to spoil it."""
    for task, made in stages.items():
        yield from _of_folder(task, made, "build/data", "train.py")
        yield from _of_folder(task, made, "build/data", "evaluate.py")
        yield from _of_folder(task, made, "build/model", "evaluate.py")
        yield from _of_folder(task, made, "build/evaluation", "report.py")
        yield from _of_folder(task, made, "build/training", "report.py")
        yield from _of_folder(task, made, "build/data", "report.py")
        yield from _of_folder(task, made, "build/evaluation", "compare.py")
        yield from _mixed_up(task, made, stages)


def _of_folder(task: str, made: Path, place: str, script: str) -> Iterator[Case]:
    names = sorted(path.name for path in (made / place).iterdir() if path.is_file())
    for name in names:
        for how, spoil in _spoilt(name).items():

            def make(folder: Path, name: str = name, spoil: Spoil = spoil) -> None:
                _copy(made, folder)
                spoil(folder / place / name)

            kind = f"{place} for {script}"
            yield Case(f"{task}, {kind}: {name}, {how}", kind, script, _arguments(task, script), "either", make=make)
    for how, spoil in _SPOILT_FOLDERS.items():

        def make_folder(folder: Path, spoil: Spoil = spoil) -> None:
            _copy(made, folder)
            spoil(folder / place)

        kind = f"{place} for {script}"
        yield Case(f"{task}, {kind}: {how}", kind, script, _arguments(task, script), "refused", make=make_folder)


def _copy(made: Path, folder: Path) -> None:
    shutil.copytree(made, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("runs", "report"))
    for other in ("one", "two") if (made / "build").is_dir() else ():
        shutil.copytree(made / "build" / "evaluation", folder / "other" / other / "evaluation")


def _arguments(task: str, script: str) -> tuple[str, ...]:
    if script == "compare.py":
        return ("builds=[build,other/one]", "samples=100")
    return (*TASKS[task], *PLACES)


def _spoilt(name: str) -> dict[str, Spoil]:
    ways: dict[str, Spoil] = {
        "missing": lambda path: path.unlink(),
        "empty": lambda path: path.write_bytes(b""),
        "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        "noise": lambda path: path.write_bytes(bytes(range(256)) * 8),
        "zeros": lambda path: path.write_bytes(b"\0" * path.stat().st_size),
        "a folder": _as_folder,
        "a link to nothing": _as_dangling,
        "another byte": _flip,
    }
    if name.endswith((".json", ".jsonl")):
        for text in ("null", "[]", "{}", "3", '"x"', "[1]", '{"a": 1}', "NaN", "[" * 100_000, '{"format": 1}'):
            ways[f"{text[:12]} in it"] = lambda path, text=text: path.write_text(text) and None
        ways["null for all values"] = lambda path: _changed(path, lambda _: None)
        ways["texts for all values"] = lambda path: _changed(path, lambda _: "<img src=x onerror=pwned()>")
        ways["lists for all values"] = lambda path: _changed(path, lambda _: [])
        ways["huge numbers for all values"] = lambda path: _changed(path, lambda _: 10**30)
        ways["negative numbers for all values"] = lambda path: _changed(path, lambda _: -1)
        ways["one more key"] = lambda path: _changed(path, lambda value: value, more={"nonsense": 1})
    if name.endswith(".csv"):
        ways["other columns"] = lambda path: path.write_text("a,b\n1,2\n") and None
        ways["words for numbers"] = lambda path: path.write_text("step,epoch,name,value\nx,y,z,w\n") and None
        ways["fewer fields"] = lambda path: path.write_text("step,epoch,name,value\n1\n") and None
    return ways


def _as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _as_dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("/nowhere/at/all")


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    if content:
        content[len(content) // 3] ^= 0x5A
        path.write_bytes(bytes(content))


def _changed(path: Path, change: Callable[[object], object], more: Mapping[str, object] | None = None) -> None:
    lines = path.read_text(encoding="utf-8").splitlines() if path.suffix == ".jsonl" else [path.read_text("utf-8")]
    changed = []
    for line in lines:
        content = json.loads(line)
        if isinstance(content, dict):
            content = {**{key: change(value) for key, value in content.items()}, **(more or {})}
        elif isinstance(content, list):
            content = [change(value) for value in content]
        changed.append(json.dumps(content))
    path.write_text("\n".join(changed) + "\n", encoding="utf-8")


def _emptied(path: Path) -> None:
    shutil.rmtree(path)
    path.mkdir()


def _file_instead(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("x")


_SPOILT_FOLDERS: dict[str, Spoil] = {
    "no such folder": lambda path: shutil.rmtree(path),
    "an empty folder": _emptied,
    "a file for a folder": _file_instead,
}


def _mixed_up(task: str, made: Path, stages: Mapping[str, Path]) -> Iterator[Case]:
    """The files of one task given to another, and a hostile config in a model folder."""
    other = next(folder for name, folder in stages.items() if name != task)
    for place in ("data", "model", "evaluation"):

        def make(folder: Path, place: str = place) -> None:
            _copy(made, folder)
            shutil.rmtree(folder / "build" / place)
            shutil.copytree(other / "build" / place, folder / "build" / place)

        scripts = {
            "data": ("train.py", "evaluate.py", "report.py"),
            "model": ("evaluate.py",),
            "evaluation": ("report.py",),
        }
        for script in scripts[place]:
            kind = "files of another task"
            yield Case(
                f"{task}, {place} of the other, {script}", kind, script, _arguments(task, script), "refused", make=make
            )
    hostile: dict[str, tuple[str, object]] = {
        "a target": ("_target_", "os.system"),
        "a target of ours": ("_target_", "attnlab.errors.ExperimentError"),
        "a target through ours": ("_target_", "attnlab.model.encoder.torch.load"),
        "a reference": ("_target_", "${oc.env:HOME}"),
        "arguments": ("_args_", ["touch pwned"]),
        "a partial": ("_partial_", True),
    }
    for name, (key, value) in hostile.items():
        for section in ("model", "padding"):

            def make_hostile(folder: Path, key: str = key, value: object = value, section: str = section) -> None:
                _copy(made, folder)
                path = folder / "build" / "model" / "config.json"
                config = json.loads(path.read_text())
                config[section][key] = value
                path.write_text(json.dumps(config))

            kind = "hostile model folder"
            expected: Expected = "refused"
            yield Case(
                f"{task}, {section}, {name}",
                kind,
                "evaluate.py",
                _arguments(task, "evaluate.py"),
                expected,
                make=make_hostile,
            )
