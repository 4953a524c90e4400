"""Layers, optimizers, losses and models as plain data, which JSON can hold, and what that data describes.

What a class of tfray's or of the program's is made with is remembered, so that `get_config` can tell it. Classes and
functions are named as Keras names them, ``Dense``; those of a program too, for which `restored` is given a dictionary.
What another one of tfray hides, such as a metric that is called like a loss, is named with its module,
``metrics.MeanSquaredError``.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, Final, Self

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.call_errors import DAMAGE, reason_of
from tfray.framework.dtypes import DType
from tfray.framework.tensor_shape import Dimension, TensorShape
from tfray.library.variables.initializers import Initializer

_KERAS: Final = "layers models activations initializers regularizers constraints losses metrics optimizers"
_MODULES: Final = {
    **{name: f"tfray.keras.{name}" for name in _KERAS.split()},
    "init": "tfray.library.namespaces.initializers",
    "nn": "tfray.library.namespaces.nn",
    "experimental": "tfray.keras.experimental",
    "schedules": "tfray.keras.learning_rate_schedules",
    "math": "tfray.library.namespaces.math",
    "tf_layers": "tfray.library.namespaces.layers",
    "rnn_cell": "tfray.library.namespaces.rnn_cell",
    "operations": "tfray.keras.layers.operation_layers",
    "feature_column": "tfray.library.layers.feature_column",
    "mixed_precision": "tfray.keras.mixed_precision.experimental",
    "loss_scale": "tfray.training.experimental",
}
"""Modules whose public names may stand in descriptions."""


# fmt: off
_SHORT: Final = (
    "layers", "models", "initializers", "regularizers", "constraints", "optimizers", "schedules", "losses", "metrics",
    "feature_column", "mixed_precision", "loss_scale", "experimental",
)
# fmt: on
"""Those in which names without a module are looked for, in this order."""

_OTHER_NAMES: Final = {
    "Functional": "models.Model",
    "BatchNormalizationV1": "layers.BatchNormalization",
    "BatchNormalizationV2": "layers.BatchNormalization",
    "GlorotNormal": "initializers.glorot_normal",
    "GlorotUniform": "initializers.glorot_uniform",
    "HeNormal": "initializers.he_normal",
    "HeUniform": "initializers.he_uniform",
    "LecunNormal": "initializers.lecun_normal",
    "LecunUniform": "initializers.lecun_uniform",
    "L1": "regularizers.l1",
    "L2": "regularizers.l2",
    **{name: f"operations.{name}" for name in ("AddLoss", "AddMetric", "TensorFlowOpLayer")},
}
"""Further names, which files of Keras have."""

_FURTHER_KEYS: Final = {"module", "registered_name", "build_config", "shared_object_id"}
"""What Keras 2.12 and later write beside the name of a class and its configuration."""

_WITHOUT_EFFECT: Final = {"groups": 1, "renorm_momentum": 0.99, "ema_momentum": 0.99, "num_cols": 1}
_ACCEPTED: Final = {"implementation", "jit_compile", "is_legacy_optimizer", "seed", "fn"}
"""Arguments of other versions of Keras that change nothing where they are not known, whatever their value."""

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

    Several versions of Python take those of ``__new__``, wherever it is inherited from. A class of tfray's shows those
    behind ``*args`` and ``**kwargs``, too.
    """

    def __get__(self, instance: object, owner: type[Described]) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        own = list(inspect.signature(inspect.unwrap(owner.__init__)).parameters.values())[1:]
        if owner.__module__.startswith("tfray.") and any(each.kind is each.VAR_KEYWORD for each in own):
            own = [*owner._parameters().values(), *(each for each in own if each.kind is each.VAR_KEYWORD)]
        return inspect.Signature(own)


_UNSAID: Final = {
    "adjustment", "fused", "renorm", "renorm_clipping", "renorm_momentum", "verify_shape", "virtual_batch_size",
    "zero_output_for_mask",
}  # fmt: skip
"""Arguments that stand in no configuration while they have their defaults, as in TensorFlow 1.15."""

_UNSAID_IN_FILES: Final = {"dtype", "implementation", "ragged", "time_major"}
"""Those that stand in no file while they have their defaults: not every version of Keras knows them."""


