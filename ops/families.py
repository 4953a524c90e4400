"""Importing this module registers every operation of tfray."""

from __future__ import annotations

import importlib
import pkgutil

import tfray.ops

for _module in sorted(info.name for info in pkgutil.iter_modules(tfray.ops.__path__)):
    if _module.endswith("_ops"):
        importlib.import_module(f"tfray.ops.{_module}")
