"""Input as a dataset: a sequence of elements that the graph reads one by one.

A dataset describes its elements. An iterator lives on a device and gives them to steps, one by one. An element is a
tensor or a nested structure of tensors. Sparse tensors are passed as strings, which `serialize_sparse` makes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from collections.abc import Iterator as PythonIterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError, OutOfRangeError
from tfray.framework import dtypes, nest
from tfray.framework.convert import add_op, convert_to_tensor, make_array
from tfray.framework.dtypes import DType, as_dtype
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.op_def import OpDef
from tfray.framework.random_seed import get_seed
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.traversal import reachable_backward
from tfray.framework.type_aliases import Sizes, Structure, TensorLike
from tfray.library.input.dataset_functions import TracedFunction
from tfray.library.input.dataset_iterators import Iterator
from tfray.library.input.dataset_options import Options, watched
from tfray.library.input.dataset_structure import (
    Kind,
    SparseKind,
    VariantKind,
    as_element,
    batches_of,
    carrier_of,
    carriers_of,
    check_same_kinds,
    class_of,
    count_of,
    flag_of,
    flat_like,
    have_same_kinds,
    kind_of,
    padded_shape,
    padding_of,
    rest_of,
    shape_of,
    shapes_like,
    stacked_shape,
    static_size,
    structure_of,
    types_of,
    unwrapped,
)
from tfray.ops.control.type_specs import ShapedTypeSpec
from tfray.ops.dataflow import dataset_ops, iterator_ops
from tfray.ops.resources.dataset_values import AUTOTUNE as AUTOTUNE
from tfray.ops.sparse.sparse_transport_ops import serialize_many_sparse
from tfray.ops.system.script_ops import function_token
from tfray.session import Session


class Dataset:
    """A sequence of elements. Made by the functions whose names begin with ``from_``, and from other datasets.

    An element that cannot be made is an error of the step that asks for it; the next step gets the element after it.
    `tf.data.experimental.ignore_errors` leaves such elements out.

    Attributes:
        output_shapes: Static shape of each component, in the structure of an element.
    """

    def __init__(self, variant: Tensor, kinds: Any, shapes: Any, inputs: Sequence[Dataset] = ()) -> None:
        self._variant_tensor = variant
        self._kinds = kinds
        self.output_shapes = shapes
        self._made_from = list(inputs)
        self._options: Options = reduce(Options.merge, (each._options for each in inputs), Options())

    @property
    def output_types(self) -> Any:
        """Dtype of each component, in the structure of an element."""
        return types_of(self._kinds)

    @property
    def output_classes(self) -> Any:
        """The class of each component: `tf.Tensor`, `tf.SparseTensor` or `tf.data.Dataset`."""
        return nest.map_structure(class_of, self._kinds)

    @property
    def element_spec(self) -> Any:
        """A description of each component, such as `tf.TensorSpec`, in the structure of an element."""
        return structure_of(self._kinds, self.output_shapes)

    @property
    def _kind(self) -> DatasetKind:
        return DatasetKind(self._kinds, self.output_shapes)

    @property
    def _types(self) -> list[Any]:
        return nest.flatten(self._kinds)

    @property
    def _shapes(self) -> list[TensorShape]:
        return nest.flatten(self.output_shapes)

    def _like(self, definition: OpDef, *inputs: TensorLike, **attrs: Any) -> Dataset:
        """A dataset made from this one, with elements of the same kind."""
        variant = add_op(definition, self._variant_tensor, *inputs, **attrs)
        return Dataset(variant, self._kinds, self.output_shapes, [self])

    def _inputs(self) -> list[Dataset]:
        """The datasets that it was made from."""
        return list(self._made_from)

    def __repr__(self) -> str:
        return f"<Dataset of {self.output_types!r} {self.output_shapes!r}>"

    # -- sources ---------------------------------------------------------------------------------

    @staticmethod
    def from_tensors(tensors: Structure) -> Dataset:
        """One element: `tensors`, a tensor or a nested structure."""
        structure = as_element(tensors)
        leaves = nest.flatten(structure)
        variant = add_op(dataset_ops.TENSORS, [carrier_of(leaf) for leaf in leaves])
        return _dataset_of(variant, structure, [shape_of(leaf) for leaf in leaves])

    @staticmethod
    def from_tensor_slices(tensors: Structure) -> Dataset:
        """The slices of `tensors`, a tensor or a nested structure, along their first axes, which agree in size.

        Raises:
            ValueError: A tensor is a scalar, their sizes differ, or there is none.
        """
        structure = as_element(tensors)
        leaves = nest.flatten(structure)
        if not leaves:
            raise ValueError("from_tensor_slices needs at least one tensor")
        shapes = [shape_of(leaf) for leaf in leaves]
        _check_first_sizes("from_tensor_slices", shapes)
        variant = add_op(dataset_ops.SLICES, list(map(_sliced_carrier, leaves)))
        return _dataset_of(variant, structure, list(map(rest_of, shapes)))

    @staticmethod
    def from_sparse_tensor_slices(sparse_tensor: SparseTensor) -> Dataset:
        """The rows of a `SparseTensor`, each as a tuple of its indices, its values and its dense shape.

        `from_tensor_slices` gives each row as a `SparseTensor`.

        Raises:
            TypeError: It is no `SparseTensor`.
        """
        if not isinstance(sparse_tensor, SparseTensor):
            raise TypeError(f"from_sparse_tensor_slices takes a SparseTensor, not {sparse_tensor!r}")
        rows = Dataset.from_tensor_slices(sparse_tensor)
        return rows.map(lambda row: (row.indices, row.values, row.dense_shape))

    @staticmethod
    def from_generator(generator: Any, output_types: Any, output_shapes: Any = None, args: Any = None) -> Dataset:
        """The elements of the iterators that `generator` returns.

        Args:
            generator: A function of the arrays `args` that returns an iterable.
            output_types: Dtypes, in the structure of an element.
            output_shapes: Static shapes in the same structure; unknown when None.
            args: Tensors to call it with.
        """
        if not callable(generator):
            raise TypeError(f"from_generator: generator must be callable, and is {generator!r}")
        types = nest.map_structure(as_dtype, output_types)
        shapes = shapes_like(types, output_shapes)

        def flat_elements(*arguments: Any) -> PythonIterator[list[Any]]:
            # Not a generator: that would end with the first error, even if the program's iterator could go on.
            return map(partial(flat_like, types), generator(*arguments))

        attrs: dict[str, Any] = {
            "token": function_token(flat_elements),
            "output_types": nest.flatten(types),
            "output_shapes": nest.flatten(shapes),
        }
        arguments = [convert_to_tensor(value) for value in args or ()]
        return Dataset(add_op(dataset_ops.GENERATOR, arguments, **attrs), types, shapes)

    @staticmethod
    def range(*args: TensorLike) -> Dataset:
        """int64 scalars: ``range(stop)``, ``range(start, stop)`` or ``range(start, stop, step)``."""
        if not 1 <= len(args) <= 3:
            raise ValueError(f"range takes one to three integers, not {args}")
        start, stop, step = {1: (0, *args, 1), 2: (*args, 1), 3: args}[len(args)]
        bounds = [count_of(value, f"range: {value!r}") for value in (start, stop, step)]
        return Dataset(add_op(dataset_ops.RANGE, *bounds), dtypes.int64, TensorShape([]))

    @staticmethod
    def list_files(file_pattern: TensorLike, shuffle: bool | None = None, seed: int | None = None) -> Dataset:
        """The names of the files that match a pattern, or one of several; shuffled unless `shuffle` is False.

        Raises:
            InvalidArgumentError: At run time, nothing matches.
        """
        names = Dataset.from_tensor_slices(add_op(dataset_ops.MATCHING, convert_to_tensor(file_pattern, dtypes.string)))
        return names if shuffle is False else names.shuffle(1 << 20, seed)

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        """Elements of several datasets side by side, in the structure of `datasets`, up to the end of the shortest."""
        if isinstance(datasets, list):
            raise TypeError("zip takes a tuple or dictionary of datasets, not a list")
        parents = nest.flatten(datasets)
        for parent in parents:
            if not isinstance(parent, Dataset):
                raise TypeError(f"zip takes a nested structure of datasets, not {parent!r}")
        types = nest.pack_sequence_as(datasets, [parent._kinds for parent in parents])
        shapes = nest.pack_sequence_as(datasets, [parent.output_shapes for parent in parents])
        return Dataset(add_op(dataset_ops.ZIP, [parent._variant_tensor for parent in parents]), types, shapes, parents)

    @staticmethod
    def from_ray_dataset(dataset: Any, columns: Sequence[str] | None = None, batch_size: int = 1024) -> Dataset:
        """The rows of a Ray dataset, each a dictionary of its columns.

        The dataset is read where the iterator lives, block by block.

        Args:
            dataset: A `ray.data.Dataset` with columns of numbers or strings.
            columns: Which columns; all when None.
            batch_size: Rows to fetch at a time.
        """
        chosen = list(columns or dataset.schema().names)
        sample = next(iter(dataset.limit(1).iter_batches(batch_format="numpy", batch_size=1)))
        examples = {name: make_array(np.asarray(sample[name])) for name in chosen}
        types = {name: as_dtype(array.dtype) for name, array in examples.items()}
        shapes = {name: TensorShape(array.shape[1:]) for name, array in examples.items()}

        def rows() -> PythonIterator[dict[str, Any]]:
            for batch in dataset.iter_batches(batch_format="numpy", batch_size=batch_size):
                for values in zip(*(batch[name] for name in chosen), strict=True):
                    yield dict(zip(chosen, values, strict=True))

        return Dataset.from_generator(rows, types, shapes)

    # -- element by element ----------------------------------------------------------------------

    def map(self, map_func: Callable[..., Any], num_parallel_calls: TensorLike | None = None) -> Dataset:
        """The results of `map_func`. It is called once, to build a part of the graph that runs for each element.

        Everything in that part runs for each element, in the order of the program, even if the results do not depend on
        it: updates of variables, `tf.print`, `tf.Assert`, `tf.py_func`. Variables are read anew for each element.

        Args:
            map_func: Function of an element, its components as arguments when it is a tuple, that returns a tensor
                or a nested structure.
            num_parallel_calls: Elements to compute at once, by threads; `AUTOTUNE` for as many as kernels may use.
                A reader makes short calls itself where that is measured to be faster.
        """
        traced = TracedFunction(map_func, self, "Dataset.map()")
        calls = count_of(1 if num_parallel_calls is None else num_parallel_calls, "num_parallel_calls")
        variant = traced.add(dataset_ops.MAP, self, [calls])
        return Dataset(variant, traced.kinds, traced.shapes, [self])

    def map_with_legacy_function(
        self, map_func: Callable[..., Any], num_parallel_calls: TensorLike | None = None
    ) -> Dataset:
        """The same as `map`."""
        return self.map(map_func, num_parallel_calls)

    def filter_with_legacy_function(self, predicate: Callable[..., Any]) -> Dataset:
        """The same as `filter`."""
        return self.filter(predicate)

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements for which `predicate` returns a true bool scalar."""
        return self._where(dataset_ops.FILTER, predicate, "filter")

    def _where(self, definition: OpDef, predicate: Callable[..., Any], what: str) -> Dataset:
        got = TracedFunction(predicate, self)
        if got.kinds is not dtypes.bool_ or got.shapes.rank not in (None, 0):
            raise ValueError(f"{what}: `predicate` must return a scalar boolean tensor, not {got.kinds!r} {got.shapes}")
        return Dataset(got.add(definition, self), self._kinds, self.output_shapes, [self])

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """The elements of the datasets that `map_func` returns, one dataset after the other."""
        return self.interleave(map_func, cycle_length=1)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: TensorLike = AUTOTUNE,
        block_length: TensorLike = 1,
        num_parallel_calls: TensorLike | None = None,
    ) -> Dataset:
        """The elements of the datasets that `map_func` returns: `block_length` of each of `cycle_length` in turn.

        Args:
            map_func: Function of an element that returns a dataset.
            cycle_length: Datasets that are open at once; `AUTOTUNE` for as many as kernels may use threads.
            block_length: Elements to take of each before the next has its turn.
            num_parallel_calls: Accepted for TensorFlow 1's sake; `prefetch` gives the result a thread.
        """
        traced = TracedFunction(map_func, self)
        made = traced.returned
        if not isinstance(made, Dataset):
            raise TypeError(f"the function must return a dataset, not {made!r}")
        counts = [count_of(cycle_length, "cycle_length"), count_of(block_length, "block_length")]
        calls = count_of(1 if num_parallel_calls is None else num_parallel_calls, "num_parallel_calls")
        variant = traced.add(dataset_ops.INTERLEAVE, self, [*counts, calls])
        return Dataset(variant, made._kinds, made.output_shapes, [self])

    def concatenate(self, dataset: Dataset) -> Dataset:
        """The elements of this dataset, then those of another, which have the same structure and dtypes."""
        check_same_kinds(self._kinds, dataset._kinds, "two datasets to concatenate")
        shapes = [a.most_specific_compatible_shape(b) for a, b in zip(self._shapes, dataset._shapes, strict=True)]
        variant = add_op(dataset_ops.CONCATENATE, [self._variant_tensor, dataset._variant_tensor])
        return Dataset(variant, self._kinds, nest.pack_sequence_as(self._kinds, shapes), [self, dataset])

    @staticmethod
    def _chosen(datasets: Sequence[Dataset], choices: Dataset) -> Dataset:
        if not datasets:
            raise ValueError("there must be at least one dataset to choose from")
        if choices._types != [dtypes.int64] or choices._shapes[0].rank not in (None, 0):
            raise TypeError(f"`choice_dataset` must be a dataset of scalar `tf.int64` tensors, not {choices!r}")
        first = datasets[0]
        for other in datasets:
            if not have_same_kinds(first._kinds, other._kinds):
                raise TypeError(
                    f"All datasets must have the same type and class: there are {first.output_types!r} and "
                    f"{other.output_types!r}"
                )
        shapes = first._shapes
        for other in datasets[1:]:
            shapes = [a.most_specific_compatible_shape(b) for a, b in zip(shapes, other._shapes, strict=True)]
        variant = add_op(dataset_ops.CHOOSE, choices._variant_tensor, [dataset._variant_tensor for dataset in datasets])
        return Dataset(variant, first._kinds, nest.pack_sequence_as(first._kinds, shapes), [choices, *datasets])

    def take(self, count: TensorLike) -> Dataset:
        """The first `count` elements, not counting errors; all when it is -1."""
        return self._like(dataset_ops.TAKE, count_of(count, "count"))

    def skip(self, count: TensorLike) -> Dataset:
        """All but the first `count` elements; none when it is -1. An error among those starts the count again."""
        return self._like(dataset_ops.SKIP, count_of(count, "count"))

    def shard(self, num_shards: TensorLike, index: TensorLike) -> Dataset:
        """Every `num_shards`-th element, starting at `index`. Use it to give each of several replicas its own part."""
        counts = [count_of(num_shards, "num_shards"), count_of(index, "index")]
        return self._like(dataset_ops.SHARD, *counts)

    def repeat(self, count: TensorLike | None = None) -> Dataset:
        """The elements, and errors, `count` times over; without end for None or -1. An empty dataset always ends."""
        return self._like(dataset_ops.REPEAT, count_of(-1 if count is None else count, "count"))

    def shuffle(
        self, buffer_size: TensorLike, seed: int | Tensor | None = None, reshuffle_each_iteration: bool | None = None
    ) -> Dataset:
        """The elements in random order: each is drawn from a buffer of the next `buffer_size` elements.

        Args:
            buffer_size: int64 scalar. For a uniformly random order it must be at least the number of elements.
            seed: With the graph's, determines the order (see `tf.set_random_seed`); an int64 scalar too.
            reshuffle_each_iteration: Whether every pass has an order of its own (default True).
        """
        seeds = (get_seed(0)[0], seed) if isinstance(seed, Tensor) else get_seed(seed)
        numbers = (buffer_size, *(0 if value is None else value for value in seeds))
        counts = [count_of(value, "buffer_size or seed") for value in numbers]
        reshuffle = reshuffle_each_iteration is not False
        return self._like(dataset_ops.SHUFFLE, *counts, reshuffle=reshuffle)

    def cache(self, filename: TensorLike = "") -> Dataset:
        """The elements, kept from the first complete pass of an iterator on. Errors are not kept.

        Args:
            filename: Path of a file to keep them in, for later programs too; a string or a string scalar. They are kept
                in memory, for one iterator, when it is empty. A file of another dataset is not noticed: remove it.
        """
        path = convert_to_tensor(filename, dtypes.string)
        if any(not isinstance(kind, (DType, SparseKind)) for kind in self._types):
            raise TypeError("cache keeps tensors and sparse tensors, not datasets")
        return self._like(
            dataset_ops.CACHE, path, output_types=[dtype for dtype, _ in carriers_of(self._kinds, self.output_shapes)]
        )

    def enumerate(self, start: int = 0) -> Dataset:
        """Pairs of an int64 index and an element."""
        return Dataset.zip((Dataset.range(start, np.iinfo(np.int64).max), self))

    # -- batches ---------------------------------------------------------------------------------

    def batch(self, batch_size: TensorLike, drop_remainder: TensorLike = False) -> Dataset:
        """`batch_size` elements at a time, stacked along a new first axis; the last batch may be smaller.

        An error takes the place of its batch, whose elements up to there are lost. The next batch begins behind it.

        Args:
            batch_size: int64 scalar.
            drop_remainder: Leave out a last batch that is not full.

        Raises:
            ValueError: `batch_size` is below 0, and no batch may be smaller.
        """
        size, drop, shapes = batches_of(self.output_shapes, batch_size, drop_remainder)
        return Dataset(add_op(dataset_ops.BATCH, self._variant_tensor, size, drop), self._kinds, shapes, [self])

    def padded_batch(
        self,
        batch_size: TensorLike,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: TensorLike = False,
    ) -> Dataset:
        """`batch_size` elements at a time, each component padded at its end to one shape and stacked.

        Args:
            batch_size: int64 scalar.
            padded_shapes: In the structure of an element, the shapes; sizes None or -1 are those of the largest in
                the batch. All unknown sizes when None.
            padding_values: In the same structure, scalars to pad with; 0, or the empty string, when None.
            drop_remainder: Leave out a last batch that is not full.
        """
        if any(not isinstance(kind, DType) for kind in self._types):
            raise TypeError(
                "padded_batch takes tensors only: batch takes sparse tensors, tf.sparse_tensor_to_dense makes others"
            )
        given = self.output_shapes if padded_shapes is None else padded_shapes
        flat = _nested_as(self._kinds, given, "padded_shapes")
        padding = (
            [None] * len(flat) if padding_values is None else _nested_as(self._kinds, padding_values, "padding_values")
        )
        if any(isinstance(wanted, TensorShape) and wanted.rank is None for wanted in flat):
            raise ValueError("`padded_shapes` must tell the padded shapes of components of unknown rank")
        padded = [padded_shape(wanted, shape) for wanted, shape in zip(flat, self._shapes, strict=True)]
        values = [padding_of(value, dtype) for value, dtype in zip(padding, self._types, strict=True)]
        size, drop = count_of(batch_size, "batch_size"), flag_of(drop_remainder, "drop_remainder")
        shapes = [tensor for tensor, _ in padded]
        variant = add_op(dataset_ops.PADDED_BATCH, self._variant_tensor, size, drop, [*shapes, *values])
        count = static_size(size) if static_size(drop) else None
        stacked = [stacked_shape(count, shape) for _, shape in padded]
        return Dataset(variant, self._kinds, nest.pack_sequence_as(self._kinds, stacked), [self])

    def unbatch(self) -> Dataset:
        """The slices of each element along the first axis.

        Raises:
            ValueError: A component is a scalar, or their first sizes differ.
        """
        _check_first_sizes("unbatch", self._shapes)
        shapes = nest.map_structure(rest_of, self.output_shapes)
        rows = self
        if any(isinstance(kind, SparseKind) for kind in self._types):
            rows = self.map(lambda *element: tuple(map(_sliced_carrier, nest.flatten(element))))
        return Dataset(add_op(dataset_ops.UNBATCH, rows._variant_tensor), self._kinds, shapes, [self])

    def window(
        self, size: TensorLike, shift: TensorLike | None = None, stride: Sizes = 1, drop_remainder: TensorLike = False
    ) -> Dataset:
        """Windows of `size` elements. A window is a structure of datasets, one for each component.

        Args:
            size: Elements in a window.
            shift: Elements from the beginning of a window to that of the next; `size` when None.
            stride: Distance between neighbouring elements of a window.
            drop_remainder: Leave out windows that are not full.
        """
        counts = [count_of(v, "size, shift or stride") for v in (size, size if shift is None else shift, stride)]
        drop = flag_of(drop_remainder, "drop_remainder")
        variant = add_op(dataset_ops.WINDOW, self._variant_tensor, *counts, drop)
        kinds = [DatasetKind(dtype, shape) for dtype, shape in zip(self._types, self._shapes, strict=True)]
        packed = nest.pack_sequence_as(self._kinds, kinds)
        return Dataset(variant, packed, nest.map_structure(lambda _: TensorShape([]), packed), [self])

    def prefetch(self, buffer_size: TensorLike | None) -> Dataset:
        """The elements. A thread makes up to `buffer_size` of them in advance.

        With `AUTOTUNE`, or None, it begins with 2 and doubles their number, up to 16, whenever they come too late
        although there was no room for more before.

        A reader that hardly works between elements makes them itself where that is measured to be faster.

        Errors keep their places. The thread ends after the last element, or with the iterator or the session.
        """
        size = count_of(AUTOTUNE if buffer_size is None else buffer_size, "buffer_size")
        return self._like(dataset_ops.PREFETCH, size)

    # -- use -------------------------------------------------------------------------------------

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """``transformation_func(self)``."""
        result = transformation_func(self)
        if not isinstance(result, Dataset):
            raise TypeError(f"apply: the function must return a dataset, not {result!r}")
        return result

    def options(self) -> Options:
        """The options that were given to it and to the datasets that it is made from."""
        return self._options

    def with_options(self, options: Options) -> Dataset:
        """The same elements, with options; see `Options`. Raises `ValueError` where one has another value already."""
        if not isinstance(options, Options):
            raise TypeError(f"with_options takes tf.data.Options, not {options!r}")
        result = Dataset(watched(self._variant_tensor, options), self._kinds, self.output_shapes, [self])
        result._options = result._options.merge(options)
        return result

    def reduce(self, initial_state: Structure, reduce_func: Callable[..., Any]) -> Any:
        """Reduce all elements to one state: ``state = reduce_func(state, element)``, from `initial_state` on.

        Each step that runs the result reads the whole dataset, element by element.

        Args:
            initial_state: What an element may be: tensors, sparse tensors, datasets and so on, or a structure of them.
            reduce_func: Function of a state and an element that returns the next state.

        Raises:
            TypeError: The function returns something else than a state.
        """
        initial = as_element(initial_state)
        traced, shapes = self._traced_with_state(reduce_func, initial, lambda kinds, shapes: (kinds, shapes))
        kinds = nest.map_structure(kind_of, initial)
        results = traced.add_reduction(self, _carriers(initial), carriers_of(kinds, shapes))
        return unwrapped(kinds, shapes, results)

    def _traced_with_state(
        self, function: Callable[..., Any], initial: Any, after: Callable[[Any, Any], tuple[Any, Any]]
    ) -> tuple[TracedFunction, Any]:
        """A function of a state and an element, and the static shapes of the state.

        Sizes that the function changes are unknown: it is called again until they are.

        Args:
            function: The function.
            initial: The first state.
            after: Kinds and shapes of the next state, from those of what the function returns.
        """
        kinds = nest.map_structure(kind_of, initial)
        shapes = nest.map_structure(shape_of, initial)
        while True:
            pairs = Dataset(self._variant_tensor, (kinds, self._kinds), (shapes, self.output_shapes))
            traced = TracedFunction(function, pairs)
            kinds_after, shapes_after = after(traced.kinds, traced.shapes)
            if not have_same_kinds(_described(kinds), _described(kinds_after)):
                raise TypeError(
                    "The element types for the new state must match the initial state. Expected "
                    f"{types_of(kinds)!r}, got {types_of(kinds_after)!r}."
                )
            flat = nest.flatten(shapes)
            common = [
                a.most_specific_compatible_shape(b) for a, b in zip(flat, nest.flatten(shapes_after), strict=True)
            ]
            if common == flat:
                return traced, shapes
            shapes = nest.pack_sequence_as(kinds, common)

    def _scanned(self, initial_state: Structure, scan_func: Callable[..., Any]) -> Dataset:
        def state_of(kinds: Any, shapes: Any) -> tuple[Any, Any]:
            if type(kinds) is not tuple or len(kinds) != 2:
                raise TypeError(
                    "The scan function must return a pair comprising the new state and the output value, not "
                    f"{types_of(kinds)!r}."
                )
            return kinds[0], shapes[0]

        initial = as_element(initial_state)
        first = _carriers(initial)
        traced, _ = self._traced_with_state(scan_func, initial, state_of)
        variant = traced.add(dataset_ops.SCAN, self, first, states=len(first))
        return Dataset(variant, traced.kinds[1], traced.shapes[1], [self])

    def _grouped(
        self, key_func: Callable[..., Any], reduce_func: Callable[..., Any], size_func: Callable[[Tensor], Any]
    ) -> Dataset:
        def keyed(*components: Any) -> Any:
            key = _single_int64(key_func(*components), "key_func")
            return key, _single_int64(size_func(key), "window_size_func"), components

        group = DatasetKind(self._kinds, self.output_shapes)
        pair = Dataset(self._variant_tensor, (dtypes.int64, group), (TensorShape([]), TensorShape([])))
        traced = TracedFunction(reduce_func, pair)
        made = traced.returned
        if not isinstance(made, Dataset):
            raise TypeError(f"group_by_window: reduce_func must return a dataset, not {made!r}")
        variant = traced.add(dataset_ops.GROUP_BY_WINDOW, self.map(keyed))
        return Dataset(variant, made._kinds, made.output_shapes, [self])

    def make_one_shot_iterator(self) -> Iterator:
        """An iterator over the elements, which begins by itself, once in a session.

        Raises:
            InvalidArgumentError: The dataset depends on a placeholder: use `make_initializable_iterator`.
            ValueError: The dataset was made in another graph.
        """
        self._check_graph()
        for op in reachable_backward([self._variant_tensor.op]):
            if op.type == "Placeholder":
                raise InvalidArgumentError(
                    f"make_one_shot_iterator: the dataset depends on the placeholder {op.name!r}; "
                    "use make_initializable_iterator, and feed the placeholder when it is initialised"
                )
        handle = add_op(iterator_ops.ITERATOR, name="OneShotIterator", shared_name="")
        return Iterator._of_kinds(handle, self._kinds, self.output_shapes, source=self._variant_tensor)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Iterator:
        """An iterator over the elements, which begins anew whenever its `initializer` runs.

        Args:
            shared_name: Name under which sessions on the same device share it; its own when None.

        Raises:
            ValueError: The dataset was made in another graph.
        """
        self._check_graph()
        handle = add_op(iterator_ops.ITERATOR, shared_name=shared_name or "")
        iterator = Iterator._of_kinds(handle, self._kinds, self.output_shapes)
        iterator._initializer = iterator.make_initializer(self)
        return iterator

    def _check_graph(self) -> None:
        if self._variant_tensor.graph.root is not get_default_graph().root:
            raise ValueError(
                f"{self!r} belongs to another graph than the iterator. Please ensure that all datasets in the pipeline "
                "are created in the same graph as the iterator."
            )

    def __iter__(self) -> PythonIterator[Any]:
        """The elements as NumPy arrays, read in a session of their own in this process."""
        graph = self._variant_tensor.graph
        with graph.as_default():
            element = self.make_one_shot_iterator().get_next()
        # Not `with session`: it would stay the default session in the caller's code between two elements.
        with contextlib.closing(Session("", graph)) as session:
            read = session.make_callable(element)
            while True:
                try:
                    value = read()
                except OutOfRangeError:
                    return
                yield value


