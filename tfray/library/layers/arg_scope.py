"""Default arguments for functions within a block: ``arg_scope`` of ``tf.contrib.slim``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from tfray.errors import InvalidArgumentError

Scope = Mapping[Any, Mapping[str, Any]]
"""Default arguments by function."""

_Function = TypeVar("_Function", bound=Callable[..., Any])
_current: ContextVar[Scope] = ContextVar("arg_scope", default={})  # noqa: B039 (never changed in place)


def add_arg_scope(func: _Function) -> _Function:
    """Decorator: let `arg_scope` set default arguments of a function."""

    @functools.wraps(func)
    def with_defaults(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **{**_current.get().get(with_defaults, {}), **kwargs})

    with_defaults._arg_scope_key = with_defaults  # type: ignore[attr-defined]  # a function put around has it, too
    return with_defaults  # type: ignore[return-value]


def has_arg_scope(func: Any) -> bool:
    """Whether `arg_scope` can set default arguments of a function."""
    return hasattr(func, "_arg_scope_key")


def current_arg_scope() -> dict[Any, dict[str, Any]]:
    """The default arguments in force, by function."""
    return {function: dict(defaults) for function, defaults in _current.get().items()}


def arg_scoped_arguments(func: Any) -> dict[str, Any]:
    """The default arguments in force for a function."""
    return dict(_current.get().get(getattr(func, "_arg_scope_key", func), {}))


@contextmanager
def arg_scope(list_ops_or_scope: Sequence[Any] | Scope, **kwargs: Any) -> Iterator[Scope]:
    """Set default arguments of functions for a block.

        with slim.arg_scope([slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(0.001)):
            net = slim.conv2d(images, 64, [3, 3])

    Args:
        list_ops_or_scope: Functions decorated by `add_arg_scope`; or what another ``with arg_scope(...) as scope``
            gave, to set the same again.
        **kwargs: The arguments. They add to those of enclosing blocks.

    Yields:
        All defaults in force.

    Raises:
        InvalidArgumentError: A function is not decorated, or there are arguments besides a scope.
    """
    if isinstance(list_ops_or_scope, Mapping):
        if kwargs:
            raise InvalidArgumentError("arg_scope: give either a scope or functions with arguments")
        scope: Scope = dict(list_ops_or_scope)
    else:
        if not isinstance(list_ops_or_scope, (list, tuple)):
            raise InvalidArgumentError(f"arg_scope takes a list of functions, not {list_ops_or_scope!r}")
        scope = dict(_current.get())
        for function in list_ops_or_scope:
            if not has_arg_scope(function):
                raise InvalidArgumentError(f"arg_scope: {function!r} is not decorated by add_arg_scope")
            key = function._arg_scope_key
            scope = {**scope, key: {**scope.get(key, {}), **kwargs}}
    token = _current.set(scope)
    try:
        yield scope
    finally:
        _current.reset(token)
