"""Options of sessions and steps, under TensorFlow 1's names."""

from __future__ import annotations

import copy
import functools
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar, Final

from tfray.formats.cluster_spec import ClusterDef
from tfray.framework.arguments import Count, Expectation, NonNegative, OneOf, Range, expectations

_warned: Final[set[str]] = set()


class _Options:
    """Base of options: refuses unknown fields and values that do not fit, and warns once of a field that has no effect
    in tfray.
    """

    _without_effect: ClassVar[frozenset[str]] = frozenset()

    def __setattr__(self, name: str, value: Any) -> None:
        kind = type(self)
        known = {each.name: each.default for each in fields(kind)}  # type: ignore[arg-type]
        if name not in known:
            raise AttributeError(f"{kind.__name__} has no field {name!r}; it has {', '.join(known)}")
        label = f"{kind.__name__}.{name}"
        is_made = sys._getframe(1).f_code.co_name == "__init__"
        if is_made and isinstance(value, Mapping) and (inner := _nested(kind).get(name)):  # type: ignore[arg-type]
            value = inner(**value)
        value = _expectations(kind)[name].take(label, value)  # type: ignore[arg-type]  # classes can be hashed
        if name in self._without_effect and value and value != known[name] and label not in _warned:
            _warned.add(label)
            level = 3 if is_made else 2
            message = f"{label} is accepted for TensorFlow 1 programs and changes nothing in tfray"
            warnings.warn(message, stacklevel=level)
        object.__setattr__(self, name, value)

    def CopyFrom(self, other: Any) -> None:
        """Take all values of other options of this kind."""
        for each in fields(self):  # type: ignore[arg-type]
            setattr(self, each.name, copy.deepcopy(getattr(other, each.name)))


@functools.cache
def _nested(kind: type) -> dict[str, type]:
    """The fields that are options themselves: a dictionary may stand for such."""
    found: dict[str, Any] = {each.name: each.default_factory for each in fields(kind)}
    return {
        name: made for name, made in found.items() if isinstance(made, type) and issubclass(made, (_Options, Hints))
    }


