"""Downpour SGD (Dean et al., "Large scale distributed deep networks", 2012): replicas that hardly ever talk.

Each replica trains a copy of the parameters of its own. Every `n_push` steps it sends the gradients that it has added
up to the parameter servers, which apply them with Adagrad; every `n_fetch` steps it fetches new parameters. Nobody
waits for anybody.

Run it::

    python examples/downpour_sgd.py --local
    python examples/downpour_sgd.py --workers 3 --ps 2
"""

import argparse

import replicas

import tfray as tf


def replica(worker, shared, optimizer, learning_rate):
    """The three things that a replica does, as operations: fetch, step and push."""
    with tf.device(worker):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int32, [None])
        own = replicas.variables("own", lambda number: worker)
        accrued = replicas.variables("accrued", lambda number: worker)
        fetch = tf.group(*[tf.assign(mine, theirs) for mine, theirs in zip(own, shared, strict=True)])
        loss = replicas.loss_of(own, images, labels)
        gradients = tf.gradients(loss, own)
        step = tf.group(
            *[tf.assign_sub(mine, learning_rate * gradient) for mine, gradient in zip(own, gradients, strict=True)],
            *[tf.assign_add(total, gradient) for total, gradient in zip(accrued, gradients, strict=True)],
        )
    # Adagrad and its sums of squares are where the shared parameters are: on the parameter servers.
    push = optimizer.apply_gradients([(total.value(), theirs) for total, theirs in zip(accrued, shared, strict=True)])
    with tf.device(worker), tf.control_dependencies([push]):
        cleared = tf.group(*[tf.assign(total, tf.zeros_like(total)) for total in accrued])
    return argparse.Namespace(images=images, labels=labels, fetch=fetch, step=step, loss=loss, push=cleared)


def main(n_fetch=5, n_push=5, learning_rate=0.05):
    """Train, and test the shared parameters."""
    devices = replicas.parse(__doc__.splitlines()[0], steps=200)
    place = lambda number: devices.servers[number % len(devices.servers)]  # noqa: E731
    shared = replicas.variables("shared", place, replicas.initial_values())
    optimizer = tf.train.AdagradOptimizer(learning_rate)
    parts = [replica(worker, shared, optimizer, learning_rate) for worker in devices.workers]
    accuracy = replicas.accuracy_of(shared, devices.workers[0])

    with devices.sessions() as sessions:

        def train(number):
            part, session = parts[number], sessions[number]
            batches = replicas.batches(number, len(devices.workers))
            for step, (images, labels) in zip(range(devices.steps), batches, strict=False):
                if step % n_fetch == 0:
                    session.run(part.fetch)
                _, loss = session.run([part.step, part.loss], {part.images: images, part.labels: labels})
                if step % n_push == n_push - 1:
                    session.run(part.push)
                if step % 50 == 49:
                    print(f"replica {number}, step {step + 1}: loss {loss:.4f}")

        replicas.in_threads(train, len(parts))
        print(f"test accuracy {sessions[-1].run(accuracy):.4f}")


if __name__ == "__main__":
    main()
