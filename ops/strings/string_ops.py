"""Strings element by element: joining, cutting, changing and matching them. All run on the CPU."""

from __future__ import annotations

import base64
import binascii
import re
import sys
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import none_is_default
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_cpu, register
from tfray.framework.shape_functions import like_input, scalar
from tfray.framework.tensor_operators import register_operator
from tfray.framework.tensor_shape import UNKNOWN, TensorShape, broadcast_shapes
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import broadcast_dynamic_shape, broadcast_to
from tfray.ops.arrays.shape_ops import shape
from tfray.ops.kernels.batch_rules import by_element, by_row
from tfray.ops.kernels.text import (
    as_string,
    as_strings,
    characters,
    check_unit,
    decoded,
    filled,
    lenient,
    mapped,
    octets,
    summarized,
    text_attr,
)

# -- joining -------------------------------------------------------------------------------------------


def string_join(inputs: Sequence[TensorLike], separator: str = "", name: str | None = None) -> Tensor:
    """Join the strings of several tensors, element by element.

    Args:
        inputs: String tensors of one shape, a list; scalars go with any shape.
        separator: What to put between them.
        name: Name of the operation.

    Returns:
        Strings of that shape.

    Raises:
        ArgumentError: `inputs` is not a list.
    """
    if not isinstance(inputs, Sequence) or isinstance(inputs, (str, bytes)):
        raise ArgumentError(f"StringJoin: inputs is {inputs!r}, expected a list of string tensors")
    return add_op(STRING_JOIN, list(inputs), name=name, separator=text_attr("StringJoin: separator", separator))


def _string_join_kernel(ctx: KernelContext, *inputs: Array) -> Array:
    arrays = [as_strings(array) for array in inputs]
    shape = next((array.shape for array in arrays if array.ndim), ())
    for array in arrays:
        if array.ndim and array.shape != shape:
            raise InvalidArgumentError(f"strings of shapes {shape} and {array.shape} are not joined")
    if not arrays:
        return filled((), [b""])
    flat = [np.broadcast_to(array, shape).reshape(-1).tolist() for array in arrays]
    return filled(shape, map(octets(ctx.attr("separator")).join, zip(*flat, strict=True)))


def _string_join_shape(op: Operation) -> list[TensorShape]:
    shape = UNKNOWN
    for tensor in op.inputs:
        if tensor.shape.rank != 0:
            shape = shape.merge_with(tensor.shape)
    return [TensorShape([]) if all(tensor.shape.rank == 0 for tensor in op.inputs) else shape]


def _joined(x: TensorLike, y: TensorLike, name: str | None) -> Tensor:
    """``x + y``: as for numbers, shapes that differ broadcast."""
    both = [convert_to_tensor(each, dtypes.string) for each in (x, y)]
    left, right = (tensor.shape for tensor in both)
    alike = left.rank == 0 or right.rank == 0 or (left.is_fully_defined() and left == right)
    if not alike:
        sizes = broadcast_dynamic_shape(shape(both[0]), shape(both[1]))
        both = [broadcast_to(tensor, sizes) for tensor in both]
    return string_join(both, name=name or "Add")


register_operator("join", _joined)

STRING_JOIN = register(
    OpDef(
        name="StringJoin",
        inputs=("inputs: string*",),
        outputs=("output: string",),
        attrs=("separator",),
        shape=_string_join_shape,
        kernels=on_cpu(_string_join_kernel),
        over_batch=by_element,
    )
)


def string_format(
    template: str,
    inputs: TensorLike | Sequence[TensorLike],
    placeholder: str = "{}",
    summarize: int = 3,
    name: str | None = None,
) -> Tensor:
    """Put the values of tensors into a text. Public as ``tf.strings.format``.

    Args:
        template: The text.
        inputs: Tensors of any shape and dtype, a list; or one tensor.
        placeholder: What in `template` stands for a tensor, one after the other.
        summarize: How many elements to show at either end of each dimension; all when -1.
        name: Name of the operation.

    Returns:
        A string scalar.

    Raises:
        InvalidArgumentError: `template` has another number of placeholders than there are tensors.

    Examples:
        >>> session.run(tf.strings.format("x: {}", tf.range(9)))
        b'x: [0 1 2 ... 6 7 8]'
    """
    if isinstance(inputs, (int, float, complex, np.generic)):
        raise TypeError(f"strings.format: inputs must be a tensor or a list of tensors, not {inputs!r}")
    tensors = list(inputs) if isinstance(inputs, (list, tuple)) else [convert_to_tensor(inputs)]
    expected = template.count(placeholder)
    if expected != len(tensors):
        raise InvalidArgumentError(
            f"{expected} placeholder(s) in template does not match {len(tensors)} tensor(s) provided as input: "
            f"StringFormat: a placeholder is {placeholder!r}"
        )
    attrs = {"template": template, "placeholder": placeholder, "summarize": int(summarize)}
    return add_op(STRING_FORMAT, tensors, name=name, **attrs)


