"""The form of Python source from which an identity is computed: what the code does.

How the code is written does not change the form. It is a text made of the syntax tree. Unlike
`ast.dump`, it is the same in every version of Python. It leaves out positions, and with them
comments, formatting, quotes and parentheses; docstrings and other statements that do nothing;
blocks under `if TYPE_CHECKING:`, which never run; and empty fields, because new versions of Python
add such fields.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

# Fields of syntax nodes that do not change what the code does: `ctx` (a name is read or set) is
# clear from the place of the node, `kind` is the prefix in `u"text"`, the others hold comments.
_WITHOUT_EFFECT = frozenset({"ctx", "kind", "type_comment", "type_ignores"})


def form_of(nodes: Iterable[ast.AST]) -> str:
    """The form of these nodes, in order: `[(Assign targets=[(Name id=str 'a')] value=...) ...]`."""
    return _of_list(list(nodes))


def is_for_type_checkers(node: ast.AST) -> TypeGuard[ast.If]:
    """Whether it is `if TYPE_CHECKING:`, whose block never runs; its `else` block does."""
    if not isinstance(node, ast.If):
        return False
    condition = node.test
    if isinstance(condition, ast.Attribute):  # typing.TYPE_CHECKING
        return condition.attr == "TYPE_CHECKING"
    return isinstance(condition, ast.Name) and condition.id == "TYPE_CHECKING"


def _does_nothing(node: Any) -> bool:
    """Whether a statement has no effect when it runs.

    Such a statement is a docstring, another constant that stands alone (such as `...`), `pass`, or
    `if TYPE_CHECKING:` without `else`.
    """
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if is_for_type_checkers(node):
        return not node.orelse
    return isinstance(node, ast.Pass)


def _of_value(value: Any) -> str:
    """The form of what a field holds: a node, a list of such values, a name or a constant."""
    if isinstance(value, ast.JoinedStr):
        return _of_f_string(value)
    if isinstance(value, ast.AST):
        return _of_node(value)
    if isinstance(value, list):
        return _of_list(value)
    # The type is part of it because 1 == True. What repr() escapes depends on the version.
    return f"{type(value).__name__} {value!a}"


def _of_node(node: ast.AST) -> str:
    """`(Name id=str 'x')`: the node's class, and the fields that hold something."""
    words = [type(node).__name__]
    for name in _that_count(node._fields):
        value = getattr(node, name, None)
        is_empty = value is None or value == []
        if not is_empty and not (name == "body" and is_for_type_checkers(node)):
            words.append(f"{name}={_of_value(value)}")
    return f"({' '.join(words)})"


@functools.cache
def _that_count(fields: tuple[str, ...]) -> list[str]:
    """The fields of a node that count, in the same order in every version of Python."""
    return sorted(set(fields) - _WITHOUT_EFFECT)


def _of_list(values: Sequence[Any]) -> str:
    forms = [_of_value(value) for value in values if not _does_nothing(value)]
    return f"[{' '.join(forms)}]"


def _of_f_string(node: ast.JoinedStr) -> str:
    """The form of an f-string, `(JoinedStr values=[...])`, with adjacent pieces of text joined.

    Versions of Python split the text differently, and some leave empty pieces.
    """
    forms: list[str] = []
    text = ""
    for piece in node.values:
        if isinstance(piece, ast.Constant):
            text += str(piece.value)
            continue
        if text:
            forms.append(_of_value(text))
            text = ""
        forms.append(_of_value(piece))
    if text:
        forms.append(_of_value(text))
    return f"(JoinedStr values=[{' '.join(forms)}])"
