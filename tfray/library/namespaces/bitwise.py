"""``tf.bitwise``: operations on the single bits of integers, such as and, or, xor and shifts. For flags and masks."""

from tfray.ops.math.comparison_ops import bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift

__all__ = ["bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"]
