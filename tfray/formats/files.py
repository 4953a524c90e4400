"""Files and folders by path: of this machine, or of a store that pyarrow knows when the path has a scheme (``s3://``).

Failures are those of `tfray.errors`. pyarrow is imported when the first path with a scheme is used.
"""

from __future__ import annotations

import errno
import fnmatch
import glob as local_glob
import io
import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from types import TracebackType
from typing import Any, BinaryIO, Final, NamedTuple, Protocol, Self, cast

from tfray.errors import (
    AlreadyExistsError,
    ArgumentError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
)

PathLike = str | bytes | os.PathLike[Any]

CHUNK_BYTES: Final = 1 << 20
"""1 MiB: the buffer of a file in a store, and the part of a file that is copied at a time."""
_WILDCARDS: Final = r"[*?\[]"
_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]+://"
_AT_ONCE: Final = 1 << 30
"""Bytes of a file that one call of the system surely reads."""
_TEMPORARY: Final = r"(?s)(.+)\.tfray-tmp-[0-9a-f]{12}"


class Closing(ABC):
    """What a ``with`` block closes at its end."""

    @abstractmethod
    def close(self) -> None:
        """Close it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class FileStatistics(NamedTuple):
    """What `stat` tells of a file or folder.

    Attributes:
        length: Size in bytes; -1 where the store has none for folders.
        mtime_nsec: Time of the last change, in nanoseconds since 1970.
        is_directory: Whether it is a folder.
    """

    length: int
    mtime_nsec: int
    is_directory: bool


class Store(Protocol):
    """One file system. Paths are those of the store, without the scheme; failures are `OSError`."""

    def open(self, path: str, mode: str) -> BinaryIO:
        """The file, opened in one of the modes ``rb``, ``wb`` and ``ab``."""

    def stat(self, path: str) -> FileStatistics:
        """What is known of the path. Raises `FileNotFoundError`."""

    def names(self, path: str) -> list[str]:
        """Names of what is in a folder."""

    def glob(self, pattern: str) -> list[str]:
        """Paths that match, in any order. ``*`` and ``?`` do not match a slash."""

    def make_folder(self, path: str, parents: bool) -> None:
        """Make a folder; with `parents`, missing folders above as well, and no error when it is there."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def remove_tree(self, path: str) -> None:
        """Remove a folder and all that is in it."""

    def move(self, source: str, target: str) -> None:
        """Rename, replacing a file at `target`."""


class LocalStore:
    """Files of this machine."""

    def open(self, path: str, mode: str) -> BinaryIO:
        return cast(BinaryIO, open(path, mode))

    def stat(self, path: str) -> FileStatistics:
        found = os.stat(path)
        return FileStatistics(found.st_size, found.st_mtime_ns, os.path.isdir(path))

    def names(self, path: str) -> list[str]:
        return os.listdir(path)

    def glob(self, pattern: str) -> list[str]:
        return local_glob.glob(pattern, include_hidden=True)

    def make_folder(self, path: str, parents: bool) -> None:
        if parents:
            os.makedirs(path, exist_ok=True)
        else:
            os.mkdir(path)

    def remove(self, path: str) -> None:
        os.remove(path)

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)

    def move(self, source: str, target: str) -> None:
        os.replace(source, target)


class ArrowStore:
    """Files behind a ``pyarrow.fs.FileSystem``."""

    def __init__(self, file_system: Any) -> None:
        self._files = file_system

    def open(self, path: str, mode: str) -> BinaryIO:
        if mode == "rb":
            return cast(BinaryIO, io.BufferedReader(self._files.open_input_file(path), CHUNK_BYTES))
        stream = self._files.open_output_stream if mode == "wb" else self._files.open_append_stream
        return cast(BinaryIO, stream(path))

    def stat(self, path: str) -> FileStatistics:
        found = self._files.get_file_info(path)
        if found.type.name == "NotFound":
            raise FileNotFoundError(errno.ENOENT, "no such file or folder", path)
        return FileStatistics(-1 if found.size is None else found.size, found.mtime_ns or 0, not found.is_file)

    def names(self, path: str) -> list[str]:
        return [entry.base_name for entry in self._entries(path, recursive=False)]

    def glob(self, pattern: str) -> list[str]:
        parts = pattern.split("/")
        first = next((i for i, part in enumerate(parts) if re.search(_WILDCARDS, part)), len(parts) - 1)
        folder = "/".join(parts[:first]) or ("/" if pattern.startswith("/") else "")
        try:
            found = [entry.path for entry in self._entries(folder, recursive=first < len(parts) - 1)]
        except FileNotFoundError:
            return []
        return [path for path in found if _matches(path.split("/"), parts)]

    def _entries(self, folder: str, recursive: bool) -> Any:
        from pyarrow.fs import FileSelector

        return self._files.get_file_info(FileSelector(folder, recursive=recursive))

    def make_folder(self, path: str, parents: bool) -> None:
        if not parents and self._files.get_file_info(path).type.name != "NotFound":
            raise FileExistsError(errno.EEXIST, "exists already", path)
        self._files.create_dir(path, recursive=parents)

    def remove(self, path: str) -> None:
        self._files.delete_file(path)

    def remove_tree(self, path: str) -> None:
        self._files.delete_dir(path)

    def move(self, source: str, target: str) -> None:
        self._files.move(source, target)


