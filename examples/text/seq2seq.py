"""Sequence to sequence with attention (Bahdanau, Cho and Bengio, 2015): words of a made-up language, spelled backwards.

The encoder reads a word of any length; the decoder writes it letter by letter, looking back at what it wants to.

Run it::

    python examples/text/seq2seq.py --local
    python examples/text/seq2seq.py --workers 2 --ps 1
"""

import numpy as np

import tfray as tf
from tfray import cli

END, START = 0, 1
LETTERS, LONGEST = 12, 8
seq2seq = tf.contrib.seq2seq


def words(count, seed):
    """Words `[count, LONGEST]` with their lengths in front, and the same words backwards, ended by END."""
    random = np.random.default_rng(seed)
    lengths = random.integers(3, LONGEST + 1, count)
    sources = np.zeros((count, LONGEST + 1), np.int32)
    targets = np.full((count, LONGEST + 1), END, np.int32)
    for source, target, length in zip(sources, targets, lengths, strict=True):
        word = random.integers(2, LETTERS, length)
        source[0], source[1 : length + 1], target[:length] = length, word, word[::-1]
    return sources, targets


def decoder_cell(units, memory, lengths):
    """A cell that looks at the encoder's outputs."""
    attention = seq2seq.BahdanauAttention(units, memory, memory_sequence_length=lengths)
    return seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(units), attention, attention_layer_size=units)


def build(units: int = 48, learning_rate: float = 0.01, steps: int = 250):
    """Learn to spell words backwards."""

    def model(sources, targets, mode):
        lengths, letters = sources[:, 0], sources[:, 1:]
        table = tf.get_variable("letters", [LETTERS, 16])
        encoder = tf.nn.rnn_cell.GRUCell(units)
        memory, state = tf.nn.dynamic_rnn(
            encoder, tf.nn.embedding_lookup(table, letters), sequence_length=lengths, dtype=tf.float32
        )
        cell, project = decoder_cell(units, memory, lengths), tf.layers.Dense(LETTERS)
        batch = tf.shape(letters)[0]
        start = tf.fill([batch], START)
        if mode == tf.train.ModeKeys.TRAIN:
            given = tf.concat([start[:, tf.newaxis], targets[:, :-1]], 1)
            helper = seq2seq.TrainingHelper(tf.nn.embedding_lookup(table, given), tf.fill([batch], LONGEST + 1))
        else:
            helper = seq2seq.GreedyEmbeddingHelper(table, start, END)
        first = cell.zero_state(batch, tf.float32).clone(cell_state=state)
        decoder = seq2seq.BasicDecoder(cell, helper, first, output_layer=project)
        outputs, _, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=LONGEST + 1)
        written = outputs.sample_id
        missing = LONGEST + 1 - tf.shape(written)[1]
        written = tf.pad(written, [[0, 0], [0, missing]])
        right = tf.reduce_mean(tf.cast(tf.reduce_all(tf.equal(written, targets), 1), tf.float32))
        if mode != tf.train.ModeKeys.TRAIN:
            return tf.train.ModelSpec(1 - right, None, metrics={"accuracy": right})
        loss = seq2seq.sequence_loss(outputs.rnn_output, targets, tf.ones_like(targets, tf.float32))
        train_op = tf.train.AdamOptimizer(learning_rate).minimize(loss)
        return tf.train.ModelSpec(loss, train_op, metrics={"accuracy": right})

    batches = tf.train.array_input(*words(6000, seed=0), batch_size=60, shuffle_seed=0)
    return tf.train.Trainer(model, batches, run=tf.train.RunConfig(steps=steps, seed=0)), [words(200, seed=1)]


if __name__ == "__main__":
    cli.train(build)
