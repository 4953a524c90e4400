"""Calls of TensorFlow 1's public functions, made alike by tfray and by TensorFlow.

`scripts/golden.py` runs them under TensorFlow and keeps the results in ``tests/golden/values.npz``;
`tests/ops/test_golden.py` compares what tfray gives. This module imports neither.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Input:
    """A random array: its shape, dtype, and bounds."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -2.0
    high: float = 2.0

    def draw(self, generator: np.random.Generator) -> np.ndarray:
        if self.dtype == "bool":
            return generator.random(self.shape) < 0.5
        if self.dtype.startswith("complex"):
            parts = generator.uniform(self.low, self.high, (2, *self.shape))
            return (parts[0] + 1j * parts[1]).astype(self.dtype)
        if "int" in self.dtype:
            return generator.integers(int(self.low), int(self.high), self.shape).astype(self.dtype)
        return generator.uniform(self.low, self.high, self.shape).astype(self.dtype)


@dataclass(frozen=True)
class Case:
    """One call.

    Attributes:
        name: Unique name.
        call: ``call(tf, *tensors)``: a tensor or a list of tensors.
        inputs: What it is called with.
        gradient: Whether gradients are compared too, with respect to every float input.
        rtol: Relative tolerance; absolute is the same.
    """

    name: str
    call: Callable[..., Any]
    inputs: tuple[Input, ...]
    gradient: bool = True
    rtol: float = 2e-5

    def arrays(self) -> list[np.ndarray]:
        """The inputs, the same in every run."""
        generator = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [given.draw(generator) for given in self.inputs]


def F(*shape: int, low: float = -2.0, high: float = 2.0) -> Input:
    return Input(shape, "float32", low, high)


def D(*shape: int, low: float = -2.0, high: float = 2.0) -> Input:
    return Input(shape, "float64", low, high)


def I(*shape: int, low: int = 0, high: int = 5, dtype: str = "int32") -> Input:  # noqa: E743
    return Input(shape, dtype, low, high)


def C(*shape: int) -> Input:
    return Input(shape, "complex64")


def B(*shape: int) -> Input:
    return Input(shape, "bool")


POSITIVE = {"low": 0.2, "high": 3.0}
UNIT = {"low": -0.9, "high": 0.9}

CASES: list[Case] = []


def case(name: str, call: Callable[..., Any], *inputs: Input, gradient: bool = True, rtol: float = 2e-5) -> None:
    CASES.append(Case(name, call, inputs, gradient, rtol))


# -- elementwise ---------------------------------------------------------------------------------------

for _name in [
    "abs",
    "negative",
    "sign",
    "square",
    "exp",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "sigmoid",
    "atan",
    "asinh",
    "erf",
    "erfc",
    "expm1",
]:
    case(_name, lambda tf, x, f=_name: getattr(tf.math, f)(x), F(3, 4))
for _name in ["log", "log1p", "sqrt", "rsqrt", "reciprocal", "lgamma", "digamma"]:
    case(_name, lambda tf, x, f=_name: getattr(tf.math, f)(x), F(3, 4, **POSITIVE), rtol=1e-4)
for _name in ["asin", "acos", "atanh", "erfinv", "ndtri"]:
    bounds = {"low": 0.1, "high": 0.9} if _name == "ndtri" else UNIT
    case(_name, lambda tf, x, f=_name: getattr(tf.math, f)(x), F(3, 4, **bounds), rtol=1e-4)
case("acosh", lambda tf, x: tf.math.acosh(x), F(3, 4, low=1.2, high=4.0))
for _name in ["floor", "ceil", "rint", "round"]:
    case(_name, lambda tf, x, f=_name: getattr(tf.math, f)(x), F(3, 4), gradient=False)
for _name in ["bessel_i0e", "bessel_i1e"]:
    case(_name, lambda tf, x, f=_name: getattr(tf.math, f)(x), D(3, 4), rtol=1e-6)
for _name in [
    "relu",
    "relu6",
    "elu",
    "selu",
    "softplus",
    "softsign",
    "leaky_relu",
    "crelu",
    "swish",
    "log_softmax",
    "softmax",
]:
    case(f"nn.{_name}", lambda tf, x, f=_name: getattr(tf.nn, f)(x), F(3, 4))
for _name in ["add", "subtract", "multiply", "maximum", "minimum", "squared_difference"]:
    case(_name, lambda tf, x, y, f=_name: getattr(tf.math, f)(x, y), F(3, 1, 4), F(2, 4))
for _name in ["truediv", "divide", "atan2", "divide_no_nan"]:
    case(_name, lambda tf, x, y, f=_name: getattr(tf.math, f)(x, y), F(3, 4), F(4, **POSITIVE))
case("pow", lambda tf, x, y: tf.pow(x, y), F(3, 4, **POSITIVE), F(4))
case("floordiv int", lambda tf, x, y: tf.floordiv(x, y), I(3, 4, low=-9, high=9), I(4, low=1, high=4))
case("floormod int", lambda tf, x, y: tf.math.floormod(x, y), I(3, 4, low=-9, high=9), I(4, low=1, high=4))
case("floormod", lambda tf, x, y: tf.math.floormod(x, y), F(3, 4), F(4, **POSITIVE), gradient=False)
case("truncatediv", lambda tf, x, y: tf.truncatediv(x, y), I(3, 4, low=-9, high=9), I(4, low=1, high=4))
case("truncatemod", lambda tf, x, y: tf.truncatemod(x, y), I(3, 4, low=-9, high=9), I(4, low=1, high=4))
case("xlogy", lambda tf, x, y: tf.math.xlogy(x, y), F(3, 4), F(3, 4, **POSITIVE))
case("xdivy", lambda tf, x, y: tf.math.xdivy(x, y), F(3, 4), F(3, 4, **POSITIVE))
case("igamma", lambda tf, x: tf.math.igamma(2.5, x), F(3, 4, **POSITIVE), rtol=1e-4)
case("igammac", lambda tf, x: tf.math.igammac(2.5, x), F(3, 4, **POSITIVE), rtol=1e-4)
case("betainc", lambda tf, x: tf.math.betainc(2.0, 3.0, x), F(3, 4, low=0.1, high=0.9), rtol=1e-4)
case("zeta", lambda tf, x: tf.math.zeta(x, 2.0), F(4, low=2.0, high=5.0), gradient=False, rtol=1e-4)
case("polygamma", lambda tf, x: tf.math.polygamma(2.0, x), F(4, **POSITIVE), rtol=1e-3)
case("lbeta", lambda tf, x: tf.math.lbeta(x), F(3, 4, **POSITIVE), rtol=1e-4)
for _name in ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]:
    case(_name, lambda tf, x, y, f=_name: getattr(tf.math, f)(x, y), I(3, 4), I(4))
