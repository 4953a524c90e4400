"""Descriptions of values, and the functions that tell what a value is; what TensorFlow 2.21's `compat.v1` gives."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.ops.control.type_specs import BatchableTypeSpec

SPARSE = tf.SparseTensorSpec([2, 3])


@pytest.mark.parametrize(
    ("spec", "value", "fits"),
    [
        (tf.TensorSpec([None]), np.ones(2, np.float32), True),
        (tf.TensorSpec([None]), tf.TensorSpec([2], name="other"), True),
        (tf.TensorSpec([None]), np.ones(2), False),
        (tf.TensorSpec([3]), np.ones(2, np.float32), False),
        (tf.TensorSpec(None), SPARSE, False),
        (SPARSE, tf.SparseTensorSpec(), True),
        (SPARSE, tf.SparseTensorSpec([3, 3]), False),
        (SPARSE, np.ones([2, 3], np.float32), False),
        (tf.TensorArraySpec([2]), tf.TensorArraySpec([2]), True),
        (tf.TensorArraySpec([2]), tf.TensorArraySpec([2], tf.int32), False),
        (tf.IndexedSlicesSpec([None, 2]), tf.IndexedSlicesSpec([4, 2]), True),
    ],
    ids=repr,
)
def test_what_descriptions_fit(spec, value, fits):
    assert spec.is_compatible_with(value) is fits


def test_descriptions_of_values():
    x = tf.constant([1.0, 2.0], name="x")
    sparse = tf.SparseTensor([[0, 0]], [1.0], [2, 3])
    assert tf.TensorSpec.from_tensor(x) == tf.TensorSpec([2], tf.float32, "x")
    assert tf.TensorSpec.from_tensor(x, "y") == tf.TensorSpec.from_spec(tf.TensorSpec([2]), "y")
    assert tf.SparseTensorSpec.from_value(sparse) == SPARSE and SPARSE.is_compatible_with(sparse)
    assert tf.IndexedSlicesSpec([2]).is_compatible_with(tf.IndexedSlices(x, tf.constant([0, 1], tf.int64)))
    assert tf.TensorArraySpec.from_value(tf.TensorArray(tf.int32, 2)).dtype is tf.int32
    assert repr(tf.TensorSpec([2])) == "TensorSpec(shape=(2,), dtype=tf.float32, name=None)"
    assert repr(SPARSE) == "SparseTensorSpec(TensorShape([Dimension(2), Dimension(3)]), tf.float32)"
    assert {tf.TensorSpec([2]): 1}[tf.TensorSpec((2,))] == 1
    assert (SPARSE.value_type, tf.TensorSpec(None).value_type) == (tf.SparseTensor, tf.Tensor)


def test_the_most_specific_description_of_two():
    both = tf.SparseTensorSpec([2, 3]).most_specific_compatible_type(tf.SparseTensorSpec([2, 4]))
    assert both == tf.SparseTensorSpec([2, None])
    for other in (tf.SparseTensorSpec([2, 3], tf.int32), tf.TensorSpec([2, 3])):
        with pytest.raises(ValueError, match="no description"):
            SPARSE.most_specific_compatible_type(other)


def test_what_is_a_tensor():
    x = tf.constant([1.0])
    tensors = [x, tf.SparseTensor([[0]], [1.0], [1]), tf.IndexedSlices(x, tf.constant([0])), tf.get_variable("v", [2])]
    assert all(map(tf.is_tensor, tensors))
    assert not any(map(tf.is_tensor, [3, np.ones(2), [x], None, x.op, tf.TensorShape([1])]))
    slices = tensors[2]
    assert tf.convert_to_tensor_or_indexed_slices(slices) is slices
    assert tf.convert_to_tensor_or_indexed_slices([1]).dtype is tf.int32
    with pytest.raises(ValueError, match="expected int32"):
        tf.convert_to_tensor_or_indexed_slices(slices, tf.int32)


def test_static_values():
    assert tf.get_static_value(tf.constant([1, 2])).tolist() == [1, 2]
    assert tf.get_static_value(tf.placeholder(tf.float32)) is None
    assert tf.get_static_value(tf.stack([1, tf.placeholder(tf.int32, [])]), partial=True) == [1, None]
    assert tf.contrib.util.constant_value(tf.constant(3)) == 3


@pytest.mark.parametrize("value", [np.arange(6.0).reshape(2, 3), np.float32(2)])
def test_static_values_of_stacks(value):
    unknown = tf.placeholder(value.dtype, value.shape)
    known, missing = tf.contrib.util.constant_value(tf.stack([value, unknown]), partial=True)
    assert known.tolist() == value.tolist() and missing is None
    inner, missing = tf.get_static_value(tf.stack([tf.stack([value, unknown]), tf.stack([unknown] * 2)]), partial=True)
    assert inner[0].tolist() == value.tolist() and inner[1] is None and missing is None
    for other in (tf.stack([unknown, unknown]), unknown, tf.placeholder(tf.int32, [2])):
        assert tf.get_static_value(other, partial=True) is None
    assert tf.get_static_value(tf.stack([value, unknown])) is None


def test_switches_of_what_makes_no_difference_are_remembered():
    for enable, disable, enabled in (
        (tf.enable_resource_variables, tf.disable_resource_variables, tf.resource_variables_enabled),
        (tf.enable_control_flow_v2, tf.disable_control_flow_v2, tf.control_flow_v2_enabled),
    ):
        assert not enabled()
        enable()
        assert enabled()
        disable()
        assert not enabled()


@pytest.mark.parametrize(
    "refused",
    [
        tf.enable_v2_behavior,
        tf.enable_v2_tensorshape,
        tf.enable_tensor_equality,
        tf.sysconfig.get_include,
        lambda: tf.load_op_library(__file__),
    ],
)
def test_what_cannot_be_had_says_so(refused):
    with pytest.raises(tf.errors.UnimplementedError):
        refused()


def test_nested_structures_are_public():
    assert tf.nest.flatten({"b": 1, "a": [2, 3]}) == [2, 3, 1]
    assert tf.nest.map_structure(lambda a, b: a + b, [1, (2,)], [3, [4]], check_types=False) == [4, (6,)]
    for error in (TypeError, ValueError):
        with pytest.raises(error, match="same sequence type"):
            tf.nest.map_structure(lambda a, b: a + b, [1, (2,)], [3, [4]])


def test_bounds_of_elements():
    spec = tf.contrib.framework.BoundedTensorSpec((2, 3), tf.int32, (0, 0, 0), 5, name="x")
    assert (spec.minimum.tolist(), spec.maximum.tolist(), spec.minimum.dtype) == ([0, 0, 0], 5, np.int32)
    assert spec.is_bounded() and not tf.TensorSpec([2]).is_bounded()
    assert (spec.is_discrete, spec.is_continuous) == (True, False)
    assert tf.TensorSpec.from_spec(spec) == tf.TensorSpec([2, 3], tf.int32, "x")
    kind = type(spec)
    assert spec == kind.from_spec(spec) == kind([2, 3], tf.int32, 0, 5) and hash(spec) == hash(kind.from_spec(spec))
    assert spec != kind([2, 3], tf.int32, 0, 6) and spec != tf.TensorSpec([2, 3], tf.int32)
    assert kind.from_spec(tf.TensorSpec([2], tf.uint8)).maximum.tolist() == 255
    assert repr(spec).startswith("BoundedTensorSpec(shape=(2, 3), dtype=tf.int32, name='x', minimum=array([0, 0, 0]")
    with pytest.raises(ValueError, match="read-only"):
        spec.minimum[0] = 1
    for bounds in ((0, 0), 1), (0, [[1, 2], [3, 4]]):
        with pytest.raises(ValueError, match="not compatible"):
            kind((3, 5), tf.uint8, *bounds)


@pytest.mark.parametrize("kind", [tf.TensorSpec, tf.SparseTensorSpec])
def test_a_batch_has_one_dimension_more_and_a_row_one_less(kind):
    spec = kind([2, 3], tf.int32)
    assert isinstance(spec, BatchableTypeSpec)
    assert spec._batch(4) == kind([4, 2, 3], tf.int32)
    assert spec._batch(None) == kind([None, 2, 3], tf.int32)
    assert spec._unbatch() == kind([3], tf.int32)
    assert kind(None)._batch(4) == kind(None)._unbatch() == kind(None)
    with pytest.raises(ValueError, match="only supported for rank >= 1"):
        kind([])._unbatch()


def test_batches_of_datasets_are_described():
    spec = tf.data.DatasetSpec(tf.TensorSpec([], tf.int32))
    assert spec._batch(4) == tf.data.DatasetSpec(tf.TensorSpec([], tf.int32), [4])
    assert spec._batch(4)._unbatch() == spec
    with pytest.raises(ValueError, match="only supported for rank >= 1"):
        spec._unbatch()


def test_the_name_of_a_tensor_is_not_that_of_a_batch():
    assert tf.TensorSpec([2], tf.int32, "a")._batch(4).name is None
    assert not isinstance(tf.IndexedSlicesSpec([2]), BatchableTypeSpec)
