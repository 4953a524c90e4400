"""Functions over the elements of tensors along their first axis: `map_fn`, `foldl`, `foldr` and `scan`.

They are built from `while_loop` and `TensorArray`. Gradients, and variables inside the functions, work as in
`while_loop`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes, nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import as_dtype
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Structure, TensorLike
from tfray.ops.arrays.shape_ops import shape as shape_of
from tfray.ops.arrays.source_ops import placeholder
from tfray.ops.control.control_flow_ops import counted_loop
from tfray.ops.control.tensor_array_ops import TensorArray
from tfray.ops.control.type_specs import SparseTensorSpec, TensorSpec
from tfray.ops.sparse.sparse_transport_ops import deserialize_sparse, serialize_many_sparse, serialize_sparse


class _Elements:
    """The elements of a nested structure of tensors whose first axes have the same size.

    Attributes:
        count: Their number, an integer where it is known, otherwise an int32 scalar.
        static_count: Their number, or None.
    """

    def __init__(self, structure: Structure, what: str) -> None:
        self._structure = nest.map_structure(_as_elements, structure)
        leaves = nest.flatten(self._structure)
        # An element of a sparse tensor is a row of three strings until it is asked for.
        self.tensors: list[Tensor] = [
            serialize_many_sparse(leaf, out_type=dtypes.string) if isinstance(leaf, SparseTensor) else leaf
            for leaf in leaves
        ]
        for tensor, leaf in zip(self.tensors, leaves, strict=True):
            if isinstance(leaf, SparseTensor):
                tensor.set_shape([leaf.shape.with_rank_at_least(1)[0] if leaf.shape.rank is not None else None, 3])
        if not self.tensors:
            raise ValueError(f"{what}: elems has no tensors")
        self.static_count: int | None = None
        for tensor in self.tensors:
            self._merge(tensor, what)
        first = self.tensors[0]
        known = first.shape.sizes[0] if first.shape.rank else None
        # Where only the others' number is known, the first one's may be another: the step finds out.
        self.count: Any = shape_of(first)[0] if known is None else known
        self._arrays = [TensorArray(tensor.dtype, self.count).unstack(tensor) for tensor in self.tensors]

    def _merge(self, tensor: Tensor, what: str) -> None:
        if tensor.shape.rank is None:
            return
        if tensor.shape.rank == 0:
            many = len(self.tensors) > 1
            expected = "1+ dimensional Tensors, not scalars" if many else "a 1+ dimensional Tensor, not a scalar"
            raise InvalidArgumentError(f"{what}: elems must be {expected}: {tensor!r}", site=tensor.op.site)
        count = tensor.shape.sizes[0]
        if None not in (count, self.static_count) and count != self.static_count:
            raise InvalidArgumentError(
                f"{what}: the elems have {self.static_count} and {count} elements along their first axes",
                site=tensor.op.site,
            )
        self.static_count = count if self.static_count is None else self.static_count

    @property
    def dtypes(self) -> Any:
        """The dtypes, in the form of the structure; a `SparseTensorSpec` for a sparse tensor."""
        return nest.map_structure(
            lambda leaf: SparseTensorSpec(None, leaf.dtype) if isinstance(leaf, SparseTensor) else leaf.dtype,
            self._structure,
        )

    def at(self, index: TensorLike) -> Any:
        """The elements at `index`, in the form of the structure."""
        read = [array.read(index) for array in self._arrays]
        leaves = zip(read, nest.flatten(self._structure), strict=True)
        return nest.pack_sequence_as(
            self._structure,
            [_element_of(part, leaf) if isinstance(leaf, SparseTensor) else part for part, leaf in leaves],
        )


def _as_elements(value: TensorLike) -> Any:
    return value if isinstance(value, SparseTensor) else convert_to_tensor(value)


def _element_of(part: Tensor, whole: SparseTensor) -> SparseTensor:
    rank = whole.shape.rank
    element = deserialize_sparse(part, whole.dtype, None if rank is None else rank - 1)
    inner = None if rank is None else whole.shape[1:]
    if inner is None or not inner.is_fully_defined():
        return element
    return SparseTensor(element.indices, element.values, np.array(inner.as_list(), np.int64))


def _checked_function(fn: object, what: str) -> None:
    if not callable(fn):
        raise TypeError(f"{what}: fn must be callable, not {fn!r}")


def map_fn(
    fn: Callable[[Any], Any],
    elems: Structure,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """Apply `fn` to every element along the first axis of `elems`, and stack the results.

    Args:
        fn: From one element, in the structure of `elems`, to a structure of tensors.
        elems: A tensor of shape ``[n, ...]``, or a nested structure of tensors with first axes of one size. Those of
            rank 2 and more may be sparse: `fn` gets sparse elements. No gradients flow to these.
        dtype: Dtypes of what `fn` returns, in its structure; those of `elems` when None. A `tf.SparseTensorSpec` says
            that a result is sparse.
        parallel_iterations: Accepted for TensorFlow 1's sake.
        back_prop: Whether gradients flow through.
        swap_memory: As for `tf.while_loop`.
        infer_shape: Require that all results of `fn` have one shape.
        name: Name scope.
        fn_output_signature: Another spelling of `dtype`.

    Returns:
        The results, each with a new first axis: shape ``[n, ...]``. Those of sparse results have in each dimension
        the largest size of all.

    Raises:
        TypeError: `fn` is not a function, or returns another structure or dtype than expected.
        InvalidArgumentError: The `elems` have different numbers of elements, or are scalars.

    Examples:
        >>> session.run(tf.map_fn(lambda x: x * x, tf.constant([1, 2, 3])))
        array([1, 4, 9], dtype=int32)
    """
    _checked_function(fn, "map_fn")
    with get_default_graph().name_scope(name or "map"):
        elements = _Elements(elems, "map_fn")
        given = dtype if fn_output_signature is None else fn_output_signature
        wanted = elements.dtypes if given is None else nest.map_structure(_signature, given)
        arrays = nest.map_structure(
            lambda each: TensorArray(_array_dtype(each), elements.count, infer_shape=infer_shape), wanted
        )

        def body(i: Tensor, arrays: Any) -> Any:
            results = _of_structure(fn(elements.at(i)), wanted, "map_fn")
            return i + 1, _written(arrays, i, results)

        _, arrays = counted_loop(
            lambda i, _: i < elements.count,
            body,
            (0, arrays),
            parallel_iterations=parallel_iterations or 10,
            back_prop=back_prop,
            swap_memory=swap_memory,
        )
        return nest.map_structure(lambda array, each: _result(_stacked(array, elements), each), arrays, wanted)


def _signature(spec: Any) -> Any:
    """A dtype, or the description of a sparse tensor."""
    return (
        spec if isinstance(spec, SparseTensorSpec) else as_dtype(spec.dtype if isinstance(spec, TensorSpec) else spec)
    )


def _array_dtype(wanted: Any) -> dtypes.DType:
    return dtypes.string if isinstance(wanted, SparseTensorSpec) else wanted


def _result(stacked: Tensor, wanted: Any) -> Any:
    if not isinstance(wanted, SparseTensorSpec):
        return stacked
    return deserialize_sparse(stacked, wanted.dtype, None if wanted.shape.rank is None else wanted.shape.rank + 1)


def vectorized_map(fn: Callable[[Any], Any], elems: Structure) -> Any:
    """Apply `fn` to every element along the first axis of `elems`, as `map_fn`, whatever dtypes it returns.

    Args:
        fn: From one element, in the structure of `elems`, to a structure of tensors.
        elems: A tensor of shape ``[n, ...]``, or a nested structure of tensors with first axes of one size.

    Returns:
        The results, each with a new first axis: shape ``[n, ...]``.

    Examples:
        >>> session.run(tf.vectorized_map(lambda x: x > 1, tf.constant([1, 2, 3])))
        array([False,  True,  True])
    """
    _checked_function(fn, "vectorized_map")
    elems = nest.map_structure(convert_to_tensor, elems)
    with get_default_graph().name_scope("vectorized_map"):
        # These operations only tell the dtypes: nothing is fed to them, and no step runs them.
        example = fn(nest.map_structure(lambda tensor: placeholder(tensor.dtype, tensor.shape[1:]), elems))
        wanted = nest.map_structure(lambda result: convert_to_tensor(result).dtype, example)
        return map_fn(fn, elems, wanted)


def _of_structure(results: Structure, wanted: Structure, what: str) -> Any:
    try:
        nest.assert_same_structure(wanted, results)
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"{what}: fn returns another structure than expected: {error}") from None
    leaves = zip(nest.flatten(results), nest.flatten(wanted), strict=True)
    return nest.pack_sequence_as(wanted, [_of_dtype(value, dtype, what) for value, dtype in leaves])


def _of_dtype(value: TensorLike, dtype: Any, what: str) -> Tensor:
    if isinstance(value, SparseTensor) or isinstance(dtype, SparseTensorSpec):
        return _serialized(value, dtype, what)
    tensor = value if isinstance(value, Tensor) else convert_to_tensor(value, preferred_dtype=dtype)
    if tensor.dtype is not dtype:
        raise TypeError(f"{what}: fn returns {tensor!r}, expected is {dtype.name}; say so by dtype=, or use tf.cast")
    return tensor


def _serialized(value: Any, spec: Any, what: str) -> Tensor:
    if not isinstance(spec, SparseTensorSpec):
        raise TypeError(f"{what}: fn returns {value!r}, expected is a tensor; say so by dtype=tf.SparseTensorSpec(...)")
    if not isinstance(value, SparseTensor):
        raise ArgumentError(f"{what}: fn returns {value!r}, expected is a sparse tensor")
    if value.dtype is not spec.dtype or not value.shape.is_compatible_with(spec.shape):
        raise ArgumentError(f"{what}: fn returns {value!r} of shape {value.shape}, expected is {spec}")
    return serialize_sparse(value, out_type=dtypes.string)


def _written(arrays: Any, index: TensorLike, values: TensorLike) -> Any:
    return nest.map_structure(lambda array, value: array.write(index, value), arrays, values)


def _stacked(array: TensorArray, elements: _Elements) -> Tensor:
    stacked = array.stack()
    shape = array.element_shape
    if shape.rank is not None:
        stacked.set_shape(TensorShape([elements.static_count, *shape.sizes]))
    return stacked


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Structure,
    initializer: Structure = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Combine the elements along the first axis of `elems`, from the first to the last.

    Args:
        fn: ``fn(accumulated, element)`` returns the next accumulated value, in the same structure.
        elems: A tensor of shape ``[n, ...]``, or a nested structure of tensors with first axes of one size.
        initializer: What to begin with, of any shape; the first element when None.
        parallel_iterations: Accepted for TensorFlow 1's sake.
        back_prop: Whether gradients flow through.
        swap_memory: As for `tf.while_loop`.
        name: Name scope.

    Returns:
        The accumulated value after the last element: the shape of `initializer`.

    Examples:
        >>> session.run(tf.foldl(lambda total, x: total + x, tf.constant([1, 2, 3])))
        np.int32(6)
    """
    options = {"parallel_iterations": parallel_iterations, "back_prop": back_prop, "swap_memory": swap_memory}
    return _fold(fn, elems, initializer, False, name or "foldl", options)


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Structure,
    initializer: Structure = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """As `foldl`, from the last element to the first: the result has the shape of `initializer` or of an element."""
    options = {"parallel_iterations": parallel_iterations, "back_prop": back_prop, "swap_memory": swap_memory}
    return _fold(fn, elems, initializer, True, name or "foldr", options)


