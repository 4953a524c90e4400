"""cuDNN's C functions, in host memory and by NumPy: proves what tfray describes and the addresses that it passes.

It takes what cuDNN's graph API takes (cudnn_graph.h), refuses what that refuses, and computes convolutions of two
dimensions from the sizes, strides, paddings and addresses that it was given. Of its engines, one rounds as tensor cores
do, one says that its results change, one that it compiles: these two give NaN. Nothing is proved about cuDNN's own
engines.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from tests.support.gpu.fakegraphs import recorded

VERSION = 92800
DTYPES = {0: np.float32, 1: np.float64, 2: np.float16, 9: ml_dtypes.bfloat16}
BAD_PARAM, NOT_FINALIZED, SHAPE_MISMATCH, MISALIGNED, NOT_SUPPORTED = 2000, 2004, 2008, 2003, 3000

POINTWISE, CONVOLUTION, ENGINE, ENGINECFG, HEURISTICS, PLAN = range(6)
FORWARD, BACKWARD_FILTER, BACKWARD_DATA = 10, 11, 12
GRAPH, VARIANT_PACK, TENSOR = 15, 16, 17

TYPES_OF = {
    **{700 + i: kind for i, kind in enumerate((4, 4, 15, 15, 15, 15, 4, 4, 15, 15, 15, 15, 4, 4, 15, 15, 15, 15))},
    100: 1,
    101: 7,
    102: 3,
    103: 3,
    104: 3,
    105: 3,
    106: 3,
    200: 8,
    201: 15,
    202: 15,
    300: 15,
    400: 0,
    401: 15,
    402: 3,
    800: 0,
    801: 15,
    900: 3,
    901: 1,
    902: 3,
    903: 3,
    906: 3,
    1000: 3,
    1001: 6,
    1003: 6,
    1303: 11,
    1305: 19,
}
"""The type of each attribute's elements."""

NEEDED = {
    CONVOLUTION: (100, 101, 102, 103, 104, 105, 106),
    HEURISTICS: (200, 201),
    PLAN: (400, 401),
    FORWARD: tuple(range(700, 706)),
    BACKWARD_DATA: tuple(range(706, 712)),
    BACKWARD_FILTER: tuple(range(712, 718)),
    GRAPH: (800, 801),
    VARIANT_PACK: (1000, 1001, 1003),
    TENSOR: (900, 901, 902, 903, 906),
}
"""Attributes without which a descriptor cannot be finalized."""

WORKSPACE_BYTES = 64


@dataclass(frozen=True)
class Engine:
    """What an engine says of itself: numerical notes and notes on its behaviour."""

    notes: tuple[int, ...] = ()
    behavior: tuple[int, ...] = ()


ENGINES = (Engine((4,)), Engine((), (0,)), Engine((0, 1)), Engine(), Engine((5,)))
"""One whose results change, one that compiles, one with tensor cores, and two without."""


@dataclass
class Object:
    """A descriptor."""

    kind: int
    attributes: dict[int, list[Any]] = field(default_factory=dict)
    is_final: bool = False
    engine: Engine | None = None
    graph: int = 0


