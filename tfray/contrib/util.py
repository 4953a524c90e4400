"""``tf.contrib.util``: conversion between arrays and `TensorProto`, and the values of constant tensors."""

from tfray.formats.tensor_proto import make_ndarray, make_tensor_proto
from tfray.framework.constant_value import constant_value

__all__ = ["constant_value", "make_ndarray", "make_tensor_proto"]