def _fold(
    fn: Callable[[Any, Any], Any],
    elems: Structure,
    initializer: Structure,
    reverse: bool,
    name: str,
    options: dict[str, Any],
) -> Any:
    _checked_function(fn, name)
    with get_default_graph().name_scope(name):
        elements = _Elements(elems, name)
        first, accumulated, _ = _beginning(elements, initializer, reverse, name)

        def body(i: Tensor, accumulated: Structure) -> Any:
            return _next(i, reverse), _following(fn(accumulated, elements.at(i)), accumulated, name)

        condition = _within(elements, reverse)
        _, accumulated = counted_loop(lambda i, _: condition(i), body, (first, accumulated), **options)
        return accumulated


def _beginning(elements: _Elements, initializer: Structure, reverse: bool, what: str) -> tuple[Any, Any, Any]:
    """Index of the first element to combine, the accumulated value before it, and the index of that value or None."""
    start = elements.count - 1 if reverse else 0
    if initializer is not None:
        return start, nest.map_structure(convert_to_tensor, initializer), None
    if elements.static_count == 0:
        raise InvalidArgumentError(f"{what}: there are no elements, and no initializer")
    return _next(start, reverse), elements.at(start), start


def _next(index: Any, reverse: bool) -> Any:
    return index - 1 if reverse else index + 1