for _name in ["logical_and", "logical_or", "logical_xor"]:
    case(_name, lambda tf, x, y, f=_name: getattr(tf.math, f)(x, y), B(3, 4), B(4))
for _name in ["is_nan", "is_inf", "is_finite"]:
    case(_name, lambda tf, x, f=_name: getattr(tf.math, f)(tf.math.log(x)), F(12), gradient=False)
case("clip_by_value", lambda tf, x: tf.clip_by_value(x, -0.5, 1.0), F(3, 4))
case("clip_by_norm", lambda tf, x: tf.clip_by_norm(x, 1.5), F(3, 4))
case("clip_by_global_norm", lambda tf, x, y: tf.clip_by_global_norm([x, y], 1.5)[0], F(3, 4), F(2))
case("complex", lambda tf, x, y: tf.complex(x, y), F(3), F(3), gradient=False)
case("real imag conj angle", lambda tf, z: [tf.math.real(z), tf.math.imag(z), tf.math.angle(z)], C(3, 4))
case("add_n", lambda tf, x, y: tf.add_n([x, y, x]), F(3, 4), F(3, 4))
case("cumsum", lambda tf, x: tf.cumsum(x, axis=1, exclusive=True, reverse=True), F(3, 4))
case("cumprod", lambda tf, x: tf.math.cumprod(x, axis=0, exclusive=True), F(3, 4, **POSITIVE))
case("where", lambda tf, c, x, y: tf.where(c, x, y), B(3, 4), F(3, 4), F(3, 4))
case("where indices", lambda tf, c: tf.where(c), B(3, 4))
case("cast", lambda tf, x: tf.cast(x, tf.int32), F(3, 4), gradient=False)
case("saturate_cast", lambda tf, x: tf.saturate_cast(x * 200, tf.uint8), F(3, 4), gradient=False)
case("bitcast", lambda tf, x: tf.bitcast(x, tf.int32), F(3, 4), gradient=False)
case("bitwise", lambda tf, x, y: [tf.bitwise.bitwise_and(x, y), tf.bitwise.bitwise_xor(x, y)], I(9), I(9))

# -- reductions ----------------------------------------------------------------------------------------

for _name in ["reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_logsumexp"]:
    case(_name, lambda tf, x, f=_name: getattr(tf, f)(x, axis=[0, 2]), F(3, 2, 4, **POSITIVE), rtol=2e-4)
    case(f"{_name} keepdims", lambda tf, x, f=_name: getattr(tf, f)(x, axis=-1, keepdims=True), F(3, 2, 4))
for _name in ["reduce_all", "reduce_any"]:
    case(_name, lambda tf, x, f=_name: getattr(tf, f)(x, axis=1), B(4, 2))
case("reduce_std", lambda tf, x: tf.math.reduce_std(x, 1), F(3, 4))
case("reduce_variance", lambda tf, x: tf.math.reduce_variance(x, 1), F(3, 4))
case("reduce_euclidean_norm", lambda tf, x: tf.math.reduce_euclidean_norm(x, 1), F(3, 4))
case("argmax argmin", lambda tf, x: [tf.argmax(x, 1), tf.argmin(x, 0)], F(3, 4), gradient=False)
case("count_nonzero", lambda tf, x: tf.math.count_nonzero(x, 1), I(3, 4))
case("norm", lambda tf, x: [tf.norm(x), tf.norm(x, ord=1, axis=1), tf.norm(x, ord=np.inf, axis=0)], F(3, 4))
case("moments", lambda tf, x: list(tf.nn.moments(x, [0])), F(5, 3))
case("weighted_moments", lambda tf, x, w: list(tf.nn.weighted_moments(x, [0], w)), F(5, 3), F(5, 3, **POSITIVE))
case("segment_sum", lambda tf, x: tf.math.segment_sum(x, [0, 0, 2, 3, 3]), F(5, 3))
case("segment_mean", lambda tf, x: tf.math.segment_mean(x, [0, 0, 2, 3, 3]), F(5, 3))
case("segment_max", lambda tf, x: tf.math.segment_max(x, [0, 0, 1, 1, 1]), F(5, 3))
case("segment_prod", lambda tf, x: tf.math.segment_prod(x, [0, 0, 1, 1, 1]), F(5, 3), gradient=False)
for _name in ["sum", "mean", "max", "min", "prod", "sqrt_n"]:
    case(
        f"unsorted_segment_{_name}",
        lambda tf, x, f=_name: getattr(tf.math, f"unsorted_segment_{f}")(x, [2, 0, 2, 0, 1], 3),
        F(5, 3, **POSITIVE),
    )
case("sparse_segment_mean", lambda tf, x: tf.sparse.segment_mean(x, [3, 0, 2], [0, 0, 1]), F(4, 3))
case("bincount", lambda tf, x: tf.math.bincount(x), I(20))
case("confusion_matrix", lambda tf, x, y: tf.math.confusion_matrix(x, y, 5), I(9), I(9))

# -- arrays --------------------------------------------------------------------------------------------

