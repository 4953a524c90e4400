"""``tf.keras``: models as objects with fit, evaluate and predict, a thin layer over the graph and a session."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, Final

from tfray.lazy_modules import LazyPackage

if TYPE_CHECKING:
    from tfray.keras import (
        activations,
        applications,
        backend,
        callbacks,
        constraints,
        datasets,
        estimator,
        experimental,
        initializers,
        layers,
        losses,
        metrics,
        mixed_precision,
        models,
        optimizers,
        preprocessing,
        regularizers,
        utils,
        wrappers,
    )
    from tfray.keras.layers import Input
    from tfray.keras.models import Model, Sequential

# fmt: off
__all__ = [
    "Input", "Model", "Sequential", "activations", "applications", "backend", "callbacks", "constraints", "datasets",
    "estimator", "experimental", "initializers", "layers", "losses", "metrics", "mixed_precision", "models",
    "optimizers", "preprocessing", "regularizers", "utils", "wrappers",
]
# fmt: on

__version__: Final = "2.2.4-tf"
"""The version of Keras that TensorFlow 1.15 has."""

_NAMES: Final = {"Input": "layers", "Model": "models", "Sequential": "models"}
"""Names of the package itself, and the modules that have them."""

if not TYPE_CHECKING:  # to type checkers, a name that is not listed does not exist

    def __getattr__(name: str) -> Any:
        if name in _NAMES:
            return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
        if name in __all__:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"tf.keras.{name} does not exist in tfray; there are {', '.join(__all__)}")


sys.modules[__name__].__class__ = LazyPackage
