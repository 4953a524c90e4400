"""Tables from keys to values that live on a device. `tf.lookup` is built on these."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from tfray.errors import FailedPreconditionError, InvalidArgumentError
from tfray.formats import files
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, Reach, on_cpu, register
from tfray.framework.shape_functions import no_outputs, scalar
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.ops.dataflow.resource_operations import use_resource
from tfray.ops.kernels.batch_rules import by_row
from tfray.ops.kernels.text import as_string, octets, text_attr
from tfray.ops.resources.handles import looked_up_once
from tfray.ops.strings.decoding_ops import PARSERS

KEYS: Final = (dtypes.string, dtypes.int64, dtypes.int32)
VALUES: Final = (dtypes.string, dtypes.int64, dtypes.int32, dtypes.float32, dtypes.float64, dtypes.bool_)

WHOLE_LINE: Final = -2
LINE_NUMBER: Final = -1


def _array(value: Array) -> Array:
    """A kernel's input as an array, a string too."""
    return np.array(value, object) if isinstance(value, bytes) else np.asarray(value)


class Table:
    """Values by key.

    Attributes:
        name: The table's name, for errors.
        key_dtype: NumPy dtype of the keys.
        value_dtype: NumPy dtype of the values.
        key_shape: Shape of each key.
        value_shape: Shape of each value.
        is_mutable: Whether entries come one by one; otherwise all at once, before the first lookup.
        is_ready: Whether it can be read.
        lock: Held by updates.
    """

    def __init__(self, name: str, key: DType, value: DType, shape: tuple[int, ...], is_mutable: bool) -> None:
        self.name = name
        self.key_dtype, self.value_dtype = key.numpy, value.numpy
        self.key_shape: tuple[int, ...] = ()
        self.value_shape = shape
        self.is_mutable = self.is_ready = is_mutable
        self.entries: dict[Any, Any] = {}
        self.lock = threading.Lock()

    def check_ready(self) -> None:
        """Raises `FailedPreconditionError` while the table has no contents."""
        if not self.is_ready:
            raise FailedPreconditionError(
                f"Table not initialized: run tf.tables_initializer() in this session before table {self.name!r} is used"
            )

    def fill(self, keys: list[Any], values: list[Any]) -> None:
        """Give an immutable table its contents. Doing so again with the same ones changes nothing.

        Raises:
            FailedPreconditionError: A key has two values, or the table has other contents.
        """
        entries = dict(zip(keys, values, strict=True))
        if len(entries) < len(keys):
            for key, value in zip(keys, values, strict=True):
                if entries[key] != value:
                    raise FailedPreconditionError(
                        f"table {self.name!r}: key {key!r} has two values, {value!r} and another"
                    )
        with self.lock:
            if self.is_ready and entries != self.entries:
                raise FailedPreconditionError(f"table {self.name!r} is initialised already, with other contents")
            self.entries, self.is_ready = entries, True

    def keys_of(self, keys: Array) -> list[Any]:
        """Keys as those of `entries`."""
        if not self.key_shape:
            found: list[Any] = keys.reshape(-1).tolist()
            return found
        return [tuple(np.ravel(key).tolist()) for key in keys.reshape(-1, *self.key_shape)]

    def batch_shape(self, keys: Array) -> tuple[int, ...]:
        """The shape in which keys come. Raises `InvalidArgumentError` if they do not have the shape of a key."""
        outer = keys.ndim - len(self.key_shape)
        if outer < 0 or keys.shape[outer:] != self.key_shape:
            raise InvalidArgumentError(
                f"table {self.name!r}: keys have shape {keys.shape}, expected it to end with {self.key_shape}"
            )
        return keys.shape[:outer]

    def find(self, keys: Array, default: Array) -> Array:
        """The values of keys, `default` for those that are not there."""
        self.check_ready()
        keys = _array(keys)
        shape = self.batch_shape(keys)
        get = self.entries.get
        absent = default if self.value_shape else _array(default)[()]
        entries = [get(key, absent) for key in self.keys_of(keys)]
        result = np.empty((len(entries), *self.value_shape), self.value_dtype)
        if entries:
            result[...] = entries
        return result.reshape(shape + self.value_shape)

    def insert(self, keys: Array, values: Array) -> None:
        """Add entries to a mutable table, or change them.

        Raises:
            InvalidArgumentError: The shapes do not fit.
        """
        keys, values = _array(keys), _array(values)
        expected = self.batch_shape(keys) + self.value_shape
        if values.shape != expected:
            raise InvalidArgumentError(f"table {self.name!r}: values have shape {values.shape}, expected {expected}")
        rows = values.reshape(-1, *self.value_shape)
        items = list(rows.copy()) if self.value_shape else rows.tolist()
        with self.lock:
            self._add(self.keys_of(keys), items)

    def _add(self, keys: list[Any], values: list[Any]) -> None:
        self.entries.update(zip(keys, values, strict=True))

    def remove(self, keys: Array) -> None:
        """Take entries out of a mutable table, those that are there."""
        keys = _array(keys)
        self.batch_shape(keys)
        with self.lock:
            self._take(self.keys_of(keys))

    def _take(self, keys: list[Any]) -> None:
        for key in keys:
            self.entries.pop(key, None)

    def export(self) -> tuple[Array, Array]:
        """All keys and all values."""
        self.check_ready()
        with self.lock:
            keys, values = list(self.entries), list(self.entries.values())
        found_keys = np.empty((len(keys), *self.key_shape), self.key_dtype)
        found_values = np.empty((len(keys), *self.value_shape), self.value_dtype)
        if keys:
            found_keys.reshape(len(keys), -1)[...] = np.array(keys, self.key_dtype).reshape(len(keys), -1)
            found_values[...] = values
        return found_keys, found_values

    def state(self) -> dict[str, Array]:
        """The entries as arrays, for a checkpoint."""
        keys, values = Table.export(self)
        return {"keys": keys, "values": values}

    def restore_state(self, arrays: Mapping[str, Array]) -> None:
        """Take the entries that `state` gave, instead of those that are there."""
        rows = arrays["values"]
        values = list(np.array(rows)) if self.value_shape else rows.tolist()
        with self.lock:
            self.entries = dict(zip(self.keys_of(arrays["keys"]), values, strict=True))
            self.is_ready = True


