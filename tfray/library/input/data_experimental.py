"""`tf.data.experimental`: transformations for `Dataset.apply`, and saving the position of an iterator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

import numpy as np

from tfray.framework import dtypes, nest
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import OpDef
from tfray.framework.random_seed import get_seed
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import as_shape
from tfray.framework.type_aliases import Structure as Nested
from tfray.framework.type_aliases import TensorLike
from tfray.library.input.dataset_functions import TracedFunction
from tfray.library.input.dataset_optional import (
    DatasetStructure,
    Optional,
    OptionalStructure,
    SparseTensorStructure,
    Structure,
    TensorArrayStructure,
    TensorStructure,
    get_next_as_optional,
    get_structure,
    kinds_of,
)
from tfray.library.input.dataset_options import (
    DistributeOptions,
    MapVectorizationOptions,
    OptimizationOptions,
    Options,
    StatsAggregator,
    StatsOptions,
    ThreadingOptions,
)
from tfray.library.input.dataset_structure import batches_of, carriers_in_attrs, count_of, unwrapped
from tfray.library.input.dataset_tables import (
    CsvDataset,
    SqlDataset,
    make_batched_features_dataset,
    make_csv_dataset,
)
from tfray.library.input.datasets import AUTOTUNE as AUTOTUNE
from tfray.library.input.datasets import Dataset
from tfray.library.variables.saveable_resource import SaveableResource
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.shape_ops import cast
from tfray.ops.checks import check_ops
from tfray.ops.dataflow import dataset_ops, dataset_result_ops
from tfray.ops.math import math_ops
from tfray.ops.random import random_ops
from tfray.ops.random.stateless_random_ops import stateless_random_uniform
from tfray.ops.resources.dataset_cardinality import INFINITE, UNKNOWN
from tfray.ops.strings import parsing_ops

Transformation = Callable[[Dataset], Dataset]


class AutoShardPolicy(Enum):
    """How the input of several replicas is shared; accepted for TensorFlow's sake: see `Dataset.shard`."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2


def make_saveable_from_iterator(iterator: Any, external_state_policy: Any = None) -> SaveableResource:
    """The position of an iterator in its dataset, to be saved with the variables.

    Add it to the collection ``saveable_objects``, or to a Saver's ``var_list``. Only the number of elements taken is
    saved, counting errors. Restoring starts the dataset again and skips that many elements. So the dataset must give
    its elements in the same order: give a seed where it shuffles or draws. Its functions run again for the skipped
    elements, and so do their side effects on variables or queues. TensorFlow saves the buffers of a dataset instead.

    Args:
        iterator: A `tf.data.Iterator`. One with an initializer has to be initialised before it is restored.
        external_state_policy: Accepted for TensorFlow's sake.
    """
    return SaveableResource(iterator.name, iterator.handle)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: TensorLike,
    num_parallel_batches: int | None = None,
    drop_remainder: bool = False,
    num_parallel_calls: int | None = None,
) -> Transformation:
    """For `Dataset.apply`: apply a function to each element, and stack `batch_size` results along a new first axis.

    As `Dataset.map` and `Dataset.batch`, but a batch is always made of `batch_size` elements: an error takes the place
    of the whole batch, and the next one begins behind it. A function that raises `OutOfRangeError`, such as that of a
    `tf.py_func` by `StopIteration`, does not end the dataset; it is an error as well.

    Args:
        map_func: See `Dataset.map`.
        batch_size: int64 scalar.
        num_parallel_batches: Accepted for TensorFlow's sake.
        drop_remainder: Leave out a last batch that is not full.
        num_parallel_calls: Elements to compute at once; see `Dataset.map`.

    Returns:
        A function from a dataset to that of batches.

    Raises:
        ValueError: There are two parallel counts.
    """
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise ValueError("The `num_parallel_calls` and `num_parallel_batches` arguments are mutually exclusive.")

    def transformed(dataset: Dataset) -> Dataset:
        traced = TracedFunction(map_func, dataset, "tf.data.experimental.map_and_batch()")
        size, drop, shapes = batches_of(traced.shapes, batch_size, drop_remainder)
        calls = count_of(1 if num_parallel_calls is None else num_parallel_calls, "num_parallel_calls")
        variant = traced.add(dataset_ops.MAP_AND_BATCH, dataset, [size, calls, drop])
        return Dataset(variant, traced.kinds, shapes, [dataset])

    return transformed


