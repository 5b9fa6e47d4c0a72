"""Which class a `_target_` may name: one of attnlab's own, at home in the named module, of the kind asked for."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType

PACKAGE = "attnlab"
_DOTTED_NAME = re.compile(rf"{PACKAGE}(\.[A-Za-z_]\w*){{2,}}")


def allowed_class(target: object, kind: type) -> type | None:
    """The class that `target` names, or None where it is not allowed at a place that takes a `kind`.

    Nothing outside the package is imported, and a name that a module merely imported does not count: a prefix alone
    would still reach functions such as `attnlab.x.torch.hub.load`.
    """
    if not isinstance(target, str) or not _DOTTED_NAME.fullmatch(target):
        return None
    module_name, _, class_name = target.rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and not error.name.startswith(PACKAGE):
            raise  # a dependency is missing, which is no fault of the config
        return None
    found = vars(module).get(class_name)
    if not (inspect.isclass(found) and found.__module__ == module_name):
        return None
    return found if issubclass(found, kind) and not inspect.isabstract(found) else None


def allowed_targets(kind: type) -> list[str]:
    """The dotted names of every class that may stand at a place that takes a `kind`."""
    names = set()
    for module in _modules_beside(kind):
        for name, found in vars(module).items():
            target = f"{module.__name__}.{name}"
            if inspect.isclass(found) and allowed_class(target, kind):
                names.add(target)
    return sorted(names)


def _modules_beside(kind: type) -> Iterator[ModuleType]:
    """The module of `kind` and, where it lies in a package of its own, every module of that package."""
    home = importlib.import_module(kind.__module__)
    yield home
    package = importlib.import_module(kind.__module__.rpartition(".")[0])
    if package.__name__ != PACKAGE:
        for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            if not info.ispkg:
                yield importlib.import_module(info.name)
