"""``tf.data``, with what in ``tf.data.experimental`` takes training."""

from tfray.library.namespaces.data import *  # noqa: F403  (all of them)
from tfray.library.namespaces.data import __all__ as _names
from tfray.training import data_experimental_api as experimental

__all__ = [*_names, "experimental"]
