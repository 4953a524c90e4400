"""The names of ``tf.contrib.util``."""

# isort: skip_file
from tfray.framework.constant_value import constant_value as constant_value
from tfray.formats.tensor_proto import make_ndarray as make_ndarray, make_tensor_proto as make_tensor_proto
