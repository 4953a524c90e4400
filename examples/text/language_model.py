"""A language model of letters: an LSTM that tells the next one (Zaremba, Sutskever and Vinyals, 2014).

Run it::

    python examples/text/language_model.py --local
    python examples/text/language_model.py --workers 2 --ps 1
"""

import numpy as np
from words import TEXT

import tfray as tf
from tfray import cli

LETTERS = sorted(set(TEXT.lower()))


def stretches(length):
    """Every stretch of the text, and the same one letter later: `[count, length]` each."""
    numbers = np.array([LETTERS.index(letter) for letter in TEXT.lower()], np.int32)
    windows = np.lib.stride_tricks.sliding_window_view(numbers, length + 1)[::3]
    return windows[:, :-1].copy(), windows[:, 1:].copy()


def build(units: int = 96, length: int = 24, learning_rate: float = 0.01, steps: int = 150):
    """Learn to continue a text, letter by letter."""

    def model(letters, following):
        table = tf.get_variable("letters", [len(LETTERS), 24])
        cell = tf.nn.rnn_cell.LSTMCell(units)
        outputs, _ = tf.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(table, letters), dtype=tf.float32)
        logits = tf.layers.dense(outputs, len(LETTERS))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=following, logits=logits))
        optimizer = tf.train.AdamOptimizer(learning_rate)
        gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
        clipped, _ = tf.clip_by_global_norm(list(gradients), 5.0)
        train_op = optimizer.apply_gradients(zip(clipped, variables, strict=True))
        return tf.train.ModelSpec(loss, train_op, metrics={"perplexity": tf.exp(loss)})

    batches = tf.train.array_input(*stretches(length), batch_size=60, shuffle_seed=0)
    return tf.train.Trainer(model, batches, run=tf.train.RunConfig(steps=steps, seed=0))


if __name__ == "__main__":
    cli.train(build)
