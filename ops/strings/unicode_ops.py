"""Text as characters: other encodings, and numbers of characters. All run on the CPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import none_is_default
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, not_differentiable, on_cpu, register
from tfray.framework.shape_functions import like_input
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.shape_ops import expand_dims
from tfray.ops.kernels import unicode, unicode_scripts
from tfray.ops.kernels.batch_rules import by_row
from tfray.ops.kernels.text import as_string, filled, mapped


@none_is_default
def unicode_transcode(
    input: TensorLike,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Tensor:
    """Strings in another encoding.

    Args:
        input: Strings, any shape.
        input_encoding: Theirs, by a name that Python knows. Of ``UTF-16`` and ``UTF-32`` a mark says which byte comes
            first, the highest without a mark.
        output_encoding: ``UTF-8``, ``UTF-16-BE`` or ``UTF-32-BE``.
        errors: What becomes of bytes that mean nothing: ``replace``, ``ignore`` or ``strict``.
        replacement_char: The code of what replaces them.
        replace_control_characters: Whether characters below 32 count as meaning nothing.
        name: Name of the operation.

    Returns:
        Same shape, string.

    Raises:
        InvalidArgumentError: `output_encoding` or `errors` is another. At run time: there is no `input_encoding`, or a
            string is malformed and `errors` is strict.
    """
    unicode.check_output("UnicodeTranscode", output_encoding)
    attrs = unicode.reading("UnicodeTranscode", input_encoding, errors, replacement_char, replace_control_characters)
    return add_op(UNICODE_TRANSCODE, input, name=name, output_encoding=output_encoding, **attrs)


def _unicode_transcode_kernel(ctx: KernelContext, strings: Array) -> Array:
    reader, target = unicode.Reader(ctx), ctx.attr("output_encoding")
    return mapped(lambda string: reader.text(string).encode(target, "surrogatepass"), strings)


UNICODE_TRANSCODE = register(
    OpDef(
        name="UnicodeTranscode",
        inputs=("input: string",),
        outputs=("output: string",),
        attrs=("output_encoding", *unicode.READING),
        shape=like_input(0),
        kernels=on_cpu(_unicode_transcode_kernel),
        over_batch=by_row(0),
    )
)


# -- characters ----------------------------------------------------------------------------------------


def unicode_decode(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Tensor:
    """The numbers of the characters of a string.

    Args:
        input: A string scalar. TensorFlow makes a ragged tensor of more strings; tfray has none. The other arguments
            are as of `unicode_transcode`.
        name: Name scope of the operation.

    Returns:
        int32, shape ``[characters]``.

    Raises:
        InvalidArgumentError: `input` is not a scalar. At run time: it is malformed and `errors` is strict.

    Examples:
        >>> session.run(tf.strings.unicode_decode("aé", "UTF-8"))
        array([ 97, 233], dtype=int32)
    """
    how = unicode.reading("UnicodeDecode", input_encoding, errors, replacement_char, replace_control_characters)
    return _characters("UnicodeDecode", input, how, name)[0]


def unicode_decode_with_offsets(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """As `unicode_decode`, and where each character starts in the string: int64, shape ``[characters]``."""
    what = "UnicodeDecodeWithOffsets"
    how = unicode.reading(what, input_encoding, errors, replacement_char, replace_control_characters)
    codes, offsets = _characters(what, input, how, name)
    return codes, offsets


def unicode_split(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Tensor:
    """The characters of a string, each a string of its own.

    Args:
        input: A string scalar. TensorFlow makes a ragged tensor of more strings; tfray has none.
        input_encoding: As of `unicode_transcode`, like the arguments that follow, and that of the result: one of UTF-8,
            UTF-16-BE and UTF-32-BE.
        name: Name scope of the operations.

    Returns:
        Strings, shape ``[characters]``.

    Raises:
        InvalidArgumentError: `input` is not a scalar. At run time: it is malformed and `errors` is strict.
    """
    return unicode_split_with_offsets(input, input_encoding, errors, replacement_char, name or "UnicodeSplit")[0]


def unicode_split_with_offsets(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """As `unicode_split`, and where each character starts in the string: int64, shape ``[characters]``."""
    how = unicode.reading("UnicodeSplit", input_encoding, errors, replacement_char, False)
    with get_default_graph().name_scope(name or "UnicodeSplitWithOffsets"):
        codes, offsets = _characters("UnicodeSplit", input, how, None)
        return unicode_encode(expand_dims(codes, -1), input_encoding, errors, replacement_char), offsets


def _characters(what: str, input: TensorLike, how: dict[str, Any], name: str | None) -> list[Tensor]:
    strings = convert_to_tensor(input, dtypes.string)
    if strings.shape.rank not in (None, 0):
        raise InvalidArgumentError(
            f"{what}: input is {strings!r}, expected a scalar: tfray has no ragged tensors. Decode the strings one by "
            "one, or use tf.strings.bytes_split, whose result is sparse"
        )
    with get_default_graph().name_scope(name or what):
        outputs: list[Tensor] = add_op(UNICODE_DECODE, strings, **how)
        return outputs


def _unicode_decode_kernel(ctx: KernelContext, string: Array) -> list[Array]:
    codes, offsets = unicode.Reader(ctx).characters(as_string(string))
    return [np.array(codes, np.int32), np.array(offsets, np.int64)]


def _unicode_decode_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.assert_has_rank(0)
    return [TensorShape([None]), TensorShape([None])]


UNICODE_DECODE = register(
    OpDef(
        name="UnicodeDecodeWithOffsets",
        inputs=("input: string",),
        outputs=("char_values: int32", "char_to_byte_starts: int64"),
        attrs=unicode.READING,
        shape=_unicode_decode_shape,
        kernels=on_cpu(_unicode_decode_kernel),
    )
)


def unicode_encode(
    input: TensorLike,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Tensor:
    """Strings of characters.

    Args:
        input: Numbers of characters, int32 ``[..., characters]``.
        output_encoding: ``UTF-8``, ``UTF-16-BE`` or ``UTF-32-BE``.
        errors: What becomes of numbers that are of no character: ``replace``, ``ignore`` or ``strict``.
        replacement_char: The number of what replaces them.
        name: Name of the operation.

    Returns:
        Strings, the shape of `input` without its last dimension.

    Raises:
        InvalidArgumentError: An argument is none of these, or `input` is a scalar. At run time: there is no such
            character and `errors` is strict.

    Examples:
        >>> session.run(tf.strings.unicode_encode([97, 98], "UTF-8"))
        b'ab'
    """
    unicode.check_output("UnicodeEncode", output_encoding)
    attrs = {"output_encoding": output_encoding, **unicode.replacing("UnicodeEncode", errors, replacement_char)}
    return add_op(UNICODE_ENCODE, input, name=name, **attrs)


def _unicode_encode_kernel(ctx: KernelContext, numbers: Array) -> Array:
    target, errors, replacement = ctx.attr("output_encoding"), ctx.attr("errors"), unicode.check_replacement(ctx)
    wrong = (numbers < 0) | (numbers > unicode.LAST) | ((numbers >= 0xD800) & (numbers < 0xE000))
    if errors == "strict" and wrong.any():
        raise InvalidArgumentError(f"{ctx.op_name}: {numbers[wrong].flat[0]} is the number of no character")
    numbers = np.where(wrong, replacement, numbers)
    keep = ~wrong if errors == "ignore" else np.ones(numbers.shape, bool)
    rows = math.prod(numbers.shape[:-1]), numbers.shape[-1]
    pairs = zip(numbers.reshape(rows), keep.reshape(rows), strict=True)
    texts = ["".join(map(chr, row[kept].tolist())) for row, kept in pairs]
    return filled(numbers.shape[:-1], [text.encode(target, "surrogatepass") for text in texts])


def _unicode_encode_shape(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape
    if shape.rank is None:
        return [UNKNOWN]
    if shape.rank == 0:
        raise ValueError("the characters are a scalar, expected at least one dimension")
    return [TensorShape(shape.sizes[:-1])]


UNICODE_ENCODE = register(
    OpDef(
        name="UnicodeEncode",
        inputs=("input: int32",),
        outputs=("output: string",),
        attrs=("output_encoding", "errors", "replacement_char"),
        shape=_unicode_encode_shape,
        kernels=on_cpu(_unicode_encode_kernel),
    )
)


def unicode_script(input: TensorLike, name: str | None = None) -> Tensor:
    """The scripts of characters: by which letters a language writes.

    Args:
        input: Numbers of characters, int32, any shape.
        name: Name of the operation.

    Returns:
        int32, same shape: the numbers of ``UScriptCode`` in the library ICU, such as 25 for Latin and 0 for what many
        scripts share; -1 for a number that no character has.

    Examples:
        >>> session.run(tf.strings.unicode_script([ord("a"), ord("1"), ord("\u0436")]))
        array([25,  0,  8], dtype=int32)
    """
    return add_op(UNICODE_SCRIPT, input, name=name)


def _unicode_script_kernel(ctx: KernelContext, characters: Array) -> Array:
    return unicode_scripts.script_of(characters)


UNICODE_SCRIPT = register(
    OpDef(
        name="UnicodeScript",
        inputs=("input: int32",),
        outputs=("output: int32",),
        shape=like_input(0),
        kernels=on_cpu(_unicode_script_kernel),
        gradient=not_differentiable,
        over_batch=by_row(0),
    )
)
