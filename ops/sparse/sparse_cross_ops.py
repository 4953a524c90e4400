"""Crosses of features: every combination of one value from each of several features, as words or as hashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_cpu, register
from tfray.framework.sparse_tensor import SparseTensor, SparseTensorValue
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.arrays.shape_ops import cast
from tfray.ops.kernels.string_hashes import concatenated_fingerprints, fingerprint64
from tfray.ops.kernels.text import as_strings, filled
from tfray.ops.sparse.sparse_ops import as_sparse

_DEFAULT_HASH_KEY: Final = 0xDECAFCAFFE


def sparse_cross(inputs: Sequence[Any], name: str | None = None) -> SparseTensor:
    """Every combination of one value from each input, row by row, as words.

    Args:
        inputs: List of tensors of shape ``[batch, n]`` and of `SparseTensor` of such shapes: strings or integers.
        name: Name of the operation.

    Returns:
        Strings of shape ``[batch, most]``: the parts joined by ``_X_``, those of sparse inputs first. The value of the
        last input changes fastest.

    Raises:
        TypeError: `inputs` is no list, or holds something else.
    """
    return _crossed(inputs, dtypes.string, 0, None, name)


def sparse_cross_hashed(
    inputs: Sequence[Any], num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> SparseTensor:
    """As `sparse_cross`, where a hash stands for each combination.

    Args:
        inputs: List of tensors and `SparseTensor` of shape ``[batch, n]``: strings or integers.
        num_buckets: The hashes are below this number; any of int64 when 0.
        hash_key: Number from which hashes begin; TensorFlow's when None.
        name: Name of the operation.

    Returns:
        int64 of shape ``[batch, most]``.
    """
    return _crossed(inputs, dtypes.int64, num_buckets, hash_key, name)


def _crossed(
    inputs: Sequence[Any], out_type: dtypes.DType, num_buckets: int, hash_key: int | None, name: str | None
) -> SparseTensor:
    if not isinstance(inputs, list):
        raise TypeError(f"inputs must be a list of tensors, not {inputs!r}")
    if not all(isinstance(each, (SparseTensor, SparseTensorValue, Tensor)) for each in inputs):
        raise TypeError(f"inputs must be tensors and sparse tensors, not {inputs}")
    sparse = [as_sparse(each) for each in inputs if not isinstance(each, Tensor)]
    parts = [
        *(each.indices for each in sparse),
        *(_words_or_int64(each.values) for each in sparse),
        *(each.dense_shape for each in sparse),
        *(_words_or_int64(each) for each in inputs if isinstance(each, Tensor)),
    ]
    key = _DEFAULT_HASH_KEY if hash_key is None else hash_key
    attrs = {"out_type": out_type, "num_buckets": num_buckets, "hash_key": key, "sparse_inputs": len(sparse)}
    return SparseTensor(*add_op(SPARSE_CROSS, parts, name=name, **attrs))


def _words_or_int64(values: Tensor) -> Tensor:
    return values if values.dtype is dtypes.string else cast(values, dtypes.int64)


class _Feature:
    """The values of one input by row: those of a row lie side by side."""

    def __init__(self, values: Array, counts: Array) -> None:
        self.values = values
        self.counts = counts
        self.starts = np.cumsum(counts) - counts


def _features(sparse_inputs: int, arrays: Sequence[Array]) -> list[_Feature]:
    found = []
    for which in range(sparse_inputs):
        indices, values, shape = (arrays[which + part * sparse_inputs] for part in range(3))
        if len(shape) != 2:
            raise InvalidArgumentError(f"input {which} of a cross has rank {len(shape)}, expected 2")
        found.append(_Feature(values, np.bincount(indices[:, 0], minlength=int(shape[0]))))
    for dense in arrays[3 * sparse_inputs :]:
        values = dense if isinstance(dense, np.ndarray) else as_strings(dense)
        if values.ndim != 2:
            raise InvalidArgumentError(f"a dense input of a cross has rank {values.ndim}, expected 2")
        found.append(_Feature(values.reshape(-1), np.full(len(values), values.shape[1])))
    if len({len(feature.counts) for feature in found}) > 1:
        raise InvalidArgumentError(
            f"the inputs of a cross have {[len(f.counts) for f in found]} rows, expected as many"
        )
    return found


def _sparse_cross_kernel(ctx: KernelContext, *arrays: Array) -> tuple[Array, Array, Array]:
    features = _features(ctx.attr("sparse_inputs"), arrays)
    counts = np.prod([feature.counts for feature in features], axis=0)
    rows = np.repeat(np.arange(len(counts)), counts)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    chosen: list[Array] = []
    left = places
    for feature in reversed(features):
        of_row = feature.counts[rows]
        chosen.insert(0, feature.values[feature.starts[rows] + left % of_row])
        left = left // of_row
    indices = np.stack([rows, places], 1).astype(np.int64)
    shape = np.array([len(counts), counts.max(initial=0)], np.int64)
    if ctx.attr("out_type") is dtypes.string:
        columns = [[_text(value) for value in values.tolist()] for values in chosen]
        return indices, filled((len(rows),), map(b"_X_".join, zip(*columns, strict=True))), shape
    hashes = np.full(len(rows), ctx.attr("hash_key"), np.uint64)
    for values in chosen:
        words = fingerprint64(values.tolist()) if values.dtype == object else values.astype(np.int64).view(np.uint64)
        hashes = concatenated_fingerprints(hashes, words)
    limit = ctx.attr("num_buckets") or np.iinfo(np.int64).max
    return indices, (hashes % np.uint64(limit)).astype(np.int64), shape


def _text(value: Any) -> bytes:
    return value if isinstance(value, bytes) else b"%d" % value


def _sparse_cross_shape(op: Operation) -> list[TensorShape]:
    count = op.attrs["sparse_inputs"]
    for tensor in op.inputs[3 * count :]:
        tensor.shape.assert_has_rank(2)
    return [TensorShape([None, 2]), TensorShape([None]), TensorShape([2])]


SPARSE_CROSS = register(
    OpDef(
        name="SparseCross",
        inputs=("inputs: any*",),
        outputs=("output_indices: int64", "output_values: out_type", "output_shape: int64"),
        attrs=("sparse_inputs", "num_buckets", "hash_key"),
        types={"out_type": (dtypes.int64, dtypes.string)},
        shape=_sparse_cross_shape,
        kernels=on_cpu(_sparse_cross_kernel),
    )
)
"""Crossing features: each combination of the values that the columns of a row have."""

from __future__ import annotations

import itertools

from tfray.errors import ArgumentError
from tfray.framework import dtypes
from tfray.framework.op_def import OpDef, not_differentiable, on_cpu, register
from tfray.ops.kernels import string_hashes

HASH_KEY: Final = 0xDECAFCAFFE
"""TensorFlow's hash key, where none is given."""


