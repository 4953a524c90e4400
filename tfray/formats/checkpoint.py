"""Checkpoints: what a set of shard files holds, in a manifest ``PREFIX.index`` that is written last.

The manifest is JSON with a checksum of its own. It names every tensor with its dtype, its whole shape and its slices,
and every slice with its file, place and checksum. It is put in place by renaming, after every file that it names has
been written. Without a manifest there is no checkpoint, and shard files have names that no other save uses. So a save
that is interrupted anywhere leaves the checkpoint before it as it was.

Reading trusts nothing. The manifest's checksum is checked first, then that of each tensor as it is read. No more memory
is taken than the files hold.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
from functools import cached_property
from typing import Any, Final, Protocol, TypeVar
from uuid import uuid4

import numpy as np

from tfray.errors import DataLossError, InvalidArgumentError, NotFoundError
from tfray.formats import files
from tfray.formats.checkpoint_shard import FileEntry, ShardFile, ShardRecord, SliceEntry, checksum
from tfray.formats.declared_sizes import check_disjoint, element_count
from tfray.framework.call_errors import DAMAGE, fields_of, reason_of
from tfray.framework.dtypes import DType, as_dtype

INDEX_SUFFIX: Final = ".index"
FORMAT_VERSION: Final = 1
SAVED_AT: Final = "saved_at"
"""Key in a manifest's metadata for the time when it was made, in seconds since 1970. Copied files have other times."""
_HEAD: Final = b'{"tfray_checkpoint":%d,"checksum":"' % FORMAT_VERSION
_BETWEEN: Final = b'","manifest":'
_TAIL: Final = b"}\n"
_DIGITS: Final = 16  # hexadecimal digits of a manifest's checksum of 64 bits


@dataclass(frozen=True)
class TensorEntry:
    """A tensor in a checkpoint.

    Attributes:
        name: Its name.
        dtype: Its dtype.
        shape: Its whole shape.
        slices: The parts in which it was saved.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    slices: tuple[SliceEntry, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Bytes that the saved parts take."""
        return sum(part.length for part in self.slices)


class CheckpointFiles(Protocol):
    """A checkpoint of any format, open for reading."""

    prefix: str
    format_name: str
    """The format as users know it."""

    @property
    def tensors(self) -> Mapping[str, TensorEntry]:
        """What is in it, by name."""

    def read(self, name: str, offset: Sequence[int] | None = None, shape: Sequence[int] | None = None) -> Any:
        """A tensor, or the part of it that begins at `offset` and has that `shape`: an array, perhaps read-only.

        Raises:
            NotFoundError: There is no such tensor.
            InvalidArgumentError: The part is not within the tensor.
            DataLossError: The file is damaged; the message names it and the tensor.
        """


