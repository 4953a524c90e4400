"""Where the contributions of data-parallel replicas become one value."""

from __future__ import annotations

from typing import Any, Final

from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.tensor_shape import TensorShape

REDUCTIONS: Final = ("mean", "concat", "concat_mean", "first")


def replica_reduce(value: Any, reduction: str = "mean", name: str | None = None) -> Tensor:
    """Combine what the replicas of a training step computed for `value`.

    In a graph that is not replicated the result is `value` itself. In a replicated step the operation runs where
    its result is used, on a parameter shard, on the contributions of those replicas that count in that step, in
    the order of their numbers.

    Args:
        value: Shape ``[...]``.
        reduction: ``"mean"`` averages; ``"concat"`` concatenates along the first axis; ``"concat_mean"`` does so
            and divides by the number of replicas (the rows of a sparse gradient); ``"first"`` takes one replica's.
        name: Name of the operation.

    References:
        OSDI 2016, section 4.4: synchronous replica coordination.
    """
    return add_op(REPLICA_REDUCE, value, reduction=reduction, name=name)


def _replica_reduce_kernel(ctx: KernelContext, value: Array | list[Array]) -> Array:
    if not isinstance(value, list):
        return value
    reduction, count = ctx.attr("reduction"), len(value)
    if reduction == "first" or count == 1:
        return value[0]
    if reduction == "mean":
        total = ctx.xp.add(value[0], value[1])
        for other in value[2:]:
            total += other
        return total * total.dtype.type(1 / count)
    rows = ctx.xp.concatenate(value)
    return rows * rows.dtype.type(1 / count) if reduction == "concat_mean" else rows


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
        outputs=("output: T",),
        types={"T": dtypes.VALUES},
        attrs=("reduction",),
        shape=_replica_reduce_shape,
        kernels=on_every_device(_replica_reduce_kernel),
        stateful=True,  # its value depends on the step's members
    )
)
