"""The class that a node of the config names by its `_target_`."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import types
from collections.abc import Iterable
from typing import Any, get_args

from attnlab.config.signature import PACKAGE, constructor_hints, runtime_arguments, signature_of

TARGET, PARTIAL = "_target_", "_partial_"
NOT_IMPORTED = "it cannot be imported"


class UnfinishedClassError(ValueError):
    """A class of the right kind that leaves out what every one of the kind has."""


def class_named(target: object, kind: type) -> type:
    """The class with this dotted name.

    Raises ValueError if it cannot be imported, or is not a concrete `kind`.
    """
    found = _imported(target)
    if not inspect.isclass(found):
        if kind is object:
            raise ValueError("it is not a class")
        raise ValueError(_not_a_subclass(kind))
    if not issubclass(found, kind):
        raise ValueError(_not_a_subclass(kind))
    if inspect.isabstract(found) and found.__module__.partition(".")[0] == PACKAGE:
        raise ValueError("it is an abstract base class")
    if inspect.isabstract(found):
        raise UnfinishedClassError(_what_it_lacks(found, kind))
    try:
        signature_of(found)
    except ValueError as error:  # of a class written in C
        raise ValueError("its constructor does not say what it takes") from error
    return found


def _imported(target: object) -> Any:
    """What has this dotted name; raises ValueError if there is no such thing."""
    module_name, _, name = target.rpartition(".") if isinstance(target, str) else ("", "", "")
    if not module_name or module_name.startswith("."):
        raise ValueError("it is not the dotted name of a class")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ValueError(
            f"{NOT_IMPORTED} ({error}); install it, or run Python where it finds it"
        ) from error

    found = getattr(module, name, None)
    if found is None:
        raise ValueError(f"{module_name} has no {name}")
    return found


def _not_a_subclass(kind: type) -> str:
    return f"it is not a subclass of {kind.__module__}.{kind.__name__}"


def _what_it_lacks(found: type, kind: type) -> str:
    """The methods and properties for want of which no object can be made of a class."""
    missing = []
    for name in dir(found):  # in alphabetical order
        if getattr(getattr(found, name, None), "__isabstractmethod__", False):
            missing.append(name)
    return f"it lacks {', '.join(missing)}, which every {kind.__name__} has"


def known_targets(kind: type) -> list[str]:
    """The dotted names of attnlab's classes of a kind.

    These are the classes in the module of the kind, or else in the modules beside it. Classes that
    the program itself wraps around the configured one are left out. For a kind from another
    library: the names that its package offers.
    """
    home = importlib.import_module(kind.__module__)
    package = importlib.import_module(kind.__module__.rpartition(".")[0] or kind.__module__)
    if package.__name__.partition(".")[0] != PACKAGE:
        return _offered_classes(home, kind) or _offered_classes(package, kind)

    in_home = _concrete_classes([home], kind)
    if in_home:
        return in_home
    beside = []
    for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not info.ispkg:
            beside.append(importlib.import_module(info.name))
    return _concrete_classes(beside, kind)


def _offered_classes(module: types.ModuleType, kind: type) -> list[str]:
    """The dotted names of a kind's classes that a library's module offers.

    Also classes that it imports from elsewhere count: `torch.optim` offers `torch.optim.adam.Adam`.
    """
    offered = []
    for name, found in vars(module).items():
        is_public = not name.startswith("_")
        if is_public and _is_concrete(found, kind) and found is not kind:
            offered.append(f"{module.__name__}.{name}")
    return sorted(offered)


def _concrete_classes(modules: Iterable[types.ModuleType], kind: type) -> list[str]:
    """The dotted names of a kind's classes that these modules define."""
    names = []
    for module in modules:
        for name, found in vars(module).items():
            if not _is_concrete(found, kind) or found.__module__ != module.__name__:
                continue
            if not _wraps_another(found, kind):
                names.append(f"{module.__name__}.{name}")
    return sorted(names)


def _is_concrete(found: Any, kind: type) -> bool:
    """Whether it is a class of the kind of which an object can be made."""
    return inspect.isclass(found) and issubclass(found, kind) and not inspect.isabstract(found)


def _wraps_another(found: type, kind: type) -> bool:
    """Whether one of the class's run-time arguments makes a component of the kind."""
    hints = constructor_hints(found)
    return any(kind in get_args(hints.get(name)) for name in runtime_arguments(found))
