"""Kernels for 16-bit floats: they compute in float32 and round once, at the end."""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np

from tfray.framework.op_def import Array, ArrayModule, KernelContext, KernelFunction, NumpyDType


def is_half(dtype: NumpyDType) -> bool:
    """Whether `dtype` is a floating type of 16 bits: float16 or bfloat16."""
    return dtype.itemsize == 2 and dtype.kind not in "iu"


def working_dtype(dtype: NumpyDType) -> NumpyDType:
    """The dtype to compute in: float32 for halves."""
    return np.dtype(np.float32) if is_half(dtype) else np.dtype(dtype)


def assign(xp: ArrayModule, value: Array, dtype: NumpyDType, out: Array | None) -> Array:
    """`value` in another dtype, in `out` where that is given."""
    if out is None:
        return value.astype(dtype)
    xp.copyto(out, value, casting="unsafe")
    return out


def choose(xp: ArrayModule, condition: Array, x: Any, y: Any) -> Array:
    """``xp.where(condition, x, y)`` for arrays or numbers of one dtype, which the result has."""
    if xp is np or x.dtype.name != "bfloat16":
        return xp.where(condition, x, y)
    # CuPy's gives float32 for bfloat16, but not for its bits.
    return xp.where(condition, x.view(np.uint16), y.view(np.uint16)).view(x.dtype)


def sortable(xp: ArrayModule, values: Array) -> Array:
    """The values in a dtype that `xp` sorts, in the same order: float32 for bfloat16 on a GPU."""
    return values if xp is np or values.dtype.name != "bfloat16" else values.astype(np.float32)


def widened(function: KernelFunction) -> KernelFunction:
    """Wrap a kernel that takes ``out=``: it gets 16-bit floats as float32, and its result is rounded back."""

    @wraps(function)
    def kernel(ctx: KernelContext, *arrays: Array, out: Array | None = None) -> Array:
        dtype = ctx.output_dtype()
        if not is_half(dtype):
            return function(ctx, *arrays, out=out)
        wide = [array.astype(np.float32) if array.dtype == dtype else array for array in arrays]
        return assign(ctx.xp, function(ctx, *wide), dtype, out)

    return kernel
