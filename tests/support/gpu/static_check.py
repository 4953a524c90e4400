"""What tfray's source names of the array module, looked up in the installed CuPy: existence, arity, keywords.

Reads the source alone. `xp`, and whatever ends in `.xp` or `._xp`, counts as the array module.
"""

from __future__ import annotations

import ast
import collections
import inspect
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import cupy
    import cupyx
    import cupyx.scipy.linalg
    import cupyx.scipy.sparse
    import cupyx.scipy.special

from tests.support.gpu.report import table

FOLDERS = ("tfray", "ops", "placement", "actors")
UFUNC_KEYWORDS = {"out", "dtype", "casting"}


class Use(NamedTuple):
    """A name of the array module in the source, and the call of it if it is called."""

    name: str
    place: str
    call: ast.Call | None


class _Uses(ast.NodeVisitor):
    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Use] = []
        self._parents: list[ast.AST] = []

    def visit(self, node: ast.AST) -> None:
        self._parents.append(node)
        super().visit(node)
        self._parents.pop()

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parent = self._parents[-2]
        if not isinstance(parent, ast.Attribute):
            name = _name_in_module(node)
            if name:
                call = parent if isinstance(parent, ast.Call) and parent.func is node else None
                self.found.append(Use(name, f"{self.file}:{node.lineno}", call))
        self.generic_visit(node)


def _name_in_module(node: ast.expr) -> str:
    """`linalg.inv` for ``ctx.xp.linalg.inv``; empty where no array module is named."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    if node.id in ("cupy", "cupyx"):
        return ".".join([node.id, *names])
    if node.id == "xp":
        return ".".join(names)
    start = next((i for i, name in enumerate(names) if name in ("xp", "_xp")), len(names))
    return ".".join(names[start + 1 :])


def uses(root: Path) -> Iterator[Use]:
    """Every use in the project's own modules."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            visitor = _Uses(str(path.relative_to(root)))
            visitor.visit(ast.parse(path.read_text()))
            yield from visitor.found


def resolve(name: str) -> Any:
    """What CuPy has by that name. Raises AttributeError."""
    first, *rest = name.split(".")
    found: Any = {"cupy": cupy, "cupyx": cupyx}.get(first) or getattr(cupy, first)
    for part in rest:
        found = getattr(found, part)
    return found


def wrong_call(function: Any, call: ast.Call) -> str:
    """Why CuPy refuses a call with such arguments; empty if it does not, as far as signatures tell."""
    keywords = [keyword.arg for keyword in call.keywords if keyword.arg]
    spread = len(keywords) < len(call.keywords) or any(isinstance(arg, ast.Starred) for arg in call.args)
    if isinstance(function, cupy.ufunc):
        if unknown := set(keywords) - UFUNC_KEYWORDS:
            return f"its ufuncs do not take {', '.join(sorted(unknown))}"
        return "" if spread or function.nin <= len(call.args) <= function.nargs else "wrong number of arguments"
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    try:
        if spread:
            signature.bind_partial(**dict.fromkeys(keywords))
        else:
            signature.bind(*call.args, **dict.fromkeys(keywords))
    except TypeError as error:
        return str(error)
    return ""


def check(root: Path) -> tuple[int, int]:
    """Print what CuPy lacks or refuses. Returns how many uses agree with it and how many do not."""
    by_name: dict[str, list[Use]] = collections.defaultdict(list)
    for use in uses(root):
        by_name[use.name].append(use)
    agree, wrong = 0, []
    for name, places in sorted(by_name.items()):
        try:
            found = resolve(name)
        except AttributeError:
            why = "NumPy has it, CuPy does not" if hasattr(np, name.split(".")[0]) else "neither has it"
            wrong += [(name, use.place, why) for use in places]
            continue
        for use in places:
            why = wrong_call(found, use.call) if use.call else ""
            if why:
                wrong.append((name, use.place, f"{why}: {ast.unparse(use.call)[:100]}"))
            else:
                agree += 1
    print(f"{len(by_name)} names of the array module, looked up in CuPy {cupy.__version__}.")
    table(("name", "place", "cause"), wrong)
    return agree, len(wrong)
