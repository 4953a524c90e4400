"""Filters of exported models by their versions: which of the folders are kept."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tfray.formats.files import PathLike, as_path
from tfray.library.platform import gfile

# fmt: off
__all__ = [
    "Path", "get_paths", "largest_export_versions", "mod_export_version", "negation", "one_of_every_n_export_versions",
    "union",
]
# fmt: on


class Path(NamedTuple):
    """A folder, and the version that it is."""

    path: str
    export_version: int | None


Filter = Callable[[Sequence[Path]], list[Path]]


def largest_export_versions(n: int) -> Filter:
    """Keep the `n` newest."""
    return lambda paths: sorted(sorted(_numbered(paths), key=lambda path: path.export_version or 0)[-n:] if n else [])


def one_of_every_n_export_versions(n: int) -> Filter:
    """Keep the newest of each interval of versions: from 0 to `n`, to ``2 * n``, and so on."""

    def keep(paths: Sequence[Path]) -> list[Path]:
        newest: dict[int, Path] = {}
        for path in sorted(_numbered(paths), key=lambda path: path.export_version or 0):
            newest[math.floor(((path.export_version or 1) - 1) / n)] = path
        return sorted(newest.values())

    return keep


def mod_export_version(n: int) -> Filter:
    """Keep those whose version `n` divides."""
    return lambda paths: sorted(path for path in paths if (path.export_version or 0) % n == 0)


def union(lf: Filter, rf: Filter) -> Filter:
    """Keep what one of two filters keeps."""
    return lambda paths: sorted({*lf(paths), *rf(paths)})


def negation(f: Filter) -> Filter:
    """Keep what a filter does not keep."""
    return lambda paths: sorted(set(paths) - set(f(paths)))


def get_paths(base_dir: PathLike, parser: Callable[[Path], Path | None]) -> list[Path]:
    """What lies in a folder, in order, as far as `parser` gives it a version: it returns None to leave a path out."""
    base = as_path(base_dir)
    found = (parser(Path(os.path.join(base, name.rstrip("/")), None)) for name in gfile.ListDirectory(base))
    return sorted(path for path in found if path)


def _numbered(paths: Sequence[Path]) -> list[Path]:
    return [path for path in paths if path.export_version is not None]
