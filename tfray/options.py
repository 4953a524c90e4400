"""Options of sessions and steps: TensorFlow 1's messages, with its numbers of fields.

A message takes all values that its fields can hold. What takes options, as `tf.Session` does, refuses those without a
meaning, and warns once of each field that has no effect in tfray. Fields of tfray's own have numbers from 50000 on.
"""

from __future__ import annotations

import functools
import sys
import traceback
import warnings
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from tfray.formats.cluster_spec import ClusterDef
from tfray.formats.graph_proto import AttrValue
from tfray.formats.message import Enumeration, Field, Message
from tfray.framework.arguments import Count, Expectation, NonNegative, OneOf, Range, expectation
from tfray.framework.call_site import is_users

_warned: Final[set[str]] = set()


def _look(options: Any) -> None:
    """Raise `ArgumentError` for a value without a meaning, and warn once of each field that has no effect."""
    for field, value in options.ListFields():
        label = f"{type(options).__name__}.{field.name}"
        if label in _EXPECTED:
            _EXPECTED[label].take(label, value)
        if label in _WITHOUT_EFFECT and label not in _warned:
            _warned.add(label)
            frames = traceback.walk_stack(sys._getframe())
            level = next((level for level, (frame, _) in enumerate(frames, 1) if is_users(frame)), 1)
            message = f"{label} is accepted for TensorFlow 1 programs and changes nothing in tfray"
            warnings.warn(message, stacklevel=level)
        if isinstance(value, (OptimizerOptions, GraphOptions, GPUOptions)):
            _look(value)


# -- graphs ----------------------------------------------------------------------------------------------


class OptimizerOptions(Message):
    """How much a graph is rewritten before it runs.

    Attributes:
        opt_level: `L1` (the default) folds constants, merges equal operations and skips identities;
            `L0` runs every operation as written.
        global_jit_level: Accepted, without effect.
        do_common_subexpression_elimination: Accepted, without effect: `opt_level` decides.
        do_constant_folding: Accepted, without effect: `opt_level` decides.
        do_function_inlining: Accepted, without effect.
        max_folded_constant_in_bytes: Accepted, without effect.
    """

    Level: ClassVar[Enumeration] = Enumeration(__name__, "Level", {"L1": 0, "L0": -1})
    GlobalJitLevel: ClassVar[Enumeration] = Enumeration(
        __name__, "GlobalJitLevel", {"DEFAULT": 0, "OFF": -1, "ON_1": 1, "ON_2": 2}
    )

    FIELDS = (
        Field(1, "do_common_subexpression_elimination", "bool"),
        Field(2, "do_constant_folding", "bool"),
        Field(3, "opt_level", Level),
        Field(4, "do_function_inlining", "bool"),
        Field(5, "global_jit_level", GlobalJitLevel),
        Field(6, "max_folded_constant_in_bytes", "int64"),
    )


class AutoParallelOptions(Message):
    """Of a `RewriterConfig`: whether to run copies of a graph, and how many."""

    FIELDS = (Field(1, "enable", "bool"), Field(2, "num_replicas", "int32"))


class ScopedAllocatorOptions(Message):
    """Of a `RewriterConfig`: the types of operations whose results lie side by side."""

    FIELDS = (Field(1, "enable_op", "string", repeated=True),)


class VerifierConfig(Message):
    """Of a `RewriterConfig`: whether to verify a graph that has been rewritten."""

    Toggle: ClassVar[Enumeration] = Enumeration(__name__, "VerifierToggle", {"DEFAULT": 0, "ON": 1, "OFF": 2})

    FIELDS = (Field(1, "verification_timeout_in_ms", "int64"), Field(2, "structure_verifier", Toggle))


class CustomGraphOptimizer(Message):
    """Of a `RewriterConfig`: a program's own optimizer, and its parameters."""

    FIELDS = (Field(1, "name", "string"), Field(2, "parameter_map", AttrValue, key="string"))


