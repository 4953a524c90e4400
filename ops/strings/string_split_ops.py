"""Strings taken apart, and strings of a tensor put together."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from itertools import dropwhile
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError, OutOfRangeError
from tfray.framework import dtypes
from tfray.framework.arguments import by_either_name, none_is_default
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, on_cpu, register
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import Axes, TensorLike
from tfray.ops.arrays.broadcast_ops import ones_like
from tfray.ops.arrays.join_ops import stack
from tfray.ops.arrays.shape_ops import reshape
from tfray.ops.kernels.batch_rules import Batch, Value, again
from tfray.ops.kernels.text import as_string, as_strings, filled, octets, text_attr
from tfray.ops.math.arithmetic_ops import multiply
from tfray.ops.math.reduction_ops import axes_tensor
from tfray.ops.math.segment_ops import unsorted_segment_sum


def string_split(
    source: TensorLike,
    sep: TensorLike | None = None,
    skip_empty: bool = True,
    delimiter: TensorLike | None = None,
    result_type: str = "SparseTensor",
    name: str | None = None,
) -> SparseTensor:
    """Split each string of a vector at a delimiter.

    Args:
        source: Shape ``[n]``, string.
        sep: A string scalar whose bytes are delimiters, each of them; a space when None. When it is empty, every
            byte is an element of its own.
        skip_empty: Whether to leave out empty elements.
        delimiter: The older name of `sep`.
        result_type: ``SparseTensor``; there are no ragged tensors.
        name: Name of the operation.

    Returns:
        A `SparseTensor` of shape ``[n, most elements]``, row i the elements of string i.

    Examples:
        >>> session.run(tf.string_split(["a b", "c"]).values)
        array([b'a', b'b', b'c'], dtype=object)
    """
    _check_result_type("StringSplit", result_type)
    if delimiter is None:
        delimiter = " " if sep is None else sep
    return SparseTensor(*add_op(STRING_SPLIT, source, delimiter, name=name, skip_empty=skip_empty))


def _check_result_type(what: str, result_type: str) -> None:
    if result_type != "SparseTensor":
        raise InvalidArgumentError(
            f"{what}: result_type is {result_type!r}, expected 'SparseTensor': tfray has no ragged tensors"
        )


def _string_split_kernel(ctx: KernelContext, source: Array, delimiter: Array) -> list[Array]:
    split = _splitter(as_string(delimiter))
    rows = [split(string) if string else [] for string in source.tolist()]
    if ctx.attr("skip_empty"):
        rows = [[part for part in row if part] for row in rows]
    return _sparse_rows(rows)


def _splitter(delimiter: bytes) -> Callable[[bytes], list[bytes]]:
    if not delimiter:
        return lambda string: [string[i : i + 1] for i in range(len(string))]
    if len(delimiter) == 1:
        return lambda string: string.split(delimiter)
    pattern = re.compile(b"[" + re.escape(delimiter) + b"]")
    return pattern.split


def _sparse_rows(rows: list[list[bytes]]) -> list[Array]:
    lengths = np.array([len(row) for row in rows], np.int64)
    total = int(lengths.sum())
    indices = np.empty((total, 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(rows)), lengths)
    indices[:, 1] = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    values = filled((total,), [part for row in rows for part in row])
    return [indices, values, np.array([len(rows), lengths.max(initial=0)], np.int64)]


def _string_split_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.assert_has_rank(1)
    op.inputs[1].shape.assert_has_rank(0)
    return [TensorShape([None, 2]), TensorShape([None]), TensorShape([2])]


def _split_over_batch(op: Operation, inputs: Sequence[Value], count: Tensor) -> list[Value] | None:
    """Each element is a vector of one string: its parts are a row."""
    source, delimiter = inputs
    if not isinstance(source, Batch) or isinstance(delimiter, Batch) or source.lengths is not None:
        return None
    if op.inputs[0].shape.as_list() != [1]:
        return None
    indices, values, _ = again(op, [reshape(source.tensor, [-1]), delimiter])
    rows = indices[:, 0]
    lengths = unsorted_segment_sum(ones_like(rows), rows, count)
    shapes = stack([ones_like(lengths), lengths], axis=1)
    return [Batch(multiply(indices, np.array([0, 1], np.int64)), lengths), Batch(values, lengths), Batch(shapes)]


STRING_SPLIT = register(
    OpDef(
        name="StringSplit",
        inputs=("input: string", "delimiter: string"),
        outputs=("indices: int64", "values: string", "shape: int64"),
        attrs=("skip_empty",),
        shape=_string_split_shape,
        kernels=on_cpu(_string_split_kernel),
        over_batch=_split_over_batch,
    )
)


@none_is_default
def string_split_v2(
    input: TensorLike | None = None,
    sep: TensorLike | None = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: TensorLike | None = None,
    name: str | None = None,
) -> SparseTensor:
    """Split strings as Python's ``split`` does: ``tf.strings.split``.

    Args:
        input: Strings of any shape.
        sep: A string scalar, the whole of which is the delimiter; runs of white space when None or empty.
        maxsplit: How often to split at most; -1 for no limit.
        result_type: ``SparseTensor``; there are no ragged tensors.
        source: The older name of `input`.
        name: Name of the operation.

    Returns:
        A `SparseTensor` of the shape of `input` with one dimension more, of the size of the most elements; ``[1, most
        elements]`` for a scalar.

    Raises:
        InvalidArgumentError: `result_type` is another.
    """
    _check_result_type("StringSplitV2", result_type)
    strings = convert_to_tensor(source if input is None else input, dtypes.string)
    if strings.shape.rank == 0:
        strings = reshape(strings, [1])
    return SparseTensor(*add_op(STRING_SPLIT_V2, strings, "" if sep is None else sep, name=name, maxsplit=maxsplit))


def _string_split_v2_kernel(ctx: KernelContext, source: Array, separator: Array) -> list[Array]:
    sep, limit = as_string(separator) or None, ctx.attr("maxsplit")
    indices, values, sizes = _sparse_rows([string.split(sep, limit) for string in source.reshape(-1).tolist()])
    owners = np.unravel_index(indices[:, 0], source.shape)
    return [np.stack([*owners, indices[:, 1]], axis=1), values, np.array([*source.shape, sizes[1]], np.int64)]


def _string_split_v2_shape(op: Operation) -> list[TensorShape]:
    op.inputs[1].shape.assert_has_rank(0)
    rank = op.inputs[0].shape.rank
    size = None if rank is None else rank + 1
    return [TensorShape([None, size]), TensorShape([None]), TensorShape([size])]


STRING_SPLIT_V2 = register(
    OpDef(
        name="StringSplitV2",
        inputs=("input: string", "sep: string"),
        outputs=("indices: int64", "values: string", "shape: int64"),
        attrs=("maxsplit",),
        shape=_string_split_v2_shape,
        kernels=on_cpu(_string_split_v2_kernel),
        over_batch=_split_over_batch,
    )
)


def string_bytes_split(input: TensorLike, name: str | None = None) -> Any:
    """The bytes of strings, each a string of its own.

    Args:
        input: A scalar, or shape ``[n]``.
        name: Name scope of the operations.

    Returns:
        A vector for a scalar, else a `SparseTensor` of shape ``[n, most bytes]``.
    """
    with get_default_graph().name_scope(name or "StringsBytesSplit"):
        strings = convert_to_tensor(input, dtypes.string)
        if strings.shape.rank == 0:
            return string_split(reshape(strings, [1]), "").values
        return string_split(strings, "")


# -- putting together ----------------------------------------------------------------------------------


def reduce_join(
    inputs: TensorLike,
    axis: Axes | None = None,
    keep_dims: bool = False,
    separator: str = "",
    name: str | None = None,
    reduction_indices: Axes | None = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Join the strings along dimensions of a tensor.

    Args:
        inputs: Strings, any shape.
        axis: The dimension, an integer, or a vector (a list) of them, to join along one after the other; None for all,
            the last one first.
        keep_dims: Whether the dimensions stay, with size 1.
        separator: What to put between the strings.
        name: Name of the operation.
        reduction_indices: The older name of `axis`.
        keepdims: The newer name of `keep_dims`.

    Returns:
        The shape of `inputs` without the dimensions, or with size 1 there; string.

    Examples:
        >>> session.run(tf.reduce_join([["a", "b"], ["c", "d"]], axis=1))
        array([b'ab', b'cd'], dtype=object)
    """
    strings = convert_to_tensor(inputs, dtypes.string)
    axis = by_either_name("reduce_join", axis=axis, reduction_indices=reduction_indices)
    axes = axes_tensor(strings, axis)
    axes.shape.with_rank_at_most(1)
    attrs = {
        "keep_dims": bool(keep_dims or keepdims),
        "separator": text_attr("ReduceJoin: separator", separator),
        "over_all": axis is None,
    }
    return add_op(REDUCE_JOIN, strings, axes, name=name, **attrs)


