"""The modules that are installed: `cupy`, and `cupyx.scipy` beside it. Captures note what is called in them."""

from __future__ import annotations

import gc
import inspect
import sys
import types
import warnings
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.special

from tests.support.gpu import fakegraphs
from tests.support.gpu.fakecupy.arrays import Method, all_on_host, asarray, ndarray, on_host, wrap, xp
from tests.support.gpu.fakecupy.functions import (
    NO_LAUNCH,
    SOLVERS,
    WAITING_FUNCTIONS,
    Broadcast,
    Grid,
    array,
    ascontiguousarray,
    asnumpy,
    blas_threads,
    check_values,
    copyto,
    may_share_memory,
    repeat,
    solved,
    take,
    turned,
    where,
)
from tests.support.gpu.fakecupy.generated_kernels import ElementwiseKernel, ReductionKernel
from tests.support.gpu.fakecupy.pretended_devices import cuda
from tests.support.gpu.fakecupy.real_cupy import REAL_MODULES, check_arguments, check_dtype, real
from tests.support.gpu.fakecupy.recording import recorder
from tests.support.gpu.fakecupy.sparse_matrices import sparse_constructor
from tests.support.gpu.fakecupy.ufuncs import ufunc


class FakeModule(types.ModuleType):
    """A module of CuPy, by name: what the real one lacks is missing here too."""

    def __init__(self, name: str, real_module: Any, host: Any, own: dict[str, Any] | None = None) -> None:
        super().__init__(name)
        self.__dict__.update(own or {})
        self.__dict__["_real"], self.__dict__["_host"] = real_module, host

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            target = getattr(self._real, name)
        except AttributeError:
            raise AttributeError(
                f"module {self.__name__!r} has no attribute {name!r} (cupy {real.__version__})"
            ) from None
        host = getattr(self._host, name, None)
        if isinstance(target, types.ModuleType):
            value: Any = FakeModule(f"{self.__name__}.{name}", target, host)
        elif isinstance(target, real.ufunc) or (isinstance(host, np.ufunc) and type(target).__name__ == "ufunc"):
            value = ufunc(name, target, host)
        elif isinstance(target, type) or not callable(target):
            value = target
        else:
            value = self._function(name, target, host)
        self.__dict__[name] = value
        return value

    def _function(self, name: str, target: Any, host: Any) -> Any:
        try:
            signature = inspect.signature(target)
        except (TypeError, ValueError):
            signature = None
        dotted = f"{self.__name__}.{name}".removeprefix("cupy.")
        if host is None:
            raise NotImplementedError(f"the stand-in cannot compute {dotted}")

        def function(*args: Any, **kwargs: Any) -> Any:
            check_arguments(dotted, signature, args, kwargs)
            check_values(name, args)
            if name not in NO_LAUNCH:
                recorder.call(dotted)
            if name in WAITING_FUNCTIONS:
                recorder.wait(name)
            out = kwargs.get("out")
            plain = {k: on_host(v) for k, v in kwargs.items() if v is not None}
            plain.pop("blocking", None)
            with np.errstate(all="ignore"), warnings.catch_warnings(), blas_threads(name):
                warnings.simplefilter("ignore")
                operands = all_on_host(args, f" in cupy.{dotted}")
                value = solved(name, host, operands, plain) if name in SOLVERS else host(*operands, **plain)
                if name in ("eigh", "svd") and isinstance(value, tuple):
                    value = turned(name, value)
            for each in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(each, (np.ndarray, np.generic)):
                    check_dtype(each.dtype)
            return out if out is not None else wrap(value)

        function.__name__ = name
        return fakegraphs.recorded(function)


def _bytes_of_arrays() -> int:
    """What all arrays have that are no views of others."""
    return sum(each.nbytes for each in gc.get_objects() if type(each) is ndarray and each.base is None)


POOL = fakegraphs.MemoryPool(_bytes_of_arrays)
MODULE = FakeModule(
    "cupy",
    real,
    np,
    {
        "ndarray": ndarray,
        "asarray": asarray,
        "array": array,
        "asanyarray": asarray,
        "ascontiguousarray": ascontiguousarray,
        "take": take,
        "copyto": copyto,
        "where": where,
        "repeat": repeat,
        "asnumpy": asnumpy,
        "may_share_memory": may_share_memory,
        "get_default_memory_pool": lambda: POOL,
        "cuda": cuda,
        "broadcast": Broadcast,
        "ogrid": Grid(np.ogrid),
        "mgrid": Grid(np.mgrid),
        "ufunc": ufunc,
        "ElementwiseKernel": ElementwiseKernel,
        "ReductionKernel": ReductionKernel,
        "newaxis": None,
        "shape": lambda a: np.shape(getattr(a, "_host", a)),
    },
)
xp.module = MODULE


def _outs(function: ufunc, *args: Any, out: Any = None, **kwargs: Any) -> Any:
    """What a ufunc returns that is called with these arguments."""
    outs = args[function.nin :] or (out if isinstance(out, tuple) else (out,))
    return fakegraphs.NEW if outs[0] is None else outs[0] if function.nout == 1 else tuple(outs)


def _written(method: Method, *args: Any, out: Any = None, **kwargs: Any) -> Any:
    """What a method returns that is called with these arguments."""
    changes = method.name in ("fill", "sort", "partition", "put", "itemset", "resize")
    return None if changes else fakegraphs.keyword_out(out=out)


for _owner, _name, _target in (
    (ndarray, "__getitem__", fakegraphs.keyword_out),
    (ndarray, "__setitem__", fakegraphs.nothing),
    (ndarray, "put", fakegraphs.nothing),
    (ndarray, "reshape", fakegraphs.keyword_out),  # it copies what a view cannot show
    (Method, "__call__", _written),
    (ufunc, "__call__", _outs),
    (ufunc, "at", fakegraphs.nothing),
    (ufunc, "reduceat", fakegraphs.keyword_out),
    (ElementwiseKernel, "__call__", fakegraphs.nothing),
    (ReductionKernel, "__call__", fakegraphs.keyword_out),
    (MODULE, "copyto", fakegraphs.nothing),
    *((MODULE, _name, fakegraphs.keyword_out) for _name in ("array", "take", "where", "repeat", "ascontiguousarray")),
):
    setattr(_owner, _name, fakegraphs.recorded(getattr(_owner, _name), _target))


def modules() -> dict[str, types.ModuleType]:
    """Stand-ins by name, for `sys.modules`."""
    special = FakeModule("cupyx.scipy.special", REAL_MODULES["cupyx.scipy.special"], scipy.special)
    linalg = FakeModule("cupyx.scipy.linalg", REAL_MODULES["cupyx.scipy.linalg"], scipy.linalg)
    sparse = FakeModule(
        "cupyx.scipy.sparse",
        REAL_MODULES["cupyx.scipy.sparse"],
        scipy.sparse,
        {name: sparse_constructor(name) for name in ("csr_matrix", "csc_matrix", "coo_matrix")},
    )
    return {"cupyx.scipy.special": special, "cupyx.scipy.linalg": linalg, "cupyx.scipy.sparse": sparse}


def install() -> FakeModule:
    """Put the stand-ins in place of the modules that kernels import by name. Returns the array module."""
    sys.modules.update(modules())
    return MODULE
