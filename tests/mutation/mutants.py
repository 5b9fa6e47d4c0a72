"""The mutants of a module: mutmut's operators, on every function, and the way to put one in place of its original."""

from __future__ import annotations

import difflib
import hashlib
import inspect
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.file_mutation import Mutation, MutationVisitor
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "attnlab"


class _Visitor(MutationVisitor):
    """mutmut's, but for two things: messages are spared, and a function with a decorator is mutated too.

    mutmut calls mutants by a decorator of its own and so leaves out what is decorated: here that would be the loops of
    the searches (`torch.no_grad`) and every property.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._messages: list[cst.CSTNode] = []

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Assert) and node.msg is not None:
            self._messages.append(node.msg)
        if isinstance(node, cst.Raise) or any(node is message for message in self._messages):
            return True
        if isinstance(node, cst.FunctionDef):
            names = [cst.Module([]).code_for_node(decorator.decorator) for decorator in node.decorators]
            return "abstractmethod" in names or super()._skip_node_and_children(node.with_changes(decorators=[]))
        return super()._skip_node_and_children(node)


class NoImportError(Exception):
    """The module with the mutant in it cannot be imported, though the one without it can."""


@dataclass(frozen=True)
class Mutant:
    path: Path
    function: str  # its qualified name
    first_line: int  # what was changed, in the original file
    last_line: int
    function_lines: range
    tree: cst.Module
    mutation: Mutation

    @property
    def module(self) -> str:
        return self.path.relative_to(PACKAGE).as_posix()

    @cached_property
    def diff(self) -> str:
        """What the change is, line by line."""
        function = self.mutation.contained_by_top_level_function
        assert function is not None
        sides = [
            cst.Module([each]).code.strip("\n").splitlines()
            for each in (function, function.deep_replace(self.mutation.original_node, self.mutation.mutated_node))
        ]
        lines = list(difflib.unified_diff(*sides, lineterm="", n=0))
        return "\n".join(line for line in lines[2:] if not line.startswith("@@"))

    @cached_property
    def identity(self) -> str:
        """The same as long as the function and its mutation are."""
        function = self.mutation.contained_by_top_level_function
        mutated = cst.Module([function.deep_replace(self.mutation.original_node, self.mutation.mutated_node)])  # type: ignore[union-attr, list-item]
        content = "\0".join([self.module, self.function, cst.Module([function]).code, mutated.code])  # type: ignore[list-item]
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def put_in_place(self, module: types.ModuleType) -> None:
        """The live function gets the mutant's code: whoever holds it, and whatever is wrapped around it.

        Raises NoImportError where that is what the mutant comes to; any other error is one of this way of trying it.
        """
        tree = self.tree.deep_replace(self.mutation.original_node, self.mutation.mutated_node)
        compiled = compile(tree.code, str(self.path), "exec", dont_inherit=True)  # type: ignore[union-attr]
        names = {name: getattr(module, name) for name in ("__name__", "__file__", "__package__")}
        exec(compile(self.tree.code, str(self.path), "exec", dont_inherit=True), dict(names))
        scratch = dict(names)
        try:
            exec(compiled, scratch)
        except Exception as error:
            raise NoImportError(f"{type(error).__name__} on import") from error
        mutated, live = _plain(scratch, self.function), _plain(vars(module), self.function)
        live.__code__ = mutated.__code__
        live.__defaults__, live.__kwdefaults__ = mutated.__defaults__, mutated.__kwdefaults__


def mutants_of(path: Path) -> list[Mutant]:
    tree = MetadataWrapper(cst.parse_module(path.read_text(encoding="utf-8")))
    visitor = _Visitor(mutation_operators, IgnoredCode(set(), set(), set()))
    tree.visit(visitor)
    places = tree.resolve(PositionProvider)
    names = {id(function): name for name, function in _functions(tree.module)}
    mutants = []
    for mutation in visitor.mutations:
        function = mutation.contained_by_top_level_function
        if id(function) not in names:
            continue  # the body of a class: executed when the class is made, before any test
        place, whole = places[mutation.original_node], places[function.body]  # type: ignore[union-attr, index]
        mutants.append(
            Mutant(
                path,
                names[id(function)],
                place.start.line,
                place.end.line,
                range(whole.start.line, whole.end.line + 1),
                tree.module,
                mutation,
            )
        )
    return mutants


def _functions(tree: cst.Module) -> Iterator[tuple[str, cst.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, cst.FunctionDef):
            yield node.name.value, node
        elif isinstance(node, cst.ClassDef):
            for part in node.body.body:
                if isinstance(part, cst.FunctionDef):
                    yield f"{node.name.value}.{part.name.value}", part


def _plain(names: dict[str, Any], qualified: str) -> types.FunctionType:
    """The function under its decorators."""
    found, *rest = qualified.split(".")
    thing = names[found]
    for name in rest:
        thing = vars(thing)[name]
    if isinstance(thing, property):
        thing = thing.fget
    thing = inspect.unwrap(getattr(thing, "__func__", thing))
    assert isinstance(thing, types.FunctionType), f"{qualified} is {thing!r}, which has no code to change"
    return thing
