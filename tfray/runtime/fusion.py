"""Elementwise operations on large arrays, fused: computed together, part by part, while a part is in the cache.

A group is a run of elementwise operations whose results have one shape. Its results that nothing else needs never
exist as a whole; the others are filled part by part, on several threads where the work is worth it. A group is compiled
as one loop where that is possible; else the operations' kernels are called on each part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np

from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, Kernel, KernelContext, KernelFunction
from tfray.ops.kernels.compiling import STEP_ELEMENTS, CompiledKernel
from tfray.ops.kernels.copies import contiguous, copy
from tfray.ops.kernels.cpu_threads import last_cache_bytes, parallel_for, scratch
from tfray.ops.kernels.element_loops import UFUNC_ELEMENTS, Assignment, Input, element_loop, has_own_functions
from tfray.ops.kernels.tiles import LARGE_ELEMENTS, cut, run_tiles
from tfray.runtime.segment_body import Body

MIN_ELEMENTS: Final = 1 << 15
"""Least elements of results that are fused: on smaller arrays the calls take as long as the work."""

_MIN_IN_PARTS: Final = 1 << 17
"""Least elements of results that are computed part by part, where a group is not compiled as one loop. Smaller arrays
(up to 512 KiB of float32) stay in the cache anyhow."""

MIN_THREADED_NS: Final = 400_000
"""Nanoseconds of work on one thread from which a second thread pays."""

_CACHE_BYTES: Final = 1 << 19
"""Bytes that one part of all inputs and results may take together: half of a core's second-level cache of 1 MB."""

_MIN_TILE, _MAX_TILE, _MAX_THREADED_TILE = 1 << 14, 1 << 16, 1 << 18
"""Elements of a part: least (in smaller parts the calls take longer than the work), most, and most on threads."""

_THREADED_CALL_NS: Final = 60_000
"""Nanoseconds that one call of a kernel on a thread should take: each call hands over the interpreter's lock twice."""

_BAND_ELEMENTS: Final = 1 << 19
"""Elements of a transposed array that are copied at a time: 2 MB of float32, of which the loop finds most in a cache.
With less, a band of a matrix of long rows would be too narrow to use all of the cache lines that it reads."""


