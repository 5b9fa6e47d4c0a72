"""Part: a class with its configured values, built once the run-time arguments are known."""

from __future__ import annotations

import inspect
import sys
import traceback
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin

from attnlab.config.signature import (
    PACKAGE,
    accepted_runtime_arguments,
    evaluated,
    module_names,
    promised_attributes,
    signature_of,
    takes_more_settings,
)
from attnlab.errors import ExperimentError, show

T = TypeVar("T")


class Part(Generic[T]):
    """A class with its configured values; calling it with the run-time arguments makes the object.

    The program gives the run-time arguments (vocabulary sizes, the width of the query, ...), and a
    config never does; `runtime_arguments` of the seam's base class names them. The constructor gets
    those that it takes. `Part(BahdanauScore, size=128)(query_size=512, key_size=512)` is
    `BahdanauScore(size=128, query_size=512, key_size=512)`. `path` is the place in the config, for
    error messages.

    A node with `_partial_: true` is a Part, too, and is called as `functools.partial` is:
    `Part(torch.optim.SGD, lr=0.1)(model.parameters())`.
    """

    def __init__(self, target: type[T], path: str = "", /, **values: Any) -> None:
        self.target = target
        self.path = path
        self.values = values

    def __call__(self, *first: Any, **runtime: Any) -> T:
        accepted = accepted_runtime_arguments(self.target, runtime)
        return construct(self.target, self.path, self.values | accepted, first)

    def with_inner_parts(self) -> Iterator[Part[Any]]:
        """The Part itself, and each one among its values and theirs."""
        yield self
        for value in self.values.values():
            if isinstance(value, Part):
                yield from value.with_inner_parts()


def construct(
    target: type[T], path: str, arguments: Mapping[str, Any], first: Sequence[Any] = ()
) -> T:
    """Call the constructor.

    first: arguments by position, before those that have names.

    Raises ExperimentError, with the config path, where the constructor fails or takes other
    run-time arguments than it is given, and where the object lacks an attribute that all of its
    kind have.
    """
    signature = signature_of(target)
    parameters = signature.parameters
    positional, named = _by_position(parameters, arguments)
    positional = [*first, *positional]
    try:
        signature.bind(*positional, **named)
    except TypeError as error:
        given = ", ".join(arguments) or "nothing"
        raise ExperimentError(
            f"{path}: {target.__name__} does not fit here: its constructor is given {given}, but "
            f"{error}"
        ) from error

    _raise_if_any(path, chain(_missing_class_attributes(target), _values_for_methods(target)))
    try:
        made = target(*positional, **named)
    except ValueError as error:
        raise ExperimentError(_with_path(str(error), path, parameters)) from error
    except (ExperimentError, ImportError, MemoryError):
        raise  # of a package that is missing, those who bind callbacks and loggers say more
    except Exception as error:
        # Lightning's, which those who bind its parts know
        if type(error).__name__ == "MisconfigurationException":
            raise
        # What `**kwargs` took is checked only where the constructor hands it on.
        if isinstance(error, TypeError) and takes_more_settings(target):
            raise ExperimentError(
                f"{path}: {target.__name__} cannot be made of {', '.join(named)}: {error}"
            ) from error
        # Sizes that are too large for the machine, as torch says it of attnlab's own models.
        is_ours = target.__module__.partition(".")[0] == PACKAGE
        if is_ours and isinstance(error, RuntimeError | OverflowError):
            raise
        place = f"{path}: " if path else ""
        raise ExperimentError(
            f"{place}{target.__name__} cannot be made: {failure_of(error, target)}"
        ) from error
    _raise_if_any(path, _skipped_base_constructor(made))
    _raise_if_any(path, _wrong_attributes(made))
    return made


def _with_path(message: str, path: str, parameters: Collection[str]) -> str:
    """A constructor's message with the config path before it.

    `size must be ...` becomes `model.size must be ...` where `size` is a parameter, and any other
    message follows a colon.
    """
    if not path:
        return message
    first_word = message.split(" ", 1)[0].split(".", 1)[0]
    separator = "." if first_word in parameters else ": "
    return f"{path}{separator}{message}"


def failure_of(error: Exception, target: type) -> str:
    """An error raised by the code of a class, in words: `KeyError: 'x' (mine.py, line 3)`.

    It names the last line of the class's file that led to the error.
    """
    frames = traceback.extract_tb(error.__traceback__)
    file = getattr(sys.modules.get(target.__module__), "__file__", None)
    in_file = [frame for frame in frames if frame.filename == file]
    frame = in_file[-1] if in_file else frames[-1]

    text = type(error).__name__
    message = " ".join(str(error).split())
    if message:
        text = f"{text}: {message}"
    return f"{text} ({Path(frame.filename).name}, line {frame.lineno})"