class Described:
    """A mixin for classes that are described by the arguments with which they are made."""

    _made_with: tuple[tuple[Any, ...], dict[str, Any]]
    _unsaid: ClassVar[Collection[str]] = ()  # arguments that stand in a configuration only where they are given
    __signature__ = _SignatureOfInit()

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """The object, which remembers the arguments."""
        made = super().__new__(cls)
        made._made_with = args, kwargs
        return made

    def get_config(self) -> dict[str, Any]:
        """The arguments with which it was made, by name, and defaults of others. What has no name is in ``args``."""
        args, kwargs = self._made_with
        parameters = self._parameters()
        named = [name for name, parameter in parameters.items() if parameter.kind is not parameter.KEYWORD_ONLY]
        if len(args) > len(named):
            return {"args": list(args), **kwargs}
        defaults = {
            # Some defaults are classes, of which layers make objects.
            name: parameter.default() if hasattr(parameter.default, "from_config") else parameter.default
            for name, parameter in parameters.items()
            if parameter.default is not parameter.empty and name not in _UNSAID and name not in self._unsaid
        }
        return {**defaults, **dict(zip(named, args, strict=False)), **kwargs}

    @classmethod
    def _parameters(cls) -> dict[str, inspect.Parameter]:
        """The parameters, those behind ``*args`` and ``**kwargs`` too; first those that may be given by place."""
        by_place: dict[str, inspect.Parameter] = {}
        by_name: dict[str, inspect.Parameter] = {}
        is_by_place = True
        for kind in cls.__mro__:
            if "_parameters_end_here" in vars(kind):
                break
            if "__init__" not in vars(kind):
                continue
            own = list(inspect.signature(inspect.unwrap(vars(kind)["__init__"])).parameters.values())[1:]
            for each in own:
                if each.kind is each.POSITIONAL_OR_KEYWORD and is_by_place and each.name not in by_name:
                    by_place.setdefault(each.name, each)
                elif each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
                    by_name.setdefault(each.name, each.replace(kind=each.KEYWORD_ONLY))
            is_by_place = is_by_place and any(each.kind is each.VAR_POSITIONAL for each in own)
            if not any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in own):
                break
        return {**by_place, **{name: each for name, each in by_name.items() if name not in by_place}}

    @classmethod
    def _known_arguments(cls) -> set[str]:
        """What a configuration may have."""
        return {*cls._parameters(), "args"}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, object] | None = None) -> Self:
        """What `get_config` describes, made anew.

        Args:
            config: The description.
            custom_objects: Classes and functions of the program that it names.
        """
        settings = dict(config)
        with CustomObjectScope(custom_objects or {}):
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
        found = {str(key): described(item) for key, item in value.items()}
        kind = _found(found["class_name"]) if found.keys() == {"class_name", "config"} else None
        return found if kind is None else {**found, "config": _as_keras_has_it(found["config"], kind)}
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biuf":
        return value.tolist()
    if isinstance(value, DType):
        return value.name
    if isinstance(value, TensorShape):
        return value.as_list()
    if isinstance(value, Dimension):
        return value.value
    if not isinstance(value, type) and hasattr(value, "get_config"):
        return described_by(value, _as_keras_has_it(described(value.get_config()), type(value)))
    if isinstance(value, type) or inspect.isroutine(value):
        return {"function": _name_of(value)}
    raise InvalidArgumentError(f"{value!r} cannot be described: numbers, texts, and objects with get_config can be")


def described_by(value: object, config: dict[str, Any]) -> dict[str, Any]:
    """An object as the name of its class and a configuration."""
    return {"class_name": _name_of(type(value)), "config": config}


def _as_keras_has_it(config: Any, kind: Any) -> Any:
    """Names alone of functions that `tf.keras.activations` has; nothing that only some versions of Keras know."""
    if not isinstance(config, dict) or not str(kind.__module__).startswith("tfray."):
        return config
    defaults: dict[str, Any] = {}
    if isinstance(kind, type) and issubclass(kind, Described):
        defaults = {"dtype": None} | {name: parameter.default for name, parameter in kind._parameters().items()}
    elif isinstance(kind, type) and issubclass(kind, Initializer):
        defaults = {"dtype": "float32"}
    found = {
        name: item
        for name, item in config.items()
        if name not in _UNSAID_IN_FILES or name not in defaults or item != defaults[name]
    }
    for name, item in found.items():
        if name.endswith("activation") and isinstance(item, dict) and item.keys() == {"function"}:
            own = item["function"].rpartition(".")[2]
            found[name] = own if own in _names_of_activations() else item
    return found


