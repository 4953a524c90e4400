"""Graphs that TensorFlow makes and runs for `golden_graphs.py`, a module for each kind."""

from graph_cases import (
    array_graphs,
    common_graphs,
    model_graphs,
    picture_graphs,
    state_graphs,
    text_graphs,
    training_graphs,
)

__all__ = [
    "array_graphs",
    "common_graphs",
    "model_graphs",
    "picture_graphs",
    "state_graphs",
    "text_graphs",
    "training_graphs",
]
