"""The form of code: equal for equal behaviour, different for different behaviour.

It is the same in every version of Python.
"""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from attnlab.config.code_form import form_of
from attnlab.config.identity import PACKAGE_ROOT

SAME = {
    "comment": ("a = 1", "# Why.\na = 1  # one\n"),
    "blank_lines_and_line_breaks": ("f(1, b=2)\ng()", "f(\n    1,\n\n    b=2,\n)\n\n\ng()"),
    "quotes": ("'a'.b", '"""a""".b'),
    "prefix_of_text": ("f('a')", "f(u'a')"),
    "text_in_pieces": ("f('ab')", "f('a' 'b')"),
    "parentheses": ("a = b + c, d", "a = ((b + c), d)"),
    "semicolon": ("a = 1; b = 2", "a = 1\nb = 2"),
    "spelling_of_a_number": ("f(1000, 0.5)", "f(1_000, 5e-1)"),
    "docstring_of_a_module": ("a = 1", '"""About a."""\na = 1'),
    "docstring_of_a_class": (
        "class A:\n    b = 1",
        "class A:\n    '''About A.'''\n    b = 1\n    '''About b.'''",
    ),
    "docstring_of_a_function": ("def f():\n    return 1", "def f():\n    'About f.'\n    return 1"),
    "docstring_of_an_async_function": (
        "async def f():\n    g()",
        "async def f():\n    'About f.'\n    g()",
    ),
    "docstring_alone": ("def f():\n    'About f.'", "def f():\n    pass"),
    "ellipsis": ("class A: ...", "class A:\n    pass"),
    "type_comment": ("a = []", "a = []  # type: list[int]"),
    "for_type_checkers": ("a = 1", "if TYPE_CHECKING:\n    from b import c\na = 1"),
    "for_type_checkers_by_attribute": ("a = 1", "a = 1\nif typing.TYPE_CHECKING:\n    import b"),
    "text_of_an_f_string_in_pieces": ("f(f'a{b}cd')", "f('a' f'{b}c' 'd')"),
}
DIFFERENT = {
    "value": ("a = 1", "a = 2"),
    "type_of_a_value": ("a = 1", "a = True"),
    "float": ("a = 1", "a = 1.0"),
    "bytes": ("a = 'b'", "a = b'b'"),
    "none": ("a = None", "a = ..."),
    "return_of_none": ("def f():\n    return", "def f():\n    return None"),
    "name": ("a = 1", "b = 1"),
    "order": ("a = f()\nb = g()", "b = g()\na = f()"),
    "operator": ("a = b + c", "a = b - c"),
    "grouping": ("a = b - (c - d)", "a = b - c - d"),
    "decorator": ("def f(): g()", "@cache\ndef f(): g()"),
    "default": ("def f(a=1): ...", "def f(a=2): ..."),
    "keyword_only": ("def f(a, b): ...", "def f(a, *, b): ..."),
    "place_of_a_keyword_default": ("def f(*, a=1, b): ...", "def f(*, a, b=1): ..."),
    "annotation": ("a: int = 1", "a: float = 1"),
    "annotation_without_value": ("class A:\n    a: int", "class A: ..."),
    "assertion": ("a = 1", "a = 1\nassert a"),
    "await": ("async def f():\n    g()", "async def f():\n    await g()"),
    "unpacked_mapping": ("a = {**b}", "a = {b: b}"),
    "conversion_in_an_f_string": ("a = f'{b}'", "a = f'{b!r}'"),
    "format_in_an_f_string": ("a = f'{b:.2f}'", "a = f'{b:.3f}'"),
    "text_that_looks_like_a_field": ("a = f'{b}'", "a = '{b}'"),
    "else_of_type_checkers": (
        "if TYPE_CHECKING:\n    import b",
        "if TYPE_CHECKING:\n    import b\nelse:\n    b = None",
    ),
    "singleton_pattern": ("match a:\n    case None: f()", "match a:\n    case True: f()"),
    "relative_import": ("from .a import b", "from ..a import b"),
}


