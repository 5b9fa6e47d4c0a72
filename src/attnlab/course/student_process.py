"""Call the functions of a student's file: `python -m attnlab.course.student_process FOLDER FILE`.

A process of its own, so that the student's code can neither change nor stop the grading. FOLDER
holds the calls (calls.json, arguments.npz) and gets what came of them (answers.json, results.npz).
"""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

CALLS, ARGUMENTS = "calls.json", "arguments.npz"
ANSWERS, RESULTS = "answers.json", "results.npz"


def main(folder: Path, file: Path) -> None:
    calls = json.loads((folder / CALLS).read_text(encoding="utf-8"))
    with np.load(folder / ARGUMENTS) as stored:
        arrays = dict(stored)
    results: dict[str, np.ndarray] = {}
    answers = _answers(file, calls, arrays, results)
    np.savez(folder / RESULTS, **results)  # type: ignore[arg-type]
    # Last: where it is missing, the student's code has ended the process.
    (folder / ANSWERS).write_text(json.dumps(answers), encoding="utf-8")


def _answers(
    file: Path,
    calls: list[dict[str, Any]],
    arrays: dict[str, np.ndarray],
    results: dict[str, np.ndarray],
) -> list[dict[str, Any]]:
    """An answer to each call; their arrays are added to the results."""
    try:
        student = _imported(file)
    except BaseException as error:
        return [_failure(error, file)] * len(calls)

    with_torch = _imports_torch(file)
    answers = []
    for number, call in enumerate(calls):
        function = getattr(student, call["function"], None)
        if not callable(function):
            answers.append({"status": "missing"})
            continue
        given = _arguments(call, arrays)
        try:
            answers.append(_answer(number, function, given, with_torch, call, results))
        except BaseException as error:
            answers.append(_failure(error, file))
    return answers


def _imported(file: Path) -> ModuleType:
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location("student_file", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses of the student's look there
    spec.loader.exec_module(module)
    return module


def _imports_torch(file: Path) -> bool:
    """Whether the file works with tensors: it imports torch, or attnlab, anywhere."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module]
        if any(name.partition(".")[0] in ("torch", "attnlab") for name in names):
            return True
    return False


def _arguments(call: dict[str, Any], arrays: dict[str, np.ndarray]) -> list[Any]:
    """Those of a call; an array is named by its key, any other value stands for itself."""
    given = []
    for argument in call["arguments"]:
        given.append(arrays[argument["array"]] if "array" in argument else argument["value"])
    return given


def _answer(
    number: int,
    function: Any,
    given: list[Any],
    with_torch: bool,
    call: dict[str, Any],
    results: dict[str, np.ndarray],
) -> dict[str, Any]:
    """Call the function; its results are added to `results`."""
    passed = [_passed(argument, with_torch) for argument in given]
    parts = _parts_of(function(*passed), call["parts"])

    keys = []
    for place, part in enumerate(parts):
        array = _as_array(part)
        if array is None:
            return {"status": "no numbers", "type": type(part).__name__, "parts": len(parts)}
        keys.append(f"{number}.{place}")
        results[keys[-1]] = array

    changed = []
    for place, (before, after) in enumerate(zip(given, passed, strict=True)):
        if not _is_same(before, after):
            changed.append(place)
    answer = {"status": "answered", "results": keys, "changed": changed, "without_gradient": []}
    if call["gradient"] and with_torch:
        answer["without_gradient"] = _without_gradient(function, given, call["parts"])
    return answer


def _parts_of(returned: Any, number: int) -> list[Any]:
    """The results of a function that should return so many."""
    if number > 1 and isinstance(returned, tuple | list):
        return [*returned]
    return [returned]


def _passed(argument: Any, with_torch: bool) -> Any:
    """A copy of the argument, an array as a tensor where the student's file works with torch."""
    if isinstance(argument, np.ndarray):
        if not with_torch:
            return argument.copy()
        import torch

        return torch.from_numpy(argument.copy())
    return json.loads(json.dumps(argument))


def _is_tensor(part: Any) -> bool:
    return "torch" in sys.modules and isinstance(part, sys.modules["torch"].Tensor)


def _as_array(part: Any) -> np.ndarray | None:
    """The numbers of a result; None where it has none."""
    if _is_tensor(part):
        part = part.detach().cpu().numpy()
    elif isinstance(part, list | tuple):
        part = [each.detach().numpy() if _is_tensor(each) else each for each in part]
    try:
        array = np.asarray(part)
    except ValueError:  # rows of different lengths
        return None
    return array if array.dtype.kind in "biuf" else None


def _is_same(before: Any, after: Any) -> bool:
    array = _as_array(after) if isinstance(before, np.ndarray) else None
    if array is None:
        return bool(before == after)
    return array.shape == before.shape and bool(np.array_equal(array, before))


def _without_gradient(function: Any, given: list[Any], parts: int) -> list[int]:
    """The arguments of real numbers that the first result has no gradient for."""
    import torch

    passed, leaves = [], {}
    for place, argument in enumerate(given):
        tensor = _passed(argument, with_torch=True)
        if isinstance(argument, np.ndarray) and argument.dtype.kind == "f":
            leaves[place] = tensor.requires_grad_()
            tensor = tensor.clone()  # a leaf must not be changed in place
        passed.append(tensor)
    try:
        first = _as_tensor(_parts_of(function(*passed), parts)[0])
        if first is None or not first.requires_grad:
            return [*leaves]
        # A plain sum of a softmax has no gradient: its parts count differently.
        factors = torch.linspace(1.0, 2.0, first.numel(), dtype=first.dtype).view(first.shape)
        total = (first * factors).sum()
        gradients = torch.autograd.grad(total, [*leaves.values()], allow_unused=True)
    except RuntimeError:
        # "Can't call numpy() on Tensor that requires grad", or the function has overwritten numbers
        # that its own gradient needs.
        return [*leaves]

    missing: list[int] = []
    for place, gradient in zip(leaves, gradients, strict=True):
        if gradient is None:
            missing.append(place)
    return missing


def _as_tensor(part: Any) -> Any:
    """A result as one tensor, also where it is a list of them; None where it has none."""
    if isinstance(part, list | tuple) and part and all(_is_tensor(each) for each in part):
        return sys.modules["torch"].stack([*part])
    return part if _is_tensor(part) else None


def _failure(error: BaseException, file: Path) -> dict[str, Any]:
    """An exception, with the last line of the student's file that it came through."""
    line = None
    if isinstance(error, SyntaxError) and error.filename == str(file):
        line = error.lineno
    else:
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename == str(file):
                line = frame.lineno
    message = " ".join(str(error).split())
    return {"status": "failed", "type": type(error).__name__, "message": message, "line": line}


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
