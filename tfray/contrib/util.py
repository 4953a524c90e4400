"""``tf.contrib.util``: conversion between arrays and `TensorProto`, values of constant tensors, types of operations."""

from tfray.formats.tensor_proto import make_ndarray, make_tensor_proto
from tfray.ops.arrays.source_ops import get_static_value as constant_value
from tfray.training.checkpoints.op_list import stripped_op_list_for_graph

__all__ = ["constant_value", "make_ndarray", "make_tensor_proto", "stripped_op_list_for_graph"]
