"""Matrices of a checkpoint whose rows and columns stand for words, read for words in another order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfray.errors import InvalidArgumentError, UnimplementedError
from tfray.formats import files
from tfray.formats.checkpoint import find_tensor
from tfray.formats.open_checkpoint import open_checkpoint
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, Reach, on_cpu, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.kernels.text import as_string


class VocabRemapping(NamedTuple):
    """What `generate_vocab_remapping` returns."""

    remapping: Tensor
    num_present: Tensor


def generate_vocab_remapping(
    new_vocab_file: TensorLike,
    old_vocab_file: TensorLike,
    new_vocab_offset: int,
    num_new_vocab: int,
    old_vocab_size: int = -1,
    name: str | None = None,
) -> VocabRemapping:
    """Find the words of a new vocabulary in an old one.

    Args:
        new_vocab_file: Path of a file of words, one a line: a string scalar.
        old_vocab_file: Path of the file of the old words: a string scalar.
        new_vocab_offset: The first new word that counts.
        num_new_vocab: How many new words count.
        old_vocab_size: How many of the old words count; -1 for all.
        name: Name of the operation.

    Returns:
        ``remapping``, int64 ``[num_new_vocab]``: the number of each word in the old file, -1 for a word that is not
        there. ``num_present``, an int32 scalar: how many are there.

    Raises:
        InvalidArgumentError: While running: a file has fewer words.
    """
    attrs = {"new_vocab_offset": new_vocab_offset, "num_new_vocab": num_new_vocab, "old_vocab_size": old_vocab_size}
    return VocabRemapping(*add_op(GENERATE_VOCAB_REMAPPING, new_vocab_file, old_vocab_file, name=name, **attrs))


def _words(ctx: KernelContext, file: Array, first: int, count: int) -> list[bytes]:
    path = files.given_path(as_string(file), "file")
    words = files.read_bytes(path).splitlines()
    if first + count > len(words):
        raise InvalidArgumentError(f"{ctx.op_name}: {path} has {len(words)} words, expected {first + count}")
    return words[first:] if count < 0 else words[first : first + count]


def _generate_vocab_remapping_kernel(ctx: KernelContext, new: Array, old: Array) -> list[Array]:
    places = {word: place for place, word in enumerate(_words(ctx, old, 0, ctx.attr("old_vocab_size")))}
    wanted = _words(ctx, new, ctx.attr("new_vocab_offset"), ctx.attr("num_new_vocab"))
    remapping = np.array([places.get(word, -1) for word in wanted], np.int64)
    return [remapping, np.array((remapping >= 0).sum(), np.int32)]


def _generate_vocab_remapping_shape(op: Operation) -> list[TensorShape]:
    if op.attrs["new_vocab_offset"] < 0 or op.attrs["num_new_vocab"] < 0:
        raise ValueError("new_vocab_offset and num_new_vocab must not be negative")
    return [TensorShape([op.attrs["num_new_vocab"]]), TensorShape([])]


GENERATE_VOCAB_REMAPPING = register(
    OpDef(
        name="GenerateVocabRemapping",
        inputs=("new_vocab_file: string", "old_vocab_file: string"),
        outputs=("remapping: int64", "num_present: int32"),
        attrs=("new_vocab_offset", "num_new_vocab", "old_vocab_size"),
        shape=_generate_vocab_remapping_shape,
        kernels=on_cpu(_generate_vocab_remapping_kernel),
        stateful=True,
        reach=Reach("files", path=0),
    )
)


def load_and_remap_matrix(
    ckpt_path: TensorLike,
    old_tensor_name: TensorLike,
    row_remapping: TensorLike,
    col_remapping: TensorLike,
    initializing_values: TensorLike,
    num_rows: int,
    num_cols: int,
    max_rows_in_memory: int = -1,
    name: str | None = None,
) -> Tensor:
    """Read a matrix of a checkpoint with other rows and columns.

    Args:
        ckpt_path: The checkpoint: a string scalar, or a vector of one.
        old_tensor_name: Name of the matrix there, which is of float32: a string scalar.
        row_remapping: int64 ``[num_rows]``: the old row of each row, -1 for none.
        col_remapping: int64 ``[num_cols]``: the old column of each column; empty where these stay.
        initializing_values: float32 vector: what the elements without an old row or column are, row by row.
        num_rows: Rows of the result.
        num_cols: Columns of the result.
        max_rows_in_memory: Accepted for TensorFlow 1's sake.
        name: Name of the operation.

    Returns:
        float32 ``[num_rows, num_cols]``.

    Raises:
        InvalidArgumentError: While running: there are too few or too many initial values, or a row or column that the
            matrix does not have is asked for.
        UnimplementedError: While running: an old row or column is asked for twice.
    """
    inputs = [convert_to_tensor(each) for each in (ckpt_path, old_tensor_name)]
    numbers = [convert_to_tensor(each, dtypes.int64) for each in (row_remapping, col_remapping)]
    attrs = {"num_rows": num_rows, "num_cols": num_cols, "max_rows_in_memory": max_rows_in_memory}
    values = convert_to_tensor(initializing_values, dtypes.float32)
    return add_op(LOAD_AND_REMAP_MATRIX, *inputs, *numbers, values, name=name, **attrs)


def _checked(ctx: KernelContext, remapping: Array, count: int, what: str) -> Array:
    """`remapping`, which must have `count` numbers, none of them but -1 twice."""
    if remapping.size != count:
        raise InvalidArgumentError(f"{ctx.op_name}: {what}_remapping has {remapping.size} elements, expected {count}")
    first: dict[int, int] = {}
    for place, old in enumerate(remapping.tolist()):
        if old >= 0 and first.setdefault(old, place) != place:
            raise UnimplementedError(
                f"{ctx.op_name}: Old ID {old} is mapped to both new ID {first[old]} and {place}, which is not supported"
            )
    return remapping


def _load_and_remap_matrix_kernel(
    ctx: KernelContext, ckpt_path: Array, old_tensor_name: Array, rows: Array, columns: Array, initial: Array
) -> Array:
    count, width = ctx.attr("num_rows"), ctx.attr("num_cols")
    rows = _checked(ctx, rows, count, "row")
    columns = _checked(ctx, columns, width, "col") if columns.size else np.arange(width)
    known = np.ix_(rows >= 0, columns >= 0)
    result, is_missing = np.empty((count, width), np.float32), np.ones((count, width), bool)
    is_missing[known] = False
    if (rows >= 0).any():
        checkpoint = open_checkpoint(files.given_path(as_string(ckpt_path.reshape(())), "ckpt_path"))
        name = as_string(old_tensor_name).decode(errors="replace")
        entry = find_tensor(checkpoint, name)
        if entry.dtype is not dtypes.float32 or len(entry.shape) != 2:
            raise InvalidArgumentError(
                f"{ctx.op_name}: {name} is {entry.dtype.name} of shape {tuple(entry.shape)}, expected a float32 matrix"
            )
        matrix: Any = checkpoint.read(name)
        for numbers, size in zip((rows, columns), matrix.shape, strict=True):
            if numbers.size and numbers.max() >= size:
                raise InvalidArgumentError(f"{ctx.op_name}: {numbers.max()} is asked for of a matrix {matrix.shape}")
        result[known] = matrix[np.ix_(rows[rows >= 0], columns[columns >= 0])]
    missing = int(is_missing.sum())
    if initial.size != missing:
        left = "more missing values remain" if initial.size < missing else "only so many are missing"
        raise InvalidArgumentError(
            f"{ctx.op_name}: initializing_values contained {initial.size} elements, expected {missing}: {left}"
        )
    result[is_missing] = initial
    return result


def _load_and_remap_matrix_shape(op: Operation) -> list[TensorShape]:
    rows, columns = op.inputs[2].shape.with_rank(1), op.inputs[3].shape.with_rank(1)
    rows.assert_is_compatible_with([op.attrs["num_rows"]])
    if columns.sizes[0] not in (None, 0, op.attrs["num_cols"]):
        raise ValueError(f"col_remapping has {columns.sizes[0]} elements, expected {op.attrs['num_cols']}")
    return [TensorShape([op.attrs["num_rows"], op.attrs["num_cols"]])]


LOAD_AND_REMAP_MATRIX = register(
    OpDef(
        name="LoadAndRemapMatrix",
        inputs=(
            "ckpt_path: string",
            "old_tensor_name: string",
            "row_remapping: int64",
            "col_remapping: int64",
            "initializing_values: float32",
        ),
        outputs=("output_matrix: float32",),
        attrs=("num_rows", "num_cols", "max_rows_in_memory"),
        shape=_load_and_remap_matrix_shape,
        kernels=on_cpu(_load_and_remap_matrix_kernel),
        stateful=True,
        reach=Reach("files", path=0),
    )
)