def shuffle_and_repeat(
    buffer_size: TensorLike, count: TensorLike | None = None, seed: int | None = None
) -> Transformation:
    """`Dataset.shuffle`, then `Dataset.repeat`, for `Dataset.apply`."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: int,
    block_length: int = 1,
    sloppy: bool = False,
    buffer_output_elements: int | None = None,
    prefetch_input_elements: int | None = None,
) -> Transformation:
    """`Dataset.interleave` with a thread ahead, for `Dataset.apply`; the order is always the same."""
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length).prefetch(AUTOTUNE)


def unbatch() -> Transformation:
    """`Dataset.unbatch`, for `Dataset.apply`."""
    return lambda dataset: dataset.unbatch()


def ignore_errors(log_warning: bool = False) -> Transformation:
    """For `Dataset.apply`: leave out elements that raise an error.

    Args:
        log_warning: Log each error as a warning.
    """
    return lambda dataset: dataset._like(dataset_ops.IGNORE_ERRORS, log_warning=bool(log_warning))


def take_while(predicate: Callable[..., Any]) -> Transformation:
    """The elements before the first for which `predicate` returns a false bool scalar, for `Dataset.apply`."""
    return lambda dataset: dataset._where(dataset_ops.TAKE_WHILE, predicate, "take_while")


def scan(initial_state: Nested, scan_func: Callable[..., Any]) -> Transformation:
    """For `Dataset.apply`: apply a function to each element and a state. The function also returns the next state.

    Args:
        initial_state: A tensor or a nested structure.
        scan_func: Function of a state and an element. It returns a pair: the next state, of the same structure, dtypes
            and shapes, and an element of the result.
    """
    return lambda dataset: dataset._scanned(initial_state, scan_func)


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: TensorLike | None = None,
    window_size_func: Callable[..., Any] | None = None,
) -> Transformation:
    """For `Dataset.apply`: group elements by key, and turn each group into a dataset by a function.

    Args:
        key_func: Function of an element that returns an int64 scalar.
        reduce_func: Function of a key and a dataset of up to `window_size` elements with that key. It returns a
            dataset, whose elements are those of the result.
        window_size: int64 scalar: elements in a group. The last of a key may have fewer.
        window_size_func: Function of a key that returns the size, in place of `window_size`.

    Raises:
        ValueError: There are both sizes, or none.
    """
    if (window_size is None) == (window_size_func is None):
        raise ValueError("group_by_window takes one of window_size and window_size_func")
    size_func = window_size_func or (lambda _: window_size)
    return lambda dataset: dataset._grouped(key_func, reduce_func, size_func)


def sample_from_datasets(
    datasets: Sequence[Dataset], weights: TensorLike | Dataset | None = None, seed: int | None = None
) -> Dataset:
    """Take each element from a dataset chosen at random. Datasets that have ended are left out.

    Args:
        datasets: Datasets with elements of one kind.
        weights: Probability of each, a vector of float32 or float64, or a dataset of such vectors, one for each choice;
            equal when None.
        seed: Determines the choices; None for others in every pass.

    Raises:
        ValueError: There are not as many weights as datasets.
        TypeError: The weights are of another dtype, or the datasets have elements of several kinds.
    """
    if isinstance(weights, (Tensor, Dataset)):
        vectors = weights if isinstance(weights, Dataset) else Dataset.from_tensors(weights).repeat()
        _check_weights(vectors._types[0], vectors._shapes[0].with_rank(1).sizes[0], datasets)

        def chosen(probabilities: Tensor) -> Tensor:
            return random_ops.multinomial(math_ops.log(probabilities)[np.newaxis], 1, seed)[0, 0]

        return choose_from_datasets(datasets, vectors.map(chosen))
    probabilities = np.full(len(datasets), 1 / len(datasets)) if weights is None else np.asarray(weights)
    _check_weights(as_dtype(probabilities.dtype), len(probabilities), datasets)
    # Leave out datasets of weight 0: they are never chosen, so the result would never end.
    datasets = [dataset for dataset, probability in zip(datasets, probabilities, strict=True) if probability]
    probabilities = probabilities[probabilities != 0]

    def choices() -> Any:
        generator = np.random.default_rng(seed)
        while True:
            yield int(generator.choice(len(datasets), p=probabilities / probabilities.sum()))

    return choose_from_datasets(datasets, Dataset.from_generator(choices, "int64", []))


def _check_weights(dtype: Any, count: int | None, datasets: Sequence[Dataset]) -> None:
    if count not in (None, len(datasets)):
        raise ValueError(
            "`weights` must be a vector of length `len(datasets)`: `datasets` and `weights` must have the same length, "
            f"and are {len(datasets)} and {count}"
        )
    if dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(f"`weights` must have type `tf.float32` or `tf.float64`, not {dtype!r}")


def choose_from_datasets(datasets: Sequence[Dataset], choice_dataset: Dataset) -> Dataset:
    """Take each element from the dataset whose index `choice_dataset` gives.

    The choice of a dataset that has ended is skipped.
    """
    return Dataset._chosen(list(datasets), choice_dataset)


def directed_interleave(selector_input: Dataset, data_inputs: Sequence[Dataset]) -> Dataset:
    """`choose_from_datasets` with the arguments of a class that TensorFlow has within."""
    return choose_from_datasets(data_inputs, selector_input)


# -- numbers and pairs -------------------------------------------------------------------------------------


def Counter(start: int = 0, step: int = 1, dtype: DTypeLike = dtypes.int64) -> Dataset:
    """Scalars that count without end, from `start` by `step`."""
    bound = np.iinfo(np.int64).max if step > 0 else np.iinfo(np.int64).min
    numbers = Dataset.range(start, bound, step)
    wanted = as_dtype(dtype)
    return numbers if wanted is dtypes.int64 else numbers.map(lambda number: cast(number, wanted))


class RandomDataset(Dataset):
    """int64 scalars without end, each uniform from 0 to 2**32 - 1; with a seed the same ones in every walk.

    Args:
        seed: The seed; None to take that of the graph, or if it has none to draw others in each walk.
    """

    def __init__(self, seed: int | None = None) -> None:
        of_graph, own = get_seed(seed)

        def number(place: Tensor) -> Tensor:
            if of_graph is None or own is None:
                return random_ops.random_uniform([], 0, 1 << 32, dtypes.int64)
            return stateless_random_uniform([], [of_graph << 31 | own, place], 0, 1 << 32, dtypes.int64)

        drawn = Counter().map(number)
        super().__init__(drawn._variant_tensor, drawn._kinds, drawn.output_shapes)


def enumerate_dataset(start: int = 0) -> Transformation:
    """`Dataset.enumerate`, for `Dataset.apply`."""
    return lambda dataset: dataset.enumerate(start)


def unique() -> Transformation:
    """For `Dataset.apply`: leave out elements that came before. An element is an int32, int64 or string scalar.

    Raises:
        TypeError: Elements are something else.
    """

    def apply(dataset: Dataset) -> Dataset:
        if dataset._types not in ([dtypes.int32], [dtypes.int64], [dtypes.string]):
            raise TypeError(f"unique takes int32, int64 or string elements, not {dataset!r}")
        return dataset._like(dataset_ops.DISTINCT)

    return apply


# -- statistics ------------------------------------------------------------------------------------------


def latency_stats(tag: TensorLike) -> Transformation:
    """For `Dataset.apply`: tell how long each element takes until it is there, in microseconds.

    `StatsOptions` say to whom. Without any nothing is told.

    Args:
        tag: Name of the histogram, a string scalar.

    Raises:
        ValueError: When it is applied: `tag` is no scalar.
    """
    return _told(dataset_ops.LATENCY_STATS, tag)


def bytes_produced_stats(tag: TensorLike) -> Transformation:
    """For `Dataset.apply`: tell how many bytes each element has; a string has its length and 8.

    `StatsOptions` say to whom. Without any nothing is told.

    Args:
        tag: Name of the histogram, a string scalar.

    Raises:
        ValueError: When it is applied: `tag` is no scalar.
    """
    return _told(dataset_ops.BYTES_PRODUCED_STATS, tag)


def _told(definition: OpDef, tag: TensorLike) -> Transformation:
    def apply(dataset: Dataset) -> Dataset:
        name = convert_to_tensor(tag, dtypes.string)
        name.shape.assert_has_rank(0)
        return dataset._like(definition, name)

    return apply


INFINITE_CARDINALITY: Final = INFINITE
"""What `cardinality` says of a dataset without end."""

UNKNOWN_CARDINALITY: Final = UNKNOWN
"""What `cardinality` says when the number of elements is not known before they are made."""


def cardinality(dataset: Dataset) -> Tensor:
    """How many elements a dataset has, without making them: an int64 scalar.

    It is `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY` where there is no number.
    """
    return add_op(dataset_result_ops.CARDINALITY, dataset._variant_tensor)


def get_single_element(dataset: Dataset) -> Any:
    """The element of a dataset that has one, as tensors.

    Raises:
        TypeError: `dataset` is no dataset.
        InvalidArgumentError: While running: it has none, or more than one.
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(f"get_single_element takes a dataset, not {dataset!r}")
    attrs = carriers_in_attrs(dataset._kinds, dataset.output_shapes)
    components = add_op(dataset_result_ops.SINGLE_ELEMENT, dataset._variant_tensor, **attrs)
    return unwrapped(dataset._kinds, dataset.output_shapes, components)


