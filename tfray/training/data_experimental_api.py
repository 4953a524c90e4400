"""``tf.data.experimental``."""

from tfray.library.input.data_experimental import *  # noqa: F403  (all of them)
from tfray.library.input.data_experimental import __all__ as _names
from tfray.training.input_checkpoints import CheckpointInputPipelineHook

__all__ = [*_names, "CheckpointInputPipelineHook"]
