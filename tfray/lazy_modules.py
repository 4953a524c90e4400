"""Parts of the facade that load when they are first used, to keep ``import tfray`` fast."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final

from tfray.framework.call_errors import explain_calls

LAZY: Final = {
    "app": "tfray.library.app",
    "bitwise": "tfray.library.bitwise",
    "contrib": "tfray.contrib",
    "data": "tfray.library.data",
    "feature_column": "tfray.library.feature_column",
    "debug": "tfray.library.debug",
    "debugging": "tfray.library.debugging",
    "distributions": "tfray.library.distributions",
    "flags": "tfray.library.flags",
    "gfile": "tfray.library.gfile",
    "graph_util": "tfray.library.graph_util",
    "image": "tfray.library.image",
    "io": "tfray.library.io",
    "keras": "tfray.keras",
    "layers": "tfray.library.layers",
    "linalg": "tfray.library.linalg",
    "logging": "tfray.library.logging",
    "lookup": "tfray.library.lookup",
    "losses": "tfray.library.losses",
    "manip": "tfray.library.manip",
    "metrics": "tfray.library.metrics",
    "profiler": "tfray.library.profiler",
    "python_io": "tfray.library.python_io",
    "quantization": "tfray.library.quantization",
    "queue": "tfray.library.queue",
    "regularizers": "tfray.library.regularizers",
    "resource_loader": "tfray.library.resource_loader",
    "saved_model": "tfray.training.saved_model",
    "sets": "tfray.library.sets",
    "signal": "tfray.library.signal",
    "sparse": "tfray.library.sparse",
    "spectral": "tfray.library.spectral",
    "strings": "tfray.library.strings",
    "summary": "tfray.library.summary",
    "test": "tfray.library.testing",
    "timeline": "tfray.library.timeline",
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