case("reshape transpose", lambda tf, x: tf.transpose(tf.reshape(x, [2, -1, 3]), [2, 0, 1]), F(3, 4))
case("concat", lambda tf, x, y: tf.concat([x, y], 1), F(3, 2), F(3, 4))
case("stack unstack", lambda tf, x, y: tf.unstack(tf.stack([x, y], 1), axis=2), F(3, 2), F(3, 2))
case("split", lambda tf, x: tf.split(x, [1, 3, 2], 1), F(2, 6))
case("slice", lambda tf, x: tf.slice(x, [1, 0], [2, -1]), F(4, 3))
case("strided_slice", lambda tf, x: x[1:, ::-2, tf.newaxis, ..., 1], F(3, 5, 2))
case("gather", lambda tf, x: tf.gather(x, [[2, 0], [1, 1]], axis=1), F(2, 3, 2))
case("gather_nd", lambda tf, x: tf.gather_nd(x, [[0, 1], [2, 0]]), F(3, 2, 4))
case("batch_gather", lambda tf, x: tf.gather(x, [[1, 0], [2, 2]], batch_dims=1), F(2, 3))
case("scatter_nd", lambda tf, x: tf.scatter_nd([[1], [3], [1]], x, [5, 2]), F(3, 2))
case("tensor_scatter_nd_update", lambda tf, x, y: tf.tensor_scatter_nd_update(x, [[1], [3]], y), F(5, 2), F(2, 2))
case("tile", lambda tf, x: tf.tile(x, [2, 3]), F(2, 3))
case("pad", lambda tf, x: tf.pad(x, [[1, 2], [0, 1]], constant_values=0.5), F(2, 3))
case("pad reflect", lambda tf, x: tf.pad(x, [[1, 1], [2, 0]], "REFLECT"), F(3, 4))
case("pad symmetric", lambda tf, x: tf.pad(x, [[1, 1], [2, 0]], "SYMMETRIC"), F(3, 4))
case("reverse", lambda tf, x: tf.reverse(x, [0, 2]), F(2, 3, 4))
case("reverse_sequence", lambda tf, x: tf.reverse_sequence(x, [1, 3], seq_axis=1, batch_axis=0), F(2, 4))
case("roll", lambda tf, x: tf.roll(x, [1, -2], [0, 1]), F(3, 4))
case("one_hot", lambda tf, x: tf.one_hot(x, 5, on_value=2.0, off_value=-1.0), I(4))
case("expand squeeze", lambda tf, x: tf.squeeze(tf.expand_dims(x, 1), [1]), F(3, 2))
case("broadcast_to", lambda tf, x: tf.broadcast_to(x, [3, 2, 4]), F(2, 1))
case("boolean_mask", lambda tf, x: tf.boolean_mask(x, [True, False, True]), F(3, 2))
case("dynamic_partition", lambda tf, x: tf.dynamic_partition(x, [1, 0, 1, 2], 3), F(4, 2))
case("dynamic_stitch", lambda tf, x, y: tf.dynamic_stitch([[0, 3], [2, 1]], [x, y]), F(2, 2), F(2, 2))
case("sequence_mask", lambda tf, x: tf.sequence_mask(x, 6), I(4))
case("unique_with_counts", lambda tf, x: list(tf.unique_with_counts(x)), I(12))
case("setdiff1d", lambda tf, x: list(tf.setdiff1d(x, [1, 3])), I(8))
case("searchsorted", lambda tf, x: tf.searchsorted([0.0, 0.5, 1.0], x), F(6), gradient=False)
case("top_k", lambda tf, x: list(tf.nn.top_k(x, 2)), F(3, 5))
case("in_top_k", lambda tf, x: tf.nn.in_top_k(x, [1, 0, 2], 2), F(3, 5), gradient=False)
case("sort", lambda tf, x: [tf.sort(x, 1), tf.sort(x, 0, direction="DESCENDING")], F(3, 5))
case("argsort", lambda tf, x: tf.argsort(x, axis=1), F(3, 5), gradient=False)
case("invert_permutation", lambda tf: tf.math.invert_permutation([2, 0, 3, 1]))
case("linspace range", lambda tf: [tf.linspace(0.0, 1.0, 7), tf.range(3, 20, 4)])
case("meshgrid", lambda tf, x, y: tf.meshgrid(x, y), F(3), F(2))
case("space_to_depth", lambda tf, x: tf.nn.space_to_depth(x, 2), F(2, 4, 6, 3))
case("depth_to_space", lambda tf, x: tf.nn.depth_to_space(x, 2), F(2, 2, 3, 8))
case("space_to_batch_nd", lambda tf, x: tf.space_to_batch_nd(x, [2, 2], [[0, 0], [1, 1]]), F(1, 4, 4, 2))
case("batch_to_space_nd", lambda tf, x: tf.batch_to_space_nd(x, [2, 2], [[0, 1], [0, 0]]), F(4, 2, 2, 2))
case(
    "extract_image_patches",
    lambda tf, x: tf.image.extract_patches(x, [1, 2, 2, 1], [1, 1, 2, 1], [1, 1, 1, 1], "VALID"),
    F(2, 4, 5, 2),
)
case("unravel_index", lambda tf, x: tf.unravel_index(x, [3, 4]), I(5, low=0, high=12))

# -- linear algebra ------------------------------------------------------------------------------------

