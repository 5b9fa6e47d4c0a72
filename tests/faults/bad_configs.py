"""Bad configs, made from the schema itself: every setting of several compositions, with every kind of wrong value.

The constructors' annotations say what each setting may be; what a wrong value of it is follows from them here, by rules
of its own and not by those of `attnlab.config.binding`, which are on trial.
"""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, GroupedMetadata, Gt, Le, Lt, MinLen
from bad_case import CLASSIFICATION, TRANSLATION, Case, labelled_file
from pydantic.fields import FieldInfo

# Together they have every section, both tasks and most classes.
COMPOSITIONS: dict[str, tuple[str, ...]] = {
    "translation": TRANSLATION,
    "classification": CLASSIFICATION,
    "luong": (
        *(text for text in TRANSLATION[:-1] if text != "search.size=2"), "model/encoder=lstm",
        "model/decoder=step_then_attend", "model/readout=attentional",
        "model/input_feeding=attentional_hidden", "model/scope=local_p", "training/teacher_forcing=inverse_sigmoid",
        "training/schedule=halving", "training/optimizer=sgd", "search=sample",
    ),
    "files": (
        *(text for text in TRANSLATION[:-1] if not text.startswith("data.") and text != "data=copy"), "data=hub",
        "data.path=pairs.jsonl", "data/tokenizer=bpe", "model/heads=multi", "model/coverage=see2017",
        "training/optimizer=adadelta", "training/schedule=plateau", "sweep=optuna",
    ),
    "dates": (
        *(text for text in TRANSLATION[:-1] if not text.startswith("data")), "data=dates", "data.num_pairs=60",
        "data/tokenizer=unigram", "model/attention=normed_bahdanau", "training/teacher_forcing=linear",
        "training/schedule=cosine", "launcher=joblib",
    ),
}  # fmt: skip

_TEXTS = {"whole": "3", "fraction": "1.5", "flag": "true", "text": "abc", "list": "[1]", "mapping": "{a:1}"}
_EMPTY = "''"
_NOT_FINITE = ("nan", "inf", "-inf")
_BEYOND_64_BITS = ("1" + "0" * 30, "-1" + "0" * 30)


@dataclass(frozen=True)
class Setting:
    """One value of the config that can be changed. owner: the class that takes it, or the task for a section."""

    path: str
    name: str
    annotation: Any
    owner: Any
    has_default: bool


@dataclass(frozen=True)
class Node:
    """A mapping with a target."""

    path: str
    kind: type
    names: tuple[str, ...]


@dataclass(frozen=True)
class Schema:
    settings: list[Setting]
    nodes: list[Node]


def schema_of(overrides: tuple[str, ...]) -> Schema:
    """What a composition consists of."""
    from attnlab.experiment.composition import compose_config, plain, sections_of, task_named

    values = plain(compose_config(overrides))
    task = task_named(values["task"])
    schema = Schema([], [])
    for name, annotation in sections_of(task).items():
        if name != "task":
            _walk(name, name, annotation, values[name], task.name, False, schema)
    return schema


def _walk(path: str, name: str, annotation: Any, value: Any, owner: Any, has_default: bool, schema: Schema) -> None:
    from attnlab.config.binding import component

    kind = component(annotation)
    if kind is None:
        schema.settings.append(Setting(path, name, annotation, owner, has_default))
        return
    if not isinstance(value, Mapping):
        return
    module, _, target = value["_target_"].rpartition(".")
    found = getattr(__import__(module, fromlist=[target]), target)
    schema.nodes.append(Node(path, kind, tuple(value)))
    hints = get_type_hints(found.__init__, include_extras=True)
    for key, parameter in inspect.signature(found).parameters.items():
        if key in value:
            with_default = parameter.default is not parameter.empty
            _walk(f"{path}.{key}", key, hints[key], value[key], found.__name__, with_default, schema)


def cases() -> Iterator[Case]:
    """Every case of wrong values, each setting of a class once."""
    seen: set[tuple[Any, str]] = set()
    seen_nodes: set[type] = set()
    for composition, overrides in COMPOSITIONS.items():
        schema = schema_of(overrides)
        for setting in schema.settings:
            if (setting.owner, setting.name) not in seen:
                seen.add((setting.owner, setting.name))
                yield from _of_setting(composition, setting)
        for node in schema.nodes:
            if node.kind not in seen_nodes:
                seen_nodes.add(node.kind)
                yield from _of_node(composition, node)
    yield from _illegal_pairs()
    yield from _more_arguments()


def _case(
    composition: str, kind: str, overrides: tuple[str, ...], said: tuple[str, ...], expected: str = "refused"
) -> Case:
    return Case(
        name=f"{composition}: {' '.join(overrides)}",
        kind=f"{kind}; refuses before it writes",
        script="train.py",
        arguments=(*COMPOSITIONS[composition], *overrides),
        expected=expected,  # type: ignore[arg-type]
        said=said,
        make=_files,
    )


def _files(folder: Path) -> None:
    labelled_file(folder)
    (folder / "pairs.jsonl").write_text('{"source": "a b", "target": "c d"}\n' * 60, encoding="utf-8")


# ----- one setting ---------------------------------------------------------------------------------------------------