class RewriterConfig(Message):
    """How TensorFlow rewrites graphs: accepted, without effect. tfray has `OptimizerOptions.opt_level` instead."""

    CustomGraphOptimizer: ClassVar[type[Message]] = CustomGraphOptimizer
    Toggle: ClassVar[Enumeration] = Enumeration(__name__, "Toggle", {"DEFAULT": 0, "ON": 1, "OFF": 2, "AGGRESSIVE": 3})
    NumIterationsType: ClassVar[Enumeration] = Enumeration(
        __name__, "NumIterationsType", {"DEFAULT_NUM_ITERS": 0, "ONE": 1, "TWO": 2}
    )
    MemOptType: ClassVar[Enumeration] = Enumeration(
        __name__,
        "MemOptType",
        {
            "DEFAULT_MEM_OPT": 0,
            "NO_MEM_OPT": 1,
            "MANUAL": 2,
            "SWAPPING_HEURISTICS": 4,
            "RECOMPUTATION_HEURISTICS": 5,
            "SCHEDULING_HEURISTICS": 6,
            "HEURISTICS": 3,
        },
    )

    FIELDS = (
        Field(1, "layout_optimizer", Toggle),
        Field(2, "disable_model_pruning", "bool"),
        Field(3, "constant_folding", Toggle),
        Field(4, "memory_optimization", MemOptType),
        Field(5, "auto_parallel", AutoParallelOptions),
        Field(6, "memory_optimizer_target_node_name_scope", "string"),
        Field(7, "arithmetic_optimization", Toggle),
        Field(8, "dependency_optimization", Toggle),
        Field(9, "loop_optimization", Toggle),
        Field(10, "function_optimization", Toggle),
        Field(11, "debug_stripper", Toggle),
        Field(12, "meta_optimizer_iterations", NumIterationsType),
        Field(13, "shape_optimization", Toggle),
        Field(14, "remapping", Toggle),
        Field(15, "scoped_allocator_optimization", Toggle),
        Field(16, "scoped_allocator_opts", ScopedAllocatorOptions),
        Field(17, "min_graph_nodes", "int32"),
        Field(18, "pin_to_host_optimization", Toggle),
        Field(19, "disable_meta_optimizer", "bool"),
        Field(20, "meta_optimizer_timeout_ms", "int64"),
        Field(21, "fail_on_optimizer_errors", "bool"),
        Field(22, "implementation_selector", Toggle),
        Field(23, "auto_mixed_precision", Toggle),
        Field(100, "optimizers", "string", repeated=True),
        Field(200, "custom_optimizers", CustomGraphOptimizer, repeated=True),
        Field(300, "inter_optimizer_verifier_config", VerifierConfig),
        Field(301, "post_optimization_verifier_config", VerifierConfig),
    )


class GraphOptions(Message):
    """Options of graph compilation.

    Attributes:
        optimizer_options: See `OptimizerOptions`.
        infer_shapes: Accepted, without effect: shapes are always inferred.
        place_pruned_graph: Accepted, without effect: graphs are always pruned before they are placed.
        enable_bfloat16_sendrecv: Whether float32 tensors other than scalars go from one task to another in 16 bits
            (white paper, section 5.5): half the bytes, and 8 bits of precision for the receiver.
        build_cost_model: Accepted, without effect.
        timeline_step: Accepted, without effect.
        build_cost_model_after: Accepted, without effect.
        enable_recv_scheduling: Accepted, without effect.
        rewrite_options: Accepted, without effect: see `RewriterConfig`.
    """

    FIELDS = (
        Field(2, "enable_recv_scheduling", "bool"),
        Field(3, "optimizer_options", OptimizerOptions),
        Field(4, "build_cost_model", "int64"),
        Field(5, "infer_shapes", "bool"),
        Field(6, "place_pruned_graph", "bool"),
        Field(7, "enable_bfloat16_sendrecv", "bool"),
        Field(8, "timeline_step", "int32"),
        Field(9, "build_cost_model_after", "int64"),
        Field(10, "rewrite_options", RewriterConfig),
    )


