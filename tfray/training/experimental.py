"""``tf.train.experimental``: state of Python in checkpoints."""

from tfray.training.checkpoints.object_graph import PythonState

__all__ = ["PythonState"]
