"""Decoding sequences step by step."""

from __future__ import annotations

import collections
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes, nest
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import Structure, TensorLike
from tfray.library.layers.base_layer import Layer
from tfray.library.rnn.rnn import swap_batch_and_time, unless_ended
from tfray.library.rnn.rnn_cell_base import RNNCell, check_is_cell, with_batch, zeros_of
from tfray.library.rnn.seq2seq_helpers import Helper
from tfray.library.variables.variable_scope import ScopeLike, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import while_loop
from tfray.ops.control.tensor_array_ops import TensorArray
from tfray.ops.math import math_ops


class Decoder:
    """Base of the decoders that `dynamic_decode` runs. A subclass defines everything but `finalize`."""

    @property
    def batch_size(self) -> Any:
        """Number of sequences."""
        raise AttributeError(f"{type(self).__name__} must define batch_size")

    @property
    def output_size(self) -> Any:
        """Sizes of the outputs of a step, without the batch."""
        raise AttributeError(f"{type(self).__name__} must define output_size")

    @property
    def output_dtype(self) -> Any:
        """Dtypes of the outputs, in the structure of `output_size`."""
        raise AttributeError(f"{type(self).__name__} must define output_dtype")

    @property
    def tracks_own_finished(self) -> bool:
        """Whether a sequence that is finished may become unfinished again, as in a beam."""
        return False

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """Which sequences are finished, the first inputs, and the first state."""
        raise AttributeError(f"{type(self).__name__} must define initialize")

    def step(self, time: Tensor, inputs: TensorLike, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        """One step: ``(outputs, next_state, next_inputs, finished)``."""
        raise AttributeError(f"{type(self).__name__} must define step")

    def finalize(self, outputs: Any, final_state: Structure, sequence_lengths: Tensor) -> tuple[Any, Any]:
        """What to return for the stacked outputs and the last state; by default they themselves."""
        return outputs, final_state


class BasicDecoderOutput(collections.namedtuple("BasicDecoderOutput", ["rnn_output", "sample_id"])):
    """The output of a `BasicDecoder`: that of the cell (or of the layer after it), and the ids that were taken."""

    __slots__ = ()


class BasicDecoder(Decoder):
    """A cell whose inputs a helper chooses.

    Args:
        cell: The cell.
        helper: Where its inputs come from.
        initial_state: Its first state.
        output_layer: Layer over its outputs, such as ``tf.layers.Dense(vocabulary_size)``.
    """

    def __init__(
        self, cell: RNNCell, helper: Helper, initial_state: Structure, output_layer: Layer | None = None
    ) -> None:
        check_is_cell(cell, "BasicDecoder")
        if not hasattr(helper, "next_inputs"):
            raise TypeError(f"BasicDecoder: {helper!r} is not a helper")
        if output_layer is not None and not callable(output_layer):
            raise TypeError(f"BasicDecoder: output_layer is {output_layer!r}, expected a layer")
        self._cell = cell
        self._helper = helper
        self._initial_state = initial_state
        self._output_layer = output_layer

    @property
    def batch_size(self) -> Any:
        return self._helper.batch_size

    @property
    def output_size(self) -> BasicDecoderOutput:
        size = size_after(self._cell.output_size, self._output_layer)
        return BasicDecoderOutput(size, self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> BasicDecoderOutput:
        dtype = nest.flatten(self._initial_state)[0].dtype
        kinds = nest.map_structure(lambda _: dtype, self._cell.output_size)
        return BasicDecoderOutput(kinds, self._helper.sample_ids_dtype)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        return (*self._helper.initialize(), self._initial_state)

    def step(self, time: Tensor, inputs: TensorLike, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        outputs, cell_state = self._cell(inputs, state)
        if self._output_layer is not None:
            outputs = self._output_layer(outputs)
        sample_ids = self._helper.sample(time=time, outputs=outputs, state=cell_state)
        finished, next_inputs, next_state = self._helper.next_inputs(
            time=time, outputs=outputs, state=cell_state, sample_ids=sample_ids
        )
        return BasicDecoderOutput(outputs, sample_ids), next_state, next_inputs, finished


def size_after(size: ShapeLike, layer: Layer | None) -> Any:
    """Size of outputs of that size after a layer, which may be None."""
    if layer is None or not hasattr(layer, "compute_output_shape"):
        return size
    shape = TensorShape([None]).concatenate(TensorShape([size] if isinstance(size, int) else size))
    return layer.compute_output_shape(shape)[1:]


def dynamic_decode(
    decoder: Decoder,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: TensorLike | None = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: ScopeLike | None = None,
) -> tuple[Any, Any, Tensor]:
    """Run a decoder until all its sequences are finished.

    Args:
        decoder: The decoder.
        output_time_major: Return outputs ``[time, batch, ...]``, without transposing them.
        impute_finished: Let finished sequences keep their state and output zeros, so that states and gradients are
            right; otherwise what follows their end is undefined, which costs less.
        maximum_iterations: int32 scalar: number of steps after which to stop in any case.
        parallel_iterations: Accepted for TensorFlow 1's sake.
        swap_memory: As for `tf.while_loop`.
        scope: Variable scope, or its name; ``decoder``, or ``decoder_1`` and so on beside it, when None.

    Returns:
        The outputs, ``[batch, time, ...]``, the last state, and the lengths of the sequences, int32 ``[batch]``.
    """
    if not hasattr(decoder, "step") or not hasattr(decoder, "initialize"):
        raise TypeError(f"dynamic_decode: {decoder!r} is not a decoder")
    with variable_scope(scope, "decoder"):
        loop = _Decoding(decoder, impute_finished, _limit(maximum_iterations))
        outputs, state, lengths = loop.run(parallel_iterations, swap_memory)
        outputs, state = decoder.finalize(outputs, state, lengths)
        if not output_time_major:
            outputs = nest.map_structure(swap_batch_and_time, outputs)
        return outputs, state, lengths


def _limit(maximum_iterations: TensorLike | None) -> Tensor | None:
    if maximum_iterations is None:
        return None
    limit = convert_to_tensor(maximum_iterations, dtypes.int32)
    if limit.shape.rank not in (None, 0):
        raise InvalidArgumentError(f"maximum_iterations must be a scalar, and has shape {limit.shape}")
    return limit


class _Decoding:
    """One call of `dynamic_decode`."""

    def __init__(self, decoder: Decoder, impute: bool, limit: Tensor | None) -> None:
        self._decoder = decoder
        self._impute = impute
        self._limit = limit
        finished, inputs, state = decoder.initialize()
        self._finished = finished if limit is None else math_ops.logical_or(finished, limit <= 0)
        self._inputs = nest.map_structure(convert_to_tensor, inputs)
        self._state = nest.map_structure(_as_part, state)
        self._sizes = decoder.output_size
        self._dtypes = decoder.output_dtype
        self._zeros = zeros_of(self._sizes, decoder.batch_size, self._dtypes)

    def run(self, parallel_iterations: int, swap_memory: bool) -> tuple[Any, Any, Tensor]:
        """The outputs, time-major, the last state and the lengths."""
        initial = (
            convert_to_tensor(0, name="time"),
            self._arrays(),
            self._state,
            self._inputs,
            self._finished,
            array_ops.zeros_like(self._finished, dtypes.int32),
        )
        results = while_loop(
            lambda time, arrays, state, inputs, finished, lengths: math_ops.logical_not(math_ops.reduce_all(finished)),
            self._step,
            initial,
            parallel_iterations=parallel_iterations,
            maximum_iterations=self._limit,
            swap_memory=swap_memory,
        )
        return nest.map_structure(TensorArray.stack, results[1]), results[2], results[5]

    def _arrays(self) -> Any:
        batch = self._decoder.batch_size
        known = constant_value(batch) if isinstance(batch, Tensor) else batch
        static = None if known is None else int(known)
        flat = [
            TensorArray(dtype, 0, dynamic_size=True, element_shape=with_batch(size, static))
            for size, dtype in zip(nest.flatten(self._sizes), nest.flatten(self._dtypes), strict=True)
        ]
        return nest.pack_sequence_as(self._sizes, flat)

    def _step(
        self, time: Tensor, arrays: Any, state: Any, inputs: TensorLike, finished: Tensor, lengths: Tensor
    ) -> Any:
        outputs, next_state, next_inputs, ends = self._decoder.step(time, inputs, state)
        if not self._decoder.tracks_own_finished:
            ends = math_ops.logical_or(ends, finished)
        lengths = array_ops.where(finished, lengths, array_ops.ones_like(lengths) * (time + 1))
        nest.assert_same_structure(state, next_state, check_types=False)
        if self._impute:
            outputs = nest.map_structure(lambda out, zero: array_ops.where(finished, zero, out), outputs, self._zeros)
            next_state = nest.map_structure(lambda new, old: unless_ended(finished, old, new), next_state, state)
        next_state = nest.pack_sequence_as(state, nest.flatten(next_state))
        arrays = nest.map_structure(lambda array, value: array.write(time, value), arrays, outputs)
        return time + 1, arrays, next_state, next_inputs, ends, lengths


def _as_part(value: TensorLike) -> Any:
    return value if nest.is_composite(value) else convert_to_tensor(value)
