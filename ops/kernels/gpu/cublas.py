"""cuBLAS, called through `ctypes`: CuPy's own binding refuses to be captured in a CUDA graph.

It is the library that CuPy has loaded, or would load. Names and numbers are those of its C API (cublas_api.h).
"""

from __future__ import annotations

import ctypes
import threading
import types
from ctypes import c_int, c_longlong, c_size_t, c_void_p
from functools import cache
from typing import Any, Final

from tfray.errors import UnknownError
from tfray.framework.op_def import ArrayModule

_WORKSPACE_BYTES: Final = 32 << 20
"""What NVIDIA recommends for the largest devices. In a graph, cuBLAS would otherwise allocate its own for each call."""

_GEMM: Final = [
    *(c_void_p, c_int, c_int, c_int, c_int, c_int),  # handle, whether to transpose each, sizes
    *(c_void_p, c_void_p, c_int, c_int, c_longlong, c_void_p, c_int, c_int, c_longlong),  # factor, matrices
    *(c_void_p, c_void_p, c_int, c_int, c_longlong, c_int, c_int, c_int),  # factor, target, count, sums, algorithm
]


class Cublas:
    """The functions that products need, and a handle for each thread and device.

    Args:
        functions: The loaded library.
    """

    def __init__(self, functions: Any) -> None:
        self._functions = functions
        functions.cublasGemmStridedBatchedEx.argtypes = _GEMM
        functions.cublasCreate_v2.argtypes = [c_void_p]
        functions.cublasSetStream_v2.argtypes = [c_void_p, c_void_p]
        functions.cublasSetWorkspace_v2.argtypes = [c_void_p, c_void_p, c_size_t]
        self._local = threading.local()

    def handle(self, xp: ArrayModule) -> int:
        """The calling thread's handle for the current device, whose work goes to the current stream."""
        handles = self._local.__dict__
        name = f"of {xp.cuda.runtime.getDevice()}"
        stream = xp.cuda.get_current_stream().ptr
        if name not in handles:
            place = c_void_p()
            self._call("cublasCreate_v2", ctypes.byref(place))
            with xp.cuda.using_allocator(None):  # a graph may use it for as long as the process lives
                workspace = xp.cuda.alloc(_WORKSPACE_BYTES)
            handles[name] = place.value, workspace, None
        handle, workspace, used = handles[name]
        if used != stream:
            self._call("cublasSetStream_v2", handle, stream)  # which takes the workspace away
            self._call("cublasSetWorkspace_v2", handle, workspace.ptr, _WORKSPACE_BYTES)
            handles[name] = handle, workspace, stream
        number: int = handle
        return number

    def gemmStridedBatchedEx(self, handle: int, *arguments: int) -> None:
        """Multiply matrices: ``cublasGemmStridedBatchedEx``."""
        self._call("cublasGemmStridedBatchedEx", handle, *arguments)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._functions, name)(*arguments)
        if status:
            raise UnknownError(f"cuBLAS's {name} failed with status {status}")


class _OfCupy:
    """The same by CuPy's binding, where the library cannot be found under its usual name."""

    def __init__(self, xp: ArrayModule) -> None:
        self._binding = xp.cuda.cublas
        self.gemmStridedBatchedEx = self._binding.gemmStridedBatchedEx

    def handle(self, xp: ArrayModule) -> int:
        """The calling thread's handle."""
        number: int = xp.cuda.device.get_cublas_handle()
        return number


@cache
def library(xp: Any) -> Cublas | _OfCupy | None:
    """cuBLAS; None where there is none."""
    cuda = getattr(xp, "cuda", None)
    if getattr(cuda, "cublas", None) is None:
        return None
    if isinstance(cuda, types.ModuleType):
        xp.cuda.device.get_cublas_handle()  # CuPy loads it
        major = xp.cuda.runtime.runtimeGetVersion() // 1000
        try:
            return Cublas(ctypes.CDLL(f"libcublas.so.{major}"))
        except (OSError, AttributeError):
            pass
    return _OfCupy(xp)
