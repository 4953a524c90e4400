"""Checkpoints in a folder: they are put in place, replaced and removed, and the rests of interrupted saves cleared.

Only files that a save has certainly made are removed. They have names that only saves give, and either a manifest names
them, or no manifest does and their save is over. A save that is under way has a file ``PREFIX.tfray-saving-TOKEN``,
which says which process saves; its files are left alone. Each save has files of its own, and the manifest that is put
in place last counts. So two saves of one prefix, by one process or several, do each other no harm in any order.

A device may still be completing a checkpoint when the process that asked for it takes the save for failed, because
another device has died. Therefore the device announces what it does, too, and then looks whether the save goes on;
the process first notes that its save is over, and then looks for announcements. One of them sees the other: either the
checkpoint is given up, or its files stay.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Final

from tfray.errors import AbortedError, AlreadyExistsError, NotFoundError, OpError
from tfray.formats import files
from tfray.formats.bundles.bundle_writer import bundle_index
from tfray.formats.bundles.tensor_bundle import TensorBundle, bundle_data_name
from tfray.formats.checkpoint import INDEX_SUFFIX, ArrowCheckpoint, Manifest, current_name, is_manifest, sibling
from tfray.formats.holder import Holder

META_SUFFIX: Final = ".meta"
BACKGROUND_BYTES: Final = 64 << 20
"""64 MiB. Files that have this size together are removed in the background: removing gigabytes takes some tenths of a
second."""

FOREIGN_SAVE_S: Final = 3600.0
"""Seconds. This process cannot see processes of other machines. If the file of such a save is older than this, the
save is taken to be over. A smaller value could remove files of a slow save; a larger one keeps rests longer."""

MOST_DATA_FILES: Final = 99_999
"""TensorFlow writes the number of data files with five digits."""

_DATA: Final = re.compile(r"(.+)\.data-\d{5}-of-\d{5}-[0-9a-f]{12}\.(?:arrow|part)", re.DOTALL)
_BUNDLE_DATA: Final = re.compile(r"(.+)\.data-\d{5}-of-(\d{5})", re.DOTALL)
_SAVING: Final = re.compile(r"(.+)\.tfray-saving-[0-9a-f]{12}(?:-completing)?", re.DOTALL)
_COMPLETING: Final = "-completing"
"""The end of the file of a device that makes data files a checkpoint; without it, it is that of the whole save."""


# -- one checkpoint ------------------------------------------------------------------------------------


def write_manifest(prefix: str, manifest: Manifest, is_announced: bool = False) -> None:
    """Make a checkpoint of shards that have been written: put the manifest in place, then remove what it replaced.

    Args:
        prefix: The checkpoint.
        manifest: What it holds.
        is_announced: Whether this is part of a `saving`. Without one that is under way, the checkpoint is given up.

    Raises:
        AbortedError: A shard file is gone, or has changed, since it was written, or the save is over.
    """
    with _completing(prefix, is_announced):
        _check_shards(prefix, manifest)
        _put_in_place(prefix, manifest.to_bytes(), manifest.files)


def write_bundle_index(prefix: str, manifest: Manifest, is_announced: bool = False) -> None:
    """`write_manifest` for TensorFlow's format: the data files get their names before the index is put in place.

    Raises:
        AbortedError: A data file is gone, or has changed, since it was written, or the save is over.
        InvalidArgumentError: TensorFlow's checkpoints cannot hold a tensor.
    """
    with _completing(prefix, is_announced):
        _check_shards(prefix, manifest)
        base = os.path.basename(prefix)
        count = _claimed_count(prefix, len(manifest.files))
        contents = bundle_index(manifest, count)
        names = [bundle_data_name(base, index, count) for index in range(len(manifest.files))]
        for temporary, name in zip(manifest.files, names, strict=True):
            files.rename(sibling(prefix, temporary), sibling(prefix, name), overwrite=True)
        _put_in_place(prefix, contents, names)


@contextlib.contextmanager
def _completing(prefix: str, is_announced: bool) -> Iterator[None]:
    """Around the code that makes files a checkpoint, which nobody clears away meanwhile."""
    holder = Holder.new()
    path = _path_of(prefix, holder) + _COMPLETING
    try:
        files.write_bytes(path, holder.to_bytes())
        if is_announced and not is_being_saved(prefix):
            raise AbortedError(
                f"the save of checkpoint {prefix} was given up before it was complete; or this host does not share the "
                "folder with the one on which the program runs: all hosts must see the same folder"
            )
        yield
    finally:
        holder.end()
        _remove_quietly(path)


def _path_of(prefix: str, holder: Holder) -> str:
    return f"{prefix}.tfray-saving-{holder.token}"


def is_being_saved(prefix: str) -> bool:
    """Whether a `saving` of this checkpoint is under way."""
    base = os.path.basename(prefix)
    names = [name for name in files.list_folder(sibling(prefix, "") or ".") if not name.endswith(_COMPLETING)]
    return any(_is_under_way(sibling(prefix, name)) for name in names if _base_of(_SAVING, name) == base)


def _claimed_count(prefix: str, least: int) -> int:
    """A number of data files that is in no name of a file; from now on it is. It is `least` if that can be.

    A reader opens only files that an entry names. So the number may be larger than that of files that are there.
    """
    base = os.path.basename(prefix)
    count = max(1, least)
    while True:
        found = [_BUNDLE_DATA.fullmatch(name) for name in files.list_folder(sibling(prefix, "") or ".")]
        if count not in {int(match[2]) for match in found if match is not None and match[1] == base}:
            try:
                files.create_empty(sibling(prefix, bundle_data_name(base, 0, count)))
            except AlreadyExistsError:
                pass  # another save was faster
            else:
                return count
        count = random.randint(max(1, least), MOST_DATA_FILES)


def _check_shards(prefix: str, manifest: Manifest) -> None:
    for entry in manifest.files.values():
        path = sibling(prefix, entry.name)
        if _size_of(path) != entry.size:
            raise AbortedError(f"{path} is gone, or not as it was written: checkpoint {prefix} was not completed")


def _put_in_place(prefix: str, contents: bytes, named: Collection[str]) -> None:
    """Write what names a checkpoint's data files, `named`. Then remove the data files of what it replaced."""
    replaced = data_files(prefix) or []
    files.replace_durably(prefix + INDEX_SUFFIX, contents)
    # Only files of the replaced manifest: other files of this prefix may belong to a save that is under way.
    _remove_all(sibling(prefix, name) for name in replaced if name not in named)


