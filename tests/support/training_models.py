"""Models and inputs for tests of training: small, and with a known optimum."""

from __future__ import annotations

import functools
import os
import time

import numpy as np

import tfray as tf
from tests.support.processes import PATIENCE_S, Barrier

CLASSES, FEATURES, WORDS, LENGTH = 3, 8, 50, 4

OPTIMIZERS = {
    "sgd": functools.partial(tf.train.GradientDescentOptimizer, 0.1),
    "momentum": functools.partial(tf.train.MomentumOptimizer, 0.05, 0.9),
    "adam": functools.partial(tf.train.AdamOptimizer, 0.02),
    "adagrad": functools.partial(tf.train.AdagradOptimizer, 0.1),
}


def scaling(workers=1, parameter_servers=1, **options):
    """Actors that share the processors of a small machine."""
    small = {"cpus_per_worker": 0.1, "cpus_per_parameter_server": 0.1, "start_timeout_s": PATIENCE_S}
    return tf.train.ScalingConfig(workers, parameter_servers, **small | options)


def classification_data(examples=240):
    """Points around one centre per class."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, examples).astype(np.int32)
    centres = rng.normal(size=(CLASSES, FEATURES)) * 2
    features = (centres[labels] + rng.normal(size=(examples, FEATURES))).astype(np.float32)
    return features, labels


def text_data(examples=240):
    """Sequences of words; the label is the sum of the words' hidden weights."""
    rng = np.random.default_rng(1)
    words = rng.integers(0, WORDS, (examples, LENGTH)).astype(np.int32)
    weights = rng.normal(size=WORDS)
    return words, weights[words].sum(1).astype(np.float32)


def dense_model(optimizer):
    """A network of one hidden layer."""

    def model_fn(features, labels):
        rng = np.random.default_rng(2)

        def variable(name, *shape):
            return tf.Variable((rng.normal(size=shape) * 0.3).astype(np.float32), name=name)

        hidden = tf.tanh(tf.matmul(features, variable("w1", FEATURES, 16)) + variable("b1", 16))
        logits = tf.matmul(hidden, variable("w2", 16, CLASSES)) + variable("b2", CLASSES)
        log_sums = tf.reduce_logsumexp(logits, 1)
        picked = tf.reduce_sum(logits * tf.one_hot(labels, CLASSES), 1)
        loss = tf.reduce_mean(log_sums - picked)
        right = tf.equal(tf.cast(tf.argmax(logits, 1), tf.int32), labels)
        step = optimizer().minimize(loss, global_step=tf.train.get_or_create_global_step())
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        return tf.train.ModelSpec(loss, step, metrics={"accuracy": accuracy})

    return model_fn


def random_model(optimizer):
    """A network whose results depend on random numbers in every step: dropout, and noise within a loop."""
    inner = dense_model(optimizer)

    def model_fn(features, labels):
        _, noise = tf.while_loop(
            lambda i, x: i < 2,
            lambda i, x: (i + 1, x + tf.random_normal([FEATURES], stddev=0.1)),
            [0, tf.zeros(FEATURES)],
        )
        return inner(tf.nn.dropout(features, rate=0.2) + noise, labels)

    return model_fn


def embedding_model(optimizer, shards=1):
    """A sum of embeddings: the gradients of the table are sparse."""

    def model_fn(features, labels):
        rng = np.random.default_rng(3)
        rows = WORDS // shards
        tables = [
            tf.Variable((rng.normal(size=(rows, 6)) * 0.3).astype(np.float32), name=f"table_{i}") for i in range(shards)
        ]
        out = tf.Variable((rng.normal(size=(6, 1)) * 0.3).astype(np.float32), name="out")
        if shards == 1:
            looked_up = tf.gather(tables[0], features)
        else:
            flat = tf.reshape(features, [-1])
            shard = tf.mod(flat, shards)
            places = tf.dynamic_partition(tf.range(tf.size(flat)), shard, shards)
            parts = tf.dynamic_partition(tf.floordiv(flat, shards), shard, shards)
            found = [tf.gather(table, part) for table, part in zip(tables, parts, strict=True)]
            looked_up = tf.reshape(tf.dynamic_stitch(places, found), [-1, LENGTH, 6])
        predicted = tf.squeeze(tf.matmul(tf.reduce_sum(looked_up, 1), out), [1])
        loss = tf.reduce_mean(tf.square(predicted - labels))
        step = optimizer().minimize(loss, global_step=tf.train.get_or_create_global_step())
        return tf.train.ModelSpec(loss, step)

    return model_fn


