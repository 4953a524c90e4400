"""What the examples share: scikit-learn's handwritten digits, and the end of every classifier."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

import tfray as tf

Examples = tuple[np.ndarray, np.ndarray]
"""Images, `[count, 64]` in float32 between 0 and 1, and labels, `[count]` in int32 from 0 to 9."""

BATCH_SIZE = 120
"""Examples in a step: shared evenly by 1, 2, 3, 4, 5, 6, 8 or 10 replicas."""


def load(test_share: float = 0.2, seed: int = 0) -> tuple[Examples, Examples]:
    """Split the 1797 images of 8 x 8 pixels at random into examples to train on and examples to test on."""
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    images = (digits.data[order] / 16).astype(np.float32)
    labels = digits.target[order].astype(np.int32)
    held_out = round(test_share * len(labels))
    return (images[held_out:], labels[held_out:]), (images[:held_out], labels[:held_out])


def classifier(logits: tf.Tensor, labels: tf.Tensor, optimizer: tf.train.Optimizer) -> tf.train.ModelSpec:
    """Minimise the cross entropy of `logits`, and follow the accuracy."""
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    correct = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels)
    accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
    return tf.train.ModelSpec(loss, optimizer.minimize(loss), metrics={"accuracy": accuracy})


def trainer(model_fn, steps: int) -> tuple[tf.train.Trainer, list[Examples]]:
    """A trainer of `model_fn` on the digits, and what to test it on."""
    train, test = load()
    batches = tf.train.array_input(*train, batch_size=BATCH_SIZE, shuffle_seed=0)
    return tf.train.Trainer(model_fn, batches, run=tf.train.RunConfig(steps=steps, seed=0)), [test]
