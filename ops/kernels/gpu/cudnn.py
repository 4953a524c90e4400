"""cuDNN, where the extra ``cudnn`` has installed it: its C library, called through `ctypes`.

cuDNN takes a graph of operations on tensors of fixed sizes and strides, names the engines that can compute it, the
best first by its own estimate, and makes plans of them, which run on addresses. `Descriptor` stands for its objects,
which are told apart by their attributes alone; `plans` gives the plans for an operation.

Without the library, or with ``TFRAY_KERNELS=numpy`` in the environment, `library` gives None, and kernels compute with
CuPy. Names and numbers are those of cuDNN 9's graph API (cudnn_graph.h), which it keeps within that version.
"""

from __future__ import annotations

import ctypes
import os
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from ctypes import c_float, c_int, c_int64, c_void_p
from importlib import util
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np

from tfray.errors import UnknownError
from tfray.framework.op_def import Array, ArrayModule, NumpyDType
from tfray.once import once
from tfray.ops.kernels.addresses import address_on_device
from tfray.ops.kernels.native.onednn import PATHS_VARIABLE

_FILE: Final = "libcudnn.so.9"
_PACKAGE: Final = "nvidia.cudnn"
_UNSUPPORTED: Final = range(2000, 4000)
"""The statuses by which cuDNN says that it cannot make what it is asked for: bad parameters, or not supported."""

ALIGNMENT: Final = 16
"""Tensors begin at multiples of this, in bytes: what its fast engines load at a time."""

DATA_TYPES: Final[Mapping[str, int]] = {"float32": 0, "float16": 2, "bfloat16": 9}
"""``cudnnDataType_t`` by the names of dtypes. Sums are in float32."""

FLOAT: Final = DATA_TYPES["float32"]
CROSS_CORRELATION: Final = 1

_HEURISTICS: Final = 3
"""``CUDNN_HEUR_MODE_A``."""
_MOST_ENGINES: Final = 64

_TENSOR_CORE, _DOWN_CONVERT, _REDUCED_SUMS, _NONDETERMINISTIC = 0, 1, 2, 4
"""``cudnnBackendNumericalNote_t``: what an engine says of itself."""
_MOST_NOTES: Final = 16
_COMPILES: Final = 0
"""``CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION``: making a plan takes up to seconds."""

_HANDLE, _DATA_TYPE, _INT64, _FLOAT, _ADDRESS, _MODE, _HEURISTIC, _NOTE, _DESCRIPTOR, _BEHAVIOR = (
    0, 1, 3, 4, 6, 7, 8, 11, 15, 19,
)  # fmt: skip
_C_TYPES: Final[Mapping[int, Any]] = {
    _HANDLE: c_void_p,
    _INT64: c_int64,
    _FLOAT: c_float,
    _ADDRESS: c_void_p,
    _DESCRIPTOR: c_void_p,
}
"""``cudnnBackendAttributeType_t``: of an attribute's elements. Those that are not here are enumerations."""

_KINDS: Final[Mapping[str, tuple[int, Mapping[str, tuple[int, int]]]]] = {
    "tensor": (
        17,
        {
            "byte_alignment": (900, _INT64),
            "data_type": (901, _DATA_TYPE),
            "dimensions": (902, _INT64),
            "strides": (903, _INT64),
            "unique_id": (906, _INT64),
        },
    ),
    "convolution": (
        1,
        {
            "comp_type": (100, _DATA_TYPE),
            "conv_mode": (101, _MODE),
            "dilations": (102, _INT64),
            "filter_strides": (103, _INT64),
            "post_paddings": (104, _INT64),
            "pre_paddings": (105, _INT64),
            "spatial_dims": (106, _INT64),
        },
    ),
    "convolution_forward": (
        10,
        {
            "alpha": (700, _FLOAT),
            "beta": (701, _FLOAT),
            "conv_desc": (702, _DESCRIPTOR),
            "w": (703, _DESCRIPTOR),
            "x": (704, _DESCRIPTOR),
            "y": (705, _DESCRIPTOR),
        },
    ),
    "convolution_bwd_data": (
        12,
        {
            "alpha": (706, _FLOAT),
            "beta": (707, _FLOAT),
            "conv_desc": (708, _DESCRIPTOR),
            "w": (709, _DESCRIPTOR),
            "dx": (710, _DESCRIPTOR),
            "dy": (711, _DESCRIPTOR),
        },
    ),
    "convolution_bwd_filter": (
        11,
        {
            "alpha": (712, _FLOAT),
            "beta": (713, _FLOAT),
            "conv_desc": (714, _DESCRIPTOR),
            "dw": (715, _DESCRIPTOR),
            "x": (716, _DESCRIPTOR),
            "dy": (717, _DESCRIPTOR),
        },
    ),
    "operationgraph": (15, {"handle": (800, _HANDLE), "ops": (801, _DESCRIPTOR)}),
    "engineheur": (
        4,
        {"mode": (200, _HEURISTIC), "operation_graph": (201, _DESCRIPTOR), "results": (202, _DESCRIPTOR)},
    ),
    "engine": (2, {"numerical_note": (1303, _NOTE), "behavior_note": (1305, _BEHAVIOR)}),
    "enginecfg": (3, {"engine": (300, _DESCRIPTOR)}),
    "execution_plan": (
        5,
        {"handle": (400, _HANDLE), "engine_config": (401, _DESCRIPTOR), "workspace_size": (402, _INT64)},
    ),
    "variant_pack": (
        16,
        {"unique_ids": (1000, _INT64), "data_pointers": (1001, _ADDRESS), "workspace": (1003, _ADDRESS)},
    ),
}
"""For each kind of descriptor its number, and for its attributes their numbers and types."""

