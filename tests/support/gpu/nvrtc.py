"""Kernels as CuPy hands them to NVRTC, compiled without a GPU or its driver: a proof that they are valid CUDA.

`Compiling` is an array module for the code that launches kernels: NumPy, whose kernels are compiled and not run.
"""

from __future__ import annotations

import ctypes
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

ARCHITECTURES = ("sm_80", "sm_90")
"""GPUs of 2020 (A100) and 2022 (H100)."""


class Missing(Exception):
    """CuPy, NVRTC or CUDA's headers are not installed."""


def _installed() -> tuple[Any, Any, list[str]]:
    """CuPy, its binding of NVRTC, and the options for a kernel. Raises `Missing`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import cupy
    except ImportError as error:
        raise Missing("CuPy is not installed") from error
    root = Path(cupy.__file__).parent
    wheels = root.parent / "nvidia"
    for library in sorted(wheels.glob("*/lib/libnvrtc*.so.*"), reverse=True):
        ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
    try:
        from cupy_backends.cuda.libs import nvrtc

        nvrtc.getVersion()
    except (ImportError, RuntimeError, OSError) as error:
        raise Missing(f"there is no NVRTC: {error}") from error
    headers = [path.parent for path in wheels.glob("*/include/cuda_bf16.h")]
    if not headers:
        raise Missing("CUDA's headers are not installed")
    own = root / "_core" / "include"
    folders = [own, *(own / "cupy" / "_cccl" / name for name in ("libcudacxx", "cub", "thrust")), *headers]
    return cupy, nvrtc, ["--std=c++17", "--device-as-default-execution-space", *(f"-I{folder}" for folder in folders)]


class Placed(np.ndarray):
    """A NumPy array that lies at an address to which kernels may be written that load several elements at once."""

    @property
    def data(self) -> Any:  # type: ignore[override]
        """As of CuPy's arrays."""
        return SimpleNamespace(ptr=0)


def zeros(shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
    """Zeros of that shape and dtype."""
    return np.zeros(shape, dtype).view(Placed)


class Compiling:
    """An array module of NumPy's arrays, whose kernels are compiled by NVRTC when they are called; none is run.

    Attributes:
        sources: What has been compiled.

    Raises:
        Missing: What is needed is not installed.
    """

    def __init__(self) -> None:
        self._cupy, self._nvrtc, self._options = _installed()
        self.sources: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return zeros if name == "empty" else getattr(np, name)

    def ElementwiseKernel(self, *parts: str, preamble: str) -> Any:
        """As of CuPy."""
        from cupy._core import _kernel

        made = self._cupy.ElementwiseKernel(*parts, preamble=preamble)

        def launch(*arrays: Any, size: int, block_size: int = 128) -> None:
            types, known = self._infos(made.params, arrays, 1), _kernel._TypeMap(())
            self.compile(
                _kernel._get_elementwise_kernel_code(types, known, made.params, made.operation, made.name, preamble)
            )

        return launch

    def ReductionKernel(self, *parts: str, reduce_type: str, preamble: str) -> Any:
        """As of CuPy."""
        from cupy._core import _kernel, _reduction

        made = self._cupy.ReductionKernel(*parts, reduce_type=reduce_type, preamble=preamble)
        _, out, element, add, after, identity, name = parts
        dtype = np.dtype(out.split()[0])
        indices = _kernel._get_param_info("CIndexer _in_ind, CIndexer _out_ind", False)
        params = made.in_params + made.out_params + indices + _kernel._get_param_info("int32 _block_stride", True)

        def launch(*arrays: Any, axis: Any, keepdims: bool) -> Any:
            shape = np.broadcast_shapes(*(np.shape(array) for array in arrays))
            total = np.sum(np.zeros(shape, dtype), axis=axis, keepdims=keepdims)
            spread = [np.broadcast_to(array, shape) if np.ndim(array) else array for array in arrays]
            types = self._infos(params, (*spread, total), len(shape))
            write = _reduction._ReductionKernel_get_cached_function_code
            begin = f"typedef int IndexT;\n{preamble}"
            known = _kernel._TypeMap(())
            texts = (identity, element, add, after, begin)
            self.compile(write(made.nin, made.nout, params, types, known, name, 256, reduce_type, *texts, ()))
            return total.view(Placed) if isinstance(total, np.ndarray) else total

        return launch

    def _infos(self, params: Any, values: Any, rank: int) -> tuple[Any, ...]:
        """What CuPy knows of arguments when it writes a kernel: arrays, indices, numbers."""
        from cupy._core import _carray, _kernel, _scalar

        found, rest = [], list(values)
        for param in params:
            if param.ctype is None:
                found.append(_kernel._ArgInfo(2, _carray.Indexer, None, rank, True, True))
                continue
            value = rest.pop(0) if rest else 0
            if np.ndim(value) or param.raw:
                is_contiguous = value.flags.c_contiguous
                found.append(_kernel._ArgInfo(1, self._cupy.ndarray, param.dtype, np.ndim(value), is_contiguous, True))
            else:
                found.append(_kernel._ArgInfo(3, _scalar.CScalar, param.dtype, 0, True, True))
        return tuple(found)

    def compile(self, code: str) -> None:
        """Compile what CuPy writes for a kernel, with the headers that it begins with."""
        from cupy._core import core

        source = "".join(f"#include <{name}>\n" for name in core._cupy_header_list) + code
        self.sources.append(source)
        for architecture in ARCHITECTURES:
            program = self._nvrtc.createProgram(source, "kernel.cu", (), ())
            try:
                self._nvrtc.compileProgram(program, (*self._options, f"-arch={architecture}"))
            except RuntimeError as error:
                raise AssertionError(f"{self._nvrtc.getProgramLog(program)}\n{source}") from error
            finally:
                self._nvrtc.destroyProgram(program)
