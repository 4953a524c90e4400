"""Summaries of tensors and collections, as ``tf.contrib.layers`` makes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.type_aliases import TensorLike
from tfray.library.inspect import summaries
from tfray.ops.arrays.older_casts import to_float
from tfray.ops.math.reduction_ops import reduce_mean


def summarize_tensor(tensor: Any, tag: str | None = None) -> Tensor | None:
    """A scalar summary, or a histogram of what is no scalar; None for what has no values.

    Args:
        tensor: A tensor or variable.
        tag: Name of the summary; that of the tensor's operation and ``_summary`` when None.
    """
    if not hasattr(tensor, "op") or not hasattr(tensor, "shape"):
        return None
    name = tag or f"{tensor.op.name}_summary"
    return summaries.scalar(name, tensor) if tensor.shape.rank == 0 else summaries.histogram(name, tensor)


def summarize_activation(op: Tensor) -> Tensor:
    """A histogram of the outputs of a layer; for a ReLU also the fractions of its inputs that it cuts off."""
    if op.op.type in ("Relu", "Softplus", "Relu6"):
        summaries.scalar(f"{op.op.name}/zeros", _fraction(op.op.inputs[0] < 0))
    if op.op.type == "Relu6":
        summaries.scalar(f"{op.op.name}/sixes", _fraction(op.op.inputs[0] > 6))
    return summaries.histogram(f"{op.op.name}/activation", op)


def _fraction(holds: Tensor) -> Tensor:
    return reduce_mean(to_float(holds))


Summarizer = Callable[[Any], Any]
"""Makes a summary of a tensor, or None."""


def summarize_tensors(tensors: Iterable[TensorLike], summarizer: Summarizer = summarize_tensor) -> list[Any]:
    """A summary of each tensor."""
    return [summarizer(tensor) for tensor in tensors]


def summarize_collection(
    collection: str, name_filter: str | None = None, summarizer: Summarizer = summarize_tensor
) -> list[Any]:
    """A summary of each tensor of a collection whose operation's name matches a pattern; of all when it is None."""
    found = get_default_graph().get_collection(collection)
    return summarize_tensors([each for each in found if re.match(name_filter or "", each.op.name)], summarizer)


def summarize_variables(name_filter: str | None = None, summarizer: Summarizer = summarize_tensor) -> list[Any]:
    """`summarize_collection` of the variables."""
    return summarize_collection(GraphKeys.GLOBAL_VARIABLES, name_filter, summarizer)


def summarize_weights(name_filter: str | None = None, summarizer: Summarizer = summarize_tensor) -> list[Any]:
    """`summarize_collection` of the weights."""
    return summarize_collection(GraphKeys.WEIGHTS, name_filter, summarizer)


def summarize_biases(name_filter: str | None = None, summarizer: Summarizer = summarize_tensor) -> list[Any]:
    """`summarize_collection` of the biases."""
    return summarize_collection(GraphKeys.BIASES, name_filter, summarizer)


def summarize_activations(name_filter: str | None = None, summarizer: Summarizer = summarize_activation) -> list[Any]:
    """`summarize_collection` of what stands in ``GraphKeys.ACTIVATIONS``."""
    return summarize_collection(GraphKeys.ACTIVATIONS, name_filter, summarizer)