def _string_format_kernel(ctx: KernelContext, *inputs: Array) -> Array:
    parts = octets(ctx.attr("template")).split(octets(ctx.attr("placeholder")))
    texts = [summarized(value, ctx.attr("summarize")).encode("utf-8", "surrogateescape") for value in inputs]
    return filled((), [b"".join([parts[0], *(piece for pair in zip(texts, parts[1:], strict=True) for piece in pair)])])


STRING_FORMAT = register(
    OpDef(
        name="StringFormat",
        inputs=("inputs: any*",),
        outputs=("output: string",),
        attrs=("template", "placeholder", "summarize"),
        shape=scalar,
        kernels=on_cpu(_string_format_kernel),
    )
)


# -- the same shape ------------------------------------------------------------------------------------


def string_strip(input: TensorLike, name: str | None = None) -> Tensor:
    """Take white space off both ends of strings.

    Args:
        input: Strings, any shape.
        name: Name of the operation.

    Returns:
        Same shape, string.
    """
    return add_op(STRING_STRIP, input, name=name)


def _string_strip_kernel(ctx: KernelContext, strings: Array) -> Array:
    return mapped(bytes.strip, strings)


STRING_STRIP = register(
    OpDef(
        name="StringStrip",
        inputs=("input: string",),
        outputs=("output: string",),
        shape=like_input(0),
        kernels=on_cpu(_string_strip_kernel),
        over_batch=by_row(0),
    )
)


