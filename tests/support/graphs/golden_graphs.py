"""The graphs that TensorFlow has written, and what it computed with them; see ``scripts/golden_graphs.py``."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np
import pytest

from tfray.formats.graph_proto import GraphDef

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "graphs"
LARGE = {"gradients_of_losses", "pictures", "random_numbers", "signals", "trained_gru", "trained_lstm"}
"""Graphs that take more than a second to import and run."""

CASES = json.loads((FOLDER / "cases.json").read_text())


def each(names=CASES):
    """The names of cases as parameters of a test; large ones are slow."""
    return [pytest.param(name, marks=[pytest.mark.slow] if name in LARGE else []) for name in sorted(names)]


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
