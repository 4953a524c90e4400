"""``tf.contrib.framework``: `arg_scope`, and helpers for variables, for programs that use slim."""

from tfray.framework import nest
from tfray.library.layers.arg_scope import (
    add_arg_scope,
    arg_scope,
    arg_scoped_arguments,
    current_arg_scope,
    has_arg_scope,
)
from tfray.library.layers.model_variables import (
    filter_variables,
    get_local_variables,
    get_model_variables,
    get_trainable_variables,
    get_unique_variable,
    get_variables,
    get_variables_by_name,
    get_variables_by_suffix,
    get_variables_to_restore,
    model_variable,
    variable,
)
from tfray.training.checkpoints.assign_from_checkpoint import assign_from_checkpoint, assign_from_checkpoint_fn
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
    "add_arg_scope", "arg_scope", "arg_scoped_arguments", "assert_global_step", "assign_from_checkpoint",
    "assign_from_checkpoint_fn", "create_global_step", "current_arg_scope", "filter_variables", "get_global_step",
    "get_local_variables", "get_model_variables", "get_or_create_global_step", "get_trainable_variables",
    "get_unique_variable", "get_variables", "get_variables_by_name", "get_variables_by_suffix",
    "get_variables_to_restore", "has_arg_scope", "init_from_checkpoint", "list_variables", "load_checkpoint",
    "load_variable", "model_variable", "nest", "variable",
]
# fmt: on