def _matches(path: list[str], pattern: list[str]) -> bool:
    return len(path) == len(pattern) and all(map(fnmatch.fnmatchcase, path, pattern))


_LOCAL: Final = LocalStore()


def as_path(path: PathLike) -> str:
    """A path as text. Raises `ArgumentError` for what is none."""
    try:
        return os.fsdecode(path)
    except TypeError as error:
        raise ArgumentError(f"{path!r} is not a path: expected a string") from error


def given_path(path: PathLike, name: str) -> str:
    """A path that a user gives as the argument `name`, as text; every such argument goes through here.

    Raises:
        ArgumentError: It is no path.
        InvalidArgumentError: It is an empty one: ``f"{path}/name"`` would then lie at the file system's root.
    """
    try:
        text = os.fsdecode(path)
    except TypeError as error:
        raise ArgumentError(f"{name} must be a path, not {path!r}") from error
    if not text.strip():
        raise InvalidArgumentError(f"{name} is an empty path ({text!r}): give one, or is a variable unset?")
    return text


def current_folder() -> str | None:
    """The working directory of this process; None where it has been removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None


def absolute(path: str) -> str:
    """The same path for processes whose current folder may be another. One with a scheme is returned as it is."""
    return path if re.match(_SCHEME, path) else os.path.abspath(path)


def locate(path: PathLike) -> tuple[Store, str, str]:
    """The store of a path, the path within the store, and the prefix that makes a path of the store a whole one.

    Raises:
        NotFoundError: The path is empty.
    """
    text = as_path(path)
    if not text.strip():
        raise NotFoundError(f"the path is empty ({text!r}): no file or folder has it")
    if not re.match(_SCHEME, text):
        return _LOCAL, text, ""
    if text.startswith("file://"):
        return _LOCAL, text.removeprefix("file://"), "file://"
    scheme, _, rest = text.partition("://")
    if scheme in _REGISTERED:
        return _REGISTERED[scheme], rest, f"{scheme}://"
    bucket, slash, key = rest.partition("/")
    store, root = _arrow_store(f"{scheme}://{bucket}")
    # For pyarrow the bucket of an object store is the first part of the path; a server's name is no part of it.
    prefix = f"{scheme}://" if root else f"{scheme}://{bucket}"
    return store, (f"{bucket}{slash}{key}" if root else f"{slash}{key}").rstrip("/") or root, prefix


def register_file_system(scheme: str, file_system: Any) -> None:
    """Let paths that begin with ``scheme://`` be those of a file system that pyarrow cannot open by its URI alone.

    Every process that uses such a path has to register the file system. Actors do if a module that registers it is one
    of the ``op_modules`` of their `tf.Cluster`.

    Args:
        scheme: Letters, digits, ``+``, ``.`` and ``-``. If it stood for another file system, it no longer does.
        file_system: A ``pyarrow.fs.FileSystem``: one with credentials of its own, or one of fsspec
            (``PyFileSystem(FSSpecHandler(...))``). What follows the scheme is the path in it.

    Raises:
        InvalidArgumentError: That is no scheme, or ``file``.
    """
    if not re.fullmatch(_SCHEME, f"{scheme}://") or scheme == "file":
        raise InvalidArgumentError(f"{scheme!r} cannot be a scheme: take letters, digits, '+', '.' and '-'")
    _REGISTERED[scheme] = ArrowStore(file_system)


_REGISTERED: Final[dict[str, Store]] = {}


@lru_cache(maxsize=64)
def _arrow_store(uri: str) -> tuple[Store, str]:
    try:
        from pyarrow import ArrowException
        from pyarrow.fs import FileSystem
    except ImportError as error:
        raise UnimplementedError(f"files at {uri} need pyarrow: pip install pyarrow") from error
    try:
        file_system, root = FileSystem.from_uri(uri)
    except (ArrowException, ValueError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise InvalidArgumentError(f"no file system serves {uri}: {reason}") from error
    return ArrowStore(file_system), root.strip("/")


@contextmanager
def failures_of(path: PathLike) -> Iterator[None]:
    """Turn the `OSError`s of a block that works on `path` into errors of `tfray.errors` that name it."""
    try:
        yield
    except OSError as error:
        if isinstance(error, OpError):
            raise
        kind = next((kind for types, kind in _KINDS if isinstance(error, types)), UnknownError)
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            kind = ResourceExhaustedError
        elif error.errno == errno.EROFS:
            kind = PermissionDeniedError
        elif error.errno == errno.ENOTEMPTY:
            kind = FailedPreconditionError
        elif error.errno in (errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP):
            kind = InvalidArgumentError
        raise kind(f"{as_path(path)}: {error.strerror or error}") from error


_KINDS: Final[tuple[tuple[type[OSError] | tuple[type[OSError], ...], type[OpError]], ...]] = (
    (FileNotFoundError, NotFoundError),
    (PermissionError, PermissionDeniedError),
    (FileExistsError, AlreadyExistsError),
    ((IsADirectoryError, NotADirectoryError), FailedPreconditionError),
    (io.UnsupportedOperation, UnimplementedError),
)


# -- what programs do with paths -----------------------------------------------------------------------


def open_file(path: PathLike, mode: str = "rb") -> BinaryIO:
    """Open a file.

    Args:
        path: Where it is.
        mode: ``rb``, ``wb`` or ``ab``; the local files also take ``rb+`` and ``wb+``.

    Raises:
        NotFoundError: There is no such file.
        FailedPreconditionError: It is a folder.
        PermissionDeniedError: It may not be used so.
    """
    with failures_of(path):
        store, inner, _ = locate(path)
        return store.open(inner, mode)


def read_bytes(path: PathLike) -> bytes:
    """The contents of a file. Raises as `open_file`."""
    with failures_of(path):
        store, inner, _ = locate(path)
        if isinstance(store, LocalStore):
            return _read_local(inner)
        with store.open(inner, "rb") as file:
            return file.read()


def _read_local(path: str) -> bytes:
    """The contents of a file on this machine.

    Each call of the system gives up the interpreter's lock, and a thread of several waits for it afterwards. Most files
    take four calls here; they take seven with one of Python's file objects.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        contents = os.read(descriptor, size) if size < _AT_ONCE else b""
        if 0 < len(contents) == size:
            return contents
        with open(descriptor, "rb", 0, closefd=False) as rest:  # what is large, is empty, or does not tell its size
            return contents + rest.read()
    finally:
        os.close(descriptor)


