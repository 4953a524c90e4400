"""``tf.contrib.quantization``: floats as integers of few bits, and back."""

from tfray.ops.quantized.fake_quantization_ops import dequantize, quantize_v2
from tfray.ops.quantized.quantized_ops import quantized_concat

__all__ = ["dequantize", "quantize_v2", "quantized_concat"]
