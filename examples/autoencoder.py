"""An autoencoder: digits through a bottleneck of a few numbers, and back.

Run it::

    python examples/autoencoder.py --local
    python examples/autoencoder.py --workers 2 --ps 1
"""

import digits
import numpy as np

import tfray as tf
from tfray import cli


def build(code_size: int = 12, learning_rate: float = 0.003, steps: int = 600):
    """Train an autoencoder on handwritten digits."""

    def model(images, targets):
        hidden = tf.layers.dense(images, 48, tf.nn.relu)
        code = tf.layers.dense(hidden, code_size, tf.nn.tanh, name="code")
        hidden = tf.layers.dense(code, 48, tf.nn.relu)
        loss = tf.losses.mean_squared_error(targets, tf.layers.dense(hidden, 64, tf.nn.sigmoid))
        # What is left of the variance of the pixels, of which a constant picture would leave everything.
        variance = tf.reduce_mean(tf.square(targets - tf.reduce_mean(targets, 0)))
        train_op = tf.train.AdamOptimizer(learning_rate).minimize(loss)
        return tf.train.ModelSpec(loss, train_op, metrics={"unexplained": loss / variance})

    (images, _), (test_images, _) = digits.load()
    batches = tf.train.array_input(images, images, batch_size=digits.BATCH_SIZE, shuffle_seed=0)
    trainer = tf.train.Trainer(model, batches, run=tf.train.RunConfig(steps=steps, seed=0))
    return trainer, [(np.asarray(test_images), np.asarray(test_images))]


if __name__ == "__main__":
    cli.train(build)
