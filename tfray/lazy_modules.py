"""Parts of the facade that load when they are first used, to keep ``import tfray`` fast."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final

LAZY: Final = {
    "app": "tfray.library.app",
    "contrib": "tfray.contrib",
    "feature_column": "tfray.library.feature_column",
    "distributions": "tfray.library.distributions",
    "flags": "tfray.library.flags",
    "gfile": "tfray.library.gfile",
    "io": "tfray.library.io",
    "keras": "tfray.keras",
    "layers": "tfray.library.layers",
    "logging": "tfray.library.logging",
    "lookup": "tfray.library.lookup",
    "losses": "tfray.library.losses",
    "metrics": "tfray.library.metrics",
    "python_io": "tfray.library.python_io",
    "regularizers": "tfray.library.regularizers",
    "resource_loader": "tfray.library.resource_loader",
    "sets": "tfray.library.sets",
    "sparse": "tfray.library.sparse",
    "strings": "tfray.library.strings",
    "test": "tfray.library.testing",
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
    setattr(sys.modules[facade], name, module)
    return module