# -- the manifest --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Manifest:
    """What is in a checkpoint.

    Attributes:
        tensors: By name.
        files: By name within the folder.
        metadata: Values that the program saved with the checkpoint.
    """

    tensors: Mapping[str, TensorEntry]
    files: Mapping[str, FileEntry]
    metadata: Mapping[str, Any]

    @classmethod
    def of_shards(
        cls, shards: Iterable[ShardRecord], metadata: Mapping[str, Any] | None = None, is_whole: bool = True
    ) -> Manifest:
        """What several shards hold together, which is all parts of their tensors if `is_whole`.

        Raises:
            InvalidArgumentError: Two slices of one tensor contradict each other, or do not make a whole.
        """
        tensors: dict[str, TensorEntry] = {}
        found: dict[str, FileEntry] = {}
        for shard in shards:
            found[shard.file.name] = shard.file
            for name, dtype, shape, part in shard.slices:
                entry = tensors.setdefault(name, TensorEntry(name, as_dtype(dtype), tuple(shape)))
                if (entry.dtype.name, entry.shape) != (dtype, tuple(shape)):
                    raise InvalidArgumentError(
                        f"two parts of tensor {name!r} are saved as {entry.dtype.name} {list(entry.shape)} and "
                        f"{dtype} {list(shape)}: give different variables different names"
                    )
                tensors[name] = TensorEntry(name, entry.dtype, entry.shape, (*entry.slices, part))
        for entry in tensors.values():
            saved = sum(math.prod(part.shape) for part in entry.slices)
            if is_whole and saved != math.prod(entry.shape):
                raise InvalidArgumentError(
                    f"the parts of tensor {entry.name!r} have {saved} elements together, its shape "
                    f"{list(entry.shape)} has {math.prod(entry.shape)}: save all parts together"
                )
        return cls(dict(sorted(tensors.items())), found, dict(metadata or {}))

    def to_bytes(self) -> bytes:
        """The contents of a manifest file."""
        plain = {
            "tensors": {
                name: {
                    "dtype": entry.dtype.name,
                    "shape": entry.shape,
                    "slices": [asdict(part) for part in entry.slices],
                }
                for name, entry in self.tensors.items()
            },
            "files": {name: asdict(entry) for name, entry in self.files.items()},
            "metadata": dict(self.metadata),
        }
        body = json.dumps(plain, separators=(",", ":")).encode()
        return _HEAD + b"%016x" % checksum(body) + _BETWEEN + body + _TAIL

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> Manifest:
        """What `to_bytes` gave. Raises `DataLossError`, which names `path`, for anything else."""
        start = len(_HEAD) + _DIGITS + len(_BETWEEN)
        body = data[start : -len(_TAIL)]
        expected = _HEAD + b"%016x" % checksum(body) + _BETWEEN
        if len(data) < start + len(_TAIL) or data[:start] != expected or data[-len(_TAIL) :] != _TAIL:
            raise DataLossError(f"{path} is damaged: its contents do not fit their checksum")
        try:
            return _manifest_from_plain(json.loads(body))
        except DAMAGE as error:
            raise DataLossError(f"{path} is not a manifest: {reason_of(error)}") from error


def is_manifest(data: bytes) -> bool:
    """Whether bytes begin as a manifest does."""
    return data.startswith(_HEAD[:19])


def _manifest_from_plain(plain: Any) -> Manifest:
    fields_of(plain, "the manifest", files=dict, tensors=dict, metadata=dict)
    found = {}
    for key, fields in plain["files"].items():
        found[key] = _entry(FileEntry, fields, f"file {key!r}").checked()
        if key != found[key].name:
            raise ValueError(f"file {found[key].name!r} is listed as {key!r}")
    tensors, free = {}, {key: entry.size for key, entry in found.items()}
    for name, fields in plain["tensors"].items():
        fields_of(fields, f"tensor {name!r}", dtype=str, shape=list, slices=list)
        parts = [fields_of(part, f"a part of tensor {name!r}", offset=list, shape=list) for part in fields["slices"]]
        slices = tuple(_entry(SliceEntry, part, f"a part of tensor {name!r}").checked() for part in parts)
        dtype, shape = as_dtype(fields["dtype"]), tuple(fields["shape"])
        element_count(shape, dtype.size)
        entry = TensorEntry(name, dtype, shape, slices)
        for part in slices:
            _check_slice(entry, part, found)
            free[part.file] -= part.length
        tensors[name] = entry
    if min(free.values(), default=0) < 0:
        raise ValueError("its tensors take more bytes of a file than that has")
    return Manifest(tensors, found, dict(plain["metadata"]))


_Entry = TypeVar("_Entry", FileEntry, SliceEntry)


def _entry(kind: type[_Entry], plain: Any, what: str) -> _Entry:
    """An entry of plain data. Raises `ValueError`, which names `what`, where something is missing or too much."""
    names: list[str] = [each.name for each in dataclass_fields(kind)]
    if not isinstance(plain, dict) or plain.keys() != {*names}:
        raise ValueError(f"{what} is not described by {', '.join(names)}")
    return kind(**plain)