@none_is_default
def string_lower(input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor:
    """Strings in lower case.

    Args:
        input: Strings, any shape.
        encoding: ``utf-8`` to change letters of all languages; empty for those of ASCII only.
        name: Name of the operation.

    Returns:
        Same shape, string.
    """
    return add_op(STRING_LOWER, input, name=name, encoding=_encoding(encoding, "StringLower"))


def _encoding(encoding: str, what: str) -> str:
    if encoding not in ("", "utf-8"):
        raise InvalidArgumentError(f"{what}: encoding is {encoding!r}, expected 'utf-8' or ''")
    return encoding


def _string_lower_kernel(ctx: KernelContext, strings: Array) -> Array:
    if not ctx.attr("encoding"):
        return mapped(bytes.lower, strings)
    return mapped(lambda string: lenient(string).lower().encode(), strings)


STRING_LOWER = register(
    OpDef(
        name="StringLower",
        inputs=("input: string",),
        outputs=("output: string",),
        attrs=("encoding",),
        shape=like_input(0),
        kernels=on_cpu(_string_lower_kernel),
        over_batch=by_row(0),
    )
)


@none_is_default
def string_upper(input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor:
    """Strings in upper case, of the same shape; the arguments are those of `string_lower`."""
    return add_op(STRING_UPPER, input, name=name, encoding=_encoding(encoding, "StringUpper"))


def _string_upper_kernel(ctx: KernelContext, strings: Array) -> Array:
    if not ctx.attr("encoding"):
        return mapped(bytes.upper, strings)
    return mapped(lambda string: lenient(string).upper().encode(), strings)


STRING_UPPER = register(
    OpDef(
        name="StringUpper",
        inputs=("input: string",),
        outputs=("output: string",),
        attrs=("encoding",),
        shape=like_input(0),
        kernels=on_cpu(_string_upper_kernel),
        over_batch=by_row(0),
    )
)


@none_is_default
def string_length(input: TensorLike, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """Lengths of strings, int32.

    Args:
        input: Strings, any shape.
        name: Name of the operation.
        unit: ``BYTE`` or ``UTF8_CHAR``: what to count.

    Returns:
        Same shape, int32.
    """
    return add_op(STRING_LENGTH, input, name=name, unit=check_unit(unit, "StringLength"))


def _string_length_kernel(ctx: KernelContext, strings: Array) -> Array:
    strings = as_strings(strings)
    items = strings.reshape(-1).tolist()
    if ctx.attr("unit") == "UTF8_CHAR":
        lengths = [len(string) - sum(byte & 0xC0 == 0x80 for byte in string) for string in items]
    else:
        lengths = list(map(len, items))
    return np.array(lengths, np.int32).reshape(strings.shape)


STRING_LENGTH = register(
    OpDef(
        name="StringLength",
        inputs=("input: string",),
        outputs=("output: int32",),
        attrs=("unit",),
        shape=like_input(0),
        kernels=on_cpu(_string_length_kernel),
        over_batch=by_row(0),
    )
)


@none_is_default
def substr(input: TensorLike, pos: TensorLike, len: TensorLike, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """Parts of strings.

    Args:
        input: Strings, any shape.
        pos: Where each part starts, int32 or int64; negative counts from the end. Broadcast against `input`.
        len: How long each part is at most, of the dtype and shape of `pos`.
        name: Name of the operation.
        unit: ``BYTE`` or ``UTF8_CHAR``: what positions and lengths count.

    Returns:
        The broadcast shape, string.

    Raises:
        InvalidArgumentError: At run time: a position is outside of its string.
    """
    return add_op(SUBSTR, input, pos, len, name=name, unit=check_unit(unit, "Substr"))


def _substr_kernel(ctx: KernelContext, strings: Array, positions: Array, lengths: Array) -> Array:
    strings, positions, lengths = np.broadcast_arrays(as_strings(strings), positions, lengths)
    parts = zip(strings.reshape(-1).tolist(), positions.reshape(-1).tolist(), lengths.reshape(-1).tolist(), strict=True)
    if ctx.attr("unit") == "UTF8_CHAR":
        return filled(strings.shape, [b"".join(_part(characters(s), at, count)) for s, at, count in parts])
    return filled(strings.shape, [_part(s, at, count) for s, at, count in parts])


def _part(string: Any, at: int, count: int) -> Any:
    start = at + len(string) if at < 0 else at
    if not 0 <= start <= len(string):
        raise InvalidArgumentError(
            f"pos {at} out of range for string: position {at} is outside of {string[:80]!r}, "
            f"which is {len(string)} long"
        )
    return string[start : start + count if count >= 0 else len(string)]


def _substr_shape(op: Operation) -> list[TensorShape]:
    op.inputs[1].shape.assert_is_compatible_with(op.inputs[2].shape)
    return [broadcast_shapes(op.inputs[0].shape, op.inputs[1].shape)]


SUBSTR = register(
    OpDef(
        name="Substr",
        inputs=("input: string", "pos: T", "len: T"),
        outputs=("output: string",),
        attrs=("unit",),
        types={"T": dtypes.INDICES},
        shape=_substr_shape,
        kernels=on_cpu(_substr_kernel),
    )
)


# -- patterns ------------------------------------------------------------------------------------------

_POSIX: Final = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\t\n\v\f\r ",
    "blank": r"\t ",
    "punct": r"!-/:-@\[-`{-~",
    "xdigit": "0-9A-Fa-f",
    "word": r"\w",
    "cntrl": r"\x00-\x1f\x7f",
    "print": " -~",
    "graph": "!-~",
}


_PARTS: Final = (
    r"(?P<category>\\(?P<case>[pP])(?:(?P<letter>[CLMNPSZ])|\{(?P<negated>\^?)(?P<name>[CLMNPSZ][a-z]?)\}))"
    r"|\\x\{(?P<code>[0-9A-Fa-f]+)\}|\\Q(?P<literal>.*?)(?:\\E|$)"
    r"|(?P<end>\\z)|(?P<foreign>\\[1-9]|\(\?<?[=!])|\[:(?P<posix>\w+):\]"
    r"|(?P<opens>\[\^?\]?)|(?P<closes>\])|\\.|."
)
"""The parts of a pattern of RE2 that Python writes in another way, or has and RE2 has not: what looks around."""


@lru_cache(maxsize=256)
def _compiled(pattern: bytes) -> re.Pattern[str]:
    """A pattern of RE2, as far as Python's own understands it."""
    text = decoded(pattern)
    try:
        return re.compile(_for_python(text), re.ASCII)
    except re.error as error:
        raise InvalidArgumentError(f"Invalid pattern: {text!r} is not a regular expression: {error}") from error


def _for_python(text: str) -> str:
    """A pattern of RE2 as Python writes it. Raises `re.error` for what RE2 has not."""
    pattern = re.compile(_PARTS, re.DOTALL)
    parts, is_in_class, at = [], False, 0
    while match := pattern.match(text, at):
        part = match[0]
        at = match.end()
        if match["category"]:
            is_other = (match["case"] == "P") != bool(match["negated"])
            ranges = _category(match["letter"] or match["name"], is_other)
            part = ranges if is_in_class else f"[{ranges}]"
        elif match["code"]:
            part = f"\\U{int(match['code'], 16):08x}"
        elif match["literal"] is not None:
            part = re.escape(match["literal"])
        elif match["end"]:
            part = r"\Z"
        elif match["posix"]:
            part = _POSIX.get(match["posix"], part) if is_in_class else part
        elif match["foreign"] and not is_in_class:
            raise re.error(f"RE2 has no {part}")
        elif match["opens"] and is_in_class:
            part, at = r"\[", match.start() + 1
        is_in_class = (is_in_class or bool(match["opens"])) and not match["closes"]
        parts.append(part)
    return "".join(parts)


@lru_cache(maxsize=64)
def _category(name: str, is_other: bool) -> str:
    """The characters of a category of Unicode, such as ``Lu`` or ``L``, or all others, as ranges of a class."""
    is_in = [unicodedata.category(chr(code)).startswith(name) != is_other for code in range(sys.maxunicode + 1)]
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_in, [False]]).astype(np.int8)))
    return "".join(f"\\U{first:08x}-\\U{last - 1:08x}" for first, last in edges.reshape(-1, 2).tolist())


