"""``tf.contrib.receptive_field``: which part of a picture an output of a convolutional network sees."""

from tfray.library.inspect.receptive_field import ReceptiveField, compute_receptive_field_from_graph_def

__all__ = ["ReceptiveField", "compute_receptive_field_from_graph_def"]
