"""What TensorFlow keeps for its Keras layers: turned kernels, reordered weights, and how many there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfray.keras.model_summary import print_summary as print_table

__all__ = [
    "convert_all_kernels_in_model",
    "convert_dense_weights_data_format",
    "count_params",
    "gather_non_trainable_weights",
    "gather_trainable_weights",
    "print_summary",
]


def convert_all_kernels_in_model(model: Any) -> None:
    """Turn the kernels of a model's convolutions around in each spatial dimension.

    Weights for a framework that convolves become those for one that correlates, and the other way.

    Args:
        model: A Keras model, of which convolutions of one to three dimensions, and transposed ones of two, are changed.
    """
    for layer in model.layers:
        if type(layer).__name__ in ("Conv1D", "Conv2D", "Conv3D", "Conv2DTranspose"):
            kernel, *others = layer.get_weights()
            layer.set_weights([np.flip(kernel, tuple(range(kernel.ndim - 2))), *others])


def convert_dense_weights_data_format(
    dense: Any, previous_feature_map_shape: Sequence[int], target_data_format: str = "channels_first"
) -> None:
    """Reorder the rows of a `Dense` layer behind flattened images for images whose channels stand elsewhere.

    Args:
        dense: The layer.
        previous_feature_map_shape: The shape of the images before they are flattened, without the batch, in the order
            that the weights are of.
        target_data_format: Where channels are to stand, ``channels_first`` or ``channels_last``.

    Raises:
        ValueError: There is no such `target_data_format`.
    """
    if target_data_format not in ("channels_first", "channels_last"):
        raise ValueError(f"target_data_format is {target_data_format!r}, expected channels_first or channels_last")
    order = (2, 0, 1) if target_data_format == "channels_first" else (1, 2, 0)
    kernel, *others = dense.get_weights()
    images = kernel.reshape(*previous_feature_map_shape, kernel.shape[-1])
    dense.set_weights([images.transpose(*order, 3).reshape(kernel.shape), *others])


def count_params(weights: Sequence[Any]) -> int:
    """How many elements variables have, each of them counted once."""
    return sum(int(np.prod(weight.shape.as_list())) for weight in dict.fromkeys(weights))


def gather_trainable_weights(trainable: bool, sub_layers: Sequence[Any], extra_variables: Sequence[Any]) -> list[Any]:
    """The weights that something trains which is made of layers, and of variables of its own.

    Args:
        trainable: Whether it trains at all.
        sub_layers: The layers.
        extra_variables: The variables.
    """
    if not trainable:
        return []
    own = [variable for variable in extra_variables if variable.trainable]
    return [weight for layer in sub_layers for weight in layer.trainable_weights] + own


def gather_non_trainable_weights(
    trainable: bool, sub_layers: Sequence[Any], extra_variables: Sequence[Any]
) -> list[Any]:
    """The weights that something does not train, where `gather_trainable_weights` gives the others."""
    held = [weight for layer in sub_layers for weight in layer.non_trainable_weights]
    if trainable:
        return held + [variable for variable in extra_variables if not variable.trainable]
    return [weight for layer in sub_layers for weight in layer.trainable_weights] + held + list(extra_variables)


def print_summary(
    model: Any,
    line_length: int | None = None,
    positions: Sequence[float] | None = None,
    print_fn: Callable[[str], object] | None = None,
) -> None:
    """Print the table of a model's layers; see `tf.keras.Model.summary`."""
    print_table(model, line_length, positions, print_fn or print)
