"""What a session costs beside the arithmetic: steps of next to nothing, and of a thousand small operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from benchmarks.cases import Backend, Case, Options, Step

_ADDS: Final = 1000


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


def _case(build: Callable[[Any], tuple[Any, dict[Any, Any]]]) -> Case:
    @contextmanager
    def opened(backend: Backend, options: Options) -> Iterator[Step]:
        tf = backend.tf
        with tf.Graph().as_default():
            fetch, feeds = build(tf)
            # Without optimizers: a thousand equal additions would become one.
            with tf.Session(config=backend.unoptimized_config()) as session:
                yield lambda: session.run(fetch, feeds)

    return Case(opened)


CASES: Final = {
    "trivial_fetch": _case(_trivial_fetch),
    "one_feed": _case(_one_feed),
    f"chain_{_ADDS}_adds": _case(_chain),
    f"independent_{_ADDS}_adds": _case(_independent),
}
