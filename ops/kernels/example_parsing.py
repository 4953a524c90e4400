"""Reading features out of serialised `tf.train.Example`s into arrays.

There are three readers. Compiled kernels read a batch of many bytes, where they can be had. NumPy reads a batch in
step: each operation takes the same field of every example. Both handle only the layout that protobuf libraries usually
write. The slow one reads one example at a time. It handles every valid layout, and it says what is wrong with a broken
example.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from tfray.errors import DataLossError, InvalidArgumentError
from tfray.formats import wire
from tfray.framework import dtypes
from tfray.framework.dtypes import DType
from tfray.framework.op_def import Array
from tfray.ops.kernels.fast_examples import CompiledBatch, can_read

BYTES_LIST: Final = 1
FLOAT_LIST: Final = 2
INT64_LIST: Final = 3

KINDS: Final = {dtypes.string: BYTES_LIST, dtypes.float32: FLOAT_LIST, dtypes.int64: INT64_LIST}
"""The dtypes of features, and the number of the list that holds them."""

_NUMPY: Final = {BYTES_LIST: np.dtype(object), FLOAT_LIST: np.dtype(np.float32), INT64_LIST: np.dtype(np.int64)}
_NAMES: Final = {BYTES_LIST: "string", FLOAT_LIST: "float", INT64_LIST: "int64"}

FEW_EXAMPLES: Final = 12
"""Least number of examples to read in step. For fewer, NumPy's cost per call exceeds that of reading one by one."""


@dataclass(frozen=True)
class Column:
    """A feature to read.

    Attributes:
        key: Its name.
        kind: The list that must hold it.
    """

    key: bytes
    kind: int

    @classmethod
    def of(cls, key: str, dtype: DType) -> Column:
        """The column of a feature of one of the dtypes of `KINDS`."""
        return cls(key.encode(), KINDS[dtype])


class ColumnValues(NamedTuple):
    """What a column holds in a batch of examples: all values in a row, and how many each example has.

    Attributes:
        values: One dimension.
        lengths: int64, one per example; -1 where the feature is missing.
    """

    values: Any
    lengths: Any


def read_columns(serialized: Sequence[bytes], columns: Sequence[Column]) -> list[ColumnValues]:
    """The values of columns in a batch of serialised examples.

    Raises:
        InvalidArgumentError: An example is malformed, or a feature is of another kind than its column.
    """
    if len(serialized) >= FEW_EXAMPLES:
        found = (
            _compiled_columns(serialized, columns) if can_read(serialized) else _columns_in_step(serialized, columns)
        )
        if found is not None:
            return found
    rows = [_read_row(data, index, columns) for index, data in enumerate(serialized)]
    return [_joined(column.kind, [row[i] for row in rows]) for i, column in enumerate(columns)]


def _compiled_columns(serialized: Sequence[bytes], columns: Sequence[Column]) -> list[ColumnValues] | None:
    batch = CompiledBatch(serialized, tuple([(column.key, column.kind) for column in columns]))
    if not batch.is_usual:
        return None
    found = []
    for index, column in enumerate(columns):
        if column.kind == BYTES_LIST:
            values = _objects(batch.strings(index))
        else:
            values = batch.floats(index) if column.kind == FLOAT_LIST else batch.longs(index)
        found.append(ColumnValues(values, batch.lengths(index)))
    return found


def _columns_in_step(serialized: Sequence[bytes], columns: Sequence[Column]) -> list[ColumnValues] | None:
    try:
        return _Batch(serialized).columns(columns)
    except _Unusual:
        return None


def empty(kind: int) -> Any:
    """No values of a kind."""
    return np.empty(0, _NUMPY[kind])


def _joined(kind: int, parts: Sequence[Array]) -> ColumnValues:
    """Join the values of one feature: `parts` has an array for each example, None where the feature is missing."""
    lengths = np.array([-1 if part is None else len(part) for part in parts], np.int64)
    there = [part for part in parts if part is not None]
    return ColumnValues(there[0] if len(there) == 1 else np.concatenate([empty(kind), *there]), lengths)


# -- one by one ----------------------------------------------------------------------------------------


def _read_row(data: bytes, index: int, columns: Sequence[Column]) -> list[Any]:
    """The values of one example, in the order of `columns`; None for a missing feature."""
    try:
        features: dict[bytes, tuple[int, int]] = {}
        for number, kind, start, end in wire.read_fields(data):
            if number == 1 and kind == wire.BYTES:
                features.update(read_map(data, start, end))
        return [read_feature(data, column, features.get(column.key)) for column in columns]
    except DataLossError as error:
        raise InvalidArgumentError(f"example {index} is malformed: {error.message}") from error
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"example {index}: {error.message}") from error


