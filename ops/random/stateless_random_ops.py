"""Random numbers that follow from a seed given as a tensor: the same seed gives the same numbers, however often.

The numbers are made on the host, alike on every device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, KernelFunction, OpDef, on_every_device, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.array_ops import host_int, host_ints, index_tensor, position_tensor, sizes_from_input
from tfray.ops.kernels.random_streams import RandomStream, normal, truncated_normal, uniform
from tfray.ops.math import math_ops
from tfray.ops.random.random_ops import classes_shape, draw_classes

if TYPE_CHECKING:
    from tfray.ops.kernels.random_streams import Writer

# -- what the operations share -------------------------------------------------------------------------


def _stream(ctx: KernelContext, seed: Array) -> RandomStream:
    seeds = ctx.to_host(seed)
    if seeds.shape != (2,):
        raise InvalidArgumentError(f"a seed is a vector of two integers, found shape {seeds.shape}")
    return RandomStream(key=seeds.astype(np.int64).view(np.uint64))


def _numbers(write: Writer) -> KernelFunction:
    """A kernel that fills its result with what `write` draws."""

    def kernel(ctx: KernelContext, shape: Array, seed: Array) -> Array:
        numbers = np.empty(host_ints(ctx, shape), ctx.output_dtype())
        _stream(ctx, seed).fill(numbers, write)
        return ctx.asarray(numbers)

    return kernel


def _shape_from_input(op: Operation) -> list[TensorShape]:
    op.inputs[1].shape.assert_is_compatible_with([2])
    return [sizes_from_input(op, 0)]


def _stateless(name: str, write: Writer) -> OpDef:
    return OpDef(
        name=name,
        inputs=("shape: S", "seed: Tseed"),
        outputs=("output: dtype",),
        host_inputs=("shape", "seed"),
        types={"S": dtypes.INDICES, "Tseed": dtypes.INDICES, "dtype": dtypes.FLOATS},
        shape=_shape_from_input,
        kernels=on_every_device(_numbers(write)),
    )


# -- distributions -------------------------------------------------------------------------------------


def stateless_random_uniform(
    shape: TensorLike,
    seed: TensorLike,
    minval: TensorLike = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Draw from the uniform distribution over ``[minval, maxval)``. Public as ``tf.random.stateless_uniform``.

    Args:
        shape: Shape of the result, an integer vector.
        seed: Integer vector of two, which determines the numbers.
        minval: Lower bound: a scalar, or of floats a tensor that broadcasts to `shape`.
        maxval: Upper bound, likewise: 1 when None, but required for integers.
        dtype: A floating-point dtype, int32 or int64.
        name: Name of the operation.

    Returns:
        Shape `shape`.

    Raises:
        ValueError: An integer `dtype` without `maxval`.
    """
    dtype, seed = as_dtype(dtype), index_tensor(seed)
    if dtype.is_integer:
        if maxval is None:
            raise ValueError(f"stateless_uniform: maxval must be given for {dtype.name}")
        bounds = convert_to_tensor(minval, dtype), convert_to_tensor(maxval, dtype)
        return add_op(STATELESS_UNIFORM_INT, position_tensor(shape), seed, *bounds, name=name)
    with get_default_graph().name_scope(name or "stateless_random_uniform"):
        low, high = convert_to_tensor(minval, dtype), convert_to_tensor(1 if maxval is None else maxval, dtype)
        numbers = add_op(STATELESS_UNIFORM, position_tensor(shape), seed, dtype=dtype)
        return math_ops.add(math_ops.multiply(numbers, high - low), low)


STATELESS_UNIFORM = register(_stateless("StatelessRandomUniform", uniform))


def _stateless_uniform_int_kernel(ctx: KernelContext, shape: Array, seed: Array, minval: Array, maxval: Array) -> Array:
    low, high = host_int(ctx, minval), host_int(ctx, maxval)
    if low >= high:
        raise InvalidArgumentError(f"stateless_uniform: Need minval < maxval, got {low} >= {high}")

    def write(generator: np.random.Generator, part: Array) -> None:
        part[...] = generator.integers(low, high, part.shape, part.dtype)

    return _numbers(write)(ctx, shape, seed)


def _stateless_uniform_int_shape(op: Operation) -> list[TensorShape]:
    for bound in op.inputs[2:]:
        bound.shape.assert_has_rank(0)
    return _shape_from_input(op)


STATELESS_UNIFORM_INT = register(
    OpDef(
        name="StatelessRandomUniformInt",
        inputs=("shape: S", "seed: Tseed", "minval: dtype", "maxval: dtype"),
        outputs=("output: dtype",),
        host_inputs=("shape", "seed", "minval", "maxval"),
        types={"S": dtypes.INDICES, "Tseed": dtypes.INDICES, "dtype": dtypes.INDICES},
        shape=_stateless_uniform_int_shape,
        kernels=on_every_device(_stateless_uniform_int_kernel),
    )
)


