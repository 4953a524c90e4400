"""How a case is declared, and what cases are built of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

CASES: dict[str, Callable[[], list[Any]]] = {}
FROZEN: set[str] = set()
RESOURCE: set[str] = set()
LOW_LEVEL: set[str] = set()


def case(frozen: bool = False, resource: bool = False, low_level: bool = False) -> Any:
    """Decorator: a function that builds a graph and returns what is to be fetched."""

    def declare(function: Callable[[], list[Any]]) -> Callable[[], list[Any]]:
        name = function.__name__.strip("_")
        CASES[name] = function
        for flag, names in ((frozen, FROZEN), (resource, RESOURCE), (low_level, LOW_LEVEL)):
            if flag:
                names.add(name)
        return function

    return declare


def given(*shape: int, dtype: Any = np.float32, name: str = "x", low: float = -1, high: float = 1) -> Any:
    """A placeholder whose first dimension is open; its value is remembered."""
    generator = np.random.default_rng(len(FED) + 7)
    values = generator.uniform(low, high, shape)
    FED[f"{name}:0"] = np.asarray(values, dtype) if np.issubdtype(dtype, np.floating) else values.astype(dtype)
    return tf.placeholder(dtype, [None, *shape[1:]], name=name)


FED: dict[str, Any] = {}


def weights(*shape: int, name: str = "w") -> Any:
    """A variable with values that are the same each time."""
    values = np.random.default_rng(sum(shape)).normal(0, 0.3, shape).astype(np.float32)
    return tf.get_variable(name, initializer=values)


def sparse(indices: Any, values: Any, shape: Any) -> Any:
    """A sparse tensor."""
    return tf.SparseTensor(tf.constant(indices, tf.int64), tf.constant(values), tf.constant(shape, tf.int64))


def parts_of(value: Any) -> list[Any]:
    """The tensors of a sparse tensor."""
    return [value.indices, value.values, value.dense_shape]


def perceptron() -> tuple[Any, Any]:
    """The results of a small network, and its loss."""
    x, wanted = given(8, 5), given(8, 2, name="wanted")
    hidden = tf.nn.tanh(tf.nn.xw_plus_b(x, weights(5, 6), weights(6, name="b")))
    found = tf.nn.xw_plus_b(hidden, weights(6, 2, name="w2"), weights(2, name="b2"))
    return found, tf.reduce_mean(tf.square(found - wanted), name="loss")


def parts_of_table(held: Any) -> Any:
    """A variable in three parts, with these values."""

    def known(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        start = partition_info.var_offset[0]
        return tf.constant(held[start : start + shape[0]], dtype)

    return tf.get_variable("table", held.shape, initializer=known, partitioner=tf.fixed_size_partitioner(3))
