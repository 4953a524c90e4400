"""Numbers as text, text as numbers, and numbers that stand for strings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import by_either_name, none_is_default, whole_part
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_cpu, register
from tfray.framework.shape_functions import like_input
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.kernels import string_hashes
from tfray.ops.kernels.batch_rules import by_row
from tfray.ops.kernels.text import as_strings, filled
from tfray.ops.strings.decoding_ops import BadNumber, as_text, parse_numbers


@none_is_default
def as_string(
    input: TensorLike,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Numbers and bools as text.

    Args:
        input: Any shape. Strings stay as they are, but for `width`.
        precision: Digits behind the point of floats; -1 for six. With `width`, how many bytes of strings stay.
        scientific: Whether floats have an exponent.
        shortest: Whether floats have one only where that is shorter.
        width: Least width, filled up on the left; -1 for none.
        fill: What with: a space (the default), ``0``, ``+`` or a space for a sign, ``-`` to fill up on the right.
        name: Name of the operation.

    Returns:
        Strings of the shape of `input`.

    Raises:
        InvalidArgumentError: The options contradict each other or the dtype.
    """
    tensor = convert_to_tensor(input)
    form = _format(tensor.dtype, whole_part(precision), scientific, shortest, whole_part(width), fill)
    return add_op(AS_STRING, tensor, name=name, format=form)


def _format(dtype: DType, precision: int, scientific: bool, shortest: bool, width: int, fill: str) -> str:
    if fill not in ("", " ", "0", "+", "-"):
        raise InvalidArgumentError(
            f"AsString: Fill string must be one or fewer characters, of ' 0+-'; fill is {fill!r}"
        )
    if scientific and shortest:
        raise InvalidArgumentError("AsString: Cannot select both scientific and shortest notation")
    start = "%" + fill + (str(width) if width >= 0 else "")
    digits = f".{precision}" if precision >= 0 else ""
    if dtype is dtypes.string:
        return start + (digits if width >= 0 else "") + "s"
    if dtype.is_differentiable:
        return start + digits + ("e" if scientific else "g" if shortest else "f")
    if scientific or shortest:
        raise InvalidArgumentError(f"AsString: scientific and shortest format not supported for {dtype.name}")
    if precision >= 0:
        raise InvalidArgumentError(f"AsString: precision not supported: {dtype.name} has no precision")
    return start + "d" if dtype.is_integer else "%s"


def _as_string_kernel(ctx: KernelContext, numbers: Array) -> Array:
    array = np.asarray(numbers)
    form = ctx.attr("format")
    if array.dtype.kind == "O":
        if not form.strip("% 0+-s"):
            return array
        texts = [form.encode() % string for string in array.reshape(-1).tolist()]
    elif array.dtype.kind == "b":
        texts = [b"true" if value else b"false" for value in array.reshape(-1).tolist()]
    elif array.dtype.kind == "c":
        texts = [f"({form % v.real},{form % v.imag})".encode() for v in array.reshape(-1).tolist()]
    else:
        wide = array if array.dtype.kind in "iuf" else array.astype(np.float32)
        texts = [(form % value).encode() for value in wide.reshape(-1).tolist()]
    return filled(array.shape, texts)


AS_STRING = register(
    OpDef(
        name="AsString",
        inputs=("input: T",),
        outputs=("output: string",),
        attrs=("format",),
        types={"T": dtypes.VALUES},
        shape=like_input(0),
        kernels=on_cpu(_as_string_kernel),
        over_batch=by_row(0),
    )
)