def to_variant(dataset: Dataset) -> Tensor:
    """The tensor that stands for a dataset in the graph."""
    return dataset._variant_tensor


def from_variant(variant: Tensor, structure: Any) -> Dataset:
    """The dataset that a tensor stands for, whose elements have a structure (see `get_structure`)."""
    return Dataset(variant, *kinds_of(structure))


# -- groups and batches ------------------------------------------------------------------------------------


class Reducer:
    """How `group_by_reducer` makes one element of each group.

    Args:
        init_func: Function of a key that returns the first state.
        reduce_func: Function of a state and an element that returns the next state.
        finalize_func: Function of the last state that returns the element.
    """

    def __init__(
        self, init_func: Callable[..., Any], reduce_func: Callable[..., Any], finalize_func: Callable[..., Any]
    ) -> None:
        self.init_func, self.reduce_func, self.finalize_func = init_func, reduce_func, finalize_func


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Transformation:
    """For `Dataset.apply`: group all elements by key, and make one element of each group, in the order of the keys.

    Args:
        key_func: Function of an element that returns an int64 scalar.
        reducer: What makes the elements.
    """

    def reduced(key: Tensor, group: Dataset) -> Dataset:
        state = group.reduce(reducer.init_func(key), reducer.reduce_func)
        return Dataset.from_tensors(
            reducer.finalize_func(*state) if type(state) is tuple else reducer.finalize_func(state)
        )

    return group_by_window(key_func, reduced, np.iinfo(np.int64).max)


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """For `Dataset.apply`: batches of elements of similar length, so that little is padded.

    Args:
        element_length_func: Function of an element that returns its length, an int32 scalar.
        bucket_boundaries: Ascending lengths; a bucket ends below each.
        bucket_batch_sizes: Size of the batches of each bucket: one more than there are boundaries.
        padded_shapes: As for `Dataset.padded_batch`; the shapes of elements when None.
        padding_values: As for `Dataset.padded_batch`.
        pad_to_bucket_boundary: Pad unknown sizes to the bucket's boundary less 1, not to the longest of the batch.
            Elements must then be shorter than the last boundary.
        no_padding: Elements of a bucket have the same shape: do not pad.
        drop_remainder: Leave out last batches that are not full.

    Raises:
        ValueError: There are not as many batch sizes.
    """
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise ValueError(
            f"len(bucket_batch_sizes) must equal len(bucket_boundaries) + 1: it is {len(bucket_batch_sizes)}, and "
            f"len(bucket_boundaries) is {len(bucket_boundaries)}"
        )
    sizes, bounds = np.array(bucket_batch_sizes, np.int64), np.array(bucket_boundaries, np.int64)

    def bucket(*element: Any) -> Tensor:
        length = array_ops.to_int64(element_length_func(*element))
        return math_ops.reduce_sum(array_ops.to_int64(math_ops.greater_equal(length, bounds)))

    def size_of(number: Tensor) -> Tensor:
        return array_ops.gather(sizes, number)

    def batched(number: Tensor, group: Dataset) -> Dataset:
        size = size_of(number)
        if no_padding:
            return group.batch(size, drop_remainder)
        shapes = nest.flatten_up_to(
            group._kinds, group.output_shapes if padded_shapes is None else padded_shapes, False
        )
        if pad_to_bucket_boundary:
            message = "with pad_to_bucket_boundary elements must be shorter than the last of bucket_boundaries"
            check = check_ops.assert_less(number, np.int64(len(bounds)), message=message)
            with get_default_graph().control_dependencies([check]):
                filler = array_ops.gather(bounds, array_ops.identity(number)) - 1
            shapes = [_filled(shape, filler) for shape in shapes]
        packed = nest.pack_sequence_as(group._kinds, shapes)
        return group.padded_batch(size, packed, padding_values, drop_remainder)

    return group_by_window(bucket, batched, window_size_func=size_of)