def form(source: str) -> str:
    return form_of(ast.parse(source).body)


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_form_of_code_that_does_the_same_is_the_same(one: str, other: str) -> None:
    assert form(one) == form(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_form_of_code_that_does_something_else_differs(one: str, other: str) -> None:
    assert form(one) != form(other)


def test_form_is_the_documented_text() -> None:
    """Written out, for another text is another identity of every experiment."""
    source = (
        'import a\n\n\n@a.b\ndef f(c: int = 1, *, d=None):\n    "Doc."\n    return '
        'f"{c:>{d}}é\x7f" + "\U00011f00"\n'
    )
    assert form(source) == (
        "[(Import names=[(alias name=str 'a')])"
        " (FunctionDef args=(arguments args=[(arg annotation=(Name id=str 'int') arg=str 'c')]"
        " defaults=[(Constant value=int 1)] kw_defaults=[(Constant)] kwonlyargs=[(arg arg=str "
        "'d')]) body=[(Return value=(BinOp left=(JoinedStr values=[(FormattedValue conversion=int "
        "-1"
        " format_spec=(JoinedStr values=[str '>' (FormattedValue conversion=int -1 value=(Name "
        "id=str 'd'))]) value=(Name id=str 'c')) str '\\xe9\\x7f']) op=(Add) right=(Constant "
        "value=str '\\U00011f00')))] decorator_list=[(Attribute attr=str 'b' value=(Name id=str "
        "'a'))] name=str 'f')]"
    )


@pytest.fixture(scope="module")
def sources() -> list[Path]:
    return sorted(PACKAGE_ROOT.rglob("*.py"))


@pytest.fixture(scope="module")
def forms(sources: list[Path]) -> dict[Path, str]:
    """The form of each source here: it takes seconds."""
    return {path: form(path.read_text(encoding="utf-8")) for path in sources}


def test_form_of_reformatted_code_is_the_same(forms: dict[Path, str]) -> None:
    """`ast.unparse` writes code without comments, in a format of its own."""
    for path, expected in forms.items():
        text = path.read_text(encoding="utf-8")
        assert form(ast.unparse(ast.parse(text))) == expected, path


DIGESTS = """
import ast, hashlib, json, sys
from pathlib import Path
from attnlab.config.code_form import form_of

forms = {path: form_of(ast.parse(Path(path).read_bytes()).body) for path in json.load(sys.stdin)}
print(json.dumps({path: hashlib.sha256(form.encode()).hexdigest() for path, form in forms.items()}))
"""


# Versions of Python split these differently, or print the characters in another way.
ODD = """
f""
f"{a:}" f"{a!r:}" "" f"{a}"
f"a{b = !r:>{c}}d"
f"{a:%H:{b}}{c:{d}{e}}{f:{g}h{i}j}"
"𑼀" f"𑼀{a}\\N{DIGIT ONE}"
f"{{}}{(lambda b: {c: d for c in b})}"
a = lambda b: (yield)
"""


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_form_is_the_same_in_another_version_of_python(
    version: str, forms: dict[Path, str], tmp_path: Path
) -> None:
    """Where this machine has one."""
    odd = tmp_path / "odd.py"
    odd.write_text(ODD, encoding="utf-8")
    expected = {**forms, odd: form(ODD)}
    python = [f"python{version}", "-E"]
    try:
        subprocess.run([*python, "-c", ""], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"there is no python{version}")
    program = f"import sys; sys.path.insert(0, {str(PACKAGE_ROOT.parent)!r})\n{DIGESTS}"
    ended = subprocess.run(
        [*python, "-c", program],
        input=json.dumps([str(path) for path in expected]),
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(ended.stdout) == {
        str(path): hashlib.sha256(text.encode()).hexdigest() for path, text in expected.items()
    }, sys.version
