"""Statistics of datasets as resources: `tf.data.experimental.StatsAggregator` is built on them."""

from __future__ import annotations

from tfray.framework.graph import Tensor
from tfray.framework.op_def import Array, KernelContext, on_cpu
from tfray.ops.dataflow.resource_operations import make_resource, register_handle, register_use, use_resource
from tfray.ops.resources.dataset_columns import as_string
from tfray.ops.resources.dataset_statistics import Statistics
from tfray.ops.resources.handles import named_resource, require_same


def stats_aggregator_handle(shared_name: str = "", name: str | None = None) -> Tensor:
    """The handle of statistics, a resource scalar.

    Args:
        shared_name: Name under which all sessions on the device share them.
        name: Name of the operation.
    """
    handle: Tensor = make_resource(STATS_AGGREGATOR_HANDLE, name, shared_name)
    return handle


def _handle_kernel(ctx: KernelContext) -> Statistics:
    found: Statistics = named_resource(ctx, lambda name: Statistics())
    require_same(found, ctx, Statistics)
    return found


STATS_AGGREGATOR_HANDLE = register_handle("StatsAggregatorHandle", on_cpu(_handle_kernel), ("container", "shared_name"))


def stats_aggregator_summary(iterator: Tensor, name: str | None = None) -> Tensor:
    """What the statistics have so far.

    Args:
        iterator: What `stats_aggregator_handle` returned, a resource scalar; the name is TensorFlow's.
        name: Name of the operation.

    Returns:
        A serialised `tf.Summary`, a string scalar.
    """
    summary: Tensor = use_resource(STATS_AGGREGATOR_SUMMARY, iterator, name=name)
    return summary


def _summary_kernel(ctx: KernelContext, statistics: Statistics) -> Array:
    return as_string(statistics.summary().SerializeToString())


STATS_AGGREGATOR_SUMMARY = register_use("StatsAggregatorSummary", on_cpu(_summary_kernel), outputs=("summary: string",))
