"""Crosses of features: every combination of one value from each of several features, as words or as hashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import whole_part
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_cpu, register
from tfray.framework.sparse_tensor import SparseTensor, SparseTensorValue
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.arrays.shape_ops import cast
from tfray.ops.kernels.string_hashes import concatenated_fingerprints, fingerprint64
from tfray.ops.kernels.text import as_strings, filled
from tfray.ops.sparse.sparse_ops import as_sparse

SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY: Final = 0xDECAFCAFFE


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
    return _crossed(
        inputs, dtypes.int64, num_buckets, SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY if hash_key is None else hash_key, name
    )


def sparse_feature_cross(
    inputs: Sequence[Any],
    hashed_output: bool = False,
    num_buckets: int = 0,
    name: str | None = None,
    hash_key: int | None = None,
) -> SparseTensor:
    """`sparse_cross`, or `sparse_cross_hashed`, as ``tf.contrib`` has it: without `hash_key` hashes are older ones.

    These collide often: where the last values of crosses agree in their ten lowest bits, so may the hashes.

    Args:
        inputs: List of tensors and `SparseTensor` of shape ``[batch, n]``: strings or integers.
        hashed_output: Have hashes, not words.
        num_buckets: As for `sparse_cross_hashed`.
        name: Name of the operation.
        hash_key: As for `sparse_cross_hashed`, except for None.

    Returns:
        Strings, or int64, of shape ``[batch, most]``.
    """
    if not hashed_output:
        return sparse_cross(inputs, name)
    return _crossed(inputs, dtypes.int64, num_buckets, hash_key, name)


def _crossed(
    inputs: Sequence[Any], out_type: dtypes.DType, num_buckets: int, hash_key: int | None, name: str | None
) -> SparseTensor:
    if num_buckets < 0:
        raise ValueError(f"num_buckets is {num_buckets}, expected 0 or more")
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
    attrs = {
        "out_type": out_type,
        "num_buckets": whole_part(num_buckets),
        "hash_key": hash_key,
        "sparse_inputs": len(sparse),
    }
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
    counts = np.prod([feature.counts for feature in features], axis=0) if features else np.zeros(0, np.int64)
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
    key = ctx.attr("hash_key")
    combined = _combined if key is None else concatenated_fingerprints
    hashes = np.full(len(rows), SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY if key is None else key, np.uint64)
    for values in chosen:
        words = fingerprint64(values.tolist()) if values.dtype == object else values.astype(np.int64).view(np.uint64)
        hashes = combined(hashes, words)
    limit = ctx.attr("num_buckets") or np.iinfo(np.int64).max
    return indices, (hashes % np.uint64(limit)).astype(np.int64), shape


def _combined(hashes: Array, words: Array) -> Array:
    """Hashes of longer sequences, in the older way, which takes the bits of a hash for those of an int64."""
    moved = (hashes << np.uint64(10)) + (hashes.view(np.int64) >> 4).view(np.uint64)
    return hashes ^ (words + np.uint64(0x9E3779B97F4A7800) + moved)


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
