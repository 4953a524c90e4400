"""How constants stand in the messages of a graph, and messages as values; what TensorFlow 1.15 gives."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf


@pytest.mark.parametrize(
    ("value", "dtype", "field", "held"),
    [
        (3, None, "int_val", [3]),
        ([3], None, "int_val", [3]),
        (-3, tf.int8, "int_val", [-3]),
        (3, tf.int64, "int64_val", [3]),
        (3, tf.uint32, "uint32_val", [3]),
        (2.5, None, "float_val", [2.5]),
        (0.0, None, "float_val", [0.0]),
        (2.5, tf.float64, "double_val", [2.5]),
        (1.5, tf.float16, "half_val", [15872]),
        (1 + 2j, None, "dcomplex_val", [1, 2]),
        (False, None, "bool_val", [False]),
        ([True, False], None, "bool_val", [True, False]),
        ([3, 4], None, "tensor_content", b"\3\0\0\0\4\0\0\0"),
    ],
    ids=str,
)
def test_a_single_element_stands_in_a_list(value, dtype, field, held):
    with tf.Graph().as_default() as graph:
        tf.constant(value, dtype)
        message = graph.as_graph_def().node[0].attr["value"].tensor
    found = getattr(message, field)
    assert (found if isinstance(held, bytes) else list(found)) == held
    assert field == "tensor_content" or not message.tensor_content
    np.testing.assert_array_equal(tf.make_ndarray(message), np.asarray(value, tf.make_ndarray(message).dtype))


def test_a_message_is_a_value_of_a_tensor():
    images = np.arange(8, dtype=np.float32).reshape(1, 2, 4, 1)
    block, paddings = tf.make_tensor_proto([2, 2]), tf.make_tensor_proto(np.zeros([2, 2], np.int32))
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.constant(tf.make_tensor_proto(3))) == 3
        assert session.run(tf.convert_to_tensor(tf.make_tensor_proto([1.0, 2.0]))).tolist() == [1, 2]
        assert session.run(tf.space_to_batch_nd(images, block, paddings))[:, 0, :, 0].tolist() == [
            [0, 2], [1, 3], [4, 6], [5, 7],
        ]  # fmt: skip
        with pytest.raises(TypeError, match="TensorProto"):
            tf.constant(tf.make_tensor_proto(3), tf.float32)
