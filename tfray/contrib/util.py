"""The names of ``tf.contrib.util``."""

# isort: skip_file
from tfray.framework.constant_value import constant_value as constant_value
