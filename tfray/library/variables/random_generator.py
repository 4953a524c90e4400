"""``tf.random.experimental``: generators of random numbers whose state is a variable."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.array_ops import index_tensor
from tfray.ops.kernels.random_streams import entropy
from tfray.ops.math import math_ops
from tfray.ops.math.conversion_ops import bitcast
from tfray.ops.random import stateless_random_ops

__all__ = ["Generator", "create_rng_state", "get_global_generator", "set_global_generator"]

PHILOX: Final = 1
THREEFRY: Final = 2
_STATE_SIZES: Final = {PHILOX: 3, THREEFRY: 2}
"""Algorithms by TensorFlow's numbers, with the sizes of their states: a counter, and the key last."""


def create_rng_state(seed: TensorLike, algorithm: int) -> Any:
    """The state of a generator that begins with a seed.

    Args:
        seed: An integer, or a vector of integers that is the end of the state.
        algorithm: 1 (Philox) or 2 (ThreeFry); here both draw by Philox, from states of different sizes.

    Returns:
        An int64 vector of 3 or 2 numbers: a counter that is 0, and the seed.

    Raises:
        ValueError: There is no such algorithm, or the seed is too long.
    """
    size = _state_size(algorithm)
    wide = np.atleast_1d(np.asarray(seed, object))
    if len(wide) > size:
        raise ValueError(f"a seed of the algorithm {algorithm} has at most {size} numbers, got {len(wide)}")
    words = np.array([int(word) % 2**64 for word in wide], np.uint64).view(np.int64)
    return np.concatenate([np.zeros(size - len(words), np.int64), words])


def _state_size(algorithm: int) -> int:
    if algorithm not in _STATE_SIZES:
        raise ValueError(f"Unsupported algorithm id: {algorithm}; there are 1 (Philox) and 2 (ThreeFry)")
    return _STATE_SIZES[algorithm]


