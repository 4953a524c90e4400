"""A variational autoencoder (Kingma and Welling, 2014): a bottleneck of random numbers near a normal distribution.

Run it::

    python examples/vae.py --local
    python examples/vae.py --workers 2 --ps 1
"""

import digits

import tfray as tf
from tfray import cli


def build(code_size: int = 4, learning_rate: float = 0.003, steps: int = 500):
    """Train a variational autoencoder on handwritten digits."""

    def model(images, targets):
        hidden = tf.layers.dense(images, 96, tf.nn.relu)
        mean = tf.layers.dense(hidden, code_size, name="mean")
        log_variance = tf.layers.dense(hidden, code_size, name="log_variance")
        # The noise is an input of the graph's own: gradients flow through mean and variance.
        code = mean + tf.exp(log_variance / 2) * tf.random_normal(tf.shape(mean))
        logits = tf.layers.dense(tf.layers.dense(code, 96, tf.nn.relu), 64, name="pixels")
        pixels = tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits)
        reconstruction = tf.reduce_mean(tf.reduce_sum(pixels, 1))
        divergence = -0.5 * tf.reduce_sum(1 + log_variance - tf.square(mean) - tf.exp(log_variance), 1)
        loss = reconstruction + tf.reduce_mean(divergence)
        train_op = tf.train.AdamOptimizer(learning_rate).minimize(loss)
        metrics = {"reconstruction": reconstruction, "divergence": tf.reduce_mean(divergence)}
        return tf.train.ModelSpec(loss, train_op, metrics)

    (images, _), (test_images, _) = digits.load()
    batches = tf.train.array_input(images, images, batch_size=digits.BATCH_SIZE, shuffle_seed=0)
    return tf.train.Trainer(model, batches, run=tf.train.RunConfig(steps=steps, seed=0)), [(test_images, test_images)]


if __name__ == "__main__":
    cli.train(build)