def _as_text(string: bytes) -> str:
    return string.decode("utf-8", "surrogateescape")


def regex_full_match(input: TensorLike, pattern: TensorLike, name: str | None = None) -> Tensor:
    """Whether strings match a regular expression from end to end.

    Args:
        input: Strings, any shape.
        pattern: A string scalar.
        name: Name of the operation.

    Returns:
        Bools of the shape of `input`.

    Raises:
        InvalidArgumentError: At run time: `pattern` is not a regular expression.
    """
    return add_op(REGEX_FULL_MATCH, input, pattern, name=name or _fixed_name("RegexFullMatch", pattern))


def _fixed_name(name: str, *texts: TensorLike) -> str:
    """The name of an operation: TensorFlow has others for texts that the graph knows, and names them by their type."""
    return f"Static{name}" if all(isinstance(text, (str, bytes)) for text in texts) else name


def _regex_full_match_kernel(ctx: KernelContext, strings: Array, pattern: Array) -> Array:
    strings, match = as_strings(strings), _compiled(as_string(pattern)).fullmatch
    found = [match(_as_text(string)) is not None for string in strings.reshape(-1).tolist()]
    return np.array(found, np.bool_).reshape(strings.shape)


def _pattern_shape(op: Operation) -> list[TensorShape]:
    for tensor in op.inputs[1:]:
        tensor.shape.assert_has_rank(0)
    return [op.inputs[0].shape]


REGEX_FULL_MATCH = register(
    OpDef(
        name="RegexFullMatch",
        inputs=("input: string", "pattern: string"),
        outputs=("output: bool",),
        shape=_pattern_shape,
        kernels=on_cpu(_regex_full_match_kernel),
        over_batch=by_row(0),
    )
)


@none_is_default
def regex_replace(
    input: TensorLike, pattern: TensorLike, rewrite: TensorLike, replace_global: bool = True, name: str | None = None
) -> Tensor:
    r"""Replace what matches a regular expression.

    Args:
        input: Strings, any shape.
        pattern: A string scalar.
        rewrite: What to put in place, a string scalar: ``\1`` to ``\9`` stand for groups, ``\0`` for the whole match.
        replace_global: Whether every match is replaced, or the first one.
        name: Name of the operation.

    Returns:
        Same shape, string.

    Raises:
        InvalidArgumentError: At run time: `pattern` is not a regular expression. If `rewrite` names a group that it
            does not have, strings stay as they are, as in TensorFlow.
    """
    name = name or _fixed_name("RegexReplace", pattern, rewrite)
    return add_op(REGEX_REPLACE, input, pattern, rewrite, name=name, replace_global=replace_global)


