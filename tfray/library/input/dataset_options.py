"""Options of datasets. They say how TensorFlow is to run a pipeline; none changes the elements, here or there.

Those of `StatsOptions` have an effect here too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.ops.dataflow import dataset_ops
from tfray.ops.dataflow.dataset_statistics_ops import stats_aggregator_handle, stats_aggregator_summary


class Option:
    """A value of an `OptionsBase`, whose type is checked when it is set.

    Args:
        name: What it is called; the name under which it stands in its class when None.
        ty: Its type, or a tuple of types.
        docstring: What it is for.
        default_factory: Makes the value of an option that was not set.
    """

    def __init__(
        self,
        name: str | None,
        ty: type | tuple[type, ...],
        docstring: str,
        default_factory: Callable[[], Any] = lambda: None,
    ) -> None:
        self.name, self.ty, self.default_factory = name, ty, default_factory
        self.__doc__ = docstring

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name

    def __get__(self, options: OptionsBase | None, owner: type | None = None) -> Any:
        if options is None:
            return self
        if self.name not in options._options:
            options._options[str(self.name)] = self.default_factory()
        return options._options[str(self.name)]

    def __set__(self, options: OptionsBase, value: Any) -> None:
        if not isinstance(value, self.ty):
            raise TypeError(f'Property "{self.name}" must be of type {self.ty}, got: {value!r} (type: {type(value)})')
        options._options[str(self.name)] = value


class OptionsBase:
    """A set of named values, each an `Option` of the class; any other name is an AttributeError."""

    _options: dict[str, Any]

    def __init__(self) -> None:
        object.__setattr__(self, "_options", {})

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(name for name in dir(cls) if isinstance(getattr(cls, name, None), Option))

    def __getattr__(self, name: str) -> Any:
        there = "" if name.startswith("__") else f"; there are {', '.join(self._names())}"
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{there}")

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(type(self), name):
            raise AttributeError(
                f"Cannot set the property {name} on {type(self).__name__}; there are {', '.join(self._names())}"
            )
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OptionsBase) or not isinstance(other, type(self)):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._options | other._options)

    def __hash__(self) -> int:
        return hash(type(self))


def merge_options(*options_list: Any) -> Any:
    """One set of options with what several set.

    Args:
        *options_list: The sets, of one type. An option of one that is a set itself is merged in the same way.

    Raises:
        TypeError: They are no options, or of several types.
        ValueError: Two have other values for an option, neither of which is its default; or there is no set.
    """
    if not options_list:
        raise ValueError("merge_options: At least one options should be provided")
    kind = type(options_list[0])
    if not issubclass(kind, OptionsBase):
        raise TypeError(f"merge_options: The inputs should inherit from OptionsBase, not {options_list[0]!r}")
    merged, untouched = kind(), kind()
    for options in options_list:
        if not isinstance(options, kind):
            raise TypeError(f"Incompatible options type: {type(options)} vs {kind}")
        for name in list(options._options):
            ours, theirs, default = (getattr(each, name) for each in (merged, options, untouched))
            if theirs in (default, ours):
                continue
            if isinstance(ours, OptionsBase):
                setattr(merged, name, merge_options(ours, theirs))
            elif ours == default:
                setattr(merged, name, theirs)
            else:
                raise ValueError(f"Cannot merge incompatible values ({ours} and {theirs}) of option: {name}")
    return merged


def _option(ty: type, docstring: str, default: Any = None) -> Any:
    """An option that begins with a set of options of its own where `ty` is such a set, else with `default`."""
    return Option(None, ty, docstring, ty if issubclass(ty, OptionsBase) else lambda: default)


class MapVectorizationOptions(OptionsBase):
    """Whether functions are computed for many elements at once; here they are wherever their operations allow it."""

    enabled = _option(bool, "Whether TensorFlow tries it.")
    use_choose_fastest = _option(bool, "Whether it keeps what is faster.")


class OptimizationOptions(OptionsBase):
    """Which rewritings of pipelines TensorFlow makes; accepted for TensorFlow 1's sake."""

    apply_default_optimizations = _option(bool, "The usual rewritings.")
    autotune = _option(bool, "Sizes of buffers and numbers of threads chosen while it runs.")
    autotune_algorithm = _option(int, "The way of choosing.")
    autotune_buffers = _option(bool, "Sizes of buffers chosen while it runs.")
    autotune_cpu_budget = _option(int, "Processors to share out.")
    filter_fusion = _option(bool, "One filter for several.")
    filter_with_random_uniform_fusion = _option(bool, "One step for a filter by random numbers and these.")
    hoist_random_uniform = _option(bool, "Random numbers drawn outside of functions.")
    map_and_batch_fusion = _option(bool, "One step for a map and a batch.")
    map_and_filter_fusion = _option(bool, "One step for a map and a filter.")
    map_fusion = _option(bool, "One map for several.")
    map_parallelization = _option(bool, "Maps that run on several threads.")
    map_vectorization = _option(MapVectorizationOptions, "Functions of many elements at once.")
    noop_elimination = _option(bool, "Leave out what changes nothing.")
    parallel_batch = _option(bool, "Batches made by several threads.")
    shuffle_and_repeat_fusion = _option(bool, "One step for a shuffle and a repetition.")


