"""How the incomplete gamma function, and draws from gamma distributions, move with the shape parameter."""

from __future__ import annotations

from typing import Final

import numpy as np

from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, Kernel, KernelContext, OpDef, on_every_device, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.kernels.elementwise import binary, scipy_special

_STEP: Final = 2e-3
"""Step of the central differences of order four, relative to the parameter or, for large ones, its square root.

Logarithms of the function are nearly straight lines on that scale: relative errors are about 1e-10.
"""


def _slope_by_a(a: Array, x: Array) -> tuple[Array, Array]:
    """The smaller tail of gamma distributions, and the derivative of its logarithm by `a`, as float64.

    The tail is that below `x`, or minus the one above: so the two multiply to the derivative of the distribution
    function.
    """
    functions = scipy_special()
    low = functions.gammainc(a, x)
    is_low = low < 0.5
    step = _STEP * np.minimum(a, np.sqrt(a))

    def logarithm(parameter: Array) -> Array:
        return np.log(np.where(is_low, functions.gammainc(parameter, x), functions.gammaincc(parameter, x)))

    with np.errstate(all="ignore"):
        near = logarithm(a + step) - logarithm(a - step)
        far = logarithm(a + 2 * step) - logarithm(a - 2 * step)
        tail = np.where(is_low, low, -functions.gammaincc(a, x))
        return tail, (8 * near - far) / (12 * step)


def _on_host(ctx: KernelContext, *arrays: Array) -> list[Array]:
    return [np.asarray(ctx.to_host(array)).astype(np.float64) for array in arrays]


# -- the function --------------------------------------------------------------------------------------


def igamma_grad_a(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Derivative of `igamma` by its first argument.

    Args:
        a: Positive numbers, any shape, a floating dtype.
        x: Same dtype; the shapes broadcast.
        name: Name of the operation.

    Returns:
        The broadcast shape, the same dtype. It has no gradient itself.
    """
    return add_op(IGAMMA_GRAD_A, a, x, name=name)


def _igamma_grad_a_kernel(ctx: KernelContext, a: Array, x: Array) -> Array:
    a, x = _on_host(ctx, a, x)
    tail, slope = _slope_by_a(a, x)
    with np.errstate(invalid="ignore"):
        derivative = tail * slope
    # A tail that is 0 has no logarithm; it does not move.
    derivative = np.where((tail == 0) | (x == 0), 0.0, derivative)
    return ctx.asarray(np.asarray(derivative, ctx.output_dtype()))


IGAMMA_GRAD_A = register(binary("IgammaGradA", Kernel(_igamma_grad_a_kernel), dtypes.FLOATS))


# -- draws ---------------------------------------------------------------------------------------------


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
    a, x = _on_host(ctx, alpha, sample)
    tail, slope = _slope_by_a(a, x)
    with np.errstate(all="ignore"):
        log_density = (a - 1) * np.log(x) - x - scipy_special().gammaln(a)
        # By logarithms: the tail and the density may both be too small for a float.
        derivative = -np.sign(tail) * slope * np.exp(np.log(np.abs(tail)) - log_density)
    return ctx.asarray(np.asarray(np.where(tail == 0, 0.0, derivative), ctx.output_dtype()))


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
