"""Operations that combine the values of data-parallel replicas into one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, not_differentiable, on_every_device, register
from tfray.framework.tensor_shape import SCALAR, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.kernels.tiles import map_flat

REDUCTIONS: Final = ("mean", "concat", "concat_mean", "first")

_EXPONENTS: Final = {"float16": 0x7C00, "bfloat16": 0x7F80}
"""The exponent bits of the 16-bit float dtypes: all are set in an infinite number or NaN."""

_CHUNK: Final = 1 << 18
"""Elements that are checked at a time: they and their results stay in the cache."""


class Contributions(list[Array]):
    """What the replicas that count in a step contribute to one operation.

    Args:
        values: One value from each replica, or a `partial_reduction` of several.
        replicas: From how many replicas they are.
    """

    def __init__(self, values: Iterable[Array], replicas: int) -> None:
        super().__init__(values)
        self.replicas = replicas


def replica_reduce(
    value: TensorLike, reduction: str = "mean", name: str | None = None, dtype: DTypeLike | None = None
) -> Tensor:
    """Combine what the replicas of a training step computed for `value`.

    In a graph that is not replicated the result is `value` itself. In a replicated step the operation runs where
    its result is used, on a parameter shard, on the contributions of those replicas that count in that step, in
    the order of their numbers.

    Args:
        value: Shape ``[...]``.
        reduction: ``"mean"`` averages; ``"concat"`` concatenates along the first axis; ``"concat_mean"`` does so
            and divides by the number of replicas (the rows of a sparse gradient); ``"first"`` takes one replica's.
        name: Name of the operation.
        dtype: Dtype in which to combine, and of the result; that of `value` when None.

    Returns:
        The shape of `value`; for ``"concat"`` and ``"concat_mean"`` with another size of the first dimension.

    References:
        OSDI 2016, section 4.4: synchronous replica coordination.
    """
    value = convert_to_tensor(value)
    wanted = value.dtype if dtype is None else as_dtype(dtype)
    return add_op(REPLICA_REDUCE, value, reduction=reduction, Tout=wanted, name=name)


def partial_reduction(reduction: str, values: Sequence[Array], room: Callable[[Any], Array]) -> Array:
    """Combine what some of the replicas contribute, into one value for `Contributions`.

    Args:
        reduction: As in `replica_reduce`. Of a mean, this is the sum: the operation divides it.
        values: One value from each of these replicas, on the host.
        room: Makes an array for the result, of the dtype and, unless rows are joined, the shape of the first value.
    """
    first = values[0]
    if reduction == "first" or len(values) == 1:
        return first
    if reduction.startswith("concat"):
        return np.concatenate(values)
    total = room(first)
    if first.dtype.itemsize < 4:  # added up in 32 bits, as by the operation
        wide = np.add(first, values[1], dtype=np.float32)
        for other in values[2:]:
            wide += other
        total[...] = wide
        return total
    np.add(first, values[1], out=total)
    for other in values[2:]:
        np.add(total, other, out=total)
    return total


def combination(xp: Any, reduction: str, values: Contributions, dtype: Any) -> Array:
    """Combine what all replicas that count contribute.

    Args:
        xp: The array module of the values.
        reduction: As in `replica_reduce`.
        values: The contributions.
        dtype: The module's dtype in which to combine, and of the result.
    """
    if reduction == "first" or values.replicas == 1:
        return values[0].astype(dtype, copy=False)
    factor = np.dtype(dtype).type(1 / values.replicas) if reduction.endswith("mean") else None
    if reduction.startswith("concat"):
        combined = xp.concatenate(values).astype(dtype, copy=False)
        if factor is not None:
            combined *= factor
        return combined

    def add_up(out: Array, first: Array, *others: Array) -> None:
        if others:
            xp.add(first, others[0], out=out, dtype=dtype)
        else:
            xp.copyto(out, first, casting="unsafe")
        for other in others[1:]:
            out += other
        if factor is not None:
            out *= factor

    return map_flat(xp, add_up, xp.empty(values[0].shape, dtype), *values)


def _replica_reduce_kernel(ctx: KernelContext, value: Array | Contributions) -> Array:
    dtype = ctx.output_dtype()
    if not isinstance(value, Contributions):
        return value.astype(dtype, copy=False)
    return combination(ctx.xp, ctx.attr("reduction"), value, dtype)


def _replica_reduce_shape(op: Operation) -> list[TensorShape]:
    shape, reduction = op.inputs[0].shape, op.attr("reduction")
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, not {reduction!r}")
    if reduction.startswith("concat") and shape.rank is not None:
        return [TensorShape([None]).concatenate(shape[1:])]
    return [shape]


REPLICA_REDUCE = register(
    OpDef(
        name="ReplicaReduce",
        inputs=("value: T",),
        outputs=("output: Tout",),
        types={"T": dtypes.VALUES, "Tout": dtypes.VALUES},
        attrs=("reduction",),
        shape=_replica_reduce_shape,
        kernels=on_every_device(_replica_reduce_kernel),
        stateful=True,  # its value depends on the step's members
    )
)


def _all_finite_kernel(ctx: KernelContext, value: Array) -> Array:
    flat = ctx.xp.ravel(value)
    exponent = _EXPONENTS.get(value.dtype.name)
    if exponent is not None:
        flat = flat.view(ctx.xp.uint16)

    def finite(part: Array) -> bool:
        if exponent is None:
            return bool(ctx.xp.isfinite(part).all())
        return bool(((part & exponent) != exponent).all())

    good = all(finite(flat[start : start + _CHUNK]) for start in range(0, flat.size, _CHUNK))
    if not good and ctx.attr("failure"):
        wide = value.astype(ctx.xp.float64)
        nan, infinite = int(ctx.xp.isnan(wide).sum()), int(ctx.xp.isinf(wide).sum())
        raise InvalidArgumentError(
            f"{ctx.attr('failure')}: of {flat.size} elements {nan} are NaN and {infinite} infinite"
        )
    return ctx.asarray(np.bool_(good))


def _scalar(op: Operation) -> list[TensorShape]:
    return [SCALAR]


ALL_FINITE = register(
    OpDef(
        name="AllFinite",
        inputs=("value: T",),
        outputs=("finite: bool",),
        types={"T": dtypes.FLOATS},
        attrs=("failure",),
        shape=_scalar,
        kernels=on_every_device(_all_finite_kernel),
        gradient=not_differentiable,
    )
)
