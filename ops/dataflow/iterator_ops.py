"""Iterators over datasets. An iterator is a program's position in its input; its device keeps it between steps."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError, NotFoundError, OutOfRangeError
from tfray.framework import dtypes
from tfray.framework.graph import Operation
from tfray.framework.op_def import Array, KernelContext, OpDef, not_differentiable, on_cpu, register
from tfray.framework.shape_functions import no_outputs, scalar
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.resources.dataset_columns import as_string
from tfray.ops.resources.dataset_values import DatasetValue, IteratorResource
from tfray.ops.resources.handles import looked_up_once


def _iterator_kernel(ctx: KernelContext) -> IteratorResource:
    name = ctx.attr("shared_name") or ctx.op_name
    home = ctx.resources if ctx.attr("shared_name") else ctx.session_state
    resource: IteratorResource = home.lookup_or_create(("iterator", name), lambda: IteratorResource(name))
    return resource


ITERATOR: Final = register(
    OpDef(
        name="Iterator",
        inputs=(),
        outputs=("iterator: resource",),
        attrs=("shared_name",),
        shape=scalar,
        kernels=on_cpu(looked_up_once(_iterator_kernel)),
        stateful=True,
    )
)
"""The place in a dataset: of all sessions on the device if it has a ``shared_name``, of one session otherwise."""


def _make_kernel(ctx: KernelContext, iterator: IteratorResource, dataset: DatasetValue) -> None:
    iterator.restart(dataset, ctx.step.deadline)


MAKE_ITERATOR: Final = register(
    OpDef(
        name="MakeIterator",
        inputs=("iterator: resource", "dataset: variant"),
        outputs=(),
        shape=no_outputs,
        kernels=on_cpu(_make_kernel),
        stateful=True,
        uses_step=True,
        keeps_inputs=True,
    )
)
"""Begin at the first element of a dataset."""


def _element_shapes(op: Operation) -> list[TensorShape]:
    return list(op.attrs["output_shapes"])


def _fits(shape: TensorShape, sizes: tuple[int, ...]) -> bool:
    """As ``shape.is_compatible_with(sizes)``, without making a shape in every step."""
    return shape.rank is None or (
        len(sizes) == shape.rank
        and all(wanted is None or wanted == size for wanted, size in zip(shape.sizes, sizes, strict=True))
    )


def _get_next_kernel(ctx: KernelContext, iterator: IteratorResource, *dataset: DatasetValue) -> list[Any]:
    if dataset:
        iterator.start(dataset[0], ctx.step.deadline)
    iterator.check_initialized()
    element = iterator.next(ctx.step.deadline)
    if element is None:
        raise OutOfRangeError("end of sequence: the dataset has no more elements")
    types, shapes = ctx.attr("output_types"), ctx.attr("output_shapes")
    if len(element) != len(types):
        raise InvalidArgumentError(f"the dataset has elements of {len(element)} components, expected {len(types)}")
    for value, dtype, shape in zip(element, types, shapes, strict=True):
        if dtype is dtypes.variant:
            continue
        found = getattr(value, "dtype", type(value).__name__)
        if found != dtype.numpy or not _fits(shape, np.shape(value)):
            raise InvalidArgumentError(
                f"the dataset has elements of {found} {list(np.shape(value))}, expected {dtype.name} {shape}"
            )
    return list(element)


GET_NEXT: Final = register(
    OpDef(
        name="IteratorGetNext",
        inputs=("iterator: resource", "dataset: variant*"),
        outputs=("components: output_types*",),
        attrs=("output_types", "output_shapes"),
        shape=_element_shapes,
        kernels=on_cpu(_get_next_kernel),
        gradient=not_differentiable,
        stateful=True,
        uses_step=True,
        keeps_inputs=True,
    )
)
"""The next element. With a dataset, an iterator that has not begun begins there."""


def _handle_kernel(ctx: KernelContext, iterator: IteratorResource, *dataset: DatasetValue) -> Any:
    if dataset:
        iterator.start(dataset[0], ctx.step.deadline)
    return as_string(iterator.name.encode())


STRING_HANDLE: Final = register(
    OpDef(
        name="IteratorToStringHandle",
        inputs=("iterator: resource", "dataset: variant*"),
        outputs=("handle: string",),
        shape=scalar,
        kernels=on_cpu(_handle_kernel),
        stateful=True,
        uses_step=True,
        keeps_inputs=True,
    )
)
"""The name of an iterator, to be fed where one is chosen at run time. With a dataset, one that has not begun begins."""


def _from_handle_kernel(ctx: KernelContext, handle: Array) -> IteratorResource:
    name = bytes(np.asarray(handle, object)[()]).decode()
    found = ctx.session_state.find(("iterator", name)) or ctx.resources.find(("iterator", name))
    if found is None:
        raise NotFoundError(f"there is no iterator {name!r} on {ctx.device}: pass the value of its string_handle()")
    result: IteratorResource = found
    return result


FROM_STRING_HANDLE: Final = register(
    OpDef(
        name="IteratorFromStringHandle",
        inputs=("handle: string",),
        outputs=("iterator: resource",),
        shape=scalar,
        kernels=on_cpu(_from_handle_kernel),
        stateful=True,
    )
)
"""The iterator of a name."""
