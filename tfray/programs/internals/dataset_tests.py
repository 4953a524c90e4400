"""`tensorflow.python.data.kernel_tests.test_base`: what TensorFlow's tests of datasets share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tfray.errors import CancelledError, OutOfRangeError
from tfray.framework import nest
from tfray.framework.dtypes import DTypeLike, int64, string
from tfray.framework.sparse_tensor import SparseTensor, SparseTensorValue
from tfray.framework.type_aliases import TensorLike
from tfray.library.input.dataset_iterators import Iterator as DatasetIterator
from tfray.library.input.datasets import Dataset
from tfray.library.platform.test_case import TestCase
from tfray.ops.arrays.broadcast_ops import zeros
from tfray.ops.control.tensor_array_ops import TensorArray

__all__ = ["DatasetTestBase"]

_SPARSE = (SparseTensor, SparseTensorValue)


class DatasetTestBase(TestCase):
    """A test of datasets."""

    def assert_op_cancelled(self, op: Any) -> None:
        """Check that a tensor or operation is cancelled when it runs."""
        with self.assertRaises(CancelledError):
            self.evaluate(op)

    def assertValuesEqual(self, expected: Any, actual: Any) -> None:
        """Check that two arrays are equal, or two values of sparse tensors."""
        if not isinstance(expected, _SPARSE):
            self.assertAllEqual(expected, actual)
            return
        for part in ("indices", "values", "dense_shape"):
            self.assertAllEqual(getattr(expected, part), getattr(actual, part))

    def assertSparseValuesEqual(self, a: Any, b: Any) -> None:
        """Check that two values of sparse tensors are equal."""
        self.assertValuesEqual(a, b)

    def getNext(
        self, dataset: Dataset, requires_initialization: bool = False, shared_name: str | None = None
    ) -> Callable[[], Any]:
        """A function that returns the next element, as tensors to evaluate; a `TensorArray` is stacked.

        Args:
            dataset: The dataset.
            requires_initialization: Whether it uses what is around it, variables for example.
            shared_name: Name of the iterator, for other sessions.
        """
        iterator: DatasetIterator
        if requires_initialization:
            iterator = dataset.make_initializable_iterator(shared_name)
            self.evaluate(iterator.initializer)
        else:
            iterator = dataset.make_one_shot_iterator()
        element = iterator.get_next()
        return lambda: element.stack() if isinstance(element, TensorArray) else element

    def assertDatasetProduces(
        self,
        dataset: Dataset,
        expected_output: Sequence[Any] | None = None,
        expected_shapes: Any = None,
        expected_error: tuple[type[Exception], Any] | None = None,
        requires_initialization: bool = False,
        num_test_iterations: int = 1,
        assert_items_equal: bool = False,
        expected_error_iter: int = 1,
    ) -> None:
        """Check that a dataset has certain elements and then ends, or that it fails.

        Args:
            dataset: The dataset.
            expected_output: Its elements.
            expected_shapes: Its static shapes, in the structure of an element.
            expected_error: In place of elements: a kind of error, and an expression for its message, or a function of
                the error that returns whether it is the right one.
            requires_initialization: See `getNext`.
            num_test_iterations: How often to walk through it.
            assert_items_equal: Whether the elements may come in any order.
            expected_error_iter: At which element the error is expected, counted from 1.
        """
        if (expected_output is None) == (expected_error is None):
            self.fail("Exactly one of expected_output or expected error should be provided.")
        if expected_error is not None:
            with self.assertRaisesWithPredicateMatch(*expected_error):
                get_next = self.getNext(dataset, requires_initialization)
                for _ in range(expected_error_iter):
                    self.evaluate(get_next())
            return
        if expected_shapes:
            self.assertEqual(expected_shapes, dataset.output_shapes)
        self.assertGreater(num_test_iterations, 0)
        assert expected_output is not None
        for _ in range(num_test_iterations):
            get_next = self.getNext(dataset, requires_initialization)
            found = [self.evaluate(get_next()) for _ in expected_output]
            self._check_elements(found, expected_output, assert_items_equal)
            for _ in range(2):  # once it has ended, it stays so
                with self.assertRaises(OutOfRangeError):
                    self.evaluate(get_next())

    def _check_elements(self, found: Sequence[Any], expected: Sequence[Any], in_any_order: bool) -> None:
        if in_any_order:
            self.assertCountEqual(found, expected)
            return
        for one, other in zip(found, expected, strict=True):
            parts, wanted = _parts(one), _parts(other)
            self.assertEqual(len(parts), len(wanted), f"{one!r} has another structure than {other!r}")
            for part, value in zip(parts, wanted, strict=True):
                self.assertValuesEqual(value, part)

    def assertDatasetsEqual(self, dataset1: Dataset, dataset2: Dataset) -> None:
        """Check that two datasets have equal elements: numbers up to rounding."""
        types = nest.flatten(dataset1.output_types)
        self.assertEqual(types, nest.flatten(dataset2.output_types))
        for one, other in zip(self._elements(dataset1), self._elements(dataset2), strict=True):
            for dtype, part, value in zip(types, _parts(one), _parts(other), strict=True):
                if isinstance(part, _SPARSE):
                    self.assertValuesEqual(part, value)
                elif dtype is string:
                    self.assertAllEqual(part, value)
                else:
                    self.assertAllClose(part, value)

    def _elements(self, dataset: Dataset) -> Iterator[Any]:
        get_next = self.getNext(dataset)
        while True:
            try:
                yield self.evaluate(get_next())
            except OutOfRangeError:
                return

    def assertDatasetsRaiseSameError(
        self,
        dataset1: Dataset,
        dataset2: Dataset,
        exception_class: type[Exception],
        replacements: Iterable[tuple[str, str, int]] = (),
    ) -> None:
        """Check that the first elements of two datasets raise errors of one kind and message.

        Args:
            dataset1: One dataset.
            dataset2: The other.
            exception_class: The kind of error.
            replacements: What is replaced in the message of the first, by what, and how often, as for `str.replace`.
        """
        with self.assertRaises(exception_class) as caught:
            self.evaluate(self.getNext(dataset1)())
        message = getattr(caught.exception, "message", str(caught.exception))
        for old, new, count in replacements or ():
            message = message.replace(old, new, count)
        with self.assertRaisesRegex(exception_class, re.escape(message)):
            self.evaluate(self.getNext(dataset2)())

    def structuredDataset(self, dataset_structure: Any, shape: TensorLike = (), dtype: DTypeLike = int64) -> Dataset:
        """A dataset of one element, zeros, whose structure is that of nested tuples of None."""
        if dataset_structure is None:
            return Dataset.from_tensors(zeros(shape, dtype))
        return Dataset.zip(tuple(self.structuredDataset(inner, shape, dtype) for inner in dataset_structure))

    def structuredElement(self, element_structure: Any, shape: TensorLike = (), dtype: DTypeLike = int64) -> Any:
        """Zeros in the structure of nested tuples of None."""
        if element_structure is None:
            return zeros(shape, dtype)
        return tuple(self.structuredElement(inner, shape, dtype) for inner in element_structure)


def _parts(element: Any) -> list[Any]:
    """The values of an element. That of a sparse tensor is one; a list is one, as it is for a dataset."""
    if isinstance(element, dict):
        return [part for key in sorted(element) for part in _parts(element[key])]
    if isinstance(element, tuple) and not isinstance(element, SparseTensorValue):
        return [part for each in element for part in _parts(each)]
    return [element]
