"""What TensorFlow keeps for the data of Keras models: their inputs, weights of examples, and what datasets do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tfray.framework import nest
from tfray.framework.graph import Tensor
from tfray.framework.sparse_tensor import is_tensor
from tfray.keras.backend import placeholder
from tfray.keras.settings import floatx
from tfray.keras.training_data import weights_of
from tfray.library.input.dataset_files import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from tfray.library.input.datasets import Dataset
from tfray.library.platform import logging

__all__ = [
    "ModelInputs",
    "assert_not_batched",
    "assert_not_shuffled",
    "generic_output_names",
    "has_symbolic_tensors",
    "has_tensors",
    "list_to_tuple",
    "slice_arrays",
    "standardize_weights",
    "verify_dataset_shuffled",
]


class ModelInputs:
    """The inputs of a model that is built for data.

    Args:
        inputs: Arrays or tensors: one, or a list or dictionary of them.
    """

    def __init__(self, inputs: Any) -> None:
        self._is_dict, self._is_single = isinstance(inputs, Mapping), not isinstance(inputs, (Mapping, list, tuple))
        self._flattened: list[Any] = []
        if isinstance(inputs, Mapping):
            self._names = sorted(inputs)
            self._flattened += [inputs[name] for name in self._names]
        else:
            self._flattened += [inputs] if self._is_single else list(inputs)
            self._names = [f"input_{place}" for place, _ in enumerate(self._flattened, 1)]

    def get_input_names(self) -> list[str]:
        """The keys of a dictionary, sorted, or ``input_1`` and so on."""
        return list(self._names)

    def get_symbolic_inputs(self, return_single_as_list: bool = False) -> Any:
        """Tensors that stand for the inputs, in the structure of what was given.

        Args:
            return_single_as_list: Give one input as a list.

        Returns:
            Tensors are given as they are. For arrays there are placeholders, the batch of any size.
        """
        made = [
            each if is_tensor(each) else _placeholder_like(each, name)
            for each, name in zip(self._flattened, self._names, strict=True)
        ]
        if self._is_dict:
            return dict(zip(self._names, made, strict=True))
        return made[0] if self._is_single and not return_single_as_list else made


def _placeholder_like(array: Any, name: str) -> Tensor:
    shape = (None, *np.shape(array)[1:]) if np.ndim(array) > 1 else (None, 1)
    kind = np.asarray(array).dtype
    made: Tensor = placeholder(shape, dtype=floatx() if np.issubdtype(kind, np.floating) else kind.name, name=name)
    return made


_BATCHING: Final = ("BatchDataset", "PaddedBatchDataset", "WindowDataset")
_UNKNOWN: Final = ("FlatMapDataset", "InterleaveDataset")
"""Operations that make a dataset of what a function gives, which may be batched or shuffled, or not."""


def _refuse(dataset: Dataset, kinds: Sequence[str], what: str) -> None:
    """Raise `ValueError` if one of these operations made a dataset, or what it is made of."""
    if isinstance(dataset, (FixedLengthRecordDataset, TextLineDataset, TFRecordDataset)):
        return
    kind = dataset._variant_tensor.op.type
    if kind in kinds:
        raise ValueError(f"Received dataset that is {what}; it comes from {kind}.")
    if kind in _UNKNOWN:
        raise ValueError(f"Could not assert that dataset is not {what}: it comes from {kind}.")
    for each in dataset._inputs():
        _refuse(each, kinds, what)


def assert_not_batched(dataset: Dataset) -> None:
    """Raise `ValueError` if a dataset has been batched, or if this cannot be told."""
    _refuse(dataset, _BATCHING, "batched")


def assert_not_shuffled(dataset: Dataset) -> None:
    """Raise `ValueError` if a dataset has been shuffled, or if this cannot be told."""
    _refuse(dataset, ("ShuffleDataset",), "shuffled")


def verify_dataset_shuffled(x: Dataset) -> None:
    """Log a warning if a dataset is not shuffled."""
    try:
        assert_not_shuffled(x)
    except ValueError:
        return
    logging.warning("Expected a shuffled dataset but input dataset `x` is not shuffled: call its `shuffle`.")


def standardize_weights(
    y: Any, sample_weight: Any = None, class_weight: Mapping[int, float] | None = None, sample_weight_mode: Any = None
) -> Any:
    """What each example counts.

    Args:
        y: Targets, an array of numbers, or one-hot, of classes.
        sample_weight: What each example counts, an array ``[batch]``; or what each step of sequences does.
        class_weight: What an example counts by its class, in addition.
        sample_weight_mode: ``temporal`` for weights of steps.

    Returns:
        An array, or None if there are no weights.

    Raises:
        ValueError: Weights have another form than they are to have, or a class has none.
    """
    return weights_of(sample_weight_mode, np.asarray(y), sample_weight, class_weight)


def generic_output_names(outputs_list: Sequence[Any]) -> list[str]:
    """``output_1`` and so on, one for each output."""
    return [f"output_{place}" for place, _ in enumerate(outputs_list, 1)]


def has_symbolic_tensors(ls: Any) -> bool:
    """Whether there are tensors among nested values."""
    return any(is_tensor(each) for each in nest.flatten(ls))


has_tensors = has_symbolic_tensors


def list_to_tuple(maybe_list: Any) -> Any:
    """A list as a tuple; anything else as it is."""
    return tuple(maybe_list) if isinstance(maybe_list, list) else maybe_list


def slice_arrays(arrays: Any, indices: Any, contiguous: bool = True) -> Any:
    """Examples of an array, or of each of several.

    Args:
        arrays: An array, or a list or dictionary of them.
        indices: Numbers of the examples, a sequence.
        contiguous: Whether the numbers follow one another, so that examples need not be copied.
    """
    rows = slice(indices[0], indices[-1] + 1) if contiguous else np.asarray(indices)
    if isinstance(arrays, Mapping):
        return {name: array[rows] for name, array in arrays.items()}
    return [array[rows] for array in arrays] if isinstance(arrays, (list, tuple)) else arrays[rows]
