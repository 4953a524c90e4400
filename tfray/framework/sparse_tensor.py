"""Sparse tensors: the elements that are there, by their positions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from tfray.framework import dtypes
from tfray.framework.constant_value import constant_shape
from tfray.framework.convert import convert_to_tensor
from tfray.framework.default_stack import session_or_default
from tfray.framework.dtypes import DType
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.tensor_operators import operate
from tfray.framework.tensor_shape import UNKNOWN, ShapeLike, TensorShape


class SparseTensorValue(NamedTuple):
    """What a session takes and returns for a `SparseTensor`: arrays in place of tensors."""

    indices: Any
    values: Any
    dense_shape: Any


class SparseTensor:
    """Elements `values` at the positions `indices` of a tensor of shape `dense_shape`; all others are absent.

    Positions should be in row-major order and distinct, which operations that need it check.

    Args:
        indices: Shape ``[n, rank]``, int64: a position in each row.
        values: Shape ``[n]``, any dtype.
        dense_shape: Shape ``[rank]``, int64.

    Raises:
        ValueError: A dtype or static shape does not fit.
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self._indices = _component(indices, dtypes.int64, "indices")
        self._values = _component(values, None, "values")
        self._dense_shape = _component(dense_shape, dtypes.int64, "dense_shape")
        self._known_shape = UNKNOWN
        given = {"indices": self._indices, "values": self._values, "dense_shape": self._dense_shape}
        try:
            expected = self._values.shape.with_rank(1).concatenate(self._dense_shape.shape.with_rank(1))
            self._indices.shape.assert_is_compatible_with(expected)
        except ValueError as error:
            shapes = ", ".join(f"{name} of shape {tensor.shape}" for name, tensor in given.items())
            raise ValueError(f"no sparse tensor has {shapes}: expected [n, rank], [n] and [rank]") from error

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """A sparse tensor of a `SparseTensorValue`, or the `SparseTensor` that is given."""
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        if not isinstance(sparse_tensor_value, SparseTensorValue):
            raise TypeError(f"{sparse_tensor_value!r} is neither a SparseTensor nor a SparseTensorValue")
        return cls(*sparse_tensor_value)

    @property
    def indices(self) -> Tensor:
        """Positions, shape ``[n, rank]``, int64."""
        return self._indices

    @property
    def values(self) -> Tensor:
        """Elements, shape ``[n]``."""
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        """Shape of the tensor as a vector, int64."""
        return self._dense_shape

    @property
    def dtype(self) -> DType:
        """Dtype of the elements."""
        return self._values.dtype

    @property
    def shape(self) -> TensorShape:
        """Static shape of the dense tensor, as far as it is known."""
        return constant_shape(self._dense_shape).merge_with(self._known_shape)

    def set_shape(self, shape: ShapeLike) -> None:
        """Add what a program knows of the static shape.

        Raises:
            ValueError: It does not go with what is known already.
        """
        self._known_shape = self.shape.merge_with(shape)

    def get_shape(self) -> TensorShape:
        """`shape`, as TensorFlow 1 programs write it."""
        return self.shape

    @property
    def op(self) -> Operation:
        """The operation that makes the elements."""
        return self._values.op

    @property
    def graph(self) -> Graph:
        """The graph of its tensors."""
        return self._values.graph

    @property
    def name(self) -> str:
        """The name of the elements."""
        return self._values.name

    def consumers(self) -> list[Operation]:
        """The operations that take one of its tensors as an input."""
        parts = self._indices, self._values, self._dense_shape
        return list(dict.fromkeys(op for part in parts for op in part.consumers()))

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> SparseTensorValue:
        """Its value, computed in `session` or the default session."""
        return session_or_default(session, self.graph).run(self, feed_dict)

    def _fetch_parts(self) -> tuple[Sequence[Tensor], Callable[[Sequence[Any]], SparseTensorValue]]:
        """The tensors that a session runs for this, and what it makes of their values."""
        return [self._indices, self._values, self._dense_shape], lambda values: SparseTensorValue(*values)

    def _feed_parts(self) -> Sequence[Tensor]:
        """The tensors that a session feeds for this, with the parts of a `SparseTensorValue` or tuple."""
        return [self._indices, self._values, self._dense_shape]

    def __mul__(self, other: Any) -> SparseTensor:
        return operate("sparse_mul", self, other)

    # Above that of NumPy's arrays, so that ``array * sparse`` comes here; tensors leave it to `__rmul__` too.
    __array_priority__ = 100

    def __rmul__(self, other: Any) -> SparseTensor:
        return operate("sparse_mul", self, other)

    def __truediv__(self, other: Any) -> SparseTensor:
        return operate("sparse_truediv", self, other)

    def _to_components(self) -> list[Tensor]:
        """Its tensors, which branches and loops pass on in its place."""
        return [self._indices, self._values, self._dense_shape]

    def _with_components(self, components: Sequence[Tensor]) -> SparseTensor:
        """A sparse tensor of other tensors."""
        return SparseTensor(*components)

    def _component_invariants(self, invariant: TensorShape | None) -> list[TensorShape]:
        """The shapes that its tensors keep in a loop: it may have another number of elements after each turn.

        `invariant` is the shape of `dense_shape`.
        """
        rank = (self._dense_shape.shape if invariant is None else invariant.with_rank(1)).sizes[0]
        return [TensorShape([None, rank]), TensorShape([None]), TensorShape([rank])]

    def __repr__(self) -> str:
        parts = f"indices={self._indices!r} values={self._values!r} dense_shape={self._dense_shape!r}"
        return f"<tf.SparseTensor {parts}>"


SparseLike = SparseTensor | SparseTensorValue
"""What operations on sparse tensors take."""


FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def _component(value: Any, dtype: DType | None, name: str) -> Tensor:
    """A part of a sparse tensor as a tensor; an error says which."""
    try:
        return convert_to_tensor(value, dtype, name)
    except (TypeError, ValueError) as error:
        error.add_note(f"as the {name} of a SparseTensor")
        raise


def also_of_sparse(function: FunctionT) -> FunctionT:
    """Decorator of functions ``function(x, name=None)`` that compute element by element, and give 0 for 0.

    They then take sparse tensors too, and return them, with the function's values.
    """

    @functools.wraps(function)
    def of_any(x: Any, name: str | None = None) -> Any:
        if not isinstance(x, (SparseTensor, SparseTensorValue)):
            return function(x, name)
        sparse = SparseTensor.from_value(x)
        return SparseTensor(sparse.indices, function(sparse.values, name), sparse.dense_shape)

    return cast(FunctionT, of_any)


def convert_to_tensor_or_sparse_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A `SparseTensor` of a `SparseTensorValue` or as it is; a tensor of anything else.

    Raises:
        RuntimeError: A sparse tensor has another dtype.
    """
    if not isinstance(value, (SparseTensor, SparseTensorValue)):
        return convert_to_tensor(value, dtype, name)
    sparse = SparseTensor.from_value(value)
    if dtype is not None and sparse.dtype != dtype:
        raise RuntimeError(f"{sparse!r} is {sparse.dtype.name}, expected {dtypes.as_dtype(dtype).name}")
    return sparse


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor, a sparse one, `IndexedSlices`, or a variable."""
    return isinstance(x, (Tensor, SparseTensor, IndexedSlices)) or hasattr(type(x), "_as_graph_element")