def read_map(data: bytes, start: int, end: int) -> dict[bytes, tuple[int, int]]:
    """The entries of a map of messages: the key, and where the message is. Raises `DataLossError`."""
    entries: dict[bytes, tuple[int, int]] = {}
    for number, kind, first, last in wire.read_fields(data, start, end):
        if number == 1 and kind == wire.BYTES:
            key, value = b"", (first, first)
            for part, part_kind, part_first, part_last in wire.read_fields(data, first, last):
                if part == 1 and part_kind == wire.BYTES:
                    key = data[part_first:part_last]
                elif part == 2 and part_kind == wire.BYTES:
                    value = (part_first, part_last)
            entries[key] = value
    return entries


def read_feature(data: bytes, column: Column, place: tuple[int, int] | None) -> Any:
    """The values of the feature at a place, None when there is none. Raises as `read_columns`, and `DataLossError`."""
    if place is None:
        return None
    found = 0
    parts: list[tuple[int, int]] = []
    for number, kind, start, end in wire.read_fields(data, *place):
        if kind == wire.BYTES and number in _NUMPY:
            parts = [*parts, (start, end)] if number == found else [(start, end)]
            found = number
    if not found:
        return None
    if found != column.kind:
        raise InvalidArgumentError(
            f"Key: {column.key.decode()}.  Data types don't match. "
            f"Data type: {_NAMES[found]} but expected type: {_NAMES[column.kind]}"
        )
    values = [_read_list(data, column.kind, start, end) for start, end in parts]
    return values[0] if len(values) == 1 else np.concatenate(values)


def _read_list(data: bytes, kind: int, start: int, end: int) -> Any:
    fields = [field for field in wire.read_fields(data, start, end) if field[0] == 1]
    if kind == BYTES_LIST:
        return _objects([data[first:last] for _, form, first, last in fields if form == wire.BYTES])
    width = wire.FIXED32 if kind == FLOAT_LIST else wire.VARINT
    parts = [data[first:last] for _, form, first, last in fields if form in (wire.BYTES, width)]
    packed = parts[0] if len(parts) == 1 else b"".join(parts)
    if kind == INT64_LIST:
        return wire.decode_varints(packed)
    if len(packed) % 4:
        raise DataLossError(f"a list of floats is {len(packed)} bytes long, which is no multiple of 4")
    return np.frombuffer(packed, "<f4")


def _objects(items: list[bytes]) -> Any:
    array = np.empty(len(items), object)
    array[:] = items
    return array


# -- one example, dense features -----------------------------------------------------------------------

_SINGLE_FLOAT: Final = struct.Struct("<f").unpack_from


class _Layout(NamedTuple):
    """Where the lists of features are in an example.

    Attributes:
        around: Places of what stands around the lists: it says where they begin and end, and which they are.
        octets: What stands there.
        lists: By feature: its number, where its list begins and ends, and what the list has to be (see `_list_of`).
    """

    around: list[slice]
    octets: list[bytes]
    lists: list[tuple[int, int, int, int, int, tuple[int, ...]]]

    def fits(self, data: bytes) -> bool:
        """Whether another example of the same length has it."""
        return [data[place] for place in self.around] == self.octets


