"""oneDNN, where the extra ``fast`` has installed it: its C library, called through `ctypes`.

A `Primitive` computes one operation on plain memory of fixed shapes, on the calling thread alone: our own threads share
out the work (`cpu_threads.py`). Making one takes 0.1 to 6 ms, as the library compiles code for this CPU; so callers
keep them. Without the library, or with ``TFRAY_KERNELS=numpy`` in the environment, `library` gives None, and kernels
compute with NumPy.

Names and numbers are those of oneDNN's C API, version 3 (dnnl.h, dnnl_types.h), which keeps them within that version.
"""

from __future__ import annotations

import ctypes
import os
import threading
import warnings
from collections.abc import Callable, Sequence
from ctypes import byref, c_float, c_int, c_int32, c_int64, c_size_t, c_void_p
from typing import Any, Final

from tfray.errors import UnknownError
from tfray.once import once
from tfray.ops.kernels.addresses import address_of
from tfray.ops.kernels.cpu_threads import kept_bytes

PATHS_VARIABLE: Final = "TFRAY_KERNELS"
"""The environment variable that may say ``numpy``: then no kernel uses an optional library."""

_DISTRIBUTION: Final = "onednn-cpu-gomp"
_FILE: Final = "libdnnl.so.3"

FORWARD: Final = 64
"""``dnnl_forward_training``."""

ANY: Final = 1
"""``dnnl_format_tag_any``: the library chooses the layout."""

_FLOAT: Final = 3
_CPU: Final = 1
_AVX512: Final = 0x20  # in the bits of an instruction set
_IN_ORDER: Final = 1
_USER_SCRATCHPAD: Final = 1
_UNSUPPORTED: Final = (2, 3)
"""The statuses by which the library says that it cannot make what it is asked for: bad arguments, or unimplemented."""
_SCRATCHPAD: Final = 80
_SCRATCHPAD_LAYOUT: Final = 136

_MOST_SIZES: Final = 12


class Unsupported(Exception):
    """oneDNN has no primitive for these shapes."""


class _Argument(ctypes.Structure):
    _fields_ = (("argument", c_int), ("memory", c_void_p))


class Library:
    """The loaded library, and an engine for the CPU.

    Args:
        path: Its file.

    Attributes:
        has_wide_vectors: Whether it computes with vectors of 512 bits.

    Raises:
        OSError: It cannot be loaded.
    """

    def __init__(self, path: str) -> None:
        self._openmp = ctypes.CDLL("libgomp.so.1")
        self._dnnl = ctypes.CDLL(path)
        self._dnnl.dnnl_memory_desc_get_size.restype = c_size_t
        self._dnnl.dnnl_primitive_desc_query_md.restype = c_void_p
        for name, types in _ARGUMENT_TYPES.items():
            getattr(self._dnnl, name).argtypes = types
        self.execute = self._dnnl.dnnl_primitive_execute
        self.set_address = self._dnnl.dnnl_memory_set_data_handle
        self.engine = self.made("engine", _CPU, c_size_t(0))
        self.has_wide_vectors = bool(self._dnnl.dnnl_get_effective_cpu_isa() & _AVX512)
        self._local = threading.local()

    def made(self, kind: str, *arguments: Any, create: str = "") -> Handle:
        """A new object of the library, by its ``dnnl_<create>``, else ``dnnl_<kind>_create``."""
        create = create or f"dnnl_{kind}_create"
        return Handle(getattr(self._dnnl, create), getattr(self._dnnl, f"dnnl_{kind}_destroy"), arguments)

    def set(self, name: str, *arguments: Any) -> None:
        """Call ``dnnl_<name>``."""
        check(getattr(self._dnnl, f"dnnl_{name}")(*arguments))

    def size(self, layout: Any) -> int:
        """Bytes of a memory of that layout."""
        size: int = self._dnnl.dnnl_memory_desc_get_size(layout)
        return size

    def are_equal(self, layout: Any, other: Any) -> bool:
        """Whether two layouts are the same."""
        return bool(self._dnnl.dnnl_memory_desc_equal(layout, other))

    def layout_of(self, description: Handle, query: int) -> c_void_p | None:
        """A layout that a primitive asks for; None if it needs no such memory. It lives as long as `description`."""
        pointer = self._dnnl.dnnl_primitive_desc_query_md(description, query, 0)
        return c_void_p(pointer) if pointer else None

    def layout(self, sizes: Sequence[int], strides: Sequence[int] | None = None) -> Handle:
        """A layout of float32 elements; the library chooses it where `strides`, in elements, is None."""
        form, create = (ANY, "tag") if strides is None else (Sizes(*strides), "strides")
        arguments = (len(sizes), Sizes(*sizes), _FLOAT, form)
        return self.made("memory_desc", *arguments, create=f"dnnl_memory_desc_create_with_{create}")

    def part_of(self, layout: Any, sizes: Sequence[int], offsets: Sequence[int]) -> Handle:
        """The layout of a part of what lies in `layout`: its memory begins where that of the whole does.

        Raises:
            Unsupported: The part does not begin where a block of the layout does.
        """
        arguments = (layout, Sizes(*sizes), Sizes(*offsets))
        return self.made("memory_desc", *arguments, create="dnnl_memory_desc_create_submemory")

    def streams(self, count: int) -> list[Handle]:
        """Streams of the calling thread: one for each thread that works for it, itself the first."""
        streams: list[Handle] = self._local.__dict__.setdefault("streams", [])
        while len(streams) < count:
            streams.append(self.made("stream", self.engine, _IN_ORDER))
        return streams[:count]

    def native_functions(self) -> list[int]:
        """The addresses of ``omp_set_num_threads``, ``dnnl_memory_set_data_handle`` and ``dnnl_primitive_execute``."""
        functions = self._openmp.omp_set_num_threads, self.set_address, self.execute
        return [ctypes.cast(function, c_void_p).value or 0 for function in functions]

    def on_one_thread(self, call: Callable[[], Any]) -> Any:
        """What `call` returns, run while OpenMP has one thread for the calling thread."""
        threads = self._openmp.omp_get_max_threads()
        self._openmp.omp_set_num_threads(1)
        try:
            return call()
        finally:
            self._openmp.omp_set_num_threads(threads)