def write_bytes(path: PathLike, *contents: bytes) -> None:
    """Write a file of these bytes, one behind the other, replacing one that is there. Raises as `open_file`."""
    with failures_of(path), open_file(path, "wb") as file:  # what is buffered is written when it is closed
        for piece in contents:
            file.write(piece)


def create_empty(path: PathLike) -> None:
    """Make a file without contents, as a claim on its name.

    On file systems of this machine only one process at a time succeeds.

    Raises:
        AlreadyExistsError: It is there.
    """
    store, inner, _ = locate(path)
    with failures_of(path):
        if isinstance(store, LocalStore):
            open(inner, "xb").close()
        else:
            _refuse_existing(path, overwrite=False)
            store.open(inner, "wb").close()


def temporary_path(path: PathLike) -> str:
    """A path beside `path` that nobody else uses, for what is to be renamed to it."""
    return f"{as_path(path)}.tfray-tmp-{os.urandom(6).hex()}"


def temporary_target(name: str) -> str | None:
    """The name to which a temporary file is to be renamed; None if `temporary_path` gives no such names."""
    match = re.fullmatch(_TEMPORARY, name)
    return None if match is None else match[1]


def replace_durably(path: PathLike, contents: bytes, synced: bool = True) -> None:
    """Replace a file as a whole: a reader, even after a loss of power, finds the old contents or the new ones.

    On file systems of this machine the file is on the disk afterwards, and so are earlier changes of its folder.
    Without `synced` they are there once the system has written them.
    """
    temporary = temporary_path(path)
    synced = synced and isinstance(locate(path)[0], LocalStore)
    try:
        with failures_of(temporary), open_file(temporary, "wb") as file:
            file.write(contents)
            if synced:
                file.flush()
                os.fsync(file.fileno())
        rename(temporary, path, overwrite=True)
    except OpError:
        with suppress(OpError):
            remove(temporary)
        raise
    if synced:
        with failures_of(path):
            _sync_folder(os.path.dirname(locate(path)[1]) or ".")