def data_files(prefix: str) -> list[str] | None:
    """Names of the data files of a checkpoint, of tfray or TensorFlow; None when its manifest cannot be read."""
    folder, base = os.path.split(prefix)
    try:
        contents = files.read_bytes(prefix + INDEX_SUFFIX)
        if is_manifest(contents):
            named = [current_name(prefix, name) for name in ArrowCheckpoint(prefix, contents).manifest.files]
            return [name for name in named if _base_of(_DATA, name) == base]
        count = TensorBundle(prefix, contents).shards
        found = [(name, _BUNDLE_DATA.fullmatch(name)) for name in files.list_folder(folder or ".")]
        return [name for name, match in found if match is not None and (match[1], int(match[2])) == (base, count)]
    except NotFoundError:
        return []
    except OpError:
        return None


def remove_checkpoint(prefix: str) -> None:
    """Remove the files of a checkpoint, the manifest first: after an interruption the rest counts as no checkpoint."""
    names = data_files(prefix)
    _remove_quietly(prefix + INDEX_SUFFIX)
    if names is None:  # the manifest was damaged: remove the files with names that only saves of this prefix give
        clear_away(prefix)
    else:
        _remove_all(sibling(prefix, name) for name in names)


@contextlib.contextmanager
def saving(prefix: str) -> Iterator[None]:
    """Around the code that saves a checkpoint.

    If that code fails, its files are removed, unless a device is just making them a checkpoint.
    """
    holder = Holder.new()
    path = _path_of(prefix, holder)
    try:
        folder = sibling(prefix, "")
        if folder and not files.is_folder(folder):
            files.make_folders(folder)
        files.write_bytes(path, holder.to_bytes())
        yield
    except BaseException:
        holder.end()
        with contextlib.suppress(OpError):  # the next run clears away what stays; the first error says more than this
            files.write_bytes(path, replace(holder, is_over=True).to_bytes())  # before it looks who else is at work
            clear_away(prefix)
        raise
    holder.end()
    _remove_quietly(path)