case("matmul", lambda tf, a, b: tf.matmul(a, b, transpose_a=True), F(4, 3), F(4, 2))
case("batch matmul", lambda tf, a, b: tf.matmul(a, b, adjoint_b=True), F(2, 1, 3, 4), F(3, 2, 4))
case("tensordot", lambda tf, a, b: tf.tensordot(a, b, [[1, 2], [0, 1]]), F(2, 3, 4), F(3, 4, 2))
case("einsum", lambda tf, a, b: tf.einsum("bij,bkj->bik", a, b), F(2, 3, 4), F(2, 5, 4))
case(
    "cholesky", lambda tf, a: tf.linalg.cholesky(tf.matmul(a, a, transpose_b=True) + 3 * tf.eye(3)), F(3, 3), rtol=1e-4
)
case("inverse", lambda tf, a: tf.linalg.inv(a + 5 * tf.eye(3)), F(2, 3, 3), rtol=1e-4)
case("determinant", lambda tf, a: tf.linalg.det(a + 3 * tf.eye(3)), F(2, 3, 3), rtol=1e-4)
case("slogdet", lambda tf, a: list(tf.linalg.slogdet(a + 3 * tf.eye(3))), F(2, 3, 3), rtol=1e-4)
case("solve", lambda tf, a, b: tf.linalg.solve(a + 4 * tf.eye(3), b), F(3, 3), F(3, 2), rtol=1e-4)
case("triangular_solve", lambda tf, a, b: tf.linalg.triangular_solve(a + 4 * tf.eye(3), b), F(3, 3), F(3, 2), rtol=1e-4)
case("svd values", lambda tf, a: tf.linalg.svd(a, compute_uv=False), F(4, 3), rtol=1e-4)
case("eigvalsh", lambda tf, a: tf.linalg.eigvalsh(a + tf.transpose(a)), F(3, 3), rtol=1e-4)
case("matrix_band_part", lambda tf, a: tf.linalg.band_part(a, 1, 0), F(4, 4))
case("diag", lambda tf, x: [tf.linalg.diag(x), tf.linalg.diag_part(tf.linalg.diag(x))], F(2, 3))
case("set_diag", lambda tf, a, x: tf.linalg.set_diag(a, x), F(2, 3, 3), F(2, 3))
case("trace", lambda tf, a: tf.linalg.trace(a), F(2, 3, 3))
case("cross", lambda tf, a, b: tf.linalg.cross(a, b), F(4, 3), F(4, 3))
case("expm", lambda tf, a: tf.linalg.expm(a), F(3, 3, **UNIT), gradient=False, rtol=1e-4)

# -- networks ------------------------------------------------------------------------------------------

case("bias_add", lambda tf, x, b: tf.nn.bias_add(x, b), F(2, 3, 4), F(4))
case("l2_loss", lambda tf, x: tf.nn.l2_loss(x), F(3, 4))
case("l2_normalize", lambda tf, x: tf.nn.l2_normalize(x, 1), F(3, 4))
case(
    "softmax_cross_entropy",
    lambda tf, x, y: tf.nn.softmax_cross_entropy_with_logits(labels=tf.stop_gradient(tf.nn.softmax(y)), logits=x),
    F(3, 5),
    F(3, 5),
)
case(
    "sparse_softmax_cross_entropy",
    lambda tf, x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 4, 0], logits=x),
    F(3, 5),
)
case(
    "sigmoid_cross_entropy",
    lambda tf, x, y: tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.sigmoid(y), logits=x),
    F(3, 5),
    F(3, 5),
)
case(
    "weighted_cross_entropy",
    lambda tf, x, y: tf.nn.weighted_cross_entropy_with_logits(labels=tf.sigmoid(y), logits=x, pos_weight=2.0),
    F(3, 5),
    F(3, 5),
)
case("log_poisson_loss", lambda tf, x, y: tf.nn.log_poisson_loss(y, x), F(3, 5), F(3, 5, **POSITIVE))
for _padding in ("SAME", "VALID"):
    for _stride in (1, 2):
        case(
            f"conv2d {_padding} {_stride}",
            lambda tf, x, w, p=_padding, s=_stride: tf.nn.conv2d(x, w, strides=[1, s, s, 1], padding=p),
            F(2, 7, 6, 3),
            F(3, 2, 3, 4),
            rtol=1e-4,
        )
        case(
            f"max_pool {_padding} {_stride}",
            lambda tf, x, p=_padding, s=_stride: tf.nn.max_pool2d(x, [1, 3, 2, 1], [1, s, s, 1], p),
            F(2, 7, 6, 3),
        )
        case(
            f"avg_pool {_padding} {_stride}",
            lambda tf, x, p=_padding, s=_stride: tf.nn.avg_pool2d(x, [1, 3, 2, 1], [1, s, s, 1], p),
            F(2, 7, 6, 3),
        )
    case(
        f"depthwise_conv2d {_padding}",
        lambda tf, x, w, p=_padding: tf.nn.depthwise_conv2d(x, w, [1, 2, 2, 1], p),
        F(2, 7, 6, 3),
        F(3, 2, 3, 2),
        rtol=1e-4,
    )
    case(f"conv1d {_padding}", lambda tf, x, w, p=_padding: tf.nn.conv1d(x, w, 2, p), F(2, 7, 3), F(3, 3, 4), rtol=1e-4)
    case(
        f"conv3d {_padding}",
        lambda tf, x, w, p=_padding: tf.nn.conv3d(x, w, [1, 2, 1, 1, 1], p),
        F(1, 5, 4, 4, 2),
        F(2, 2, 3, 2, 3),
        rtol=1e-4,
    )
    case(
        f"max_pool3d {_padding}",
        lambda tf, x, p=_padding: tf.nn.max_pool3d(x, [1, 2, 2, 2, 1], [1, 2, 1, 2, 1], p),
        F(1, 5, 4, 4, 2),
    )
    case(
        f"dilation2d {_padding}",
        lambda tf, x, w, p=_padding: tf.nn.dilation2d(x, w, strides=[1, 1, 2, 1], rates=[1, 1, 1, 1], padding=p),
        F(1, 5, 6, 2),
        F(2, 3, 2),
    )
