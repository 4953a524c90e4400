"""Sparse tensors in other forms: transposed, reshaped, cut, joined, and with elements taken out or added."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, Final, NamedTuple

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import by_either_name
from tfray.framework.constant_value import constant_shape, constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.op_def import Array, KernelContext, OpDef, on_cpu, register
from tfray.framework.shape_functions import normalize_axis
from tfray.framework.sparse_tensor import SparseLike, SparseTensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import fill, ones_like, where, zeros_like
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.arrays.gather_ops import gather, gather_nd
from tfray.ops.arrays.join_ops import concat, size_along, stack
from tfray.ops.arrays.partition_ops import setdiff1d
from tfray.ops.arrays.shape_ops import cast, expand_dims, host_ints, identity, index_tensor, reshape
from tfray.ops.arrays.shape_ops import shape as shape_of
from tfray.ops.checks.check_ops import assert_less_equal
from tfray.ops.checks.print_assert_ops import Assert
from tfray.ops.kernels.coordinates import check_coordinates, coordinates, positions
from tfray.ops.math.arithmetic_ops import maximum, minimum
from tfray.ops.math.comparison_ops import equal, greater_equal, less, logical_and
from tfray.ops.math.reduction_ops import reduce_all, reduce_max
from tfray.ops.math.rounding_ops import floormod
from tfray.ops.math.segment_ops import unsorted_segment_sum
from tfray.ops.sparse.sparse_ops import as_sparse, sparse_reorder, sparse_tensor_to_dense


def _as_int64(value: TensorLike, integers: bool = False) -> Tensor:
    tensor = convert_to_tensor(value, preferred_dtype=dtypes.int64)
    if integers and not tensor.dtype.is_integer:
        raise ArgumentError(f"{value!r} is {tensor.dtype.name}, expected integers")
    return cast(tensor, dtypes.int64)


def rank_of(sparse: SparseTensor, *others: SparseTensor) -> int | Tensor:
    """The rank of a sparse tensor, and of others of the same rank; an int32 scalar where only a step knows it.

    Raises:
        ValueError: They have several.
    """
    size = TensorShape([None])
    for each in (sparse, *others):
        size = size.merge_with(each.dense_shape.shape).merge_with(each.indices.shape.with_rank(2)[1:])
    return shape_of(sparse.dense_shape)[0] if size.sizes[0] is None else size.sizes[0]


def dimensions(rank: int | Tensor) -> Any:
    """The numbers of the dimensions: an array, or an int32 vector where only a step knows the rank."""
    return range_(rank) if isinstance(rank, Tensor) else np.arange(rank, dtype=np.int32)


def _is_along(axis: int, rank: int | Tensor) -> Any:
    """For each dimension 1 if it is `axis`, else 0, as int64. Raises `ValueError` if the graph knows there is none."""
    if isinstance(rank, Tensor):
        return cast(equal(dimensions(rank), axis if axis >= 0 else rank + axis), dtypes.int64)
    return (dimensions(rank) == normalize_axis(axis, rank)).astype(np.int64)


# -- order of dimensions -------------------------------------------------------------------------------


def sparse_transpose(sp_input: SparseLike, perm: TensorLike | None = None, name: str | None = None) -> SparseTensor:
    """Put the dimensions of a sparse tensor in another order.

    Args:
        sp_input: A `SparseTensor` of any shape and dtype.
        perm: For each dimension of the result the one of `sp_input`, an integer vector; reversed when None.
        name: Name scope of the operations.

    Returns:
        Shape ``[sp_input.shape[perm[0]], ...]``.

    Raises:
        InvalidArgumentError: `perm` is not the dimensions in some order.
    """
    with get_default_graph().name_scope(name or "SparseTranspose"):
        sparse = as_sparse(sp_input)
        if perm is None:
            perm = dimensions(rank_of(sparse))[::-1]
        if not isinstance(perm, Tensor) and np.ndim(perm) != 1:  # type: ignore[arg-type]
            raise ArgumentError(f"sparse_transpose: perm is {perm!r}, expected a list of dimensions")
        perm = index_tensor(perm)
        perm.shape.assert_is_compatible_with(sparse.dense_shape.shape)
        known = constant_value(perm)
        if known is not None and sorted(known) != list(range(len(known))):
            raise InvalidArgumentError(f"sparse_transpose: {known.tolist()} are not the dimensions in some order")
        moved = SparseTensor(
            gather(sparse.indices, perm, axis=1), sparse.values, gather(sparse.dense_shape, perm, axis=0)
        )
        return sparse_reorder(moved)


def sparse_reshape(sp_input: SparseLike, shape: TensorLike, name: str | None = None) -> SparseTensor:
    """Give a sparse tensor another shape with as many elements, absent ones included.

    Args:
        sp_input: A `SparseTensor` of any shape and dtype.
        shape: The new shape, an integer vector; one size may be -1: what is left.
        name: Name of the operation.

    Returns:
        Shape `shape`.

    Raises:
        InvalidArgumentError: `shape` has more than one -1, or another number of elements; while running, if the graph
            does not say so.
    """
    sparse = as_sparse(sp_input)
    indices, dense_shape = add_op(SPARSE_RESHAPE, sparse.indices, sparse.dense_shape, _as_int64(shape), name=name)
    return SparseTensor(indices, identity(sparse.values), dense_shape)


def _sparse_reshape_kernel(ctx: KernelContext, indices: Array, old: Array, new: Array) -> tuple[Array, Array]:
    old_sizes, new_sizes = host_ints(ctx, old), host_ints(ctx, new)
    check_coordinates(indices, None, old_sizes)
    new_sizes = _other_sizes(old_sizes, new_sizes)
    return coordinates(positions(indices, old_sizes), new_sizes), np.array(new_sizes, np.int64)


def _other_sizes(old_sizes: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """The sizes `wanted`, -1 replaced. Raises `InvalidArgumentError` if they hold another number of elements."""
    total, known = _count(old_sizes), _count([size for size in wanted if size != -1])
    is_inferred = wanted.count(-1) == 1 and known and total % known == 0
    sizes = [total // known if size == -1 and is_inferred else size for size in wanted]
    if _count(sizes) != total or min(sizes, default=0) < 0:
        raise InvalidArgumentError(f"a tensor of shape {old_sizes} cannot have shape {wanted}")
    return sizes


def _count(sizes: Sequence[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


def _sparse_reshape_shape(op: Operation) -> list[TensorShape]:
    indices, old, new = (tensor.shape for tensor in op.inputs)
    indices, new = indices.with_rank(2).merge_with([None, old.with_rank(1).sizes[0]]), new.with_rank(1)
    before, wanted = constant_shape(op.inputs[1]), constant_value(op.inputs[2])
    if new.sizes[0] == 0:
        wanted = np.zeros(0, np.int64)
    if before.is_fully_defined() and wanted is not None:
        _other_sizes([size for size in before.sizes if size is not None], wanted.tolist())
    return [TensorShape([indices.sizes[0], new.sizes[0]]), new]


SPARSE_RESHAPE = register(
    OpDef(
        name="SparseReshape",
        inputs=("input_indices: int64", "input_shape: int64", "new_shape: int64"),
        outputs=("output_indices: int64", "output_shape: int64"),
        shape=_sparse_reshape_shape,
        kernels=on_cpu(_sparse_reshape_kernel),
    )
)


def sparse_expand_dims(sp_input: SparseLike, axis: TensorLike | None = None, name: str | None = None) -> SparseTensor:
    """Insert a dimension of size 1.

    Args:
        sp_input: A `SparseTensor` of any shape and dtype.
        axis: Where it stands in the result, an integer or an integer scalar; negative ones count from the end, None is
            the last place.
        name: Name scope of the operations.

    Returns:
        The shape of `sp_input` with a size of 1 at `axis`.
    """
    with get_default_graph().name_scope(name or "ExpandDims"):
        sparse = as_sparse(sp_input)
        rank = rank_of(sparse)
        if isinstance(rank, Tensor):
            raise ValueError(f"sparse_expand_dims needs a sparse tensor of known rank; got {sparse!r}")
        known: Any = constant_value(axis) if isinstance(axis, Tensor) else axis
        if isinstance(axis, Tensor) and known is None:
            axis = floormod(axis, rank + 1)
        else:
            axis = normalize_axis(-1 if known is None else index(known), rank + 1)
        zeros = zeros_like(sparse.indices[:, :1]) if rank else zeros_like(expand_dims(sparse.indices, -1)[:, 0])
        indices = concat([sparse.indices[:, :axis], zeros, sparse.indices[:, axis:]], 1)
        one = np.ones(1, np.int64)
        dense_shape = concat([sparse.dense_shape[:axis], one, sparse.dense_shape[axis:]], 0)
        return SparseTensor(indices, sparse.values, dense_shape)


# -- fewer and more elements ---------------------------------------------------------------------------


def sparse_retain(sp_input: SparseLike, to_retain: TensorLike) -> SparseTensor:
    """Keep some elements of a sparse tensor.

    Args:
        sp_input: A `SparseTensor` of any shape and dtype, with ``n`` elements.
        to_retain: Shape ``[n]``, bool or numbers: which to keep, those that are not 0.

    Returns:
        The same shape.
    """
    sparse, flags = as_sparse(sp_input), convert_to_tensor(to_retain)
    flags.shape.assert_is_compatible_with(sparse.values.shape)
    kept = reshape(where(flags), [-1])
    return SparseTensor(gather(sparse.indices, kept), gather(sparse.values, kept), identity(sparse.dense_shape))


def sparse_slice(sp_input: SparseLike, start: TensorLike, size: TensorLike, name: str | None = None) -> SparseTensor:
    """Cut a block out of a sparse tensor.

    Args:
        sp_input: A `SparseTensor` of any shape and dtype.
        start: Where the block begins in each dimension, an integer vector.
        size: Its size in each dimension, an integer vector; it ends where the tensor does.
        name: Name scope of the operations.

    Returns:
        Shape `size`, or less at the end of the tensor.

    Raises:
        InvalidArgumentError: `start` or `size` is known not to have a number for each dimension.
    """
    with get_default_graph().name_scope(name or "SparseSlice"):
        sparse, start, size = as_sparse(sp_input), _as_int64(start, integers=True), _as_int64(size, integers=True)
        for given in (start, size):
            if not given.shape.is_compatible_with(sparse.dense_shape.shape):
                raise InvalidArgumentError(
                    f"sparse_slice: {given!r} has not a number for each dimension of {sp_input!r}"
                )
        sizes = maximum(minimum(size, sparse.dense_shape - start), 0)
        moved = sparse.indices - start
        inside = reduce_all(logical_and(greater_equal(moved, 0), less(moved, sizes)), 1)
        kept = where(inside)
        # By two indices: the gradient of `gather_nd` has the shape of all values then, as in TensorFlow.
        values = gather_nd(expand_dims(sparse.values, 1), concat([kept, zeros_like(kept)], 1))
        return SparseTensor(gather(moved, reshape(kept, [-1])), values, sizes)


class _Required:
    """Marks an argument that is to be passed by name."""


_REQUIRED: Final = _Required()


def sparse_split(
    keyword_required: Any = _REQUIRED,
    sp_input: SparseLike | None = None,
    num_split: int | None = None,
    axis: int | None = None,
    name: str | None = None,
    split_dim: int | None = None,
) -> list[SparseTensor]:
    """Cut a sparse tensor into parts along a dimension. Arguments are passed by name.

    Args:
        keyword_required: Not used.
        sp_input: A `SparseTensor` of any shape and dtype.
        num_split: Number of parts. Where it does not divide the size, the first parts are larger by one.
        axis: The dimension.
        name: Name scope of the operations.
        split_dim: Old name of `axis`.

    Returns:
        The parts: the shape of `sp_input` but for the size of the dimension.

    Raises:
        ValueError: Arguments are missing, or passed by position.
        InvalidArgumentError: While running: there are more parts than the size of the dimension.
    """
    axis = by_either_name("sparse_split", axis=axis, split_dim=split_dim)
    if keyword_required is not _REQUIRED or sp_input is None or num_split is None or axis is None:
        given = {"sp_input": sp_input, "num_split": num_split, "axis": axis}
        missing = [f"{argument} is required: " for argument, value in given.items() if value is None]
        raise ValueError(f"{''.join(missing[:1])}sparse_split takes sp_input=, num_split= and axis=, all by name")
    if num_split < 1:
        raise ValueError(f"sparse_split: num_split is {num_split}, expected at least 1")
    with get_default_graph().name_scope(name or "SparseSplit"):
        sparse = as_sparse(sp_input)
        axis = index(axis)
        along = _is_along(axis, rank_of(sparse))
        whole = sparse.dense_shape[axis]
        is_enough = Assert(greater_equal(whole, num_split), ["sparse_split: more parts than the size:", whole])
        with get_default_graph().control_dependencies([is_enough]):
            whole = identity(whole)
        size, rest = whole // num_split, whole % num_split
        parts = []
        for number in range(num_split):
            begin = minimum(rest, number) + size * number
            length = size + cast(less(number, rest), dtypes.int64)
            parts.append(sparse_slice(sparse, begin * along, sparse.dense_shape * (1 - along) + length * along))
        return parts


def sparse_concat(
    axis: int,
    sp_inputs: Sequence[SparseLike],
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: int | None = None,
    expand_nonconcat_dims: bool | None = None,
) -> SparseTensor:
    """Join sparse tensors along a dimension.

    Args:
        axis: The dimension; negative ones count from the end.
        sp_inputs: `SparseTensor`s of one rank and dtype.
        name: Name scope of the operations.
        expand_nonconcat_dim: Let other dimensions differ: the largest counts. Without, they must agree.
        concat_dim: Old name of `axis`.
        expand_nonconcat_dims: Newer name of `expand_nonconcat_dim`.

    Returns:
        The shape of the first, with the sum of the sizes along `axis`.

    Raises:
        InvalidArgumentError: While running: other dimensions differ, and may not.
    """
    axis = axis if concat_dim is None else concat_dim
    expands = expand_nonconcat_dim if expand_nonconcat_dims is None else expand_nonconcat_dims
    with get_default_graph().name_scope(name or "SparseConcat"):
        if not isinstance(sp_inputs, (list, tuple)):
            raise TypeError(f"sparse_concat: sp_inputs is {sp_inputs!r}, expected a list")
        sparse = [as_sparse(each) for each in sp_inputs]
        if not sparse:
            raise ValueError("sparse_concat needs at least one sparse tensor")
        rank, axis = rank_of(*sparse), index(axis)
        along = _is_along(axis, rank)
        shapes = [each.dense_shape for each in sparse]
        offset = convert_to_tensor(0, dtypes.int64)
        indices = []
        for each in sparse:
            indices.append(each.indices + offset * along)
            offset = each.dense_shape[axis] + offset
        largest = reduce_max(stack(shapes), 0)
        if not expands:
            # Not `assert_equal`, which refuses what the graph knows: TensorFlow finds it in the step.
            agree = reduce_all(equal(stack(shapes) * (1 - along), shapes[0] * (1 - along)))
            check = Assert(agree, ["sparse_concat: Input shapes must match beside the axis:", *shapes])
            with get_default_graph().control_dependencies([check]):
                largest = identity(largest)
        shape = largest * (1 - along) + offset * along
        shape.set_shape([None if isinstance(rank, Tensor) else rank])
        return sparse_reorder(SparseTensor(concat(indices, 0), concat([each.values for each in sparse], 0), shape))


def sparse_reset_shape(sp_input: SparseLike, new_shape: TensorLike | None = None) -> SparseTensor:
    """Give a sparse tensor another dense shape, its elements staying where they are.

    Args:
        sp_input: A `SparseTensor` of any shape and dtype.
        new_shape: Sizes that are at least the old ones, an integer vector; when None the smallest that hold all
            elements.

    Returns:
        Shape `new_shape`, the same elements.

    Raises:
        ValueError: The shapes are known, and `new_shape` is smaller or of another rank.
        InvalidArgumentError: While running: `new_shape` is smaller.
    """
    sparse = as_sparse(sp_input)
    if new_shape is None:
        wanted = maximum(reduce_max(concat([sparse.indices, zeros_like(stack([sparse.dense_shape])) - 1], 0), 0) + 1, 0)
        return SparseTensor(identity(sparse.indices), identity(sparse.values), wanted)
    wanted = _as_int64(new_shape)
    wanted.shape.assert_is_compatible_with(sparse.dense_shape.shape)
    known, before = constant_value(wanted), constant_shape(sparse.dense_shape)
    if known is not None and before.is_fully_defined() and (known < np.array(before.as_list())).any():
        raise ValueError(f"the new shape {known.tolist()} is smaller than {before}")
    check = assert_less_equal(sparse.dense_shape, wanted, message="sparse_reset_shape: the new shape is smaller")
    with get_default_graph().control_dependencies([] if check is None else [check]):
        return SparseTensor(identity(sparse.indices), identity(sparse.values), identity(wanted))


class FilledRows(NamedTuple):
    """What `sparse_fill_empty_rows` returns.

    Attributes:
        sp_ordered_output: The `SparseTensor`, its rows in order.
        empty_row_indicator: Shape ``[rows]``, bool: which rows were empty.
    """

    sp_ordered_output: SparseTensor
    empty_row_indicator: Tensor


def sparse_fill_empty_rows(sp_input: SparseLike, default_value: TensorLike, name: str | None = None) -> FilledRows:
    """Put an element at the beginning of every row that has none.

    Args:
        sp_input: A `SparseTensor` of any shape and dtype.
        default_value: The element, a scalar.
        name: Name scope of the operations.

    Returns:
        ``(sp_ordered_output, empty_row_indicator)``: the filled tensor, of the same shape, and which rows were filled,
        bool of shape ``[rows]``.
    """
    with get_default_graph().name_scope(name or "SparseFillEmptyRows"):
        sparse = as_sparse(sp_input)
        default = convert_to_tensor(default_value, sparse.dtype)
        rows = sparse.indices[:, 0]
        counts = unsorted_segment_sum(ones_like(rows), rows, sparse.dense_shape[0])
        is_empty = equal(counts, 0)
        filled = where(is_empty)
        others = fill(stack([shape_of(filled)[0], size_along(sparse.indices, 1) - 1]), np.int64(0))
        indices = concat([sparse.indices, concat([filled, others], 1)], 0)
        values = concat([sparse.values, fill(shape_of(filled)[:1], default)], 0)
        # By rows alone: elements of one row stay in the order in which they are.
        by_rows = sparse_reorder(SparseTensor(indices[:, :1], range_(shape_of(indices)[0]), sparse.dense_shape[:1]))
        order = by_rows.values
        return FilledRows(SparseTensor(gather(indices, order), gather(values, order), sparse.dense_shape), is_empty)


# -- ids and words -------------------------------------------------------------------------------------


def sparse_merge(
    sp_ids: SparseLike,
    sp_values: SparseLike,
    vocab_size: TensorLike,
    name: str | None = None,
    already_sorted: bool = False,
) -> SparseTensor:
    """Combine ids and their values into one sparse tensor that is indexed by the ids.

    Args:
        sp_ids: A `SparseTensor` of shape ``[..., n]`` of integers, or a list of them, one per new dimension.
        sp_values: A `SparseTensor` of the same shape and positions, any dtype.
        vocab_size: Size of the new last dimension, an integer scalar, or a list with one size for each of `sp_ids`.
        name: Name scope of the operations.
        already_sorted: The ids of each row are in order already.

    Returns:
        Shape ``[..., vocab_size]``: in each row the values, each at its id.

    Raises:
        TypeError: A list of sizes for a single tensor of ids, or the other way round; a size that is no integer.
        ValueError: A list of sizes that has not as many as `sp_ids`.
    """
    with get_default_graph().name_scope(name or "SparseMerge"):
        many = sp_ids if isinstance(sp_ids, (list, tuple)) and not hasattr(sp_ids, "_fields") else [sp_ids]
        if (many is sp_ids) != isinstance(vocab_size, (list, tuple)):
            raise TypeError(f"vocab_size is {vocab_size!r}, expected an integer for a tensor of ids, a list for a list")
        sizes = vocab_size if isinstance(vocab_size, (list, tuple)) else [vocab_size]
        if len(many) != len(sizes):
            raise ValueError(f"sparse_merge takes one vocab_size for each of sp_ids, got {len(sizes)} for {len(many)}")
        for size in sizes:
            if not isinstance(size, (Tensor, int, np.integer)):
                raise TypeError(f"vocab_size is {size!r}, expected an integer or a tensor")
        tail = [_as_int64(size) for size in sizes]
        for tensor in tail:
            tensor.shape.assert_has_rank(0)
        ids, values = [as_sparse(each, "sp_ids") for each in many], as_sparse(sp_values, "sp_values")
        columns = [expand_dims(_as_int64(each.values), 1) for each in ids]
        indices = concat([ids[0].indices[:, :-1], *columns], 1)
        merged = SparseTensor(indices, values.values, concat([ids[0].dense_shape[:-1], stack(tail)], 0))
        return merged if already_sorted else sparse_reorder(merged)


def sparse_to_indicator(sp_input: SparseLike, vocab_size: int, name: str | None = None) -> Tensor:
    """Which ids occur in each row of a sparse tensor.

    Args:
        sp_input: A `SparseTensor` of shape ``[..., n]`` of integers in ``[0, vocab_size)``.
        vocab_size: Size of the last dimension of the result.
        name: Name scope of the operations.

    Returns:
        Shape ``[..., vocab_size]``, bool.
    """
    with get_default_graph().name_scope(name or "SparseToIndicator"):
        sparse = as_sparse(sp_input)
        flags = SparseTensor(sparse.indices, fill(shape_of(sparse.values), True), sparse.dense_shape)
        merged = sparse_merge(sparse, flags, vocab_size)
        # Count an id that occurs twice only once.
        return sparse_tensor_to_dense(merged, False, validate_indices=False)


def sparse_mask(a: IndexedSlices, mask_indices: TensorLike, name: str | None = None) -> IndexedSlices:
    """Leave rows out of an `IndexedSlices`.

    Args:
        a: The rows, of shape ``[n, ...]``.
        mask_indices: The indices to leave out, an integer vector.
        name: Name scope of the operations.

    Returns:
        The rows that are left, of shape ``[kept, ...]``.
    """
    with get_default_graph().name_scope(name or "sparse_mask"):
        left = setdiff1d(a.indices, convert_to_tensor(mask_indices, a.indices.dtype))
        return IndexedSlices(gather(a.values, left.idx), left.out, a.dense_shape)