def sparse_cross(
    inputs: Sequence[Tensor | SparseTensor], name: str | None = None, separator: str | None = None
) -> SparseTensor:
    """Cross columns: each combination of their values in a row becomes a string. Public as ``tf.sparse.cross``.

    Args:
        inputs: Columns ``[batch, values]``, tensors or sparse tensors of strings or integers. Sparse ones come first in
            the strings.
        name: Name of the operation.
        separator: What to put between the values; ``_X_`` when None.

    Returns:
        Strings, a `SparseTensor` ``[batch, most combinations]``.

    Raises:
        ArgumentError: An input is no tensor.
    """
    return _crossed(inputs, name, {"separator": "_X_" if separator is None else separator, "num_buckets": None})


def sparse_cross_hashed(
    inputs: Sequence[Tensor | SparseTensor],
    num_buckets: int = 0,
    hash_key: int | None = None,
    name: str | None = None,
) -> SparseTensor:
    """As `sparse_cross`, with a hash of each combination: FarmHash. Public as ``tf.sparse.cross_hashed``.

    Args:
        inputs: Columns ``[batch, values]``, as for `sparse_cross`.
        num_buckets: Hashes are below this number; any number of 63 bits when 0.
        hash_key: Where hashing begins; TensorFlow's key when None.
        name: Name of the operation.

    Returns:
        int64, a `SparseTensor` ``[batch, most combinations]``.

    Raises:
        ArgumentError: An input is no tensor.
        InvalidArgumentError: `num_buckets` is negative.
    """
    if num_buckets < 0:
        raise InvalidArgumentError(f"SparseCross: num_buckets is {num_buckets}, expected at least 0")
    key = HASH_KEY if hash_key is None else int(hash_key)
    return _crossed(inputs, name, {"separator": "", "num_buckets": int(num_buckets), "hash_key": key})


