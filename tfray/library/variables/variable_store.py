"""The variables of a graph by name, and how `tf.get_variable` makes or finds one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np

from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype, float32
from tfray.framework.graph import Tensor
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.region import outermost
from tfray.framework.tensor_shape import TensorShape
from tfray.library.variables import initializers
from tfray.library.variables.partitioned_variables import (
    PartitionedVariable,
    Partitioner,
    slices_of,
)
from tfray.library.variables.variables import (
    Constraint,
    SaveSliceInfo,
    Variable,
    VariableAggregation,
    VariableSynchronization,
)
from tfray.ops.arrays import array_ops


class _AutoReuse:
    def __repr__(self) -> str:
        return "tf.AUTO_REUSE"


AUTO_REUSE: Final = _AutoReuse()
"""As ``reuse``: find a variable that exists, make one that does not."""

Reuse = bool | _AutoReuse
"""True to find a variable, False to make it, `AUTO_REUSE` for either."""


@dataclass(frozen=True)
class VariableRequest:
    """The arguments of a `tf.get_variable` call, with the scope's defaults filled in.

    Attributes:
        name: Full name.
        reuse: True to find a variable, `AUTO_REUSE` to find or make it, anything else to make it.

    The rest, whose order is that of a getter's arguments, is as for `tf.get_variable`.
    """

    name: str
    shape: Any = None
    dtype: DTypeLike = float32
    initializer: Any = None
    regularizer: Callable[[Tensor], Tensor | None] | None = None
    reuse: Any = None
    trainable: bool | None = True
    collections: Iterable[str] | None = None
    caching_device: Any = None
    partitioner: Partitioner | None = None
    validate_shape: bool = True
    use_resource: bool | None = None
    constraint: Constraint | None = None
    synchronization: VariableSynchronization | None = VariableSynchronization.AUTO
    aggregation: VariableAggregation | None = VariableAggregation.NONE

    @property
    def has_value(self) -> bool:
        """Whether the initializer is a value, not a function that makes one."""
        return self.initializer is not None and not callable(self.initializer)

    @property
    def static_shape(self) -> TensorShape:
        """The shape asked for."""
        return TensorShape(self.shape)


_FIELDS: Final = tuple(field.name for field in fields(VariableRequest))


class VariableStore:
    """The variables that `tf.get_variable` made in one graph.

    Attributes:
        variables: By full name; parts of partitioned ones as ``name/part_0`` and so on.
        partitioned: Partitioned variables by full name.
    """

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.partitioned: dict[str, PartitionedVariable] = {}

    def get(self, request: VariableRequest, custom_getter: Callable[..., Any] | None = None) -> Any:
        """The variable asked for, by way of `custom_getter` if there is one.

        Raises:
            ValueError: `custom_getter` is no function, or the variable cannot be made or found as asked for.
        """
        if custom_getter is None:
            return self._get(request)
        if not callable(custom_getter):
            raise ValueError(f"custom_getter passed to get_variable is not callable: {custom_getter!r}")

        def getter(name: str, *args: Any, **kwargs: Any) -> Any:
            changes = getter_arguments(name, args, kwargs)
            return self._get(replace(request, **{key: value for key, value in changes.items() if key in _FIELDS}))

        return call_getter(custom_getter, getter, {key: getattr(request, key) for key in _FIELDS})

    def _get(self, request: VariableRequest) -> Any:
        is_scalar = request.shape is not None and request.static_shape.rank == 0
        if request.partitioner is not None and not is_scalar:
            return self._get_partitioned(request)
        if request.name in self.partitioned and request.reuse:
            return self._found_partitioned(request)
        if f"{request.name}/part_0" in self.variables:
            raise ValueError(
                f"variable {request.name!r} was made in parts: give the same partitioner, or set reuse=True to find "
                "it, or choose another name"
            )
        return self._get_single(request)

    # -- one variable ----------------------------------------------------------------------------

    def _get_single(self, request: VariableRequest, part: initializers.PartitionInfo | None = None) -> Variable:
        if request.has_value and request.shape is not None:
            raise ValueError(f"variable {request.name!r}: give no shape when the initializer is a value, which has one")
        if request.name in self.variables:
            return self._found(request)
        if request.reuse is True:
            raise _missing(request)
        variable = Variable(
            _initial_value(request, part),
            trainable=request.trainable,
            collections=request.collections,
            validate_shape=request.validate_shape,
            caching_device=request.caching_device,
            name=request.name,
            dtype=None if request.has_value else request.dtype,
            constraint=request.constraint,
            synchronization=request.synchronization,
            aggregation=request.aggregation,
        )
        self.variables[request.name] = variable
        if request.regularizer:  # one that is empty, such as {}, stands for none and hides the scope's
            _regularize(variable, request.name, request.regularizer)
        return variable

    def _found(self, request: VariableRequest) -> Variable:
        variable = self.variables[request.name]
        if not request.reuse:
            raise _exists(request, variable.op.site)
        _check_same(request, variable)
        return variable

    # -- partitioned variables -------------------------------------------------------------------

    def _get_partitioned(self, request: VariableRequest) -> PartitionedVariable:
        if request.name in self.partitioned:
            return self._found_partitioned(request)
        if request.reuse is True:
            raise _missing(request)
        if request.name in self.variables:
            raise ValueError(
                f"variable {request.name!r} was made without a partitioner: get it without one, or choose another name"
            )
        shape = convert_to_tensor(request.initializer).shape if request.has_value else request.static_shape
        if not shape.is_fully_defined():
            raise ValueError(f"variable {request.name!r} cannot be partitioned: its shape {shape} is not fully known")
        sizes, dtype = [int(size) for size in shape], as_dtype(request.dtype)
        assert request.partitioner is not None
        partitions = request.partitioner(shape=shape, dtype=dtype)
        if not isinstance(partitions, Sequence | np.ndarray):
            raise ValueError(f"the partitioner of variable {request.name!r} must return a sequence, not {partitions!r}")
        partitions = list(partitions)
        parts = [
            self._get_part(request, sizes, index, offset, part_shape)
            for index, (offset, part_shape) in enumerate(slices_of(sizes, partitions))
        ]
        whole = PartitionedVariable(request.name, sizes, parts[0].dtype, parts, partitions)
        self.partitioned[request.name] = whole
        return whole

    def _get_part(
        self, request: VariableRequest, sizes: list[int], index: int, offset: list[int], shape: list[int]
    ) -> Variable:
        part = replace(request, name=f"{request.name}/part_{index}", shape=shape)
        if request.has_value:
            with outermost() as graph, graph.name_scope(f"{part.name}/PartitionedInitializer/"):
                part = replace(part, shape=None, initializer=array_ops.slice(request.initializer, offset, shape))
        variable = self._get_single(part, initializers.PartitionInfo(sizes, offset))
        variable._save_slice_info = SaveSliceInfo(request.name, sizes, offset, shape)
        return variable

    def _found_partitioned(self, request: VariableRequest) -> PartitionedVariable:
        whole = self.partitioned[request.name]
        if not request.reuse:
            raise _exists(request, next(iter(whole)).op.site)
        _check_same(request, whole)
        if request.partitioner is not None:
            wanted = list(request.partitioner(shape=whole.shape, dtype=whole.dtype))
            if wanted != whole.partitions:
                raise ValueError(
                    f"Trying to reuse partitioned variable {request.name} but specified partitions {wanted} "
                    f"and found partitions {whole.partitions}"
                )
        return whole


def call_getter(custom_getter: Callable[..., Any], getter: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Call a custom getter with those of the `arguments` that it takes."""
    parameters = inspect.signature(custom_getter).parameters.values()
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        names = {parameter.name for parameter in parameters}
        arguments = {key: value for key, value in arguments.items() if key in names}
    return custom_getter(getter, **arguments)