def stateless_random_normal(
    shape: TensorLike,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Draw from a normal distribution. Public as ``tf.random.stateless_normal``.

    Args:
        shape: Shape of the result, an integer vector.
        seed: Integer vector of two, which determines the numbers.
        mean: Mean: a scalar, or a tensor that broadcasts to `shape`.
        stddev: Standard deviation, likewise.
        dtype: A floating-point dtype.
        name: Name scope of the operations.

    Returns:
        Shape `shape`.
    """
    return _scaled(STATELESS_NORMAL, shape, seed, mean, stddev, dtype, name or "stateless_random_normal")


def _scaled(
    definition: OpDef,
    shape: TensorLike,
    seed: TensorLike,
    mean: TensorLike,
    stddev: TensorLike,
    dtype: DTypeLike,
    name: str,
) -> Tensor:
    with get_default_graph().name_scope(name):
        dtype = as_dtype(dtypes.float32 if dtype is None else dtype)
        mean, stddev = convert_to_tensor(mean, dtype), convert_to_tensor(stddev, dtype)
        numbers = add_op(definition, position_tensor(shape), index_tensor(seed), dtype=dtype)
        return math_ops.add(math_ops.multiply(numbers, stddev), mean)


STATELESS_NORMAL = register(_stateless("StatelessRandomNormal", normal))


def stateless_truncated_normal(
    shape: TensorLike,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Draw from a normal distribution, again wherever a number is more than two `stddev` from the mean.

    Arguments as for `stateless_random_normal`.
    """
    return _scaled(STATELESS_TRUNCATED, shape, seed, mean, stddev, dtype, name or "stateless_truncated_normal")


STATELESS_TRUNCATED = register(_stateless("StatelessTruncatedNormal", truncated_normal))


def stateless_multinomial(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: TensorLike,
    output_dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Draw class indices, each with probability ``softmax(logits)``.

    Args:
        logits: Shape ``[batch, classes]``: unnormalised log-probabilities.
        num_samples: Integer scalar: draws per row.
        seed: Integer vector of two, which determines the draws.
        output_dtype: int64 or int32.
        name: Name of the operation.

    Returns:
        Shape ``[batch, num_samples]``.
    """
    count, dtype = convert_to_tensor(num_samples, dtypes.int32), as_dtype(output_dtype)
    return add_op(STATELESS_MULTINOMIAL, logits, count, index_tensor(seed), name=name, output_dtype=dtype)


def stateless_categorical(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: TensorLike,
    dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """`stateless_multinomial` by its newer name: the result has the shape ``[batch, num_samples]``."""
    return stateless_multinomial(logits, num_samples, seed, dtype, name)


def _stateless_multinomial_kernel(ctx: KernelContext, logits: Array, num_samples: Array, seed: Array) -> Array:
    return ctx.asarray(
        draw_classes(ctx.to_host(logits), host_int(ctx, num_samples), _stream(ctx, seed), ctx.output_dtype())
    )


def _stateless_multinomial_shape(op: Operation) -> list[TensorShape]:
    op.inputs[2].shape.assert_is_compatible_with([2])
    return classes_shape(op)


STATELESS_MULTINOMIAL = register(
    OpDef(
        name="StatelessMultinomial",
        inputs=("logits: T", "num_samples: int32", "seed: Tseed"),
        outputs=("output: output_dtype",),
        host_inputs=("num_samples", "seed"),
        types={"T": dtypes.REAL, "Tseed": dtypes.INDICES, "output_dtype": dtypes.INDICES},
        shape=_stateless_multinomial_shape,
        kernels=on_every_device(_stateless_multinomial_kernel),
    )
)


def stateless_random_binomial(
    shape: TensorLike,
    seed: TensorLike,
    counts: TensorLike,
    probs: TensorLike,
    output_dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Draw how many of `counts` trials succeed, each with probability `probs`.

    Args:
        shape: Integer vector, the shape of the result.
        seed: Integer vector of two, which determines the draws.
        counts: Numbers of trials, whole numbers of 0 or more; its shape broadcasts to `shape`.
        probs: Probabilities in [0, 1], likewise.
        output_dtype: A number type.
        name: Name of the operation.

    Returns:
        A tensor of the given shape.

    Raises:
        InvalidArgumentError: When the step runs, if a number of trials is negative or a probability lies outside of
            [0, 1].
    """
    counts = convert_to_tensor(counts)
    counts = counts if counts.dtype in dtypes.FLOATS else array_ops.to_double(counts)
    probs, sizes = array_ops.cast(probs, counts.dtype), position_tensor(shape)
    return add_op(STATELESS_BINOMIAL, sizes, index_tensor(seed), counts, probs, name=name, dtype=as_dtype(output_dtype))


def _stateless_binomial_kernel(ctx: KernelContext, shape: Array, seed: Array, counts: Array, probs: Array) -> Array:
    counts, probs = (ctx.to_host(each).astype(np.float64) for each in (counts, probs))
    if not ((counts >= 0).all() and ((probs >= 0) & (probs <= 1)).all()):
        raise InvalidArgumentError("a binomial distribution needs counts of 0 or more and probabilities in [0, 1]")
    size = host_ints(ctx, shape)
    drawn = _stream(ctx, seed).draw(lambda generator: generator.binomial(counts.astype(np.int64), probs, size))
    return ctx.asarray(np.asarray(drawn, ctx.output_dtype()))


STATELESS_BINOMIAL = register(
    OpDef(
        name="StatelessRandomBinomial",
        inputs=("shape: S", "seed: Tseed", "counts: T", "probs: T"),
        outputs=("output: dtype",),
        host_inputs=("shape", "seed"),
        types={
            "S": dtypes.INDICES,
            "Tseed": dtypes.INDICES,
            "T": dtypes.FLOATS,
            "dtype": (*dtypes.FLOATS, *dtypes.INDICES),
        },
        shape=_shape_from_input,
        kernels=on_every_device(_stateless_binomial_kernel),
    )
)
