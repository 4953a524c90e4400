"""Lists of a model's variables: by scope, by suffix, or to restore. ``tf.contrib.framework`` has these functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle, repeat
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework.device_spec import DeviceSpec
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import DeviceLike, Operation, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.scopes import get_collection
from tfray.framework.tensor_shape import ShapeLike
from tfray.library.layers.arg_scope import add_arg_scope
from tfray.library.variables.initializers import InitializerLike
from tfray.library.variables.partitioned_variables import Partitioner
from tfray.library.variables.regularizers import RegularizerFunction
from tfray.library.variables.variable_scope import VariableScope, get_variable
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.checks.print_assert_ops import Assert
from tfray.ops.math.comparison_ops import logical_not
from tfray.ops.state import state_ops


@add_arg_scope
def variable(
    name: str,
    shape: ShapeLike = None,
    dtype: DTypeLike | None = None,
    initializer: InitializerLike | None = None,
    regularizer: RegularizerFunction | None = None,
    trainable: bool = True,
    collections: Iterable[str] | None = None,
    caching_device: DeviceLike | None = None,
    device: DeviceLike | None = None,
    partitioner: Partitioner | None = None,
    custom_getter: Callable[..., Any] | None = None,
    **unused: object,
) -> Any:
    """As `tf.get_variable`, on a device.

    Args:
        name: As for `tf.get_variable`, like the arguments that are not named here.
        shape: Shape.
        dtype: Dtype.
        initializer: Initializer.
        regularizer: Regularizer.
        trainable: Whether optimizers are to change it.
        collections: Collections to add it to.
        caching_device: Device of the cached read.
        device: Device of the variable.
        partitioner: Cut it into parts.
        custom_getter: Function through which it is got.
        **unused: Accepted for TensorFlow 1's sake.
    """
    with get_default_graph().device(device or ""):
        return get_variable(
            name,
            shape,
            dtype=dtype,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
            collections=list(collections) if collections is not None else [GraphKeys.GLOBAL_VARIABLES],
            caching_device=caching_device,
            partitioner=partitioner,
            custom_getter=custom_getter,
        )


def global_variable(
    initial_value: Any, validate_shape: bool = True, name: str | None = None, use_resource: bool | None = None
) -> Variable:
    """A variable that is not trained and that checkpoints save; arguments as for `tf.Variable`."""
    return Variable(trainable=False, collections=[GraphKeys.GLOBAL_VARIABLES], **locals())


def local_variable(
    initial_value: Any, validate_shape: bool = True, name: str | None = None, use_resource: bool | None = None
) -> Variable:
    """A variable that is not trained and that no checkpoint saves; arguments as for `tf.Variable`."""
    return Variable(trainable=False, collections=[GraphKeys.LOCAL_VARIABLES], **locals())


def zero_initializer(ref: Any, use_locking: bool = True, name: str = "zero_initializer") -> Any:
    """An operation that fills a variable of known shape with zeros, where it has no value yet. Returns the new value.

    Raises:
        InvalidArgumentError: At run time, the variable has one.
    """
    is_new = logical_not(state_ops.is_variable_initialized(ref))
    with get_default_graph().control_dependencies([Assert(is_new, ["input is already initialized"])]):
        return state_ops.assign(ref, array_ops.zeros(ref.shape, ref.dtype), name=name)


def get_variable_full_name(var: Any) -> str:
    """The name of a variable in checkpoints: of a part of a partitioned one, that of the whole."""
    info = getattr(var, "_save_slice_info", None)
    return str(var.op.name if info is None else info.full_name)


class VariableDeviceChooser:
    """A device function for `variable` that spreads variables over tasks, one after another.

    Args:
        num_tasks: How many tasks there are; 0 for variables on devices of no task.
        job_name: Job of the tasks.
        device_type: Type of the devices.
        device_index: Number of the device.
        replica: Replica of the tasks.
    """

    def __init__(
        self,
        num_tasks: int = 0,
        job_name: str = "ps",
        device_type: str = "CPU",
        device_index: int = 0,
        replica: int | None = None,
    ) -> None:
        self._job = job_name if num_tasks > 0 else None
        self._tasks = cycle(range(num_tasks)) if num_tasks > 0 else repeat(None)
        self._device = DeviceSpec(device_type=device_type, device_index=device_index, replica=replica)

    def __call__(self, op: Operation) -> str:
        return self._device.replace(job=self._job, task=next(self._tasks)).to_string()


@add_arg_scope
def model_variable(
    name: str,
    shape: ShapeLike = None,
    dtype: DTypeLike | None = None,
    initializer: InitializerLike | None = None,
    regularizer: RegularizerFunction | None = None,
    trainable: bool = True,
    collections: Iterable[str] | None = None,
    **kwargs: Any,
) -> Any:
    """As `variable`, for a variable that inference needs.

    It is in ``GraphKeys.GLOBAL_VARIABLES`` and ``GraphKeys.MODEL_VARIABLES``, whatever `collections` names.
    """
    collections = [collections] if isinstance(collections, str) else collections or []
    where = [*collections, GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    where = list(dict.fromkeys(where))
    return variable(name, shape, dtype, initializer, regularizer, trainable, where, **kwargs)


def add_model_variable(var: Any) -> None:
    """Add a variable to ``GraphKeys.MODEL_VARIABLES``, once."""
    known = get_collection(GraphKeys.MODEL_VARIABLES)
    if all(other is not var for other in known):
        get_default_graph().add_to_collection(GraphKeys.MODEL_VARIABLES, var)


def get_variables(
    scope: str | VariableScope | None = None,
    suffix: str | None = None,
    collection: str = GraphKeys.GLOBAL_VARIABLES,
) -> list[Any]:
    """The variables in a collection.

    Args:
        scope: Only those of this scope.
        suffix: Only those whose names end so.
        collection: Name of the collection.
    """
    prefix = scope.name if isinstance(scope, VariableScope) else scope
    if suffix is not None:
        prefix = f"{prefix or ''}.*{suffix}" if ":" in suffix else f"{prefix or ''}.*{suffix}:"
    return get_collection(collection, prefix)


def get_model_variables(scope: str | VariableScope | None = None, suffix: str | None = None) -> list[Any]:
    """The variables that inference needs; arguments as for `get_variables`."""
    return get_variables(scope, suffix, GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope: str | VariableScope | None = None, suffix: str | None = None) -> list[Any]:
    """The variables that no checkpoint saves; arguments as for `get_variables`."""
    return get_variables(scope, suffix, GraphKeys.LOCAL_VARIABLES)


def get_trainable_variables(scope: str | VariableScope | None = None, suffix: str | None = None) -> list[Any]:
    """The variables that optimizers change; arguments as for `get_variables`."""
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


def get_variables_by_suffix(suffix: str, scope: str | None = None) -> list[Any]:
    """The variables whose names end in `suffix`."""
    return get_variables(scope, suffix)


def get_variables_by_name(given_name: str, scope: str | None = None) -> list[Any]:
    """The variables whose names, without scopes, are `given_name`."""
    return get_variables(scope, f"/{given_name}:|^{given_name}:")


def get_unique_variable(var_op_name: str) -> Any:
    """The variable of that full name.

    Raises:
        InvalidArgumentError: There is none.
    """
    for candidate in get_variables(var_op_name):
        if candidate.op.name == var_op_name:
            return candidate
    raise InvalidArgumentError(f"there is no variable {var_op_name!r}")


def get_variables_to_restore(include: Sequence[str] | None = None, exclude: Sequence[str] | None = None) -> list[Any]:
    """The variables of some scopes without those of others.

    Args:
        include: Scopes; all when None.
        exclude: Scopes to leave out.
    """
    if include is None:
        found = get_variables()
    else:
        found = [candidate for scope in include for candidate in get_variables(scope)]
    excluded = {candidate for scope in exclude or () for candidate in get_variables(scope)}
    return [candidate for candidate in dict.fromkeys(found) if candidate not in excluded]


def filter_variables(
    var_list: Iterable[Any],
    include_patterns: Sequence[str] | None = None,
    exclude_patterns: Sequence[str] | None = None,
    reg_search: bool = True,
) -> list[Any]:
    """The variables whose names match one of some regular expressions and none of others.

    Args:
        var_list: The variables.
        include_patterns: Regular expressions; everything when None.
        exclude_patterns: Likewise; nothing when None.
        reg_search: Match anywhere in the name, not at its start only.
    """
    match = re.search if reg_search else re.match

    def matches(patterns: Sequence[str], candidate: Any) -> bool:
        return any(match(pattern, candidate.op.name) for pattern in patterns)

    return [
        candidate
        for candidate in var_list
        if (include_patterns is None or matches(include_patterns, candidate))
        and not matches(exclude_patterns or (), candidate)
    ]
