"""``tf.contrib.quantization``: floats as integers of few bits, and what is computed with them."""

from tfray.ops.quantized.fake_quantization_ops import dequantize, quantize_v2
from tfray.ops.quantized.quantized_ops import (
    quantized_avg_pool,
    quantized_concat,
    quantized_conv2d,
    quantized_max_pool,
    quantized_relu_x,
)

__all__ = [
    "dequantize",
    "quantize_v2",
    "quantized_avg_pool",
    "quantized_concat",
    "quantized_conv2d",
    "quantized_max_pool",
    "quantized_relu_x",
]
