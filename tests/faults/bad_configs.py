"""Bad configs, derived from the annotations of every constructor that conf/ names.

What a wrong value is, and which words its sentence needs, follows from the annotations by rules of
this file, not by those of `attnlab.config.binding`, which are under test.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import math
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, GroupedMetadata, Gt, Le, Lt
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf, open_dict
from pydantic.fields import FieldInfo

from attnlab.config.binding import bind
from attnlab.config.place import component, places_of, setting_annotations
from attnlab.config.target import TARGET
from attnlab.experiment.composition import sections_of
from attnlab.tasks.classification.task import Classification
from attnlab.tasks.task import Task

CONF = Path(__file__).resolve().parents[2] / "conf"
REMOVED = object()
# A wrong value of each kind, and the words by which a sentence says that the kind is allowed.
GIVEN = {
    "whole": 3,
    "fraction": 1.5,
    "flag": True,
    "text": "abc",
    "list": [1],
    "mapping": {"a": 1},
    "null": None,
}
WORDS = {
    "whole": "a whole number",
    "fraction": "a number",
    "flag": "true or false",
    "text": "text",
    "path": "a path",
    "list": "a list of",
    "mapping": "a mapping of",
    "null": "null",
}


@dataclass(frozen=True)
class Fault:
    """A wrong value at a place of a config, or `REMOVED`.

    said: texts that its sentence must have beside the place.
    """

    path: str
    value: Any
    said: tuple[str, ...]

    def put_into(self, config: DictConfig) -> None:
        above, _, name = self.path.rpartition(".")
        node = OmegaConf.select(config, above) if above else config
        with open_dict(node):
            if self.value is REMOVED:
                del node[name]
            else:
                node[name] = self.value


@dataclass(frozen=True)
class Setting:
    """A value of a config that can be changed."""

    path: str
    annotation: Any
    is_required: bool


@dataclass(frozen=True)
class Node:
    """A mapping with a target. names: what its constructor takes."""

    path: str
    target: type
    names: tuple[str, ...]


def compositions(part: int, parts: int) -> Iterator[tuple[DictConfig, str]]:
    """The default config of each task, and one for each further class, of which a part.

    Each comes with the place where its faults are to be tried.
    """
    turn = itertools.cycle(range(parts))
    with initialize_config_dir(str(CONF), version_base="1.3"):
        bases = [[], ["task=classification"]]
        targets = set()
        for base in bases:
            config = _filled(compose("config", base))
            targets |= set(_targets(OmegaConf.to_container(config)))
            if next(turn) == part:
                yield config, ""
        for file in sorted(CONF.rglob("*.yaml")):
            group, target = str(file.parent.relative_to(CONF)), OmegaConf.load(file).get(TARGET)
            # What Hydra itself instantiates is no part of the config that is checked.
            if target in targets or target is None or group.startswith("hydra/"):
                continue
            targets.add(target)
            if next(turn) != part:
                continue
            base = bases[1 if group in ("data", "training") and _is_for_classifiers(target) else 0]
            config = _filled(compose("config", [*base, f"{group}={file.stem}"]))
            yield config, f"{group.replace('/', '.')}."


def _is_for_classifiers(target: str) -> bool:
    annotations = sections_of(Classification())
    return any(
        issubclass(_class(target), component(annotations[name]) or ())
        for name in ("data", "training")
    )


def _filled(config: DictConfig) -> DictConfig:
    """The config without interpolations, and with values for what its user must give."""
    for path in OmegaConf.missing_keys(config):
        is_list = path.endswith("attention_loss.tokens")
        OmegaConf.update(config, path, ["given"] if is_list else "given")
    return OmegaConf.create(OmegaConf.to_container(config, resolve=True))  # type: ignore[return-value]


def _targets(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get(TARGET), str):
            yield node[TARGET]
        for value in node.values():
            yield from _targets(value)


def bad_configs(part: int, parts: int) -> Iterator[tuple[DictConfig, list[Fault]]]:
    """Configs, each with its faults, of which a part: every so manieth composition has its own.

    All parts together make each setting and each class wrong in every way once. Wrong values stand
    together in a config; a wrong class stands alone, for it hides what is inside.
    """
    seen: set[Any] = set()
    turn = itertools.count()
    for config, place in compositions(part, parts):
        of_settings = []
        for found in _walk(config):
            key = (
                found.target
                if isinstance(found, Node)
                else (_owner(config, found.path), found.path.split(".")[-1])
            )
            if key in seen or not f"{found.path}.".startswith(place):
                continue
            seen.add(key)
            if isinstance(found, Setting):
                of_settings.append(list(_of_setting(found, turn)))
            else:
                for fault in _of_node(found):
                    yield _spoilt(config, [fault])
        for together in itertools.zip_longest(*of_settings):
            yield _spoilt(config, [fault for fault in together if fault is not None])


def _spoilt(config: DictConfig, faults: list[Fault]) -> tuple[DictConfig, list[Fault]]:
    spoilt = config.copy()
    for fault in faults:
        fault.put_into(spoilt)
    return spoilt, faults


def _owner(config: DictConfig, path: str) -> Any:
    return OmegaConf.select(config, f"{path.rpartition('.')[0]}.{TARGET}") if "." in path else None


def _walk(config: DictConfig) -> Iterator[Setting | Node]:
    task = bind(OmegaConf.to_container(config.task), Task, "task")
    for name, annotation in sections_of(task).items():
        if name != "task":
            yield from _walk_value(config, name, annotation, True)


def _walk_value(
    config: DictConfig, path: str, annotation: Any, is_required: bool
) -> Iterator[Setting | Node]:
    if component(annotation) is None:
        yield Setting(path, annotation, is_required)
        return
    value = OmegaConf.select(config, path)
    if not isinstance(value, DictConfig):
        return
    target = _class(value[TARGET])
    place = next(each for each in places_of(annotation) if issubclass(target, each.kind))
    hints = setting_annotations(target, place)
    parameters = inspect.signature(target).parameters
    yield Node(path, target, tuple(name for name in parameters if name in value))
    for name, parameter in parameters.items():
        if name in value:
            yield from _walk_value(
                config, f"{path}.{name}", hints[name], parameter.default is parameter.empty
            )


def _class(target: str) -> type:
    module, _, name = target.rpartition(".")
    return getattr(importlib.import_module(module), name)


# ----- one setting -------------------------------------------------------------------------------


def _of_setting(setting: Setting, turn: Iterator[int]) -> Iterator[Fault]:
    path, kinds = setting.path, _kinds(setting.annotation)
    allowed = (*(WORDS[kind] for kind in kinds if kind in WORDS), *_choices(setting.annotation))
    if "whole" in kinds and "fraction" in kinds:
        allowed = tuple(words for words in allowed if words != WORDS["whole"])
    wrong = [
        kind for kind in GIVEN if kind not in kinds and not (kind == "text" and "path" in kinds)
    ]
    value = GIVEN[wrong[next(turn) % len(wrong)]]
    yield Fault(path, value, (f"got {_shown(value)}", *allowed))
    for edge, beyond in _beyond_bounds(setting.annotation, whole="fraction" not in kinds):
        yield Fault(path, beyond, (f"got {_shown(beyond)}", str(edge)))
    if setting.is_required and "." in path:
        yield Fault(path, REMOVED, ("is missing", *allowed))


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else json.dumps(value)


def _kinds(annotation: Any) -> set[str]:
    """The kinds of `WORDS` that an annotation allows."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kinds(arguments[0])
    if origin in (Union, types.UnionType):
        return set().union(*map(_kinds, arguments))
    if origin is Literal:
        return {"choice"}
    if origin in (list, tuple, dict):
        return {"mapping"} if origin is dict else {"list"}
    kinds = {
        bool: {"flag"}, int: {"whole"}, float: {"whole", "fraction"}, str: {"text"}, Path: {"path"},
        type(None): {"null"}, None: {"null"}, list: {"list"}, dict: {"mapping"},
    }  # fmt: skip
    return kinds[annotation]


