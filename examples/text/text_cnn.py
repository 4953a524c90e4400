"""Convolutions over words (Kim, 2014): which of two grammars made a sentence?

The sentences are made on the spot. Both kinds have the same words; only their order tells them apart.

Run it::

    python examples/text/text_cnn.py --local
    python examples/text/text_cnn.py --workers 2 --ps 2
"""

import numpy as np

import tfray as tf
from tfray import cli

WORDS = ["<none>", "the", "a", "old", "small", "dog", "cat", "bird", "sees", "likes", "hears", "today", "often"]
LENGTH = 12


def sentence(random, kind):
    """Nine words: subject, verb and object, or object, subject and verb, with an adverb in between."""
    phrases = [[random.choice(WORDS[1:3]), random.choice(WORDS[3:5]), random.choice(WORDS[5:8])] for _ in range(2)]
    verb, adverb = [random.choice(WORDS[8:11])], [random.choice(WORDS[11:])]
    first, second = phrases
    words = first + verb + second if kind else second + first + verb
    cut = int(random.integers(len(words) + 1))
    return words[:cut] + adverb + words[cut:]


def sentences(count, seed):
    """Word numbers `[count, LENGTH]`, filled up with zeros, and kinds `[count]`."""
    random = np.random.default_rng(seed)
    kinds = random.integers(0, 2, count).astype(np.int32)
    numbers = np.zeros((count, LENGTH), np.int32)
    for row, kind in zip(numbers, kinds, strict=True):
        words = sentence(random, kind)
        row[: len(words)] = [WORDS.index(word) for word in words]
    return numbers, kinds


def build(embedding_size: int = 16, filters: int = 16, learning_rate: float = 0.01, steps: int = 150):
    """Train a convolutional network to tell two grammars apart."""

    def model(words, kinds, mode):
        table = tf.get_variable("embeddings", [len(WORDS), embedding_size])
        embedded = tf.nn.embedding_lookup(table, words)
        pooled = [
            tf.reduce_max(tf.layers.conv1d(embedded, filters, width, activation=tf.nn.relu), 1) for width in (2, 3, 4)
        ]
        features = tf.layers.dropout(tf.concat(pooled, 1), 0.3, training=mode == tf.train.ModeKeys.TRAIN)
        logits = tf.layers.dense(features, 2)
        loss = tf.losses.sparse_softmax_cross_entropy(kinds, logits)
        correct = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), kinds)
        train_op = tf.train.AdamOptimizer(learning_rate).minimize(loss)
        return tf.train.ModelSpec(loss, train_op, metrics={"accuracy": tf.reduce_mean(tf.cast(correct, tf.float32))})

    batches = tf.train.array_input(*sentences(4000, seed=0), batch_size=120, shuffle_seed=0)
    return tf.train.Trainer(model, batches, run=tf.train.RunConfig(steps=steps, seed=0)), [sentences(500, seed=1)]


if __name__ == "__main__":
    cli.train(build)
