"""Reading strings of many encodings as text, with TensorFlow's choices of what becomes of malformed parts."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework.op_def import KernelContext

OUTPUT_ENCODINGS: Final = ("UTF-8", "UTF-16-BE", "UTF-32-BE")
"""What strings can be written in."""

READING: Final = ("input_encoding", "errors", "replacement_char", "replace_control_characters")
"""Names of the attributes of an operation that reads text: what `reading` gives."""

_WITHOUT_MARK: Final = {"utf-16": "utf-16-be", "utf-32": "utf-32-be"}
"""What a string of these encodings is read as when no mark at its beginning says which byte comes first."""


def reading(
    what: str, input_encoding: str, errors: str, replacement_char: int, replace_control_characters: bool
) -> dict[str, Any]:
    """The attributes by which an operation of type `what` reads text. Raises `InvalidArgumentError` for wrong ones."""
    try:
        codecs.lookup(input_encoding)
    except LookupError as error:
        raise InvalidArgumentError(f"{what}: {input_encoding!r} is not the name of an encoding") from error
    if errors not in ("replace", "ignore", "strict"):
        raise InvalidArgumentError(f"{what}: errors is {errors!r}, expected 'replace', 'ignore' or 'strict'")
    if not 0 <= replacement_char <= 0x10FFFF:
        raise InvalidArgumentError(f"{what}: replacement_char is {replacement_char}, expected 0 to 0x10ffff")
    return dict(zip(READING, (input_encoding, errors, replacement_char, bool(replace_control_characters)), strict=True))


def reader(ctx: KernelContext) -> Callable[[bytes], str]:
    """A function from the bytes of a string to its text, for an operation with the attributes `READING`.

    It raises `InvalidArgumentError` for a malformed string if ``errors`` is ``strict``.
    """
    source, errors = ctx.attr("input_encoding"), ctx.attr("errors")
    substitute = "" if errors == "ignore" else chr(ctx.attr("replacement_char"))
    how = "strict" if errors == "strict" else _substituting(substitute)
    default = _WITHOUT_MARK.get(codecs.lookup(source).name)
    controls = dict.fromkeys(range(32), substitute) if ctx.attr("replace_control_characters") else {}

    def read(string: bytes) -> str:
        encoding = source
        if default is not None and not string.startswith(_marks(default)):
            encoding = default
        try:
            text = string.decode(encoding, how)
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(f"{string[:80]!r} is not {source}: {error}") from error
        if not controls:
            return text
        if errors == "strict" and any(ord(character) < 32 for character in text):
            raise InvalidArgumentError(f"{string[:80]!r} has control characters")
        return text.translate(controls)

    return read


def _marks(encoding: str) -> tuple[bytes, ...]:
    if encoding == "utf-16-be":
        return codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE
    return codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE


def _substituting(text: str) -> str:
    """The name of Python's way of decoding that puts `text` in place of each malformed part."""
    name = f"tfray-{ord(text) if text else None}"
    codecs.register_error(name, lambda error: (text, error.end))  # type: ignore[attr-defined]
    return name
