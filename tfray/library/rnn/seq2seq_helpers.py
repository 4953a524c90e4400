"""Helpers of decoders: they choose each step's input, from target sequences or from the decoder's own outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes, nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import ShapeLike, TensorShape, as_shape
from tfray.framework.type_aliases import Structure, TensorLike
from tfray.library.rnn.rnn import swap_batch_and_time
from tfray.library.rnn.rnn_cell_base import batch_size_of
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import cond
from tfray.ops.control.tensor_array_ops import TensorArray
from tfray.ops.math import math_ops
from tfray.ops.math.search_ops import argmax
from tfray.ops.nn.embedding_ops import embedding_lookup
from tfray.ops.random import random_ops

EmbeddingFunction = Callable[[Tensor], Tensor]


class Helper:
    """Base of helpers. In every step a decoder asks its helper which output to take and what the next input is.

    A subclass defines `batch_size`, `initialize`, `sample` and `next_inputs`.
    """

    @property
    def batch_size(self) -> Any:
        """Number of sequences, an int32 scalar or a number."""
        raise AttributeError(f"{type(self).__name__} must define batch_size")

    @property
    def sample_ids_shape(self) -> TensorShape:
        """Shape of what `sample` returns, without the batch."""
        return TensorShape([])

    @property
    def sample_ids_dtype(self) -> DType:
        """Dtype of what `sample` returns."""
        return dtypes.int32

    def initialize(self, name: str | None = None) -> tuple[Tensor, Any]:
        """Which sequences are finished before the first step, and the first inputs."""
        raise AttributeError(f"{type(self).__name__} must define initialize")

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Tensor:
        """What to take for the `outputs` of a step."""
        raise AttributeError(f"{type(self).__name__} must define sample")

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Tensor, name: str | None = None
    ) -> tuple[Tensor, Any, Any]:
        """Which sequences are finished after a step, the next inputs, and the next state."""
        raise AttributeError(f"{type(self).__name__} must define next_inputs")


class CustomHelper(Helper):
    """A helper made of functions.

    Args:
        initialize_fn: ``()`` to ``(finished, next_inputs)``.
        sample_fn: ``(time, outputs, state)`` to ``sample_ids``.
        next_inputs_fn: ``(time, outputs, state, sample_ids)`` to ``(finished, next_inputs, next_state)``.
        sample_ids_shape: Shape of the ids without the batch.
        sample_ids_dtype: Dtype of the ids.
    """

    def __init__(
        self,
        initialize_fn: Callable[..., Any],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Any],
        sample_ids_shape: ShapeLike = None,
        sample_ids_dtype: DTypeLike | None = None,
    ) -> None:
        self._initialize_fn = initialize_fn
        self._sample_fn = sample_fn
        self._next_inputs_fn = next_inputs_fn
        self._shape = TensorShape([]) if sample_ids_shape is None else as_shape(sample_ids_shape)
        self._dtype = dtypes.int32 if sample_ids_dtype is None else as_dtype(sample_ids_dtype)
        self._batch_size: Any = None

    @property
    def batch_size(self) -> Any:
        if self._batch_size is None:
            raise InvalidArgumentError("CustomHelper: the batch size is known once initialize was called")
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        return self._shape

    @property
    def sample_ids_dtype(self) -> DType:
        return self._dtype

    def initialize(self, name: str | None = None) -> tuple[Tensor, Any]:
        finished, inputs = self._initialize_fn()
        finished = convert_to_tensor(finished)
        if self._batch_size is None:
            self._batch_size = batch_size_of(finished)
        return finished, inputs

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Tensor:
        return convert_to_tensor(self._sample_fn(time=time, outputs=outputs, state=state))

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Tensor, name: str | None = None
    ) -> tuple[Tensor, Any, Any]:
        finished, inputs, next_state = self._next_inputs_fn(
            time=time, outputs=outputs, state=state, sample_ids=sample_ids
        )
        return convert_to_tensor(finished), inputs, next_state


def _most_likely(outputs: Tensor) -> Tensor:
    return argmax(outputs, -1, output_type=dtypes.int32)


class TrainingHelper(Helper):
    """Reads the inputs of every step from given sequences, whatever the decoder's outputs.

    Args:
        inputs: ``[batch, time, size]``, or a nested structure of such tensors.
        sequence_length: int32 ``[batch]``.
        time_major: `inputs` have shape ``[time, batch, size]``.
        name: Name of the operations.
    """

    def __init__(
        self, inputs: TensorLike, sequence_length: TensorLike, time_major: bool = False, name: str | None = None
    ) -> None:
        flat = [convert_to_tensor(tensor) for tensor in nest.flatten(inputs)]
        if not time_major:
            flat = [swap_batch_and_time(tensor) for tensor in flat]
        self._structure = inputs
        self._arrays = [TensorArray(each.dtype, array_ops.shape(each)[0]).unstack(each) for each in flat]
        self.sequence_length = array_ops.cast(convert_to_tensor(sequence_length), dtypes.int32)
        if self.sequence_length.shape.rank not in (None, 1):
            raise ValueError(
                f"TrainingHelper: sequence_length has shape {self.sequence_length.shape}, expected [batch]"
            )
        self._zeros = [array_ops.zeros(_sizes_of_a_step(tensor), tensor.dtype) for tensor in flat]
        for zeros, tensor in zip(self._zeros, flat, strict=True):
            if tensor.shape.rank is not None:
                zeros.set_shape(tensor.shape[1:])
        known = flat[0].shape.as_list()[1] if flat[0].shape.rank is not None else None
        self._batch_size = batch_size_of(self.sequence_length) if known is None else known

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    def initialize(self, name: str | None = None) -> tuple[Tensor, Any]:
        finished = math_ops.equal(self.sequence_length, 0)
        return finished, self._inputs_at(convert_to_tensor(0), finished)

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Tensor:
        return _most_likely(outputs)

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Tensor, name: str | None = None
    ) -> tuple[Tensor, Any, Any]:
        finished = math_ops.greater_equal(time + 1, self.sequence_length)
        return finished, self._inputs_at(time + 1, finished), state

    def _inputs_at(self, time: Tensor, finished: Tensor) -> Any:
        """The inputs of a step. Zeros when all sequences are finished, because the step may not exist then."""
        ends = math_ops.reduce_all(finished)

        def read() -> list[Tensor]:
            return [array.read(time) for array in self._arrays]

        read_or_zeros = cond(ends, lambda: list(self._zeros), read, strict=True)
        return nest.pack_sequence_as(self._structure, read_or_zeros)


def _sizes_of_a_step(tensor: Tensor) -> Any:
    shape = tensor.shape
    if shape.rank is not None and None not in shape.as_list()[1:]:
        return shape.as_list()[1:]
    return array_ops.shape(tensor)[1:]


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Reads the inputs from given sequences, but in some steps from what was sampled (Bengio et al., arXiv:1506.03099).

    Args:
        inputs: Embedded inputs, as for `TrainingHelper`.
        sequence_length: Likewise.
        embedding: From ids to embedded inputs: a function, or a table for `tf.nn.embedding_lookup`.
        sampling_probability: Probability that a sequence's next input is sampled; a scalar or ``[batch]``.
        time_major: As for `TrainingHelper`.
        seed: Seed of the sampling of ids.
        scheduling_seed: Seed of the choice whether to sample.
        name: Name of the operations.
    """

    def __init__(
        self,
        inputs: TensorLike,
        sequence_length: TensorLike,
        embedding: TensorLike | EmbeddingFunction,
        sampling_probability: TensorLike,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(inputs, sequence_length, time_major, name)
        self._embed = _embedding_function(embedding)
        self._probability = convert_to_tensor(sampling_probability, dtypes.float32)
        if self._probability.shape.rank not in (None, 0, 1):
            raise ValueError(f"sampling_probability has shape {self._probability.shape}, expected a scalar or a vector")
        self._seed = seed
        self._scheduling_seed = scheduling_seed

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Tensor:
        """An id where the next input is to be sampled, -1 elsewhere."""
        chosen = _chosen(self._probability, array_ops.shape(outputs)[0], self._scheduling_seed)
        sampled = _sampled(outputs, self._seed)
        return array_ops.where(chosen, sampled, array_ops.ones_like(sampled) * -1)

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Tensor, name: str | None = None
    ) -> tuple[Tensor, Any, Any]:
        finished, given, state = super().next_inputs(time, outputs, state, sample_ids)
        sampled = self._embed(math_ops.maximum(sample_ids, 0))
        following = array_ops.where(math_ops.greater_equal(sample_ids, 0), sampled, given)
        following.set_shape(given.shape)
        return finished, following, state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """Reads the inputs from given sequences, but in some steps takes the decoder's last outputs instead.

    Args:
        inputs: As for `TrainingHelper`.
        sequence_length: Likewise.
        sampling_probability: Probability that a sequence's next input is its last output.
        time_major: As for `TrainingHelper`.
        seed: Seed of that choice.
        next_inputs_fn: From the outputs to inputs; the outputs themselves when None.
        auxiliary_inputs: ``[batch, time, size]``: joined to the inputs that are outputs.
        name: Name of the operations.
    """

    def __init__(
        self,
        inputs: TensorLike,
        sequence_length: TensorLike,
        sampling_probability: TensorLike,
        time_major: bool = False,
        seed: int | None = None,
        next_inputs_fn: Callable[[Any], Any] | None = None,
        auxiliary_inputs: Structure = None,
        name: str | None = None,
    ) -> None:
        own = convert_to_tensor(inputs)
        self._input_size = own.shape.as_list()[-1]
        if auxiliary_inputs is not None:
            own = array_ops.concat([own, convert_to_tensor(auxiliary_inputs)], 2)
        self._has_auxiliary = auxiliary_inputs is not None
        super().__init__(own, sequence_length, time_major, name)
        self._probability = convert_to_tensor(sampling_probability, dtypes.float32)
        self._seed = seed
        self._next_inputs_fn = next_inputs_fn or (lambda outputs: outputs)

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Tensor:
        """1 where the next input is to be the output, 0 elsewhere."""
        return array_ops.cast(_chosen(self._probability, array_ops.shape(outputs)[0], self._seed), dtypes.int32)

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Tensor, name: str | None = None
    ) -> tuple[Tensor, Any, Any]:
        finished, given, state = super().next_inputs(time, outputs, state, sample_ids)
        own = self._next_inputs_fn(outputs)
        if self._has_auxiliary:
            own = array_ops.concat([own, given[:, self._input_size :]], 1)
        following = array_ops.where(math_ops.equal(sample_ids, 1), own, given)
        following.set_shape(given.shape)
        return finished, following, state


