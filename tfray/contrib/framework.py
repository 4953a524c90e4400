"""``tf.contrib.framework``: `arg_scope`, and helpers for variables, for programs that use slim."""

from tfray.framework import nest
from tfray.framework.sparse_tensor import convert_to_tensor_or_sparse_tensor, is_tensor
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
from tfray.ops.arrays.broadcast_ops import broadcast_to
from tfray.ops.checks.check_ops import (
    assert_same_float_dtype,
    assert_scalar,
    is_non_decreasing,
    is_numeric_tensor,
    is_strictly_increasing,
)
from tfray.ops.control.control_flow_ops import smart_cond
from tfray.ops.control.type_specs import BoundedTensorSpec, TensorSpec
from tfray.ops.math.sorting_ops import argsort, sort
from tfray.programs.internal_names import get_name_scope, prepend_name_scope, strip_name_scope
from tfray.programs.internal_names import unchanged as deprecated
from tfray.programs.internal_names import unchanged as deprecated_arg_values
from tfray.programs.internal_names import unchanged as deprecated_args
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
    "assert_same_float_dtype", "assert_scalar", "assign_from_checkpoint", "assign_from_checkpoint_fn",
    "assign_from_values", "assign_from_values_fn", "broadcast_to", "convert_to_tensor_or_sparse_tensor",
    "create_global_step", "current_arg_scope", "deprecated", "deprecated_arg_values", "deprecated_args",
    "filter_variables", "get_global_step", "get_local_variables", "get_model_variables", "get_name_scope",
    "get_or_create_global_step", "get_trainable_variables", "get_unique_variable", "get_variables",
    "get_variables_by_name", "get_variables_by_suffix", "get_variables_to_restore", "global_variable", "has_arg_scope",
    "init_from_checkpoint", "is_non_decreasing", "is_numeric_tensor", "is_strictly_increasing", "is_tensor",
    "list_variables", "load_checkpoint", "load_variable", "local_variable", "model_variable", "nest",
    "prepend_name_scope", "print_op", "py_func", "smart_cond", "sort", "strip_name_scope", "variable",
    "zero_initializer",
]
# fmt: on
