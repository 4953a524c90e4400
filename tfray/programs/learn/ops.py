"""``tf.contrib.learn.ops``: tables of categories, simple models, and recurrent networks from sequence to sequence."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import TensorLike
from tfray.library.layers import losses
from tfray.library.rnn.rnn import static_rnn
from tfray.library.rnn.rnn_cell_base import RNNCell
from tfray.library.variables.variable_scope import get_variable, get_variable_scope, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.math.arithmetic_ops import add_n
from tfray.ops.math.reduction_ops import reduce_sum
from tfray.ops.nn import embedding_ops
from tfray.ops.nn.cross_entropy_ops import softmax, softmax_cross_entropy_with_logits
from tfray.ops.nn.nn_ops import xw_plus_b

embeddings_ops = losses_ops = seq2seq_ops = sys.modules[__name__]
"""This module, by the names that its parts have in programs."""

# fmt: off
__all__ = [
    "categorical_variable", "embedding_lookup", "embeddings_ops", "expand_concat", "losses_ops",
    "mean_squared_error_regressor", "one_hot_matrix", "rnn_decoder", "rnn_seq2seq", "seq2seq_inputs", "seq2seq_ops",
    "sequence_classifier", "softmax_classifier", "split_squeeze",
]
# fmt: on


def split_squeeze(dim: int, num_split: int, tensor_in: TensorLike) -> list[Tensor]:
    """The `num_split` slices of a tensor along a dimension that has as many, without this dimension."""
    return [array_ops.squeeze(each, [dim]) for each in array_ops.split(tensor_in, num_split, dim)]


def expand_concat(dim: int, inputs: Sequence[TensorLike]) -> Tensor:
    """Tensors of one shape, joined along a new dimension."""
    return array_ops.stack(list(inputs), dim)


def one_hot_matrix(tensor_in: TensorLike, num_classes: int, on_value: float = 1.0, off_value: float = 0.0) -> Tensor:
    """`tf.one_hot` of int64 ids, float32."""
    ids = array_ops.cast(convert_to_tensor(tensor_in), dtypes.int64)
    return array_ops.one_hot(ids, num_classes, on_value, off_value)


def embedding_lookup(params: TensorLike, ids: TensorLike, name: str | None = "embedding_lookup") -> Tensor:
    """The rows of a table, shape ``[rows, size]``, for ids of any shape."""
    return embedding_ops.embedding_lookup(convert_to_tensor(params), ids, name=name)


def categorical_variable(tensor_in: TensorLike, n_classes: int, embedding_size: int, name: str) -> Tensor:
    """Vectors of categories, from a table that is learnt: the variable ``name/name_embeddings``.

    Args:
        tensor_in: Ids, of any shape.
        n_classes: How many categories there are.
        embedding_size: Size of a vector.
        name: Name of the variable scope.

    Returns:
        Shape ``[..., embedding_size]``, float32.
    """
    with variable_scope(name):
        return embedding_lookup(get_variable(f"{name}_embeddings", [n_classes, embedding_size]), tensor_in)


def mean_squared_error_regressor(
    tensor_in: TensorLike, labels: Tensor, weights: TensorLike, biases: TensorLike, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Predictions of a linear model, of the shape of `labels`, and their mean squared error."""
    predictions = xw_plus_b(tensor_in, weights, biases, name=name)
    if len(labels.shape) == 1 and len(predictions.shape) == 2:
        predictions = array_ops.squeeze(predictions, [1])
    return predictions, losses.mean_squared_error(labels, predictions)


