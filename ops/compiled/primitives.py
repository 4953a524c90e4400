"""Calls of oneDNN's primitives (see `ops.kernels.native.primitive_batches`)."""

from __future__ import annotations

from numba import njit, types

from tfray.ops.compiled.vectors import Int, Longs, Thread, argument, call

FLOATS = types.CPointer(types.float32)


@njit(inline="always")
def _address(place: Int, first: Int, arrays: Longs, offsets: Longs, bases: Longs, own: Longs) -> int:
    """Where the data of a memory begin. The thread's own buffers are the `first` of `own` and those behind."""
    array = arrays[place]
    return own[first - 1 - array] if array < 0 else bases[array] + offsets[place]


def execute(
    first: Int,
    last: Int,
    thread: Thread,
    functions: Longs,
    items: Longs,
    places: Longs,
    primitives: Longs,
    arguments: Longs,
    memories: Longs,
    arrays: Longs,
    offsets: Longs,
    bases: Longs,
    buffers: Int,
    own: Longs,
    streams: Longs,
    results: Longs,
    lengths: Longs,
    room: Longs,
    status: Longs,
) -> None:
    """Run primitives, those of an item one after the other; ``status[0]`` becomes that of one that fails.

    Args:
        first: First item.
        last: End of the range of items.
        thread: Which thread runs.
        functions: The addresses of ``omp_set_num_threads``, ``dnnl_memory_set_data_handle`` and
            ``dnnl_primitive_execute``.
        items: The first primitive of each item, and the end of the last one's.
        places: The first memory of each primitive, and the end of the last one's.
        primitives: The primitives.
        arguments: Where the arguments of each lie.
        memories: The memories.
        arrays: In which array the data of each memory lie; -1 - i for the thread's own buffer i.
        offsets: Where they begin there, in bytes.
        bases: Where each array begins.
        buffers: Number of buffers that a thread has.
        own: Where these lie, for all threads.
        streams: The stream of each thread.
        results: For each primitive, the memory of its result.
        lengths: Of how many floats there the negative ones become 0, while they are in the cache.
        room: A number for each thread.
        status: Where to write.
    """
    call(functions[0], 1, 0, 0, 0)
    mine = thread * buffers
    for item in range(first, last):
        for index in range(items[item], items[item + 1]):
            for place in range(places[index], places[index + 1]):
                data = _address(place, mine, arrays, offsets, bases, own)
                call(functions[1], memories[place], data, 0, 0)
            count = places[index + 1] - places[index]
            result = call(functions[2], primitives[index], streams[thread], count, arguments[index])
            if result != 0:
                status[0] = result
            if lengths[index] > 0:
                room[thread] = _address(results[index], mine, arrays, offsets, bases, own)
                x = argument(room, thread, FLOATS)
                for i in range(lengths[index]):
                    if x[i] < 0:
                        x[i] = 0
