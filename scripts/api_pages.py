"""The pages of the API reference, in Markdown: one for each namespace of the public interface.

What is public is read from tfray itself (`public_names`), so that no list of names is kept by hand. Python and tfray
are enough for it. The blocks that begin with `:::` are filled in from docstrings by mkdocstrings when `scripts/site.sh`
builds the site.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import types
from pathlib import Path
from typing import Any, NamedTuple

import tfray as tf

LAST = ("compat", "contrib", "keras")
"""Namespaces that repeat names of others: what has another name is documented under that."""

DIVIDED_FROM = 150
"""A namespace that documents more objects than this gets a page for each folder of the source."""

OWN = "tfray."
"""How the names of modules begin whose contents may be public."""

LONGEST_VALUE = 80
"""Letters of a constant that a table shows."""


class Symbol(NamedTuple):
    """A public name, such as ``tf.nn.relu``, and what it stands for."""

    name: str
    value: Any

    @property
    def is_documented(self) -> bool:
        """Whether it is a function or a class of tfray, which has a docstring, and not a constant or a namespace."""
        value = inspect.unwrap(self.value) if callable(self.value) else self.value
        return isinstance(value, (type, types.FunctionType)) and value.__module__.startswith(OWN)


class Namespace(NamedTuple):
    """A module of the public interface, such as ``tf.nn``."""

    name: str
    module: types.ModuleType
    symbols: list[Symbol]


@functools.cache
def _tree(path: str | None) -> ast.Module:
    return ast.parse(Path(path).read_text() if path else "")


def public_names(module: types.ModuleType) -> list[str]:
    """The public names of a namespace."""
    return sorted(module.__all__)


def identity(value: Any) -> int:
    """The same number for an object and for what is put around it to explain its errors."""
    return id(inspect.unwrap(value) if callable(value) else value)


def _is_last(name: str) -> bool:
    return name.split(".")[1:2] in [[last] for last in LAST]


@functools.cache
def namespaces() -> list[Namespace]:
    """``tf`` and the namespaces within it, in the order of their names; one that has several has the shortest."""
    waiting = [("tf", tf)]
    found: dict[str, Namespace] = {}
    while waiting:
        name, module = waiting.pop(0)
        if module.__name__ not in found and module.__name__.startswith(OWN.rstrip(".")):
            symbols = [Symbol(f"{name}.{each}", getattr(module, each)) for each in public_names(module)]
            found[module.__name__] = Namespace(name, module, symbols)
            waiting += ((each.name, each.value) for each in symbols if isinstance(each.value, types.ModuleType))
    return sorted(found.values(), key=lambda namespace: (_is_last(namespace.name), namespace.name))


@functools.cache
def homes() -> dict[int, str]:
    """The name under which each object and each namespace is documented, by its `identity`."""
    names = {identity(namespace.module): namespace.name for namespace in namespaces()}
    for namespace in namespaces():
        for symbol in namespace.symbols:
            if symbol.is_documented:
                names.setdefault(identity(symbol.value), symbol.name)
    return names


def _is_written(value: Any) -> bool:
    """Whether the source has a definition under the object's own name, where mkdocstrings reads it."""
    body: list[ast.stmt] = _tree(inspect.getsourcefile(inspect.unwrap(value))).body
    for part in value.__qualname__.split("."):
        node = next((each for each in body if getattr(each, "name", None) == part), None)
        if node is None:
            return False
        body = getattr(node, "body", [])
    return True


def _documentation(symbol: Symbol) -> str:
    """What a page says of a function or a class."""
    anchor = f"[](){{#{symbol.name}}}"
    if _is_written(symbol.value):
        path = f"{symbol.value.__module__}.{symbol.value.__qualname__}"
        options = f"    options:\n      heading: {symbol.name}\n      toc_label: {symbol.name.rpartition('.')[2]}\n"
        return f"{anchor}\n\n::: {path}\n{options}"
    # Annotations are not evaluated: a signature shows them as strings.
    signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(symbol.value)))
    call = f"```python\n{symbol.name.rpartition('.')[2]}{signature}\n```"
    return f"{anchor}\n\n## {symbol.name}\n\n{call}\n\n{inspect.getdoc(symbol.value) or ''}\n"


def _first_words(value: Any) -> str:
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split()).replace("|", "\\|")


def _row(symbol: Symbol) -> str:
    """A row of the table at the head of a page: a name, and the first words of its documentation."""
    value, home = symbol.value, homes().get(identity(symbol.value))
    if value is tf:
        told = "`tf` itself"
    elif home is None:
        told = _shown(value)
    elif home == symbol.name:
        told = _first_words(value)
    else:
        told = f"another name of `{home}`"
    name = f"`{symbol.name}`" if home is None else f"[`{symbol.name}`][{home}]"
    return f"| {name} | {told} |"


def _shown(value: Any) -> str:
    """What is not tfray's own, as far as it fits into a table."""
    if isinstance(value, types.SimpleNamespace):
        return "holds " + ", ".join(f"`{name}`" for name in vars(value))
    if isinstance(value, types.ModuleType) or getattr(value, "__module__", "").startswith("unittest"):
        return f"Python's `{value.__name__}`"
    text = " ".join(repr(value).split())
    if len(text) > LONGEST_VALUE or " object at 0x" in text:
        return f"a `{type(value).__name__}`"
    return f"`{text}`".replace("|", "\\|")


def _folder(value: Any) -> str:
    """The folder in which an object is defined: ``ops.math``, or ``tfray`` for what stands in none."""
    return ".".join(value.__module__.split(".")[1:-1]) or "tfray"


def _page(title: str, introduction: str, listed: list[Symbol], documented: list[Symbol]) -> str:
    table = "\n".join(["| name | |", "| --- | --- |", *map(_row, listed)])
    return "\n\n".join([f"# {title}", introduction, table, *map(_documentation, documented)]) + "\n"


def pages() -> dict[str, str]:
    """The Markdown of each page by its file, in the order of the site's menu."""
    written: dict[str, str] = {}
    for namespace in namespaces():
        documented = [symbol for symbol in namespace.symbols if symbol.is_documented]
        documented = [symbol for symbol in documented if homes()[identity(symbol.value)] == symbol.name]
        title = f"{namespace.name} {{#{namespace.name}}}"
        introduction = inspect.getdoc(namespace.module) or ""
        folders: dict[str, list[Symbol]] = {}
        if len(documented) > DIVIDED_FROM:
            for symbol in documented:
                folders.setdefault(_folder(symbol.value), []).append(symbol)
            documented = []
        written[f"{namespace.name}.md"] = _page(title, introduction, namespace.symbols, documented)
        for folder, symbols in sorted(folders.items()):
            told = f"Names of `{namespace.name}` that are defined in `{folder}`."
            written[f"{namespace.name}-{folder}.md"] = _page(f"{namespace.name}: {folder}", told, symbols, symbols)
    return written
