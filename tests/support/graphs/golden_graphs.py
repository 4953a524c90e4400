"""The graphs that TensorFlow has written, and what it computed with them; see ``scripts/golden_graphs.py``."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np

from tfray.formats.graph_proto import GraphDef

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "graphs"
CASES = json.loads((FOLDER / "cases.json").read_text())


def message(name):
    """The graph of a case."""
    return GraphDef.FromString((FOLDER / f"{name}.pb").read_bytes())


@functools.cache
def values():
    """All arrays by name: ``CASE/feed/TENSOR``, ``CASE/fetch/INDEX``, ``CASE/losses``."""
    with np.load(FOLDER / "values.npz") as found:
        return dict(found)


def feeds(name):
    """What is fed to a case."""
    prefix = f"{name}/feed/"
    return {key.removeprefix(prefix): value for key, value in values().items() if key.startswith(prefix)}
