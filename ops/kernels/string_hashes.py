"""Hashes of strings that agree with TensorFlow's, over whole arrays of strings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tfray.framework.op_def import Array

Words = Array
"""uint64 arrays; their arithmetic wraps."""

_K0: Final = np.uint64(0xC3A5C85C97CB3127)
_K1: Final = np.uint64(0xB492B66FBE98F273)
_K2: Final = np.uint64(0x9AE16A3B2F90404F)
_BITS: Final = (1 << 64) - 1


class _Strings:
    """Strings in one buffer, from which 8-byte words can be read at any position."""

    def __init__(self, strings: Sequence[bytes]) -> None:
        self.sizes = np.fromiter(map(len, strings), np.int64, len(strings))
        self.starts = np.cumsum(self.sizes) - self.sizes
        data = b"".join([*strings, bytes(16)])
        self._octets = np.frombuffer(data, np.uint8)
        self._words = np.ndarray((len(data) - 8,), "<u8", data, 0, (1,))

    def word(self, at: Array) -> Words:
        """The eight bytes from each of these positions on, the first one lowest."""
        return self._words[at].astype(np.uint64)

    def octet(self, at: Array) -> Words:
        """The byte at each of these positions."""
        return self._octets[at].astype(np.uint64)


def _rotated(words: Words, bits: int) -> Words:
    """Rotated to the right."""
    return (words >> np.uint64(bits)) | (words << np.uint64(64 - bits))


def _mixed(words: Words) -> Words:
    return words ^ (words >> np.uint64(47))


# -- FarmHash Fingerprint64 ----------------------------------------------------------------------------


def fingerprint64(strings: Sequence[bytes]) -> Words:
    """FarmHash's ``Fingerprint64`` of each string: what ``string_to_hash_bucket_fast`` is made of."""
    text = _Strings(strings)
    result = np.full(len(strings), _K2)
    classes: list[tuple[int, int, Callable[[_Strings, Any, Any], Words]]] = [
        (1, 3, _hash_1_to_3),
        (4, 7, _hash_4_to_7),
        (8, 16, _hash_8_to_16),
        (17, 32, _hash_17_to_32),
        (33, 64, _hash_33_to_64),
    ]
    for least, most, function in classes:
        chosen = np.flatnonzero((text.sizes >= least) & (text.sizes <= most))
        if chosen.size:
            result[chosen] = function(text, text.starts[chosen], text.sizes[chosen])
    for index in np.flatnonzero(text.sizes > 64):
        result[index] = _hash_long(text, text.starts[index : index + 1], int(text.sizes[index]))[0]
    return result


def _hash_16(u: Words, v: Words, factor: Words) -> Words:
    a = _mixed((u ^ v) * factor)
    return _mixed((v ^ a) * factor) * factor


def _factor(sizes: Array) -> Words:
    return _K2 + sizes.astype(np.uint64) * np.uint64(2)


def _hash_1_to_3(text: _Strings, at: Array, sizes: Array) -> Words:
    y = text.octet(at) + (text.octet(at + (sizes >> 1)) << np.uint64(8))
    z = sizes.astype(np.uint64) + (text.octet(at + sizes - 1) << np.uint64(2))
    return _mixed(y * _K2 ^ z * _K0) * _K2


def _hash_4_to_7(text: _Strings, at: Array, sizes: Array) -> Words:
    half = np.uint64(0xFFFFFFFF)
    first, last = text.word(at) & half, text.word(at + sizes - 4) & half
    return _hash_16(sizes.astype(np.uint64) + (first << np.uint64(3)), last, _factor(sizes))


def _hash_8_to_16(text: _Strings, at: Array, sizes: Array) -> Words:
    factor = _factor(sizes)
    a, b = text.word(at) + _K2, text.word(at + sizes - 8)
    return _hash_16(_rotated(b, 37) * factor + a, (_rotated(a, 25) + b) * factor, factor)


def _hash_17_to_32(text: _Strings, at: Array, sizes: Array) -> Words:
    factor = _factor(sizes)
    a, b = text.word(at) * _K1, text.word(at + 8)
    c, d = text.word(at + sizes - 8) * factor, text.word(at + sizes - 16) * _K2
    return _hash_16(_rotated(a + b, 43) + _rotated(c, 30) + d, a + _rotated(b + _K2, 18) + c, factor)


def _hash_33_to_64(text: _Strings, at: Array, sizes: Array) -> Words:
    factor = _factor(sizes)
    a, b = text.word(at) * _K2, text.word(at + 8)
    c, d = text.word(at + sizes - 8) * factor, text.word(at + sizes - 16) * _K2
    y = _rotated(a + b, 43) + _rotated(c, 30) + d
    z = _hash_16(y, a + _rotated(b + _K2, 18) + c, factor)
    e, f = text.word(at + 16) * factor, text.word(at + 24)
    g, h = (y + text.word(at + sizes - 32)) * factor, (z + text.word(at + sizes - 24)) * factor
    return _hash_16(_rotated(e + f, 43) + _rotated(g, 30) + h, e + _rotated(f + a, 18) + g, factor)


