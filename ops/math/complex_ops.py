"""Complex numbers: made of parts and taken apart. (`conj` and `abs` stand with the arithmetic.)"""

from __future__ import annotations

from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_alike, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import (
    Array,
    GradientFunction,
    KernelContext,
    KernelFunction,
    OpDef,
    on_every_device,
    out_kernel,
    register,
)
from tfray.framework.shape_functions import broadcast, like_input
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import sum_to_shape_of, zeros_like
from tfray.ops.arrays.shape_ops import cast
from tfray.ops.math.arithmetic_ops import conj, realdiv

_PARTS = (dtypes.float32, dtypes.float64)
_WHOLE = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}


def _part(name: str, kernel: KernelFunction, gradient: GradientFunction) -> OpDef:
    return OpDef(
        name=name,
        inputs=("input: T",),
        outputs=("output: Tout",),
        types={"T": dtypes.COMPLEX, "Tout": _PARTS},
        shape=like_input(0),
        kernels=on_every_device(kernel),
        gradient=gradient,
    )


def complex(real: TensorLike, imag: TensorLike, name: str | None = None) -> Tensor:
    """Make complex numbers of their parts.

    Args:
        real: Real part, any shape, float32 or float64.
        imag: Imaginary part, same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape; complex64 or complex128.
    """
    real, imag = convert_alike(real, imag)
    return add_op(COMPLEX, real, imag, name=name, Tout=_WHOLE.get(real.dtype, dtypes.complex64))


def _complex_kernel(ctx: KernelContext, real: Array, imag: Array, out: Array | None = None) -> Array:
    if out is None:
        out = ctx.xp.empty(ctx.xp.broadcast(real, imag).shape, ctx.output_dtype())
    out.real[...] = real
    out.imag[...] = imag
    return out


def _complex_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    return [sum_to_shape_of(real(d_output), x, y), sum_to_shape_of(imag(d_output), y, x)]


COMPLEX = register(
    OpDef(
        name="Complex",
        inputs=("real: T", "imag: T"),
        outputs=("output: Tout",),
        types={"T": _PARTS, "Tout": dtypes.COMPLEX},
        shape=broadcast,
        kernels=on_every_device(out_kernel(_complex_kernel)),
        gradient=_complex_gradient,
    )
)


def real(input: TensorLike, name: str | None = None) -> Tensor:
    """Take the real part; real numbers are returned as they are.

    Args:
        input: Shape ``[...]``, a number dtype.
        name: Name of the operation.

    Returns:
        Same shape; the dtype of the parts.
    """
    input = convert_to_tensor(input)
    return add_op(REAL, input, name=name, Tout=input.dtype.real_dtype) if input.dtype.is_complex else input


def _real_kernel(ctx: KernelContext, input: Array) -> Array:
    return input.real


def _real_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [cast(d_output, op.inputs[0].dtype)]


REAL = register(_part("Real", _real_kernel, _real_gradient))


def imag(input: TensorLike, name: str | None = None) -> Tensor:
    """Take the imaginary part; that of real numbers is 0.

    Args:
        input: Shape ``[...]``, a number dtype.
        name: Name of the operation.

    Returns:
        Same shape; the dtype of the parts.
    """
    input = convert_to_tensor(input)
    if not input.dtype.is_complex:
        return zeros_like(input, name=name)
    return add_op(IMAG, input, name=name, Tout=input.dtype.real_dtype)


def _imag_kernel(ctx: KernelContext, input: Array) -> Array:
    return input.imag


def _imag_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [complex(zeros_like(d_output), d_output)]


IMAG = register(_part("Imag", _imag_kernel, _imag_gradient))


def angle(input: TensorLike, name: str | None = None) -> Tensor:
    """Compute the argument of complex numbers, in radians from -pi to pi.

    Args:
        input: Shape ``[...]``, a complex dtype. Of real numbers, negative ones too, it is 0, as in TensorFlow 1.15.
        name: Name of the operation.

    Returns:
        Same shape, the dtype of the parts.
    """
    input = convert_to_tensor(input)
    if not input.dtype.is_complex:
        with get_default_graph().name_scope(name or "Angle"):
            return zeros_like(input)
    return add_op(ANGLE, input, name=name, Tout=input.dtype.real_dtype)


def _angle_kernel(ctx: KernelContext, input: Array) -> Array:
    return ctx.xp.arctan2(input.imag, input.real)


def _angle_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    # The angle is the imaginary part of the logarithm.
    x = op.inputs[0]
    upwards = complex(zeros_like(d_output), d_output)
    return [realdiv(upwards, conj(x))]


ANGLE = register(_part("Angle", _angle_kernel, _angle_gradient))
