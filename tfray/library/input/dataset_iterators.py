"""Iterators: the position of a program in a dataset."""

from __future__ import annotations

import warnings
from typing import Any, Final

from tfray.errors import ArgumentError
from tfray.framework import dtypes, nest
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.type_aliases import Structure, TensorLike
from tfray.library.input.dataset_structure import (
    carriers_in_attrs,
    class_of,
    declared_kinds,
    have_same_kinds,
    shapes_like,
    structure_of,
    types_of,
    unwrapped,
)
from tfray.library.variables.saveable_resource import SaveableResource
from tfray.ops.dataflow import iterator_ops

GET_NEXT_CALL_WARNING_THRESHOLD: Final = 32
"""After so many calls of `Iterator.get_next` a program most likely calls it in its loop of steps."""

GET_NEXT_CALL_WARNING_MESSAGE: Final = (
    "An unusually high number of `Iterator.get_next()` calls was made, and each adds operations to the graph. Call it "
    "once, before the loop, and run its result in every step."
)


class Iterator(SaveableResource):
    """The position of a program in a dataset. Each step that runs `get_next` takes one element.

    Datasets make them; a program may make one for a handle that it has from elsewhere. `tf.train.Checkpoint` and
    `Saver` save its position, as `tf.data.experimental.make_saveable_from_iterator` tells.

    Args:
        iterator_resource: Resource scalar: the handle of an iterator.
        initializer: The operation that begins at the first element; None if there is none.
        output_types: Dtype of each component, in the structure of an element.
        output_shapes: Static shape of each component, likewise; not known when None.
        output_classes: Class of each component, likewise: `tf.Tensor`, which None stands for, or `tf.SparseTensor`.

    Attributes:
        output_shapes: Static shape of each component, in the structure of an element.
    """

    def __init__(
        self,
        iterator_resource: Tensor,
        initializer: Operation | None,
        output_types: Structure,
        output_shapes: Structure = None,
        output_classes: Structure = None,
    ) -> None:
        kinds = declared_kinds(output_types, output_classes)
        self._describe(iterator_resource, kinds, shapes_like(kinds, output_shapes))
        self._initializer = initializer

    def _describe(self, handle: Tensor, kinds: Any, shapes: Any, source: Tensor | None = None) -> None:
        super().__init__(handle.op.name, handle)
        self._kinds = kinds
        self.output_shapes = shapes
        self._source = source
        self._initializer = None
        self._calls = 0
        self._string_handle = self._handle_as_string(None)

    @classmethod
    def _of_kinds(cls, handle: Tensor, kinds: Any, shapes: Any, source: Tensor | None = None) -> Iterator:
        """An iterator over any elements, those that have datasets as components too."""
        iterator = cls.__new__(cls)
        iterator._describe(handle, kinds, shapes, source)
        return iterator

    @property
    def output_types(self) -> Any:
        """Dtype of each component, in the structure of an element."""
        return types_of(self._kinds)

    @property
    def output_classes(self) -> Any:
        """The class of each component: `tf.Tensor`, `tf.SparseTensor` or `tf.data.Dataset`."""
        return nest.map_structure(class_of, self._kinds)

    @property
    def _iterator_resource(self) -> Tensor:
        """The handle, by which programs find an iterator again in a graph from a file."""
        return self.handle

    @property
    def element_spec(self) -> Any:
        """A description of each component, such as `tf.TensorSpec`, in the structure of an element."""
        return structure_of(self._kinds, self.output_shapes)

    @staticmethod
    def from_structure(
        output_types: Any, output_shapes: Any = None, shared_name: str | None = None, output_classes: Any = None
    ) -> Iterator:
        """An iterator that may be initialised with any dataset of such elements; see `make_initializer`."""
        handle = add_op(iterator_ops.ITERATOR, shared_name=shared_name or "")
        return Iterator(handle, None, output_types, output_shapes, output_classes)

    @staticmethod
    def from_string_handle(
        string_handle: TensorLike, output_types: Any, output_shapes: Any = None, output_classes: Any = None
    ) -> Iterator:
        """An iterator that stands for another one, chosen in each step by feeding the other's `string_handle`."""
        if not isinstance(string_handle, (Tensor, str, bytes, list)):
            raise TypeError(f"string_handle is {string_handle!r}, expected a string scalar")
        handle = add_op(iterator_ops.FROM_STRING_HANDLE, convert_to_tensor(string_handle, dtypes.string))
        return Iterator(handle, None, output_types, output_shapes, output_classes)

    @property
    def initializer(self) -> Operation:
        """The operation that begins at the first element.

        Raises:
            ValueError: The iterator begins by itself, or `make_initializer` makes its initializers.
        """
        if self._initializer is None:
            raise ValueError("the iterator has no initializer of its own: see make_initializer")
        return self._initializer

    def make_initializer(self, dataset: Any, name: str | None = None) -> Operation:
        """An operation that begins at the first element of `dataset`.

        Raises:
            TypeError: (and ValueError) Its elements are of other dtypes or shapes than the iterator's.
        """
        shapes = nest.flatten(self.output_shapes)
        if not have_same_kinds(self._kinds, dataset._kinds):
            expected = f"Expected output types {self.output_types!r} and classes {self.output_classes!r}"
            raise ArgumentError(f"{expected} but got dataset with output types and classes of {dataset!r}")
        if not all(mine.is_compatible_with(other) for mine, other in zip(shapes, dataset._shapes, strict=True)):
            expected = f"Expected output shapes compatible with {self.output_shapes!r}"
            raise ArgumentError(f"{expected} but got dataset with output shapes {dataset.output_shapes!r}")
        result: Operation = add_op(iterator_ops.MAKE_ITERATOR, self.handle, dataset._variant_tensor, name=name)
        return result

    def get_next(self, name: str | None = None) -> Any:
        """The next element, as tensors.

        Raises:
            OutOfRangeError: At run time, there are no more.
            FailedPreconditionError: At run time, the iterator has not been initialised.
        """
        self._calls += 1
        if self._calls > GET_NEXT_CALL_WARNING_THRESHOLD:
            warnings.warn(GET_NEXT_CALL_WARNING_MESSAGE, stacklevel=2)
        attrs = carriers_in_attrs(self._kinds, self.output_shapes)
        components = add_op(iterator_ops.GET_NEXT, self.handle, self._sources(), name=name, **attrs)
        return unwrapped(self._kinds, self.output_shapes, components)

    def string_handle(self, name: str | None = None) -> Tensor:
        """String scalar by which `from_string_handle` finds the iterator; always the same one without a name."""
        return self._string_handle if name is None else self._handle_as_string(name)

    def _handle_as_string(self, name: str | None) -> Tensor:
        return add_op(iterator_ops.STRING_HANDLE, self.handle, self._sources(), name=name)

    def _sources(self) -> list[Tensor]:
        """The dataset that it begins by itself, if any."""
        return [] if self._source is None else [self._source]
