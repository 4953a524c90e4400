"""``tf.version``: which tfray this is."""

import sys

from tfray.formats.graph_proto import PRODUCER

__all__ = [
    "COMPILER_VERSION",
    "CXX11_ABI_FLAG",
    "GIT_VERSION",
    "GRAPH_DEF_VERSION",
    "GRAPH_DEF_VERSION_MIN_CONSUMER",
    "GRAPH_DEF_VERSION_MIN_PRODUCER",
    "MONOLITHIC_BUILD",
    "VERSION",
]

VERSION = "0.1.0"
GIT_VERSION = f"v{VERSION}"

COMPILER_VERSION = sys.version.rpartition("[")[2].rstrip("]")
"""The compiler of the Python interpreter: tfray itself is not compiled."""

CXX11_ABI_FLAG = 0
MONOLITHIC_BUILD = 0

GRAPH_DEF_VERSION = PRODUCER
"""Version of the form in which graphs are written, in TensorFlow's counting."""

GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0