class DenseTable(Table):
    """A mutable table that sets two keys aside, as TensorFlow's does to mark places in its buckets.

    How many buckets there are can be seen: `export` gives all of them. Their number doubles before more than
    0.8 of them are taken.

    Args:
        name: The table's name, for errors.
        key: Dtype of the keys.
        value: Dtype of the values.
        shape: Shape of each value.
        marks: The keys of places that are free, and of those whose entries were removed.
        buckets: How many places there are at first.

    Raises:
        InvalidArgumentError: The two keys are equal or differ in shape; `buckets` is no power of 2 from 4 on.
    """

    def __init__(
        self, name: str, key: DType, value: DType, shape: tuple[int, ...], marks: Sequence[Array], buckets: int
    ) -> None:
        super().__init__(name, key, value, shape, is_mutable=True)
        empty, deleted = marks
        if empty.shape != deleted.shape:
            raise InvalidArgumentError(
                f"table {name!r}: Empty and deleted keys must have one shape, not {empty.shape} and {deleted.shape}"
            )
        if np.array_equal(empty, deleted):
            raise InvalidArgumentError(f"table {name!r}: Empty and deleted keys cannot be equal, both are {empty}")
        if buckets < 4 or buckets & (buckets - 1):
            raise InvalidArgumentError(
                f"table {name!r}: Number of buckets must be a power of 2 and at least 4, not {buckets}"
            )
        self.key_shape = empty.shape
        self._marks, self._buckets = marks, buckets
        self._removed: list[Any] = []

    def keys_of(self, keys: Array) -> list[Any]:
        """Keys as those of `entries`. Raises `InvalidArgumentError` for one that is set aside."""
        found = super().keys_of(keys)
        for what, mark in zip(("empty_key", "deleted_key"), self._marks, strict=True):
            if super().keys_of(mark)[0] in found:
                raise InvalidArgumentError(f"table {self.name!r}: {what} is used as a key")
        return found

    def _add(self, keys: list[Any], values: list[Any]) -> None:
        wanted = len(self.entries) + len(keys)  # TensorFlow takes all for new ones
        while wanted > 0.8 * self._buckets:
            self._buckets, self._removed = 2 * self._buckets, []
        super()._add(keys, values)

    def _take(self, keys: list[Any]) -> None:
        self._removed += [self.entries.pop(key) for key in dict.fromkeys(keys) if key in self.entries]

    def export(self) -> tuple[Array, Array]:
        """The keys and values of all buckets."""
        keys, values = super().export()
        free = self._buckets - len(keys)
        removed = self._removed[-free:] if free else []
        places = np.empty((self._buckets, *self.key_shape), self.key_dtype)
        places[: len(keys)] = keys
        places[len(keys) :], places[len(keys) : len(keys) + len(removed)] = self._marks
        contents = np.full((self._buckets, *self.value_shape), b"" if values.dtype == object else 0, values.dtype)
        contents[: len(keys)] = values
        for place, value in enumerate(removed, len(keys)):
            contents[place] = value
        return places, contents

    def state(self) -> dict[str, Array]:
        """The entries and the number of buckets as arrays, for a checkpoint."""
        return {**super().state(), "buckets": np.array(self._buckets, np.int64)}

    def restore_state(self, arrays: Mapping[str, Array]) -> None:
        """Take the entries that `state` gave, or all buckets, instead of those that are there."""
        keys = arrays["keys"]
        set_aside = [(keys == mark).reshape(len(keys), -1).all(1) for mark in self._marks]
        is_entry = ~np.logical_or(*set_aside)
        super().restore_state({"keys": keys[is_entry], "values": arrays["values"][is_entry]})
        self._buckets, self._removed = int(arrays.get("buckets", self._buckets)), []


