"""Style transfer (Gatys, Ecker and Bethge, 2016): one picture's forms in another's texture.

The picture itself is the variable. Its features are those of fixed random filters, which tell textures apart well
enough (Ustyuzhaninov et al., 2016) and need no downloaded network.

Run it::

    python examples/style_transfer.py --local
    python examples/style_transfer.py
"""

import numpy as np
import sessions
from sklearn.datasets import load_sample_images

import tfray as tf

SIZE = 48


def pictures():
    """A flower for its forms and a temple for its texture, `[1, SIZE, SIZE, 3]` between 0 and 1."""
    temple, flower = load_sample_images().images
    cut = slice(0, 8 * SIZE, 8)
    return tuple((image[cut, cut][np.newaxis] / 255).astype(np.float32) for image in (flower, temple))


def features(picture):
    """Responses of random filters of several scales."""
    random = np.random.default_rng(0)
    layers, layer = [], picture
    for channels in (32, 48):
        depth = int(layer.shape[3])
        filters = random.normal(size=(5, 5, depth, channels)) / np.sqrt(25 * depth)
        layer = tf.nn.relu(tf.nn.conv2d(layer, tf.constant(filters.astype(np.float32)), [1, 1, 1, 1], "SAME"))
        layers.append(layer)
        layer = tf.nn.avg_pool(layer, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    return layers


def texture(layer):
    """Which filters respond together, wherever they do: the Gram matrix."""
    rows = tf.reshape(layer, [-1, layer.shape[3]])
    return tf.matmul(rows, rows, transpose_a=True) / tf.cast(tf.shape(rows)[0], tf.float32)


def build():
    """Paint one picture in the style of another."""
    content, style = (tf.constant(picture) for picture in pictures())
    picture = tf.get_variable("picture", initializer=content + 0.0)
    wanted, forms, current = features(style), features(content), features(picture)
    style_loss = tf.add_n(
        [tf.reduce_mean(tf.squared_difference(texture(a), texture(b))) for a, b in zip(current, wanted, strict=True)]
    )
    content_loss = tf.reduce_mean(tf.squared_difference(current[-1], forms[-1]))
    loss = style_loss + 0.05 * content_loss + 1e-6 * tf.reduce_sum(tf.image.total_variation(picture))
    return picture, style_loss, tf.train.AdamOptimizer(0.02).minimize(loss)


def train(session, model, steps):
    """Paint. Returns what is left of the difference in texture."""
    picture, style_loss, train_op = model
    before = session.run(style_loss)
    for _ in range(steps):
        session.run(train_op)
    left = float(session.run(style_loss) / before)
    painted = session.run(picture)
    print(f"{left:.1%} of the difference in texture is left; pixels from {painted.min():.2f} to {painted.max():.2f}")
    return left


if __name__ == "__main__":
    sessions.main(build, train, steps=150)
