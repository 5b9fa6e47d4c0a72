"""The identity of an experiment: its choices, data, code, and the libraries that affect its bits.

The code that an experiment uses is found in the source files, without importing them: the functions
of a stage, the modules of the classes that its config names, and what these import within the
package. So a new attention score is no reason to retrain a model that has another one. Nor is an
edited comment: the code counts by what it does (see code_form.py).
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from attnlab.config.code_form import form_of, is_for_type_checkers

PACKAGE = "attnlab"
FOLDER = Path(__file__).resolve().parents[2]  # the one that the package lies in
PACKAGE_ROOT = FOLDER / PACKAGE

# Code that affects no result: messages, progress, records for MLflow and sweeps, config checks, and
# which of several GPUs a job takes.
NOT_FOLLOWED = (
    "attnlab.errors",
    "attnlab.experiment",
    "attnlab.progress",
    "attnlab.terminal",
    "attnlab.runs",
    "attnlab.training.devices",
    "attnlab.training.progress",
)

# Libraries whose other versions may give other data, weights or metrics, which choose the best
# checkpoint; each counts where the code imports it.
DECIDING_LIBRARIES = frozenset(
    {
        "babel",
        "datasets",
        "numpy",
        "pytorch_lightning",
        "sacrebleu",
        "tokenizers",
        "torch",
        "torchmetrics",
    }
)


class Code(NamedTuple):
    """The code that decides the output of a stage.

    texts: {module, or module:function,function: the form of its code; template: its text}.
    libraries: top-level names of the other packages that it imports.
    """

    texts: dict[str, str]
    libraries: set[str]


def config_digest(config: Mapping[str, Any]) -> str:
    """SHA-256 of a plain, resolved config; the order of its keys does not matter."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def experiment_identity(
    sections: Mapping[str, Any], data_digest: str, sources: Iterable[str]
) -> str:
    """Sixteen hexadecimal digits that two runs share only where they must give the same bytes.

    sources: modules, or `module:function,function`, whose code counts beside that of the classes in
        the sections.
    """
    code = used_code({*sources, *target_modules(sections)})
    versions = {name: metadata.version(name) for name in code.libraries & DECIDING_LIBRARIES}
    parts = (
        config_digest(sections),
        data_digest,
        config_digest(code.texts),
        config_digest(versions),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def target_classes(node: Any) -> Iterator[str]:
    """The classes that a config names, at any depth, with their modules."""
    if isinstance(node, Mapping):
        if isinstance(node.get("_target_"), str):
            yield node["_target_"]
        for value in node.values():
            yield from target_classes(value)
    elif isinstance(node, list):
        for value in node:
            yield from target_classes(value)


def target_modules(node: Any) -> Iterator[str]:
    """The modules of the classes that a config names, at any depth."""
    for target in target_classes(node):
        yield target.rpartition(".")[0]


def foreign_classes(node: Any, allow: Collection[str] = ()) -> list[str]:
    """The classes outside of attnlab that a config names, without those of modules in `allow`.

    A module in `allow` stands for the modules inside it, too.
    """
    allowed = (PACKAGE, *allowed_modules(allow))
    return sorted(
        target
        for target in set(target_classes(node))
        if not _is_inside_any(target.rpartition(".")[0], allowed)
    )


def foreign_modules(node: Any, allow: Collection[str] = ()) -> list[str]:
    """The modules of `foreign_classes`."""
    modules = {target.rpartition(".")[0] for target in foreign_classes(node, allow)}
    return sorted(modules)


def allowed_modules(allow: Collection[str]) -> tuple[str, ...]:
    """The modules of an argument `allow`; a single text is one module, not its letters."""
    return (allow,) if isinstance(allow, str) else tuple(allow)


def _is_inside_any(module: str, packages: Iterable[str]) -> bool:
    """Whether a module is one of these modules, or inside one of them."""
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


def used_code(roots: Iterable[str]) -> Code:
    """The code of these modules or functions, and all that it imports.

    Installed packages are libraries, of which only the names are listed, but for those that a root
    is in (the user's own may be installed). DECIDING_LIBRARIES are libraries also as roots, such as
    `torch.optim`. NOT_FOLLOWED counts only where it is a root. Raises ModuleNotFoundError for a
    root that does not exist.
    """
    code = Code({}, set())
    todo = []
    packages = {PACKAGE}
    for root in roots:
        package = root.partition(".")[0]
        if package in DECIDING_LIBRARIES:
            code.libraries.add(package)
        else:
            todo.append(root)
            packages.add(package)

    while todo:
        place = todo.pop()
        if place in code.texts:
            continue
        source = _source(place)
        code.texts[place] = source.text
        code.texts.update(source.templates)
        for module in source.imports:
            package = module.partition(".")[0]
            is_library = package not in packages and not _is_of_the_user(package)
            if is_library:
                code.libraries.add(package)
            elif not _is_inside_any(module, NOT_FOLLOWED):
                todo.append(module)
    return code


@functools.cache
def _is_of_the_user(package: str) -> bool:
    """Whether a top-level module is a file of the user's: neither Python's own nor installed."""
    if package in sys.stdlib_module_names:
        return False
    path = module_file(package)
    if path is None or {"site-packages", "dist-packages"} & set(path.parts):
        return False
    return not _is_installed_beside(package, path)


def _is_installed_beside(package: str, path: Path) -> bool:
    """Whether pip's records beside a package list it, as after `pip install --target <folder>`.

    path: of the top-level module, or of the package's `__init__.py`.
    """
    folder = path.parents[1] if path.name == "__init__.py" else path.parent
    for distribution in metadata.distributions(path=[str(folder)]):
        # Only an installed package has a RECORD. A checkout may have an .egg-info beside its code.
        if distribution.read_text("RECORD") is None:
            continue
        for file in distribution.files or []:
            if file.parts[0] in (package, f"{package}.py"):
                return True
    return False


class _Source(NamedTuple):
    """What a module, or some functions of it, add to an identity.

    text: the form of its code.
    imports: the modules that it imports.
    templates: pages and style sheets beside it, which it may fill in.
    """

    text: str
    imports: set[str]
    templates: dict[str, str]


@functools.cache
def _source(place: str) -> _Source:
    """The source of a module, or of `module:function,function`."""
    module, _, functions = place.partition(":")
    path = module_file(module)
    if path is None:
        raise ModuleNotFoundError(f"the code of an experiment names {module}, which does not exist")
    tree = ast.parse(path.read_bytes())  # bytes, for a file may say which encoding it has
    package = module.rpartition(".")[0]
    templates = {
        f"{package}/{file.name}": file.read_text(encoding="utf-8")
        for file in _template_files(module, path)
    }
    # What a relative import starts from: a package's own name is that of its `__init__.py`.
    importing = module if path.name == "__init__.py" else package
    imports = set(_imported(tree.body, importing))
    if not functions:
        imported = {name for name, _ in imports}
        return _Source(form_of(tree.body), imported, templates)

    part, used = _part(tree, functions.split(","))
    imported = {name for name, bound in imports if bound in used}
    return _Source(part, imported, templates)


def _template_files(module: str, path: Path) -> list[Path]:
    """The pages and style sheets beside a module of attnlab.

    Empty for a user's module: unrelated files may lie beside it.
    """
    if module.partition(".")[0] != PACKAGE:
        return []
    return sorted(
        file for file in path.parent.iterdir() if file.suffix in (".css", ".html", ".js", ".yaml")
    )


def module_file(module: str) -> Path | None:
    """Where a module's source lies; None where there is no such module, or it has no source."""
    if module.partition(".")[0] == PACKAGE:
        stem = FOLDER.joinpath(*module.split("."))
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if path.is_file():
                return path
        return None

    try:
        spec = importlib.util.find_spec(module)
    # ValueError of a module that was made while the program runs
    except (ModuleNotFoundError, ValueError):
        return None
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin)


