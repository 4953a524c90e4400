"""Connectionist temporal classification: training on labels whose times are not known, and decoding."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import whole_part
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, not_differentiable, on_cpu, register
from tfray.framework.sparse_tensor import SparseLike, SparseTensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import ones_like, where
from tfray.ops.arrays.construction_ops import sequence_mask
from tfray.ops.arrays.gather_ops import boolean_mask, gather_nd, scatter_nd
from tfray.ops.arrays.join_ops import concat, size_along, stack
from tfray.ops.arrays.layout_ops import pad
from tfray.ops.arrays.partition_ops import unique as distinct_values
from tfray.ops.arrays.shape_ops import cast, expand_dims, shape, transpose
from tfray.ops.control.functional_ops import map_fn
from tfray.ops.kernels import ctc
from tfray.ops.math.arithmetic_ops import multiply
from tfray.ops.math.comparison_ops import less, logical_and, not_equal
from tfray.ops.math.reduction_ops import reduce_max, reduce_sum
from tfray.ops.sparse.sparse_ops import as_sparse

# -- loss ----------------------------------------------------------------------------------------------


def ctc_loss(
    labels: SparseLike,
    inputs: TensorLike | None = None,
    sequence_length: TensorLike | None = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: TensorLike | None = None,
) -> Tensor:
    """Compute the negative log-probability of labels, summed over all times at which they may occur.

    Args:
        labels: int32 `SparseTensor` of shape ``[batch, longest]``: the labels of each example, in
            ``[0, num_classes - 1)``. The last class is the blank.
        inputs: Logits, shape ``[time, batch, num_classes]``, or ``[batch, time, num_classes]``; floats.
        sequence_length: int32, shape ``[batch]``: number of time steps of each example.
        preprocess_collapse_repeated: Merge equal neighbours among the labels first.
        ctc_merge_repeated: A label may last for several time steps; equal neighbours need a blank between them.
            When False, every step that is not blank is a label of its own.
        ignore_longer_outputs_than_inputs: Examples with more labels than time steps get loss 0 instead of an error.
        time_major: Whether time is the first dimension of `inputs`, which is faster.
        logits: Another spelling of `inputs`.

    Returns:
        Shape ``[batch]``; infinite where the labels, with the blanks that they need, do not fit the time steps.

    Raises:
        InvalidArgumentError: While running: labels out of range or more than there are time steps.

    Examples:
        >>> labels = tf.SparseTensor([[0, 0]], [0], [1, 1])  # one example, whose only label is 0; class 1 is the blank
        >>> session.run(tf.nn.ctc_loss(labels, tf.zeros([1, 1, 2]), sequence_length=[1]))
        array([0.6931472], dtype=float32)
    """
    inputs = convert_to_tensor(logits if inputs is None else inputs)
    sparse = as_sparse(labels, "labels")
    if not time_major:
        inputs = transpose(inputs, [1, 0, 2])
    loss, _ = add_op(
        CTC_LOSS,
        inputs,
        sparse.indices,
        cast(sparse.values, dtypes.int32),
        sequence_length,
        preprocess_collapse_repeated=preprocess_collapse_repeated,
        ctc_merge_repeated=ctc_merge_repeated,
        ignore_longer_outputs_than_inputs=ignore_longer_outputs_than_inputs,
    )
    return loss


def _check_lengths(inputs: Array, lengths: Array) -> None:
    time, batch, _ = inputs.shape
    if not batch:
        raise InvalidArgumentError("batch_size must not be 0")
    if lengths.shape != (batch,):
        raise InvalidArgumentError(f"sequence_length of shape {lengths.shape} does not fit a batch of {batch}")
    if batch and not 0 <= lengths.min() <= lengths.max() <= time:
        raise InvalidArgumentError(f"sequence_length must be in [0, {time}], found {lengths.tolist()}")


def _labels_by_example(indices: Array, values: Array, batch: int) -> list[Array]:
    rows = indices[:, 0]
    if rows.size and not 0 <= rows.min() <= rows.max() < batch:
        raise InvalidArgumentError(f"labels of example {rows.max()} do not fit a batch of {batch}")
    if (rows[1:] < rows[:-1]).any():
        order = np.lexsort((indices[:, 1], rows))
        rows, values = rows[order], values[order]
    ends = np.bincount(rows, minlength=batch).cumsum()
    return np.split(values, ends[:-1]) if batch else []


def _without_blanks(labels: Array, blank: int, collapse: bool, example: int) -> Array:
    """Labels up to the first blank, behind which there must be no more."""
    if collapse and labels.size:
        labels = labels[np.concatenate([[True], labels[1:] != labels[:-1]])]
    if labels.size and labels.min() < 0:
        raise InvalidArgumentError(f"labels of example {example} must not be negative, found {labels.tolist()}")
    is_label = labels < blank
    count = int(is_label.sum())
    if not is_label[:count].all():
        raise InvalidArgumentError(
            f"labels of example {example} are {labels.tolist()}: from {blank} on they are blanks, and come last"
        )
    return labels[:count]


def _ctc_loss_kernel(
    ctx: KernelContext, inputs: Array, indices: Array, values: Array, lengths: Array
) -> tuple[Array, Array]:
    _check_lengths(inputs, lengths)
    _, batch, classes = inputs.shape
    collapse, ignores = ctx.attr("preprocess_collapse_repeated"), ctx.attr("ignore_longer_outputs_than_inputs")
    labels = [
        _without_blanks(each, classes - 1, collapse, example)
        for example, each in enumerate(_labels_by_example(indices, values, batch))
    ]
    too_long = np.array([len(each) for each in labels], np.int64) > lengths
    if too_long.any() and not ignores:
        example = int(too_long.argmax())
        raise InvalidArgumentError(
            f"example {example} has {len(labels[example])} labels for {lengths[example]} time steps; "
            "ignore_longer_outputs_than_inputs=True gives such examples loss 0"
        )
    d_logits, offsets = ctc.softmax(inputs)
    loss = np.zeros(batch, inputs.dtype)
    rows = np.flatnonzero(~too_long & (lengths > 0))
    if not rows.size:
        return loss, np.zeros_like(d_logits)
    part = slice(None) if rows.size == batch else rows
    some, of_some = [labels[b] for b in rows], lengths[part].astype(np.int64)
    merges = ctx.attr("ctc_merge_repeated")
    found = ctc.sum_alignments(inputs[:, part], offsets[:, part], some, of_some, merges)
    loss[part] = np.where(found.log_probability < ctc.POSSIBLE, np.inf, -found.log_probability)
    ctc.subtract_expected(d_logits, rows, found.occupied, some)
    for b, length in enumerate(np.where(too_long, 0, lengths)):
        d_logits[length:, b] = 0
    return loss, d_logits


def _ctc_loss_shape(op: Operation) -> list[TensorShape]:
    inputs, indices, values, lengths = (tensor.shape for tensor in op.inputs)
    inputs, lengths = inputs.with_rank(3), lengths.with_rank(1)
    indices.assert_is_compatible_with(values.with_rank(1).concatenate([2]))
    batch = inputs[1:2].merge_with(lengths)
    return [batch, inputs[:1].concatenate(batch).concatenate(inputs[2:])]


def _ctc_loss_gradient(op: Operation, d_loss: Tensor | None, d_gradient: Tensor | None) -> list[Tensor | None]:
    if d_gradient is not None:
        raise LookupError(f"a second gradient is explicitly disabled: ctc_loss {op.name!r} has a first one only")
    nothing: list[Tensor | None] = [None] * 4
    if d_loss is None:
        return nothing
    return [multiply(expand_dims(d_loss, -1), op.outputs[1]), *nothing[1:]]


CTC_LOSS = register(
    OpDef(
        name="CTCLoss",
        inputs=("inputs: T", "labels_indices: int64", "labels_values: int32", "sequence_length: int32"),
        outputs=("loss: T", "gradient: T"),
        types={"T": (dtypes.float32, dtypes.float64)},
        attrs=("preprocess_collapse_repeated", "ctc_merge_repeated", "ignore_longer_outputs_than_inputs"),
        shape=_ctc_loss_shape,
        kernels=on_cpu(_ctc_loss_kernel),
        gradient=_ctc_loss_gradient,
    )
)


# -- decoders ------------------------------------------------------------------------------------------


class GreedyDecoding(NamedTuple):
    """What `ctc_greedy_decoder` returns.

    Attributes:
        decoded: A list of one int64 `SparseTensor` of shape ``[batch, longest]``.
        neg_sum_logits: Shape ``[batch, 1]``.
    """

    decoded: list[SparseTensor]
    neg_sum_logits: Tensor


def ctc_greedy_decoder(inputs: TensorLike, sequence_length: TensorLike, merge_repeated: bool = True) -> GreedyDecoding:
    """Decode by the most likely class of every time step.

    Args:
        inputs: Logits, shape ``[time, batch, num_classes]``. The last class is the blank.
        sequence_length: int32, shape ``[batch]``.
        merge_repeated: Equal classes in consecutive steps are one label. Blanks separate, and are left out.

    Returns:
        ``(decoded, neg_sum_logits)``: a list with one sparse tensor of labels, of shape ``[batch, longest]``; and for
        each example the negated sum of the largest logits, shape ``[batch, 1]``.
    """
    indices, values, shape, scores = add_op(CTC_GREEDY, inputs, sequence_length, merge_repeated=merge_repeated)
    return GreedyDecoding([SparseTensor(indices, values, shape)], scores)


def _as_sparse_arrays(labels: list[Array]) -> tuple[Array, Array, Array]:
    counts = np.array([len(each) for each in labels], np.int64)
    columns = [np.arange(count) for count in counts]
    indices = np.stack([np.repeat(np.arange(len(labels)), counts), np.concatenate([*columns, columns[0][:0]])], 1)
    longest = np.array([len(labels), counts.max(initial=0)], np.int64)
    return indices, np.concatenate(labels).astype(np.int64), longest


def _ctc_greedy_kernel(ctx: KernelContext, inputs: Array, lengths: Array) -> list[Array]:
    _check_decodable(inputs, lengths)
    found = ctc.decode_greedily(inputs, lengths, ctx.attr("merge_repeated"))
    return [*_as_sparse_arrays(found.labels[0]), found.scores]


def _check_decodable(inputs: Array, lengths: Array) -> None:
    _check_lengths(inputs, lengths)
    if not inputs.shape[1] or not inputs.shape[2]:
        raise InvalidArgumentError(f"inputs of shape {inputs.shape} have no examples or classes")


def _ctc_greedy_shape(op: Operation) -> list[TensorShape]:
    batch = op.inputs[0].shape.with_rank(3)[1:2].merge_with(op.inputs[1].shape.with_rank(1))
    return [TensorShape([None, 2]), TensorShape([None]), TensorShape([2]), batch.concatenate([1])]


CTC_GREEDY = register(
    OpDef(
        name="CTCGreedyDecoder",
        inputs=("inputs: T", "sequence_length: int32"),
        outputs=("decoded_indices: int64", "decoded_values: int64", "decoded_shape: int64", "log_probability: T"),
        types={"T": (dtypes.float32, dtypes.float64)},
        attrs=("merge_repeated",),
        shape=_ctc_greedy_shape,
        kernels=on_cpu(_ctc_greedy_kernel),
        gradient=not_differentiable,
    )
)


class BeamDecoding(NamedTuple):
    """What `ctc_beam_search_decoder` returns.

    Attributes:
        decoded: A list of `top_paths` int64 `SparseTensor`, each of shape ``[batch, longest]``.
        log_probability: Shape ``[batch, top_paths]``.
    """

    decoded: list[SparseTensor]
    log_probability: Tensor


def ctc_beam_search_decoder(
    inputs: TensorLike,
    sequence_length: TensorLike,
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
) -> BeamDecoding:
    """Decode by a search for the most likely sequences of labels.

    Args:
        inputs: Logits, shape ``[time, batch, num_classes]``. The last class is the blank.
        sequence_length: int32, shape ``[batch]``.
        beam_width: Number of sequences kept from one time step to the next.
        top_paths: Number of sequences returned for each example, at most `beam_width`.
        merge_repeated: Merge equal neighbours in the sequences that are returned: TensorFlow 1's habit, by which
            ``A B B`` becomes ``A B`` although a blank stood between.

    Returns:
        ``(decoded, log_probability)``: a list of `top_paths` sparse tensors of labels, the most likely first, each of
        shape ``[batch, longest]``; and their log-probabilities, shape ``[batch, top_paths]``.

    Raises:
        InvalidArgumentError: While running: there are not as many sequences as `top_paths`.
    """
    attrs: dict[str, Any] = {
        "beam_width": int(beam_width),
        "top_paths": (top_paths := whole_part(top_paths)),
        "merge_repeated": merge_repeated,
    }
    outputs = add_op(CTC_BEAM_SEARCH, inputs, sequence_length, **attrs)
    parts = [outputs[i * top_paths : (i + 1) * top_paths] for i in range(3)]
    return BeamDecoding([SparseTensor(*each) for each in zip(*parts, strict=True)], outputs[-1])


def ctc_beam_search_decoder_v2(
    inputs: TensorLike, sequence_length: TensorLike, beam_width: int = 100, top_paths: int = 1
) -> BeamDecoding:
    """As `ctc_beam_search_decoder`, but equal labels that a blank separates are not merged.

    `inputs` has the shape ``[time, batch, num_classes]``, `sequence_length` ``[batch]``; the result is as there.
    """
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, merge_repeated=False)


def _ctc_beam_search_kernel(ctx: KernelContext, inputs: Array, lengths: Array) -> list[Array]:
    _check_decodable(inputs, lengths)
    width, paths = ctx.attr("beam_width"), ctx.attr("top_paths")
    found = ctc.decode_with_beams(inputs, lengths, width, paths, ctx.attr("merge_repeated"))
    if (found.scores < ctc.POSSIBLE).any():
        raise InvalidArgumentError(f"there are fewer than {paths} sequences of labels: ask for fewer top_paths")
    parts = [_as_sparse_arrays(labels) for labels in found.labels]
    return [*(part[i] for i in range(3) for part in parts), found.scores.astype(ctx.output_dtype(3 * paths))]


def _ctc_beam_search_shape(op: Operation) -> list[TensorShape]:
    width, paths = op.attr("beam_width"), op.attr("top_paths")
    if paths < 1:
        raise ValueError(f"top_paths is {paths}, expected at least 1")
    if paths > width:
        raise ValueError(f"requested more paths than the beam width can possibly generate: {paths}, and it is {width}")
    batch = op.inputs[0].shape.with_rank(3)[1:2].merge_with(op.inputs[1].shape.with_rank(1))
    sparse = [TensorShape([None, 2])] * paths + [TensorShape([None])] * paths + [TensorShape([2])] * paths
    return [*sparse, batch.concatenate([paths])]


CTC_BEAM_SEARCH = register(
    OpDef(
        name="CTCBeamSearchDecoder",
        inputs=("inputs: T", "sequence_length: int32"),
        outputs=(
            "decoded_indices: int64*top_paths",
            "decoded_values: int64*top_paths",
            "decoded_shape: int64*top_paths",
            "log_probability: T",
        ),
        types={"T": (dtypes.float32, dtypes.float64)},
        attrs=("beam_width", "top_paths", "merge_repeated"),
        shape=_ctc_beam_search_shape,
        kernels=on_cpu(_ctc_beam_search_kernel),
        gradient=not_differentiable,
    )
)


# -- labels as dense matrices --------------------------------------------------------------------------


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
        logit_length: Shape ``[batch]``: number of time steps of each example; int32 for a `SparseTensor`.
        logits_time_major: Whether time is the first dimension of `logits`.
        unique: Accepted for TensorFlow 1's sake, which needs it on other devices.
        blank_index: Number of the blank; negative ones count from the last class. 0 when None and labels are dense.
        name: Name scope of the operations.

    Returns:
        Shape ``[batch]``.

    Raises:
        InvalidArgumentError: `blank_index` is missing for a `SparseTensor`.
    """
    if blank_index is not None and not isinstance(blank_index, (int, np.integer)):
        raise ArgumentError(f"ctc_loss: blank_index is {blank_index!r}, expected an integer")
    with get_default_graph().name_scope(name or "ctc_loss"):
        scores = convert_to_tensor(logits)
        if not logits_time_major:
            scores = transpose(scores, [1, 0, 2])
        if isinstance(labels, SparseTensor):
            if blank_index is None:
                raise InvalidArgumentError("ctc_loss: blank_index is required with labels that are a SparseTensor")
            sparse = labels
        else:
            sparse = dense_labels_to_sparse(labels, label_length)
        classes, blank = size_along(scores, 2), blank_index or 0
        blank = blank + classes if blank < 0 else blank
        # The loss takes the last class for the blank.
        scores = concat([scores[:, :, :blank], scores[:, :, blank + 1 :], scores[:, :, blank : blank + 1]], 2)
        scores.set_shape([None, None, None if isinstance(classes, Tensor) else classes])
        values = where(less(sparse.values, cast(blank, sparse.values.dtype)), sparse.values, sparse.values - 1)
        lengths = convert_to_tensor(logit_length)
        if not isinstance(labels, SparseTensor):
            lengths = cast(lengths, dtypes.int32)
        return ctc_loss(SparseTensor(sparse.indices, values, sparse.dense_shape), scores, lengths)


def dense_labels_to_sparse(labels: TensorLike, label_length: TensorLike | None) -> SparseTensor:
    """The first `label_length` labels of each row, ``[batch, longest]`` integers, as a `SparseTensor`."""
    labels = convert_to_tensor(labels)
    if label_length is None:
        raise InvalidArgumentError("ctc_loss: label_length is required with dense labels")
    lengths = convert_to_tensor(label_length)
    if not (labels.dtype.is_integer and lengths.dtype.is_integer):
        raise ArgumentError(
            f"ctc_loss: labels are {labels.dtype.name}, label_length {lengths.dtype.name}, not integers"
        )
    labels.shape.assert_has_rank(2)
    labels.shape[:1].assert_is_compatible_with(lengths.shape)
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
            found = distinct_values(row)
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
