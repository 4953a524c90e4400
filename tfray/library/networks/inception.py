"""The Inception networks under one name, as ``tf.contrib.slim.nets.inception``."""

from tfray.library.networks.inception_v1 import inception_v1, inception_v1_arg_scope, inception_v1_base
from tfray.library.networks.inception_v3 import inception_v3, inception_v3_arg_scope, inception_v3_base

__all__ = [
    "inception_v1",
    "inception_v1_arg_scope",
    "inception_v1_base",
    "inception_v3",
    "inception_v3_arg_scope",
    "inception_v3_base",
]
