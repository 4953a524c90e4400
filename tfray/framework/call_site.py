"""Lines of the user's program: the one that made an operation, and those in which a function of the user's failed."""

from __future__ import annotations

import ast
import linecache
import os
import sys
import traceback
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Final

from tfray.errors import OpError

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

_LIBRARIES: Final = frozenset(("numpy", "scipy", "cupy", "cupyx", "ml_dtypes", "pyarrow", "PIL", "matplotlib", "ray"))
"""Libraries that tfray calls, or that call tfray. Their frames count as the user's only below a frame of the user's."""

_PYTHONS_OWN: Final = f"{os.path.dirname(os.__file__)}/"


def user_site() -> str:
    """``file:line, in function`` of the innermost caller outside tfray."""
    frame: FrameType | None = sys._getframe(1)
    last = sys._getframe(1)
    while frame is not None and _is_between(frame.f_code.co_filename):
        last, frame = frame, frame.f_back
    last = frame or last
    return f"{last.f_code.co_filename}:{last.f_lineno}, in {last.f_code.co_name}"


@cache  # every operation that is made asks for some ten frames
def _is_between(filename: str) -> bool:
    """Whether a frame of that file stands between the user's code and what it calls."""
    return filename.startswith((*_OWN_FOLDERS, "<frozen")) or "contextlib" in filename


def user_traceback(error: BaseException) -> str:
    """Python's traceback of the user's code that caused an error, such as the function of a `py_func`.

    It has the user's frames, and the frames of libraries that the user's code calls. It is empty if no code of the
    user's failed.
    """
    cause = error.__cause__ if isinstance(error, OpError) else error
    if cause is None or isinstance(cause, OpError):
        return ""
    described = traceback.TracebackException.from_exception(cause)
    return "".join(described.format()).rstrip() if _leave_users_frames(described, cause) else ""


def _leave_users_frames(described: traceback.TracebackException, error: BaseException) -> bool:
    """Take tfray's own frames out of a traceback, and out of its causes. Returns whether any frames are left."""
    frames = list(traceback.walk_tb(error.__traceback__))
    first = next((i for i, (frame, _) in enumerate(frames) if is_users(frame)), len(frames))
    for index in reversed(range(len(frames))):
        if index < first or _is_own(frames[index][0]):
            del described.stack[index]
    found = bool(described.stack)
    for earlier, its_error in ((described.__cause__, error.__cause__), (described.__context__, error.__context__)):
        if earlier is not None and its_error is not None:
            found = _leave_users_frames(earlier, its_error) or found
    return found


def _is_own(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith((*_OWN_FOLDERS, "tfray segment", "<frozen"))


def is_users(frame: FrameType) -> bool:
    """Whether a frame is one of the user's program: not of tfray, of Python, or of a library that tfray calls."""
    file = frame.f_code.co_filename
    is_pythons = file.startswith(_PYTHONS_OWN) and "-packages/" not in file
    module = str(frame.f_globals.get("__name__")).partition(".")[0]
    return not _is_own(frame) and not is_pythons and module not in _LIBRARIES


def failing_site(error: BaseException) -> str:
    """``file:line, in function`` of the innermost code of the user's behind an error; empty if there is none."""
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if is_users(frame)]
    if not frames:
        return ""
    frame, line = frames[-1]
    return f"{frame.f_code.co_filename}:{line}, in {frame.f_code.co_name}"


def frame_of(site: str) -> tuple[str, int, str, str]:
    """The parts of what `user_site` gives: file, line and function, and the text of the line."""
    place, _, function = site.partition(", in ")
    file, _, line = place.rpartition(":")
    number = int(line) if line.isdecimal() else 0
    return file, number, function, linecache.getline(file, number).strip()


def start_of(file: str, line: int, function: str) -> int:
    """The line on which the innermost function of that name begins that has this line; 1 if there is none."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # a file that is not Python, or has changed
        return 1
    starts = [1]
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == function:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first <= line <= (node.end_lineno or first):
                starts.append(first)
    return max(starts)
