"""``tf.keras.preprocessing``: images, texts and sequences as arrays."""

from tfray.keras.preprocessing import images as image
from tfray.keras.preprocessing import sequences as sequence
from tfray.keras.preprocessing import texts as text

__all__ = ["image", "sequence", "text"]