def _of_setting(composition: str, setting: Setting) -> Iterator[Case]:
    path, allowed = setting.path, _kinds(setting.annotation)
    said = (path,)
    for kind, text in _TEXTS.items():
        if kind not in allowed and not (kind == "text" and "choice" in allowed):
            yield _case(composition, "wrong type", (f"{path}={text}",), said)
    if "choice" in allowed:
        yield _case(composition, "wrong type", (f"{path}=abc",), said)
    if "null" not in allowed:
        yield _case(composition, "null", (f"{path}=null",), said)
    if not allowed & {"text", "choice"}:
        yield _case(composition, "empty text", (f"{path}={_EMPTY}",), said)
    if allowed & {"whole", "fraction"}:
        for text in _NOT_FINITE:
            yield _case(composition, "not finite", (f"{path}={text}",), said)
        for text in _out_of_range(setting.annotation):
            yield _case(composition, "out of range", (f"{path}={text}",), said)
    if "whole" in allowed and "text" not in allowed:
        for text in _BEYOND_64_BITS:
            yield _case(composition, "huge", (f"{path}={text}",), said)
    if not setting.has_default and "." in path:
        yield _case(composition, "missing", (f"~{path}",), said)
    if "mapping" not in allowed:
        yield _case(composition, "key below a value", (f"{path}.x=1",), said)
        yield _case(composition, "several values without -m", (f"{path}=1,2",), said)
    yield _case(composition, "reference to nothing", (f"{path}=${{nowhere.at_all}}",), ("nowhere.at_all",))
    yield _case(composition, "near key", (f"{path}s=1",), (f"{path}s is not a setting",))


def _kinds(annotation: Any) -> set[str]:
    """Which of the kinds of `_TEXTS` an annotation allows, `null` and `choice` beside them."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kinds(arguments[0])
    if origin in (Union, types.UnionType):
        return set().union(*map(_kinds, arguments))
    if origin is Literal:
        return {"choice"}
    if origin in (list, tuple) or annotation in (list, tuple):
        return {"list"}
    if origin is dict or annotation is dict:
        return {"mapping"}
    return {
        bool: {"flag"},
        int: {"whole"},
        float: {"whole", "fraction"},
        str: {"text"},
        Path: {"text"},
        type(None): {"null"},
        None: {"null"},
    }[annotation]


def _out_of_range(annotation: Any) -> list[str]:
    """The first values outside of each bound, and one far outside."""
    texts = []
    whole = "fraction" not in _kinds(annotation)
    for bound in _bounds(annotation):
        if isinstance(bound, Ge | Gt):
            edge = bound.ge if isinstance(bound, Ge) else bound.gt
            texts += [_number(edge if isinstance(bound, Gt) else _below(edge, whole)), "-1000000"]
        else:
            edge = bound.le if isinstance(bound, Le) else bound.lt
            texts += [_number(edge if isinstance(bound, Lt) else -_below(-edge, whole)), "1000000000000000"]
    return list(dict.fromkeys(texts))


def _bounds(annotation: Any) -> list[Any]:
    if get_origin(annotation) in (Union, types.UnionType):
        numbers = [argument for argument in get_args(annotation) if _kinds(argument) & {"whole", "fraction"}]
        return _bounds(numbers[0]) if len(numbers) == 1 else []
    if get_origin(annotation) is not Annotated:
        return []
    found = []
    for item in get_args(annotation)[1:]:
        parts = item.metadata if isinstance(item, FieldInfo) else item if isinstance(item, GroupedMetadata) else [item]
        found += [part for part in parts if isinstance(part, Ge | Gt | Le | Lt) and not isinstance(part, MinLen)]
    return found


def _below(edge: float, whole: bool) -> float:
    return edge - 1 if whole else math.nextafter(edge, -math.inf)


def _number(value: float) -> str:
    return repr(value)


# ----- nodes and their targets ---------------------------------------------------------------------------------------

_HOSTILE = (
    "os.system",
    "builtins.eval",
    "subprocess.Popen",
    "torch.hub.load",
    "pickle.loads",
    "attnlab",
    "attnlab.model.encoder.nn.Linear",
    "attnlab.model.encoder.torch.load",
    "attnlab.config.allowed.importlib.import_module",
    "attnlab.errors.ExperimentError",
    "attnlab.nowhere.Nothing",
    "attnlab..model",
    "../../os.system",
)
_ODD_TARGETS = ("null", "1", "true", _EMPTY, "[os.system]", "{_target_:os.system}")
_HYDRAS_KEYS = ("_partial_=true", "_args_=[pwned]", "_recursive_=false", "_convert_=all", "__class__=os.system")


def _of_node(composition: str, node: Node) -> Iterator[Case]:
    path = node.path
    for target in _HOSTILE:
        yield _case(composition, "hostile target", (f"{path}._target_={target}",), (f"{path}._target_",))
    for text in _ODD_TARGETS:
        yield _case(composition, "odd target", (f"{path}._target_={text}",), (path,))
    for pair in _HYDRAS_KEYS:
        yield _case(composition, "Hydra's keys", (f"+{path}.{pair}",), (f"{path}.{pair.partition('=')[0]}",))
    yield _case(composition, "unknown key", (f"+{path}.nonsense=1",), (f"{path}.nonsense",))
    yield _case(composition, "unknown key", (f"+{path}.nested.deep._target_=os.system",), (f"{path}.nested",))
    yield _case(composition, "no target", (f"~{path}._target_",), (path,))
    if "." in path:
        for text in ("3", "abc", "[1]", "true"):
            yield _case(composition, "value for a node", (f"{path}={text}",), (path,))
        yield _case(composition, "node by reference", (f"{path}=${{paths}}",), (path,))


# ----- pairs, and what is no setting ---------------------------------------------------------------------------------


def _illegal_pairs() -> Iterator[Case]:
    pairs: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
        "nothing to merge": (
            ("model.encoder.bidirectional=false", "model.encoder.merge=sum"),
            ("model.encoder.merge",),
        ),
    }
    for overrides, said in pairs.values():
        yield _case("translation", "illegal pair", overrides, said)


def _more_arguments() -> Iterator[Case]:
    yield _case("translation", "unreadable", ("seed",), ("seed",))
