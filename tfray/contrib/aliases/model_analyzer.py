"""``tf.contrib.tfprof.model_analyzer``: `tf.profiler.profile`, and options for it."""

from collections.abc import Mapping
from typing import Any, Final

from tfray.formats.step_stats import RunMetadata
from tfray.framework.graph import Graph
from tfray.library.inspect.profiler import ProfileNode, ProfileOptionBuilder, profile

__all__ = [
    "FLOAT_OPS_OPTIONS",
    "PRINT_ALL_TIMING_MEMORY",
    "TRAINABLE_VARS_PARAMS_STAT_OPTIONS",
    "print_model_analysis",
]

FLOAT_OPS_OPTIONS: Final = ProfileOptionBuilder.float_operation()
PRINT_ALL_TIMING_MEMORY: Final = ProfileOptionBuilder.time_and_memory()
TRAINABLE_VARS_PARAMS_STAT_OPTIONS: Final = ProfileOptionBuilder.trainable_variables_parameter()


def print_model_analysis(
    graph: Graph,
    run_meta: RunMetadata | None = None,
    op_log: object = None,
    tfprof_cmd: str = "scope",
    tfprof_options: Mapping[str, Any] | None = None,
) -> ProfileNode:
    """Profile a graph, and a step if one was recorded; see `tf.profiler.profile`.

    Args:
        graph: The graph.
        run_meta: What a step recorded.
        op_log: Accepted for TensorFlow 1 programs.
        tfprof_cmd: View: ``scope`` or ``graph`` by name scope, ``op`` or ``code`` by type.
        tfprof_options: Such as `TRAINABLE_VARS_PARAMS_STAT_OPTIONS`; everything is shown without them.

    Returns:
        The root of the profile.
    """
    return profile(graph, run_meta, op_log, tfprof_cmd, tfprof_options)
