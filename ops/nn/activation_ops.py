"""Activation functions, element by element, each with the gradient that its output or input gives."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import none_is_default
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import (
    FLAT,
    Array,
    ArrayModule,
    GradientFunction,
    Kernel,
    KernelContext,
    NumpyDType,
    OpDef,
    on_every_device,
    out_kernel,
    register,
)
from tfray.framework.shape_functions import all_inputs_alike, like_input
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.join_ops import concat
from tfray.ops.arrays.shape_ops import cast
from tfray.ops.kernels.precision import widened
from tfray.ops.kernels.tiles import FEW_ELEMENTS, FLAT_TILE, buffer, map_flat
from tfray.ops.math.arithmetic_ops import abs as absolute
from tfray.ops.math.arithmetic_ops import add, multiply, negative, realdiv, square
from tfray.ops.math.comparison_ops import less
from tfray.ops.math.transcendental_ops import sigmoid

# -- how activations run -------------------------------------------------------------------------------

Formula = Callable[..., None]
"""``formula(xp, ctx, out, *arrays)``: fills `out`, element by element, in several passes over short arrays."""


def _tiled(
    formula: Formula,
    may_overwrite: tuple[int, ...] = (),
    element: str | Callable[[Any], str] | None = None,
    inline: str | None = None,
) -> Kernel:
    """A kernel that runs a formula on parts that stay in the cache. 16-bit floats are computed in float32.

    Args:
        formula: The formula.
        may_overwrite: See `Kernel`.
        element: The same as an expression; see `Kernel`.
        inline: The same for a few float32 or float64 numbers; see `Kernel`.
    """

    def kernel(ctx: KernelContext, *arrays: Array, out: Array | None = None) -> Array:
        xp = ctx.xp
        if out is None:
            out = xp.empty(arrays[0].shape, arrays[0].dtype)
        return map_flat(xp, lambda *parts: formula(xp, ctx, *parts), out, *arrays)

    kernel.__name__ = formula.__name__

    def expression(op: Operation) -> str | None:
        elements = op.outputs[0].shape.num_elements()
        is_small = elements is not None and elements <= FEW_ELEMENTS and op.inputs[0].dtype.numpy.char in "fd"
        return inline if is_small else None

    return out_kernel(widened(kernel), may_overwrite, elementwise=True, element=element, inline=expression)


@lru_cache(maxsize=16)
def _host_zeros(dtype: NumpyDType) -> Array:
    zeros = np.zeros(FLAT_TILE, dtype)
    zeros.flags.writeable = False
    return zeros


def zeros_for(xp: ArrayModule, array: Array) -> Array:
    """Zeros to compare an array with. NumPy's maximum is three times as fast with an array as with a number."""
    if xp is np and array.size <= FLAT_TILE:
        return _host_zeros(array.dtype)[: array.size].reshape(array.shape)
    return array.dtype.type(0)


def _activation(
    name: str, kernel: Kernel, gradient: GradientFunction | None, types: Any = dtypes.FLOATS, attrs: Any = ()
) -> OpDef:
    return OpDef(
        name=name,
        inputs=("features: T",),
        outputs=("activations: T",),
        attrs=attrs,
        types={"T": types},
        shape=like_input(0),
        kernels=on_every_device(kernel),
        gradient=gradient,
    )


def _activation_gradient(
    name: str, second: str, kernel: Kernel, gradient: Any, types: Any = dtypes.FLOATS, attrs: Any = ()
) -> OpDef:
    return OpDef(
        name=name,
        inputs=("gradients: T", f"{second}: T"),
        outputs=("backprops: T",),
        attrs=attrs,
        types={"T": types},
        shape=all_inputs_alike,
        kernels=on_every_device(kernel),
        gradient=gradient,
    )


# -- relu and its kin ----------------------------------------------------------------------------------


