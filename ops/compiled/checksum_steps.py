"""CRC-32C by the instruction that x86 CPUs have for it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from tfray.ops.compiled.vectors import Int, Longs, Octets


def _step(name: str, bits: int) -> Any:
    """A function that takes a register over so many bits of data."""

    @intrinsic
    def step(context: Any, register: Any, data: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            wide, narrow = ir.IntType(max(32, bits)), ir.IntType(bits)
            function = builder.module.declare_intrinsic(name, (), ir.FunctionType(wide, [wide, narrow]))
            before = builder.trunc(arguments[0], wide) if bits < 64 else arguments[0]
            octets = builder.trunc(arguments[1], narrow) if bits < 64 else arguments[1]
            after = builder.call(function, [before, octets])
            return builder.zext(after, ir.IntType(64)) if bits < 64 else after

        return types.int64(types.int64, types.int64), generate

    return step


_word_step = _step("llvm.x86.sse42.crc32.64.64", 64)
_octet_step = _step("llvm.x86.sse42.crc32.32.8", 8)


@njit(inline="always")
def _over_octets(register: Any, octets: Any, start: Any, end: Any) -> Any:
    for index in range(start, end):
        register = _octet_step(register, octets[index] + 0)
    return register


def blocks(first: Int, last: Int, words: Longs, count: Int, registers: Longs) -> None:
    """What each block of `count` words makes of a register of 0; an item is three blocks.

    The instruction takes three cycles, and one can begin in each: so three blocks take the time of one.
    """
    for item in range(first, last):
        here = 3 * item * count
        one, two, three = 0, 0, 0
        for index in range(here, here + count):
            one = _word_step(one, words[index])
            two = _word_step(two, words[index + count])
            three = _word_step(three, words[index + 2 * count])
        registers[3 * item] = one
        registers[3 * item + 1] = two
        registers[3 * item + 2] = three


def pieces(first: Int, last: Int, octets: Octets, words: Longs, starts: Longs, ends: Longs, registers: Longs) -> None:
    """What the bytes from ``starts[i]`` to ``ends[i]`` make of ``registers[i]``.

    `words` is the memory of `octets`, which begins at a multiple of 8.
    """
    for item in range(first, last):
        start, end = starts[item], ends[item]
        words_start = min((start + 7) // 8, end // 8)
        words_end = max(end // 8, words_start)
        if words_start * 8 < start:  # no whole word
            registers[item] = _over_octets(registers[item], octets, start, end)
            continue
        register = _over_octets(registers[item], octets, start, words_start * 8)
        for index in range(words_start, words_end):
            register = _word_step(register, words[index])
        registers[item] = _over_octets(register, octets, words_end * 8, end)
