"""A program for `tfray run` with functions that give what they should, and others; and what runs commands."""

from __future__ import annotations

from click.testing import CliRunner

from tfray.cli import main

SCRIPT = """
import numpy as np
import tfray as tf

def model(x, y):
    w = tf.get_variable("w", [2, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
    return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss))

def batches(context):
    while True:
        yield np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)

def build(steps=2):
    return tf.train.Trainer(model, batches, run=tf.train.RunConfig(steps=steps))

def nothing():
    return None

def a_pair():
    return 1, []

def no_batches():
    return build(), 7

def needs(argument):
    return argument

def raises():
    raise RuntimeError("a mistake of the program\\nin two lines")

def fails_in_a_step():
    def broken(context):
        yield from [next(batches(context))] * 2
        raise KeyError("price")
    return tf.train.Trainer(model, broken, run=tf.train.RunConfig(steps=9, logdir=None))

def broken_model():
    def model(x, y):
        return undefined_name
    return tf.train.Trainer(model, batches)

def graph():
    v = tf.Variable(1.0, name="v")
    tf.add_to_collection("train_op", v.assign_add(tf.placeholder(tf.float32, [], name="fed")))

limit = 3
"""


def run(*arguments):
    """The result of a command of `tfray`, run in this process."""
    return CliRunner().invoke(main, list(map(str, arguments)))
