"""A generative adversarial network (Goodfellow et al., 2014) that learns to place points on a ring.

Two optimizers take turns on one graph; each changes its own network.

Run it::

    python examples/gan.py --local
    python examples/gan.py
"""

import numpy as np
import sessions

import tfray as tf


def generator(noise):
    """Points `[batch, 2]` from noise."""
    with tf.variable_scope("generator"):
        layer = tf.layers.dense(noise, 32, tf.nn.relu)
        return tf.layers.dense(tf.layers.dense(layer, 32, tf.nn.relu), 2)


def discriminator(points):
    """How real points look, as logits `[batch, 1]`."""
    with tf.variable_scope("discriminator", reuse=tf.AUTO_REUSE):
        layer = tf.layers.dense(points, 32, tf.nn.relu, name="first")
        return tf.layers.dense(tf.layers.dense(layer, 32, tf.nn.relu, name="second"), 1, name="last")


def cross_entropy(logits, label):
    """How far the discriminator is from giving `label`."""
    labels = label * tf.ones_like(logits)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))


def build():
    """Train two networks against each other."""
    real = tf.placeholder(tf.float32, [None, 2])
    fake = generator(tf.random_normal([tf.shape(real)[0], 4]))
    real_logits, fake_logits = discriminator(real), discriminator(fake)
    losses = {
        "discriminator": cross_entropy(real_logits, 0.9) + cross_entropy(fake_logits, 0.0),
        "generator": cross_entropy(fake_logits, 1.0),
    }
    train_ops = {
        name: tf.train.AdamOptimizer(0.002, beta1=0.5).minimize(
            loss, var_list=tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, name)
        )
        for name, loss in losses.items()
    }
    return real, fake, losses, train_ops


def ring(random, count):
    """Points at distance 2 from the origin, with a little noise."""
    angle = random.uniform(0, 2 * np.pi, count)
    radius = 2 + 0.05 * random.normal(size=count)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).astype(np.float32)


def train(session, model, steps):
    """Take turns. Returns the mean distance of the generated points from the ring."""
    real, fake, losses, train_ops = model
    random = np.random.default_rng(0)
    for step in range(1, steps + 1):
        for train_op in train_ops.values():
            session.run(train_op, {real: ring(random, 128)})
        if step % max(1, steps // 5) == 0:
            print(f"step {step}: {session.run(losses, {real: ring(random, 128)})}")
    points = session.run(fake, {real: ring(random, 1000)})
    distance = float(np.mean(np.abs(np.linalg.norm(points, axis=1) - 2)))
    print(f"mean distance from the ring {distance:.3f}")
    return distance


if __name__ == "__main__":
    sessions.main(build, train, steps=1500)
