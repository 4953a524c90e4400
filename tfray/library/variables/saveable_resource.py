"""State on devices that is not a variable, in a form that a Saver can save."""

from __future__ import annotations

from typing import Any

from tfray.framework import dtypes
from tfray.framework.graph import Operation, Tensor


class SaveableResource:
    """State on a device that is not a variable: the position in a dataset, the elements of a queue, random streams.

    It is saved and restored with the variables when it is in a Saver's ``var_list`` or in the collection
    ``GraphKeys.SAVEABLE_OBJECTS``. The resource behind the handle must have ``state()``, which returns arrays by name,
    and ``restore_state(arrays)``.

    Args:
        name: Its name in checkpoints.
        handle: The handle.
    """

    def __init__(self, name: str, handle: Tensor) -> None:
        if not isinstance(handle, Tensor) or handle.dtype is not dtypes.resource:
            raise TypeError(f"{handle!r} is not a handle of a resource")
        self.name = name
        self.handle = handle

    @property
    def op(self) -> Operation:
        """The operation that makes the handle."""
        return self.handle.op

    @property
    def device(self) -> str:
        """The device asked for."""
        return self.handle.device


def saveable_of(value: Any) -> Any:
    """What is saved of an object that has a `SaveableResource` as its attribute ``saveable``; else the object."""
    saveable = getattr(value, "saveable", None)
    return saveable if isinstance(saveable, SaveableResource) else value
