"""``tf.keras``: models as objects with fit, evaluate and predict, a thin layer over the graph and a session."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final

from tfray.framework.call_errors import ExplainedPackage

_MODULES: Final = (
    "activations",
    "backend",
    "callbacks",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "models",
    "optimizers",
    "regularizers",
    "utils",
)
_NAMES: Final = {"Input": "layers", "Model": "models", "Sequential": "models"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"tf.keras.{name} does not exist in tfray; there are {', '.join(__dir__())}")


def __dir__() -> list[str]:
    return sorted([*_MODULES, *_NAMES])


sys.modules[__name__].__class__ = ExplainedPackage
