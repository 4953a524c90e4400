"""A lock on a folder: one run at a time saves checkpoints there.

The lock is a file that names its holder: host, process, and since when. It works as follows:

- On a file system of this machine two runs never both get the lock. If the holder's process has ended, the lock is
  stale at once.
- A run cannot see whether a process of another machine or container is alive. So each holder rewrites the file every
  `RENEWAL_S` seconds. A run that finds such a lock watches it for `LEASE_S` seconds, and takes it over if the file does
  not change. No clocks are compared.
- Object stores cannot create a file only if there is none. There a run reads its lock again after `SETTLE_S` seconds:
  of two that come at once the later one wins, and the other sees that.
- A run checks its lock before each save. A run that was stopped or cut off for longer than `LEASE_S` may have lost it,
  and ends with an error. A save that it had begun does no harm: see `tfray.formats.checkpoint_folder`.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from tfray.errors import AbortedError, FailedPreconditionError, NotFoundError, OpError
from tfray.formats import files
from tfray.formats.holder import Holder
from tfray.library.platform import logging

LOCK_FILE: Final = "tfray.lock"
RENEWAL_S: Final = 5.0
LEASE_S: Final = 20.0
SETTLE_S: Final = 1.0
POLL_S: Final = 0.2  # seconds between two looks at the lock of another machine
GUARD_S: Final = 5.0
"""Seconds to wait for the system's lock on the folder. Other processes hold it only to read and change the file."""


