"""Several diagonals of matrices at once."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf


@pytest.mark.parametrize("k", [1, [-1, 1]], ids=str)
def test_the_number_of_a_diagonal_may_be_a_tensor_whose_value_the_graph_determines(session, k):
    x = np.arange(12.0).reshape(3, 4)
    part = session.run(tf.matrix_diag_part(x, k=k))
    np.testing.assert_array_equal(session.run(tf.matrix_diag_part(x, k=tf.constant(k))), part)
    of_tensor = tf.matrix_set_diag(np.zeros_like(x), part, k=tf.constant(k))
    np.testing.assert_array_equal(*session.run([of_tensor, tf.matrix_set_diag(np.zeros_like(x), part, k=k)]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="k must be known when the graph is built"):
        tf.matrix_diag_part(x, k=tf.placeholder(tf.int32, np.shape(k)))