class FakeCudnn:
    """The functions of the library.

    Attributes:
        executed: Each operation that was computed: its kind and the engine.
        alive: Descriptors that have not been destroyed.
    """

    def __init__(self) -> None:
        self.executed: list[tuple[int, Engine]] = []
        self.alive: dict[int, Object] = {}
        self._numbers = itertools.count(1 << 20)

    def cudnnGetVersion(self) -> int:
        return VERSION

    def cudnnCreate(self, place: Any) -> int:
        place[0] = next(self._numbers)
        return 0

    def cudnnSetStream(self, handle: Any, stream: Any) -> int:
        return 0 if _pointer(handle) else BAD_PARAM

    def cudnnBackendCreateDescriptor(self, kind: int, place: Any) -> int:
        place[0] = number = next(self._numbers)
        self.alive[number] = Object(kind)
        return 0

    def cudnnBackendDestroyDescriptor(self, descriptor: Any) -> int:
        del self.alive[_pointer(descriptor)]
        return 0

    def cudnnBackendSetAttribute(self, descriptor: Any, name: int, kind: int, count: int, values: Any) -> int:
        found = self._object(descriptor)
        if found.is_final or TYPES_OF[name] != kind or len(values) != count:
            return BAD_PARAM
        found.attributes[name] = list(values)
        return 0

    def cudnnBackendFinalize(self, descriptor: Any) -> int:
        found = self._object(descriptor)
        if any(name not in found.attributes for name in NEEDED[found.kind]):
            return BAD_PARAM
        for name, values in found.attributes.items():
            if TYPES_OF[name] == 15 and not all(self.alive[value].is_final for value in values):
                return NOT_FINALIZED
        status = self._check(found)
        found.is_final = not status
        return status

    def cudnnBackendGetAttribute(
        self, descriptor: Any, name: int, kind: int, most: int, count: Any, values: Any
    ) -> int:
        found = self._object(descriptor)
        if TYPES_OF[name] != kind or len(values) != most:
            return BAD_PARAM
        if found.kind in (HEURISTICS, PLAN) and not found.is_final:
            return NOT_FINALIZED
        if name in (202, 300):
            engines: Sequence[Engine | None] = ENGINES if name == 202 else [found.engine]
            for value, engine in zip(values, engines, strict=False):
                filled = self.alive[value]
                filled.engine, filled.is_final = engine, True
                filled.graph = found.attributes[201][0] if name == 202 else found.graph
            count[0] = len(engines)
            return 0
        numbers: Sequence[int] = [WORKSPACE_BYTES]
        if found.kind == ENGINE:
            assert found.engine is not None
            numbers = found.engine.notes if name == 1303 else found.engine.behavior
        values[: len(numbers)] = list(numbers)
        count[0] = len(numbers)
        return 0

    @partial(recorded, target=lambda *_: 0)
    def cudnnBackendExecute(self, handle: Any, plan: Any, pack: Any) -> int:
        planned, given = self._object(plan), self._object(pack)
        if not (_pointer(handle) and planned.is_final and given.is_final):
            return NOT_FINALIZED
        configuration = self.alive[planned.attributes[401][0]]
        assert configuration.engine is not None
        ctypes.memset(given.attributes[1003][0], 0xFF, WORKSPACE_BYTES)
        addresses = dict(zip(given.attributes[1000], given.attributes[1001], strict=True))
        operation = self.alive[self.alive[configuration.graph].attributes[801][0]]
        status = self._convolve(operation, addresses, configuration.engine)
        self.executed.append((operation.kind, configuration.engine))
        return status

    # -- what is behind them -----------------------------------------------------------------------------

    def _object(self, descriptor: Any) -> Object:
        return self.alive[_pointer(descriptor)]

    def _check(self, found: Object) -> int:
        values = found.attributes
        if found.kind == TENSOR:
            sizes, strides = values[902], values[903]
            if len(sizes) != len(strides) or min(sizes) < 1 or values[901][0] not in DTYPES or values[900][0] != 16:
                return BAD_PARAM
        elif found.kind == CONVOLUTION:
            if any(len(values[name]) != values[106][0] for name in (102, 103, 104, 105)):
                return BAD_PARAM
            if values[104] != values[105] or values[101] != [1]:
                return NOT_SUPPORTED
        elif found.kind in (FORWARD, BACKWARD_DATA, BACKWARD_FILTER):
            x, w, y, convolution = self._parts(found)
            if len({part.attributes[901][0] for part in (x, w, y)}) > 1:
                return NOT_SUPPORTED
            expected = [x.attributes[902][0], w.attributes[902][0], *_counts(x, w, convolution)]
            if y.attributes[902] != expected or x.attributes[902][1] != w.attributes[902][1]:
                return SHAPE_MISMATCH
        return 0

    def _parts(self, operation: Object) -> tuple[Object, Object, Object, Object]:
        names = {
            FORWARD: (704, 703, 705, 702),
            BACKWARD_DATA: (710, 709, 711, 708),
            BACKWARD_FILTER: (716, 715, 717, 714),
        }
        x, w, y, convolution = (self.alive[operation.attributes[name][0]] for name in names[operation.kind])
        return x, w, y, convolution

    def _convolve(self, operation: Object, addresses: dict[int, int], engine: Engine) -> int:
        *tensors, convolution = self._parts(operation)
        arrays = []
        for tensor in tensors:
            address = addresses[tensor.attributes[906][0]]
            if address % tensor.attributes[900][0]:
                return MISALIGNED
            arrays.append(_at(address, tensor))
        x, w, y = arrays
        factors = {FORWARD: (x, w), BACKWARD_DATA: (y, w), BACKWARD_FILTER: (x, y)}[operation.kind]
        wide = [_multiplied(array, engine) for array in factors]
        padding, strides, dilations = (convolution.attributes[name] for name in (105, 103, 102))
        sizes = [size + 2 * pad for size, pad in zip(x.shape[2:], padding, strict=True)]
        padded = np.zeros((*x.shape[:2], *sizes))
        inner = (slice(None), slice(None), *(slice(p, p + n) for p, n in zip(padding, x.shape[2:], strict=True)))
        if operation.kind != BACKWARD_DATA:
            padded[inner] = wide[0]
        result = np.zeros({FORWARD: y, BACKWARD_DATA: x, BACKWARD_FILTER: w}[operation.kind].shape)
        for place in itertools.product(*map(range, w.shape[2:])):
            starts = [i * dilation for i, dilation in zip(place, dilations, strict=True)]
            part = (slice(None), slice(None), *(
                slice(start, start + (count - 1) * stride + 1, stride)
                for start, count, stride in zip(starts, y.shape[2:], strides, strict=True)
            ))  # fmt: skip
            taken = (slice(None), slice(None), *place)
            if operation.kind == FORWARD:
                result += np.einsum("nchw,kc->nkhw", padded[part], wide[1][taken])
            elif operation.kind == BACKWARD_DATA:
                padded[part] += np.einsum("nkhw,kc->nchw", wide[0], wide[1][taken])
            else:
                result[taken] = np.einsum("nchw,nkhw->kc", padded[part], wide[1])
        if operation.kind == BACKWARD_DATA:
            result = padded[inner]
        target = {FORWARD: y, BACKWARD_DATA: x, BACKWARD_FILTER: w}[operation.kind]
        wrong = 4 in engine.notes or engine.behavior
        target[...] = np.nan if wrong else result.astype(target.dtype)
        return 0


