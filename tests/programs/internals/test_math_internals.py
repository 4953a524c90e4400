"""What TensorFlow's modules of mathematics and of gradients keep to themselves."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.programs.internals import mathematics as internals
from tfray.training.threads.global_step import increment_global_step


def value(fetched):
    with tf.Session() as session:
        return session.run(fetched)


def test_numbers_within_a_tolerance_and_in_buckets():
    assert value(internals.approximate_equal([1.0, 1.0], [1.00009, 1.000009])).tolist() == [False, True]
    numbers = [-5, 0, 2, 3, 5, 8, 10, 11, 12]
    assert value(internals.bucketize(numbers, [0, 3, 8, 11])).tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4]
    with pytest.raises(ValueError, match="Shapes must be equal rank, but are 1 and 2"):
        internals.approximate_equal([1.0], [[1.0]])
    unsorted = internals.bucketize(numbers, [0, 8, 3])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expected sorted boundaries"):
        value(unsorted)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int64, np.float16, np.float64])
def test_eight_comparisons_make_a_byte(dtype):
    numbers = np.random.default_rng(1).standard_normal((3, 32)) * 5
    numbers = numbers > 0 if dtype == np.bool_ else numbers.astype(dtype)
    packed = internals.compare_and_bitpack(numbers, dtype(0))
    assert packed.shape == (3, 4) and packed.dtype == tf.uint8
    assert value(packed).tolist() == np.packbits(numbers > 0).reshape(3, 4).tolist()
    with pytest.raises(ValueError, match="Expected last dimension to be a multiple of 8, not 30"):
        internals.compare_and_bitpack(numbers[:, 2:], dtype(0))


def test_a_tensor_as_slices_is_the_same_tensor():
    tensor = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    slices = internals.as_indexed_slices(tensor)
    wide = tf.IndexedSlices(slices.values, tf.cast(slices.indices, tf.int64), slices.dense_shape)
    assert internals.as_indexed_slices(slices) is slices
    assert {each.indices.dtype for each in internals.as_indexed_slices_list([tensor, wide])} == {tf.int64}
    np.testing.assert_array_equal(*value([tf.multiply(slices, 2.0), tensor * 2]))
    with pytest.raises(TypeError, match="Not a Tensor or IndexedSlices"):
        internals.as_indexed_slices(1.0)
    with pytest.raises(TypeError, match="Expected a list or tuple"):
        internals.as_indexed_slices_list(tensor)


def test_the_product_of_a_hessian_with_a_vector():
    random = np.random.default_rng(0)
    form, x, v = random.normal(size=(4, 4)), tf.constant(random.normal(size=(4, 1))), random.normal(size=(4, 1))
    y = tf.matmul(x, tf.matmul(form, x), transpose_a=True)
    np.testing.assert_allclose(value(internals.hessian_vector_product(y, [x], [v])[0]), (form + form.T) @ v)
    with pytest.raises(ValueError, match="same length"):
        internals.hessian_vector_product(y, [x], [])


@pytest.mark.parametrize("shards", [1, 2, 3])
@pytest.mark.parametrize("shape", [(), (3,), (4, 3)])
def test_rows_that_are_looked_up_are_transformed(shards, shape):
    table = np.arange(1.0, 19.0).reshape(6, 3)
    ids = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 6
    parts = [tf.constant(table[start::shards]) for start in range(shards)]
    found = internals.embedding_lookup_and_transform(
        parts, ids, max_norm=2.0, transform_fn=lambda rows: tf.norm(rows, axis=1)
    )
    assert found.shape == shape
    np.testing.assert_allclose(value(found), np.full(shape, 2.0))


def test_the_global_step_is_made_greater():
    with pytest.raises(ValueError, match=r"should be created by tf.train.get_or_create_global_step"):
        increment_global_step(2)
    tf.train.get_or_create_global_step()
    later = increment_global_step(2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert [int(session.run(later)) for _ in range(2)] == [2, 4]
