"""What TensorFlow's modules of layers and of Keras share within, and programs import for layers of their own."""

from __future__ import annotations

from typing import Any, Final

from tfray.contrib.graph_editor.select import get_forward_walk_ops
from tfray.framework import nest
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.scopes import name_scope
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.type_aliases import CollectionNames
from tfray.keras.settings import normalize_data_format as normalize_data_format
from tfray.library.layers.arg_scope import add_arg_scope
from tfray.library.layers.convolution_layers import per_axis
from tfray.library.layers.slim_layers import collect
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import smart_cond
from tfray.ops.math import math_ops
from tfray.ops.nn.any_rank_conv_ops import pool
from tfray.ops.sparse.sparse_layout_ops import sparse_reshape

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


def inner_flatten(
    inputs: Any, new_rank: int, output_collections: CollectionNames | None = None, scope: str | None = None
) -> Any:
    """Join the last dimensions, so that there are `new_rank` of them.

    Args:
        inputs: A tensor or `SparseTensor` of that rank or more.
        new_rank: The number of dimensions, at least 1.
        output_collections: Collections for the result.
        scope: Name scope of the operations.

    Raises:
        ValueError: The rank is smaller.
    """
    with name_scope(scope, "InnerFlatten", [inputs]):
        if not isinstance(inputs, SparseTensor):
            inputs = convert_to_tensor(inputs)
        rank = inputs.shape.rank
        if rank is not None and rank < new_rank:
            raise ValueError(f"inputs has rank less than new_rank {new_rank}: its shape is {inputs.shape}")
        if isinstance(inputs, SparseTensor):
            outer, inner = inputs.dense_shape[: new_rank - 1], inputs.dense_shape[new_rank - 1 :]
            sizes = array_ops.concat([outer, [math_ops.reduce_prod(inner)]], 0)
            found = sparse_reshape(inputs, sizes)
            get_default_graph().add_to_collections(output_collections or (), found)
            return found
        sizes = array_ops.concat([array_ops.shape(inputs)[: new_rank - 1], [-1]], 0)
        flat = array_ops.reshape(inputs, sizes)
        if rank is not None:
            inner = inputs.shape[new_rank - 1 :]
            flat.set_shape(inputs.shape[: new_rank - 1].concatenate([inner.num_elements()]))
        return collect(output_collections, flat)


def poincare_normalize(x: Any, axis: Any = 1, epsilon: float = 1e-5, name: str | None = None) -> Tensor:
    """Vectors whose norm is more than ``1 - epsilon``, shortened to that norm; others as they are.

    Args:
        x: A floating tensor.
        axis: Along which a vector lies: one dimension, or several.
        epsilon: Distance to the norm 1.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    with name_scope(name, "poincare_normalize", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        squares = math_ops.reduce_sum(math_ops.square(x), axis, keepdims=True)
        return math_ops.multiply(x, math_ops.minimum((1.0 - epsilon) * math_ops.rsqrt(squares), 1.0), name=scope)


@add_arg_scope
def pool_any(
    inputs: Any,
    kernel_size: Any,
    pooling_type: str,
    padding: str = "VALID",
    data_format: str | None = None,
    dilation_rate: Any = 1,
    stride: Any = 1,
    outputs_collections: CollectionNames | None = None,
    scope: str | None = None,
) -> Tensor:
    """`tf.nn.pool`, with one number for all dimensions where it takes a list.

    Args:
        inputs: Shape ``[batch, ..., channels]``, in the order of `data_format`, of rank 3 to 5.
        kernel_size: Size of the window: an integer, or one for each dimension.
        pooling_type: ``"AVG"`` or ``"MAX"``.
        padding: ``"VALID"`` or ``"SAME"``.
        data_format: As for `tf.nn.pool`.
        dilation_rate: Distance between the elements of a window, as `kernel_size`.
        stride: Distance between windows, as `kernel_size`.
        outputs_collections: Collections for the outputs.
        scope: Name scope of the operations.

    Raises:
        ValueError: The rank is unknown or less than 3.
    """
    with name_scope(scope, f"{pooling_type.lower()}_pool", [inputs]) as opened:
        inputs = convert_to_tensor(inputs)
        rank = inputs.shape.rank
        if rank is None or rank < 3:
            raise ValueError(f"Rank of inputs must be {'known' if rank is None else '>= 3'}")
        window, rates, steps = (
            per_axis(value, rank - 2, name)
            for value, name in ((kernel_size, "kernel_size"), (dilation_rate, "dilation_rate"), (stride, "stride"))
        )
        pooled = pool(inputs, window, pooling_type, padding, rates, steps, opened, data_format)
        return collect(outputs_collections, pooled)