def softmax_classifier(
    tensor_in: TensorLike,
    labels: TensorLike,
    weights: TensorLike,
    biases: TensorLike,
    class_weight: TensorLike | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Probabilities of a linear model, shape ``[batch, classes]``, and the mean cross entropy.

    Args:
        tensor_in: Features, shape ``[batch, features]``.
        labels: The share of each class, shape ``[batch, classes]``.
        weights: Shape ``[features, classes]``.
        biases: Shape ``[classes]``.
        class_weight: What logits are multiplied with, shape ``[classes]``.
        name: Name of the logits.
    """
    logits = xw_plus_b(tensor_in, weights, biases, name=name)
    if class_weight is not None:
        logits = logits * class_weight
    return softmax(logits), losses.softmax_cross_entropy(labels, logits)


def sequence_classifier(
    decoding: Sequence[Tensor],
    labels: Sequence[TensorLike],
    sampling_decoding: Sequence[Tensor] | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Probabilities of classes at each step, and the sum of the cross entropies.

    Args:
        decoding: Logits of each step, shape ``[batch, classes]``.
        labels: The share of each class at each step, likewise.
        sampling_decoding: The logits that predictions are made from; `decoding` when None.
        name: Not used.

    Returns:
        Shape ``[batch, steps, classes]``, and a scalar.
    """
    entropies = [
        softmax_cross_entropy_with_logits(labels=of_step, logits=each)
        for each, of_step in zip(decoding, labels, strict=True)
    ]
    predictions = [softmax(each) for each in sampling_decoding or decoding]
    return array_ops.stack(predictions, 1), reduce_sum(add_n(entropies))


def seq2seq_inputs(
    x: TensorLike,
    y: TensorLike,
    input_length: int,
    output_length: int,
    sentinel: Tensor | None = None,
    name: str | None = None,
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """The steps of two batches of sequences, as inputs of an encoder and a decoder, and what the decoder is to give.

    Args:
        x: Shape ``[batch, input_length, ...]``.
        y: Shape ``[batch, output_length, ...]``.
        input_length: Steps of `x`.
        output_length: Steps of `y`.
        sentinel: What the decoder gets first, and gives last; zeros of the shape of a step when None.
        name: Not used.

    Returns:
        `input_length` steps of `x`; the sentinel, then `output_length` steps of `y`; these steps, then the sentinel.
    """
    of_x = array_ops.unstack(x, input_length, axis=1)
    of_y = array_ops.unstack(y, output_length, axis=1)
    mark = array_ops.zeros_like(of_y[0]) if sentinel is None else sentinel
    return of_x, [mark, *of_y], [*of_y, mark]


def rnn_decoder(
    decoder_inputs: Sequence[Tensor], initial_state: Any, cell: RNNCell, scope: str | None = None
) -> tuple[list[Tensor], list[Any], list[Tensor], list[Any]]:
    """A recurrent network that gets inputs, and the same one that gets its own outputs after the first input.

    Args:
        decoder_inputs: Inputs of each step, shape ``[batch, size]``.
        initial_state: State before the first step.
        cell: The cell.
        scope: Variable scope; ``dnn_decoder`` when None.

    Returns:
        Outputs, and states with the first one, as it is trained; outputs, and states, as it is sampled from.
    """
    with variable_scope(scope or "dnn_decoder"):
        states, sampling_states = [initial_state], [initial_state]
        outputs: list[Tensor] = []
        sampling_outputs: list[Tensor] = []
        for step, given in enumerate(decoder_inputs):
            if step > 0:
                get_variable_scope().reuse_variables()
            output, state = cell(given, states[-1])
            outputs.append(output)
            states.append(state)
            if step > 0:
                output, state = cell(sampling_outputs[-1], sampling_states[-1])
            sampling_outputs.append(output)
            sampling_states.append(state)
    return outputs, states, sampling_outputs, sampling_states


def rnn_seq2seq(
    encoder_inputs: Sequence[Tensor],
    decoder_inputs: Sequence[Tensor],
    encoder_cell: RNNCell,
    decoder_cell: RNNCell | None = None,
    dtype: DTypeLike = dtypes.float32,
    scope: str | None = None,
) -> tuple[list[Tensor], list[Any], list[Tensor], list[Any]]:
    """`rnn_decoder` that begins with the last state of an encoder.

    Args:
        encoder_inputs: Inputs of each step, shape ``[batch, size]``.
        decoder_inputs: As for `rnn_decoder`.
        encoder_cell: The cell of the encoder.
        decoder_cell: That of the decoder; the same when None.
        dtype: Dtype of the first state.
        scope: Variable scope; ``rnn_seq2seq`` when None.
    """
    with variable_scope(scope or "rnn_seq2seq"):
        _, last = static_rnn(encoder_cell, list(encoder_inputs), dtype=dtype)
        return rnn_decoder(decoder_inputs, last, decoder_cell or encoder_cell)
