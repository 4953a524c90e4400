"""``tf.keras.preprocessing``: images, texts and sequences as arrays."""

from tfray.keras import images as image
from tfray.keras import sequences as sequence
from tfray.keras import texts as text

__all__ = ["image", "sequence", "text"]