class Hints:
    """Options of which none has an effect in tfray: a program may set any, and read what it has set."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hints) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class RewriterConfig(Hints):
    """How TensorFlow rewrites graphs. tfray has `OptimizerOptions.opt_level` instead."""

    DEFAULT: ClassVar[int] = 0
    ON: ClassVar[int] = 1
    OFF: ClassVar[int] = 2
    AGGRESSIVE: ClassVar[int] = 3
    DEFAULT_NUM_ITERS: ClassVar[int] = 0
    ONE: ClassVar[int] = 1
    TWO: ClassVar[int] = 2
    DEFAULT_MEM_OPT: ClassVar[int] = 0
    NO_MEM_OPT: ClassVar[int] = 1
    MANUAL: ClassVar[int] = 2
    SWAPPING_HEURISTICS: ClassVar[int] = 4
    RECOMPUTATION_HEURISTICS: ClassVar[int] = 5
    SCHEDULING_HEURISTICS: ClassVar[int] = 6
    HEURISTICS: ClassVar[int] = 3

    def __init__(self, **values: Any) -> None:
        super().__init__(**{"optimizers": [], **values})


@functools.cache
def _expectations(kind: type) -> dict[str, Expectation]:
    return expectations(kind)


@dataclass
class OptimizerOptions(_Options):
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

    L0: ClassVar[int] = -1
    L1: ClassVar[int] = 0
    DEFAULT: ClassVar[int] = 0
    OFF: ClassVar[int] = -1
    ON_1: ClassVar[int] = 1
    ON_2: ClassVar[int] = 2

    opt_level: Annotated[int, OneOf((L0, L1))] = 0
    global_jit_level: int = 0
    do_common_subexpression_elimination: bool = False
    do_constant_folding: bool = False
    do_function_inlining: bool = False
    max_folded_constant_in_bytes: Count = 0

    _without_effect: ClassVar[frozenset[str]] = frozenset(
        {
            "global_jit_level",
            "do_common_subexpression_elimination",
            "do_constant_folding",
            "do_function_inlining",
            "max_folded_constant_in_bytes",
        }
    )


@dataclass
class GraphOptions(_Options):
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

    optimizer_options: OptimizerOptions = field(default_factory=OptimizerOptions)
    infer_shapes: bool = False
    place_pruned_graph: bool = False
    enable_bfloat16_sendrecv: bool = False
    build_cost_model: Count = 0
    timeline_step: Count = 0
    build_cost_model_after: Count = 0
    enable_recv_scheduling: bool = False
    rewrite_options: Hints = field(default_factory=RewriterConfig)

    _without_effect: ClassVar[frozenset[str]] = frozenset(
        {"build_cost_model", "timeline_step", "build_cost_model_after", "enable_recv_scheduling"}
    )


@dataclass
class GPUOptions(_Options):
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

    allow_growth: bool = False
    per_process_gpu_memory_fraction: NonNegative = 0.0
    visible_device_list: str = ""
    allocator_type: str = ""
    deferred_deletion_bytes: Count = 0
    polling_active_delay_usecs: Count = 0
    polling_inactive_delay_msecs: Count = 0
    force_gpu_compatible: bool = False
    experimental: Hints = field(default_factory=Hints)

    _without_effect: ClassVar[frozenset[str]] = frozenset(
        {
            "visible_device_list",
            "allocator_type",
            "deferred_deletion_bytes",
            "polling_active_delay_usecs",
            "polling_inactive_delay_msecs",
            "force_gpu_compatible",
        }
    )


@dataclass
class ConfigProto(_Options):
    """Options of a session.

    Attributes:
        device_count: Number of devices by type; ``{"CPU": 4}`` offers four CPU devices in this process, so that a
            partitioned graph can be tried without a cluster. GPUs are found, and ``{"GPU": 0}`` hides them.
        allow_soft_placement: Whether an operation without a kernel for the device that it asks for may go to
            another device type of the same task.
        log_device_placement: Whether to print the device of every operation when a step is compiled.
        graph_options: See `GraphOptions`.
        operation_timeout_in_ms: Default timeout of every step in milliseconds; 0 for none.
        placement: How to choose a device for operations that the program leaves open. ``"default"`` takes the first
            GPU, or else the first device. ``"cost"`` takes the devices with the shortest predicted step, by the sizes
            of tensors, the work of operations and the speed of messages. Sessions on one cluster agree on where
            variables live.
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

    device_count: dict[str, Count] = field(default_factory=dict)
    allow_soft_placement: bool = False
    log_device_placement: bool = False
    graph_options: GraphOptions = field(default_factory=GraphOptions)
    operation_timeout_in_ms: Count = 0
    placement: Annotated[str, OneOf(("default", "cost"))] = "default"
    gpu_options: GPUOptions = field(default_factory=GPUOptions)
    intra_op_parallelism_threads: int = 0
    inter_op_parallelism_threads: int = 0
    use_per_session_threads: bool = False
    isolate_session_state: bool = False
    placement_period: Count = 0
    device_filters: list[str] = field(default_factory=list)
    cluster_def: ClusterDef | None = None
    session_inter_op_thread_pool: list[Hints] = field(default_factory=list)
    rpc_options: Hints = field(default_factory=Hints)
    experimental: Hints = field(default_factory=Hints)

    _without_effect: ClassVar[frozenset[str]] = frozenset(
        {
            "intra_op_parallelism_threads",
            "inter_op_parallelism_threads",
            "use_per_session_threads",
        }
    )


@dataclass
class RunOptions(_Options):
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

    NO_TRACE: ClassVar[int] = 0
    SOFTWARE_TRACE: ClassVar[int] = 1
    HARDWARE_TRACE: ClassVar[int] = 2
    FULL_TRACE: ClassVar[int] = 3

    timeout_in_ms: Count = 0
    trace_level: Annotated[int, Range(least=NO_TRACE, most=FULL_TRACE)] = 0
    output_partition_graphs: bool = False
    report_tensor_allocations_upon_oom: bool = False
    inter_op_thread_pool: int = 0
    debug_options: Hints = field(default_factory=Hints)
    experimental: Hints = field(default_factory=Hints)

    _without_effect: ClassVar[frozenset[str]] = frozenset(
        {"report_tensor_allocations_upon_oom", "inter_op_thread_pool"}
    )


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
