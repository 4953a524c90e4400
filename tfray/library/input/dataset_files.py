"""Datasets that read files: lines, records, and tables through pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DType, as_dtype
from tfray.framework.graph import Tensor
from tfray.framework.op_def import OpDef
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.input.dataset_structure import count_of
from tfray.library.input.datasets import Dataset
from tfray.ops.arrays import array_ops
from tfray.ops.dataflow import dataset_ops


class _StringsOfFiles(Dataset):
    """Base of data sets of what files have one after the other."""

    _reading: ClassVar[OpDef]

    def __init__(
        self,
        filenames: TensorLike,
        compression_type: TensorLike | None = None,
        buffer_size: TensorLike | None = None,
        num_parallel_reads: TensorLike | None = None,
    ) -> None:
        variant = _of_files(self._reading, filenames, num_parallel_reads, _text(compression_type))
        super().__init__(variant, dtypes.string, TensorShape([]))


class TextLineDataset(_StringsOfFiles):
    """The lines of text files, without their ends, as string scalars.

    Args:
        filenames: String tensor of any shape, or a dataset of strings.
        compression_type: ``""``, ``"GZIP"`` or ``"ZLIB"``.
        buffer_size: Accepted for TensorFlow 1's sake.
        num_parallel_reads: Files to read in turn; one after the other when None.
    """

    _reading = dataset_ops.TEXT_LINES


class TFRecordDataset(_StringsOfFiles):
    """The records of TFRecord files, as string scalars.

    Args:
        filenames: String tensor of any shape, or a dataset of strings.
        compression_type: ``""``, ``"GZIP"`` or ``"ZLIB"``.
        buffer_size: Accepted for TensorFlow 1's sake.
        num_parallel_reads: Files to read in turn; one after the other when None.
    """

    _reading = dataset_ops.TF_RECORDS


class FixedLengthRecordDataset(Dataset):
    """The records of files of records of one length, as string scalars.

    Args:
        filenames: String tensor of any shape, or a dataset of strings.
        record_bytes: Length of a record.
        header_bytes: Bytes to skip at the beginning of each file.
        footer_bytes: Bytes to leave out at its end.
        buffer_size: Accepted for TensorFlow 1's sake.
        compression_type: ``""``, ``"GZIP"`` or ``"ZLIB"``. Sizes are those of the decompressed contents.
        num_parallel_reads: Files to read in turn; one after the other when None.
    """

    def __init__(
        self,
        filenames: TensorLike,
        record_bytes: TensorLike,
        header_bytes: TensorLike | None = None,
        footer_bytes: TensorLike | None = None,
        buffer_size: TensorLike | None = None,
        compression_type: TensorLike | None = None,
        num_parallel_reads: TensorLike | None = None,
    ) -> None:
        sizes = [
            count_of(0 if size is None else size, "a number of bytes")
            for size in (record_bytes, header_bytes, footer_bytes)
        ]
        definition, compression = dataset_ops.FIXED_LENGTH_RECORDS, _text(compression_type)
        variant = _of_files(definition, filenames, num_parallel_reads, *sizes, compression)
        super().__init__(variant, dtypes.string, TensorShape([]))


class ParquetDataset(Dataset):
    """The rows of Parquet files, each a dictionary of its columns, read through `pyarrow.dataset`.

    tfray's own: TensorFlow 1 has no reader for Parquet.

    Args:
        filenames: A path or a list of paths; folders and the URIs of Arrow's filesystems will do.
        columns: Which columns; all when None.
        file_format: ``parquet``, ``ipc`` (Arrow files), ``csv`` or ``orc``.

    Raises:
        InvalidArgumentError: There is nothing to read there, or a column is not a number, string or list of these.
    """

    def __init__(
        self, filenames: TensorLike, columns: Sequence[str] | None = None, file_format: str = "parquet"
    ) -> None:
        paths = [str(path) for path in (filenames if isinstance(filenames, (list, tuple)) else [filenames])]
        schema = dataset_ops.open_arrow(paths, file_format).schema
        names = list(columns or schema.names)
        kinds = {name: _arrow_kind(schema.field(name).type, name) for name in names}
        types = {name: dtype for name, (dtype, _) in kinds.items()}
        shapes = {name: shape for name, (_, shape) in kinds.items()}
        ordered = sorted(names)  # as flattened dictionaries are
        attrs: dict[str, Any] = {
            "format": file_format,
            "columns": ordered,
            "output_types": [types[name] for name in ordered],
        }
        super().__init__(add_op(dataset_ops.ARROW, convert_to_tensor(paths, dtypes.string), **attrs), types, shapes)


class ArrowDataset(ParquetDataset):
    """The rows of Arrow files (the IPC format), each a dictionary of its columns; see `ParquetDataset`."""

    def __init__(self, filenames: TensorLike, columns: Sequence[str] | None = None) -> None:
        super().__init__(filenames, columns, "ipc")


def _text(compression_type: TensorLike | None) -> Tensor:
    return convert_to_tensor("" if compression_type is None else compression_type, dtypes.string)


def _of_files(definition: OpDef, filenames: Any, parallel_reads: TensorLike | None, *options: Any) -> Tensor:
    """The records of files; those of `parallel_reads` files in turn where that is given."""
    if isinstance(filenames, Dataset):
        if filenames._types != [dtypes.string] or filenames._shapes[0].rank not in (None, 0):
            raise TypeError(f"filenames must be a tensor or a dataset of string scalars, not {filenames!r}")
    elif isinstance(filenames, Tensor) and filenames.dtype is not dtypes.string:
        raise TypeError(f"filenames must be strings, not {filenames!r}")
    if isinstance(filenames, Dataset) or parallel_reads is not None:
        cycle_length = 1 if parallel_reads is None else parallel_reads
        names = filenames if isinstance(filenames, Dataset) else Dataset.from_tensor_slices(flat_names(filenames))
        records = names.interleave(
            lambda name: Dataset(add_op(definition, name, *options), dtypes.string, TensorShape([])), cycle_length
        )
        return records._variant_tensor
    return add_op(definition, _names(filenames), *options)


def _names(filenames: Any) -> Tensor:
    try:
        return convert_to_tensor(filenames, dtypes.string)
    except (TypeError, ValueError) as error:
        raise TypeError(f"filenames must be strings or a dataset of strings, not {filenames!r}: {error}") from error


def flat_names(filenames: TensorLike) -> Tensor:
    """Paths as a vector."""
    return array_ops.reshape(_names(filenames), [-1])


def _arrow_kind(arrow_type: Any, name: str) -> tuple[DType, TensorShape]:
    import pyarrow as pa

    types = pa.types
    if types.is_list(arrow_type) or types.is_large_list(arrow_type):
        return _arrow_kind(arrow_type.value_type, name)[0], TensorShape([None])
    if types.is_fixed_size_list(arrow_type):
        return _arrow_kind(arrow_type.value_type, name)[0], TensorShape([arrow_type.list_size])
    if types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_binary(arrow_type):
        return dtypes.string, TensorShape([])
    try:
        return as_dtype(arrow_type.to_pandas_dtype()), TensorShape([])
    except (TypeError, NotImplementedError):
        raise InvalidArgumentError(
            f"column {name!r} has the type {arrow_type}: only numbers, bools, strings and lists of these become tensors"
        ) from None
