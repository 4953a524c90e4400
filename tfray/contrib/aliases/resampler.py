"""``tf.contrib.resampler``: values of images between their pixels, with gradients of images and places."""

from tfray.ops.image.projective_ops import resampler

__all__ = ["resampler"]
