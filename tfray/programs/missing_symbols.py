"""Which symbols of TensorFlow a program uses that do not exist here: its source is read, and nothing of it is run."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_ROOTS: Final = ("tensorflow", "tfray")
_GUARDS: Final = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException"}


@dataclass(frozen=True, order=True)
class MissingSymbol:
    """A symbol that does not exist.

    Attributes:
        file: The file that uses it.
        line: The line.
        name: The symbol, such as ``tf.nn.foo``; empty for a file that cannot be read.
        reason: What there is instead, or why the file cannot be read.
    """

    file: str
    line: int
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


def missing_symbols(file: str, folders: Iterable[str]) -> list[MissingSymbol]:
    """The symbols that a program and its own modules use and that do not exist, by file and line.

    What stands in a ``try`` that catches the error is left out. `install` comes first: it says what exists.

    Args:
        file: The program.
        folders: Where the program's own modules lie.
    """
    found: set[MissingSymbol] = set()
    waiting, seen = [Path(file)], {Path(file).resolve()}
    places = [Path(folder) for folder in folders]
    while waiting:
        path = waiting.pop()
        try:
            with tokenize.open(path) as opened:
                tree = ast.parse(opened.read(), str(path))
        except (SyntaxError, UnicodeDecodeError) as error:
            found.add(MissingSymbol(str(path), getattr(error, "lineno", 0) or 0, "", f"cannot be read: {error}"))
            continue
        found |= {MissingSymbol(str(path), line, f"tf.{name}", why) for line, name, why in _missing_in(tree)}
        for module in _imported(tree, path, places):
            if module.resolve() not in seen:
                seen.add(module.resolve())
                waiting.append(module)
    return sorted(found)


# -- one file ------------------------------------------------------------------------------------------------


def _missing_in(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """The line, the name and the reason of each symbol of a file that does not exist."""
    guarded = _guarded(tree)
    aliases = dict(_aliases(tree))
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        uses: list[str] = []
        if isinstance(node, ast.Import):
            uses = [alias.name for alias in node.names if alias.name.split(".")[0] in _ROOTS]
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] in _ROOTS:
            uses = [f"{node.module}.{alias.name}".removesuffix(".*") for alias in node.names]
        elif isinstance(node, ast.Attribute) and id(node) not in inner and (path := _chain(node, aliases)):
            # What a program sets itself need not be there before.
            uses = [path] if isinstance(node.ctx, ast.Load) else [path.rpartition(".")[0]]
        for use in uses:
            if why := _why_missing(use):
                yield getattr(node, "lineno", 0), use.partition(".")[2].removeprefix("compat.v1."), why


def _aliases(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names that a file gives to TensorFlow's modules and symbols, and their paths."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.split(".")[0]
                if root in _ROOTS:
                    known[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] in _ROOTS:
            known.update((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)
    yield from known.items()
    for node in ast.walk(tree):
        # Such as ``layers = tf.contrib.layers``. A name that a program gives to something else too is left out.
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            path = _chain(node.value, known) if isinstance(node.value, ast.Attribute) else ""
            if path and _bindings(tree, node.targets[0].id) == 1:
                yield node.targets[0].id, path


def _bindings(tree: ast.Module, name: str) -> int:
    """How often a file binds a name."""
    count = 0
    for node in ast.walk(tree):
        count += isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
        count += isinstance(node, ast.arg) and node.arg == name
        count += isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name
    return count


def _chain(node: ast.expr, aliases: dict[str, str]) -> str:
    """The path of ``tf.nn.relu``; empty for what does not begin with one of the aliases."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases:
        return ""
    return ".".join([aliases[node.id], *reversed(names)])


def _guarded(tree: ast.Module) -> set[int]:
    """What stands in a ``try`` that catches the error of a missing name."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and any(_catches(handler) for handler in node.handlers):
            found.update(id(each) for statement in node.body for each in ast.walk(statement))
    return found


def _catches(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in _GUARDS) for kind in kinds)


def _why_missing(path: str) -> str:
    """Why there is nothing of this path; empty if there is."""
    root, *names = path.split(".")
    found: Any = importlib.import_module(root)
    for name in names:
        if not isinstance(found, (ModuleType, type)):
            return ""
        try:
            found = getattr(found, name)
        except AttributeError as error:
            if isinstance(found, ModuleType):
                return str(error)
            return f"tf.{'.'.join(names)} does not exist in tfray: {found.__name__} has no {name}"
    return ""


# -- the program's other modules -----------------------------------------------------------------------------


def _imported(tree: ast.Module, path: Path, folders: list[Path]) -> Iterator[Path]:
    """The files of a program's own modules that one of its files imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(alias.name.split("."), folders)
        elif isinstance(node, ast.ImportFrom):
            parts = node.module.split(".") if node.module else []
            places = [path.resolve().parents[node.level - 1]] if node.level else folders
            yield from _files(parts, places)
            for alias in node.names:
                yield from _files([*parts, alias.name], places)


def _files(parts: list[str], folders: list[Path]) -> Iterator[Path]:
    """The files of a module and of the packages in which it stands."""
    for folder in folders:
        for count in range(1, len(parts) + 1):
            stem = folder.joinpath(*parts[:count])
            yield from (each for each in (stem.with_suffix(".py"), stem / "__init__.py") if each.is_file())
