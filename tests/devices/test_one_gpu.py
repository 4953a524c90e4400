"""What steps on a GPU do otherwise than on a CPU, or refuse as it does.

Where there is none, ``tests/support/gpu/check.sh tests tests/devices/test_one_gpu.py`` runs these tests on a stand-in.
"""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.runtime.device import gpu_count

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_count(), reason="needs a GPU")]


def run(build, *arrays):
    """The value of what `build` makes of fed tensors, on a GPU alone."""
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        feeds = {tf.placeholder(array.dtype): array for array in arrays}
        return session.run(build(*feeds), feeds)


def test_indices_count_on_from_the_first_row_again():
    assert run(tf.gather, np.arange(5.0), np.int32([1, 5, 7])).tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("scatter", "indices"),
    [
        (tf.scatter_add, [2, 1, 0]),
        (tf.scatter_update, [2, 1, 0]),
        (tf.scatter_max, [2, 1, 0]),
        (tf.scatter_nd_add, [[2], [1], [0]]),
        (tf.scatter_nd_update, [[2], [1], [0]]),
    ],
)
def test_rows_of_a_variable_are_scattered_into_itself(scatter, indices):
    start = np.float32([[1, 2], [3, 4], [5, 6]])
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as session:
        variable = tf.Variable(start)
        session.run(variable.initializer)
        found = session.run(scatter(variable, indices, variable))
    combined = {"add": np.add, "max": np.maximum, "update": lambda old, new: new}[scatter.__name__.split("_")[-1]]
    np.testing.assert_array_equal(found, combined(start, start[::-1]))


@pytest.mark.parametrize("wrong", [-1, 2, 1000])
def test_partitions_that_do_not_exist_are_refused(wrong):
    with pytest.raises(InvalidArgumentError, match=r"a partition is not in \[0, 2\)"):
        run(lambda data, parts: tf.dynamic_partition(data, parts, 2), np.arange(3.0), np.int32([0, wrong, 1]))


def test_many_rows_are_partitioned_in_their_order():
    parts = np.random.default_rng(0).integers(0, 30_000, 100_000).astype(np.int32)
    found = run(lambda data, parts: tf.dynamic_partition(data, parts, 30_000)[29_000], np.arange(100_000), parts)
    assert found.tolist() == np.flatnonzero(parts == 29_000).tolist()


SINGULAR, INDEFINITE = np.float32([[1, 2], [2, 4]]), np.float32([[1, 2], [2, 1]])


@pytest.mark.parametrize(
    ("build", "matrix"),
    [
        (tf.matrix_inverse, SINGULAR),
        (tf.matrix_inverse, np.stack([INDEFINITE, SINGULAR])),
        (lambda x: tf.matrix_solve(x, x), SINGULAR),
        (tf.cholesky, INDEFINITE),
    ],
)
def test_bad_matrices_are_refused(build, matrix):
    with pytest.raises(InvalidArgumentError, match="input shapes"):
        run(build, matrix)


def test_a_singular_matrix_has_a_determinant():
    assert run(tf.matrix_determinant, SINGULAR) == 0