# -- sessions --------------------------------------------------------------------------------------------


class VirtualDevices(Message):
    """Of `GPUOptions`: the devices into which TensorFlow divides a GPU, by their memory."""

    FIELDS = (Field(1, "memory_limit_mb", "float", repeated=True),)


class GPUExperimental(Message):
    """`GPUOptions.experimental`: accepted, without effect."""

    VirtualDevices: ClassVar[type[Message]] = VirtualDevices

    FIELDS = (
        Field(1, "virtual_devices", VirtualDevices, repeated=True),
        Field(2, "use_unified_memory", "bool"),
        Field(3, "num_dev_to_dev_copy_streams", "int32"),
        Field(4, "collective_ring_order", "string"),
        Field(5, "timestamped_allocator", "bool"),
        Field(7, "kernel_tracker_max_interval", "int32"),
        Field(8, "kernel_tracker_max_bytes", "int32"),
        Field(9, "kernel_tracker_max_pending", "int32"),
    )


class GPUOptions(Message):
    """Options of GPU memory. CuPy's memory pool takes what is needed as it is needed, and keeps it.

    Attributes:
        allow_growth: Accepted: it is what happens.
        per_process_gpu_memory_fraction: The share of each GPU's memory that sessions of this process may take, from 0
            to 1; 0 is all of it. The latest session that names a share decides for all, since they share the pool.
            Sessions on a cluster leave it to the tasks.
        visible_device_list: Accepted, without effect: set ``CUDA_VISIBLE_DEVICES``.
        allocator_type: Accepted, without effect.
        deferred_deletion_bytes: Accepted, without effect.
        polling_active_delay_usecs: Accepted, without effect.
        polling_inactive_delay_msecs: Accepted, without effect.
        force_gpu_compatible: Accepted, without effect.
        experimental: Accepted, without effect.
    """

    Experimental: ClassVar[type[Message]] = GPUExperimental

    FIELDS = (
        Field(1, "per_process_gpu_memory_fraction", "double"),
        Field(2, "allocator_type", "string"),
        Field(3, "deferred_deletion_bytes", "int64"),
        Field(4, "allow_growth", "bool"),
        Field(5, "visible_device_list", "string"),
        Field(6, "polling_active_delay_usecs", "int32"),
        Field(7, "polling_inactive_delay_msecs", "int32"),
        Field(8, "force_gpu_compatible", "bool"),
        Field(9, "experimental", GPUExperimental),
    )


class ThreadPoolOptionProto(Message):
    """A pool of threads: accepted, without effect."""

    FIELDS = (Field(1, "num_threads", "int32"), Field(2, "global_name", "string"))


class RPCOptions(Message):
    """How TensorFlow's processes talk: accepted, without effect."""

    FIELDS = (
        Field(1, "use_rpc_for_inprocess_master", "bool"),
        Field(2, "compression_algorithm", "string"),
        Field(3, "compression_level", "int32"),
        Field(4, "cache_rpc_response", "bool"),
        Field(5, "disable_session_connection_sharing", "bool"),
    )


class SessionMetadata(Message):
    """Name and version of a session: accepted, without effect."""

    FIELDS = (Field(1, "name", "string"), Field(2, "version", "int64"))


class ConfigExperimental(Message):
    """`ConfigProto.experimental`: accepted, without effect."""

    FIELDS = (
        Field(1, "collective_group_leader", "string"),
        Field(3, "executor_type", "string"),
        Field(4, "recv_buf_max_chunk", "int32"),
        Field(5, "use_numa_affinity", "bool"),
        Field(6, "collective_deterministic_sequential_execution", "bool"),
        Field(7, "collective_nccl", "bool"),
        Field(8, "share_session_state_in_clusterspec_propagation", "bool"),
        Field(9, "disable_thread_spinning", "bool"),
        Field(10, "share_cluster_devices_in_session", "bool"),
        Field(11, "session_metadata", SessionMetadata),
        Field(12, "optimize_for_static_graph", "bool"),
    )


