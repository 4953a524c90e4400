"""Random numbers: uniform, normal, gamma, Poisson and categorical draws, shuffling and cropping.

Every function takes a `seed`; see `tf.set_random_seed` for how it meets the graph's. The same seeds give the
same numbers on every device and in every process: they are made on the host, but for large uniform draws, which a GPU
makes itself by the same generator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_size, constant_value
from tfray.framework.convert import add_op, convert_to_tensor, is_rank0_number
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import (
    Array,
    KernelContext,
    NumpyDType,
    OpDef,
    not_differentiable,
    on_every_device,
    out_kernel,
    register,
)
from tfray.framework.random_seed import get_seed
from tfray.framework.shape_functions import like_input
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.array_ops import host_int, host_ints, index_tensor, position_tensor, sizes_from_input
from tfray.ops.kernels.cpu_threads import parallel_for
from tfray.ops.kernels.elementwise import scipy_special
from tfray.ops.kernels.gpu.device_random import can_draw, draw_uniform
from tfray.ops.kernels.random_streams import RandomStream, normal, stream_of, uniform
from tfray.ops.kernels.random_streams import truncated_normal as truncated
from tfray.ops.math import math_ops
from tfray.ops.math.gamma_sensitivity_ops import random_gamma_grad


def _seed_attrs(seed: int | None) -> dict[str, Any]:
    graph_seed, op_seed = get_seed(seed)
    return {"seed": graph_seed or 0, "seed2": op_seed or 0}


def _known_number(value: Any) -> float | None:
    """`value` as a number, when it is a scalar that is known while the graph is built."""
    if isinstance(value, Tensor):
        value = constant_value(value)
    return float(value) if is_rank0_number(value) or (isinstance(value, np.ndarray) and value.ndim == 0) else None


def _filled(ctx: KernelContext, shape: Array, out: Array | None, write: Any) -> Array:
    """An array of that shape that `write` fills from the operation's stream."""
    on_host = isinstance(out, np.ndarray)
    numbers: Array = out if isinstance(out, np.ndarray) else np.empty(host_ints(ctx, shape), ctx.output_dtype())
    stream_of(ctx).fill(numbers, write)
    if out is None or on_host:
        return ctx.asarray(numbers)
    out[...] = ctx.asarray(numbers)
    return out


def _shape_from_input(op: Operation) -> list[TensorShape]:
    return [sizes_from_input(op, 0)]


# -- uniform -------------------------------------------------------------------------------------------


