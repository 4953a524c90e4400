"""The names of ``tf.gfile`` and ``tf.io.gfile``: files on this machine, or in a store that pyarrow knows (``s3://``).

Every function raises the errors of `tf.errors`: `NotFoundError`, `AlreadyExistsError`, `PermissionDeniedError`,
`FailedPreconditionError` for a folder where a file is expected, or the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tfray.errors import InvalidArgumentError, NotFoundError, OpError, PermissionDeniedError
from tfray.formats import files
from tfray.formats.files import FileStatistics as FileStatistics
from tfray.formats.files import PathLike
from tfray.formats.files import register_file_system as register_file_system

# fmt: off
__all__ = [
    "Copy", "DeleteRecursively", "Exists", "FastGFile", "FileStatistics", "GFile", "Glob", "IsDirectory",
    "ListDirectory", "MakeDirs", "MkDir", "Open", "Remove", "Rename", "Stat", "Walk", "copy", "exists", "glob", "isdir",
    "listdir", "makedirs", "mkdir", "register_file_system", "remove", "rename", "rmtree", "stat", "walk",
]
# fmt: on


class GFile(files.Closing):
    """An open file. It is opened when it is first used.

    Args:
        name: Path of the file.
        mode: ``r``, ``w``, ``a``, ``r+`` or ``w+``, with ``b`` for bytes; text is UTF-8. With ``w+`` a file is
            read from its beginning on and written at its end, whichever comes first, as TensorFlow does it.
    """

    def __init__(self, name: PathLike, mode: str = "r") -> None:
        kind = mode.replace("b", "").replace("t", "")
        if kind not in ("r", "w", "a", "r+", "w+", "a+"):
            raise InvalidArgumentError(f"GFile: mode is {mode!r}; expected r, w, a, r+, w+ or a+, perhaps with b")
        self._path = files.as_path(name)
        self._mode = mode
        self._kind = kind[0] + "b" + kind[1:]
        self._binary = "b" in mode
        self._is_both = kind in ("w+", "a+")
        self._stream: Any = None
        self._read_at = 0  # where reading goes on in a file that is also written

    @property
    def name(self) -> str:
        """The path."""
        return self._path

    @property
    def mode(self) -> str:
        """The mode, as given."""
        return self._mode

    @property
    def _file(self) -> Any:
        if self._stream is None:
            self._stream = files.open_file(self._path, self._kind)
        return self._stream

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with files.failures_of(self._path):
            if self._is_both:
                self._file.seek(self._read_at)
            yield
            if self._is_both:
                self._read_at = self._file.tell()

    def _check(self, is_open: bool, purpose: str) -> None:
        if not is_open:
            raise PermissionDeniedError(f"{self._path}: the file is not open for {purpose}: its mode is {self._mode!r}")

    def _text(self, data: bytes) -> Any:
        return data if self._binary else data.decode("utf-8")

    def size(self) -> int:
        """Size in bytes."""
        if self._stream is not None and "r" not in self._kind:
            self.flush()
        return files.stat(self._path).length

    def read(self, n: int = -1) -> Any:
        """The next `n` bytes (characters in text mode), or all that is left.

        Raises:
            PermissionDeniedError: The file is open for writing only.
        """
        self._check(self.readable(), "reading")
        with self._reading():
            if n is None or n < 0:
                return self._text(self._file.read())
            return self._file.read(n) if self._binary else self._read_characters(n)

    def _read_characters(self, count: int) -> str:
        data = b""
        while (missing := count - sum(byte & 0xC0 != 0x80 for byte in data)) > 0:
            chunk = self._file.read(missing)
            if not chunk:
                return data.decode("utf-8")
            data += chunk
        while True:  # the rest of the last character
            try:
                return data.decode("utf-8")
            except UnicodeDecodeError as error:
                chunk = self._file.read(1)
                if not chunk or len(data) - error.start >= 4:
                    raise
                data += chunk

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer of bytes; returns how many were read."""
        with self._reading():
            return int(self._file.readinto(buffer))

    def readline(self) -> Any:
        """The next line with its end, empty at the end of the file."""
        self._check(self.readable(), "reading")
        with self._reading():
            return self._text(self._file.readline())

    def readlines(self) -> list[Any]:
        """All lines that are left."""
        return list(self)

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Go to a position in bytes.

        Args:
            offset: Bytes from where `whence` says.
            whence: 0 from the start, 1 from here, 2 from the end.
            position: The older name of `offset`.
        """
        target = position if offset is None else offset
        if target is None:
            raise InvalidArgumentError("GFile.seek: where to? pass offset")
        with self._reading():
            self._file.seek(target, whence)

    def tell(self) -> int:
        """The position in bytes."""
        with files.failures_of(self._path):
            return self._read_at if self._is_both else int(self._file.tell())

    def seekable(self) -> bool:
        """Whether `seek` works: it does where files are read."""
        return bool(self._file.seekable())

    def readable(self) -> bool:
        """Whether the mode allows reading."""
        return self._kind[0] == "r" or "+" in self._kind

    def writable(self) -> bool:
        """Whether the mode allows writing."""
        return self._kind != "rb"

    @property
    def closed(self) -> bool:
        """Whether the file was closed."""
        return self._stream is not None and bool(self._stream.closed)

    def write(self, file_content: str | bytes) -> int:
        """Write text (as UTF-8) or bytes; returns how many bytes.

        Raises:
            PermissionDeniedError: The file is open for reading only.
        """
        self._check(self.writable(), "writing")
        data = file_content.encode("utf-8") if isinstance(file_content, str) else file_content
        with files.failures_of(self._path):
            if self._is_both:
                self._file.seek(0, 2)
            self._file.write(data)
        return len(data)

    def flush(self) -> None:
        """Hand what was written to the file system."""
        with files.failures_of(self._path):
            self._file.flush()

    def close(self) -> None:
        """Close the file; one opened for writing exists from then on even if nothing was written."""
        if self._stream is None and self._kind[0] == "w":
            self._stream = files.open_file(self._path, self._kind)
        if self._stream is not None:
            with files.failures_of(self._path):
                self._stream.close()

    def __iter__(self) -> Iterator[Any]:
        while line := self.readline():
            yield line

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    next = __next__


Open = GFile
FastGFile = GFile
exists = files.exists
isdir = files.is_folder
listdir = files.list_folder
makedirs = files.make_folders
mkdir = files.make_folder
remove = files.remove
rmtree = files.remove_tree
stat = files.stat


# The names of ``tf.gfile``, whose arguments have other names than those of ``tf.io.gfile``.


def Exists(filename: PathLike) -> bool:
    """Whether there is a file or folder of that path."""
    return files.exists(filename)


def IsDirectory(dirname: PathLike) -> bool:
    """Whether there is a folder of that path."""
    return files.is_folder(dirname)


def ListDirectory(dirname: PathLike) -> list[str]:
    """Names of what is in a folder, sorted. Raises `NotFoundError` when there is none."""
    return files.list_folder(dirname)


def MakeDirs(dirname: PathLike) -> None:
    """Make a folder and those above it. One that is there is fine."""
    files.make_folders(dirname)


def MkDir(dirname: PathLike) -> None:
    """Make a folder in one that exists. Raises `AlreadyExistsError` when it is there."""
    files.make_folder(dirname)


def Remove(filename: PathLike) -> None:
    """Remove a file. Raises `NotFoundError` when there is none, `FailedPreconditionError` when it is a folder."""
    files.remove(filename)


def DeleteRecursively(dirname: PathLike) -> None:
    """Remove a folder and all that is in it. Raises `NotFoundError` when there is none."""
    files.remove_tree(dirname)


def Stat(filename: PathLike) -> FileStatistics:
    """Size, time and kind of a file or folder. Raises `NotFoundError`."""
    return files.stat(filename)


def Copy(oldpath: PathLike, newpath: PathLike, overwrite: bool = False) -> None:
    """Copy a file. Raises `AlreadyExistsError` when there is one at `newpath` and `overwrite` is not set."""
    files.copy(oldpath, newpath, overwrite)


def Rename(oldname: PathLike, newname: PathLike, overwrite: bool = False) -> None:
    """Rename or move. Raises `AlreadyExistsError` when `newname` is taken and `overwrite` is not set."""
    files.rename(oldname, newname, overwrite)


def copy(src: PathLike, dst: PathLike, overwrite: bool = False) -> None:
    """`Copy` under the names of ``tf.io.gfile``."""
    files.copy(src, dst, overwrite)


def rename(src: PathLike, dst: PathLike, overwrite: bool = False) -> None:
    """`Rename` under the names of ``tf.io.gfile``."""
    files.rename(src, dst, overwrite)


def Glob(filename: Any) -> list[str]:
    """Paths that match a pattern, or one of several, sorted.

    Args:
        filename: A path with ``*``, ``?`` and ``[...]``, which match no slash; or a list of them.
    """
    if isinstance(filename, (list, tuple)):
        return sorted({path for pattern in filename for path in files.glob(pattern)})
    return files.glob(filename)


def glob(pattern: Any) -> list[str]:
    """`Glob` under the names of ``tf.io.gfile``."""
    return Glob(pattern)


def Walk(top: PathLike, in_order: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
    """Visit a folder and all folders in it.

    Args:
        top: Where to start; nothing is visited when it is no folder.
        in_order: Whether a folder comes before those in it, or after.

    Yields:
        ``(path, names of folders, names of files)``.
    """
    return walk(top, in_order)


def walk(
    top: PathLike, topdown: bool = True, onerror: Callable[[OpError], None] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """`Walk` under the names of ``tf.io.gfile``; `onerror` is called with what keeps a folder from being read."""
    path = files.as_path(top)
    try:
        names = files.list_folder(path)
    except OpError as error:
        if onerror is not None:
            onerror(error)
        elif not isinstance(error, NotFoundError):
            raise
        return
    folders = [name for name in names if files.is_folder(_join(path, name))]
    here = path, folders, [name for name in names if name not in set(folders)]
    if topdown:
        yield here
    for name in folders:
        yield from walk(_join(path, name), topdown, onerror)
    if not topdown:
        yield here


def _join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if folder else name
