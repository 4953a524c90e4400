"""Where random operations take their numbers from."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from tfray.errors import DataLossError
from tfray.framework.op_def import Array, KernelContext
from tfray.ops.kernels.cpu_threads import parallel_for

CHUNK: Final = 1 << 17
"""Elements that one thread fills at a time. Do not tune it: another value gives other numbers for the same seed."""

STATE_WORDS: Final = 14
"""Number of uint64 words in the state of a stream.

The key (2), the counter (4), the last Philox block (4), the position in it, a 32-bit half that is left over and whether
there is one, and the number of large requests.
"""

RANDOM_STATE: Final = "random_state@"
"""Prefix of the names of streams in training checkpoints. The device and the stream's own name follow."""

Result = TypeVar("Result")
if TYPE_CHECKING:  # importing numpy.random takes longer than the rest of numpy's first use
    Writer = Callable[[np.random.Generator, Array], None]


def fresh_seeds() -> np.random.SeedSequence:
    """Seeds that differ from call to call and from process to process."""
    return np.random.SeedSequence()


def entropy(count: int) -> Array:
    """So many numbers of 64 bits that nobody can foretell, for what has no seed."""
    return fresh_seeds().generate_state(count, np.uint64)


class RandomStream:
    """The random numbers of one operation in one session on one device. Each run continues where the last one ended.

    The numbers depend on the seeds alone, not on the machine or the number of threads. Philox computes them from a key
    (the seeds) and a counter. Small requests take them in sequence. A large request is cut into chunks, and each chunk
    has its own range of the counter.

    Args:
        seed: First seed. When both seeds are 0, the numbers differ from process to process.
        seed2: Second seed.
        key: Two numbers of 64 bits in place of the seeds.
    """

    def __init__(self, seed: int = 0, seed2: int = 0, key: Array | None = None) -> None:
        if key is None:
            key = np.array([seed, seed2], np.uint64) if seed or seed2 else entropy(2)
        self._key = key
        self._lock = threading.Lock()
        self._sequence = self._generator(0, 0)
        self._large_requests = 0

    def _generator(self, request: int, chunk: int) -> np.random.Generator:
        # The high words of the counter tell request and chunk; the low words count the numbers within a chunk.
        return np.random.Generator(np.random.Philox(key=self._key, counter=[0, 0, chunk, request]))

    def draw(self, function: Callable[[np.random.Generator], Result]) -> Result:
        """The result of `function` on the stream's generator, which no one else uses meanwhile."""
        with self._lock:
            return function(self._sequence)

    def fill(self, out: Array, write: Writer) -> None:
        """Fill `out`, a contiguous NumPy array: ``write(generator, part)`` for each part of it as a vector."""
        flat = out.reshape(-1)
        if flat.size <= CHUNK:
            self.draw(lambda generator: write(generator, flat))
            return
        _, request = self.take_request()

        def fill_chunk(chunk: int) -> None:
            write(self._generator(request, chunk), flat[chunk * CHUNK : (chunk + 1) * CHUNK])

        parallel_for(fill_chunk, -(-flat.size // CHUNK))

    def take_request(self) -> tuple[Array, int]:
        """The key, and the number of one more large request, whose chunks the caller fills."""
        with self._lock:
            self._large_requests += 1
            return self._key, self._large_requests

    def state(self) -> dict[str, Array]:
        """Where the stream is, as one vector of uint64: for checkpoints."""
        with self._lock:
            bits = self._sequence.bit_generator.state
            rest = [bits["buffer_pos"], bits["has_uint32"], bits["uinteger"], self._large_requests]
            parts = [bits["state"]["key"], bits["state"]["counter"], bits["buffer"], np.array(rest, np.uint64)]
            return {"stream": np.concatenate(parts).astype(np.uint64)}

    def restore_state(self, arrays: Mapping[str, Array]) -> None:
        """Put the stream where it was when `state` gave `arrays`. Raises `DataLossError` for anything else."""
        words = np.asarray(arrays.get("stream"))
        if words.shape != (STATE_WORDS,) or words.dtype != np.uint64 or int(words[10]) > 4:
            raise DataLossError("the saved state of a random stream is damaged")
        with self._lock:
            self._key = words[:2].copy()
            self._large_requests = int(words[13])
            self._sequence = self._generator(0, 0)
            self._sequence.bit_generator.state = {
                "bit_generator": "Philox",
                "state": {"key": words[:2].copy(), "counter": words[2:6].copy()},
                "buffer": words[6:10].copy(),
                "buffer_pos": int(words[10]),
                "has_uint32": int(words[11]) & 1,
                "uinteger": int(words[12]) & 0xFFFFFFFF,
            }


def states_of(session_state: Any) -> dict[str, Array]:
    """Where every stream of a session on a device is, by a name that tells its operation and seeds."""
    keys = [key for key in session_state if isinstance(key, tuple) and key[0] == "random"]
    return {"|".join(map(str, key[1:])): session_state.find(key).state()["stream"] for key in keys}


def restore_states(session_state: Any, states: Mapping[str, Array]) -> None:
    """Restore the streams of a session on a device from what `states_of` gave. Others begin anew."""
    for key in [key for key in session_state if isinstance(key, tuple) and key[0] == "random"]:
        session_state.remove(key)
    for name, array in states.items():
        op_name, *seeds = name.rsplit("|", 2)
        seed, seed2 = map(int, seeds)
        key = "random", op_name, seed, seed2
        stream = session_state.lookup_or_create(key, lambda seed=seed, seed2=seed2: RandomStream(seed, seed2))
        stream.restore_state({"stream": array})


def stream_of(ctx: KernelContext) -> RandomStream:
    """The stream of the operation that is running, by its attributes ``seed`` and ``seed2``."""
    return stream_for(ctx, ctx.op_name, ctx.attr("seed"), ctx.attr("seed2"))


def stream_for(ctx: KernelContext, op_name: str, seed: int, seed2: int) -> RandomStream:
    """The stream of an operation: from the `RandomStreams` in use on this thread, or else from the session's."""
    seeds = seed, seed2
    streams = _in_use.get() or ctx.session_state
    stream: RandomStream = streams.lookup_or_create(("random", op_name, *seeds), lambda: RandomStream(*seeds))
    return stream


class RandomStreams:
    """The streams of one iterator over a dataset, separate from the session's. They begin when the iterator begins."""

    def __init__(self) -> None:
        self._streams: dict[Any, RandomStream] = {}
        self._lock = threading.Lock()

    def lookup_or_create(self, key: Hashable, make: Callable[[], RandomStream]) -> RandomStream:
        """The stream of that key, made by `make` the first time."""
        with self._lock:
            if key not in self._streams:
                self._streams[key] = make()
            return self._streams[key]

    def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """The function's result. Its random operations on this thread take their numbers from these streams."""
        token = _in_use.set(self)
        try:
            return function(*arguments)
        finally:
            _in_use.reset(token)


_in_use: Final[ContextVar[RandomStreams | None]] = ContextVar("tfray_random_streams", default=None)


def uniform(generator: np.random.Generator, out: Array) -> None:
    """Fill a floating-point vector from [0, 1). 1 never occurs, whatever the precision."""
    if out.dtype == np.float64:
        generator.random(out=out)
    elif out.dtype == np.float32:
        _uniform_float32(generator.bit_generator, out)
    else:
        # Keep only as many random bits as the type resolves below 1: with more, rounding could give 1.
        wide = np.empty(out.shape, np.float32)
        _uniform_float32(generator.bit_generator, wide)
        steps = np.float32(2**11 if out.dtype == np.float16 else 2**8)
        np.floor(np.multiply(wide, steps, out=wide), out=wide)
        out[...] = np.divide(wide, steps, out=wide)


def _uniform_float32(bits: np.random.BitGenerator, out: Array) -> None:
    # 23 random bits as the mantissa of a number in [1, 2): twice as fast as Generator.random.
    words = bits.random_raw((out.size + 1) // 2).view(np.uint32)[: out.size]
    mantissa = out.view(np.uint32)
    np.right_shift(words, 9, out=mantissa)
    np.bitwise_or(mantissa, 0x3F800000, out=mantissa)
    np.subtract(out, np.float32(1), out=out)


def normal(generator: np.random.Generator, out: Array) -> None:
    """Fill a floating-point vector from the standard normal distribution."""
    if out.dtype in (np.float32, np.float64):
        generator.standard_normal(dtype=out.dtype, out=out)
    else:
        out[...] = generator.standard_normal(out.shape, np.float32)


def truncated_normal(generator: np.random.Generator, out: Array) -> None:
    """Fill a floating-point vector from the standard normal distribution within two standard deviations."""
    normal(generator, out)
    outside = np.flatnonzero(np.abs(out) > 2)
    while outside.size:
        again = np.empty(outside.shape, out.dtype)
        normal(generator, again)
        out[outside] = again
        outside = outside[np.abs(again) > 2]
