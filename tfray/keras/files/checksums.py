"""Checksums of files, as Keras tells whether what it has loaded is whole."""

from __future__ import annotations

import hashlib

from tfray.formats.files import PathLike, failures_of


def hash_file(fpath: PathLike, algorithm: str = "sha256", chunk_size: int = 65535) -> str:
    """The checksum of a file, in hexadecimal digits.

    Args:
        fpath: The file.
        algorithm: ``md5``, ``sha256``, or ``auto`` for ``sha256``.
        chunk_size: Accepted for Keras's sake.

    Raises:
        NotFoundError: There is no such file.
    """
    with failures_of(fpath), open(fpath, "rb") as file:
        return hashlib.file_digest(file, "sha256" if algorithm == "auto" else algorithm).hexdigest()


def kind_of(checksum: str, algorithm: str = "auto") -> str:
    """The algorithm of a checksum; ``auto`` goes by its length: ``sha256`` or ``md5``."""
    return algorithm if algorithm != "auto" else "sha256" if len(checksum) == 64 else "md5"


def validate_file(fpath: PathLike, file_hash: str, algorithm: str = "auto", chunk_size: int = 65535) -> bool:
    """Whether a file has a checksum; arguments as for `hash_file` and `kind_of`."""
    return hash_file(fpath, kind_of(file_hash, algorithm), chunk_size) == str(file_hash)