_ARGUMENT_TYPES: Final[Mapping[str, list[Any]]] = {
    "cudnnCreate": [c_void_p],
    "cudnnSetStream": [c_void_p, c_void_p],
    "cudnnBackendCreateDescriptor": [c_int, c_void_p],
    "cudnnBackendDestroyDescriptor": [c_void_p],
    "cudnnBackendSetAttribute": [c_void_p, c_int, c_int, c_int64, c_void_p],
    "cudnnBackendGetAttribute": [c_void_p, c_int, c_int, c_int64, c_void_p, c_void_p],
    "cudnnBackendFinalize": [c_void_p],
    "cudnnBackendExecute": [c_void_p, c_void_p, c_void_p],
}


class Unsupported(Exception):
    """cuDNN cannot compute this."""


class Library:
    """The functions of cuDNN, and a handle for each thread and device.

    Args:
        functions: The loaded library.

    Raises:
        AttributeError: It lacks one of the functions.
    """

    def __init__(self, functions: Any) -> None:
        self._functions = {name: getattr(functions, name) for name in _ARGUMENT_TYPES}
        self.version = int(functions.cudnnGetVersion())
        self._local = threading.local()

    @classmethod
    def load(cls, path: str) -> Library:
        """The library in a file. Raises OSError if it cannot be loaded."""
        functions = ctypes.CDLL(path)
        for name, types in _ARGUMENT_TYPES.items():
            getattr(functions, name).argtypes = types
        functions.cudnnGetVersion.restype = ctypes.c_size_t
        return cls(functions)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function.

        Raises:
            Unsupported: What it is asked for cannot be made.
            UnknownError: Another error of cuDNN.
        """
        status = self._functions[name](*arguments)
        if status in _UNSUPPORTED:
            raise Unsupported(f"{name}: {status}")
        if status:
            raise UnknownError(f"cuDNN's {name} failed with status {status}")

    def destroy(self, descriptor: c_void_p) -> None:
        """Destroy a descriptor."""
        self._functions["cudnnBackendDestroyDescriptor"](descriptor)

    def handle(self, xp: ArrayModule) -> c_void_p:
        """The calling thread's handle for the current device, whose work goes to the current stream."""
        handles = self._local.__dict__
        name = f"of {xp.cuda.runtime.getDevice()}"
        stream = xp.cuda.get_current_stream().ptr
        if name not in handles:
            place = (c_void_p * 1)()
            self.call("cudnnCreate", place)
            handles[name] = c_void_p(place[0]), None
        handle, used = handles[name]
        if used != stream:
            self.call("cudnnSetStream", handle, c_void_p(stream))
            handles[name] = handle, stream
        found: c_void_p = handle
        return found


class Descriptor:
    """An object of cuDNN with attributes of these values, destroyed with this one.

    Args:
        library: The library.
        kind: What it is: a key of `_KINDS`.
        is_final: Whether it is ready once its attributes are set; else cuDNN fills it in.
        **attributes: A value or a sequence of values for each attribute.

    Raises:
        Unsupported: There is no such object.
    """

    def __init__(self, library: Library, kind: str, is_final: bool = True, **attributes: Any) -> None:
        self._library = library
        self._kept: Mapping[str, Any] = attributes  # it refers to others, which have to stay
        self._as_parameter_ = c_void_p()
        self._number, self._attributes = _KINDS[kind]
        place = (c_void_p * 1)()
        library.call("cudnnBackendCreateDescriptor", self._number, place)
        self._as_parameter_ = c_void_p(place[0])
        for name, value in attributes.items():
            number, kind_of_element = self._attributes[name]
            values = _array(kind_of_element, value)
            library.call("cudnnBackendSetAttribute", self, number, kind_of_element, len(values), values)
        if is_final:
            library.call("cudnnBackendFinalize", self)

    def __del__(self) -> None:
        if self._as_parameter_:
            self._library.destroy(self._as_parameter_)

    def get(self, name: str, most: int = 1) -> list[int]:
        """Numbers that are the value of an attribute, at most so many."""
        number, kind = self._attributes[name]
        return list(self._read(number, kind, (_C_TYPES.get(kind, c_int) * most)()))

    def fill(self, name: str, descriptors: Sequence[Descriptor]) -> int:
        """Let cuDNN fill in descriptors, as the value of an attribute. Returns how many it has filled in."""
        number, kind = self._attributes[name]
        filled = len(self._read(number, kind, _array(kind, descriptors)))
        for descriptor in descriptors:
            descriptor._kept = {"origin": self}
        return filled

    def _read(self, number: int, kind: int, values: Any) -> Any:
        count = (c_int64 * 1)()
        self._library.call("cudnnBackendGetAttribute", self, number, kind, len(values), count, values)
        return values[: min(count[0], len(values))]