def _joined_axes(axes: Any, rank: int, over_all: bool) -> list[int]:
    """The dimensions in the order in which they are joined."""
    if over_all:
        return list(range(rank - 1, -1, -1))
    found: list[int] = []
    for axis in np.ravel(axes).tolist():
        if not -rank <= axis < rank:
            raise InvalidArgumentError(f"Invalid reduction dimension {axis}: it is not in [{-rank}, {rank})")
        if axis % rank in found:
            raise ValueError(f"Duplicate reduction dimension {axis}: axis names a dimension twice")
        found.append(axis % rank)
    return found


def _reduce_join_kernel(ctx: KernelContext, strings: Array, axes: Array) -> Array:
    strings = as_strings(strings)
    try:
        joined = _joined_axes(axes, strings.ndim, ctx.attr("over_all"))
    except InvalidArgumentError as error:
        raise OutOfRangeError(error.message) from error  # TensorFlow's kind, of an axis that only a step knows
    except ValueError as error:
        raise InvalidArgumentError(str(error)) from error
    kept = [axis for axis in range(strings.ndim) if axis not in joined]
    left = tuple(strings.shape[axis] for axis in kept)
    count = int(np.prod([strings.shape[axis] for axis in joined], dtype=np.int64))
    rows = strings.transpose(kept + joined[::-1]).reshape(int(np.prod(left, dtype=np.int64)), count)
    shape = left
    if ctx.attr("keep_dims"):
        shape = tuple(1 if axis in joined else size for axis, size in enumerate(strings.shape))
    return filled(shape, map(octets(ctx.attr("separator")).join, rows.tolist()))


