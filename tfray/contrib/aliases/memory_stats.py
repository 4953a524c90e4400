"""``tf.contrib.memory_stats``: how much memory a device has and uses."""

from tfray.ops.system.memory_ops import bytes_in_use as BytesInUse
from tfray.ops.system.memory_ops import bytes_limit as BytesLimit
from tfray.ops.system.memory_ops import max_bytes_in_use as MaxBytesInUse

__all__ = ["BytesInUse", "BytesLimit", "MaxBytesInUse"]