def random_uniform(
    shape: TensorLike,
    minval: TensorLike = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw from the uniform distribution over ``[minval, maxval)``.

    Args:
        shape: Shape of the result, an integer vector.
        minval: Lower bound: a scalar, or of floats a tensor that broadcasts to `shape`.
        maxval: Upper bound, likewise: 1 when None, but required for integers.
        dtype: A floating-point dtype, int32 or int64.
        seed: Seed of the operation.
        name: Name of the operation.

    Returns:
        Shape `shape`.

    Raises:
        ValueError: An integer `dtype` without `maxval`.

    Examples:
        >>> numbers = session.run(tf.random_uniform([1000]))
        >>> numbers.min() >= 0, numbers.max() < 1
        (np.True_, np.True_)
    """
    dtype = as_dtype(dtype)
    name = name or "random_uniform"
    if dtype.is_integer:
        if maxval is None:
            raise ValueError(f"random_uniform: maxval must be given for {dtype.name}")
        bounds = convert_to_tensor(minval, dtype), convert_to_tensor(maxval, dtype)
        return add_op(RANDOM_UNIFORM_INT, position_tensor(shape), *bounds, name=name, **_seed_attrs(seed))
    maxval = 1 if maxval is None else maxval
    for bound in (minval, maxval):
        if isinstance(bound, Tensor):
            convert_to_tensor(bound, dtype)  # raises when it is of another dtype
    low, high = _known_number(minval), _known_number(maxval)
    if low is not None and high is not None:
        return _uniform(shape, low, high, dtype, seed, name)
    with get_default_graph().name_scope(name) as scope:
        low_tensor, high_tensor = convert_to_tensor(minval, dtype), convert_to_tensor(maxval, dtype)
        numbers = _uniform(shape, 0.0, 1.0, dtype, seed, "uniform")
        return math_ops.add(numbers * (high_tensor - low_tensor), low_tensor, scope)


def _uniform(shape: TensorLike, low: float, high: float, dtype: DType, seed: int | None, name: str) -> Tensor:
    seeds = _seed_attrs(seed)
    return add_op(RANDOM_UNIFORM, position_tensor(shape), name=name, minval=low, maxval=high, dtype=dtype, **seeds)


def _random_uniform_kernel(ctx: KernelContext, shape: Array, out: Array | None = None) -> Array:
    low, width = ctx.attr("minval"), ctx.attr("maxval") - ctx.attr("minval")
    sizes, dtype = tuple(host_ints(ctx, shape)), ctx.output_dtype()
    if can_draw(ctx.xp, dtype, math.prod(sizes), width, low):
        out = ctx.xp.empty(sizes, dtype) if out is None else out
        draw_uniform(ctx.xp, stream_of(ctx), out, width, low)
        return out

    def write(generator: np.random.Generator, part: Array) -> None:
        uniform(generator, part)
        _scale(part, width, low)

    return _filled(ctx, shape, out, write)


def _scale(part: Array, factor: float, offset: float) -> None:
    if factor != 1:
        np.multiply(part, part.dtype.type(factor), out=part)
    if offset != 0:
        np.add(part, part.dtype.type(offset), out=part)


RANDOM_UNIFORM = register(
    OpDef(
        name="RandomUniform",
        inputs=("shape: T",),
        outputs=("output: dtype",),
        host_inputs=("shape",),
        attrs=("minval", "maxval", "seed", "seed2"),
        types={"T": dtypes.INDICES, "dtype": dtypes.FLOATS},
        shape=_shape_from_input,
        kernels=on_every_device(out_kernel(_random_uniform_kernel)),
        stateful=True,
    )
)


def _random_uniform_int_kernel(
    ctx: KernelContext, shape: Array, minval: Array, maxval: Array, out: Array | None = None
) -> Array:
    low, high = host_int(ctx, minval), host_int(ctx, maxval)
    if low >= high and host_ints(ctx, shape).count(0) == 0:
        raise InvalidArgumentError(f"random_uniform: Need minval < maxval, got {low} >= {high}")

    def write(generator: np.random.Generator, part: Array) -> None:
        part[...] = generator.integers(low, high, part.size, part.dtype)

    return _filled(ctx, shape, out, write)


def _random_uniform_int_shape(op: Operation) -> list[TensorShape]:
    op.inputs[1].shape.assert_has_rank(0)
    op.inputs[2].shape.assert_has_rank(0)
    return _shape_from_input(op)


RANDOM_UNIFORM_INT = register(
    OpDef(
        name="RandomUniformInt",
        inputs=("shape: T", "minval: dtype", "maxval: dtype"),
        outputs=("output: dtype",),
        host_inputs=("shape", "minval", "maxval"),
        attrs=("seed", "seed2"),
        types={"T": dtypes.INDICES, "dtype": dtypes.INDICES},
        shape=_random_uniform_int_shape,
        kernels=on_every_device(out_kernel(_random_uniform_int_kernel)),
        stateful=True,
    )
)


# -- normal --------------------------------------------------------------------------------------------


def random_normal(
    shape: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw from a normal distribution.

    Args:
        shape: Shape of the result, an integer vector.
        mean: Mean; a tensor is broadcast to `shape`.
        stddev: Standard deviation; a tensor is broadcast to `shape`.
        dtype: A floating-point dtype.
        seed: Seed of the operation.
        name: Name of the operation.

    Returns:
        Shape `shape`.

    Examples:
        >>> numbers = session.run(tf.random_normal([1000], mean=5.0, stddev=0.1, seed=1))
        >>> 4.9 < numbers.mean() < 5.1
        np.True_
    """
    return _normal(RANDOM_NORMAL, shape, mean, stddev, as_dtype(dtype), seed, name or "random_normal")


def _normal(
    definition: OpDef,
    shape: TensorLike,
    mean: TensorLike,
    stddev: TensorLike,
    dtype: DType,
    seed: int | None,
    name: str,
) -> Tensor:
    for parameter in (mean, stddev):
        if isinstance(parameter, Tensor):
            convert_to_tensor(parameter, dtype)  # raises when it is of another dtype
    known_mean, known_stddev = _known_number(mean), _known_number(stddev)
    attrs: dict[str, Any] = {"dtype": dtype, **_seed_attrs(seed)}
    if known_mean is not None and known_stddev is not None:
        return add_op(definition, position_tensor(shape), name=name, mean=known_mean, stddev=known_stddev, **attrs)
    with get_default_graph().name_scope(name) as scope:
        mean, stddev = convert_to_tensor(mean, dtype), convert_to_tensor(stddev, dtype)
        numbers = add_op(definition, position_tensor(shape), mean=0.0, stddev=1.0, **attrs)
        return math_ops.add(numbers * stddev, mean, scope)


def _normal_kernel(draw: Callable[[np.random.Generator, Array], None]) -> Callable[..., Array]:
    def kernel(ctx: KernelContext, shape: Array, out: Array | None = None) -> Array:
        def write(generator: np.random.Generator, part: Array) -> None:
            draw(generator, part)
            _scale(part, ctx.attr("stddev"), ctx.attr("mean"))

        return _filled(ctx, shape, out, write)

    return kernel


RANDOM_NORMAL = register(
    OpDef(
        name="RandomStandardNormal",
        inputs=("shape: T",),
        outputs=("output: dtype",),
        host_inputs=("shape",),
        attrs=("mean", "stddev", "seed", "seed2"),
        types={"T": dtypes.INDICES, "dtype": dtypes.FLOATS},
        shape=_shape_from_input,
        kernels=on_every_device(out_kernel(_normal_kernel(normal))),
        stateful=True,
    )
)


def truncated_normal(
    shape: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw from a normal distribution, again wherever a number is more than two `stddev` from the mean.

    The result has the shape `shape`; arguments are as for `random_normal`.

    Examples:
        >>> numbers = session.run(tf.truncated_normal([1000], stddev=0.1))
        >>> abs(numbers).max() <= 0.2
        np.True_
    """
    return _normal(TRUNCATED_NORMAL, shape, mean, stddev, as_dtype(dtype), seed, name or "truncated_normal")


TRUNCATED_NORMAL = register(
    OpDef(
        name="TruncatedNormal",
        inputs=("shape: T",),
        outputs=("output: dtype",),
        host_inputs=("shape",),
        attrs=("mean", "stddev", "seed", "seed2"),
        types={"T": dtypes.INDICES, "dtype": dtypes.FLOATS},
        shape=_shape_from_input,
        kernels=on_every_device(out_kernel(_normal_kernel(truncated))),
        stateful=True,
    )
)


def parameterized_truncated_normal(
    shape: TensorLike,
    means: TensorLike = 0.0,
    stddevs: TensorLike = 1.0,
    minvals: TensorLike = -2.0,
    maxvals: TensorLike = 2.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw from normal distributions between bounds.

    Args:
        shape: Shape of the result, an integer vector: draws from one distribution for each index of its first
            dimension.
        means: Means, a scalar or of shape ``shape[:1]``, as the other parameters.
        stddevs: Standard deviations, likewise.
        minvals: Lower bounds, likewise.
        maxvals: Upper bounds, above the lower ones, likewise.
        dtype: A floating-point dtype.
        seed: Seed of the operation.
        name: Name of the operation.

    Returns:
        Shape `shape`.
    """
    parameters = [convert_to_tensor(value, as_dtype(dtype)) for value in (means, stddevs, minvals, maxvals)]
    return add_op(PARAMETERIZED_TRUNCATED_NORMAL, position_tensor(shape), *parameters, name=name, **_seed_attrs(seed))


def _parameterized_truncated_normal_kernel(ctx: KernelContext, shape: Array, *parameters: Array) -> Array:
    sizes = host_ints(ctx, shape)
    wide = [np.asarray(ctx.to_host(value), np.float64) for value in parameters]
    mean, stddev, low, high = (value.reshape(value.shape + (1,) * (len(sizes) - value.ndim)) for value in wide)
    if not ((low < high).all() and (stddev > 0).all()):
        raise InvalidArgumentError("parameterized_truncated_normal: needs minvals < maxvals and positive stddevs")
    # The inverse distribution function, on the side of the mean where its values keep their digits.
    begin, end = (low - mean) / stddev, (high - mean) / stddev
    is_above = begin > 0
    first, last = np.where(is_above, -end, begin), np.where(is_above, -begin, end)
    functions = scipy_special()
    chances = stream_of(ctx).draw(lambda generator: generator.random(sizes))
    log_first, log_last = functions.log_ndtr(first), functions.log_ndtr(last)
    # log(exp(log_first) + chances * (exp(log_last) - exp(log_first)))
    log_chance = log_last + np.log(chances + (1 - chances) * np.exp(log_first - log_last))
    drawn = np.clip(functions.ndtri_exp(log_chance), first, last)
    numbers = np.clip(np.where(is_above, -drawn, drawn) * stddev + mean, low, high)
    return ctx.asarray(np.asarray(numbers, ctx.output_dtype()))


def _parameterized_shape(op: Operation) -> list[TensorShape]:
    for tensor in op.inputs[1:]:
        if (tensor.shape.rank or 0) > 1:
            raise ValueError(f"parameters are scalars or vectors, found shape {tensor.shape}")
    return _shape_from_input(op)


PARAMETERIZED_TRUNCATED_NORMAL = register(
    OpDef(
        name="ParameterizedTruncatedNormal",
        inputs=("shape: S", "means: dtype", "stdevs: dtype", "minvals: dtype", "maxvals: dtype"),
        outputs=("output: dtype",),
        host_inputs=("shape", "means", "stdevs", "minvals", "maxvals"),
        attrs=("seed", "seed2"),
        types={"S": dtypes.INDICES, "dtype": dtypes.FLOATS},
        shape=_parameterized_shape,
        kernels=on_every_device(_parameterized_truncated_normal_kernel),
        gradient=not_differentiable,
        stateful=True,
    )
)


# -- other distributions -------------------------------------------------------------------------------


def random_gamma(
    shape: TensorLike,
    alpha: TensorLike,
    beta: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw from gamma distributions, `shape` samples of each.

    Args:
        shape: Shape of the samples of one distribution, an integer vector.
        alpha: Shape parameters of the distributions, positive.
        beta: Inverse scales, broadcast against `alpha`; 1 when None.
        dtype: A floating-point dtype.
        seed: Seed of the operation.
        name: Name of the operation.

    Returns:
        Shape ``shape + broadcast(alpha, beta).shape``. Draws that are too small for the dtype, of a small `alpha`, are
        its least normal number, never 0. Gradients flow to `alpha` and `beta`.

    References:
        Figurnov, Mohamed, Mnih, Implicit reparameterization gradients (2018).
    """
    dtype = as_dtype(dtype)
    seeds = _seed_attrs(seed)
    with get_default_graph().name_scope(name or "random_gamma"):
        alpha = convert_to_tensor(alpha, dtype, "alpha")
        if beta is not None:
            beta = convert_to_tensor(beta, dtype, "beta")
            alpha = alpha + array_ops.zeros_like(beta)
        drawn = add_op(RANDOM_GAMMA, position_tensor(shape), alpha, **seeds)
        least = float(ml_dtypes.finfo(dtype.numpy).tiny)  # type: ignore[no-untyped-call]
        return math_ops.maximum(least, drawn if beta is None else math_ops.divide(drawn, beta))


def _random_gamma_kernel(ctx: KernelContext, shape: Array, alpha: Array) -> Array:
    alpha = ctx.to_host(alpha)
    if (alpha <= 0).any():
        raise InvalidArgumentError(f"random_gamma: alpha must be positive, found {np.min(alpha)}")
    size = (*host_ints(ctx, shape), *alpha.shape)
    samples = stream_of(ctx).draw(lambda generator: generator.standard_gamma(alpha.astype(np.float64), size))
    return ctx.asarray(np.asarray(samples, ctx.output_dtype()))


def _samples_shape(op: Operation) -> list[TensorShape]:
    return [sizes_from_input(op, 0).concatenate(op.inputs[1].shape)]


def _random_gamma_gradient(op: Operation, d_samples: Tensor) -> list[Tensor | None]:
    alpha, samples = op.inputs[1], op.outputs[0]
    sensitivity = random_gamma_grad(array_ops.broadcast_to(alpha, array_ops.shape(samples)), samples)
    return [None, array_ops.sum_to_shape_of(math_ops.multiply(d_samples, sensitivity), alpha)]


RANDOM_GAMMA = register(
    OpDef(
        name="RandomGamma",
        inputs=("shape: S", "alpha: T"),
        outputs=("output: T",),
        host_inputs=("shape",),
        attrs=("seed", "seed2"),
        types={"S": dtypes.INDICES, "T": dtypes.FLOATS},
        shape=_samples_shape,
        kernels=on_every_device(_random_gamma_kernel),
        gradient=_random_gamma_gradient,
        stateful=True,
    )
)


def random_poisson(
    lam: TensorLike,
    shape: TensorLike,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw from Poisson distributions, `shape` samples of each.

    Args:
        lam: Rates of the distributions, not negative, any shape.
        shape: Shape of the samples of one distribution, an integer vector.
        dtype: Dtype of the result: floating point, int32 or int64.
        seed: Seed of the operation.
        name: Name of the operation.

    Returns:
        Shape ``shape + lam.shape``. An infinite rate gives not-a-number.

    Raises:
        InvalidArgumentError: A rate is negative or not a number, or infinite for a dtype of integers.
    """
    with get_default_graph().name_scope(name or "random_poisson"):
        return add_op(RANDOM_POISSON, position_tensor(shape), lam, dtype=as_dtype(dtype), **_seed_attrs(seed))


def _random_poisson_kernel(ctx: KernelContext, shape: Array, rate: Array) -> Array:
    rate = ctx.to_host(rate)
    if (rate < 0).any():
        raise InvalidArgumentError(f"random_poisson: rates must not be negative, found {np.min(rate)}")
    size, dtype = (*host_ints(ctx, shape), *rate.shape), ctx.output_dtype()
    is_infinite = np.isinf(rate)
    if dtype.kind == "i" and is_infinite.any():
        raise InvalidArgumentError("random_poisson: a rate is infinite, and integers have no value for what it gives")
    finite = np.where(is_infinite, 0, rate).astype(np.float64)
    samples = np.asarray(stream_of(ctx).draw(lambda generator: generator.poisson(finite, size)), dtype)
    return ctx.asarray(np.where(is_infinite, dtype.type(np.nan), samples) if is_infinite.any() else samples)


RANDOM_POISSON = register(
    OpDef(
        name="RandomPoisson",
        inputs=("shape: S", "rate: R"),
        outputs=("output: dtype",),
        host_inputs=("shape",),
        attrs=("seed", "seed2"),
        types={"S": dtypes.INDICES, "R": dtypes.REAL, "dtype": (*dtypes.FLOATS, *dtypes.INDICES)},
        shape=_samples_shape,
        kernels=on_every_device(_random_poisson_kernel),
        gradient=not_differentiable,
        stateful=True,
    )
)


def multinomial(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: int | None = None,
    name: str | None = None,
    output_dtype: DTypeLike | None = None,
) -> Tensor:
    """Draw class indices, each with probability ``softmax(logits)``.

    Args:
        logits: Shape ``[batch, classes]``: unnormalised log-probabilities.
        num_samples: Integer scalar: draws per row.
        seed: Seed of the operation.
        name: Name of the operation.
        output_dtype: int64 (when None) or int32.

    Returns:
        Shape ``[batch, num_samples]``.

    Examples:
        >>> session.run(tf.multinomial([[-100.0, 0.0], [0.0, -100.0]], num_samples=3))
        array([[1, 1, 1],
               [0, 0, 0]])
    """
    output_dtype = dtypes.int64 if output_dtype is None else as_dtype(output_dtype)
    with get_default_graph().name_scope(name or "multinomial"):
        count = convert_to_tensor(num_samples, dtypes.int32, "num_samples")
        return add_op(MULTINOMIAL, logits, count, output_dtype=output_dtype, **_seed_attrs(seed))


def categorical(
    logits: TensorLike,
    num_samples: TensorLike,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """`multinomial` by its newer name and order of arguments: the result has the shape ``[batch, num_samples]``."""
    return multinomial(logits, num_samples, seed, name or "categorical", dtype)


def _multinomial_kernel(ctx: KernelContext, logits: Array, num_samples: Array) -> Array:
    drawn = draw_classes(ctx.to_host(logits), host_int(ctx, num_samples), stream_of(ctx), ctx.output_dtype())
    return ctx.asarray(drawn)


def draw_classes(rows: Array, count: int, stream: RandomStream, dtype: NumpyDType) -> Array:
    """For each row of logits, `count` classes drawn from their softmax."""
    batch, classes = rows.shape
    if classes == 0:
        raise InvalidArgumentError("multinomial: num_classes should be positive, got 0")
    if count < 0:
        raise InvalidArgumentError(f"multinomial: num_samples should be nonnegative, got {count}")
    points = stream.draw(lambda generator: generator.random((batch, count)))
    drawn: Array = np.empty((batch, count), dtype)
    length = max(1, _MULTINOMIAL_TILE // (classes * max(1, count)))

    def tile(index: int) -> None:
        part = slice(index * length, (index + 1) * length)
        _draw_classes(rows[part], points[part], drawn[part])

    parallel_for(tile, -(-batch // length))
    return drawn


_MULTINOMIAL_TILE: Final = 1 << 17
"""Comparisons (classes times samples, over several rows) that one call of a thread should do."""


def _draw_classes(logits: Array, points: Array, drawn: Array) -> None:
    """Write to `drawn` the classes at `points`, uniform in [0, 1), of the cumulative distributions."""
    batch, classes = logits.shape
    if logits.dtype != np.float64:
        logits = logits.astype(np.float32, copy=False)
    # With few samples, cumulative sums over blocks are several times as fast as over single classes: single classes
    # are summed only in the blocks that were drawn.
    width = _BLOCK_CLASSES if points.shape[1] * _BLOCK_CLASSES * 2 < classes else 1
    blocks = -(-classes // width)
    weights = np.zeros((batch, blocks * width), logits.dtype)
    largest = logits.max(axis=1, keepdims=True)
    if not np.isfinite(largest).all():
        # As in TensorFlow, what is not finite is no class that may occur.
        logits = np.where(np.isfinite(logits), logits, -np.inf)
        largest = logits.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        np.exp(logits - largest, out=weights[:, :classes])
    in_blocks = weights.reshape(batch, blocks, width)
    of_blocks = np.add.reduce(in_blocks, axis=2, dtype=np.float64) if width > 1 else weights
    cumulative = of_blocks.cumsum(axis=1, dtype=np.float64)
    if not np.isfinite(cumulative[:, -1]).all():
        raise InvalidArgumentError("multinomial: a row of the logits has no finite number, so no class that may occur")
    points = points * cumulative[:, -1:]
    _find(cumulative, points, drawn)
    if width > 1:
        rows = np.arange(batch)[:, None]
        rest = points - np.where(drawn > 0, cumulative[rows, drawn - 1], 0)
        within = in_blocks[rows, drawn].cumsum(axis=2, dtype=np.float64)
        # Rounding may point beyond the end of a block: then take its last class of positive weight.
        rest = np.minimum(rest, np.nextafter(within[:, :, -1], 0))
        drawn[...] = drawn * width + np.sum(within <= rest[:, :, None], axis=2)


_BLOCK_CLASSES: Final = 64
"""Classes whose weights are summed as one block. A draw finds its block first, then the class within the block."""


def _find(cumulative: Array, points: Array, found: Array) -> None:
    """For each point the first entry of its row that is above it."""
    if points.shape[1] * cumulative.shape[1] <= 4096:  # cheaper than one call for each row
        np.sum(cumulative[:, None, :] <= points[:, :, None], axis=2, out=found)
        return
    for row, row_points, row_found in zip(cumulative, points, found, strict=True):
        row_found[:] = row.searchsorted(row_points, "right")


def classes_shape(op: Operation) -> list[TensorShape]:
    """The shape of classes drawn for logits, the first input; the second one says how many for each row."""
    logits = op.inputs[0].shape.with_rank(2)
    return [TensorShape([logits.sizes[0], constant_size(op, 1)])]


MULTINOMIAL = register(
    OpDef(
        name="Multinomial",
        inputs=("logits: T", "num_samples: int32"),
        outputs=("output: output_dtype",),
        host_inputs=("num_samples",),
        attrs=("seed", "seed2"),
        types={"T": dtypes.REAL, "output_dtype": dtypes.INDICES},
        shape=classes_shape,
        kernels=on_every_device(_multinomial_kernel),
        gradient=not_differentiable,
        stateful=True,
    )
)


def random_orthogonal(
    rows: int,
    columns: int,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw a matrix with orthonormal rows or columns, whichever are fewer, all such matrices alike.

    Args:
        rows: Number of rows.
        columns: Number of columns.
        dtype: A floating-point dtype.
        seed: Seed of the operation.
        name: Name of the operation.

    References:
        Mezzadri, How to generate random matrices from the classical compact groups (2007).
    """
    seeds = _seed_attrs(seed)
    return add_op(RANDOM_ORTHOGONAL, name=name, rows=rows, columns=columns, dtype=as_dtype(dtype), **seeds)


def _random_orthogonal_kernel(ctx: KernelContext) -> Array:
    rows, columns = ctx.attr("rows"), ctx.attr("columns")
    size = max(rows, columns), min(rows, columns)
    q, r = np.linalg.qr(stream_of(ctx).draw(lambda generator: generator.standard_normal(size)))
    q *= np.sign(np.diagonal(r))  # the signs make the distribution uniform
    return ctx.asarray(np.asarray(q if rows >= columns else q.T, ctx.output_dtype(), order="C"))


def _random_orthogonal_shape(op: Operation) -> list[TensorShape]:
    return [TensorShape([op.attrs["rows"], op.attrs["columns"]])]


RANDOM_ORTHOGONAL = register(
    OpDef(
        name="RandomOrthogonal",
        inputs=(),
        outputs=("output: dtype",),
        attrs=("rows", "columns", "seed", "seed2"),
        types={"dtype": dtypes.FLOATS},
        shape=_random_orthogonal_shape,
        kernels=on_every_device(_random_orthogonal_kernel),
        stateful=True,
    )
)


# -- order and place -----------------------------------------------------------------------------------


def random_shuffle(value: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """Put the rows of a tensor in random order.

    Args:
        value: Shape ``[n, ...]``, any dtype.
        seed: Seed of the operation.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> sorted(session.run(tf.random_shuffle([1, 2, 3])).tolist())
        [1, 2, 3]
    """
    return add_op(RANDOM_SHUFFLE, value, name=name, **_seed_attrs(seed))


def _random_shuffle_kernel(ctx: KernelContext, value: Array) -> Array:
    if value.ndim == 0:
        return value
    order = stream_of(ctx).draw(lambda generator: generator.permutation(value.shape[0]))
    return value.take(ctx.asarray(order), axis=0)


RANDOM_SHUFFLE = register(
    OpDef(
        name="RandomShuffle",
        inputs=("value: T",),
        outputs=("output: T",),
        attrs=("seed", "seed2"),
        types={"T": dtypes.VALUES},
        shape=like_input(0),
        kernels=on_every_device(_random_shuffle_kernel),
        gradient=not_differentiable,
        stateful=True,
    )
)


def random_crop(value: TensorLike, size: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """Take a part of a tensor at a random place, each place with the same chance.

    Args:
        value: A tensor of any shape and dtype.
        size: Size of the part in each dimension, an integer vector.
        seed: Seed of the operation.
        name: Name of the operation.

    Returns:
        Shape `size`.

    Raises:
        InvalidArgumentError: While running: the part is larger than `value`.

    Examples:
        >>> session.run(tf.random_crop(tf.ones([8, 8, 3]), [4, 4, 3])).shape
        (4, 4, 3)
    """
    with get_default_graph().name_scope(name or "random_crop") as scope:
        size = index_tensor(size)
        # Where there is no place, the slice says so.
        places = math_ops.maximum(array_ops.shape(value, out_type=size.dtype) - size + 1, 1)
        # A draw below the largest integer, by the remainder: the bias is below 2**-20 for any image.
        numbers = random_uniform(array_ops.shape(places), 0, size.dtype.max, size.dtype, seed)
        return array_ops.slice(value, math_ops.mod(numbers, places), size, scope)
