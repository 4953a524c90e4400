"""``tf.contrib.staging``: buffers on a device that hold the input of the next step."""

from tfray.library.input.staging import MapStagingArea, StagingArea

__all__ = ["MapStagingArea", "StagingArea"]
