"""TensorFlow's lists of tensors: ``tensorflow.python.ops.list_ops``.

A list is a variant tensor, and each function returns a new one. It holds its elements to a shape, and their number to a
bound where one is given; elements that were never written are zeros where the shape is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.programs.generated_functions import generated_function

__all__ = [
    "empty_tensor_list",
    "tensor_list_concat",
    "tensor_list_element_shape",
    "tensor_list_from_tensor",
    "tensor_list_gather",
    "tensor_list_get_item",
    "tensor_list_length",
    "tensor_list_pop_back",
    "tensor_list_push_back",
    "tensor_list_reserve",
    "tensor_list_resize",
    "tensor_list_scatter",
    "tensor_list_set_item",
    "tensor_list_split",
    "tensor_list_stack",
]


def _made(function: str, *args: Any, **kwargs: Any) -> Any:
    make = generated_function(function)
    if make is None:
        raise InvalidArgumentError(f"{function} has no equivalent in tfray")
    return make(*args, **kwargs)


def _one(function: str, *args: Any, name: str | None) -> Tensor:
    made = _made(function, *args, name=name)
    tensor: Tensor = made[0] if isinstance(made, tuple) else made
    return tensor


def _shape(shape: Any) -> Any:
    """A shape as TensorFlow's operations on lists take it: -1 for what is not known."""
    if isinstance(shape, Tensor):
        return shape
    sizes = TensorShape(shape)
    return np.array(-1 if sizes.rank is None else [-1 if size is None else size for size in sizes.as_list()], np.int32)


def empty_tensor_list(
    element_shape: Any, element_dtype: DTypeLike, max_num_elements: int | None = None, name: str | None = None
) -> Tensor:
    """A list without elements."""
    most = -1 if max_num_elements is None else max_num_elements
    return _one("empty_tensor_list", _shape(element_shape), most, element_dtype, name=name)


def tensor_list_reserve(
    element_shape: Any, num_elements: TensorLike, element_dtype: DTypeLike, name: str | None = None
) -> Tensor:
    """A list of so many elements, which are zeros until they are set."""
    return _one("tensor_list_reserve", _shape(element_shape), num_elements, element_dtype, name=name)


def tensor_list_from_tensor(tensor: TensorLike, element_shape: Any, name: str | None = None) -> Tensor:
    """The parts of a tensor along its first dimension."""
    return _one("tensor_list_from_tensor", tensor, _shape(element_shape), name=name)


def tensor_list_get_item(
    input_handle: Tensor,
    index: TensorLike,
    element_dtype: DTypeLike,
    element_shape: Any = None,
    name: str | None = None,
) -> Tensor:
    """An element."""
    return _one("tensor_list_get_item", input_handle, index, _shape(element_shape), element_dtype, name=name)


def tensor_list_pop_back(input_handle: Tensor, element_dtype: DTypeLike, name: str | None = None) -> Any:
    """The list without its last element, and that."""
    return _made("tensor_list_pop_back", input_handle, _shape(None), element_dtype, name=name)


def tensor_list_gather(
    input_handle: Tensor,
    indices: TensorLike,
    element_dtype: DTypeLike,
    element_shape: Any = None,
    name: str | None = None,
) -> Tensor:
    """Elements, stacked."""
    return _one("tensor_list_gather", input_handle, indices, _shape(element_shape), element_dtype, name=name)


def tensor_list_scatter(
    tensor: TensorLike,
    indices: TensorLike,
    element_shape: Any = None,
    input_handle: Tensor | None = None,
    name: str | None = None,
) -> Tensor:
    """A list, or `input_handle`, with the parts of a tensor along its first dimension at these places, not yet set."""
    if input_handle is not None:
        return _one("tensor_list_scatter_into_existing_list", input_handle, tensor, indices, name=name)
    return _one("tensor_list_scatter_v2", tensor, indices, _shape(element_shape), -1, name=name)


def tensor_list_stack(
    input_handle: Tensor,
    element_dtype: DTypeLike,
    num_elements: int = -1,
    element_shape: Any = None,
    name: str | None = None,
) -> Tensor:
    """All elements, stacked."""
    args = (input_handle, _shape(element_shape), element_dtype, num_elements)
    return _one("tensor_list_stack", *args, name=name)


def tensor_list_concat(
    input_handle: Tensor, element_dtype: DTypeLike, element_shape: Any = None, name: str | None = None
) -> Tensor:
    """All elements, one behind the other."""
    args = (input_handle, _shape(element_shape), np.zeros(0, np.int64), element_dtype)
    return _one("tensor_list_concat_v2", *args, name=name)


def tensor_list_split(tensor: TensorLike, element_shape: Any, lengths: TensorLike, name: str | None = None) -> Tensor:
    """A list of parts of a tensor, of so many rows each."""
    lengths = convert_to_tensor(lengths, dtypes.int64)
    return _one("tensor_list_split", tensor, _shape(element_shape), lengths, name=name)


def tensor_list_set_item(
    input_handle: Tensor,
    index: TensorLike,
    item: TensorLike,
    resize_if_index_out_of_bounds: bool = False,
    name: str | None = None,
) -> Tensor:
    """The list with another element at this place."""
    args = (input_handle, index, item, resize_if_index_out_of_bounds)
    return _one("tensor_list_set_item", *args, name=name)


tensor_list_element_shape = generated_function("tensor_list_element_shape")
tensor_list_length = generated_function("tensor_list_length")
tensor_list_push_back = generated_function("tensor_list_push_back")
tensor_list_resize = generated_function("tensor_list_resize")
