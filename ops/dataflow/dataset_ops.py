"""Datasets as values of the graph: each operation makes a dataset, most of them from other datasets.

`tfray.ops.resources.dataset_values` tells what a dataset is at run time.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from tfray.errors import DataLossError, InvalidArgumentError
from tfray.formats import files
from tfray.formats.tfrecord import TFRecordOptions, records_of
from tfray.framework import dtypes
from tfray.framework.convert import make_array
from tfray.framework.dtypes import DType
from tfray.framework.graph import Operation
from tfray.framework.op_def import Array, Kernel, KernelContext, OpDef, Reach, not_differentiable, on_cpu, register
from tfray.framework.region import Region, ops_within
from tfray.framework.shape_functions import like_input
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.kernels.cpu_threads import thread_count
from tfray.ops.kernels.text import as_string, decoded, octets
from tfray.ops.resources import (
    dataset_batches,
    dataset_file_cache,
    dataset_queries,
    dataset_sources,
    dataset_statistics,
    dataset_threads,
    dataset_transformations,
)
from tfray.ops.resources.dataset_sources import csv_record_pattern, csv_records, slices
from tfray.ops.resources.dataset_values import AUTOTUNE, DatasetValue, Element, ElementFunction, LastingFunction, walked
from tfray.ops.system.script_ops import lookup_function


def _dataset_shape(op: Operation) -> list[TensorShape]:
    return [TensorShape([])]


def _dataset(
    name: str,
    inputs: Sequence[str],
    kernel: Callable[..., DatasetValue],
    attrs: Sequence[str] = (),
    regions: Sequence[str] = (),
    reach: Reach | None = None,
) -> OpDef:
    """Definition of an operation that gives a dataset."""
    return register(
        OpDef(
            name=name,
            inputs=tuple(inputs),
            outputs=("dataset: variant",),
            attrs=(*attrs, *regions, *(["parameters"] if regions else [])),
            regions=tuple(regions),
            defers_regions=True,
            shape=_dataset_shape,
            kernels=on_cpu(Kernel(kernel)),
            gradient=not_differentiable,
            keeps_inputs=True,
            stateful=True,  # never merged with an equal one: each has its own passes
            reach=reach,
        )
    )


_draws: Final[WeakKeyDictionary[Region, bool]] = WeakKeyDictionary()
"""A cache: whether a function has random operations."""


def _function(
    ctx: KernelContext, captures: Sequence[Array], kind: type[ElementFunction] = ElementFunction
) -> ElementFunction:
    region: Region = ctx.attr("function")
    draws = _draws.get(region)
    if draws is None:
        ops = [inner for op in region.get_operations() for inner in ops_within(op)]
        draws = _draws[region] = any("seed2" in op.attrs for op in ops)
    return kind(lambda: ctx.region("function"), tuple(captures), draws, lambda: ctx.region_over_batch("function"))


# -- sources -------------------------------------------------------------------------------------------

TENSORS: Final = _dataset("TensorDataset", ["components: any*"], lambda ctx, *arrays: dataset_sources.Listed([arrays]))

SLICES: Final = _dataset(
    "TensorSliceDataset", ["components: any*"], lambda ctx, *arrays: dataset_sources.Slices(arrays)
)


def _range_kernel(ctx: KernelContext, start: Array, stop: Array, step: Array) -> DatasetValue:
    return dataset_sources.Range(int(start), int(stop), int(step))


RANGE: Final = _dataset("RangeDataset", ["start: int64", "stop: int64", "step: int64"], _range_kernel)


def _generator_kernel(ctx: KernelContext, *arguments: Any) -> DatasetValue:
    types, shapes = ctx.attr("output_types"), ctx.attr("output_shapes")
    token = ctx.attr("token")

    def element(values: Sequence[TensorLike]) -> Element:
        return tuple(map(checked, values, types, shapes))

    return dataset_sources.Generated(lambda: map(element, lookup_function(token)(*arguments)))


def checked(value: TensorLike, dtype: DType, shape: TensorShape) -> Any:
    """A component of an element that Python code gave. Raises `InvalidArgumentError` when it does not fit."""
    try:
        array = make_array(value, dtype)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            "`generator` yielded an element that could not be converted to the expected type. The expected type was "
            f"{dtype.name}, but the yielded element was {value!r}: {error.message}"
        ) from None
    if not shape.is_compatible_with(array.shape):
        raise InvalidArgumentError(
            f"`generator` yielded an element of shape {array.shape} where an element of shape {shape} was expected."
        )
    return array[()] if array.ndim == 0 and dtype is not dtypes.string else array


GENERATOR: Final = _dataset(
    "GeneratorDataset",
    ["arguments: any*"],
    _generator_kernel,
    attrs=("token", "output_types", "output_shapes"),
    reach=Reach("python"),
)
"""``token`` is that of a function which returns an iterable of flat elements."""


def _paths(value: TensorLike) -> list[bytes]:
    return [bytes(path) for path in np.ravel(np.asarray(value, object))]


def _text_kernel(ctx: KernelContext, filenames: Array, compression: Array) -> DatasetValue:
    kind = _as_text(compression)

    def lines(path: bytes) -> Iterator[bytes]:
        with open_decompressed(path, kind) as file:
            for line in file:
                yield line.rstrip(b"\n").removesuffix(b"\r")

    return dataset_sources.Files(_paths(filenames), lines)


_FILES: Final = Reach("files", path=0)

TEXT_LINES: Final = _dataset(
    "TextLineDataset", ["filenames: string", "compression: string"], _text_kernel, reach=_FILES
)


def _csv_kernel(ctx: KernelContext, filenames: Array, compression: Array) -> DatasetValue:
    kind, has_header = _as_text(compression), ctx.attr("header")
    record = csv_record_pattern(octets(ctx.attr("field_delim"))) if ctx.attr("use_quote_delim") else None

    def records(path: bytes) -> Iterator[bytes]:
        with open_decompressed(path, kind) as file:
            found = csv_records(file.read(), record)
        if has_header and next(found, None) is None:
            raise InvalidArgumentError(f"Can't read header of file {os.fsdecode(path)}")
        yield from found

    return dataset_sources.Files(_paths(filenames), records)


CSV_RECORDS: Final = _dataset(
    "CsvRecordDataset",
    ["filenames: string", "compression: string"],
    _csv_kernel,
    ("header", "field_delim", "use_quote_delim"),
    reach=_FILES,
)
"""Records of files of comma-separated values, as they are there. Quoted fields may have line breaks."""


def _as_text(value: TensorLike) -> str:
    return bytes(np.asarray(value, object)[()]).decode()


def open_decompressed(path: bytes, compression: str) -> Any:
    """A file opened for reading, decompressed. `compression` is ``""``, ``"GZIP"`` or ``"ZLIB"``."""
    if compression == "":
        return files.open_file(path)
    contents = files.read_bytes(path)
    try:
        if compression == "GZIP":
            return io.BytesIO(gzip.decompress(contents))
        if compression == "ZLIB":
            return io.BytesIO(zlib.decompress(contents))
    except (zlib.error, OSError, EOFError) as error:
        raise DataLossError(f"{os.fsdecode(path)} is no {compression} file: {error}") from error
    raise InvalidArgumentError(f"compression is {compression!r}, expected '', 'GZIP' or 'ZLIB'")


def _matching_kernel(ctx: KernelContext, patterns: Array) -> Any:
    found = sorted({path for pattern in _paths(patterns) for path in files.glob(pattern)})
    if not found:
        asked = ", ".join(os.fsdecode(pattern) for pattern in _paths(patterns))
        raise InvalidArgumentError(f"No files matched pattern: {asked}")
    names = np.empty(len(found), object)
    names[:] = [os.fsencode(path) for path in found]
    return names


MATCHING: Final = register(
    OpDef(
        name="MatchingDatasetFiles",
        inputs=("patterns: string",),
        outputs=("names: string",),
        shape=lambda op: [TensorShape([None])],
        kernels=on_cpu(_matching_kernel),
        gradient=not_differentiable,
        stateful=True,
        reach=_FILES,
    )
)
"""The names of the files that match patterns, in order; an error when there are none."""


def _tfrecord_kernel(ctx: KernelContext, filenames: Array, compression: Array) -> DatasetValue:
    options = TFRecordOptions(_as_text(compression) or None)

    return dataset_sources.Files(_paths(filenames), lambda path: records_of(path, options))


TF_RECORDS: Final = _dataset(
    "TFRecordDataset", ["filenames: string", "compression: string"], _tfrecord_kernel, reach=_FILES
)


def _fixed_length_kernel(
    ctx: KernelContext, filenames: Array, record: Array, header: Array, footer: Array, compression: Array
) -> DatasetValue:
    size, skipped, left = int(record), int(header), int(footer)
    kind = _as_text(compression)
    if size < 1:
        raise InvalidArgumentError(f"record_bytes is {size}, expected at least 1")

    def records(path: bytes) -> Iterator[bytes]:
        with open_decompressed(path, kind) as file:
            contents = file.read()
        body = len(contents) - skipped - left
        if body < 0 or body % size:
            raise InvalidArgumentError(
                f'Excluding the header ({skipped} bytes) and footer ({left} bytes), input file "{os.fsdecode(path)}" '
                f"has body length {body} bytes, which is not an exact multiple of the record length ({size} bytes)."
            )
        for begin in range(skipped, skipped + body, size):
            yield contents[begin : begin + size]

    return dataset_sources.Files(_paths(filenames), records)


FIXED_LENGTH_RECORDS: Final = _dataset(
    "FixedLengthRecordDataset",
    ["filenames: string", "record_bytes: int64", "header_bytes: int64", "footer_bytes: int64", "compression: string"],
    _fixed_length_kernel,
    reach=_FILES,
)


def _arrow_kernel(ctx: KernelContext, paths: Array) -> DatasetValue:
    names, types = ctx.attr("columns"), ctx.attr("output_types")

    def rows_of(batch: Any) -> Iterator[Element]:
        yield from slices(
            [arrow_column(batch.column(name), dtype, name) for name, dtype in zip(names, types, strict=True)]
        )

    def rows() -> Iterator[Element]:
        source = open_arrow([os.fsdecode(path) for path in _paths(paths)], ctx.attr("format"))
        return chain.from_iterable(map(rows_of, source.to_batches(columns=names)))

    return dataset_sources.Generated(rows)


def open_arrow(paths: Sequence[str], file_format: str) -> Any:
    """The `pyarrow.dataset.Dataset` of files on a local or any Arrow filesystem.

    Raises:
        InvalidArgumentError: pyarrow is not installed, or the files are not what they should be.
    """
    try:
        import pyarrow.dataset
    except ImportError:
        raise InvalidArgumentError("reading Parquet and Arrow files needs pyarrow: pip install pyarrow") from None
    import pyarrow as pa

    try:
        return pyarrow.dataset.dataset(paths[0] if len(paths) == 1 else list(paths), format=file_format)
    except (pa.ArrowException, OSError) as error:
        raise InvalidArgumentError(f"cannot read {', '.join(paths)} as {file_format}: {error}") from error


def arrow_column(column: Any, dtype: DType, name: str) -> np.ndarray[Any, Any]:
    """A column of a record batch as an array. Lists of one length become rows.

    Raises:
        InvalidArgumentError: It has missing values, or lists of several lengths.
    """
    import pyarrow as pa

    if column.null_count:
        raise InvalidArgumentError(f"column {name!r} has {column.null_count} missing values: fill or drop them first")
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        lengths = np.unique(np.diff(column.offsets.to_numpy()))
        if len(lengths) > 1:
            raise InvalidArgumentError(f"column {name!r} has lists of {lengths.tolist()} elements: all must have one")
        return arrow_column(column.flatten(), dtype, name).reshape(len(column), -1)
    if pa.types.is_fixed_size_list(column.type):
        return arrow_column(column.flatten(), dtype, name).reshape(len(column), column.type.list_size)
    if dtype is dtypes.string:
        values = np.empty(len(column), object)
        values[:] = [value if isinstance(value, bytes) else value.encode() for value in column.to_pylist()]
        return values
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype.numpy)


ARROW: Final = _dataset(
    "ArrowDataset", ["paths: string"], _arrow_kernel, ("format", "columns", "output_types"), reach=_FILES
)


def _sql_kernel(ctx: KernelContext, driver: Array, path: Array, query: Array) -> DatasetValue:
    types = ctx.attr("output_types")
    dataset_queries.check_driver(_as_text(driver))
    file, text = _as_text(path), _as_text(query)
    return dataset_sources.Generated(lambda: dataset_queries.query_rows(file, text, types))


SQL: Final = _dataset(
    "SqlDataset",
    ["driver_name: string", "data_source_name: string", "query: string"],
    _sql_kernel,
    ("output_types",),
    reach=_FILES,
)

# -- element by element --------------------------------------------------------------------------------


def _threads(calls: Array) -> int:
    """How many elements to compute at once."""
    if calls < 1 and calls != AUTOTUNE:
        raise InvalidArgumentError(f"num_parallel_calls is {int(calls)}, expected 1 or more, or AUTOTUNE")
    return thread_count() if calls == AUTOTUNE else int(calls)


def _map_kernel(ctx: KernelContext, parent: DatasetValue, calls: Array, *captures: Any) -> DatasetValue:
    return _mapped(parent, _function(ctx, captures), calls)


def _mapped(parent: DatasetValue, function: ElementFunction, calls: Array) -> DatasetValue:
    workers = _threads(calls)
    if workers > 1:
        return dataset_threads.ParallelMapped(parent, function, workers)
    return dataset_transformations.Mapped(parent, function)


MAP: Final = _dataset(
    "MapDataset", ["parent: variant", "num_parallel_calls: int64", "captures: any*"], _map_kernel, regions=("function",)
)


def _filter_kernel(ctx: KernelContext, parent: DatasetValue, *captures: Any) -> DatasetValue:
    return dataset_transformations.Filtered(parent, _function(ctx, captures))


FILTER: Final = _dataset("FilterDataset", ["parent: variant", "captures: any*"], _filter_kernel, regions=("function",))


def _take_while_kernel(ctx: KernelContext, parent: DatasetValue, *captures: Any) -> DatasetValue:
    return dataset_transformations.TakenWhile(parent, _function(ctx, captures))


TAKE_WHILE: Final = _dataset(
    "TakeWhileDataset", ["parent: variant", "captures: any*"], _take_while_kernel, regions=("function",)
)


def _scan_kernel(ctx: KernelContext, parent: DatasetValue, *inputs: Array) -> DatasetValue:
    count = ctx.attr("states")
    return dataset_transformations.Scanned(parent, inputs[:count], _function(ctx, inputs[count:]))


SCAN: Final = _dataset("ScanDataset", ["parent: variant", "inputs: any*"], _scan_kernel, ("states",), ("function",))
"""``state, element = function(*state, *element)``; the first states are the first inputs."""


def _interleave_kernel(
    ctx: KernelContext, parent: DatasetValue, cycle: Array, block: Array, calls: Array, *captures: Any
) -> DatasetValue:
    _threads(calls)
    if cycle < 1 and cycle != AUTOTUNE:
        raise InvalidArgumentError(f"cycle_length is {int(cycle)}, expected 1 or more, or AUTOTUNE")
    if block < 1:
        raise InvalidArgumentError(f"block_length is {int(block)}, expected 1 or more")
    cycle_length = thread_count() if cycle == AUTOTUNE else int(cycle)
    return dataset_transformations.Interleaved(parent, _function(ctx, captures), cycle_length, int(block))


INTERLEAVE: Final = _dataset(
    "InterleaveDataset",
    [
        "parent: variant",
        "cycle_length: int64",
        "block_length: int64",
        "num_parallel_calls: int64",
        "captures: any*",
    ],
    _interleave_kernel,
    regions=("function",),
)
"""``flat_map`` is the one with a cycle of 1."""


def _zip_kernel(ctx: KernelContext, *parents: DatasetValue) -> DatasetValue:
    slices = [parent for parent in parents if isinstance(parent, dataset_sources.Slices)]
    if len(slices) < len(parents):
        return dataset_transformations.Zipped(parents)
    length = min(parent.length for parent in slices)
    return dataset_sources.Slices([component[:length] for parent in slices for component in parent.components])


ZIP: Final = _dataset("ZipDataset", ["parents: variant*"], _zip_kernel)

CHOOSE: Final = _dataset(
    "ChooseDataset",
    ["choices: variant", "parents: variant*"],
    lambda ctx, choices, *parents: dataset_transformations.Chosen(choices, parents),
)

CONCATENATE: Final = _dataset(
    "ConcatenateDataset", ["parents: variant*"], lambda ctx, *parents: dataset_transformations.Concatenated(parents)
)


def _take_kernel(ctx: KernelContext, parent: DatasetValue, count: Array) -> DatasetValue:
    return parent if int(count) < 0 else dataset_transformations.Taken(parent, int(count))


TAKE: Final = _dataset("TakeDataset", ["parent: variant", "count: int64"], _take_kernel)


def _skip_kernel(ctx: KernelContext, parent: DatasetValue, count: Array) -> DatasetValue:
    return dataset_sources.Listed([]) if int(count) < 0 else dataset_transformations.Skipped(parent, int(count))


SKIP: Final = _dataset("SkipDataset", ["parent: variant", "count: int64"], _skip_kernel)


def _shard_kernel(ctx: KernelContext, parent: DatasetValue, count: Array, index: Array) -> DatasetValue:
    if not 0 <= int(index) < int(count):
        raise InvalidArgumentError(f"shard: index {int(index)} is not one of {int(count)} shards")
    return dataset_transformations.Sharded(parent, int(count), int(index))


SHARD: Final = _dataset("ShardDataset", ["parent: variant", "num_shards: int64", "index: int64"], _shard_kernel)

REPEAT: Final = _dataset(
    "RepeatDataset",
    ["parent: variant", "count: int64"],
    lambda ctx, parent, count: dataset_transformations.Repeated(parent, int(count)),
)


def _shuffle_kernel(ctx: KernelContext, parent: DatasetValue, size: Array, seed: Array, seed2: Array) -> DatasetValue:
    return dataset_transformations.Shuffled(parent, int(size), (int(seed), int(seed2)), ctx.attr("reshuffle"))


SHUFFLE: Final = _dataset(
    "ShuffleDataset",
    ["parent: variant", "buffer_size: int64", "seed: int64", "seed2: int64"],
    _shuffle_kernel,
    ("reshuffle",),
)


def _cache_kernel(ctx: KernelContext, parent: DatasetValue, filename: Array) -> DatasetValue:
    path = _as_text(filename)
    if not path:
        return dataset_transformations.Cached(parent)
    return dataset_file_cache.CachedInFile(parent, path, len(ctx.attr("output_types")))


CACHE: Final = _dataset(
    "CacheDataset",
    ["parent: variant", "filename: string"],
    _cache_kernel,
    ("output_types",),
    reach=Reach("files", path=1),
)

IGNORE_ERRORS: Final = _dataset(
    "IgnoreErrorsDataset",
    ["parent: variant"],
    lambda ctx, parent: dataset_transformations.ErrorsIgnored(parent, ctx.attr("log_warning")),
    ("log_warning",),
)

DISTINCT: Final = _dataset(
    "UniqueDataset", ["parent: variant"], lambda ctx, parent: dataset_transformations.Distinct(parent)
)

SET_STATS_AGGREGATOR: Final = _dataset(
    "SetStatsAggregatorDataset",
    ["parent: variant", "stats_aggregator: resource", "tag: string"],
    lambda ctx, parent, statistics, tag: dataset_statistics.Watched(parent, statistics, decoded(as_string(tag))),
)

LATENCY_STATS: Final = _dataset(
    "LatencyStatsDataset",
    ["parent: variant", "tag: string"],
    lambda ctx, parent, tag: dataset_statistics.Timed(parent, decoded(as_string(tag))),
)

BYTES_PRODUCED_STATS: Final = _dataset(
    "BytesProducedStatsDataset",
    ["parent: variant", "tag: string"],
    lambda ctx, parent, tag: dataset_statistics.Weighed(parent, decoded(as_string(tag))),
)

# -- batches -------------------------------------------------------------------------------------------

BATCH: Final = _dataset(
    "BatchDataset",
    ["parent: variant", "batch_size: int64", "drop_remainder: bool"],
    lambda ctx, parent, size, drop: dataset_batches.Batched(parent, int(size), bool(drop)),
)


def _map_and_batch_kernel(
    ctx: KernelContext, parent: DatasetValue, size: Array, calls: Array, drop: Array, *captures: Any
) -> DatasetValue:
    results = _mapped(parent, _function(ctx, captures, LastingFunction), calls)
    return dataset_batches.Batched(results, int(size), bool(drop), is_whole=True)


MAP_AND_BATCH: Final = _dataset(
    "MapAndBatchDataset",
    ["parent: variant", "batch_size: int64", "num_parallel_calls: int64", "drop_remainder: bool", "captures: any*"],
    _map_and_batch_kernel,
    regions=("function",),
)


def _padded_kernel(ctx: KernelContext, parent: DatasetValue, size: Array, drop: Array, *rest: Any) -> DatasetValue:
    count = len(rest) // 2
    if any((shape < -1).any() for shape in rest[:count]):
        raise InvalidArgumentError("Padded shape must be at least 0, or -1 for the largest size of the batch")
    shapes = [[None if size < 0 else int(size) for size in shape] for shape in rest[:count]]
    return dataset_batches.PaddedBatched(parent, int(size), shapes, rest[count:], bool(drop))


PADDED_BATCH: Final = _dataset(
    "PaddedBatchDataset",
    ["parent: variant", "batch_size: int64", "drop_remainder: bool", "shapes_and_padding: any*"],
    _padded_kernel,
)
"""The padded shape of each component, then what to pad each with."""


def _row_shape_kernel(ctx: KernelContext, sizes: Array, limits: Array) -> Array:
    text = f"{sizes.tolist()} and {[None if limit < 0 else limit for limit in limits.tolist()]}"
    if len(sizes) != len(limits):
        raise InvalidArgumentError(f"the shape of an element is incompatible with the row shape: they are {text}")
    if ((limits >= 0) & (sizes > limits)).any():
        raise DataLossError(f"the shape of an element is larger than the row shape: they are {text}")
    return np.where(limits < 0, sizes, limits)


ROW_SHAPE: Final = register(
    OpDef(
        name="DenseRowShape",
        inputs=("sizes: int64", "limits: int64"),
        outputs=("row_shape: int64",),
        shape=like_input(1),
        kernels=on_cpu(_row_shape_kernel),
        gradient=not_differentiable,
        stateful=True,  # what waits for it only wants its check
    )
)
"""The limits with the sizes in place of those that are -1; an error where a size is larger."""

UNBATCH: Final = _dataset("UnbatchDataset", ["parent: variant"], lambda ctx, parent: dataset_batches.Unbatched(parent))


def _window_kernel(
    ctx: KernelContext, parent: DatasetValue, size: Array, shift: Array, stride: Array, drop: Array
) -> DatasetValue:
    return dataset_batches.Windows(parent, int(size), int(shift), int(stride), bool(drop))


WINDOW: Final = _dataset(
    "WindowDataset",
    ["parent: variant", "size: int64", "shift: int64", "stride: int64", "drop_remainder: bool"],
    _window_kernel,
)


def _group_kernel(ctx: KernelContext, parent: DatasetValue, *captures: Any) -> DatasetValue:
    return dataset_batches.GroupedByWindow(parent, _function(ctx, captures))


GROUP_BY_WINDOW: Final = _dataset(
    "GroupByWindowDataset", ["parent: variant", "captures: any*"], _group_kernel, regions=("function",)
)
"""Elements of the parent begin with their key and the size of its groups."""


def _prefetch_kernel(ctx: KernelContext, parent: DatasetValue, size: Array) -> DatasetValue:
    if size < 0 and size != AUTOTUNE:
        raise InvalidArgumentError(f"prefetch: buffer_size is {int(size)}, expected 0 or more, or AUTOTUNE")
    return dataset_threads.Prefetched(parent, int(size))


PREFETCH: Final = _dataset("PrefetchDataset", ["parent: variant", "buffer_size: int64"], _prefetch_kernel)


# -- results -------------------------------------------------------------------------------------------


def _reduce_kernel(ctx: KernelContext, parent: DatasetValue, *inputs: Array) -> tuple[Any, ...]:
    count = ctx.attr("states")
    state, captures = tuple(inputs[:count]), inputs[count:]
    with ctx.region("function") as function, walked(parent, ctx) as elements:
        for element in elements:
            state = function(*state, *element, *captures)
            if ctx.step is not None and ctx.step.may_have_ended:
                ctx.step.raise_if_ended()
    return state


def _state_shapes(op: Operation) -> list[TensorShape]:
    return list(op.attrs["output_shapes"])


REDUCE: Final = register(
    OpDef(
        name="ReduceDataset",
        inputs=("parent: variant", "inputs: any*"),
        outputs=("state: output_types*",),
        attrs=("function", "parameters", "states", "output_types", "output_shapes"),
        regions=("function",),
        shape=_state_shapes,
        kernels=on_cpu(_reduce_kernel),
        gradient=not_differentiable,
        uses_step=True,
        keeps_inputs=True,
        stateful=True,
    )
)
"""The last state of ``state = function(*state, *element)``; the first ones are the first inputs."""
