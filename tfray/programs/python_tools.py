"""``tensorflow.python.util``: how TensorFlow looks at functions and wraps them, for programs that do likewise."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from inspect import (
    FullArgSpec,
    currentframe,
    getcallargs,
    getdoc,
    getfile,
    getmembers,
    getmodule,
    getmro,
    getsource,
    getsourcefile,
    getsourcelines,
    isbuiltin,
    isclass,
    isframe,
    isfunction,
    isgenerator,
    isgeneratorfunction,
    ismethod,
    ismodule,
    isroutine,
    signature,
    stack,
)
from typing import Any, NamedTuple

__all__ = [
    "ArgSpec",
    "FullArgSpec",
    "currentframe",
    "fn_args",
    "getargspec",
    "getcallargs",
    "getdoc",
    "getfile",
    "getfullargspec",
    "getmembers",
    "getmodule",
    "getmro",
    "getsource",
    "getsourcefile",
    "getsourcelines",
    "has_kwargs",
    "isbuiltin",
    "isclass",
    "isframe",
    "isfunction",
    "isgenerator",
    "isgeneratorfunction",
    "ismethod",
    "ismodule",
    "isroutine",
    "make_decorator",
    "signature",
    "stack",
    "unwrap",
]


class ArgSpec(NamedTuple):
    """What arguments a function takes, as Python's `inspect` told it before 3.11."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getargspec(obj: Callable[..., Any]) -> ArgSpec:
    """The arguments of a function, of a method with its `self`, of a class, or of an object that can be called.

    Of a `functools.partial` they are those that are still open, and those that it gives by name, with these defaults.

    Raises:
        ValueError: A partial function gives by name what stands before an argument that has no default.
    """
    if not isinstance(obj, functools.partial):
        found = getfullargspec(unwrap(obj)[1])
        return ArgSpec(found.args, found.varargs, found.varkw, found.defaults)
    inner = getargspec(obj.func)
    names = inner.args[len(obj.args) + inspect.ismethod(obj.func) :]
    given = dict(zip(reversed(inner.args), reversed(inner.defaults or ()), strict=False)) | obj.keywords
    first = next((place for place, name in enumerate(names) if name in given), len(names))
    if missing := [name for name in names[first:] if name not in given]:
        raise ValueError(
            f"Some arguments {missing} do not have default value, but they are positioned after those that do"
        )
    defaults = tuple(given[name] for name in names[first:])
    return ArgSpec(names, inner.varargs, inner.keywords, defaults or None)


def getfullargspec(obj: Callable[..., Any]) -> FullArgSpec:
    """The arguments of a function, as `inspect` tells them, without annotations: TensorFlow 1's functions have none."""
    return inspect.getfullargspec(unwrap(obj)[1])._replace(annotations={})


def fn_args(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The names of what a function is still to be given: no `self`, and nothing that a partial one gives."""
    parameters = signature(fn).parameters.values()
    given = fn.keywords if isinstance(fn, functools.partial) else {}
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return tuple(each.name for each in parameters if each.kind in kinds and each.name not in given)


def has_kwargs(fn: Callable[..., Any]) -> bool:
    """Whether a function takes any names of arguments. Raises `TypeError` for what cannot be called."""
    if not callable(fn):
        raise TypeError(f"fn should be a function-like object, but is of type {type(fn)}.")
    return any(each.kind is each.VAR_KEYWORD for each in signature(fn).parameters.values())


def make_decorator(
    target: Callable[..., Any],
    decorator_func: Callable[..., Any],
    decorator_name: str | None = None,
    decorator_doc: str = "",
    decorator_argspec: ArgSpec | None = None,
) -> Callable[..., Any]:
    """`decorator_func` with the name and documentation of what it decorates, which `unwrap` finds again.

    Args:
        target: The function that is decorated.
        decorator_func: What is called in its place.
        decorator_name: Taken, without effect.
        decorator_doc: Likewise.
        decorator_argspec: Likewise.
    """
    functools.update_wrapper(decorator_func, target)
    return decorator_func


def unwrap(maybe_tf_decorator: Any) -> tuple[Sequence[Any], Any]:
    """The decorators around a function, the outermost first, and the function itself."""
    decorators = []
    while hasattr(maybe_tf_decorator, "__wrapped__"):
        decorators.append(maybe_tf_decorator)
        maybe_tf_decorator = maybe_tf_decorator.__wrapped__
    return decorators, maybe_tf_decorator