_ARGUMENT_TYPES: Final[dict[str, list[Any]]] = {
    "dnnl_memory_desc_get_size": [c_void_p],
    "dnnl_memory_desc_equal": [c_void_p, c_void_p],
    "dnnl_primitive_desc_query_md": [c_void_p, c_int, c_int],
    "dnnl_primitive_execute": [c_void_p, c_void_p, c_int, c_void_p],
    "dnnl_memory_set_data_handle": [c_void_p, c_void_p],
    "dnnl_post_ops_append_sum": [c_void_p, c_float, c_int32, c_int],
    "dnnl_primitive_attr_set_post_ops": [c_void_p, c_void_p],
}

Sizes: Final = c_int64 * _MOST_SIZES
"""Sizes or strides, as the library takes them."""


class Handle:
    """An object of the library, destroyed with this one.

    Args:
        create: Makes it: takes where to write the pointer, then `arguments`, and returns a status.
        destroy: Destroys it.
        arguments: Kept as long as the object, as it may refer to them.

    Raises:
        Unsupported: There is no such primitive.
        UnknownError: Another error of the library.
    """

    def __init__(self, create: Any, destroy: Any, arguments: Sequence[Any]) -> None:
        self._as_parameter_ = c_void_p()  # what ctypes passes in place of this object
        self._destroy = destroy
        self._arguments = arguments
        status = create(byref(self._as_parameter_), *arguments)
        if status in _UNSUPPORTED:
            raise Unsupported
        check(status)

    @property
    def value(self) -> int:
        """What the library calls it by."""
        return self._as_parameter_.value or 0

    def __del__(self) -> None:
        if self._as_parameter_:
            self._destroy(self._as_parameter_)


def check(status: int) -> None:
    """Raise `UnknownError` for a status that is an error."""
    if status:
        raise UnknownError(f"oneDNN failed with status {status}")


