"""``tf.contrib.framework``: `arg_scope`, and helpers for variables, for programs that use slim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import nest
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import INDICES, as_dtype, int32
from tfray.framework.graph import Graph, Tensor, get_default_graph
from tfray.framework.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor, is_tensor
from tfray.framework.type_aliases import TensorLike
from tfray.library.functions.critical_section import CriticalSection
from tfray.library.functions.nested_function import py_func
from tfray.library.input.record_input import RecordInput
from tfray.library.inspect.print_op import print_op
from tfray.library.layers.arg_scope import (
    add_arg_scope,
    arg_scope,
    arg_scoped_arguments,
    current_arg_scope,
    has_arg_scope,
)
from tfray.library.layers.model_variables import (
    VariableDeviceChooser,
    add_model_variable,
    filter_variables,
    get_local_variables,
    get_model_variables,
    get_trainable_variables,
    get_unique_variable,
    get_variable_full_name,
    get_variables,
    get_variables_by_name,
    get_variables_by_suffix,
    get_variables_to_restore,
    global_variable,
    local_variable,
    model_variable,
    variable,
    zero_initializer,
)
from tfray.library.metrics import confusion
from tfray.library.variables.initializers import ConvolutionOrthogonal1D as convolutional_orthogonal_1d
from tfray.library.variables.initializers import ConvolutionOrthogonal2D as convolutional_orthogonal_2d
from tfray.library.variables.initializers import ConvolutionOrthogonal3D as convolutional_orthogonal_3d
from tfray.library.variables.initializers import DeltaOrthogonal as convolutional_delta_orthogonal
from tfray.ops.arrays.array_ops import identity, rank, reshape, shape, size
from tfray.ops.arrays.broadcast_ops import broadcast_to
from tfray.ops.arrays.join_ops import concat
from tfray.ops.checks.check_ops import (
    assert_same_float_dtype,
    assert_scalar,
    is_non_decreasing,
    is_numeric_tensor,
    is_strictly_increasing,
)
from tfray.ops.checks.print_assert_ops import Assert
from tfray.ops.control.control_flow_ops import case, smart_cond
from tfray.ops.control.type_specs import BoundedTensorSpec, TensorSpec
from tfray.ops.math.arithmetic_ops import add_n
from tfray.ops.math.comparison_ops import equal, logical_and
from tfray.ops.math.reduction_ops import reduce_all, reduce_sum
from tfray.ops.math.sorting_ops import argsort, sort
from tfray.programs.internal_names import get_name_scope, prepend_name_scope, strip_name_scope
from tfray.programs.internal_names import graph_of_inputs as get_graph_from_inputs
from tfray.programs.internal_names import unchanged as deprecated
from tfray.programs.internal_names import unchanged as deprecated_arg_values
from tfray.programs.internal_names import unchanged as deprecated_args
from tfray.programs.layer_internals import smart_constant_value
from tfray.training.checkpoints.assign_from_checkpoint import (
    assign_from_checkpoint,
    assign_from_checkpoint_fn,
    assign_from_values,
    assign_from_values_fn,
)
from tfray.training.checkpoints.checkpoint_utils import (
    init_from_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
)
from tfray.training.checkpoints.warm_start import (
    load_and_remap_matrix_initializer,
    load_embedding_initializer,
    load_linear_multiclass_bias_initializer,
    load_variable_slot_initializer,
)
from tfray.training.threads.global_step import (
    assert_global_step,
    create_global_step,
    get_global_step,
    get_or_create_global_step,
)

# fmt: off
__all__ = [
    "BoundedTensorSpec", "CriticalSection", "RecordInput", "TensorSpec", "VariableDeviceChooser", "add_arg_scope",
    "add_model_variable", "arg_scope", "arg_scoped_arguments", "argsort", "assert_global_step",
    "assert_or_get_global_step", "assert_same_float_dtype", "assert_scalar", "assert_scalar_int",
    "assign_from_checkpoint", "assign_from_checkpoint_fn", "assign_from_values", "assign_from_values_fn",
    "broadcast_to", "convert_to_tensor_or_sparse_tensor", "convolutional_delta_orthogonal",
    "convolutional_orthogonal_1d", "convolutional_orthogonal_2d", "convolutional_orthogonal_3d", "create_global_step",
    "current_arg_scope", "deprecated", "deprecated_arg_values", "deprecated_args", "filter_variables",
    "get_global_step", "get_graph_from_inputs", "get_local_variables", "get_model_variables", "get_name_scope",
    "get_or_create_global_step", "get_placeholders", "get_trainable_variables", "get_unique_variable",
    "get_variable_full_name", "get_variables", "get_variables_by_name", "get_variables_by_suffix",
    "get_variables_to_restore", "global_variable", "has_arg_scope", "init_from_checkpoint", "is_non_decreasing",
    "is_numeric_tensor", "is_strictly_increasing", "is_tensor", "list_variables", "load_and_remap_matrix_initializer",
    "load_checkpoint", "load_embedding_initializer", "load_linear_multiclass_bias_initializer", "load_variable",
    "load_variable_slot_initializer", "local_variable", "model_variable", "nest", "prepend_name_scope", "print_op",
    "py_func", "reduce_sum_n", "remove_squeezable_dimensions", "smart_case", "smart_cond", "smart_constant_value",
    "sort", "strip_name_scope", "variable", "with_same_shape", "with_shape", "zero_initializer",
]
# fmt: on


def get_placeholders(graph: Graph) -> list[Tensor]:
    """The placeholders of a graph, of the shapes that they have.

    Raises:
        TypeError: It is no graph.
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"Input graph needs to be a Graph: {graph!r}")
    return [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]


