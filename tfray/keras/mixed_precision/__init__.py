"""``tf.keras.mixed_precision``: layers that compute in half precision and keep their variables in float32."""

from tfray.keras.mixed_precision import experimental as experimental

__all__ = ["experimental"]
