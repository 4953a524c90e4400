"""Words spelled backwards: an encoder, a decoder with attention, and greedy decoding, by `tf.contrib.seq2seq`."""

import re

import numpy as np
import tensorflow as tf
from small_data import TEXT

flags = tf.app.flags
flags.DEFINE_integer("steps", 250, "Training steps.")
flags.DEFINE_integer("units", 48, "Units of the recurrent cells.")
FLAGS = flags.FLAGS

PAD, GO, EOS = 0, 1, 2
LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCABULARY = len(LETTERS) + 3


def batch_of(words, length):
    sources = np.full([len(words), length], PAD, np.int32)
    targets = np.full([len(words), length + 1], PAD, np.int32)
    lengths = np.array([len(word) for word in words], np.int32)
    for i, word in enumerate(words):
        numbers = [LETTERS.index(letter) + 3 for letter in word]
        sources[i, : len(word)] = numbers
        targets[i, : len(word) + 1] = [*reversed(numbers), EOS]
    return sources, lengths, targets


def decode(helper, cell, state, projection, maximum, reuse=None):
    with tf.variable_scope("decoder", reuse=reuse):
        decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, state, output_layer=projection)
        outputs, _, lengths = tf.contrib.seq2seq.dynamic_decode(
            decoder, impute_finished=True, maximum_iterations=maximum
        )
        return outputs, lengths


def main(_):
    words = sorted(set(re.findall(r"[a-z]{2,}", TEXT.lower())))
    longest = max(map(len, words))
    tf.set_random_seed(0)
    sources = tf.placeholder(tf.int32, [None, longest], name="sources")
    lengths = tf.placeholder(tf.int32, [None], name="lengths")
    targets = tf.placeholder(tf.int32, [None, longest + 1], name="targets")
    batch_size = tf.shape(sources)[0]

    embedding = tf.get_variable("embedding", [VOCABULARY, 24])
    encoder_cell = tf.contrib.rnn.GRUCell(FLAGS.units)
    encoder_outputs, encoder_state = tf.nn.dynamic_rnn(
        encoder_cell, tf.nn.embedding_lookup(embedding, sources), sequence_length=lengths, dtype=tf.float32
    )
    attention = tf.contrib.seq2seq.BahdanauAttention(FLAGS.units, encoder_outputs, memory_sequence_length=lengths)
    cell = tf.contrib.seq2seq.AttentionWrapper(
        tf.contrib.rnn.GRUCell(FLAGS.units), attention, attention_layer_size=FLAGS.units
    )
    state = cell.zero_state(batch_size, tf.float32).clone(cell_state=encoder_state)
    projection = tf.layers.Dense(VOCABULARY, use_bias=False)

    shifted = tf.concat([tf.fill([batch_size, 1], GO), targets[:, :-1]], axis=1)
    training = tf.contrib.seq2seq.TrainingHelper(tf.nn.embedding_lookup(embedding, shifted), lengths + 1)
    outputs, _ = decode(training, cell, state, projection, None)
    steps = tf.shape(outputs.rnn_output)[1]
    mask = tf.sequence_mask(lengths + 1, steps, dtype=tf.float32)
    loss = tf.contrib.seq2seq.sequence_loss(outputs.rnn_output, targets[:, :steps], mask)
    optimizer = tf.train.AdamOptimizer(0.01)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    train_op = optimizer.apply_gradients(zip(tf.clip_by_global_norm(gradients, 5.0)[0], variables, strict=True))

    greedy = tf.contrib.seq2seq.GreedyEmbeddingHelper(embedding, tf.fill([batch_size], GO), EOS)
    predicted, _ = decode(greedy, cell, state, projection, longest + 1, reuse=True)

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        data = dict(zip([sources, lengths, targets], batch_of(words, longest), strict=True))
        for i in range(FLAGS.steps):
            _, value = sess.run([train_op, loss], data)
            if i % 50 == 0:
                print("step %d loss %.3f" % (i, value))
        spelled = sess.run(predicted.sample_id, data)
    results = ["".join(LETTERS[n - 3] for n in row if n > EOS) for row in spelled]
    right = sum(result == word[::-1] for result, word in zip(results, words, strict=True))
    print("%s -> %s" % (words[0], results[0]))
    print("spelled backwards %.2f" % (right / len(words)))


if __name__ == "__main__":
    tf.app.run()
