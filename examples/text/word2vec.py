"""Skip-grams with noise-contrastive estimation (Mikolov et al., 2013): words as vectors, from their neighbours.

The tables may be larger than any one machine: their rows live on the parameter servers, which gather and update them.

Run it::

    python examples/text/word2vec.py --local
    python examples/text/word2vec.py --workers 2 --ps 2
"""

import numpy as np
from words import words

import tfray as tf
from tfray import cli


def skip_grams(window=2):
    """Pairs of a word and a neighbour, and the vocabulary, most frequent first."""
    text = words()
    vocabulary = sorted(set(text), key=lambda word: (-text.count(word), word))
    numbers = [vocabulary.index(word) for word in text]
    pairs = [
        (number, numbers[other])
        for position, number in enumerate(numbers)
        for other in range(max(0, position - window), min(len(numbers), position + window + 1))
        if other != position
    ]
    centers, neighbours = np.array(pairs, np.int32).T
    return centers, neighbours.reshape(-1, 1), vocabulary


def build(embedding_size: int = 24, sampled: int = 16, learning_rate: float = 0.5, steps: int = 600):
    """Learn vectors of the words of a text."""
    centers, neighbours, vocabulary = skip_grams()

    def model(center, neighbour):
        uniform = tf.random_uniform_initializer(-0.5, 0.5)
        table = tf.get_variable("embeddings", [len(vocabulary), embedding_size], initializer=uniform)
        weights = tf.get_variable("nce_weights", [len(vocabulary), embedding_size], initializer=uniform)
        biases = tf.get_variable("nce_biases", [len(vocabulary)], initializer=tf.zeros_initializer())
        embedded = tf.nn.embedding_lookup(table, center)
        labels = tf.cast(neighbour, tf.int64)
        loss = tf.reduce_mean(tf.nn.nce_loss(weights, biases, labels, embedded, sampled, len(vocabulary)))
        return tf.train.ModelSpec(loss, tf.train.AdagradOptimizer(learning_rate).minimize(loss))

    batches = tf.train.array_input(centers, neighbours, batch_size=240, shuffle_seed=0)
    return tf.train.Trainer(model, batches, run=tf.train.RunConfig(steps=steps, seed=0))


if __name__ == "__main__":
    cli.train(build)
