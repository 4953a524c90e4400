"""Functions of the array module that differ from NumPy's, and what CuPy refuses in those that do not."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import ml_dtypes
import numpy as np

from tests.support.gpu.fakecupy.arrays import (
    SORTS,
    all_on_host,
    asarray,
    device_indices,
    is_unsortable,
    ndarray,
    on_host,
    wrap,
)
from tests.support.gpu.fakecupy.real_cupy import get_config_linalg, is_scalar
from tests.support.gpu.fakecupy.recording import PRODUCTS, recorder

WAITING_FUNCTIONS = {
    "nonzero",
    "argwhere",
    "flatnonzero",
    "unique",
    "bincount",
    "extract",
    "compress",
    "union1d",
    "setdiff1d",
    "intersect1d",
    "trim_zeros",
    "histogram",
}
NO_LAUNCH = {
    "empty",
    "empty_like",
    "reshape",
    "transpose",
    "swapaxes",
    "squeeze",
    "expand_dims",
    "broadcast_to",
    "moveaxis",
    "rollaxis",
    "ravel",
    "broadcast_arrays",
    "shape",
    "ndim",
    "size",
    "result_type",
    "can_cast",
    "may_share_memory",
    "shares_memory",
    "diagonal",
    "split",
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "isscalar",
    "as_strided",
    "flip",
    "flipud",
    "fliplr",
    "rot90",
    "iscomplexobj",
    "isrealobj",
    "broadcast",
    "stack_views",
    "dtype",
    "finfo",
    "iinfo",
    "ndindex",
    "promote_types",
    "min_scalar_type",
    "issubdtype",
    "common_type",
    "real",
    "imag",
}


def _refuse_array_repeats(repeats: Any) -> None:
    if isinstance(repeats, ndarray):
        raise ValueError("cupy.ndaray `repeats` is not supported")


def array(
    obj: Any,
    dtype: Any = None,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    *,
    blocking: bool = False,
) -> ndarray:
    value = asarray(obj, dtype)
    if copy and value is obj:
        value = value.copy()
    return ndarray(np.array(value._host, ndmin=ndmin, copy=None))


def take(a: Any, indices: Any, axis: Any = None, out: Any = None) -> ndarray:
    """CuPy's `take` wraps indices around that are out of range."""
    recorder.call("take")
    indices = device_indices(indices)
    host, at = on_host(a), on_host(indices)
    if isinstance(at, float) or (isinstance(at, np.ndarray) and at.dtype.kind not in "iub"):
        raise TypeError("indices must be integers")
    count = host.size if axis is None else host.shape[axis]
    outside = np.size(at) and count and (np.max(at) >= count or np.min(at) < -count)
    if outside:
        recorder.note("index out of range: CuPy wraps it around")
    target = on_host(out)
    if target is not None and target.dtype != host.dtype:
        raise TypeError("Output dtype mismatch")
    if host.size:
        value = np.take(host, at, axis=axis, mode="wrap")
    else:
        before, after = ((), ()) if axis is None else (host.shape[:axis], host.shape[axis:][1:])
        value = np.empty((*before, *np.shape(at), *after), host.dtype)
        if value.size:
            raise IndexError("cannot do a non-empty take from an empty axes.")
    if out is not None:
        if target.shape != value.shape:
            raise ValueError("Output shape mismatch")
        target[...] = value
        return out
    return wrap(value)


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = None) -> None:
    recorder.call("copyto")
    if not isinstance(dst, ndarray):
        raise TypeError("dst must be cupy.ndarray")
    if isinstance(src, np.ndarray) and src.ndim:
        raise TypeError("cannot assign a NumPy array")
    np.copyto(
        dst._host,
        src if isinstance(src, np.ndarray) else on_host(src),
        casting,
        **({} if where is None else {"where": on_host(where)}),
    )


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if (x is None) != (y is None):
        raise ValueError("Must provide both 'x' and 'y' or neither.")
    if x is None:
        recorder.wait("where")
        recorder.call("where")
        return wrap(np.where(on_host(condition)))
    for value in (condition, x, y):
        if not isinstance(value, ndarray) and not is_scalar(value):
            raise TypeError(f"Unsupported type {type(value)}")
    recorder.call("where")
    value = np.where(on_host(condition), on_host(x), on_host(y))
    if value.dtype == ml_dtypes.bfloat16:  # its ufunc has no such loop
        value = value.astype(np.float32)
    return wrap(value)