def _chosen(probability: Tensor, batch_size: Tensor, seed: int | None) -> Tensor:
    """For every sequence a random bool, true with this probability."""
    return math_ops.less(random_ops.random_uniform(array_ops.stack([batch_size]), seed=seed), probability)


def _sampled(logits: Tensor, seed: int | None) -> Tensor:
    ids = random_ops.multinomial(logits, 1, seed=seed)
    return array_ops.cast(array_ops.squeeze(ids, [1]), dtypes.int32)


def _embedding_function(embedding: TensorLike | EmbeddingFunction) -> EmbeddingFunction:
    return embedding if callable(embedding) else lambda ids: embedding_lookup(embedding, ids)


class GreedyEmbeddingHelper(Helper):
    """Feeds back the most likely id of every step.

    Args:
        embedding: From ids to embedded inputs: a function, or a table for `tf.nn.embedding_lookup`.
        start_tokens: int32 ``[batch]``: the first ids.
        end_token: int32 scalar: the id that ends a sequence.
    """

    def __init__(
        self, embedding: TensorLike | EmbeddingFunction, start_tokens: TensorLike, end_token: TensorLike
    ) -> None:
        self._embed = _embedding_function(embedding)
        self._start_tokens = convert_to_tensor(start_tokens, dtypes.int32)
        self._end_token = convert_to_tensor(end_token, dtypes.int32)
        if self._start_tokens.shape.rank not in (None, 1):
            raise ValueError(f"start_tokens has shape {self._start_tokens.shape}, expected a vector")
        if self._end_token.shape.rank not in (None, 0):
            raise ValueError(f"end_token has shape {self._end_token.shape}, expected a scalar")
        self._start_inputs = self._embed(self._start_tokens)
        self._batch_size = batch_size_of(self._start_tokens)

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    def initialize(self, name: str | None = None) -> tuple[Tensor, Any]:
        return array_ops.zeros_like(self._start_tokens, dtypes.bool_), self._start_inputs

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Tensor:
        return _most_likely(outputs)

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Tensor, name: str | None = None
    ) -> tuple[Tensor, Any, Any]:
        following = self._embed(sample_ids)
        following.set_shape(self._start_inputs.shape)
        return math_ops.equal(sample_ids, self._end_token), following, state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Feeds back ids that are drawn by their probabilities.

    Args:
        embedding: As for `GreedyEmbeddingHelper`.
        start_tokens: Likewise.
        end_token: Likewise.
        softmax_temperature: Divides the logits: above 1 the draws are more even, below 1 less.
        seed: Seed of the draws.
    """

    def __init__(
        self,
        embedding: TensorLike | EmbeddingFunction,
        start_tokens: TensorLike,
        end_token: TensorLike,
        softmax_temperature: TensorLike | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._temperature = softmax_temperature
        self._seed = seed

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Tensor:
        return _sampled(outputs if self._temperature is None else outputs / self._temperature, self._seed)


class InferenceHelper(Helper):
    """Feeds back what a function samples.

    Args:
        sample_fn: From the outputs of a step to a sample.
        sample_shape: Shape of a sample without the batch.
        sample_dtype: Its dtype.
        start_inputs: The first inputs.
        end_fn: From a sample to which sequences end.
        next_inputs_fn: From a sample to inputs; the sample itself when None.
    """

    def __init__(
        self,
        sample_fn: Callable[[Any], Any],
        sample_shape: ShapeLike,
        sample_dtype: DTypeLike,
        start_inputs: Structure,
        end_fn: Callable[[Any], Any],
        next_inputs_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self._sample_fn = sample_fn
        self._shape = as_shape(sample_shape)
        self._dtype = as_dtype(sample_dtype)
        self._start_inputs = convert_to_tensor(start_inputs)
        self._end_fn = end_fn
        self._next_inputs_fn = next_inputs_fn or (lambda sample: sample)

    @property
    def batch_size(self) -> Any:
        return batch_size_of(self._start_inputs)

    @property
    def sample_ids_shape(self) -> TensorShape:
        return self._shape

    @property
    def sample_ids_dtype(self) -> DType:
        return self._dtype

    def initialize(self, name: str | None = None) -> tuple[Tensor, Any]:
        return array_ops.zeros(array_ops.shape(self._start_inputs)[:1], dtypes.bool_), self._start_inputs

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Tensor:
        return convert_to_tensor(self._sample_fn(outputs))

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Tensor, name: str | None = None
    ) -> tuple[Tensor, Any, Any]:
        return self._end_fn(sample_ids), self._next_inputs_fn(sample_ids), state
