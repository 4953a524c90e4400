"""Assertions about shapes that several tensors share, floating dtypes and iterables."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

SHAPES = [  # ``(tensor, sizes)`` pairs and whether TensorFlow 2.21 accepts them; c is [2, 3], s a scalar, d is [4]
    ([("c", (2, 3))], True),
    ([("c", ("N", "D")), ("d", ("N",))], False),
    ([("c", ("N", "D")), ("s", ())], True),
    ([("s", (1,))], True),
    ([("c", (3, 2))], False),
    ([("c", (2,))], False),
    ([("c", (..., 3))], True),
    ([("c", ("*", 2))], False),
    ([("c", (None, "."))], True),
    ([("c", ("2", "3"))], True),
    ([("d", ())], False),
    ([("c", ("N", "N"))], False),
]


@pytest.mark.parametrize(("pairs", "fits"), SHAPES, ids=str)
@pytest.mark.parametrize("known", ["shape", "rank"])
def test_shapes_are_asserted(pairs, fits, known):
    """What the static shapes show is refused while the graph is built, the rest when it runs."""
    arrays = {"c": np.ones([2, 3]), "s": np.ones([]), "d": np.ones([4])}
    shapes = {n: a.shape if known == "shape" else [None] * a.ndim for n, a in arrays.items()}
    tensors = {n: tf.placeholder(tf.float64, shape) for n, shape in shapes.items()}

    def check():
        op = tf.debugging.assert_shapes([(tensors[name], sizes) for name, sizes in pairs], message="sizes of mine")
        with tf.Session() as session:
            session.run(op, {tensors[n]: arrays[n] for n in arrays})

    if fits:
        check()
    else:
        with pytest.raises(tf.errors.InvalidArgumentError, match="sizes of mine"):
            check()


def test_shapes_of_unknown_rank_are_asserted():
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    op = tf.debugging.assert_shapes({x: (..., "K"), y: ("N", "K")})
    with tf.Session() as session:
        session.run(op, {x: np.ones([4, 2, 3]), y: np.ones([7, 3])})
        for wrong in ([7, 2], [3], [1, 7, 3]):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(op, {x: np.ones([4, 2, 3]), y: np.ones(wrong)})


def test_float_dtypes_are_asserted():
    x = tf.constant(1.0)
    assert tf.assert_same_float_dtype([x, None]) is tf.assert_same_float_dtype() is tf.float32
    assert tf.assert_same_float_dtype(dtype=tf.float16) is tf.float16
    for arguments in (([x, tf.constant(1)],), ([x], tf.float64), (None, tf.int32)):
        with pytest.raises(ValueError, match="float"):
            tf.assert_same_float_dtype(*arguments)


@pytest.mark.parametrize("value", [3, "ab", np.ones(2), None], ids=repr)
def test_what_is_no_proper_iterable(value):
    tf.assert_proper_iterable([value])
    with pytest.raises(TypeError, match="iterable"):
        tf.assert_proper_iterable(value)