@none_is_default
def string_to_number(
    string_tensor: TensorLike | None = None,
    out_type: DTypeLike = dtypes.float32,
    name: str | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """The numbers that strings spell.

    Args:
        string_tensor: Strings, any shape.
        out_type: ``float32``, ``float64``, ``int32`` or ``int64``.
        name: Name of the operation.
        input: Another name of `string_tensor`.

    Returns:
        The shape of the strings, dtype `out_type`.

    Raises:
        InvalidArgumentError: At run time: a string is not a number of that dtype.

    Examples:
        >>> session.run(tf.string_to_number(["1.5", "-2"]))
        array([ 1.5, -2. ], dtype=float32)
    """
    strings = by_either_name("string_to_number", input=input, string_tensor=string_tensor)
    return add_op(STRING_TO_NUMBER, strings, name=name, out_type=as_dtype(out_type))


def _string_to_number_kernel(ctx: KernelContext, strings: Array) -> Array:
    strings = as_strings(strings)
    texts = strings.reshape(-1).tolist()
    try:
        return parse_numbers(texts, ctx.output_dtype()).reshape(strings.shape)
    except BadNumber as error:
        text = as_text(texts[error.index])
        raise InvalidArgumentError(f"StringToNumberOp could not correctly convert string: {text} ({error})") from error


STRING_TO_NUMBER = register(
    OpDef(
        name="StringToNumber",
        inputs=("string_tensor: string",),
        outputs=("output: out_type",),
        types={"out_type": (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64)},
        shape=like_input(0),
        kernels=on_cpu(_string_to_number_kernel),
        over_batch=by_row(0),
    )
)


# -- hashes --------------------------------------------------------------------------------------------


def string_to_hash_bucket_fast(input: TensorLike, num_buckets: int, name: str | None = None) -> Tensor:
    """A number from 0 to `num_buckets` - 1 for each string: FarmHash, the same everywhere and always.

    Args:
        input: Strings, any shape.
        num_buckets: How many buckets there are.
        name: Name of the operation.

    Returns:
        int64 of the shape of `input`.

    Examples:
        >>> session.run(tf.string_to_hash_bucket_fast(["a", "b"], num_buckets=10))
        array([9, 2])
    """
    return add_op(STRING_TO_HASH_BUCKET_FAST, input, name=name, num_buckets=whole_part(num_buckets))


def _fast_kernel(ctx: KernelContext, strings: Array) -> Array:
    strings = as_strings(strings)
    hashes = string_hashes.fingerprint64(strings.reshape(-1).tolist())
    return (hashes % np.uint64(ctx.attr("num_buckets"))).astype(np.int64).reshape(strings.shape)


def _bucket_shape(op: Operation) -> list[TensorShape]:
    if op.attrs["num_buckets"] < 1:
        raise ValueError(f"num_buckets is {op.attrs['num_buckets']}, expected at least 1")
    return [op.inputs[0].shape]


STRING_TO_HASH_BUCKET_FAST = register(
    OpDef(
        name="StringToHashBucketFast",
        inputs=("input: string",),
        outputs=("output: int64",),
        attrs=("num_buckets",),
        shape=_bucket_shape,
        kernels=on_cpu(_fast_kernel),
        over_batch=by_row(0),
    )
)


def string_to_hash_bucket_strong(
    input: TensorLike, num_buckets: int, key: Sequence[int], name: str | None = None
) -> Tensor:
    """As `string_to_hash_bucket_fast`, by SipHash under a key, so that nobody can choose strings that collide.

    Args:
        input: Strings, any shape.
        num_buckets: How many buckets there are.
        key: Two numbers of 64 bits.
        name: Name of the operation.

    Returns:
        The shape of the strings, int64.
    """
    if len(key) != 2:
        raise InvalidArgumentError(f"StringToHashBucketStrong: Key must have 2 elements, not {len(key)}")
    return add_op(
        STRING_TO_HASH_BUCKET_STRONG,
        input,
        name=name,
        num_buckets=whole_part(num_buckets),
        key=[int(part) for part in key],
    )


def _strong_kernel(ctx: KernelContext, strings: Array) -> Array:
    strings, key, count = as_strings(strings), ctx.attr("key"), ctx.attr("num_buckets")
    hashes = string_hashes.siphash(strings.reshape(-1).tolist(), key)
    return (hashes % np.uint64(count)).astype(np.int64).reshape(strings.shape)


STRING_TO_HASH_BUCKET_STRONG = register(
    OpDef(
        name="StringToHashBucketStrong",
        inputs=("input: string",),
        outputs=("output: int64",),
        attrs=("num_buckets", "key"),
        shape=_bucket_shape,
        kernels=on_cpu(_strong_kernel),
        over_batch=by_row(0),
    )
)


def string_to_hash_bucket(
    string_tensor: TensorLike | None = None,
    num_buckets: int | None = None,
    name: str | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """As `string_to_hash_bucket_fast`, by the hash of the first versions of TensorFlow.

    Args:
        string_tensor: Strings, any shape.
        num_buckets: How many buckets there are.
        name: Name of the operation.
        input: Another name of `string_tensor`.

    Returns:
        The shape of the strings, int64.

    Raises:
        ArgumentError: `num_buckets` is missing.
    """
    if num_buckets is None:
        raise ArgumentError("StringToHashBucket: num_buckets is missing")
    strings = by_either_name("string_to_hash_bucket", input=input, string_tensor=string_tensor)
    return add_op(STRING_TO_HASH_BUCKET, strings, name=name, num_buckets=whole_part(num_buckets))


def _old_kernel(ctx: KernelContext, strings: Array) -> Array:
    strings, count = as_strings(strings), ctx.attr("num_buckets")
    buckets = [string_hashes.murmur64(string) % count for string in strings.reshape(-1).tolist()]
    return np.array(buckets, np.int64).reshape(strings.shape)


STRING_TO_HASH_BUCKET = register(
    OpDef(
        name="StringToHashBucket",
        inputs=("string_tensor: string",),
        outputs=("output: int64",),
        attrs=("num_buckets",),
        shape=_bucket_shape,
        kernels=on_cpu(_old_kernel),
        over_batch=by_row(0),
    )
)


# -- fingerprints --------------------------------------------------------------------------------------


def fingerprint(data: TensorLike, method: TensorLike = "farmhash64", name: str | None = None) -> Tensor:
    """A number that stands for each row of a tensor, the same everywhere and always.

    Args:
        data: Shape ``[n, ...]``, any dtype.
        method: A scalar, ``"farmhash64"``.
        name: Name of the operation.

    Returns:
        uint8, shape ``[n, 8]``: the 64 bits of FarmHash's fingerprint of each row, lowest first.

    Raises:
        InvalidArgumentError: `data` is a scalar, or `method` another one.
    """
    return add_op(FINGERPRINT, data, method, name=name)


def _fingerprint_kernel(ctx: KernelContext, data: Array, method: Array) -> Array:
    if method.item() != b"farmhash64":
        raise InvalidArgumentError(f"fingerprint: method is {method.item()!r}, expected farmhash64")
    if data.ndim == 0:
        raise InvalidArgumentError("fingerprint: data is a scalar, expected at least rank 1")
    rows = data.reshape(len(data), -1) if data.size else data.reshape(len(data), 0)
    if data.dtype == object:
        rows = _little_bytes(string_hashes.fingerprint64(as_strings(rows).reshape(-1).tolist())).reshape(len(data), -1)
        if data.ndim == 1:
            return rows
    return _little_bytes(string_hashes.fingerprint64([row.tobytes() for row in rows]))


def _little_bytes(words: Array) -> Array:
    return words.astype("<u8").view(np.uint8).reshape(-1, 8)


def _fingerprint_shape(op: Operation) -> list[TensorShape]:
    op.inputs[1].shape.assert_has_rank(0)
    data = op.inputs[0].shape.with_rank_at_least(1)
    method = constant_value(op.inputs[1])
    if method is not None and method.item() != b"farmhash64":
        raise ValueError(f"method is {method.item()!r}, expected farmhash64")
    return [data[:1].concatenate([8])]


FINGERPRINT = register(
    OpDef(
        name="Fingerprint",
        inputs=("data: T", "method: string"),
        outputs=("fingerprint: uint8",),
        types={"T": dtypes.VALUES},
        shape=_fingerprint_shape,
        kernels=on_cpu(_fingerprint_kernel),
    )
)
