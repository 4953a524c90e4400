"""In which dtype layers compute, and in which they keep their variables: the policies of mixed precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from tfray.framework import nest
from tfray.framework.dtypes import DType, as_dtype
from tfray.ops.arrays import array_ops

_reads: Final[ContextVar[DType | None]] = ContextVar("dtype_of_reads", default=None)
_global: Final[dict[str, Any]] = {"policy": None}
_WITH_FLOAT32: Final = "_with_float32_vars"
_INFER: Final = "infer"
_MIXED: Final = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}


class DtypePolicy:
    """What a layer computes in, and what its variables are.

    Args:
        name: A dtype, for both; ``<dtype>_with_float32_vars``; ``mixed_float16`` or ``mixed_bfloat16``, which are the
            same with these dtypes; ``infer`` or ``infer_with_float32_vars``, for the dtype of a layer's first input.

    Raises:
        TypeError: The name is no text.
        ValueError: It is none of those.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"'name' must be a string, such as 'mixed_float16', but got: {name!r}")
        if name == "infer_float32_vars":
            name = _INFER + _WITH_FLOAT32
        self._name = "float32" if name == "float32" + _WITH_FLOAT32 else name
        base = _MIXED.get(name) or name.removesuffix(_WITH_FLOAT32)
        self._compute_dtype = None if base == _INFER else _checked(base, name)
        has_float32 = base != name
        self._variable_dtype = "float32" if has_float32 else self._compute_dtype

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def compute_dtype(self) -> str | None:
        """Name of the dtype of inputs and outputs of a layer; None for that of the first input."""
        return self._compute_dtype

    @property
    def variable_dtype(self) -> str | None:
        """Name of the dtype of a layer's variables; None for that of the first input."""
        return self._variable_dtype

    @property
    def should_cast_variables(self) -> bool:
        """Whether variables have another dtype than that in which they are used."""
        return self._variable_dtype != self._compute_dtype

    def of_call(self, inputs: Any, is_cast: bool) -> tuple[DtypePolicy, Any]:
        """What a layer makes of this policy and of its inputs when it is called.

        Args:
            inputs: A tensor, or a structure of tensors.
            is_cast: Whether floating inputs become what the layer computes in.

        Returns:
            The policy, with a dtype even if that is to be inferred; and the inputs.
        """
        policy: DtypePolicy = self
        if self._compute_dtype is None:
            dtypes = [tensor.dtype for tensor in nest.flatten(inputs)]
            found = next((dtype for dtype in dtypes if dtype.is_floating), as_dtype("float32"))
            policy = DtypePolicy(found.name + (_WITH_FLOAT32 if self._variable_dtype else ""))
        to = as_dtype(policy._compute_dtype or "float32")
        if not is_cast or not to.is_floating:
            return policy, inputs
        return policy, nest.map_structure(
            lambda tensor: array_ops.cast(tensor, to) if tensor.dtype.is_floating and tensor.dtype != to else tensor,
            inputs,
        )


def _checked(base: str, name: str) -> str:
    try:
        return str(as_dtype(base).name)
    except (TypeError, ValueError):
        raise ValueError(
            f"Cannot convert value {name} to a mixed precision Policy: {base!r} is no dtype. Valid policies are those "
            "named 'mixed_float16', 'mixed_bfloat16', '<dtype>' and '<dtype>_with_float32_vars'"
        ) from None


def global_dtype_policy() -> Any:
    """The policy of layers that are given none, or None."""
    return _global["policy"]


def set_global_dtype_policy(policy: DtypePolicy | None) -> None:
    """Set it; None takes it away."""
    _global["policy"] = policy


def policy_of(dtype: Any) -> DtypePolicy | None:
    """The policy of a layer that is made with this for its dtype.

    Args:
        dtype: A policy, a dtype, or None for the global policy.

    Returns:
        The policy. None if the layer is to take the dtype, or that of its inputs, and to cast nothing.
    """
    policy = global_dtype_policy()
    if isinstance(dtype, DtypePolicy):
        policy = dtype
    elif dtype is not None and policy is not None:
        policy = DtypePolicy(as_dtype(dtype).name) if policy.compute_dtype else None
    return policy


@contextmanager
def reads_cast_to(dtype: str | None) -> Iterator[None]:
    """Variables of mixed precision are read as this dtype within; as what they are when None."""
    token = _reads.set(None if dtype is None else as_dtype(dtype))
    try:
        yield
    finally:
        _reads.reset(token)


def dtype_of_reads() -> DType | None:
    """The dtype as which variables of mixed precision are read now, or None."""
    return _reads.get()
