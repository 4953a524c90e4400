"""Importing this module registers every operation of tfray."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Final

import tfray.ops

MODULES: Final = tuple(
    info.name for info in pkgutil.walk_packages(tfray.ops.__path__, "tfray.ops.") if info.name.endswith("_ops")
)
"""The op families by module name."""

for _module in MODULES:
    importlib.import_module(_module)
