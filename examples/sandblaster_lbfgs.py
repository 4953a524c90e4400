"""Sandblaster L-BFGS (Dean et al., 2012): a batch method whose coordinator never sees the parameters.

Parameters, gradients and the history of L-BFGS are vectors that lie in parts on the parameter servers, which also do
all arithmetic with them. The coordinator decides, and exchanges nothing but small messages: it hands portions of the
data to whichever worker is free, asks each server for the inner products of its vectors (a matrix of 2m + 1 rows), and
tells it with which coefficients to add them up to the next direction (Chen, Wang and Zhou, 2014).

Run it::

    python examples/sandblaster_lbfgs.py --local
    python examples/sandblaster_lbfgs.py --workers 3 --ps 2
"""

import queue

import digits
import numpy as np
import replicas

import tfray as tf

HISTORY = 8
PORTIONS = 12
WEIGHT_DECAY = 1e-3
SIZES = [int(np.prod(shape)) for shape in replicas.SHAPES]


class Shard:
    """Part of every vector, and what its server can do with them, as operations."""

    def __init__(self, device, values):
        with tf.device(device):
            zeros = np.zeros_like(values)
            self.point = tf.Variable(values, name="point")
            self.gradient = tf.Variable(zeros, name="gradient")
            origin, origin_gradient, direction = (tf.Variable(zeros) for _ in range(3))
            steps, changes = (tf.Variable(np.zeros((HISTORY, len(values)), np.float32)) for _ in range(2))
            self.coefficients = tf.placeholder(tf.float32, [2 * HISTORY + 1])
            self.length = tf.placeholder(tf.float32, [])
            self.row = tf.placeholder(tf.int32, [])
            basis = tf.concat([steps, changes, tf.expand_dims(self.gradient, 0)], 0)
            self.products = tf.matmul(basis, basis, transpose_b=True)
            self.begin = tf.group(
                tf.assign(origin, self.point),
                tf.assign(origin_gradient, self.gradient),
                tf.assign(direction, tf.tensordot(self.coefficients, basis, 1)),
            )
            self.move = tf.assign(self.point, origin + self.length * direction).op
            self.clear = tf.assign(self.gradient, WEIGHT_DECAY * self.point).op
            self.penalty = 0.5 * WEIGHT_DECAY * tf.reduce_sum(tf.square(self.point))
            self.remember = tf.group(
                tf.scatter_update(steps, self.row, self.point - origin),
                tf.scatter_update(changes, self.row, self.gradient - origin_gradient),
            )


def portion_of_gradient(worker, shards, images, labels):
    """The loss on a portion of the data, and the operation that adds its gradient to the shards."""
    with tf.device(worker):
        portion = tf.placeholder(tf.int32, [])
        size = len(labels) // PORTIONS
        # Every worker has the data; the coordinator only says which part of them to use.
        rows = tf.range(portion * size, (portion + 1) * size)
        flat = tf.concat([shard.point for shard in shards], 0)
        parameters = [
            tf.reshape(part, shape) for part, shape in zip(tf.split(flat, SIZES), replicas.SHAPES, strict=True)
        ]
        loss = replicas.loss_of(parameters, tf.gather(tf.constant(images), rows), tf.gather(labels, rows)) / PORTIONS
        gradients = tf.split(tf.gradients(loss, flat)[0], [shard.point.shape[0].value for shard in shards])
    added = [tf.assign_add(shard.gradient, part).op for shard, part in zip(shards, gradients, strict=True)]
    with tf.device(worker), tf.control_dependencies(added):
        return portion, tf.identity(loss), parameters


def next_direction(products, count):
    """Coefficients of the steps, changes and gradient that make up the direction, from their inner products."""
    own, others = 2 * HISTORY, range(HISTORY)
    coefficients = np.zeros(2 * HISTORY + 1)
    coefficients[own] = -1.0
    rows = [(count - 1 - back) % HISTORY for back in range(min(count, HISTORY))]
    newest_first = [row for row in rows if products[row, HISTORY + row] > 0]  # where the loss curved upwards
    weights = dict.fromkeys(others, 0.0)
    for row in newest_first:
        weights[row] = products[row] @ coefficients / products[row, HISTORY + row]
        coefficients[HISTORY + row] -= weights[row]
    if newest_first:
        row = newest_first[0]
        coefficients *= products[row, HISTORY + row] / products[HISTORY + row, HISTORY + row]
    for row in reversed(newest_first):
        coefficients[row] += weights[row] - products[HISTORY + row] @ coefficients / products[row, HISTORY + row]
    return coefficients


class Coordinator:
    """Sends small messages to servers and workers."""

    def __init__(self, sessions, shards, portions):
        self._sessions, self._shards, self._portions = sessions, shards, portions

    def everywhere(self, what, **fed):
        """Let every shard do something, and return what it answers."""
        feeds = {getattr(shard, name): value for shard in self._shards for name, value in fed.items()}
        return self._sessions[-1].run([getattr(shard, what) for shard in self._shards], feeds)

    def evaluate(self):
        """Loss and gradient at the point where the shards are. Workers that are done take the next portion."""
        self.everywhere("clear")
        waiting = queue.SimpleQueue()
        for number in range(PORTIONS):
            waiting.put(number)
        losses = []

        def work(worker):
            portion, loss, _ = self._portions[worker]
            while True:
                try:
                    number = waiting.get_nowait()
                except queue.Empty:
                    return
                losses.append(self._sessions[worker].run(loss, {portion: number}))

        replicas.in_threads(work, len(self._portions))
        return sum(losses) + sum(self.everywhere("penalty"))

    def minimize(self, steps):
        """Run L-BFGS with a backtracking line search."""
        loss = self.evaluate()
        for count in range(steps):
            products = np.sum(self.everywhere("products"), 0, dtype=np.float64)
            coefficients = next_direction(products, count)
            slope = products[-1] @ coefficients
            self.everywhere("begin", coefficients=coefficients)
            length = 1.0 if count else min(1.0, 1.0 / np.sqrt(products[-1, -1]))
            for _ in range(20):
                self.everywhere("move", length=length)
                tried = self.evaluate()
                if tried <= loss + 1e-4 * length * slope:
                    break
                length /= 2
            loss = tried
            self.everywhere("remember", row=count % HISTORY)
            if count % 10 == 9:
                print(f"step {count + 1}: loss {loss:.4f}, {length:g} of the direction")


def main():
    """Train, and test."""
    devices = replicas.parse(__doc__.splitlines()[0], steps=40)
    (images, labels), _ = digits.load()
    flat = np.concatenate([value.ravel() for value in replicas.initial_values()])
    parts = np.array_split(flat, len(devices.servers))
    shards = [Shard(device, part) for device, part in zip(devices.servers, parts, strict=True)]
    portions = [portion_of_gradient(worker, shards, images, labels) for worker in devices.workers]
    accuracy = replicas.accuracy_of(portions[0][2], devices.workers[0])
    with devices.sessions() as sessions:
        Coordinator(sessions, shards, portions).minimize(devices.steps)
        print(f"test accuracy {sessions[-1].run(accuracy):.4f}")


if __name__ == "__main__":
    main()
