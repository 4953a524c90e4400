"""Products on a CPU: small ones on one BLAS thread, large ones cut into parts that our own threads compute.

OpenBLAS's own threads spin while they wait for each other, and for a tenth of a second after a product. They take the
cores from whatever runs then: one small product on two threads doubles the time of a step. Our threads sleep while they
wait: they lose little on a busy machine, and are as fast on an idle one.
"""

from __future__ import annotations

from math import prod
from typing import Final

import numpy as np

from tfray.framework.graph import Operation
from tfray.framework.op_def import Array, ArrayModule
from tfray.ops.kernels.cpu_threads import one_blas_thread, parallel_for
from tfray.ops.kernels.fast_products import KeptMatrix, fast_product
from tfray.ops.kernels.gpu.device_products import can_multiply, device_product
from tfray.ops.kernels.precision import assign, is_half

_BLAS_DTYPES: Final = "fdFD"

_THREADED_ELEMENTS: Final = 8192
"""A matrix of about this many elements makes OpenBLAS use its threads, even for a product with a vector."""

_THREADED_PRODUCTS: Final = 1 << 17
"""So many multiplications make OpenBLAS use its threads; twice as many do in the versions that were looked at."""

_PART_FLOPS: Final = 2.5e7
"""Least work of a part, in floating-point operations: about a quarter of a millisecond on one core."""

_MOST_PARTS: Final = 16
"""Parts of a product at most. It is a number of its own: BLAS may round the sums of another part in another way, and
the number of threads is to change no bit."""

_GRAIN: Final = 16
"""Parts begin at multiples of this number of rows or columns: BLAS is at full speed on whole blocks of this size."""


def matrix_product(xp: ArrayModule, a: Array, b: Array | KeptMatrix, out: Array | None = None) -> Array:
    """``xp.matmul(a, b, out=out)`` without OpenBLAS's spinning threads; of 16-bit floats with sums in float32.

    Args:
        xp: The array module.
        a: A matrix, vector or batch of matrices.
        b: Likewise.
        out: Where to write.
    """
    if isinstance(b, KeptMatrix):
        product = b.product(a, out)
        return matrix_product(xp, a, b.matrix, out) if product is None else product
    if a.dtype == b.dtype and can_multiply(xp, a.dtype) and a.ndim >= 2 and b.ndim >= 2:
        return device_product(xp, a, b, out)
    if is_half(a.dtype):
        wide = matrix_product(xp, a.astype(np.float32), b.astype(np.float32))
        return assign(xp, wide, a.dtype, out)
    if xp is not np or a.dtype.char not in _BLAS_DTYPES:
        return xp.matmul(a, b, out=out)
    if is_small(a.size, b.size, a.shape[-1] if a.ndim else 1):
        return np.matmul(a, b, out=out)
    if (product := fast_product(a, b, out)) is not None:
        return product
    if a.ndim >= 2 and b.ndim >= 2 and a.shape[-1] == b.shape[-2]:
        shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        flops = 2.0 * prod(shape) * a.shape[-1]
        if flops >= 2 * _PART_FLOPS:
            out = np.empty(shape, a.dtype) if out is None else out
            return _in_parts(a, b, out, int(min(_MOST_PARTS, flops // _PART_FLOPS)))
    with one_blas_thread():
        return np.matmul(a, b, out=out)


def is_small(elements_a: int, elements_b: int, inner: int) -> bool:
    """Whether OpenBLAS computes a product on one thread, given the elements of both and the dimension they share."""
    return max(elements_a, elements_b) < _THREADED_ELEMENTS and elements_a * elements_b < _THREADED_PRODUCTS * inner


def inline_product(op: Operation) -> str | None:
    """A small product of two matrices as an expression (see `Kernel.inline`)."""
    a, b = (tensor.shape.whole() for tensor in op.inputs)
    if a is None or b is None or op.inputs[0].dtype.numpy.char not in _BLAS_DTYPES:
        return None
    if not is_small(prod(a), prod(b), a[0 if op.attr("transpose_a") else 1]):
        return None
    turned = [".T" if op.attr(name) else "" for name in ("transpose_a", "transpose_b")]
    return f"{{np.matmul}}({{0}}{turned[0]}, {{1}}{turned[1]}, {{out}})"


def inner_product(xp: ArrayModule, a: Array, b: Array) -> Array:
    """The sum of the products of two vectors, added up in the same order whatever the number of threads."""
    if xp is not np or a.size < _THREADED_ELEMENTS:
        return xp.dot(a, b)
    with one_blas_thread():
        return np.dot(a, b)


def _in_parts(a: Array, b: Array, out: Array, parts: int) -> Array:
    """Fill `out` part by part, cut along its longest axis of batch, rows and columns."""
    lengths = [out.shape[0] * _GRAIN if out.ndim > 2 else 0, out.shape[-2], out.shape[-1]]
    axis = lengths.index(max(lengths))
    grains = -(-lengths[axis] // _GRAIN)
    unit = 1 if axis == 0 else _GRAIN
    parts = min(parts, grains)
    bounds = [grains * part // parts * unit for part in range(parts)] + [lengths[axis]]

    def work(index: int) -> None:
        part = slice(bounds[index], bounds[index + 1])
        if axis == 0:
            left, right = (_batch_part(array, out.ndim, part) for array in (a, b))
            np.matmul(left, right, out=out[part])
        elif axis == 1:
            np.matmul(a[..., part, :], b, out=out[..., part, :])
        else:
            np.matmul(a, b[..., part], out=out[..., part])

    parallel_for(work, parts)
    return out


def _batch_part(array: Array, rank: int, part: slice) -> Array:
    """`array` cut to `part` of a batch's first dimension; all of it where it is broadcast along that dimension."""
    return array[part] if array.ndim == rank and array.shape[0] != 1 else array
