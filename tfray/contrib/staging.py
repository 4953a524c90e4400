"""The names of ``tf.contrib.staging``."""

from tfray.library.input.staging import MapStagingArea, StagingArea

__all__ = ["MapStagingArea", "StagingArea"]
