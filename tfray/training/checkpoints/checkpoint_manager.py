"""`tf.train.CheckpointManager`: saves a `Checkpoint` again and again, and deletes old ones."""

from __future__ import annotations

import os
import time
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.formats.files import PathLike, as_path
from tfray.training.checkpoints import checkpoint_management
from tfray.training.checkpoints.object_checkpoint import Checkpoint, session_for
from tfray.training.checkpoints.retention import Retention


class CheckpointManager:
    """Saves a `Checkpoint` into a folder, and deletes those that need not be kept.

    It goes on with the checkpoints that another manager has left in the folder.

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
        self._retention = Retention(max_to_keep, every, 0, "min")
        state = checkpoint_management.get_checkpoint_state(self._directory)
        if state is not None:
            paths = list(state.all_model_checkpoint_paths)
            times = list(state.all_model_checkpoint_timestamps)
            moments = times if len(times) == len(paths) else [time.time()] * len(paths)
            listed = zip(paths, moments, strict=True)
            self._retention.replace([each for each in listed if checkpoint_management.checkpoint_exists(each[0])])
            if state.last_preserved_timestamp:
                self._retention.last_preserved = state.last_preserved_timestamp

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
        """Path of the newest checkpoint, or None."""
        return self.checkpoints[-1] if self.checkpoints else None

    def save(self, checkpoint_number: Any = None, session: Any = None) -> str:
        """Save a checkpoint, and delete those that need not be kept.

        Args:
            checkpoint_number: Number in the path: an integer, or a variable or tensor that holds it. By default
                checkpoints are counted by the checkpoint's ``save_counter``.
            session: The session; the default one when None.

        Returns:
            Path of the checkpoint.
        """
        session = session_for(session)
        if checkpoint_number is None:
            checkpoint_number = self._checkpoint.count_save(session)
        elif not isinstance(checkpoint_number, int):
            checkpoint_number = int(session.run(checkpoint_number))
        path = self._checkpoint.write(f"{self._prefix}-{checkpoint_number}", session)
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
