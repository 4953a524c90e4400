"""What kernels of strings share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, Final

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework.arguments import abbreviated
from tfray.framework.op_def import Array, KernelContext

UNITS = ("BYTE", "UTF8_CHAR")


def as_strings(value: Array) -> Array:
    """A kernel's input as an array of bytes objects. A scalar input may be a plain bytes object."""
    return value if isinstance(value, np.ndarray) else np.array(value, object)


def as_string(value: Array) -> bytes:
    """A kernel's scalar input as a bytes object."""
    string: bytes = as_strings(value).item()
    return string


def blank(ctx: KernelContext, sizes: Iterable[int | None], output: int = 0) -> Array:
    """What nothing has written yet: zeros, or empty strings, in the dtype of an output of the operation.

    Args:
        ctx: The context of the operation.
        sizes: The sizes of the array, all of which are known.
        output: Which output.
    """
    array = ctx.xp.zeros(tuple(sizes), ctx.output_dtype(output))
    if array.dtype == object:
        array.fill(b"")
    return array


def text_attr(what: str, value: Any) -> str:
    """An attribute that is a string: text, or bytes of it; None, as in TensorFlow, stands for none.

    Raises:
        ArgumentError: It is something else.
    """
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if value is not None and not isinstance(value, str):
        raise ArgumentError(f"{what} is {abbreviated(value)}, expected a string")
    return value or ""


def octets(attr: str) -> bytes:
    """The bytes of an attribute that `text_attr` gave."""
    return attr.encode("utf-8", "surrogateescape")


def filled(shape: tuple[int, ...], items: Iterable[bytes]) -> Array:
    """An array of strings of that shape with these elements."""
    result = np.empty(shape, object)
    result.reshape(-1)[:] = list(items)
    return result


def mapped(function: Callable[[bytes], bytes], strings: Array) -> Array:
    """`function` of every string, in the same shape."""
    strings = as_strings(strings)
    return filled(strings.shape, map(function, strings.reshape(-1).tolist()))


def decoded(string: bytes) -> str:
    """A string as text. Raises `InvalidArgumentError` when it is not UTF-8."""
    try:
        return string.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"{string[:80]!r} is not UTF-8: {error}") from error


def lenient(string: bytes) -> str:
    """A string as text: U+FFFD stands for each part that is not UTF-8."""
    return string.decode("utf-8", "replace")


def characters(string: bytes) -> list[bytes]:
    """The bytes of each character: all up to the next one that does not go on a character of UTF-8."""
    starts = [0, *(index for index, byte in enumerate(string) if index and byte & 0xC0 != 0x80), len(string)]
    return [string[begin:end] for begin, end in pairwise(starts)] if string else []


def summarized(value: Array | bytes, count: int) -> str:
    """A value as TensorFlow prints it: of each dimension `count` elements at either end, all if it is negative.

    Numbers have as many digits as tell them from their neighbours in float32 or float64. Bytes of strings that are not
    UTF-8 are surrogate escapes.
    """
    array = np.asarray(value)
    count = count if array.size else 0  # TensorFlow shows no more elements at an end than there are
    if array.ndim == 0:
        return _element(array.item() if array.dtype.kind in "OSb" else array[()])
    if array.ndim == 1:
        return "[" + " ".join(_both_ends([_element(item) for item in _ends(array, count)], len(array), count)) + "]"
    inner = [re.sub(r"\n(?!\n)", "\n ", summarized(item, count)) for item in _ends(array, count)]
    return "[" + ("\n" * (array.ndim - 1) + " ").join(_both_ends(inner, len(array), count)) + "]"


def _ends(array: Array, count: int) -> Array:
    if count < 0 or len(array) <= 2 * count:
        return array
    return np.concatenate([array[:count], array[len(array) - count :]])


def _both_ends(shown: list[str], size: int, count: int) -> list[str]:
    return [*(shown[:count] or [""]), "...", *shown[count:]] if len(shown) < size else shown


_ESCAPES: Final = {
    **{code: f"\\{code:03o}" for code in (*range(32), 127)},
    **{ord(letter): f"\\{shown}" for letter, shown in zip("\n\r\t\\\"'", "nrt\\\"'", strict=True)},
}
"""How characters of a string that are not shown as they are appear, as in C."""


def _element(value: Any) -> str:
    if isinstance(value, (bytes, str)):
        text = value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")
        return f'"{text.translate(_ESCAPES)}"'
    if isinstance(value, bool):
        return str(int(value))
    kind = np.asarray(value).dtype
    if kind.kind == "c":
        return f"({_element(value.real)},{_element(value.imag)})"
    if kind.kind in "iu":
        return str(int(value))
    if kind == np.float64:
        return _number(np.float64(value), 15, 17)
    return _number(np.float32(value), 6, 9)


def _number(value: np.floating[Any], digits: int, exact: int) -> str:
    short = f"{value:.{digits}g}"
    return short if type(value)(short) == value or np.isnan(value) else f"{value:.{exact}g}"


def check_unit(unit: object, what: str) -> str:
    """One of `UNITS`. Raises `InvalidArgumentError` for anything else."""
    if unit not in UNITS:
        known = ", ".join(f'"{each}"' for each in UNITS)
        raise InvalidArgumentError(f"Attr 'unit' of {what!r} Op passed string {unit!r} not in: {known}")
    return str(unit)
