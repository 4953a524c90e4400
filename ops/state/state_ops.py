"""Variables: their handles, reads and dense updates."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError, OutOfRangeError
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.indexed_slices import Gradient
from tfray.framework.op_def import (
    Array,
    Kernel,
    KernelContext,
    OpDef,
    StoredVariable,
    Update,
    not_differentiable,
    on_every_device,
    register,
)
from tfray.framework.scopes import merging
from tfray.framework.shape_functions import scalar
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import TensorLike, VariableOrHandle
from tfray.ops.resources.handles import looked_up_once


def variable_handle(shape: ShapeLike, dtype: DTypeLike, name: str | None = None, shared_name: str = "") -> Tensor:
    """Make the handle of a variable: what reads and updates take. `tf.Variable` is built on it.

    Args:
        shape: Static shape of the value, possibly partial.
        dtype: Dtype of the value.
        name: Name of the operation.
        shared_name: Name of the storage on the device; that of the operation when empty. Equal names on one
            device share one value, across graphs and sessions.

    Returns:
        A scalar of dtype ``resource``.
    """
    return add_op(VARIABLE, name=name, shape=TensorShape(shape), dtype=as_dtype(dtype), shared_name=shared_name)


def _variable_kernel(ctx: KernelContext) -> Array:
    return ctx.resources.variable(ctx.attr("shared_name") or ctx.op_name, ctx.container)


VARIABLE = register(
    OpDef(
        name="Variable",
        inputs=(),
        outputs=("handle: resource",),
        attrs=("shape", "shared_name"),
        types={"dtype": dtypes.VALUES},
        shape=scalar,
        kernels=on_every_device(looked_up_once(_variable_kernel)),
        stateful=True,
    )
)


def handle_of(ref: VariableOrHandle) -> tuple[Tensor, DType, TensorShape]:
    """The handle of a variable, and the dtype and static shape of its value.

    Args:
        ref: A `tf.Variable`, the handle that `variable_handle` made, the value that `Graph.get_tensor_by_name` gives
            for a variable's name, or the new value that an update such as `assign` returned.

    Raises:
        InvalidArgumentError: `ref` is neither.
    """
    if isinstance(ref, Tensor):
        if ref.op.type == "ReadVariableOp":
            ref = ref.op.inputs[0]
        if ref.op.type == "Variable":
            return ref, ref.op.attrs["dtype"], ref.op.attrs["shape"]
        if _is_new_value(ref):
            return ref.op.inputs[0], ref.op.attrs["dtype"], ref.op.attrs["shape"]
    elif isinstance(getattr(ref, "handle", None), Tensor):
        return ref.handle, getattr(ref, "true_dtype", ref.dtype), ref.shape
    raise InvalidArgumentError(f"{ref!r} is not a variable: pass a tf.Variable, not a value computed from one")


def _is_new_value(ref: object) -> bool:
    """Whether `ref` is what an update of a variable returned: it stands for the variable, after that update."""
    return isinstance(ref, Tensor) and [each.name for each in ref.op.op_def.output_arguments] == ["new_value"]


def add_access(
    definition: OpDef, ref: VariableOrHandle, *inputs: TensorLike, name: str | None = None, **attrs: Any
) -> Any:
    """Add an operation that reads or updates a variable. It goes to the variable's device, whatever the device scopes.

    Args:
        definition: The operation's type; the handle is its first input.
        ref: The variable, of any shape. For the new value that an update returned, the access comes after that update.
        *inputs: The other inputs, of the shapes that the operation takes.
        name: Name of the operation.
        **attrs: Attributes besides those that tell dtype and shape of the variable; they have no shape.

    Returns:
        The output, of the shape that the definition gives.
    """
    handle, dtype, shape = handle_of(ref)
    if "dtype" in definition.types:
        attrs["dtype"] = dtype
    if "shape" in definition.attrs:
        attrs["shape"] = shape
    earlier = [ref] if _is_new_value(ref) else []
    with get_default_graph().control_dependencies(earlier), colocated_with(handle):
        return add_op(definition, handle, *inputs, name=name, **attrs)


def colocated_with(handle: Tensor) -> Any:
    """Context manager: operations made within it go to the device of a handle, whatever the device scopes."""
    graph = get_default_graph()
    # Within a region the handle comes from outside: the placer then puts every operation that takes it on its device.
    return graph.colocate_with(handle, ignore_existing=True) if handle.graph is graph else graph.device(None)


def value_shape(op: Operation) -> list[TensorShape]:
    """Shape function: the output is the variable's value."""
    return [op.attrs["shape"]]