def call(target: type[T], arguments: Mapping[str, Any]) -> T:
    """Call the constructor with arguments by name, of which it may take some by position alone."""
    positional, named = _by_position(signature_of(target).parameters, arguments)
    return target(*positional, **named)


def _by_position(
    parameters: Mapping[str, inspect.Parameter], arguments: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments that a constructor takes by position alone, and the others by name."""
    named = dict(arguments)
    positional = []
    for name, parameter in parameters.items():
        if parameter.kind is parameter.POSITIONAL_ONLY:
            value = named.pop(name, parameter.default)
            if value is parameter.empty:
                break
            positional.append(value)
    return positional, named


def _raise_if_any(path: str, problems: Iterator[str]) -> None:
    """Raise ExperimentError with all problems of one object in one sentence."""
    found = "; ".join(problems)
    if found:
        raise ExperimentError(f"{path}: {found}" if path else found)


def _missing_class_attributes(target: type) -> Iterator[str]:
    """What a class lacks that its constructor may read already."""
    for _, name, annotation in promised_attributes(target):
        if "ClassVar" in str(annotation) and not hasattr(target, name):
            yield (
                f"{target.__name__} lacks {name}, which every {_seam(target)} sets as an attribute "
                "of its class"
            )


def _values_for_methods(target: type) -> Iterator[str]:
    """A sentence for each method of a base class of ours that a class gives a plain value."""
    for base in target.__mro__:
        if base.__module__.partition(".")[0] != PACKAGE:
            continue
        for name, method in vars(base).items():
            given = getattr(target, name)
            if inspect.isfunction(method) and not callable(given):
                parameters = ", ".join(inspect.signature(method).parameters)
                yield (
                    f"{target.__name__} has {name} = {given!r}, but {base.__name__} defines a "
                    f"method, {name}({parameters})"
                )


def _skipped_base_constructor(made: object) -> Iterator[str]:
    """A sentence for a torch module without what the constructor of `nn.Module` gives it."""
    torch = sys.modules.get("torch")  # importing it takes seconds; a module's own code has done so
    if torch is not None and isinstance(made, torch.nn.Module) and "_modules" not in vars(made):
        yield f"{type(made).__name__}.__init__ must call super().__init__()"


def _wrong_attributes(made: object) -> Iterator[str]:
    """A sentence for each problem with the attributes that an object's base classes promise.

    An attribute may be missing, or be of another type than promised.
    """
    target = type(made)
    missing = []
    seen: set[str] = set()
    for base, name, annotation in promised_attributes(target):
        if name in seen:  # a class may widen what its base promises
            continue
        seen.add(name)
        if not hasattr(made, name):
            missing.append(name)
            continue
        allowed = _other_kinds(getattr(made, name), evaluated(annotation, module_names(base)))
        if allowed:
            given = show(getattr(made, name))
            yield f"{target.__name__} has {given} for {name}, which must be {' or '.join(allowed)}"
    if missing:
        yield (
            f"{target.__name__} lacks {', '.join(missing)}, which every {_seam(target)} sets in "
            "its constructor"
        )


def _seam(target: type) -> str:
    """The name of the class of attnlab that a class derives from."""
    return next(
        base.__name__ for base in target.__mro__ if base.__module__.partition(".")[0] == PACKAGE
    )


# What an attribute of one of Python's own types may be, and the words for it.
_PLAIN: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "text"),
}


def _other_kinds(value: Any, annotation: Any) -> list[str]:
    """What an attribute must be, where the value is nothing of that.

    Empty too where an annotation is neither some words, text, numbers or lists of text, nor a class
    of attnlab.
    """
    alternatives = (annotation,)
    if get_origin(annotation) in (Union, types.UnionType):
        alternatives = get_args(annotation)
    names: list[str] = []
    for each in alternatives:
        if get_origin(each) is Literal:
            fits = value in get_args(each)
            names += map(str, get_args(each))
        elif each is type(None):
            fits = value is None
            names.append("None")
        elif inspect.isclass(each) and each in _PLAIN:
            kinds, words = _PLAIN[each]
            fits = isinstance(value, kinds) and isinstance(value, bool) == (each is bool)
            names.append(words)
        elif get_origin(each) in (list, Sequence) and get_args(each) == (str,):
            is_list = isinstance(value, get_origin(each)) and not isinstance(value, str)
            fits = is_list and all(isinstance(entry, str) for entry in value)
            names.append("a list of text")
        elif inspect.isclass(each) and each.__module__.partition(".")[0] == PACKAGE:
            fits = isinstance(value, each)
            names.append(each.__name__)
        else:
            return []
        if fits:
            return []
    return names
