"""Datasets of tables in files: lines of comma-separated values, results of a query, batches of examples."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tfray.errors import ArgumentError
from tfray.formats import files
from tfray.framework import dtypes, nest
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DType, as_dtype
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.input.dataset_files import TFRecordDataset, flat_names
from tfray.library.input.datasets import AUTOTUNE, Dataset
from tfray.ops.dataflow import dataset_ops
from tfray.ops.strings import decoding_ops, parsing_ops


class CsvDataset(Dataset):
    """The rows of files of comma-separated values, each a tuple of scalars.

    Args:
        filenames: String tensor of any shape.
        record_defaults: One for each column: a dtype for a column that must have a value, or a list or tensor with what
            an empty field means.
        compression_type: ``""``, ``"GZIP"`` or ``"ZLIB"``.
        buffer_size: Accepted for TensorFlow 1's sake.
        header: Whether to leave out the first line of each file.
        field_delim: The character between fields.
        use_quote_delim: Whether ``"`` encloses fields, which may have line breaks then.
        na_value: What else counts as an empty field.
        select_cols: Numbers of the columns to take, ascending; all when None.

    Raises:
        InvalidArgumentError: At run time: as `tf.decode_csv`, or a file has no header.
    """

    def __init__(
        self,
        filenames: TensorLike,
        record_defaults: Sequence[Any],
        compression_type: TensorLike | None = None,
        buffer_size: TensorLike | None = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
    ) -> None:
        form: dict[str, Any] = {"field_delim": field_delim, "use_quote_delim": use_quote_delim}
        defaults = list(record_defaults)

        def columns(record: Tensor) -> tuple[Tensor, ...]:
            given = {**form, "na_value": na_value, "select_cols": select_cols}
            return tuple(decoding_ops.columns_of(record, defaults, **given, of_file=True))

        compression = convert_to_tensor(compression_type or "", dtypes.string)
        records = add_op(dataset_ops.CSV_RECORDS, flat_names(filenames), compression, header=bool(header), **form)
        rows = Dataset(records, dtypes.string, TensorShape([])).map(columns)
        super().__init__(rows._variant_tensor, rows._kinds, rows.output_shapes)


class SqlDataset(Dataset):
    """The rows of a query, each a structure of scalars, read by the standard library's sqlite3.

    Args:
        driver_name: ``"sqlite"``, or a string scalar.
        data_source_name: Path of the database's file, or a string scalar.
        query: The query, or a string scalar.
        output_types: Dtypes of the columns, in the structure of an element. Values become such as SQLite has it: text
            is the number that it begins with, fractions are cut off, and NULL is 0 or empty.

    Raises:
        InvalidArgumentError: Another driver. While running: the file cannot be opened, or the query has another number
            of columns.
        UnknownError: While running: SQLite refuses the query.
    """

    def __init__(
        self, driver_name: TensorLike, data_source_name: TensorLike, query: TensorLike, output_types: Any
    ) -> None:
        if isinstance(driver_name, str) and driver_name != "sqlite":
            raise ArgumentError(f"driver_name is {driver_name!r}, expected 'sqlite'")
        types = nest.map_structure(as_dtype, output_types)
        sources = [convert_to_tensor(value, dtypes.string) for value in (driver_name, data_source_name, query)]
        variant = add_op(dataset_ops.SQL, *sources, output_types=nest.flatten(types))
        super().__init__(variant, types, nest.map_structure(lambda _: TensorShape([]), types))


# -- comma-separated values --------------------------------------------------------------------------------


def make_csv_dataset(
    file_pattern: Any,
    batch_size: TensorLike,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
) -> Dataset:
    """Batches of the rows of files of comma-separated values, each a dictionary of its columns.

    Args:
        file_pattern: Pattern of paths, or several.
        batch_size: Rows in a batch.
        column_names: Names of the columns; the first line of the files when None.
        column_defaults: As `record_defaults` of `CsvDataset`, for the columns that are taken; found in the first rows
            when None.
        label_name: The column that is taken out of the dictionary: elements are then pairs of that and the column.
        select_columns: Names or numbers of the columns to take.
        field_delim: The character between fields.
        use_quote_delim: Whether ``"`` encloses fields.
        na_value: What else counts as an empty field.
        header: Whether files begin with a line of names.
        num_epochs: How often to read the files; without end when None.
        shuffle: Whether to shuffle files and rows.
        shuffle_buffer_size: Rows among which one is drawn.
        shuffle_seed: Determines the order.
        prefetch_buffer_size: Batches to make in advance; `AUTOTUNE` when None.
        num_parallel_reads: Files to read in turn; 1 when None.
        sloppy: Accepted for TensorFlow 1's sake: the order is always the same.
        num_rows_for_inference: Rows in which defaults are found; all when None.
        compression_type: ``""``, ``"GZIP"`` or ``"ZLIB"``.
        ignore_errors: Leave out rows that cannot be read.

    Raises:
        ValueError: No file matches, or names and columns do not fit each other.
    """
    names = _file_names(file_pattern)
    if column_names is None:
        if not header:
            raise ValueError("Cannot infer column names without a header line: give column_names.")
        found = [next(_rows(name, field_delim, use_quote_delim, compression_type), None) for name in names]
        if found[0] is None:
            raise ValueError(f"the header line of {names[0]} cannot be read: the file is empty")
        if any(other != found[0] for other in found):
            raise ValueError("Files have different column names in the header row.")
        column_names = found[0]
    if len(column_names) != len(set(column_names)):
        raise ValueError("Cannot have duplicate column names.")
    chosen = None if select_columns is None else _chosen_columns(select_columns, column_names)
    if column_defaults is None:
        indices = range(len(column_names)) if chosen is None else chosen
        column_defaults = _found_defaults(
            (
                row
                for name in names
                for number, row in enumerate(_rows(name, field_delim, use_quote_delim, compression_type))
                if number or not header
            ),
            len(column_names),
            list(indices),
            na_value,
            num_rows_for_inference,
        )
    if chosen is not None:
        if len(column_defaults) != len(chosen):
            raise ValueError("If specified, column_defaults and select_columns must have same length.")
        column_names = [column_names[index] for index in chosen]
    if label_name is not None and label_name not in column_names:
        raise ValueError(f"`label_name` {label_name!r} must be one of the columns {list(column_names)}.")
    defaults, columns = list(column_defaults), list(column_names)

    def rows(name: Tensor) -> Dataset:
        dataset: Dataset = CsvDataset(
            name, defaults, compression_type, None, header, field_delim, use_quote_delim, na_value, chosen
        )
        return dataset._like(dataset_ops.IGNORE_ERRORS, log_warning=False) if ignore_errors else dataset

    def named(*values: Tensor) -> Any:
        features = dict(zip(columns, values, strict=True))
        return features if label_name is None else (features, features.pop(label_name))

    sources = Dataset.from_tensor_slices(names)
    if shuffle:
        sources = sources.shuffle(len(names), shuffle_seed)
    dataset = _shuffled(
        sources.interleave(rows, num_parallel_reads or 1), num_epochs, shuffle, shuffle_buffer_size, shuffle_seed
    )
    batches = dataset.batch(batch_size, drop_remainder=num_epochs is None).map(named)
    return batches.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _file_names(file_pattern: Any) -> list[str]:
    patterns = list(file_pattern) if isinstance(file_pattern, (list, tuple)) else [file_pattern]
    if not patterns:
        raise ValueError("File pattern is empty.")
    names = sorted(name for pattern in patterns for name in files.glob(pattern))
    if not names:
        raise ValueError(f"No files match {file_pattern}.")
    return names


def _rows(name: str, delimiter: str, quotes: bool, compression: str | None) -> Iterator[list[str]]:
    """The rows of a file, the first one included."""
    if compression not in (None, "", "GZIP"):
        raise ValueError(f"columns are not found in files of compression_type {compression!r}: give their defaults")
    contents = files.read_bytes(name)
    text = (gzip.decompress(contents) if compression == "GZIP" else contents).decode()
    return csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    )


def _chosen_columns(select_columns: Sequence[Any], names: Sequence[str]) -> list[int]:
    indices = []
    for column in select_columns:
        if isinstance(column, int) and not 0 <= column < len(names):
            raise ValueError(f"Column index {column} specified in select_columns out of valid range.")
        if not isinstance(column, int) and column not in names:
            raise ValueError(f"Value {column!r} specified in select_columns not a valid column index or name.")
        indices.append(column if isinstance(column, int) else list(names).index(column))
    if len(set(indices)) != len(indices):
        raise ValueError("select_columns contains duplicate columns")
    return sorted(indices)


_GUESSES: tuple[DType, ...] = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string)
"""Dtypes of columns, the narrowest first."""


def _found_defaults(
    rows: Iterator[list[str]], width: int, columns: Sequence[int], na_value: str, most: int | None
) -> list[list[Any]]:
    """A default for each column, of the narrowest dtype that all its values in the first rows have."""
    guesses: list[int | None] = [None] * len(columns)
    for number, row in enumerate(rows):
        if most is not None and number >= most:
            break
        if len(row) != width:
            raise ValueError(f"Problem inferring types: a CSV row has {len(row)} fields, expected {width}.")
        for place, column in enumerate(columns):
            if row[column] not in ("", na_value):
                guesses[place] = next(
                    guess for guess in range(guesses[place] or 0, len(_GUESSES)) if _reads(row[column], _GUESSES[guess])
                )
    kinds = [dtypes.string if guess is None else _GUESSES[guess] for guess in guesses]
    return [np.array([b"" if kind is dtypes.string else 0], kind.numpy) for kind in kinds]  # type: ignore[misc]


def _reads(text: str, dtype: DType) -> bool:
    if dtype is dtypes.string:
        return True
    try:
        value = int(text) if dtype.is_integer else float(text)
    except ValueError:
        return False
    if dtype.is_integer or dtype is dtypes.float32:
        return np.asarray(dtype.min).item() <= value <= np.asarray(dtype.max).item() or value != value
    return True


def _shuffled(dataset: Dataset, epochs: int | None, shuffle: bool, size: int, seed: int | None) -> Dataset:
    if shuffle:
        dataset = dataset.shuffle(size, seed)
    return dataset if epochs == 1 else dataset.repeat(epochs)


# -- examples ----------------------------------------------------------------------------------------------


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: TensorLike,
    features: dict[str, Any],
    reader: Any = TFRecordDataset,
    label_key: str | None = None,
    reader_args: Sequence[Any] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Batches of parsed ``Example``s of files.

    Args:
        file_pattern: Pattern of paths, or several.
        batch_size: Examples in a batch.
        features: As for `tf.parse_example`.
        reader: Function of a path that returns a dataset of strings.
        label_key: The feature that is taken out: elements are then pairs of the others and of it.
        reader_args: Further arguments of `reader`.
        num_epochs: How often to read the files; without end when None.
        shuffle: Whether to shuffle files and examples.
        shuffle_buffer_size: Examples among which one is drawn.
        shuffle_seed: Determines the order.
        prefetch_buffer_size: Batches to make in advance; `AUTOTUNE` when None.
        reader_num_threads: Files to read in turn; 1 when None.
        parser_num_threads: Batches to parse at once; 2 when None.
        sloppy_ordering: Accepted for TensorFlow 1's sake: the order is always the same.
        drop_final_batch: Leave out a last batch that is not full.

    Raises:
        ValueError: `label_key` is no feature.
        TypeError: `reader` gives no dataset.
    """
    if label_key and label_key not in features:
        raise ValueError(f"The `label_key` provided ({label_key!r}) must be one of the `features` keys.")

    if hasattr(reader, "read_up_to"):
        raise TypeError(
            "The `reader` argument must return a `Dataset` object. `tf.ReaderBase` subclasses are not supported. For "
            "example, pass `tf.data.TFRecordDataset` instead of `tf.TFRecordReader`."
        )

    def parsed(batch: Tensor) -> Any:
        found = parsing_ops.parse_example(batch, features)
        return (found, found.pop(label_key)) if label_key else found

    names = Dataset.list_files(file_pattern, shuffle, shuffle_seed)
    records = names.interleave(lambda name: reader(name, *(reader_args or ())), reader_num_threads or 1)
    if records.output_types == (dtypes.string, dtypes.string):
        records = records.map(lambda _, value: value)
    records = _shuffled(records, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)
    batches = records.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    return batches.map(parsed, parser_num_threads or 2).prefetch(
        AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size
    )
