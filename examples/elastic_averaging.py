"""Elastic averaging (Zhang, Choromanska and LeCun, 2015): replicas on a rubber band.

Each replica trains parameters of its own with momentum. Every `period` steps it and the shared centre pull each other
closer by a part of their distance; in between it explores alone. The centre is the result.

Run it::

    python examples/elastic_averaging.py --local
    python examples/elastic_averaging.py --workers 3 --ps 2
"""

import argparse

import replicas

import tfray as tf


def replica(worker, centre, pull, learning_rate):
    """What a replica does, as operations: a step, and the exchange with the centre."""
    with tf.device(worker):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int32, [None])
        own = replicas.variables("own", lambda number: worker, replicas.initial_values())
        loss = replicas.loss_of(own, images, labels)
        step = tf.train.MomentumOptimizer(learning_rate, 0.9).minimize(loss, var_list=own)
        distances = [pull * (mine.value() - shared) for mine, shared in zip(own, centre, strict=True)]
        moved = [tf.assign_sub(mine, distance) for mine, distance in zip(own, distances, strict=True)]
    # The centre moves where it lives; what travels is its value, and the distance.
    moved += [tf.assign_add(shared, distance) for shared, distance in zip(centre, distances, strict=True)]
    return argparse.Namespace(images=images, labels=labels, loss=loss, step=step, exchange=tf.group(*moved))


def main(period=4, learning_rate=0.05):
    """Train, and test the centre."""
    devices = replicas.parse(__doc__.splitlines()[0], steps=150)
    place = lambda number: devices.servers[number % len(devices.servers)]  # noqa: E731
    centre = replicas.variables("centre", place, replicas.initial_values())
    pull = 0.9 / len(devices.workers)  # so that the centre moves by at most nine tenths of the mean distance
    parts = [replica(worker, centre, pull, learning_rate) for worker in devices.workers]
    accuracy = replicas.accuracy_of(centre, devices.workers[0])

    with devices.sessions() as sessions:

        def train(number):
            part, session = parts[number], sessions[number]
            batches = replicas.batches(number, len(devices.workers))
            for step, (images, labels) in zip(range(devices.steps), batches, strict=False):
                if step % period == period - 1:
                    session.run(part.exchange)
                _, loss = session.run([part.step, part.loss], {part.images: images, part.labels: labels})
                if step % 50 == 49:
                    print(f"replica {number}, step {step + 1}: loss {loss:.4f}")

        replicas.in_threads(train, len(parts))
        print(f"test accuracy {sessions[-1].run(accuracy):.4f}")


if __name__ == "__main__":
    main()
