"""Gives tfray a GPU on a machine that has none: `open_gpu` puts a stand-in where tfray looks for CuPy."""

from __future__ import annotations

from typing import Any

KINDS = ("fake", "cupy")
"""`fakecupy`, strict arrays over NumPy; the real CuPy over an emulated CUDA (`emu`)."""

GPU = "/job:localhost/task:0/device:GPU:0"


def open_gpu(kind: str) -> tuple[Any, Any]:
    """The array module and the recorder of what is asked of it. To be called before tfray's kernels are imported."""
    if kind == "fake":
        from tests.support.gpu import fakecupy

        module, recorder = fakecupy.install(), fakecupy.recorder
    else:
        from tests.support.gpu.emu import driver

        module, recorder = driver.start()
    import tfray.runtime.device as device

    device.cupy = lambda: module  # the one place where tfray imports it
    return module, recorder
