"""Options of datasets. They say how TensorFlow is to run a pipeline; none changes the elements, here or there.

Those of `StatsOptions` have an effect here too.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.ops.dataflow import dataset_ops
from tfray.ops.dataflow.dataset_statistics_ops import stats_aggregator_handle, stats_aggregator_summary


class _OptionsBase:
    """A set of named values. Names are TensorFlow's; any other is an AttributeError."""

    _types: ClassVar[dict[str, Any]] = {}
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        object.__setattr__(self, "_given", {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._types:
            raise AttributeError(f"{type(self).__name__} has no option {name!r}; there are {', '.join(self._types)}")
        kind = self._types[name]
        if name not in self._given and issubclass(kind, _OptionsBase):
            self._given[name] = kind()
        return self._given.get(name, self._defaults.get(name))

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._types:
            raise AttributeError(
                f"Cannot set the property {name} on {type(self).__name__}; there are {', '.join(self._types)}"
            )
        if value is not None and not isinstance(value, self._types[name]):
            wanted = self._types[name]
            raise TypeError(f'Property "{name}" must be of type {wanted}, got: {value!r} (type: {type(value)})')
        self._given[name] = value

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._types)

    def __hash__(self) -> int:
        return hash(type(self))

    def merge(self, options: Any) -> Any:
        """Its values and those of `options`. Raises `ValueError` where both set an option, to different values."""
        merged = type(self)()
        for name, kind in self._types.items():
            mine, given = self._given.get(name), options._given.get(name)
            if mine is not None and given is not None and issubclass(kind, _OptionsBase):
                merged._given[name] = mine.merge(given)
            elif mine is not None and given is not None and mine != given:
                raise ValueError(f"Cannot merge incompatible values ({mine} and {given}) of option: {name}")
            elif mine is not None or given is not None:
                merged._given[name] = mine if given is None else given
        return merged


class MapVectorizationOptions(_OptionsBase):
    """Whether functions are computed for many elements at once; here they are wherever their operations allow it."""

    _types: ClassVar[dict[str, Any]] = {"enabled": bool, "use_choose_fastest": bool}


class OptimizationOptions(_OptionsBase):
    """Which rewritings of pipelines TensorFlow makes; accepted for TensorFlow 1's sake."""

    _types: ClassVar[dict[str, Any]] = {
        "apply_default_optimizations": bool,
        "autotune": bool,
        "autotune_algorithm": int,
        "autotune_buffers": bool,
        "autotune_cpu_budget": int,
        "filter_fusion": bool,
        "filter_with_random_uniform_fusion": bool,
        "hoist_random_uniform": bool,
        "map_and_batch_fusion": bool,
        "map_and_filter_fusion": bool,
        "map_fusion": bool,
        "map_parallelization": bool,
        "map_vectorization": MapVectorizationOptions,
        "noop_elimination": bool,
        "parallel_batch": bool,
        "shuffle_and_repeat_fusion": bool,
    }


class ThreadingOptions(_OptionsBase):
    """How many threads TensorFlow takes; accepted for TensorFlow 1's sake: see `Dataset.map`."""

    _types: ClassVar[dict[str, Any]] = {"max_intra_op_parallelism": int, "private_threadpool_size": int}


class DistributeOptions(_OptionsBase):
    """How the input of replicas is shared; accepted for TensorFlow 1's sake: see `Dataset.shard`."""

    _types: ClassVar[dict[str, Any]] = {"auto_shard": bool, "auto_shard_policy": object, "num_devices": int}


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


class StatsOptions(_OptionsBase):
    """Where a dataset tells numbers about itself: those of `latency_stats` and `bytes_produced_stats` in it.

    Attributes:
        aggregator: A `StatsAggregator`; None for none.
        prefix: Stands before the names, with ``::`` after it, unless it is empty.
        counter_prefix: Accepted for TensorFlow 1's sake, as `latency_all_edges`: only what a program asks for is told.
    """

    _types: ClassVar[dict[str, Any]] = {
        "aggregator": StatsAggregator,
        "counter_prefix": str,
        "latency_all_edges": bool,
        "prefix": str,
    }
    _defaults: ClassVar[dict[str, Any]] = {"counter_prefix": "", "prefix": ""}


class Options(_OptionsBase):
    """Options of a dataset, most of them accepted for TensorFlow 1's sake: none changes the elements.

    So ``experimental_slack`` needs no `Dataset.prefetch` at the end, as it does in TensorFlow.
    """

    _types: ClassVar[dict[str, Any]] = {
        "experimental_deterministic": bool,
        "experimental_distribute": DistributeOptions,
        "experimental_external_state_policy": object,
        "experimental_optimization": OptimizationOptions,
        "experimental_slack": bool,
        "experimental_stats": StatsOptions,
        "experimental_stateful_whitelist": object,
        "experimental_threading": ThreadingOptions,
    }


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
