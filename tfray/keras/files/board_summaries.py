"""What the callback `TensorBoard` shows of a model: histograms of weights, gradients and outputs, weights as images."""

from __future__ import annotations

from typing import Any

from tfray.framework.graph import Tensor
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.scopes import name_scope
from tfray.gradients import gradients
from tfray.keras import backend
from tfray.library.inspect import summaries
from tfray.ops.arrays import array_ops


def summaries_of(model: Any, with_gradients: bool, with_images: bool) -> Tensor | None:
    """All summaries of the graph in one, after those of a model have been added.

    Args:
        model: A Keras model that has been compiled and has inputs.
        with_gradients: Whether gradients of the loss are shown: ``dense/kernel_0_grad``.
        with_images: Whether weights are shown as images too, but for those of more than three dimensions.

    Returns:
        A string scalar; None if there is nothing to show.
    """
    with model.inputs[0].graph.as_default(), name_scope(None):
        for layer in model.layers:
            for weight in layer.weights:
                tag = _tag_of(weight)
                summaries.histogram(tag, weight)
                if with_images and (pixels := _as_images(weight)) is not None:
                    summaries.image(tag, pixels)
            for weight in layer.trainable_weights if with_gradients else ():
                (gradient,) = gradients(model.total_loss, [weight])
                if gradient is not None:
                    values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
                    summaries.histogram(f"{_tag_of(weight)}_grad", values)
            if not hasattr(layer, "output"):
                continue
            if isinstance(layer.output, list):
                for place, output in enumerate(layer.output):
                    summaries.histogram(f"{layer.name}_out_{place}", output)
            else:
                summaries.histogram(f"{layer.name}_out", layer.output)
        return summaries.merge_all()


def _tag_of(weight: Any) -> str:
    return str(weight.name.replace(":", "_"))


def _as_images(weight: Any) -> Tensor | None:
    """A weight as images ``[batch, height, width, 1]``: a column, a wide matrix, or one for each channel of three axes.

    None if dimensions of other sizes than 1 are none, or more than three.
    """
    pixels = array_ops.squeeze(weight)
    sizes = [size or 0 for size in pixels.shape.as_list()]
    if len(sizes) == 1:
        return array_ops.reshape(pixels, [1, *sizes, 1, 1])
    if len(sizes) == 2:
        is_high = sizes[0] > sizes[1]
        return array_ops.reshape(array_ops.transpose(pixels) if is_high else pixels, [1, *sorted(sizes), 1])
    if len(sizes) == 3:
        if backend.image_data_format() == "channels_last":
            pixels, sizes = array_ops.transpose(pixels, [2, 0, 1]), [sizes[2], *sizes[:2]]
        return array_ops.reshape(pixels, [*sizes, 1])
    return None
