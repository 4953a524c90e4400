"""Sparse tensors from dense ones, as the inner module of ``tf.contrib.layers`` makes them."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.programs.internals import sparse_choices


@pytest.mark.parametrize(
    ("dense", "options", "indices", "values", "dtype"),
    [
        ([1, 0, 2, 0], {}, [[0], [2]], [1, 2], tf.int32),
        ([1.5, 0.0, 2.5, 0.0], {}, [[0], [2]], [1.5, 2.5], tf.float32),
        ([True, False, True, False], {}, [[0], [2]], [True, True], tf.bool),
        (["qwe", "", "ewq", ""], {}, [[0], [2]], [b"qwe", b"ewq"], tf.string),
        (["qwe", "", "ewq", ""], {"ignore_value": "qwe"}, [[1], [2], [3]], [b"", b"ewq", b""], tf.string),
        ([[1, 7, 0], [7, 4, 5]], {"ignore_value": 7}, [[0, 0], [0, 2], [1, 1], [1, 2]], [1, 0, 4, 5], tf.int32),
    ],
)
def test_what_stands_for_nothing_is_left_out(dense, options, indices, values, dtype):
    sparse = sparse_choices.dense_to_sparse_tensor(dense, **options)
    assert sparse.dtype == dtype
    with tf.Session() as session:
        found = session.run(sparse)
    np.testing.assert_array_equal(found.indices, indices)
    assert found.values.tolist() == values and found.dense_shape.tolist() == list(np.shape(dense))


def test_marks_become_classes():
    marks = [[[0, 0, 1, 0], [0, 0, 0, 0]], [[1, 0, 1, 1], [0, 0, 1, 0]]]
    with tf.Session() as session:
        found = session.run(sparse_choices.indicators_to_sparse_ids(marks, dtype=tf.int32))
    assert found.indices.tolist() == [[0, 0, 0], [1, 0, 0], [1, 0, 1], [1, 0, 2], [1, 1, 0]]
    assert found.values.tolist() == [2, 0, 2, 3, 2] and found.values.dtype == np.int32
    assert found.dense_shape.tolist() == [2, 2, 3]


@pytest.mark.parametrize(("axes", "expected"), [((0, 1), [1, 0, 3]), ((1, 0), [3, 3, 3]), ((2, 1), [3, 1])])
def test_rows_reach_as_far_as_their_last_value(axes, expected):
    sparse = tf.SparseTensor([[0, 0, 1], [2, 0, 0], [2, 1, 0], [2, 2, 0]], [0, 1, 2, 3], [3, 3, 2])
    with tf.Session() as session:
        assert session.run(sparse_choices.sparse_row_envelope(sparse, *axes)).tolist() == expected


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sparse_choices.dense_to_sparse_tensor(tf.placeholder(tf.int32)), "unknown rank"),
        (lambda: sparse_choices.indicators_to_sparse_ids([1], dtype=tf.float32), "not integer"),
        (lambda: sparse_choices.sparse_row_envelope(None, 1, 1), "can not be the same axis"),
        (lambda: sparse_choices.sparse_row_envelope(None, 1.0, 1), "must be integers"),
    ],
)
def test_what_makes_no_sense(call, words):
    with pytest.raises(ValueError, match=words):
        call()
