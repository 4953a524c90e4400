"""A device: its array module, its resources, and the context that its kernels see."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError, NotFoundError
from tfray.framework.device_spec import DeviceSpec
from tfray.framework.graph import Operation
from tfray.runtime.host_memory import keep_freed_memory
from tfray.runtime.resources import ResourceContainer
from tfray.runtime.step import Background


@lru_cache(maxsize=1)
def cupy() -> Any | None:
    """The cupy module when it is installed and sees a GPU, else None. The one place that imports it."""
    try:
        import cupy as module
    except ImportError:
        return None
    try:
        return module if module.cuda.runtime.getDeviceCount() else None
    except module.cuda.runtime.CUDARuntimeError:
        return None


def gpu_count() -> int:
    """Number of GPUs that cupy sees."""
    module = cupy()
    return 0 if module is None else int(module.cuda.runtime.getDeviceCount())


LOCAL_DEVICES: Final = "TFRAY_LOCAL_DEVICES"
"""The environment variable that says how many CPU devices a process offers where its program does not say so."""


def cpu_device_count() -> int:
    """How many CPU devices a process offers by itself: one, or `LOCAL_DEVICES`.

    Raises:
        InvalidArgumentError: `LOCAL_DEVICES` is no positive number.
    """
    text = os.environ.get(LOCAL_DEVICES) or "1"
    if not text.isdecimal() or int(text) < 1:
        raise InvalidArgumentError(f"{LOCAL_DEVICES}={text}: expected a number of CPU devices, 1 or more")
    return int(text)


def local_device_names(
    cpu_count: int = 1, gpu_limit: int | None = None, prefix: str = "/job:localhost/task:0"
) -> list[str]:
    """Full names of devices of this process: `cpu_count` CPU devices, then every GPU, up to `gpu_limit`."""
    gpus = gpu_count() if gpu_limit != 0 else 0
    gpus = gpus if gpu_limit is None else min(gpus, gpu_limit)
    return [f"{prefix}/device:CPU:{i}" for i in range(cpu_count)] + [f"{prefix}/device:GPU:{i}" for i in range(gpus)]


@dataclass
class Device:
    """One device of this process.

    Attributes:
        name: Full name, such as ``/job:worker/task:1/device:GPU:0``.
        xp: Its array module.
        ordinal: Which of the GPUs that this process sees it is. An actor on a cluster sees one GPU, whatever its name.
        resources: State that lives on it, which all its sessions share.
        session_state: State of one session on it. A device that several sessions use is given to each by `for_session`.
        background: Stands for the step in what runs on it outside of steps.
    """

    name: str
    xp: Any = np
    ordinal: int = 0
    resources: ResourceContainer = field(default_factory=ResourceContainer)
    session_state: ResourceContainer = field(default_factory=ResourceContainer)
    background: Background = field(default_factory=Background)

    @classmethod
    def open(cls, name: str, ordinal: int | None = None) -> Device:
        """The device of that name; a GPU is the one with that `ordinal`, or with the index in its name.

        Raises:
            NotFoundError: There is no such GPU.
        """
        spec = DeviceSpec.from_string(name)
        keep_freed_memory()
        if spec.device_type != "GPU":
            return cls(name)
        if ordinal is None:
            ordinal = spec.device_index or 0
        if ordinal >= gpu_count():
            seen = f"CuPy sees {gpu_count()}" if cupy() else "there is no CuPy that sees a GPU; install the extra cudnn"
            raise NotFoundError(f"no such GPU: {name}; {seen}", device=name)
        return cls(name, cupy(), ordinal)

    def for_session(self) -> Device:
        """This device as one more session has it: with state of its own beside what all share."""
        return replace(self, session_state=ResourceContainer())

    @property
    def host(self) -> Device:
        """The device, as what runs on its host sees it: a CPU without state."""
        return Device(self.name)

    @property
    def type(self) -> str:
        """``CPU`` or ``GPU``."""
        return "CPU" if self.xp is np else "GPU"

    def activate(self) -> Any:
        """Context manager under which new GPU arrays and kernels of this thread go to this device."""
        return nullcontext() if self.xp is np else self.xp.cuda.Device(self.ordinal)

    def limit_memory(self, share: float) -> None:
        """Let this process take only a share, up to 1, of a GPU's memory. What it has taken already it keeps.

        Raises:
            InvalidArgumentError: The share is above 1.
        """
        if share > 1:
            raise InvalidArgumentError(f"GPUOptions.per_process_gpu_memory_fraction is {share}, expected at most 1")
        if self.xp is not np:
            with self.activate():
                self.xp.get_default_memory_pool().set_limit(fraction=share)

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        """`value` as an array in this device's memory. An array that is there already is not copied.

        An array of another GPU is copied once that GPU has computed it: CUDA's default streams see to it.
        """
        if isinstance(value, bytes):
            return np.array(value, dtype=object)  # NumPy's own strings would lose zeros at the end
        if self.xp is np:
            return np.asarray(value, dtype) if not hasattr(value, "get") else value.get()
        if isinstance(value, np.ndarray) and value.dtype == object:
            return value  # strings have no form on a GPU
        with self.activate():
            return self.xp.asarray(value, dtype)

    def allocate(self, size_bytes: int) -> Any:
        """Uninitialised memory, on a CPU aligned to cache lines (64 bytes)."""
        with self.activate():
            raw = self.xp.empty(size_bytes + 64, dtype=self.xp.uint8)
        if self.xp is not np:
            return raw
        offset = -raw.ctypes.data % 64
        return raw[offset : offset + size_bytes]

    def view(self, memory: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """The first bytes of `memory` as an array."""
        count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return memory[:count].view(dtype).reshape(shape)

    def to_host(self, array: Any) -> Any:
        """`array` as a NumPy array."""
        if self.xp is np or not hasattr(array, "get"):
            return array
        with self.activate():
            return array.get()

    def synchronize(self) -> None:
        """Wait until the device has computed all that it was given; a CPU computes at once."""
        if self.xp is not np:
            with self.activate():
                self.xp.cuda.get_current_stream().synchronize()


class OpContext:
    """The `KernelContext` of one operation on one device, shared by all steps of a plan."""

    __slots__ = (
        "_attrs", "_device", "_output_dtypes", "_over_batch", "_regions", "container", "device", "kept", "op_name",
        "resources", "session_state", "step", "xp",
    )  # fmt: skip

    def __init__(
        self,
        op: Operation,
        device: Device,
        regions: Mapping[str, Callable[[Any], Any]] | None = None,
        over_batch: Callable[[str], Any] | None = None,
    ) -> None:
        self.xp = device.xp
        self.op_name = op.name
        self.container: str = op.attrs.get("_container", "")
        self.device = device.name
        self.resources = device.resources
        self.session_state = device.session_state
        self.step: Any = None
        self.kept: Any = None
        self._attrs = op.attrs
        self._device = device
        self._regions = regions or {}
        self._over_batch = over_batch
        self._output_dtypes = [tensor.dtype.numpy for tensor in op.outputs]

    def attr(self, name: str) -> Any:
        return self._attrs[name]

    def region(self, name: str) -> Any:
        return self._regions[name](self._device.background if self.step is None else self.step)

    def region_over_batch(self, name: str) -> Any:
        return self._over_batch and self._over_batch(name)

    def output_dtype(self, index: int = 0) -> Any:
        return self._output_dtypes[index]

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        if type(value) is np.ndarray and self.xp is np and dtype is None:  # most calls end here
            return value
        return self._device.asarray(value, dtype)

    def to_host(self, array: Any) -> Any:
        return array if type(array) is np.ndarray else self._device.to_host(array)

    def at(self, step: Any) -> OpContext:
        """This context within a running step."""
        bound = OpContext.__new__(OpContext)  # copy.copy takes ten times as long
        bound.xp, bound.op_name, bound.device = self.xp, self.op_name, self.device
        bound.resources, bound.session_state, bound.container = self.resources, self.session_state, self.container
        bound._attrs, bound._device, bound._regions = self._attrs, self._device, self._regions
        bound._output_dtypes, bound._over_batch = self._output_dtypes, self._over_batch
        bound.step = step
        return bound
