"""What TensorFlow's distributions share within."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.library.distributions.distribution import cross_entropy
from tfray.programs.internals import distributions as internals

GRID = np.linspace(-30, 8, 40)
P = np.array([0.01, 0.2, 0.5, 0.7, 0.99])
ROWS = np.arange(24.0).reshape(2, 3, 4)


def value(fetched):
    with tf.Session() as session:
        return session.run(fetched)


@pytest.mark.parametrize(
    ("found", "expected"),
    [  # SciPy's values
        (lambda: internals.ndtr(GRID), special.ndtr(GRID)),
        (lambda: internals.log_ndtr(GRID), special.log_ndtr(GRID)),
        (lambda: internals.ndtri(P), special.ndtri(P)),
        (lambda: internals.erfinv(P), special.erfinv(P)),
        (lambda: internals.log_cdf_laplace(GRID), stats.laplace.logcdf(GRID)),
        (
            lambda: internals.log_combinations([2.0, 5.0, 15.0], [[1, 1], [2, 3], [11, 4]]),
            np.log(special.binom([2, 5, 15], [1, 2, 4])),
        ),
        (lambda: internals.get_logits_and_probs(probs=P, validate_args=True)[0], special.logit(P)),
        (lambda: internals.get_logits_and_probs(logits=special.logit(P))[1], P),
        (lambda: internals.get_logits_and_probs(logits=np.log([0.2, 0.8]), multidimensional=True)[1], [0.2, 0.8]),
        (lambda: internals.rotate_transpose(ROWS, 1), ROWS.transpose(2, 0, 1)),
        (lambda: internals.rotate_transpose(ROWS, -4), ROWS.transpose(1, 2, 0)),
        (lambda: internals.rotate_transpose(ROWS, tf.placeholder_with_default(2, [])), ROWS.transpose(1, 2, 0)),
        (lambda: internals.pick_vector(tf.less(0, 5), [10, 11], [15, 16, 17]), [10, 11]),
        (lambda: internals.pick_vector(tf.placeholder_with_default(True, []), [10, 11], [15, 16, 17]), [10, 11]),
        (lambda: internals.pick_vector(tf.placeholder_with_default(False, []), [10, 11], [15, 16, 17]), [15, 16, 17]),
        (lambda: internals.pad([[1, 2]], 1, front=True, value=9, count=2), [[9, 9, 1, 2]]),
        (lambda: internals.pad([[1, 2]], -2, front=True, back=True), [[0, 0], [1, 2], [0, 0]]),
        (lambda: internals.same_dynamic_shape(ROWS, ROWS), True),
        (lambda: internals.same_dynamic_shape(ROWS, ROWS[0]), False),
    ],
)
def test_values(found, expected):
    np.testing.assert_allclose(value(found()), expected, rtol=1e-6)


def test_where_the_inverse_is_infinite_its_gradient_is_not():
    p = tf.constant([0.0, 0.5, 1.0])
    np.testing.assert_allclose(value(tf.gradients(internals.ndtri(p), p)[0]), [0, np.sqrt(2 * np.pi), 0], rtol=1e-6)


def test_what_is_known_before_a_step():
    known, fed = tf.constant([[1, 2]]), tf.placeholder(tf.int32, [None, 3])
    assert internals.maybe_get_static_value(known, tf.float32).dtype == np.float32
    assert internals.maybe_get_static_value(fed) is None and internals.maybe_get_static_value(None) is None
    assert internals.prefer_static_rank(fed) == 2 and internals.prefer_static_shape(known).tolist() == [1, 2]
    assert internals.prefer_static_value(fed) is fed
    assert internals.dimension_size(fed, 1) == 3 and isinstance(internals.dimension_size(fed, 0), tf.Tensor)
    assert internals.prefer_static_broadcast_shape(tf.TensorShape([5, 1]), tf.constant([3])) == [5, 3]
    sizes = internals.prefer_static_broadcast_shape(tf.TensorShape([5, 1]), tf.placeholder_with_default([3], [1]))
    assert value(sizes).tolist() == [5, 3]
    assert internals.gen_new_seed(None, "salt") is None
    assert internals.gen_new_seed(1, "salt") == internals.gen_new_seed(1, "salt") != internals.gen_new_seed(1, "other")


@pytest.mark.parametrize(
    ("check", "wrong", "match"),
    [  # the messages of TensorFlow 1.15
        (internals.assert_integer_form, [1.1, 5.0], "has non-integer components"),
        (internals.assert_symmetric, [[1.0, 2.0], [3.0, 4.0]], "Condition x == y did not hold"),
        (internals.embed_check_nonnegative_integer_form, [-1.0], "must be non-negative"),
        (internals.embed_check_nonnegative_integer_form, [1.5], "cannot contain fractional components"),
        (internals.embed_check_categorical_event_shape, [1.0], "must have at least 2 events"),
        (lambda x: internals.embed_check_integer_casting_closed(x, tf.int16), [-1.0], "must be non-negative"),
        (lambda x: internals.embed_check_integer_casting_closed(x, tf.int16), [1.5], "must be int16-equivalent."),
        (
            lambda x: internals.embed_check_integer_casting_closed(tf.cast(x, tf.int32), tf.int16),
            [2.0**15],
            "cannot exceed 32767.",
        ),
        (
            lambda x: internals.embed_check_integer_casting_closed(tf.cast(x, tf.int32), tf.uint16, False),
            [-1.0],
            "cannot be smaller than 0.",
        ),
        (lambda x: internals.get_logits_and_probs(probs=x, validate_args=True)[1], [2.0], "greater than 1"),
    ],
)
def test_checks_in_a_step(check, wrong, match):
    x = tf.placeholder(tf.float32)
    with tf.Session() as session, pytest.raises(InvalidArgumentError, match=match):
        session.run(check(x), {x: wrong})


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        (lambda: internals.erfinv([1, 2]), TypeError, "is not handled"),
        (lambda: internals.log_ndtr(GRID, 1.5), TypeError, "must be a Python integer"),
        (lambda: internals.log_ndtr(GRID, 31), ValueError, "<= 30"),
        (lambda: internals.pick_vector(1.0, [1], [2]), TypeError, "which is not"),
        (lambda: internals.pad([1], 0), ValueError, "At least one of"),
        (lambda: internals.pad([1], 1, front=True), ValueError, "axis is 1"),
        (lambda: internals.assert_integer_form(True), TypeError, "Unrecognized type"),
        (lambda: internals.embed_check_categorical_event_shape([1, 2]), TypeError, "Unable to validate"),
        (lambda: internals.embed_check_integer_casting_closed([1.0], tf.float32), TypeError, "must be integer-type"),
        (lambda: internals.embed_check_integer_casting_closed(["a"], tf.int32), TypeError, "floating or integer"),
    ],
)
def test_refused(wrong, error, match):
    with pytest.raises(error, match=match):
        wrong()


def test_the_cross_entropy_of_two_distributions_is_entropy_and_divergence():
    first, second = tf.distributions.Normal(0.0, 1.0), tf.distributions.Normal(1.0, 2.0)
    found = cross_entropy(first, second, name="both")
    assert found.op.name == "both/add"
    assert value([found, first.cross_entropy(second)]) == pytest.approx([1.8620857] * 2, rel=1e-6)
    with pytest.raises(NotImplementedError, match="distribution_a type Normal and distribution_b type Gamma"):
        cross_entropy(first, tf.distributions.Gamma(1.0, 1.0))
