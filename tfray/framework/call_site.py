"""The line of the user's program that made an operation."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Final

# Both spellings of the folders: the packages are links in a checkout and real folders when installed.
_PACKAGE = Path(__file__).resolve().parent.parent
_OWN_FOLDERS: Final = tuple(
    f"{folder}/"
    for root in (_PACKAGE, Path(__file__).parent.parent)
    for folder in (
        root,
        *((root / part).resolve() for part in ("ops", "actors", "placement")),
    )
)


def user_site() -> str:
    """``file:line, in function`` of the innermost caller outside tfray."""
    frame: FrameType | None = sys._getframe(1)
    last = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if (
            not filename.startswith(_OWN_FOLDERS)
            and not filename.startswith("<frozen")
            and "contextlib" not in filename
        ):
            return f"{filename}:{frame.f_lineno}, in {frame.f_code.co_name}"
        last, frame = frame, frame.f_back
    return f"{last.f_code.co_filename}:{last.f_lineno}, in {last.f_code.co_name}"
