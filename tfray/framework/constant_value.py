"""The value of a tensor, as far as it is known while the graph is built: for shapes that the graph computes."""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Kernel
from tfray.framework.tensor_shape import UNKNOWN, TensorShape

MAX_ELEMENTS: Final = 4096
"""Most elements of a value that is evaluated while building. Shapes, axes and paddings are far smaller."""

MAX_DEPTH: Final = 64
"""Most operations in a row through which a value is followed back. Computations of shapes are far shorter."""


class ConstantContext:
    """A `KernelContext` for evaluating a pure operation while the graph is built or compiled."""

    xp = np
    resources = None
    step = None
    kept: Any = None

    def __init__(self, op: Operation) -> None:
        self._op = op

    @property
    def op_name(self) -> str:
        return self._op.name

    @property
    def container(self) -> str:
        return self._op.attrs.get("_container", "")

    @property
    def device(self) -> str:
        return "/device:CPU:0"

    def attr(self, name: str) -> Any:
        return self._op.attrs[name]

    def output_dtype(self, index: int = 0) -> Any:
        return self._op.outputs[index].dtype.numpy

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        return np.asarray(value, dtype)

    def to_host(self, array: Any) -> Any:
        return np.asarray(array)


def constant_array(op: Operation) -> np.ndarray[Any, Any]:
    """The value of a Const with its elements in a row: the graph may hold one that repeats an element in place."""
    value: np.ndarray[Any, Any] = op.attrs["value"]
    return value if value.flags.c_contiguous else value.copy()


def constant_value(tensor: Tensor) -> Any | None:
    """The value of `tensor` as a NumPy array when the graph alone determines it and it is small; else None."""
    return _evaluate(tensor, {}, MAX_DEPTH)


def _evaluate(tensor: Tensor, known: dict[Tensor, Any], depth: int) -> Any | None:
    if tensor not in known:
        known[tensor] = _evaluate_op(tensor, known, depth) if depth else None
    return known[tensor]


def _evaluate_op(tensor: Tensor, known: dict[Tensor, Any], depth: int) -> Any | None:
    op = tensor.op
    if op.type == "Const":
        value = op.attrs["value"]
        return value if value.flags.c_contiguous else None  # a large one that repeats an element in place
    if op.type == "Shape" and op.inputs[0].shape.is_fully_defined():
        return np.array(op.inputs[0].shape.sizes, dtype=tensor.dtype.numpy)
    if op.type == "RegionInput":
        outer = _captured(tensor) if is_small(tensor.shape) else None
        return None if outer is None else _evaluate(outer, known, depth)
    if op.op_def.stateful or op.op_def.regions or not op.inputs or not is_small(tensor.shape):
        return None
    if any(not is_small(source.shape) for source in op.inputs):
        return None
    values = [_evaluate(source, known, depth - 1) for source in op.inputs]
    if any(value is None for value in values):
        return None
    return evaluate_operation(op, values)[tensor.value_index]


def _captured(tensor: Tensor) -> Tensor | None:
    """The tensor of the graph around that the input of a region stands for; None for a parameter of the region."""
    found: Tensor | None = cast(Any, tensor.graph).captured(tensor)
    return found


def operations_before(tensor: Tensor) -> list[Operation]:
    """The control inputs of the operations through which a value that the graph knows is followed back.

    A constant in its place has to wait for them too. Of a shape or a size no input is computed.
    """
    waiting, seen, found = [tensor.op], {tensor.op}, {}
    for op in waiting:  # it grows while it is walked
        found.update(dict.fromkeys(op.control_inputs))
        if op.type not in ("Shape", "ShapeN", "Size", "Rank"):
            outer = _captured(op.outputs[0]) if op.type == "RegionInput" else None
            taken = op.inputs if outer is None else [outer]
            sources = [source.op for source in taken if source.op not in seen and is_small(source.shape)]
            seen.update(sources)
            waiting += sources
    return list(found)


def is_small(shape: TensorShape) -> bool:
    """Whether a shape is known and has few enough elements to be evaluated while building."""
    count = shape.num_elements()
    return count is not None and count <= MAX_ELEMENTS


def evaluate_operation(op: Operation, values: list[Any]) -> tuple[Any, ...]:
    """Outputs of a pure operation on constant inputs, by its CPU kernel; None for each if it fails.

    A kernel that rejects the values is left to fail at run time, where the error has a device and a step.
    """
    kernel = op.op_def.kernel_for("CPU")
    nothing = (None,) * len(op.outputs)
    if kernel is None:
        return nothing
    try:
        with np.errstate(all="ignore"):
            result = run_kernel(kernel, ConstantContext(op), values)
    except (ValueError, TypeError, IndexError, ArithmeticError):
        return nothing
    outputs = result if op.op_def.returns_sequence else (result,)
    return tuple(
        np.asarray(output, dtype=tensor.dtype.numpy) for output, tensor in zip(outputs, op.outputs, strict=True)
    )


def run_kernel(kernel: Kernel, ctx: Any, values: list[Any]) -> Any:
    """Call a kernel without an output buffer."""
    return kernel.function(ctx, *values)


def constant_shape(tensor: Tensor) -> TensorShape:
    """The static shape that a rank-1 integer tensor describes, as far as it is known.

    Used by shape functions of operations that take a shape as an input (Reshape, Fill, Tile, ...).
    """
    while tensor.op.type == "RegionInput" and (outer := _captured(tensor)) is not None:
        tensor = outer
    value = constant_value(tensor)
    if value is not None and value.size <= MAX_ELEMENTS:
        return TensorShape([None if size < 0 else int(size) for size in np.ravel(value)])
    shape_value = tensor.op.op_def.shape_value
    if shape_value is not None:
        sizes = shape_value(tensor.op)
        if sizes is not None:
            return TensorShape(sizes)
    if tensor.shape.rank == 1 and is_small(tensor.shape):
        return TensorShape([None] * (tensor.shape.num_elements() or 0))
    return UNKNOWN


def constant_size(op: Operation, index: int) -> int | None:
    """The size that an input gives, a scalar.

    Args:
        op: The operation whose shapes are to be found.
        index: Which of its inputs.

    Returns:
        The size; None if it is not known before a step runs.

    Raises:
        InvalidArgumentError: The input is no scalar, or the size is negative.
    """
    size = op.inputs[index]
    if size.shape.rank not in (None, 0):
        raise InvalidArgumentError(
            f"Shape must be rank 0 but is rank {size.shape.rank}: Input must be scalar but has rank {size.shape.rank}"
        )
    known = constant_value(size)
    if known is not None and known < 0:
        raise InvalidArgumentError(
            f"Dimension size, given by scalar input {index}, must be non-negative but is {known}"
        )
    return None if known is None else int(known)