def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    _refuse_array_repeats(repeats)
    recorder.call("repeat")
    return wrap(np.repeat(on_host(a), repeats, axis))


def may_share_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    return np.may_share_memory(on_host(a), on_host(b))


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> Any:
    return a.get() if isinstance(a, ndarray) else np.asarray(a)


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    value = asarray(a, dtype)
    if not value._host.flags.c_contiguous:
        recorder.call("ascontiguousarray")
        value = ndarray(np.ascontiguousarray(value._host))
    return value if value.ndim else value.reshape(1)


def check_values(name: str, args: Any) -> None:
    """Refuse what these functions refuse in CuPy and not in NumPy or SciPy."""
    if name == "solve_triangular" and np.ndim(on_host(args[0])) != 2:
        raise ValueError("expected square matrix")
    if name == "solve":
        a, b = (on_host(value) for value in args[:2])
        if b.ndim > 1 and a.shape[:-1] != b.shape[:-1]:
            raise ValueError("a must have (..., M, M) shape and b must have (..., M, K)")
    if name in ("linspace", "arange") and any(isinstance(value, ndarray) for value in args):
        raise TypeError(f"cupy.{name}: unsupported type cupy.ndarray")
    if name in SORTS and any(is_unsortable(value) for value in args):
        raise NotImplementedError("Sorting arrays with dtype 'bfloat16' is not supported")
    if name == "searchsorted" and args[0].size and (args[0]._host[1:] < args[0]._host[:-1]).any():
        raise ValueError("what is searched does not ascend: what CuPy gives is not defined")
    joins = name in ("concatenate", "stack", "vstack", "hstack")
    if joins and any(not isinstance(value, ndarray) for value in args[0]):
        raise TypeError("Only cupy arrays can be concatenated")


def turned(name: str, value: Any) -> Any:
    """Singular vectors or eigenvectors as another library may give them: with other signs, the surplus ones turned."""
    if name == "eigh":
        return type(value)(value[0], value[1] * _signs(value[1].shape[-1]))
    u, s, vh = value
    rank = s.shape[-1]
    columns = [*range(rank), *range(u.shape[-1] - 1, rank - 1, -1)]
    rows = [*range(rank), *range(vh.shape[-2] - 1, rank - 1, -1)]
    u, vh = u * _signs(u.shape[-1]), vh * _signs(vh.shape[-2])[:, None]
    return type(value)(u[..., columns], s, vh[..., rows, :])


def _signs(count: int) -> np.ndarray:
    return np.where(np.arange(count) % 2, 1.0, -1.0).astype(np.float32)


SOLVERS = {"inv": 0, "cholesky": 0, "solve": 1, "solve_triangular": 1}
"""Functions that refuse matrices in NumPy, and the argument that has the shape of the result."""


def solved(name: str, host: Any, operands: tuple, options: dict[str, Any]) -> np.ndarray:
    """The result; NaN where NumPy refuses a matrix and CuPy does not look whether cuSOLVER did (`cupyx.errstate`)."""
    is_checked = name != "solve_triangular" and get_config_linalg() == "raise"
    if is_checked:
        recorder.wait(name)
    try:
        return host(*operands, **options)
    except np.linalg.LinAlgError:
        if is_checked:
            raise
        return np.full_like(operands[SOLVERS[name]], np.nan)


def blas_threads(name: str) -> Any:
    """A context manager: products run on one thread, since small ones by several take 20 times as long."""
    if name not in PRODUCTS:
        return nullcontext()
    from tfray.ops.kernels.cpu_threads import one_blas_thread  # not before the GPU has been opened

    return one_blas_thread()


class Grid:
    """`ogrid` and `mgrid`."""

    def __init__(self, grid: Any) -> None:
        self.grid = grid

    def __getitem__(self, key: Any) -> Any:
        recorder.call("ogrid")
        return wrap(self.grid[key])


class Broadcast:
    """`cupy.broadcast`."""

    def __init__(self, *arrays: Any) -> None:
        host = np.broadcast(*all_on_host(arrays)) if len(arrays) > 1 else on_host(arrays[0])
        self.shape, self.size, self.nd = host.shape, host.size, host.ndim
        self.values = [ndarray(a) for a in np.broadcast_arrays(*all_on_host(arrays))]
