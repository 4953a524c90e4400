"""``pywrap_tensorflow.EventsWriter``: event files that are written at once, without a thread."""

from __future__ import annotations

import os

from tfray.compat import as_str_any
from tfray.formats.events import Event, EventFile

__all__ = ["EventsWriter"]


class EventsWriter:
    """Writes events to a file, which is made with the first of them.

    Args:
        file_prefix: The path of the file, up to ``.out.tfevents``; text or bytes.
    """

    def __init__(self, file_prefix: str | bytes) -> None:
        self._prefix, self._suffix = as_str_any(file_prefix), ""
        self._file: EventFile | None = None

    def InitWithSuffix(self, suffix: str | bytes) -> None:
        """Make the file, with this end of its name."""
        self._suffix = as_str_any(suffix)
        self._opened()

    def _opened(self) -> EventFile:
        if self._file is None:
            folder, name = os.path.split(self._prefix)
            self._file = EventFile(folder or ".", self._suffix, name)
        return self._file

    def FileName(self) -> bytes:
        """The path of the file."""
        return self._opened().path.encode()

    def WriteEvent(self, event: Event) -> None:
        """Add an event."""
        self._opened().write(event)

    def Flush(self) -> bool:
        """Hand what was written to the file system."""
        self._opened().flush()
        return True

    def Close(self) -> bool:
        """Finish the file. The next event begins another one."""
        if self._file is not None:
            self._file.close()
            self._file = None
        return True