def _sync_folder(path: str) -> None:
    if os.name != "posix":
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot sync a folder
            raise
    finally:
        os.close(folder)


def stat(path: PathLike) -> FileStatistics:
    """Size, time and kind of a file or folder. Raises `NotFoundError`."""
    with failures_of(path):
        store, inner, _ = locate(path)
        return store.stat(inner)


def exists(path: PathLike) -> bool:
    """Whether there is a file or folder at `path`."""
    try:
        stat(path)
    except (NotFoundError, FailedPreconditionError):
        return False
    return True


def is_folder(path: PathLike) -> bool:
    """Whether there is a folder at `path`."""
    try:
        return stat(path).is_directory
    except (NotFoundError, FailedPreconditionError):
        return False


def list_folder(path: PathLike) -> list[str]:
    """Names of what is in a folder, sorted. Raises `NotFoundError` when there is none."""
    with failures_of(path):
        store, inner, _ = locate(path)
        return sorted(store.names(inner))


def glob(pattern: PathLike) -> list[str]:
    """Paths that match a pattern, sorted.

    Args:
        pattern: A path in which ``*``, ``?`` and ``[...]`` stand for any characters but a slash.
    """
    if not as_path(pattern).strip():
        return []
    with failures_of(pattern):
        store, inner, prefix = locate(pattern)
        return sorted(prefix + path for path in store.glob(inner))


def make_folders(path: PathLike) -> None:
    """Make a folder and those above it. One that is there is fine."""
    with failures_of(path):
        store, inner, _ = locate(path)
        store.make_folder(inner, parents=True)


def make_folder(path: PathLike) -> None:
    """Make a folder in one that exists. Raises `AlreadyExistsError` when it is there."""
    with failures_of(path):
        store, inner, _ = locate(path)
        store.make_folder(inner, parents=False)


def remove(path: PathLike) -> None:
    """Remove a file.

    Raises:
        NotFoundError: There is none.
        FailedPreconditionError: It is a folder.
    """
    if stat(path).is_directory:
        raise FailedPreconditionError(f"{as_path(path)}: is a folder, not a file")
    with failures_of(path):
        store, inner, _ = locate(path)
        store.remove(inner)


def remove_tree(path: PathLike) -> None:
    """Remove a folder and all that is in it. Raises `NotFoundError` when there is none."""
    if not stat(path).is_directory:
        raise FailedPreconditionError(f"{as_path(path)}: is a file, not a folder")
    with failures_of(path):
        store, inner, _ = locate(path)
        store.remove_tree(inner)


def copy(source: PathLike, target: PathLike, overwrite: bool = False) -> None:
    """Copy a file, between stores as well.

    Raises:
        AlreadyExistsError: There is a file at `target` and `overwrite` is not set.
    """
    _refuse_existing(target, overwrite)
    with open_file(source) as reader, failures_of(target), open_file(target, "wb") as writer:
        while chunk := reader.read(CHUNK_BYTES):
            writer.write(chunk)


def rename(source: PathLike, target: PathLike, overwrite: bool = False) -> None:
    """Rename or move a file or folder.

    Raises:
        AlreadyExistsError: There is something at `target` and `overwrite` is not set.
    """
    stat(source)
    _refuse_existing(target, overwrite)
    store, inner, _ = locate(source)
    other, outer, _ = locate(target)
    if store is not other:
        copy(source, target, overwrite)
        return remove(source)
    with failures_of(source):
        store.move(inner, outer)


def _refuse_existing(path: PathLike, overwrite: bool) -> None:
    if not overwrite and exists(path):
        raise AlreadyExistsError(f"{as_path(path)}: exists already; pass overwrite=True to replace it")
