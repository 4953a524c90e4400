"""Products that are 0 wherever one factor is, whatever the other one."""

from __future__ import annotations

from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, out_kernel, register
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import sum_to_shape_of
from tfray.ops.kernels.elementwise import binary
from tfray.ops.kernels.precision import choose


def multiply_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x * y``, and 0 where `y` is 0 even if `x` is infinite or not a number.

    Args:
        x: Any shape, a floating dtype.
        y: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype.
    """
    return add_op(MUL_NO_NAN, x, y, name=name or "multiply_no_nan")


def slope_times(slope: Tensor, d_y: Tensor) -> Tensor:
    """``slope * d_y``, of floats 0 where `d_y` is: also where a function that nothing asks for has a pole."""
    product: Tensor = slope * d_y if d_y.dtype.is_complex else multiply_no_nan(slope, d_y)
    return product


def _mul_no_nan_kernel(ctx: KernelContext, x: Array, y: Array, out: Array | None = None) -> Array:
    return ctx.xp.multiply(choose(ctx.xp, y == 0, x.dtype.type(0), x), y, out=out)


def _mul_no_nan_gradient(op: Operation, d_z: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    return [sum_to_shape_of(multiply_no_nan(d_z, y), x, y), sum_to_shape_of(multiply_no_nan(x, d_z), y, x)]


MUL_NO_NAN = register(
    binary(
        "MulNoNan",
        out_kernel(_mul_no_nan_kernel, (0, 1), element="where({1} == 0, 0, {0} * {1})"),
        dtypes.FLOATS,
        _mul_no_nan_gradient,
    )
)
