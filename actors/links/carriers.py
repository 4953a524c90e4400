"""By which carrier a tensor travels from one process to others: here alone that is decided, and all sizes stand here.

| carrier | what travels | for |
| --- | --- | --- |
| frame | the tensor, in the message itself | small tensors, and those of medium size that cannot be lent |
| loan | where it lies in an object of the store that its sender writes again and again | larger ones, on one node |
| object | where it lies in an object of its own | large ones for other nodes |
| call | the tensor, in a call of Ray | small ones of dtypes that no frame carries |

An object or a loan is told over the link to a process of this node; others get the object by a call of Ray. Where there
is no link everything goes by calls. What is fed and fetched goes in frames if all of it `fits`, else by calls too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

import numpy as np

from tfray.actors.links.frames import PackedTensor
from tfray.actors.links.loans import LentTensor
from tfray.actors.links.shared_objects import Reference

FRAME_BYTES: Final = 1 << 22
"""Larger tensors that cannot be lent are put into the object store: copied once, however many receive them.

To one receiver and back, 0.3 MB take a tenth of the time over a link, 4 MB half to two thirds.
"""

LENT_BYTES: Final = 1 << 17
"""Tensors from this size on take less time through an object of this node's store than over a link."""

OBJECT_BYTES: Final = 1 << 16
"""From this size on what goes by a call is put into the object store first; Ray inlines up to 100 KB of it."""

_NUMBERS: Final = "fiub"
"""Kinds of dtypes that every carrier takes."""


class Carrier(Enum):
    """See the module's text."""

    FRAME = 1
    LOAN = 2
    OBJECT = 3
    CALL = 4


def carrier_of(tensor: Any, are_near: Callable[[str], Sequence[bool]], destination: str) -> Carrier:
    """The carrier for a tensor of a step.

    Args:
        tensor: The tensor, on the host.
        are_near: For a destination, whether each receiver can map what lies in this node's store.
        destination: Where it goes.
    """
    size = getattr(tensor, "nbytes", 0)
    if size < LENT_BYTES:
        if (type(tensor) is np.ndarray and tensor.dtype.kind in _NUMBERS) or fits(tensor):
            return Carrier.FRAME
    else:
        fits_a_frame = fits(tensor)
        if not tensor.dtype.hasobject:
            near = are_near(destination)
            if all(near) or (any(near) and not fits_a_frame):
                return Carrier.LOAN
        if fits_a_frame:
            return Carrier.FRAME
    return Carrier.OBJECT if size >= OBJECT_BYTES else Carrier.CALL


def fits(value: Any) -> bool:
    """Whether a tensor can travel in a frame: an array of numbers, bools or strings that is not too large."""
    if type(value) is np.ndarray:
        array = value
    elif isinstance(value, (np.floating, np.integer, np.bool_)):
        return True
    elif isinstance(value, np.ndarray) or np.isscalar(value):
        array = np.asarray(value)
    else:
        return False
    if array.nbytes > FRAME_BYTES:
        return False
    kind = array.dtype.kind
    if kind == "O":
        return all(isinstance(item, bytes) for item in array.reshape(-1))
    return kind not in "SUVMm" or array.dtype.name == "bfloat16"


def is_large(value: Any) -> bool:
    """Whether a tensor that goes by a call of Ray is put into the object store first."""
    return getattr(value, "nbytes", 0) >= OBJECT_BYTES


Items = list[tuple[str, Any]]
"""Keys of edges, and tensors in the form in which they travel."""


def ways(items: Sequence[tuple[str, Any]], shares_store: bool) -> tuple[Items, Items, Items]:
    """Of tensors that are not packed: described objects and loans, which go over a link, and what must go by a call.

    Args:
        items: Keys of edges, and tensors: `LentTensor`, references to objects, and others.
        shares_store: Whether the receiver can map what lies in this node's store.
    """
    found: dict[Any, Items] = {Reference: [], LentTensor: [], None: []}
    for item in items:
        kind = type(item[1])
        if kind is not PackedTensor:
            found[kind if shares_store and kind in found else None].append(item)
    return found[Reference], found[LentTensor], found[None]