case("atrous_conv2d", lambda tf, x, w: tf.nn.atrous_conv2d(x, w, 2, "SAME"), F(2, 7, 6, 3), F(3, 2, 3, 4), rtol=1e-4)
case(
    "conv2d_transpose",
    lambda tf, x, w: tf.nn.conv2d_transpose(x, w, [2, 8, 6, 3], strides=[1, 2, 2, 1], padding="SAME"),
    F(2, 4, 3, 4),
    F(3, 2, 3, 4),
    rtol=1e-4,
)
case(
    "separable_conv2d",
    lambda tf, x, d, p: tf.nn.separable_conv2d(x, d, p, [1, 1, 1, 1], "SAME"),
    F(2, 5, 5, 3),
    F(3, 3, 3, 2),
    F(1, 1, 6, 4),
    rtol=1e-4,
)
case("lrn", lambda tf, x: tf.nn.local_response_normalization(x, 2, 1.0, 0.5, 0.75), F(2, 3, 3, 7), rtol=1e-4)
case(
    "batch_normalization",
    lambda tf, x, m, v: tf.nn.batch_normalization(x, m, v, 0.5, 2.0, 1e-3),
    F(4, 3),
    F(3),
    F(3, **POSITIVE),
)
case(
    "fused_batch_norm training",
    lambda tf, x, s, o: tf.nn.fused_batch_norm(x, s, o, epsilon=1e-3, is_training=True)[0],
    F(4, 3, 3, 2),
    F(2, **POSITIVE),
    F(2),
    rtol=1e-4,
)
case(
    "fused_batch_norm inference",
    lambda tf, x, s, o: tf.nn.fused_batch_norm(
        x, s, o, mean=[0.5, -0.5], variance=[1.0, 2.0], epsilon=1e-3, is_training=False
    )[0],
    F(4, 3, 3, 2),
    F(2, **POSITIVE),
    F(2),
    rtol=1e-4,
)
case("embedding_lookup", lambda tf, x: tf.nn.embedding_lookup(x, [[1, 0], [3, 1]]), F(5, 3))
case("xw_plus_b", lambda tf, x, w, b: tf.nn.xw_plus_b(x, w, b), F(3, 4), F(4, 2), F(2))
case(
    "ctc_loss",
    lambda tf, x: tf.nn.ctc_loss(
        labels=tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 2, 0], [2, 2]), inputs=x, sequence_length=[5, 4]
    ),
    F(5, 2, 4),
    rtol=1e-4,
)
case("fft", lambda tf, z: [tf.signal.fft(z), tf.signal.ifft2d(z)], C(4, 6), gradient=False, rtol=1e-4)
case("rfft", lambda tf, x: tf.abs(tf.signal.rfft(x)), F(3, 8), gradient=False, rtol=1e-4)
case("dct", lambda tf, x: tf.signal.dct(x, type=2, norm="ortho"), F(3, 8), gradient=False, rtol=1e-4)
case("stft", lambda tf, x: tf.abs(tf.signal.stft(x, 8, 4)), F(2, 24), gradient=False, rtol=1e-4)

# -- control flow and sequences ------------------------------------------------------------------------

case("cond", lambda tf, x: tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(x), lambda: x * x), F(3, 4))
case(
    "case",
    lambda tf, x: tf.case(
        [(tf.reduce_sum(x) > 100, lambda: x), (tf.reduce_sum(x) > -100, lambda: tf.sin(x))], default=lambda: -x
    ),
    F(3, 4),
)
case(
    "while_loop",
    lambda tf, x, w: tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, tf.tanh(tf.matmul(a, w))), [0, x])[1],
    F(3, 4),
    F(4, 4),
)
case("map_fn", lambda tf, x: tf.map_fn(lambda row: tf.cumsum(row) * row, x), F(3, 4))
case("scan", lambda tf, x: tf.scan(lambda a, row: a * 0.5 + tf.sin(row), x), F(5, 3))
case("foldl foldr", lambda tf, x: [tf.foldl(lambda a, r: a * r, x), tf.foldr(lambda a, r: a - r, x)], F(4, 3))

# -- images --------------------------------------------------------------------------------------------

for _method in ("BILINEAR", "NEAREST_NEIGHBOR", "BICUBIC", "AREA"):
    case(
        f"resize {_method}",
        lambda tf, x, m=_method: tf.image.resize_images(x, [7, 5], getattr(tf.image.ResizeMethod, m)),
        F(2, 4, 6, 3),
        gradient=_method != "AREA",
        rtol=1e-4,
    )
    case(
        f"resize {_method} corners",
        lambda tf, x, m=_method: tf.image.resize_images(
            x, [7, 5], getattr(tf.image.ResizeMethod, m), align_corners=True
        ),
        F(2, 4, 6, 3),
        gradient=False,
        rtol=1e-4,
    )
