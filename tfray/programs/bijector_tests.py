"""`tensorflow.python.ops.distributions.bijector_test_util`: what holds of every bijector."""

from __future__ import annotations

from typing import Any

import numpy as np

import tfray as tf

__all__ = [
    "assert_bijective_and_finite", "assert_finite", "assert_scalar_congruency", "assert_strictly_decreasing",
    "assert_strictly_increasing", "assert_strictly_monotonic",
]  # fmt: skip


def assert_finite(array: Any) -> None:
    """Raise `AssertionError` unless all numbers are finite."""
    if not np.isfinite(array).all():
        raise AssertionError(f"array was not all finite. {array[:15]}")


def assert_strictly_increasing(array: Any) -> None:
    """Raise `AssertionError` unless each number is larger than the one before."""
    np.testing.assert_array_less(0.0, np.diff(array))


def assert_strictly_decreasing(array: Any) -> None:
    """Raise `AssertionError` unless each number is smaller than the one before."""
    np.testing.assert_array_less(np.diff(array), 0.0)


def assert_strictly_monotonic(array: Any) -> None:
    """Raise `AssertionError` unless the numbers rise, or fall, all the way."""
    (assert_strictly_increasing if array[0] < array[-1] else assert_strictly_decreasing)(array)


def assert_scalar_congruency(
    bijector: Any, lower_x: float, upper_x: float, n: int = 10_000, rtol: float = 0.01, sess: Any = None
) -> None:
    """Check that a map of single numbers rises or falls, that its inverse is one, and that its Jacobians measure it.

    TensorFlow takes random numbers, and this the middles of `n` parts of the interval.

    Args:
        bijector: The map.
        lower_x: The least number to look at.
        upper_x: The largest.
        n: How many to look at.
        rtol: How much the lengths of intervals may differ.
        sess: The session; the default one when None.

    Raises:
        AssertionError: One does not hold.
    """
    run = _session(sess).run
    x = np.linspace(lower_x, upper_x, 10, dtype=np.float32)
    y = tf.identity(bijector.forward(x))  # a bijector knows what it gave for which point
    y, back = run([y, bijector.inverse(y)])
    assert_strictly_monotonic(y)
    np.testing.assert_allclose(x, back, rtol=1e-4, atol=1e-4)
    parts = ((np.arange(n) + 0.5) / n).astype(np.float32)
    points, of_x = lower_x + (upper_x - lower_x) * parts, upper_x - lower_x
    images, of_y = y.min() + (y.max() - y.min()) * parts, y.max() - y.min()
    slopes = [
        tf.exp(bijector.forward_log_det_jacobian(points, event_ndims=0)),
        tf.exp(bijector.inverse_log_det_jacobian(images, event_ndims=0)),
        tf.exp(-bijector.inverse_log_det_jacobian(tf.identity(bijector.forward(points)), event_ndims=0)),
    ]
    forward, inverse, reciprocal = run([slope + tf.zeros([n]) for slope in slopes])
    np.testing.assert_allclose(of_y, forward.mean() * of_x, rtol=rtol)
    np.testing.assert_allclose(of_x, inverse.mean() * of_y, rtol=rtol)
    np.testing.assert_allclose(forward, reciprocal, rtol=max(rtol, 1e-2), atol=1e-5)


def _session(sess: Any) -> Any:
    return sess or tf.get_default_session()


def assert_bijective_and_finite(
    bijector: Any, x: Any, y: Any, event_ndims: int, atol: float = 0, rtol: float = 1e-5, sess: Any = None
) -> None:
    """Check that forward and inverse undo each other, so that their Jacobians do too, and that all is finite.

    Args:
        bijector: The map.
        x: Points of its domain.
        y: Points of its image.
        event_ndims: Number of dimensions of one point.
        atol: How much numbers may differ.
        rtol: How much they may by their size.
        sess: The session; the default one when None.

    Raises:
        AssertionError: One does not hold.
    """
    f_x, g_y = tf.identity(bijector.forward(x)), tf.identity(bijector.inverse(y))
    found = {
        "x": bijector.inverse(f_x),
        "y": bijector.forward(g_y),
        "forward of x": bijector.forward_log_det_jacobian(x, event_ndims=event_ndims),
        "inverse of its image": bijector.inverse_log_det_jacobian(f_x, event_ndims=event_ndims),
        "inverse of y": bijector.inverse_log_det_jacobian(y, event_ndims=event_ndims),
        "forward of its source": bijector.forward_log_det_jacobian(g_y, event_ndims=event_ndims),
        "f_x": f_x,
        "g_y": g_y,
    }
    values = _session(sess).run(found)
    for value in values.values():
        assert_finite(value)
    for expected, name in ((x, "x"), (y, "y")):
        np.testing.assert_allclose(expected, values[name], atol=atol, rtol=rtol)
    for first, second in (("forward of x", "inverse of its image"), ("inverse of y", "forward of its source")):
        np.testing.assert_allclose(values[first], -values[second], atol=atol, rtol=rtol)
