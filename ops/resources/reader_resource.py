"""The state of a reader on its device: the file that it reads, its position there, and the reads that wait."""

from __future__ import annotations

import copy
import gzip
import json
import time
import zlib
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any, Final

from tfray.errors import InvalidArgumentError, OpError, UnknownError
from tfray.formats import files
from tfray.formats.tfrecord import read_records
from tfray.framework import dtypes
from tfray.ops.resources.attempts import Attempt, SharedResource, wake
from tfray.ops.resources.queue_resource import Queue

Record = tuple[bytes, bytes]
"""Key and value."""

OpenWork = Callable[[bytes], Iterator[Record]]
"""From a work unit, the name of a file mostly, to its records."""

_LINE: Final = 0

_AT_ONCE_S: Final = 2e-3
"""Seconds for which a read goes on to take records: those of a slow file do not wait for one another."""

_AT_ONCE_BYTES: Final = 1 << 20
"""1 MiB, after which it does not go on either."""


class Reader(SharedResource):
    """Gives records of one work unit after another, which it takes from a queue.

    Args:
        name: Name to show.
        spec: What kind of reader it is, to be compared with what another step expects.
        open_work: Opens a work unit.

    Attributes:
        records_produced: Number of records given so far.
        works_completed: Number of work units that were read to their end.
    """

    def __init__(self, name: str, spec: tuple[Any, ...], open_work: OpenWork) -> None:
        super().__init__(line_count=1)
        self.name = name
        self.spec = spec
        self._open = open_work
        self._fetching = False
        self._pending: Attempt | None = None
        self.reset()

    def describe(self) -> str:
        """How messages name the reader."""
        return f"{self.spec[0]} {self.name!r}"

    def reset(self) -> None:
        """Forget everything: as new."""
        self.records_produced = self.works_completed = 0
        self._work: bytes | None = None
        self._unit = object()
        self._records: Iterator[Record] = iter(())
        self._returned: list[Record] = []
        self._position = 0

    def read(self, queue: Queue, count: int | None) -> Attempt:
        """Take the next record, or up to `count` records of one work unit."""
        return self._submit(_Read(self, queue, count))

    def _submit(self, attempt: _Read) -> Attempt:
        if attempt.queue.dtypes != [dtypes.string]:
            raise InvalidArgumentError(
                f"{self.describe()} takes work from a queue of strings, not {attempt.queue.describe()}"
            )
        line = self._lines[_LINE]
        with self.lock:
            if not line and attempt.advance():
                return attempt
            line.append(attempt)
        self._fetch()
        return attempt

    def read_some(self, queue: Queue, target: Queue, most: int) -> Attempt:
        """Take the next records of a work unit, as `TakenRecords`: as many as `target` has room for, but at least one.

        Args:
            queue: Where work units come from.
            target: Where the records go.
            most: The most to take.
        """
        return self._submit(_ReadSome(self, queue, target, most))

    # -- the next work unit ------------------------------------------------------------------------

    def _fetch(self) -> None:
        """While reads wait and there is no work unit, take one from the queue of the first read. This may wait."""
        while True:
            with self.lock:
                first = self._lines[_LINE][0] if self._lines[_LINE] else None
                if not isinstance(first, _Read) or self._work is not None or self._fetching:
                    return
                self._fetching = True
            self._pending = pending = first.queue.dequeue()
            pending.when_done = self._arrived
            if not pending.done or not self._take():
                return

    def _arrived(self) -> None:
        if self._take():
            self._fetch()

    def _take(self) -> bool:
        """Start the work unit that the queue gave. Returns False if another thread has done so already."""
        with self.lock:
            pending, self._pending = self._pending, None
            if pending is None:
                return False
            self._fetching = False
            finished: list[Attempt] = []
            try:
                self._start(pending.result()[0].item())
            except OpError as error:  # the queue is closed, or there is no such file
                if self._lines[_LINE]:
                    first = self._lines[_LINE].popleft()
                    first.fail(error)
                    finished.append(first)
            finished += self._serve()
        wake(finished)
        return True

    def drop_unused_fetch(self) -> None:
        """Cancel the waiting dequeue when no read waits any more, so that the queue keeps its element."""
        with self.lock:
            if self._lines[_LINE] or self._pending is None:
                return
            pending, self._pending = self._pending, None
            self._fetching = False
        pending.cancel()

    # -- records -----------------------------------------------------------------------------------

    def _start(self, work: bytes, position: int = 0) -> None:
        self._records = islice(self._open(work), position, None)
        self._work, self._position, self._unit = work, position, object()

    def next_records(self, count: int) -> list[Record]:
        """Up to `count` records, none when there is no work unit with more. Call with the lock held."""
        if self._returned:
            returned, self._returned = self._returned[:count], self._returned[count:]
            self.records_produced += len(returned)
            return returned
        if self._work is None:
            return []
        try:
            records = list(islice(self._records, count))
        except BaseException:
            self._work = None
            raise
        self._position += len(records)
        self.records_produced += len(records)
        if not records:
            self._work = None
            self.works_completed += 1
        return records

    @property
    def has_returned(self) -> bool:
        """Whether the next records are some of an earlier work unit, which were put back."""
        return bool(self._returned)

    @property
    def unit(self) -> object:
        """Stands for the present work unit."""
        return self._unit

    @property
    def work(self) -> bytes | None:
        """The present work unit; None between two."""
        return self._work

    def fail_again(self, work: bytes, error: OpError) -> None:
        """Let the next read fail as the last one of this work unit did. Call with the lock held."""
        self._work, self._records = work, _failing(copy.copy(error))  # a copy, for the next read's name and frames

    def more_records(self, most: int) -> list[Record]:
        """What comes behind the records that `next_records` has just given. Call with the lock held.

        It takes up to `most` records, and no more than are read at once. What ends the work unit is left to the next
        read: its end, or an error.
        """
        records: list[Record] = []
        until, size = time.monotonic() + _AT_ONCE_S, 0
        try:
            while len(records) < most and size < _AT_ONCE_BYTES and time.monotonic() < until:
                record = next(self._records)
                records.append(record)
                size += len(record[1])
        except StopIteration:
            pass
        except Exception as error:  # noqa: BLE001 (the next read raises it)
            self._records = _failing(error)
        self._position += len(records)
        self.records_produced += len(records)
        return records

    def put_back(self, taken: TakenRecords) -> None:
        """Let the next reads give records that were taken. Call with the lock held."""
        self.records_produced -= len(taken.elements)
        if taken.unit == self._unit and self._work is not None:
            self._records = chain(taken.elements, self._records)
            self._position -= len(taken.elements)
        else:  # another read has gone on to the next work unit
            self._returned = taken.elements + self._returned

    # -- state -------------------------------------------------------------------------------------

    def state(self) -> bytes:
        """Where the reader is, for `restore`."""
        work = None if self._work is None else self._work.decode("latin-1")
        state = [work, self._position, self.records_produced, self.works_completed]
        return json.dumps(state).encode()

    def restore(self, state: bytes) -> None:
        """Go back to where a reader of the same kind was. Raises `InvalidArgumentError` for anything else."""
        try:
            work, position, records_produced, works_completed = json.loads(state)
            position, records_produced, works_completed = map(int, (position, records_produced, works_completed))
            work = None if work is None else str(work).encode("latin-1")
        except (ValueError, TypeError) as error:
            raise InvalidArgumentError(f"Could not parse state for {self.describe()}: {state[:80]!r}") from error
        self.reset()
        if work is not None:
            self._start(work, position)
        self.records_produced, self.works_completed = records_produced, works_completed


