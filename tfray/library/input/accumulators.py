"""`tf.ConditionalAccumulator` and its sparse form, as programs use them."""

from __future__ import annotations

from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.op_def import OpDef
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.shape_ops import cast
from tfray.ops.dataflow import accumulator_ops
from tfray.ops.dataflow.resource_operations import make_resource, use_resource
from tfray.ops.resources.accumulator_resource import REDUCTIONS


def _as_int64(value: TensorLike) -> Tensor:
    return cast(convert_to_tensor(value), dtypes.int64)


def _made(
    definition: OpDef,
    dtype: DTypeLike,
    shape: ShapeLike,
    shared_name: str | None,
    name: str | None,
    reduction_type: str,
) -> Tensor:
    if reduction_type not in REDUCTIONS:
        raise InvalidArgumentError(f"reduction_type is {reduction_type!r}, expected 'MEAN' or 'SUM'")
    attrs = {"dtype": as_dtype(dtype), "shape": TensorShape(shape), "reduction_type": reduction_type}
    return make_resource(definition, name, shared_name, **attrs)


class ConditionalAccumulatorBase:
    """Base of the accumulators of gradients.

    Args:
        dtype: Dtype of the gradients.
        shape: Their shape, as far as it is known.
        accumulator_ref: Handle of the accumulator.
    """

    def __init__(self, dtype: DTypeLike, shape: ShapeLike, accumulator_ref: Tensor) -> None:
        self._dtype = as_dtype(dtype)
        self._shape = TensorShape(shape)
        self._accumulator_ref = accumulator_ref

    def _taken(self, definition: OpDef, num_required: TensorLike, name: str | None) -> Any:
        attrs = {"dtype": self._dtype, "shape": self._shape}
        return use_resource(definition, self._accumulator_ref, num_required, name=name, **attrs)

    @property
    def accumulator_ref(self) -> Tensor:
        """The handle of the accumulator."""
        return self._accumulator_ref

    @property
    def name(self) -> str:
        """Name of the accumulator's operation."""
        return self._accumulator_ref.op.name

    @property
    def dtype(self) -> DType:
        """Dtype of the gradients."""
        return self._dtype

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """Number of gradients that have come since the last ones were taken: an int32 scalar.

        Args:
            name: Name of the operation.
        """
        return use_resource(accumulator_ops.ACCUMULATOR_NUM_ACCUMULATED, self._accumulator_ref, name=name)

    def set_global_step(self, new_global_step: TensorLike, name: str | None = None) -> Operation:
        """An operation that sets the time step; gradients of older ones are dropped from then on.

        Args:
            new_global_step: Integer scalar.
            name: Name of the operation.
        """
        step, set_global_step = _as_int64(new_global_step), accumulator_ops.ACCUMULATOR_SET_GLOBAL_STEP
        return use_resource(set_global_step, self._accumulator_ref, step, name=name)


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Adds gradients up, and gives their mean or sum when enough have come.

    Args:
        dtype: Dtype of the gradients.
        shape: Their shape; None when it is not known.
        shared_name: Accumulators of equal shared names on one device are one, across sessions.
        name: Name of the accumulator's operation.
        reduction_type: ``"MEAN"`` or ``"SUM"``.
    """

    def __init__(
        self,
        dtype: DTypeLike,
        shape: ShapeLike = None,
        shared_name: str | None = None,
        name: str | None = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        handle = _made(accumulator_ops.CONDITIONAL_ACCUMULATOR, dtype, shape, shared_name, name, reduction_type)
        super().__init__(dtype, shape, handle)

    def apply_grad(self, grad: TensorLike, local_step: TensorLike = 0, name: str | None = None) -> Operation:
        """An operation that adds a gradient, unless it was computed before the accumulator's time step.

        Args:
            grad: The gradient.
            local_step: Integer scalar: the time step of the values from which it was computed.
            name: Name of the operation.

        Raises:
            ValueError: It has another shape.
        """
        grad = convert_to_tensor(grad, self._dtype)
        grad.shape.assert_is_compatible_with(self._shape)
        step, apply_gradient = _as_int64(local_step), accumulator_ops.ACCUMULATOR_APPLY_GRADIENT
        return use_resource(apply_gradient, self._accumulator_ref, step, grad, name=name)

    def take_grad(self, num_required: TensorLike, name: str | None = None) -> Tensor:
        """Wait until enough gradients have come and take the mean or sum of all there are; a new time step begins.

        Args:
            num_required: int32 scalar: how many are enough.
            name: Name of the operation.

        Raises:
            InvalidArgumentError: While running: `num_required` is less than 1.
        """
        return self._taken(accumulator_ops.ACCUMULATOR_TAKE_GRADIENT, num_required, name)


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """Adds up gradients of which only some rows are given; the mean of a row is over those that have it.

    Args:
        dtype: Dtype of the gradients.
        shape: Their shape, all rows counted; None when it is not known.
        shared_name: Accumulators of equal shared names on one device are one, across sessions.
        name: Name of the accumulator's operation.
        reduction_type: ``"MEAN"`` or ``"SUM"``.
    """

    def __init__(
        self,
        dtype: DTypeLike,
        shape: ShapeLike = None,
        shared_name: str | None = None,
        name: str | None = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        handle = _made(accumulator_ops.SPARSE_CONDITIONAL_ACCUMULATOR, dtype, shape, shared_name, name, reduction_type)
        super().__init__(dtype, shape, handle)

    def apply_indexed_slices_grad(
        self, grad: IndexedSlices, local_step: TensorLike = 0, name: str | None = None
    ) -> Operation:
        """An operation that adds a gradient; see `apply_grad`.

        Args:
            grad: The gradient.
            local_step: As for `apply_grad`.
            name: Name of the operation.
        """
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(
        self,
        grad_indices: TensorLike,
        grad_values: TensorLike,
        grad_shape: TensorLike | None = None,
        local_step: TensorLike = 0,
        name: str | None = None,
    ) -> Operation:
        """An operation that adds rows of a gradient, unless it was computed before the accumulator's time step.

        Args:
            grad_indices: Integer vector: which rows.
            grad_values: The rows.
            grad_shape: Integer vector: the shape of the gradient, all rows counted; None when it is not known.
            local_step: Integer scalar: the time step of the values from which it was computed.
            name: Name of the operation.
        """
        values = convert_to_tensor(grad_values, self._dtype)
        shapes = [] if grad_shape is None else [_as_int64(grad_shape)]
        inputs = _as_int64(local_step), _as_int64(grad_indices), values, shapes
        apply_gradient = accumulator_ops.SPARSE_ACCUMULATOR_APPLY_GRADIENT
        return use_resource(apply_gradient, self._accumulator_ref, *inputs, name=name)

    def take_grad(self, num_required: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Wait until enough gradients have come and take the mean or sum of all there are; a new time step begins.

        Args:
            num_required: int32 scalar: how many are enough.
            name: Name of the operation.

        Returns:
            Indices of rows, the rows, and the shape, all rows counted.
        """
        take_gradient = accumulator_ops.SPARSE_ACCUMULATOR_TAKE_GRADIENT
        indices, values, shape = self._taken(take_gradient, num_required, name)
        return indices, values, shape

    def take_indexed_slices_grad(self, num_required: TensorLike, name: str | None = None) -> IndexedSlices:
        """As `take_grad`, as `IndexedSlices`.

        Args:
            num_required: As for `take_grad`.
            name: Name of the operation.
        """
        indices, values, shape = self.take_grad(num_required, name)
        return IndexedSlices(values, indices, shape)
