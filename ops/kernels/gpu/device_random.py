"""Uniform random numbers on a GPU: those that a stream has on the host, bit for bit.

A large request of a `RandomStream` is cut into chunks, each with a range of Philox's counter of its own. Every block of
the counter gives four words of 64 bits, whatever came before: a thread of the device computes one.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np

from tfray.framework.op_def import Array, ArrayModule, NumpyDType
from tfray.ops.kernels.random_streams import CHUNK, RandomStream

_BLOCK: Final = 8
"""Numbers from a block of the counter: 32 bits are for each."""

_STEPS: Final = {"float32": 0, "float16": 1 << 11, "bfloat16": 1 << 8}
"""How many numbers below 1 a dtype tells apart where all have the same distance (`random_streams.uniform`)."""

_PREAMBLE: Final = """
#include "cupy/float16.cuh"
#include "cupy/bfloat16.cuh"
// Philox4x64-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011), as NumPy has it.
__device__ void philox(unsigned long long* c, unsigned long long key0, unsigned long long key1) {
  for (int round = 0; round < 10; ++round) {
    unsigned long long high0 = __umul64hi(0xD2E7470EE14C6C93ULL, c[0]), low0 = 0xD2E7470EE14C6C93ULL * c[0];
    unsigned long long high1 = __umul64hi(0xCA5A826395121157ULL, c[2]), low1 = 0xCA5A826395121157ULL * c[2];
    c[0] = high1 ^ c[1] ^ key0;
    c[1] = low1;
    c[2] = high0 ^ c[3] ^ key1;
    c[3] = low0;
    key0 += 0x9E3779B97F4A7C15ULL;
    key1 += 0xBB67AE8584CAA73BULL;
  }
}
"""

_BODY: Final = """
unsigned long long c[4] = {
    (unsigned long long)i % blocks + 1, 0, (unsigned long long)i / blocks, (unsigned long long)request};
philox(c, key0, key1);
for (int k = 0; k < 8; ++k) {
  long long place = (long long)i * 8 + k;
  if (place < count) {
    unsigned int word = (unsigned int)(c[k / 2] >> (32 * (k % 2)));
    float number = __uint_as_float(0x3F800000u | (word >> 9)) - 1.0f;
    if (steps > 0) number = floorf(number * steps) / steps;
    out[place] = T(__fadd_rn(__fmul_rn(number, width), low));
  }
}
"""


def can_draw(xp: ArrayModule, dtype: NumpyDType, size: int, width: float, low: float) -> bool:
    """Whether `draw_uniform` draws so many numbers of ``[low, low + width)``."""
    if xp is np or not hasattr(xp, "ElementwiseKernel") or dtype.name not in _STEPS:
        return False
    is_plain = width == 1 and low == 0
    return CHUNK < size < 1 << 34 and (is_plain or dtype == np.float32)


def draw_uniform(xp: ArrayModule, stream: RandomStream, out: Array, width: float, low: float) -> None:
    """Fill a contiguous array from a stream, as `random_streams.uniform` and a scaling would on the host."""
    key, request = stream.take_request()
    steps = _STEPS[out.dtype.name]
    numbers = (int(key[0]), int(key[1]), request, out.size, CHUNK // _BLOCK, np.float32(steps))
    kernel = _kernel(xp, out.dtype.name)
    kernel(*numbers, np.float32(width), np.float32(low), out, size=-(-out.size // _BLOCK))


@cache
def _kernel(xp: Any, dtype: str) -> Any:
    integers = "uint64 key0, uint64 key1, int64 request, int64 count, int64 blocks"
    body = _BODY.replace("T(", "float(" if dtype == "float32" else f"{dtype}(")
    parts = (f"{integers}, float32 steps, float32 width, float32 low", f"raw {dtype} out", body, "tfray_uniform")
    return xp.ElementwiseKernel(*parts, preamble=_PREAMBLE)
