"""Chooses the carrier by which a tensor travels between processes. All sizes on which that depends stand here.

| carrier | what travels | for |
| --- | --- | --- |
| frame | the tensor, in the message itself | small tensors, and those of medium size for other nodes |
| loan | where it lies in an object of the store that its sender writes again and again | larger ones |
| object | where it lies in an object of its own | large ones of dtypes that no loan carries |
| call | the tensor, in a call of Ray | small ones of dtypes that no frame carries |

A process of this node is told over the link where an object or a loan is. To other nodes the bytes of a loan go over
streams, and objects by a call of Ray. Without a link everything goes by calls. Fed and fetched values go in frames if
all of them `fits`, otherwise by calls.
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
"""Tensors above this size, in bytes, go to other nodes over streams. A frame is copied twice more than those, but small
ones leave with the message, and each chunk of a stream costs some work."""

LENT_BYTES: Final = 1 << 17
"""Tensors from this size on, in bytes, are lent: on one node, a loan takes less time than the bytes over a link."""

OBJECT_BYTES: Final = 1 << 16
"""Tensors from this size on, in bytes, that go by a call are put into the store first. Ray inlines up to 100 KB."""

_NUMBERS: Final = "fiub"
"""Kinds of dtypes that every carrier takes."""

_UNLENDABLE: Final = "OSUMm"
"""Kinds of dtypes whose memory says nothing to another process, or which no tensor has."""

_ARRAYS: Final = (np.ndarray, np.generic)


class Carrier(Enum):
    """See the module's text."""

    FRAME = 1
    LOAN = 2
    OBJECT = 3
    CALL = 4


def carrier_of(
    tensor: Any, are_near: Callable[[str], Sequence[bool]], destination: str, frame_bytes: int = FRAME_BYTES
) -> Carrier:
    """The carrier for a tensor of a step.

    Args:
        tensor: The tensor, on the host.
        are_near: Given a destination, tells for each receiver whether it can map objects of this node's store.
        destination: Where the tensor goes.
        frame_bytes: No tensor above this size, in bytes, goes in a frame unless nothing else carries it.
    """
    size = getattr(tensor, "nbytes", 0)
    if size < LENT_BYTES:
        if (isinstance(tensor, _ARRAYS) and tensor.dtype.kind in _NUMBERS) or fits(tensor):
            return Carrier.FRAME
    else:
        fits_a_frame = fits(tensor)
        goes_alone = size > frame_bytes or not fits_a_frame
        if tensor.dtype.kind not in _UNLENDABLE and (goes_alone or all(are_near(destination))):
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


def by_carrier(items: Sequence[tuple[str, Any]], shares_store: bool) -> tuple[Items, Items, Items]:
    """Divide tensors that are not packed: objects to describe over a link, loans, and the rest by a call.

    Args:
        items: Keys of edges, and tensors: `LentTensor`, references to objects, and others.
        shares_store: Whether the receiver can map objects of this node's store.
    """
    found: dict[Any, Items] = {Reference: [], LentTensor: [], None: []}
    for item in items:
        kind = type(item[1])
        if kind is not PackedTensor:
            found[kind if kind is LentTensor or (shares_store and kind in found) else None].append(item)
    return found[Reference], found[LentTensor], found[None]