class Generator:
    """A source of random numbers that remembers, in a variable, how far it has come.

    Checkpoints save that variable, and it must be initialised as others are. The results of each method are new ones
    in each step; several in one step take their numbers in the order in which they run.

    Args:
        copy_from: Another generator to begin like.
        state: The state to begin with, an int64 vector.
        alg: Algorithm, as for `create_rng_state`.
    """

    def __init__(
        self, copy_from: Generator | None = None, state: TensorLike | None = None, alg: int | None = None
    ) -> None:
        if copy_from is not None:
            if state is not None or alg is not None:
                raise ValueError("a copy of a generator has its state and algorithm: leave out state and alg")
            self._algorithm = copy_from.algorithm
            initial = copy_from.state.initialized_value()
        elif state is None or alg is None:
            raise ValueError("a generator needs both state and alg, or another generator as copy_from")
        else:
            self._algorithm = alg
            initial = self._checked(state)
        self._state = Variable(initial, trainable=False, name="StateVar")

    @classmethod
    def from_seed(cls, seed: TensorLike, alg: int | None = None) -> Generator:
        """A generator that begins with a seed."""
        alg = PHILOX if alg is None else alg
        return cls(state=create_rng_state(seed, alg), alg=alg)

    @classmethod
    def from_state(cls, state: TensorLike, alg: int) -> Generator:
        """A generator that begins with a state."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: int | None = None) -> Generator:
        """A generator that begins differently in each run of the program."""
        alg = PHILOX if alg is None else alg
        return cls(state=entropy(_state_size(alg)).view(np.int64), alg=alg)

    @classmethod
    def from_key_counter(cls, key: TensorLike, counter: TensorLike, alg: int) -> Generator:
        """A generator that begins with a counter, a vector, and a key."""
        return cls(state=_joined(counter, key), alg=alg)

    @property
    def state(self) -> Variable:
        """The variable that holds the state."""
        return self._state

    @property
    def algorithm(self) -> int:
        """The algorithm's number."""
        return self._algorithm

    @property
    def key(self) -> Tensor:
        """The key, an int64 scalar."""
        return self._state.value()[-1]

    def reset(self, state: TensorLike) -> Operation:
        """The operation that sets the state."""
        operation: Operation = self._state.assign(self._checked(state)).op
        return operation

    def reset_from_seed(self, seed: TensorLike) -> Operation:
        """The operation that begins anew with a seed."""
        return self.reset(create_rng_state(seed, self._algorithm))

    def reset_from_key_counter(self, key: TensorLike, counter: TensorLike) -> Operation:
        """The operation that sets the counter and the key."""
        return self.reset(_joined(counter, key))

    def skip(self, delta: TensorLike) -> Operation:
        """The operation that goes on as if `delta` numbers had been drawn."""
        return self._advanced(convert_to_tensor(delta)).op

    def normal(
        self,
        shape: TensorLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Draw from a normal distribution (arguments as for `tf.random.stateless_normal`). The result has `shape`."""
        with get_default_graph().name_scope(name or "stateful_normal"):
            return stateless_random_ops.stateless_random_normal(shape, self._next_seed(shape), mean, stddev, dtype)

    def truncated_normal(
        self,
        shape: TensorLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """As `normal`, drawn again wherever a number is more than two `stddev` from the mean. It has `shape`."""
        with get_default_graph().name_scope(name or "truncated_normal"):
            seed = self._next_seed(shape)
            return stateless_random_ops.stateless_truncated_normal(shape, seed, mean, stddev, dtype)

    def binomial(
        self,
        shape: TensorLike,
        counts: TensorLike,
        probs: TensorLike,
        dtype: DTypeLike = dtypes.int32,
        name: str | None = None,
    ) -> Tensor:
        """Draw how many of `counts` trials succeed, each with probability `probs`.

        Args:
            shape: Shape of the result.
            counts: Numbers of trials, a scalar, or a vector for the first dimension of `shape`.
            probs: Probabilities, likewise.
            dtype: Dtype of the result, a number type.
            name: Name of the operation.
        """
        sizes = index_tensor(shape)
        with get_default_graph().name_scope(name or "binomial"):
            below = array_ops.ones_like(sizes[1:])
            rows = [
                array_ops.reshape(each, array_ops.concat([array_ops.shape(each), below], 0))
                if each.shape.rank
                else each
                for each in map(convert_to_tensor, (counts, probs))
            ]
            return stateless_random_ops.stateless_random_binomial(
                sizes, self._next_seed(shape), rows[0], rows[1], dtype
            )

    def uniform(
        self,
        shape: TensorLike,
        minval: TensorLike = 0,
        maxval: TensorLike | None = None,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Draw evenly from ``[minval, maxval)`` (as `tf.random.stateless_uniform`). The result has `shape`.

        Raises:
            ValueError: An integer `dtype` without `maxval`.
        """
        if as_dtype(dtype).is_integer and maxval is None:
            raise ValueError(f"Must specify maxval for integer dtype {as_dtype(dtype).name}")
        with get_default_graph().name_scope(name or "stateful_uniform"):
            seed = self._next_seed(shape)
            return stateless_random_ops.stateless_random_uniform(shape, seed, minval, maxval, dtype)

    def uniform_full_int(self, shape: TensorLike, dtype: DTypeLike = dtypes.uint64, name: str | None = None) -> Tensor:
        """Draw from all integers of a dtype: int32, uint32, int64 or uint64. The result has `shape`.

        Raises:
            ValueError: Another `dtype`.
        """
        dtype = as_dtype(dtype)
        if not dtype.is_integer or dtype.size < 4:
            raise ValueError(f"uniform_full_int draws int32, uint32, int64 or uint64, not {dtype.name}")
        with get_default_graph().name_scope(name or "stateful_uniform_full_int"):
            # 32 bits at a time, because an upper bound is exclusive: two of them make 64.
            words = index_tensor(shape)
            if dtype.size == 8:
                words = array_ops.concat([words, np.array([2], words.dtype.numpy)], 0)
            halves = stateless_random_ops.stateless_random_uniform(
                words, self._next_seed(shape), -(2**31), 2**31, dtypes.int64
            )
            return bitcast(array_ops.cast(halves, dtypes.int32), dtype)

    def make_seeds(self, count: int = 1) -> Tensor:
        """Seeds for `count` calls of functions without state, int64 of shape ``[2, count]``."""
        keys = self.uniform_full_int([count], dtypes.int64)
        return array_ops.stack([keys, array_ops.zeros_like(keys)])

    def split(self, count: int = 1) -> list[Generator]:
        """`count` new generators. Their numbers are independent of one another and of those of this one."""
        keys = self.uniform_full_int([count], dtypes.int64)
        counter = np.zeros(_state_size(self._algorithm) - 1, np.int64)
        return [Generator.from_key_counter(key, counter, self._algorithm) for key in array_ops.unstack(keys, count)]

    def _checked(self, state: TensorLike) -> Tensor:
        tensor = convert_to_tensor(state, dtypes.int64)
        tensor.shape.assert_is_compatible_with([_state_size(self._algorithm)])
        return tensor

    def _advanced(self, count: Tensor) -> Tensor:
        """The state after `count` more draws."""
        steps = array_ops.reshape(array_ops.cast(count, dtypes.int64), [1])
        rest = np.zeros(_state_size(self._algorithm) - 1, np.int64)
        advanced: Tensor = self._state.assign_add(array_ops.concat([steps, rest], 0))
        return advanced

    def _next_seed(self, shape: TensorLike) -> Tensor:
        """A seed of the key and the counter, which has gone on past the draws that a result of that shape takes."""
        state = self._advanced(math_ops.reduce_prod(index_tensor(shape)))
        weights = np.array([1, 0x1E3779B97F4A7C15], np.int64)[: _state_size(self._algorithm) - 1]
        counters = math_ops.reduce_sum(state[:-1] * weights)
        return array_ops.stack([state[-1], counters])


def _joined(counter: TensorLike, key: TensorLike) -> Tensor:
    key = array_ops.reshape(convert_to_tensor(key, dtypes.int64), [1])
    return array_ops.concat([convert_to_tensor(counter, dtypes.int64), key], 0)


_GLOBAL: Final = "global_random_generator"


def get_global_generator() -> Generator:
    """The generator of the current graph; it begins differently in each run, unless one was set."""
    found = get_default_graph().root.extra(_GLOBAL, dict)
    if "generator" not in found:
        found["generator"] = Generator.from_non_deterministic_state()
    generator: Generator = found["generator"]
    return generator


def set_global_generator(generator: Generator) -> None:
    """Set the generator of the current graph."""
    get_default_graph().root.extra(_GLOBAL, dict)["generator"] = generator
