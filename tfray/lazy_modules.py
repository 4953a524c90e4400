"""The namespaces of the facade: those that load when they are first used, and what makes a module one of them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Final

from tfray.framework.call_errors import explain_calls

LAZY: Final = {
    "app": "tfray.library.namespaces.app",
    "audio": "tfray.library.namespaces.audio",
    "bitwise": "tfray.library.namespaces.bitwise",
    "contrib": "tfray.contrib",
    "data": "tfray.library.namespaces.data",
    "feature_column": "tfray.library.layers.feature_column",
    "debug": "tfray.library.inspect.debug",
    "debugging": "tfray.library.namespaces.debugging",
    "distributions": "tfray.library.namespaces.distributions",
    "flags": "tfray.library.platform.flags",
    "gfile": "tfray.library.platform.gfile",
    "graph_util": "tfray.library.inspect.graph_util",
    "image": "tfray.library.namespaces.image",
    "io": "tfray.library.namespaces.io",
    "keras": "tfray.keras",
    "layers": "tfray.library.namespaces.layers",
    "linalg": "tfray.library.namespaces.linalg",
    "logging": "tfray.library.platform.logging",
    "lookup": "tfray.library.namespaces.lookup",
    "losses": "tfray.library.layers.losses",
    "manip": "tfray.library.namespaces.manip",
    "metrics": "tfray.library.namespaces.metrics",
    "profiler": "tfray.library.inspect.profiler",
    "python_io": "tfray.library.namespaces.python_io",
    "quantization": "tfray.library.namespaces.quantization",
    "queue": "tfray.library.namespaces.queue",
    "regularizers": "tfray.library.variables.regularizers",
    "resource_loader": "tfray.library.platform.resource_loader",
    "saved_model": "tfray.training.checkpoints.saved_model",
    "sets": "tfray.library.namespaces.sets",
    "signal": "tfray.library.namespaces.signal",
    "sparse": "tfray.library.namespaces.sparse",
    "spectral": "tfray.library.namespaces.spectral",
    "strings": "tfray.library.namespaces.strings",
    "summary": "tfray.library.namespaces.summary",
    "test": "tfray.library.platform.testing",
    "timeline": "tfray.library.inspect.timeline",
    "train": "tfray.training.api",
}
"""Modules by their names in the facade."""

_NOT_HERE: Final = {
    "LMDBReader": "tf.data.Dataset.from_generator with the package lmdb, or TFRecord files",
}
"""Names of TensorFlow 1.15 that do not exist here, and what to use instead."""


def load(facade: str, name: str) -> Any:
    """The module that the facade calls `name`.

    Raises:
        AttributeError: There is none.
    """
    if name in _NOT_HERE:
        raise AttributeError(f"{facade}.{name} does not exist in tfray: use {_NOT_HERE[name]}")
    if name not in LAZY:
        raise AttributeError(f"module {facade!r} has no attribute {name!r}")
    module = importlib.import_module(LAZY[name])
    publish(module)
    setattr(sys.modules[facade], name, module)
    return module


def publish(namespace: ModuleType) -> None:
    """Make a module a public namespace, and those that are in it.

    Errors of its functions and classes name their arguments, and `dir` gives its ``__all__``, not what it imports.
    """
    explain_calls(namespace)
    _list_public_names(namespace)


def _list_public_names(namespace: ModuleType) -> None:
    names = vars(namespace)
    names["__dir__"] = lambda: sorted(names["__all__"])
    for name in names["__all__"]:
        value = names.get(name)
        if isinstance(value, ModuleType) and value.__name__.startswith("tfray.") and "__dir__" not in vars(value):
            _list_public_names(value)


class LazyPackage(ModuleType):
    """A package of namespaces: each is published as soon as it is loaded, however it is imported."""

    __all__: Sequence[str]

    def __dir__(self) -> list[str]:
        return sorted(self.__all__)

    def __setattr__(self, name: str, value: Any) -> None:
        # Python sets a module as an attribute of its package once it is complete.
        if name in self.__all__ and isinstance(value, ModuleType):
            publish(value)
        super().__setattr__(name, value)
