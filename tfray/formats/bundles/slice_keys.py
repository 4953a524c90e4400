"""Slices of tensors as TensorFlow's checkpoints name them: as messages, and as keys that sort by tensor and place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from tfray.errors import DataLossError
from tfray.formats.message import Field, Message

FIRST_BYTE: Final = b"\0"
"""Keys of slices begin so. No name of a tensor does."""

_WHOLE: Final = -1
"""The length that stands for a whole dimension."""


class SliceExtent(Message):
    """A slice along one dimension: ``start``, and ``length`` unless it is the whole dimension."""

    FIELDS = (Field(1, "start", "int64"), Field(2, "length", "int64", oneof="has_length"))


class TensorSlice(Message):
    """A slice: ``extent`` for each dimension."""

    Extent: ClassVar[type[Message]] = SliceExtent

    FIELDS = (Field(1, "extent", SliceExtent, repeated=True),)


def tensor_slice(offset: Sequence[int], sizes: Sequence[int]) -> TensorSlice:
    """The message for a slice."""
    pairs = zip(offset, sizes, strict=True)
    return TensorSlice(extent=[SliceExtent(start=start, length=length) for start, length in pairs])


def slice_of(extents: TensorSlice, shape: Sequence[int], name: str) -> tuple[list[int], list[int], bytes]:
    """Offset and shape of a slice of a tensor, and the key of its values.

    Raises:
        DataLossError: The tensor has no such slice.
    """
    if len(extents.extent) != len(shape):
        raise DataLossError(f"a slice has {len(extents.extent)} dimensions, the tensor {len(shape)}")
    offset, sizes = [], []
    key = _ordered_number(0) + _ordered_text(name.encode()) + _ordered_number(len(shape))
    for extent, full in zip(extents.extent, shape, strict=True):
        whole = extent.WhichOneof("has_length") is None
        start, length = (0, full) if whole else (extent.start, extent.length)
        if start < 0 or length < 0 or start + length > full:
            raise DataLossError(f"a slice reaches from {start} on over {length} of {full}")
        offset.append(start)
        sizes.append(length)
        key += _ordered_signed(start) + _ordered_signed(_WHOLE if whole else length)
    return offset, sizes, key


def _ordered_number(value: int) -> bytes:
    """A number in a form that sorts: its length in bytes, then the bytes, high ones first."""
    length = (value.bit_length() + 7) // 8
    return bytes([length]) + value.to_bytes(length, "big")


def _ordered_text(text: bytes) -> bytes:
    """Bytes in a form that sorts, with a mark at their end."""
    return text.replace(b"\xff", b"\xff\x00").replace(b"\0", b"\0\xff") + b"\0\1"


def _ordered_signed(value: int) -> bytes:
    """A number with sign in a form that sorts: the number of high bits that are set is its length in bytes."""
    length = (value ^ value >> 63).bit_length() // 7 + 1
    ones = ((1 << length) - 1) << (8 * length - length)  # as many bits as there are bytes, at the high end
    return (value & (1 << 8 * length) - 1 ^ ones).to_bytes(length, "big")
