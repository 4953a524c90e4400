"""Rules for sparse tensors, most of which tfray's functions make of several operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tfray.errors import InvalidArgumentError, UnimplementedError
from tfray.exchange.array_rules import through
from tfray.exchange.exports import Body, export
from tfray.exchange.node import Imported, Node, rule
from tfray.framework import dtypes
from tfray.framework.graph import Operation, Tensor
from tfray.framework.sparse_tensor import SparseTensor
from tfray.ops.arrays.broadcast_ops import broadcast_to, where, zeros_like
from tfray.ops.arrays.gather_ops import gather, gather_nd
from tfray.ops.arrays.shape_ops import cast, reshape, shape
from tfray.ops.math.arithmetic_ops import add, maximum, multiply, realdiv, sqrt
from tfray.ops.math.comparison_ops import equal
from tfray.ops.math.linalg_ops import matmul
from tfray.ops.math.reduction_ops import reduce_max, reduce_sum
from tfray.ops.math.rounding_ops import clip_by_value
from tfray.ops.math.scan_ops import cumprod, cumsum
from tfray.ops.math.segment_ops import unsorted_segment_sum
from tfray.ops.math.sorting_ops import searchsorted
from tfray.ops.sparse import sparse_cross_ops, sparse_layout_ops, sparse_map_ops, sparse_math_ops, sparse_transport_ops
from tfray.ops.sparse.set_ops import set_operation


def _sparse(node: Node, indices: str, values: str, sizes: str) -> SparseTensor:
    return SparseTensor(*(node.arg(name)[0] for name in (indices, values, sizes)))


def _operand(node: Node, prefix: str) -> SparseTensor:
    return _sparse(node, f"{prefix}_indices", f"{prefix}_values", f"{prefix}_shape")


def _parts(sparse: SparseTensor) -> list[Tensor]:
    return [sparse.indices, sparse.values, sparse.dense_shape]


def _made(node: Node, function: Callable[..., Any], *args: Any, **options: Any) -> Sequence[Imported]:
    """The parts of the sparse tensor that a function returns."""
    return through(node, lambda: _parts(function(*args, **options)))


# -- layout --------------------------------------------------------------------------------------------


@rule("SparseConcat")
def _concat(node: Node) -> Sequence[Imported]:
    operands = [SparseTensor(*each) for each in zip(*map(node.arg, ("indices", "values", "shapes")), strict=True)]
    return _made(node, sparse_layout_ops.sparse_concat, node.attrs["concat_dim"], operands)


@rule("SparseSplit")
def _split(node: Node) -> Sequence[Imported]:
    value, axis = _sparse(node, "indices", "values", "shape"), node.needed("split_dim")

    def parts() -> list[Tensor]:
        found = sparse_layout_ops.sparse_split(sp_input=value, num_split=node.attrs["num_split"], axis=axis)
        return [part for parts in zip(*map(_parts, found), strict=True) for part in parts]

    return through(node, parts)


@rule("SparseSlice")
def _slice(node: Node) -> Sequence[Imported]:
    value = _sparse(node, "indices", "values", "shape")
    return _made(node, sparse_layout_ops.sparse_slice, value, node.arg("start")[0], node.arg("size")[0])


@rule("SparseSliceGrad")
def _slice_gradient(node: Node) -> Sequence[Imported]:
    d_values, indices, start, kept = node.inputs
    return through(node, lambda: _found(d_values, add(kept, start), indices))


@rule("SparseFillEmptyRows")
def _fill_empty_rows(node: Node) -> Sequence[Imported]:
    def parts() -> list[Tensor]:
        value = _sparse(node, "indices", "values", "dense_shape")
        filled, is_empty = sparse_layout_ops.sparse_fill_empty_rows(value, node.arg("default_value")[0])
        steps = _steps(value.dense_shape)
        places = searchsorted(_keys(filled.indices, steps), _keys(value.indices, steps), out_type=dtypes.int64)
        return [filled.indices, filled.values, is_empty, places]

    return through(node, parts)


@rule("SparseFillEmptyRowsGrad")
def _fill_empty_rows_gradient(node: Node) -> Sequence[Imported]:
    places, d_filled = node.inputs
    for tensor in node.inputs:
        if tensor.shape.rank not in (1, None):
            raise InvalidArgumentError(f"Shape must be rank 1 but is rank {tensor.shape.rank}: {tensor!r}")

    def parts() -> list[Tensor]:
        d_values = gather(d_filled, places)
        return [d_values, reduce_sum(d_filled) - reduce_sum(d_values)]

    return through(node, parts)


@rule("SparseCross")
def _cross(node: Node) -> Sequence[Imported]:
    if node.attrs["hashed_output"]:
        buckets, key = node.attrs["num_buckets"], node.attrs["hash_key"]
        return _made(node, sparse_cross_ops.sparse_cross_hashed, _crossed(node), buckets, key)
    return _made(node, sparse_cross_ops.sparse_cross, _crossed(node))


@rule("SparseCrossV2")
def _cross_texts(node: Node) -> Sequence[Imported]:
    separator = node.needed("sep")
    if separator not in (b"_X_", "_X_"):
        raise UnimplementedError(f"{node.op} {node.name!r}: tfray joins crossed features by '_X_', not {separator!r}")
    return _made(node, sparse_cross_ops.sparse_cross, _crossed(node))


def _crossed(node: Node) -> list[Any]:
    sparse = zip(*map(node.arg, ("indices", "values", "shapes")), strict=True)
    return [*(SparseTensor(*each) for each in sparse), *node.arg("dense_inputs")]


@export("SparseCross")
def _write_cross(body: Body, op: Operation) -> None:
    count, hashed = op.attrs["sparse_inputs"], op.outputs[1].dtype is dtypes.int64
    if op.attrs["hash_key"] is None and hashed:
        raise UnimplementedError(f"{op.name!r} hashes as tf.contrib did: TensorFlow's operation needs a hash_key")
    attrs = {
        "N": count,
        "hashed_output": hashed,
        "num_buckets": op.attrs["num_buckets"],
        "hash_key": op.attrs["hash_key"] or 0,
        "sparse_types": [tensor.dtype for tensor in op.inputs[count : 2 * count]],
        "dense_types": [tensor.dtype for tensor in op.inputs[3 * count :]],
        "out_type": op.outputs[1].dtype,
        "internal_type": dtypes.int64 if hashed else dtypes.string,
    }
    body.made(op, op.type, [body.text(tensor) for tensor in op.inputs], **attrs)


@rule("DeserializeSparse", "DeserializeManySparse")
def _deserialize(node: Node) -> Sequence[Imported]:
    function = getattr(
        sparse_transport_ops,
        "deserialize_sparse" if node.op == "DeserializeSparse" else "deserialize_many_sparse",
    )
    return _made(node, function, node.inputs[0], node.attrs["dtype"])


@export("DeserializeSparse")
def _write_deserialize(body: Body, op: Operation) -> None:
    attrs = {"dtype": op.outputs[1].dtype, "Tserialized": op.inputs[0].dtype}
    body.made(op, op.type, [body.text(op.inputs[0])], **attrs)


@rule("TakeManySparseFromTensorsMap")
def _take_kept(node: Node) -> Sequence[Imported]:
    attrs = {key: node.attrs[key] for key in ("container", "shared_name", "dtype")}
    return list(node.make(sparse_map_ops.TAKE_MANY_SPARSE.name, node.inputs[:1], rank=None, **attrs).outputs)


@export("TakeManySparseFromTensorsMap")
def _write_take_kept(body: Body, op: Operation) -> None:
    attrs = {key: op.attrs[key] for key in ("container", "shared_name")}
    body.made(op, op.type, [body.text(op.inputs[0])], dtype=op.outputs[1].dtype, **attrs)


# -- elements ------------------------------------------------------------------------------------------


@rule("SparseAdd")
def _add(node: Node) -> Sequence[Imported]:
    operands = _operand(node, "a"), _operand(node, "b")
    threshold = node.constant("thresh")
    known = node.arg("thresh")[0] if threshold is None else threshold.item()
    return _made(node, sparse_math_ops.sparse_add, *operands, known)


@rule("SparseAddGrad")
def _add_gradient(node: Node) -> Sequence[Imported]:
    d_values, *operands, united = node.inputs
    return through(node, lambda: [_found(d_values, united, indices) for indices in operands])


@rule("SparseTensorDenseAdd")
def _add_dense(node: Node) -> Sequence[Imported]:
    return through(node, sparse_math_ops.sparse_add, _operand(node, "a"), node.arg("b")[0])


@rule("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv")
def _with_dense(node: Node) -> Sequence[Imported]:
    functions = {"SparseDenseCwiseAdd": add, "SparseDenseCwiseMul": multiply, "SparseDenseCwiseDiv": realdiv}
    indices, values, sizes, dense = node.inputs
    return through(node, lambda: functions[node.op](values, gather_nd(broadcast_to(dense, sizes), indices)))


@rule("SparseSparseMaximum", "SparseSparseMinimum")
def _extreme(node: Node) -> Sequence[Imported]:
    function = getattr(sparse_math_ops, node.op.removeprefix("SparseSparse").lower().join(("sparse_", "")))
    return _made(node, function, _operand(node, "a"), _operand(node, "b"))[:2]


@rule("SparseSoftmax")
def _softmax(node: Node) -> Sequence[Imported]:
    return through(node, lambda: sparse_math_ops.sparse_softmax(_operand(node, "sp")).values)


@rule("SparseReduceSum", "SparseReduceMax")
def _reduce(node: Node) -> Sequence[Imported]:
    return through(node, _reduction(node), **_reduced(node))


@rule("SparseReduceSumSparse", "SparseReduceMaxSparse")
def _reduce_to_sparse(node: Node) -> Sequence[Imported]:
    return _made(node, _reduction(node), **_reduced(node))


def _reduction(node: Node) -> Callable[..., Any]:
    names = {"Sum": "sparse_reduce_sum", "Max": "sparse_reduce_max"}
    kind = node.op.removeprefix("SparseReduce")
    function: Callable[..., Any] = getattr(
        sparse_math_ops, names[kind[:3]] + ("_sparse" if kind.endswith("Sparse") else "")
    )
    return function


def _reduced(node: Node) -> dict[str, Any]:
    axis = node.needed("reduction_axes")
    return {"sp_input": _operand(node, "input"), "axis": axis, "keepdims": node.attrs["keep_dims"]}


@rule("SparseMatMul")
def _product(node: Node) -> Sequence[Imported]:
    flags = {key: node.attrs[key] for key in ("transpose_a", "transpose_b")}

    def product() -> Tensor:
        a, b = (cast(operand, dtypes.float32) for operand in node.inputs)
        return matmul(a, b, **flags)

    return through(node, product)


_SET_OPERATIONS: Final = {
    "DenseToDenseSetOperation": (False, False),
    "DenseToSparseSetOperation": (False, True),
}


@rule(*_SET_OPERATIONS)
def _sets(node: Node) -> Sequence[Imported]:
    sparse = _SET_OPERATIONS[node.op]
    sets = [_operand(node, f"set{i + 1}") if each else node.arg(f"set{i + 1}")[0] for i, each in enumerate(sparse)]
    return _made(node, set_operation, *sets, node.attrs["set_operation"], node.attrs["validate_indices"])


# -- gradients of segments -----------------------------------------------------------------------------


@rule("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")
def _segment_gradient(node: Node) -> Sequence[Imported]:
    d_sums, indices, ids, rows = node.inputs

    def spread() -> Tensor:
        spread = gather(d_sums, ids)
        if node.op != "SparseSegmentSumGrad":
            counts = gather(unsorted_segment_sum(cast(ids >= 0, d_sums.dtype), ids, shape(d_sums)[0]), ids)
            scale = counts if node.op == "SparseSegmentMeanGrad" else sqrt(counts)
            spread = realdiv(spread, reshape(scale, _column(spread)))
        return unsorted_segment_sum(spread, indices, rows)

    return through(node, spread)


def _column(rows: Tensor) -> Tensor:
    sizes = shape(rows)
    return where(equal(_places(sizes), 0), sizes, zeros_like(sizes) + 1)


def _places(sizes: Tensor) -> Tensor:
    return cumsum(zeros_like(sizes) + 1, exclusive=True)


# -- positions -----------------------------------------------------------------------------------------


def _steps(sizes: Tensor) -> Tensor:
    return cumprod(sizes, exclusive=True, reverse=True)


def _keys(indices: Tensor, steps: Tensor) -> Tensor:
    """A number for each position, in the order of positions."""
    return reduce_sum(multiply(indices, steps), 1)


def _found(values: Tensor, places: Tensor, wanted: Tensor) -> Tensor:
    """Of `values`, which stand at `places` in order, those at the positions `wanted`; 0 where there is none."""
    ends = maximum(reduce_max(places, 0), reduce_max(wanted, 0)) + 1
    steps = _steps(maximum(ends, 1))
    known, sought = _keys(places, steps), _keys(wanted, steps)
    rows = clip_by_value(
        searchsorted(known, sought, out_type=dtypes.int64), 0, shape(known, out_type=dtypes.int64)[0] - 1
    )
    picked = gather(values, rows)
    return where(equal(gather(known, rows), sought), picked, zeros_like(picked))