@dataclass(frozen=True)
class DatasetKind(VariantKind):
    """A component that is itself a dataset, as `Dataset.window` makes them: kinds and shapes of its elements."""

    dtype: Any
    shape: Any

    @property
    def value_class(self) -> type:
        return Dataset

    def unwrapped(self, carrier: Tensor, shape: TensorShape) -> Dataset:
        return Dataset(carrier, self.dtype, self.shape)

    def spec(self, shape: TensorShape) -> DatasetSpec:
        return DatasetSpec(structure_of(self.dtype, self.shape), shape)


@dataclass(frozen=True, repr=False)
class DatasetSpec(ShapedTypeSpec, shape_field="dataset_shape"):
    """Describes a dataset, or a tensor of datasets.

    Args:
        element_spec: Descriptions of the components of an element, in its structure.
        dataset_shape: Shape of the tensor; that of a scalar is one dataset.
    """

    element_spec: Any
    dataset_shape: Any = ()

    def __post_init__(self) -> None:
        self._normalize(dataset_shape=TensorShape(self.dataset_shape))

    def __hash__(self) -> int:
        return hash((DatasetSpec, tuple(nest.flatten(self.element_spec)), self.dataset_shape))

    @property
    def value_type(self) -> type:
        return Dataset

    @classmethod
    def from_value(cls, value: Dataset) -> DatasetSpec:
        """The description of a dataset. Raises `TypeError` for anything else."""
        if not isinstance(value, Dataset):
            raise TypeError(f"{value!r} is no tf.data.Dataset")
        return cls(value.element_spec)

    _of = from_value


