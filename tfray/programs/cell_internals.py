"""What TensorFlow's modules of recurrent networks keep to themselves, and programs import for cells of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tfray.framework import nest
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, int32
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import TensorShape, as_shape
from tfray.library.rnn import rnn_cell_wrappers
from tfray.library.rnn.legacy_seq2seq import feeding_back
from tfray.library.rnn.rnn import common_batch_size, copy_through
from tfray.library.rnn.rnn_cell_base import check_is_cell, zeros_of
from tfray.library.variables.initializers import Constant, Zeros
from tfray.library.variables.variable_scope import get_variable, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.control.tensor_array_ops import TensorArray
from tfray.ops.math.comparison_ops import greater_equal
from tfray.ops.math.linalg_ops import matmul
from tfray.ops.nn.nn_ops import bias_add

KERNEL: Final = "kernel"
BIAS: Final = "bias"


def linear(
    args: Any,
    output_size: int,
    bias: bool,
    bias_initializer: Any = None,
    kernel_initializer: Any = None,
    bias_start: float | None = None,
    scope: Any = None,
) -> Any:
    """``concat(args, 1) @ kernel + bias``, with variables of the current scope, or of `scope`.

    Args:
        args: A tensor ``[batch, size]``, or a list of them.
        output_size: Size of the result.
        bias: Have a bias.
        bias_initializer: Its initializer, or, as in 1.0, its first value; zeros when None.
        kernel_initializer: Initializer of the weights.
        bias_start: First value of the bias, as in 1.0.
        scope: Scope of the variables, as in 0.x.
    """
    start = bias_initializer if isinstance(bias_initializer, (int, float)) else bias_start
    initializer = bias_initializer if start is None else Constant(start)
    if scope is None:
        return rnn_cell_wrappers.linear(args, output_size, bias, initializer, kernel_initializer)
    with variable_scope(scope):
        return rnn_cell_wrappers.linear(args, output_size, bias, initializer, kernel_initializer)


class Linear:
    """`linear` with the same variables in every call: of `get_variable` in the scope in which it is made.

    Args:
        args: Inputs like those that follow.
        output_size: Size of the results.
        build_bias: Have a bias.
        bias_initializer: Its initializer; zeros when None.
        kernel_initializer: Initializer of the weights.
    """

    def __init__(
        self,
        args: Any,
        output_size: int,
        build_bias: bool,
        bias_initializer: Any = None,
        kernel_initializer: Any = None,
    ) -> None:
        parts = [convert_to_tensor(part) for part in (args if isinstance(args, (list, tuple)) else [args])]
        size, dtype = sum(part.shape.as_list()[1] or 0 for part in parts), parts[0].dtype
        self._weights = get_variable(KERNEL, [size, output_size], dtype, kernel_initializer)
        self._biases = None
        if build_bias:
            self._biases = get_variable(BIAS, [output_size], dtype, bias_initializer or Zeros())

    def __call__(self, args: Any) -> Tensor:
        """The result for inputs ``[batch, size]``."""
        joined = array_ops.concat(args, 1) if isinstance(args, (list, tuple)) else convert_to_tensor(args)
        result = matmul(joined, self._weights)
        return result if self._biases is None else bias_add(result, self._biases)


def concat(prefix: Any, suffix: Any, static: bool = False) -> Any:
    """The shape ``prefix + suffix``: of each a number, a shape, or an int32 tensor.

    Args:
        prefix: What comes first.
        suffix: What follows.
        static: Return a list, with None for sizes that are not known, rather than what `tf.zeros` takes.
    """
    if static:
        return [*_static(prefix), *_static(suffix)]
    parts = [_dynamic(part) for part in (prefix, suffix)]
    return array_ops.concat(parts, 0)


def _static(part: Any) -> list[int | None]:
    if isinstance(part, Tensor):
        known = constant_value(part)
        count = 1 if part.shape.rank == 0 else part.shape.as_list()[0] or 0
        return [None] * count if known is None else [int(size) for size in known.reshape(-1)]
    return as_shape([part] if isinstance(part, int) else part).as_list()


def _dynamic(part: Any) -> Tensor:
    if isinstance(part, Tensor):
        return array_ops.reshape(part, [-1])
    shape = as_shape([part] if isinstance(part, int) else part)
    if not shape.is_fully_defined():
        raise ValueError(f"prefix and suffix must be fully defined where no tensor tells them: {shape}")
    return convert_to_tensor(shape.as_list(), int32)


def like_rnncell(cell: Any) -> bool:
    """Whether `cell` can be used as a recurrent cell."""
    try:
        check_is_cell(cell, "")
    except TypeError:
        return False
    return True


def assert_like_rnncell(cell_name: str, cell: Any) -> None:
    """Raise `TypeError` unless `cell` can be used as a recurrent cell."""
    check_is_cell(cell, f"The argument {cell_name!r} ({cell}) is not an RNNCell")


def best_effort_input_batch_size(flat_input: Sequence[Tensor]) -> Any:
    """The batch size of inputs ``[time, batch, ...]``: a number where one of them knows it, otherwise a scalar."""
    return common_batch_size(flat_input)


def infer_state_dtype(explicit_dtype: DTypeLike | None, state: Any) -> DTypeLike:
    """The dtype of a state: `explicit_dtype`, or the one that all its tensors have.

    Raises:
        ValueError: There are none, or they have several dtypes.
    """
    if explicit_dtype is not None:
        return explicit_dtype
    found: list[DType] = list(dict.fromkeys(each.dtype for each in nest.flatten(state)))
    if len(found) != 1:
        said = (
            "Unable to infer dtype from empty state." if not found else f"State has tensors of different dtypes {found}"
        )
        raise ValueError(said)
    return found[0]


def tensor_shape_from_tensor(shape: Any) -> TensorShape:
    """What is known of a shape that may be a tensor."""
    if not isinstance(shape, Tensor):
        return TensorShape(shape)
    known = constant_value(shape)
    return TensorShape([None] * (shape.shape.as_list()[0] or 0) if known is None else [int(size) for size in known])


def should_cache() -> bool:
    """Whether loops ask for copies of variables on their own devices. They need none."""
    return False


def rnn_step(
    time: Tensor,
    sequence_length: Tensor,
    min_sequence_length: Tensor,
    max_sequence_length: Tensor,
    zero_output: Any,
    state: Any,
    call_cell: Callable[[], tuple[Any, Any]],
    state_size: Any,
    skip_conditionals: bool = False,
) -> tuple[Any, Any]:
    """One step of a loop over sequences of different lengths: output and state.

    Args:
        time: Index of the step.
        sequence_length: Lengths ``[batch]``.
        min_sequence_length: Not needed: the values are the same without.
        max_sequence_length: Likewise.
        zero_output: The output of a sequence that has ended, which keeps its state.
        state: The state before.
        call_cell: Returns output and state of the cell.
        state_size: Not needed.
        skip_conditionals: Likewise.
    """
    output, new_state = call_cell()
    nest.assert_same_structure(state, new_state)
    ended = greater_equal(time, sequence_length)
    return copy_through(ended, zero_output, output), copy_through(ended, state, new_state)


def unstacked(inp: Tensor) -> TensorArray:
    """A TensorArray of the slices of a tensor along its first axis."""
    return TensorArray(inp.dtype, array_ops.shape(inp)[0], element_shape=inp.shape[1:]).unstack(inp)


def create_zero_outputs(size: Any, dtype: Any, batch_size: Any) -> Any:
    """Zeros for every size of a structure, each ``[batch, ...]``. `dtype` is a structure like it."""
    return zeros_of(size, batch_size, dtype)


def extract_argmax_and_embed(
    embedding: Any, output_projection: Any = None, update_embedding: bool = True
) -> Callable[[Tensor, Any], Tensor]:
    """A loop function of `tf.contrib.legacy_seq2seq`: it embeds the most likely id of the last output.

    Args:
        embedding: Rows ``[ids, size]``.
        output_projection: Weights and biases that lead from outputs to scores of ids; None for none.
        update_embedding: Let gradients through.
    """
    return feeding_back(embedding, output_projection, update_embedding)