def assert_or_get_global_step(graph: Graph | None = None, global_step_tensor: Any = None) -> Any:
    """`global_step_tensor` if it can be a global step; when it is None, that of the graph, or None.

    Raises:
        TypeError: It cannot be one.
    """
    if global_step_tensor is None:
        return get_global_step(graph)
    assert_global_step(global_step_tensor)
    return global_step_tensor


def with_shape(expected_shape: Any, tensor: Tensor) -> Tensor:
    """A tensor that must have a certain shape.

    Args:
        expected_shape: The shape: integers, or an int32 vector.
        tensor: Any shape. A scalar is made of one element.

    Returns:
        `tensor`, or the same with a check in every step, and with the static shape `expected_shape`.

    Raises:
        ValueError: The static shape is another one, or `tensor` is sparse.
        InvalidArgumentError: In a step: the shape is another one.
    """
    if isinstance(tensor, SparseTensor):
        raise ValueError("SparseTensor not supported.")
    wanted: Any = expected_shape
    if isinstance(expected_shape, Tensor):
        dtype, ndims = expected_shape.dtype, expected_shape.shape.rank
    else:
        wanted = np.asarray(expected_shape if np.size(expected_shape) else np.empty([0], np.int32))
        dtype, ndims = as_dtype(wanted.dtype), wanted.ndim
    if dtype not in INDICES or (isinstance(expected_shape, Tensor) and dtype is not int32):
        raise ValueError(f"Invalid dtype {dtype.name} for shape {expected_shape} expected of tensor {tensor.name}.")
    if ndims not in (None, 1):
        raise ValueError(f"Invalid rank {ndims} for shape {expected_shape} expected of tensor {tensor.name}.")
    if isinstance(wanted, Tensor):
        return _checked_shape(wanted, tensor)
    if wanted.size == 0 and tensor.shape.rank != 0 and tensor.shape.num_elements() in (1, None):
        return reshape(tensor, [])
    if not tensor.shape.is_compatible_with(wanted.tolist()):
        given, sizes = tensor.shape, wanted.tolist()
        why = "Dimensions are not compatible"
        if given.rank != len(sizes):
            why = f"Shapes must be equal rank, but are {given.rank} and {len(sizes)}"
        raise InvalidArgumentError(f"Invalid shape for tensor {tensor.name}, expected {sizes}, got {given}. {why}")
    if tensor.shape.is_fully_defined():
        return tensor
    checked = _checked_shape(convert_to_tensor(wanted, int32), tensor)
    checked.set_shape(wanted.tolist())
    return checked


def _checked_shape(expected: Tensor, tensor: Tensor) -> Tensor:
    sizes = [expected, shape(tensor)]
    same = equal(concat(sizes, 0), concat(sizes[::-1], 0))  # as many numbers, whatever the ranks are
    holds = logical_and(equal(size(expected), rank(tensor)), reduce_all(same))
    with get_default_graph().control_dependencies(
        [Assert(holds, [f"Wrong shape for {tensor.name} [expected] [actual].", *sizes])]
    ):
        return identity(tensor)


def with_same_shape(expected_tensor: Tensor, tensor: Tensor) -> Tensor:
    """`with_shape` of the shape of another tensor."""
    known = expected_tensor.shape
    return with_shape(known.as_list() if known.is_fully_defined() else shape(expected_tensor), tensor)


def assert_scalar_int(tensor: TensorLike, name: str | None = None) -> Tensor:
    """`tensor`, an int32 or int64 scalar.

    Raises:
        ValueError: It is none.
    """
    tensor = convert_to_tensor(tensor, name=name)
    if tensor.dtype.base_dtype not in INDICES:
        raise InvalidArgumentError(f"Unexpected type {tensor.dtype.name} for {tensor.name}: expected an integer")
    return assert_scalar(tensor)


def reduce_sum_n(tensors: Sequence[TensorLike], name: str | None = None) -> Tensor:
    """The sum of all elements of all tensors, which have one dtype.

    Raises:
        ValueError: There are none.
    """
    if not tensors:
        raise InvalidArgumentError("No tensors provided.")
    with get_default_graph().name_scope(name or "reduce_sum_n"):
        sums = [reduce_sum(each) for each in tensors]
        return sums[0] if len(sums) == 1 else add_n(sums)


def remove_squeezable_dimensions(
    predictions: TensorLike, labels: TensorLike, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Predictions and labels, without a last dimension of size 1 of the one that has one dimension more."""
    labels, predictions = confusion.remove_squeezable_dimensions(labels, predictions, name=name)
    return predictions, labels


def smart_case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    name: str | None = "smart_case",
) -> Any:
    """`tf.case`, except that Python values and constants decide now: only what may be called is called.

    Args:
        pred_fn_pairs: As for `tf.case`; predicates may be Python bools.
        default: As there.
        exclusive: As there, among the predicates that are not known.
        name: Name scope.

    Returns:
        As `tf.case`, with the shapes that the functions return.
    """
    unknown = []
    for pred, function in pred_fn_pairs.items() if isinstance(pred_fn_pairs, Mapping) else pred_fn_pairs:
        value = constant_value(pred) if isinstance(pred, Tensor) else pred
        if value is not None and bool(value):
            default = function
            break
        if value is None:
            unknown.append((pred, function))
    if default is not None and not unknown:
        return default()
    return case(unknown, default, exclusive, name=name)
