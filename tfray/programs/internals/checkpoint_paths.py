"""The file ``checkpoint`` of a folder, as TensorFlow's savers write it for themselves."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tfray.formats.files import PathLike, given_path
from tfray.training.checkpoints.checkpoint_management import write_checkpoint_state


def update_checkpoint_state_internal(
    save_dir: PathLike,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    save_relative_paths: bool = False,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """As `tf.train.update_checkpoint_state`, which can write the paths so that the folder can be moved.

    Args:
        save_dir: The folder.
        model_checkpoint_path: The newest checkpoint.
        all_model_checkpoint_paths: All that are kept, the newest last.
        latest_filename: Name of the file; ``checkpoint`` when None.
        save_relative_paths: Write paths relative to the folder. Those that are relative already belong to it.
        all_model_checkpoint_timestamps: When they were saved, in seconds since 1970.
        last_preserved_timestamp: When the last of those that are kept for good was saved.

    Raises:
        ValueError: There are times, but not one for each checkpoint.
    """
    folder = given_path(save_dir, "save_dir")
    newest, *paths = [
        os.path.join(folder, path) if save_relative_paths else path
        for path in (model_checkpoint_path, *(all_model_checkpoint_paths or ()))
    ]
    times, preserved = all_model_checkpoint_timestamps, last_preserved_timestamp
    write_checkpoint_state(folder, newest, paths, latest_filename, times, preserved, save_relative_paths)