def _reduce_join_shape(op: Operation) -> list[TensorShape]:
    source, axes, keep = op.inputs[0].shape, constant_value(op.inputs[1]), op.attrs["keep_dims"]
    if source.rank is None:
        return [TensorShape([]) if op.attrs["over_all"] and not keep else UNKNOWN]
    if axes is None and not op.attrs["over_all"]:
        return [TensorShape([None] * source.rank) if keep else UNKNOWN]
    joined = _joined_axes(axes, source.rank, op.attrs["over_all"])
    if keep:
        return [TensorShape([1 if axis in joined else size for axis, size in enumerate(source.as_list())])]
    return [TensorShape([size for axis, size in enumerate(source.as_list()) if axis not in joined])]


REDUCE_JOIN = register(
    OpDef(
        name="ReduceJoin",
        inputs=("inputs: string", "reduction_indices: Tidx"),
        outputs=("output: string",),
        attrs=("keep_dims", "separator", "over_all"),
        types={"Tidx": dtypes.INDICES},
        shape=_reduce_join_shape,
        kernels=on_cpu(_reduce_join_kernel),
    )
)


def unsorted_segment_join(
    inputs: TensorLike,
    segment_ids: TensorLike,
    num_segments: TensorLike,
    separator: str = "",
    name: str | None = None,
) -> Tensor:
    """Join the strings of each segment, in the order in which they come.

    Args:
        inputs: Strings of any shape but a scalar.
        segment_ids: The segment of each string, or of each part of `inputs`: int32 or int64, a shape with which that of
            `inputs` begins.
        num_segments: How many segments there are, an integer scalar.
        separator: What to put between the strings.
        name: Name of the operation.

    Returns:
        Strings ``[num_segments, ...]`` with the dimensions of `inputs` that `segment_ids` does not have.

    Raises:
        InvalidArgumentError: The shapes do not fit. At run time: a segment is below 0, or not below `num_segments`.

    Examples:
        >>> session.run(tf.strings.unsorted_segment_join(["a", "b", "c"], [1, 0, 1], 2, separator="-"))
        array([b'b', b'a-c'], dtype=object)
    """
    return add_op(
        UNSORTED_SEGMENT_JOIN,
        inputs,
        segment_ids,
        num_segments,
        name=name,
        separator=text_attr("UnsortedSegmentJoin: separator", separator),
    )


