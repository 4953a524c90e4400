"""CRC-32C (Castagnoli) of bytes: by the google-crc32c package where it is installed, else compiled, else in NumPy.

The package reads 20 GB/s and takes 0.4 us for a record of 1 KB. What `tfray.ops.kernels.checksums` compiles, with the
extra ``fast``, reads 14 to 30 GB/s and takes 10 us for a call. NumPy reads up to 1 GB/s of large data, half as much of
less than 1 MiB, and takes 10 us for a record. The NumPy form uses that the checksum is linear over bits: what a byte
adds to it depends only on the byte's value and on its distance from the end. A table has this for every value and
distance. The entries for many bytes, or for many records, are gathered at once and combined by exclusive or.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import repeat
from typing import Any, Final, NamedTuple, cast

import numpy as np

POLYNOMIAL: Final = 0x82F63B78  # Castagnoli's, its bits in reverse order
BLOCK_BYTES: Final = 1024
"""Number of distances that the table holds. It then takes 1 MB (1024 x 256 x 4 bytes), which fits a core's cache."""

_ONES: Final = 0xFFFFFFFF
_FEW: Final = 48
"""Below this number of bytes a plain loop over the bytes is faster than NumPy."""
LANE_BYTES: Final = 256
WIDE_BYTES: Final = 1 << 20
"""1 MiB: in so many bytes NumPy computes the registers of pieces of `LANE_BYTES` beside each other."""

LARGE_BLOCK_BYTES: Final = 128 << 10
"""128 KiB: blocks whose registers are computed apart and then joined, which takes a microsecond for each."""

LEAST_COMPILED_BYTES: Final = 16 << 10
"""16 KiB. For fewer bytes, loading what is compiled does not pay."""

_BLOCKS_AT_ONCE: Final = 256
"""Blocks that are gathered together: it bounds the memory of the gathered table entries to 1 MB."""


class _Tables(NamedTuple):
    step: list[int]
    """By the value of a byte, what its step adds to the shifted register (the usual table of CRC-32C)."""
    distant: np.ndarray[Any, Any]
    """What a byte adds to the checksum, as a flat table: row d for distance d from the end, a column for each value."""
    initial: np.ndarray[Any, Any]
    """The initial register after n bytes of zero, by n up to `BLOCK_BYTES`."""
    shift: list[list[int]]
    """What each of the four bytes of a register becomes after `BLOCK_BYTES` bytes of zero."""
    large_shift: list[list[int]]
    """The same for `LARGE_BLOCK_BYTES`."""