def read_variable(ref: VariableOrHandle, name: str | None = None) -> Tensor:
    """Read the value of a variable.

    Within a step, reads come before updates unless control dependencies say otherwise.

    Args:
        ref: The variable, of any shape.
        name: Name of the operation.

    Returns:
        The shape and dtype of the variable.

    Raises:
        FailedPreconditionError: While running: the variable is not initialised.
    """
    return add_access(READ_VARIABLE, ref, name=name)


def _read_variable_kernel(ctx: KernelContext, resource: StoredVariable) -> Array:
    return resource.read()


def _read_variable_gradient(op: Operation, d_value: Gradient) -> list[Any]:
    # The gradients of all reads add up at the handle, which stands for the variable's value.
    return [d_value]


READ_VARIABLE = register(
    OpDef(
        name="ReadVariableOp",
        inputs=("handle: resource",),
        outputs=("value: dtype",),
        attrs=("shape",),
        types={"dtype": dtypes.VALUES},
        shape=value_shape,
        kernels=on_every_device(_read_variable_kernel),
        gradient=_read_variable_gradient,
        stateful=True,
        access="read",
    )
)


def read_or_default(ref: VariableOrHandle, default: TensorLike, name: str | None = None) -> Tensor:
    """Read a variable, or give `default` while it is not initialised.

    Args:
        ref: The variable, of any shape.
        default: A value of the variable's dtype and a compatible shape.
        name: Name of the operation.

    Returns:
        The shape and dtype of the variable.
    """
    return add_access(READ_OR_DEFAULT, ref, default, name=name)


def _read_or_default_kernel(ctx: KernelContext, resource: StoredVariable, default: Array) -> Array:
    return default if resource.array is None else resource.array


def _read_or_default_gradient(op: Operation, d_value: Gradient) -> list[Any]:
    return [d_value, None]


def _read_or_default_shape(op: Operation) -> list[TensorShape]:
    op.attrs["shape"].assert_is_compatible_with(op.inputs[1].shape)
    return [op.attrs["shape"]]


READ_OR_DEFAULT = register(
    OpDef(
        name="ReadOrDefault",
        inputs=("handle: resource", "default: dtype"),
        outputs=("value: dtype",),
        attrs=("shape",),
        types={"dtype": dtypes.VALUES},
        shape=_read_or_default_shape,
        kernels=on_every_device(_read_or_default_kernel),
        gradient=_read_or_default_gradient,
        stateful=True,
        access="read",
    )
)


def is_variable_initialized(variable: VariableOrHandle, name: str | None = None) -> Tensor:
    """Whether a variable has a value: a bool scalar.

    Args:
        variable: The variable, of any shape.
        name: Name of the operation.

    Examples:
        >>> v = tf.Variable([1, 2])
        >>> session.run(tf.is_variable_initialized(v))
        np.False_
    """
    return add_access(IS_VARIABLE_INITIALIZED, variable, name=name)


def _is_variable_initialized_kernel(ctx: KernelContext, resource: StoredVariable) -> Array:
    return ctx.asarray(resource.array is not None)


IS_VARIABLE_INITIALIZED = register(
    OpDef(
        name="IsVariableInitialized",
        inputs=("handle: resource",),
        outputs=("is_initialized: bool",),
        shape=scalar,
        kernels=on_every_device(_is_variable_initialized_kernel),
        stateful=True,
        access="read",
    )
)


def variable_shape(ref: VariableOrHandle, out_type: DTypeLike = dtypes.int32, name: str | None = None) -> Tensor:
    """The shape of a variable's value as a vector, without moving the value.

    Args:
        ref: The variable, of any shape.
        out_type: ``int32`` or ``int64``.
        name: Name of the operation.
    """
    return add_access(VARIABLE_SHAPE, ref, name=name, out_type=as_dtype(out_type))


def _variable_shape_kernel(ctx: KernelContext, resource: StoredVariable) -> Array:
    return np.array(resource.read().shape, ctx.output_dtype())


