"""oneDNN's primitives that compiled code runs, on this thread and on helpers: without the interpreter in between."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from tfray.framework.op_def import Array
from tfray.ops.kernels.compiling import kernel
from tfray.ops.kernels.cpu_threads import core_count
from tfray.ops.kernels.native.onednn import Library, Primitive, aligned_scratch, check


class PrimitiveBatch:
    """Primitives that are independent of each other. Any number of threads may run them at once.

    Args:
        dnnl: The library.
        primitives: The primitives, of equally many arguments.
    """

    def __init__(self, dnnl: Library, primitives: Sequence[Primitive]) -> None:
        self._dnnl = dnnl
        self._primitives = primitives
        self._width = len(primitives[0].layouts)
        self._scratch_bytes = max(primitive.scratch_bytes for primitive in primitives)
        self._bound = threading.local()

    @cached_property
    def _constants(self) -> tuple[Array, ...]:
        functions = np.array(self._dnnl.native_functions())
        handles = np.array([primitive.handle for primitive in self._primitives])
        return functions, handles

    def run(self, addresses: Array, is_large: bool) -> None:
        """Compute.

        Args:
            addresses: Where each argument of each primitive lies: int64 ``[primitives, arguments]``.
            is_large: Whether helpers take part.
        """
        bound = self._bound
        if not hasattr(bound, "arrays"):
            made = [primitive.bind() for primitive in self._primitives]
            bound.kept = made
            memories = np.array([each.memories[: self._width] for each in made])
            scratch = np.array([each.memories[self._width] if len(each.memories) > self._width else 0 for each in made])
            arguments = np.array([each.address for each in made])
            bound.arrays = arguments, np.array([len(each.memories) for each in made]), memories, scratch
            bound.streams = np.array([each.value or 0 for each in self._dnnl.streams(core_count())])
        arguments, counts, memories, scratch_memories = bound.arrays
        scratches = bound.streams  # any numbers, where no primitive has a scratchpad
        if self._scratch_bytes:
            threads = range(len(bound.streams))
            scratches = np.array([aligned_scratch(f"onednn{thread}", self._scratch_bytes) for thread in threads])
        functions, handles = self._constants
        status = np.zeros(1, np.int64)
        loop = kernel("primitives", "execute")
        values = functions, self._width, handles, arguments, counts, memories, addresses, scratch_memories, scratches
        self._dnnl.on_one_thread(lambda: loop.run(len(handles), 1, *values, bound.streams, status, is_large=is_large))
        check(int(status[0]))
