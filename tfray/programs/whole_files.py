"""Files as a whole: read, written and compared, as TensorFlow's own module ``file_io`` does it."""

from __future__ import annotations

import uuid
import zlib
from typing import Any

from tfray.errors import AlreadyExistsError
from tfray.formats import files
from tfray.formats.files import PathLike
from tfray.library.platform.gfile import GFile


def read_file_to_string(filename: PathLike, binary_mode: bool = False) -> Any:
    """What is in a file, as text, or as bytes in binary mode. Raises `NotFoundError` if there is none."""
    with GFile(filename, "rb" if binary_mode else "r") as file:
        return file.read()


def write_string_to_file(filename: PathLike, file_content: str | bytes) -> None:
    """Write a file that has text (as UTF-8) or bytes, in place of one that was there."""
    with GFile(filename, "w") as file:
        file.write(file_content)


def atomic_write_string_to_file(filename: PathLike, contents: str | bytes, overwrite: bool = True) -> None:
    """Write a file so that nobody sees a part of it: under another name, and then it is renamed.

    Args:
        filename: Path of the file.
        contents: Text (as UTF-8) or bytes.
        overwrite: Whether it may take the place of one that is there.

    Raises:
        AlreadyExistsError: There is one, and it may not.
    """
    path = files.as_path(filename)
    beside = f"{path}.tmp{uuid.uuid4().hex}"
    write_string_to_file(beside, contents)
    try:
        if not overwrite and files.exists(path):
            raise AlreadyExistsError(f"{path}: there is such a file")
        files.rename(beside, path, overwrite=True)
    except BaseException:
        files.remove(beside)
        raise


def filecmp(filename_a: PathLike, filename_b: PathLike) -> bool:
    """Whether two files have the same contents."""
    if files.stat(files.as_path(filename_a)).length != files.stat(files.as_path(filename_b)).length:
        return False
    return bool(read_file_to_string(filename_a, True) == read_file_to_string(filename_b, True))


def file_crc32(filename: PathLike, block_size: int = 1 << 20) -> str:
    """The CRC-32 of a file, in hexadecimal digits.

    Args:
        filename: Path of the file.
        block_size: How many bytes are read at once.
    """
    crc = 0
    with GFile(filename, "rb") as file:
        while data := file.read(block_size):
            crc = zlib.crc32(data, crc)
    return hex(crc & 0xFFFFFFFF)