def _choices(annotation: Any) -> tuple[str, ...]:
    if get_origin(annotation) is Literal:
        return tuple(
            str(choice).lower() if isinstance(choice, bool) else str(choice)
            for choice in get_args(annotation)
        )
    if get_origin(annotation) in (Union, types.UnionType, Annotated):
        return tuple(itertools.chain(*map(_choices, get_args(annotation))))
    return ()


def _beyond_bounds(annotation: Any, whole: bool) -> Iterator[tuple[float, float]]:
    """Each bound of a number, and the first value that it forbids."""
    if get_origin(annotation) in (Union, types.UnionType):
        for argument in get_args(annotation):
            yield from _beyond_bounds(argument, whole)
    if get_origin(annotation) is not Annotated:
        return
    for item in get_args(annotation)[1:]:
        parts = (
            item.metadata
            if isinstance(item, FieldInfo)
            else item
            if isinstance(item, GroupedMetadata)
            else [item]
        )
        for part in parts:
            if isinstance(part, Gt | Lt):
                edge = part.gt if isinstance(part, Gt) else part.lt
                yield edge, edge
            elif isinstance(part, Ge | Le):
                edge, way = (part.ge, -1) if isinstance(part, Ge) else (part.le, 1)
                yield edge, edge + way if whole else math.nextafter(edge, way * math.inf)


# ----- one class ---------------------------------------------------------------------------------


def _of_node(node: Node) -> Iterator[Fault]:
    if node.names:
        name = max(node.names, key=len)
        near = f"{node.path}.{name[:-1]}{name[-1] * 2}"
        yield Fault(near, 1, ("is not a setting", f"did you mean {name}?", *node.names))
    for target in ("torch.nn.Linear", "attnlab.nowhere.Nothing"):
        yield Fault(f"{node.path}.{TARGET}", target, (f"is {target!r}, but ",))
    yield Fault(node.path, GIVEN["text"], ("got 'abc'", TARGET))


def groups() -> Iterator[tuple[str, list[str]]]:
    """Each group of conf/ with its choices; Hydra's own groups have further ones.

    A folder in `experiment/` is no group: its files are `experiment=<folder>/<name>`.
    """
    others = {CONF, *(CONF / "hydra").rglob("*"), *(CONF / "experiment").glob("*")}
    for folder in sorted({file.parent for file in CONF.rglob("*.yaml")} - others):
        yield str(folder.relative_to(CONF)), sorted(file.stem for file in folder.glob("*.yaml"))
