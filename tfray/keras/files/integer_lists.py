"""Lists of integers out of arrays of objects that NumPy has pickled, without unpickling.

Of the instructions in such data, those that make numbers, texts, tuples and lists are followed. Where it names a
function, or says that one is to be called, nothing happens: a mark stands for what would have come out.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from tfray.errors import DataLossError

_FIXED: Final = {b"K": "<B", b"M": "<H", b"J": "<i", b"G": ">d"}
"""Instructions for numbers, and how these are written."""

_SIZED: Final = {b"X": "<I", b"\x8c": "<B", b"C": "<B", b"B": "<I", b"U": "<B", b"T": "<I", b"\x8a": "<B"}
"""Instructions for texts, bytes and long numbers, and how their length is written."""

_CONSTANTS: Final = {b"N": None, b"\x88": True, b"\x89": False, b")": ()}
_TUPLES: Final = {b"\x85": 1, b"\x86": 2, b"\x87": 3}
_SKIPPED: Final = {b"\x80": 1, b"\x95": 8}


class _Unmade:
    """Stands for what a call would have made."""

    state: Any = None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memory: dict[int, Any] = {}

    def result(self) -> Any:
        while (code := self._taken(1)) != b".":
            self._follow(code)
        return self._stack[-1]

    def _taken(self, count: int) -> bytes:
        found = self._data[self._place : self._place + count]
        if len(found) != count:
            raise DataLossError("it ends too early")
        self._place += count
        return found

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._taken(struct.calcsize(form)))[0]

    def _since_mark(self) -> list[Any]:
        begin = self._marks.pop()
        found = self._stack[begin:]
        del self._stack[begin:]
        return found

    def _follow(self, code: bytes) -> None:
        stack = self._stack
        if code in _FIXED:
            stack.append(self._number(_FIXED[code]))
        elif code in _SIZED:
            text = self._taken(self._number(_SIZED[code]))
            stack.append(int.from_bytes(text, "little", signed=True) if code == b"\x8a" else text)
        elif code in _CONSTANTS:
            stack.append(_CONSTANTS[code])
        elif code == b"]":
            stack.append([])
        elif code == b"(":
            self._marks.append(len(stack))
        elif code == b"e":
            items = self._since_mark()
            stack[-1].extend(items)
        elif code == b"a":
            item = stack.pop()
            stack[-1].append(item)
        elif code == b"t":
            stack.append(tuple(self._since_mark()))
        elif code in _TUPLES:
            items = stack[-_TUPLES[code] :]
            del stack[-_TUPLES[code] :]
            stack.append(tuple(items))
        elif code in _SKIPPED:
            self._taken(_SKIPPED[code])
        else:
            self._remember_or_mark(code)

    def _remember_or_mark(self, code: bytes) -> None:
        stack = self._stack
        if code in (b"q", b"r", b"\x94"):
            number = len(self._memory) if code == b"\x94" else self._number("<B" if code == b"q" else "<I")
            self._memory[number] = stack[-1]
        elif code in (b"h", b"j"):
            stack.append(self._memory[self._number("<B" if code == b"h" else "<I")])
        elif code == b"c":  # the name of a function: two lines
            for _ in range(2):
                self._place = self._data.index(b"\n", self._place) + 1
            stack.append(_Unmade())
        elif code in (b"R", b"\x93"):  # a call; a name from the stack
            del stack[-2:]
            stack.append(_Unmade())
        elif code == b"b":
            state = stack.pop()
            stack[-1].state = state
        else:
            raise DataLossError(f"it has the instruction {code!r}, which lists of integers do not need")


def integer_lists(data: bytes) -> list[list[int]]:
    """The lists in the pickled form of an array of lists of integers.

    Args:
        data: What follows the header of an array in a file of NumPy's.

    Raises:
        DataLossError: It is anything else.
    """
    try:
        made = _Reader(data).result()
        lists = made.state[-1]
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise DataLossError(f"it is no array of lists: {error}") from error
    is_right = isinstance(lists, list) and all(isinstance(each, list) for each in lists)
    if not is_right or not all(type(item) is int for each in lists for item in each):
        raise DataLossError("it holds other things than lists of integers")
    return lists