class FolderLock:
    """The lock on one folder. The folder must exist.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._path = f"{folder.rstrip('/')}/{LOCK_FILE}"
        self._mine: Holder | None = None
        self._ended = threading.Event()
        self._renewing: threading.Thread | None = None

    def take(self) -> None:
        """Take the lock, or take it over if it is stale.

        Raises:
            FailedPreconditionError: Another run holds it; the message says which.
        """
        self._mine = Holder.new()
        try:
            found = self._try(None)
            if found is not None:
                self._watch(found)
        except BaseException:
            self._mine.end()
            raise
        self._ended.clear()
        self._renewing = threading.Thread(target=self._renew, name="tfray-lock", daemon=True)
        self._renewing.start()

    def check(self) -> None:
        """Check that this run still holds the lock. If the file is gone, take the lock anew.

        Raises:
            AbortedError: Another run has taken it over.
        """
        assert self._mine is not None
        with self._guarded():
            found = self._read()
            if found is None:
                files.make_folders(self._folder)
                self._write(self._mine)
            elif found.token != self._mine.token:
                raise AbortedError(
                    f"the lock on {self._folder} was taken over by {found}: this run was stopped, or cut off, for so "
                    "long that it was taken for dead; it saves there no more"
                )

    def release(self) -> None:
        """Give the lock back."""
        if self._mine is None:
            return
        self._ended.set()
        if self._renewing is not None:
            self._renewing.join(2 * GUARD_S)  # it takes longer only if the file system does not answer
        with contextlib.suppress(NotFoundError), self._guarded():
            found = self._read()
            if found is not None and found.token == self._mine.token:
                files.remove(self._path)
        self._mine.end()
        self._mine = None

    # -- how -------------------------------------------------------------------------------------

    def _try(self, expired: Holder | None) -> Holder | None:
        """Take the lock if it is free or held by `expired`. Otherwise return its holder, which may be alive."""
        assert self._mine is not None
        with self._guarded() as exclusive:
            found = self._read()
            if found is not None and found != expired:
                if found.is_alive is None:
                    return found
                if found.is_alive:
                    raise self._held_by(found)
            if found is not None:
                logging.warning("the lock on %s was left by %s, which has ended: it is taken over", self._folder, found)
            self._write(self._mine)
        if not exclusive:
            if not isinstance(files.locate(self._path)[0], files.LocalStore):
                time.sleep(SETTLE_S)
            found = self._read()
            if found is None or found.token != self._mine.token:
                raise self._held_by(found or self._mine)
        return None

    def _watch(self, found: Holder) -> None:
        """Watch the lock of a process on another machine, and take it if the file does not change."""
        logging.warning(
            "the lock on %s is that of %s: watching for %g s whether that lives", self._folder, found, LEASE_S
        )
        deadline = time.monotonic() + LEASE_S
        while time.monotonic() < deadline:
            time.sleep(POLL_S)
            now = self._read()
            if now is None:
                break
            if now != found:
                raise self._held_by(now)
        other = self._try(found)
        if other is not None:
            raise self._held_by(other)

    def _held_by(self, holder: Holder) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"{self._folder} is in use by {holder}: two runs cannot save in one folder; wait until it ends, end it, or "
            f"choose another checkpoint_dir (if it is certain that it has ended, remove {self._path})"
        )

    def _renew(self) -> None:
        while not self._ended.wait(RENEWAL_S):
            with contextlib.suppress(OpError), self._guarded():  # the next save will raise the error
                assert self._mine is not None
                found = self._read() or self._mine  # if the file was removed, write it again
                if found.token != self._mine.token:
                    return  # another run has taken the lock over: `check` raises
                self._write(replace(found, renewals=found.renewals + 1))

    def _read(self) -> Holder | None:
        """The holder of the lock, if any. An empty file is no lock: locks appear with their whole content at once."""
        try:
            return Holder.from_bytes(files.read_bytes(self._path))
        except NotFoundError:
            return None

    def _write(self, holder: Holder) -> None:
        files.replace_durably(self._path, holder.to_bytes(), synced=False)

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[bool]:
        """A block in which no other process of this machine changes the lock. Yields False if that is not possible."""
        store, inner, _ = files.locate(self._folder)
        descriptor = _locked(inner) if isinstance(store, files.LocalStore) else None
        try:
            yield descriptor is not None
        finally:
            if descriptor is not None:
                os.close(descriptor)


class SharedLock:
    """The lock on a folder, for savers of which one process may have several: a session within another, or after it.

    Other processes see one lock. It is given back with the last of these, or when the process ends.

    Args:
        folder: The folder; it need not exist.
    """

    def __init__(self, folder: str) -> None:
        store, inner, _ = files.locate(folder)
        self._folder = os.path.realpath(inner) if isinstance(store, files.LocalStore) else folder
        self._shared: _Shared | None = None

    def take(self) -> None:
        """Take the lock, unless this process has it. Taking it twice does nothing.

        Raises:
            FailedPreconditionError: Another process saves there; the message says which.
        """
        with _SHARING:
            if self._shared is not None and self._shared.process == os.getpid():
                return
            shared = _SHARED.get(self._folder)
            if shared is None or shared.process != os.getpid():  # not that of a process from which this one was forked
                files.make_folders(self._folder)
                shared = _Shared(FolderLock(self._folder), os.getpid())
                shared.lock.take()
                _SHARED[self._folder] = shared
            shared.users += 1
            self._shared = shared

    def check(self) -> None:
        """Check before a save that this process may save there. Takes the lock if it was given back.

        Raises:
            FailedPreconditionError: Another process has the lock, or has taken it over.
        """
        self.take()
        assert self._shared is not None
        try:
            self._shared.lock.check()
        except AbortedError as error:  # after which a monitored session would begin anew
            raise FailedPreconditionError(error.message) from None

    def release(self) -> None:
        """Give the lock back, unless others of this process need it."""
        with _SHARING:
            shared, self._shared = self._shared, None
            if shared is None or shared.process != os.getpid():
                return
            shared.users -= 1
            if not shared.users:
                del _SHARED[self._folder]
                shared.lock.release()


@dataclass
class _Shared:
    lock: FolderLock
    process: int
    users: int = 0


_SHARED: Final[dict[str, _Shared]] = {}
"""By folder: the lock of this process."""

_SHARING: Final = threading.Lock()


@atexit.register
def _release_all() -> None:
    for shared in _SHARED.values():
        if shared.process == os.getpid():
            with contextlib.suppress(OpError):
                shared.lock.release()


def _locked(folder: str) -> int | None:
    """A descriptor of a folder that holds the system's lock on it; None if there is no such lock, or not in time."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    deadline = time.monotonic() + GUARD_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except OSError as error:  # some network file systems know no locks
            if not isinstance(error, BlockingIOError) or time.monotonic() > deadline:
                os.close(descriptor)
                return None
        time.sleep(0.01)
