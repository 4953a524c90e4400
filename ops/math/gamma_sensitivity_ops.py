"""How draws from a gamma distribution move with its parameter: what makes them differentiable."""

from __future__ import annotations

from typing import Final

import numpy as np

from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.kernels.elementwise import scipy_special


def random_gamma_grad(alpha: TensorLike, sample: TensorLike, name: str | None = None) -> Tensor:
    """Derivatives of draws from gamma distributions by their shape parameters, at the same quantile.

    Args:
        alpha: Shape parameters, positive floats.
        sample: Draws, of the same shape.
        name: Name of the operation.

    References:
        Figurnov, Mohamed, Mnih, Implicit reparameterization gradients (2018).
    """
    return add_op(RANDOM_GAMMA_GRAD, alpha, sample, name=name)


def _random_gamma_grad_kernel(ctx: KernelContext, alpha: Array, sample: Array) -> Array:
    functions = scipy_special()
    a, x = (ctx.to_host(array).astype(np.float64) for array in (alpha, sample))
    # From the nearer tail, where the quantile keeps its digits.
    is_low = x < a
    low, high = functions.gammainc(a, x), functions.gammaincc(a, x)
    step = _STEP * a

    def at(parameter: Array) -> Array:
        return np.where(is_low, functions.gammaincinv(parameter, low), functions.gammainccinv(parameter, high))

    near, far = at(a + step) - at(a - step), at(a + 2 * step) - at(a - 2 * step)
    derivative = (8 * near - far) / (12 * step)
    return ctx.asarray(derivative, ctx.output_dtype())


_STEP: Final = 2e-3
"""Step of the central differences of order four, relative to the parameter. Their errors are about 1e-10."""


def _same_shape(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape.merge_with(op.inputs[1].shape)]


RANDOM_GAMMA_GRAD = register(
    OpDef(
        name="RandomGammaGrad",
        inputs=("alpha: T", "sample: T"),
        outputs=("output: T",),
        types={"T": dtypes.FLOATS},
        shape=_same_shape,
        kernels=on_every_device(_random_gamma_grad_kernel),
    )
)
