"""Moving means and variances for `tf.contrib.distributions`."""

from __future__ import annotations

from collections.abc import Sequence

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.type_aliases import TensorLike
from tfray.library.variables.initializers import zeros_initializer
from tfray.library.variables.variable_scope import get_variable, variable_scope
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.math.math_ops import log, log1p, reduce_logsumexp, square
from tfray.ops.state.state_ops import assign, assign_add, assign_sub


def assign_moving_mean_variance(
    mean_var: Variable, variance_var: Variable, value: TensorLike, decay: TensorLike, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Move a mean and a variance towards a value.

    Args:
        mean_var: The mean: it becomes ``decay * mean + (1 - decay) * value``.
        variance_var: The variance: it becomes ``decay * (variance + (1 - decay) * (value - mean)**2)``.
        value: Of the same shape and dtype.
        decay: Between 0 and 1.
        name: Name of the operations.

    Returns:
        The two after that.

    Raises:
        TypeError: The variables are not floating, or differ in dtype.
    """
    with get_default_graph().name_scope(name or "assign_moving_mean_variance"):
        dtype = mean_var.dtype.base_dtype
        if not dtype.is_floating:
            raise TypeError(f"mean_var.base_dtype({dtype.name}) does not have float type `dtype`.")
        if dtype is not variance_var.dtype.base_dtype:
            raise TypeError(
                f"mean_var.base_dtype({dtype.name}) != variance_var.base_dtype({variance_var.dtype.base_dtype.name})"
            )
        value = convert_to_tensor(value, dtype, "value")
        decay = convert_to_tensor(decay, dtype, "decay")
        delta = value - mean_var
        with get_default_graph().control_dependencies([delta]):
            mean = assign_add(mean_var, (1.0 - decay) * delta)
            variance = assign_sub(variance_var, (1.0 - decay) * (variance_var - decay * square(delta)))
        return mean, variance


def assign_log_moving_mean_exp(
    log_mean_exp_var: Variable, log_value: TensorLike, decay: TensorLike, name: str | None = None
) -> Tensor:
    """Move the logarithm of a mean towards a value that is given by its logarithm.

    Args:
        log_mean_exp_var: It becomes ``log(decay * exp(log_mean) + (1 - decay) * exp(log_value))``.
        log_value: Of the same shape and dtype.
        decay: Between 0 and 1.
        name: Name of the operations.

    Returns:
        The logarithm after that.

    Raises:
        TypeError: The variable is not floating.
    """
    with get_default_graph().name_scope(name or "assign_log_moving_mean_exp"):
        dtype = log_mean_exp_var.dtype.base_dtype
        if not dtype.is_floating:
            raise TypeError(f"log_mean_exp_var.base_dtype({dtype.name}) does not have float type `dtype`.")
        log_value = convert_to_tensor(log_value, dtype, "log_value")
        decay = convert_to_tensor(decay, dtype, "decay")
        both = array_ops.stack([log_mean_exp_var + log(decay), log_value + log1p(-decay)])
        return assign(log_mean_exp_var, reduce_logsumexp(both, 0))


def moving_mean_variance(
    value: TensorLike, decay: TensorLike, collections: Sequence[str] | None = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """`assign_moving_mean_variance` with variables of its own, which begin at 0: ``moving_mean``, ``moving_variance``.

    Args:
        value: See there. Its shape must be known.
        decay: See there.
        collections: Collections of the variables; ``GraphKeys.GLOBAL_VARIABLES`` when None.
        name: The variables' scope.

    Returns:
        The two after that.

    Raises:
        TypeError: `value` is not floating.
    """
    collections = [GraphKeys.GLOBAL_VARIABLES] if collections is None else collections
    with variable_scope(name, "moving_mean_variance", [value, decay]):
        value = convert_to_tensor(value, name="value")
        if not value.dtype.is_floating:
            raise TypeError(f"value.base_dtype({value.dtype.name}) does not have float type `dtype`.")
        variance, mean = (
            get_variable(
                f"moving_{what}",
                value.shape,
                value.dtype,
                zeros_initializer(),
                trainable=False,
                collections=collections,
            )
            for what in ("variance", "mean")
        )
        return assign_moving_mean_variance(mean, variance, value, decay)
