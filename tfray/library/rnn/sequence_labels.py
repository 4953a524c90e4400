"""Labels of sequences as padded tensors: made sparse, compared by CTC, and decoded."""

from __future__ import annotations

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.nn.ctc_ops import ctc_beam_search_decoder, ctc_greedy_decoder, ctc_loss
from tfray.ops.sparse.sparse_ops import chosen_elements, sparse_tensor_to_dense


def dense_to_sparse(
    tensor: TensorLike, eos_token: int = 0, outputs_collections: str | None = None, scope: str | None = None
) -> SparseTensor:
    """The elements of a tensor that are not `eos_token`.

    Args:
        tensor: Any shape, numbers.
        eos_token: What stands for nothing.
        outputs_collections: Name of a collection for the result, or None.
        scope: Name scope of the operations.

    Returns:
        A `SparseTensor` of the same shape and dtype.
    """
    with get_default_graph().name_scope(scope or "dense_to_sparse"):
        tensor = convert_to_tensor(tensor)
        sparse = chosen_elements(tensor, math_ops.not_equal(tensor, convert_to_tensor(eos_token, tensor.dtype)))
    if outputs_collections is not None:
        get_default_graph().add_to_collection(outputs_collections, sparse)
    return sparse


def ctc_label_dense_to_sparse(labels: TensorLike, label_lengths: TensorLike) -> SparseTensor:
    """Padded labels as `ctc_loss` takes them.

    Args:
        labels: Shape ``[batch, longest]``.
        label_lengths: Shape ``[batch]``: number of labels of each example.
    """
    labels = convert_to_tensor(labels)
    return chosen_elements(labels, array_ops.sequence_mask(label_lengths, array_ops.shape(labels)[1]))


def ctc_batch_cost(
    y_true: TensorLike, y_pred: TensorLike, input_length: TensorLike, label_length: TensorLike
) -> Tensor:
    """The CTC loss of each example, computed from probabilities.

    Args:
        y_true: Shape ``[batch, longest]``: labels.
        y_pred: Shape ``[batch, time, classes]``: probabilities. The last class is the blank.
        input_length: Shape ``[batch, 1]``: number of time steps of each example.
        label_length: Shape ``[batch, 1]``: number of labels of each example.

    Returns:
        Shape ``[batch, 1]``.
    """
    labels = array_ops.cast(convert_to_tensor(y_true), dtypes.int32)
    sparse = ctc_label_dense_to_sparse(labels, _vector(label_length))
    return array_ops.expand_dims(ctc_loss(sparse, _logits(y_pred), _vector(input_length)), 1)


def _vector(lengths: TensorLike) -> Tensor:
    return array_ops.reshape(array_ops.cast(convert_to_tensor(lengths), dtypes.int32), [-1])


def _logits(probabilities: TensorLike) -> Tensor:
    """Logarithms ``[time, batch, classes]``; a small number keeps them finite."""
    return math_ops.log(array_ops.transpose(convert_to_tensor(probabilities), [1, 0, 2]) + 1e-7)


def ctc_decode(
    y_pred: TensorLike, input_length: TensorLike, greedy: bool = True, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[Tensor], Tensor]:
    """Decode probabilities.

    Args:
        y_pred: Shape ``[batch, time, classes]``. The last class is the blank.
        input_length: Shape ``[batch]``: number of time steps of each example.
        greedy: Take the likeliest class of every step, not a search.
        beam_width: See `tf.nn.ctc_beam_search_decoder`.
        top_paths: Number of sequences of labels from the search.

    Returns:
        A list of padded label tensors ``[batch, longest]``, -1 where there is none; and their scores.
    """
    logits, lengths = _logits(y_pred), _vector(input_length)
    if greedy:
        decoded, scores = ctc_greedy_decoder(logits, lengths)
    else:
        decoded, scores = ctc_beam_search_decoder(logits, lengths, beam_width, top_paths, merge_repeated=False)
    return [sparse_tensor_to_dense(path, -1) for path in decoded], scores
