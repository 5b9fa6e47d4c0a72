"""A stranger's attention module, called with made-up sentences.

It is called as `forward(query, keys, values, mask)`. Axes: B sentences, T queries, S source tokens,
D and V numbers of a key and of a value.
"""

from __future__ import annotations

import copy
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.errors import ExperimentError

SENTENCES, QUERIES = 3, 4
FEWEST_TOKENS = 7  # of the longest sentence
PADS = (0, 2, 4)  # of the sentences
CALL = "forward(query, keys, values, mask)"


@dataclass(frozen=True)
class Sizes:
    """query, key, value: numbers of a query, of a key and of a value."""

    query: int = 16
    key: int = 16
    value: int = 16

    @property
    def tokens(self) -> int:
        """Of the longest sentence: no width of a vector, so that it tells an axis of tokens."""
        tokens = FEWEST_TOKENS
        while tokens in (self.query, self.key, self.value):
            tokens += 1
        return tokens


@dataclass(frozen=True)
class Inputs:
    """query: (B, D) or (B, T, D). keys: (B, S, D). values: (B, S, V).
    mask: (B, S), True at real tokens.
    """

    query: Tensor
    keys: Tensor
    values: Tensor
    mask: Tensor

    def clone(self) -> Inputs:
        return Inputs(*(tensor.clone() for tensor in self.tensors))

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.query, self.keys, self.values, self.mask

    def to(self, dtype: torch.dtype) -> Inputs:
        return replace(
            self,
            query=self.query.to(dtype),
            keys=self.keys.to(dtype),
            values=self.values.to(dtype),
        )

    def sentence(self, number: int) -> Inputs:
        """One sentence alone, still padded."""
        return Inputs(*(tensor[number : number + 1].clone() for tensor in self.tensors))


@dataclass(frozen=True)
class Answer:
    """context: (B, V) or (B, T, V). weights: (..., S); None where the module returns none."""

    context: Tensor
    weights: Tensor | None


class CallError(Exception):
    """The module raised an exception, or returned no context."""


class Stranger:
    """The module, in 64 bits and for evaluation, with what it takes for a query.

    tokens: of its longest sentence.

    Raises ExperimentError where it cannot be called at all.
    """

    def __init__(self, module: nn.Module, sizes: Sizes) -> None:
        self._module = module.double().eval()
        self._sizes = sizes
        self.tokens = sizes.tokens
        # Which of the returned tensors is the context; later inputs may have as many tokens as it
        # has numbers.
        self._place_of_context: int | None = None
        self.with_queries = self._takes_several_queries()

    @property
    def parameters(self) -> list[tuple[str, nn.Parameter]]:
        return list(self._module.named_parameters())

    def inputs(
        self,
        sentences: int = SENTENCES,
        tokens: int | None = None,
        queries: int = QUERIES,
        seed: int = 1,
    ) -> Inputs:
        """Made-up sentences, some of which end in pads; `tokens` are as many as `self.tokens`."""
        if tokens is None:
            tokens = self.tokens
        random = torch.Generator().manual_seed(seed)

        def draw(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=random, dtype=torch.float64)

        sizes = self._sizes
        axis = (queries,) if self.with_queries else ()
        lengths = torch.tensor(
            [self.tokens - PADS[number % len(PADS)] for number in range(sentences)]
        )
        mask = torch.arange(tokens) < lengths.clamp(max=tokens)[:, None]
        return Inputs(
            draw(sentences, *axis, sizes.query),
            draw(sentences, tokens, sizes.key),
            draw(sentences, tokens, sizes.value),
            mask,
        )

    def answer(self, inputs: Inputs) -> Answer:
        """What the module returns; it gets copies. Raises CallError."""
        with torch.no_grad():
            return self.of_call(self._module, inputs.clone())

    def in_training(self, inputs: Inputs) -> Answer:
        """With gradients, as in training. Raises CallError."""
        self._module.train()
        try:
            return self.of_call(self._module, inputs.clone())
        finally:
            self._module.eval()

    def in_precision(self, dtype: torch.dtype, inputs: Inputs) -> Answer:
        """Of a copy of the module in another precision. Raises CallError."""
        module = copy.deepcopy(self._module).to(dtype)
        with torch.no_grad():
            return self.of_call(module, inputs.clone().to(dtype))

    def call_without_copies(self, inputs: Inputs) -> None:
        with torch.no_grad():
            self.of_call(self._module, inputs)

    def of_call(self, module: nn.Module, inputs: Inputs) -> Answer:
        try:
            returned = module(*inputs.tensors)
        except Exception as error:  # whatever a stranger's code raises
            raise CallError(f"{type(error).__name__}: {error}") from error
        answer, self._place_of_context = _answer_of(returned, inputs, self._place_of_context)
        return answer

    def _takes_several_queries(self) -> bool:
        reasons = []
        # With several queries more can be seen, where both can be called.
        for self.with_queries in (True, False):
            try:
                self.answer(self.inputs())
            except CallError as error:
                reasons.append(str(error))
            else:
                return self.with_queries
        raise ExperimentError(
            f"the module cannot be called as {CALL}: with queries (B, T, D) it fails with "
            f"{reasons[0]}; with a query (B, D) with {reasons[1]}. B is {SENTENCES}, T "
            f"{QUERIES}, S {self.tokens}; keys have {self._sizes.key} numbers (--key-size), values "
            f"{self._sizes.value} (--value-size), queries {self._sizes.query} (--query-size)"
        )