def _unsorted_segment_join_kernel(ctx: KernelContext, strings: Array, segments: Array, count: Array) -> Array:
    strings, segments = as_strings(strings), np.asarray(segments)
    total = int(np.asarray(count).item())
    if not strings.ndim or segments.shape != strings.shape[: segments.ndim]:
        raise InvalidArgumentError(f"segments of shape {segments.shape} do not go with strings of {strings.shape}")
    if segments.size and not 0 <= segments.min() <= segments.max() < total:
        raise InvalidArgumentError(f"segments are {segments.min()} to {segments.max()}, expected 0 to {total - 1}")
    inner = strings.shape[segments.ndim :]
    width = int(np.prod(inner, dtype=np.int64))
    joined: list[list[bytes]] = [[] for _ in range(total * width)]
    for segment, row in zip(segments.reshape(-1).tolist(), strings.reshape(-1, width).tolist(), strict=True):
        for place, string in enumerate(row):
            joined[segment * width + place].append(string)
    # As in TensorFlow, empty strings at the beginning of a segment bring no separator.
    begun = (dropwhile(operator.not_, each) for each in joined)
    return filled((total, *inner), map(octets(ctx.attr("separator")).join, begun))


def _unsorted_segment_join_shape(op: Operation) -> list[TensorShape]:
    strings, segments = op.inputs[0].shape, op.inputs[1].shape
    op.inputs[2].shape.assert_has_rank(0)
    count = constant_value(op.inputs[2])
    if count is not None and count < 0:
        raise ValueError(f"num_segments is {count}, expected at least 0")
    if strings.rank is None or segments.rank is None:
        return [UNKNOWN]
    TensorShape(strings.sizes[: segments.rank]).assert_is_compatible_with(segments)
    return [TensorShape([None if count is None else int(count), *strings.sizes[segments.rank :]])]


UNSORTED_SEGMENT_JOIN = register(
    OpDef(
        name="UnsortedSegmentJoin",
        inputs=("inputs: string", "segment_ids: Tindices", "num_segments: Tnumsegments"),
        outputs=("output: string",),
        attrs=("separator",),
        types={"Tindices": dtypes.INDICES, "Tnumsegments": dtypes.INDICES},
        shape=_unsorted_segment_join_shape,
        kernels=on_cpu(_unsorted_segment_join_kernel),
    )
)


