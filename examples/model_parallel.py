"""Model parallelism: the layers of one model on two devices, which exchange activations and gradients.

The program names devices and nothing else; tfray cuts the graph between them and sends what crosses the cut.

Run it::

    python examples/model_parallel.py --local    # two CPU devices in this process
    python examples/model_parallel.py            # two Ray actors
"""

import argparse
from contextlib import ExitStack

import digits
import numpy as np
from mlp import dense

import tfray as tf


def model(images, labels, first_device, second_device):
    """A perceptron: its wide first layer on one device, the rest on the other."""
    with tf.device(first_device):
        hidden = tf.nn.relu(dense(images, 256, "hidden"))
    with tf.device(second_device):
        logits = dense(hidden, 10, "output")
        return digits.classifier(logits, labels, tf.train.MomentumOptimizer(0.1, momentum=0.9))


def train(session, spec, images, labels, steps):
    """Plain TensorFlow 1: feed batches, run the training operation, and test in the end."""
    (train_images, train_labels), (test_images, test_labels) = digits.load()
    random = np.random.default_rng(0)
    session.run(tf.global_variables_initializer())
    for step in range(1, steps + 1):
        rows = random.choice(len(train_labels), digits.BATCH_SIZE, replace=False)
        batch = {images: train_images[rows], labels: train_labels[rows]}
        _, loss = session.run([spec.train_op, spec.loss], batch)
        if step % max(1, steps // 10) == 0:
            print(f"step {step}: loss {loss:.4f}")
    return session.run(spec.metrics["accuracy"], {images: test_images, labels: test_labels})


def main():
    """Parse the command line, and train in this process or on a cluster."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--local", action="store_true", help="use two devices of this process instead of Ray")
    parser.add_argument("--address", help="where Ray is: local, auto or HOST:PORT")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()

    first, second = ("/cpu:0", "/cpu:1") if options.local else ("/job:worker/task:0", "/job:worker/task:1")
    tf.set_random_seed(0)
    images = tf.placeholder(tf.float32, [None, 64])
    labels = tf.placeholder(tf.int32, [None])
    spec = model(images, labels, first, second)
    for variable in tf.trainable_variables():
        print(f"{variable.name} {variable.shape} on {variable.device}")

    with ExitStack() as stack:
        target = "" if options.local else stack.enter_context(tf.Cluster({"worker": 2}, options.address))
        session = stack.enter_context(tf.Session(target, config=tf.ConfigProto(device_count={"CPU": 2})))
        accuracy = train(session, spec, images, labels, options.steps)
    print(f"test accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
