"""What ``keras.utils.tf_utils`` tells of tensors and shapes in structures, for layers of programs' own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tfray.framework import nest
from tfray.framework.graph import Tensor
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import TensorShape
from tfray.library.variables.variables import Variable

__all__ = [
    "ListWrapper",
    "are_all_symbolic_tensors",
    "convert_inner_node_data",
    "convert_shapes",
    "is_symbolic_tensor",
    "is_tensor_or_tensor_list",
    "is_tensor_or_variable",
    "map_structure_with_atomic",
    "register_symbolic_tensor_type",
    "shape_type_conversion",
]

_REGISTERED: list[type] = []


def register_symbolic_tensor_type(symbolic_tensor_type: type) -> None:
    """Let layers of `tf.keras`, and `is_symbolic_tensor`, take objects of a class for tensors.

    Layers take all that `tf.register_tensor_conversion_function` was told of.

    Raises:
        ValueError: This is no class.
    """
    if not isinstance(symbolic_tensor_type, type):
        raise ValueError(f"a class was expected, not {symbolic_tensor_type!r}")
    _REGISTERED.append(symbolic_tensor_type)


def is_symbolic_tensor(tensor: object) -> bool:
    """Whether this stands for a value of steps: a tensor, dense or sparse, a variable, or of a registered class."""
    return isinstance(tensor, (Tensor, Variable, SparseTensor, IndexedSlices, *_REGISTERED))


def are_all_symbolic_tensors(tensors: Iterable[object]) -> bool:
    """Whether `is_symbolic_tensor` holds for each."""
    return all(is_symbolic_tensor(each) for each in tensors)


def is_tensor_or_variable(x: object) -> bool:
    """Whether this is a tensor, dense or sparse, or a variable."""
    return isinstance(x, (Tensor, Variable, SparseTensor, IndexedSlices))


def is_tensor_or_tensor_list(v: object) -> bool:
    """Whether this is a tensor, dense or sparse, or a list that begins with one."""
    first = v[0] if isinstance(v, list) and v else v
    return isinstance(first, (Tensor, SparseTensor)) and not isinstance(first, Variable)


def map_structure_with_atomic(is_atomic_fn: Callable[[Any], bool], map_fn: Callable[[Any], object], nested: Any) -> Any:
    """What a function makes of the parts of a structure that another one holds for whole.

    Args:
        is_atomic_fn: Whether a part, of any kind, is whole.
        map_fn: Makes something of one that is.
        nested: Lists, tuples and mappings in each other.

    Returns:
        The same structure with the results.

    Raises:
        ValueError: A part is neither whole nor a structure.
    """
    if is_atomic_fn(nested):
        return map_fn(nested)
    if not nest.is_nested(nested):
        raise ValueError(f"Received non-atomic and non-sequence element: {nested}")
    inner = functools.partial(map_structure_with_atomic, is_atomic_fn, map_fn)
    if isinstance(nested, Mapping):
        return type(nested)(zip(nested, map(inner, nested.values()), strict=True))  # type: ignore[call-arg]
    made = [inner(each) for each in nested]
    return type(nested)(*made) if hasattr(nested, "_fields") else type(nested)(made)


def convert_shapes(input_shape: Any, to_tuples: bool = True) -> Any:
    """Shapes in a structure as tuples of sizes, or as shapes.

    Args:
        input_shape: Shapes, or sequences of sizes, of which some may be None, in any structure.
        to_tuples: Whether tuples are wanted, rather than `tf.TensorShape`.

    Returns:
        The structure with the shapes.

    Raises:
        ValueError: A tuple is wanted of a shape whose rank is not known.
    """

    def is_shape(part: Any) -> bool:
        if part is None or isinstance(part, TensorShape):
            return True
        return (
            isinstance(part, (list, tuple))
            and all(not nest.is_nested(each) for each in part)
            and not any(isinstance(each, TensorShape) for each in part)
        )

    def converted(part: Any) -> Any:
        shape = TensorShape(part)
        return tuple(shape.as_list()) if to_tuples else shape

    return map_structure_with_atomic(is_shape, converted, input_shape)


def shape_type_conversion(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method of shapes have them as tuples, and what it returns of them be shapes again."""

    @functools.wraps(fn)
    def method(instance: Any, input_shape: Any) -> Any:
        given = None if input_shape is None else convert_shapes(input_shape, to_tuples=True)
        made = fn(instance, given)
        return None if made is None else convert_shapes(made, to_tuples=False)

    return method


class ListWrapper:
    """A list that structures hold for one part.

    Args:
        list_to_wrap: The list.
    """

    def __init__(self, list_to_wrap: list[Any]) -> None:
        self._list = list_to_wrap

    def as_list(self) -> list[Any]:
        """The list."""
        return self._list


def convert_inner_node_data(nested: Any, wrap: bool = False) -> Any:
    """Take the lists of a model's configuration that tell of nodes out of a `ListWrapper` each, or put them in one.

    Args:
        nested: The structure. A list of three or four whose first is text tells of a node.
        wrap: Whether they are put in.
    """

    def is_node(part: Any) -> bool:
        return isinstance(part, list) and len(part) in (3, 4) and isinstance(part[0], str)

    def is_whole(part: Any) -> bool:
        return isinstance(part, ListWrapper) or is_node(part) or not nest.is_nested(part)

    def converted(part: Any) -> Any:
        if wrap:
            return ListWrapper(part) if is_node(part) else part
        return part.as_list() if isinstance(part, ListWrapper) else part

    return map_structure_with_atomic(is_whole, converted, nested)
