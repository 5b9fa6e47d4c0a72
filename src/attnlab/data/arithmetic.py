"""Corpora whose target is computed from the source: parity, and arithmetic modulo a number."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import xor
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from attnlab.data.drawn import DrawnCorpus, Row, row_of_words

Operator = Literal["+", "-", "*"]


@dataclass(kw_only=True)
class ComputedCorpus(DrawnCorpus):
    """Sequences of numbers, and what is computed from them.

    results: `each` writes the result after each number, which is aligned with it; `last` writes the
        result of the whole alone, and there are no alignments, for all of the source decides it.
    """

    rouge = None

    results: Literal["each", "last"]

    def draw(self, random: np.random.Generator, length: int, split: str) -> Row:
        source, results = self.compute(random, length)
        if self.results == "last":
            return {"source": " ".join(source), "target": str(results[-1])}
        # One number, and then an operator before each other one, if there are operators
        places = [place for place, word in enumerate(source) if word.isdigit()]
        links = [(place, number) for number, place in enumerate(places)]
        return row_of_words(source, list(map(str, results)), links)

    @abstractmethod
    def compute(self, random: np.random.Generator, length: int) -> tuple[list[str], list[int]]:
        """The words of a source of so many numbers, and the result after each of the numbers."""


@dataclass(kw_only=True)
class ParityCorpus(ComputedCorpus):
    """Whether the number of ones is odd (Delétang et al. 2023, parity check): `1 0 1 1` -> `1`.

    min_length, max_length: bits of a source.
    """

    def compute(self, random: np.random.Generator, length: int) -> tuple[list[str], list[int]]:
        bits = random.integers(2, size=length).tolist()
        return list(map(str, bits)), list(accumulate(bits, xor))


@dataclass(kw_only=True)
class ModularArithmeticCorpus(ComputedCorpus):
    """Arithmetic modulo a number, without brackets (Delétang et al. 2023, modular arithmetic).

    `3 + 4 * 2` -> `1` modulo 5. Multiplication goes before the others, and the result after a
    number is that of the expression which ends there.

    min_length, max_length: numbers of a source; between two of them is an operator.
    modulus: the numbers of the source and the results are below it.
    operators: those that occur, each as often.
    """

    modulus: Annotated[int, Field(ge=2, le=10_000)]
    operators: Annotated[list[Operator], Field(min_length=1)]

    def compute(self, random: np.random.Generator, length: int) -> tuple[list[str], list[int]]:
        numbers = random.integers(self.modulus, size=length).tolist()
        operators = random.choice(self.operators, length - 1).tolist()
        words = [str(numbers[0])]
        for operator, number in zip(operators, numbers[1:], strict=True):
            words += [operator, str(number)]
        return words, list(results_of_prefixes(numbers, operators, self.modulus))


def results_of_prefixes(
    numbers: Sequence[int], operators: Sequence[Operator], modulus: int
) -> Iterable[int]:
    """The result of the expression up to each number; the i-th operator stands before number i+1.

    A product is open until the next `+` or `-`.
    """
    closed = 0
    product = numbers[0]
    yield product % modulus
    for operator, number in zip(operators, numbers[1:], strict=True):
        if operator == "*":
            product = product * number % modulus
        else:
            closed += product
            product = number if operator == "+" else -number
        yield (closed + product) % modulus