case(
    "crop_and_resize",
    lambda tf, x: tf.image.crop_and_resize(x, [[0.1, 0.2, 0.8, 0.9], [0.0, 0.0, 1.0, 1.0]], [1, 0], [3, 4]),
    F(2, 5, 6, 2),
    rtol=1e-4,
)
case("crop_or_pad", lambda tf, x: tf.image.resize_image_with_crop_or_pad(x, 6, 3), F(2, 4, 5, 2))
case("central_crop", lambda tf, x: tf.image.central_crop(x, 0.5), F(6, 8, 3))
case("flips", lambda tf, x: [tf.image.flip_left_right(x), tf.image.flip_up_down(x), tf.image.rot90(x)], F(3, 4, 2))
case("per_image_standardization", lambda tf, x: tf.image.per_image_standardization(x), F(4, 5, 3), rtol=1e-4)
case("rgb_to_hsv", lambda tf, x: tf.image.rgb_to_hsv(x), F(4, 5, 3, low=0.05, high=0.95), gradient=False)
case("hsv_to_rgb", lambda tf, x: tf.image.hsv_to_rgb(x), F(4, 5, 3, low=0.05, high=0.95), gradient=False)
case("rgb_to_grayscale", lambda tf, x: tf.image.rgb_to_grayscale(x), F(4, 5, 3))
case(
    "adjust",
    lambda tf, x: [tf.image.adjust_brightness(x, 0.1), tf.image.adjust_contrast(x, 1.5)],
    F(4, 5, 3, low=0.0, high=1.0),
    gradient=False,
)
case(
    "adjust_hue saturation",
    lambda tf, x: [tf.image.adjust_hue(x, 0.2), tf.image.adjust_saturation(x, 0.6)],
    F(4, 5, 3, low=0.05, high=0.95),
    gradient=False,
    rtol=1e-4,
)
case("adjust_gamma", lambda tf, x: tf.image.adjust_gamma(x, 0.7), F(4, 5, 3, low=0.05, high=0.95))
case("total_variation", lambda tf, x: tf.image.total_variation(x), F(2, 4, 5, 3))
case("image_gradients", lambda tf, x: list(tf.image.image_gradients(x)), F(2, 4, 5, 3))
case("sobel_edges", lambda tf, x: tf.image.sobel_edges(x), F(2, 4, 5, 3))
case(
    "psnr ssim",
    lambda tf, x, y: [tf.image.psnr(x, y, 1.0), tf.image.ssim(x, y, 1.0)],
    F(1, 12, 12, 1, low=0.0, high=1.0),
    F(1, 12, 12, 1, low=0.0, high=1.0),
    gradient=False,
    rtol=1e-3,
)
case(
    "non_max_suppression",
    lambda tf, s: tf.image.non_max_suppression(
        [[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0]], s, 3
    ),
    F(3, low=0.0, high=1.0),
    gradient=False,
)
case(
    "convert_image_dtype",
    lambda tf, x: tf.image.convert_image_dtype(x, tf.uint8),
    F(4, 5, 3, low=0.0, high=1.0),
    gradient=False,
)

# -- losses --------------------------------------------------------------------------------------------

for _name in ["absolute_difference", "mean_squared_error", "huber_loss", "log_loss", "hinge_loss"]:
    case(
        f"losses.{_name}",
        lambda tf, x, f=_name: getattr(tf.losses, f)([[1.0, 0.0], [0.0, 1.0]], x),
        F(2, 2, low=0.1, high=0.9),
    )
case("losses.cosine_distance", lambda tf, x: tf.losses.cosine_distance([[0.6, 0.8], [1.0, 0.0]], x, axis=1), F(2, 2))
case(
    "losses.sigmoid_cross_entropy",
    lambda tf, x: tf.losses.sigmoid_cross_entropy([[1.0, 0.0]], x, label_smoothing=0.1),
    F(1, 2),
)
case(
    "losses.softmax_cross_entropy",
    lambda tf, x: tf.losses.softmax_cross_entropy([[1.0, 0.0], [0.0, 1.0]], x, weights=[0.5, 2.0]),
    F(2, 2),
)
case(
    "losses.mean_pairwise_squared_error",
    lambda tf, x: tf.losses.mean_pairwise_squared_error([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]], x),
    F(2, 3),
)

# -- sparse --------------------------------------------------------------------------------------------


def _sparse(tf: Any, values: Any) -> Any:
    return tf.SparseTensor([[0, 1], [1, 0], [1, 2]], values, [2, 3])


case("sparse.to_dense", lambda tf, v: tf.sparse.to_dense(_sparse(tf, v)), F(3))
case("sparse_dense_matmul", lambda tf, v, b: tf.sparse.sparse_dense_matmul(_sparse(tf, v), b), F(3), F(3, 4))
case("sparse.reduce_sum", lambda tf, v: tf.sparse.reduce_sum(_sparse(tf, v), 1), F(3))
case("sparse.add", lambda tf, v, w: tf.sparse.to_dense(tf.sparse.add(_sparse(tf, v), _sparse(tf, w))), F(3), F(3))
case("sparse.softmax", lambda tf, v: tf.sparse.softmax(_sparse(tf, v)).values, F(3))
case("sparse.transpose", lambda tf, v: tf.sparse.transpose(_sparse(tf, v)).values, F(3), gradient=False)
case(
    "embedding_lookup_sparse",
    lambda tf, x: tf.nn.embedding_lookup_sparse(
        x, tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([1, 3, 0], tf.int64), [2, 2]), None, combiner="mean"
    ),
    F(5, 3),
)
case(
    "edit_distance",
    lambda tf: tf.edit_distance(
        tf.SparseTensor([[0, 0], [0, 1]], [1, 2], [1, 2]), tf.SparseTensor([[0, 0], [0, 1]], [1, 3], [1, 2])
    ),
)

# -- axes and ranks that are known when a step runs ----------------------------------------------------


def _unknown(tf, tensor):
    """The tensor with a static shape of unknown rank."""
    return tf.placeholder_with_default(tensor, None)


for _axis in (0, 1, -1):
    _at = I(low=_axis, high=_axis + 1)
    case(f"concat at {_axis}", lambda tf, x, y, a: tf.concat([x, y], a), F(2, 2), F(2, 2), _at)
    case(f"split at {_axis}", lambda tf, x, a: tf.split(x, 2, a), F(2, 4), _at)
    case(f"gather at {_axis}", lambda tf, x, i, a: tf.gather(x, i, axis=a), F(3, 4), I(2, 3, high=3), _at)
    case(f"reverse at {_axis}", lambda tf, x, a: tf.reverse(x, tf.reshape(a, [1])), F(3, 4), _at)
    case(f"roll at {_axis}", lambda tf, x, a: tf.roll(x, a + 2, a), F(3, 4), _at)
    case(f"frame at {_axis}", lambda tf, x, a: tf.signal.frame(x, 3, 2, axis=a), F(6, 7), _at)
    case(f"frame filled up at {_axis}", lambda tf, x, a: tf.signal.frame(x, 3, 2, True, 5.0, a), F(6, 7), _at)