def normalized_model(optimizer):
    """Features scaled by moving averages, whose updates come before the gradients as TensorFlow programs write it."""

    def model_fn(features, labels):
        rng = np.random.default_rng(5)
        moving = tf.Variable(np.zeros(FEATURES, np.float32), trainable=False, name="moving")
        links = tf.Variable(np.arange(CLASSES, dtype=np.int32), trainable=False, name="links")
        centres = tf.Variable((rng.normal(size=(CLASSES, FEATURES)) * 0.3).astype(np.float32), name="centres")
        update = moving.assign_sub((moving - tf.reduce_mean(features, 0)) * 0.1)
        nearest = tf.gather(centres, tf.gather(links, labels))  # an answer is the next question
        loss = tf.reduce_mean(tf.square(features - 0.1 * moving - nearest))
        with tf.control_dependencies([update]):
            step = optimizer().minimize(loss, global_step=tf.train.get_or_create_global_step())
        with tf.control_dependencies([step]):
            step = tf.group(tf.Variable(0, trainable=False, name="steps").assign_add(1))
        return tf.train.ModelSpec(loss, step)

    return model_fn


def looping_model(optimizer):
    """A recurrent network whose turns are a loop, and a branch that depends on a parameter."""

    def model_fn(features, labels):
        rng = np.random.default_rng(6)

        def variable(name, *shape):
            return tf.Variable((rng.normal(size=shape) * 0.3).astype(np.float32), name=name)

        weights, recurrent, out = variable("w", FEATURES, 16), variable("u", 16, 16), variable("out", 16, CLASSES)
        inputs = tf.matmul(features, weights)
        _, state = tf.while_loop(
            lambda turn, state: turn < 4,
            lambda turn, state: (turn + 1, tf.tanh(tf.matmul(state, recurrent) + inputs)),
            [tf.constant(0), tf.zeros_like(inputs)],
        )
        state = tf.cond(tf.reduce_sum(recurrent) > 0, lambda: 2 * state, lambda: 1.5 * state)
        logits = tf.matmul(state, out)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        step = optimizer().minimize(loss, global_step=tf.train.get_or_create_global_step())
        return tf.train.ModelSpec(loss, step)

    return model_fn


# -- input functions that misbehave --------------------------------------------------------------------


MODELS = {
    "dense": (dense_model, classification_data),
    "embedding": (embedding_model, text_data),
    "normalized": (normalized_model, classification_data),
    "looping": (looping_model, classification_data),
}
"""Models, each with its data."""


def late_input(input_fn, barrier, replica, step, until="go"):
    """One replica's batch of a step comes only when something else has happened."""

    def late(context):
        for number, batch in enumerate(input_fn(context), 1):
            if context.index == replica and number == step:
                barrier.wait(until)
            yield batch

    return late


def slow_input(input_fn, barrier, replica, sleep_s):
    """One replica takes long over each batch, as long as the test says so."""

    def slow(context):
        for batch in input_fn(context):
            if context.index == replica and barrier.reached("slow"):
                time.sleep(sleep_s)
            yield batch

    return slow


def short_input(input_fn, replica, steps):
    """One replica's input ends after so many batches."""

    def short(context):
        for number, batch in enumerate(input_fn(context)):
            if context.index == replica and number == steps:
                return
            yield batch

    return short


def together_input(input_fn, folder, replicas, again=()):
    """No replica gets a first batch before all have opened their inputs.

    Then what a test does after a step need not wait for a worker: it must not, since whoever calls `on_step` also
    introduces workers.

    Args:
        input_fn: Gives the batches.
        folder: Where replicas tell each other how far they are.
        replicas: How many there are.
        again: Numbers of batches after which each replica waits until the others have taken as many. On a busy
            machine all of a run's steps may else be those of a few replicas.
    """
    barrier, driver = Barrier(folder), os.getpid()

    def read(batches, index):
        for number, batch in enumerate(batches):
            if number == 0 or number in again:
                barrier.reach(f"batch{number}of{index}")
                for other in range(replicas):
                    barrier.wait(f"batch{number}of{other}")
            yield batch

    def together(context):
        batches = input_fn(context)
        if os.getpid() == driver:  # which looks at the first batch before it starts anybody
            return batches
        barrier.reach(f"batch0of{context.index}")
        return read(batches, context.index)

    return together


def noting_input(input_fn, folder):
    """Whoever opens a replica's input notes its process in a file, and whether it is a replacement in another."""

    def noting(context):
        (folder / f"part{context.index}").write_text(str(os.getpid()))
        (folder / f"part{context.index}").rename(folder / f"pid{context.index}")
        if context.first_step > 1:
            (folder / f"again{context.index}").touch()
        return input_fn(context)

    return noting


class Loaded:
    """A Python function of the graph that does something when a process receives it, and then passes values on."""

    def __init__(self, on_load):
        self.on_load = on_load

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.on_load()

    def __call__(self, values):
        return values
