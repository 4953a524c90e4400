"""Type aliases for the arguments of operations, used in annotations.

`DTypeLike`, `ShapeLike` and `Array` are defined beside `as_dtype`, `TensorShape` and `KernelContext`. They can be
imported from here too, so that one import is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import EllipsisType
from typing import Any, Protocol, TypeAlias

import numpy as np

from tfray.framework.dtypes import DType
from tfray.framework.dtypes import DTypeLike as DTypeLike
from tfray.framework.graph import Tensor
from tfray.framework.op_def import Array as Array
from tfray.framework.op_def import ArrayModule as ArrayModule
from tfray.framework.tensor_shape import Dimension, TensorShape
from tfray.framework.tensor_shape import ShapeLike as ShapeLike


class ConvertsToTensor(Protocol):
    """An object whose class has a conversion function: a variable, an `IndexedSlices`, or one of the program's own."""

    @property
    def dtype(self) -> DType:
        """Dtype of the tensor that it becomes."""

    @property
    def shape(self) -> TensorShape:
        """Static shape of that tensor."""


TensorLike: TypeAlias = (
    ConvertsToTensor
    | Tensor
    | np.ndarray[Any, Any]
    | np.generic
    | bool
    | int
    | float
    | complex
    | str
    | bytes
    | TensorShape
    | Dimension
    | Sequence["TensorLike"]
)
"""What `convert_to_tensor` takes: a tensor, a variable, an array, a number, a string, or nested sequences of these."""

Structure: TypeAlias = TensorLike | Mapping[str, "Structure"] | Sequence["Structure"] | None
"""Tensors in tuples, lists and dictionaries, nested; see `framework/nest.py`."""

SliceKey: TypeAlias = TensorLike | slice | EllipsisType | tuple["SliceKey", ...] | None
"""What stands in the brackets of ``tensor[...]``."""

Sizes = int | Sequence[int]
"""Sizes along several axes, or one for all of them: of windows, strides, dilations."""

Axes = int | Sequence[int]
"""One axis or several; negative ones count from the last."""

Activation = Callable[[Tensor], Tensor]
"""A function that a layer applies to its outputs, such as ``tf.nn.relu``."""

Padding = str | Sequence[Sequence[int]]
"""``"SAME"``, ``"VALID"``, or how many elements to add before and behind each axis."""

CollectionNames = str | Sequence[str]
"""The name of a collection of the graph, or names of several."""


class VariableLike(Protocol):
    """A variable as operations see it: the handle that stands for it in the graph, and its dtype and shape."""

    @property
    def handle(self) -> Tensor:
        """The handle, a scalar of dtype ``resource``."""

    @property
    def dtype(self) -> DType:
        """Dtype of the value."""

    @property
    def shape(self) -> TensorShape:
        """Static shape of the value."""


VariableOrHandle = VariableLike | Tensor
"""The variable that an operation reads or updates: the variable itself, or its handle."""
