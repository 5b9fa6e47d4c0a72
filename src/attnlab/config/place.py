"""What a place of the config takes, as the annotation of its setting says it."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Union, get_args, get_origin

from attnlab.config.part import Part
from attnlab.config.signature import belongs_to_seam, constructor_hints, settings_of
from attnlab.config.target import PARTIAL, TARGET, class_named


@dataclasses.dataclass(frozen=True, eq=False)  # hashable, as a part of an annotation is
class SettingTypes:
    """Annotations for the settings of a library's classes, which annotate them too loosely.

    `Annotated[Part[torch.optim.Optimizer], SettingTypes({"lr": PositiveFloat})]`: torch itself says
    `float | Tensor`. A class that has another kind of value there (Adafactor's `eps` is a pair)
    keeps its own annotation.
    """

    by_name: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Place:
    """What a place of the config takes: a node for a class of this kind.

    takes_partial: whether the program calls the class itself, with its first parameter and the
        settings of a node with `_partial_: true`.
    types: of settings, where the class's own annotations say less.
    caller_gives_rest: whether the settings that a node leaves out come later, from who calls it.
    """

    kind: type
    takes_partial: bool = False
    types: SettingTypes = SettingTypes({})
    caller_gives_rest: bool = False


def places_of(annotation: Any) -> list[Place]:
    """What a setting with this annotation takes as a node; empty for plain values."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _with_setting_types(places_of(arguments[0]), arguments[1:])
    if origin in (Union, types.UnionType):
        return [place for argument in arguments for place in places_of(argument)]
    if origin is Part:
        kind = arguments[0]
        # The base class of a seam says what its classes are given; a library's class does not.
        return [Place(kind, takes_partial=not belongs_to_seam(kind))]
    if not inspect.isclass(annotation) or issubclass(annotation, Enum):
        return []

    is_of_python = annotation.__module__.split(".")[0] in sys.stdlib_module_names
    return [] if is_of_python else [Place(annotation)]


def _with_setting_types(places: list[Place], metadata: Sequence[Any]) -> list[Place]:
    """The places, with the SettingTypes of an `Annotated[...]` where it has some."""
    for item in metadata:
        if isinstance(item, SettingTypes):
            return [dataclasses.replace(place, types=item) for place in places]
    return places


def component(annotation: Any) -> type | None:
    """The class that a nested node must be, or None for plain values.

    It is X for the annotations `X` and `Part[X]`, also with `| None`; the first of several.
    """
    places = places_of(annotation)
    return places[0].kind if places else None


def setting_annotations(target: type, place: Place | None = None) -> dict[str, Any]:
    """{setting: its annotation} of a class, as a node in this place of the config may give them."""
    hints = constructor_hints(target)
    annotations = {name: hints.get(name, Any) for name in settings_of(target)}
    if place is None:
        return annotations

    if place.takes_partial:
        annotations.pop(first_parameter(target), None)
    for name, annotation in place.types.by_name.items():
        if name in annotations and _is_pair(annotations[name]) == _is_pair(annotation):
            annotations[name] = annotation
    return annotations


def _is_pair(annotation: Any) -> bool:
    return get_origin(annotation) is tuple


def first_parameter(target: type) -> str:
    """What the program gives a class that it calls itself: `params` for an optimizer of torch."""
    return next(iter(settings_of(target)), "arguments")


def fitting_place(places: Sequence[Place], node: Any) -> Place:
    """The place that takes the class of a node; the first one if none does."""
    if len(places) == 1 or not isinstance(node, Mapping):
        return places[0]
    for place in places:
        try:
            class_named(node.get(TARGET), place.kind)
        except ValueError:
            continue
        return place

    # The class is none of these, and the message names the kind that the user most likely meant.
    is_partial = node.get(PARTIAL) is True
    for place in places:
        if place.takes_partial == is_partial:
            return place
    return places[0]


def takes_function(annotation: Any) -> bool:
    """Whether a setting takes a function, which a node with `_partial_: true` makes."""
    if get_origin(annotation) in (Union, types.UnionType):
        return any(takes_function(argument) for argument in get_args(annotation))
    return Callable in (annotation, get_origin(annotation))


def plain_alternatives(annotation: Any) -> list[Any]:
    """The alternatives of a union for a plain value: [str] for `str | SomeClass | None`."""
    if get_origin(annotation) not in (Union, types.UnionType):
        return []
    plain = []
    for alternative in get_args(annotation):
        if alternative is not type(None) and component(alternative) is None:
            plain.append(alternative)
    return plain


def entries_with_nodes(annotation: Any) -> Any:
    """X of `dict[str, X]` where X is a class that a node names; None for all else."""
    if get_origin(annotation) is not dict:
        return None
    _, of_entries = get_args(annotation)
    return of_entries if places_of(of_entries) else None
