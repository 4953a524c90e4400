"""`tf.contrib.slim.utils`: aliases of tensors, by which networks collect their end points, and checks of arguments."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tfray.framework import constant_value as constants
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import CollectionNames, TensorLike
from tfray.library.variables.variables import Variable
from tfray.ops.control import control_flow_ops

# fmt: off
__all__ = [
    "NamedOutputs", "append_tensor_alias", "channel_dimension", "collect_named_outputs", "constant_value",
    "convert_collection_to_dict", "gather_tensors_aliases", "get_tensor_aliases", "get_variable_collections",
    "last_dimension", "n_positive_integers", "smart_cond", "static_cond", "two_element_tuple",
]
# fmt: on


class NamedOutputs(NamedTuple):
    """A tensor and its name."""

    name: str
    outputs: Any


def collect_named_outputs(collections: CollectionNames | None, alias: str, outputs: Tensor) -> Tensor:
    """Give a tensor an alias, and add it to collections.

    Args:
        collections: Names of collections, or one; nothing is done when there are none.
        alias: The alias.
        outputs: The tensor.

    Returns:
        The tensor.
    """
    if collections:
        append_tensor_alias(outputs, alias)
        get_default_graph().add_to_collections(collections, outputs)
    return outputs


def append_tensor_alias(tensor: Tensor, alias: str) -> Tensor:
    """Add an alias, less a slash at its end, to the attribute `aliases` of a tensor. Returns the tensor."""
    tensor.aliases = [*getattr(tensor, "aliases", []), alias.removesuffix("/")]
    return tensor


def gather_tensors_aliases(tensors: Iterable[Tensor]) -> list[str]:
    """The aliases of all tensors."""
    return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


def get_tensor_aliases(tensor: Tensor) -> list[str]:
    """The aliases of a tensor; where it has none, its name, without ``:0``."""
    aliases: list[str] = getattr(tensor, "aliases", None) or [tensor.name.removesuffix(":0")]
    return aliases


def convert_collection_to_dict(collection: str, clear_collection: bool = False) -> OrderedDict[str, Any]:
    """The tensors of a collection by their aliases.

    Args:
        collection: Its name.
        clear_collection: Empty it afterwards.
    """
    graph = get_default_graph()
    found = graph.get_collection(collection)
    if clear_collection:
        graph.clear_collection(collection)
    return OrderedDict((alias, tensor) for tensor in found for alias in get_tensor_aliases(tensor))


def constant_value(value_or_tensor_or_var: Any, dtype: DTypeLike | None = None) -> Any:
    """The value of a constant tensor, None of another one or of a variable; what is no tensor is returned as it is.

    Args:
        value_or_tensor_or_var: The value, tensor or variable.
        dtype: The dtype that tensors and variables must have.

    Raises:
        ValueError: The first argument is None, or of another dtype.
    """
    value = value_or_tensor_or_var
    if value is None:
        raise ValueError("constant_value takes a value, a tensor or a variable, not None")
    if not isinstance(value, (Tensor, Variable)):
        return value
    if dtype is not None and value.dtype.base_dtype is not as_dtype(dtype):
        raise ValueError(f"{value!r} is {value.dtype.name}, expected {as_dtype(dtype).name}")
    return constants.constant_value(value) if isinstance(value, Tensor) else None


def static_cond(pred: Any, fn1: Callable[[], Any], fn2: Callable[[], Any]) -> Any:
    """``fn1()`` where a Python value is true, ``fn2()`` otherwise. Raises `TypeError` if one is no function."""
    for name, function in (("fn1", fn1), ("fn2", fn2)):
        if not callable(function):
            raise TypeError(f"{name} must be a function, not {function!r}")
    return fn1() if pred else fn2()


def smart_cond(pred: TensorLike, fn1: Callable[[], Any], fn2: Callable[[], Any], name: str | None = None) -> Any:
    """`static_cond` where `pred` is a Python value or constant, otherwise `tf.cond` with that name."""
    value = constant_value(pred)
    if value is not None:
        return static_cond(value, fn1, fn2)
    return control_flow_ops.cond(pred, fn1, fn2, name=name)


def get_variable_collections(variables_collections: Any, name: str) -> Any:
    """The collections for a variable: those under its name in a dictionary, otherwise the argument itself."""
    return variables_collections.get(name) if isinstance(variables_collections, dict) else variables_collections


def channel_dimension(shape: TensorShape, data_format: str, min_rank: int = 1) -> int:
    """The size along the channels of a shape.

    Args:
        shape: The shape.
        data_format: ``channels_first`` or ``channels_last``.
        min_rank: The least rank.

    Raises:
        ValueError: The rank or the size is not known, or the rank is less.
    """
    return _size(shape, 1 if data_format == "channels_first" else -1, min_rank)


def last_dimension(shape: TensorShape, min_rank: int = 1) -> int:
    """The last size of a shape; as `channel_dimension`."""
    return _size(shape, -1, min_rank)


def _size(shape: TensorShape, axis: int, min_rank: int) -> int:
    if shape.rank is None or shape.rank < min_rank:
        raise ValueError(f"the shape is {shape}, expected a rank of at least {min_rank}")
    size = shape.sizes[axis]
    if size is None:
        raise ValueError(f"the shape is {shape}: its size along {axis} must be known")
    return size


def two_element_tuple(int_or_tuple: Any) -> tuple[Any, Any]:
    """Two sizes, from an integer for both, a list or tuple of two, or a `tf.TensorShape` of rank 2.

    Raises:
        ValueError: Something else.
    """
    if isinstance(int_or_tuple, int):
        return int_or_tuple, int_or_tuple
    if isinstance(int_or_tuple, (list, tuple)) and len(int_or_tuple) == 2:
        return int(int_or_tuple[0]), int(int_or_tuple[1])
    if isinstance(int_or_tuple, TensorShape) and int_or_tuple.rank == 2:
        return int_or_tuple[0], int_or_tuple[1]
    raise ValueError(f"{int_or_tuple!r} is no integer, nor two, nor a shape of rank 2")


def n_positive_integers(n: int, value: Any) -> tuple[int, ...]:
    """`n` positive integers, from one for all, or a sequence of `n`.

    Raises:
        ValueError: `n` or `value` is something else.
    """
    if int(n) != n or n < 1:
        raise ValueError(f"n is {n!r}, expected a positive integer")
    try:
        values = (int(value),) * int(n)
    except (TypeError, ValueError):
        try:
            values = tuple(int(each) for each in value)
        except (TypeError, ValueError):
            raise ValueError(f"{value!r} is no sequence of {n} positive integers") from None
    if len(values) != n or min(values) < 1:
        raise ValueError(f"expected {n} positive integers, not {value!r}")
    return values
