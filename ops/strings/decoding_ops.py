"""Strings that hold numbers, lines of values, compressed data or tensors."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import ArgumentError, DataLossError, InvalidArgumentError
from tfray.formats import tensor_proto
from tfray.formats.example import Example
from tfray.framework import dtypes
from tfray.framework.arguments import none_is_default
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, NumpyDType, OpDef, on_cpu, register
from tfray.framework.shape_functions import like_input, scalar
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.kernels.batch_rules import by_row
from tfray.ops.kernels.text import as_string, decoded, mapped, octets, text_attr

# -- raw bytes -----------------------------------------------------------------------------------------


def decode_raw(
    input_bytes: TensorLike | None = None,
    out_type: DTypeLike | None = dtypes.uint8,
    little_endian: bool | None = True,
    name: str | None = None,
    bytes: TensorLike | None = None,
) -> Tensor:
    """Read the bytes of strings as numbers.

    Args:
        input_bytes: Strings of the same length, any shape.
        out_type: Dtype of the numbers.
        little_endian: Whether the lowest byte of a number comes first.
        name: Name of the operation.
        bytes: The older name of `input_bytes`.

    Returns:
        Shape of `input_bytes` and one dimension more: the numbers in each string.

    Raises:
        InvalidArgumentError: At run time: the strings differ in length, or it is no multiple of a number's size.

    Examples:
        >>> session.run(tf.decode_raw(["ab", "cd"], tf.uint8))
        array([[ 97,  98],
               [ 99, 100]], dtype=uint8)
    """
    strings = bytes if input_bytes is None else input_bytes
    if out_type is None:
        raise ArgumentError("decode_raw: out_type is missing")
    return add_op(
        DECODE_RAW, strings, name=name, out_type=as_dtype(out_type), little_endian=little_endian in (None, True)
    )


def _decode_raw_kernel(ctx: KernelContext, strings: Array) -> Array:
    strings = np.asarray(strings, object)
    dtype = ctx.output_dtype()
    items = strings.reshape(-1).tolist()
    length = len(items[0]) if items else 0
    other = next((number for number, item in enumerate(items) if len(item) != length), None)
    if other is not None:
        raise InvalidArgumentError(
            f"DecodeRaw requires input strings to all be the same size, but element {other} has size "
            f"{len(items[0])} != {len(items[other])}"
        )
    if length % dtype.itemsize:
        raise InvalidArgumentError(
            f"Input to DecodeRaw has length {length} that is not a multiple of {dtype.itemsize}, the size of "
            f"{as_dtype(dtype).name}"
        )
    numbers = np.frombuffer(items[0] if len(items) == 1 else b"".join(items), dtype)
    if not ctx.attr("little_endian"):
        numbers = numbers.byteswap()
    return numbers.reshape(*strings.shape, length // dtype.itemsize)


def _decode_raw_shape(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape.concatenate([None])]


DECODE_RAW = register(
    OpDef(
        name="DecodeRaw",
        inputs=("bytes: string",),
        outputs=("output: out_type",),
        attrs=("little_endian",),
        types={"out_type": (*dtypes.NUMERIC, dtypes.bool_)},
        shape=_decode_raw_shape,
        kernels=on_cpu(_decode_raw_kernel),
        over_batch=by_row(0),
    )
)


# -- comma-separated values ----------------------------------------------------------------------------

CSV_DTYPES: Final = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.string)


@none_is_default
def decode_csv(
    records: TensorLike,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Tensor]:
    """Split lines of comma-separated values into a tensor for each column.

    Args:
        records: Strings, a line each, any shape.
        record_defaults: One tensor or list for each column, a vector of one value or none: its dtype is the column's
            (float32, float64, int32, int64 or string), its one value what an empty field means. An empty one makes the
            column required. A dtype does the same.
        field_delim: The character between fields.
        use_quote_delim: Whether ``"`` encloses fields, within which it is doubled.
        name: Name of the operation.
        na_value: What else counts as an empty field.
        select_cols: Numbers of the columns to take, ascending; all when None.

    Returns:
        A tensor for each column, of the shape of `records`.

    Raises:
        TypeError: `record_defaults` is no list.
        ValueError: It is empty.
        ArgumentError: A default is not a single value.
        InvalidArgumentError: At run time: a line has another number of fields, a field
            is not of its dtype, or a required one is empty.

    Examples:
        >>> session.run(tf.decode_csv(["1,a", ",b"], record_defaults=[[0], [""]]))
        [array([1, 0], dtype=int32), array([b'a', b'b'], dtype=object)]
    """
    if not isinstance(record_defaults, (list, tuple)):
        raise TypeError(
            f"decode_csv: Expected list for 'record_defaults', one default for each column, not {record_defaults!r}"
        )
    if not record_defaults:
        raise ValueError("decode_csv: record_defaults is empty, expected one for each column")
    return columns_of(records, record_defaults, field_delim, use_quote_delim, na_value, select_cols, name)


def columns_of(
    records: TensorLike,
    record_defaults: Sequence[Any],
    field_delim: str,
    use_quote_delim: bool,
    na_value: str,
    select_cols: Sequence[int] | None,
    name: str | None = None,
    of_file: bool = False,
) -> list[Tensor]:
    """As `decode_csv`, or for the records of a file.

    Args:
        records: String tensor of any shape: lines, or records of a file.
        record_defaults: As for `decode_csv`: for each column a dtype, or a vector of shape ``[0]`` or ``[1]``.
        field_delim: As for `decode_csv`.
        use_quote_delim: As for `decode_csv`.
        na_value: As for `decode_csv`.
        select_cols: As for `decode_csv`.
        name: Name of the operation.
        of_file: Whether an empty record has one field, and errors are those of TensorFlow's `CsvDataset`.

    Returns:
        A tensor for each column, of the shape of `records`.
    """
    columns = list(select_cols) if select_cols is not None else []
    if select_cols is not None and len(columns) != len(record_defaults):
        raise InvalidArgumentError(
            "decode_csv: Length of select_cols and record_defaults do not match: "
            f"{len(columns)}, {len(record_defaults)}"
        )
    if columns != sorted(set(columns)):
        raise InvalidArgumentError(f"decode_csv: select_cols is not strictly increasing: {columns}")
    if min(columns, default=0) < 0:
        raise InvalidArgumentError(f"decode_csv: select_cols contains negative values: {columns}")
    field_delim = text_attr("decode_csv: field_delim", field_delim)
    if len(field_delim) != 1:
        raise InvalidArgumentError(f"decode_csv: field_delim should be only 1 char, and is {field_delim!r}")
    with get_default_graph().name_scope(name or "DecodeCSV"):
        defaults = [_csv_default(default, index) for index, default in enumerate(record_defaults)]
        return add_op(
            DECODE_CSV_FILE if of_file else DECODE_CSV,
            records,
            defaults,
            name="DecodeCSV",
            OUT_TYPE=[default.dtype for default in defaults],
            field_delim=field_delim,
            use_quote_delim=use_quote_delim,
            na_value=text_attr("decode_csv: na_value", na_value),
            select_cols=columns if select_cols is not None else None,
        )


def _csv_default(default: Any, index: int) -> Tensor:
    if isinstance(default, (DType, type)):
        return convert_to_tensor(np.empty(0, as_dtype(default).numpy), as_dtype(default))
    tensor = convert_to_tensor(default)
    count, rank = tensor.shape.num_elements(), tensor.shape.rank
    if rank is not None and rank > 1:
        raise ArgumentError(
            f"decode_csv: Shape must be at most rank 1 but is rank {rank}: the default of column {index} is {tensor!r}"
        )
    if tensor.dtype not in CSV_DTYPES or (count is not None and count > 1):
        raise ArgumentError(
            f"decode_csv: the default of column {index} is {tensor!r}, expected at most one float, integer or string"
        )
    return tensor


def _decode_csv_kernel(ctx: KernelContext, of_file: bool, records: Array, *defaults: Array) -> list[Array]:
    records = np.asarray(records, object)
    selected = ctx.attr("select_cols") or None
    delimiter = octets(ctx.attr("field_delim"))
    rows = _split_records(records.reshape(-1).tolist(), delimiter, ctx.attr("use_quote_delim"), of_file)
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    if not of_file:
        lengths[[not record for record in records.reshape(-1).tolist()]] = 0
    wrong = lengths != len(defaults) if selected is None else lengths <= max(selected, default=-1)
    if wrong.any():
        index = int(np.argmax(wrong))
        found = lengths[index] if selected is None else sum(column < lengths[index] for column in selected)
        many = "more" if of_file and found > len(defaults) else found
        raise InvalidArgumentError(f"Expect {len(defaults)} fields but have {many} in record{_which(index, of_file)}")
    na_value = octets(ctx.attr("na_value"))
    columns = []
    for place, default in enumerate(defaults):
        column = place if selected is None else selected[place]
        fields = [row[column] for row in rows]
        values = _csv_column(fields, column, np.asarray(default).reshape(-1), na_value, of_file)
        columns.append(values.reshape(records.shape))
    return columns


def _which(index: int, of_file: bool) -> str:
    return "" if of_file else f" {index}"


def _split_records(records: list[bytes], delimiter: bytes, quoted: bool, of_file: bool) -> list[list[bytes]]:
    if not quoted:
        return [record.split(delimiter) for record in records]
    whole = b"".join(records)
    if not any(byte in whole for byte in (b'"', b"\n", b"\r")):
        return [record.split(delimiter) for record in records]
    return [_fields(record, delimiter, of_file) for record in records]


def _fields(record: bytes, delimiter: bytes, of_file: bool) -> list[bytes]:
    """The fields of a line that may have quotes."""
    fields, at = [], 0
    while at <= len(record):
        field, at = _quoted_field(record, at, delimiter, of_file)
        fields.append(field)
    return fields


def _quoted_field(record: bytes, at: int, delimiter: bytes, of_file: bool) -> tuple[bytes, int]:
    """The field at a position of a line that has quotes, and where the next one starts."""
    if not record.startswith(b'"', at):
        end = record.find(delimiter, at)
        end = len(record) if end < 0 else end
        field = record[at:end]
        if any(byte in field for byte in (b'"', b"\n", b"\r")):
            what = "quotes" if of_file else "quotes/CRLFs"
            raise InvalidArgumentError(f"Unquoted fields cannot have {what} inside: {field!r}")
        return field, end + 1
    end = at + 1
    while True:
        end = record.find(b'"', end)
        if end < 0:
            raise InvalidArgumentError("Quoted field has to end with quote followed by delim or end")
        if not record.startswith(b'""', end):
            break
        end += 2
    if end + 1 < len(record) and not record.startswith(delimiter, end + 1):
        raise InvalidArgumentError(f"Quote inside a string has to be escaped by another quote: {record!r}")
    return record[at + 1 : end].replace(b'""', b'"'), end + 2


def _csv_column(fields: list[bytes], column: int, default: Array, na_value: bytes, of_file: bool) -> Array:
    dtype = default.dtype
    missing = []
    if b"" in fields or na_value in fields:
        missing = [index for index, field in enumerate(fields) if not field or field == na_value]
    if missing and not default.size:
        which = _which(missing[0], of_file)
        raise InvalidArgumentError(f"Field {column} is required but missing in record{which}!")
    values: Array = np.empty(len(fields), dtype)
    if dtype.kind == "O":
        values[:] = fields
    else:
        texts = [b"0" if not field or field == na_value else field for field in fields] if missing else fields
        try:
            values = parse_numbers(texts, dtype)
        except BadNumber as error:
            place = f"Field {column} in record{_which(error.index, of_file)}"
            kind, text = dtypes.name_in_c(dtype.name), as_text(texts[error.index])
            raise InvalidArgumentError(f"{place} is not a valid {kind}: {text} ({error})") from error
    if missing:
        values[missing] = default[0]
    return values


_HEXADECIMAL: Final = rb"\s*[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)([pP][+-]?\d+)?\s*"
_NAN: Final = rb"(?i)\s*[+-]?nan\(\w*\)\s*"
"""Floats that Python does not read and C does."""


def _float_parser(name: str) -> Callable[[bytes], float]:
    def parse(text: bytes) -> float:
        if b"_" not in text:
            try:
                return float(text)
            except ValueError:
                pass
            if re.fullmatch(_HEXADECIMAL, text):
                return float.fromhex(text.decode())
            if re.fullmatch(_NAN, text):
                return float("nan")
        raise ValueError(f"{text!r} is not a {name}")

    return parse


def _int_parser(name: str) -> Callable[[bytes], int]:
    limits = np.iinfo(name)
    low, high = int(limits.min), int(limits.max)

    def parse(text: bytes) -> int:
        try:
            value = int(text) if b"_" not in text else high + 1
        except ValueError:
            value = high + 1
        if not low <= value <= high:
            raise ValueError(f"{text!r} is not an {name}")
        return value

    return parse


PARSERS: Final[dict[str, Callable[[bytes], Any]]] = {
    "float32": _float_parser("float32"),
    "float64": _float_parser("float64"),
    "int32": _int_parser("int32"),
    "int64": _int_parser("int64"),
}
"""From text to a number of a dtype; raises `ValueError` for what is none."""


class BadNumber(ValueError):
    """Text that is not a number; `index` says which."""

    def __init__(self, message: str, index: int) -> None:
        super().__init__(message)
        self.index = index


def as_text(text: bytes) -> str:
    """Text as a message shows it."""
    return text.decode(errors="backslashreplace")


def parse_numbers(texts: list[bytes], dtype: NumpyDType) -> Array:
    """Numbers of a dtype of `PARSERS` as texts spell them. Raises `BadNumber` for what is none."""
    if b"_" not in b"".join(texts):
        try:
            if dtype.kind == "f":
                return np.array(list(map(float, texts))).astype(dtype)
            whole = np.array(list(map(int, texts)), np.int64)
            if (whole.astype(dtype) == whole).all():
                return whole.astype(dtype)
        except (ValueError, OverflowError):
            pass
    parse = PARSERS[dtype.name]
    numbers: Array = np.empty(len(texts), dtype)
    for index, text in enumerate(texts):
        try:
            numbers[index] = parse(text)
        except ValueError as error:
            raise BadNumber(str(error), index) from error
    return numbers


def _decode_csv_shape(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape] * len(op.outputs)


def _decoder(name: str, of_file: bool) -> OpDef:
    return register(
        OpDef(
            name=name,
            inputs=("records: string", "record_defaults: any*"),
            outputs=("output: OUT_TYPE*",),
            attrs=("OUT_TYPE", "field_delim", "use_quote_delim", "na_value", "select_cols"),
            shape=_decode_csv_shape,
            kernels=on_cpu(lambda ctx, *inputs: _decode_csv_kernel(ctx, of_file, *inputs)),
            over_batch=by_row(0),
        )
    )


DECODE_CSV = _decoder("DecodeCSV", of_file=False)
DECODE_CSV_FILE = _decoder("DecodeCSVOfFile", of_file=True)


# -- compressed data -----------------------------------------------------------------------------------


@none_is_default
def decode_compressed(bytes: TensorLike, compression_type: str = "", name: str | None = None) -> Tensor:
    """Decompress strings.

    Args:
        bytes: Compressed strings, any shape.
        compression_type: ``GZIP``, ``ZLIB``, or empty for none.
        name: Name of the operation.

    Returns:
        Strings of the same shape.

    Raises:
        InvalidArgumentError: There is no such compression. At run time: a string is not compressed so.
    """
    if compression_type not in _DECOMPRESS:
        raise InvalidArgumentError(f"DecodeCompressed: compression_type is {compression_type!r}; expected GZIP or ZLIB")
    return add_op(DECODE_COMPRESSED, bytes, name=name, compression_type=compression_type)


_DECOMPRESS: Final[dict[str, Callable[[bytes], bytes]]] = {"": bytes, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}


def _decode_compressed_kernel(ctx: KernelContext, strings: Array) -> Array:
    decompress = _DECOMPRESS[ctx.attr("compression_type")]
    strings = np.asarray(strings, object)
    result = np.empty(strings.shape, object)
    try:
        result.reshape(-1)[:] = [decompress(item) for item in strings.reshape(-1).tolist()]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidArgumentError(f"a string does not decompress: {error}") from error
    return result


DECODE_COMPRESSED = register(
    OpDef(
        name="DecodeCompressed",
        inputs=("bytes: string",),
        outputs=("output: string",),
        attrs=("compression_type",),
        shape=like_input(0),
        kernels=on_cpu(_decode_compressed_kernel),
    )
)


def decode_json_example(json_examples: TensorLike, name: str | None = None) -> Tensor:
    """Serialised `tf.train.Example` messages of examples in JSON, as protobuf maps them.

    Args:
        json_examples: Strings, any shape.
        name: Name of the operation.

    Returns:
        Strings of the same shape, for `parse_example`.

    Raises:
        InvalidArgumentError: At run time: a string is no example.
    """
    return add_op(DECODE_JSON_EXAMPLE, json_examples, name=name)


def _decode_json_example_kernel(ctx: KernelContext, strings: Array) -> Array:
    return mapped(_example_of_json, strings)


def _example_of_json(text: bytes) -> bytes:
    from google.protobuf import json_format

    message = Example()
    try:
        json_format.Parse(decoded(text), message)
    except json_format.ParseError as error:
        raise InvalidArgumentError(f"{text[:80]!r} is no tf.train.Example in JSON: {error}") from error
    serialized: bytes = message.SerializeToString(deterministic=True)
    return serialized


DECODE_JSON_EXAMPLE = register(
    OpDef(
        name="DecodeJSONExample",
        inputs=("json_examples: string",),
        outputs=("binary_examples: string",),
        shape=like_input(0),
        kernels=on_cpu(_decode_json_example_kernel),
    )
)


# -- tensors -------------------------------------------------------------------------------------------


def serialize_tensor(tensor: TensorLike, name: str | None = None) -> Tensor:
    """A tensor as a string: a serialised ``TensorProto``.

    Args:
        tensor: Any shape and dtype.
        name: Name of the operation.

    Returns:
        A string scalar.
    """
    return add_op(SERIALIZE_TENSOR, tensor, name=name)


def _serialize_tensor_kernel(ctx: KernelContext, tensor: Array) -> Array:
    return np.array(tensor_proto.tensor_message(ctx.to_host(tensor)).SerializeToString(), object)


SERIALIZE_TENSOR = register(
    OpDef(
        name="SerializeTensor",
        inputs=("tensor: T",),
        outputs=("serialized: string",),
        types={"T": dtypes.VALUES},
        shape=scalar,
        kernels=on_cpu(_serialize_tensor_kernel),
    )
)


def parse_tensor(serialized: TensorLike, out_type: DTypeLike, name: str | None = None) -> Tensor:
    """The tensor in a serialised ``TensorProto``.

    Args:
        serialized: A string scalar.
        out_type: Dtype of the tensor.
        name: Name of the operation.

    Returns:
        The shape that the tensor was serialised with.

    Raises:
        InvalidArgumentError: `serialized` is no scalar. At run time: the string is not a tensor, or one of another
            dtype.
    """
    return add_op(PARSE_TENSOR, serialized, name=name, out_type=as_dtype(out_type))


def _parse_tensor_kernel(ctx: KernelContext, serialized: Array) -> Array:
    if np.ndim(serialized):
        raise InvalidArgumentError(f"serialized has shape {np.shape(serialized)}, expected a scalar")
    try:
        data = as_string(serialized)
        array = tensor_proto.held_array(tensor_proto.TensorProto.FromString(data))
    except DataLossError as error:
        raise InvalidArgumentError(f"the string is not a serialised tensor: {error.message}") from error
    if array.dtype != ctx.output_dtype():
        raise InvalidArgumentError(
            f"the serialised tensor is {as_dtype(array.dtype).name}, expected {as_dtype(ctx.output_dtype()).name}"
        )
    return array


def _parse_tensor_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.assert_has_rank(0)
    return [UNKNOWN]


PARSE_TENSOR = register(
    OpDef(
        name="ParseTensor",
        inputs=("serialized: string",),
        outputs=("output: out_type",),
        types={"out_type": dtypes.VALUES},
        shape=_parse_tensor_shape,
        kernels=on_cpu(_parse_tensor_kernel),
    )
)
