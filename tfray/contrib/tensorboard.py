"""``tf.contrib.tensorboard``: what programs tell plugins of TensorBoard."""

from types import ModuleType

from tfray.programs import projector

plugins = ModuleType(f"{__name__}.plugins", "``tf.contrib.tensorboard.plugins``: the projector.")
plugins.__dict__.update(projector=projector, __all__=["projector"])

__all__ = ["plugins"]