class ConfigProto(Message):
    """Options of a session. A session takes a copy.

    Attributes:
        device_count: Number of devices by type; ``{"CPU": 4}`` offers four CPU devices in this process, so that a
            partitioned graph can be tried without a cluster. GPUs are found, and ``{"GPU": 0}`` hides them.
        allow_soft_placement: Whether an operation without a kernel for the device that it asks for may go to
            another device type of the same task.
        log_device_placement: Whether to print the device of every operation when a step is compiled.
        graph_options: See `GraphOptions`.
        operation_timeout_in_ms: Default timeout of every step in milliseconds; 0 for none.
        placement: tfray's addition, field 50000. How to choose a device for operations that the program leaves open.
            ``"default"``, or nothing, takes the first GPU, or else the first device. ``"cost"`` takes the devices with
            the shortest predicted step, by the sizes of tensors, the work of operations and the speed of messages.
            Sessions on one cluster agree on where variables live.
        placement_period: With ``placement="cost"``: after this many runs a step is recorded, and placed anew by the
            measured times. This is done three times. 0 places by estimates alone.
        gpu_options: See `GPUOptions`.
        intra_op_parallelism_threads: Accepted, without effect: set ``OMP_NUM_THREADS``.
        inter_op_parallelism_threads: Accepted, without effect.
        use_per_session_threads: Accepted, without effect.
        isolate_session_state: Accepted, without effect: local sessions never share state.
        device_filters: Full or partial names of devices. A session on a `tf.train.Server` uses these and the devices of
            its own task; an empty list means all devices.
        cluster_def: Accepted for TensorFlow 1's sake: the `tf.train.Server` of the session's target knows its cluster.
        session_inter_op_thread_pool: Accepted, without effect.
        rpc_options: Accepted, without effect.
        experimental: Accepted, without effect.
    """

    Experimental: ClassVar[type[Message]] = ConfigExperimental

    FIELDS = (
        Field(1, "device_count", "int32", key="string"),
        Field(2, "intra_op_parallelism_threads", "int32"),
        Field(3, "placement_period", "int32"),
        Field(4, "device_filters", "string", repeated=True),
        Field(5, "inter_op_parallelism_threads", "int32"),
        Field(6, "gpu_options", GPUOptions),
        Field(7, "allow_soft_placement", "bool"),
        Field(8, "log_device_placement", "bool"),
        Field(9, "use_per_session_threads", "bool"),
        Field(10, "graph_options", GraphOptions),
        Field(11, "operation_timeout_in_ms", "int64"),
        Field(12, "session_inter_op_thread_pool", ThreadPoolOptionProto, repeated=True),
        Field(13, "rpc_options", RPCOptions),
        Field(14, "cluster_def", ClusterDef),
        Field(15, "isolate_session_state", "bool"),
        Field(16, "experimental", ConfigExperimental),
        Field(50000, "placement", "string"),
    )
    when_given = _look


# -- steps -----------------------------------------------------------------------------------------------


class DebugTensorWatch(Message):
    """Of `DebugOptions`: a tensor that TensorFlow's debugger watches."""

    FIELDS = (
        Field(1, "node_name", "string"),
        Field(2, "output_slot", "int32"),
        Field(3, "debug_ops", "string", repeated=True),
        Field(4, "debug_urls", "string", repeated=True),
        Field(5, "tolerate_debug_op_creation_failures", "bool"),
    )


class DebugOptions(Message):
    """What TensorFlow's debugger watches: accepted, without effect."""

    FIELDS = (
        Field(4, "debug_tensor_watch_opts", DebugTensorWatch, repeated=True),
        Field(10, "global_step", "int64"),
        Field(11, "reset_disk_byte_usage", "bool"),
    )


class RunExperimental(Message):
    """`RunOptions.experimental`: accepted, without effect."""

    FIELDS = (Field(1, "collective_graph_key", "int64"), Field(2, "use_run_handler_pool", "bool"))