@lru_cache(maxsize=1)
def _tables() -> _Tables:
    step = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        step = np.where(step & 1, (step >> 1) ^ np.uint32(POLYNOMIAL), step >> 1).astype(np.uint32)
    distant = np.empty((BLOCK_BYTES, 256), np.uint32)
    distant[0] = step
    initial = np.empty(BLOCK_BYTES + 1, np.uint32)
    initial[0] = _ONES
    registers = np.array([[byte << 8 * place for byte in range(256)] for place in range(4)], np.uint32)
    for index in range(BLOCK_BYTES):
        if index:
            distant[index] = _after_zero(step, distant[index - 1])
        initial[index + 1] = _after_zero(step, initial[index])
        registers = _after_zero(step, registers)
    shift, far = registers.tolist(), registers
    for _ in range((LARGE_BLOCK_BYTES // BLOCK_BYTES).bit_length() - 1):
        far = _applied(far, far)  # over twice as many bytes
    return _Tables(step.tolist(), distant.reshape(-1), initial, shift, far.tolist())


class _WideTables(NamedTuple):
    low: np.ndarray[Any, Any]
    """What each value of the lower half of a register becomes after a word of zeros."""
    high: np.ndarray[Any, Any]
    """The same for the upper half."""
    folds: list[np.ndarray[Any, Any]]
    """What each of the four bytes of a register becomes after the zeros of one lane, of two, of four, and so on."""
    shift: list[list[int]]
    """The same for those of all lanes."""


@lru_cache(maxsize=1)
def _wide_tables() -> _WideTables:
    step = np.array(_tables().step, np.uint32)
    low = np.arange(1 << 16, dtype=np.uint32)
    halves = np.stack([low, low << 16])
    for _ in range(4):
        halves = _after_zero(step, halves)
    fold = np.array([[byte << 8 * place for byte in range(256)] for place in range(4)], np.uint32)
    for _ in range(LANE_BYTES):
        fold = _after_zero(step, fold)
    folds = [fold]
    while LANE_BYTES << len(folds) < WIDE_BYTES:
        folds.append(_applied(folds[-1], folds[-1]))
    return _WideTables(halves[0], halves[1], folds, _applied(folds[-1], folds[-1]).tolist())


def _applied(shift: Any, registers: Any) -> Any:
    """What zeros make of many registers: as many as there are for `shift`."""
    return (
        shift[0][registers & 0xFF]
        ^ shift[1][registers >> 8 & 0xFF]
        ^ shift[2][registers >> 16 & 0xFF]
        ^ shift[3][registers >> 24]
    )


def _after_zero(step: Any, registers: Any) -> Any:
    return step[registers & 0xFF] ^ (registers >> 8)


@lru_cache(maxsize=1)
def native_crc32c() -> Callable[[int, Any], int] | None:
    """The function of google-crc32c that continues a checksum, or None when it is not installed or not compiled."""
    try:
        import google_crc32c
    except ImportError:
        return None
    return cast(Callable[[int, Any], int], google_crc32c.extend) if google_crc32c.implementation == "c" else None


class Compiled(NamedTuple):
    """Functions of compiled code. A register is a checksum with all its bits turned."""

    after: Callable[[np.ndarray[Any, Any], int], int]
    """What bytes make of a register."""
    each_after: Callable[[np.ndarray[Any, Any], Any, Any, Any], np.ndarray[Any, Any]]
    """Of bytes, starts and ends of pieces, and registers: what each piece makes of its register."""


_providers: Final[list[Callable[[], Compiled | None]]] = []


def provide(load: Callable[[], Compiled | None]) -> None:
    """Let `load` give compiled functions when they are first needed; None where there are none."""
    _providers[:] = [lru_cache(maxsize=1)(load)]


def _compiled_for(size: int) -> Compiled | None:
    return _providers[0]() if _providers and size >= LEAST_COMPILED_BYTES else None


def crc32c(data: Any, before: int = 0) -> int:
    """The checksum of bytes; of all bytes so far if they follow those of which it was `before`."""
    octets = np.frombuffer(data, np.uint8)
    native = native_crc32c()
    if native is not None:
        return native(before, octets)
    compiled = _compiled_for(len(octets))
    if compiled is not None:
        return compiled.after(octets, before ^ _ONES) ^ _ONES
    return numpy_crc32c(octets, before)


def numpy_crc32c(data: Any, before: int = 0) -> int:
    """`crc32c` without any package but NumPy."""
    tables = _tables()
    register, octets = before ^ _ONES, np.frombuffer(data, np.uint8)
    head = len(octets) % BLOCK_BYTES
    register = _after_few(tables, octets[:head], register)
    end = head + (len(octets) - head) % WIDE_BYTES
    for start in range(head, end, BLOCK_BYTES * _BLOCKS_AT_ONCE):
        blocks = octets[start : min(start + BLOCK_BYTES * _BLOCKS_AT_ONCE, end)].reshape(-1, BLOCK_BYTES)
        for added in _sum_of_blocks(tables, blocks):
            register = _shifted(tables.shift, register) ^ added
    return _after_wide(octets[end:], register) ^ _ONES


def _after_wide(octets: np.ndarray[Any, Any], register: int) -> int:
    """What multiples of `WIDE_BYTES` make of a register: a register for each lane, and then these joined."""
    if not len(octets):
        return register
    tables = _wide_tables()
    low, high = tables.low, tables.high
    for lanes in octets.reshape(-1, WIDE_BYTES // LANE_BYTES, LANE_BYTES):
        words = lanes.view("<u4")
        found = np.zeros(len(words), np.uint32)
        for index in range(words.shape[1]):
            found ^= words[:, index]
            found = low.take(found & 0xFFFF, mode="clip") ^ high.take(found >> 16, mode="clip")
        for fold in tables.folds:
            found = _applied(fold, found[::2]) ^ found[1::2]
        register = _shifted(tables.shift, register) ^ int(found[0])
    return register


def _after_few(tables: _Tables, octets: np.ndarray[Any, Any], register: int) -> int:
    """What less than a block makes of a register."""
    if len(octets) < _FEW:
        step = tables.step
        for byte in octets.tolist():
            register = step[(register ^ byte) & 0xFF] ^ (register >> 8)
        return register
    if register != _ONES:  # the same as other first bytes make of that one
        octets = octets.copy()
        octets[:4] ^= np.array([register ^ _ONES], "<u4").view(np.uint8)
    return int(tables.initial[len(octets)]) ^ _sum_of_blocks(tables, octets[None, :])[0]


def _shifted(shift: list[list[int]], register: int) -> int:
    """What zeros make of a register: as many as there are for `shift`."""
    return (
        shift[0][register & 0xFF]
        ^ shift[1][register >> 8 & 0xFF]
        ^ shift[2][register >> 16 & 0xFF]
        ^ shift[3][register >> 24]
    )


def joined(register: int, found: Iterable[int]) -> int:
    """What blocks of `LARGE_BLOCK_BYTES` make of a register, given what each makes of a register of 0."""
    shift = _tables().large_shift
    for added in found:
        register = _shifted(shift, register) ^ added
    return register


def _sum_of_blocks(tables: _Tables, blocks: Any) -> list[int]:
    """What each row of bytes adds to a register that was 0."""
    length = blocks.shape[1]
    rows = np.arange(length - 1, -1, -1, dtype=np.intp) << 8
    return np.bitwise_xor.reduce(tables.distant.take(blocks + rows, mode="clip"), axis=1).tolist()


def crc32c_of_pieces(octets: np.ndarray[Any, Any], starts: Any, ends: Any) -> np.ndarray[Any, Any]:
    """The checksums of pieces of an array, as uint32.

    Args:
        octets: The bytes.
        starts: Where pieces start, ascending.
        ends: Where they end: not after the next one starts.
    """
    native = native_crc32c()
    if native is not None:
        data = octets.tobytes()
        pieces = map(slice, starts.tolist(), ends.tolist())
        return np.fromiter(map(native, repeat(0), map(data.__getitem__, pieces)), np.uint32, len(starts))
    compiled = _compiled_for(len(octets))
    if compiled is not None:
        return compiled.each_after(octets, starts, ends, np.full(len(starts), _ONES)).astype(np.uint32) ^ np.uint32(
            _ONES
        )
    lengths = ends - starts
    sums = np.zeros(len(starts), np.uint32)
    for index in np.flatnonzero(lengths > BLOCK_BYTES).tolist():
        sums[index] = numpy_crc32c(octets[starts[index] : ends[index]].tobytes())
    # The others by classes of lengths, of which the greatest is less than twice the least.
    classes = np.where(lengths <= BLOCK_BYTES, np.frexp(lengths)[1], 0)  # 0 also for pieces of no bytes
    for number in np.unique(classes[classes > 0]).tolist():
        chosen = np.flatnonzero(classes == number)
        sums[chosen] = _short_pieces(octets, ends[chosen], lengths[chosen])
    return sums


def _short_pieces(octets: np.ndarray[Any, Any], ends: Any, lengths: Any) -> np.ndarray[Any, Any]:
    """The checksums of pieces that are not longer than `BLOCK_BYTES`.

    Each is a row of bytes up to its end. What a row has before its piece adds nothing.
    """
    tables, longest = _tables(), int(lengths.max())
    if int(ends.min()) < longest:
        octets, ends = np.concatenate([np.zeros(longest, np.uint8), octets]), ends + longest
    rows = np.ndarray((len(octets) - longest + 1, longest), np.uint8, np.ascontiguousarray(octets), 0, (1, 1))
    places = np.arange(longest - 1, -1, -1, dtype=np.int32) << 8
    ragged = longest - int(lengths.min())
    sums = tables.initial[lengths] ^ np.uint32(_ONES)
    at_once = max(1, _BLOCKS_AT_ONCE * BLOCK_BYTES // (8 * longest))
    for first in range(0, len(ends), at_once):
        part = slice(first, first + at_once)
        added = tables.distant.take(rows[ends[part] - longest] + places, mode="clip")
        if ragged:
            added[:, :ragged][np.arange(ragged) < (longest - lengths[part])[:, None]] = 0
        sums[part] ^= np.bitwise_xor.reduce(added, axis=1)
    return sums
