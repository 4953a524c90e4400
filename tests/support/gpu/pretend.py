"""Gives tfray a GPU on a machine that has none: `open_gpu` puts a stand-in where tfray looks for CuPy."""

from __future__ import annotations

import collections
from typing import Any

KINDS = ("fake", "cupy", "device")
"""`fakecupy`, strict arrays over NumPy; the real CuPy over an emulated CUDA (`emu`); and over a GPU of this machine."""

GPU = "/job:localhost/task:0/device:GPU:0"


class Unrecorded:
    """Stands for the recorder of a GPU: nothing is counted there."""

    def __init__(self) -> None:
        self.calls, self.waits, self.uploads, self.notes = (collections.Counter() for _ in range(4))

    def reset(self) -> None:
        """Nothing is there to forget."""

    def cost(self) -> dict[str, int]:
        """No counts."""
        return {}


def open_gpu(kind: str) -> tuple[Any, Any]:
    """The array module and the recorder of what is asked of it. To be called before tfray's kernels are imported.

    Raises:
        RuntimeError: A GPU of this machine is wanted, and CuPy sees none.
    """
    if kind == "device":
        import tfray.runtime.device

        if not tfray.runtime.device.gpu_count():
            raise RuntimeError("CuPy is not installed, or sees no GPU on this machine")
        return tfray.runtime.device.cupy(), Unrecorded()
    if kind == "fake":
        from tests.support.gpu import fakecupy

        module, recorder = fakecupy.install(), fakecupy.recorder
    else:
        from tests.support.gpu.emu import driver

        module, recorder = driver.start()
    import tfray.runtime.device as device

    device.cupy = lambda: module  # the one place where tfray imports it
    return module, recorder