def _imported(body: Iterable[ast.AST], package: str) -> Iterator[tuple[str, str]]:
    """(module, the name that an import binds) for each import, also within functions.

    The name stands for the module or for something in it.

    package: the package of the importing module.
    """
    for node in body:
        if isinstance(node, ast.Import):
            for each in node.names:
                yield each.name, each.asname or each.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            yield from _imported_from(node, package)
        else:
            blocks = ["body", "orelse", "handlers", "finalbody", "cases"]
            if is_for_type_checkers(node):
                blocks.remove("body")
            for block in blocks:
                yield from _imported(getattr(node, block, ()), package)


def _imported_from(node: ast.ImportFrom, package: str) -> Iterator[tuple[str, str]]:
    """(module, the name that it binds) of each name of a `from ... import ...`."""
    dots = "." * node.level
    source = importlib.util.resolve_name(dots + (node.module or ""), package)
    top = source.partition(".")[0]
    is_followed = top in (PACKAGE, package.partition(".")[0]) or _is_of_the_user(top)
    for each in node.names:
        bound = each.asname or each.name
        # `from attnlab.model import scopes` imports a module, `from attnlab.batch import Padding`
        # something in one. Of a library the top-level name is enough.
        inner = f"{source}.{each.name}"
        if is_followed and module_file(inner):
            yield inner, bound
        else:
            yield source, bound


def _part(tree: ast.Module, wanted: list[str]) -> tuple[str, set[str]]:
    """The form of functions or methods and of what they use in their module, and all their names.

    Raises KeyError for a name that the module does not define.
    """
    defined = _definitions(tree)
    todo = list(wanted)
    forms: dict[str, str] = {}
    used: set[str] = set()
    while todo:
        name = todo.pop()
        if name in forms:
            continue
        forms[name] = form_of(defined[name])

        names: set[str] = set()
        for node in defined[name]:
            names.update(_names_in(node))
        used |= names
        todo += names & defined.keys()
    return "\n".join(forms[name] for name in sorted(forms)), used


def _definitions(tree: ast.Module) -> dict[str, list[ast.AST]]:
    """{name: the nodes that define it}.

    The names are those of functions and methods at any depth, and of the module's classes and
    variables.
    """
    defined: dict[str, list[ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            defined.setdefault(node.name, []).append(node)
    for statement in tree.body:
        for name in _names_set_by(statement):
            defined.setdefault(name, []).append(statement)
    return defined


def _names_set_by(statement: ast.stmt) -> set[str]:
    """The name of a class, or the names that an assignment sets."""
    if isinstance(statement, ast.ClassDef):
        return {statement.name}
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return set()
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    names = set()
    for target in targets:
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                names.add(node.id)
    return names


def _names_in(node: ast.AST) -> Iterator[str]:
    """The names that a piece of code uses, including those in `self.name`.

    Annotations are skipped.
    """
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute) and _is_self(node.value):
        yield node.attr
    annotations = (getattr(node, "annotation", None), getattr(node, "returns", None))
    for inner in ast.iter_child_nodes(node):
        if inner not in annotations:
            yield from _names_in(inner)


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
