"""Parts of the facade that load when they are first used, to keep ``import tfray`` fast."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final

LAZY: Final = {
    "contrib": "tfray.contrib",
    "layers": "tfray.library.layers",
    "losses": "tfray.library.losses",
    "regularizers": "tfray.library.regularizers",
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
