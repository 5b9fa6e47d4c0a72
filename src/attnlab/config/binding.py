"""Binding of config nodes to constructors: the constructor's signature is the schema.

A `_target_` may name any importable class of the right base, also one of the user's own. Its node
is checked against the class's signature before anything is read or built, and all problems are
reported together, each with its config path, what was given and what is allowed.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Union, get_args

from pydantic import ValidationError

from attnlab.config.annotation_text import allowed_value, with_article
from attnlab.config.part import Part, construct
from attnlab.config.place import (
    Place,
    entries_with_nodes,
    first_parameter,
    fitting_place,
    places_of,
    plain_alternatives,
    setting_annotations,
    takes_function,
)
from attnlab.config.plain_value import (
    number_problems,
    plain_adapter,
    plain_value_problems,
    validated,
)
from attnlab.config.renamed import new_name, new_target
from attnlab.config.signature import (
    belongs_to_seam,
    declared_runtime_arguments,
    settings_of,
    takes_more_settings,
)
from attnlab.config.target import (
    PARTIAL,
    TARGET,
    UnfinishedClassError,
    class_named,
    known_targets,
)
from attnlab.errors import ExperimentError, show

# Further keys by which Hydra's own `instantiate` would build a node another way.
HYDRA_KEYS = ("_args_", "_convert_", "_recursive_")


def bind_sections(config: Mapping[str, Any], sections: Mapping[str, Any]) -> dict[str, Any]:
    """Bind the top level of a config, `sections` being the annotation of each key.

    Returns each section's value: an object, a Part, or a plain value. Raises ExperimentError with
    every problem.
    """
    with _all_problems() as problems:
        return _bind_all(config, sections, (), "", problems)


def bind(node: Any, kind: type, path: str = "") -> Any:
    """The object, or the Part, of one node with a `_target_` that must be a `kind`.

    Raises ExperimentError with every problem.
    """
    with _all_problems() as problems:
        return _bind_node(node, Place(kind), path, problems)


def bind_settings(given: Mapping[str, Any], target: type) -> dict[str, Any]:
    """The checked values of a constructor's settings.

    The checks are those of a node's settings. Raises ExperimentError with every problem.
    """
    with _all_problems() as problems:
        return _bind_settings(given, target, Place(object), "", problems)


@contextmanager
def _all_problems() -> Iterator[list[str]]:
    """A list for problems, which are raised together at the end of the block.

    Every function below adds to it what it finds, and goes on with None for the value.
    """
    problems: list[str] = []
    yield problems
    if problems:
        raise ExperimentError(problems)


# ----- one node ----------------------------------------------------------------------------------


def _bind_node(node: Any, place: Place, path: str, problems: list[str]) -> Any:
    """The object, or the Part, of a node."""
    target = node.get(TARGET) if isinstance(node, Mapping) else None
    if target is None:
        problems.append(_not_a_node(node, place.kind, path))
        return None
    try:
        found = class_named(target, place.kind)
    except ValueError as error:
        problems.append(_wrong_target(target, place.kind, path, error))
        return None

    problems_before = len(problems)
    makes_part = _makes_part(node, found, place, path, problems)
    if makes_part and place.kind is object:
        place = dataclasses.replace(place, caller_gives_rest=True)
    settings = {key: value for key, value in node.items() if key not in (TARGET, PARTIAL)}
    values = _bind_settings(settings, found, place, path, problems)
    if len(problems) > problems_before:
        return None

    if makes_part:
        return Part(found, path, **values)
    try:
        return construct(found, path, values)
    except ExperimentError as error:
        problems += error.problems
        return None


def _not_a_node(value: Any, kind: type, path: str) -> str:
    """The problem with a value where a mapping with a `_target_` must be."""
    problem = f"{path} must be {allowed_value(kind)}, got {show(value)}"
    if isinstance(value, str):
        return f"{problem}; to choose one by name, write slashes, as in model/attention=dot"
    return problem


def _wrong_target(target: Any, kind: type, path: str, error: ValueError) -> str:
    """The problem with a `_target_` that is no class of the kind."""
    moved = new_target(target)
    if moved is not None:
        return f"{path}.{TARGET}: {target} is now {moved}"
    if kind is object:
        return f"{path}.{TARGET} must be a class, got {show(target)}: {error}"

    reason = f"{path}.{TARGET} is {show(target)}, but {error}"
    if isinstance(error, UnfinishedClassError):
        return reason  # it is the right one
    # The reason stands before the list of classes, which is long.
    known = known_targets(kind)
    allowed = with_article(kind)
    if known:
        allowed = f"one of {', '.join(known)}, or {with_article(kind)} of your own"
    close = difflib.get_close_matches(str(target), [*_beside(target, kind), *known], n=1)
    if close:
        return f"{reason}; did you mean {close[0]}? It must be {allowed}"
    return f"{reason}; it must be {allowed}"


def _beside(target: Any, kind: type) -> list[str]:
    """The classes of the kind in the module that a `_target_` names, where it is imported."""
    module_name, _, _ = str(target).rpartition(".")
    if module_name not in sys.modules:
        return []

    def is_choice(value: Any) -> bool:
        return inspect.isclass(value) and issubclass(value, kind) and not inspect.isabstract(value)

    found = inspect.getmembers(sys.modules[module_name], is_choice)
    return [f"{each.__module__}.{each.__name__}" for _, each in found]


def _makes_part(
    node: Mapping[str, Any], target: type, place: Place, path: str, problems: list[str]
) -> bool:
    """Whether a node gives a Part, which the program calls, and no object."""
    given = node.get(PARTIAL, False)
    is_called = place.takes_partial or belongs_to_seam(place.kind)
    where = _inside(path, PARTIAL)
    if not isinstance(given, bool):
        problems.append(f"{where} must be true or false, got {show(given)}")
    elif place.takes_partial and not given:
        problems.append(
            f"{where} must be true: the program itself gives {target.__name__} its "
            f"{first_parameter(target)}"
        )
    elif given and not is_called and place.kind is not object:
        problems.append(
            f"{where} must be false: it makes a function here, which is no {place.kind.__name__}"
        )
    return is_called or given is True


# ----- the settings of a node --------------------------------------------------------------------


def _bind_settings(
    given: Mapping[str, Any], target: type, place: Place, path: str, problems: list[str]
) -> dict[str, Any]:
    """The checked values of the settings that a node gives a class."""
    annotations = setting_annotations(target, place)
    parameters = settings_of(target)

    optional = []
    hints_of_missing = {}
    for name in annotations:
        parameter = parameters[name]
        if place.caller_gives_rest or parameter.default is not parameter.empty:
            optional.append(name)
        hints_of_missing[name] = _hint_of_missing(parameter, target)

    given = _without_hydra_keys(given, annotations, path, problems)
    unnamed = _unnamed_settings(given, annotations, target)
    # Built first: the problems stand in this order.
    built = {}
    for name, value in unnamed.items():
        built[name] = _built(value, _inside(path, name), problems)
    named = {name: value for name, value in given.items() if name not in unnamed}
    return _bind_all(named, annotations, optional, path, problems, hints_of_missing) | built


def _hint_of_missing(parameter: inspect.Parameter, target: type) -> str:
    """What to add to the message if this setting is missing.

    The author may have meant a keyword-only parameter for the program to give.
    """
    offered = ", ".join(declared_runtime_arguments(target))
    if offered and parameter.kind is parameter.KEYWORD_ONLY:
        return f"; the program itself gives {offered}"
    return ""


def _without_hydra_keys(
    given: Mapping[str, Any], settings: Iterable[str], path: str, problems: list[str]
) -> dict[str, Any]:
    """The settings without the keys of Hydra's `instantiate`, each of which is a problem.

    Also `**kwargs` never get them: to a constructor they would be raw data.
    """
    of_hydra = [name for name in HYDRA_KEYS if name in given and name not in settings]
    for name in of_hydra:
        problems.append(_of_hydra(name, path))
    return {name: value for name, value in given.items() if name not in of_hydra}


def _of_hydra(key: str, path: str) -> str:
    return (
        f"{_inside(path, key)} is a key of Hydra's `instantiate`, which attnlab does not use to "
        "build a part; leave it out"
    )


def _unnamed_settings(
    given: Mapping[str, Any], settings: Iterable[str], target: type
) -> dict[str, Any]:
    """The given settings that the constructor takes by `**kwargs`."""
    if not takes_more_settings(target):
        return {}
    reserved = {*settings, *declared_runtime_arguments(target)}
    unnamed = {}
    for name, value in given.items():
        if isinstance(name, str) and name not in reserved:
            unnamed[name] = value
    return unnamed


def _bind_all(
    given: Mapping[str, Any],
    annotations: Mapping[str, Any],
    optional: Sequence[str],
    path: str,
    problems: list[str],
    hints_of_missing: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """The checked values of the given settings, by name.

    hints_of_missing: {name: what to add to the message if that setting is missing}.
    """
    for key in given:
        if key not in annotations:
            problems.append(_unknown(key, path, list(annotations)))

    values = {}
    for name, annotation in annotations.items():
        place = _inside(path, name)
        if name in given:
            values[name] = _bind_value(given[name], annotation, place, problems)
        elif name not in optional:
            hint = hints_of_missing.get(name, "")
            problems.append(f"{place} is missing; it must be {allowed_value(annotation)}{hint}")
    return values


def _unknown(key: Any, path: str, names: list[str]) -> str:
    """The problem with a key that is no setting of these names."""
    place = _inside(path, str(key))
    renamed = new_name(place)
    if renamed is not None and renamed.rpartition(".")[2] in names:
        return f"{place} is now {renamed}"

    close = difflib.get_close_matches(str(key), names, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    settings = ", ".join(sorted(names)) or "no settings"
    return f"{place} is not a setting; {hint}{path or 'the config'} has: {settings}"


def _inside(path: str, name: str) -> str:
    """The config path of a setting, given the path of its node, which is empty at the top."""
    return f"{path}.{name}" if path else name


# ----- the value of a setting --------------------------------------------------------------------


def _bind_value(value: Any, annotation: Any, path: str, problems: list[str]) -> Any:
    """The checked value of one setting."""
    if annotation is Any:  # the parameter has no annotation
        return _built(value, path, problems)
    gives_function = isinstance(value, Mapping) and value.get(PARTIAL) is True
    if gives_function and takes_function(annotation):
        return _built(value, path, problems)
    of_entries = entries_with_nodes(annotation)
    if of_entries is not None:
        return _bind_entries(value, of_entries, path, problems)

    places = places_of(annotation)
    if places:
        if value is None and type(None) in get_args(annotation):
            return None
        plain = plain_alternatives(annotation)
        is_node = isinstance(value, Mapping) and TARGET in value
        if is_node or not plain:
            return _bind_node(value, fitting_place(places, value), path, problems)
        annotation = Union[tuple(plain)]  # noqa: UP007
    return _bind_plain_value(value, annotation, path, problems)


def _bind_plain_value(value: Any, annotation: Any, path: str, problems: list[str]) -> Any:
    adapter = plain_adapter(annotation)
    if adapter is None:
        return _built(value, path, problems)
    try:
        found = validated(value, adapter)
    except (ValidationError, TypeError) as error:
        problems += plain_value_problems(value, annotation, path, error)
        return None
    too_large = number_problems(value, path)
    problems += too_large
    return None if too_large else found


def _bind_entries(value: Any, annotation: Any, path: str, problems: list[str]) -> Any:
    """The parts of a mapping from names of the user's to nodes."""
    if not isinstance(value, Mapping) or TARGET in value:
        kind = annotation.__name__
        problems.append(
            f"{path} must be a mapping of names to {kind}s, {{}} for none, got {show(value)}; to "
            f"add one, write +{path}.<name>.{TARGET}=<a {kind}>"
        )
        return None
    entries = {}
    for name, node in value.items():
        entries[name] = _bind_value(node, annotation, f"{path}.{name}", problems)
    return entries


def _built(value: Any, path: str, problems: list[str]) -> Any:
    """A value without an annotation, in which each node with a `_target_` is built."""
    if isinstance(value, Mapping) and TARGET in value:
        return _bind_node(value, Place(object), path, problems)
    if isinstance(value, Mapping):
        return {name: _built(inner, f"{path}.{name}", problems) for name, inner in value.items()}
    if isinstance(value, list):
        return [_built(inner, f"{path}[{index}]", problems) for index, inner in enumerate(value)]
    return value