def getter_arguments(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call of a getter, by name."""
    return {"name": name, **dict(zip(_FIELDS[1:], args, strict=False)), **kwargs}


def _check_same(request: VariableRequest, found: Variable | PartitionedVariable) -> None:
    if not request.has_value and not request.static_shape.is_compatible_with(found.shape):
        raise ValueError(
            f"Trying to share variable {request.name}, but specified shape {request.static_shape} "
            f"and found shape {found.shape}"
        )
    if not request.has_value and as_dtype(request.dtype) is not found.dtype:
        raise ValueError(
            f"Trying to share variable {request.name}, but specified dtype {as_dtype(request.dtype).name} "
            f"and found dtype {found.dtype.name}"
        )


def _exists(request: VariableRequest, site: str) -> ValueError:
    return ValueError(
        f"Variable {request.name} already exists, disallowed. It was made at {site}: to share it, set reuse=True or "
        "reuse=tf.AUTO_REUSE in tf.variable_scope; otherwise choose another name"
    )


def _missing(request: VariableRequest) -> ValueError:
    return ValueError(
        f"Variable {request.name} does not exist, or was not created with tf.get_variable(): "
        "set reuse=tf.AUTO_REUSE (or None) in tf.variable_scope to make it"
    )


def _initial_value(request: VariableRequest, part: initializers.PartitionInfo | None) -> Any:
    """What `Variable` takes as the initial value: a value, or a function without arguments."""
    if request.has_value:
        return request.initializer
    initializer = request.initializer or _default_initializer(request)
    if inspect.isclass(initializer):
        initializer = initializer()
    shape = request.static_shape
    if shape.is_fully_defined():
        sizes = [int(size) for size in shape]
        keywords = {"dtype": as_dtype(request.dtype), "partition_info": part}
        taken = {key: value for key, value in keywords.items() if _takes(initializer, key, value is not None)}
        return lambda: initializer(sizes, **taken)
    if _needs_no_arguments(initializer):
        return initializer
    raise ValueError(
        "The initializer passed is not valid. It should be a callable with no arguments and the shape should not be "
        "provided or an instance of `tf.keras.initializers.*' and `shape` should be fully defined. The shape of "
        f"variable {request.name!r} is {shape}"
    )


def _default_initializer(request: VariableRequest) -> Any:
    dtype = as_dtype(request.dtype)
    if dtype.is_floating:
        return initializers.GlorotUniform()
    if dtype.is_integer or dtype.is_bool or dtype.kind == "string":
        return initializers.Zeros()
    raise ValueError(f"variable {request.name!r} needs an initializer: there is no default for {dtype.name}")


def _parameters(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # builtins without a signature
        return []


def _takes(function: Any, name: str, anyhow: bool) -> bool:
    """Whether a function has a parameter of that name; ``**kwargs`` count if `anyhow`."""
    parameters = _parameters(function)
    return any(p.name == name or (anyhow and p.kind is p.VAR_KEYWORD) for p in parameters)


def _needs_no_arguments(function: Any) -> bool:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return all(
        parameter.default is not parameter.empty or parameter.kind in variadic for parameter in _parameters(function)
    )


def _regularize(variable: Variable, name: str, regularizer: Callable[[Any], Tensor | None]) -> None:
    with (
        outermost() as graph,
        graph.control_dependencies(None),
        graph.colocate_with(variable.op, ignore_existing=True),
        graph.name_scope(f"{name}/Regularizer/"),
    ):
        loss = regularizer(variable)
    if loss is not None:
        graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
