"""Activations, biases, losses and normalization."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from tests.support.op_samples import OpError, OpSample, grid, unary_rows
from tests.support.op_samples.array_samples import build_op
from tests.support.references.image_reference import to_nchw
from tfray.framework import dtypes
from tfray.ops.nn import activation_ops, batch_norm_ops, cross_entropy_ops, nn_ops, normalization_ops
from tfray.ops.nn.activation_ops import SELU_ALPHA, SELU_SCALE

WIDE = (dtypes.float32, dtypes.float64)


# -- activations ---------------------------------------------------------------------------------------


def elu(x: Any) -> Any:
    return np.where(x < 0, np.expm1(x), x)


def selu(x: Any) -> Any:
    return SELU_SCALE * np.where(x < 0, SELU_ALPHA * np.expm1(x), x)


def gradient_rows(op: str, build: Any, slope: Any, low: float = -3, high: float = 3, **options: Any) -> list[OpSample]:
    """Rows of a gradient that multiplies its first input by a function of its second."""
    return [
        OpSample(
            op,
            build,
            [grid(*shape, seed=1), grid(*shape, low=low, high=high)],
            lambda d, x: d * slope(x),
            **options,
        )
        for shape in [(3, 4), (), (0, 2)]
    ]


ACTIVATIONS = [
    *unary_rows("Relu", activation_ops.relu, lambda x: np.maximum(x, 0)),
    *gradient_rows("ReluGrad", activation_ops.relu_grad, lambda x: x > 0),
    *unary_rows("Relu6", activation_ops.relu6, lambda x: np.clip(x, 0, 6), low=-5, high=9),
    *gradient_rows("Relu6Grad", activation_ops.relu6_grad, lambda x: (x > 0) & (x < 6), low=-5, high=9),
    *unary_rows("LeakyRelu", activation_ops.leaky_relu, lambda x: np.where(x > 0, x, 0.2 * x)),
    *unary_rows(
        "LeakyRelu",
        activation_ops.leaky_relu,
        lambda x: np.where(x > 0, x, 1.5 * x),
        kwargs={"alpha": 1.5},
        label="steep",
    ),
    *gradient_rows(
        "LeakyReluGrad",
        activation_ops.leaky_relu_grad,
        lambda x: np.where(x > 0, 1, 0.3),
        kwargs={"alpha": 0.3},
    ),
    *unary_rows("Elu", activation_ops.elu, elu),
    *gradient_rows("EluGrad", activation_ops.elu_grad, lambda y: np.where(y < 0, y + 1, 1), low=-0.9),
    *unary_rows("Selu", activation_ops.selu, selu),
    *gradient_rows(
        "SeluGrad",
        activation_ops.selu_grad,
        lambda y: np.where(y < 0, y + SELU_SCALE * SELU_ALPHA, SELU_SCALE),
        low=-1.7,
        tolerance=2,
    ),
    *unary_rows("Softplus", activation_ops.softplus, lambda x: np.logaddexp(x, 0), low=-40, high=40),
    *unary_rows("Softsign", activation_ops.softsign, lambda x: x / (1 + np.abs(x))),
]


# -- biases and sums -----------------------------------------------------------------------------------


def bias_rows() -> list[OpSample]:
    rows = []
    for shape, layout in [((3, 4), "NHWC"), ((2, 3, 4, 5), "NHWC"), ((2, 3, 4, 5), "NCHW"), ((0, 3), "NHWC")]:
        axis = 1 if layout == "NCHW" else len(shape) - 1
        others = tuple(i for i in range(len(shape)) if i != axis)

        def bias_add(value: Any, bias: Any, others: Any = others) -> Any:
            return value + np.expand_dims(bias, others)

        def bias_add_grad(value: Any, others: Any = others) -> Any:
            return value.sum(axis=others)

        some: dict[str, Any] = {"kwargs": {"data_format": layout}, "label": layout}
        rows += [
            OpSample("BiasAdd", nn_ops.bias_add, [grid(*shape), grid(shape[axis], seed=1)], bias_add, **some),
            OpSample("BiasAddGrad", nn_ops.bias_add_grad, [grid(*shape)], bias_add_grad, tolerance=10, **some),
        ]
    return rows + gated_bias_rows()


def gated_bias_rows() -> list[OpSample]:
    rows = []
    for mode, bound in [("Relu", np.inf), ("Relu6", 6)]:

        def gated(d: Any, x: Any, bound: Any = bound) -> Any:
            through = d * ((x > 0) & (x < bound))
            return [through, through.sum(axis=(0, 1))]

        build = build_op(nn_ops.GATED_BIAS_ADD_GRAD, activation_mode=mode, data_format="NHWC", name="gated")
        arrays = [grid(2, 3, 4), grid(2, 3, 4, low=-5, high=9, seed=1)]
        rows.append(OpSample("_GatedBiasAddGrad", build, arrays, gated, tolerance=10, differentiable=(), label=mode))
    return rows


SUMS = [
    OpSample("L2Loss", nn_ops.l2_loss, [grid(*shape)], lambda t: (t**2).sum() / 2, tolerance=4)
    for shape in [(3, 4), (), (0, 2)]
]


# -- softmax and cross entropy -------------------------------------------------------------------------


def softmax_grad(d: Any, y: Any) -> Any:
    return (d - (d * y).sum(-1, keepdims=True)) * y


def log_softmax_grad(d: Any, y: Any) -> Any:
    return d - np.exp(y) * d.sum(-1, keepdims=True)


def softmax_rows() -> list[OpSample]:
    rows = []
    for shape in [(4,), (3, 5), (2, 3, 4), (0, 3), (2, 1)]:
        x, d = grid(*shape), grid(*shape, seed=1)
        ops = cross_entropy_ops
        rows += [
            OpSample("Softmax", ops.softmax, [x], lambda x: special.softmax(x, -1)),
            OpSample("SoftmaxGrad", ops.softmax_grad, [d, special.softmax(x, -1)], softmax_grad, tolerance=4),
            OpSample("LogSoftmax", ops.log_softmax, [x], lambda x: special.log_softmax(x, -1), tolerance=2),
            OpSample(
                "LogSoftmaxGrad",
                build_op(ops.LOG_SOFTMAX_GRAD),
                [d, special.log_softmax(x, -1)],
                log_softmax_grad,
                tolerance=10,
            ),
        ]
    swapped: dict[str, Any] = {"kwargs": {"axis": 1}, "modes": ("known", "unknown sizes"), "label": "axis"}
    x = grid(2, 3, 4)
    return [
        *rows,
        OpSample("Softmax", cross_entropy_ops.softmax, [x], lambda x: special.softmax(x, 1), **swapped),
        OpSample("LogSoftmax", cross_entropy_ops.log_softmax, [x], lambda x: special.log_softmax(x, 1), **swapped),
    ]


def distribution(*shape: int, axis: int = -1) -> Any:
    return special.softmax(grid(*shape, seed=2), axis)


def cross_entropy(labels: Any, logits: Any, axis: int = -1) -> Any:
    return -(labels * special.log_softmax(logits, axis)).sum(axis)


def both_outputs(definition: Any) -> Any:
    """What the operation itself computes: losses and their derivatives."""
    from tfray.framework.convert import add_op

    return lambda logits, labels: add_op(definition, logits, labels)


def sparse_cross_entropy(labels: Any, logits: Any) -> Any:
    chosen = np.take_along_axis(special.log_softmax(logits, -1), labels[..., None], -1)
    return -chosen[..., 0]


def cross_entropy_rows() -> list[OpSample]:
    rows: list[OpSample] = []
    for shape in [(3, 4), (2, 3, 5), (4,), (0, 3)]:
        rows.append(
            OpSample(
                "SoftmaxCrossEntropyWithLogits",
                cross_entropy_ops.softmax_cross_entropy_with_logits_v2,
                [distribution(*shape), grid(*shape)],
                cross_entropy,
                dtypes=dtypes.FLOATS,
                tolerance=4,
            )
        )
    rows.append(
        OpSample(
            "SoftmaxCrossEntropyWithLogits",
            lambda y, x: cross_entropy_ops.softmax_cross_entropy_with_logits_v2(y, x, axis=1),
            [distribution(2, 3, 4, axis=1), grid(2, 3, 4)],
            lambda y, x: cross_entropy(y, x, 1),
            dtypes=WIDE,
            modes=("known", "unknown sizes"),
            tolerance=4,
        )
    )
    rows.append(
        OpSample(
            "SoftmaxCrossEntropyWithLogits",
            both_outputs(cross_entropy_ops.SOFTMAX_CROSS_ENTROPY),
            [grid(3, 4), distribution(3, 4)],
            lambda x, y: (cross_entropy(y, x), special.softmax(x, -1) - y),
            dtypes=WIDE,
            tolerance=4,
            label="both",
        )
    )
    for shape, dtype in [((3, 4), np.int32), ((2, 3, 5), np.int64), ((4,), np.int32), ((0, 3), np.int64)]:
        labels = np.arange(int(np.prod(shape[:-1])), dtype=dtype).reshape(shape[:-1]) % shape[-1]
        rows.append(
            OpSample(
                "SparseSoftmaxCrossEntropyWithLogits",
                lambda y, x: cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x),
                [labels, grid(*shape)],
                sparse_cross_entropy,
                dtypes=dtypes.FLOATS,
                tolerance=4,
            )
        )
    rows.append(
        OpSample(
            "SparseSoftmaxCrossEntropyWithLogits",
            both_outputs(cross_entropy_ops.SPARSE_SOFTMAX_CROSS_ENTROPY),
            [grid(3, 4), np.array([3, 0, 1], np.int32)],
            lambda x, y: (sparse_cross_entropy(y, x), special.softmax(x, -1) - np.eye(4)[y]),
            dtypes=WIDE,
            tolerance=4,
            label="both",
        )
    )
    return rows


def sigmoid_cross_entropy(x: Any, z: Any) -> Any:
    return z * np.logaddexp(0, -x) + (1 - z) * np.logaddexp(0, x)


SIGMOID = [
    OpSample(
        "SigmoidCrossEntropyWithLogits",
        lambda x, z: cross_entropy_ops.sigmoid_cross_entropy_with_logits(labels=z, logits=x),
        [grid(*shape, low=-30, high=30), grid(*shape, low=0, high=1, seed=1)],
        sigmoid_cross_entropy,
        tolerance=2,
    )
    for shape in [(3, 4), (), (0, 2)]
]


# -- normalization -------------------------------------------------------------------------------------


def per_channel(vector: Any, layout: str) -> Any:
    return vector if layout == "NHWC" else vector[:, None, None]


def axes_of(layout: str) -> tuple[int, int, int]:
    return (0, 1, 2) if layout == "NHWC" else (0, 2, 3)


def batch_norm(x: Any, scale: Any, offset: Any, mean: Any, variance: Any, layout: str) -> Any:
    mean, variance, scale, offset = (per_channel(v, layout) for v in (mean, variance, scale, offset))
    return (x - mean) / np.sqrt(variance + 0.01) * scale + offset


def batch_norm_rows() -> list[OpSample]:
    rows = []
    for layout in ("NHWC", "NCHW"):
        axes = axes_of(layout)
        x = grid(3, 2, 4, 5) if layout == "NHWC" else to_nchw(grid(3, 2, 4, 5))
        d = grid(*x.shape, seed=1)
        scale, offset = grid(5, low=0.5, high=2, seed=2), grid(5, seed=3)
        mean, variance = grid(5, low=-1, high=1, seed=4), grid(5, low=0.5, high=2, seed=5)
        common = {"epsilon": 0.01, "data_format": layout}

        def training(x: Any, scale: Any, offset: Any, layout: str = layout, axes: Any = axes) -> Any:
            mean, variance = x.mean(axes), x.var(axes)
            return batch_norm(x, scale, offset, mean, variance, layout), mean, x.var(axes, ddof=1)

        def inference(x: Any, scale: Any, offset: Any, mean: Any, variance: Any, layout: str = layout) -> Any:
            return batch_norm(x, scale, offset, mean, variance, layout), mean, variance

        def inference_gradient(
            d: Any, x: Any, scale: Any, mean: Any, variance: Any, layout: str = layout, axes: Any = axes
        ) -> Any:
            r = 1 / np.sqrt(per_channel(variance, layout) + 0.01)
            normalized = (x - per_channel(mean, layout)) * r
            return d * r * per_channel(scale, layout), (d * normalized).sum(axes), d.sum(axes)

        def training_gradient(d: Any, x: Any, scale: Any, layout: str = layout, axes: Any = axes) -> Any:
            r = 1 / np.sqrt(x.var(axes, keepdims=True) + 0.01)
            n = (x - x.mean(axes, keepdims=True)) * r
            along = (d * n).mean(axes, keepdims=True)
            d_x = per_channel(scale, layout) * r * (d - d.mean(axes, keepdims=True) - n * along)
            return d_x, (d * n).sum(axes), d.sum(axes)

        def build_training_gradient(d: Any, x: Any, scale: Any, common: Any = common, axes: Any = axes) -> Any:
            statistics = normalization_ops.moments(x, list(axes))
            build = build_op(batch_norm_ops.FUSED_BATCH_NORM_GRAD, is_training=True, **common)
            return build(d, x, scale, *statistics)

        ops, some = batch_norm_ops, {"dtypes": WIDE, "tolerance": 20, "label": layout}
        rows += [
            OpSample("FusedBatchNorm", ops.fused_batch_norm, [x, scale, offset], training, kwargs=common, **some),
            OpSample(
                "FusedBatchNorm",
                ops.fused_batch_norm,
                [x, scale, offset, mean, variance],
                inference,
                kwargs={**common, "is_training": False},
                **some,
            ),
            OpSample("FusedBatchNormGrad", build_training_gradient, [d, x, scale], training_gradient, **some),
            OpSample(
                "FusedBatchNormGrad",
                build_op(ops.FUSED_BATCH_NORM_GRAD, is_training=False, **common),
                [d, x, scale, mean, variance],
                inference_gradient,
                **some,
            ),
        ]
        for mode, most in (("Relu", np.inf), ("Relu6", 6.0)):
            own = {**common, "activation_mode": mode, "is_training": False, "name": "activated"}

            def activated(*arrays: Any, most: float = most, inference: Any = inference) -> Any:
                y, *statistics = inference(*arrays)
                return np.clip(y, 0, most), *statistics

            def activated_gradient(
                d: Any, x: Any, *arrays: Any, most: float = most, gradient: Any = inference_gradient
            ) -> Any:
                *statistics, _, y = arrays
                return gradient(d * ((y > 0) & (y < most)), x, *statistics)

            wide_scale, y = 4 * scale, np.clip(batch_norm(x, 4 * scale, offset, mean, variance, layout), 0, most)
            arrays = [wide_scale, offset, mean, variance]
            none = {**some, "label": f"{layout} {mode}", "differentiable": ()}
            rows += [
                OpSample(
                    "_FusedBatchNormEx",
                    first_three(build_op(ops.ACTIVATED_BATCH_NORM, **own)),
                    [x, *arrays],
                    activated,
                    **none,
                ),
                OpSample(
                    "_FusedBatchNormGradEx",
                    build_op(ops.ACTIVATED_BATCH_NORM_GRAD, **own),
                    [d, x, wide_scale, mean, variance, offset, y],
                    activated_gradient,
                    **none,
                ),
            ]
    return rows


def first_three(build: Any) -> Any:
    """The images, the mean and the variance: what else there is repeats the last two."""
    return lambda *arrays: build(*arrays)[:3]


def activity(x: Any, radius: int, bias: float, alpha: float) -> Any:
    channels = x.shape[-1]
    sums = [(x[..., max(0, c - radius) : c + radius + 1] ** 2).sum(-1) for c in range(channels)]
    return bias + alpha * np.stack(sums, -1) if channels else np.zeros(x.shape)


def lrn(x: Any, radius: int = 2, bias: float = 1.5, alpha: float = 0.3, beta: float = 0.75) -> Any:
    return x / activity(x, radius, bias, alpha) ** beta


def lrn_grad(d: Any, x: Any, y: Any, radius: int = 2, bias: float = 1.5, alpha: float = 0.3, beta: float = 0.75) -> Any:
    s = activity(x, radius, bias, alpha)
    share = d * y / s
    channels = x.shape[-1]
    sums = [share[..., max(0, c - radius) : c + radius + 1].sum(-1) for c in range(channels)]
    return d / s**beta - 2 * alpha * beta * x * np.stack(sums, -1)


def lrn_rows() -> list[OpSample]:
    rows = []
    for beta in (0.5, 0.75, 1.0, 0.6):
        kwargs = {"depth_radius": 2, "bias": 1.5, "alpha": 0.3, "beta": beta}
        x, d = grid(2, 2, 3, 7), grid(2, 2, 3, 7, seed=1)
        rows.append(
            OpSample(
                "LRN",
                normalization_ops.lrn,
                [x],
                lambda x, beta=beta: lrn(x, beta=beta),
                kwargs=kwargs,
                twice=False,
                tolerance=4,
                label=str(beta),
            )
        )
        rows.append(
            OpSample(
                "LRNGrad",
                build_op(normalization_ops.LRN_GRAD, **kwargs),
                [d, x, lrn(x, beta=beta)],
                lambda d, x, y, beta=beta: lrn_grad(d, x, y, beta=beta),
                tolerance=10,
                label=str(beta),
            )
        )
    rows.append(OpSample("LRN", normalization_ops.lrn, [grid(0, 2, 2, 3)], lambda x: x, twice=False))
    return rows


SAMPLES = [
    *ACTIVATIONS,
    *bias_rows(),
    *SUMS,
    *softmax_rows(),
    *cross_entropy_rows(),
    *SIGMOID,
    *batch_norm_rows(),
    *lrn_rows(),
]

ERRORS = [
    OpError("BiasAdd", nn_ops.bias_add, [grid(2, 3), grid(4)], "incompatible"),
    OpError("BiasAdd", nn_ops.bias_add, [grid(2, 3), grid(4)], "does not fit", at_run=True),
    OpError("Softmax", cross_entropy_ops.softmax, [np.float64(1)], "at least rank 1"),
    OpError(
        "SparseSoftmaxCrossEntropyWithLogits",
        lambda y, x: cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x),
        [np.array([0, 4], np.int32), grid(2, 4)],
        "label 4 is not one of the 4 classes",
        at_run=True,
    ),
    OpError(
        "SparseSoftmaxCrossEntropyWithLogits",
        lambda y, x: cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x),
        [np.array([-1, 0], np.int64), grid(2, 4)],
        "label -1 is not",
        at_run=True,
    ),
]

TESTED_ELSEWHERE = dict.fromkeys(
    ("Dequantize", "QuantizeAndDequantizeV2", "QuantizeV2"),
    "steps have no slope; tests/support/cases/golden_cases.py has the values",
)
