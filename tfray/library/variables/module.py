"""`tf.Module`: objects that find the variables and modules among their attributes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from tfray.framework.scopes import name_scope
from tfray.library.variables.variables import Variable

_Method = TypeVar("_Method", bound=Callable[..., Any])
_Value = TypeVar("_Value")


class Module:
    """A part of a model: a named holder of variables, of other modules, and of functions on tensors.

        class Dense(tf.Module):
            def __init__(self, inputs, outputs, name=None):
                super().__init__(name=name)
                with self.name_scope:
                    self.w = tf.Variable(tf.random.normal([inputs, outputs]), name="w")

            @tf.Module.with_name_scope
            def __call__(self, x):
                return tf.matmul(x, self.w)

    Args:
        name: Its name, a Python identifier; by default that of the class in lower case with underscores.

    Raises:
        ValueError: `name` is no identifier.
    """

    _TF_MODULE_IGNORED_PROPERTIES: frozenset[str] = frozenset()
    """Attributes that are not searched; classes of programs add theirs."""

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = re.sub(r"((?<=[a-z0-9])[A-Z]|(?!^)[A-Z](?=[a-z]))", r"_\1", type(self).__name__).lower()
        elif not re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name):
            raise ValueError(f"{name!r} is no name of a module: it must be a Python identifier")
        self._name = name
        with name_scope(name) as scope:
            self._scope_name = scope

    @property
    def name(self) -> str:
        """Its name, without those of the modules that hold it."""
        return self._name

    @property
    def name_scope(self) -> AbstractContextManager[str]:
        """A context manager that puts operations under the name scope that the module opened when it was made."""
        return name_scope(self._scope_name)

    @property
    def variables(self) -> tuple[Any, ...]:
        """Variables of the module by name of attribute, then those of the modules in it."""
        return tuple(self._flatten(predicate=_is_variable))

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """Those of `variables` that optimizers change."""
        return tuple(self._flatten(predicate=lambda leaf: _is_variable(leaf) and leaf.trainable))

    @property
    def submodules(self) -> tuple[Module, ...]:
        """All modules in this one, and in those."""
        return tuple(self._flatten(predicate=lambda leaf: isinstance(leaf, Module)))

    def _flatten(
        self,
        recursive: bool = True,
        predicate: Callable[[Any], Any] | None = None,
        attribute_traversal_key: Callable[[str], Any] | None = None,
        with_path: bool = False,
    ) -> Iterator[Any]:
        """What attributes hold, those in lists, tuples and dictionaries too; each thing once unless `with_path`.

        Args:
            recursive: Whether what is in modules among it follows, after all that is in this one.
            predicate: Which things are wanted; all when None.
            attribute_traversal_key: Key by which the names of attributes are sorted.
            with_path: Give pairs of path and thing.
        """
        seen = {id(self)}

        def visit(path: tuple[Any, ...], module: Module) -> Iterator[Any]:
            inner = []
            searched = vars(module).keys() - module._TF_MODULE_IGNORED_PROPERTIES
            for key in sorted(searched, key=attribute_traversal_key):
                for leaf_path, leaf in _leaves((*path, key), vars(module)[key]):
                    if not with_path and id(leaf) in seen:
                        continue
                    seen.add(id(leaf))
                    if predicate is None or predicate(leaf):
                        yield (leaf_path, leaf) if with_path else leaf
                    if recursive and isinstance(leaf, Module):
                        inner.append((leaf_path, leaf))
            for leaf_path, leaf in inner:
                yield from visit(leaf_path, leaf)

        return visit((), self)

    def _no_dependency(self, value: _Value) -> _Value:
        """The value itself, as of `tf.contrib.checkpoint.NoDependency`."""
        return value

    @classmethod
    def with_name_scope(cls, method: _Method) -> _Method:
        """Decorator: the method opens the module's name scope."""

        @functools.wraps(method)
        def within(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return within  # type: ignore[return-value]


def _is_variable(leaf: Any) -> bool:
    return isinstance(leaf, Variable)


def _leaves(path: tuple[Any, ...], value: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, Mapping):
        for key in sorted(value):
            yield from _leaves((*path, key), value[key])
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _leaves((*path, index), item)
    else:
        yield path, value