# -- functions of elements -------------------------------------------------------------------------------


def _nested_as(kinds: Any, given: Any, what: str) -> list[Any]:
    """The leaves of an argument that is nested as elements are. Raises `ArgumentError` when it is not."""
    try:
        return nest.flatten_up_to(kinds, given, check_types=False)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{what} must be nested as the elements are: {error}") from error


def _sliced_carrier(leaf: Any) -> Tensor:
    """The tensor whose slices along the first axis stand for the slices of a component."""
    return serialize_many_sparse(leaf) if isinstance(leaf, SparseTensor) else carrier_of(leaf)


def _carriers(element: Any) -> list[Tensor]:
    return list(map(carrier_of, nest.flatten(element)))


def _described(kinds: Any) -> Any:
    """Kinds without what a function may make more exact from state to state: the class and dtype of each."""
    return nest.map_structure(lambda kind: (class_of(kind), kind.dtype) if isinstance(kind, Kind) else kind, kinds)


def _single_int64(value: Any, name: str) -> Tensor:
    try:
        tensor = convert_to_tensor(value, dtypes.int64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{name}` must return a single tf.int64 tensor. {error}") from error
    if tensor.shape.rank not in (None, 0):
        raise ValueError(f"`{name}` must return a single tf.int64 tensor. Got shape={tensor.shape}")
    return tensor


def _check_first_sizes(what: str, shapes: Sequence[TensorShape]) -> None:
    if any(shape.rank == 0 for shape in shapes):
        raise ValueError(f"{what}: a component is a scalar, and has no slices")
    known = {shape.sizes[0] for shape in shapes if shape.rank} - {None}
    if len(known) > 1:
        raise ValueError(f"{what}: the components have first sizes {known}, not one")


def _dataset_of(variant: Tensor, structure: Any, shapes: Sequence[TensorShape]) -> Dataset:
    return Dataset(variant, nest.map_structure(kind_of, structure), nest.pack_sequence_as(structure, shapes))