class RunOptions(Message):
    """Options of one step.

    Attributes:
        timeout_in_ms: Milliseconds after which the step fails with `DeadlineExceededError`; 0 takes the session's.
        trace_level: How much of the step to record in the `tf.RunMetadata` that `Session.run` is given: nothing
            (`NO_TRACE`), or when each operation ran and which memory it took. From `HARDWARE_TRACE` on the step waits
            for the GPU after each operation; below it, only the time of the launch is known.
        output_partition_graphs: Whether to record the graph that each device runs as well.
        report_tensor_allocations_upon_oom: Accepted, without effect.
        inter_op_thread_pool: Accepted, without effect.
        debug_options: Accepted, without effect: see `tf.debugging` and `tensorflow.python.debug`.
        experimental: Accepted, without effect.
    """

    Experimental: ClassVar[type[Message]] = RunExperimental
    TraceLevel: ClassVar[Enumeration] = Enumeration(
        __name__, "TraceLevel", {"NO_TRACE": 0, "SOFTWARE_TRACE": 1, "HARDWARE_TRACE": 2, "FULL_TRACE": 3}
    )

    FIELDS = (
        Field(1, "trace_level", TraceLevel),
        Field(2, "timeout_in_ms", "int64"),
        Field(3, "inter_op_thread_pool", "int32"),
        Field(5, "output_partition_graphs", "bool"),
        Field(6, "debug_options", DebugOptions),
        Field(7, "report_tensor_allocations_upon_oom", "bool"),
        Field(8, "experimental", RunExperimental),
    )
    when_given = _look


_EXPECTED: Final[Mapping[str, Expectation]] = {
    label: expectation(hint)
    for label, hint in {
        "OptimizerOptions.opt_level": Annotated[int, OneOf((OptimizerOptions.L0, OptimizerOptions.L1))],
        "GPUOptions.per_process_gpu_memory_fraction": NonNegative,
        "ConfigProto.device_count": Mapping[str, Count],
        "ConfigProto.operation_timeout_in_ms": Count,
        "ConfigProto.placement": Annotated[str, OneOf(("default", "cost"))],
        "ConfigProto.placement_period": Count,
        "RunOptions.timeout_in_ms": Count,
        "RunOptions.trace_level": Annotated[int, Range(least=RunOptions.NO_TRACE, most=RunOptions.FULL_TRACE)],
    }.items()
}

_WITHOUT_EFFECT: Final = frozenset(
    f"{kind}.{name}"
    for kind, names in {
        "OptimizerOptions": "do_common_subexpression_elimination do_constant_folding do_function_inlining "
        "global_jit_level max_folded_constant_in_bytes",
        "GraphOptions": "build_cost_model build_cost_model_after enable_recv_scheduling timeline_step",
        "GPUOptions": "allocator_type deferred_deletion_bytes force_gpu_compatible polling_active_delay_usecs "
        "polling_inactive_delay_msecs visible_device_list",
        "ConfigProto": "inter_op_parallelism_threads intra_op_parallelism_threads use_per_session_threads",
        "RunOptions": "inter_op_thread_pool report_tensor_allocations_upon_oom",
    }.items()
    for name in names.split()
)


@functools.cache
def default_config() -> ConfigProto:
    """The options of the sessions that are given none. `tf.config` changes them, for sessions that begin later."""
    return ConfigProto()


def session_config(config: ConfigProto | None) -> ConfigProto:
    """A copy of the options that a session is given; of `default_config`, which is looked at first, when None."""
    if config is None:
        config = default_config()
        _look(config)
    copy = ConfigProto()
    copy.CopyFrom(config)
    return copy


_logs_device_placement = False


def set_log_device_placement(enabled: bool) -> None:
    """Print the device of every operation when a step is compiled, in all sessions (`ConfigProto.log_device_placement`
    does so in one).
    """
    global _logs_device_placement
    _logs_device_placement = bool(enabled)


def get_log_device_placement() -> bool:
    """Whether all sessions print the devices of operations."""
    return _logs_device_placement
