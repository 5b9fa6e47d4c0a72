"""A component that waits for what is only known at run time."""

from __future__ import annotations

import inspect
from typing import Any, Generic, TypeVar

from attnlab.errors import ExperimentError

T = TypeVar("T")

# What a constructor may ask for as a keyword-only argument, and a config may therefore never set.
RUNTIME_ARGUMENTS = frozenset(
    {
        "backward_size",
        "context_size",
        "decoder_shape",
        "embedding_size",
        "encoder_shape",
        "head",
        "hidden_size",
        "input_feeding",
        "key_size",
        "mechanism",
        "num_classes",
        "padding",
        "query_size",
        "readout",
        "score",
        "source_vocabulary_size",
        "target_vocabulary_size",
        "value_size",
    }
)


class Part(Generic[T]):
    """A class with the values that a config gave it; calling it with the run-time arguments makes the object.

    `Part(BahdanauScore, size=128)(query_size=512, key_size=512)` is `BahdanauScore(size=128, query_size=512, ...)`.
    `path` is the place in the config, named when the constructor refuses its arguments.
    """

    def __init__(self, target: type[T], /, path: str = "", **values: Any) -> None:
        self.target = target
        self.path = path
        self.values = values

    def __call__(self, **runtime: Any) -> T:
        return construct(self.target, self.path, {**self.values, **runtime})

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.values.items())
        return f"Part({self.target.__name__}, {values})"


def construct(target: type[T], path: str, arguments: dict[str, Any]) -> T:
    """Call the constructor; what it refuses by ValueError becomes an ExperimentError that names the config path."""
    try:
        return target(**arguments)
    except ValueError as error:
        message = str(error)
        first_word = message.split(" ", 1)[0].split(".", 1)[0]
        is_field = first_word in inspect.signature(target).parameters
        separator = "" if not path else "." if is_field else ": "
        raise ExperimentError(f"{path}{separator}{message}") from error