class DenseReader:
    """Reads features of known shapes from single examples of the usual layout, byte by byte.

    Examples of one file mostly have their lists at the same places, with the same bytes around them. So the places are
    kept for each length of an example.

    Args:
        columns: The features.
        shapes: The shape of each.
    """

    def __init__(self, columns: Sequence[Column], shapes: Sequence[tuple[int, ...]]) -> None:
        self._count = len(columns)
        self._places = {
            column.key: (index, column.kind, prod(shape), shape)
            for index, (column, shape) in enumerate(zip(columns, shapes, strict=True))
        }
        self._layouts: dict[int, _Layout] = {}

    def read(self, data: bytes) -> list[Any] | None:
        """The values of each feature, None for one that is missing.

        None for an example of another layout, which may be malformed, and for one with a feature of another kind or
        number of values: `read_columns` reads those, or says what is wrong.
        """
        try:
            layout = self._layouts.get(len(data))
            if layout is None or not layout.fits(data):
                layout = self._layout(data)
                if layout is None:
                    return None
                if len(self._layouts) >= _MOST_LAYOUTS:
                    self._layouts.clear()
                self._layouts[len(data)] = layout
            values: list[Any] = [None] * self._count
            for index, start, end, kind, count, shape in layout.lists:
                found = _list_of(data, start, end, kind, count, shape)
                if found is None:
                    return None
                values[index] = found
            return values
        except (IndexError, DataLossError):  # it ends within a field
            return None

    def _layout(self, data: bytes) -> _Layout | None:
        """The layout of an example; None if it is none of those that this can read."""
        layout, met = _Layout([], [], []), list[Any]()
        places, end, told = self._places, len(data), 0
        at = _contents(data, 0, end, _ENTRY) if end else 0
        while 0 < at < end:
            size, start = wire.read_varint(data, at + 1, end)
            stop = start + size
            key = start + 2
            key_end = key + data[start + 1]
            if data[at] != _ENTRY or data[start] != _KEY or key_end - key >= 0x80 or key_end >= stop or stop > end:
                return None
            value = _contents(data, key_end, stop, _VALUE)
            if value < 0:
                return None
            place = places.get(data[key:key_end])
            if place is not None and place in met:  # the last one counts, which `read_columns` knows
                return None
            met.append(place)
            if place is not None and value < stop:
                index, kind, count, shape = place
                value = _contents(data, value, stop, kind << 3 | wire.BYTES)
                if value < 0:
                    return None
                layout.lists.append((index, value, stop, kind, count, shape))
            layout.around.append(slice(told, value))
            layout.octets.append(data[told:value])
            at = told = stop
        return layout if at == end else None


_MOST_LAYOUTS: Final = 64
"""Lengths of examples whose layout is kept."""


def _contents(data: bytes, at: int, end: int, tag: int) -> int:
    """Where the contents begin of the field there, which has this tag and ends at `end`; -1 if it is not so."""
    size, start = data[at + 1], at + 2
    if size >= 0x80:
        size, start = wire.read_varint(data, at + 1, end)
    return start if data[at] == tag and start + size == end else -1


def _list_of(data: bytes, at: int, end: int, kind: int, count: int, shape: tuple[int, ...]) -> Any:
    """The `count` values of a list; None if it has another number, or another layout."""
    if kind == BYTES_LIST:
        return _strings_of(data, at, end, shape, count)
    if at == end:
        return None if count else np.empty(shape, _NUMPY[kind])
    first = _contents(data, at, end, _ENTRY)
    if first < 0:
        return None
    if kind == FLOAT_LIST:
        if end - first != 4 * count:
            return None
        if shape == ():
            return np.float32(_SINGLE_FLOAT(data, first)[0])
        return np.frombuffer(data, "<f4", count, first).reshape(shape)
    if shape == () and end - first == 1 and data[first] < 0x80:
        return np.int64(data[first])
    numbers = wire.decode_varints(data[first:end])
    return numbers.reshape(shape)[()] if len(numbers) == count else None


def _strings_of(data: bytes, at: int, end: int, shape: tuple[int, ...], count: int) -> Any:
    items = []
    while at < end:
        size, start = wire.read_varint(data, at + 1, end)
        if data[at] != _ENTRY or start + size > end:
            return None
        at = start + size
        items.append(data[start:at])
    if len(items) != count:
        return None
    array = np.empty(shape, object)
    array.reshape(-1)[:] = items
    return array


# -- in step -------------------------------------------------------------------------------------------


class _Unusual(Exception):
    """The batch has a layout that the reading in step does not handle: read its examples one by one."""


_PADDING: Final = bytes(16)
_LONG_ROW: Final = 48
"""Longest list of floats that is gathered element by element. Longer ones are copied one list at a time."""

_MASKS: Final = np.array([(1 << 8 * count) - 1 for count in range(8)] + [-1])
_IS_LIST: Final = np.isin(np.arange(256), [kind << 3 | wire.BYTES for kind in (BYTES_LIST, FLOAT_LIST, INT64_LIST)])
"""By the tag of a value in a feature."""
_MAX_ROUNDS: Final = 64
"""After this many rounds, reading goes on in step only while at least as many messages have fields left."""

_ENTRY, _KEY, _VALUE = 0x0A, 0x0A, 0x12


_count: Final = np.count_nonzero
"""How many are true, or not 0: on short arrays in a fifth of the time of their methods ``any`` and ``all``."""


