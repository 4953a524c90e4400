"""Tensors by name in checkpoints, as TensorFlow's own savers read and write them: `save_v2`, `restore_v2` and kin.

tfray's savers use `checkpoint_ops`. These are for the savers in graphs that TensorFlow has written.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.formats import files
from tfray.formats.checkpoint import SAVED_AT, Manifest, find_tensor
from tfray.formats.checkpoint_shard import Piece
from tfray.formats.open_checkpoint import open_checkpoint
from tfray.formats.write_formats import TENSORFLOW, complete_checkpoint, write_data
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, Reach, on_cpu, register
from tfray.framework.shape_functions import no_outputs, scalar_of_scalars
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.kernels.text import as_string


def save_v2(
    prefix: TensorLike,
    tensor_names: TensorLike,
    shape_and_slices: TensorLike,
    tensors: Sequence[TensorLike],
    name: str | None = None,
) -> Operation:
    """Write tensors to a checkpoint of TensorFlow's format V2.

    Args:
        prefix: A string scalar: path of the checkpoint.
        tensor_names: Strings of shape ``[n]``: the name of each.
        shape_and_slices: Strings of shape ``[n]``: empty for a whole tensor, ``"8 3 0,4:-"`` for a part of one.
        tensors: Any dtypes and shapes.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: While running: there are other numbers of names and tensors, or a part does not fit.
    """
    return add_op(SAVE_V2, prefix, tensor_names, shape_and_slices, list(tensors), name=name)


def _save_kernel(ctx: KernelContext, prefix: Array, names: Array, slices: Array, *tensors: Array) -> None:
    if not names.size == slices.size == len(tensors):
        raise InvalidArgumentError(f"{names.size} names and {slices.size} slices for {len(tensors)} tensors")
    pieces = [
        _piece(_text(name), _text(text), np.asarray(tensor))
        for name, text, tensor in zip(names.flat, slices.flat, tensors, strict=True)
    ]
    _write(files.given_path(_text(prefix), "prefix"), pieces, is_whole=False)  # other shards may have the rest


def _text(value: Array) -> str:
    return as_string(value).decode("utf-8", "surrogateescape")


def _write(prefix: str, pieces: Sequence[Piece], is_whole: bool = True) -> None:
    folder = prefix.rpartition("/")[0]
    if folder and not files.is_folder(folder):
        files.make_folders(folder)
    record = write_data(prefix, pieces, 0, 1, TENSORFLOW)
    complete_checkpoint(prefix, Manifest.of_shards([record], {SAVED_AT: time.time()}, is_whole), TENSORFLOW)


def _piece(name: str, text: str, array: Array) -> Piece:
    if not text:
        return Piece.whole(name, array)
    shape, offset, sizes = part_of(text)
    if tuple(sizes) != array.shape:
        raise InvalidArgumentError(f"{name!r}: {text!r} is a part of shape {sizes}, and the tensor is {array.shape}")
    return Piece(name, array, shape, offset)


def part_of(text: str) -> tuple[list[int], list[int], list[int]]:
    """The shape of the whole, where a part begins, and its shape: of ``"8 3 0,4:-"`` [8, 3], [0, 0] and [4, 3]."""
    *sizes, extents = text.split(" ")
    try:
        shape = [int(size) for size in sizes]
        pairs = [
            (0, size) if extent == "-" else tuple(map(int, extent.split(",")))
            for extent, size in zip(extents.split(":"), shape, strict=True)
        ]
        offset, part = map(list, zip(*pairs, strict=True)) if pairs else ([], [])
    except ValueError as error:
        raise InvalidArgumentError(f"{text!r} is no shape and slice such as '8 3 0,4:-'") from error
    return shape, offset, part


SAVE_V2 = register(
    OpDef(
        name="SaveV2",
        inputs=("prefix: string", "tensor_names: string", "shape_and_slices: string", "tensors: any*"),
        outputs=(),
        shape=no_outputs,
        kernels=on_cpu(_save_kernel),
        stateful=True,
        reach=Reach("files", path=0, is_fed=True),
    )
)


def restore_v2(
    prefix: TensorLike,
    tensor_names: TensorLike,
    shape_and_slices: TensorLike,
    dtypes: Sequence[DTypeLike],
    name: str | None = None,
) -> list[Tensor]:
    """Read tensors from a checkpoint, of any format that tfray reads.

    Args:
        prefix: A string scalar: path of the checkpoint.
        tensor_names: Strings of shape ``[n]``: the name of each.
        shape_and_slices: Strings of shape ``[n]``; see `save_v2`.
        dtypes: Dtype of each.
        name: Name of the operation.

    Returns:
        The tensors, of the shapes that they have in the checkpoint.

    Raises:
        NotFoundError: While running: there is no such checkpoint, or no such tensor in it.
        InvalidArgumentError: While running: a tensor has another dtype.
        DataLossError: While running: a file is damaged.
    """
    wanted = [as_dtype(dtype) for dtype in dtypes]
    return list(add_op(RESTORE_V2, prefix, tensor_names, shape_and_slices, dtypes=wanted, name=name))


def _restore_kernel(ctx: KernelContext, prefix: Array, names: Array, slices: Array) -> list[Array]:
    wanted = ctx.attr("dtypes")
    if not names.size == slices.size == len(wanted):
        raise InvalidArgumentError(f"{names.size} names and {slices.size} slices for {len(wanted)} tensors")
    checkpoint = open_checkpoint(files.given_path(_text(prefix), "prefix"))
    found = []
    for encoded, part, dtype in zip(names.flat, slices.flat, wanted, strict=True):
        name, text = _text(encoded), _text(part)
        entry = find_tensor(checkpoint, name)
        if entry.dtype is not dtype:
            raise InvalidArgumentError(
                f"checkpoint {checkpoint.prefix} has tensor {name!r} as {entry.dtype.name}, not as {dtype.name}"
            )
        array = checkpoint.read(name, *part_of(text)[1:]) if text else checkpoint.read(name)
        found.append(np.array(array))  # a copy: memory that maps the file is read-only
    return found


def _restored_shapes(op: Operation) -> list[TensorShape]:
    slices = constant_value(op.inputs[2])
    texts = [] if slices is None else [_text(each) for each in slices.flat]
    if len(texts) != len(op.outputs):
        return [UNKNOWN] * len(op.outputs)
    return [TensorShape(part_of(text)[2]) if text else UNKNOWN for text in texts]


RESTORE_V2 = register(
    OpDef(
        name="RestoreV2",
        inputs=("prefix: string", "tensor_names: string", "shape_and_slices: string"),
        outputs=("tensors: dtypes*",),
        attrs=("dtypes",),
        shape=_restored_shapes,
        kernels=on_cpu(_restore_kernel),
        stateful=True,
        reach=Reach("files", path=0, is_fed=True),
    )
)


def merge_v2_checkpoints(
    checkpoint_prefixes: TensorLike,
    destination_prefix: TensorLike,
    delete_old_dirs: bool = True,
    name: str | None = None,
) -> Operation:
    """Make one checkpoint of several that `save_v2` has written.

    TensorFlow renames their files; here what they hold is written again.

    Args:
        checkpoint_prefixes: Strings of shape ``[n]``: their paths. Each begins with the destination.
        destination_prefix: A string scalar: path of the checkpoint.
        delete_old_dirs: Whether the several are deleted.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: While running: a path does not begin with the destination, or leaves its folder.
        DataLossError: While running: a file is damaged.
    """
    attrs = {"delete_old_dirs": bool(delete_old_dirs)}
    return add_op(MERGE_V2_CHECKPOINTS, checkpoint_prefixes, destination_prefix, name=name, **attrs)


def _merge_kernel(ctx: KernelContext, prefixes: Array, destination: Array) -> None:
    target = files.given_path(_text(destination), "destination_prefix")
    pieces = []
    parts = [_text(prefix) for prefix in prefixes.flat]
    for prefix in parts:
        if not prefix.startswith(target) or ".." in prefix.removeprefix(target).split("/"):
            raise InvalidArgumentError(f"{prefix} is no part of the checkpoint {target}: its path begins otherwise")
        checkpoint = open_checkpoint(prefix)
        pieces += [
            Piece(name, checkpoint.read(name, part.offset, part.shape), entry.shape, part.offset)
            for name, entry in checkpoint.tensors.items()
            for part in entry.slices
        ]
    _write(target, pieces)
    if ctx.attr("delete_old_dirs"):
        for folder in {prefix.rpartition("/")[0] for prefix in parts} - {target.rpartition("/")[0]}:
            files.remove_tree(folder)


MERGE_V2_CHECKPOINTS = register(
    OpDef(
        name="MergeV2Checkpoints",
        inputs=("checkpoint_prefixes: string", "destination_prefix: string"),
        outputs=(),
        attrs=("delete_old_dirs",),
        shape=no_outputs,
        kernels=on_cpu(_merge_kernel),
        stateful=True,
        reach=Reach("files", path=1, is_fed=True),
    )
)


def sharded_filename(
    basename: TensorLike, shard: TensorLike, num_shards: TensorLike, name: str | None = None
) -> Tensor:
    """The name of a file that is one of several: ``model-00001-of-00002``.

    Args:
        basename: A string scalar.
        shard: Number of the file, an int32 scalar.
        num_shards: Number of all, an int32 scalar.
        name: Name of the operation.

    Returns:
        A string scalar.
    """
    return add_op(SHARDED_FILENAME, basename, shard, num_shards, name=name)


def _sharded_filename_kernel(ctx: KernelContext, basename: Array, shard: Array, count: Array) -> Any:
    return np.array(f"{_text(basename)}-{int(shard):05d}-of-{int(count):05d}".encode(), object)


SHARDED_FILENAME = register(
    OpDef(
        name="ShardedFilename",
        inputs=("basename: string", "shard: int32", "num_shards: int32"),
        outputs=("filename: string",),
        shape=scalar_of_scalars,
        kernels=on_cpu(_sharded_filename_kernel),
    )
)
