"""What a session costs beside the arithmetic: steps of next to nothing, many small operations, branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from benchmarks.cases import Backend, Case, Options, Step
from benchmarks.cases.layers import LSTMCell

_ADDS: Final = 1000
_TURNS: Final = 1000
_RNN_BATCH: Final = 32
_RNN_STEPS: Final = 50
_RNN_UNITS: Final = 128


def _trivial_fetch(tf: Any) -> tuple[Any, dict[Any, Any]]:
    return tf.constant(1.0), {}


def _one_feed(tf: Any) -> tuple[Any, dict[Any, Any]]:
    x = tf.placeholder(tf.float32, [])
    return x + 1.0, {x: np.float32(2)}


def _chain(tf: Any) -> tuple[Any, dict[Any, Any]]:
    x = tf.placeholder(tf.float32, [])
    one, total = tf.constant(1.0), x
    for _ in range(_ADDS):
        total = tf.add(total, one)
    return total, {x: np.float32(2)}


def _independent(tf: Any) -> tuple[Any, dict[Any, Any]]:
    x = tf.placeholder(tf.float32, [])
    one = tf.constant(1.0)
    return tf.group(*[tf.add(x, one) for _ in range(_ADDS)]), {x: np.float32(2)}


def _cond(tf: Any) -> tuple[Any, dict[Any, Any]]:
    """A choice between two branches of one operation each, all on scalars."""
    x = tf.placeholder(tf.float32, [])
    return tf.cond(x > 1.0, lambda: x * 2.0, lambda: x - 1.0), {x: np.float32(2)}


def _while_loop(tf: Any) -> tuple[Any, dict[Any, Any]]:
    turns = tf.placeholder(tf.int32, [])
    return tf.while_loop(lambda i: i < turns, lambda i: i + 1, [tf.constant(0)]), {turns: np.int32(_TURNS)}


def _lstm(tf: Any) -> tuple[Any, dict[Any, Any]]:
    x = tf.placeholder(tf.float32, [_RNN_BATCH, _RNN_STEPS, _RNN_UNITS])
    values = np.random.default_rng(0).standard_normal(x.shape.as_list(), np.float32)
    outputs, _ = tf.nn.dynamic_rnn(LSTMCell(tf, _RNN_UNITS, _RNN_UNITS), x, dtype=tf.float32)
    return outputs, {x: values}


def _lstm_training(tf: Any) -> tuple[Any, dict[Any, Any]]:
    outputs, feeds = _lstm(tf)
    loss = tf.reduce_mean(tf.square(outputs))
    return tf.train.GradientDescentOptimizer(0.01).minimize(loss), feeds


def _case(build: Callable[[Any], tuple[Any, dict[Any, Any]]], *, optimized: bool = False) -> Case:
    @contextmanager
    def opened(backend: Backend, options: Options) -> Iterator[Step]:
        tf = backend.tf
        with tf.Graph().as_default():
            fetch, feeds = build(tf)
            with tf.Session(config=None if optimized else backend.unoptimized_config()) as session:
                session.run(tf.global_variables_initializer())
                yield lambda: session.run(fetch, feeds)

    return Case(opened)


# The first four run without optimizers: a thousand equal additions would become one.
CASES: Final = {
    "trivial_fetch": _case(_trivial_fetch),
    "one_feed": _case(_one_feed),
    f"chain_{_ADDS}_adds": _case(_chain),
    f"independent_{_ADDS}_adds": _case(_independent),
    "cond": _case(_cond, optimized=True),
    f"while_loop_{_TURNS}": _case(_while_loop, optimized=True),
    f"lstm_{_RNN_UNITS}x{_RNN_STEPS}": _case(_lstm, optimized=True),
    f"lstm_{_RNN_UNITS}x{_RNN_STEPS}_training": _case(_lstm_training, optimized=True),
}
