"""What TensorFlow's modules of layers and of Keras share within, and programs import for layers of their own."""

from __future__ import annotations

from typing import Any, Final

from tfray.contrib.graph_editor.select import get_forward_walk_ops
from tfray.framework import nest
from tfray.framework.constant_value import constant_value
from tfray.framework.graph import Operation, Tensor
from tfray.keras.settings import normalize_data_format as normalize_data_format
from tfray.library.variables.variables import Variable
from tfray.ops.control.control_flow_ops import smart_cond

_NAMES: Final = {
    "channels_last": {3: "NWC", 4: "NHWC", 5: "NDHWC"},
    "channels_first": {3: "NCW", 4: "NCHW", 5: "NCDHW"},
}


def normalize_tuple(value: Any, n: int, name: str) -> tuple[int, ...]:
    """A number, or `n` of them, as a tuple. Raises `ValueError`, which names the argument, for anything else."""
    if isinstance(value, int):
        return (value,) * n
    message = f"The `{name}` argument must be a tuple of {n} integers. Received: {value}"
    try:
        found = tuple(int(each) for each in value)
    except (TypeError, ValueError):
        raise ValueError(message) from None
    if len(found) != n:
        raise ValueError(message)
    return found


def to_list(x: Any) -> list[Any]:
    """A list as it is, and anything else as a list of one."""
    return x if isinstance(x, list) else [x]


def make_batches(size: int, batch_size: int) -> list[tuple[int, int]]:
    """First index, and index past the last, of each batch of `size` examples; the last batch may be smaller."""
    return [(start, min(size, start + batch_size)) for start in range(0, size, batch_size)]


def normalize_padding(value: Any) -> Any:
    """``valid``, ``same`` or ``causal``, in lower case. Raises `ValueError` for anything else."""
    if isinstance(value, (list, tuple)):
        return value
    found = value.lower()
    if found not in ("valid", "same", "causal"):
        raise ValueError(f'The `padding` argument must be a list/tuple or one of "valid", "same". Received: {found}')
    return found


def convert_data_format(data_format: str, ndim: int) -> str:
    """The name of a data format that operations take, for inputs of a rank, batch and channels included.

    Raises:
        ValueError: There is no such format, or no such rank.
    """
    if data_format not in _NAMES or ndim not in _NAMES[data_format]:
        raise ValueError(f"Invalid data_format {data_format!r}, or input rank not supported: {ndim}")
    return _NAMES[data_format][ndim]


def conv_output_length(
    input_length: int | None, filter_size: int, padding: str, stride: int, dilation: int = 1
) -> int | None:
    """Size of a convolution's result along an axis; None for an unknown size."""
    if input_length is None:
        return None
    reach = (filter_size - 1) * dilation
    length = input_length + {"same": 0, "causal": 0, "valid": -reach, "full": reach}[padding]
    return (length + stride - 1) // stride


def deconv_output_length(input_length: int | None, filter_size: int, padding: str, stride: int) -> int | None:
    """Size of a transposed convolution's result along an axis; None for an unknown size."""
    if input_length is None:
        return None
    added = {"same": 0, "valid": max(filter_size - stride, 0), "full": 2 - stride - filter_size}[padding]
    return input_length * stride + added


def conv_input_length(output_length: int | None, filter_size: int, padding: str, stride: int) -> int | None:
    """Size of a convolution's input along an axis; None for an unknown size."""
    if output_length is None:
        return None
    pad = {"same": filter_size // 2, "valid": 0, "full": filter_size - 1}[padding]
    return (output_length - 1) * stride - 2 * pad + filter_size


def smart_constant_value(pred: Any) -> Any:
    """The value of a condition; None where only a step knows it.

    Raises:
        TypeError: `pred` is no tensor, and neither a bool, 0 nor 1.
    """
    if isinstance(pred, Variable):
        return None
    return constant_value(pred) if isinstance(pred, Tensor) else smart_cond(pred, lambda: True, lambda: False)


def ask_to_proceed_with_overwrite(filepath: Any) -> bool:
    """Whether a user says that a file that is there may be overwritten; asks until the answer is ``y`` or ``n``."""
    answer = input(f"[WARNING] {filepath} already exists - overwrite? [y/n]")
    while answer.strip().lower() not in ("y", "n"):
        answer = input('Enter "y" (overwrite) or "n" (cancel).')
    return answer.strip().lower() == "y"


def get_reachable_from_inputs(inputs: Any, targets: Any = None) -> set[Any]:
    """All tensors and operations that depend on some, and these themselves.

    Args:
        inputs: Tensors, operations and variables, in any structure.
        targets: Taken, without effect: TensorFlow looks no further once it has found these.
    """
    given = nest.flatten(inputs)
    seeds = [each if isinstance(each, Operation) else each.op for each in given if not isinstance(each, Tensor)]
    takers = [op for each in given if isinstance(each, Tensor) for op in each.consumers()]
    found = get_forward_walk_ops([*seeds, *takers])
    return {*given, *found, *(tensor for op in found for tensor in op.outputs)}
