"""What programs with a training loop of their own share: a session in this process or on a Ray cluster."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import tfray as tf


@contextmanager
def _session(options: argparse.Namespace) -> Iterator[tf.Session]:
    jobs = {"ps": 1, "worker": 1}
    cluster = nullcontext("") if options.local else tf.Cluster(jobs, options.address)
    with cluster as target, tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        yield session


def main(build: Callable[[], Any], train: Callable[[tf.Session, Any, int], Any], steps: int) -> Any:
    """Parse the command line, build the graph, and train.

    Args:
        build: Builds the model and returns what `train` needs of it.
        train: Called with a session whose variables are initialised, what `build` returned, and the number of steps.
        steps: Number of steps unless the command line says otherwise.
    """
    parser = argparse.ArgumentParser(description=build.__doc__)
    parser.add_argument("--local", action="store_true", help="run in this process, without Ray")
    parser.add_argument("--address", help="where Ray is: local, auto or HOST:PORT")
    parser.add_argument("--steps", type=int, default=steps)
    options = parser.parse_args()
    tf.set_random_seed(1)
    # On a cluster the variables live on the parameter server, and the worker computes.
    with tf.device(None if options.local else tf.train.replica_device_setter(ps_tasks=1)):
        model = build()
    with _session(options) as session:
        return train(session, model, options.steps)
