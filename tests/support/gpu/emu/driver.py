"""Starts the real CuPy on an emulated CUDA: its Python and Cython code runs unchanged, its kernels on the host.

`start` returns the cupy module and a recorder with the interface of `fakecupy.recorder`. What CuPy asks NVRTC to
compile, g++ compiles instead (`emu_cuda.h` is CUDA's language on the host); thrust's sorts are done by NumPy. cuSOLVER,
cuSPARSE, cuFFT, cuRAND and CUB are absent: what needs them fails. Environment:

    EMU_EXECUTE=0   launches do nothing: dtypes, shapes and counts alone; NVRTC compiles the kernels, for sm_80
    EMU_NVRTC=1     NVRTC compiles every kernel as well, as a proof that it is valid CUDA
"""

from __future__ import annotations

import collections
import ctypes
import hashlib
import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
import types
from typing import Any

import numpy as np

from tests.support.gpu.emu.build import CACHE, KERNEL_FLAGS, LIBRARY, PRECOMPILED, RUNTIME, stamp_of

EXECUTE = os.environ.get("EMU_EXECUTE", "1") == "1"
NVRTC = os.environ.get("EMU_NVRTC", "0") == "1"
KERNELS = CACHE / "kernels"
"""Kernels compiled for the host, by the hash of their source and of what the headers were built from."""


class Counters(ctypes.Structure):
    """`EmuCounters` of emu.cpp: the same fields in the same order."""

    _fields_ = [
        (name, ctypes.c_long)
        for name in (
            *("launches", "blas", "h2d", "h2d_bytes", "d2h", "d2h_bytes", "d2d", "memset"),
            *("stream_sync", "device_sync", "event_sync", "mallocs", "capture_violations"),
        )
    ]


class Recorder:
    """Counts of what was asked of the driver since `reset`."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.counters = Counters.in_dll(library, "emu_counters")
        # By line of tfray: a driver does not see which one asked.
        self.waits: collections.Counter = collections.Counter()
        self.uploads: collections.Counter = collections.Counter()
        self.notes: collections.Counter = collections.Counter()
        library.emu_names.restype = ctypes.c_char_p

    def reset(self) -> None:
        self.library.emu_reset()

    def snapshot(self) -> dict[str, int]:
        return {name: getattr(self.counters, name) for name, _ in Counters._fields_}

    def cost(self) -> dict[str, int]:
        """`report.COUNTS`."""
        count = self.counters
        return {
            "kernels": count.launches,
            "GEMMs": count.blas,
            "waits": max(count.d2h, count.stream_sync + count.device_sync + count.event_sync),
            "uploads": count.h2d,
        }

    @property
    def calls(self) -> collections.Counter:
        """Launches by the name of the kernel."""
        lines = self.library.emu_names().decode().splitlines()
        return collections.Counter({name: int(count) for name, _, count in (line.partition("\t") for line in lines)})


# -- kernels ---------------------------------------------------------------------------------------------

_BOUNDS = r"(?:__launch_bounds__\(\w+\)\s+)?"
_KERNEL = re.compile(rf'extern\s+"C"\s+__global__\s+{_BOUNDS}void\s+{_BOUNDS}(\w+)\s*\(')
_BARRIERS = re.compile(r"__syncthreads|__shfl|__syncwarp|__ballot")
_DYNAMIC = re.compile(r"extern\s+__shared__\s+(?:__align__\(\w+\)\s+)?([\w:<>, ]+?)\s+(\w+)\s*\[\s*\]\s*;")


def host_source(source: str, expressions: tuple[str, ...] = ()) -> str:
    """A kernel's CUDA source with functions by which the driver calls it. `expressions`: instances of templates."""
    text = _DYNAMIC.sub(r"\1* \2 = (\1*)emu_dynamic_shared;", source)
    has_barriers = "true" if _BARRIERS.search(source) else "false"
    functions = {name: name for name in _KERNEL.findall(source)}
    functions |= {f"instance_{number}": expression for number, expression in enumerate(expressions)}
    for name, function in functions.items():
        text += f"""
static void emu_thread_{name}(void** p) {{ emu::invoke({function}, p); }}
extern "C" void emu_call_{name}(void** p, const unsigned* d) {{ emu::run(emu_thread_{name}, p, d, {has_barriers}); }}
"""
    return f'#include "emu_all.h"\n{text}'


def compile_for_host(source: str, options: tuple[str, ...], expressions: tuple[str, ...] = ()) -> bytes:
    """What the emulated driver loads as a module: the path of a library with the source's kernels."""
    text = host_source(source, expressions)
    macros = [option for option in options if option.startswith("-D")]
    key = hashlib.sha256("\0".join([stamp_of(PRECOMPILED).read_text(), text, *macros]).encode()).hexdigest()[:32]
    library = KERNELS / f"{key}.so"
    if not library.exists():
        KERNELS.mkdir(parents=True, exist_ok=True)
        written, scratch = KERNELS / f"{key}-{os.getpid()}.cpp", KERNELS / f"{key}-{os.getpid()}.so"
        written.write_text(text)
        command = ["g++", *KERNEL_FLAGS, *macros, "-shared", str(written), "-o", str(scratch)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            error = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:300])
            names = ", ".join(_KERNEL.findall(source)) or "a module"
            kept = written.rename(library.with_suffix(".cpp"))
            raise NotImplementedError(f"emulated CUDA: g++ cannot compile {names} ({kept}): {error[-160:]}")
        written.unlink()
        scratch.rename(library)
    return f"EMU:{library}".encode() + b"\0"


