"""``tf.contrib.checkpoint``: checkpoints of which the latest are kept; what attributes of models may be."""

from typing import TypeVar

from tfray.training.checkpoints.checkpoint_manager import CheckpointManager

__all__ = ["CheckpointManager", "List", "Mapping", "NoDependency"]

List = list
Mapping = dict

_Value = TypeVar("_Value")


def NoDependency(value: _Value) -> _Value:
    """The value itself: what is no layer and no variable belongs to no checkpoint anyway."""
    return value
