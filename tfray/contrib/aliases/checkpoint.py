"""``tf.contrib.checkpoint``: objects and attributes that are saved, and checkpoints of which the latest are kept."""

from typing import TypeVar

from tfray.training.checkpoints.checkpoint_manager import CheckpointManager
from tfray.training.checkpoints.object_graph import AutoTrackable as Checkpointable

__all__ = ["CheckpointManager", "Checkpointable", "List", "Mapping", "NoDependency"]

List = list
Mapping = dict

_Value = TypeVar("_Value")


def NoDependency(value: _Value) -> _Value:
    """The value itself: what is no layer and no variable belongs to no checkpoint anyway."""
    return value
