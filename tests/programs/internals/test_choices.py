"""What TensorFlow's modules of branches and of convolutions have within."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.programs.internals.choices import case_helper, try_evaluate_constant
from tfray.programs.internals.convolutions import Convolution

X = np.arange(32.0, dtype=np.float32).reshape(2, 4, 4, 1)


def plainly(pred, true_fn, false_fn, label=None):
    """A choice by a bool of Python, and a `tf.cond` by any other."""
    return (true_fn if pred else false_fn)() if isinstance(pred, bool) else tf.cond(pred, true_fn, false_fn, name=label)


@pytest.mark.parametrize(("x", "expected"), [(-3.0, 3.0), (0.5, 0.5), (7.0, 1.0)])
def test_a_choice_by_a_function_of_the_programs_own(x, expected):
    value = tf.placeholder_with_default(x, [])
    pairs = [(False, lambda: tf.constant(9.0)), (value < 0, lambda: -value), (value > 1, lambda: tf.constant(1.0))]
    chosen = case_helper(plainly, pairs, lambda: value, True, None, allow_python_preds=True, label="within")
    with tf.Session() as session:
        assert session.run(chosen) == expected


@pytest.mark.parametrize(
    ("preds", "exclusive", "message"),
    [([False, False], False, "None of conditions"), ([True, True], True, "more than 1 conditions")],
)
def test_a_choice_that_is_none_or_several(preds, exclusive, message):
    pairs = [(tf.placeholder_with_default(pred, []), lambda: tf.constant(1)) for pred in preds]
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(case_helper(plainly, pairs, None, exclusive, "chosen"))


@pytest.mark.parametrize("pairs", [[(True, lambda: 1)], [(tf.constant, 1)], [1]])
def test_what_is_no_choice(pairs):
    with pytest.raises(TypeError, match="pairs of a bool tensor and a function"):
        case_helper(plainly, pairs, None, False, None)
    with pytest.raises(ValueError, match="at least one pair"):
        case_helper(plainly, [], None, False, None)


def test_values_that_the_graph_knows():
    known, unknown = tf.constant(2) + 3, tf.placeholder(tf.int32, [])
    assert try_evaluate_constant(known.graph._c_graph, known._as_tf_output()) == 5
    assert try_evaluate_constant(known.graph._c_graph, unknown._as_tf_output()) is None


def test_a_convolution_is_kept_and_called():
    filters = tf.ones([2, 2, 1, 3])
    kept = Convolution([2, 4, 4, 1], [2, 2, 1, 3], "SAME", strides=[2, 2], data_format="NHWC")
    with tf.Session() as session:
        found, expected = session.run([kept(X, filters), tf.nn.convolution(X, filters, "SAME", [2, 2])])
    np.testing.assert_array_equal(found, expected)
    assert (kept.padding, kept.strides, kept.filter_shape) == ("SAME", [2, 2], [2, 2, 1, 3])


@pytest.mark.parametrize(("shape", "message"), [([2, 4, 4, 3], "channels does not match"), ([2, 4, 3], "rank")])
def test_a_convolution_of_other_shapes_is_refused(shape, message):
    with pytest.raises(ValueError, match=message):
        Convolution(shape, [2, 2, 1, 3], "SAME")