def _regex_replace_kernel(ctx: KernelContext, strings: Array, pattern: Array, rewrite: Array) -> Array:
    compiled = _compiled(as_string(pattern))
    count = 0 if ctx.attr("replace_global") else 1
    pieces = _rewrite_pieces(_as_text(as_string(rewrite)), compiled.groups, count == 0)
    if pieces is None:
        return as_strings(strings)

    def replaced(string: bytes) -> bytes:
        end = -1

        def replacement(match: re.Match[str]) -> str:
            nonlocal end
            if match.end() == end:
                return ""  # RE2 finds no empty match right behind another
            end = match.end()
            return "".join([piece if isinstance(piece, str) else match[piece] or "" for piece in pieces])

        return compiled.sub(replacement, _as_text(string), count).encode("utf-8", "surrogateescape")

    return mapped(replaced, strings)


def _rewrite_pieces(rewrite: str, groups: int, all_matches: bool) -> list[str | int] | None:
    """What a rewrite consists of: text, and numbers of groups. None where RE2 leaves strings as they are.

    RE2 replaces nothing if there is no such group. A backslash before anything else ends what replaces every match,
    or prevents the replacement of the first one.
    """
    pieces: list[str | int] = []
    ended = False
    for text in re.split(r"(\\.?)", rewrite, flags=re.DOTALL):
        if text[:1] == "\\" and text[1:].isdecimal():
            if int(text[1:]) > groups:
                return None
            pieces += [] if ended else [int(text[1:])]
        elif text[:1] == "\\" and text != "\\\\":
            ended = True
        elif not ended:
            pieces.append("\\" if text == "\\\\" else text)
    return None if ended and not all_matches else pieces


REGEX_REPLACE = register(
    OpDef(
        name="RegexReplace",
        inputs=("input: string", "pattern: string", "rewrite: string"),
        outputs=("output: string",),
        attrs=("replace_global",),
        shape=_pattern_shape,
        kernels=on_cpu(_regex_replace_kernel),
        over_batch=by_row(0),
    )
)


# -- other alphabets -----------------------------------------------------------------------------------


def encode_base64(input: TensorLike, pad: bool = False, name: str | None = None) -> Tensor:
    """Strings in the web's base 64, with ``-`` and ``_``.

    Args:
        input: Strings, any shape.
        pad: Whether to fill up with ``=``.
        name: Name of the operation.

    Returns:
        Same shape, string.
    """
    return add_op(ENCODE_BASE64, input, name=name, pad=pad)


def _encode_base64_kernel(ctx: KernelContext, strings: Array) -> Array:
    if ctx.attr("pad"):
        return mapped(base64.urlsafe_b64encode, strings)
    return mapped(lambda string: base64.urlsafe_b64encode(string).rstrip(b"="), strings)


ENCODE_BASE64 = register(
    OpDef(
        name="EncodeBase64",
        inputs=("input: string",),
        outputs=("output: string",),
        attrs=("pad",),
        shape=like_input(0),
        kernels=on_cpu(_encode_base64_kernel),
        over_batch=by_row(0),
    )
)


def decode_base64(input: TensorLike, name: str | None = None) -> Tensor:
    """What strings in the web's base 64 stand for.

    Args:
        input: Strings, any shape, filled up with ``=`` or not.
        name: Name of the operation.

    Returns:
        Same shape, string.

    Raises:
        InvalidArgumentError: At run time: a string is not base 64.
    """
    return add_op(DECODE_BASE64, input, name=name)


def _decode_base64_kernel(ctx: KernelContext, strings: Array) -> Array:
    return mapped(_from_base64, strings)


def _from_base64(string: bytes) -> bytes:
    bare = string.rstrip(b"=")
    standard = bare.translate(bytes.maketrans(b"-_", b"+/"))
    try:
        if b"+" in bare or b"/" in bare:
            raise binascii.Error("it has the letters of another alphabet")
        if len(bare) < len(string) and (len(string) % 4 or len(bare) % 4 < 2):
            raise binascii.Error("it is not filled up to the next multiple of four")
        if len(bare) % 4 == 1:
            raise binascii.Error("its length cannot be 1 modulo 4")
        return base64.b64decode(standard + b"=" * (-len(bare) % 4), validate=True)
    except binascii.Error as error:
        raise InvalidArgumentError(f"{string[:80]!r} is not base 64 of the web: {error}") from error


DECODE_BASE64 = register(
    OpDef(
        name="DecodeBase64",
        inputs=("input: string",),
        outputs=("output: string",),
        shape=like_input(0),
        kernels=on_cpu(_decode_base64_kernel),
        over_batch=by_row(0),
    )
)