def relu(features: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``max(features, 0)`` elementwise.

    Args:
        features: Shape ``[...]``, a real dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype as `features`. The subgradient at 0 is taken as 0.

    Examples:
        >>> session.run(tf.nn.relu([-1.0, 2.0]))
        array([0., 2.], dtype=float32)
    """
    return add_op(RELU, features, name=name)


def _relu_formula(xp: ArrayModule, ctx: KernelContext, out: Array, features: Array) -> None:
    xp.maximum(features, zeros_for(xp, features), out=out)


def _relu_gradient(op: Operation, d_activations: Tensor) -> list[Tensor | None]:
    # Use the output, not the input: then the input's memory is free before the backward pass.
    return [relu_grad(d_activations, op.outputs[0])]


RELU = register(
    _activation(
        "Relu",
        _tiled(_relu_formula, (0,), "maximum({0}, 0)", "{np.maximum}({0}, 0.0, out={out})"),
        _relu_gradient,
        dtypes.REAL,
    )
)


def relu_grad(gradients: TensorLike, features: TensorLike, name: str | None = None) -> Tensor:
    """Pass `gradients` where `features` (the input or the output of `relu`) is positive, 0 elsewhere.

    The arguments and the result have one shape and dtype.
    """
    return add_op(RELU_GRAD, gradients, features, name=name)


def _relu_grad_formula(xp: ArrayModule, ctx: KernelContext, out: Array, gradients: Array, features: Array) -> None:
    is_positive = buffer(xp, "gate", features.shape, bool)
    xp.greater(features, 0, out=is_positive)
    xp.multiply(gradients, is_positive, out=out)


def _relu_grad_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [relu_grad(d_output, op.inputs[1]), FLAT]


RELU_GRAD = register(
    _activation_gradient(
        "ReluGrad",
        "features",
        _tiled(_relu_grad_formula, (0, 1), "{0} * where({1} > 0, 1, 0)", "{np.multiply}({0}, {1} > 0, {out})"),
        _relu_grad_gradient,
        dtypes.REAL,
    )
)


def relu6(features: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``min(max(features, 0), 6)`` elementwise.

    Args:
        features: Shape ``[...]``, a real dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype. The gradient at 0 and 6 is taken as 0.

    Examples:
        >>> session.run(tf.nn.relu6([-1.0, 2.0, 9.0]))
        array([0., 2., 6.], dtype=float32)
    """
    return add_op(RELU6, features, name=name)


def _relu6_formula(xp: ArrayModule, ctx: KernelContext, out: Array, features: Array) -> None:
    xp.maximum(features, zeros_for(xp, features), out=out)
    xp.minimum(out, 6, out=out)


def _relu6_gradient(op: Operation, d_activations: Tensor) -> list[Tensor | None]:
    return [relu6_grad(d_activations, op.outputs[0])]


RELU6 = register(
    _activation("Relu6", _tiled(_relu6_formula, (0,), "minimum(maximum({0}, 0), 6)"), _relu6_gradient, dtypes.REAL)
)


def relu6_grad(gradients: TensorLike, features: TensorLike, name: str | None = None) -> Tensor:
    """Pass `gradients` where `features` (the input or the output of `relu6`) is between 0 and 6, 0 elsewhere.

    The arguments and the result have one shape and dtype.
    """
    return add_op(RELU6_GRAD, gradients, features, name=name)


def _relu6_grad_formula(xp: ArrayModule, ctx: KernelContext, out: Array, gradients: Array, features: Array) -> None:
    is_within, is_below = (buffer(xp, slot, features.shape, bool) for slot in ("gate", "gate2"))
    xp.greater(features, 0, out=is_within)
    xp.less(features, 6, out=is_below)
    xp.logical_and(is_within, is_below, out=is_within)
    xp.multiply(gradients, is_within, out=out)


def _relu6_grad_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [relu6_grad(d_output, op.inputs[1]), FLAT]


RELU6_GRAD = register(
    _activation_gradient(
        "Relu6Grad",
        "features",
        _tiled(_relu6_grad_formula, (0, 1), "{0} * where(({1} > 0) & ({1} < 6), 1, 0)"),
        _relu6_grad_gradient,
        dtypes.REAL,
    )
)


@none_is_default
def leaky_relu(features: TensorLike, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """Compute `features` where positive, ``alpha * features`` elsewhere.

    Args:
        features: Shape ``[...]``, a float dtype; integers are cast to float32.
        alpha: Slope for negative values.
        name: Name of the operation.

    Returns:
        Same shape and dtype. The slope at 0 is `alpha`.

    Examples:
        >>> session.run(tf.nn.leaky_relu([-1.0, 2.0]))
        array([-0.2,  2. ], dtype=float32)
    """
    features = convert_to_tensor(features)
    if features.dtype.is_integer:
        features = cast(features, dtypes.float32)
    return add_op(LEAKY_RELU, features, name=name, alpha=_number("leaky_relu", "alpha", alpha))


def _number(op: str, what: str, value: Any) -> float:
    if isinstance(value, Tensor):
        value = constant_value(value)
    if value is None:
        raise InvalidArgumentError(f"{op}: {what} must be a number that is known when the graph is built")
    return float(value)


def _leaky_relu_formula(xp: ArrayModule, ctx: KernelContext, out: Array, features: Array) -> None:
    alpha = ctx.attr("alpha")
    xp.multiply(features, features.dtype.type(alpha), out=out)
    (xp.maximum if alpha <= 1 else xp.minimum)(features, out, out=out)


def _leaky_relu_element(op: Operation) -> str:
    alpha = op.attrs["alpha"]
    return f"{'maximum' if alpha <= 1 else 'minimum'}({{0}}, {{0}} * {alpha!r})"


def _leaky_relu_gradient(op: Operation, d_activations: Tensor) -> list[Tensor | None]:
    return [leaky_relu_grad(d_activations, op.inputs[0], op.attr("alpha"))]


LEAKY_RELU = register(
    _activation(
        "LeakyRelu", _tiled(_leaky_relu_formula, element=_leaky_relu_element), _leaky_relu_gradient, attrs=("alpha",)
    )
)


def leaky_relu_grad(gradients: TensorLike, features: TensorLike, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """Pass `gradients` where `features` (the input of `leaky_relu`) is positive, `alpha` of it elsewhere.

    The arguments and the result have one shape and dtype.
    """
    return add_op(LEAKY_RELU_GRAD, gradients, features, name=name, alpha=alpha)


def _leaky_relu_grad_formula(
    xp: ArrayModule, ctx: KernelContext, out: Array, gradients: Array, features: Array
) -> None:
    slope = buffer(xp, "slope", features.shape, features.dtype)
    alpha = ctx.attr("alpha")
    # 1 where positive and 0 elsewhere, stretched to 1 and alpha.
    xp.copyto(slope, features > 0)
    xp.multiply(slope, features.dtype.type(1 - alpha), out=slope)
    xp.add(slope, features.dtype.type(alpha), out=slope)
    xp.multiply(gradients, slope, out=out)


def _leaky_relu_grad_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [leaky_relu_grad(d_output, op.inputs[1], op.attr("alpha")), FLAT]


LEAKY_RELU_GRAD = register(
    _activation_gradient(
        "LeakyReluGrad",
        "features",
        _tiled(_leaky_relu_grad_formula, (0, 1), lambda op: f"{{0}} * where({{1}} > 0, 1, {op.attrs['alpha']!r})"),
        _leaky_relu_grad_gradient,
        attrs=("alpha",),
    )
)


def crelu(features: TensorLike, name: str | None = None, axis: int = -1) -> Tensor:
    """Join `relu` of the features and of their negatives along `axis`, which becomes twice as long.

    Args:
        features: Shape ``[...]``, a float dtype.
        name: Name of the operation.
        axis: Where to join.

    Returns:
        The shape of `features`, with twice the size along `axis`.
    """
    with get_default_graph().name_scope(name or "CRelu"):
        features = convert_to_tensor(features)
        return relu(concat([features, negative(features)], axis))


# -- smooth activations --------------------------------------------------------------------------------


def elu(features: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``exp(features) - 1`` where negative, `features` elsewhere.

    Args:
        features: Shape ``[...]``, a float dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.nn.elu([-1.0, 2.0]))
        array([-0.6321206,  2.       ], dtype=float32)
    """
    return add_op(ELU, features, name=name)


def _elu_formula(xp: ArrayModule, ctx: KernelContext, out: Array, features: Array) -> None:
    one = features.dtype.type(1)
    xp.minimum(features, zeros_for(xp, features), out=out)
    xp.exp(out, out=out)
    xp.subtract(out, one, out=out)
    # exp(x) - 1 >= x, and it is 0 for every positive x here.
    xp.maximum(features, out, out=out)


def _elu_gradient(op: Operation, d_activations: Tensor) -> list[Tensor | None]:
    return [elu_grad(d_activations, op.outputs[0])]


ELU = register(
    _activation("Elu", _tiled(_elu_formula, element="maximum({0}, exp(minimum({0}, 0)) - 1)"), _elu_gradient)
)


def elu_grad(gradients: TensorLike, outputs: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``gradients * (outputs + 1)`` where `outputs` (of `elu`) is negative, `gradients` elsewhere.

    The arguments and the result have one shape and dtype.
    """
    return add_op(ELU_GRAD, gradients, outputs, name=name)


def _elu_grad_formula(xp: ArrayModule, ctx: KernelContext, out: Array, gradients: Array, outputs: Array) -> None:
    slope = buffer(xp, "slope", outputs.shape, outputs.dtype)
    xp.minimum(outputs, zeros_for(xp, outputs), out=slope)
    xp.add(slope, outputs.dtype.type(1), out=slope)
    xp.multiply(gradients, slope, out=out)


def _elu_grad_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    gradients, outputs = op.inputs
    is_negative = cast(less(outputs, 0), outputs.dtype)
    return [elu_grad(d_output, outputs), multiply(multiply(d_output, gradients), is_negative)]


ELU_GRAD = register(
    _activation_gradient(
        "EluGrad", "outputs", _tiled(_elu_grad_formula, (0, 1), "{0} * (minimum({1}, 0) + 1)"), _elu_grad_gradient
    )
)

SELU_SCALE: Final = 1.0507009873554805
SELU_ALPHA: Final = 1.6732632423543772
"""Constants under which `selu` keeps mean 0 and variance 1."""


def selu(features: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``scale * alpha * (exp(features) - 1)`` where negative, ``scale * features`` elsewhere.

    Args:
        features: Shape ``[...]``, a float dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    References:
        Klambauer et al., Self-Normalizing Neural Networks, 2017 (arXiv:1706.02515).
    """
    return add_op(SELU, features, name=name)


def _selu_formula(xp: ArrayModule, ctx: KernelContext, out: Array, features: Array) -> None:
    number, zeros = features.dtype.type, zeros_for(xp, features)
    positive = buffer(xp, "positive", features.shape, features.dtype)
    xp.maximum(features, zeros, out=positive)
    xp.multiply(positive, number(SELU_SCALE), out=positive)
    xp.minimum(features, zeros, out=out)
    xp.exp(out, out=out)
    xp.subtract(out, number(1), out=out)
    xp.multiply(out, number(SELU_SCALE * SELU_ALPHA), out=out)
    xp.add(out, positive, out=out)


def _selu_gradient(op: Operation, d_activations: Tensor) -> list[Tensor | None]:
    return [selu_grad(d_activations, op.outputs[0])]


SELU = register(_activation("Selu", _tiled(_selu_formula, (0,)), _selu_gradient))


def selu_grad(gradients: TensorLike, outputs: TensorLike, name: str | None = None) -> Tensor:
    """Compute the gradient of `selu` from its `outputs`.

    The arguments and the result have one shape and dtype.
    """
    return add_op(SELU_GRAD, gradients, outputs, name=name)


def _selu_grad_formula(xp: ArrayModule, ctx: KernelContext, out: Array, gradients: Array, outputs: Array) -> None:
    number = outputs.dtype.type
    slope, step = (buffer(xp, slot, outputs.shape, outputs.dtype) for slot in ("slope", "step"))
    # The slope is y + scale * alpha below 0 and scale from 0 on.
    xp.copyto(step, outputs < 0)
    xp.multiply(step, number(SELU_SCALE * (SELU_ALPHA - 1)), out=step)
    xp.minimum(outputs, zeros_for(xp, outputs), out=slope)
    xp.add(slope, step, out=slope)
    xp.add(slope, number(SELU_SCALE), out=slope)
    xp.multiply(gradients, slope, out=out)


def _selu_grad_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    gradients, outputs = op.inputs
    is_negative = cast(less(outputs, 0), outputs.dtype)
    return [selu_grad(d_output, outputs), multiply(multiply(d_output, gradients), is_negative)]


SELU_GRAD = register(
    _activation_gradient("SeluGrad", "outputs", _tiled(_selu_grad_formula, (0, 1)), _selu_grad_gradient)
)


def softplus(features: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``log(exp(features) + 1)`` without overflow.

    Args:
        features: Shape ``[...]``, a float dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.nn.softplus([0.0, 2.0]))
        array([0.6931472, 2.126928 ], dtype=float32)
    """
    return add_op(SOFTPLUS, features, name=name)


def log1p_exp_formula(xp: ArrayModule, out: Array, features: Array) -> None:
    """Fill `out`, which may not be `features`, with ``log(1 + exp(-abs(features)))``."""
    if features.size <= _FEW_LOGARITHMS:
        for function, operand in ((xp.abs, features), (xp.negative, out), (xp.exp, out), (xp.log1p, out)):
            function(operand, out=out)
        return
    one = features.dtype.type(1)
    power, rest = (buffer(xp, slot, features.shape, features.dtype) for slot in ("power", "rest"))
    xp.abs(features, out=power)
    xp.exp(xp.negative(power, out=power), out=power)
    # NumPy vectorises log1p on some processors only: take the log of the rounded sum and add what rounding lost.
    xp.add(power, one, out=out)
    xp.subtract(out, one, out=rest)
    xp.subtract(power, rest, out=rest)
    xp.divide(rest, out, out=rest)
    xp.add(xp.log(out, out=out), rest, out=out)


_FEW_LOGARITHMS: Final = 512
"""Elements up to which `log1p` one by one takes no longer than beginning the passes that replace it."""


def _softplus_formula(xp: ArrayModule, ctx: KernelContext, out: Array, features: Array) -> None:
    log1p_exp_formula(xp, out, features)
    positive = buffer(xp, "positive", features.shape, features.dtype)
    xp.add(out, xp.maximum(features, zeros_for(xp, features), out=positive), out=out)


def _softplus_gradient(op: Operation, d_activations: Tensor) -> list[Tensor | None]:
    return [multiply(d_activations, sigmoid(op.inputs[0]))]


SOFTPLUS = register(_activation("Softplus", _tiled(_softplus_formula), _softplus_gradient))


def softsign(features: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``features / (abs(features) + 1)``.

    Args:
        features: Shape ``[...]``, a float dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.nn.softsign([-1.0, 3.0]))
        array([-0.5 ,  0.75], dtype=float32)
    """
    return add_op(SOFTSIGN, features, name=name)


def _softsign_formula(xp: ArrayModule, ctx: KernelContext, out: Array, features: Array) -> None:
    xp.abs(features, out=out)
    xp.add(out, features.dtype.type(1), out=out)
    xp.divide(features, out, out=out)


def _softsign_gradient(op: Operation, d_activations: Tensor) -> list[Tensor | None]:
    return [realdiv(d_activations, square(add(absolute(op.inputs[0]), 1)))]


SOFTSIGN = register(_activation("Softsign", _tiled(_softsign_formula), _softsign_gradient))


def swish(features: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``features * sigmoid(features)``.

    Args:
        features: Shape ``[...]``, a float dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    References:
        Ramachandran et al., Searching for Activation Functions, 2017 (arXiv:1710.05941).
    """
    features = convert_to_tensor(features)
    return multiply(features, sigmoid(features), name or "swish")


def log_sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``log(sigmoid(x))``, exactly for very negative numbers too.

    Args:
        x: Shape ``[...]``, a float dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    return negative(softplus(negative(x)), name or "LogSigmoid")