def _check_slice(entry: TensorEntry, part: SliceEntry, found: Mapping[str, FileEntry]) -> None:
    fits = len(part.offset) == len(part.shape) == len(entry.shape) and all(
        offset >= 0 and offset + size <= full
        for offset, size, full in zip(part.offset, part.shape, entry.shape, strict=True)
    )
    if not fits or part.position + part.length > found[part.file].size:
        raise ValueError(f"a part of tensor {entry.name!r} lies outside of it, or of its file")
    count = math.prod(part.shape)
    if part.length != count * entry.dtype.size and (entry.dtype.kind != "string" or part.length < 8 * count):
        raise ValueError(f"a part of tensor {entry.name!r} has {part.length} bytes, which its shape does not need")


# -- writing -------------------------------------------------------------------------------------------


def data_name(prefix: str, shard: int, count: int, suffix: str = ".arrow") -> str:
    """A name that no other save uses for the file of a shard, within the folder of `prefix`."""
    return f"{os.path.basename(prefix)}.data-{shard:05d}-of-{count:05d}-{uuid4().hex[:12]}{suffix}"


def sibling(prefix: str, name: str) -> str:
    """The path of a file in the folder of `prefix`."""
    folder = os.path.dirname(prefix)
    return f"{folder}/{name}" if folder and folder != "/" else folder + name


def current_name(prefix: str, name: str) -> str:
    """The name that a data file has now, for the one in the manifest: the user may have renamed a checkpoint's files.

    It is the manifest's name if there is such a file. Otherwise it begins as `prefix` does, if there is that file.
    """
    _, mark, rest = name.partition(".data-")
    renamed = f"{os.path.basename(prefix)}{mark}{rest}"
    if name != renamed and not files.exists(sibling(prefix, name)) and files.exists(sibling(prefix, renamed)):
        return renamed
    return name


# -- reading -------------------------------------------------------------------------------------------


