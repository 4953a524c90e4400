"""Writes the public names of TensorFlow 1.15, functions with their parameters.

    python scripts/tensorflow_names.py FOLDER

FOLDER is `tensorflow_core` of the unpacked wheel of TensorFlow 1.15.0, with `tensorflow_estimator` 1.15 beside it. The
sources are read, and not executed: what is written are names. `tests/golden/tensorflow_1_15.txt` comes of it, which has
a line for each public name outside of `tf.raw_ops`, and one for each method that a public class has of itself, or of a
class that is not public.
"""

from __future__ import annotations

import argparse
import ast
import functools
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SURFACE = ROOT / "tests" / "golden" / "tensorflow_1_15.txt"
LEFT_OUT = ("raw_ops", "compat")
"""Parts of the public interface that are not in the list of names."""

Definition = tuple[str, str]
"""A module, and the name that something has where it is defined."""


class Sources:
    """What the modules of unpacked wheels define and import.

    Args:
        folder: `tensorflow_core`, which stands for the package `tensorflow`; other packages lie beside it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @functools.cache  # noqa: B019
    def file(self, module: str) -> Path | None:
        """The file of a module such as ``tensorflow.python.ops.array_ops``; None if there is none."""
        package, *parts = module.split(".")
        path = (self.folder if package == "tensorflow" else self.folder.parent / package).joinpath(*parts)
        if module == "tensorflow":
            return None
        for found in (path.with_suffix(".py"), path / "__init__.py"):
            if found.is_file():
                return found
        return None

    @functools.cache  # noqa: B019 -- the object lives as long as the program
    def bound(self, module: str) -> tuple[dict[str, Any], list[str]]:
        """Names that a module binds, to nodes or to the module and name that they come from; and star imports."""
        path = self.file(module)
        names: dict[str, Any] = {}
        stars: list[str] = []
        if path is not None:
            for node in self._statements(ast.parse(path.read_text()).body):
                self._bind(node, names, stars)
        return names, stars

    def _statements(self, body: list[ast.stmt]) -> Iterator[ast.stmt]:
        for node in body:
            yield node
            if isinstance(node, ast.If):
                yield from self._statements([*node.orelse, *node.body])
            elif isinstance(node, ast.Try):
                yield from self._statements(node.body)

    def _bind(self, node: ast.stmt, names: dict[str, Any], stars: list[str]) -> None:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*":
                    stars.append(node.module or "")
                else:
                    names[alias.asname or alias.name] = (node.module, alias.name)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names[node.name] = node
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    names[target.id] = node.value

    @functools.cache  # noqa: B019
    def definition(self, module: str, name: str, depth: int = 0) -> Definition | None:
        """Where a name of a module is defined; None for modules, and for what is not found."""
        names, stars = self.bound(module)
        found = names.get(name)
        if isinstance(found, tuple) and depth < 20:
            source, original = found
            if not source or not source.startswith("tensorflow") or self.file(f"{source}.{original}"):
                return None
            return self.definition(source, original, depth + 1)
        if isinstance(found, ast.Name) and found.id in names and depth < 20:
            return self.definition(module, found.id, depth + 1)
        if isinstance(found, ast.Attribute) and isinstance(found.value, ast.Name) and depth < 20:
            inner = names.get(found.value.id)
            if isinstance(inner, tuple) and self.file(".".join(inner)):
                return self.definition(".".join(inner), found.attr, depth + 1)
        if found is not None:
            return (module, name)
        for star in stars:
            if star.startswith("tensorflow") and depth < 20 and (there := self.definition(star, name, depth + 1)):
                return there
        return None

    def parameters(self, module: str, name: str, depth: int = 0) -> list[str] | None:
        """The parameters of a function, or of the constructor of a class; None for what is neither."""
        names, _ = self.bound(module)
        node = names.get(name)
        if isinstance(node, ast.FunctionDef):
            return _listed(node)
        if isinstance(node, ast.ClassDef) and depth < 10:
            return self._of_class(module, node, depth)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("namedtuple") and len(node.args) > 1:
            return _fields(node.args[1])
        return None

    def _of_class(self, module: str, node: ast.ClassDef, depth: int) -> list[str] | None:
        methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
        for method in ("__new__", "__init__"):
            if method in methods:
                return _listed(methods[method])[1:]
        for base in node.bases:
            if isinstance(base, ast.Call):
                if "namedtuple" in ast.unparse(base.func) and len(base.args) > 1:
                    return _fields(base.args[1])
                continue
            there = self._named(module, base)
            if there and (found := self.parameters(*there, depth + 1)) is not None:
                return found
        return None

    def methods(self, module: str, name: str, others: Set[Definition], depth: int = 0) -> dict[str, list[str]]:
        """The public methods of a class, those of its bases too but for the classes `others`, with their parameters."""
        node = self.bound(module)[0].get(name)
        found: dict[str, list[str]] = {}
        if not isinstance(node, ast.ClassDef) or depth > 10:
            return found
        for base in reversed(node.bases):
            there = self._named(module, base)
            if there and there not in others:
                found |= self.methods(*there, others, depth + 1)
        for each in node.body:
            if isinstance(each, ast.FunctionDef) and (each.name == "__call__" or not each.name.startswith("_")):
                marks = {ast.unparse(mark).rpartition(".")[2] for mark in each.decorator_list}
                if not marks & {"property", "setter", "abstractproperty"}:
                    found[each.name] = _listed(each)[0 if "staticmethod" in marks else 1 :]
        return found

    def _named(self, module: str, node: ast.expr) -> Definition | None:
        if isinstance(node, ast.Name):
            return self.definition(module, node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            inner = self.bound(module)[0].get(node.value.id)
            if isinstance(inner, tuple):
                return self.definition(".".join(inner), node.attr)
        return None


def _listed(node: ast.FunctionDef) -> list[str]:
    arguments = node.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    names += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    names += [each.arg for each in arguments.kwonlyargs]
    return names + ([f"**{arguments.kwarg.arg}"] if arguments.kwarg else [])


def _fields(node: ast.expr) -> list[str] | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value.replace(",", " ").split() if isinstance(value, str) else list(value)


def public_names(sources: Sources) -> dict[str, Definition | None]:
    """Every public name without ``tf.``, and where it is defined; None for namespaces."""
    found: dict[str, Definition | None] = {}
    roots = {
        "": sources.folder / "_api" / "v1",
        "keras": sources.folder / "python" / "keras" / "api" / "_v1" / "keras",
        "estimator": sources.folder.parent / "tensorflow_estimator" / "_api" / "v1" / "estimator",
    }
    for prefix, root in roots.items():
        for path in sorted(root.rglob("__init__.py")):
            parts = path.relative_to(root).parts[:-1]
            if not set(parts) & set(LEFT_OUT):
                _read_api(sources, path, ".".join(filter(None, (prefix, *parts))), found)
    _read_api(sources, roots[""] / "v1.py", "", found)
    return found


def _read_api(sources: Sources, path: Path, prefix: str, found: dict[str, Definition | None]) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = alias.asname or alias.name
                if name.startswith("_") or node.module == "__future__" or (not prefix and name in LEFT_OUT):
                    continue
                is_module = "api.v1" in node.module or "api._v1" in node.module
                here = None if is_module else (sources.definition(node.module, alias.name) or (node.module, alias.name))
                found[f"{prefix}.{name}".lstrip(".")] = here


def surface(sources: Sources, names: dict[str, Definition | None]) -> list[str]:
    """A line for each public name and each method: with parameters in parentheses for what can be called."""
    lines = []
    public = {definition for definition in names.values() if definition}
    for name, definition in sorted(names.items()):
        parameters = sources.parameters(*definition) if definition else None
        lines.append(f"tf.{name}" if parameters is None else f"tf.{name}({', '.join(parameters)})")
        if definition:
            methods = sources.methods(*definition, public - {definition})
            lines += [f"tf.{name}.{method}({', '.join(each)})" for method, each in sorted(methods.items())]
    return lines


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    sources = Sources(parser.parse_args().folder)
    SURFACE.write_text("\n".join(surface(sources, public_names(sources))) + "\n")


if __name__ == "__main__":
    main()
