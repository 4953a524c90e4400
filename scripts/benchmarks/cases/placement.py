"""Training steps on variables of skewed sizes, placed in several ways over the parameter shards.

Weights and biases alternate, as in most models. With as many shards as the pattern has variables, round robin puts all
weights on the same shard. Every worker fetches all variables, computes next to nothing, and sends a gradient for each
back; Adam updates the variables where they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from benchmarks.cases import Backend, Case, Options, Step

_RATE: Final = 1e-3
_SMALL: Final = 256
_LAYERS: Final = (1.0, 0.5, 0.25, 1.0, 0.75, 0.5)
"""Sizes of the layers' weights, as parts of the largest."""


def _sizes(shards: int, mb: float) -> list[int]:
    """Numbers in each variable, `mb` megabytes in all: for every layer its weights, and a bias for each other shard."""
    unit = mb * 1e6 / 4 / sum(_LAYERS)
    return [size for part in _LAYERS for size in (int(unit * part), *[_SMALL] * max(1, shards - 1))]


def _build(tf: Any, shards: int, workers: int, mb: float, setter: Any) -> Any:
    gradients = []
    for number, size in enumerate(_sizes(shards, mb)):
        with tf.device(setter):
            parameters = tf.get_variable(f"v{number}", [size], initializer=tf.ones_initializer())
        parts = []
        for worker in range(workers):
            with tf.device(f"/job:worker/task:{worker}"):
                parts.append(tf.multiply(parameters, _RATE))
        with tf.colocate_with(parameters):
            gradients.append((tf.add_n(parts), parameters))
    with tf.device(setter):
        return tf.train.AdamOptimizer(_RATE).apply_gradients(gradients)


@contextmanager
def _steps(backend: Backend, options: Options) -> Iterator[Step]:
    tf = backend.tf
    shards, workers = options["ps"], options["workers"]
    by_cost = options["strategy"] == "cost"
    setter = "/job:ps" if by_cost else tf.train.replica_device_setter(shards, worker_device="")
    with backend.cluster({"ps": shards, "worker": workers}) as target, tf.Graph().as_default():
        step = _build(tf, shards, workers, options["mb"], setter)
        config = tf.ConfigProto(placement="cost") if by_cost else None
        with tf.Session(target, config=config) as session:
            session.run(tf.global_variables_initializer())
            yield lambda: session.run(step)


CASES: Final = {
    "round_robin": Case(_steps, options={"strategy": "round_robin"}),
    "cost": Case(_steps, sides=("tfray",), options={"strategy": "cost"}),
}