def ngrams(
    data: TensorLike,
    ngram_width: int | Sequence[int],
    separator: str = " ",
    pad_values: str | tuple[str, str] | None = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Tensor:
    """Join neighbours in the rows of strings.

    Args:
        data: Strings ``[..., n]``. All rows are of one length: there are no ragged tensors.
        ngram_width: How many strings to join; several numbers give the results of each, one after the other.
        separator: What to put between the strings.
        pad_values: What to put before and behind each row: a string, or one for either end; None for nothing.
        padding_width: How many of them at most; None for one less than the width.
        preserve_short_sequences: Whether rows for which there is no result give one that has the whole row.
        name: Name of the operation.

    Returns:
        Strings ``[..., results]``.

    Raises:
        InvalidArgumentError: `data` is a scalar or its rank is not known, a width is not positive, or there is a width
            of padding without values.

    Examples:
        >>> session.run(tf.strings.ngrams(["a", "b", "c"], 2))
        array([b'a b', b'b c'], dtype=object)
    """
    strings = convert_to_tensor(data, dtypes.string)
    widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)
    pads = [pad_values] * 2 if isinstance(pad_values, str) else pad_values
    if not strings.shape.rank:
        raise InvalidArgumentError(f"StringNGrams: data is {strings!r}, expected a known rank of at least 1")
    if not widths or min(widths) < 1:
        raise InvalidArgumentError(f"StringNGrams: ngram_width is {ngram_width!r}, expected positive numbers")
    if padding_width is not None and (pads is None or padding_width < 1):
        raise InvalidArgumentError("StringNGrams: padding_width must be positive, and goes with pad_values only")
    if pads is not None and (len(pads) != 2 or not all(isinstance(pad, str) for pad in pads)):
        raise InvalidArgumentError(f"StringNGrams: pad_values is {pad_values!r}, expected a string or a pair of them")
    attrs = {
        "ngram_widths": [int(width) for width in widths],
        "separator": text_attr("ngrams: separator", separator),
        "pads": None if pads is None else list(pads),
        "padding_width": padding_width,
        "preserve_short_sequences": bool(preserve_short_sequences),
    }
    return add_op(STRING_NGRAMS, strings, name=name, **attrs)


def _windows(op: Any, length: int) -> list[tuple[int, int]]:
    """How many strings are put before and behind a row, and the width of its windows: a pair for each result."""
    widths = op.attr("ngram_widths")
    limit = 0 if op.attr("pads") is None else op.attr("padding_width")
    paddings = [width - 1 if limit is None else min(limit, width - 1) for width in widths]
    found = [(padding, width) for width, padding in zip(widths, paddings, strict=True) if length + 2 * padding >= width]
    if not found and op.attr("preserve_short_sequences") and length:
        return [(paddings[0], length + 2 * paddings[0])]
    return found


def _ngrams_kernel(ctx: KernelContext, strings: Array) -> Array:
    length = strings.shape[-1]
    windows = _windows(ctx, length)
    left, right = [pad.encode() for pad in ctx.attr("pads") or ("", "")]
    join = octets(ctx.attr("separator")).join
    results: list[bytes] = []
    for row in strings.reshape(-1, length).tolist() if length else [[]] * int(np.prod(strings.shape[:-1])):
        for padding, width in windows:
            padded = [left] * padding + row + [right] * padding
            results += [join(padded[at : at + width]) for at in range(len(padded) - width + 1)]
    return filled((*strings.shape[:-1], _results(windows, length)), results)


def _results(windows: list[tuple[int, int]], length: int) -> int:
    return sum(length + 2 * padding - width + 1 for padding, width in windows)


def _ngrams_shape(op: Operation) -> list[TensorShape]:
    *outer, length = op.inputs[0].shape.sizes
    return [TensorShape([*outer, None if length is None else _results(_windows(op, length), length)])]


STRING_NGRAMS = register(
    OpDef(
        name="StringNGrams",
        inputs=("data: string",),
        outputs=("ngrams: string",),
        attrs=("ngram_widths", "separator", "pads", "padding_width", "preserve_short_sequences"),
        shape=_ngrams_shape,
        kernels=on_cpu(_ngrams_kernel),
    )
)
