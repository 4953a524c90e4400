"""Writes tests/golden/options/: which fields TensorFlow's options have, and its bytes for options written as text.

    python scripts/golden_options.py

The interpreter needs tensorflow 1.15.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from google.protobuf import text_format
from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "golden" / "options"

KINDS = {
    kind.DESCRIPTOR.name: kind
    for kind in (
        config_pb2.ConfigProto,
        config_pb2.GPUOptions,
        config_pb2.GraphOptions,
        config_pb2.OptimizerOptions,
        config_pb2.RunOptions,
        config_pb2.RunMetadata,
        rewriter_config_pb2.RewriterConfig,
    )
}

CASES = (
    ("ConfigProto", ""),
    ("ConfigProto", "allow_soft_placement: true log_device_placement: true gpu_options { allow_growth: true }"),
    ("ConfigProto", "device_count { key: 'GPU' value: 0 } device_count { key: 'CPU' value: 4 }"),
    (
        "ConfigProto",
        "intra_op_parallelism_threads: 2 inter_op_parallelism_threads: -1 use_per_session_threads: true "
        "placement_period: 7 operation_timeout_in_ms: 5000000000 isolate_session_state: true "
        "device_filters: '/job:ps' device_filters: '/job:worker/task:1'",
    ),
    (
        "ConfigProto",
        "session_inter_op_thread_pool { num_threads: 3 global_name: 'many' } session_inter_op_thread_pool { } "
        "rpc_options { use_rpc_for_inprocess_master: true compression_algorithm: 'gzip' compression_level: 2 } "
        "cluster_def { job { name: 'ps' tasks { key: 0 value: 'a:1' } } job { } } "
        "experimental { executor_type: 'x' recv_buf_max_chunk: 9 share_cluster_devices_in_session: true "
        "session_metadata { name: 'm' version: 3 } optimize_for_static_graph: true }",
    ),
    (
        "ConfigProto",
        "graph_options { enable_bfloat16_sendrecv: true timeline_step: 1 build_cost_model: 2 "
        "optimizer_options { opt_level: L0 global_jit_level: ON_2 max_folded_constant_in_bytes: 10 } "
        "rewrite_options { layout_optimizer: OFF auto_mixed_precision: AGGRESSIVE meta_optimizer_iterations: TWO "
        "memory_optimization: HEURISTICS optimizers: 'constfold' optimizers: 'layout' "
        "auto_parallel { enable: true num_replicas: 2 } scoped_allocator_opts { enable_op: 'CollectiveReduce' } "
        "custom_optimizers { name: 'own' parameter_map { key: 'n' value { i: 3 } } } "
        "inter_optimizer_verifier_config { structure_verifier: ON } post_optimization_verifier_config { } } }",
    ),
    (
        "GPUOptions",
        "per_process_gpu_memory_fraction: 0.4 allocator_type: 'BFC' deferred_deletion_bytes: 1 "
        "visible_device_list: '0,1' force_gpu_compatible: true experimental { "
        "virtual_devices { memory_limit_mb: 100 memory_limit_mb: 200.5 } use_unified_memory: true "
        "collective_ring_order: '1,0' kernel_tracker_max_pending: 4 }",
    ),
    ("OptimizerOptions", "opt_level: L1 global_jit_level: OFF do_function_inlining: true"),
    (
        "RunOptions",
        "trace_level: FULL_TRACE timeout_in_ms: 100 inter_op_thread_pool: -1 output_partition_graphs: true "
        "report_tensor_allocations_upon_oom: true experimental { collective_graph_key: 5 use_run_handler_pool: true } "
        "debug_options { global_step: 3 debug_tensor_watch_opts { node_name: 'n' output_slot: -1 debug_ops: 'd' } }",
    ),
    (
        "RunMetadata",
        "step_stats { dev_stats { device: '/cpu:0' } } partition_graphs { node { name: 'n' op: 'NoOp' } } "
        "function_graphs { partition_graphs { } pre_optimization_graph { node { name: 'p' } } "
        "post_optimization_graph { } }",
    ),
)
"""Kinds of messages, and their texts."""


def fields(message: Any, seen: set[str]) -> Iterator[str]:
    """A line for each field of a kind of message, and of those within it, as of scripts/golden_messages.py."""
    if message.full_name in seen:
        return
    seen.add(message.full_name)
    for field in message.fields:
        entry = field.message_type and field.message_type.GetOptions().map_entry
        inner = field.message_type.fields_by_name["value"] if entry else field
        words = [message.full_name, field.name, str(field.number)]
        words += ["enum" if inner.enum_type else "message" if inner.message_type else str(inner.type)]
        words += ["map"] if entry else ["list"] if field.label == field.LABEL_REPEATED else []
        yield " ".join(words)
        if inner.message_type and inner.message_type.file.name.rpartition("/")[2] in (
            "config.proto",
            "rewriter_config.proto",
            "verifier_config.proto",
            "debug.proto",
        ):
            yield from fields(inner.message_type, seen)


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    seen: set[str] = set()
    lines = [line for kind in KINDS.values() for line in fields(kind.DESCRIPTOR, seen)]
    (FOLDER / "fields.txt").write_text("\n".join(lines) + "\n")
    with (FOLDER / "messages.txt").open("w") as written:
        for name, text in CASES:
            message = text_format.Parse(text, KINDS[name]())
            data = message.SerializeToString(deterministic=True).hex()
            written.write(f"{name}\t{data}\t{text_format.MessageToString(message, as_one_line=True)}\n")


if __name__ == "__main__":
    main()
