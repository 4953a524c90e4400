"""The edit distance of sequences: the number of insertions, deletions and replacements between them."""

from __future__ import annotations

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import none_is_default
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, not_differentiable, on_cpu, register
from tfray.framework.sparse_tensor import SparseLike
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.ops.arrays.shape_ops import host_ints
from tfray.ops.kernels.coordinates import check_coordinates, positions
from tfray.ops.sparse.sparse_ops import as_sparse


@none_is_default
def edit_distance(
    hypothesis: SparseLike, truth: SparseLike, normalize: bool = True, name: str = "edit_distance"
) -> Tensor:
    """Compute the Levenshtein distance between sequences: the fewest changes that make one of the other.

    Args:
        hypothesis: A `SparseTensor` of shape ``[..., longest]`` of any dtype, of rank 2 or more: sequences, one after
            the other. The last index of an element does not count, and may lie beyond the shape: elements follow each
            other as they are listed.
        truth: A `SparseTensor` of the same dtype and rank; each size but the last is at least that of `hypothesis`.
        normalize: Divide by the length of the true sequence: infinite where that alone is empty, 0 where both are.
        name: Name of the operation.

    Returns:
        float32 of shape ``truth.shape[:-1]``, or larger where `hypothesis` is.

    Examples:
        >>> guess = tf.SparseTensor([[0, 0], [0, 1]], ["a", "b"], [1, 2])
        >>> truth = tf.SparseTensor([[0, 0], [0, 1]], ["a", "c"], [1, 2])
        >>> session.run(tf.edit_distance(guess, truth))
        array([0.5], dtype=float32)
    """
    found, true = as_sparse(hypothesis, "hypothesis"), as_sparse(truth, "truth")
    inputs = found.indices, found.values, found.dense_shape, true.indices, true.values, true.dense_shape
    return add_op(EDIT_DISTANCE, *inputs, name=name, normalize=bool(normalize))


def _sequences(indices: Array, values: Array, sizes: list[int]) -> dict[tuple[int, ...], Array]:
    """The sequences that are not empty, by where they are."""
    check_coordinates(indices[:, :-1], values, sizes[:-1])
    rows = positions(indices[:, :-1], sizes[:-1])
    if (rows[1:] < rows[:-1]).any():
        raise InvalidArgumentError("the sequences are out of order: sort with tf.sparse_reorder")
    if not len(values):
        return {}
    starts = np.flatnonzero(np.concatenate([[True], (indices[1:, :-1] != indices[:-1, :-1]).any(axis=1)]))
    places = map(tuple, indices[starts, :-1].tolist())
    return dict(zip(places, np.split(values, starts[1:]), strict=True))


def _distance(first: Array, second: Array) -> int:
    """Levenshtein distance, a row of the table of prefixes at a time."""
    if len(first) < len(second):
        first, second = second, first
    along = np.arange(len(second) + 1)
    row = along
    for index, item in enumerate(first):
        changed = np.empty_like(row)
        changed[0] = index + 1
        np.minimum(row[1:] + 1, row[:-1] + (second != item), out=changed[1:])
        # Insertions: an entry is at most any earlier entry of its row plus the distance to it, so a running minimum
        # of (entry - position) gives the whole row at once.
        row = np.minimum.accumulate(changed - along) + along
    return int(row[-1])


def _edit_distance_kernel(
    ctx: KernelContext, indices: Array, values: Array, shape: Array, t_indices: Array, t_values: Array, t_shape: Array
) -> Array:
    sizes, t_sizes = host_ints(ctx, shape), host_ints(ctx, t_shape)
    if len(sizes) != len(t_sizes) or len(sizes) < 2:
        raise InvalidArgumentError(f"sequences of shapes {sizes} and {t_sizes} must have the same rank, at least 2")
    found, true = _sequences(indices, values, sizes), _sequences(t_indices, t_values, t_sizes)
    distances = np.zeros([max(pair) for pair in zip(sizes[:-1], t_sizes[:-1], strict=True)], np.float32)
    nothing = values[:0]
    for place in found.keys() | true.keys():
        goal = true.get(place, nothing)
        distance = float(_distance(found.get(place, nothing), goal))
        if ctx.attr("normalize"):
            distance = distance / len(goal) if len(goal) else np.inf
        distances[place] = distance
    return distances


def _edit_distance_shape(op: Operation) -> list[TensorShape]:
    for first in (0, 3):
        indices, values, shape = (tensor.shape for tensor in op.inputs[first : first + 3])
        indices.assert_is_compatible_with(values.with_rank(1).concatenate(shape.with_rank(1)))
    rank = op.inputs[2].shape.merge_with(op.inputs[5].shape).with_rank(1)
    if rank.sizes[0] is not None and rank.sizes[0] < 2:
        raise ValueError(f"sequences of rank {rank.sizes[0]}, expected at least 2")
    known = [constant_value(op.inputs[index]) for index in (2, 5)]
    if known[0] is not None and known[1] is not None:
        return [TensorShape(np.maximum(known[0], known[1])[:-1].tolist())]
    return [UNKNOWN if rank.sizes[0] is None else TensorShape([None] * (rank.sizes[0] - 1))]


EDIT_DISTANCE = register(
    OpDef(
        name="EditDistance",
        inputs=(
            "hypothesis_indices: int64",
            "hypothesis_values: T",
            "hypothesis_shape: int64",
            "truth_indices: int64",
            "truth_values: T",
            "truth_shape: int64",
        ),
        outputs=("output: float32",),
        types={"T": dtypes.VALUES},
        attrs=("normalize",),
        shape=_edit_distance_shape,
        kernels=on_cpu(_edit_distance_kernel),
        gradient=not_differentiable,
    )
)
