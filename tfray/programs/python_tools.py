"""``tensorflow.python.util``: how TensorFlow looks at functions and wraps them, for programs that do likewise."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
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
from types import CodeType
from typing import Any, NamedTuple

__all__ = [
    "ArgSpec",
    "FullArgSpec",
    "TFDecorator",
    "contextmanager",
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
    "has_arg",
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
    "keyword_args_only",
    "make_decorator",
    "rewrap",
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

    Of what is decorated they are those that its outermost decorator tells, if one does. Of a `functools.partial` they
    are those that are still open, and those that it gives by name, with these defaults.

    Raises:
        ValueError: A partial function gives by name what stands before an argument that has no default.
    """
    if not isinstance(obj, functools.partial):
        decorators, target = unwrap(obj)
        for decorator in decorators:
            if decorator.decorator_argspec is not None:
                return decorator.decorator_argspec
        found = getfullargspec(target)
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


def has_arg(fn: Callable[..., Any], name: str, accept_all: bool = False) -> bool:
    """Whether a function takes an argument by name.

    Args:
        fn: The function.
        name: The argument's name.
        accept_all: Whether ``**kwargs`` counts.

    Returns:
        True if it does.
    """
    spec = getfullargspec(fn)
    return name in spec.args + spec.kwonlyargs or (accept_all and spec.varkw is not None)


def has_kwargs(fn: Callable[..., Any]) -> bool:
    """Whether a function takes any names of arguments. Raises `TypeError` for what cannot be called."""
    if not callable(fn):
        raise TypeError(f"fn should be a function-like object, but is of type {type(fn)}.")
    return any(each.kind is each.VAR_KEYWORD for each in signature(fn).parameters.values())


def get_func_name(func: Any) -> str:
    """Name of a function; with that of its class for a method, and the type for another object that can be called.

    Raises:
        ValueError: It cannot be called.
    """
    func = _callable(func)
    if inspect.isfunction(func):
        return func.__name__
    if inspect.ismethod(func):
        return f"{type(func.__self__).__name__}.{func.__func__.__name__}"
    return str(type(func))


def get_func_code(func: Any) -> CodeType | None:
    """The code of a function or method, or of an object's ``__call__``; None where that is not written in Python.

    Raises:
        ValueError: It cannot be called.
    """
    func = _callable(func)
    own = func if inspect.isfunction(func) or inspect.ismethod(func) else func.__call__
    return getattr(own, "__code__", None)


def _callable(func: Any) -> Any:
    func = unwrap(func)[1]
    if not callable(func):
        raise ValueError("Argument must be callable")
    return func


class TFDecorator:
    """A callable in place of another one, which `unwrap` finds again.

    Args:
        decorator_name: Name of the decorator.
        target: What it decorates, and calls.
        decorator_doc: Its documentation; that of the target when empty.
        decorator_argspec: The arguments that `getargspec` tells; those of the target when None.
    """

    def __init__(
        self,
        decorator_name: str | None,
        target: Callable[..., Any],
        decorator_doc: str | None = "",
        decorator_argspec: ArgSpec | None = None,
    ) -> None:
        self._decorated_target = target
        self.decorator_name = decorator_name
        self.decorator_doc = decorator_doc
        self.decorator_argspec = decorator_argspec
        self.__name__ = getattr(target, "__name__", "")
        self.__doc__ = decorator_doc or target.__doc__

    @property
    def decorated_target(self) -> Callable[..., Any]:
        """What it decorates."""
        return self._decorated_target

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """The target as a method."""
        return self._decorated_target.__get__(instance, owner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the target."""
        return self._decorated_target(*args, **kwargs)


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
        decorator_func: What is called in its place. It may call ``decorator_func.__wrapped__``; see `rewrap`.
        decorator_name: Name of the decorator; that of the function that calls `make_decorator` when None.
        decorator_doc: As for `TFDecorator`.
        decorator_argspec: Likewise.
    """
    name = decorator_name or sys._getframe(1).f_code.co_name
    decorator = TFDecorator(name, target, decorator_doc, decorator_argspec)
    made: Any = functools.update_wrapper(decorator_func, target)
    made.__doc__ = decorator.__doc__
    made._tf_decorator = decorator
    return decorator_func


def unwrap(maybe_tf_decorator: Any) -> tuple[Sequence[TFDecorator], Any]:
    """The decorators around a function, the outermost first, and the function itself.

    Those that `functools.wraps` has made are passed, but not told.
    """
    decorators: list[TFDecorator] = []
    target = maybe_tf_decorator
    while True:
        if (decorator := _decorator_of(target)) is not None:
            decorators.append(decorator)
            target = decorator.decorated_target
        elif hasattr(target, "__wrapped__"):
            target = target.__wrapped__
        else:
            return decorators, target


def _decorator_of(obj: Any) -> TFDecorator | None:
    found = obj if isinstance(obj, TFDecorator) else getattr(obj, "_tf_decorator", None)
    return found if isinstance(found, TFDecorator) else None


def rewrap(decorator_func: Any, previous_target: Any, new_target: Callable[..., Any]) -> None:
    """Let the decorator around `previous_target` decorate another function, also where it is called already.

    Args:
        decorator_func: A decorated function.
        previous_target: What is decorated, or one of its decorators.
        new_target: What takes the place of `previous_target`.
    """
    around, inner = None, decorator_func
    while inner is not previous_target and (decorator := _decorator_of(inner)) is not None:
        around, inner = inner, decorator.decorated_target
    if around is not None:
        changed = _decorator_of(around)
        assert changed is not None
        changed._decorated_target = new_target
        if around is not changed:
            around.__wrapped__ = new_target


def contextmanager(target: Callable[..., Any]) -> Callable[..., Any]:
    """`contextlib.contextmanager`, by a decorator that `unwrap` finds."""
    return make_decorator(target, contextlib.contextmanager(target), "contextmanager")


def keyword_args_only(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: a function that raises `ValueError` unless all arguments are given by name."""

    def named(*args: Any, **kwargs: Any) -> Any:
        if args:
            raise ValueError(f"Must use keyword args to call {func.__name__}.")
        return func(**kwargs)

    return make_decorator(func, named, "keyword_args_only")