class _Batch:
    """Serialised examples in one buffer, and where the features of each are. Raises `_Unusual` for other layouts."""

    def __init__(self, serialized: Sequence[bytes]) -> None:
        self._count = len(serialized)
        sizes = np.fromiter(map(len, serialized), np.int64, self._count)
        self._data = b"".join([*serialized, _PADDING])
        self._octets = np.frombuffer(self._data, np.uint8)
        # Element i is the 8-byte word at byte i: a view with a stride of one byte, so the words overlap.
        self._words = np.ndarray((len(self._data) - 8,), "<i8", self._data, 0, (1,))
        ends = np.cumsum(sizes)
        filled = np.flatnonzero(sizes)
        starts, ends = self._sole_field(ends[filled] - sizes[filled], ends[filled], _ENTRY)
        owner, starts, ends = self._repeated(filled, starts, ends)
        self._split_entries(owner, starts, ends)

    def _lengths(self, at: Array) -> tuple[Any, Any, Any]:
        """The fields at these positions: their tags, the lengths of their contents, and where these begin.

        A tag is one byte, and a length up to five.
        """
        words = self._words[at]
        length = (words >> 8) & 0x7F
        start = at + 2
        more = (words >> 15) & 1
        if _count(more):
            length |= ((words >> 16) & 0x7F) << 7 & -more
            start += more
            if _count(words & (more << 23)):
                more = (words >> 23) & more
                for shift in range(14, 35, 7):
                    octet = self._octets[np.minimum(start, len(self._octets) - 1)].astype(np.int64)
                    length |= (octet & 0x7F) << shift & -more
                    start += more
                    more &= octet >> 7
                if _count(more):
                    raise _Unusual
        return words & 0xFF, length, start

    def _delimited(self, at: Array, ends: Array, tag: int) -> tuple[Any, Any]:
        """Start and end of the contents of the fields at these positions, with this tag. They must not pass `ends`."""
        tags, length, start = self._lengths(at)
        end = start + length
        if _count(tags != tag) or _count(end > ends):
            raise _Unusual
        return start, end

    def _sole_field(self, at: Array, ends: Array, tag: int) -> tuple[Any, Any]:
        """As `_delimited`, for messages that consist of this one field: it ends exactly at `ends`."""
        tags, length, start = self._lengths(at)
        end = start + length
        if _count(tags != tag) or _count(end != ends):
            raise _Unusual
        return start, end

    def _repeated(self, owner: Array, at: Array, ends: Array) -> tuple[Any, Any, Any]:
        """All fields of messages that consist of one repeated field: their owners, starts and ends.

        Round i reads field i of every message that has one.
        """
        rounds: list[tuple[Any, Any, Any]] = []
        while True:
            is_left = at < ends
            if _count(is_left) < at.size:
                left = is_left.nonzero()[0]
                if not left.size:
                    break
                owner, at, ends = owner[left], at[left], ends[left]
            elif not at.size:
                break
            start, end = self._delimited(at, ends, _ENTRY)
            rounds.append((owner, start, end))
            at = end
            if len(rounds) > _MAX_ROUNDS and owner.size < _MAX_ROUNDS:
                raise _Unusual  # few long messages: a round costs more than its fields are worth
        if len(rounds) == 1:
            return rounds[0]
        nothing = np.empty(0, np.int64)
        owners, starts, stops = zip(*rounds, strict=True) if rounds else ([nothing], [nothing], [nothing])
        return np.concatenate(owners), np.concatenate(starts), np.concatenate(stops)

    def _split_entries(self, owner: Array, starts: Array, ends: Array) -> None:
        """Find the key, kind and list of values of every feature. A feature without a list counts as missing."""
        key, key_end = self._delimited(starts, ends, _KEY)
        if _count(key_end >= ends):
            raise _Unusual  # an entry with a key and no value
        value, value_end = self._sole_field(key_end, ends, _VALUE)
        is_filled = value < value_end
        if _count(is_filled) < value.size:
            filled = is_filled.nonzero()[0]
            owner, key, key_end, value, value_end = (part[filled] for part in (owner, key, key_end, value, value_end))
        tags, length, self._start = self._lengths(value)
        self._end = self._start + length
        if _count(self._end != value_end) or _count(_IS_LIST[tags]) < tags.size:
            raise _Unusual
        self._owner, self._key, self._kind = owner, key, tags >> 3
        self._key_length = key_end - key
        self._key_word = self._words[key] & _MASKS[np.minimum(self._key_length, 8)]
        self._numbers = np.arange(self._count)

    def columns(self, columns: Sequence[Column]) -> list[ColumnValues]:
        """The values of columns."""
        return [self._column(column) for column in columns]

    def _column(self, column: Column) -> ColumnValues:
        entry = self._entries_of(column.key)
        read = {BYTES_LIST: self._bytes, FLOAT_LIST: self._floats, INT64_LIST: self._ints}[column.kind]
        is_everywhere = entry.size == self._count == _count(self._owner[entry] == self._numbers)
        if not is_everywhere:
            place = np.full(self._count, -1, np.int64)
            place[self._owner[entry]] = entry
            there = np.flatnonzero(place >= 0)
            entry = place[there] if there.size == entry.size else self._fail()
        if _count(self._kind[entry] != column.kind):
            raise _Unusual
        values, counts = read(self._start[entry], self._end[entry])
        if is_everywhere:
            return ColumnValues(values, counts)
        lengths = np.full(self._count, -1, np.int64)
        lengths[there] = counts
        return ColumnValues(values, lengths)

    def _fail(self) -> Any:
        raise _Unusual

    def _entries_of(self, key: bytes) -> Any:
        """The entries with a key."""
        word = int.from_bytes(key[:8], "little", signed=len(key) >= 8)
        found = ((self._key_word == word) & (self._key_length == len(key))).nonzero()[0]
        for at in range(8, len(key), 8):
            part = key[at : at + 8]
            words = self._words[self._key[found] + at] & _MASKS[len(part)]
            found = found[words == int.from_bytes(part, "little", signed=len(part) == 8)]
        return found

    def _packed(self, starts: Array, ends: Array) -> tuple[Any, Any]:
        """Start and size, in bytes, of the packed numbers of each list; size 0 for an empty list."""
        is_filled = starts < ends
        if _count(is_filled) == starts.size:
            start, end = self._sole_field(starts, ends, _ENTRY)
            return start, end - start
        filled = is_filled.nonzero()[0]
        start, size = starts.copy(), np.zeros_like(starts)
        start[filled], end = self._sole_field(starts[filled], ends[filled], _ENTRY)
        size[filled] = end - start[filled]
        return start, size

    def _floats(self, starts: Array, ends: Array) -> tuple[Any, Any]:
        start, size = self._packed(starts, ends)
        if _count(size & 3):
            raise _Unusual
        if size.size and _count(size == size[0]) == size.size:
            # Row i of this view has the `size` bytes from byte i on.
            every = np.ndarray((len(self._data) - int(size[0]), int(size[0])), np.uint8, self._data, 0, (1, 1))
            return every[start].reshape(-1).view("<f4"), size >> 2
        if not size.size or int(size.max()) <= 4 * _LONG_ROW:
            where = _ranges(start, size >> 2, 4)
            return self._words[where].astype(np.uint32).view(np.float32), size >> 2
        rows = zip(start.tolist(), size.tolist(), strict=True)
        return np.concatenate([np.frombuffer(self._data, "<f4", n >> 2, at) for at, n in rows]), size >> 2

    def _ints(self, starts: Array, ends: Array) -> tuple[Any, Any]:
        start, size = self._packed(starts, ends)
        octets = self._octets[_ranges(start, size, 1)]
        is_last = octets < 0x80
        filled = size.nonzero()[0]
        behind = size[filled].cumsum()
        if _count(is_last[behind - 1]) < behind.size:
            raise _Unusual
        if _count(is_last) == is_last.size:
            return octets.astype(np.int64), size
        counts = np.zeros_like(size)
        counts[filled] = np.add.reduceat(is_last, behind - size[filled], dtype=np.int64)
        last = is_last.nonzero()[0]
        first = np.concatenate([[0], last[:-1] + 1])
        lengths = last - first + 1
        if int(lengths.max()) > wire.MAX_VARINT_BYTES:
            raise _Unusual
        return wire.gather_varints(octets, first, lengths), counts

    def _bytes(self, starts: Array, ends: Array) -> tuple[Any, Any]:
        owner, first, last = self._repeated(np.arange(starts.size), starts, ends)
        counts = np.bincount(owner, minlength=starts.size)
        if owner.size > starts.size or counts.max(initial=0) > 1:
            order = np.argsort(owner, kind="stable")
            first, last = first[order], last[order]
        data = self._data
        return _objects([data[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True)]), counts