def _array(kind: int, value: Any) -> Any:
    values = value if isinstance(value, Sequence) else [value]
    if kind in (_DESCRIPTOR, _HANDLE):
        values = [(each._as_parameter_ if isinstance(each, Descriptor) else each).value for each in values]
    return (_C_TYPES.get(kind, c_int) * len(values))(*values)


@once
def library() -> Library | None:
    """The library; None where it is not installed, not wanted, or cannot be loaded, of which a warning tells."""
    if os.environ.get(PATHS_VARIABLE) == "numpy" or util.find_spec(_PACKAGE.partition(".")[0]) is None:
        return None
    found = util.find_spec(_PACKAGE)
    if found is None:
        return None
    paths = [Path(folder) / "lib" / _FILE for folder in found.submodule_search_locations or ()]
    try:
        loaded = Library.load(str(next(path for path in paths if path.exists())))
        tensor(loaded, 1, np.dtype(np.float32), [1], [1])  # it loads most of itself now, or fails
        return loaded
    except (OSError, StopIteration, AttributeError, UnknownError, Unsupported) as error:
        warnings.warn(
            f"cuDNN is installed but cannot be used, so CuPy computes convolutions instead: {error!r}. "
            f"{PATHS_VARIABLE}=numpy turns this warning off",
            stacklevel=2,
        )
        return None


def tensor(
    library: Library, number: int, dtype: NumpyDType, sizes: Sequence[int], strides: Sequence[int]
) -> Descriptor:
    """A tensor; plans take its address by its `number`. Strides are in elements."""
    return Descriptor(
        library,
        "tensor",
        unique_id=number,
        data_type=DATA_TYPES[dtype.name],
        dimensions=sizes,
        strides=strides,
        byte_alignment=ALIGNMENT,
    )


class Plan:
    """How to compute a graph of operations.

    Args:
        library: The library.
        handle: The thread's handle.
        engine: The engine's configuration.

    Attributes:
        workspace_bytes: Memory that it takes while it runs.

    Raises:
        Unsupported: The engine cannot compute the graph after all.
    """

    def __init__(self, library: Library, handle: c_void_p, engine: Descriptor) -> None:
        self._library = library
        self._plan = Descriptor(library, "execution_plan", handle=handle, engine_config=engine)
        self.workspace_bytes = self._plan.get("workspace_size")[0]

    def run(self, xp: ArrayModule, arrays: Mapping[int, Array]) -> None:
        """Compute, on arrays by the numbers of their tensors."""
        workspace = xp.empty(max(self.workspace_bytes, 1), xp.uint8)
        pack = Descriptor(
            self._library,
            "variant_pack",
            unique_ids=list(arrays),
            data_pointers=[address_on_device(array) for array in arrays.values()],
            workspace=address_on_device(workspace),
        )
        self._library.call("cudnnBackendExecute", self._library.handle(xp), self._plan, pack)


def plans(library: Library, xp: ArrayModule, operation: Descriptor, *, exact: bool, most_bytes: int) -> Iterator[Plan]:
    """Plans for an operation, the best first by cuDNN's estimate.

    They give the same bits whenever they run. None compiles code.

    Args:
        library: The library.
        xp: CuPy, whose current device is meant.
        operation: What to compute.
        exact: Whether numbers must not be rounded before they are multiplied.
        most_bytes: The most memory that a plan may take beside its tensors.
    """
    handle = library.handle(xp)
    graph = Descriptor(library, "operationgraph", handle=handle, ops=operation)
    heuristics = Descriptor(library, "engineheur", mode=_HEURISTICS, operation_graph=graph)
    engines = [Descriptor(library, "enginecfg", is_final=False) for _ in range(_MOST_ENGINES)]
    refused = {_REDUCED_SUMS, _NONDETERMINISTIC} | ({_TENSOR_CORE, _DOWN_CONVERT} if exact else set())
    for configuration in engines[: heuristics.fill("results", engines)]:
        engine = Descriptor(library, "engine", is_final=False)
        try:
            configuration.fill("engine", [engine])
            if refused.intersection(engine.get("numerical_note", _MOST_NOTES)):
                continue
            if _COMPILES in engine.get("behavior_note", _MOST_NOTES):
                continue
            plan = Plan(library, handle, configuration)
        except Unsupported:
            continue
        if plan.workspace_bytes <= most_bytes:
            yield plan


def is_aligned(array: Array) -> bool:
    """Whether an array lies as plans take it: contiguous, and at a multiple of `ALIGNMENT`."""
    return bool(array.flags.c_contiguous) and address_on_device(array) % ALIGNMENT == 0


def packed_strides(sizes: Sequence[int]) -> list[int]:
    """The strides, in elements, of a contiguous array."""
    return [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
