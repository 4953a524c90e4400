"""oneDNN's primitives that compiled code runs, on this thread and on helpers: without the interpreter in between."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np

from tfray.framework.op_def import Array
from tfray.ops.kernels.compiling import kernel
from tfray.ops.kernels.cpu_threads import MOST_THREADS
from tfray.ops.kernels.native.onednn import Library, Primitive, aligned_scratch, check

SCRATCH: Final = -1
"""In place of an array's number: a buffer of the thread that computes, for what one primitive hands to the next."""

MORE_SCRATCH: Final = -2
"""Another such buffer."""

_SCRATCHPAD: Final = -3
"""Likewise the library's own scratchpad."""

_BUFFERS: Final = 3
"""Buffers of a thread: these."""

_local = threading.local()


def _own_buffers(threads: int, sizes_bytes: tuple[int, ...]) -> Array:
    """Where the buffers of each thread lie: ``[threads, _BUFFERS]`` at least. They are the calling thread's own."""
    known, own = getattr(_local, "own", ((0,) * _BUFFERS, np.zeros((0, _BUFFERS), np.int64)))
    if threads > len(own) or any(size > there for size, there in zip(sizes_bytes, known, strict=True)):
        threads, sizes_bytes = max(threads, len(own)), tuple(map(max, sizes_bytes, known))
        own = np.zeros((threads, _BUFFERS), np.int64)
        for place, size in enumerate(sizes_bytes):
            own[:, place] = [aligned_scratch(f"onednn{place}_{thread}", size) for thread in range(threads)]
        _local.own = sizes_bytes, own
    return own


class Place(NamedTuple):
    """Where an argument of a primitive lies.

    Attributes:
        array: Which of the arrays that `PrimitiveBatch.run` is given, or `SCRATCH`, or `MORE_SCRATCH`.
        offset: Bytes from its begin.
    """

    array: int
    offset: int = 0


class Call(NamedTuple):
    """A call of a primitive.

    Attributes:
        primitive: The primitive.
        places: Where each of its arguments lies.
        rectified: Floats of its result, the last argument, of which negative ones become 0 while they are in the
            cache; 0 for none. The library's own way would make 0 of NaN too.
    """

    primitive: Primitive
    places: Sequence[Place]
    rectified: int = 0


class PrimitiveBatch:
    """Items of work that are independent of each other. Any number of threads may run them at once.

    Args:
        dnnl: The library.
        items: The calls of each item, in order.
        arrays: Number of arrays that `run` is given.
        scratch_bytes: Sizes of `SCRATCH` and `MORE_SCRATCH`.
    """

    def __init__(
        self,
        dnnl: Library,
        items: Sequence[Sequence[Call]],
        arrays: int,
        scratch_bytes: tuple[int, int] = (0, 0),
    ) -> None:
        self._dnnl = dnnl
        calls = [call for item in items for call in item]
        self._primitives = [each.primitive for each in calls]
        self._own_bytes = *scratch_bytes, max(primitive.scratch_bytes for primitive in self._primitives)
        flat: list[Place] = []
        bounds, results = [0], []
        for primitive, taken, _ in calls:
            flat += taken
            results.append(len(flat) - 1)
            if primitive.scratch_bytes:
                flat.append(Place(_SCRATCHPAD))
            bounds.append(len(flat))
        items_at = np.array([0, *accumulate(len(item) for item in items)])
        handles = np.array([primitive.handle for primitive in self._primitives])
        self._count, self._arrays = len(items), arrays
        self._threads = min(len(items), MOST_THREADS)
        self._fixed = np.array(dnnl.native_functions()), items_at, np.array(bounds), handles
        self._places = tuple(np.array(flat).T.copy())
        self._results = np.array(results), np.array([each.rectified for each in calls])
        self._bound = threading.local()

    def run(self, *arrays: int, is_large: bool = True) -> None:
        """Compute.

        Args:
            *arrays: Where each array begins.
            is_large: Whether helpers take part.
        """
        bound = self._bound
        own = _own_buffers(self._threads, self._own_bytes)
        if getattr(bound, "own", None) is not own:
            self._bind(own)
        bound.bases[:] = arrays
        self._dnnl.on_one_thread(lambda: bound.call.run(is_large))
        if bound.status[0]:
            bound.own = None
            check(int(bound.status[0]))

    def _bind(self, own: Array) -> None:
        """Prepare the call for this thread."""
        bound = self._bound
        bound.kept = [primitive.bind() for primitive in self._primitives]
        memories = np.array([memory for each in bound.kept for memory in each.memories])
        arguments = np.array([each.address for each in bound.kept])
        streams = np.array([stream.value for stream in self._dnnl.streams(self._threads)])
        bound.bases, bound.status = np.zeros(self._arrays, np.int64), np.zeros(1, np.int64)
        bound.own = own
        data = *self._places, bound.bases, _BUFFERS, own, streams
        made = *self._results, np.zeros(self._threads, np.int64), bound.status
        bound.arrays = *self._fixed, arguments, memories, *data, *made
        bound.call = kernel("primitives", "execute").bind(self._count, 1, *bound.arrays)
