"""Layers, optimizers, losses and models as plain data, which JSON can hold, and what that data describes.

What a class of tfray's or of the program's is made with is remembered, so that `get_config` can tell it. Classes and
functions of tfray are named by their module, ``layers.Dense``; those of a program by their bare names, for which
`restored` is given a dictionary.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.call_errors import DAMAGE, reason_of
from tfray.framework.dtypes import DType
from tfray.framework.tensor_shape import Dimension, TensorShape

_KERAS: Final = "layers models activations initializers regularizers constraints losses metrics optimizers"
_MODULES: Final = {
    **{name: f"tfray.keras.{name}" for name in _KERAS.split()},
    "init": "tfray.library.namespaces.initializers",
    "nn": "tfray.library.namespaces.nn",
    "experimental": "tfray.keras.experimental",
    "schedules": "tfray.keras.learning_rate_schedules",
    "math": "tfray.library.namespaces.math",
    "tf_layers": "tfray.library.namespaces.layers",
    "operations": "tfray.keras.layers.operation_layers",
}
"""Modules whose public names may stand in descriptions."""


_custom_objects: Final[dict[str, Any]] = {}


def get_custom_objects() -> dict[str, Any]:
    """Classes and functions of the program by name, for all descriptions that are read. It may be changed."""
    return _custom_objects


_registered_names: Final[dict[Any, str]] = {}


def register_keras_serializable(package: str = "Custom", name: str | None = None) -> Callable[[Any], Any]:
    """A decorator for a class or function of the program, which descriptions then name ``package>name``.

    Args:
        package: Where it belongs.
        name: Its name; that of the class or function when None.

    Raises:
        ValueError: The class has no ``get_config``; it has a name already, or the name is taken.
    """

    def decorate(found: Any) -> Any:
        registered = f"{package}>{name or found.__name__}"
        if isinstance(found, type) and not hasattr(found, "get_config"):
            raise ValueError("Cannot register a class that does not have a get_config() method.")
        if registered in _custom_objects:
            raise ValueError(f"{registered} has already been registered to {_custom_objects[registered]}")
        if found in _registered_names:
            raise ValueError(f"{found} has already been registered to {_registered_names[found]}")
        _custom_objects[registered] = found
        _registered_names[found] = registered
        return found

    return decorate


def get_registered_name(obj: Any) -> str:
    """The name that `register_keras_serializable` gave to a class or function, or its own."""
    return _registered_names.get(obj) or str(obj.__name__)


def get_registered_object(
    name: str, custom_objects: Mapping[str, object] | None = None, module_objects: Mapping[str, object] | None = None
) -> Any:
    """The class or function of that name: of `custom_objects`, a registered one, or of `module_objects`; or None.

    Args:
        name: The name.
        custom_objects: Classes and functions of the program, by name.
        module_objects: Others, in which it is looked for last.
    """
    known = {**(module_objects or {}), **(custom_objects or {}), **_custom_objects}
    return known.get(name)


class CustomObjectScope:
    """A context manager within which descriptions may name classes and functions of the program.

    Args:
        *dictionaries: Classes and functions by name.
    """

    def __init__(self, *dictionaries: Mapping[str, object]) -> None:
        self._given = dictionaries

    def __enter__(self) -> None:
        self._before = dict(_custom_objects)
        for each in self._given:
            _custom_objects.update(each)

    def __exit__(self, *error: object) -> None:
        _custom_objects.clear()
        _custom_objects.update(self._before)


class _SignatureOfInit:
    """What `inspect.signature` says of a class: the parameters of its ``__init__``.

    Several versions of Python take those of ``__new__``, wherever it is inherited from.
    """

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        signature = inspect.signature(owner.__init__)  # type: ignore[misc]
        return signature.replace(parameters=list(signature.parameters.values())[1:])


class Described:
    """A mixin for classes that are described by the arguments with which they are made."""

    _made_with: tuple[tuple[Any, ...], dict[str, Any]]
    __signature__ = _SignatureOfInit()

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """The object, which remembers the arguments."""
        made = super().__new__(cls)
        made._made_with = args, kwargs
        return made

    def get_config(self) -> dict[str, Any]:
        """The arguments with which it was made, by name. What has no name is in the list ``args``."""
        args, kwargs = self._made_with
        parameters = list(inspect.signature(type(self)).parameters.values())
        named = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        if len(args) > len(named):
            return {"args": list(args), **kwargs}
        return {**dict(zip(named, args, strict=False)), **kwargs}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """What `get_config` describes, made anew."""
        settings = dict(config)
        return cls(*settings.pop("args", ()), **settings)

    @classmethod
    def _takes(cls, name: str) -> bool:
        parameters = inspect.signature(cls).parameters.values()
        return any(p.name == name or p.kind is p.VAR_KEYWORD for p in parameters)


def described(value: object) -> Any:
    """A value as numbers, texts, lists and dictionaries.

    Raises:
        InvalidArgumentError: It cannot be described: a tensor, or a function without a name, for example.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [described(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): described(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biuf":
        return value.tolist()
    if isinstance(value, DType):
        return value.name
    if isinstance(value, TensorShape):
        return value.as_list()
    if isinstance(value, Dimension):
        return value.value
    if not isinstance(value, type) and hasattr(value, "get_config"):
        return {"class_name": _name_of(type(value)), "config": described(value.get_config())}
    if isinstance(value, type) or inspect.isroutine(value):
        return {"function": _name_of(value)}
    raise InvalidArgumentError(f"{value!r} cannot be described: numbers, texts, and objects with get_config can be")


def _name_of(value: type | Callable[..., object]) -> str:
    name = value.__name__
    if value in _registered_names:
        return _registered_names[value]
    for short, module_name in _MODULES.items():
        module = importlib.import_module(module_name)
        if name in module.__all__ and getattr(module, name) is value:
            return f"{short}.{name}"
    if not name.isidentifier():
        raise InvalidArgumentError(
            f"{value!r} cannot be described, because it has no name: use a function that `def` names, and give it as "
            "custom_objects when the model is loaded"
        )
    return str(name)


def restored(value: object, custom_objects: Mapping[str, object] | None = None) -> Any:
    """What `described` gave, as objects again.

    Args:
        value: The description.
        custom_objects: Classes and functions of the program, by name.

    Raises:
        InvalidArgumentError: It names what is not there, or describes nothing that can be made.
    """
    if isinstance(value, list):
        return [restored(item, custom_objects) for item in value]
    if not isinstance(value, Mapping):
        return value
    if value.keys() == {"function"}:
        return _named(value["function"], custom_objects)
    if value.keys() != {"class_name", "config"}:
        return {key: restored(item, custom_objects) for key, item in value.items()}
    found = _named(value["class_name"], custom_objects)
    config = restored(value["config"], custom_objects)
    if not isinstance(found, type) or not hasattr(found, "from_config") or not isinstance(config, dict):
        raise InvalidArgumentError(f"{value['class_name']!r} is no class that has from_config")
    try:
        return found.from_config(config)
    except InvalidArgumentError:
        raise
    except DAMAGE as error:
        raise InvalidArgumentError(f"{value['class_name']!r} cannot be made of {config}: {reason_of(error)}") from error


def serialize(value: object) -> Any:
    """What `deserialize` makes it of again: the name of a function, or the description of an object."""
    return value.__name__ if inspect.isroutine(value) else described(value)


def deserializer(get: Callable[[Any], Any]) -> Callable[..., Any]:
    """The function ``deserialize`` of a module whose function `get` finds things by name."""

    def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
        """What `serialize` told of.

        Args:
            config: A name, or a description.
            custom_objects: Classes and functions of the program, by name.

        Raises:
            InvalidArgumentError: There is none of that name.
        """
        with CustomObjectScope(custom_objects or {}):
            return get(config) if isinstance(config, str) else restored(config)

    return deserialize


def named_object(name: str, known: Mapping[str, object], what: str) -> Any:
    """What a name stands for: an object of a class with its default arguments, or a function.

    Args:
        name: The name, of tfray's or of the program's.
        known: Those of tfray.
        what: What it is, for the message.

    Raises:
        InvalidArgumentError: There is none of that name.
    """
    found = {**known, **_custom_objects}.get(name)
    if found is None:
        names = sorted(filter(str.islower, known)) or sorted(known)
        raise InvalidArgumentError(f"there is no {what} {name!r}; there are {', '.join(names)}")
    return found() if isinstance(found, type) else found


def _named(name: object, custom_objects: Mapping[str, object] | None) -> Any:
    short, _, own = str(name).rpartition(".")
    known = {**_custom_objects, **(custom_objects or {})}
    if str(name) in _registered_names.values():
        return known[str(name)]
    if not short and own in known:
        return known[own]
    module = importlib.import_module(_MODULES[short]) if short in _MODULES else None
    if module is None or own not in module.__all__:
        raise InvalidArgumentError(
            f"the model has {name!r}, which is not of tfray: give it as custom_objects={{{own!r}: ...}}"
        )
    return getattr(module, own)