class ThreadingOptions(OptionsBase):
    """How many threads TensorFlow takes; accepted for TensorFlow 1's sake: see `Dataset.map`."""

    max_intra_op_parallelism = _option(int, "Threads within an operation.")
    private_threadpool_size = _option(int, "Threads of the pipeline alone.")


class DistributeOptions(OptionsBase):
    """How the input of replicas is shared; accepted for TensorFlow 1's sake: see `Dataset.shard`."""

    auto_shard = _option(bool, "Whether each worker takes a part.", True)
    auto_shard_policy = _option(object, "What it takes a part of.")
    num_devices = _option(int, "Number of devices of a worker.")


class StatsAggregator:
    """Numbers about datasets, which their iterators add while steps take elements.

    aggregator = tf.data.experimental.StatsAggregator()
    options = tf.data.Options()
    options.experimental_stats.aggregator = aggregator
    dataset = dataset.apply(tf.data.experimental.latency_stats("latency")).with_options(options)
    iterator = dataset.make_initializable_iterator()
    tf.add_to_collection(tf.GraphKeys.SUMMARIES, aggregator.get_summary())
    """

    def __init__(self) -> None:
        self._resource = stats_aggregator_handle()

    def get_summary(self) -> Tensor:
        """The numbers so far.

        Returns:
            A serialised `tf.Summary` with a histogram for each name, a string scalar.
        """
        return stats_aggregator_summary(self._resource)


class StatsOptions(OptionsBase):
    """Where a dataset tells numbers about itself: those of `latency_stats` and `bytes_produced_stats` in it.

    Attributes:
        aggregator: A `StatsAggregator`; None for none.
        prefix: Stands before the names, with ``::`` after it, unless it is empty.
        counter_prefix: Accepted for TensorFlow 1's sake, as `latency_all_edges`: only what a program asks for is told.
    """

    aggregator = _option(StatsAggregator, "Where the numbers go.")
    counter_prefix = _option(str, "Accepted for TensorFlow 1's sake.", "")
    latency_all_edges = _option(bool, "Accepted for TensorFlow 1's sake.")
    prefix = _option(str, "Stands before the names.", "")


class Options(OptionsBase):
    """Options of a dataset, most of them accepted for TensorFlow 1's sake: none changes the elements.

    So ``experimental_slack`` needs no `Dataset.prefetch` at the end, as it does in TensorFlow.
    """

    experimental_deterministic = _option(bool, "Whether elements keep their order.")
    experimental_distribute = _option(DistributeOptions, "How the input of replicas is shared.")
    experimental_external_state_policy = _option(object, "What is done about state outside of the pipeline.")
    experimental_optimization = _option(OptimizationOptions, "Which rewritings are made.")
    experimental_slack = _option(bool, "Whether the last prefetch leaves devices time.")
    experimental_stateful_whitelist = _option(list, "Operations with state that are let through.")
    experimental_stats = _option(StatsOptions, "Where the dataset tells numbers about itself.")
    experimental_threading = _option(ThreadingOptions, "How many threads there are.")

    def merge(self, options: Options) -> Options:
        """Its values and those of `options`.

        Raises:
            ValueError: Both set an option, to different values.
        """
        merged: Options = merge_options(self, options)
        return merged


def watched(dataset: Tensor, options: Options) -> Tensor:
    """A dataset that tells numbers about itself where `options` want them.

    Args:
        dataset: Variant scalar.
        options: The options.

    Returns:
        A variant scalar; `dataset` itself when there is no aggregator.
    """
    stats = options.experimental_stats
    if stats.aggregator is None:
        return dataset
    inputs = stats.aggregator._resource, convert_to_tensor(stats.prefix, dtypes.string)
    result: Tensor = add_op(dataset_ops.SET_STATS_AGGREGATOR, dataset, *inputs)
    return result
