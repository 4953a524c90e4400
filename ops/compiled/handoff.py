"""How threads hand work to helpers without the interpreter (see `ops.kernels.native.native_helpers`).

A helper has a slot of 16 numbers: its state, the job and its block, two semaphores, of which one wakes the helper and
one the thread that waits for it, whether the helper sleeps, room for the time, and when the job was posted. Whoever
changes the state from what it expects owns the slot until the next change.

To wake a thread takes some microseconds, and on virtual machines, whose cores stop when they are idle, fifty: as long
as many a kernel. So a helper that has been busy looks for the next job for a while before it sleeps: a multiple of the
time that waking it took. It does so while that pays, and no longer than `LONGEST_LOOK_NS`.
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.extending import intrinsic

from tfray.ops.compiled.vectors import Int, Longs, behind, call

SLOT = 16
STATE, JOB, BLOCK, WAKE, DONE, ASLEEP, ROOM, TIME = 0, 1, 2, 3, 7, 11, 12, 14
IDLE, CLAIMED, POSTED, RUNNING, AWAITED, FINISHED = range(6)
CLOCK_MONOTONIC = 1

LOOKS = 3000
"""How often a thread looks whether its helper has finished before it sleeps: for about as long as being woken takes."""

LOOK_WAKINGS = 8
"""For how long a helper looks for the next job, as a multiple of what waking it takes."""

LONGEST_LOOK_NS = 400_000
"""A helper sleeps when there has been no job for so long."""

MOST_SKIPPED = 31
"""After how many jobs a helper looks again at the latest, when looking has been in vain, or others need the core."""

PUT_ASIDE_NS = 50_000
"""Between two looks, which are some tens of nanoseconds apart, so much time passes only while others use the core."""


@intrinsic
def exchange_if(context: object, pointer: object, index: object, expected: object, value: object) -> Any:
    """Write a number where the expected one is, at once; whether that was so."""

    def write(context: BaseContext, builder: ir.IRBuilder, signature: object, arguments: list[ir.Value]) -> ir.Value:
        base, place, old, new = arguments
        result = builder.cmpxchg(builder.gep(base, [place]), old, new, "seq_cst", "seq_cst")
        return builder.extract_value(result, 1)

    return types.boolean(pointer, types.int64, types.int64, types.int64), write


@intrinsic
def exchange(context: object, pointer: object, index: object, value: object) -> Any:
    """Write a number, and give the one that was there."""

    def write(context: BaseContext, builder: ir.IRBuilder, signature: object, arguments: list[ir.Value]) -> ir.Value:
        return builder.atomic_rmw("xchg", builder.gep(arguments[0], [arguments[1]]), arguments[2], "seq_cst")

    return types.int64(pointer, types.int64, types.int64), write


@intrinsic
def look(context: object, pointer: object, index: object) -> Any:
    """The number at a place that other threads write."""

    def write(context: BaseContext, builder: ir.IRBuilder, signature: object, arguments: list[ir.Value]) -> ir.Value:
        return builder.load_atomic(builder.gep(arguments[0], [arguments[1]]), "seq_cst", 8)

    return types.int64(pointer, types.int64), write


@intrinsic
def address(context: object, pointer: object, index: object) -> Any:
    """Where an element lies."""

    def write(context: BaseContext, builder: ir.IRBuilder, signature: object, arguments: list[ir.Value]) -> ir.Value:
        return builder.ptrtoint(builder.gep(arguments[0], [arguments[1]]), ir.IntType(64))

    return types.int64(pointer, types.int64), write


@intrinsic
def pause(context: object) -> Any:
    """Tell the CPU that this thread waits for another one, which may run on the same core."""
    is_x86 = platform.machine() in ("x86_64", "AMD64")
    name, operands = ("llvm.x86.sse2.pause", []) if is_x86 else ("llvm.aarch64.hint", [ir.Constant(ir.IntType(32), 1)])

    def write(context: BaseContext, builder: ir.IRBuilder, signature: object, arguments: list[ir.Value]) -> ir.Value:
        kind = ir.FunctionType(ir.VoidType(), [operand.type for operand in operands])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, name), operands)
        return context.get_dummy_value()

    return types.void(), write


@njit(inline="always")
def _wait(functions: Longs, semaphore: Int) -> None:
    while call(functions[0], semaphore, 0, 0, 0) != 0:  # a signal came
        pass


@njit(inline="always")
def _now(functions: Longs, room: Longs) -> int:
    call(functions[2], CLOCK_MONOTONIC, address(room, 0), 0, 0)
    return room[0] * 1000000000 + room[1]


@njit(inline="always")
def _do(functions: Longs, slot: Longs) -> None:
    if exchange_if(slot, STATE, POSTED, RUNNING):
        call(slot[JOB], slot[BLOCK], 0, 0, 0)
        if exchange(slot, STATE, FINISHED) == AWAITED:
            call(functions[1], address(slot, DONE), 0, 0, 0)


def serve(first: Int, last: Int, functions: Longs, slot: Longs) -> None:
    """Do what is handed to a helper, for ever.

    `functions` has the addresses of ``sem_wait``, ``sem_post`` and ``clock_gettime``.
    """
    room = behind(slot, ROOM)
    skipped = skip = look_ns = 0
    while True:
        now = idle = _now(functions, room)
        was_put_aside = False
        if skipped < skip:
            skipped += 1
        else:
            skipped = 0
            while now - idle < look_ns and look(slot, STATE) != POSTED and not was_put_aside:
                pause()
                last, now = now, _now(functions, room)
                was_put_aside = now - last > PUT_ASIDE_NS
        if look(slot, STATE) != POSTED:
            exchange(slot, ASLEEP, 1)
            # Whoever posts from here on wakes this thread; who has posted just before may not.
            if look(slot, STATE) != POSTED or not exchange_if(slot, ASLEEP, 1, 0):
                _wait(functions, address(slot, WAKE))
                now = _now(functions, room)
                waking = now - slot[TIME]
                look_ns += (min(LOOK_WAKINGS * waking, LONGEST_LOOK_NS) - look_ns) // 4
                was_put_aside |= waking > LONGEST_LOOK_NS
        if was_put_aside:
            skip = MOST_SKIPPED
        else:
            skip = 0 if now - idle < LONGEST_LOOK_NS else min(2 * skip + 1, MOST_SKIPPED)
        _do(functions, slot)


def join(first: Int, last: Int, functions: Longs, slot: Longs) -> None:
    """Take part in what has been handed to a thread that was busy until now, if that still goes on."""
    _do(functions, slot)


def share(
    first: Int,
    last: Int,
    functions: Longs,
    slots: Longs,
    count: Int,
    wanted: Int,
    awake: Int,
    job: Int,
    block: Int,
    report: Longs,
) -> None:
    """Do a job, together with up to `wanted` of the `count` helpers: with those that are idle, and begin in time.

    The slots of `awake` other threads follow: they look into these when they have done what keeps them busy.
    ``report[0]`` becomes the nanoseconds for which this thread slept until the last helper had finished.
    """
    mine = 0
    for helper in range(count + awake):
        if (wanted > 0 or helper >= count) and exchange_if(slots, SLOT * helper + STATE, IDLE, CLAIMED):
            slots[SLOT * helper + JOB] = job
            slots[SLOT * helper + BLOCK] = block
            slots[SLOT * helper + TIME] = _now(functions, report)
            exchange(slots, SLOT * helper + STATE, POSTED)
            if helper < count and exchange_if(slots, SLOT * helper + ASLEEP, 1, 0):
                call(functions[1], address(slots, SLOT * helper + WAKE), 0, 0, 0)
            mine |= 1 << helper
            wanted -= 1
    call(job, block, 0, 0, 0)
    for helper in range(count + awake):
        state = SLOT * helper + STATE
        if mine >> helper & 1 and not exchange_if(slots, state, POSTED, IDLE):
            looks = 0
            while looks < LOOKS and look(slots, state) != FINISHED:
                pause()
                looks += 1
            if looks == LOOKS and exchange_if(slots, state, RUNNING, AWAITED):
                began = _now(functions, report)
                _wait(functions, address(slots, SLOT * helper + DONE))
                report[2] += _now(functions, report) - began
            exchange(slots, state, IDLE)
    report[0] = report[2]
