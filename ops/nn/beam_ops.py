"""Operations for beam search: they read whole sequences from the tree of steps that the search has built."""

from __future__ import annotations

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, not_differentiable, on_every_device, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.kernels.precision import choose


def gather_tree(
    step_ids: TensorLike,
    parent_ids: TensorLike,
    max_sequence_lengths: TensorLike,
    end_token: TensorLike,
    name: str | None = None,
) -> Tensor:
    """Follow each beam from its last step back to the first.

    Args:
        step_ids: int32 ``[time, batch, beam]``: what each beam chose in each step.
        parent_ids: Same shape: the beam of the step before that it continues.
        max_sequence_lengths: int32 ``[batch]``: number of steps of each example; later ones hold `end_token`.
        end_token: int32 scalar: after the first one in a sequence come only such.
        name: Name of the operation.

    Returns:
        Same shape as `step_ids`: the whole sequences.

    Raises:
        InvalidArgumentError: At run time, a parent that is followed is not a beam. Those of the first step, and of
            steps behind an example's last one, may be anything.
    """
    return add_op(GATHER_TREE, step_ids, parent_ids, max_sequence_lengths, end_token, name=name)


def _check_parents(beams: Array, width: int, time: int) -> None:
    """Refuse beams, ``[batch, beam]``, that are to be read in a step and are none of its `width`."""
    wrong = np.argwhere((beams < 0) | (beams >= width))
    if time >= 0 and len(wrong):
        example, beam = wrong[0]
        raise InvalidArgumentError(
            f"Saw invalid parent id {beams[example, beam]} at (batch, time, beam) == ({example}, {time}, {beam}): "
            f"parent_ids must lie in [0, {width})"
        )


def _gather_tree_kernel(ctx: KernelContext, steps: Array, parents: Array, lengths: Array, end_token: Array) -> Array:
    steps, parents, lengths, end_token = (ctx.to_host(array) for array in (steps, parents, lengths, end_token))
    times, batch, width = steps.shape
    sequences = np.full(steps.shape, end_token, steps.dtype)
    rows = np.arange(batch)[:, None]
    beams = np.broadcast_to(np.arange(width), (batch, width))
    for time in range(times - 1, -1, -1):
        runs = (time < lengths)[:, None]
        sequences[time] = np.where(runs, steps[time][rows, beams], end_token)
        beams = np.where(runs, parents[time][rows, beams], beams)
        _check_parents(beams, width, time - 1)
    ended = np.logical_or.accumulate(sequences == end_token, axis=0)
    return ctx.asarray(np.where(ended, steps.dtype.type(end_token), sequences))


def _gather_tree_shape(op: Operation) -> list[TensorShape]:
    steps, parents, lengths, end_token = (tensor.shape for tensor in op.inputs)
    end_token.with_rank(0)
    batch = lengths.with_rank(1).sizes[0]
    return [steps.merge_with(parents).merge_with([None, batch, None])]


GATHER_TREE = register(
    OpDef(
        name="GatherTree",
        inputs=("step_ids: int32", "parent_ids: int32", "max_sequence_lengths: int32", "end_token: int32"),
        outputs=("beams: int32",),
        shape=_gather_tree_shape,
        kernels=on_every_device(_gather_tree_kernel),
        gradient=not_differentiable,
    )
)


def gather_tree_from_array(values: TensorLike, parent_ids: TensorLike, sequence_length: TensorLike) -> Tensor:
    """Reorder values of single steps, such as attention, so that each beam has those of its own final sequence.

    Args:
        values: ``[time, batch, beam, ...]``.
        parent_ids: int32 ``[time, batch, beam]``.
        sequence_length: int32 ``[batch, beam]``; later steps are zeros.

    Returns:
        Shape ``[time, batch, beam, ...]``, the dtype of `values`.
    """
    return add_op(GATHER_TREE_VALUES, values, parent_ids, sequence_length)


def _gather_values_kernel(ctx: KernelContext, values: Array, parents: Array, lengths: Array) -> Array:
    parents, lengths = ctx.to_host(parents), ctx.to_host(lengths)
    times, batch, width = parents.shape
    xp = ctx.xp
    gathered = xp.zeros_like(values)
    rows = np.arange(batch)[:, None]
    beams = np.broadcast_to(np.arange(width), (batch, width))
    longest = lengths.max(axis=1)[:, None] if width else lengths
    for time in range(times - 1, -1, -1):
        keeps = (time < lengths).reshape(batch, width, *[1] * (values.ndim - 3))
        chosen = values[time][xp.asarray(rows), xp.asarray(beams)]
        gathered[time] = choose(xp, xp.asarray(keeps), chosen, xp.zeros((), values.dtype))
        beams = np.where(time < longest, parents[time][rows, beams], beams)
    return gathered


def _gather_values_shape(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape]


GATHER_TREE_VALUES = register(
    OpDef(
        name="GatherTreeValues",
        inputs=("values: T", "parent_ids: int32", "sequence_length: int32"),
        outputs=("gathered: T",),
        types={"T": dtypes.NUMERIC},
        shape=_gather_values_shape,
        kernels=on_every_device(_gather_values_kernel),
        gradient=not_differentiable,
    )
)
