"""`cupy.cuda`: devices, streams and memory, of which there is NumPy's alone."""

from __future__ import annotations

import os
import threading
import types
from typing import Any

from tests.support.gpu import fakecublas, fakegraphs
from tests.support.gpu.fakecupy.recording import recorder

_SHOWN = os.environ.get("CUDA_VISIBLE_DEVICES")
GPUS = int(os.environ.get("FAKE_GPUS", "2")) if _SHOWN is None else len(_SHOWN.split(","))
"""How many devices the process sees. CUDA's own variable goes first: Ray shows its actors their GPUs by it."""


class _Current(threading.local):
    """The devices that a thread has made current, the latest last."""

    def __init__(self) -> None:
        self.devices = [0]


made_current = _Current()


class Device:
    """`cupy.cuda.Device`: as a context manager it makes a device the current one of the thread."""

    def __init__(self, device: int | None = None) -> None:
        self.id = made_current.devices[-1] if device is None else int(device)
        if not 0 <= self.id < GPUS:
            raise RuntimeError("cudaErrorInvalidDevice: invalid device ordinal")

    def __enter__(self) -> Device:
        made_current.devices.append(self.id)
        return self

    def __exit__(self, *args: Any) -> None:
        made_current.devices.pop()

    def use(self) -> Device:
        made_current.devices[-1] = self.id
        return self

    def synchronize(self) -> None:
        recorder.wait("Device.synchronize")

    @property
    def mem_info(self) -> tuple[int, int]:
        """Free and all bytes. What arrays have is the host's."""
        return fakegraphs.MEMORY_BYTES, fakegraphs.MEMORY_BYTES


class Stream(fakegraphs.Stream):
    """`cupy.cuda.Stream`."""

    def synchronize(self) -> None:
        recorder.wait("Stream.synchronize")


class OutOfMemoryError(MemoryError):
    pass


cuda = types.SimpleNamespace(
    Device=Device,
    cublas=fakecublas.make(recorder.call),
    device=types.SimpleNamespace(get_cublas_handle=lambda: 1),
    Stream=Stream,
    get_current_stream=lambda: Stream() if (stream := fakegraphs.current_stream()).ptr == 0 else stream,
    MemoryPool=fakegraphs.MemoryPool,
    using_allocator=fakegraphs.using_allocator,
    is_available=lambda: True,
    memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    runtime=types.SimpleNamespace(
        getDeviceCount=lambda: GPUS,
        getDevice=lambda: made_current.devices[-1],
        CUDARuntimeError=RuntimeError,
        cudaGraphDebugDotFlagsMemcpyNodeParams=32,
        getDeviceProperties=lambda i: {
            "name": b"pretended GPU",
            "totalGlobalMem": fakegraphs.MEMORY_BYTES,
            "major": 9,
            "minor": 0,
            "multiProcessorCount": 100,
        },
    ),
)