def _answer_of(returned: Any, inputs: Inputs, place: int | None) -> tuple[Answer, int]:
    """The context, and the weights where there are any, and the place of the context.

    The first time they are told apart by their last axis.

    place: of the context among the tensors of an earlier call; None for the first one.

    Raises CallError where there is no context.
    """
    tensors = [returned] if isinstance(returned, Tensor) else list(_tensors_in(returned))
    tokens = inputs.mask.shape[1]
    before = inputs.query.shape[:-1]

    def fits(tensor: Tensor) -> bool:
        axes = tensor.shape[:-1]
        return axes == before or (len(before) == 1 and axes == (before[0], 1))

    if place is None or place >= len(tensors) or not fits(tensors[place]):
        wide = [i for i, each in enumerate(tensors) if fits(each) and each.shape[-1] != tokens]
        if not wide:
            shapes = ", ".join(str(tuple(tensor.shape)) for tensor in tensors) or "nothing"
            wanted = (*before, inputs.values.shape[-1])
            raise CallError(f"it returned {shapes}, and no context such as {wanted}")
        place = wide[0]

    context = tensors[place].reshape(*before, tensors[place].shape[-1])
    weights = None
    for tensor in [*tensors[:place], *tensors[place + 1 :]]:
        if tensor.dim() >= 2 and tokens in tensor.shape[1:]:
            weights = tensor
            break
    return Answer(context, weights), place


def _tensors_in(returned: Any) -> Sequence[Tensor]:
    if isinstance(returned, (tuple, list)):
        return [part for part in returned if isinstance(part, Tensor)]
    return []


def load(target: str) -> nn.Module:
    """The module of `my_model.py:Attention`, a class or a function without arguments.

    Raises ExperimentError with what is wrong with the file, the name or the class.
    """
    file, _, name = target.rpartition(":")
    if not file or not name:
        raise ExperimentError(
            f"inspect takes FILE.py:NAME, such as my_model.py:Attention; got {target}"
        )
    path = Path(file)
    if not path.is_file():
        raise ExperimentError(f"there is no file {file}")
    found = getattr(_imported(path), name, None)
    if isinstance(found, nn.Module):
        return found
    if not callable(found):
        raise ExperimentError(f"{file} has no class and no function {name}")
    made = _made(found, name)
    if not isinstance(made, nn.Module):
        raise ExperimentError(
            f"{name} of {file} must make a torch.nn.Module, got {type(made).__name__}"
        )
    return made


def _imported(path: Path) -> Any:
    """The stranger's file as a module; its folder can be imported from."""
    name = f"inspected_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look there
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ExperimentError(
            f"{path} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    finally:
        sys.path.pop(0)
    return module


def _made(found: Callable[..., Any], name: str) -> Any:
    needed = [
        parameter.name
        for parameter in inspect.signature(found).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.POSITIONAL_ONLY)
    ]
    if needed:
        raise ExperimentError(
            f"{name} needs {', '.join(needed)}; write a function without arguments that makes it, "
            f"such as def small(): return {name}(...), and inspect that"
        )
    torch.manual_seed(1)
    try:
        return found()
    except Exception as error:
        raise ExperimentError(f"{name}() fails with {type(error).__name__}: {error}") from error