def _names_of_activations() -> set[str]:
    known = importlib.import_module(_MODULES["activations"]).__all__
    return {*known, *importlib.import_module("tfray.library.layers.named_activations").OF_NN}


def told(name: str, value: Any) -> Any:
    """The argument of that name as Keras has it in configurations.

    Functions of `tf.keras.activations` and dtypes are their names; objects are their classes and configurations, where
    the name of the class finds it again. What the program has made and not registered stays as it is.
    """
    if type(value) in (list, tuple):
        return type(value)(told(name, each) for each in value)
    if isinstance(value, DType):
        return value.name
    if inspect.isroutine(value) and name.endswith("activation") and value.__module__.startswith("tfray."):
        return value.__name__ if value.__name__ in _names_of_activations() else value
    if isinstance(value, type) or not hasattr(value, "get_config"):
        return value
    own = get_registered_name(type(value))
    return {"class_name": own, "config": value.get_config()} if _found(own) is type(value) else value


def _found(name: object) -> Any:
    """The class or function that a description names, or None."""
    try:
        return _named(name)
    except InvalidArgumentError:
        return None


def without_modules(value: Any) -> Any:
    """A description whose functions are names alone, and whose classes are without modules, as Keras has them."""
    if isinstance(value, list):
        return [without_modules(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"function"}:
        return value["function"].rpartition(".")[2]
    if value.keys() == {"class_name", "config"}:
        value = {**value, "class_name": value["class_name"].rpartition(".")[2]}
    return {key: without_modules(item) for key, item in value.items()}


def _name_of(value: type | Callable[..., object]) -> str:
    name = value.__name__
    if value in _registered_names:
        return _registered_names[value]
    for short, module_name in _MODULES.items():
        module = importlib.import_module(module_name)
        if name in module.__all__ and getattr(module, name) is value:
            is_known = isinstance(value, type) and (name in _OTHER_NAMES or _public(name) is value)
            return name if is_known else f"{short}.{name}"
        if getattr(module, _OTHER_NAMES.get(name, "").rpartition(".")[2], None) is value:
            return name
    if not name.isidentifier():
        raise InvalidArgumentError(
            f"{value!r} cannot be described, because it has no name: use a function that `def` names, and give it as "
            "custom_objects when the model is loaded"
        )
    return str(name)


def restored(value: object, custom_objects: Mapping[str, object] | None = None, first: str = "layers") -> Any:
    """What `described` gave, as objects again; also what versions of Keras describe.

    Args:
        value: The description.
        custom_objects: Classes and functions of the program, by name.
        first: The module of ``tf.keras`` in which names without a module are looked for before others.

    Raises:
        InvalidArgumentError: It names what is not there, or describes nothing that can be made.
    """
    with CustomObjectScope(custom_objects or {}):
        return _restored(value, first)


def _restored(value: object, first: str = "layers") -> Any:
    if isinstance(value, list):
        return [_restored(item, first) for item in value]
    if not isinstance(value, Mapping):
        return value
    if value.keys() == {"function"}:
        return _named(value["function"], first)
    if not {"class_name", "config"} <= value.keys() <= {"class_name", "config", *_FURTHER_KEYS}:
        return {key: _restored(item, first) for key, item in value.items()}
    if value["class_name"] == "DTypePolicy":
        return value["config"]["name"]
    if value["class_name"] == "function":
        return _named(value["config"], first)
    found = _named(value["class_name"], first)
    is_ours = str(found.__module__).startswith("tfray.")
    is_network = is_ours and hasattr(found, "_can_be_cloned")  # it restores its layers itself
    config = value["config"] if is_network else _restored(value["config"])
    makes = getattr(found, "from_config", None)
    if makes is None and value["class_name"] in _OTHER_NAMES:
        makes = _maker(found)
    if makes is None or not isinstance(config, (dict, list) if is_network else dict):
        raise InvalidArgumentError(f"{value['class_name']!r} is no class that has from_config")
    if is_ours and not is_network and isinstance(config, dict):
        config = _understood(found, config)
    try:
        return makes(config)
    except InvalidArgumentError:
        raise
    except DAMAGE as error:
        raise InvalidArgumentError(f"{value['class_name']!r} cannot be made of {config}: {reason_of(error)}") from error


def _maker(function: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
    """What makes things of configurations by a function that takes these as arguments."""

    def make(config: dict[str, Any]) -> Any:
        return function(*config.values()) if len(config) == 1 else function(**config)

    return make


def _understood(found: Any, config: dict[str, Any]) -> dict[str, Any]:
    """A configuration without what other versions of Keras have in it, as far as it changes nothing."""
    if isinstance(found, type) and issubclass(found, Described):
        known = found._known_arguments()
    else:
        known = {*inspect.signature(found).parameters}
        known |= {*config} if len(config) == 1 and not isinstance(found, type) else set()
    kept: dict[str, Any] = {}
    for name, item in config.items():
        if name in known:
            kept[name] = item
        elif item and name not in _ACCEPTED and _WITHOUT_EFFECT.get(name) != item:
            raise InvalidArgumentError(f"{found.__name__} has no argument {name!r}, for which there is {item!r}")
    return kept


NAMED: Final = ("initializer", "regularizer", "constraint")
"""What may be given by name."""


def named(value: object, kind: str) -> Any:
    """The initializer, regularizer or constraint of that name or description in ``tf.keras``; others unchanged."""
    return importlib.import_module(f"tfray.keras.{kind}s").get(value) if isinstance(value, (str, Mapping)) else value


def as_given(identifier: Any, what: str) -> Any:
    """What a function ``get`` of Keras is given that is neither a name nor a description: an object, or None.

    Raises:
        InvalidArgumentError: It is nothing that may be called. It is also a `ValueError`.
    """
    if identifier is None or callable(identifier):
        return identifier
    raise InvalidArgumentError(f"Could not interpret {what} identifier: {identifier!r}")


def serialize(value: object) -> Any:
    """What `deserialize` makes it of again: the name of a function, or the description of an object."""
    return value.__name__ if inspect.isroutine(value) else described(value)


def deserializer(get: Callable[[Any], Any]) -> Callable[..., Any]:
    """The function ``deserialize`` of a module whose function `get` finds things by name."""

    def deserialize(config: Any, custom_objects: Mapping[str, object] | None = None) -> Any:
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


def unknown(what: str, name: object) -> str:
    """What TensorFlow says of a name that nothing has: with a blank behind the colon only for what it finds as classes.

    Args:
        what: What was looked for, such as ``loss function``.
        name: The name.
    """
    return f"Unknown {what}:{' ' if what in ('constraint', 'optimizer', 'layer') else ''}{name}"


def named_object(name: str, known: Mapping[str, object], what: str) -> Any:
    """What a name stands for: an object of a class with its default arguments, or a function.

    Args:
        name: The name, of tfray's or of the program's.
        known: Those of tfray.
        what: What it is, for the message.

    Raises:
        InvalidArgumentError: There is none of that name. It is also a `ValueError`.
    """
    found = {**known, **_custom_objects}.get(name)
    if found is None:
        names = sorted(filter(str.islower, known)) or sorted(known)
        raise InvalidArgumentError(f"{unknown(what, name)}; there are {', '.join(names)}")
    return found() if isinstance(found, type) else found


def _public(name: str, first: str = "layers") -> Any:
    """What a name without a module stands for among the public names of `tf.keras`, or None."""
    for short in (first, *_SHORT):
        module = importlib.import_module(_MODULES[short])
        if name in module.__all__:
            return getattr(module, name)
    return None


def _named(name: object, first: str = "layers") -> Any:
    name = _OTHER_NAMES.get(str(name), name)
    short, _, own = str(name).rpartition(".")
    known = _custom_objects
    if str(name) in _registered_names.values():
        return known[str(name)]
    if not short and own not in known:
        found = _public(own.rpartition(">")[2], first)
        if found is not None:
            return found
    if not short and own in known:
        return known[own]
    module = importlib.import_module(_MODULES[short]) if short in _MODULES else None
    if module is None or own not in module.__all__:
        raise InvalidArgumentError(
            f"the model has {name!r}, which is not of tfray: give it as custom_objects={{{own!r}: ...}}"
        )
    return getattr(module, own)
