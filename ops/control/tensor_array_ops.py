"""`TensorArray`: numbered tensors of one dtype, written and read one by one in loops.

A TensorArray is an ordinary value. Its *flow*, a variant tensor, carries all elements, and every write gives a new
flow. So it passes through branches and loops, and its gradient is a TensorArray too. The data flow alone orders reads
and writes: no control dependencies are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, not_differentiable, on_every_device, register
from tfray.framework.shape_functions import scalar
from tfray.framework.tensor_list import MISSING, TensorList
from tfray.framework.tensor_shape import UNKNOWN, ShapeLike, TensorShape, as_shape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.array_ops import cast
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.arrays.shape_ops import shape as shape_of
from tfray.ops.control.element_checks import check_element, check_scattered, check_split, check_writable
from tfray.ops.control.list_elements import elements_to_join, elements_to_stack, no_elements, no_rows, unwritten


class _Elements:
    """What is known of the elements, shared by all stages of one TensorArray."""

    def __init__(self, shape: TensorShape, infer: bool) -> None:
        self.shape = shape
        self.infer = infer
        self.seen = shape.rank is not None

    def merge(self, shape: TensorShape) -> None:
        """Take note of the shape of an element."""
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"the elements of the TensorArray have shape {self.shape}, and one of {shape} is written")
        if self.infer and not self.seen:
            self.shape, self.seen = shape, True


class TensorArray:
    """An array of tensors, indexed from 0. Each element is written once; every write gives a new TensorArray.

    Args:
        dtype: Dtype of the elements.
        size: int32 scalar: number of elements, at the beginning if it grows. None stands for 0, with `dynamic_size`.
        dynamic_size: Let writes beyond the end make it grow.
        clear_after_read: Accepted for TensorFlow 1's sake: elements are freed when nothing reads them any more.
        tensor_array_name: Accepted for TensorFlow 1's sake.
        handle: Not taken; kept for the position of arguments.
        flow: A flow to continue from.
        infer_shape: Require elements of one shape, that of the first write.
        element_shape: Shape of the elements, as far as it is known. With a full one, elements that were never written
            read as zeros.
        colocate_with_first_write_call: Accepted for TensorFlow 1's sake: the placer keeps flows with what writes them.
        name: Name of the operation.
    """

    def __init__(
        self,
        dtype: DTypeLike,
        size: TensorLike | None = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: None = None,
        flow: Tensor | None = None,
        infer_shape: bool = True,
        element_shape: ShapeLike = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        self.dtype: DType = as_dtype(dtype)
        self._dynamic = bool(dynamic_size) or (size is None and dynamic_size is None)
        self._elements = _Elements(as_shape(element_shape), infer_shape)
        if flow is None:
            flow = add_op(TENSOR_ARRAY, 0 if size is None else size, name=name)
        self.flow: Tensor = flow

    @property
    def element_shape(self) -> TensorShape:
        """What is known of the shape of the elements."""
        return self._elements.shape

    @property
    def dynamic_size(self) -> bool:
        """Whether writes beyond the end make it grow."""
        return self._dynamic

    @property
    def infers_shape(self) -> bool:
        """Whether its elements must have one shape."""
        return self._elements.infer

    @property
    def graph(self) -> Graph:
        """The graph of the flow."""
        return self.flow.graph

    @property
    def handle(self) -> Tensor:
        """The flow: there is no other handle."""
        return self.flow

    def _to_components(self) -> list[Tensor]:
        return [self.flow]

    def _with_components(self, components: Sequence[Tensor]) -> TensorArray:
        (flow,) = components
        return self._at(flow)

    def _at(self, flow: Tensor) -> TensorArray:
        stage = TensorArray(self.dtype, flow=flow, dynamic_size=self._dynamic)
        stage._elements = self._elements
        return stage

    def identity(self) -> TensorArray:
        """The same, after the control dependencies of the current scope."""
        return self._at(add_op(TENSOR_ARRAY_IDENTITY, self.flow))

    def size(self, name: str | None = None) -> Tensor:
        """Number of elements: int32 scalar."""
        return add_op(TENSOR_ARRAY_SIZE, self.flow, name=name)

    def read(self, index: TensorLike, name: str | None = None) -> Tensor:
        """The element at `index`.

        Args:
            index: int32 scalar.
            name: Name of the operation.

        Raises:
            InvalidArgumentError: At run time, there is no such element.
            InvalidArgumentError: At run time, it was never written, and its shape is not known.
        """
        attrs = {"dtype": self.dtype, "element_shape": self.element_shape}
        return add_op(TENSOR_ARRAY_READ, self.flow, index, name=name, **attrs)

    def write(self, index: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """The TensorArray with `value` at `index`.

        Args:
            index: int32 scalar.
            value: A tensor of the elements' dtype and shape.
            name: Name of the operation.

        Raises:
            ValueError: The shape is another than that of earlier elements.
            InvalidArgumentError: At run time, it is beyond the end of a TensorArray that does not grow.
            InvalidArgumentError: At run time, the element was written already.
        """
        value = convert_to_tensor(value, self.dtype)
        self._elements.merge(value.shape)
        return self._at(add_op(TENSOR_ARRAY_WRITE, self.flow, index, value, name=name, dynamic=self._dynamic))

    def gather(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """The elements at `indices` (int32 ``[n]``), stacked along a new first axis."""
        attrs = {"dtype": self.dtype, "element_shape": self.element_shape}
        return add_op(TENSOR_ARRAY_GATHER, self.flow, indices, name=name or "TensorArrayGatherV3", **attrs)

    def stack(self, name: str | None = None) -> Tensor:
        """All elements, stacked along a new first axis."""
        with get_default_graph().name_scope(name or "TensorArrayStack"):
            return self.gather(range_(0, self.size()))

    def scatter(self, indices: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """The TensorArray with the slices of `value` along its first axis at `indices`."""
        value = convert_to_tensor(value, self.dtype)
        self._elements.merge(_without_first(value.shape))
        return self._at(add_op(TENSOR_ARRAY_SCATTER, self.flow, indices, value, name=name, dynamic=self._dynamic))

    def unstack(self, value: TensorLike, name: str | None = None) -> TensorArray:
        """The TensorArray with the slices of `value` along its first axis as elements 0, 1, ..."""
        value = convert_to_tensor(value, self.dtype)
        with get_default_graph().name_scope(name or "TensorArrayUnstack"):
            count = value.shape.sizes[0] if value.shape.rank else None
            return self.scatter(range_(0, shape_of(value)[0] if count is None else count), value)

    def concat(self, name: str | None = None) -> Tensor:
        """All elements, joined along their first axis, in which they may differ."""
        rest = _without_first(self.element_shape)
        return add_op(TENSOR_ARRAY_CONCAT, self.flow, name=name, dtype=self.dtype, rest=rest)[0]

    def split(self, value: TensorLike, lengths: TensorLike, name: str | None = None) -> TensorArray:
        """The TensorArray whose elements are consecutive stretches of `value`.

        Args:
            value: A tensor of the elements' dtype, of rank 1 or more: the stretches lie along its first axis.
            lengths: Integer vector: how long they are.
            name: Name of the operation.

        Raises:
            ValueError: The shape is another than that of earlier elements.
            InvalidArgumentError: `value` is a scalar, or `lengths` is no vector.
            InvalidArgumentError: At run time, the lengths do not sum to the size of the first axis, or they are not as
                many as a TensorArray that does not grow has elements.
            InvalidArgumentError: At run time, an element was written already.
        """
        value = convert_to_tensor(value, self.dtype)
        if value.shape.rank:
            self._elements.merge(TensorShape([None, *value.shape.sizes[1:]]))
        return self._at(split_elements(self.flow, value, cast(lengths, dtypes.int32), name, self._dynamic))

    def grad(self, source: str, flow: Tensor | None = None, name: str | None = None) -> TensorArray:
        """Kept for programs that call it: gradients of TensorArrays are values that `tf.gradients` makes.

        Raises:
            InvalidArgumentError: Always; differentiate what was read or stacked instead.
        """
        raise InvalidArgumentError("TensorArray.grad is not needed: tf.gradients differentiates reads and writes")

    def close(self, name: str | None = None) -> Operation:
        """Kept for programs that call it: an operation that runs when the TensorArray is there."""
        with get_default_graph().control_dependencies([self.flow.op]):
            return self.size(name).op


def _without_first(shape: TensorShape) -> TensorShape:
    return UNKNOWN if shape.rank is None or shape.rank == 0 else TensorShape(list(shape.sizes[1:]))


def _flow_shape(op: Operation) -> list[TensorShape]:
    return [TensorShape([])]


def _index(index: Any) -> int:
    return int(index)


# -- making, identity, size ----------------------------------------------------------------------------


def _tensor_array_kernel(ctx: KernelContext, size: Array) -> TensorList:
    return TensorList({}, int(size))


TENSOR_ARRAY = register(
    OpDef(
        name="TensorArray",
        inputs=("size: int32",),
        outputs=("flow: variant",),
        host_inputs=("size",),
        shape=_flow_shape,
        kernels=on_every_device(_tensor_array_kernel),
        stateful=True,  # so that two equal ones are never merged into one
        gradient=not_differentiable,
    )
)


def _identity_kernel(ctx: KernelContext, flow: TensorList) -> TensorList:
    return flow


TENSOR_ARRAY_IDENTITY = register(
    OpDef(
        name="TensorArrayIdentity",
        inputs=("flow: variant",),
        outputs=("same: variant",),
        shape=_flow_shape,
        kernels=on_every_device(_identity_kernel),
        forwards_input=True,
        gradient=lambda op, d_flow: [d_flow],
    )
)


def _size_kernel(ctx: KernelContext, flow: TensorList) -> np.int32:
    return np.int32(flow.size)


TENSOR_ARRAY_SIZE = register(
    OpDef(
        name="TensorArraySize",
        inputs=("flow: variant",),
        outputs=("size: int32",),
        shape=scalar,
        kernels=on_every_device(_size_kernel),
        gradient=not_differentiable,
    )
)


# -- one element ---------------------------------------------------------------------------------------


def element_at(ctx: KernelContext, flow: TensorList, index: Array, output: int = 0) -> Array | TensorList:
    """The element, which becomes an output; or zeros of the shape of elements that an operation declares."""
    position = int(index)
    found = flow.element(position)
    if type(found) is np.ndarray and ctx.xp is np:
        return found
    if found is MISSING:
        return unwritten(ctx, flow, position, output)
    return found if isinstance(found, TensorList) else ctx.asarray(found)


def _element_shape(op: Operation) -> list[TensorShape]:
    return [op.attrs["element_shape"]]


def _read_gradient(op: Operation, d_value: Tensor | None) -> list[Tensor | None]:
    if d_value is None:
        return [None, None]
    # An empty growing TensorArray replaces the flow in the gradient: keeping the flow would only hold its memory.
    return [accumulated(empty(), op.inputs[1], d_value), None]


TENSOR_ARRAY_READ = register(
    OpDef(
        name="TensorArrayRead",
        inputs=("flow: variant", "index: int32"),
        outputs=("value: dtype",),
        host_inputs=("index",),
        attrs=("element_shape",),
        types={"dtype": dtypes.ALL},
        shape=_element_shape,
        kernels=on_every_device(element_at),
        gradient=_read_gradient,
    )
)


def _write_kernel(ctx: KernelContext, flow: TensorList, index: Array, value: Array) -> TensorList:
    position = int(index)
    if not 0 <= position < flow.size or flow.element(position) is not MISSING:
        check_writable(ctx, flow, position)
    if flow.element_shape is not None:
        check_element(flow, position, value, "append")
    return flow.set(position, value)


def _write_gradient(op: Operation, d_flow: Tensor | None) -> list[Tensor | None]:
    if d_flow is None:
        return [None, None, None]
    _, index, value = op.inputs
    return [d_flow, None, read_or_zeros(d_flow, index, value) if _has_gradient(value) else None]


def _has_gradient(tensor: Tensor) -> bool:
    return tensor.dtype.is_differentiable or tensor.dtype is dtypes.variant


TENSOR_ARRAY_WRITE = register(
    OpDef(
        name="TensorArrayWrite",
        inputs=("flow: variant", "index: int32", "value: any"),
        outputs=("changed: variant",),
        host_inputs=("index",),
        attrs=("dynamic",),
        shape=_flow_shape,
        kernels=on_every_device(_write_kernel),
        keeps_inputs=True,
        gradient=_write_gradient,
    )
)


# -- many elements -------------------------------------------------------------------------------------


def _gather_kernel(ctx: KernelContext, flow: TensorList, indices: Array) -> Array:
    positions = ctx.to_host(indices).tolist()
    if not positions:
        return no_elements(ctx, flow)
    return stacked(ctx, elements_to_stack(ctx, flow, positions))


def stacked(ctx: KernelContext, elements: Sequence[Any]) -> Array:
    """Elements of a list, one or more, as the rows of an array."""
    first = ctx.asarray(elements[0])
    rows = ctx.xp.empty((len(elements), *first.shape), ctx.output_dtype())
    for row, element in enumerate(elements):  # `stack` would copy a table of addresses to a GPU
        rows[row, ...] = ctx.asarray(element)  # it may have been written on another device
    return rows


def _gather_shape(op: Operation) -> list[TensorShape]:
    element = op.attrs["element_shape"]
    count = op.inputs[1].shape.sizes[0] if op.inputs[1].shape.rank else None
    return [UNKNOWN if element.rank is None else TensorShape([count, *element.sizes])]


def _gather_gradient(op: Operation, d_value: Tensor | None) -> list[Tensor | None]:
    if d_value is None:
        return [None, None]
    return [add_op(TENSOR_ARRAY_ACCUMULATE_ROWS, empty(), op.inputs[1], d_value), None]


TENSOR_ARRAY_GATHER = register(
    OpDef(
        name="TensorArrayGather",
        inputs=("flow: variant", "indices: int32"),
        outputs=("value: dtype",),
        host_inputs=("indices",),
        attrs=("element_shape",),
        types={"dtype": dtypes.VALUES},
        shape=_gather_shape,
        kernels=on_every_device(_gather_kernel),
        gradient=_gather_gradient,
    )
)


def _scatter_kernel(ctx: KernelContext, flow: TensorList, indices: Array, value: Array) -> TensorList:
    positions = ctx.to_host(indices).tolist()
    check_scattered(ctx, flow, positions, len(value))
    if positions and min(positions) >= 0 and (max(positions) < flow.size or ctx.attr("dynamic")):
        filled = _filled(flow, positions, value)
        if filled is not None:
            return filled
    for position, element in zip(positions, value, strict=True):
        check_writable(ctx, flow, position)
        flow = flow.set(position, element)
    return flow


def _filled(flow: TensorList, positions: Sequence[int], value: Array) -> TensorList | None:
    """A list without elements with the rows of `value` as its elements, if each goes to another place."""
    if len(flow):
        return None
    elements = dict(zip(positions, value, strict=True))
    return flow.filled(elements) if len(elements) == len(positions) else None


def _scatter_gradient(op: Operation, d_flow: Tensor | None) -> list[Tensor | None]:
    if d_flow is None:
        return [None, None, None]
    _, indices, value = op.inputs
    if not _has_gradient(value):
        return [d_flow, None, None]
    d_value = add_op(GATHER_OR_ZEROS, d_flow, indices, shape_of(value)[1:], dtype=value.dtype)
    d_value.set_shape(value.shape)
    return [d_flow, None, d_value]


TENSOR_ARRAY_SCATTER = register(
    OpDef(
        name="TensorArrayScatter",
        inputs=("flow: variant", "indices: int32", "value: any"),
        outputs=("changed: variant",),
        host_inputs=("indices",),
        attrs=("dynamic",),
        shape=_flow_shape,
        kernels=on_every_device(_scatter_kernel),
        keeps_inputs=True,
        gradient=_scatter_gradient,
    )
)


def _concat_kernel(ctx: KernelContext, flow: TensorList) -> tuple[Array, Array]:
    elements = elements_to_join(ctx, flow)
    lengths = np.array([len(element) for element in elements], np.int32)
    if not elements:
        return no_rows(ctx, flow), ctx.asarray(lengths)
    return ctx.xp.concatenate(elements), ctx.asarray(lengths)


def _concat_shape(op: Operation) -> list[TensorShape]:
    rest = op.attrs["rest"]
    joined = UNKNOWN if rest.rank is None else TensorShape([None, *rest.sizes])
    return [joined, TensorShape([None])]


def _concat_gradient(op: Operation, d_value: Tensor | None, d_lengths: None) -> list[Tensor | None]:
    if d_value is None:
        return [None]
    return [split_elements(empty(), d_value, op.outputs[1])]


TENSOR_ARRAY_CONCAT = register(
    OpDef(
        name="TensorArrayConcat",
        inputs=("flow: variant",),
        outputs=("value: dtype", "lengths: int32"),
        attrs=("rest",),
        types={"dtype": dtypes.VALUES},
        shape=_concat_shape,
        kernels=on_every_device(_concat_kernel),
        gradient=_concat_gradient,
    )
)


def split_elements(
    flow: Tensor, value: Tensor, lengths: Tensor, name: str | None = None, dynamic: bool = True
) -> Tensor:
    """The array of `flow` with stretches of `value`, of `lengths` (int32 ``[n]``), as its elements."""
    return add_op(TENSOR_ARRAY_SPLIT, flow, value, lengths, name=name, dynamic=dynamic)


def _split_kernel(ctx: KernelContext, flow: TensorList, value: Array, lengths: Array) -> TensorList:
    check_split(lengths.shape, value.shape)
    counts = ctx.to_host(lengths).tolist()
    if sum(counts) != len(value):
        raise InvalidArgumentError(
            f"Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {sum(counts)} and value's "
            f"shape is: {list(value.shape)}"
        )
    if len(counts) != flow.size and not ctx.attr("dynamic"):
        raise InvalidArgumentError(
            f"TensorArray's size is not equal to the size of lengths ({flow.size} vs. {len(counts)}), and the "
            "TensorArray is not marked as dynamically resizeable: make it with dynamic_size=True"
        )
    start = 0
    for position, count in enumerate(counts):
        check_writable(ctx, flow, position)
        flow = flow.set(position, value[start : start + count])
        start += count
    return flow


def _split_shape(op: Operation) -> list[TensorShape]:
    value, lengths = op.inputs[1].shape, op.inputs[2].shape
    check_split([0] if lengths.rank is None else lengths.sizes, [0] if value.rank is None else value.sizes)
    return _flow_shape(op)


def _split_gradient(op: Operation, d_flow: Tensor | None) -> list[Tensor | None]:
    if d_flow is None:
        return [None, None, None]
    _, value, lengths = op.inputs
    rest = _without_first(value.shape)
    d_value, _ = add_op(CONCAT_OR_ZEROS, d_flow, lengths, shape_of(value)[1:], dtype=value.dtype, rest=rest)
    return [d_flow, d_value, None]


TENSOR_ARRAY_SPLIT = register(
    OpDef(
        name="TensorArraySplit",
        inputs=("flow: variant", "value: any", "lengths: int32"),
        outputs=("changed: variant",),
        host_inputs=("lengths",),
        attrs=("dynamic",),
        shape=_split_shape,
        kernels=on_every_device(_split_kernel),
        keeps_inputs=True,
        gradient=_split_gradient,
    )
)


# -- for gradients -------------------------------------------------------------------------------------
# The gradient of a TensorArray is one whose missing elements are zeros.


def empty() -> Tensor:
    """The gradient of a TensorArray to which nothing has been added yet."""
    return add_op(TENSOR_ARRAY, 0)


def accumulated(flow: Tensor, index: TensorLike, value: Tensor) -> Tensor:
    """A gradient with `value` added to its element at `index`."""
    return add_op(TENSOR_ARRAY_ACCUMULATE, flow, index, value)


def _accumulate_kernel(ctx: KernelContext, flow: TensorList, index: Array, value: Array) -> TensorList:
    return _plus(ctx, flow, _index(index), value)


def _plus(ctx: KernelContext, flow: TensorList, index: int, value: Any) -> TensorList:
    found = flow.element(index)
    if found is not MISSING:
        is_list = isinstance(value, TensorList)
        value = _sum_lists(ctx, [found, value]) if is_list else ctx.asarray(found) + ctx.asarray(value)
    return flow.set(index, value)


def _accumulate_gradient(op: Operation, d_flow: Tensor | None) -> list[Tensor | None]:
    if d_flow is None:
        return [None, None, None]
    return [d_flow, None, read_or_zeros(d_flow, op.inputs[1], op.inputs[2])]


TENSOR_ARRAY_ACCUMULATE = register(
    OpDef(
        name="TensorArrayAccumulate",
        inputs=("flow: variant", "index: int32", "value: any"),
        outputs=("changed: variant",),
        host_inputs=("index",),
        shape=_flow_shape,
        kernels=on_every_device(_accumulate_kernel),
        keeps_inputs=True,
        gradient=_accumulate_gradient,
    )
)


def _accumulate_rows_kernel(ctx: KernelContext, flow: TensorList, indices: Array, value: Array) -> TensorList:
    positions = ctx.to_host(indices).tolist()
    filled = _filled(flow, positions, value)
    if filled is not None:
        return filled
    for position, row in zip(positions, value, strict=True):
        flow = _plus(ctx, flow, position, row)
    return flow


TENSOR_ARRAY_ACCUMULATE_ROWS = register(
    OpDef(
        name="TensorArrayAccumulateRows",
        inputs=("flow: variant", "indices: int32", "value: any"),
        outputs=("changed: variant",),
        host_inputs=("indices",),
        shape=_flow_shape,
        kernels=on_every_device(_accumulate_rows_kernel),
        keeps_inputs=True,
        gradient=_scatter_gradient,
    )
)


def sum_flows(flows: Sequence[Tensor]) -> Tensor:
    """The sum of gradients of one TensorArray."""
    return flows[0] if len(flows) == 1 else add_op(TENSOR_ARRAY_SUM, list(flows))


def _sum_kernel(ctx: KernelContext, *flows: TensorList) -> TensorList:
    return _sum_lists(ctx, flows)


def _sum_lists(ctx: KernelContext, flows: Sequence[TensorList]) -> TensorList:
    # Add to the largest one: the others usually have few elements.
    ordered = sorted(flows, key=len, reverse=True)
    total = ordered[0]
    for flow in ordered[1:]:
        for index, value in list(flow.written()):
            total = _plus(ctx, total, index, value)
    return total


def _sum_gradient(op: Operation, d_total: Tensor | None) -> list[Tensor | None]:
    return [d_total] * len(op.inputs)


TENSOR_ARRAY_SUM = register(
    OpDef(
        name="TensorArraySum",
        inputs=("flows: variant*",),
        outputs=("total: variant",),
        shape=_flow_shape,
        kernels=on_every_device(_sum_kernel),
        gradient=_sum_gradient,
    )
)


def read_or_zeros(flow: Tensor, index: TensorLike, like: Tensor) -> Tensor:
    """The element at `index` of a gradient; zeros of the shape of `like` when nothing was added to it."""
    if like.dtype is dtypes.variant:
        return add_op(READ_FLOW_OR_EMPTY, flow, index)
    value = add_op(READ_OR_ZEROS, flow, index, shape_of(like), dtype=like.dtype)
    value.set_shape(like.shape)
    return value


def _read_or_zeros_kernel(ctx: KernelContext, flow: TensorList, index: Array, shape: Array) -> Array:
    found = flow.element(_index(index))
    if found is MISSING:
        return ctx.xp.zeros(tuple(ctx.to_host(shape).tolist()), ctx.output_dtype())
    return ctx.asarray(found)


def _shape_of_zeros(op: Operation) -> list[TensorShape]:
    value = constant_value(op.inputs[2])
    return [UNKNOWN if value is None else TensorShape([int(size) for size in value])]


def _read_or_zeros_gradient(op: Operation, d_value: Tensor | None) -> list[Tensor | None]:
    if d_value is None:
        return [None, None, None]
    return [accumulated(empty(), op.inputs[1], d_value), None, None]


READ_OR_ZEROS = register(
    OpDef(
        name="TensorArrayReadOrZeros",
        inputs=("flow: variant", "index: int32", "shape: int32"),
        outputs=("value: dtype",),
        host_inputs=("index", "shape"),
        types={"dtype": dtypes.INEXACT},
        shape=_shape_of_zeros,
        kernels=on_every_device(_read_or_zeros_kernel),
        gradient=_read_or_zeros_gradient,
    )
)


def _read_flow_kernel(ctx: KernelContext, flow: TensorList, index: Array) -> TensorList:
    found = flow.element(_index(index))
    return TensorList({}, 0) if found is MISSING else found


def _read_flow_gradient(op: Operation, d_flow: Tensor | None) -> list[Tensor | None]:
    return [None if d_flow is None else accumulated(empty(), op.inputs[1], d_flow), None]


READ_FLOW_OR_EMPTY = register(
    OpDef(
        name="TensorArrayReadFlowOrEmpty",
        inputs=("flow: variant", "index: int32"),
        outputs=("element: variant",),
        host_inputs=("index",),
        shape=_flow_shape,
        kernels=on_every_device(_read_flow_kernel),
        gradient=_read_flow_gradient,
    )
)


def _gather_or_zeros_kernel(ctx: KernelContext, flow: TensorList, indices: Array, shape: Array) -> Array:
    positions = ctx.to_host(indices).tolist()
    gathered = ctx.xp.zeros((len(positions), *ctx.to_host(shape).tolist()), ctx.output_dtype())
    for row, position in enumerate(positions):
        element = flow.element(position)
        if element is not MISSING:
            gathered[row] = ctx.asarray(element)
    return gathered


def _gather_or_zeros_shape(op: Operation) -> list[TensorShape]:
    rest = _shape_of_zeros(op)[0]
    count = op.inputs[1].shape.sizes[0] if op.inputs[1].shape.rank else None
    return [UNKNOWN if rest.rank is None else TensorShape([count, *rest.sizes])]


def _gather_or_zeros_gradient(op: Operation, d_value: Tensor | None) -> list[Tensor | None]:
    return [*_gather_gradient(op, d_value), None]


GATHER_OR_ZEROS = register(
    OpDef(
        name="TensorArrayGatherOrZeros",
        inputs=("flow: variant", "indices: int32", "shape: int32"),
        outputs=("value: dtype",),
        host_inputs=("indices", "shape"),
        types={"dtype": dtypes.INEXACT},
        shape=_gather_or_zeros_shape,
        kernels=on_every_device(_gather_or_zeros_kernel),
        gradient=_gather_or_zeros_gradient,
    )
)


def _concat_or_zeros_kernel(ctx: KernelContext, flow: TensorList, lengths: Array, shape: Array) -> tuple[Array, Array]:
    counts = ctx.to_host(lengths).tolist()
    joined = ctx.xp.zeros((sum(counts), *ctx.to_host(shape).tolist()), ctx.output_dtype())
    start = 0
    for position, count in enumerate(counts):
        element = flow.element(position)
        if element is not MISSING:
            joined[start : start + count] = ctx.asarray(element)
        start += count
    return joined, lengths


def _concat_or_zeros_gradient(op: Operation, d_value: Tensor | None, d_lengths: None) -> list[Tensor | None]:
    if d_value is None:
        return [None, None, None]
    return [split_elements(empty(), d_value, op.inputs[1]), None, None]


CONCAT_OR_ZEROS = register(
    OpDef(
        name="TensorArrayConcatOrZeros",
        inputs=("flow: variant", "lengths: int32", "shape: int32"),
        outputs=("value: dtype", "lengths_again: int32"),
        host_inputs=("lengths", "shape"),
        attrs=("rest",),
        types={"dtype": dtypes.INEXACT},
        shape=_concat_shape,
        kernels=on_every_device(_concat_or_zeros_kernel),
        gradient=_concat_or_zeros_gradient,
    )
)
