"""``tf.keras.preprocessing``: texts and sequences as arrays."""

from tfray.keras import sequences as sequence
from tfray.keras import texts as text

__all__ = ["sequence", "text"]
