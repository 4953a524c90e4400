"""Sparse gradients and updates: some rows of a tensor, with their indices."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from tfray.errors import ArgumentError
from tfray.framework.convert import convert_to_tensor, register_tensor_conversion_function
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.tensor_shape import TensorShape

_MUCH: Final = 100_000_000
"""Elements of a dense tensor that a user is warned of: 400 MB of floats. TensorFlow warns from here."""


class IndexedSlicesValue(NamedTuple):
    """What a session returns for `IndexedSlices`: arrays in place of tensors."""

    values: Any
    indices: Any
    dense_shape: Any


class IndexedSlices:
    """A tensor of which only some rows are stored: ``values[i]`` is row ``indices[i]``, and all others are zero.

    Where indices are equal, the row is the sum of their values. The gradient of `tf.gather` has this form, so that an
    optimizer changes only those rows of an embedding that were used.

    Attributes:
        values: Shape ``[n, ...]``.
        indices: Shape ``[n]``, int32 or int64.
        dense_shape: Shape of the whole tensor, an integer vector or a list of integers; None if it is not told.
    """

    def __init__(self, values: Tensor, indices: Tensor, dense_shape: Any = None) -> None:
        self.values = values
        self.indices = indices
        self.dense_shape = dense_shape

    @property
    def dtype(self) -> DType:
        return self.values.dtype

    @property
    def graph(self) -> Graph:
        return self.values.graph

    @property
    def name(self) -> str:
        return self.values.name

    @property
    def op(self) -> Any:
        return self.values.op

    @property
    def device(self) -> str:
        return self.values.device

    def consumers(self) -> list[Operation]:
        """The operations that take one of its tensors as an input."""
        return list(dict.fromkeys(op for part in self._feed_parts() for op in part.consumers()))

    @property
    def shape(self) -> TensorShape:
        """Static shape of the whole tensor, as far as it is known."""
        from tfray.framework.constant_value import constant_shape

        if isinstance(self.dense_shape, Tensor):
            return constant_shape(self.dense_shape)
        return TensorShape(self.dense_shape)

    @property
    def _waited_for(self) -> Tensor:
        """What control dependencies on this wait for."""
        return self.values

    def _fetch_parts(self) -> tuple[Sequence[Tensor], Callable[[Sequence[Any]], IndexedSlicesValue]]:
        """The tensors that a session fetches for this object, and a function from their values to its value."""
        # Without `dense_shape` there are two values; None stands for the third.
        return self._feed_parts(), lambda values: IndexedSlicesValue(*values, *[None] * (3 - len(values)))

    def _feed_parts(self) -> Sequence[Tensor]:
        """The tensors that a session feeds for this object. An `IndexedSlicesValue` or tuple holds their values."""
        return [self.values, self.indices, *([] if self.dense_shape is None else [self.dense_shape])]

    def _to_components(self) -> list[Tensor]:
        """Its tensors, which branches and loops pass on in its place."""
        return [convert_to_tensor(part) for part in self._feed_parts()]

    def _with_components(self, components: Sequence[Tensor]) -> IndexedSlices:
        """The same of other tensors."""
        return IndexedSlices(*components)

    def _component_invariants(self, invariant: TensorShape | None) -> list[TensorShape]:
        """The shapes that its tensors keep in a loop. `invariant` is that of `values`."""
        values = self.values.shape if invariant is None else invariant
        rows = self.indices.shape if invariant is None else values[:1]
        return [values, rows, TensorShape([values.rank])][: len(self._feed_parts())]

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self.values, self.indices, self.dense_shape)

    def __repr__(self) -> str:
        return f"<tf.IndexedSlices values={self.values!r} indices={self.indices!r}>"


Gradient = Tensor | IndexedSlices | None
"""A gradient of one tensor, as gradient functions take and return it; None if no gradient flows."""


def _to_dense(value: IndexedSlices, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Tensor:
    """Convert to a tensor. Operations are made by name, because modules of `framework` do not import `ops`."""
    if value.dense_shape is None:
        raise ValueError(f"{value!r} has no dense_shape: it cannot become a dense tensor")
    if (size := value.shape.num_elements() or 0) >= _MUCH:
        warnings.warn(
            f"Converting sparse IndexedSlices to a dense Tensor with {size} elements. This may consume a large "
            "amount of memory.",
            stacklevel=2,
        )
    sizes = value.dense_shape
    if not isinstance(sizes, Tensor):
        sizes = convert_to_tensor(sizes, value.indices.dtype)
    inputs = [_column(value.indices), value.values, sizes]
    return get_default_graph().add_operation("ScatterNd", inputs, {}, name or "to_dense").outputs[0]


def _column(indices: Tensor) -> Tensor:
    """Indices ``[n]`` as ``[n, 1]``, which is the form that ScatterNd takes."""
    return get_default_graph().add_operation("ExpandDims", [indices, convert_to_tensor(-1)], {}).outputs[0]


register_tensor_conversion_function(IndexedSlices, _to_dense)


def convert_to_tensor_or_indexed_slices(
    value: Any, dtype: DTypeLike | None = None, name: str | None = None
) -> Tensor | IndexedSlices:
    """`value` as a `Tensor`; `IndexedSlices` as they are.

    Raises:
        ArgumentError: The value does not convert, or has another dtype.
    """
    if not isinstance(value, IndexedSlices):
        return convert_to_tensor(value, dtype, name)
    if dtype is not None and value.dtype is not as_dtype(dtype):
        raise ArgumentError(f"{value!r} has dtype {value.dtype.name}, expected {as_dtype(dtype).name}")
    return value
