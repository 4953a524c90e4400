"""What the installed CuPy says of itself: its modules, the signatures of its functions and methods, its dtypes."""

from __future__ import annotations

import inspect
import types
import warnings
from typing import Any

import ml_dtypes
import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import cupy as real
    from cupy_backends.cuda import libs

    try:
        from cupy_backends.cuda.libs import cublas  # noqa: F401
    except ImportError:  # not installed: CuPy's modules that name it show their signatures all the same
        libs.cublas = types.ModuleType("cublas")
    import cupyx.scipy.linalg
    import cupyx.scipy.sparse
    import cupyx.scipy.special
    from cupyx._ufunc_config import get_config_linalg  # noqa: F401

REAL_MODULES = {module.__name__: module for module in (cupyx.scipy.linalg, cupyx.scipy.sparse, cupyx.scipy.special)}
SCALARS = (bool, int, float, complex, np.generic)
_CHARS = {"E": np.dtype(ml_dtypes.bfloat16)}


def dtype_of(char: str) -> np.dtype:
    return _CHARS.get(char) or np.dtype(char)


def check_dtype(dtype: Any) -> np.dtype:
    dtype = np.dtype(dtype)
    if dtype.kind in "biufc" or dtype == ml_dtypes.bfloat16 or (dtype.kind == "V" and dtype.fields):
        return dtype
    raise ValueError(f"Unsupported dtype {dtype}")


def is_scalar(value: Any) -> bool:
    return isinstance(value, SCALARS) and not isinstance(value, (np.str_, np.bytes_, np.void))


def _signature_of_method(name: str) -> inspect.Signature | None:
    line = (getattr(real.ndarray, name).__doc__ or "").strip().split("\n")[0]
    if "(" not in line:
        return None
    text = (
        line[line.index("(") : line.rindex(")") + 1]
        if " -> " not in line
        else line[line.index("(") : line.index(" -> ")]
    )
    text = (
        text.replace("_ndarray_base ", "").replace("Py_ssize_t ", "").replace("int axis", "axis").replace("bint ", "")
    )
    try:
        space: dict[str, Any] = {}
        exec(f"def f{text}: pass", space)
        return inspect.signature(space["f"])
    except SyntaxError:
        return None


METHODS = {
    name: _signature_of_method(name)
    for name in dir(real.ndarray)
    if not name.startswith("_") and callable(getattr(real.ndarray, name))
}


def check_arguments(name: str, signature: inspect.Signature | None, args: Any, kwargs: Any) -> None:
    if signature is not None:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"cupy.{name}: {error}") from None