def _filled(shape: Any, filler: Tensor) -> Any:
    """A padded shape with a number in place of unknown sizes."""
    sizes = [filler if size is None else np.int64(size) for size in as_shape(shape).sizes]
    return array_ops.stack(sizes) if filler in sizes else as_shape(shape)


def dense_to_sparse_batch(batch_size: TensorLike, row_shape: Any) -> Transformation:
    """For `Dataset.apply`: batches of tensors of different sizes as one `SparseTensor` each.

    Args:
        batch_size: int64 scalar: elements in a batch; the last may have fewer.
        row_shape: Shape into which each element fits; None stands for the largest size of the batch.

    Raises:
        InvalidArgumentError: At run time, an element has another rank.
        DataLossError: At run time, an element is larger.
    """

    def apply(dataset: Dataset) -> Dataset:
        if len(dataset._types) != 1 or not isinstance(dataset._types[0], dtypes.DType):
            raise TypeError("dense_to_sparse_batch takes elements of one tensor")
        limits = as_shape(row_shape)
        bounds = np.array([-1 if limit is None else limit for limit in limits.sizes], np.int64)

        def sparse(element: Tensor) -> SparseTensor:
            sizes = array_ops.shape(element, out_type=dtypes.int64)
            row = add_op(dataset_ops.ROW_SHAPE, sizes, bounds)
            with get_default_graph().control_dependencies([row]):
                places = array_ops.where(array_ops.fill(sizes, True))
            places.set_shape([None, limits.rank])
            return SparseTensor(places, array_ops.reshape(element, [-1]), row if None in limits.sizes else bounds)

        return dataset.map(sparse).batch(batch_size)

    return apply


