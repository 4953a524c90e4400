"""The null step of the OSDI 2016 paper, section 6.2: what coordination and transport cost a training step.

Every worker fetches all parameters from the P shards that hold them, makes of each an update of the same size by a
trivial computation, and sends that back; when those of all workers are there, each shard adds their sum to its
parameters. ``scalar`` has one number per shard, ``dense`` has `mb` megabytes in all. In ``sparse`` the parameters are
one table of `mb` megabytes, of which every worker looks up and updates a few random rows. ``one_stream`` and
``four_streams`` are the floor between nodes: `mb` megabytes over TCP to another process and back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from benchmarks.cases import Backend, Case, Options, Step

_RATE: Final = 1e-3
_ROW: Final = 256
"""Numbers in a row of the table."""
_LOOKUPS: Final = 32
"""Rows that a worker looks up in a step."""


def _build(tf: Any, shards: int, workers: int, numbers: int) -> Any:
    """The operation of one step, on parameters of that many numbers on each shard."""
    steps = []
    for shard in range(shards):
        with tf.device(f"/job:ps/task:{shard}"):
            parameters = tf.get_variable(f"parameters_{shard}", [numbers], initializer=tf.ones_initializer())
        updates = []
        for worker in range(workers):
            with tf.device(f"/job:worker/task:{worker}"):
                updates.append(tf.multiply(parameters, _RATE))
        with tf.device(f"/job:ps/task:{shard}"):
            steps.append(tf.assign_add(parameters, tf.add_n(updates)).op)
    return tf.group(*steps)


def _build_sparse(tf: Any, shards: int, workers: int, numbers: int) -> Any:
    """The operation of one step, on a table of that many numbers on each shard."""
    rows = numbers // _ROW
    parts = []
    for shard in range(shards):
        with tf.device(f"/job:ps/task:{shard}"):
            parts.append(tf.get_variable(f"rows_{shard}", [rows, _ROW], initializer=tf.zeros_initializer()))
    steps = []
    for worker in range(workers):
        with tf.device(f"/job:worker/task:{worker}"):
            ids = tf.random_uniform([_LOOKUPS], maxval=rows * shards, dtype=tf.int64)
            updates = tf.multiply(tf.nn.embedding_lookup(parts, ids), _RATE)
            pieces = tf.dynamic_partition(updates, tf.cast(ids % shards, tf.int32), shards)
            owned = tf.dynamic_partition(ids // shards, tf.cast(ids % shards, tf.int32), shards)
        for part, indices, values in zip(parts, owned, pieces, strict=True):
            steps.append(tf.scatter_add(part, indices, values).op)
    return tf.group(*steps)


@contextmanager
def _null_steps(backend: Backend, options: Options) -> Iterator[Step]:
    tf = backend.tf
    shards, workers = options["ps"], options["workers"]
    numbers = max(1, int(options["mb"] * 1e6) // 4 // shards)
    build = _build_sparse if options.get("sparse") else _build
    with (
        backend.cluster({"ps": shards, "worker": workers}, options.get("nodes")) as target,
        tf.Graph().as_default(),
    ):
        step = build(tf, shards, workers, numbers)
        with tf.Session(target) as session:
            session.run(tf.global_variables_initializer())
            yield lambda: session.run(step)


@contextmanager
def _memory_copy(backend: Any, options: Options) -> Iterator[Step]:
    source = np.ones(int(options["mb"] * 1e6), np.uint8)
    target = np.ones_like(source)
    yield lambda: np.copyto(target, source)


@contextmanager
def _streams(backend: Any, options: Options) -> Iterator[Step]:
    with backend.streams(options["streams"], int(options["mb"] * 1e6)) as there_and_back:
        yield there_and_back


@contextmanager
def _actor_round_trip(backend: Any, options: Options) -> Iterator[Step]:
    with backend.actor() as call:
        yield call


@contextmanager
def _link_round_trip(backend: Any, options: Options) -> Iterator[Step]:
    with backend.echo() as round_trip:
        yield round_trip


CASES: Final = {
    "scalar": Case(_null_steps, options={"mb": 0}),
    "dense": Case(_null_steps),
    "sparse": Case(_null_steps, options={"sparse": True}),
    "memory_copy": Case(_memory_copy, sides=("floor",)),
    "one_stream": Case(_streams, sides=("floor",), options={"streams": 1}),
    "four_streams": Case(_streams, sides=("floor",), options={"streams": 4}),
    "link_round_trip": Case(_link_round_trip, sides=("floor",)),
    "actor_round_trip": Case(_actor_round_trip, sides=("floor",)),
}