class _Read(Attempt):
    __slots__ = ("_count", "queue")
    resource: Reader

    def __init__(self, reader: Reader, queue: Queue, count: int | None) -> None:
        super().__init__(reader)
        self.queue = queue
        self._count = count

    def advance(self) -> bool:
        try:
            records = self.resource.next_records(self._count or 1)
        except OpError as error:
            return self.fail(error)
        except Exception as error:  # noqa: BLE001 (fails this read, not the thread that serves the line)
            return self.fail(UnknownError(f"{self.resource.describe()} failed: {type(error).__name__}: {error}"))
        return bool(records) and self.finish(records)

    def cancel(self) -> None:
        super().cancel()
        self.resource.drop_unused_fetch()


class TakenRecords:
    """Records that a step has taken. When it ends, those go back of which it has added nothing.

    Attributes:
        elements: The records.
        unit: Stands for the work unit from which they came; None for one that has ended.
    """

    def __init__(self, reader: Reader, records: list[Record], is_present: bool) -> None:
        self.elements = records
        self.unit = reader.unit if is_present else None
        self._reader = reader

    def release(self) -> None:
        """Put them back where they were."""
        self._reader.change(lambda: self._reader.put_back(self))


class _ReadSome(_Read):
    __slots__ = ("_most", "_target")

    def __init__(self, reader: Reader, queue: Queue, target: Queue, most: int) -> None:
        super().__init__(reader, queue, None)
        self._target = target
        self._most = most

    def advance(self) -> bool:
        reader, is_given_again, work = self.resource, self.resource.has_returned, self.resource.work
        has_changed = super().advance()
        if self.error is not None and work is not None:
            reader.fail_again(work, self.error)
        elif has_changed:
            more = 0 if is_given_again else min(self._target.room, self._most) - 1
            self.value = TakenRecords(reader, self.value + reader.more_records(more), not is_given_again)
        return has_changed

    def undo(self) -> None:
        if self.done:
            self.resource.put_back(self.value)


def _failing(error: Exception) -> Iterator[Record]:
    raise error
    yield


# -- kinds ---------------------------------------------------------------------------------------------


def lines(skip_header_lines: int) -> OpenWork:
    """Work units are text files, and records their lines."""

    def open_work(work: bytes) -> Iterator[Record]:
        with files.open_file(work) as file, files.failures_of(work):
            for number, line in enumerate(file, 1):
                if number > skip_header_lines:
                    yield b"%s:%d" % (work, number), line.rstrip(b"\n").rstrip(b"\r")

    return open_work


_DECOMPRESS: Final[dict[str, Callable[[bytes], bytes]]] = {"": bytes, "ZLIB": zlib.decompress, "GZIP": gzip.decompress}


def fixed_length_records(
    record_bytes: int, header_bytes: int, footer_bytes: int, hop_bytes: int, encoding: str
) -> OpenWork:
    """Work units are files. Records are pieces of one length; each begins `hop_bytes` after the one before."""

    def open_work(work: bytes) -> Iterator[Record]:
        data = _DECOMPRESS[encoding](files.read_bytes(work))
        starts = range(header_bytes, len(data) - footer_bytes - record_bytes + 1, hop_bytes or record_bytes)
        for number, start in enumerate(starts):
            yield b"%s:%d" % (work, number), data[start : start + record_bytes]

    return open_work


def tf_records(compression: str) -> OpenWork:
    """Work units are TFRecord files."""

    def open_work(work: bytes) -> Iterator[Record]:
        start = 0
        for record, end in read_records(work, compression):
            yield b"%s:%d" % (work, start), record
            start = end

    return open_work


def whole_files(work: bytes) -> Iterator[Record]:
    """Work units are files, each one record."""
    yield work, files.read_bytes(work)


def identity(work: bytes) -> Iterator[Record]:
    """Work units are records themselves."""
    yield work, work
