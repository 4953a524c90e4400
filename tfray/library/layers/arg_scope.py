"""Default arguments for functions within a block: ``arg_scope`` of ``tf.contrib.slim``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from tfray.errors import ArgumentError, InvalidArgumentError

Scope = Mapping[str, Mapping[str, Any]]
"""Default arguments by the keys of functions, which are TensorFlow's: their texts."""

_Function = TypeVar("_Function", bound=Callable[..., Any])
_current: ContextVar[Scope] = ContextVar("arg_scope", default={})  # noqa: B039 (never changed in place)


def add_arg_scope(func: _Function) -> _Function:
    """Decorator: let `arg_scope` set default arguments of a function."""

    @functools.wraps(func)
    def with_defaults(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **{**_current.get().get(key, {}), **kwargs})

    key = str(func)
    with_defaults._key_op = key  # type: ignore[attr-defined]  # a function put around has it, too
    return with_defaults  # type: ignore[return-value]


def has_arg_scope(func: Any) -> bool:
    """Whether `arg_scope` can set default arguments of a function."""
    return hasattr(func, "_key_op")


def current_arg_scope() -> dict[str, dict[str, Any]]:
    """The default arguments in force, by the keys of functions."""
    return {key: dict(defaults) for key, defaults in _current.get().items()}


def arg_scoped_arguments(func: Any) -> tuple[str, ...]:
    """Names of the arguments of a function that have defaults, and that `arg_scope` may set.

    Raises:
        InvalidArgumentError: The function is not decorated by `add_arg_scope`.
    """
    if not has_arg_scope(func):
        raise InvalidArgumentError(f"arg_scope: {func!r} is not decorated by add_arg_scope")
    parameters = inspect.signature(func).parameters.values()
    return tuple(each.name for each in parameters if each.default is not each.empty)


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
        InvalidArgumentError: A function is not decorated, or there are arguments besides a scope. It is a `TypeError`
            where there is no list of functions.
    """
    if isinstance(list_ops_or_scope, Mapping):
        if kwargs:
            raise InvalidArgumentError("arg_scope: give either a scope or functions with arguments")
        scope: Scope = dict(list_ops_or_scope)
    else:
        if not isinstance(list_ops_or_scope, (list, tuple)):
            raise ArgumentError(f"arg_scope takes a list of functions, not {list_ops_or_scope!r}")
        scope = dict(_current.get())
        for function in list_ops_or_scope:
            if not has_arg_scope(function):
                raise InvalidArgumentError(f"arg_scope: {function!r} is not decorated by add_arg_scope")
            key = function._key_op
            scope = {**scope, key: {**scope.get(key, {}), **kwargs}}
    token = _current.set(scope)
    try:
        yield scope
    finally:
        _current.reset(token)
