"""`tf.train.CheckpointManager`: saves a `Checkpoint` again and again, and deletes old ones."""

from __future__ import annotations

import os
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.formats.files import PathLike, as_path
from tfray.training.checkpoints import checkpoint_management
from tfray.training.checkpoints.object_checkpoint import Checkpoint, session_for
from tfray.training.checkpoints.retention import Retention


class CheckpointManager:
    """Saves a `Checkpoint` into a folder, and deletes those that need not be kept.

    It goes on with the checkpoints that another manager has left in the folder. Others that are there, such as those of
    `Checkpoint.save`, are never deleted.

    Args:
        checkpoint: What to save.
        directory: The folder.
        max_to_keep: How many of the newest to keep, at least 1; None for all.
        keep_checkpoint_every_n_hours: Of those that would be deleted, keep one for every so many hours.
        checkpoint_name: Beginning of the names of files.

    Raises:
        InvalidArgumentError: `max_to_keep` is below 1.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: PathLike,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
    ) -> None:
        if max_to_keep is not None and max_to_keep < 1:
            raise InvalidArgumentError(f"max_to_keep is {max_to_keep}, expected a positive integer or None")
        self._checkpoint = checkpoint
        self._directory = as_path(directory)
        self._prefix = os.path.join(self._directory, checkpoint_name)
        every = float("inf") if keep_checkpoint_every_n_hours is None else float(keep_checkpoint_every_n_hours)
        self._retention = Retention(max_to_keep, every, 0, "min", from_last=True)
        self._latest: str | None = None
        state = checkpoint_management.get_checkpoint_state(self._directory)
        if state is None:
            self._retention.last_preserved -= 1.0  # one that is saved at once is newer
            return
        self._latest = checkpoint_management.latest_checkpoint(self._directory)
        paths, times = list(state.all_model_checkpoint_paths), list(state.all_model_checkpoint_timestamps)
        listed = zip(paths, times, strict=True) if len(times) == len(paths) else ()
        complete = [each for each in listed if checkpoint_management.checkpoint_exists(each[0])]
        self._retention.resume(complete, state.last_preserved_timestamp)

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoints(self) -> list[str]:
        """Paths of the checkpoints that are kept among the newest, oldest first."""
        return [each.path for each in self._retention.kept]

    @property
    def latest_checkpoint(self) -> str | None:
        """Path of the newest checkpoint of the folder, whether or not it may be deleted later; None without one."""
        return self._latest

    def save(self, checkpoint_number: Any = None, session: Any = None) -> str:
        """Save a checkpoint, and delete those that need not be kept.

        Args:
            checkpoint_number: Number in the path: an integer, or a variable or tensor that holds it. By default that of
                the checkpoint's ``save_counter``, which counts every save.
            session: The session; the default one when None.

        Returns:
            Path of the checkpoint.
        """
        session = session_for(session)
        count = self._checkpoint.count_save(session)
        if checkpoint_number is None:
            checkpoint_number = count
        elif not isinstance(checkpoint_number, int):
            checkpoint_number = int(session.run(checkpoint_number))
        path = self._checkpoint.write(f"{self._prefix}-{checkpoint_number}", session)
        self._latest = path
        removed = self._retention.add(path)
        self._write_state(path, removed)
        for old in removed:
            checkpoint_management.remove_checkpoint(old.path)
        if removed:  # they were listed until now, so that after a crash the next manager removes them
            self._write_state(path, [])
        return path

    def _write_state(self, path: str, also: list[Any]) -> None:
        kept = [*also, *self._retention.kept]
        checkpoint_management.write_checkpoint_state(
            self._directory,
            path,
            [each.path for each in kept],
            timestamps=[each.time for each in kept],
            last_preserved_timestamp=self._retention.last_preserved,
            relative_paths=True,
        )
