"""Reading strings of many encodings as text, with TensorFlow's choices of what becomes of malformed parts."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework.op_def import KernelContext
from tfray.ops.kernels.text import text_attr

OUTPUT_ENCODINGS: Final = ("UTF-8", "UTF-16-BE", "UTF-32-BE")
"""What strings can be written in."""

READING: Final = ("input_encoding", "errors", "replacement_char", "replace_control_characters")
"""Names of the attributes of an operation that reads text: what `reading` gives."""

LAST: Final = 0x10FFFF
"""The largest number of a character."""

_MARKS: Final = {
    "utf-16": ((codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF16_LE, "utf-16-le"), (b"", "utf-16-be")),
    "utf-32": ((codecs.BOM_UTF32_BE, "utf-32-be"), (codecs.BOM_UTF32_LE, "utf-32-le"), (b"", "utf-32-be")),
}
"""Encodings of which a mark at a string's beginning says which byte comes first: the mark, and what follows it."""


def check_output(what: str, encoding: str) -> None:
    """Raise `InvalidArgumentError` if strings cannot be written in an encoding."""
    _check_choice(f"{what}: output_encoding", encoding, OUTPUT_ENCODINGS)


def _check_choice(what: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        expected = ", ".join(f'"{choice}"' for choice in choices)
        raise InvalidArgumentError(f"{what}: Op passed string {value!r} not in: {expected}.")


def check_replacement(ctx: KernelContext) -> int:
    """The number of the character that replaces malformed parts. Raises `InvalidArgumentError` if there is none."""
    number: int = ctx.attr("replacement_char")
    if not 0 <= number <= LAST:
        raise InvalidArgumentError(f"{ctx.op_name}: replacement_char is {number}, expected 0 to {LAST}")
    return number


def replacing(what: str, errors: str, replacement_char: int) -> dict[str, Any]:
    """The attributes that say what becomes of malformed parts. Raises `InvalidArgumentError` for wrong ones."""
    _check_choice(f"{what}: errors", errors, ("strict", "replace", "ignore"))
    return {"errors": errors, "replacement_char": int(replacement_char)}


def reading(
    what: str, input_encoding: str, errors: str, replacement_char: int, replace_control_characters: bool
) -> dict[str, Any]:
    """The attributes by which an operation of type `what` reads text. Raises `InvalidArgumentError` for wrong ones."""
    if input_encoding is None:
        raise ArgumentError(f"{what}: input_encoding is missing")
    return {
        "input_encoding": text_attr(f"{what}: input_encoding", input_encoding),
        **replacing(what, errors, replacement_char),
        "replace_control_characters": bool(replace_control_characters),
    }


class Reader:
    """Reads strings as text by the attributes `READING` of an operation.

    Raises:
        InvalidArgumentError: There is no such encoding, or no character to put for malformed parts.
    """

    def __init__(self, ctx: KernelContext) -> None:
        self._name = ctx.attr("input_encoding")
        try:
            self._encoding = codecs.lookup(self._name).name
        except LookupError as error:
            raise InvalidArgumentError(f"Could not create converter for input encoding: {self._name}") from error
        self._strict = ctx.attr("errors") == "strict"
        self._substitute = "" if ctx.attr("errors") == "ignore" else chr(check_replacement(ctx))
        self._controls = 32 if ctx.attr("replace_control_characters") else 0

    def text(self, string: bytes) -> str:
        """The text of a string. Raises `InvalidArgumentError` for a malformed one if ``errors`` is ``strict``."""
        return "".join([text for _, text, _ in self._pieces(string)])

    def characters(self, string: bytes) -> tuple[list[int], list[int]]:
        """The number of each character, and where it begins in the string. Raises as `text` does."""
        codes: list[int] = []
        offsets: list[int] = []
        for start, text, encoding in self._pieces(string):
            for character in text:
                codes.append(ord(character))
                offsets.append(start)
                start += len(character.encode(encoding)) if encoding else 0
        return codes, [0, *offsets[1:]] if offsets else []  # a mark belongs to the first character

    def _pieces(self, string: bytes) -> Iterator[tuple[int, str, str]]:
        """Where each piece begins, its text, and the encoding of a piece that is not a substitute."""
        marks = _MARKS.get(self._encoding, ((b"", self._encoding),))
        mark, encoding = next(pair for pair in marks if string.startswith(pair[0]))
        start = len(mark)
        while start < len(string):
            end = after = len(string)
            try:
                text = string[start:].decode(encoding)
            except UnicodeDecodeError as error:
                self._refuse(string, str(error))
                end, after = start + error.start, start + error.end
                text = string[start:end].decode(encoding)
            yield from self._without_controls(string, start, text, encoding)
            if end < after:
                yield end, self._substitute, ""
            start = after

    def _without_controls(self, string: bytes, start: int, text: str, encoding: str) -> Iterator[tuple[int, str, str]]:
        begin = 0
        for index, character in enumerate(text if self._controls else ""):
            if ord(character) < self._controls:
                self._refuse(string, f"it has the control character {character!r}")
                before = text[begin:index]
                yield start, before, encoding
                start += len(before.encode(encoding))
                yield start, self._substitute, ""
                start += len(character.encode(encoding))
                begin = index + 1
        yield start, text[begin:], encoding

    def _refuse(self, string: bytes, why: str) -> None:
        if self._strict:
            raise InvalidArgumentError(f"Invalid formatting on input string {string[:80]!r}, not {self._name}: {why}")
