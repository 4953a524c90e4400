"""Matrix factorisation: who will like what, from vectors of taste that nobody has seen.

The ratings are made on the spot from hidden vectors, with noise; a part of them is held out. Only the rows of the
tables that a batch uses travel, and their updates are applied where the rows live.

Run it::

    python examples/matrix_factorization.py --local
    python examples/matrix_factorization.py --workers 2 --ps 2
"""

import numpy as np

import tfray as tf
from tfray import cli

USERS, ITEMS, RANK = 200, 120, 4


def ratings(seed=0):
    """Pairs (user, item) and their ratings, in two parts."""
    random = np.random.default_rng(seed)
    taste = random.normal(size=(USERS, RANK)) @ random.normal(size=(RANK, ITEMS)) / np.sqrt(RANK)
    known = random.permutation(USERS * ITEMS)[: USERS * ITEMS // 3]
    pairs = np.stack(np.divmod(known, ITEMS), 1).astype(np.int32)
    values = (3 + taste.ravel()[known] + 0.1 * random.normal(size=len(known))).astype(np.float32)
    held_out = len(known) // 5
    return (pairs[held_out:], values[held_out:]), (pairs[:held_out], values[:held_out])


def build(rank: int = 6, learning_rate: float = 0.02, weight_decay: float = 0.02, steps: int = 600):
    """Factorise a matrix of ratings."""

    def model(pairs, values):
        small = tf.random_normal_initializer(stddev=0.3)
        users = tf.nn.embedding_lookup(tf.get_variable("users", [USERS, rank], initializer=small), pairs[:, 0])
        items = tf.nn.embedding_lookup(tf.get_variable("items", [ITEMS, rank], initializer=small), pairs[:, 1])
        mean = tf.get_variable("mean", [], initializer=tf.constant_initializer(3.0))
        error = tf.reduce_sum(users * items, 1) + mean - values
        size = tf.reduce_mean(tf.reduce_sum(tf.square(users) + tf.square(items), 1))
        loss = tf.reduce_mean(tf.square(error)) + weight_decay * size
        rmse = tf.sqrt(tf.reduce_mean(tf.square(error)))
        train_op = tf.train.AdamOptimizer(learning_rate).minimize(loss)
        return tf.train.ModelSpec(loss, train_op, metrics={"rmse": rmse})

    train, test = ratings()
    batches = tf.train.array_input(*train, batch_size=480, shuffle_seed=0)
    return tf.train.Trainer(model, batches, run=tf.train.RunConfig(steps=steps, seed=0)), [test]


if __name__ == "__main__":
    cli.train(build)
