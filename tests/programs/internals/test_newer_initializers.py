"""Initializers that are told the dtype when they are called: values as TensorFlow 1.15 gives them."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run, run_initialized
from tfray.programs.internals import newer_initializers as newer

VALUES = [
    (newer.Zeros(), [2], {}, [0.0, 0.0], "float32"),
    (newer.Zeros(), [1], {"dtype": tf.string}, [b""], "string"),
    (newer.Ones(), [2], {"dtype": tf.bool}, [True, True], "bool"),
    (newer.Constant(7), [2, 2], {}, [[7, 7], [7, 7]], "int32"),
    (newer.Constant([1.5, 2]), [1, 2], {}, [[1.5, 2.0]], "float32"),
    (newer.Constant([[1, 2]]), [2], {}, [1, 2], "int32"),
    (newer.Constant("a"), [2], {}, [b"a", b"a"], "string"),
    (newer.Constant([5]), [2], {"dtype": "float16"}, [5, 5], "float16"),
    (newer.Identity(2.0), [2, 3], {}, [[2, 0, 0], [0, 2, 0]], "float32"),
]


@pytest.mark.parametrize(("initializer", "shape", "kwargs", "expected", "dtype"), VALUES)
def test_values(initializer, shape, kwargs, expected, dtype):
    found = initializer(shape, **kwargs)
    assert found.dtype.name == dtype
    np.testing.assert_array_equal(run(found), expected)


@pytest.mark.parametrize(
    ("initializer", "mean", "stddev"),
    [
        (newer.RandomNormal(seed=1), 0.0, 0.05),
        (newer.RandomNormal(1.0, 2.0, seed=1), 1.0, 2.0),
        (newer.TruncatedNormal(seed=1), 0.0, 0.044),
        (newer.RandomUniform(seed=1), 0.0, 0.0289),
        (newer.VarianceScaling(100.0, seed=1), 0.0, 1.0),
        (newer.GlorotUniform(seed=1), 0.0, 0.1),
        (newer.he_normal(1), 0.0, 0.1414),
        (newer.lecun_uniform(1), 0.0, 0.1),
        (newer.Orthogonal(seed=1), 0.0, 0.1),
    ],
)
def test_random_values(initializer, mean, stddev):
    values = run(initializer([100, 100], tf.float64))
    assert values.dtype == np.float64
    np.testing.assert_allclose([values.mean(), values.std()], [mean, stddev], rtol=0.05, atol=0.03 * stddev)


CONFIGURATIONS = [
    (newer.RandomNormal(), {"mean": 0.0, "stddev": 0.05, "seed": None}),
    (newer.Constant(3), {"value": 3}),
    (newer.VarianceScaling(), {"scale": 1.0, "mode": "fan_in", "distribution": "truncated_normal", "seed": None}),
    (newer.Zeros(), {}),
    (newer.Orthogonal(), {"gain": 1.0, "seed": None}),
    (newer.GlorotUniform(3), {"seed": 3}),
]


@pytest.mark.parametrize(("initializer", "expected"), CONFIGURATIONS)
def test_configurations_name_no_dtype(initializer, expected):
    assert initializer.get_config() == expected
    again = type(initializer).from_config({**expected, "dtype": "float32"})
    assert type(again) is type(initializer) and again.get_config() == expected


@pytest.mark.parametrize(
    ("initializer", "shape", "dtype", "error", "words"),
    [
        (newer.Ones(), [1], tf.string, ValueError, "Expected numeric or boolean dtype, got <dtype: 'string'>"),
        (newer.RandomNormal(), [1], tf.int32, ValueError, "Expected floating point type, got <dtype: 'int32'>"),
        (newer.RandomUniform(), [1], tf.bool, ValueError, "Expected float or integer dtype"),
        (newer.Constant([1, 2, 3]), [2, 2], None, TypeError, r"Expected Tensor's shape: \(2, 2\), got \(3,\)"),
        (newer.Identity(), [2], tf.float32, ValueError, "can only be used for 2D matrices"),
        (newer.Orthogonal(), [3], tf.float32, ValueError, "must be at least two-dimensional"),
    ],
)
def test_values_that_there_are_not(initializer, shape, dtype, error, words):
    with pytest.raises(error, match=words):
        initializer(shape, dtype)


def test_variables_and_layers_take_them():
    weights = tf.get_variable("weights", [4, 4], initializer=newer.RandomNormal(stddev=2.0, seed=1))
    parts = tf.get_variable(
        "parts", [4], initializer=newer.Ones(), partitioner=tf.fixed_size_partitioner(2), dtype=tf.float64
    )
    dense = tf.keras.layers.Dense(2, kernel_initializer=newer.Constant(0.5), bias_initializer=newer.Zeros())
    outputs = dense(tf.ones([1, 4]))
    found = run_initialized([weights, tf.convert_to_tensor(parts), outputs])
    assert 1.0 < found[0].std() < 3.0 and found[1].tolist() == [1.0] * 4 and found[2].tolist() == [[2.0, 2.0]]