def _pointer(value: Any) -> int:
    return int(getattr(value, "_as_parameter_", value).value or 0)


def _counts(x: Object, w: Object, convolution: Object) -> list[int]:
    """Windows along each axis."""
    sizes, windows = x.attributes[902][2:], w.attributes[902][2:]
    padding, strides, dilations = (convolution.attributes[name] for name in (105, 103, 102))
    return [
        (size + 2 * pad - ((window - 1) * dilation + 1)) // stride + 1
        for size, window, pad, stride, dilation in zip(sizes, windows, padding, strides, dilations, strict=True)
    ]


def _at(address: int, tensor: Object) -> np.ndarray:
    sizes, strides = tensor.attributes[902], tensor.attributes[903]
    dtype = np.dtype(DTYPES[tensor.attributes[901][0]])
    elements = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)) + 1
    memory = (ctypes.c_char * (elements * dtype.itemsize)).from_address(address)
    return np.ndarray(sizes, dtype, memory, strides=[stride * dtype.itemsize for stride in strides])


def _multiplied(array: np.ndarray, engine: Engine) -> np.ndarray:
    """The numbers that the engine multiplies: tensor cores take 10 bits of a float32."""
    if array.dtype == np.float32 and 0 in engine.notes:
        bits = np.ascontiguousarray(array).view(np.uint32)
        array = (bits & np.uint32(0xFFFFE000)).view(np.float32)
    return array.astype(np.float64)
