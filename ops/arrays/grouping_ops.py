"""Operations that compute nothing: they make a step run, or wait for, several others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tfray.framework.convert import add_op, contains_tensor, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.op_def import KernelContext, OpDef, on_every_device, register
from tfray.framework.shape_functions import no_outputs
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.shape_ops import identity


def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing; what it depends on runs.

    Args:
        name: Name of the operation.

    Examples:
        >>> counter = tf.Variable(0)
        >>> session.run(counter.initializer)
        >>> with tf.control_dependencies([counter.assign_add(1)]):
        ...     done = tf.no_op()
        >>> session.run(done)
        >>> session.run(counter)
        np.int32(1)
    """
    return add_op(NO_OP, name=name)


def _no_op_kernel(ctx: KernelContext) -> None:
    return None


NO_OP = register(
    OpDef(
        name="NoOp",
        inputs=(),
        outputs=(),
        shape=no_outputs,
        kernels=on_every_device(_no_op_kernel),
        stateful=True,
    )
)


def group(*inputs: Any, name: str | None = None) -> Operation:
    """An operation that runs all `inputs`.

    Args:
        *inputs: Operations, tensors of any shape, variables, or nested lists, tuples and dictionaries of
            these; None is left out.
        name: Name of the operation.

    Raises:
        TypeError: One is something else.

    Examples:
        >>> a, b = tf.Variable(0), tf.Variable(0)
        >>> session.run(tf.global_variables_initializer())
        >>> session.run(tf.group(a.assign_add(1), b.assign_add(2)))
        >>> session.run([a, b])
        [np.int32(1), np.int32(2)]
    """
    ops = list(dict.fromkeys(_operations(inputs)))
    by_device: dict[str, list[Operation]] = {}
    for op in ops:
        by_device.setdefault(op.device, []).append(op)
    graph = get_default_graph()
    if len(by_device) <= 1:
        with graph.control_dependencies(ops), graph.device(next(iter(by_device), "")):
            return no_op(name or "group_deps")
    # Group the operations of each device first: then each device sends only one signal.
    with graph.name_scope(name or "group_deps") as scope:
        parts = []
        for device, members in by_device.items():
            with graph.control_dependencies(members), graph.device(device or None):
                parts.append(no_op())
        with graph.control_dependencies(parts):
            return no_op(scope)


def _operations(inputs: Iterable[Any]) -> list[Operation]:
    found: list[Operation] = []
    for item in inputs:
        if isinstance(item, (list, tuple)):
            found.extend(_operations(item))
        elif isinstance(item, Mapping):
            found.extend(_operations(item.values()))
        elif isinstance(item, IndexedSlices):
            found.extend([item.values.op, item.indices.op])
        elif isinstance(item, (str, bytes)):
            raise TypeError(f"Expected tf.group() expected Tensor arguments not {item!r} with type {type(item)}")
        elif item is not None:
            element = get_default_graph().as_graph_element(item)
            found.append(element.op if isinstance(element, Tensor) else element)
    return found


def tuple_(
    tensors: Iterable[TensorLike], name: str | None = None, control_inputs: Iterable[Any] | None = None
) -> list[Any]:
    """The same tensors, none of which is there before all are. Public as ``tf.tuple``.

    Args:
        tensors: Tensors of any shape, `IndexedSlices`, operations, or None.
        name: Name scope of the operations.
        control_inputs: Operations, or tensors of any shape, to wait for besides.

    Returns:
        A list of the same length, of tensors of the same shapes; an operation is replaced by one that ends when all are
        done.

    Raises:
        ValueError: There are no tensors, or all are None.
    """
    graph = get_default_graph()
    with graph.name_scope(name or "tuple"):
        tensors = [_of_the_graph(item) for item in tensors]
        if all(item is None for item in tensors):
            raise ValueError(f"tuple: tensors is {tensors}, expected a list of one tensor or more")
        gate = group(*tensors, *(control_inputs or ()))
        with graph.control_dependencies([gate]):
            return [_gated(item) for item in tensors]


def _of_the_graph(item: Any) -> Any:
    """A number or an array as a tensor. What is something of the graph stays as it is."""
    return item if item is None or isinstance(item, Operation) or contains_tensor(item) else convert_to_tensor(item)


def _gated(item: TensorLike) -> Any:
    if item is None:
        return None
    if isinstance(item, Operation):
        return no_op("done")
    if isinstance(item, IndexedSlices):
        return IndexedSlices(identity(item.values), item.indices, item.dense_shape)
    tensor = convert_to_tensor(item)
    with tensor.graph.colocate_with(tensor, ignore_existing=True):
        return identity(tensor)