case("softmax at 0", lambda tf, x, a: tf.nn.softmax(x, a), F(3, 4), I(low=0, high=1))
case("split into sizes at 1", lambda tf, x, a: tf.split(x, [1, 3], a), F(4, 4), I(low=1, high=2))
case("boolean_mask at 1", lambda tf, x, m, a: tf.boolean_mask(x, m, axis=a), F(4, 4), B(4), I(low=1, high=2))
case(
    "reduce_prod over fed axes", lambda tf, x, a: tf.reduce_prod(x, tf.stack([a, a - 2])), F(2, 3, 4), I(low=1, high=2)
)
case(
    "tensordot over fed axes",
    lambda tf, x, y, a: tf.tensordot(x, y, tf.stack([[a], [a - 1]])),
    F(2, 3),
    F(3, 4),
    I(low=1, high=2),
)
case(
    "tensordot of unknown ranks",
    lambda tf, x, y: tf.tensordot(_unknown(tf, x), _unknown(tf, y), 2),
    F(5, 2, 3),
    F(2, 3, 4),
)
case(
    "tensordot, one rank unknown",
    lambda tf, x, y: tf.tensordot(x, _unknown(tf, y), [[0, -1], [1, 0]]),
    F(2, 5, 3),
    F(3, 2, 4),
)
case("sort of unknown rank", lambda tf, x: tf.sort(_unknown(tf, x), 0, "DESCENDING"), F(3, 4))
case("argsort of unknown rank", lambda tf, x: tf.argsort(_unknown(tf, x), -2), F(3, 4))
case("matrix_transpose of unknown rank", lambda tf, x: tf.linalg.transpose(_unknown(tf, x)), F(2, 3, 4))
case("stft of fed lengths", lambda tf, x, n: tf.real(tf.signal.stft(x, n, 4)), F(2, 20), I(low=9, high=10))
case(
    "cross entropy of unknown rank",
    lambda tf, x, y: tf.nn.softmax_cross_entropy_with_logits_v2(
        labels=tf.nn.softmax(_unknown(tf, x), -1), logits=_unknown(tf, y), axis=0
    ),
    F(3, 4),
    F(3, 4),
)
case(
    "matrix_solve_ls of unknown sizes",
    lambda tf, x, y: tf.matrix_solve_ls(_unknown(tf, x), _unknown(tf, y)),
    F(4, 2),
    F(4, 3),
    rtol=1e-3,
)
case("gather_nd in batches", lambda tf, x, i: tf.gather_nd(x, i, batch_dims=1), F(3, 4, 2), I(3, 2, 1, high=4))
case("gather with negative batch_dims", lambda tf, x, i: tf.gather(x, i, batch_dims=-1), F(2, 4, 3), I(2, 1, high=3))
case("norm of matrices", lambda tf, x: tf.norm(x, 2, [0, -1]), F(2, 3, 4), gradient=False, rtol=1e-4)
case(
    "norm of matrices, kept", lambda tf, x: tf.norm(x, 2, [1, 2], keepdims=True), F(2, 3, 4), gradient=False, rtol=1e-4
)

# -- nothing, and dtypes -------------------------------------------------------------------------------

for _sizes in ([-1, 0], [0, -1], [-1, 3]):
    case(f"reshape nothing to {_sizes}", lambda tf, x, s=_sizes: tf.reshape(x, s), F(0, 3))
case(
    "constants of nothing",
    lambda tf: [tf.constant([], shape=[2, 3]), tf.constant(1.0, shape=[0, 2]), tf.constant([[]])],
)
case("space_to_depth of no images", lambda tf, x: tf.nn.space_to_depth(x, 2), F(0, 4, 4, 1), gradient=False)
case(
    "triangular solve of nothing",
    lambda tf, x, y: tf.matrix_triangular_solve(x, y),
    F(2, 3, 3),
    F(2, 3, 0),
    gradient=False,
)
case("rfft of nothing", lambda tf, x: tf.signal.rfft(x), F(0))
case("segment_mean of integers", lambda tf, x: tf.segment_mean(x, [0, 0, 0, 2, 2]), I(5, 3, low=-9, high=9))
case(
    "unsorted_segment_mean of integers",
    lambda tf, x: tf.unsorted_segment_mean(x, [0, 2, 0], 4),
    I(3, 2, low=-9, high=9),
)
case("scatter_nd of bools", lambda tf: tf.scatter_nd([[1], [3], [1]], [True, True, False], [5]))
case("squared_difference of complex", lambda tf, x, y: tf.math.squared_difference(x, y), C(3, 4), C(4))
case(
    "max_pool over depth",
    lambda tf, x: tf.nn.max_pool(x, [1, 1, 1, 2], [1, 1, 1, 2], "SAME"),
    F(2, 3, 3, 4),
    gradient=False,
)
case(
    "fused_batch_norm of volumes",
    lambda tf, x, s, o: tf.nn.fused_batch_norm(x, s, o, data_format="NDHWC")[0],
    F(2, 3, 4, 4, 3),
    F(3),
    F(3),
    rtol=1e-3,
)
case(
    "batch_normalization in half precision",
    lambda tf, x, m, v: tf.cast(tf.nn.batch_normalization(tf.cast(x, tf.float16), m, v, m, v, 0.01), tf.float32),
    F(4, 3),
    F(3),
    F(3, **POSITIVE),
    gradient=False,
    rtol=1e-2,
)
case("leaky_relu of integers", lambda tf, x: tf.nn.leaky_relu(x), I(3, 4, low=-9, high=9))
case(
    "cross entropy, labels broadcast",
    lambda tf, x, y: tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.nn.softmax(x), logits=y),
    F(1, 4),
    F(3, 4),
    gradient=False,
)
case(
    "tridiagonal_solve of short diagonals",
    lambda tf, a, b, c, r: tf.linalg.tridiagonal_solve([a, b + 5.0, c], r, "sequence"),
    F(3),
    F(4),
    F(3),
    F(4),
    gradient=False,
)

# -- functions of newer programs -----------------------------------------------------------------------