@once
def library() -> Library | None:
    """The library; None where it is not installed, not wanted, or cannot be loaded, of which a warning tells."""
    if os.environ.get(PATHS_VARIABLE) == "numpy":
        return None
    from importlib import metadata  # it takes 10 ms to import

    try:
        distribution = metadata.distribution(_DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return None
    paths = [distribution.locate_file(file) for file in distribution.files or () if file.name == _FILE]
    try:
        return Library(str(paths[0]))
    except (OSError, IndexError, AttributeError, UnknownError, Unsupported) as error:
        warnings.warn(
            f"{_DISTRIBUTION} is installed but cannot be used, so NumPy computes instead: {error!r}; it needs "
            f"libgomp.so.1 of the system. {PATHS_VARIABLE}=numpy turns this warning off",
            stacklevel=2,
        )
        return None


class Primitive:
    """One operation on memory of fixed layouts. Any number of threads may run it at once.

    Args:
        dnnl: The library.
        name: Its name in the C API.
        arguments: What its description is made from.
        layouts: The number and the layout of each of its arguments, in the order in which `run` takes them. A layout
            is a `Handle`, or the query by which the library tells what it has chosen.
        adds: Whether its result is added to what its last argument holds, instead of replacing it.

    Attributes:
        layouts: The layout of each argument.

    Raises:
        Unsupported: oneDNN cannot compute it.
    """

    def __init__(
        self,
        dnnl: Library,
        name: str,
        arguments: Sequence[Any],
        layouts: Sequence[tuple[int, Any]],
        adds: bool = False,
    ) -> None:
        self._dnnl = dnnl
        attributes = dnnl.made("primitive_attr")
        dnnl.set("primitive_attr_set_scratchpad_mode", attributes, _USER_SCRATCHPAD)
        if adds:
            after = dnnl.made("post_ops")
            dnnl.set("post_ops_append_sum", after, 1.0, 0, _FLOAT)
            dnnl.set("primitive_attr_set_post_ops", attributes, after)
        create = f"dnnl_{name}_primitive_desc_create"

        def make() -> Handle:
            self.description = dnnl.made("primitive_desc", *arguments, attributes, create=create)
            return dnnl.made("primitive", self.description)

        self._primitive: Handle = dnnl.on_one_thread(make)
        self._arguments = [number for number, _ in layouts]
        self.layouts = [
            dnnl.layout_of(self.description, layout) if isinstance(layout, int) else layout for _, layout in layouts
        ]
        scratchpad = dnnl.layout_of(self.description, _SCRATCHPAD_LAYOUT)
        self.scratch_bytes = dnnl.size(scratchpad) if scratchpad else 0
        self._scratchpad = [scratchpad] if self.scratch_bytes else []
        self._bound = threading.local()

    @property
    def handle(self) -> int:
        """What the library calls it by."""
        return self._primitive.value

    def bind(self) -> Bound:
        """Memories for its arguments, and behind them for its scratchpad, if it has one."""
        layouts = [*self.layouts, *self._scratchpad]
        numbers = [*self._arguments, *([_SCRATCHPAD] * len(self._scratchpad))]
        return Bound(numbers, [self._dnnl.made("memory", layout, self._dnnl.engine, None) for layout in layouts])

    def run(self, *addresses: int) -> None:
        """Compute.

        Args:
            *addresses: Where each argument lies.
        """
        dnnl = self._dnnl
        bound: Bound | None = getattr(self._bound, "bound", None)
        if bound is None:
            bound = self._bound.bound = self.bind()
        if self.scratch_bytes:
            addresses = (*addresses, aligned_scratch("onednn", self.scratch_bytes))
        for memory, address in zip(bound.memories, addresses, strict=True):
            dnnl.set_address(memory, address)
        count, place, [stream] = len(bound.memories), bound.address, dnnl.streams(1)
        check(dnnl.on_one_thread(lambda: dnnl.execute(self._primitive, stream, count, place)))


class Bound:
    """Memories for the arguments of a primitive, for one call at a time.

    Args:
        numbers: The number of each argument.
        memories: The memory of each.

    Attributes:
        memories: What the library calls the memories by.
        address: Where the arguments lie.
    """

    def __init__(self, numbers: Sequence[int], memories: Sequence[Handle]) -> None:
        self._kept = memories
        self.memories = [memory.value for memory in memories]
        self._arguments = (_Argument * len(numbers))(*map(_Argument, numbers, self.memories))
        self.address = ctypes.addressof(self._arguments)


def images_layout(
    dnnl: Library, batch: int, height: int, width: int, channels: int, all_channels: int | None = None
) -> Handle:
    """The layout of images in NHWC, in the library's order of sizes: batch, channels, height, width.

    `channels` may be some of those that a pixel has: of `all_channels`.
    """
    pixel = all_channels or channels
    return dnnl.layout((batch, channels, height, width), (height * width * pixel, 1, width * pixel, pixel))


def reorder(dnnl: Library, source: Any, target: Any) -> Primitive | None:
    """A primitive that copies from one layout to another; None where they are the same."""
    if dnnl.are_equal(source, target):
        return None
    return Primitive(dnnl, "reorder", (source, dnnl.engine, target, dnnl.engine), [(1, source), (17, target)])


def aligned_scratch(slot: str, size_bytes: int) -> int:
    """The address of memory that the calling thread reuses; see `cpu_threads.kept_bytes`."""
    return address_of(kept_bytes(slot, size_bytes))
