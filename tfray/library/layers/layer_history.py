"""Which layers have made which tensors, and the masks that they gave them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from tfray.framework import nest
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.traversal import reachable_backward


class Tracker:
    """Tells checkpoints of objects what it holds by names that a program gives."""

    _checkpoint_dependencies: Any

    def _track_trackable(self, trackable: Any, name: str, overwrite: bool = False) -> Any:
        """Let checkpoints have a layer, variable or other object under this name, whatever attribute holds it.

        Args:
            trackable: The object, which is returned.
            name: Its name in paths.
            overwrite: Whether another object may have had the name.

        Raises:
            ValueError: Another one has it.
        """
        known = dict(self.__dict__.get("_checkpoint_dependencies", ()))
        if not overwrite and known.get(name, trackable) is not trackable:
            raise ValueError(f"Called Trackable._track_trackable() with name='{name}', but a Trackable has that name.")
        self._checkpoint_dependencies = list({**known, name: trackable}.items())
        return trackable


def history() -> dict[Tensor, tuple[Any, Any, dict[str, Any]]]:
    """For outputs of layers in the current graph: the layer, its inputs and its further arguments."""
    found: dict[Tensor, tuple[Any, Any, dict[str, Any]]] = get_default_graph().extra("keras_history", dict)
    return found


def mask_of(tensor: object) -> Any:
    """The mask that a layer has given to its output, or None."""
    return getattr(tensor, "_keras_mask", None)


def masks_of(inputs: object) -> Any:
    """The masks of inputs, in their structure; None if there are none."""
    if all(mask_of(each) is None for each in nest.flatten(inputs)):
        return None
    return nest.map_structure(mask_of, inputs)


def give_masks(inputs: object, masks: object) -> None:
    """Let inputs have these masks, in their structure; None leaves them as they are."""
    for tensor, mask in zip(nest.flatten(inputs), nest.flatten(masks), strict=False):
        if mask is not None:
            tensor._keras_mask = mask


def takes(name: str, parameters: Mapping[str, inspect.Parameter]) -> bool:
    """Whether a function with these parameters can be given an argument by that name."""
    return name in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


def takes_masks(parameters: Mapping[str, inspect.Parameter], call: object) -> bool:
    """Whether `call` is given masks: TensorFlow also gives them to a program's ``**kwargs``."""
    return "mask" in parameters or (takes("mask", parameters) and not str(call.__module__).startswith("tfray."))


def depends_on(thing: Any, inputs: Sequence[Any]) -> bool:
    """Whether a tensor, variable or operation depends on one of these inputs: tensors, sparse tensors, or values."""
    ops = reachable_backward([thing if isinstance(thing, Operation) else thing.op])
    return any(getattr(getattr(each, "values", each), "op", None) in ops for each in inputs)