map_and_batch_with_legacy_function = map_and_batch


def rejection_resample(
    class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None, seed: int | None = None
) -> Transformation:
    """For `Dataset.apply`: leave out elements at random, so that classes come as often as wished.

    Args:
        class_func: Function of an element that returns its class, an integer scalar.
        target_dist: How often each class is to come, shape ``[classes]``.
        initial_dist: How often it comes in the dataset; estimated from what was seen when None.
        seed: Determines the choices.

    Returns:
        A function of a dataset, whose result has the elements ``(class, element)``.
    """
    target = np.asarray(target_dist, np.float32)

    def apply(dataset: Dataset) -> Dataset:
        def labelled(*element: Any) -> Any:
            return cast(class_func(*element), dtypes.int32), element if len(element) > 1 else element[0]

        def counted(seen: Tensor, label: Tensor, element: Any) -> Any:
            seen = seen + array_ops.one_hot(label, len(target))
            share = seen / math_ops.reduce_sum(seen) if initial_dist is None else np.asarray(initial_dist, np.float32)
            ratio = target / share
            kept = array_ops.gather(ratio / math_ops.reduce_max(ratio), label)
            return seen, (label, element, kept)

        first = np.full(len(target), 10.0, np.float32)  # as if each class had been seen so often
        chosen = (
            dataset.map(labelled)
            .apply(scan(first, lambda seen, pair: counted(seen, *pair)))
            .filter(lambda label, element, kept: random_ops.random_uniform([], seed=seed) < kept)
        )
        return chosen.map(lambda label, element, kept: (label, element))

    return apply