def _ranges(starts: Array, counts: Array, step: int) -> Any:
    """For each start, `count` numbers ``start, start + step, ...``; all in one vector."""
    if counts.size and _count(counts == counts[0]) == counts.size:
        count = int(counts[0])
        return starts if count == 1 else (starts[:, None] + np.arange(0, count * step, step)).reshape(-1)
    before = np.cumsum(counts) - counts
    total = int(counts.sum())
    return np.repeat(starts - before * step, counts) + np.arange(0, total * step, step)


# -- from columns to tensors ---------------------------------------------------------------------------


def dense_column(column: ColumnValues, shape: Sequence[int], default: Any | None, key: str) -> Any:
    """A column whose examples all have values of one shape.

    Args:
        column: The values.
        shape: Shape of an example's values.
        default: The values where the feature is missing; None when it must not be.
        key: Name of the feature.

    Raises:
        InvalidArgumentError: An example has too few or too many values, or none.
    """
    values, lengths = column
    count = prod(shape)
    if (lengths == count).all():
        return values.reshape(len(lengths), *shape)
    wrong = np.flatnonzero((lengths != count) & (lengths >= 0))
    if wrong.size:
        raise wrong_count(f"Key: {key}, Index: {wrong[0]}", values, lengths[wrong[0]], shape)
    missing = np.flatnonzero(lengths < 0)
    if not missing.size:
        return values.reshape(len(lengths), *shape)
    if default is None:
        raise InvalidArgumentError(
            f"Feature: {key} (data type: {_type_of(values)}) is required but could not be found in example {missing[0]}"
        )
    result = np.empty((len(lengths), *shape), values.dtype)
    result[lengths >= 0] = values.reshape(-1, *shape)
    result[missing] = default
    return result