# -- handles -------------------------------------------------------------------------------------------


def hash_table(
    key_dtype: DTypeLike,
    value_dtype: DTypeLike,
    shared_name: str = "",
    value_shape: ShapeLike = (),
    is_mutable: bool = False,
    name: str | None = None,
) -> Tensor:
    """Make the handle of a table.

    Args:
        key_dtype: ``string``, ``int64`` or ``int32``.
        value_dtype: Dtype of the values.
        shared_name: Name of the table on the device; that of the operation when empty.
        value_shape: Shape of each value.
        is_mutable: Whether entries are inserted; otherwise the table is initialised once.
        name: Name of the operation.
    """
    return add_op(
        HASH_TABLE,
        name=name,
        key_dtype=as_dtype(key_dtype),
        value_dtype=as_dtype(value_dtype),
        shared_name=shared_name,
        value_shape=TensorShape(value_shape),
        is_mutable=is_mutable,
    )


def _hash_table_kernel(ctx: KernelContext) -> Table:
    return _table_of(ctx, lambda name, key, value, shape: Table(name, key, value, shape, ctx.attr("is_mutable")))


def _table_of(ctx: KernelContext, make: Callable[[str, DType, DType, tuple[int, ...]], Table]) -> Table:
    """The table of an operation's name, made at first by `make` of name, key dtype, value dtype and value shape."""
    name = ctx.attr("shared_name") or ctx.op_name
    key, value, shape = ctx.attr("key_dtype"), ctx.attr("value_dtype"), ctx.attr("value_shape").sizes
    table: Table = ctx.resources.lookup_or_create(("table", name), lambda: make(name, key, value, shape))
    if (table.key_dtype, table.value_dtype, table.value_shape) != (key.numpy, value.numpy, shape):
        raise InvalidArgumentError(
            f"table {name!r} maps {table.key_dtype} to {table.value_dtype} {table.value_shape} already; "
            f"asked for one from {key.name} to {value.name} {shape}"
        )
    return table


