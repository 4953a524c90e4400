"""Graphs as TensorFlow's messages: the module that makes them stands above this folder, and is loaded when needed."""

from __future__ import annotations

import importlib
from typing import Any

_module = ""


def messages_by(module: str) -> None:
    """Let a module make messages: its ``graph_message(graph, add_shapes)`` and ``node_message(op)``."""
    global _module
    _module = module


def messages() -> Any:
    """That module."""
    return importlib.import_module(_module)
