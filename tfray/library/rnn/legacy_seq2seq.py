"""Sequence models of the older style, unrolled: a list holds one tensor for each step."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfray.framework import dtypes, nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import Structure, TensorLike
from tfray.library.rnn.rnn import static_rnn
from tfray.library.rnn.rnn_cell_base import RNNCell, batch_size_of, check_is_cell
from tfray.library.rnn.rnn_cell_wrappers import EmbeddingWrapper, OutputProjectionWrapper, linear
from tfray.library.variables.variable_scope import ScopeLike, get_variable, get_variable_scope, variable_scope
from tfray.library.variables.variable_store import Reuse
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import cond
from tfray.ops.math import linalg_ops, math_ops
from tfray.ops.math.search_ops import argmax
from tfray.ops.math.transcendental_ops import tanh
from tfray.ops.nn import nn_ops
from tfray.ops.nn.cross_entropy_ops import softmax, sparse_softmax_cross_entropy_with_logits
from tfray.ops.nn.embedding_ops import embedding_lookup

# fmt: off
__all__ = [
    "attention_decoder", "basic_rnn_seq2seq", "embedding_attention_decoder", "embedding_attention_seq2seq",
    "embedding_rnn_decoder", "embedding_rnn_seq2seq", "model_with_buckets", "rnn_decoder", "sequence_loss",
    "sequence_loss_by_example", "tied_rnn_seq2seq",
]
# fmt: on

LoopFunction = Callable[[Tensor, int], Tensor]
"""From the output of a step and its number to the next input."""


def feeding_back(
    embedding: TensorLike, projection: tuple[TensorLike, TensorLike] | None, update_embedding: bool = True
) -> LoopFunction:
    """A loop function that embeds the most likely id of the last output."""

    def loop_function(previous: Tensor, _: int) -> Tensor:
        if projection is not None:
            previous = nn_ops.xw_plus_b(previous, projection[0], projection[1])
        embedded = embedding_lookup(embedding, argmax(previous, 1))
        return embedded if update_embedding else array_ops.stop_gradient(embedded)

    return loop_function


# -- decoders ------------------------------------------------------------------------------------------


def rnn_decoder(
    decoder_inputs: Sequence[TensorLike],
    initial_state: Structure,
    cell: RNNCell,
    loop_function: LoopFunction | None = None,
    scope: ScopeLike | None = None,
) -> tuple[list[Tensor], Any]:
    """Run a cell over inputs; with a loop function, over inputs that the function makes from the cell's outputs.

    Args:
        decoder_inputs: One ``[batch, size]`` for each step.
        initial_state: The first state, ``[batch, state_size]`` or in the structure of the cell's `state_size`.
        cell: The cell.
        loop_function: Gives every input but the first; when None `decoder_inputs` do.
        scope: Variable scope, or its name; ``rnn_decoder`` when None.

    Returns:
        The output of each step, ``[batch, output size]``, and the last state, in the shape of the first one.
    """
    with variable_scope(scope or "rnn_decoder"):
        state, outputs, previous = initial_state, [], None
        for index, given in enumerate(decoder_inputs):
            current = given
            if loop_function is not None and previous is not None:
                with variable_scope("loop_function", reuse=True):
                    current = loop_function(previous, index)
            if index > 0:
                get_variable_scope().reuse_variables()
            output, state = cell(current, state)
            outputs.append(output)
            if loop_function is not None:
                previous = output
        return outputs, state


def basic_rnn_seq2seq(
    encoder_inputs: Sequence[TensorLike],
    decoder_inputs: Sequence[TensorLike],
    cell: RNNCell,
    dtype: DTypeLike = dtypes.float32,
    scope: ScopeLike | None = None,
) -> tuple[list[Tensor], Any]:
    """An encoder whose last state is the decoder's first one; each has weights of its own.

    Args:
        encoder_inputs: One ``[batch, size]`` for each step.
        decoder_inputs: Likewise.
        cell: The cell of both.
        dtype: Dtype of the first state.
        scope: Variable scope, or its name; ``basic_rnn_seq2seq`` when None.

    Returns:
        The output of each step, ``[batch, output size]``, and the last state, in the shape of the first one.
    """
    with variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: Sequence[TensorLike],
    decoder_inputs: Sequence[TensorLike],
    cell: RNNCell,
    loop_function: LoopFunction | None = None,
    dtype: DTypeLike = dtypes.float32,
    scope: ScopeLike | None = None,
) -> tuple[list[Tensor], Any]:
    """As `basic_rnn_seq2seq`, and with the same shapes; encoder and decoder have the same weights."""
    with variable_scope("combined_tied_rnn_seq2seq"):
        with variable_scope(scope or "tied_rnn_seq2seq") as shared:
            _, state = static_rnn(cell, encoder_inputs, dtype=dtype, scope=shared)
        with variable_scope(shared, reuse=True) as again:
            return rnn_decoder(decoder_inputs, state, cell, loop_function, again)


def embedding_rnn_decoder(
    decoder_inputs: Sequence[TensorLike],
    initial_state: Structure,
    cell: RNNCell,
    num_symbols: int,
    embedding_size: int,
    output_projection: tuple[TensorLike, TensorLike] | None = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    scope: ScopeLike | None = None,
) -> tuple[list[Tensor], Any]:
    """`rnn_decoder` over ids.

    Args:
        decoder_inputs: int32 ``[batch]`` for each step.
        initial_state: The first state, ``[batch, state_size]`` or in the structure of the cell's `state_size`.
        cell: The cell.
        num_symbols: Number of ids.
        embedding_size: Size of the embedded inputs.
        output_projection: Weights ``[size, num_symbols]`` and biases that make logits of outputs.
        feed_previous: A bool, or bool scalar tensor: take from `decoder_inputs` the first only, then the most likely id
            of every output.
        update_embedding_for_previous: Let gradients reach the table through ids that were fed back.
        scope: Variable scope, or its name; ``embedding_rnn_decoder`` when None.

    Returns:
        The output of each step, ``[batch, output size]``, and the last state, in the shape of the first one.
    """
    with variable_scope(scope or "embedding_rnn_decoder"):
        table = get_variable("embedding", [num_symbols, embedding_size])
        feedback = None
        if feed_previous:
            feedback = feeding_back(table, output_projection, update_embedding_for_previous)
        embedded = [embedding_lookup(table, ids) for ids in decoder_inputs]
        return rnn_decoder(embedded, initial_state, cell, feedback)


def attention_decoder(
    decoder_inputs: Sequence[TensorLike],
    initial_state: Structure,
    attention_states: TensorLike,
    cell: RNNCell,
    output_size: int | None = None,
    num_heads: int = 1,
    loop_function: LoopFunction | None = None,
    dtype: DTypeLike | None = None,
    scope: ScopeLike | None = None,
    initial_state_attention: bool = False,
) -> tuple[list[Tensor], Any]:
    """`rnn_decoder` with attention: each step gets its input and the attention of the last state.

    Args:
        decoder_inputs: One ``[batch, size]`` for each step.
        initial_state: The first state, ``[batch, state_size]`` or in the structure of the cell's `state_size`.
        attention_states: ``[batch, length, size]``.
        cell: The cell.
        output_size: Size of the outputs; that of the cell when None.
        num_heads: Number of heads that attend.
        loop_function: As for `rnn_decoder`.
        dtype: Dtype of the first attention.
        scope: Variable scope, or its name; ``attention_decoder`` when None.
        initial_state_attention: Attend before the first step too, as when decoding goes on.

    Returns:
        The output of each step, ``[batch, output size]``, and the last state, in the shape of the first one.
    """
    if not decoder_inputs:
        raise ValueError("attention_decoder: there are no inputs")
    if num_heads < 1:
        raise ValueError(f"attention_decoder: num_heads is {num_heads}, expected at least 1")
    with variable_scope(scope or "attention_decoder", dtype=dtype):
        attend = _Heads(attention_states, num_heads)
        size = cell.output_size if output_size is None else output_size
        state, outputs, previous = initial_state, [], None
        attention = attend(state) if initial_state_attention else attend.nothing(dtype)
        for index, given in enumerate(decoder_inputs):
            current = given
            if index > 0:
                get_variable_scope().reuse_variables()
            if loop_function is not None and previous is not None:
                with variable_scope("loop_function", reuse=True):
                    current = loop_function(previous, index)
            current = convert_to_tensor(current)
            input_size = current.shape.as_list()[1]
            if input_size is None:
                raise ValueError(f"attention_decoder: the size of the input {current!r} must be known")
            output, state = cell(linear([current, *attention], input_size, True), state)
            if index > 0 or not initial_state_attention:
                attention = attend(state)
            else:
                with variable_scope(get_variable_scope(), reuse=True):
                    attention = attend(state)
            with variable_scope("AttnOutputProjection"):
                output = linear([output, *attention], size, True)
            outputs.append(output)
            if loop_function is not None:
                previous = output
        return outputs, state


class _Heads:
    """Attention over states ``[batch, length, size]``: additive, of several heads."""

    def __init__(self, states: Any, count: int) -> None:
        self._states = convert_to_tensor(states)
        self._length = batch_size_of(self._states, 1)
        size = self._states.shape.as_list()[2]
        if size is None:
            raise ValueError(f"attention_decoder: the last dimension of {self._states!r} must be known")
        self._size = size
        self._hidden, self._vectors = [], []
        rows = array_ops.reshape(self._states, [-1, size])
        for head in range(count):
            kernel = get_variable(f"AttnW_{head}", [1, 1, size, size], self._states.dtype)
            projected = linalg_ops.matmul(rows, array_ops.reshape(kernel, [size, size]))
            self._hidden.append(array_ops.reshape(projected, array_ops.shape(self._states)))
            self._vectors.append(get_variable(f"AttnV_{head}", [size], self._states.dtype))

    def nothing(self, dtype: DTypeLike | None) -> list[Tensor]:
        """The attention before the first step: zeros."""
        sizes = array_ops.stack([array_ops.shape(self._states)[0], self._size])
        zeros = array_ops.zeros(sizes, self._states.dtype if dtype is None else dtype)
        zeros.set_shape([None, self._size])
        return [zeros] * len(self._hidden)

    def __call__(self, query: Any) -> list[Tensor]:
        """The attention of each head, ``[batch, size]``."""
        parts = nest.flatten(query)
        query = parts[0] if len(parts) == 1 else array_ops.concat(parts, 1)
        attended = []
        for head, (hidden, vector) in enumerate(zip(self._hidden, self._vectors, strict=True)):
            with variable_scope(f"Attention_{head}"):
                projected = array_ops.expand_dims(linear(query, self._size, True), 1)
                scores = math_ops.reduce_sum(vector * tanh(hidden + projected), [2])
                weights = array_ops.expand_dims(softmax(scores), 2)
                found = math_ops.reduce_sum(weights * self._states, [1])
                found.set_shape([None, self._size])
                attended.append(found)
        return attended


def embedding_attention_decoder(
    decoder_inputs: Sequence[TensorLike],
    initial_state: Structure,
    attention_states: TensorLike,
    cell: RNNCell,
    num_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_size: int | None = None,
    output_projection: tuple[TensorLike, TensorLike] | None = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    dtype: DTypeLike | None = None,
    scope: ScopeLike | None = None,
    initial_state_attention: bool = False,
) -> tuple[list[Tensor], Any]:
    """`attention_decoder` over ids; arguments, and their shapes, as for that and for `embedding_rnn_decoder`."""
    with variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        table = get_variable("embedding", [num_symbols, embedding_size])
        feedback = None
        if feed_previous:
            feedback = feeding_back(table, output_projection, update_embedding_for_previous)
        return attention_decoder(
            [embedding_lookup(table, ids) for ids in decoder_inputs],
            initial_state,
            attention_states,
            cell,
            cell.output_size if output_size is None else output_size,
            num_heads,
            feedback,
            initial_state_attention=initial_state_attention,
        )


# -- models over ids -----------------------------------------------------------------------------------


def _fed_or_not(
    feed_previous: bool | Tensor, decode: Callable[[bool, Any], tuple[list[Tensor], Any]]
) -> tuple[list[Tensor], Any]:
    """``decode(feed_previous, reuse)``, where `feed_previous` may be a bool tensor."""
    if isinstance(feed_previous, bool):
        return decode(feed_previous, None)
    structure: list[Any] = []

    def branch(feeds: bool, reuse: Reuse | None) -> list[Tensor]:
        outputs, state = decode(feeds, reuse)
        structure[:] = [outputs, state]
        return [*outputs, *nest.flatten(state)]

    results = cond(feed_previous, lambda: branch(True, None), lambda: branch(False, True), strict=True)
    outputs, state = structure
    return list(results[: len(outputs)]), nest.pack_sequence_as(state, results[len(outputs) :])


def embedding_rnn_seq2seq(
    encoder_inputs: Sequence[TensorLike],
    decoder_inputs: Sequence[TensorLike],
    cell: RNNCell,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: tuple[TensorLike, TensorLike] | None = None,
    feed_previous: bool | Tensor = False,
    dtype: DTypeLike | None = None,
    scope: ScopeLike | None = None,
) -> tuple[list[Tensor], Any]:
    """An encoder and a decoder over ids.

    Args:
        encoder_inputs: int32 ``[batch]`` for each step.
        decoder_inputs: Likewise.
        cell: The cell of both; each has weights of its own.
        num_encoder_symbols: Number of the encoder's ids.
        num_decoder_symbols: Number of the decoder's ids, and size of its outputs.
        embedding_size: Size of the embedded inputs.
        output_projection: Weights ``[size, num_decoder_symbols]`` and biases that make logits of outputs; when None the
            outputs are logits.
        feed_previous: A bool, or bool scalar tensor: feed the most likely id of every output back.
        dtype: Dtype of the first state.
        scope: Variable scope, or its name; ``embedding_rnn_seq2seq`` when None.

    Returns:
        The output of each step, ``[batch, output size]``, and the last state, in the shape of the first one.
    """
    with variable_scope(scope or "embedding_rnn_seq2seq") as opened:
        dtype = opened.dtype if dtype is None else dtype
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, first = static_rnn(encoder, encoder_inputs, dtype=dtype)
        decoder = OutputProjectionWrapper(cell, num_decoder_symbols) if output_projection is None else cell
        return _over_ids(
            decoder_inputs, first, decoder, num_decoder_symbols, embedding_size, feed_previous, output_projection
        )


def embedding_tied_rnn_seq2seq(
    encoder_inputs: Sequence[TensorLike],
    decoder_inputs: Sequence[TensorLike],
    cell: RNNCell,
    num_symbols: int,
    embedding_size: int,
    num_decoder_symbols: int | None = None,
    output_projection: tuple[TensorLike, TensorLike] | None = None,
    feed_previous: bool | Tensor = False,
    dtype: DTypeLike | None = None,
    scope: ScopeLike | None = None,
) -> tuple[list[Tensor], Any]:
    """An encoder and a decoder over the same ids, with the same weights.

    Args:
        encoder_inputs: int32 ``[batch]`` for each step.
        decoder_inputs: Likewise.
        cell: The cell of both.
        num_symbols: Number of ids.
        embedding_size: Size of the embedded inputs.
        num_decoder_symbols: How many of the ids, from the first, the decoder gives; all when None.
        output_projection: Weights ``[size, num_symbols]`` and biases ``[num_symbols]`` that make logits of outputs;
            when None the outputs are logits.
        feed_previous: A bool, or bool scalar tensor: feed the most likely id of every output back.
        dtype: Dtype of the first state.
        scope: Variable scope, or its name; ``embedding_tied_rnn_seq2seq`` when None.

    Returns:
        The output of each step, ``[batch, output size]``, and the last state, in the shape of the first one.

    Raises:
        ValueError: `output_projection` has other shapes.
    """
    with variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as opened:
        if output_projection is not None:
            weights, biases = (convert_to_tensor(each, opened.dtype) for each in output_projection)
            weights.shape.assert_is_compatible_with([None, num_symbols])
            biases.shape.assert_is_compatible_with([num_symbols])
        table = get_variable("embedding", [num_symbols, embedding_size], dtype=opened.dtype)
        inputs, targets = ([embedding_lookup(table, ids) for ids in each] for each in (encoder_inputs, decoder_inputs))
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols or num_symbols)

        def decode(feeds: bool, reuse: Reuse | None) -> tuple[list[Tensor], Any]:
            update = isinstance(feed_previous, bool)
            feedback = feeding_back(table, output_projection, update) if feeds else None
            with variable_scope(get_variable_scope(), reuse=reuse):
                return tied_rnn_seq2seq(inputs, targets, cell, feedback, opened.dtype)

        return _fed_or_not(feed_previous, decode)


def one2many_rnn_seq2seq(
    encoder_inputs: Sequence[TensorLike],
    decoder_inputs_dict: Mapping[Any, Sequence[TensorLike]],
    enc_cell: RNNCell,
    dec_cells_dict: Mapping[Any, RNNCell],
    num_encoder_symbols: int,
    num_decoder_symbols_dict: Mapping[Any, int],
    embedding_size: int,
    feed_previous: bool | Tensor = False,
    dtype: DTypeLike | None = None,
    scope: ScopeLike | None = None,
) -> tuple[dict[Any, list[Tensor]], dict[Any, Any]]:
    """An encoder and several decoders over ids.

    Args:
        encoder_inputs: int32 ``[batch]`` for each step.
        decoder_inputs_dict: Likewise, by the names of decoders.
        enc_cell: The cell of the encoder.
        dec_cells_dict: The cells of the decoders, by their names.
        num_encoder_symbols: Number of the encoder's ids.
        num_decoder_symbols_dict: Number of ids of each decoder, and size of its outputs.
        embedding_size: Size of the embedded inputs.
        feed_previous: A bool, or bool scalar tensor: feed the most likely id of every output back.
        dtype: Dtype of the first state.
        scope: Variable scope, or its name; ``one2many_rnn_seq2seq`` when None.

    Returns:
        By the names of decoders, the output of each step, ``[batch, output size]``, and the last state.

    Raises:
        TypeError: A cell is none.
        ValueError: There are not the same names of cells and of inputs.
    """
    check_is_cell(enc_cell, "one2many_rnn_seq2seq: enc_cell")
    if set(dec_cells_dict) != set(decoder_inputs_dict):
        names = f"{[*dec_cells_dict]} and {[*decoder_inputs_dict]}"
        raise ValueError(f"one2many_rnn_seq2seq: dec_cells_dict and decoder_inputs_dict have other keys: {names}")
    for cell in dec_cells_dict.values():
        check_is_cell(cell, "one2many_rnn_seq2seq: dec_cell")
    outputs: dict[Any, list[Tensor]] = {}
    states: dict[Any, Any] = {}
    with variable_scope(scope or "one2many_rnn_seq2seq", dtype=dtype) as opened:
        encoder = EmbeddingWrapper(enc_cell, num_encoder_symbols, embedding_size)
        _, first = static_rnn(encoder, encoder_inputs, dtype=opened.dtype)
        for name, inputs in decoder_inputs_dict.items():
            symbols = num_decoder_symbols_dict[name]
            decoder = OutputProjectionWrapper(dec_cells_dict[name], symbols)
            with variable_scope(f"one2many_decoder_{name}"):
                outputs[name], states[name] = _over_ids(inputs, first, decoder, symbols, embedding_size, feed_previous)
    return outputs, states


def _over_ids(
    inputs: Sequence[TensorLike],
    first: Structure,
    cell: RNNCell,
    num_symbols: int,
    embedding_size: int,
    feed_previous: bool | Tensor,
    output_projection: tuple[TensorLike, TensorLike] | None = None,
) -> tuple[list[Tensor], Any]:
    """`embedding_rnn_decoder`, where `feed_previous` may be a bool tensor."""

    def decode(feeds: bool, reuse: Reuse | None) -> tuple[list[Tensor], Any]:
        with variable_scope(get_variable_scope(), reuse=reuse):
            return embedding_rnn_decoder(inputs, first, cell, num_symbols, embedding_size, output_projection, feeds)

    return _fed_or_not(feed_previous, decode)


def embedding_attention_seq2seq(
    encoder_inputs: Sequence[TensorLike],
    decoder_inputs: Sequence[TensorLike],
    cell: RNNCell,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_projection: tuple[TensorLike, TensorLike] | None = None,
    feed_previous: bool | Tensor = False,
    dtype: DTypeLike | None = None,
    scope: ScopeLike | None = None,
    initial_state_attention: bool = False,
) -> tuple[list[Tensor], Any]:
    """As `embedding_rnn_seq2seq`, with the same shapes; the decoder attends to the encoder's outputs.

    Args:
        encoder_inputs: int32 ``[batch]`` for each step.
        decoder_inputs: Likewise.
        num_heads: Number of heads that attend.
        output_projection: Weights ``[size, num_decoder_symbols]`` and biases that make logits of outputs; when None the
            outputs are logits.
        feed_previous: A bool, or bool scalar tensor: feed the most likely id of every output back.
        initial_state_attention: As for `attention_decoder`.

    The rest is as for `embedding_rnn_seq2seq`.
    """
    with variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as opened:
        dtype = opened.dtype if dtype is None else dtype
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        outputs, first = static_rnn(encoder, encoder_inputs, dtype=dtype)
        states = array_ops.stack(outputs, 1)
        decoder, size = cell, None
        if output_projection is None:
            decoder, size = OutputProjectionWrapper(cell, num_decoder_symbols), num_decoder_symbols

        def decode(feeds: bool, reuse: Reuse | None) -> tuple[list[Tensor], Any]:
            with variable_scope(get_variable_scope(), reuse=reuse):
                return embedding_attention_decoder(
                    decoder_inputs,
                    first,
                    states,
                    decoder,
                    num_symbols=num_decoder_symbols,
                    embedding_size=embedding_size,
                    num_heads=num_heads,
                    output_size=size,
                    output_projection=output_projection,
                    feed_previous=feeds,
                    initial_state_attention=initial_state_attention,
                )

        return _fed_or_not(feed_previous, decode)


def model_with_buckets(
    encoder_inputs: Sequence[TensorLike],
    decoder_inputs: Sequence[TensorLike],
    targets: Sequence[TensorLike],
    weights: Sequence[TensorLike],
    buckets: Sequence[tuple[int, int]],
    seq2seq: Callable[[Sequence[Any], Sequence[Any]], tuple[list[Tensor], Any]],
    softmax_loss_function: Callable[..., Tensor] | None = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list[list[Tensor]], list[Tensor]]:
    """Build one model for several lengths, with the same weights.

    Args:
        encoder_inputs: For each step, of the shape that `seq2seq` takes.
        decoder_inputs: Likewise.
        targets: Ids ``[batch]``, for each step of the decoder.
        weights: Weights ``[batch]`` of the steps.
        buckets: Pairs of lengths of encoder and decoder, the shortest first.
        seq2seq: From inputs of encoder and decoder to outputs and state.
        softmax_loss_function: As for `sequence_loss`.
        per_example_loss: Give a loss for each example instead of one for the batch.
        name: Name scope.

    Returns:
        For each bucket the outputs, one ``[batch, classes]`` for each step, and the losses: scalars, or ``[batch]``.

    Raises:
        ValueError: The last bucket is longer than the inputs.
    """
    for given, longest, what in (
        (encoder_inputs, buckets[-1][0], "encoder_inputs"),
        (targets, buckets[-1][1], "targets"),
        (weights, buckets[-1][1], "weights"),
    ):
        if len(given) < longest:
            raise ValueError(f"model_with_buckets: {what} has {len(given)} steps, and the last bucket needs {longest}")
    outputs: list[list[Tensor]] = []
    losses: list[Tensor] = []
    loss = sequence_loss_by_example if per_example_loss else sequence_loss
    with get_default_graph().name_scope(name or "model_with_buckets"):
        for index, (source, target) in enumerate(buckets):
            with variable_scope(get_variable_scope(), reuse=True if index > 0 else None):
                made, _ = seq2seq(encoder_inputs[:source], decoder_inputs[:target])
            outputs.append(made)
            losses.append(loss(made, targets[:target], weights[:target], softmax_loss_function=softmax_loss_function))
    return outputs, losses


# -- losses --------------------------------------------------------------------------------------------


def sequence_loss_by_example(
    logits: Sequence[TensorLike],
    targets: Sequence[TensorLike],
    weights: Sequence[TensorLike],
    average_across_timesteps: bool = True,
    softmax_loss_function: Callable[..., Tensor] | None = None,
    name: str | None = None,
) -> Tensor:
    """Weighted cross entropy of each sequence.

    Args:
        logits: ``[batch, classes]`` for each step.
        targets: Ids ``[batch]`` for each step.
        weights: ``[batch]`` for each step.
        average_across_timesteps: Divide by the sum of a sequence's weights.
        softmax_loss_function: Function of the keywords ``labels`` and ``logits`` in place of the cross entropy.
        name: Name scope.

    Returns:
        ``[batch]``.

    Raises:
        ValueError: The lists differ in length.

    Examples:
        >>> logits, targets, weights = [tf.zeros([1, 2])] * 3, [[0], [1], [0]], [[1.0]] * 3
        >>> session.run(tf.contrib.legacy_seq2seq.sequence_loss_by_example(logits, targets, weights))
        array([0.6931472], dtype=float32)
    """
    if not len(logits) == len(targets) == len(weights):
        raise ValueError(f"there are {len(logits)} logits, {len(targets)} targets and {len(weights)} weights")
    loss_function = softmax_loss_function or sparse_softmax_cross_entropy_with_logits
    with get_default_graph().name_scope(name or "sequence_loss_by_example"):
        terms = []
        for step_logits, target, weight in zip(logits, targets, weights, strict=True):
            labels = array_ops.reshape(convert_to_tensor(target), [-1])
            terms.append(loss_function(labels=labels, logits=convert_to_tensor(step_logits)) * weight)
        total = math_ops.add_n(terms)
        if average_across_timesteps:
            # Adding a small number avoids 0 / 0: a sequence without weights has loss 0.
            total = total / (math_ops.add_n([convert_to_tensor(weight) for weight in weights]) + 1e-12)
        return total


def sequence_loss(
    logits: Sequence[TensorLike],
    targets: Sequence[TensorLike],
    weights: Sequence[TensorLike],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable[..., Tensor] | None = None,
    name: str | None = None,
) -> Tensor:
    """The sum of `sequence_loss_by_example` over the batch: a scalar.

    Args:
        logits: ``[batch, classes]`` for each step.
        targets: Ids ``[batch]`` for each step.
        weights: ``[batch]`` for each step.
        average_across_batch: Divide by the batch size.

    The rest is as for `sequence_loss_by_example`.
    """
    with get_default_graph().name_scope(name or "sequence_loss"):
        losses = sequence_loss_by_example(logits, targets, weights, average_across_timesteps, softmax_loss_function)
        return math_ops.reduce_mean(losses) if average_across_batch else math_ops.reduce_sum(losses)
