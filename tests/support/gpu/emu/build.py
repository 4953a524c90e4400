"""Builds the emulated CUDA into the kit's cache: what is missing there, or out of date.

Use: `python -m tests.support.gpu.emu.build`. It makes:

* `RUNTIME`: CuPy's one Cython module that is linked with NVIDIA's static runtime, compiled anew from CuPy's source
  distribution, so that it takes the runtime from `LIBRARY`;
* `LIBRARY`: `emu.cpp` and `unsupported.cpp`, in place of libcuda.so.1, libcudart.so.12 and libcublas.so.12;
* `PRECOMPILED`: the headers that every kernel includes, which take g++ a second otherwise.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np

from tests.support.archives import unpack

HERE = Path(__file__).resolve().parent
CACHE = Path(sys.prefix).parent
"""Beside the environment that `setup.sh` has made, whatever XDG_CACHE_HOME says by now."""

BUILD = CACHE / "build"
RUNTIME = BUILD / "runtime.so"
LIBRARY = BUILD / "libemucuda.so"
PRECOMPILED = BUILD / "emu_all.h.gch"

PACKAGES = Path(sysconfig.get_path("purelib"))
CUDA_INCLUDES = [
    f"-I{HERE / 'include'}",
    f"-I{PACKAGES / 'nvidia/cuda_runtime/include'}",
    f"-I{PACKAGES / 'nvidia/cuda_nvcc/include'}",
]
KERNEL_FLAGS = [
    *("-O1", "-std=c++17", "-fPIC", "-w", "-fpermissive", "-ffp-contract=off"),
    f"-I{BUILD}",  # before the folder of emu_all.h: g++ takes the precompiled one where it finds it first
    f"-I{HERE}",
    *CUDA_INCLUDES,
    f"-I{PACKAGES / 'cupy/_core/include'}",
    f"-I{PACKAGES / 'cupy/_core/include/cupy/_cccl/libcudacxx'}",
]
"""How kernels are compiled for the host. `-ffp-contract=off`: no fused products that the CPU kernels do not have."""


def say(text: str) -> None:
    print(f"gpu-kit: {text}", file=sys.stderr, flush=True)


def run(command: list[str], **options) -> None:
    """Run a command; its output is shown only when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(command[:4])} ... failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")


def cupy_source() -> Path:
    """CuPy's unpacked source distribution, of the version that is installed; pip downloads it."""
    version = importlib.metadata.version("cupy-cuda12x")
    folder = CACHE / f"cupy-{version}"
    if not folder.exists():
        say(f"downloading the source of CuPy {version}")
        run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation"]
            + ["--no-binary", "cupy", "--dest", str(CACHE), f"cupy=={version}"],
            env={**os.environ, "CUPY_INSTALL_USE_STUB": "1"},  # its setup looks for no CUDA then
        )
        unpack(CACHE / f"cupy-{version}.tar.gz", CACHE)
    return folder


def build_runtime(target: Path) -> None:
    """CuPy's `runtime.pyx`, with every symbol of the CUDA runtime left to be found when it is loaded."""
    source = cupy_source()
    module = "cupy_backends.cuda.api.runtime"
    constants = {
        "CUPY_CUDA_VERSION": 12090,
        "CUPY_HIP_VERSION": 0,
        "CUPY_USE_CUDA_PYTHON": False,
        "CUPY_CUFFT_STATIC": False,
        "CUPY_JITIFY_VERSION_CODE": 0,
    }
    directives = ["embedsignature", "freethreading_compatible", "c_api_binop_methods"]
    translated = target.with_suffix(".cpp")
    run(
        [sys.executable, "-m", "cython", "--cplus", "-3", "--module-name", module, "-I", str(source)]
        + ["-E", ",".join(f"{name}={value}" for name, value in constants.items())]
        + ["-X", ",".join([*(f"{name}=True" for name in directives), "binding=False"])]
        + ["-o", str(translated), str(source / f"{module.replace('.', '/')}.pyx")]
    )
    run(
        ["g++", "-O1", "-w", "-fPIC", "-shared", "-std=c++17", "-D_FORCE_INLINES=1", '-DCYTHON_EXTERN_C=extern "C"']
        + ["-DNPY_TARGET_VERSION=NPY_2_0_API_VERSION", "-DCUPY_CACHE_KEY=0", *CUDA_INCLUDES]
        + [
            f"-I{source / 'cupy_backends/cuda/api'}",
            f"-I{source / 'cupy_backends'}",
            f"-I{np.get_include()}",
            f"-I{sysconfig.get_path('include')}",
        ]
        + [str(translated), "-o", str(target)]
    )


def build_library(target: Path) -> None:
    """The emulated driver, runtime and cuBLAS, by cuBLAS's name and versions, which CuPy's modules are linked with."""
    run(
        ["g++", "-O2", "-fPIC", "-shared", "-std=c++17", *CUDA_INCLUDES]
        + [str(HERE / "emu.cpp"), str(HERE / "unsupported.cpp"), "-o", str(target), "-ldl"]
        + [f"-Wl,--version-script={HERE / 'cublas.map'}", "-Wl,-soname,libcublas.so.12"]
    )


def build_header(target: Path) -> None:
    run(["g++", *KERNEL_FLAGS, "-x", "c++-header", str(HERE / "emu_all.h"), "-o", str(target)])


def signature(*names: str) -> str:
    """What a product depends on: sources, CuPy's version, Python's."""
    text = [importlib.metadata.version("cupy-cuda12x"), sys.version]
    text += [(HERE / name).read_text() for name in ("build.py", *names)]
    return hashlib.sha256("\0".join(text).encode()).hexdigest()


def stamp_of(product: Path) -> Path:
    """The file with the signature of what the product was built from."""
    return product.with_suffix(".stamp")


def main() -> None:
    """Build each product unless its stamp says that it was built from the same."""
    BUILD.mkdir(parents=True, exist_ok=True)
    products = {
        RUNTIME: (build_runtime, ["include/cuda_profiler_api.h"]),
        LIBRARY: (build_library, ["emu.cpp", "unsupported.cpp", "cublas.map"]),
        PRECOMPILED: (build_header, ["emu_all.h", "emu_cuda.h", "include/thrust/detail/config/namespace.h"]),
    }
    for target, (build, sources) in products.items():
        stamp, wanted = stamp_of(target), signature(*sources)
        if target.exists() and stamp.exists() and stamp.read_text() == wanted:
            continue
        say(f"building {target.name}")
        scratch = target.with_name(f"new-{target.name}")
        build(scratch)
        scratch.rename(target)
        stamp.write_text(wanted)


if __name__ == "__main__":
    main()
