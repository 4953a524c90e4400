"""The checkpoints of a `Trainer`'s run: when to save, where to begin, and what failures there were."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Final

import numpy as np

from tfray.errors import DataLossError, InvalidArgumentError, NotFoundError, OpError
from tfray.formats import files
from tfray.formats.open_checkpoint import open_checkpoint
from tfray.framework.graph import Graph
from tfray.ops.random_streams import RANDOM_STATE, restore_states, states_of
from tfray.runtime.device import Device
from tfray.runtime.local import LocalRunner
from tfray.session import Session
from tfray.training import checkpoint_management
from tfray.training.checkpoint_interval import AutomaticInterval, FailureRecord
from tfray.training.preemption import EXIT_CODE, PreemptionNotice
from tfray.training.saver import Saver

NAME: Final = "model.ckpt"
RECORD_FILE: Final = "failures.json"
"""Beside the checkpoints: how long was trained there, and how often training failed."""

_STEP: Final = re.compile(r"-(\d+)$")


class RunCheckpoints:
    """The checkpoints of one run. Within a ``with`` block SIGTERM is noted, to be acted upon between two steps.

    Args:
        graph: The model's graph, to which the operations of saving are added.
        folder: Where checkpoints are; with None there are none, and nothing here does anything.
        save_every_steps: Steps from one to the next.
        save_every_s: Seconds from one to the next. Without either, what failures and measured costs suggest.
        keep: How many to keep.
        resume: Whether to begin from the newest one that is there.
        asynchronous: Whether they are written in the background.
        assumed_s: Mean time between failures, as long as nothing is known.

    Attributes:
        step: How many steps are done.
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
        asynchronous: bool = False,
        assumed_s: float = 86400.0,
    ) -> None:
        self.step = 0
        self._folder = None if folder is None else files.as_path(folder).rstrip("/") or "/"
        self._every_steps = save_every_steps
        self._every_s = save_every_s
        self._resume = resume
        self._failures = FailureRecord(assumed_s)
        self._interval = AutomaticInterval(self._failures)
        self._notice = PreemptionNotice()
        self._saved_step: int | None = None
        self._pause_s: float | None = None
        self._since = self._clock = time.monotonic()
        if folder is not None:
            with graph.as_default():
                self._saver = Saver(max_to_keep=keep, asynchronous=asynchronous, allow_empty=True, takes_arrays=True)

    @property
    def active(self) -> bool:
        """Whether there are checkpoints."""
        return self._folder is not None

    # -- the beginning and the end ---------------------------------------------------------------

    def __enter__(self) -> RunCheckpoints:
        """Take up the folder: make it, clear away what interrupted saves have left, and see how earlier runs ended."""
        if self._folder is None:
            return self
        files.make_folders(self._folder)
        self._clear_away()
        state = checkpoint_management.get_checkpoint_state(self._folder) if self._resume else None
        if state is not None:
            self._saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        self._read_record()
        self._write_record(finished=False)
        self._notice.watch()
        self._since = self._clock = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._folder is None:
            return
        self._notice.release()
        if kind is None or kind is SystemExit:
            self._clear_away()
            self._write_record(finished=True)

    def _clear_away(self) -> None:
        """Remove what saves have left that were interrupted; call it while none is under way."""
        assert self._folder is not None
        for stray in checkpoint_management.stray_files(self._folder):
            files.remove(stray)

    @contextlib.contextmanager
    def settled(self) -> Iterator[None]:
        """A block at whose end nothing is being written any more; an error in it comes before one of a save."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(OpError):
                self.wait()
            raise
        self.wait()

    def restore(self, session: Session) -> Mapping[str, Any]:
        """Give the variables the values of the newest checkpoint, if there is one; `step` is its step then, else 0.

        Returns:
            The further arrays that were saved with it.
        """
        self.step, self._saved_step = 0, None
        if self._folder is None:
            return {}
        path = checkpoint_management.latest_checkpoint(self._folder) if self._resume else None
        if path is None:
            return {}
        match = _STEP.search(path)
        if match is None:
            raise InvalidArgumentError(f"{path} was not saved by a Trainer: its name does not end in a step; {_REMEDY}")
        try:
            self._saver.restore(session, path)
        except (NotFoundError, InvalidArgumentError) as error:
            error.message = f"{error.message}; the checkpoint is that of another model: {_REMEDY}"
            raise
        self.step = self._saved_step = int(match[1])
        checkpoint = open_checkpoint(path)
        further = [name for name in checkpoint.tensors if name not in self._saver.names]
        return {name: np.array(checkpoint.read(name)) for name in further}  # copies: the file may go meanwhile

    # -- while training --------------------------------------------------------------------------

    @property
    def next_step(self) -> int | None:
        """The step after which to save, where that is known beforehand."""
        if self._folder is None or self._every_steps is None:
            return None
        return (self.step // self._every_steps + 1) * self._every_steps

    def is_due(self) -> bool:
        """Whether to save now, because it is time, or because the process has been told to end."""
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
            arrays: Gives further arrays to save.
        """
        if self._folder is None or self.step == self._saved_step:
            return
        self.wait()
        started = time.monotonic()
        self._saver.save(session, f"{self._folder}/{NAME}", self.step, write_meta_graph=False, arrays=arrays())
        self._pause_s = time.monotonic() - started
        self._saved_step = self.step
        self._resume = True  # the newest one is this run's
        self._since = time.monotonic()
        self._write_record(finished=False)

    def wait(self) -> None:
        """Wait until the newest checkpoint is complete."""
        if self._folder is None:
            return
        self._saver.wait()
        if self._pause_s is not None:
            self._interval.saved(self._pause_s, self._saver.last_duration_s)
            self._pause_s = None

    def exit_if_preempted(self) -> None:
        """End the process if it has been told to, once the checkpoint is complete."""
        if self._notice.received:
            self.wait()
            sys.exit(EXIT_CODE)

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
            self._failures.trained_s = float(plain["trained_s"])
            self._failures.failures = int(plain["failures"]) + (not plain["finished"])
        except NotFoundError:
            return
        except (KeyError, TypeError, ValueError) as error:
            raise DataLossError(f"{path} cannot be read: {error}; remove it") from error

    def _write_record(self, finished: bool) -> None:
        now = time.monotonic()
        self._failures.trained_s += now - self._clock
        self._clock = now
        plain = {"trained_s": self._failures.trained_s, "failures": self._failures.failures, "finished": finished}
        files.replace_durably(f"{self._folder}/{RECORD_FILE}", json.dumps(plain).encode())


def random_states(session: Session) -> dict[str, Any]:
    """Where the random streams of a session in this process are, by names for a checkpoint."""
    found = {}
    for name, device in _devices_of(session).items():
        found.update({f"{RANDOM_STATE}{name}@{stream}": array for stream, array in states_of(device.resources).items()})
    return found


def restore_random_states(session: Session, arrays: Mapping[str, Any]) -> None:
    """Put the streams where they were; those that were not saved begin anew."""
    for name, device in _devices_of(session).items():
        start = f"{RANDOM_STATE}{name}@"
        own = {key.removeprefix(start): array for key, array in arrays.items() if key.startswith(start)}
        restore_states(device.resources, own)


def _devices_of(session: Session) -> dict[str, Device]:
    runner = session._runner
    assert isinstance(runner, LocalRunner)
    return runner.devices_by_name()


_REMEDY: Final = "choose another checkpoint_dir, or resume=False"