@dataclass
class FusedGroup:
    """Operations to compute together.

    Attributes:
        ops: The operations, in order.
        first: Index of the first in the body.
        last: Index of the last. Operations between the two that are not in `ops` are constants and do not run.
        shape: Shape of every result.
        width: Elements of a row, if an input is broadcast along rows or columns; None if no input is.
        forms: The form of each input from outside: ``whole`` (the shape of the results), ``row`` (the same row for
            every row), ``column`` (one element for each row) or ``scalar``.
        internal: Results that nothing outside the group needs.
    """

    ops: list[Operation]
    first: int
    last: int
    shape: tuple[int, ...]
    width: int | None = None
    forms: dict[Tensor, str] = field(default_factory=dict)
    internal: set[Tensor] = field(default_factory=set)

    @property
    def size(self) -> int:
        """Number of elements of each result."""
        return math.prod(self.shape)

    @property
    def results(self) -> list[Tensor]:
        """The result of each operation."""
        return [op.outputs[0] for op in self.ops]

    def is_repeated(self, tensor: Tensor) -> bool:
        """Whether an input is a view that repeats its elements, of which each is taken once: see `once`."""
        return self.forms.get(tensor, "whole") != "whole" and sizes_of(tensor) == self.shape

    @property
    def matrix_shape(self) -> tuple[int, ...]:
        """The form in which whole arrays are cut along their first axis."""
        return (self.size,) if self.width is None else (self.size // self.width, self.width)


def find_groups(body: Body, kernel_of: Callable[[Operation], Kernel]) -> list[FusedGroup]:
    """The groups of a body whose shapes are known, in order."""
    groups: list[FusedGroup] = []
    current: FusedGroup | None = None
    for index, op in enumerate(body.ops):
        if op.outputs and all(tensor in body.constants for tensor in op.outputs):
            continue
        added = _extended(current, op, index, kernel_of)
        if added is None:
            groups += [current] if current else []
            added = _extended(None, op, index, kernel_of)
        current = added
    groups += [current] if current else []
    chosen = [group for group in groups if _pays(group, kernel_of)]
    find_internal(body, chosen)
    return chosen


def _extended(
    group: FusedGroup | None, op: Operation, index: int, kernel_of: Callable[[Operation], Kernel]
) -> FusedGroup | None:
    """`group`, or a new group for None, with one more operation; None when the operation does not fit."""
    if not _is_elementwise(op, kernel_of):
        return None
    shape = sizes_of(op.outputs[0])
    if group is None:
        group = FusedGroup([], index, index, shape)
    if shape != group.shape:
        return None
    forms, width = dict(group.forms), group.width
    own = set(group.results)
    for tensor in op.inputs:
        if tensor in own:
            continue
        form, needed = _form_in(tensor, shape, width)
        if form is None or (needed is not None and width not in (None, needed)):
            return None
        forms[tensor], width = form, needed if width is None else width
    return FusedGroup([*group.ops, op], group.first, index, shape, width, forms)


def _is_elementwise(op: Operation, kernel_of: Callable[[Operation], Kernel]) -> bool:
    if len(op.outputs) != 1 or op.op_def.stateful:
        return False
    kernel = kernel_of(op)
    flag = kernel.elementwise
    if not kernel.accepts_out or not (flag(op) if callable(flag) else flag):
        return False
    output = op.outputs[0]
    known = all(tensor.shape.is_fully_defined() for tensor in (output, *op.inputs))
    numeric = all(tensor.dtype.numpy.kind in "biufc" for tensor in (output, *op.inputs))
    return known and numeric and (output.shape.num_elements() or 0) >= MIN_ELEMENTS


def sizes_of(tensor: Tensor) -> tuple[int, ...]:
    """The sizes of a shape that is known."""
    return tuple(int(size) for size in tensor.shape.sizes if size is not None)


def form_of(own: tuple[int, ...], shape: tuple[int, ...]) -> tuple[str | None, int | None]:
    """How an input takes part in results of `shape` (see `FusedGroup.forms`), and the row length that this needs.

    Args:
        own: The sizes of the input.
        shape: The sizes of the results.
    """
    if own == shape:
        return "whole", None
    if math.prod(own) == 1:
        return "scalar", None
    row = own[next(i for i, size in enumerate(own) if size != 1) :]
    if row == shape[len(shape) - len(row) :]:
        return "row", math.prod(row)
    kept = max(i for i, size in enumerate(own) if size != 1) + 1
    if len(own) == len(shape) and own[:kept] == shape[:kept]:
        return "column", math.prod(shape[kept:])
    return None, None


def _form_in(tensor: Tensor, shape: tuple[int, ...], width: int | None) -> tuple[str | None, int | None]:
    """`form_of` a tensor in a group with rows of `width`. What a view repeats is taken once, where rows allow it."""
    form, needed = form_of(_sizes_once(tensor), shape)
    fits = form is not None and (needed is None or (width in (None, needed) and needed <= _MAX_TILE))
    return (form, needed) if fits else form_of(sizes_of(tensor), shape)


def _sizes_once(tensor: Tensor) -> tuple[int, ...]:
    """The sizes of a tensor; 1 for the dimensions along which it is a view that repeats what it shows."""
    sizes = sizes_of(tensor)
    if tensor.op.type != "ExpandReduced":
        return sizes
    reduced, _, axis = tensor.op.inputs
    if reduced.shape.num_elements() == 1:
        return (1,) * len(sizes)
    axes = constant_value(axis)
    repeated = set() if axes is None else {int(i) % len(sizes) for i in np.ravel(axes)}
    return tuple(1 if i in repeated else size for i, size in enumerate(sizes))


def _pays(group: FusedGroup, kernel_of: Callable[[Operation], Kernel]) -> bool:
    if group.size < _MIN_IN_PARTS and compiled_loop(group, kernel_of) is None:
        return False
    rows_fit = group.width is None or group.width <= _MAX_TILE  # a part has at least one row
    several = len(group.ops) > 1 or len(_summands(group)) > 2 or _has_shorter_loop(group, kernel_of)
    return rows_fit and (several or is_threaded(group, kernel_of) or bool(_transposed(group)))


def _has_shorter_loop(group: FusedGroup, kernel_of: Callable[[Operation], Kernel]) -> bool:
    """Whether the kernel of a single operation goes over its arrays several times, and a compiled loop once."""
    return kernel_of(group.ops[0]).ufunc is None and compiled_loop(group, kernel_of) is not None


def _summands(group: FusedGroup) -> list[Tensor]:
    """The terms of a group that is a single AddN; its kernel goes over the result once for each term but the first."""
    return list(group.ops[0].inputs) if group.ops[0].type == "AddN" else []


def _transposed(group: FusedGroup) -> list[Tensor]:
    return [tensor for tensor, form in group.forms.items() if form == "whole" and tensor.op.type == "Transpose"]


def is_threaded(group: FusedGroup, kernel_of: Callable[[Operation], Kernel]) -> bool:
    """Whether several threads pay: whether the group's work, by its kernels' `element_ns`, takes long enough."""
    return group.size * sum(kernel_of(op).element_ns for op in group.ops) >= MIN_THREADED_NS


def find_internal(body: Body, groups: Sequence[FusedGroup]) -> None:
    """Find what each group keeps to itself."""
    owner = {op: group for group in groups for op in group.ops}
    leaving = set(body.outputs)
    # What no operation takes is a target of the step, which asks for it as a whole.
    leaving.update({op.outputs[0] for op in owner} - {tensor for op in body.ops for tensor in op.inputs})
    for op in body.ops:
        for tensor in op.inputs:
            if tensor.op in owner and owner.get(op) is not owner[tensor.op]:
                leaving.add(tensor)
    for group in groups:
        group.internal = {tensor for tensor in group.results if tensor not in leaving}


def parts_of(group: FusedGroup, kernel_of: Callable[[Operation], Kernel]) -> list[slice]:
    """How the first axis of `FusedGroup.matrix_shape` is cut."""
    whole = sum(tensor.dtype.size for tensor, form in group.forms.items() if form == "whole")
    bytes_per_element = whole + sum(tensor.dtype.size for tensor in group.results)
    tile = min(max(_CACHE_BYTES // bytes_per_element, _MIN_TILE), _MAX_TILE)
    if is_threaded(group, kernel_of):
        typical_ns = sum(kernel_of(op).element_ns for op in group.ops) / len(group.ops)
        tile = max(tile, min(int(_THREADED_CALL_NS / typical_ns), _MAX_THREADED_TILE, group.size // 4))
    length = group.matrix_shape[0]
    count = min(length, -(-group.size // tile))
    bounds = [length * part // count for part in range(count + 1)]
    return [slice(first, last) for first, last in pairwise(bounds)]


def compiled_loop(group: FusedGroup, kernel_of: Callable[[Operation], Kernel]) -> CompiledKernel | None:
    """The group as a compiled loop; None if an operation of it cannot be compiled.

    Its arguments are the length of a row unless `FusedGroup.width` is None, the inputs in the order of
    `FusedGroup.forms`, and the results that are not internal.
    """
    names = {tensor: str(index) for index, tensor in enumerate([*group.forms, *group.results])}
    inputs = {names[tensor]: Input(tensor.dtype.numpy, form) for tensor, form in group.forms.items()}
    assignments = []
    for op in group.ops:
        element = element_of(op, kernel_of(op))
        if element is None:
            return None
        output = op.outputs[0]
        operands = tuple(names[tensor] for tensor in op.inputs)
        assignments.append(Assignment(names[output], element, operands, output.dtype.numpy))
    written = [tensor for tensor in group.results if tensor not in group.internal]
    whole = [tensor for tensor, form in group.forms.items() if form == "whole"]
    past_caches = group.size * sum(tensor.dtype.size for tensor in (*whole, *written)) > last_cache_bytes()
    return element_loop(inputs, assignments, [names[tensor] for tensor in written], past_caches=past_caches)


def element_of(op: Operation, kernel: Kernel) -> str | None:
    """An element of the result as an expression of those of the inputs; None if there is none."""
    if callable(kernel.element):
        return kernel.element(op)
    return kernel.element or UFUNC_ELEMENTS.get(kernel.ufunc or "")


def looped_function(op: Operation, kernel: Kernel, *, on_part: bool = False) -> KernelFunction | None:
    """What computes an operation outside of compiled groups to the same bits as within; None if its kernel does.

    An operation on one float32 array is computed by a compiled function of its own, if it has one, whenever the array
    has `MIN_ELEMENTS` or more. So its bits do not depend on what it is fused with.

    Args:
        op: The operation.
        kernel: Its kernel.
        on_part: Whether it is called on parts of such arrays.
    """
    element = element_of(op, kernel)
    if element is None or len(op.inputs) != 1 or not has_own_functions(element):
        return None
    size = op.outputs[0].shape.num_elements()
    if op.inputs[0].dtype is not dtypes.float32 or (size is not None and size < MIN_ELEMENTS):
        return None
    float32 = np.dtype(np.float32)
    loop = element_loop({"x": Input(float32)}, [Assignment("y", element, ("x",), float32)], ["y"])
    if loop is None:
        return None
    least = 0 if on_part else MIN_ELEMENTS
    least_threaded = math.inf if on_part else MIN_THREADED_NS / kernel.element_ns

    def function(ctx: KernelContext, x: Array, out: Array | None = None) -> Array:
        if x.size < least:
            return kernel.function(ctx, x, out=out)
        target = np.empty(x.shape, np.float32) if out is None or not out.flags.c_contiguous else out
        loop.run(x.size, STEP_ELEMENTS, np.ascontiguousarray(x), target, is_large=x.size >= least_threaded)
        if out is None or out is target:
            return target
        out[...] = target
        return out

    function.__name__ = f"looped_{op.type}"
    return function


def scratch_slots(group: FusedGroup, kernel_of: Callable[[Operation], Kernel]) -> dict[Tensor, str]:
    """The name of the thread's working memory in which each internal result's part lies; dead results are reused."""
    last_use = {tensor: op for op in group.ops for tensor in op.inputs}
    free: dict[Any, list[str]] = {}
    slots: dict[Tensor, str] = {}
    made = 0
    for op in group.ops:
        output = op.outputs[0]
        dying = [t for t in dict.fromkeys(op.inputs) if t in slots and last_use[t] is op]
        if output in group.internal:
            over = next((t for t in dying if _may_overwrite(kernel_of(op), op, t)), None)
            available = free.setdefault(output.dtype, [])
            if over is not None:
                dying.remove(over)
                slots[output] = slots[over]
            elif available:
                slots[output] = available.pop()
            else:
                slots[output], made = f"fused {made}", made + 1
        for tensor in dying:
            free.setdefault(tensor.dtype, []).append(slots[tensor])
    return slots


def _may_overwrite(kernel: Kernel, op: Operation, tensor: Tensor) -> bool:
    positions = [i for i, other in enumerate(op.inputs) if other is tensor]
    return tensor.dtype is op.outputs[0].dtype and all(i in kernel.may_overwrite for i in positions)


# -- what the generated code calls -----------------------------------------------------------------------


def run_parts(work: Callable[[slice], None], parts: Collection[slice], threaded: bool) -> None:
    """Run ``work(part)`` for every part, on several threads at once if `threaded`."""
    if not threaded:
        for part in parts:
            work(part)
        return
    cut = list(parts)
    parallel_for(lambda index: work(cut[index]), len(cut))


def run_loop(
    loop: CompiledKernel,
    shape: tuple[int, ...],
    width: int | None,
    forms: Sequence[str],
    threaded: bool,
    *arrays: Any,
) -> None:
    """Run a `compiled_loop`.

    Args:
        loop: The loop.
        shape: Shape of the results.
        width: Elements of a row, or None if it has no rows.
        forms: The form of each array; ``result`` for results.
        threaded: Whether on several threads.
        *arrays: Inputs, of any memory layout, and results.
    """
    results = [array for array, form in zip(arrays, forms, strict=True) if form == "result"]
    plain, transposed = list(arrays), set()
    for i, (array, form) in enumerate(zip(arrays, forms, strict=True)):
        if form not in ("whole", "result"):
            plain[i] = np.ascontiguousarray(array)
        elif not array.flags.c_contiguous:
            # A result may take the place of an input: each element is written after it was read, unless it moves.
            if any(np.may_share_memory(array, result) for result in results):
                plain[i] = contiguous(array)
            else:
                transposed.add(i)
    if not transposed:
        _run_loop_on(loop, math.prod(shape), width, threaded, plain)
        return
    shape = shape[next(axis for axis, size in enumerate(shape) if size > 1) :]
    row = math.prod(shape[1:])
    lengths = {"whole": row, "result": row, "column": row // (width or 1)}
    parts = cut(shape[0], min(shape[0], -(-math.prod(shape) // _BAND_ELEMENTS)))

    def run_band(number: int) -> None:
        part, band = parts[number], []
        for i, (array, form) in enumerate(zip(plain, forms, strict=True)):
            if i in transposed:  # copied band by band, so that the copy stays in the cache
                copied = part_buffer(f"transposed {i}", part, shape[1:], array.dtype)
                copy(copied, array.reshape(shape)[part], threads=False)
                band.append(copied)
            elif form in lengths:
                band.append(array.reshape(-1)[part.start * lengths[form] : part.stop * lengths[form]])
            else:
                band.append(array)
        _run_loop_on(loop, (part.stop - part.start) * row, width, False, band)

    run_tiles(run_band, len(parts), threaded or math.prod(shape) >= LARGE_ELEMENTS)


def _run_loop_on(loop: CompiledKernel, size: int, width: int | None, threaded: bool, arrays: Sequence[Any]) -> None:
    if width is None:
        loop.run(size, STEP_ELEMENTS, *arrays, is_large=threaded)
    else:
        loop.run(size // width, max(1, STEP_ELEMENTS // width), width, *arrays, is_large=threaded)


def once(array: Any, form: str, width: int | None) -> Any:
    """The elements that a view of the shape of the results repeats: in each row, in each column, or everywhere."""
    if form == "scalar":
        return array.reshape(-1)[:1]
    rows = array.reshape(-1, width)
    return rows[0] if form == "row" else rows[:, :1]


def in_form(array: Any, shape: tuple[int, ...]) -> Any:
    """`array` with that shape, copied first if it is not contiguous."""
    return (array if array.flags.c_contiguous else contiguous(array)).reshape(shape)


def part_buffer(slot: str, part: slice, rest: tuple[int, ...], dtype: Any) -> Any:
    """Working memory for a part."""
    return scratch(slot, (part.stop - part.start, *rest), dtype)
