"""The names of ``tf.compat``: text and bytes, and ``tf.compat.v1``, which is tfray itself."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

import numpy as np

from tfray.errors import UnimplementedError
from tfray.framework.tensor_shape import dimension_at_index as dimension_at_index
from tfray.framework.tensor_shape import dimension_value as dimension_value

# fmt: off
__all__ = [
    "as_bytes", "as_str", "as_str_any", "as_text", "bytes_or_text_types", "complex_types", "control_flow_v2_enabled",
    "dimension_at_index", "dimension_value", "disable_control_flow_v2", "disable_eager_execution",
    "disable_resource_variables", "disable_tensor_equality", "disable_v2_behavior", "disable_v2_tensorshape",
    "enable_control_flow_v2", "enable_eager_execution", "enable_resource_variables", "enable_tensor_equality",
    "enable_v2_behavior", "enable_v2_tensorshape", "executing_eagerly", "forward_compatible", "integral_types",
    "path_to_bytes", "path_to_str", "real_types", "resource_variables_enabled", "v1",
]
# fmt: on

v1: Final = sys.modules["tfray"]  # which is being imported, and imports this module
# ``import tfray.compat.v1 as tf`` looks here.
sys.modules[f"{__name__}.v1"] = v1


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Bytes, or text encoded. Raises `TypeError` for anything else."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    raise TypeError(f"{bytes_or_text!r} is neither text nor bytes")


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Text, or bytes decoded. Raises `TypeError` for anything else."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"{bytes_or_text!r} is neither text nor bytes")


as_str = as_text


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Any value as text: bytes decoded, other values by ``str``."""
    return value.decode(encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """A path object as text; anything else as it is."""
    return os.fspath(path) if hasattr(path, "__fspath__") else path


def path_to_bytes(path: Any) -> bytes:
    """A path as bytes."""
    return as_bytes(path_to_str(path))


def forward_compatible(year: int, month: int, day: int) -> bool:
    """Whether graphs may use what is newer than a date: all of it is there."""
    return True


def disable_v2_behavior() -> None:
    """Do nothing: tfray always behaves as TensorFlow 1."""


disable_eager_execution = disable_v2_behavior
disable_tensor_equality = disable_v2_behavior
disable_v2_tensorshape = disable_v2_behavior

_enabled: Final[set[str]] = set()
"""What the program has asked for of that which makes no difference here."""


def enable_resource_variables() -> None:
    """Note that variables are to be resources: what `resource_variables_enabled` tells. All variables of tfray are."""
    _enabled.add("resource variables")


def disable_resource_variables() -> None:
    """Note the opposite of `enable_resource_variables`: variables are resources nevertheless."""
    _enabled.discard("resource variables")


def resource_variables_enabled() -> bool:
    """Whether `enable_resource_variables` was called last."""
    return "resource variables" in _enabled


def enable_control_flow_v2() -> None:
    """Note what `control_flow_v2_enabled` tells. Branches and loops of tfray are nested graphs in any case."""
    _enabled.add("control flow")


def disable_control_flow_v2() -> None:
    """Note the opposite of `enable_control_flow_v2`: branches and loops are nested graphs nevertheless."""
    _enabled.discard("control flow")


def control_flow_v2_enabled() -> bool:
    """Whether `enable_control_flow_v2` was called last."""
    return "control flow" in _enabled


def enable_v2_tensorshape() -> None:
    """Refuse: the elements of a shape are `Dimension` objects, as in TensorFlow 1. Raises `UnimplementedError`."""
    raise UnimplementedError(
        "the elements of a tf.TensorShape are tf.Dimension objects here: read shape[i].value, shape.as_list(), or "
        "tf.dimension_value(shape[i])"
    )


def enable_tensor_equality() -> None:
    """Refuse: ``==`` of tensors tells whether they are the same, as in TensorFlow 1. Raises `UnimplementedError`."""
    raise UnimplementedError("tensors are compared by identity here: use tf.equal for their values")


def enable_v2_behavior() -> None:
    """Refuse: tfray behaves as TensorFlow 1.

    Raises:
        UnimplementedError: Always.
    """
    raise UnimplementedError("tfray behaves as TensorFlow 1: build the graph, then run it with tf.Session")


def enable_eager_execution(config: Any = None, device_policy: Any = None, execution_mode: Any = None) -> None:
    """Refuse: operations only run in sessions.

    Raises:
        UnimplementedError: Always.
    """
    raise UnimplementedError(
        "tfray has no eager execution: build the graph, then run it with tf.Session (or tf.InteractiveSession and eval)"
    )


def executing_eagerly() -> bool:
    """False: operations run when a session runs them."""
    return False


bytes_or_text_types: Final = (bytes, str)
integral_types: Final = (int, np.integer)
real_types: Final = (int, float, np.integer, np.floating)
complex_types: Final = (int, float, complex, np.number)
