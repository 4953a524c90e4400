"""The checkpoints of a folder: lists them, finds the newest, and removes them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tfray.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from tfray.formats import files
from tfray.formats.bundles.saved_slices import saved_slices_files
from tfray.formats.checkpoint import INDEX_SUFFIX, SAVED_AT, ArrowCheckpoint, sibling
from tfray.formats.checkpoint_folder import remove_checkpoint as _remove_files
from tfray.formats.checkpoint_state import CheckpointState, read_checkpoint_state
from tfray.formats.files import PathLike, as_path, given_path
from tfray.formats.open_checkpoint import open_checkpoint
from tfray.library.platform import logging
from tfray.training.checkpoints.retention import METRICS_FILE

STATE_FILE: Final = "checkpoint"
OWN_FILES: Final = (STATE_FILE, METRICS_FILE)
"""Files of a folder that savers replace."""


def _state_path(folder: str, latest_filename: str | None) -> str:
    return f"{folder.rstrip('/')}/{latest_filename or STATE_FILE}" if folder else latest_filename or STATE_FILE


def get_checkpoint_state(checkpoint_dir: PathLike, latest_filename: str | None = None) -> CheckpointState | None:
    """The checkpoints of a folder as its file ``checkpoint`` names them, or None when there is no such file.

    Args:
        checkpoint_dir: The folder. Paths that the file gives relative to it are completed.
        latest_filename: Another name of the file.

    Raises:
        DataLossError: The file cannot be read. TensorFlow returns None then, and a program that asks whether to begin
            anew would train over its own checkpoints.
        InvalidArgumentError: The file names no checkpoint, or the folder is an empty path; to TensorFlow that is the
            current folder.
    """
    folder = given_path(checkpoint_dir, "checkpoint_dir")
    state = _read_state(folder, latest_filename)
    if state is not None and not state.model_checkpoint_path:
        path = _state_path(folder, latest_filename)
        raise InvalidArgumentError(f"Invalid checkpoint state loaded from {folder}: {path} names no checkpoint")
    return state


def named_state(checkpoint_dir: PathLike) -> CheckpointState | None:
    """As `get_checkpoint_state`, but None where the file names no checkpoint."""
    state = _read_state(given_path(checkpoint_dir, "checkpoint_dir"), None)
    return state if state is not None and state.model_checkpoint_path else None


def _read_state(folder: str, latest_filename: str | None) -> CheckpointState | None:
    path = _state_path(folder, latest_filename)
    try:
        text = files.read_bytes(path).decode()
    except (NotFoundError, FailedPreconditionError):
        return None
    except UnicodeDecodeError as error:
        raise DataLossError(f"{path} is no text: {error}") from error
    try:
        state = read_checkpoint_state(text)
    except DataLossError as error:
        raise DataLossError(f"{path}: {error.message}") from error
    if state.model_checkpoint_path:
        state.model_checkpoint_path = _completed(folder, state.model_checkpoint_path)
    state.all_model_checkpoint_paths[:] = [_completed(folder, each) for each in state.all_model_checkpoint_paths]
    return state


def _completed(folder: str, path: str) -> str:
    if os.path.isabs(path) or "://" in path or not folder:
        return path
    return f"{folder.rstrip('/')}/{path}"


def generate_checkpoint_state_proto(
    save_dir: PathLike,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> CheckpointState:
    """The content for the file ``checkpoint`` of a folder.

    Args:
        save_dir: The folder. With a relative one, paths are given relative to it.
        model_checkpoint_path: The newest checkpoint.
        all_model_checkpoint_paths: All checkpoints, oldest first. The newest is added, to this list itself, if it is
            not the last.
        all_model_checkpoint_timestamps: When each was saved, in seconds since 1970.
        last_preserved_timestamp: When the last of the checkpoints that are kept for good was saved.
    """
    folder = as_path(save_dir)
    paths = all_model_checkpoint_paths
    if not isinstance(paths, list):
        paths = list(paths or ())
    if not paths or paths[-1] != model_checkpoint_path:
        paths.append(model_checkpoint_path)
    if all_model_checkpoint_timestamps and len(all_model_checkpoint_timestamps) != len(paths):
        raise ValueError(
            f"{len(all_model_checkpoint_timestamps)} times for {len(paths)} checkpoints: give one for each"
        )
    if not os.path.isabs(folder) and "://" not in folder:
        model_checkpoint_path, *paths = [_relative(path, folder) for path in (model_checkpoint_path, *paths)]
    state = CheckpointState(model_checkpoint_path=model_checkpoint_path)
    state.all_model_checkpoint_paths.extend(paths)
    state.all_model_checkpoint_timestamps.extend(all_model_checkpoint_timestamps or ())
    if last_preserved_timestamp is not None:
        state.last_preserved_timestamp = last_preserved_timestamp
    return state


def _relative(path: str, folder: str) -> str:
    return path if os.path.isabs(path) or "://" in path else os.path.relpath(path, folder or ".")


def update_checkpoint_state(
    save_dir: PathLike,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """Write the file ``checkpoint`` of a folder, replacing it at once; see `generate_checkpoint_state_proto`."""
    write_checkpoint_state(
        given_path(save_dir, "save_dir"),
        model_checkpoint_path,
        all_model_checkpoint_paths,
        latest_filename,
        all_model_checkpoint_timestamps,
        last_preserved_timestamp,
    )


def write_checkpoint_state(
    save_dir: PathLike,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
    relative_paths: bool = False,
) -> None:
    """As `update_checkpoint_state`. It can also write all paths relative to the folder, so that it can be moved."""
    folder = as_path(save_dir)
    paths = list(all_model_checkpoint_paths or ())
    if relative_paths:
        model_checkpoint_path, *paths = [
            os.path.relpath(path, folder or ".") for path in (model_checkpoint_path, *paths)
        ]
    state_path = _state_path(folder, latest_filename)
    state = generate_checkpoint_state_proto(
        "/" if relative_paths else folder, model_checkpoint_path, paths, timestamps, last_preserved_timestamp
    )
    files.replace_durably(state_path, str(state).encode())


def latest_checkpoint(checkpoint_dir: PathLike, latest_filename: str | None = None) -> str | None:
    """The path of the newest checkpoint of a folder, or None.

    The file ``checkpoint`` of the folder names it; the checkpoint itself may be elsewhere. If it is gone, this is the
    newest of those in the file that are left, where TensorFlow returns None. Damage is noticed only when it is read.
    """
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    for path in dict.fromkeys([state.model_checkpoint_path, *reversed(state.all_model_checkpoint_paths)]):
        if checkpoint_exists(path):
            if path != state.model_checkpoint_path:
                logging.warning(
                    "checkpoint %s is gone: %s is the newest that is left", state.model_checkpoint_path, path
                )
            return str(path)
    return None


def checkpoint_exists(checkpoint_prefix: PathLike) -> bool:
    """Whether there is a complete checkpoint of that path (without ``.index``); its contents are not read.

    Of TensorFlow's format V1, the path is that of a file, or ``NAME-?????-of-00002``.
    """
    prefix = as_path(checkpoint_prefix)
    return bool(prefix.strip()) and bool(files.exists(prefix + INDEX_SUFFIX) or saved_slices_files(prefix))


def get_checkpoint_mtimes(checkpoint_prefixes: Sequence[PathLike]) -> list[float]:
    """When checkpoints were saved, in seconds since 1970. Paths without a checkpoint are left out."""
    found = []
    for prefix in checkpoint_prefixes:
        path = as_path(prefix)
        for file in (path + INDEX_SUFFIX, *saved_slices_files(path)):
            try:
                found.append(files.stat(file).mtime_nsec / 1e9)
                break
            except NotFoundError:
                continue
    return found


def remove_checkpoint(
    checkpoint_prefix: PathLike, checkpoint_format_version: Any = None, meta_graph_suffix: str | None = "meta"
) -> None:
    """Remove the files of a checkpoint, its graph included, if they exist.

    Args:
        checkpoint_prefix: Path of the checkpoint.
        checkpoint_format_version: Accepted for TensorFlow 1's sake.
        meta_graph_suffix: Suffix of the file of the graph; None leaves that file.
    """
    prefix = given_path(checkpoint_prefix, "checkpoint_prefix")
    meta = None if meta_graph_suffix is None else meta_graph_filename(prefix, meta_graph_suffix)
    if meta is not None and files.exists(meta):  # before the manifest, by which the rest is found after a crash
        files.remove(meta)
    _remove_files(prefix)


def meta_graph_filename(checkpoint_filename: str, meta_graph_suffix: str = "meta") -> str:
    """Path of the graph that belongs to a checkpoint."""
    return f"{checkpoint_filename}.{meta_graph_suffix}"


def checkpoints_iterator(
    checkpoint_dir: PathLike,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Any = None,
    poll_s: float = 1.0,
) -> Iterator[str]:
    """Wait for checkpoints of a folder, and yield the path of each newest one once.

    Args:
        checkpoint_dir: The folder.
        min_interval_secs: Least time between two of them, in seconds.
        timeout: Longest time to wait for the next, in seconds; None for no limit.
        timeout_fn: Called without arguments after that time. The wait goes on unless it returns something true.
        poll_s: Seconds between two looks.
    """
    path = None
    while True:
        found = wait_for_new_checkpoint(checkpoint_dir, path, poll_s, timeout)
        if found is None:
            if timeout_fn is None or timeout_fn():
                return
            continue
        path = found
        began = time.monotonic()
        yield path
        time.sleep(max(0.0, began + min_interval_secs - time.monotonic()))


def wait_for_new_checkpoint(
    checkpoint_dir: PathLike,
    last_checkpoint: str | None = None,
    seconds_to_sleep: float = 1,
    timeout: float | None = None,
) -> str | None:
    """Wait for a checkpoint in a folder.

    Args:
        checkpoint_dir: The folder.
        last_checkpoint: The path of the one that is known; None to take any.
        seconds_to_sleep: Seconds between two looks.
        timeout: Longest time to wait, in seconds; None for no limit.

    Returns:
        The path of the newest checkpoint, or None after that time.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        path = latest_checkpoint(checkpoint_dir)
        if path is not None and path != last_checkpoint:
            return path
        if deadline is not None and time.monotonic() + seconds_to_sleep > deadline:
            return None
        time.sleep(seconds_to_sleep)


