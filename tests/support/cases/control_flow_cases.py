# ruff: noqa: E731 (short functions are named where they are used)
"""Programs of TensorFlow 1 with control flow, whose graphs and results are in ``tests/golden/control_flow.npz.xz``.

Each function takes the module ``tensorflow.compat.v1`` and builds one into the default graph. Those that read a
variable are built twice, with references and with resources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CASES: dict[str, Callable[[Any], Program]] = {}
"""Every program by name."""

WITH_VARIABLES: set[str] = set()
"""The names of those with variables."""


@dataclass
class Program:
    """What a function has built.

    Attributes:
        fetches: What each step fetches.
        steps: What each step feeds.
        setup: Operations to run before, one after the other.
    """

    fetches: Sequence[Any]
    steps: Sequence[Mapping[Any, Any]] = field(default_factory=lambda: [{}])
    setup: Sequence[Any] = ()


def case(function: Callable[[Any], Program]) -> Callable[[Any], Program]:
    """Add a program under the function's name."""
    CASES[function.__name__] = function
    return function


def with_variables(function: Callable[[Any], Program]) -> Callable[[Any], Program]:
    """Add a program that has variables."""
    WITH_VARIABLES.add(function.__name__)
    return case(function)


def some(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers between -1 and 1."""
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def vector(tf: Any) -> tuple[Any, list[dict[Any, Any]]]:
    """A placeholder and what to feed."""
    x = tf.placeholder(tf.float32, [3], name="x")
    return x, [{x: some(3)}, {x: some(3, seed=1) + 2}]


def chosen(tf: Any) -> tuple[Any, Any, list[dict[Any, Any]]]:
    """A placeholder, one for a predicate, and what to feed."""
    x, p = tf.placeholder(tf.float32, [3], name="x"), tf.placeholder(tf.bool, [], name="p")
    return x, p, [{x: some(3), p: True}, {x: some(3, seed=1), p: False}]


def chosen_twice(tf: Any) -> tuple[Any, Any, Any, list[dict[Any, Any]]]:
    """A placeholder, two for predicates, and what to feed."""
    x, p, steps = chosen(tf)
    q = tf.placeholder(tf.bool, [], name="q")
    return x, p, q, [step | {q: value} for step in steps for value in (True, False)]


def initialized(tf: Any) -> list[Any]:
    """What gives all variables their values."""
    with tf.control_dependencies(None):
        return [tf.global_variables_initializer()]


def known_values(tf: Any) -> list[Any]:
    """What gives all variables values, trainable ones those that are the same everywhere."""
    variables = tf.trainable_variables()
    known = [tf.assign(each, some(*each.shape.as_list(), seed=seed) / 2) for seed, each in enumerate(variables)]
    return [tf.global_variables_initializer(), tf.group(*known)]


# -- branches ------------------------------------------------------------------------------------------


@case
def cond(tf):
    x, p, steps = chosen(tf)
    return Program([tf.cond(p, lambda: x * 2 + 1, lambda: tf.sin(x))], steps)


@case
def cond_of_switches_alone(tf):
    x, p, steps = chosen(tf)
    y = x + 1
    return Program([tf.cond(p, lambda: x, lambda: y)], steps)


@case
def cond_with_one_empty_branch(tf):
    x, p, steps = chosen(tf)
    return Program([tf.cond(p, lambda: x * 3, lambda: x)], steps)


@case
def cond_of_constants(tf):
    _, p, steps = chosen(tf)
    return Program([tf.cond(p, lambda: tf.constant([1, 2]), lambda: tf.constant([3, 4]))], steps)


@case
def cond_of_several(tf):
    x, p, steps = chosen(tf)
    a, b, c = tf.cond(p, lambda: (x, x * 2, tf.shape(x)), lambda: (tf.exp(x), x - 1, tf.constant([7])))
    return Program([a + b, c, b], steps)


@case
def conds_on_one_predicate(tf):
    x, p, steps = chosen(tf)
    y = tf.cond(p, lambda: x * 2, lambda: x + 1)
    z = tf.cond(p, lambda: tf.sin(y), lambda: tf.cos(y) * x)
    return Program([y, z, tf.cond(p, lambda: y * z, lambda: y - z)], steps)


@case
def cond_in_cond(tf):
    x, p, q, steps = chosen_twice(tf)
    y = tf.cond(p, lambda: tf.cond(q, lambda: x * 2, lambda: x - 1) + 5, lambda: x)
    return Program([y], steps)


@case
def conds_in_both_branches(tf):
    x, p, q, steps = chosen_twice(tf)

    def inner(scale):
        return lambda: tf.cond(q, lambda: (x * scale, tf.constant(scale)), lambda: (x, tf.reduce_sum(x)))

    return Program(list(tf.cond(p, inner(2.0), inner(3.0))), steps)


@case
def cond_in_cond_on_one_predicate(tf):
    x, p, steps = chosen(tf)
    inner = lambda: tf.cond(p, lambda: x * 2, lambda: x * 3)
    return Program([tf.cond(p, inner, lambda: inner() + 1)], steps)


@case
def cond_in_cond_on_computed_predicate(tf):
    x, p, steps = chosen(tf)
    inner = lambda: tf.cond(tf.reduce_sum(tf.square(x)) > 1, lambda: x * 2, lambda: x * 3)
    return Program([tf.cond(p, inner, lambda: inner() + 1)], steps)


@case
def three_conds_deep(tf):
    x, p, q, steps = chosen_twice(tf)
    deepest = lambda: tf.cond(x[0] > 0, lambda: x * 10, lambda: x / 10)
    inner = lambda: tf.cond(q, deepest, lambda: deepest() + 1)
    y = tf.cond(p, inner, lambda: x)
    return Program([y, *tf.gradients(y * y, [x])], steps)


@case
def cond_gradient(tf):
    x, p, steps = chosen(tf)
    y = tf.cond(p, lambda: tf.exp(x) * x, lambda: tf.sin(x) / (x + 3))
    return Program([y, *tf.gradients(y * y, [x])], steps)


@case
def cond_second_gradient(tf):
    x, p, steps = chosen(tf)
    y = tf.cond(p, lambda: tf.exp(x) * x, lambda: tf.sin(x) * x * x)
    (slope,) = tf.gradients(y, [x])
    return Program([slope, *tf.gradients(slope * y, [x])], steps)


@case
def cond_gradient_of_one_branch(tf):
    x, p, steps = chosen(tf)
    w = tf.constant(some(3, seed=2))
    y = tf.cond(p, lambda: x * w, lambda: tf.constant(some(3, seed=3)))
    return Program([y, *tf.gradients(y * y, [x, w])], steps)


@case
def cond_in_cond_gradient(tf):
    x, p, q, steps = chosen_twice(tf)
    y = tf.cond(p, lambda: tf.cond(q, lambda: tf.exp(x), lambda: tf.sin(x) * x) * x, lambda: tf.tanh(x))
    return Program([y, *tf.gradients(y * y, [x])], steps)


@case
def conds_one_after_the_other_gradient(tf):
    x, p, q, steps = chosen_twice(tf)
    y = x
    for scale in (1.0, 2.0, 3.0):
        y = tf.cond(p, lambda y=y, scale=scale: tf.sin(y) * scale, lambda y=y: y * y)
        y = tf.cond(q, lambda y=y: tf.tanh(y) * x, lambda y=y: y)
    return Program([y, *tf.gradients(y, [x])], steps)


@case
def cond_gradient_of_gather(tf):
    x, p, steps = chosen(tf)
    table = tf.reshape(tf.tile(x, [4]), [4, 3])
    y = tf.cond(p, lambda: tf.gather(table, [1, 1, 2]), lambda: tf.gather(table, [0, 3, 0]) * 2)
    return Program([y, *tf.gradients(y * y, [x, table])], steps)


@case
def cond_over_strings(tf):
    _, p, steps = chosen(tf)
    return Program([tf.cond(p, lambda: tf.strings.join(["a", "b"]), lambda: tf.constant("c"))], steps)


@case
def case_of_predicates(tf):
    x, p, q, steps = chosen_twice(tf)
    pairs = [(p, lambda: x * 2), (q, lambda: x * 3)]
    return Program([tf.case(pairs, default=lambda: x)], steps)


@case
def exclusive_case(tf):
    x, p, _ = chosen(tf)
    n = tf.placeholder(tf.int32, [], name="n")
    pairs = [(tf.equal(n, k), lambda k=k: x * k) for k in (1, 2, 3)]
    y = tf.case(pairs, default=lambda: x, exclusive=True)
    return Program([y, *tf.gradients(y, [x])], [{x: some(3), n: k, p: True} for k in (0, 2, 3)])


@case
def piecewise_rate(tf):
    n = tf.placeholder(tf.int32, [], name="n")
    return Program([tf.train.piecewise_constant(n, [2, 4], [1.0, 0.5, 0.1])], [{n: k} for k in (0, 3, 9)])


@case
def guarded_by_assert(tf):
    x, p, steps = chosen(tf)
    with tf.control_dependencies([tf.Assert(tf.reduce_all(x < 10), [x])]):
        y = x * 2
    return Program([tf.cond(p, lambda: y, lambda: x)], steps)


@case
def assert_in_branch(tf):
    x, p, steps = chosen(tf)

    def checked():
        with tf.control_dependencies([tf.assert_less(x, 10.0)]):
            return tf.identity(x)

    return Program([tf.cond(p, checked, lambda: x + 1)], steps)


@case
def cond_waits_for_operation(tf):
    x, p, steps = chosen(tf)
    check = tf.assert_less(x, 10.0)
    with tf.control_dependencies([check]):
        y = tf.cond(p, lambda: x * 2, lambda: x)
    return Program([y], steps)


@with_variables
def static_rnn_of_lengths(tf):
    x = tf.placeholder(tf.float32, [2, 3, 4], name="x")
    lengths = tf.placeholder(tf.int32, [2], name="lengths")
    cell = tf.nn.rnn_cell.BasicRNNCell(3, name="cell")
    outputs, state = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), tf.zeros([2, 3]), sequence_length=lengths)
    loss = tf.reduce_sum(tf.square(tf.stack(outputs)))
    return Program(
        [outputs[-1], state, *tf.gradients(loss, [x])], [{x: some(2, 3, 4), lengths: [3, 1]}], known_values(tf)
    )


# -- loops ---------------------------------------------------------------------------------------------


@case
def loop(tf):
    x, steps = vector(tf)
    return Program(list(tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y * x + 1), [0, x])), steps)


@case
def loop_without_turns(tf):
    x, steps = vector(tf)
    return Program(list(tf.while_loop(lambda i, y: i < 0, lambda i, y: (i + 1, y * x), [0, x])), steps)


@case
def loop_with_unchanged_value(tf):
    x, steps = vector(tf)
    return Program(list(tf.while_loop(lambda i, y, z: i < 3, lambda i, y, z: (i + 1, y + z, z), [0, x, x * 2])), steps)


@case
def loop_that_swaps(tf):
    x, steps = vector(tf)
    body = lambda i, y, z: (i + 1, z, y + z)
    return Program(list(tf.while_loop(lambda i, y, z: i < 6, body, [0, x, x * 2])), steps)


@case
def loop_until_large(tf):
    x, steps = vector(tf)
    return Program([tf.while_loop(lambda y: tf.reduce_sum(tf.square(y)) < 100, lambda y: y * 2, [x + 3])], steps)


@case
def loop_with_limit(tf):
    x, steps = vector(tf)
    y = tf.while_loop(lambda y: True, lambda y: tf.sin(y) * 2, [x], maximum_iterations=4)
    return Program([y, *tf.gradients(y, [x])], steps)


@case
def loop_that_grows(tf):
    x, steps = vector(tf)
    shapes = [tf.TensorShape([]), tf.TensorShape([None])]
    body = lambda i, y: (i + 1, tf.concat([y, x], 0))
    return Program(list(tf.while_loop(lambda i, y: i < 3, body, [0, x], shape_invariants=shapes)), steps)


@case
def loop_over_strings(tf):
    body = lambda i, s: (i + 1, tf.strings.join([s, tf.as_string(i)]))
    return Program(list(tf.while_loop(lambda i, s: i < 4, body, [0, "n"])))


@case
def loop_gradient(tf):
    x, steps = vector(tf)
    _, y = tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.sin(y) * x + 1), [0, x])
    return Program([y, *tf.gradients(y, [x])], steps)


@case
def loop_gradient_one_turn_at_a_time(tf):
    x, steps = vector(tf)
    body = lambda i, y: (i + 1, tf.sin(y) * x + 1)
    _, y = tf.while_loop(lambda i, y: i < 5, body, [0, x], parallel_iterations=1)
    return Program([y, *tf.gradients(y * y, [x])], steps)


@case
def loop_gradient_with_swapped_memory(tf):
    x, steps = vector(tf)
    body = lambda i, y: (i + 1, tf.exp(-y) * x)
    _, y = tf.while_loop(lambda i, y: i < 3, body, [0, x], swap_memory=True)
    return Program(tf.gradients(y, [x]), steps)


@case
def loop_gradient_of_products(tf):
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    w = tf.constant(some(2, 2, seed=5))
    _, y = tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w) + x)), [0, x])
    return Program([y, *tf.gradients(y, [x, w])], [{x: some(2, 2)}])


@case
def loop_gradient_of_unknown_shape(tf):
    x = tf.placeholder(tf.float32, None, name="x")
    _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * tf.reduce_sum(y) + x), [0, x])
    return Program([y, *tf.gradients(y, [x])], [{x: some(2, 2)}, {x: some(3)}])


@case
def loop_gradient_of_gather(tf):
    x, steps = vector(tf)
    total = tf.while_loop(lambda i, y: i < 6, lambda i, y: (i + 1, y + tf.gather(x, i % 3) * y), [0, 1.0])[1]
    return Program([total, *tf.gradients(total, [x])], steps)


@case
def loops_one_after_the_other_gradient(tf):
    x, steps = vector(tf)
    y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.sin(y) + x), [0, x])[1]
    z = tf.while_loop(lambda i, z: i < 2, lambda i, z: (i + 1, z * y), [0, x])[1]
    return Program([z, *tf.gradients(z, [x, y])], steps)


@case
def loop_in_loop(tf):
    x, steps = vector(tf)

    def body(i, y):
        return i + 1, tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z + x * tf.cast(i, tf.float32)), [0, y])[1]

    return Program(list(tf.while_loop(lambda i, y: i < 4, body, [0, x])), steps)


@case
def loop_in_loop_gradient(tf):
    x, steps = vector(tf)

    def body(i, y):
        return i + 1, tf.while_loop(lambda j, z: j < 2, lambda j, z: (j + 1, tf.sin(z) * x + y), [0, y])[1]

    y = tf.while_loop(lambda i, y: i < 3, body, [0, x])[1]
    return Program([y, *tf.gradients(y, [x])], steps)


@case
def three_loops_deep_gradient(tf):
    x, steps = vector(tf)

    def repeated(function, times):
        return lambda y: tf.while_loop(lambda i, y: i < times, lambda i, y: (i + 1, function(y)), [0, y])[1]

    y = repeated(repeated(repeated(lambda y: tf.tanh(y * x), 2), 2), 2)(x)
    return Program([y, *tf.gradients(y, [x])], steps)


@case
def loop_in_condition(tf):
    x, steps = vector(tf)
    limit = lambda y: tf.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t + tf.reduce_sum(y)), [0, 0.0])[1]
    return Program([tf.while_loop(lambda y: limit(y) < 50, lambda y: y + 1, [x])], steps)


@case
def loop_in_branch(tf):
    x, p, steps = chosen(tf)
    repeated = lambda: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, x])[1]
    return Program([tf.cond(p, repeated, lambda: x)], steps)


@case
def loop_in_branch_gradient(tf):
    x, p, steps = chosen(tf)
    repeated = lambda: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.sin(y) * x), [0, x])[1]
    y = tf.cond(p, repeated, lambda: x * x)
    return Program([y, *tf.gradients(y, [x])], steps)


@case
def loops_in_both_branches_gradient(tf):
    x, p, steps = chosen(tf)

    def repeated(function, times):
        return lambda: tf.while_loop(lambda i, y: i < times, lambda i, y: (i + 1, function(y)), [0, x])[1]

    y = tf.cond(p, repeated(lambda y: tf.sin(y) * x, 3), repeated(lambda y: tf.exp(-y) * y, 2))
    return Program([y, *tf.gradients(y * y, [x])], steps)


@case
def branch_in_loop(tf):
    x, steps = vector(tf)
    body = lambda i, y: (i + 1, tf.cond(tf.equal(i % 2, 0), lambda: y * x, lambda: y + 1))
    return Program(list(tf.while_loop(lambda i, y: i < 5, body, [0, x])), steps)


@case
def branch_in_loop_gradient(tf):
    x, steps = vector(tf)
    body = lambda i, y: (i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.sin(y) * x, lambda: y * y))
    y = tf.while_loop(lambda i, y: i < 4, body, [0, x])[1]
    return Program([y, *tf.gradients(y, [x])], steps)


@case
def branch_in_loop_gradient_of_unknown_shape(tf):
    x = tf.placeholder(tf.float32, None, name="x")

    def body(i, y):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.sin(y) * x, lambda: tf.identity(x))

    y = tf.while_loop(lambda i, y: i < 4, body, [0, x])[1]
    return Program([y, *tf.gradients(y, [x])], [{x: some(3)}, {x: some(2, 2)}])


@case
def branches_deep_in_loop_gradient(tf):
    x, p, steps = chosen(tf)

    def body(i, y):
        inner = lambda: tf.cond(p, lambda: tf.sin(y) * x, lambda: y * y * x)
        return i + 1, tf.cond(tf.equal(i % 2, 0), inner, lambda: tf.tanh(y))

    y = tf.while_loop(lambda i, y: i < 4, body, [0, x])[1]
    return Program([y, *tf.gradients(y, [x])], steps)


@case
def loop_in_branch_in_loop_gradient(tf):
    x, steps = vector(tf)

    def body(i, y):
        inner = lambda: tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, tf.tanh(z * x)), [0, y])[1]
        return i + 1, tf.cond(tf.equal(i % 2, 0), inner, lambda: y * tf.sin(y))

    y = tf.while_loop(lambda i, y: i < 5, body, [0, x])[1]
    return Program([y, *tf.gradients(y, [x])], steps)


@case
def branch_in_condition(tf):
    x, steps = vector(tf)
    goes_on = lambda i, y: tf.cond(i < 2, lambda: True, lambda: tf.reduce_sum(y) < 20)
    return Program(list(tf.while_loop(goes_on, lambda i, y: (i + 1, y + 1), [0, x])), steps)


@case
def loop_waits_for_operation(tf):
    x, steps = vector(tf)
    check = tf.assert_less(x, 10.0)

    def body(i, y):
        with tf.control_dependencies([check]):
            return i + 1, y * 2

    return Program(list(tf.while_loop(lambda i, y: i < 3, body, [0, x])), steps)


@case
def check_in_loop(tf):
    x, steps = vector(tf)

    def body(i, y):
        with tf.control_dependencies([tf.assert_less(y, 1000.0), tf.Assert(i < 100, [i])]):
            return i + 1, y * 2

    return Program(list(tf.while_loop(lambda i, y: i < 3, body, [0, x])), steps)
