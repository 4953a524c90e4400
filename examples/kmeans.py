"""k-means: the centres of clusters as a variable, moved by ordinary operations.

Run it::

    python examples/kmeans.py --local
    python examples/kmeans.py
"""

import numpy as np
import sessions

import tfray as tf

CLUSTERS, DIMENSIONS = 5, 3


def build():
    """Find the centres of clusters."""
    points = tf.placeholder(tf.float32, [None, DIMENSIONS])
    first = tf.placeholder(tf.float32, [CLUSTERS, DIMENSIONS])
    centers = tf.get_variable("centers", [CLUSTERS, DIMENSIONS], trainable=False)
    distances = tf.reduce_sum(tf.squared_difference(points[:, tf.newaxis], centers), 2)
    nearest = tf.argmin(distances, 1, output_type=tf.int32)
    means = tf.unsorted_segment_mean(points, nearest, CLUSTERS)
    used = tf.unsorted_segment_sum(tf.ones_like(points), nearest, CLUSTERS) > 0
    move = tf.assign(centers, tf.where(used, means, centers))
    return {
        "points": points,
        "first": first,
        "start": tf.assign(centers, first),
        "move": move,
        "loss": tf.reduce_mean(tf.reduce_min(distances, 1)),
    }


def clusters(seed=0):
    """Points around five centres."""
    random = np.random.default_rng(seed)
    centers = 4 * random.normal(size=(CLUSTERS, DIMENSIONS))
    points = centers[random.integers(0, CLUSTERS, 2000)] + 0.3 * random.normal(size=(2000, DIMENSIONS))
    return points.astype(np.float32)


def spread(points, random):
    """Points far from one another to begin with (k-means++, Arthur and Vassilvitskii, 2007)."""
    chosen = [points[random.integers(len(points))]]
    while len(chosen) < CLUSTERS:
        distance = np.min([np.sum((points - center) ** 2, 1) for center in chosen], 0)
        chosen.append(points[random.choice(len(points), p=distance / distance.sum())])
    return np.stack(chosen)


def train(session, model, steps):
    """Move the centres. Returns the mean squared distance of a point from its centre."""
    points = clusters()
    session.run(model["start"], {model["first"]: spread(points, np.random.default_rng(1))})
    for _ in range(steps):
        session.run(model["move"], {model["points"]: points})
    loss = float(session.run(model["loss"], {model["points"]: points}))
    print(f"mean squared distance {loss:.4f}")
    return loss


if __name__ == "__main__":
    sessions.main(build, train, steps=20)