def unlisted_since(listed: Sequence[PathLike], moment: float) -> list[tuple[str, float]]:
    """Complete checkpoints beside those `listed` that were saved after `moment` but are not listed, with their times.

    They belong to the same series: only the steps in their names differ. An interrupted save leaves one at most.
    """
    folder, last = os.path.split(as_path(listed[-1]))
    known = {os.path.basename(as_path(path)) for path in listed}
    found = series_in(folder, last.rstrip("0123456789"))
    return [each for each in found if os.path.basename(each[0]) not in known and each[1] > moment]


def is_in(folder: PathLike, path: str) -> bool:
    """Whether a checkpoint lies in a folder, however that is written."""
    parent, here = os.path.dirname(path), as_path(folder).rstrip("/")
    return parent == here or ("://" not in path and os.path.realpath(parent) == os.path.realpath(here or "/"))


def series_in(folder: str, stem: str) -> list[tuple[str, float]]:
    """The checkpoints of a folder whose name is `stem` and a step, as their manifests tell: path and time, by time."""
    names = files.list_folder(folder or ".") if files.is_folder(folder or ".") else []
    prefixes = [name.removesuffix(INDEX_SUFFIX) for name in names if name.endswith(INDEX_SUFFIX)]
    series = [name for name in prefixes if name.startswith(stem) and name.removeprefix(stem).isdecimal()]
    paths = [sibling(f"{folder.rstrip('/')}/x" if folder else "x", name) for name in series]
    found = [(path, moment) for path in paths for moment in get_checkpoint_mtimes([path])]
    return sorted(found, key=lambda each: each[1])


def time_saved(prefix: str) -> float:
    """When a checkpoint was saved, in seconds since 1970: by its manifest, or by that file's time."""
    try:
        checkpoint = open_checkpoint(prefix)
        saved_at = checkpoint.metadata.get(SAVED_AT) if isinstance(checkpoint, ArrowCheckpoint) else None
        if isinstance(saved_at, (int, float)):
            return float(saved_at)
    except DataLossError:
        pass  # a restore will raise the error
    return next(iter(get_checkpoint_mtimes([prefix])), 0.0)
