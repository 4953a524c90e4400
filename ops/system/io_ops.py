"""Whole files, read and written while a step runs."""

from __future__ import annotations

import os

import numpy as np

from tfray.formats import files
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, Reach, on_cpu, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.kernels.text import as_string, as_strings, filled


def read_file(filename: TensorLike, name: str | None = None) -> Tensor:
    """The contents of a file, read anew in each step.

    Args:
        filename: A string scalar: a path on the machine of the device, or in a store that pyarrow knows (``s3://``).
        name: Name of the operation.

    Returns:
        A string scalar.

    Raises:
        NotFoundError: At run time: there is no such file.

    Examples:
        >>> session.run(tf.write_file("note.txt", "hello"))
        >>> session.run(tf.read_file("note.txt"))
        b'hello'
    """
    return add_op(READ_FILE, filename, name=name)


def _read_file_kernel(ctx: KernelContext, filename: Array) -> Array:
    return np.array(files.read_bytes(as_string(filename)), object)


def _scalars(op: Operation) -> list[TensorShape]:
    for tensor in op.inputs:
        tensor.shape.assert_has_rank(0)
    return [TensorShape([])] * len(op.outputs)


READ_FILE = register(
    OpDef(
        name="ReadFile",
        inputs=("filename: string",),
        outputs=("contents: string",),
        shape=_scalars,
        kernels=on_cpu(_read_file_kernel),
        stateful=True,
        reach=Reach("files", path=0),
    )
)


def write_file(filename: TensorLike, contents: TensorLike, name: str | None = None) -> Operation:
    """Write a file, and the folders that it needs; a file that is there is replaced.

    Args:
        filename: A string scalar, as for `read_file`.
        contents: A string scalar.
        name: Name of the operation.

    Examples:
        >>> session.run(tf.write_file("folder/note.txt", "hello"))
        >>> session.run(tf.read_file("folder/note.txt"))
        b'hello'
    """
    return add_op(WRITE_FILE, filename, contents, name=name)


def _write_file_kernel(ctx: KernelContext, filename: Array, contents: Array) -> None:
    path = files.as_path(as_string(filename))
    folder = os.path.dirname(path)
    if folder and not files.is_folder(folder):
        files.make_folders(folder)
    files.write_bytes(path, as_string(contents))


WRITE_FILE = register(
    OpDef(
        name="WriteFile",
        inputs=("filename: string", "contents: string"),
        outputs=(),
        shape=_scalars,
        kernels=on_cpu(_write_file_kernel),
        stateful=True,
        reach=Reach("files", path=0),
    )
)


def matching_files(pattern: TensorLike, name: str | None = None) -> Tensor:
    """The files that match patterns.

    Args:
        pattern: A string scalar or vector: paths with ``*``, ``?`` and ``[...]``, which match no slash.
        name: Name of the operation.

    Returns:
        A string vector, sorted.
    """
    return add_op(MATCHING_FILES, pattern, name=name)


def _matching_files_kernel(ctx: KernelContext, pattern: Array) -> Array:
    patterns = as_strings(pattern).reshape(-1).tolist()
    found = sorted({path for each in patterns for path in files.glob(each)})
    return filled((len(found),), map(os.fsencode, found))


def _matching_files_shape(op: Operation) -> list[TensorShape]:
    if op.inputs[0].shape.rank not in (None, 0, 1):
        raise ValueError(f"pattern must be a scalar or a vector, not of shape {op.inputs[0].shape}")
    return [TensorShape([None])]


MATCHING_FILES = register(
    OpDef(
        name="MatchingFiles",
        inputs=("pattern: string",),
        outputs=("filenames: string",),
        shape=_matching_files_shape,
        kernels=on_cpu(_matching_files_kernel),
        stateful=True,
        reach=Reach("files", path=0),
    )
)
