"""The side of TensorFlow, run by an interpreter that has it."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any, Final

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow.compat.v1 as tf

from benchmarks.side import serve

_PORTS: Final = range(20_000, 32_000)
"""Below those that Linux gives to whoever asks for any."""


class TensorFlowBackend:
    """See `benchmarks.cases.Backend`."""

    tf = tf
    versions: Final = {"tensorflow": tf.__version__}

    def unoptimized_config(self) -> Any:
        config = tf.ConfigProto()
        config.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        return config

    @contextmanager
    def cluster(self, jobs: Mapping[str, int], nodes: int | None = None) -> Iterator[str]:
        """One gRPC server per task, each a process of its own. They do not know which of them share a machine."""
        tasks = [(job, task) for job, count in jobs.items() for task in range(count)]
        addresses = dict(zip(tasks, _free_addresses(len(tasks)), strict=True))
        spec = {job: [addresses[job, task] for task in range(count)] for job, count in jobs.items()}
        with ExitStack() as stack:
            for job, task in tasks:
                stack.enter_context(_server(spec, job, task))
            yield f"grpc://{addresses['worker', 0]}"


def _free_addresses(count: int) -> list[str]:
    """Addresses that are free, and stay so until the servers are up: not of ports that the system hands out itself."""
    addresses: list[str] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        if len(addresses) == count:
            break
        with closing(socket.socket()) as unused, suppress(OSError):
            unused.bind(("localhost", port))
            addresses.append(f"localhost:{port}")
    return addresses


@contextmanager
def _server(spec: dict[str, list[str]], job: str, task: int) -> Iterator[None]:
    arguments = [sys.executable, "-m", "benchmarks.tensorflow_server", json.dumps([spec, job, task])]
    process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin and process.stdout
    try:
        if not process.stdout.readline():
            raise RuntimeError(f"the TensorFlow server of /job:{job}/task:{task} did not start")
        yield
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    tf.disable_v2_behavior()
    serve(TensorFlowBackend())
