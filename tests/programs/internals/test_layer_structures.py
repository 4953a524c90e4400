"""What layers of programs' own ask about tensors and shapes in structures."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.programs.internals import layer_structures as structures


def things():
    tensor = tf.placeholder(tf.float32, [2, 3])
    return {
        "tensor": tensor,
        "variable": tf.Variable(1.0),
        "number": 3.0,
        "list": [tensor],
        "sparse": tf.SparseTensor([[0, 0]], [1], [2, 2]),
        "slices": tf.IndexedSlices(tensor, tf.constant([0, 1])),
        "array": np.ones(2),
    }


@pytest.mark.parametrize(
    ("ask", "those"),
    [  # TensorFlow 1.15's answers
        (structures.is_symbolic_tensor, {"tensor", "variable", "sparse", "slices"}),
        (structures.is_tensor_or_variable, {"tensor", "variable", "sparse", "slices"}),
        (structures.is_tensor_or_tensor_list, {"tensor", "list", "sparse"}),
    ],
)
def test_what_is_a_tensor(ask, those):
    assert {name for name, thing in things().items() if ask(thing)} == those


def test_classes_are_registered():
    class Box:
        """Stands for a tensor."""

    assert not structures.is_symbolic_tensor(Box())
    structures.register_symbolic_tensor_type(Box)
    assert structures.are_all_symbolic_tensors([Box(), tf.constant(1)])
    assert not structures.are_all_symbolic_tensors([Box(), 1])
    with pytest.raises(ValueError, match="a class was expected"):
        structures.register_symbolic_tensor_type(Box())


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([1, None], (1, None)),
        ([(1, 2), (3,)], [(1, 2), (3,)]),
        ({"a": tf.TensorShape([1])}, {"a": (1,)}),
        (tf.TensorShape([2, None]), (2, None)),
        ((tf.TensorShape([1]), [[2, 3]]), ((1,), [(2, 3)])),
    ],
)
def test_shapes_become_tuples(shapes, expected):
    assert structures.convert_shapes(shapes) == expected


def test_shapes_become_shapes():
    assert structures.convert_shapes((1, 2), to_tuples=False).as_list() == [1, 2]
    known, unknown = structures.convert_shapes([(1, 2), tf.TensorShape(None)], to_tuples=False)
    assert known.as_list() == [1, 2] and unknown.rank is None
    with pytest.raises(ValueError, match=r"as_list\(\) is not defined on an unknown TensorShape"):
        structures.convert_shapes(tf.TensorShape(None))


def test_a_method_has_tuples():
    class Layer(tf.keras.layers.Layer):
        given: object = None

        @structures.shape_type_conversion
        def compute_output_shape(self, input_shape):
            """The shapes without their last size."""
            self.given = input_shape
            return None if input_shape is None else [shape[:-1] for shape in input_shape]

    layer = Layer()
    found = layer.compute_output_shape([tf.TensorShape([1, None]), (2, 3)])
    assert layer.given == [(1, None), (2, 3)]
    assert [each.as_list() for each in found] == [[1], [2]]
    assert layer.compute_output_shape(None) is None
    assert layer.compute_output_shape.__name__ == "compute_output_shape"


def test_a_function_of_whole_parts():
    def more(nested):
        return structures.map_structure_with_atomic(lambda part: isinstance(part, int), lambda part: part + 1, nested)

    assert more({"a": [1, (2, 3)]}) == {"a": [2, (3, 4)]}
    for part in (3.0, "a"):
        with pytest.raises(ValueError, match=f"Received non-atomic and non-sequence element: {part}"):
            more([part])


def test_lists_that_tell_of_nodes_are_wrapped():
    nodes = (["l", 0, 0], {"k": ["m", 0, 0, {}]}, ["l", 1, 0, 0, {}], [])
    wrapped = structures.convert_inner_node_data(nodes, wrap=True)
    assert [type(part) for part in (wrapped[0], wrapped[1]["k"])] == [structures.ListWrapper] * 2
    assert wrapped[2:] == (["l", 1, 0, 0, {}], [])
    assert structures.convert_inner_node_data(wrapped) == nodes
    assert structures.convert_inner_node_data(structures.ListWrapper(["l", 2, 3])) == ["l", 2, 3]
