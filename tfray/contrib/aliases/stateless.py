"""``tf.contrib.stateless``: random tensors that depend on their seed alone, under their older names."""

from tfray.ops.random.stateless_random_ops import (
    stateless_multinomial,
    stateless_random_normal,
    stateless_random_uniform,
    stateless_truncated_normal,
)

__all__ = [
    "stateless_multinomial",
    "stateless_random_normal",
    "stateless_random_uniform",
    "stateless_truncated_normal",
]
