"""Calls of oneDNN's primitives (see `ops.kernels.native.primitive_batches`)."""

from __future__ import annotations

from tfray.ops.compiled.vectors import Int, Longs, Thread, call


def execute(
    first: Int,
    last: Int,
    thread: Thread,
    functions: Longs,
    width: Int,
    primitives: Longs,
    arguments: Longs,
    counts: Longs,
    memories: Longs,
    addresses: Longs,
    scratch_memories: Longs,
    scratches: Longs,
    streams: Longs,
    status: Longs,
) -> None:
    """Run primitives, each on `width` memories of its own; ``status[0]`` becomes that of one that fails.

    Args:
        first: First primitive.
        last: End of the range of primitives.
        thread: Which thread runs.
        functions: The addresses of ``omp_set_num_threads``, ``dnnl_memory_set_data_handle`` and
            ``dnnl_primitive_execute``.
        width: Memories of a primitive.
        primitives: The primitives.
        arguments: Where the arguments of each lie.
        counts: How many these are.
        memories: The memories of each.
        addresses: Where the data of each memory lie.
        scratch_memories: The scratchpad of each, or 0.
        scratches: Where the scratchpad of each thread lies.
        streams: The stream of each thread.
        status: Where to write.
    """
    if thread > 0:
        call(functions[0], 1, 0, 0, 0)
    for index in range(first, last):
        for place in range(index * width, (index + 1) * width):
            call(functions[1], memories[place], addresses[place], 0, 0)
        if scratch_memories[index] != 0:
            call(functions[1], scratch_memories[index], scratches[thread], 0, 0)
        result = call(functions[2], primitives[index], streams[thread], counts[index], arguments[index])
        if result != 0:
            status[0] = result