def _variable_shape_shape(op: Operation) -> list[TensorShape]:
    return [TensorShape([op.attrs["shape"].rank])]


def _variable_shape_value(op: Operation) -> list[int | None] | None:
    shape: TensorShape = op.attrs["shape"]
    return None if shape.rank is None else shape.as_list()


VARIABLE_SHAPE = register(
    OpDef(
        name="VariableShape",
        inputs=("handle: resource",),
        outputs=("shape_vector: out_type",),
        attrs=("shape",),
        types={"out_type": dtypes.INDICES},
        shape=_variable_shape_shape,
        kernels=on_every_device(_variable_shape_kernel),
        stateful=True,
        access="read",
        shape_value=_variable_shape_value,
    )
)


# -- dense updates -------------------------------------------------------------------------------------


def assign(
    ref: VariableOrHandle,
    value: TensorLike,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """Set a variable.

    Args:
        ref: The variable, of any shape, or a part of it such as ``v[1:]``.
        value: Its new value, of the variable's shape unless `validate_shape` is False.
        validate_shape: Require the shape of the variable (the default). Otherwise it takes that of `value`.
        use_locking: Accepted for TensorFlow 1's sake: updates never interleave.
        name: Name of the operation.

    Returns:
        The new value, in the shape of `value`.

    Raises:
        InvalidArgumentError: `value` has another dtype or, where validated, shape than the variable.

    Examples:
        >>> v = tf.Variable([1.0, 2.0])
        >>> session.run(tf.assign(v, [3.0, 4.0]))
        array([3., 4.], dtype=float32)
    """
    if isinstance(ref, Tensor) and hasattr(ref, "assign"):
        part: Tensor = ref.assign(value, name=name)  # of a variable, made by indexing it
        return part
    replica = merging(ref)
    if replica is not None:
        merged: Tensor = replica.update_variable(ref, lambda each: assign(ref, each, validate_shape, name=name), value)
        return merged
    return add_access(ASSIGN, ref, value, name=name, validate_shape=validate_shape is not False)


def _assign_kernel(ctx: KernelContext, resource: StoredVariable, value: Array) -> Array:
    with resource.lock:
        array = resource.array
        if array is not None and array.shape == value.shape and array.dtype == value.dtype:
            ctx.xp.copyto(array, value)
            return array
        if ctx.attr("validate_shape") and not ctx.attr("shape").is_compatible_with(value.shape):
            raise InvalidArgumentError(
                f"variable {resource.name!r} has shape {ctx.attr('shape')}, cannot be assigned shape {value.shape}; "
                "use validate_shape=False to let its shape change"
            )
        # A copy in C order: the variable must own its memory, updates write into it.
        resource.array = ctx.xp.array(value, order="C")
        return resource.array


def _assign_shape(op: Operation) -> list[TensorShape]:
    if not op.attrs["validate_shape"]:
        return [op.inputs[1].shape]
    return [op.attrs["shape"].merge_with(op.inputs[1].shape)]


ASSIGN = register(
    OpDef(
        name="Assign",
        inputs=("handle: resource", "value: dtype"),
        outputs=("new_value: dtype",),
        attrs=("shape", "validate_shape"),
        types={"dtype": dtypes.VALUES},
        shape=_assign_shape,
        kernels=on_every_device(_assign_kernel),
        gradient=not_differentiable,
        stateful=True,
        access="update",
    )
)


def assign_add(
    ref: VariableOrHandle, value: TensorLike, use_locking: bool | None = None, name: str | None = None
) -> Tensor:
    """Add to a variable, in place.

    Args:
        ref: The variable, of any shape, of a numeric dtype.
        value: What to add, of the variable's shape.
        use_locking: Accepted for TensorFlow 1's sake: updates never interleave.
        name: Name of the operation.

    Returns:
        The new value, in the variable's shape.

    Examples:
        >>> v = tf.Variable([1.0, 2.0])
        >>> session.run(v.initializer)
        >>> session.run(tf.assign_add(v, [10.0, 10.0]))
        array([11., 12.], dtype=float32)
    """
    replica = merging(ref)
    if replica is not None and not _adds_up(ref):
        merged: Tensor = replica.update_variable(ref, lambda each: assign_add(ref, each, name=name), value)
        return merged
    return add_access(ASSIGN_ADD, ref, value, name=name)


def _adds_up(ref: VariableOrHandle) -> bool:
    """Whether a variable of several replicas is a sum that each adds to by itself, such as that of a metric."""
    synchronization, aggregation = (getattr(ref, name, None) for name in ("synchronization", "aggregation"))
    return getattr(synchronization, "name", "") == "ON_READ" and getattr(aggregation, "name", "") in ("NONE", "SUM")


def _dense_update(name: str, operation: str) -> OpDef:
    """Register the operation that computes ``variable = operation(variable, value)``, with a function of NumPy."""

    def kernel(ctx: KernelContext, resource: StoredVariable, value: Array) -> Array:
        with resource.lock:
            array = resource.read()
            if array.shape != value.shape:
                raise InvalidArgumentError(
                    f"variable {resource.name!r} has shape {array.shape}, cannot be updated by shape {value.shape}"
                )
            getattr(ctx.xp, operation)(array, value, out=array)
            return array

    def formula(xp: Any, temporaries: Any, value: Any, variable: Any) -> None:
        getattr(xp, operation)(variable, value, out=variable)

    def update(ctx: KernelContext, resource: StoredVariable, value: Array) -> Update:
        return Update(formula, [resource], value, ())

    return register(
        OpDef(
            name=name,
            inputs=("handle: resource", "value: dtype"),
            outputs=("new_value: dtype",),
            attrs=("shape",),
            types={"dtype": dtypes.NUMERIC},
            shape=_dense_update_shape,
            kernels=on_every_device(Kernel(kernel, update=update)),
            gradient=not_differentiable,
            stateful=True,
            access="update",
        )
    )


def _dense_update_shape(op: Operation) -> list[TensorShape]:
    return [op.attrs["shape"].merge_with(op.inputs[1].shape)]


ASSIGN_ADD = _dense_update("AssignAdd", "add")


def assign_sub(
    ref: VariableOrHandle, value: TensorLike, use_locking: bool | None = None, name: str | None = None
) -> Tensor:
    """Subtract from a variable, in place.

    Args:
        ref: The variable, of any shape, of a numeric dtype.
        value: What to subtract, of the variable's shape.
        use_locking: Accepted for TensorFlow 1's sake: updates never interleave.
        name: Name of the operation.

    Returns:
        The new value, in the variable's shape.

    Examples:
        >>> v = tf.Variable([1.0, 2.0])
        >>> session.run(v.initializer)
        >>> session.run(tf.assign_sub(v, [1.0, 1.0]))
        array([0., 1.], dtype=float32)
    """
    replica = merging(ref)
    if replica is not None and not _adds_up(ref):
        merged: Tensor = replica.update_variable(ref, lambda each: assign_sub(ref, each, name=name), value)
        return merged
    return add_access(ASSIGN_SUB, ref, value, name=name)


ASSIGN_SUB = _dense_update("AssignSub", "subtract")


def count_up_to(ref: VariableOrHandle, limit: int, name: str | None = None) -> Tensor:
    """Add 1 to an integer scalar variable until it reaches `limit`.

    Args:
        ref: The variable, a scalar, int32 or int64.
        limit: Where to stop.
        name: Name of the operation.

    Returns:
        The value from before. Unlike other updates it is a copy.

    Raises:
        OutOfRangeError: While running: the variable has reached `limit`.
    """
    return add_access(COUNT_UP_TO, ref, name=name, limit=int(limit))


def _count_up_to_kernel(ctx: KernelContext, resource: StoredVariable) -> Array:
    with resource.lock:
        array = resource.read()
        before = ctx.to_host(array).copy()
        if before >= ctx.attr("limit"):
            raise OutOfRangeError(f"Reached limit of {ctx.attr('limit')}: variable {resource.name!r}")
        array += 1
        return ctx.asarray(before)


def _count_up_to_shape(op: Operation) -> list[TensorShape]:
    op.attrs["shape"].assert_has_rank(0)
    return [op.attrs["shape"]]


COUNT_UP_TO = register(
    OpDef(
        name="CountUpTo",
        inputs=("handle: resource",),
        outputs=("before: dtype",),
        attrs=("shape", "limit"),
        types={"dtype": dtypes.INDICES},
        shape=_count_up_to_shape,
        kernels=on_every_device(_count_up_to_kernel),
        gradient=not_differentiable,
        stateful=True,
        access="update",
    )
)
