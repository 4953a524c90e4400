"""Words and limits for processes that answer nothing at all. It imports nothing, and so can be used without Ray."""

from __future__ import annotations

from typing import Final

SILENT: Final = "its process is frozen, or its machine is overloaded or cut off"
"""Why an actor may not answer, for error messages."""

SILENCE_S: Final = 120.0
"""Seconds after which a run waits no longer for a process that answers nothing at all, if no other limit is given."""
