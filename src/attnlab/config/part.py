"""Part: a class with the values that its config gave, to be built when the run-time arguments are known."""

from __future__ import annotations

import inspect
from typing import Any, Generic, TypeVar

from attnlab.errors import ExperimentError

T = TypeVar("T")


class Part(Generic[T]):
    """A class with its configured values; calling it with the run-time arguments makes the object.

    The keyword-only parameters of a constructor are its run-time arguments: the program gives them (vocabulary sizes,
    the width of the query, ...), and a config never does. `Part(BahdanauScore, size=128)(query_size=512, key_size=512)`
    is `BahdanauScore(size=128, query_size=512, key_size=512)`. `path` is the place in the config, for error messages.
    """

    def __init__(self, target: type[T], /, path: str = "", **values: Any) -> None:
        self.target = target
        self.path = path
        self.values = values

    def __call__(self, **runtime: Any) -> T:
        return construct(self.target, self.path, {**self.values, **runtime})


def construct(target: type[T], path: str, arguments: dict[str, Any]) -> T:
    """Call the constructor.

    Raises ExperimentError, with the config path, where the constructor raises a ValueError or takes other run-time
    arguments than it is given.
    """
    signature = inspect.signature(target)
    try:
        signature.bind(**arguments)
    except TypeError as error:
        raise ExperimentError(
            f"{path}: {target.__name__} does not fit here: its constructor is given {', '.join(arguments)}, but {error}"
        ) from error
    try:
        return target(**arguments)
    except ValueError as error:
        message = str(error)
        first_word = message.split(" ", 1)[0].split(".", 1)[0]
        separator = "" if not path else "." if first_word in signature.parameters else ": "
        raise ExperimentError(f"{path}{separator}{message}") from error
