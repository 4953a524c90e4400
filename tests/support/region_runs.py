"""Running small programs with and without optimisation."""

from __future__ import annotations

from typing import Any

import numpy as np

import tfray as tf

L0 = tf.ConfigProto()
L0.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0


def run(fetches: Any, feeds: Any = None) -> Any:
    """Values of `fetches` by a session, which must equal those without optimisation."""
    values = []
    for config in (None, L0):
        with tf.Session(config=config) as session:
            if tf.global_variables():
                session.run(tf.global_variables_initializer())
            values.append(session.run(fetches, feeds))
    for a, b in zip(leaves(values[0]), leaves(values[1]), strict=True):
        np.testing.assert_array_equal(a, b)
    return values[0]


def leaves(value: Any) -> list[Any]:
    """The values in nested lists, tuples and dictionaries."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]
