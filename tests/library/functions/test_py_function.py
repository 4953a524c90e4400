"""`tf.py_function`: functions of tensors that have values, with gradients."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run

X = np.float32([0.5, 1.5])


@pytest.mark.parametrize(
    ("function", "dtype", "expected"),
    [
        (lambda x: x * 2, tf.float32, X * 2),
        (lambda x: tf.reduce_sum(x * x), tf.float32, 2.5),
        (lambda x: x.numpy() + 1, tf.float32, X + 1),
        (lambda x: x.numpy().astype(np.float64), tf.float32, X),
        (lambda x: x if x[0] > 0 else -x, tf.float32, X),
        (lambda x: float(x[0]) + float(tf.exp(x)[1]), tf.float32, 0.5 + np.exp(1.5)),
        (lambda x: np.sum(x), tf.float32, 2),
        (lambda x: [len(x), "text"], [tf.int32, tf.string], [2, b"text"]),
        (lambda x: (x, tf.cast(x, tf.int32)), (tf.float32, tf.int32), [X, [0, 1]]),
    ],
)
def test_what_functions_return(function, dtype, expected):
    result = tf.py_function(function, [tf.constant(X)], dtype)
    found = run(result)
    for value, wanted in zip(found, expected, strict=True) if isinstance(result, list) else [(found, expected)]:
        np.testing.assert_allclose(value, wanted, rtol=1e-6) if not isinstance(wanted, bytes) else None
        assert not isinstance(wanted, bytes) or value == wanted


def test_gradients():
    x, y = tf.constant(X), tf.placeholder(tf.float32, [])

    def products(a, b):
        if b.numpy() > 0:
            return a * b, tf.exp(a)
        return -a * b, a

    results = tf.py_function(products, [x, y], [tf.float32, tf.float32])
    d_x, d_y = tf.gradients(results, [x, y])
    assert d_x.shape == [2]
    np.testing.assert_allclose(run(d_x, {y: 2.0}), 2 + np.exp(X), rtol=1e-6)
    np.testing.assert_allclose(run(d_x, {y: -2.0}), [3, 3], rtol=1e-6)
    assert run([d_y], {y: -2.0}) == [-2]


def test_functions_without_results_run():
    seen = []
    operation = tf.py_function(lambda x: seen.append(x.numpy().tolist()), [tf.constant(X)], [])
    run(operation)
    assert seen == [[0.5, 1.5]]


def test_errors():
    x = tf.constant(X)
    with pytest.raises(ValueError, match="Expected func to be callable"):
        tf.py_function(3, [x], tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="returned 2 values, expected 1"):
        run(tf.py_function(lambda x: (x, x), [x], tf.float32))
    with pytest.raises(tf.errors.UnknownError, match="ZeroDivisionError"):
        run(tf.py_function(lambda x: 1 / 0, [x], tf.float32))


def test_a_function_may_change_its_arguments():
    """Other operations do not see it."""
    x = tf.constant(X) + 0.0

    def changed(array):
        array += 1
        return array

    outcome = tf.py_func(changed, [x], tf.float32)
    with tf.control_dependencies([outcome]):
        after = tf.identity(x)
    np.testing.assert_allclose(run([outcome, after, x]), [X + 1, X, X])
    with pytest.raises(ValueError, match="Expected func to be callable"):
        tf.py_func(3, [x], tf.float32)


@pytest.mark.parametrize("load", [tf.load_op_library, tf.load_library, tf.load_file_system_library])
def test_compiled_libraries_cannot_be_loaded(load, tmp_path):
    with pytest.raises(tf.errors.NotFoundError, match="no such file"):
        load(str(tmp_path / "kernels.so"))
    (tmp_path / "kernels.so").write_bytes(b"")
    with pytest.raises(tf.errors.UnimplementedError, match="cannot be loaded here; use"):
        load(str(tmp_path / "kernels.so"))


def test_a_lazy_module_is_imported_when_it_is_used():
    names = {}
    names["colors"] = lazy = tf.LazyLoader("colors", names, "colorsys")
    assert names["colors"] is lazy
    assert lazy.rgb_to_hsv(0.0, 0.0, 0.0) == (0.0, 0.0, 0.0)
    assert names["colors"].__name__ == "colorsys" and names["colors"] is not lazy
    assert "hsv_to_rgb" in dir(tf.LazyLoader("colors", {}, "colorsys"))