def _replace_compiler(compiler: types.ModuleType) -> None:
    original = compiler._compile_using_nvrtc_no_warning

    def compile_kernel(
        source: str,
        options: Any = (),
        arch: Any = None,
        filename: str = "kern.cu",
        names: Any = None,
        *rest: Any,
        **kwargs: Any,
    ) -> Any:
        if NVRTC or not EXECUTE:
            compiled = original(source, options, arch, filename, names, *rest, **kwargs)
            if not EXECUTE:
                return compiled
        expressions = tuple(names or ())
        mapping = {expression: f"instance_{number}" for number, expression in enumerate(expressions)}
        return compile_for_host(source, tuple(options), expressions), mapping

    compiler._compile_using_nvrtc_no_warning = compile_kernel
    if EXECUTE:
        compiler._preprocess = lambda *args, **kwargs: ""  # part of the key of CuPy's own cache, by NVRTC


# -- thrust ----------------------------------------------------------------------------------------------


def _host_array(dtype: Any, pointer: int, shape: tuple[int, ...]) -> np.ndarray:
    """An array in "device" memory, which is this process's."""
    count = int(np.prod(shape))
    memory = (ctypes.c_char * max(count * np.dtype(dtype).itemsize, 1)).from_address(pointer)
    return np.frombuffer(memory, dtype, count).reshape(shape)


def _thrust(recorder: Recorder) -> types.SimpleNamespace:
    """`cupy.cuda.thrust`, whose compiled kernels hold a CUDA runtime that cannot be replaced."""

    def sort(dtype: Any, data: int, keys: int, shape: tuple[int, ...]) -> None:
        array = _host_array(dtype, data, shape)
        array[...] = np.sort(array, axis=-1, kind="stable")
        recorder.counters.launches += 1

    def argsort(dtype: Any, indices: int, data: int, keys: int, shape: tuple[int, ...]) -> None:
        array = _host_array(dtype, data, shape)
        order = np.argsort(array, axis=-1, kind="stable")
        _host_array(np.intp, indices, shape)[...] = order
        array[...] = np.take_along_axis(array, order, -1)
        recorder.counters.launches += 1

    def lexsort(dtype: Any, indices: int, keys: int, rows: int, count: int) -> None:
        _host_array(np.intp, indices, (count,))[...] = np.lexsort(_host_array(dtype, keys, (rows, count)))
        recorder.counters.launches += 1

    return types.SimpleNamespace(
        available=True, sort=sort, argsort=argsort, lexsort=lexsort, get_build_version=lambda: 0
    )


# -- start -----------------------------------------------------------------------------------------------


class _RuntimeFinder:
    """Finds the `runtime` module that `emu.build` has built before the installed one is found."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name != "cupy_backends.cuda.api.runtime":
            return None
        loader = importlib.machinery.ExtensionFileLoader(name, str(RUNTIME))
        return importlib.util.spec_from_file_location(name, RUNTIME, loader=loader)


def _replace_libraries() -> ctypes.CDLL:
    """Load the emulated libraries so that whoever looks for NVIDIA's finds them."""
    library = ctypes.CDLL(str(LIBRARY), mode=ctypes.RTLD_GLOBAL)
    original = ctypes.CDLL

    class CDLL(original):
        def __init__(self, name: Any, *args: Any, **kwargs: Any) -> None:
            super().__init__(str(LIBRARY) if name == "libcuda.so.1" else name, *args, **kwargs)

    ctypes.CDLL = CDLL  # type: ignore[misc]
    sys.meta_path.insert(0, _RuntimeFinder)  # type: ignore[arg-type]
    return library


def start() -> tuple[Any, Recorder]:
    """The cupy module, on the emulated CUDA, and its recorder."""
    if not (LIBRARY.exists() and RUNTIME.exists()):
        raise RuntimeError(f"{LIBRARY} is not built: run setup.sh, and this by the Python that it prints")
    os.environ.setdefault("CUPY_CACHE_DIR", str(CACHE / "cubins"))
    os.environ["TFRAY_CUDA_GRAPHS"] = "0"  # a captured step is not run here
    os.environ["CUPY_ACCELERATORS"] = ""  # CUB's kernels hold a CUDA runtime of their own too
    os.environ["CUPY_CACHE_IN_MEMORY"] = "1" if EXECUTE else "0"
    library = _replace_libraries()
    import cupy
    import cupy._core._routines_sorting as sorting
    import cupy.cuda.compiler as compiler

    _replace_compiler(compiler)
    library.emu_execute_blas(EXECUTE)
    if EXECUTE:
        library.emu_fill(0xFF)  # memory that nothing has written shows, as NaN where it is floating
    recorder = Recorder(library)
    thrust = _thrust(recorder)
    sys.modules["cupy.cuda.thrust"] = cupy.cuda.thrust = sorting.thrust = thrust  # type: ignore[assignment]
    return cupy, recorder