for _padding in ("SAME", "VALID"):
    case(
        f"extract_volume_patches {_padding}",
        lambda tf, x, p=_padding: tf.extract_volume_patches(x, [1, 3, 2, 3, 1], [1, 2, 2, 1, 1], p),
        F(1, 4, 5, 6, 2),
    )
    for _shape in ((1, 5, 2), (1, 5, 4, 2), (1, 5, 4, 4, 2)):
        case(f"max_pool_v2 {_padding} {_shape}", lambda tf, x, p=_padding: tf.nn.max_pool_v2(x, 2, 2, p), F(*_shape))
        case(f"avg_pool_v2 {_padding} {_shape}", lambda tf, x, p=_padding: tf.nn.avg_pool_v2(x, 2, 2, p), F(*_shape))
case(
    "with_space_to_batch",
    lambda tf, x, w: tf.nn.with_space_to_batch(
        x, [2, 3], "SAME", lambda images, _, padding: tf.nn.conv2d(images, w, 1, padding), filter_shape=[3, 3]
    ),
    F(1, 7, 6, 2),
    F(3, 3, 2, 2),
)
for _overlapping in (False, True):
    case(
        f"fractional_max_pool {_overlapping}",
        lambda tf, x, o=_overlapping: list(tf.nn.fractional_max_pool(x, [1.0, 2.0, 3.0, 1.0], overlapping=o)),
        F(2, 6, 9, 2),
    )
    case(
        f"fractional_avg_pool {_overlapping}",
        lambda tf, x, o=_overlapping: list(tf.nn.fractional_avg_pool(x, [1.0, 2.0, 3.0, 1.0], overlapping=o)),
        F(2, 6, 9, 2),
    )
for _blank in (None, 1, -1):
    case(
        f"ctc_loss_v2 {_blank}",
        lambda tf, x, b=_blank: tf.nn.ctc_loss_v2(
            [[2, 2, 0], [2, 0, 0]] if b != -1 else [[0, 1, 0], [1, 0, 0]], x, [2, 1], [5, 4], blank_index=b
        ),
        F(5, 2, 3),
        rtol=1e-4,
    )
case("collapse_repeated", lambda tf: list(tf.nn.collapse_repeated([[1, 1, 2, 2, 1], [1, 2, 3, 4, 5]], [5, 3])))
case("ctc_unique_labels", lambda tf: list(tf.nn.ctc_unique_labels([[3, 4, 4, 3], [1, 1, 0, 0]])))
case("compute_average_loss", lambda tf, x, w: tf.nn.compute_average_loss(x, w), F(4), F(4))
for _index in (-1, 0, 2, 5):
    case(
        f"switch_case {_index}",
        lambda tf, x, i: tf.switch_case(i, {0: lambda: x * 2.0, 2: lambda: tf.sin(x), 1: lambda: x}),
        F(3),
        I(low=_index, high=_index + 1),
    )
case(
    "vectorized_map",
    lambda tf, x, y: list(tf.vectorized_map(lambda e: (e[0] * e[1], e[0] > 0.0), (x, y))),
    F(3, 2),
    F(3, 2),
)
case("fingerprint", lambda tf, x: [tf.fingerprint(x), tf.fingerprint([["a", "bcd"], ["x", "y"]])], D(3, 2))

# -- bands of matrices, and numbers of few bits ---------------------------------------------------------


def _left(tf):
    """What makes a later TensorFlow lay out diagonals as TensorFlow 1 does."""
    return {"align": "LEFT_LEFT"} if tf.__name__.startswith("tensorflow") else {}


for _ends, _sizes in (((-1, 1), (2, 3, 3)), ((0, 1), (2, 3)), (1, (2, 3)), ((-2, -2), (3,))):
    case(
        f"matrix_diag of {_ends}",
        lambda tf, x, k=_ends: tf.linalg.diag(x, k=k, padding_value=9.0, **_left(tf)),
        F(*_sizes),
    )
case(
    "matrix_diag in wide matrices",
    lambda tf, x: tf.linalg.diag(x, k=(-1, 0), num_rows=4, num_cols=3, **_left(tf)),
    F(2, 3),
)
for _ends, _sizes in (((-1, 1), (2, 3, 3)), ((1, 2), (2, 2, 3)), (-1, (2, 2))):
    case(
        f"matrix_diag_part of {_ends}",
        lambda tf, x, k=_ends: tf.linalg.diag_part(x, k=k, padding_value=9.0, **_left(tf)),
        F(2, 3, 4),
    )
    case(
        f"matrix_set_diag of {_ends}",
        lambda tf, x, d, k=_ends: tf.linalg.set_diag(x, d, k=k, **_left(tf)),
        F(2, 3, 4),
        F(*_sizes),
    )
for _mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
    for _type in ("qint8", "quint8"):

        def _quantized(tf, x, mode=_mode, type=_type):
            output, low, high = tf.quantize(x, -1.0, 2.0, getattr(tf, type), mode=mode)
            return [tf.dequantize(output, low, high, mode=mode), low, high]

        case(f"quantize to {_type}, {_mode}", _quantized, F(3, 4), gradient=False)
for _signed in (False, True):
    for _given in (False, True):
        case(
            f"quantize_and_dequantize {_signed} {_given}",
            lambda tf, x, s=_signed, g=_given: tf.quantization.quantize_and_dequantize(x, -1.0, 1.5, s, 4, g),
            F(3, 4),
        )

# -- strings -------------------------------------------------------------------------------------------

case("string_to_number", lambda tf: tf.strings.to_number(["1.5", "-2"]))
case("strings.length", lambda tf: tf.strings.length(["", "abc"]))
case("string_to_hash_bucket_fast", lambda tf: tf.strings.to_hash_bucket_fast(["a", "longer text than that"], 1000))
case("string_to_hash_bucket_strong", lambda tf: tf.strings.to_hash_bucket_strong(["a", "b"], 1000, [1, 2]))
case("decode_raw", lambda tf: tf.io.decode_raw(["abcdefgh"], tf.int32))
