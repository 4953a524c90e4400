"""Connectionist temporal classification with labels as dense matrices, filled up behind each example's last label."""

from __future__ import annotations

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import ones_like, where
from tfray.ops.arrays.construction_ops import sequence_mask
from tfray.ops.arrays.gather_ops import boolean_mask, gather_nd, scatter_nd
from tfray.ops.arrays.join_ops import concat, size_along, stack
from tfray.ops.arrays.layout_ops import pad
from tfray.ops.arrays.partition_ops import unique
from tfray.ops.arrays.shape_ops import cast, shape, transpose
from tfray.ops.control.functional_ops import map_fn
from tfray.ops.math.comparison_ops import less, logical_and, not_equal
from tfray.ops.math.reduction_ops import reduce_max, reduce_sum
from tfray.ops.nn.ctc_ops import ctc_loss


def ctc_loss_v2(
    labels: TensorLike | SparseTensor,
    logits: TensorLike,
    label_length: TensorLike | None,
    logit_length: TensorLike,
    logits_time_major: bool = True,
    unique: object = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Compute `ctc_loss` of labels that may be dense, with any class as the blank.

    Args:
        labels: Shape ``[batch, longest]``, filled up behind `label_length`; or a `SparseTensor`.
        logits: Shape ``[time, batch, classes]``, or ``[batch, time, classes]``; floats.
        label_length: Shape ``[batch]``: number of labels of each example; None for a `SparseTensor`.
        logit_length: Shape ``[batch]``: number of time steps of each example.
        logits_time_major: Whether time is the first dimension of `logits`.
        unique: Accepted for TensorFlow 1's sake, which needs it on other devices.
        blank_index: Number of the blank; negative ones count from the last class. 0 when None and labels are dense.
        name: Name scope of the operations.

    Returns:
        Shape ``[batch]``.

    Raises:
        InvalidArgumentError: `blank_index` is missing for a `SparseTensor`.
    """
    with get_default_graph().name_scope(name or "ctc_loss"):
        scores = convert_to_tensor(logits)
        if not logits_time_major:
            scores = transpose(scores, [1, 0, 2])
        if isinstance(labels, SparseTensor):
            if blank_index is None:
                raise InvalidArgumentError("ctc_loss: blank_index is required with labels that are a SparseTensor")
            sparse = labels
        else:
            sparse = _as_sparse(convert_to_tensor(labels), label_length)
        classes, blank = size_along(scores, 2), blank_index or 0
        blank = blank + classes if blank < 0 else blank
        # The loss takes the last class for the blank.
        scores = concat([scores[:, :, :blank], scores[:, :, blank + 1 :], scores[:, :, blank : blank + 1]], 2)
        scores.set_shape([None, None, None if isinstance(classes, Tensor) else classes])
        values = where(less(sparse.values, cast(blank, sparse.values.dtype)), sparse.values, sparse.values - 1)
        return ctc_loss(SparseTensor(sparse.indices, values, sparse.dense_shape), scores, logit_length)


def _as_sparse(labels: Tensor, lengths: TensorLike | None) -> SparseTensor:
    if lengths is None:
        raise InvalidArgumentError("ctc_loss: label_length is required with dense labels")
    places = where(sequence_mask(lengths, size_along(labels, 1)))
    return SparseTensor(places, gather_nd(labels, places), shape(labels, out_type=dtypes.int64))


def ctc_unique_labels(labels: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Find the distinct labels of each example.

    Args:
        labels: Shape ``[batch, longest]``, integers, filled up with 0.
        name: Name scope of the operations.

    Returns:
        The distinct labels in the order of their first occurrence, filled up with 0, int64; and of each label its place
        among them, int32. Both have the shape of `labels`.
    """
    with get_default_graph().name_scope(name or "ctc_unique_labels"):
        labels = convert_to_tensor(labels)

        def of_example(row: Tensor) -> list[Tensor]:
            found = unique(row)
            missing = size_along(found.idx, 0) - shape(found.y)[0]
            return [cast(pad(found.y, stack([stack([0, missing])])), dtypes.int64), found.idx]

        distinct, places = map_fn(of_example, labels, [dtypes.int64, dtypes.int32])
        return distinct, places


def collapse_repeated(labels: TensorLike, seq_length: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Merge labels that are equal to the one before.

    Args:
        labels: Shape ``[batch, longest]``.
        seq_length: Shape ``[batch]``: number of labels of each example.
        name: Name scope of the operations.

    Returns:
        The merged labels, filled up with 0, shape ``[batch, longest of these]``; and their numbers, shape ``[batch]``,
        the dtype of `seq_length`.
    """
    with get_default_graph().name_scope(name or "collapse_repeated_labels"):
        labels, lengths = convert_to_tensor(labels), convert_to_tensor(seq_length)
        differs = not_equal(labels[:, 1:], labels[:, :-1])
        first = ones_like(labels[:, :1], dtypes.bool_)
        kept = logical_and(concat([first, differs], 1), sequence_mask(lengths, size_along(labels, 1)))
        counts = reduce_sum(cast(kept, dtypes.int32), 1)
        longest = reduce_max(counts)
        places = where(sequence_mask(counts, longest))
        merged = scatter_nd(places, boolean_mask(labels, kept), cast(stack([shape(labels)[0], longest]), dtypes.int64))
        return merged, cast(counts, lengths.dtype)
