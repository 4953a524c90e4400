"""The names of ``tf.resource_loader``: files that lie beside a program's own source."""

from __future__ import annotations

import os
import sys
from types import FrameType

from tfray.formats import files

# fmt: off
__all__ = [
    "get_data_files_path", "get_path_to_datafile", "get_root_dir_with_all_resources", "load_resource",
    "readahead_file_path",
]
# fmt: on


def load_resource(path: str) -> bytes:
    """The contents of a file whose path is relative to the file that calls this."""
    return files.read_bytes(_beside(sys._getframe(1), path))


def get_data_files_path() -> str:
    """The folder of the file that calls this."""
    return _beside(sys._getframe(1), "").rstrip(os.sep)


def get_root_dir_with_all_resources() -> str:
    """The folder of the file that calls this: files lie where they were installed."""
    return _beside(sys._getframe(1), "").rstrip(os.sep)


def get_path_to_datafile(path: str) -> str:
    """The path of a file that is given relative to the file that calls this."""
    return _beside(sys._getframe(1), path)


def readahead_file_path(path: str, readahead: str = "128M") -> str:
    """`path`; reading ahead is left to the operating system."""
    return path


def _beside(caller: FrameType, path: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(caller.f_code.co_filename)), path)