def _size_of(path: str) -> int:
    try:
        return files.stat(path).length
    except NotFoundError:
        return -1


def _remove_all(paths: Iterable[str]) -> None:
    """Remove files, in the background from `BACKGROUND_BYTES` on."""
    found = list(paths)
    if sum(max(0, _size_of(path)) for path in found) < BACKGROUND_BYTES:
        for path in found:
            _remove_quietly(path)
    else:
        threading.Thread(target=_remove_later, args=(found,), name="tfray-remove").start()


def _remove_quietly(path: str) -> None:
    try:
        files.remove(path)
    except NotFoundError:
        return  # another save of the same prefix, or the store itself, was faster


def _remove_later(paths: Iterable[str]) -> None:
    for path in paths:
        with contextlib.suppress(OpError):  # what stays is no part of a checkpoint, and the next run tries again
            files.remove(path)


# -- what interrupted saves have left ------------------------------------------------------------------


def clear_away(prefix: str, series: bool = False, also: Collection[str] = ()) -> None:
    """Remove what `stray_files` finds."""
    _remove_all(stray_files(prefix, series, also))


def stray_files(prefix: str, series: bool = False, also: Collection[str] = ()) -> list[str]:
    """Paths of what interrupted saves have left.

    Args:
        prefix: The checkpoint.
        series: Whether to look for all checkpoints whose names differ from that one in the number of the step only.
        also: Names of further files. The rests of interrupted replacements of these files are found too.
    """
    folder, base = os.path.split(prefix)
    folder = folder or "."
    if not files.is_folder(folder):
        return []
    ours = re.compile(re.escape(base.rstrip("0123456789")) + r"\d*" if series else re.escape(base), re.DOTALL)
    # The order matters: list the files, then the saves under way, then read manifests. A save that ends between these
    # is still seen as under way, or its manifest names its files.
    names = files.list_folder(folder)
    over, live = _saves(prefix, files.list_folder(folder))
    bases = {base for base in map(_made_for, names) if base is not None and ours.fullmatch(base)} - live
    found = [] if live else [name for name in names if files.temporary_target(name) in also]
    for each in sorted(bases):
        named = data_files(sibling(prefix, each))
        for name in names:
            if named is None and _base_of(_DATA, name) == each:
                continue  # of a damaged checkpoint
            if _made_for(name) == each and name not in (named or ()):
                found.append(name)
        if each in over and f"{each}{INDEX_SUFFIX}" not in names:
            found += [name for name in names if name == each + META_SUFFIX]
        if each in over and named is not None:  # names that TensorFlow's saves give too: this one was interrupted
            found += [name for name in names if _base_of(_BUNDLE_DATA, name) == each and name not in named]
    # The file of an interrupted save goes last: while it is there, it shows that the graph file belongs to that save.
    found.sort(key=lambda name: _SAVING.fullmatch(name) is not None)
    return [sibling(prefix, name) for name in found]


def _made_for(name: str) -> str | None:
    """The checkpoint (its name in the folder) whose save gives a file that name; None if no save does."""
    target = files.temporary_target(name)
    if target is not None:
        suffix = next((suffix for suffix in (INDEX_SUFFIX, META_SUFFIX) if target.endswith(suffix)), None)
        return None if suffix is None else target.removesuffix(suffix)
    return _base_of(_DATA, name) or _base_of(_SAVING, name)


def _base_of(pattern: re.Pattern[str], name: str) -> str | None:
    match = pattern.fullmatch(name)
    return None if match is None else match[1]


def _saves(prefix: str, names: Iterable[str]) -> tuple[set[str], set[str]]:
    """The checkpoints with an interrupted save, and those with a save that is under way."""
    over: set[str] = set()
    live: set[str] = set()
    for name in names:
        base = _base_of(_SAVING, name)
        if base is not None:
            (live if _is_under_way(sibling(prefix, name)) else over).add(base)
    return over, live


def _is_under_way(path: str) -> bool:
    try:
        holder = Holder.from_bytes(files.read_bytes(path))
        alive = None if holder is None else holder.is_alive
        if alive is None:  # of a process that cannot be seen from here, or just being written
            return time.time() - files.stat(path).mtime_nsec / 1e9 < FOREIGN_SAVE_S
        return alive
    except NotFoundError:
        return False
