"""Parts of the facade that load when they are first used, to keep ``import tfray`` fast."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final

from tfray.framework.call_errors import explain_calls

LAZY: Final = {
    "app": "tfray.library.namespaces.app",
    "bitwise": "tfray.library.namespaces.bitwise",
    "contrib": "tfray.contrib",
    "data": "tfray.library.namespaces.data",
    "feature_column": "tfray.library.layers.feature_column",
    "debug": "tfray.library.inspect.debug",
    "debugging": "tfray.library.namespaces.debugging",
    "distributions": "tfray.library.distributions.distributions",
    "flags": "tfray.library.platform.flags",
    "gfile": "tfray.library.platform.gfile",
    "graph_util": "tfray.library.inspect.graph_util",
    "image": "tfray.library.namespaces.image",
    "io": "tfray.library.namespaces.io",
    "keras": "tfray.keras",
    "layers": "tfray.library.namespaces.layers",
    "linalg": "tfray.library.namespaces.linalg",
    "logging": "tfray.library.platform.logging",
    "lookup": "tfray.library.input.lookup",
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


def load(facade: str, name: str) -> Any:
    """The module that the facade calls `name`.

    Raises:
        AttributeError: There is none.
    """
    if name not in LAZY:
        raise AttributeError(f"module {facade!r} has no attribute {name!r}")
    module = importlib.import_module(LAZY[name])
    explain_calls(module)
    setattr(sys.modules[facade], name, module)
    return module
