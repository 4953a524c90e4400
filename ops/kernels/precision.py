"""Kernels for 16-bit floats: they compute in float32 and round once, at the end."""

from __future__ import annotations

from functools import wraps

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
