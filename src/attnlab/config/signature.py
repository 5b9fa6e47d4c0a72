"""What a class's constructor takes: its settings, which a config gives, and its run-time arguments.

The base class of a seam names the run-time arguments of all its classes in `runtime_arguments`:
what the program knows and no config can give, such as the width of the query. Every other parameter
is a setting, keyword-only or not.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

PACKAGE = __name__.partition(".")[0]
_NAMED = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)


def settings_of(target: type) -> dict[str, inspect.Parameter]:
    """The named parameters of a constructor that a config may give."""
    others = declared_runtime_arguments(target)
    return {
        name: parameter
        for name, parameter in _named_parameters(target).items()
        if name not in others
    }


def runtime_arguments(target: type) -> list[str]:
    """The named parameters of a constructor that the program gives."""
    declared = declared_runtime_arguments(target)
    return [name for name in _named_parameters(target) if name in declared]


def declared_runtime_arguments(target: type) -> tuple[str, ...]:
    """The run-time arguments that the program passes to the classes of a seam.

    Empty for a class of no seam, such as a callback.
    """
    return getattr(target, "runtime_arguments", ())


def belongs_to_seam(target: type) -> bool:
    """Whether the base class of a seam says what the program gives this class, be it nothing."""
    return hasattr(target, "runtime_arguments")


def takes_more_settings(target: type) -> bool:
    """Whether a constructor has `**kwargs`, which take any setting unchecked."""
    return any(
        parameter.kind is parameter.VAR_KEYWORD
        for parameter in signature_of(target).parameters.values()
    )


def accepted_runtime_arguments(target: type, offered: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the offered run-time arguments that a constructor takes.

    `**kwargs` take what the constructor of a base class names, as they are there to be handed on to
    it.
    """
    names = set(_named_parameters(target))
    if takes_more_settings(target):
        for base in target.__mro__[1:]:
            if "__init__" in vars(base):
                names.update(_named_parameters(base))
    return {name: value for name, value in offered.items() if name in names}


def _named_parameters(target: type) -> dict[str, inspect.Parameter]:
    parameters = signature_of(target).parameters
    return {name: parameter for name, parameter in parameters.items() if parameter.kind in _NAMED}


def signature_of(target: Any) -> inspect.Signature:
    """The signature of a class's constructor.

    Raises ValueError for a class written in C that says nothing.
    """
    return _signature(target)  # a type checker takes no class for what a cache can hash


@functools.cache  # a part is bound and built several times
def _signature(target: type) -> inspect.Signature:
    return inspect.signature(target)


@functools.cache
def constructor_hints(target: type) -> Mapping[str, Any]:
    """The annotations of a class's constructor, with a generic base's type arguments filled in.

    An annotation that cannot be evaluated, such as one that names an import under TYPE_CHECKING, is
    Any.
    """
    arguments: dict[Any, Any] = {}  # {T: int} for a class derived from `Base[int]`
    for base in getattr(target, "__orig_bases__", ()):
        variables = getattr(get_origin(base), "__parameters__", ())
        arguments |= dict(zip(variables, get_args(base), strict=False))

    hints = {}
    for name, parameter in signature_of(target).parameters.items():
        if parameter.annotation is parameter.empty:
            continue
        hint = evaluated(parameter.annotation, _namespace(target, name))
        hints[name] = arguments.get(hint, hint) if isinstance(hint, TypeVar) else hint
    return hints


def evaluated(annotation: Any, namespace: dict[str, Any]) -> Any:
    """The annotation with its names looked up in a module; Any where it has others."""
    holder = SimpleNamespace(__annotations__={"it": annotation})
    try:
        return get_type_hints(holder, namespace, include_extras=True)["it"]
    except Exception:  # an annotation is any expression of the author's
        return Any


def _namespace(target: type, parameter: str) -> dict[str, Any]:
    """The names that the annotation of a constructor's parameter may use."""
    if dataclasses.is_dataclass(target):
        # A dataclass takes the annotation of an inherited field over as text, into a module that
        # may lack its names.
        for base in target.__mro__:
            if parameter in inspect.get_annotations(base):
                return module_names(base)
    return getattr(inspect.unwrap(target.__init__), "__globals__", {})  # type: ignore[misc]


def module_names(target: type) -> dict[str, Any]:
    """The names that a class's annotations may use: those of its module."""
    module = sys.modules.get(target.__module__)
    return {} if module is None else vars(module)


def promised_attributes(target: type) -> Iterator[tuple[type, str, Any]]:
    """(class, name, annotation as written) of each attribute that attnlab's classes promise.

    These are the attributes that a class annotates and gives no value. Whatever derives from such a
    class must have them.
    """
    for base in target.__mro__:
        if base.__module__.partition(".")[0] != PACKAGE:
            continue
        for name, annotation in inspect.get_annotations(base).items():
            if name not in vars(base):
                yield base, name, annotation
