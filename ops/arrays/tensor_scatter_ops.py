"""Tensors with some of their slices changed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, GradientFunction, KernelContext, OpDef, on_every_device, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import zeros_like
from tfray.ops.arrays.gather_ops import check_indices, check_updates, gather_nd
from tfray.ops.arrays.shape_ops import index_tensor
from tfray.ops.kernels.gpu.device_scatter import combine_at
from tfray.ops.kernels.row_sums import add_rows


def _definition(name: str, ufunc: str | None, types: Any, gradient: GradientFunction | None) -> OpDef:
    """An operation that combines slices of a tensor with updates by a ufunc; None to replace them."""

    def kernel(ctx: KernelContext, tensor: Array, indices: Array, updates: Array) -> Array:
        xp, depth = ctx.xp, indices.shape[-1] if indices.ndim else 0
        if depth > tensor.ndim or updates.shape != (*indices.shape[:-1], *tensor.shape[depth:]):
            raise InvalidArgumentError(
                f"{ctx.op_name}: updates {updates.shape} at coordinates {indices.shape} do not fit {tensor.shape}"
            )
        changed = tensor.copy()
        rows = changed.reshape(math.prod(tensor.shape[:depth]), *tensor.shape[depth:])
        places = xp.zeros(indices.shape[:-1], np.int64)
        for axis, size in enumerate(tensor.shape[:depth]):
            check_indices(ctx, indices[..., axis], size)
            places = places * size + indices[..., axis]
        places, updates = places.reshape(-1), updates.reshape(-1, *tensor.shape[depth:])
        if ufunc is None:
            rows[places] = updates
        elif xp is not np:
            combine_at(xp, ufunc, rows, places, updates)
        elif ufunc in ("add", "subtract"):
            add_rows(rows, places, updates, subtract=ufunc == "subtract")
        else:
            getattr(np, ufunc).at(rows, places, updates)
        return changed

    return OpDef(
        name=name,
        inputs=("tensor: T", "indices: Tindices", "updates: T"),
        outputs=("output: T",),
        types={"T": types, "Tindices": dtypes.INDICES},
        shape=_changed_shape,
        kernels=on_every_device(kernel),
        gradient=gradient,
    )


def _changed_shape(op: Operation) -> list[TensorShape]:
    tensor, indices, updates = (each.shape for each in op.inputs)
    check_updates(indices, updates, tensor)
    return [tensor]


def tensor_scatter_update(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    """Replace slices of a tensor, which itself stays as it is.

    Args:
        tensor: Any shape and dtype.
        indices: int32 or int64 ``[..., k]``: coordinates in the first k dimensions. Of equal ones the last counts.
        updates: Shape ``indices.shape[:-1] + tensor.shape[k:]``.
        name: Name of the operation.

    Returns:
        The changed tensor: shape and dtype of `tensor`.
    """
    return add_op(TENSOR_SCATTER_UPDATE, tensor, index_tensor(indices), updates, name=name)


def _update_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    _, indices, updates = op.inputs
    return [tensor_scatter_update(d_output, indices, zeros_like(updates)), None, gather_nd(d_output, indices)]


TENSOR_SCATTER_UPDATE = register(_definition("TensorScatterUpdate", None, dtypes.VALUES, _update_gradient))


def tensor_scatter_add(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Tensor:
    """Add to slices of a tensor (arguments as `tensor_scatter_update`; equal coordinates add up).

    `indices` has the shape ``[..., k]`` and `updates` ``indices.shape[:-1] + tensor.shape[k:]``; the result has the
    shape and dtype of `tensor`.
    """
    return add_op(TENSOR_SCATTER_ADD, tensor, index_tensor(indices), updates, name=name)


def _add_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [d_output, None, gather_nd(d_output, op.inputs[1])]


TENSOR_SCATTER_ADD = register(_definition("TensorScatterAdd", "add", dtypes.NUMERIC, _add_gradient))


def tensor_scatter_sub(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Tensor:
    """Subtract from slices of a tensor (arguments as `tensor_scatter_update`; equal coordinates add up).

    `indices` has the shape ``[..., k]`` and `updates` ``indices.shape[:-1] + tensor.shape[k:]``; the result has the
    shape and dtype of `tensor`.
    """
    return add_op(TENSOR_SCATTER_SUB, tensor, index_tensor(indices), updates, name=name)


def _sub_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [d_output, None, -gather_nd(d_output, op.inputs[1])]


TENSOR_SCATTER_SUB = register(_definition("TensorScatterSub", "subtract", dtypes.NUMERIC, _sub_gradient))


def tensor_scatter_max(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Tensor:
    """Take the maximum of slices of a tensor and updates (arguments as `tensor_scatter_update`).

    `indices` has the shape ``[..., k]`` and `updates` ``indices.shape[:-1] + tensor.shape[k:]``; the result has the
    shape and dtype of `tensor`.
    """
    return add_op(TENSOR_SCATTER_MAX, tensor, index_tensor(indices), updates, name=name)


TENSOR_SCATTER_MAX = register(_definition("TensorScatterMax", "maximum", dtypes.REAL, None))


def tensor_scatter_min(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Tensor:
    """Take the minimum of slices of a tensor and updates (arguments as `tensor_scatter_update`).

    `indices` has the shape ``[..., k]`` and `updates` ``indices.shape[:-1] + tensor.shape[k:]``; the result has the
    shape and dtype of `tensor`.
    """
    return add_op(TENSOR_SCATTER_MIN, tensor, index_tensor(indices), updates, name=name)


TENSOR_SCATTER_MIN = register(_definition("TensorScatterMin", "minimum", dtypes.REAL, None))
