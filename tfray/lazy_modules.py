"""The namespaces of the facade: those that load when they are first used, and what makes a module one of them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from tfray.absent_names import absent
from tfray.framework.call_errors import explain_calls

LAZY: Final = {
    "app": "tfray.library.namespaces.app",
    "audio": "tfray.library.namespaces.audio",
    "bitwise": "tfray.library.namespaces.bitwise",
    "config": "tfray.library.namespaces.config",
    "contrib": "tfray.contrib",
    "data": "tfray.training.data_api",
    "estimator": "tfray.estimator",
    "experimental": "tfray.library.functions.executor_settings",
    "feature_column": "tfray.library.layers.feature_column",
    "distribute": "tfray.distribute",
    "debug": "tfray.library.inspect.debug",
    "debugging": "tfray.library.namespaces.debugging",
    "distributions": "tfray.library.namespaces.distributions",
    "dtypes": "tfray.library.namespaces.dtypes",
    "flags": "tfray.library.platform.flags",
    "gfile": "tfray.library.platform.gfile",
    "graph_util": "tfray.library.inspect.graph_util",
    "image": "tfray.library.namespaces.image",
    "initializers": "tfray.library.namespaces.initializers",
    "io": "tfray.library.namespaces.io",
    "keras": "tfray.keras",
    "layers": "tfray.library.namespaces.layers",
    "linalg": "tfray.library.namespaces.linalg",
    "logging": "tfray.library.platform.logging",
    "lookup": "tfray.library.namespaces.lookup",
    "losses": "tfray.library.layers.losses",
    "manip": "tfray.library.namespaces.manip",
    "math": "tfray.library.namespaces.math",
    "metrics": "tfray.library.namespaces.metrics",
    "nest": "tfray.library.namespaces.nest",
    "nn": "tfray.library.namespaces.nn",
    "onnx": "tfray.onnx",
    "profiler": "tfray.library.inspect.profiler",
    "python_io": "tfray.library.namespaces.python_io",
    "quantization": "tfray.library.namespaces.quantization",
    "queue": "tfray.library.namespaces.queue",
    "random": "tfray.library.namespaces.random",
    "regularizers": "tfray.library.variables.regularizers",
    "resource_loader": "tfray.library.platform.resource_loader",
    "saved_model": "tfray.training.checkpoints.saved_model",
    "sets": "tfray.library.namespaces.sets",
    "signal": "tfray.library.namespaces.signal",
    "sparse": "tfray.library.namespaces.sparse",
    "spectral": "tfray.library.namespaces.spectral",
    "strings": "tfray.library.namespaces.strings",
    "summary": "tfray.training.summary_api",
    "sysconfig": "tfray.library.platform.sysconfig",
    "test": "tfray.library.platform.testing",
    "timeline": "tfray.library.inspect.timeline",
    "tpu": "tfray.training.optimizers.cross_shard",
    "train": "tfray.training.api",
    "tune": "tfray.training.trainer.tune",
    "user_ops": "tfray.library.functions.user_ops",
    "version": "tfray.library.platform.version",
    "xla": "tfray.library.functions.xla",
}
"""Modules by their names in the facade."""

_LATE: Final = {
    "tfray.library.functions.critical_section": ("CriticalSection",),
    "tfray.library.input.accumulators": (
        "ConditionalAccumulator",
        "ConditionalAccumulatorBase",
        "SparseConditionalAccumulator",
    ),
    "tfray.library.input.dataset_optional": ("OptionalSpec",),
    "tfray.library.input.readers": (
        "FixedLengthRecordReader",
        "IdentityReader",
        "ReaderBase",
        "TextLineReader",
        "TFRecordReader",
        "WholeFileReader",
    ),
    "tfray.library.inspect.summaries": (
        "audio_summary",
        "histogram_summary",
        "image_summary",
        "merge_all_summaries",
        "merge_summary",
        "scalar_summary",
    ),
    "tfray.ops.quantized.quantized_ops": ("quantized_concat",),
}
"""Modules that few programs use, and what the facade has of them."""

_HOMES: Final = {name: module for module, names in _LATE.items() for name in names}


def load(facade: str, name: str) -> Any:
    """The module, class or function that the facade calls `name`.

    Raises:
        AttributeError: There is none.
    """
    namespace = sys.modules[facade]
    if name in _HOMES:
        home = importlib.import_module(_HOMES[name])
        vars(namespace).update({each: vars(home)[each] for each in _LATE[home.__name__]})
        explain_calls(namespace)
        return vars(namespace)[name]
    if name.startswith("__"):  # asked for by tools, of every module
        raise AttributeError(f"module {facade!r} has no attribute {name!r}")
    if name not in LAZY:
        raise absent(name, namespace.__all__)
    module = importlib.import_module(LAZY[name])
    publish(module, name)
    setattr(namespace, name, module)
    return module


def publish(namespace: ModuleType, path: str = "") -> None:
    """Make a module a public namespace, and those that are in it.

    Errors of its functions and classes name their arguments, and `dir` gives its ``__all__``, not what it imports.

    Args:
        namespace: The module.
        path: Its public name without ``tf.``, for errors that tell of names which are not there.
    """
    explain_calls(namespace)
    _list_public_names(namespace, path)


def _list_public_names(namespace: ModuleType, path: str) -> None:
    names = vars(namespace)
    names["__dir__"] = lambda: sorted(names["__all__"])
    if path:
        names.setdefault("__getattr__", lambda name: _refuse(path, name, names["__all__"]))
    for name in names["__all__"]:
        value = names.get(name)
        if isinstance(value, ModuleType) and value.__name__.startswith("tfray.") and "__dir__" not in vars(value):
            _list_public_names(value, f"{path}.{name}".lstrip("."))


def _refuse(path: str, name: str, there: Sequence[str]) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {path!r} has no attribute {name!r}")
    raise absent(f"{path}.{name}", there)


class LazyPackage(ModuleType):
    """A package of namespaces: each is published as soon as it is loaded, however it is imported."""

    __all__: Sequence[str]

    def __dir__(self) -> list[str]:
        return sorted(self.__all__)

    def __setattr__(self, name: str, value: Any) -> None:
        # Python sets a module as an attribute of its package once it is complete.
        if name in self.__all__ and isinstance(value, ModuleType):
            publish(value, f"{self.__name__}.{name}".removeprefix("tfray."))
        super().__setattr__(name, value)


class NamespaceFinder:
    """Lets ``import tfray.train`` and ``from tfray.nn.rnn_cell import GRUCell`` find public namespaces.

    A finder and a loader by its methods; to import the base classes from `importlib.abc` would take 10 ms.
    """

    def __init__(self, facade: str) -> None:
        self._facade = facade
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The namespace of that name; None if there is none."""
        loader: Any = self
        return ModuleSpec(fullname, loader) if self._namespace(fullname) is not None else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The module that it is already."""
        module = self._namespace(spec.name)
        if module is not None:
            self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module what it is, and let what is in it be imported."""
        assert module.__spec__ is not None
        module.__spec__ = self._specs.pop(module.__spec__.name)
        vars(module).setdefault("__path__", [])

    def _namespace(self, fullname: str) -> ModuleType | None:
        root, *path = fullname.split(".")
        found: Any = sys.modules[root] if root == self._facade else None
        for name in path:
            if not isinstance(found, ModuleType) or name not in getattr(found, "__all__", ()):
                return None
            found = getattr(found, name)
        return found if isinstance(found, ModuleType) else None
