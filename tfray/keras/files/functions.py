"""Functions between the layers of Keras models that TensorFlow 2.4 and later have saved, as ``TFOpLambda`` layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework.graph import Tensor
from tfray.library.namespaces import linalg, math, nn
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.broadcast_ops import broadcast_to, fill, ones, ones_like, where_v2, zeros, zeros_like
from tfray.ops.arrays.construction_ops import eye, linspace, one_hot, range_, sequence_mask
from tfray.ops.arrays.gather_ops import boolean_mask, gather, gather_nd
from tfray.ops.arrays.join_ops import concat, split, stack, unstack
from tfray.ops.arrays.layout_ops import pad, reverse, roll, tile
from tfray.ops.arrays.slice_ops import slice_, strided_slice
from tfray.ops.arrays.space_block_ops import depth_to_space, space_to_depth
from tfray.ops.linalg.norm_ops import norm
from tfray.ops.math.rounding_ops import clip_by_value

CLASSES: Final = ("TFOpLambda", "SlicingOpLambda")
"""Classes of layers that are such functions."""

_ITSELF: Final = (
    *(broadcast_to, fill, ones, ones_like, zeros, zeros_like, eye, linspace, one_hot, sequence_mask),
    *(boolean_mask, gather, gather_nd, concat, split, stack, unstack, pad, reverse, roll, tile, strided_slice),
    *(depth_to_space, space_to_depth, clip_by_value),
    *(array_ops.cast, array_ops.expand_dims, array_ops.identity, array_ops.rank, array_ops.reshape, array_ops.shape),
    *(array_ops.size, array_ops.squeeze, array_ops.stop_gradient, array_ops.transpose),
)


def _item(tensor: Tensor, slice_spec: Any, var: None = None) -> Tensor:
    """``tensor[slice_spec]``, with slices as dictionaries."""
    parts = slice_spec if isinstance(slice_spec, (list, tuple)) else [slice_spec]
    return tensor[tuple(map(_part, parts))]


def _part(described: Any) -> Any:
    if not isinstance(described, Mapping):
        return described
    if described.get("class_name") == "__ellipsis__":
        return ...
    return slice(*map(described.get, ("start", "stop", "step")))


_NAMED: Final[dict[str, Callable[..., Any]]] = {
    **{function.__name__: function for function in _ITSELF},
    "norm": norm,
    "floor_div": math.floordiv,
    "range": range_,
    "slice": slice_,
    "where": where_v2,
    "__operators__.getitem": _item,
    "__operators__.add": math.add,
    "__operators__.eq": math.equal,
    "__operators__.ne": math.not_equal,
    "__operators__.logical_and": math.logical_and,
    "__operators__.logical_or": math.logical_or,
    "__operators__.logical_xor": math.logical_xor,
}
_NAMESPACES: Final[dict[str, Any]] = {"math": math, "nn": nn, "linalg": linalg}


def function_of(config: Mapping[str, Any]) -> Callable[..., Any]:
    """The function of tensors that such a layer stands for.

    Args:
        config: The configuration of the layer.

    Raises:
        InvalidArgumentError: It names no function that models can have between their layers.
    """
    name = str(config.get("function"))
    whole = name.removeprefix("compat.v1.")
    space, _, own = whole.rpartition(".")
    found: Callable[..., Any] | None = _NAMED.get(whole)
    if found is None and space in _NAMESPACES and not own.startswith("_"):
        found = vars(_NAMESPACES[space]).get(own)
    if found is None or not callable(found):
        raise InvalidArgumentError(
            f"layer {config.get('name')!r} is a call of tf.{name}, which is no function that is read here: "
            "those of tf.math, tf.nn and tf.linalg, and those that shape, join and cut tensors"
        )
    return found
