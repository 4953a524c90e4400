"""The checkpoints of a `Trainer`'s run: when to save, where to begin, and what failures there were."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final

import numpy as np

from tfray.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, NotFoundError, OpError
from tfray.formats import checkpoint_folder, files
from tfray.formats.open_checkpoint import open_checkpoint
from tfray.formats.write_formats import TFRAY
from tfray.framework.graph import Graph
from tfray.library.platform import logging
from tfray.ops.kernels.random_streams import RANDOM_STATE, restore_states, states_of
from tfray.runtime.device import Device
from tfray.runtime.local_runner import LocalRunner
from tfray.session import Session
from tfray.training.checkpoints import checkpoint_management
from tfray.training.checkpoints.checkpoint_interval import AutomaticInterval, FailureRecord
from tfray.training.checkpoints.checkpoint_utils import checkpoint_path
from tfray.training.checkpoints.folder_lock import LOCK_FILE, FolderLock
from tfray.training.checkpoints.saver import Saver
from tfray.training.sessions.preemption import EXIT_CODE, PreemptionNotice
from tfray.training.trainer.callback import tell
from tfray.training.trainer.run_result import SavedCheckpoint

NAME: Final = "model.ckpt"
RECORD_FILE: Final = "failures.json"
"""File beside the checkpoints: how long training has run in that folder, and how often it failed."""

OWN_FILES: Final = (*checkpoint_management.OWN_FILES, RECORD_FILE, LOCK_FILE)
"""Files beside the checkpoints that a run replaces."""

_STEP: Final = re.compile(r"-(\d+)$")


class RunCheckpoints:
    """The checkpoints of one run. Within its ``with`` block SIGTERM is only noted; the run acts on it between steps.

    Args:
        graph: The model's graph, to which the operations of saving are added.
        folder: Folder of the checkpoints. With None there are none, and all methods do nothing.
        save_every_steps: Steps from one checkpoint to the next.
        save_every_s: Seconds from one to the next. Without either, the interval follows failures and measured costs.
        keep: How many checkpoints to keep.
        resume: Whether to begin from the newest checkpoint in the folder.
        resume_from: A checkpoint to begin from instead, or a folder, for its newest one.
        asynchronous: Whether checkpoints are written in the background.
        write_format: ``"tfray"`` or ``"tensorflow"``.
        assumed_s: Mean time between failures, in seconds, as long as none was seen.
        told: Called with each checkpoint that is complete, between two steps.

    Attributes:
        step: How many steps are done.
        newest: The newest checkpoint that is known to be complete: one that was saved, or restored.
    """

    def __init__(
        self,
        graph: Graph,
        folder: files.PathLike | None,
        *,
        save_every_steps: int | None = None,
        save_every_s: float | None = None,
        keep: int = 5,
        resume: bool = True,
        resume_from: files.PathLike | None = None,
        asynchronous: bool = False,
        write_format: str = TFRAY,
        assumed_s: float = 86400.0,
        told: Sequence[Callable[[SavedCheckpoint], None]] = (),
    ) -> None:
        self.step = 0
        self.newest: SavedCheckpoint | None = None
        self._graph = graph
        self._told = told
        self._untold: SavedCheckpoint | None = None
        """A checkpoint that is complete, and of which nobody has been told."""
        self._written: SavedCheckpoint | None = None
        """The checkpoint that is being written."""
        self._folder = None if folder is None else files.given_path(folder, "checkpoint_dir").rstrip("/") or "/"
        self._every_steps = save_every_steps
        self._every_s = save_every_s
        self._resume = resume
        self._resume_from = resume_from
        self._lock = None if self._folder is None else FolderLock(self._folder)
        self._failures = FailureRecord(assumed_s)
        self._interval = AutomaticInterval(self._failures)
        self._notice = PreemptionNotice()
        self._saved_step: int | None = None
        self._pause_s: float | None = None
        self._since = self._clock = time.monotonic()
        if folder is not None:
            with graph.as_default():
                self._saver = Saver(
                    max_to_keep=keep,
                    save_relative_paths=True,  # the folder may be moved; and a copy must not refer to the original
                    asynchronous=asynchronous,
                    allow_empty=True,
                    takes_arrays=True,
                    write_format=write_format,
                )

    @property
    def active(self) -> bool:
        """Whether there are checkpoints."""
        return self._folder is not None

    # -- the beginning and the end ---------------------------------------------------------------

    def __enter__(self) -> RunCheckpoints:
        """Make and lock the folder, remove files that interrupted saves have left, and read the record of failures.

        Raises:
            FailedPreconditionError: Another run saves there.
        """
        if self._folder is None or self._lock is None:
            return self
        files.make_folders(self._folder)
        self._lock.take()
        try:
            self._clear_away()
            self._read_record()
            self._write_record(finished=False)
            self._notice.watch()
        except BaseException:
            self._lock.release()
            raise
        self._since = self._clock = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._folder is None or self._lock is None:
            return
        self._notice.release()
        try:
            if kind is None or kind is SystemExit:
                self._clear_away()
                self._write_record(finished=True)
        finally:
            self._lock.release()

    def _clear_away(self) -> None:
        """Remove files that interrupted saves have left in the folder. Call it while no save is under way."""
        checkpoint_folder.clear_away(f"{self._folder}/{NAME}-", series=True, also=OWN_FILES)

    @contextlib.contextmanager
    def settled(self) -> Iterator[None]:
        """At the end of the block, wait until no save is under way. An error in the block wins over one of a save."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(OpError):
                self._complete()  # those who are told of checkpoints might raise, or wait for what has failed
            raise
        self.wait()

    def restore(self, session: Session) -> Mapping[str, Any]:
        """Restore the variables from the newest checkpoint, and set `step` to its step; to 0 if there is none.

        If the newest is damaged, this warns, and takes the one before.

        Returns:
            The other arrays that were saved with the checkpoint.

        Raises:
            DataLossError: All checkpoints are damaged, or the one that was asked for.
            FailedPreconditionError: It is not clear which checkpoint is the newest.
            InvalidArgumentError: The checkpoint was not saved by a `Trainer`.
            NotFoundError: The checkpoint that was asked for is not there.
        """
        self.step, self._saved_step, self.newest = 0, None, None
        candidates, damaged = self._candidates(), []
        for path in candidates:
            try:
                arrays = self._restored(session, path)
            except DataLossError as error:
                damaged.append((path, error))
                continue
            if damaged:
                what = "; ".join(error.message for _, error in damaged)
                logging.warning(
                    "checkpoint %s is damaged: training goes back to %s (%s)", damaged[0][0], path, _one_line(what)
                )
            self._take_up(candidates, [each for each, _ in damaged])
            return arrays
        if damaged:
            path, first = damaged[0]
            first.message = f"{first.message}; {self._instead_of(path)}"
            raise first
        return {}

    def _restored(self, session: Session, path: str) -> Mapping[str, Any]:
        match = _STEP.search(path)
        if match is None:
            raise InvalidArgumentError(f"{path} was not saved by a Trainer: its name does not end in a step; {_REMEDY}")
        try:
            self._saver.restore(session, path)
        except (NotFoundError, InvalidArgumentError) as error:
            error.message = f"{error.message}; the checkpoint is that of another model: {_REMEDY}"
            raise
        checkpoint = open_checkpoint(path)
        further = [name for name in checkpoint.tensors if name not in self._saver.names]
        arrays = {name: np.array(checkpoint.read(name)) for name in further}  # copies: the file may be deleted later
        self.step = self._saved_step = int(match[1])
        self.newest = SavedCheckpoint(path, self.step)
        return arrays

    # -- which checkpoints there are -------------------------------------------------------------

    def _candidates(self) -> list[str]:
        """The checkpoints to try in turn: the newest, then those to go back to if it is damaged."""
        if self._folder is None or not self._resume:
            return []
        if self._resume_from is not None:
            path = checkpoint_path(self._resume_from)
            if not checkpoint_management.checkpoint_exists(path):
                raise NotFoundError(f"there is no checkpoint {path}, from which the run was to begin (resume_from)")
            return [path]
        try:
            state = checkpoint_management.named_state(self._folder)
            reason = "is missing, or names no checkpoint"
        except DataLossError as error:
            state, reason = None, f"cannot be read ({error.message})"
        if state is not None:
            listed = [state.model_checkpoint_path, *reversed(state.all_model_checkpoint_paths)]
            here = list(dict.fromkeys(f"{self._folder}/{os.path.basename(path)}" for path in listed))
            there = [path for path in here if checkpoint_management.checkpoint_exists(path)]
            if there and there[0] != here[0]:
                logging.warning("checkpoint %s is gone: training goes back to %s", here[0], there[0])
            if there:
                return there
            reason = "names only checkpoints that are gone"
        return self._unlisted(reason)

    def _unlisted(self, reason: str) -> list[str]:
        """All checkpoints with a manifest in the folder, newest first. `reason` says why its state file is no use."""
        folder, state = self._folder, checkpoint_management.STATE_FILE
        assert folder is not None
        found = [path for path, _ in self._series()]
        found.sort(key=checkpoint_management.time_saved, reverse=True)
        if not found:
            return []
        last = max(found, key=lambda path: int(path.rpartition("-")[2]))
        if last != found[0]:
            raise FailedPreconditionError(
                f"{folder}/{state} {reason}, and of the checkpoints there {found[0]} is the newest, while {last} has "
                "the highest step: say from which one to go on with resume_from (--resume-from), or take another "
                "checkpoint_dir"
            )
        logging.warning("%s/%s %s: training goes on from %s, the newest that is there", folder, state, reason, last)
        return found

    def _take_up(self, candidates: Sequence[str], damaged: Collection[str]) -> None:
        """Let the saver later delete the listed checkpoints that are in this folder, but none in other folders."""
        if self._resume_from is not None:
            candidates = [path for path, _ in reversed(self._series())]
        self._saver.recover_last_checkpoints([path for path in reversed(candidates) if path not in damaged])

    def _series(self) -> list[tuple[str, float]]:
        assert self._folder is not None
        return checkpoint_management.series_in(self._folder, f"{NAME}-")

    def _instead_of(self, path: str) -> str:
        """What to do about a damaged checkpoint."""
        others = [each for each, _ in self._series() if each != path]
        named = f" (there are {', '.join(others)})" if others else ""
        return f"begin from another one with resume_from (--resume-from){named}, or anew with resume=False"

    # -- while training --------------------------------------------------------------------------

    @property
    def next_step(self) -> int | None:
        """The step after which to save, if that is known beforehand; otherwise None."""
        if self._folder is None or self._every_steps is None:
            return None
        return (self.step // self._every_steps + 1) * self._every_steps

    def is_due(self) -> bool:
        """Whether to save now, because it is time or because of SIGTERM."""
        if self._folder is None:
            return False
        if self._notice.received:
            return True
        if self._every_steps is not None:
            return self.step % self._every_steps == 0
        return time.monotonic() - self._since >= (self._every_s or self._interval.seconds)

    def save(self, session: Session, arrays: Callable[[], Mapping[str, Any]] = dict) -> None:
        """Save, unless `step` is saved already.

        Args:
            session: The session.
            arrays: Returns other arrays to save, by name.
        """
        if self._folder is None or self.step == self._saved_step:
            return
        self.wait()
        assert self._lock is not None
        self._lock.check()
        started = time.monotonic()
        path = self._saver.save(
            session,
            f"{self._folder}/{NAME}",
            self.step,
            meta_graph_suffix=None,
            write_meta_graph=False,
            arrays=arrays(),
        )
        self._pause_s = time.monotonic() - started
        self._saved_step = self.step
        self._written = None if path is None else SavedCheckpoint(path, self.step)
        self._resume, self._resume_from = True, None  # from now on the newest checkpoint is one of this run
        self._since = time.monotonic()
        self._write_record(finished=False)
        self.tell_if_complete()

    @property
    def is_saving(self) -> bool:
        """Whether a checkpoint is being written in the background."""
        return self._folder is not None and self._saver.is_saving

    def rebuild(self) -> None:
        """Save and restore variables where they are placed now. No save may be under way: see `wait`."""
        if self._folder is not None:
            with self._graph.as_default():
                self._saver.rebuild()

    def tell_if_complete(self) -> None:
        """Tell of the newest checkpoint, if it is complete and nobody has been told. Call it between steps."""
        if self._told and self._folder is not None and not self._saver.is_saving:
            self.wait()

    def wait(self) -> None:
        """Wait until the newest checkpoint is complete, and tell of it."""
        self._complete()
        checkpoint, self._untold = self._untold, None
        if checkpoint is not None:
            tell(self._told, checkpoint)

    def _complete(self) -> None:
        if self._folder is None:
            return
        written, self._written = self._written, None
        self._saver.wait()
        if written is not None:
            self.newest = self._untold = written
        if self._pause_s is not None:
            self._interval.saved(self._pause_s, self._saver.last_duration_s)
            self._pause_s = None

    def exit_if_preempted(self) -> None:
        """After a SIGTERM, wait until the newest checkpoint is complete, and end the process."""
        if self._notice.received:
            self.wait()
            sys.exit(EXIT_CODE)

    def give_up_save(self) -> None:
        """Wait until no save is under way, whether it succeeds or not: a place to which it writes may be gone."""
        with contextlib.suppress(OpError):
            self._complete()
        self._pause_s = None

    # -- failures --------------------------------------------------------------------------------

    def failed(self) -> None:
        """Record that state was lost."""
        self._failures.failures += 1
        self._pause_s = None
        self._write_record(finished=False)

    def _read_record(self) -> None:
        path = f"{self._folder}/{RECORD_FILE}"
        try:
            plain = json.loads(files.read_bytes(path))
            trained_s, failures = float(plain["trained_s"]), int(plain["failures"]) + (not plain["finished"])
            if not (0 <= trained_s < math.inf and failures >= 0):
                raise ValueError(f"it tells of {failures} failures in {trained_s} s")
        except NotFoundError:
            return
        except (OpError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            logging.warning("%s cannot be read (%s): a new one is begun", path, _one_line(error))
            return
        self._failures.trained_s, self._failures.failures = trained_s, failures

    def _write_record(self, finished: bool) -> None:
        now = time.monotonic()
        self._failures.trained_s += now - self._clock
        self._clock = now
        plain = {"trained_s": self._failures.trained_s, "failures": self._failures.failures, "finished": finished}
        with contextlib.suppress(FailedPreconditionError):  # it is a folder, of which reading it has warned
            files.replace_durably(f"{self._folder}/{RECORD_FILE}", json.dumps(plain).encode())


def random_states(session: Session) -> dict[str, Any]:
    """The states of the random streams of a session in this process, by names for a checkpoint."""
    found = {}
    for name, device in _devices_of(session).items():
        states = states_of(device.session_state)
        found.update({f"{RANDOM_STATE}{name}@{stream}": array for stream, array in states.items()})
    return found


def restore_random_states(session: Session, arrays: Mapping[str, Any]) -> None:
    """Restore the states of the streams. Streams that were not saved begin anew."""
    for name, device in _devices_of(session).items():
        start = f"{RANDOM_STATE}{name}@"
        own = {key.removeprefix(start): array for key, array in arrays.items() if key.startswith(start)}
        restore_states(device.session_state, own)


def _devices_of(session: Session) -> dict[str, Device]:
    runner = session._runner
    assert isinstance(runner, LocalRunner)
    return runner.devices_by_name()


def _one_line(what: object) -> str:
    return " ".join(str(what).split())


_REMEDY: Final = "choose another checkpoint_dir, or resume=False"