def padded_column(column: ColumnValues, shape: Sequence[int], padding: Any, what: str) -> Any:
    """A column of sequences, padded to the longest. The elements of each sequence have one shape.

    A missing feature is an empty sequence.

    Raises:
        InvalidArgumentError: The values of an example do not divide into the shape.
    """
    values, lengths = column
    steps = whole_steps(column, shape, what)
    longest = int(steps.max(initial=0))
    result = np.empty((len(lengths), longest, *shape), values.dtype)
    result[...] = padding
    result[np.arange(longest) < steps[:, None]] = values.reshape(-1, *shape)
    return result


def wrong_count(what: str, values: Array, found: int, shape: Sequence[int]) -> InvalidArgumentError:
    """The error that says that an example, or a step of it, has too few or too many values."""
    return InvalidArgumentError(
        f"{what}.  Number of {_counted(values)} values != expected.  "
        f"Values size: {found} but output shape: [{','.join(map(str, shape))}]"
    )


def _type_of(values: Array) -> str:
    return {"f": "float", "i": "int64"}.get(values.dtype.kind, "string")


def _counted(values: Array) -> str:
    return _type_of(values).replace("string", "bytes")


def whole_steps(column: ColumnValues, shape: Sequence[int], what: str) -> Any:
    """Length of each sequence: its number of values divided by the size of `shape`. Raises as `padded_column`."""
    count = int(np.prod(shape, dtype=np.int64))
    lengths = np.maximum(column.lengths, 0)
    wrong = np.flatnonzero(lengths % count) if count else np.flatnonzero(lengths)
    if wrong.size:
        raise InvalidArgumentError(
            f"{what}, Index: {wrong[0]}.  "
            f"Number of {_counted(column.values)} values is not a multiple of stride length. "
            f"Saw {lengths[wrong[0]]} values but output shape is: [{','.join(map(str, ('?', *shape)))}]"
        )
    return lengths // max(count, 1)


def sparse_column(column: ColumnValues) -> tuple[Any, Any, Any]:
    """Indices, values and shape of a column as a sparse matrix with one row for each example."""
    values, lengths = column
    lengths = np.maximum(lengths, 0)
    indices = np.empty((len(values), 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(lengths)), lengths)
    indices[:, 1] = _ranges(np.zeros_like(lengths), lengths, 1)
    return indices, values, np.array([len(lengths), lengths.max(initial=0)], np.int64)


def concatenate(parts: Iterable[Array], kind: int) -> Any:
    """Arrays of values of a kind, one behind the other."""
    return np.concatenate([empty(kind), *parts])
