"""Summaries made alike by tfray and by TensorFlow.

`scripts/golden_summaries.py` runs them under TensorFlow and keeps what they give in ``tests/golden/summaries.json``;
`tests/ops/system/test_summaries.py` compares what tfray gives. This module imports neither.
"""

from __future__ import annotations

import numpy as np


def draw(*shape: int, low: float = -2.0, high: float = 2.0, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Random numbers, the same under both."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def scalars(tf):
    tf.summary.scalar("loss", tf.constant(0.1))
    tf.summary.scalar("half", tf.constant(2.5, tf.float64))
    tf.summary.scalar("count", tf.constant(7, tf.int64))
    tf.summary.scalar("nothing", tf.constant(np.float32(np.nan)))


def tags(tf):
    one = tf.constant(1.0)
    tf.summary.scalar("loss", one)
    tf.summary.scalar("loss", one)
    tf.summary.scalar("with space/and:colon", one)
    tf.summary.scalar("/leading", one)
    with tf.name_scope("train"):
        tf.summary.scalar("loss", one)
        tf.summary.scalar("loss", one, family="losses")
        tf.summary.histogram("weights", tf.constant([1.0]), family="all weights")
        with tf.name_scope("inner"):
            tf.summary.scalar("a.b-c", one)
    tf.summary.scalar("loss", one, family="losses")


def histograms(tf):
    tf.summary.histogram("normal", tf.constant(draw(500)))
    tf.summary.histogram("zeros", tf.zeros([3, 4]))
    tf.summary.histogram("one", tf.constant(1.0))
    tf.summary.histogram("empty", tf.zeros([0]))
    tf.summary.histogram("integers", tf.constant([-3, 0, 0, 5, 1000000], tf.int64))
    tf.summary.histogram("bytes", tf.constant([0, 1, 255], tf.uint8))
    tf.summary.histogram("extremes", tf.constant([1e-13, -1e-13, 1e25, -1e25, 1e300], tf.float64))
    tf.summary.histogram("limits", tf.constant([1e-12, 1.1e-12, -1e-12, 0.0, 1.0, -1.0], tf.float64))
    tf.summary.histogram("halves", tf.constant(draw(20, dtype="float16")))


def images(tf):
    pixels = (draw(4, 5, 6, 3, low=0, high=255)).astype("uint8")
    tf.summary.image("bytes", tf.constant(pixels))
    tf.summary.image("one", tf.constant(pixels), max_outputs=1)
    tf.summary.image("gray", tf.constant(pixels[:2, ..., :1]), max_outputs=5)
    tf.summary.image("signed", tf.constant(draw(2, 5, 6, 3)))
    tf.summary.image("positive", tf.constant(draw(1, 5, 6, 4, low=0, high=0.3)))
    tf.summary.image("flat", tf.zeros([1, 3, 3, 1]))
    bad = draw(1, 4, 4, 3)
    bad[0, 1, 1, 0], bad[0, 2, 2, 2] = np.nan, np.inf
    tf.summary.image("bad", tf.constant(bad))
    tf.summary.image("double", tf.constant(draw(1, 5, 6, 1, dtype="float64")))


def sounds(tf):
    tf.summary.audio("mono", tf.constant(draw(2, 50)), 8000)
    tf.summary.audio("stereo", tf.constant(draw(1, 50, 2)), 44100.0, max_outputs=1)
    tf.summary.audio("halves", tf.constant([[0.5 / 32768, -0.5 / 32768, 1.5 / 32768, 1.0, -1.0]]), 16000)


def texts(tf):
    tf.summary.text("words", tf.constant(["one", "**two**"]))
    tf.summary.text("word", tf.constant("alone"))
    tf.summary.tensor_summary("numbers", tf.constant(draw(2, 3)), "what they are", display_name="Numbers")
    tf.summary.tensor_summary("family", tf.constant([True, False]), family="some")


CASES = {case.__name__: case for case in (scalars, tags, histograms, images, sounds, texts)}
