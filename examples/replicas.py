"""What programs share that coordinate replicas themselves: devices, sessions, threads, and a model of the digits.

The programs' algorithms are graph and threads, nothing else: variables stand on parameter servers and on workers, and
each thread runs steps in a session of its own. In one process the same devices take turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import digits
import numpy as np

import tfray as tf

SHAPES = ((64, 48), (48,), (48, 10), (10,))
"""Parameters of a perceptron with one hidden layer."""


@dataclass(frozen=True)
class Devices:
    """Names of the devices, and the number of steps to run.

    Attributes:
        servers: Parameter servers.
        workers: Workers.
        steps: Steps of each worker, or of the coordinator.
    """

    servers: list[str]
    workers: list[str]
    steps: int
    options: argparse.Namespace

    @contextmanager
    def sessions(self) -> Iterator[list[tf.Session]]:
        """A session for each worker and one for the coordinator, on the default graph, with initialised variables."""
        count = len(self.workers) + 1
        config = tf.ConfigProto(device_count={"CPU": len(self.servers) + len(self.workers)})
        initializer = tf.global_variables_initializer()
        tf.get_default_graph().finalize()
        with ExitStack() as stack:
            if self.options.local:
                opened = [stack.enter_context(tf.Session(config=config))] * count  # they share its variables
            else:
                jobs = {
                    "ps": tf.JobSpec(len(self.servers), num_cpus=0.5),
                    "worker": tf.JobSpec(len(self.workers), num_cpus=0.5),
                }
                cluster = stack.enter_context(tf.Cluster(jobs, self.options.address))
                opened = [stack.enter_context(tf.Session(cluster)) for _ in range(count)]
            opened[-1].run(initializer)
            yield opened


def parse(description: str, steps: int, servers: int = 2, workers: int = 3) -> Devices:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--local", action="store_true", help="run in this process, without Ray")
    parser.add_argument("--address", help="where Ray is: local, auto or HOST:PORT")
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--ps", type=int, default=servers)
    parser.add_argument("--workers", type=int, default=workers)
    options = parser.parse_args()
    if options.local:
        names = [f"/cpu:{number}" for number in range(options.ps + options.workers)]
    else:
        names = [f"/job:ps/task:{number}" for number in range(options.ps)]
        names += [f"/job:worker/task:{number}" for number in range(options.workers)]
    return Devices(names[: options.ps], names[options.ps :], options.steps, options)


def in_threads(run: Callable[[int], None], count: int) -> None:
    """Call ``run(0)``, ..., ``run(count - 1)`` on a thread each, and raise what one of them raises."""
    with ThreadPoolExecutor(count) as pool:
        for future in [pool.submit(run, number) for number in range(count)]:
            future.result()


def variables(
    name: str, device: Callable[[int], str], initial: Sequence[np.ndarray] | None = None
) -> list[tf.Variable]:
    """One variable for each of `SHAPES`, on the device that `device` gives for its number; zeros by default."""
    made = []
    for number, shape in enumerate(SHAPES):
        value = np.zeros(shape, np.float32) if initial is None else initial[number]
        with tf.device(device(number)):
            made.append(tf.Variable(value, name=f"{name}_{number}"))
    return made


def initial_values(seed: int = 0) -> list[np.ndarray]:
    """Where all replicas begin."""
    random = np.random.default_rng(seed)
    return [
        (random.normal(size=shape) / 8 if len(shape) > 1 else np.zeros(shape)).astype(np.float32) for shape in SHAPES
    ]


def logits_of(parameters: Sequence[tf.Tensor], images: tf.Tensor) -> tf.Tensor:
    """The perceptron."""
    hidden_weights, hidden_bias, weights, bias = parameters
    return tf.matmul(tf.nn.relu(tf.matmul(images, hidden_weights) + hidden_bias), weights) + bias


def loss_of(parameters: Sequence[tf.Tensor], images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Mean cross entropy."""
    logits = logits_of(parameters, images)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def accuracy_of(parameters: Sequence[tf.Variable], device: str) -> tf.Tensor:
    """The share of the test images that `parameters` recognise, computed on `device`."""
    _, (images, labels) = digits.load()
    with tf.device(device):
        guesses = tf.argmax(logits_of(parameters, tf.constant(images)), 1, output_type=tf.int32)
        return tf.reduce_mean(tf.cast(tf.equal(guesses, tf.constant(labels)), tf.float32))


def batches(worker: int, workers: int, size: int = 40) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches without end of the part of the training images that belongs to a worker."""
    (images, labels), _ = digits.load()
    images, labels = images[worker::workers], labels[worker::workers]
    random = np.random.default_rng(worker)
    while True:
        rows = random.choice(len(labels), size, replace=False)
        yield images[rows], labels[rows]