def _weak_hash_32(text: _Strings, at: Array, a: Words, b: Words) -> tuple[Words, Words]:
    w, x, y, z = (text.word(at + shift) for shift in (0, 8, 16, 24))
    a = a + w
    b = _rotated(b + a + z, 21)
    c = a
    a = a + x + y
    return a + z, b + _rotated(a, 44) + c


def _hash_long(text: _Strings, at: Array, size: int) -> Words:
    """The hash of one string of more than 64 bytes. `at` is an array with its one position, as `_Strings` takes it."""
    x = np.array([81], np.uint64)
    y = x * _K1 + np.uint64(113)
    z = _mixed(y * _K2 + np.uint64(113)) * _K2
    v = w = (np.zeros_like(x), np.zeros_like(x))
    x = x * _K2 + text.word(at)
    end = at + (size - 1) // 64 * 64
    last = end + ((size - 1) & 63) - 63
    while at[0] != end[0]:
        x, y, z, v, w = _round(text, at, x, y, z, v, w, _K1, 1)
        at = at + 64
    factor = _K1 + ((z & np.uint64(0xFF)) << np.uint64(1))
    w = (w[0] + np.uint64((size - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x, y, z, v, w = _round(text, last, x, y, z, v, w, factor, 9)
    return _hash_16(_hash_16(v[0], w[0], factor) + _mixed(y) * _K0 + z, _hash_16(v[1], w[1], factor) + x, factor)


def _round(
    text: _Strings,
    at: Array,
    x: Words,
    y: Words,
    z: Words,
    v: tuple[Array, Array],
    w: tuple[Array, Array],
    factor: Words | np.uint64,
    weight: int,
) -> tuple[Any, ...]:
    """64 bytes of a long string. Returns the new ``x, y, z, v, w``."""
    x = _rotated(x + y + v[0] + text.word(at + 8), 37) * factor
    y = _rotated(y + v[1] + text.word(at + 48), 42) * factor
    x = x ^ (w[1] * np.uint64(weight))
    y = y + v[0] * np.uint64(weight) + text.word(at + 40)
    z = _rotated(z + w[0], 33) * factor
    v = _weak_hash_32(text, at, v[1] * factor, x + w[0])
    w = _weak_hash_32(text, at + 32, z + w[1], y + text.word(at + 16))
    return z, y, x, v, w


def concatenated_fingerprints(first: Words, second: Words) -> Words:
    """A fingerprint of two things of which these are the fingerprints: what hashed crosses are made of."""
    factor = np.uint64(0xC6A4A7935BD1E995)
    mixed = (first ^ factor) ^ (_mixed(second * factor) * factor)
    return _mixed(_mixed(mixed * factor) * factor)


# -- the others ----------------------------------------------------------------------------------------


def murmur64(string: bytes, seed: int = 0xDECAFCAFFE) -> int:
    """The 64-bit Murmur hash that ``string_to_hash_bucket`` is made of."""
    m = 0xC6A4A7935BD1E995
    size = len(string)
    value = seed ^ (size * m & _BITS)
    whole = size - size % 8
    for at in range(0, whole, 8):
        k = int.from_bytes(string[at : at + 8], "little") * m & _BITS
        value = (value ^ ((k ^ k >> 47) * m & _BITS)) * m & _BITS
    if size > whole:
        value = (value ^ int.from_bytes(string[whole:], "little")) * m & _BITS
    value = (value ^ value >> 47) * m & _BITS
    return value ^ value >> 47


def siphash(strings: Sequence[bytes], key: Sequence[int]) -> Words:
    """SipHash-2-4 of each string, under a key of two 64-bit numbers: for ``string_to_hash_bucket_strong``."""
    counts = np.fromiter((len(string) // 8 + 1 for string in strings), np.int64, len(strings))
    padded = [string + bytes(7 - len(string) % 8) + bytes([len(string) & 0xFF]) for string in strings]
    words = np.frombuffer(b"".join(padded), "<u8").astype(np.uint64)
    order = np.argsort(-counts, kind="stable")  # those with a word at a place come before those without
    starts = (np.cumsum(counts) - counts)[order]
    k0, k1 = key[0] & _BITS, key[1] & _BITS
    numbers = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573
    state = np.repeat(np.array(numbers, np.uint64)[:, None], len(strings), 1)
    for place in range(counts.max(initial=0)):
        known = state[:, : np.count_nonzero(counts > place)]
        word = words[starts[: known.shape[1]] + place]
        known[3] ^= word
        _sip_rounds(known, 2)
        known[0] ^= word
    state[2] ^= np.uint64(0xFF)
    _sip_rounds(state, 4)
    result = np.empty(len(strings), np.uint64)
    result[order] = state[0] ^ state[1] ^ state[2] ^ state[3]
    return result


def _sip_rounds(state: Words, count: int) -> None:
    a, b, c, d = state
    for _ in range(count):
        a = a + b
        b = _rotated(b, 64 - 13) ^ a
        a = _rotated(a, 32)
        c = c + d
        d = _rotated(d, 64 - 16) ^ c
        a = a + d
        d = _rotated(d, 64 - 21) ^ a
        c = c + b
        b = _rotated(b, 64 - 17) ^ c
        c = _rotated(c, 32)
    state[:] = a, b, c, d
