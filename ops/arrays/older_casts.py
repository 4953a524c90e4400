"""Casts to one dtype each, which `tf.cast` has replaced: `tf.to_float` and its kin."""

from __future__ import annotations

from tfray.framework import dtypes
from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.shape_ops import cast


def to_float(x: TensorLike, name: str | None = "ToFloat") -> Tensor:
    """`cast` to float32; the shape is that of `x`.

    Examples:
        >>> session.run(tf.to_float([1, 2]))
        array([1., 2.], dtype=float32)
    """
    return cast(x, dtypes.float32, name)


def to_double(x: TensorLike, name: str | None = "ToDouble") -> Tensor:
    """`cast` to float64; the shape is that of `x`."""
    return cast(x, dtypes.float64, name)


def to_int32(x: TensorLike, name: str | None = "ToInt32") -> Tensor:
    """`cast` to int32; the shape is that of `x`.

    Examples:
        >>> session.run(tf.to_int32([1.8, -1.8]))
        array([ 1, -1], dtype=int32)
    """
    return cast(x, dtypes.int32, name)


def to_int64(x: TensorLike, name: str | None = "ToInt64") -> Tensor:
    """`cast` to int64; the shape is that of `x`.

    Examples:
        >>> session.run(tf.to_int64([1.8, -1.8]))
        array([ 1, -1])
    """
    return cast(x, dtypes.int64, name)


def to_bfloat16(x: TensorLike, name: str | None = "ToBFloat16") -> Tensor:
    """`cast` to bfloat16; the shape is that of `x`."""
    return cast(x, dtypes.bfloat16, name)


def to_complex64(x: TensorLike, name: str | None = "ToComplex64") -> Tensor:
    """`cast` to complex64; the shape is that of `x`."""
    return cast(x, dtypes.complex64, name)


def to_complex128(x: TensorLike, name: str | None = "ToComplex128") -> Tensor:
    """`cast` to complex128; the shape is that of `x`."""
    return cast(x, dtypes.complex128, name)
