"""Checkpoints: each device writes and reads its own state, and one operation joins the shards to a checkpoint.

A checkpoint saves resources: variables, and all others that have ``state()``, which returns arrays by name, and
``restore_state(arrays)``. A variable is saved under its own name, a part of another resource as ``name@part``.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from tfray.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from tfray.formats import files
from tfray.formats.checkpoint import (
    SAVED_AT,
    CheckpointFiles,
    Manifest,
    find_tensor,
    sibling,
)
from tfray.formats.checkpoint_folder import is_being_saved
from tfray.formats.checkpoint_shard import FileEntry, Piece, ShardRecord, SliceEntry
from tfray.formats.open_checkpoint import open_checkpoint
from tfray.formats.write_formats import TFRAY, complete_checkpoint, write_data
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, Reach, StoredVariable, on_cpu, on_every_device, register
from tfray.framework.shape_functions import no_outputs, scalar, scalar_of_scalars
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.kernels.cpu_threads import parallel_for, thread_count
from tfray.ops.kernels.random_streams import RandomStream, stream_for
from tfray.ops.kernels.text import as_string

Part = tuple[Sequence[int], Sequence[int]] | None
"""Of a partitioned variable, ``(shape of the whole, offset of the part)``; None for a variable of its own."""

SPLIT_BYTES: Final = 64 << 20
"""Bytes for each file that a device writes at the same time as others: a device with twice this writes two files."""

STATE_MARK: Final = "@"
"""Stands between the name of a resource and the name of a part of its state. No operation name contains it."""

TABLE_PARTS: Final = ("keys", "values")
"""The parts of a table. In TensorFlow's checkpoints they are called ``name-keys`` and ``name-values``."""


# -- saving --------------------------------------------------------------------------------------------


def save_shard(
    prefix: TensorLike,
    resources: Sequence[Tensor],
    names: Sequence[str],
    parts: Sequence[Part],
    shard: int = 0,
    shards: int = 1,
    name: str | None = None,
    write_format: str = TFRAY,
) -> Tensor:
    """Write the state of resources of one device into files of their own, and other tensors with it.

    Args:
        prefix: A string scalar: path of the checkpoint.
        resources: Handles, and tensors that are written as they are.
        names: Name of each in the checkpoint.
        parts: For each, which part of a whole it is.
        shard: Number of this shard.
        shards: Number of all.
        name: Name of the operation.
        write_format: ``"tfray"`` or ``"tensorflow"``; that of `merge_checkpoint` is the same.

    Returns:
        A string scalar for `merge_checkpoint`: it tells which files were written.

    Raises:
        FailedPreconditionError: While running: a variable is not initialised.
    """
    attrs = {"names": list(names), "parts": list(parts), "shard": shard, "shards": shards}
    attrs["write_format"] = write_format
    return add_op(SAVE_SHARD, prefix, list(resources), name=name, **attrs)


def _save_shard_kernel(ctx: KernelContext, prefix: Array, *resources: Sequence[Any]) -> Array:
    sources = list(zip(resources, ctx.attr("names"), ctx.attr("parts"), strict=True))
    groups = balanced(sources, [_size_of(resource) for resource in resources])
    return _write_groups(ctx, prefix, [_pieces(ctx, group) for group in groups])


def _size_of(resource: Any) -> int:
    array = getattr(resource, "array", None)
    return 0 if array is None else int(array.nbytes)


