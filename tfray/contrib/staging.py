"""The names of ``tf.contrib.staging``."""

# isort: skip_file
from tfray.library.input.staging import MapStagingArea as MapStagingArea, StagingArea as StagingArea