class ArrowCheckpoint:
    """A checkpoint of tfray, open for reading. Files are mapped into memory when they are first needed.

    Args:
        prefix: Path of the checkpoint, without ``.index``.

    Raises:
        NotFoundError: There is no checkpoint.
        DataLossError: Its manifest is damaged.
    """

    format_name = "tfray"

    def __init__(self, prefix: str, contents: bytes | None = None) -> None:
        self.prefix = prefix
        path = prefix + INDEX_SUFFIX
        self.manifest = Manifest.from_bytes(files.read_bytes(path) if contents is None else contents, path)
        self._shards: dict[str, ShardFile] = {}

    @property
    def tensors(self) -> Mapping[str, TensorEntry]:
        """What is in it, by name."""
        return self.manifest.tensors

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The values that the program saved with the checkpoint."""
        return self.manifest.metadata

    def read(self, name: str, offset: Sequence[int] | None = None, shape: Sequence[int] | None = None) -> Any:
        """See `CheckpointFiles.read`. A tensor or part within one slice is a read-only view of the file."""
        return assemble(find_tensor(self, name), offset, shape, self._read_slice, self._size_of)

    def _size_of(self, file: str) -> int:
        return self._shard(file).size

    def _read_slice(self, entry: TensorEntry, part: SliceEntry) -> Any:
        return self._shard(part.file).read(entry.name, entry.dtype, part)

    def _shard(self, name: str) -> ShardFile:
        if name not in self._shards:
            path = sibling(self.prefix, current_name(self.prefix, name))
            self._shards[name] = ShardFile(path, self.manifest.files[name])
        return self._shards[name]

    def verify(self) -> None:
        """Read everything. Raises `DataLossError`, which names file and tensor, if a byte is not as it was written."""
        for name in self.manifest.files:
            self._shard(name).check_end()
        for entry in self.tensors.values():
            for part in entry.slices:
                self._read_slice(entry, part)


def find_tensor(checkpoint: CheckpointFiles, name: str) -> TensorEntry:
    """The entry of a tensor. Raises `NotFoundError`, which tells similar names."""
    found = checkpoint.tensors.get(name)
    if found is not None:
        return found
    import difflib

    close = difflib.get_close_matches(name, checkpoint.tensors, n=3)
    known = close or (list(checkpoint.tensors) if len(checkpoint.tensors) <= 8 else [])
    hint = f"; it has {', '.join(known)}" if known else f"; it has {len(checkpoint.tensors)} others"
    raise NotFoundError(f"Key {name} not found in checkpoint {checkpoint.prefix}{hint}")


def assemble(
    entry: TensorEntry,
    offset: Sequence[int] | None,
    shape: Sequence[int] | None,
    read_slice: Callable[[TensorEntry, SliceEntry], Any],
    size_of: Callable[[str], int],
) -> Any:
    """A part of a tensor from the slices that were saved.

    Args:
        entry: The tensor.
        offset: Where the part begins.
        shape: Its shape.
        read_slice: Gives the array of a slice.
        size_of: Gives the size that a file really has.

    Raises:
        DataLossError: The slices do not make the part, or are not there. Both are found before memory is taken.
    """
    wanted = _Box.of(entry, offset, shape)
    overlaps = [(part, _Box(part.offset, part.shape).intersect(wanted)) for part in entry.slices]
    pieces = [(part, common) for part, common in overlaps if common is not None]
    covered = sum(common.volume for _, common in pieces)
    if covered != wanted.volume:
        raise DataLossError(
            f"of tensor {entry.name!r}, {covered} of {wanted.volume} elements were saved; the others are missing"
        )
    if len(pieces) == 1:
        part, common = pieces[0]
        array = read_slice(entry, part)
        return array if common.shape == part.shape else array[common.within(part.offset)]
    _check_pieces(entry, [part for part, _ in pieces], size_of)
    result = np.empty(wanted.shape, entry.dtype.numpy)
    for part, common in pieces:
        result[common.within(wanted.offset)] = read_slice(entry, part)[common.within(part.offset)]
    return result


def _check_pieces(entry: TensorEntry, parts: Sequence[SliceEntry], size_of: Callable[[str], int]) -> None:
    """Raise `DataLossError` if slices overlap in the tensor, or take more bytes of a file than it has."""
    taken: dict[str, int] = {}
    for part in parts:
        taken[part.file] = taken.get(part.file, 0) + part.length
    for file, length in taken.items():
        if length > size_of(file):
            raise DataLossError(
                f"the parts of tensor {entry.name!r} take {length} bytes of {file}, which has {size_of(file)}"
            )
    try:
        if parts:
            check_disjoint([part.offset for part in parts], [part.shape for part in parts])
    except ValueError as error:
        raise DataLossError(f"tensor {entry.name!r} is damaged: {error}") from error


class _Box:
    """A part of a tensor: where it begins, and its shape."""

    def __init__(self, offset: Sequence[int], shape: Sequence[int]) -> None:
        self.offset = tuple(offset)
        self.shape = tuple(shape)

    @classmethod
    def of(cls, entry: TensorEntry, offset: Sequence[int] | None, shape: Sequence[int] | None) -> _Box:
        box = cls(
            [0] * len(entry.shape) if offset is None else offset,
            entry.shape if shape is None else shape,
        )
        inside = len(box.offset) == len(box.shape) == len(entry.shape) and all(
            first >= 0 and first + size <= full
            for first, size, full in zip(box.offset, box.shape, entry.shape, strict=True)
        )
        if not inside:
            raise InvalidArgumentError(
                f"tensor {entry.name!r} has shape {list(entry.shape)}: it has no part of shape {list(box.shape)} "
                f"at {list(box.offset)}"
            )
        return box

    @cached_property
    def volume(self) -> int:
        return math.prod(self.shape)

    def intersect(self, other: _Box) -> _Box | None:
        if not self.shape:
            return self
        pairs = list(zip(self.offset, self.shape, other.offset, other.shape, strict=True))
        first = [max(a, b) for a, _, b, _ in pairs]
        sizes = [min(a + m, b + n) - start for (a, m, b, n), start in zip(pairs, first, strict=True)]
        if self.volume == 0 or other.volume == 0:
            return self if self.shape == other.shape else None
        return _Box(first, sizes) if min(sizes) > 0 else None

    def within(self, origin: Sequence[int]) -> tuple[slice, ...]:
        return tuple(slice(a - b, a - b + n) for a, b, n in zip(self.offset, origin, self.shape, strict=True))
