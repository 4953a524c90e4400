"""Products on a GPU, by cuBLAS's ``GemmEx``.

16-bit floats are multiplied as they are, with sums in float32. With ``TFRAY_TF32=1`` in the environment, products of
float32 may round what they multiply to 10 bits, as tensor cores take it: several times as fast, with errors of about
one in a thousand. By default they do not, since programs of TensorFlow 1 were written for full precision.
"""

from __future__ import annotations

import os
from itertools import pairwise
from math import prod
from typing import Final, NamedTuple

import numpy as np

from tfray.framework.op_def import Array, ArrayModule, NumpyDType
from tfray.ops.kernels.addresses import address_of, address_on_device
from tfray.ops.kernels.gpu.cublas import library
from tfray.ops.kernels.gpu.device_copies import copy

TF32_VARIABLE: Final = "TFRAY_TF32"
"""The environment variable that allows products of float32 to be rounded, where it is ``1``."""

_TYPES: Final = {"float16": 2, "bfloat16": 14, "float32": 0, "float64": 1}
"""``cudaDataType``."""
_SUMS_FLOAT32: Final = 68
"""``CUBLAS_COMPUTE_32F``."""
_SUMS_FLOAT32_OF_TF32: Final = 77
"""``CUBLAS_COMPUTE_32F_FAST_TF32``."""
_SUMS_FLOAT64: Final = 70
"""``CUBLAS_COMPUTE_64F``."""
_ANY_ALGORITHM: Final = -1
_NUMBERS: Final = {name: np.array([1, 0], name) for name in ("float32", "float64")}
"""What a product is multiplied with before it is added to its target, and what the target is, by the dtype of sums."""


def is_tf32_allowed() -> bool:
    """Whether float32 may be rounded before it is multiplied."""
    return os.environ.get(TF32_VARIABLE) == "1"


class _Matrices(NamedTuple):
    """Matrices as cuBLAS takes them, which counts by columns.

    Attributes:
        address: Of the first.
        is_turned: Whether rows lie where cuBLAS looks for columns' opposite: the matrix is to be transposed once more.
        leading: Elements from one row (column) to the next.
        step: Elements from one matrix to the next; 0 if all are the same.
        array: Keeps the memory.
    """

    address: int
    is_turned: int
    leading: int
    step: int
    array: Array


def can_multiply(xp: ArrayModule, dtype: NumpyDType) -> bool:
    """Whether products of this dtype are for `device_product`."""
    return xp is not np and dtype.name in _TYPES and library(xp) is not None


def device_product(xp: ArrayModule, a: Array, b: Array, out: Array | None = None) -> Array:
    """``xp.matmul(a, b, out=out)`` of matrices or batches of them, whose dtype is that of `can_multiply`.

    Raises:
        ValueError: The shapes do not fit.
    """
    (rows, inner), (inner_of_b, columns) = a.shape[-2:], b.shape[-2:]
    if inner != inner_of_b:
        raise ValueError(f"Dimensions must be equal, but are {inner} and {inner_of_b}: the inner ones")
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, rows, columns)
    target = out if out is not None and out.flags.c_contiguous else xp.empty(shape, a.dtype)
    if not prod(shape) or not inner:
        target[...] = 0
    else:
        left, right = (_matrices(xp, array, batch) for array in (a, b))
        kind, sums = _TYPES[a.dtype.name], _sums(a.dtype)
        numbers = _NUMBERS["float64" if sums == _SUMS_FLOAT64 else "float32"]
        one, zero = (address_of(numbers[i:]) for i in range(2))
        cublas = library(xp)
        assert cublas is not None  # `can_multiply` has asked
        # By columns, the transposed product is that of the transposed matrices in the other order.
        sizes = (right.is_turned, left.is_turned, columns, rows, inner)
        # fmt: off
        cublas.gemmStridedBatchedEx(
            cublas.handle(xp), *sizes,
            one, right.address, kind, right.leading, right.step, left.address, kind, left.leading, left.step,
            zero, address_on_device(target), kind, columns, rows * columns, prod(batch), sums, _ANY_ALGORITHM,
        )
        # fmt: on
    if out is None or target is out:
        return target
    out[...] = target
    return out


def _sums(dtype: NumpyDType) -> int:
    if dtype == np.float64:
        return _SUMS_FLOAT64
    return _SUMS_FLOAT32_OF_TF32 if dtype == np.float32 and is_tf32_allowed() else _SUMS_FLOAT32


def _matrices(xp: ArrayModule, array: Array, batch: tuple[int, ...]) -> _Matrices:
    rows, columns = array.shape[-2:]
    own = array.shape[:-2]
    if prod(own) == 1:
        array = array.reshape(1, rows, columns)
    else:
        array = array if own == batch else xp.broadcast_to(array, (*batch, rows, columns))
        array = (array if _is_evenly_spaced(array) else _packed(xp, array)).reshape(-1, rows, columns)
    step, row, column = (stride // array.itemsize for stride in array.strides)
    if not ((column == 1 and row >= columns) or (row == 1 and column >= rows)):
        array = _packed(xp, array)
        step, row, column = (stride // array.itemsize for stride in array.strides)
    step = 0 if prod(own) == 1 else step
    is_turned = not (column == 1 and row >= columns)
    return _Matrices(address_on_device(array), int(is_turned), column if is_turned else row, step, array)


def _is_evenly_spaced(array: Array) -> bool:
    """Whether the matrices of a batch of any rank follow each other at one distance."""
    outer = [(count, step) for count, step in zip(array.shape[:-2], array.strides, strict=False) if count != 1]
    return all(step == below * count for (_, step), (count, below) in pairwise(outer))


def _packed(xp: ArrayModule, array: Array) -> Array:
    """A copy without gaps. Of transposed matrices it is one whose matrices are transposed: rows are copied whole."""
    is_turned = array.strides[-2] == array.itemsize and array.strides[-1] != array.itemsize
    source = array.swapaxes(-1, -2) if is_turned else array
    packed = xp.empty(source.shape, source.dtype)
    copy(packed, source)
    return packed.swapaxes(-1, -2) if is_turned else packed