# -- devices and files -------------------------------------------------------------------------------------


def prefetch_to_device(device: Any, buffer_size: TensorLike | None = None) -> Transformation:
    """`Dataset.prefetch`, for `Dataset.apply`. Elements are made on CPUs, and go to `device` with the step."""
    return lambda dataset: dataset.prefetch(AUTOTUNE if buffer_size is None else buffer_size)


def copy_to_device(target_device: Any, source_device: str = "/cpu:0") -> Transformation:
    """The dataset itself, for `Dataset.apply`: elements go to `target_device` with the step that uses them there."""
    return lambda dataset: dataset


class TFRecordWriter:
    """Writes a dataset into a TFRecord file.

    Args:
        filename: Path of the file, or a string scalar.
        compression_type: ``""``, ``"GZIP"`` or ``"ZLIB"``.
    """

    def __init__(self, filename: TensorLike, compression_type: TensorLike | None = None) -> None:
        self._filename = convert_to_tensor(filename, dtypes.string)
        self._compression = convert_to_tensor(compression_type or "", dtypes.string)

    def write(self, dataset: Dataset) -> Operation:
        """An operation that writes all elements, which are string scalars.

        Raises:
            TypeError: `dataset` is no dataset, or has other elements.
        """
        if not isinstance(dataset, Dataset) or dataset._types != [dtypes.string]:
            raise TypeError(f"TFRecordWriter writes a dataset of string scalars, not {dataset!r}")
        if dataset._shapes[0].rank not in (None, 0):
            raise TypeError(f"TFRecordWriter writes string scalars, not strings of shape {dataset._shapes[0]}")
        inputs = self._filename, self._compression, dataset._variant_tensor
        result: Operation = add_op(dataset_result_ops.WRITE_RECORDS, *inputs)
        return result


def parse_example_dataset(features: dict[str, Any], num_parallel_calls: TensorLike = 1) -> Transformation:
    """For `Dataset.apply`: parse batches of serialised ``Example``s; `features` as for `tf.parse_example`."""
    if features is None:
        raise ValueError("Missing: features was None.")
    return lambda dataset: dataset.map(lambda batch: parsing_ops.parse_example(batch, features), num_parallel_calls)


# fmt: off
__all__ = [
    "AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "AutoShardPolicy", "Counter", "CsvDataset",
    "DatasetStructure", "DistributeOptions", "MapVectorizationOptions", "OptimizationOptions", "Optional",
    "OptionalStructure", "Options", "RandomDataset", "Reducer", "SparseTensorStructure", "SqlDataset",
    "StatsAggregator", "StatsOptions", "Structure", "TFRecordWriter", "TensorArrayStructure", "TensorStructure",
    "ThreadingOptions", "bucket_by_sequence_length", "bytes_produced_stats", "cardinality", "choose_from_datasets",
    "copy_to_device", "dense_to_sparse_batch", "enumerate_dataset", "from_variant", "get_next_as_optional",
    "get_single_element", "get_structure", "group_by_reducer", "group_by_window", "ignore_errors", "latency_stats",
    "make_batched_features_dataset", "make_csv_dataset", "make_saveable_from_iterator", "map_and_batch",
    "map_and_batch_with_legacy_function", "parallel_interleave", "parse_example_dataset", "prefetch_to_device",
    "rejection_resample", "sample_from_datasets", "scan", "shuffle_and_repeat", "take_while", "to_variant",
    "unbatch", "unique",
]
# fmt: on