def _crossed(inputs: Sequence[Tensor | SparseTensor], name: str | None, attrs: dict[str, Any]) -> SparseTensor:
    if not isinstance(inputs, (list, tuple)) or not all(isinstance(each, (Tensor, SparseTensor)) for each in inputs):
        raise ArgumentError(f"SparseCross: inputs are {inputs!r}, expected a list of Tensor and SparseTensor objects")
    sparse = [each for each in inputs if isinstance(each, SparseTensor)]
    parts = [part for each in sparse for part in (each.indices, _values(each.values), each.dense_shape)]
    dense = [_values(each) for each in inputs if isinstance(each, Tensor)]
    out_type = dtypes.string if attrs["num_buckets"] is None else dtypes.int64
    all_attrs = {"hash_key": HASH_KEY, "sparse": len(sparse), "out_type": out_type, **attrs}
    return SparseTensor(*add_op(SPARSE_CROSS, [*parts, *dense], name=name, **all_attrs))


def _values(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype == dtypes.string else cast(tensor, dtypes.int64)


def _rows(indices: Array, values: Array, count: int) -> list[list[Any]]:
    rows: list[list[Any]] = [[] for _ in range(count)]
    for row, value in zip(indices[:, 0].tolist(), values.tolist(), strict=True):
        if not 0 <= row < count:
            raise InvalidArgumentError(f"a column has a value in row {row} of {count}")
        rows[row].append(value)
    return rows


def _columns(ctx: KernelContext, arrays: Sequence[Array]) -> list[list[list[Any]]]:
    """The values of each column, row by row."""
    count = ctx.attr("sparse")
    columns = []
    for at in range(0, 3 * count, 3):
        indices, values, shape = arrays[at : at + 3]
        if len(shape) != 2:
            raise InvalidArgumentError(f"{ctx.op_name}: a column has rank {len(shape)}, expected 2")
        columns.append(_rows(indices, values, int(shape[0])))
    for values in arrays[3 * count :]:
        if values.ndim != 2:
            raise InvalidArgumentError(f"{ctx.op_name}: a column has shape {values.shape}, expected rank 2")
        columns.append(values.tolist())
    if len({len(column) for column in columns}) > 1:
        sizes = [len(column) for column in columns]
        raise InvalidArgumentError(f"{ctx.op_name}: the columns have {sizes} rows, expected equal numbers")
    return columns


def _sparse_cross_kernel(ctx: KernelContext, *arrays: Array) -> list[Array]:
    columns = _columns(ctx, arrays)
    rows = [list(itertools.product(*row)) for row in zip(*columns, strict=True)]
    lengths = np.array([len(row) for row in rows], np.int64)
    total = int(lengths.sum())
    indices = np.empty((total, 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(rows)), lengths)
    indices[:, 1] = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    combinations = [each for row in rows for each in row]
    values = _texts(ctx, combinations) if ctx.attr("num_buckets") is None else _hashes(ctx, combinations, len(columns))
    return [indices, values, np.array([len(rows), lengths.max(initial=0)], np.int64)]


def _texts(ctx: KernelContext, combinations: list[tuple[Any, ...]]) -> Array:
    join = ctx.attr("separator").encode().join
    texts: Array = np.empty(len(combinations), object)
    texts[:] = [join(v if isinstance(v, bytes) else str(v).encode() for v in each) for each in combinations]
    return texts


def _hashes(ctx: KernelContext, combinations: list[tuple[Any, ...]], count: int) -> Array:
    hashes = np.full(len(combinations), ctx.attr("hash_key") & (1 << 64) - 1, np.uint64)
    for column in range(count):
        values = [each[column] for each in combinations]
        if values and isinstance(values[0], bytes):
            words = string_hashes.fingerprint64(values)
        else:
            words = np.array(values, np.int64).view(np.uint64)
        hashes = string_hashes.joined_fingerprints(hashes, words)
    return (hashes % np.uint64(ctx.attr("num_buckets") or np.iinfo(np.int64).max)).astype(np.int64)


def _sparse_cross_shape(op: Operation) -> list[TensorShape]:
    return [TensorShape([None, 2]), TensorShape([None]), TensorShape([2])]


SPARSE_CROSS = register(
    OpDef(
        name="SparseCross",
        inputs=("columns: any*",),
        outputs=("output_indices: int64", "output_values: out_type", "output_shape: int64"),
        attrs=("sparse", "separator", "num_buckets", "hash_key"),
        types={"out_type": (dtypes.string, dtypes.int64)},
        shape=_sparse_cross_shape,
        kernels=on_cpu(_sparse_cross_kernel),
        gradient=not_differentiable,
    )
)