def _within(elements: _Elements, reverse: bool) -> Callable[[Tensor], Tensor]:
    return (lambda i: i >= 0) if reverse else (lambda i: i < elements.count)


def _following(value: TensorLike, accumulated: Structure, what: str) -> Any:
    return _of_structure(value, nest.map_structure(lambda tensor: tensor.dtype, accumulated), what)


def scan(
    fn: Callable[[Any, Any], Any],
    elems: Structure,
    initializer: Structure = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """As `foldl`, with every accumulated value: stacked along a new first axis, in the order of the elements.

    Args:
        fn: ``fn(accumulated, element)`` returns the next accumulated value, in the same structure.
        elems: A tensor of shape ``[n, ...]``, or a nested structure of tensors with first axes of one size.
        initializer: What to begin with, of any shape; it is not among the results. When None, the first element is
            used, and it is the first result.
        parallel_iterations: Accepted for TensorFlow 1's sake.
        back_prop: Whether gradients flow through.
        swap_memory: As for `tf.while_loop`.
        infer_shape: Require that all results of `fn` have one shape.
        reverse: Go from the last element to the first.
        name: Name scope.

    Returns:
        For each tensor of the accumulated value one of its shape with a new first axis.

    Examples:
        >>> session.run(tf.scan(lambda total, x: total + x, tf.constant([1, 2, 3])))
        array([1, 3, 6], dtype=int32)
    """
    name = name or "scan"
    _checked_function(fn, name)
    with get_default_graph().name_scope(name):
        elements = _Elements(elems, name)
        first, accumulated, begun = _beginning(elements, initializer, reverse, name)
        arrays = nest.map_structure(
            lambda tensor: TensorArray(tensor.dtype, elements.count, infer_shape=infer_shape), accumulated
        )
        if begun is not None:
            arrays = _written(arrays, begun, accumulated)

        def body(i: Tensor, accumulated: Structure, arrays: Any) -> Any:
            following = _following(fn(accumulated, elements.at(i)), accumulated, name)
            return _next(i, reverse), following, _written(arrays, i, following)

        condition = _within(elements, reverse)
        _, _, arrays = counted_loop(
            lambda i, *_: condition(i),
            body,
            (first, accumulated, arrays),
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            swap_memory=swap_memory,
        )
        return nest.map_structure(lambda array: _stacked(array, elements), arrays)
