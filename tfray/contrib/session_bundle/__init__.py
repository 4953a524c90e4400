"""``tf.contrib.session_bundle``: exported models as TensorFlow Serving took them before there was `tf.saved_model`."""

from tfray.contrib.session_bundle import bundle_shim, constants, exporter, gc, session_bundle
from tfray.contrib.session_bundle import manifest as manifest_pb2

__all__ = ["bundle_shim", "constants", "exporter", "gc", "manifest_pb2", "session_bundle"]