def _hash_table_shape(op: Operation) -> list[TensorShape]:
    if not op.attrs["value_shape"].is_fully_defined():
        raise ValueError(f"value_shape is {op.attrs['value_shape']}, expected one that is known")
    return [TensorShape([])]


HASH_TABLE = register(
    OpDef(
        name="HashTable",
        inputs=(),
        outputs=("table_handle: resource",),
        attrs=("shared_name", "value_shape", "is_mutable"),
        types={"key_dtype": KEYS, "value_dtype": VALUES},
        shape=_hash_table_shape,
        kernels=on_cpu(looked_up_once(_hash_table_kernel)),
        stateful=True,
    )
)


def dense_hash_table(
    key_dtype: DTypeLike,
    value_dtype: DTypeLike,
    empty_key: Array,
    deleted_key: Array,
    shared_name: str = "",
    value_shape: ShapeLike = (),
    initial_num_buckets: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Make the handle of a `DenseTable`; arguments are as of `hash_table` and of that."""
    marks = (np.asarray(key, object) for key in (empty_key, deleted_key))
    return add_op(
        MUTABLE_DENSE_HASH_TABLE,
        name=name,
        key_dtype=as_dtype(key_dtype),
        value_dtype=as_dtype(value_dtype),
        shared_name=shared_name,
        value_shape=TensorShape(value_shape),
        initial_num_buckets=1 << 17 if initial_num_buckets is None else int(initial_num_buckets),
        marks=[(list(mark.shape), [_as_attr(entry) for entry in mark.ravel().tolist()]) for mark in marks],
    )


def _as_attr(entry: Any) -> Any:
    return text_attr("key", entry) if isinstance(entry, (bytes, str)) else int(entry)


def _dense_hash_table_kernel(ctx: KernelContext) -> Table:
    dtype = ctx.attr("key_dtype").numpy
    marks = [
        np.array([octets(entry) if isinstance(entry, str) else entry for entry in entries], dtype).reshape(shape)
        for shape, entries in ctx.attr("marks")
    ]
    buckets = ctx.attr("initial_num_buckets")
    return _table_of(ctx, lambda name, key, value, shape: DenseTable(name, key, value, shape, marks, buckets))


MUTABLE_DENSE_HASH_TABLE = register(
    OpDef(
        name="MutableDenseHashTable",
        inputs=(),
        outputs=("table_handle: resource",),
        attrs=("shared_name", "value_shape", "initial_num_buckets", "marks"),
        types={"key_dtype": KEYS, "value_dtype": VALUES},
        shape=_hash_table_shape,
        kernels=on_cpu(looked_up_once(_dense_hash_table_kernel)),
        stateful=True,
    )
)


# -- contents ------------------------------------------------------------------------------------------


def _initialize_table_kernel(ctx: KernelContext, table: Table, keys: Array, values: Array) -> None:
    keys, values = _array(keys), _array(values)
    _check_dtypes(table, keys, values)
    if not keys.size:
        raise InvalidArgumentError(f"table {table.name!r}: keys and values cannot be empty")
    table.fill(keys.tolist(), values.tolist())


def _check_dtypes(table: Table, keys: Array, values: Array) -> None:
    if keys.dtype != table.key_dtype or values.dtype != table.value_dtype:
        raise InvalidArgumentError(
            f"table {table.name!r} maps {as_dtype(table.key_dtype).name} to {as_dtype(table.value_dtype).name}, "
            f"not {as_dtype(keys.dtype).name} to {as_dtype(values.dtype).name}"
        )


def _keys_and_values_shape(op: Operation) -> list[TensorShape]:
    op.inputs[1].shape.assert_has_rank(1)
    op.inputs[1].shape.assert_is_compatible_with(op.inputs[2].shape)
    return []


INITIALIZE_TABLE = register(
    OpDef(
        name="InitializeTable",
        inputs=("table_handle: resource", "keys: Tkey", "values: Tval"),
        outputs=(),
        types={"Tkey": KEYS, "Tval": VALUES},
        shape=_keys_and_values_shape,
        kernels=on_cpu(_initialize_table_kernel),
        stateful=True,
        access="update",
    )
)


def _initialize_from_file_kernel(ctx: KernelContext, table: Table, filename: Array) -> None:
    path = as_string(filename)
    lines = files.read_bytes(path).split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    wanted = ctx.attr("vocab_size")
    if wanted > len(lines):
        raise InvalidArgumentError(f"Invalid vocab_size {wanted}: {files.as_path(path)} has {len(lines)} lines")
    lines = [line.removesuffix(b"\r") for line in (lines if wanted < 0 else lines[:wanted])]
    try:
        keys = _column(lines, ctx.attr("key_index"), ctx.attr("delimiter"), as_dtype(table.key_dtype))
        values = _column(lines, ctx.attr("value_index"), ctx.attr("delimiter"), as_dtype(table.value_dtype))
    except ValueError as error:
        raise InvalidArgumentError(f"{files.as_path(path)}: {error}") from error
    table.fill(keys, values)


def _column(lines: list[bytes], index: int, delimiter: str, dtype: DType) -> list[Any]:
    """What each line has in a column, as Python values. Raises `ValueError`."""
    if index == LINE_NUMBER:
        if not dtype.is_integer:
            raise ValueError(f"line numbers are integers, not {dtype.name}")
        return list(range(len(lines)))
    parse = bytes if dtype is dtypes.string else PARSERS.get(dtype.name)
    if parse is None:
        raise ValueError(f"text is not read as {dtype.name}")
    if index == WHOLE_LINE:
        return list(map(parse, lines))
    rows = [line.split(delimiter.encode()) for line in lines]
    short = next((number for number, row in enumerate(rows) if len(row) <= index), None)
    if short is not None:
        raise ValueError(f"line {short} has {len(rows[short])} columns; column {index} is asked for")
    return [parse(row[index]) for row in rows]


def _from_file_shape(op: Operation) -> list[TensorShape]:
    op.inputs[1].shape.assert_has_rank(0)
    if min(op.attrs["key_index"], op.attrs["value_index"]) < WHOLE_LINE:
        raise ValueError("key_index and value_index are numbers of columns, WHOLE_LINE or LINE_NUMBER")
    return []


INITIALIZE_TABLE_FROM_TEXT_FILE = register(
    OpDef(
        name="InitializeTableFromTextFile",
        inputs=("table_handle: resource", "filename: string"),
        outputs=(),
        attrs=("key_index", "value_index", "vocab_size", "delimiter"),
        shape=_from_file_shape,
        kernels=on_cpu(_initialize_from_file_kernel),
        stateful=True,
        access="update",
        reach=Reach("files", path=1),
    )
)


def initialize_table_once(initialize: Operation) -> Operation:
    """An operation that does what `initialize` does, and nothing where the table has contents already.

    A step may run it again and again. So it neither reads the file again nor compares contents.

    Args:
        initialize: An operation of `initialize_table` or `initialize_table_from_text_file`.
    """
    definition = ONCE[initialize.type]
    attrs = {name: initialize.attrs[name] for name in definition.attrs}
    once: Operation = use_resource(definition, *initialize.inputs, name=f"{initialize.name}/once", **attrs)
    return once


def _initialize_table_once_kernel(ctx: KernelContext, table: Table, keys: Array, values: Array) -> None:
    if not table.is_ready:
        _initialize_table_kernel(ctx, table, keys, values)


def _initialize_from_file_once_kernel(ctx: KernelContext, table: Table, filename: Array) -> None:
    if not table.is_ready:
        _initialize_from_file_kernel(ctx, table, filename)


ONCE: Final = {
    definition.name: register(replace(definition, name=f"{definition.name}Once", kernels=on_cpu(kernel)))
    for definition, kernel in (
        (INITIALIZE_TABLE, _initialize_table_once_kernel),
        (INITIALIZE_TABLE_FROM_TEXT_FILE, _initialize_from_file_once_kernel),
    )
}


def _insert_kernel(ctx: KernelContext, table: Table, keys: Array, values: Array) -> None:
    keys, values = _array(keys), _array(values)
    _check_mutable(table)
    _check_dtypes(table, keys, values)
    table.insert(keys, values)


def _check_mutable(table: Table) -> None:
    if not table.is_mutable:
        raise FailedPreconditionError(f"table {table.name!r} does not change: use a MutableHashTable")


LOOKUP_TABLE_INSERT = register(
    OpDef(
        name="LookupTableInsert",
        inputs=("table_handle: resource", "keys: Tin", "values: Tout"),
        outputs=(),
        types={"Tin": KEYS, "Tout": VALUES},
        shape=no_outputs,
        kernels=on_cpu(_insert_kernel),
        stateful=True,
        access="update",
        keeps_inputs=True,
    )
)


def _remove_kernel(ctx: KernelContext, table: Table, keys: Array) -> None:
    _check_mutable(table)
    table.remove(keys)


LOOKUP_TABLE_REMOVE = register(
    OpDef(
        name="LookupTableRemove",
        inputs=("table_handle: resource", "keys: Tin"),
        outputs=(),
        types={"Tin": KEYS},
        shape=no_outputs,
        kernels=on_cpu(_remove_kernel),
        stateful=True,
        access="update",
    )
)


# -- reading -------------------------------------------------------------------------------------------


def _find_kernel(ctx: KernelContext, table: Table, keys: Array, default: Array) -> Array:
    _check_dtypes(table, _array(keys), _array(default))
    return table.find(keys, default)


def _find_shape(op: Operation) -> list[TensorShape]:
    keys, key_rank = op.inputs[1].shape, op.attrs["key_rank"]
    return [(keys[:-key_rank] if key_rank else keys).concatenate(op.inputs[2].shape)]


LOOKUP_TABLE_FIND = register(
    OpDef(
        name="LookupTableFind",
        inputs=("table_handle: resource", "keys: Tin", "default_value: Tout"),
        outputs=("values: Tout",),
        attrs=("key_rank",),
        later={"key_rank": 0},
        types={"Tin": KEYS, "Tout": VALUES},
        shape=_find_shape,
        kernels=on_cpu(_find_kernel),
        stateful=True,
        access="read",
        over_batch=by_row(1),
    )
)


def _size_kernel(ctx: KernelContext, table: Table) -> Array:
    table.check_ready()
    return np.array(len(table.entries), np.int64)


LOOKUP_TABLE_SIZE = register(
    OpDef(
        name="LookupTableSize",
        inputs=("table_handle: resource",),
        outputs=("size: int64",),
        shape=scalar,
        kernels=on_cpu(_size_kernel),
        stateful=True,
        access="read",
        over_batch=by_row(0),
    )
)


def _export_kernel(ctx: KernelContext, table: Table) -> list[Array]:
    return list(table.export())


def _export_shape(op: Operation) -> list[TensorShape]:
    return [TensorShape([None]).concatenate(op.attrs[name]) for name in ("key_shape", "value_shape")]


LOOKUP_TABLE_EXPORT = register(
    OpDef(
        name="LookupTableExport",
        inputs=("table_handle: resource",),
        outputs=("keys: Tkeys", "values: Tvalues"),
        attrs=("key_shape", "value_shape"),
        later={"key_shape": TensorShape([])},
        types={"Tkeys": KEYS, "Tvalues": VALUES},
        shape=_export_shape,
        kernels=on_cpu(_export_kernel),
        stateful=True,
        access="read",
    )
)
