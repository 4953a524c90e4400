"""How TensorFlow's own modules describe elements of datasets, beside its public functions."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run
from tfray.programs.internals import dataset_structures as structures

SPARSE = tf.SparseTensorValue([[0, 1]], [3.0], [1, 2])
ELEMENT = {"a": np.float32([1, 2]), "b": (SPARSE, 4)}
SPEC = {
    "a": tf.TensorSpec([2], tf.float32),
    "b": (tf.SparseTensorSpec([1, 2], tf.float32), tf.TensorSpec([], tf.int32)),
}


def test_an_element_is_described():
    assert structures.type_spec_from_value(ELEMENT) == SPEC
    assert [type(leaf) for leaf in tf.nest.flatten(structures.normalize_element(ELEMENT), expand_composites=False)] == [
        tf.Tensor,
        tf.SparseTensor,
        tf.Tensor,
    ]
    assert structures.type_spec_from_value(tf.constant([1.0]), use_fallback=False) == tf.TensorSpec([1], tf.float32)
    with pytest.raises(TypeError, match="with type int"):
        structures.type_spec_from_value(4, use_fallback=False)
    with pytest.raises(TypeError, match="with type object"):
        structures.type_spec_from_value(object())


def test_an_element_passes_as_tensors():
    tensors = structures.to_tensor_list(SPEC, ELEMENT)
    assert [tensor.dtype for tensor in tensors] == structures.get_flat_tensor_types(SPEC)
    assert structures.get_flat_tensor_shapes(SPEC)[0] == [2]
    for restore in (structures.from_tensor_list, structures.from_compatible_tensor_list):
        found = run(restore(SPEC, tensors))
        assert found["a"].tolist() == [1, 2]
        assert found["b"][0].values.tolist() == [3]
        assert found["b"][1] == 4
        with pytest.raises(ValueError, match="Expected 3 tensors but got 2"):
            restore(SPEC, tensors[:2])
    with pytest.raises(ValueError, match="is not what is described"):
        structures.from_tensor_list(SPEC, [tf.constant([1, 2]), *tensors[1:]])
    with pytest.raises(ValueError, match="not convertible"):
        structures.to_tensor_list(SPEC, {**ELEMENT, "a": [1.0, 2.0, 3.0]})


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (SPEC, True),
        ({**SPEC, "a": tf.TensorSpec(None, tf.float32)}, True),
        ({**SPEC, "a": tf.TensorSpec([3], tf.float32)}, False),
        ({**SPEC, "a": tf.TensorSpec([2], tf.int32)}, False),
        ({**SPEC, "a": tf.SparseTensorSpec([2], tf.float32)}, False),
        ({"a": SPEC["a"]}, False),
    ],
)
def test_compatible_descriptions(other, expected):
    assert structures.are_compatible(SPEC, other) is expected


def test_types_shapes_and_classes_become_a_description():
    dataset = tf.data.Dataset.from_tensors(ELEMENT)
    legacy = [get(dataset) for get in (tf.data.get_output_types, tf.data.get_output_shapes, tf.data.get_output_classes)]
    assert structures.convert_legacy_structure(*legacy) == SPEC
    array = structures.convert_legacy_structure(tf.float32, tf.TensorShape([1, 0, 7]), tf.TensorArray)
    assert array == tf.TensorArraySpec([7], tf.float32, True, False)
    assert structures.convert_legacy_structure(tf.int32, tf.TensorShape([]), SPEC["a"]) == SPEC["a"]
    with pytest.raises(TypeError, match="output class"):
        structures.convert_legacy_structure(tf.float32, tf.TensorShape([]), int)


def test_sparse_tensors_pass_as_strings():
    element = structures.normalize_element(ELEMENT)
    classes = structures.get_classes(element)
    assert structures.any_sparse(classes)
    assert not structures.any_sparse((tf.Tensor, tf.Tensor))
    types = {"a": tf.float32, "b": (tf.float32, tf.int32)}
    shapes = {"a": tf.TensorShape([2]), "b": (tf.TensorShape([1, 2]), tf.TensorShape([]))}
    assert structures.as_dense_types(types, classes)["b"] == (tf.string, tf.int32)
    assert structures.as_dense_shapes(shapes, classes)["b"][0].rank is None
    passed = structures.serialize_sparse_tensors(element)
    assert passed["b"][0].dtype is tf.string
    found = run(structures.deserialize_sparse_tensors(passed, types, shapes, classes))
    assert found["b"][0].dense_shape.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("graph_seed", "seed", "expected"),
    [(None, None, (0, 0)), (None, 1, (tf.random.get_seed(1)[0], 1)), (0, 0, (0, 2**31 - 1)), (5, 7, (5, 7))],
)
def test_seeds_of_a_dataset(graph_seed, seed, expected):
    if graph_seed is not None:
        tf.set_random_seed(graph_seed)
    assert run(structures.get_seed(seed)) == expected


def test_shapes_and_arguments_as_tensors():
    assert run(structures.partial_shape_to_tensor([2, None])).tolist() == [2, -1]
    assert run(structures.partial_shape_to_tensor(tf.constant([3, 4], tf.int64))).tolist() == [3, 4]
    with pytest.raises(TypeError, match="element type was int32"):
        structures.partial_shape_to_tensor(tf.constant([3, 4]))
    with pytest.raises(ValueError, match="must be a 1-D tensor"):
        structures.partial_shape_to_tensor(tf.constant([[3, 4]], tf.int64))
    assert run(structures.optional_param_to_tensor("size", None, 5)) == 5
    assert structures.optional_param_to_tensor("count", 3).op.name == "count"