def balanced(items: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Items in groups of about equal bytes: at most one per thread, each of at least about `SPLIT_BYTES`."""
    count = min(thread_count(), max(1, sum(sizes) // SPLIT_BYTES))
    groups: list[list[int]] = [[] for _ in range(count)]
    totals = [0] * count
    for index in sorted(range(len(items)), key=lambda i: -sizes[i]):
        least = totals.index(min(totals))
        groups[least].append(index)
        totals[least] += sizes[index]
    return [[items[i] for i in sorted(group)] for group in groups if group]


def _pieces(ctx: KernelContext, sources: Sequence[tuple[Any, str, Part]]) -> Iterator[Piece]:
    for resource, name, part in sources:
        if hasattr(resource, "state"):
            for key, array in resource.state().items():
                yield Piece.whole(f"{name}{STATE_MARK}{key}", array)
            continue
        if not hasattr(resource, "array"):
            yield _piece(name, np.asarray(ctx.to_host(resource)), part)
            continue
        if resource.array is None:
            raise _uninitialized(resource)
        with resource.lock:  # so that no update changes the variable while it is written
            yield _piece(name, np.asarray(ctx.to_host(resource.array)), part)


def _piece(name: str, array: TensorLike, part: Part) -> Piece:
    return Piece.whole(name, array) if part is None else Piece(name, array, part[0], part[1])


def _uninitialized(resource: StoredVariable) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"Attempting to save uninitialized value {resource.name}: run its initializer, or leave it out "
        "of the Saver's var_list"
    )


def _write_groups(ctx: KernelContext, prefix: Array, groups: Sequence[Iterator[Piece]]) -> Array:
    path = files.given_path(as_string(prefix), "prefix")
    shard, shards, write_format = map(ctx.attr, ("shard", "shards", "write_format"))
    return np.array(write_pieces(path, groups, shard, shards, write_format), object)


def write_pieces(
    path: str, groups: Sequence[Iterable[Piece]], shard: int = 0, shards: int = 1, write_format: str = TFRAY
) -> bytes:
    """Write each group into a file of its own. Returns what `merge_checkpoint` needs to know.

    Args:
        path: Path of the checkpoint.
        groups: What to write.
        shard: Number of this shard.
        shards: Number of all.
        write_format: ``"tfray"`` or ``"tensorflow"``.
    """
    _make_folder_of(path)
    records: list[ShardRecord | None] = [None] * len(groups)

    def write(index: int) -> None:
        records[index] = write_data(path, groups[index], shard, shards, write_format)

    is_announced = is_being_saved(path)
    parallel_for(write, len(groups))
    written = [asdict(record) | {"is_announced": is_announced} for record in records if record is not None]
    return json.dumps(written).encode()


def _make_folder_of(path: str) -> None:
    folder = sibling(path, "")
    if folder and not files.is_folder(folder):
        files.make_folders(folder)


def _same_number_of_names(op: Operation) -> None:
    count = len(op.inputs) - 1
    if len(op.attrs["names"]) != count:
        raise ValueError(f"{len(op.attrs['names'])} names for {count} resources")


def _save_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.assert_has_rank(0)
    _same_number_of_names(op)
    return [TensorShape([])]


SAVE_SHARD = register(
    OpDef(
        name="SaveShard",
        inputs=("prefix: string", "resources: any*"),
        outputs=("record: string",),
        attrs=("names", "parts", "shard", "shards", "write_format"),
        later={"write_format": TFRAY},
        shape=_save_shape,
        kernels=on_every_device(_save_shard_kernel),
        stateful=True,
        access="read",
        reach=Reach("files", path=0, is_fed=True),
    )
)


def merge_checkpoint(
    prefix: TensorLike, records: Sequence[Tensor], name: str | None = None, write_format: str = TFRAY
) -> Tensor:
    """Make a checkpoint of shards that are written. It replaces an older one of the same name in one atomic step.

    Args:
        prefix: A string scalar: path of the checkpoint.
        records: What `save_shard` and `write_snapshot` returned, string scalars.
        name: Name of the operation.
        write_format: The format in which they have written.

    Returns:
        `prefix`, a string scalar, once the checkpoint is complete.
    """
    return add_op(MERGE_CHECKPOINT, prefix, list(records), name=name, write_format=write_format)


def _merge_kernel(ctx: KernelContext, prefix: Array, *records: Array) -> Array:
    written = [plain for record in records for plain in json.loads(as_string(record))]
    manifest = Manifest.of_shards(map(_record, written), {SAVED_AT: time.time()})
    is_announced = any(plain["is_announced"] for plain in written)
    complete_checkpoint(files.given_path(as_string(prefix), "prefix"), manifest, ctx.attr("write_format"), is_announced)
    return prefix


def _record(plain: Mapping[str, Any]) -> ShardRecord:
    slices = [(name, dtype, shape, SliceEntry(**part).checked()) for name, dtype, shape, part in plain["slices"]]
    return ShardRecord(FileEntry(**plain["file"]).checked(), slices)


MERGE_CHECKPOINT = register(
    OpDef(
        name="MergeCheckpoint",
        inputs=("prefix: string", "records: string*"),
        outputs=("path: string",),
        attrs=("write_format",),
        later={"write_format": TFRAY},
        shape=scalar_of_scalars,
        kernels=on_cpu(_merge_kernel),
        stateful=True,
        reach=Reach("files", path=0, is_fed=True),
    )
)


# -- saving in the background --------------------------------------------------------------------------


class Snapshot:
    """Copies of the state of a device's resources. Each snapshot reuses the memory of the one before."""

    def __init__(self) -> None:
        self._buffers: dict[str, Any] = {}
        self.pieces: list[Piece] = []

    def take(self, ctx: KernelContext, sources: Sequence[tuple[Any, str, Part]]) -> None:
        """Copy what the resources hold now."""
        pieces: list[list[Piece]] = [[] for _ in sources]

        def copy(index: int) -> None:
            pieces[index] = [self._copied(ctx, piece) for piece in _pieces(ctx, sources[index : index + 1])]

        parallel_for(copy, len(sources))
        self.pieces = [piece for group in pieces for piece in group]
        keys = set(map(_key_of, self.pieces))
        self._buffers = {key: buffer for key, buffer in self._buffers.items() if key in keys}  # some may live elsewhere

    def _copied(self, ctx: KernelContext, piece: Piece) -> Piece:
        if ctx.xp is not np or piece.array.dtype == object:
            return Piece(piece.name, piece.array.copy(), piece.full_shape, piece.offset)
        key = _key_of(piece)
        buffer = self._buffers.get(key)
        if buffer is None or buffer.shape != piece.array.shape or buffer.dtype != piece.array.dtype:
            buffer = self._buffers[key] = np.empty_like(piece.array, order="C")
        np.copyto(buffer, piece.array)
        return Piece(piece.name, buffer, piece.full_shape, piece.offset)


def _key_of(piece: Piece) -> str:
    return f"{piece.name} {list(piece.offset)}"


def snapshot_handle(shared_name: str, name: str | None = None) -> Tensor:
    """Make the handle of the memory for snapshots on a device.

    Args:
        shared_name: Its name among the device's resources.
        name: Name of the operation.
    """
    return add_op(SNAPSHOT, name=name, shared_name=shared_name)


def _snapshot_kernel(ctx: KernelContext) -> Any:
    return ctx.resources.lookup_or_create(("snapshot", ctx.attr("shared_name")), Snapshot)


SNAPSHOT = register(
    OpDef(
        name="Snapshot",
        inputs=(),
        outputs=("handle: resource",),
        attrs=("shared_name",),
        shape=scalar,
        kernels=on_every_device(_snapshot_kernel),
        stateful=True,
    )
)


def take_snapshot(
    handle: Tensor,
    resources: Sequence[Tensor],
    names: Sequence[str],
    parts: Sequence[Part],
    name: str | None = None,
) -> Operation:
    """Copy the state of resources on their device, to be written by `write_snapshot` while training goes on.

    Args:
        handle: Where the copies go.
        resources: Handles, and tensors that are copied as they are.
        names: Name of each in the checkpoint.
        parts: For each, which part of a whole it is.
        name: Name of the operation.
    """
    return add_op(TAKE_SNAPSHOT, handle, list(resources), name=name, names=list(names), parts=list(parts))


def _take_snapshot_kernel(ctx: KernelContext, snapshot: Snapshot, *resources: Any) -> None:
    snapshot.take(ctx, list(zip(resources, ctx.attr("names"), ctx.attr("parts"), strict=True)))


TAKE_SNAPSHOT = register(
    OpDef(
        name="TakeSnapshot",
        inputs=("handle: resource", "resources: any*"),
        outputs=(),
        attrs=("names", "parts"),
        shape=no_outputs,
        kernels=on_every_device(_take_snapshot_kernel),
        stateful=True,
        access="read",
    )
)


def write_snapshot(
    prefix: TensorLike,
    handle: Tensor,
    shard: int = 0,
    shards: int = 1,
    name: str | None = None,
    write_format: str = TFRAY,
) -> Tensor:
    """Write what `take_snapshot` has copied, as `save_shard` does.

    Args:
        prefix: A string scalar: path of the checkpoint.
        handle: Where the copies are.
        shard: Number of this shard.
        shards: Number of all.
        name: Name of the operation.
        write_format: ``"tfray"`` or ``"tensorflow"``.

    Returns:
        A string scalar for `merge_checkpoint`.
    """
    attrs = {"shard": shard, "shards": shards, "write_format": write_format}
    return add_op(WRITE_SNAPSHOT, prefix, handle, name=name, **attrs)


def _write_snapshot_kernel(ctx: KernelContext, prefix: Array, snapshot: Snapshot) -> Array:
    groups = balanced(snapshot.pieces, [piece.array.nbytes for piece in snapshot.pieces])
    return _write_groups(ctx, prefix, [iter(group) for group in groups])


def _write_snapshot_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.assert_has_rank(0)
    return [TensorShape([])]


WRITE_SNAPSHOT = register(
    OpDef(
        name="WriteSnapshot",
        inputs=("prefix: string", "handle: resource"),
        outputs=("record: string",),
        attrs=("shard", "shards", "write_format"),
        later={"write_format": TFRAY},
        shape=_write_snapshot_shape,
        kernels=on_every_device(_write_snapshot_kernel),
        stateful=True,
        reach=Reach("files", path=0, is_fed=True),
    )
)


# -- restoring -----------------------------------------------------------------------------------------


def restore_shard(
    prefix: TensorLike,
    resources: Sequence[Tensor],
    names: Sequence[str],
    parts: Sequence[Part],
    expected: Sequence[tuple[str, Sequence[int | None] | None] | None],
    reshape: bool = False,
    name: str | None = None,
) -> Operation:
    """Restore resources of one device from a checkpoint. Only the parts that they need are read.

    Args:
        prefix: A string scalar: path of the checkpoint, of any format that `open_checkpoint` knows.
        resources: Handles.
        names: Name of each in the checkpoint.
        parts: For each, which part of a whole it is; the checkpoint may have been saved in other parts.
        expected: For each variable its dtype and static shape; None for other resources.
        reshape: Let a variable take values of another shape with as many elements.
        name: Name of the operation.

    Raises:
        NotFoundError: While running: there is no such checkpoint, or it lacks a tensor.
        InvalidArgumentError: While running: a tensor has another dtype or shape.
        DataLossError: While running: a file is damaged.
    """
    attrs = {"names": list(names), "parts": list(parts), "expected": list(expected), "reshape": bool(reshape)}
    return add_op(RESTORE_SHARD, prefix, list(resources), name=name, **attrs)


def _restore_shard_kernel(ctx: KernelContext, prefix: Array, *resources: Any) -> None:
    checkpoint = open_checkpoint(files.given_path(as_string(prefix), "prefix"))
    targets = list(zip(resources, ctx.attr("names"), ctx.attr("parts"), ctx.attr("expected"), strict=True))
    variables = [target for target in targets if target[3] is not None]
    for _, name, part, expected in variables:
        _check_entry(ctx, checkpoint, name, part, expected)

    def restore(index: int) -> None:
        resource, name, part, expected = variables[index]
        array = checkpoint.read(name) if part is None else checkpoint.read(name, part[1], expected[1])
        _assign(ctx, resource, array.reshape(_target_shape(ctx, expected, array)))

    parallel_for(restore, len(variables))
    for resource, name, _, expected in targets:
        if expected is None:
            resource.restore_state(_state_of(checkpoint, name))


def _check_entry(ctx: KernelContext, checkpoint: CheckpointFiles, name: str, part: Part, expected: Any) -> None:
    """Raise `InvalidArgumentError` unless a variable can take what the checkpoint has of it."""
    entry = find_tensor(checkpoint, name)
    dtype, sizes = expected
    if entry.dtype is not as_dtype(dtype):
        raise InvalidArgumentError(
            f"checkpoint {checkpoint.prefix} has tensor {name!r} as {entry.dtype.name}, the variable is {dtype}"
        )
    wanted = TensorShape(sizes if part is None else part[0])
    same_count = wanted.num_elements() == math.prod(entry.shape)
    if not wanted.is_compatible_with(entry.shape) and not (ctx.attr("reshape") and part is None and same_count):
        hint = "; Saver(reshape=True) would accept it" if same_count and part is None else ""
        found = list(entry.shape)
        raise InvalidArgumentError(
            f"Assign requires shapes of both tensors to match. checkpoint {checkpoint.prefix} has tensor {name!r} of "
            f"shape {found}, the variable has {wanted}{hint}"
        )


def _target_shape(ctx: KernelContext, expected: Any, array: Array) -> tuple[int, ...]:
    shape: tuple[int, ...] = array.shape
    if ctx.attr("reshape") and expected[1] is not None and None not in expected[1]:
        shape = tuple(expected[1])
    return shape


def _assign(ctx: KernelContext, resource: StoredVariable, array: Array) -> None:
    with resource.lock:
        present = resource.array
        if ctx.xp is np and present is not None and present.shape == array.shape and present.dtype == array.dtype:
            np.copyto(present, array)
        else:
            resource.array = ctx.xp.array(array, order="C")


def _state_of(checkpoint: CheckpointFiles, name: str) -> dict[str, Any]:
    start = name + STATE_MARK
    state = {key.removeprefix(start): checkpoint.read(key) for key in checkpoint.tensors if key.startswith(start)}
    if not state:  # TensorFlow's names of what a table has
        state = {
            part: checkpoint.read(f"{name}-{part}") for part in TABLE_PARTS if f"{name}-{part}" in checkpoint.tensors
        }
    if not state:
        raise NotFoundError(f"checkpoint {checkpoint.prefix} has no state of {name!r}")
    return state


def _restore_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.assert_has_rank(0)
    _same_number_of_names(op)
    return []


RESTORE_SHARD = register(
    OpDef(
        name="RestoreShard",
        inputs=("prefix: string", "resources: resource*"),
        outputs=(),
        attrs=("names", "parts", "expected", "reshape"),
        shape=_restore_shape,
        kernels=on_every_device(_restore_shard_kernel),
        stateful=True,
        access="update",
        reach=Reach("files", path=0, is_fed=True),
    )
)


def restore_tensor(
    prefix: TensorLike,
    tensor_name: str,
    dtype: DTypeLike,
    shape: ShapeLike = None,
    part: Part = None,
    name: str | None = None,
) -> Tensor:
    """A tensor of a checkpoint as a value.

    Args:
        prefix: A string scalar: path of the checkpoint.
        tensor_name: Name of the tensor in it.
        dtype: Dtype of the tensor.
        shape: Its static shape, or that of the part.
        part: ``(shape of the whole, offset of the part)`` to read only a part of that shape.
        name: Name of the operation.

    Returns:
        The shape of the tensor, or of the part.

    Raises:
        NotFoundError: While running: there is no such checkpoint, or it lacks the tensor.
        InvalidArgumentError: While running: the tensor has another dtype or shape.
        DataLossError: While running: a file is damaged.
    """
    shape = TensorShape(shape)
    if part is not None and not shape.is_fully_defined():
        raise InvalidArgumentError(f"part of {tensor_name!r}: its shape {shape} is not known")
    attrs = {"tensor_name": tensor_name, "dtype": as_dtype(dtype), "shape": shape, "part": part, "reshape": False}
    return add_op(RESTORE_TENSOR, prefix, name=name, **attrs)


def _restore_tensor_kernel(ctx: KernelContext, prefix: Array) -> Array:
    checkpoint = open_checkpoint(files.given_path(as_string(prefix), "prefix"))
    name, part, shape = ctx.attr("tensor_name"), ctx.attr("part"), ctx.attr("shape")
    sizes = None if shape.rank is None else shape.as_list()
    _check_entry(ctx, checkpoint, name, part, (ctx.attr("dtype").name, sizes))
    # A copy: memory that maps the file is read-only, so the step could not reuse it as a buffer.
    return np.array(checkpoint.read(name) if part is None else checkpoint.read(name, part[1], sizes))


def _restore_tensor_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.assert_has_rank(0)
    return [op.attrs["shape"]]


RESTORE_TENSOR = register(
    OpDef(
        name="RestoreTensor",
        inputs=("prefix: string",),
        outputs=("value: dtype",),
        attrs=("tensor_name", "shape", "part", "reshape"),
        types={"dtype": dtypes.VALUES},
        shape=_restore_tensor_shape,
        kernels=on_cpu(_restore_tensor_kernel),
        stateful=True,
        reach=Reach("files", path=0, is_fed=True),
    )
)


# -- the random streams of a device --------------------------------------------------------------------


class RandomStates:
    """The streams of random operations on a device, as one resource.

    Args:
        streams: Them, by the names of their operations.
    """

    def __init__(self, streams: Mapping[str, RandomStream]) -> None:
        self._streams = dict(streams)

    def state(self) -> dict[str, Any]:
        """Where each stream is."""
        return {name: stream.state()["stream"] for name, stream in self._streams.items()}

    def restore_state(self, arrays: Mapping[str, Any]) -> None:
        """Put the streams where they were. One that was not saved stays as it is."""
        for name, array in arrays.items():
            if name in self._streams:
                self._streams[name].restore_state({"stream": array})


def random_states(streams: Sequence[tuple[str, int, int]], name: str | None = None) -> Tensor:
    """Make the handle of the streams of random operations.

    Args:
        streams: Name of each operation, and its two seeds.
        name: Name of the operation.
    """
    return add_op(RANDOM_STATES, name=name, streams=[list(stream) for stream in streams])


def _random_states_kernel(ctx: KernelContext) -> RandomStates:
    return RandomStates({name: stream_for(ctx, name, seed, seed2) for name, seed, seed2 in ctx.attr("streams")})


RANDOM_STATES = register(
    OpDef(
        name="RandomStates",
        inputs=(),
        outputs=("handle: resource",),
        attrs=("streams",),
        shape=scalar,
        kernels=on_every_device(_random_states_kernel),
        stateful=True,
    )
)
