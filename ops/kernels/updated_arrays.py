"""The arrays of variables while they are updated: held by their locks, each in memory of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tfray.errors import InvalidArgumentError
from tfray.framework.op_def import Array, ArrayModule, StoredVariable


def locked(resources: Sequence[StoredVariable], work: Callable[[], None]) -> None:
    """Run `work` while holding the locks of `resources`, taken in one order everywhere."""
    if len(resources) == 1:
        with resources[0].lock:
            work()
        return
    held = sorted({id(resource.lock): resource.lock for resource in resources}.items())
    for _, lock in held:
        lock.acquire()
    try:
        work()
    finally:
        for _, lock in held:
            lock.release()


def own_array(xp: ArrayModule, resource: StoredVariable) -> Array:
    """The array of a variable, in C order and writable: copied if it is not, as after a value set from outside."""
    array = resource.read()
    if not array.flags.c_contiguous or not getattr(array.flags, "writeable", True):
        array = resource.array = xp.array(array, order="C")
    return array


def check_shapes(resources: Sequence[StoredVariable], arrays: Sequence[Array], gradient: Array) -> None:
    """Raise `InvalidArgumentError` unless a gradient has the shape of what it updates."""
    for resource, array in zip(resources, arrays, strict=True):
        if array.shape != gradient.shape:
            raise InvalidArgumentError(
                f"variable {resource.name!r} has shape {array.shape}, the gradient {gradient.shape}"
            )
