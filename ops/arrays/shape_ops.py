"""Operations that tell or change the form of a tensor: shape, rank, size, order of dimensions and dtype."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError, UnimplementedError
from tfray.framework import dtypes, shape_functions
from tfray.framework.arguments import by_either_name, none_is_default
from tfray.framework.constant_value import constant_shape, constant_value, is_small
from tfray.framework.convert import add_op, constant_tensor, convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.indexed_slices import Gradient, IndexedSlices
from tfray.framework.op_def import (
    Array,
    KernelContext,
    OpDef,
    lookup,
    not_differentiable,
    on_every_device,
    out_kernel,
    register,
)
from tfray.framework.shape_functions import like_input, normalize_axis
from tfray.framework.sparse_tensor import SparseLike, SparseTensor, SparseTensorValue
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import Axes, TensorLike
from tfray.ops.kernels import batch_rules
from tfray.ops.kernels.copies import contiguous

# -- sizes and axes as tensors -------------------------------------------------------------------------


def index_tensor(value: TensorLike, name: str | None = None) -> Tensor:
    """Sizes, axes or positions, a scalar or vector, as an int32 tensor; int64 if they are int64 or too large."""
    return convert_to_tensor(value, name=name, preferred_dtype=dtypes.int32)


def known_entries(tensor: Tensor) -> list[int | None] | None:
    """The static entries of an integer tensor of rank 0 or 1. An entry that is unknown is None.

    Returns None, and no list, if even the number of entries is unknown, or far larger than any rank.
    """
    value = constant_value(tensor) if is_small(tensor.shape) else None
    if value is not None:
        return [int(entry) for entry in np.ravel(value)]
    shape_value = tensor.op.op_def.shape_value
    if shape_value is not None and tensor.value_index == 0:  # `shape_value` is about output 0 only
        entries = shape_value(tensor.op)
        if entries is not None:
            return list(entries)
    return [None] * (tensor.shape.num_elements() or 0) if is_small(tensor.shape) else None


def sizes_from_input(op: Operation, index: int) -> TensorShape:
    """The shape that input `index`, an integer vector, describes. Raises `ValueError` if an entry is negative."""
    op.inputs[index].shape.assert_has_rank(1)
    value = constant_value(op.inputs[index])
    if value is not None and (value < 0).any():
        raise ValueError(f"{value.tolist()} is not a shape: sizes cannot be negative")
    return constant_shape(op.inputs[index])


def host_ints(ctx: KernelContext, array: Array) -> list[int]:
    """Entries of a small integer array of rank 1, read on the host."""
    return ctx.to_host(array).tolist()


def host_int(ctx: KernelContext, array: Array) -> int:
    """The only entry of an integer array, read on the host."""
    return ctx.to_host(array).item()


def _first_entries(op: Operation) -> list[int | None] | None:
    """`OpDef.shape_value` of an operation whose output has the entries of its first input."""
    return known_entries(op.inputs[0])


def _like_first_input(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    """Gradient of an operation that only gives its first input another shape."""
    return [reshape_like(d_output, op.inputs[0]), *[None] * (len(op.inputs) - 1)]


# -- shape, rank, size ---------------------------------------------------------------------------------


@none_is_default
def shape(input: TensorLike | SparseLike, name: str | None = None, out_type: DTypeLike = dtypes.int32) -> Tensor:
    """Return the shape of a tensor as an integer vector.

    Args:
        input: A tensor of any shape and dtype, a `SparseTensor` or an `IndexedSlices`.
        name: Name of the operation.
        out_type: int32 or int64.

    Returns:
        Shape ``[rank]``; a constant where the static shape is fully known.

    Examples:
        >>> session.run(tf.shape([[1, 2, 3], [4, 5, 6]]))
        array([2, 3], dtype=int32)
    """
    out_type = as_dtype(out_type)
    dense_shape = getattr(input, "dense_shape", None)  # of a `SparseTensor` or `IndexedSlices`
    if dense_shape is not None:
        return cast(dense_shape, out_type, name)
    tensor = convert_to_tensor(input)
    if tensor.shape.is_fully_defined():
        return constant_tensor(np.array(tensor.shape.sizes, out_type.numpy), name or "Shape")
    return add_op(SHAPE, tensor, name=name, out_type=out_type)


def _shape_kernel(ctx: KernelContext, input: Array) -> Array:
    return ctx.xp.array(input.shape, ctx.output_dtype())


def _shape_shape(op: Operation) -> list[TensorShape]:
    """A vector with one entry for each dimension of the input."""
    return [TensorShape([tensor.shape.rank]) for tensor in op.inputs]


def _shape_value(op: Operation) -> list[int | None] | None:
    source = op.inputs[0].shape
    return None if source.rank is None else list(source.sizes)


SHAPE = register(
    OpDef(
        name="Shape",
        inputs=("input: any",),
        outputs=("output: out_type",),
        shape_inputs=("input",),
        types={"out_type": dtypes.INDICES},
        shape=_shape_shape,
        kernels=on_every_device(_shape_kernel),
        shape_value=_shape_value,
        over_batch=batch_rules.measured,
    )
)


@none_is_default
def shape_n(input: Iterable[TensorLike], out_type: DTypeLike = dtypes.int32, name: str | None = None) -> list[Tensor]:
    """Return the shape of each tensor of a list, each an integer vector. See `shape`.

    Raises:
        TypeError: The tensors have several dtypes. A ValueError if there are none.
    """
    if not (tensors := [convert_to_tensor(each) for each in input]):
        raise ValueError("shape_n: input is empty, expected a list of one tensor or more")
    if len({tensor.dtype for tensor in tensors}) > 1:
        raise TypeError(f"shape_n: tensors of one dtype are needed, not {[each.dtype.name for each in tensors]}")
    return [shape(tensor, name, out_type) for tensor in tensors]


def rank(input: TensorLike | SparseLike, name: str | None = None) -> Tensor:
    """Return the number of dimensions of a tensor, or `SparseTensor`, as an int32 scalar.

    Examples:
        >>> session.run(tf.rank([[1, 2, 3], [4, 5, 6]]))
        np.int32(2)
    """
    if isinstance(input, SparseTensor):
        return size(input.dense_shape, name)
    tensor = convert_to_tensor(input)
    if tensor.shape.rank is not None:
        return constant_tensor(np.array(tensor.shape.rank, np.int32), name or "Rank")
    return add_op(RANK, tensor, name=name)


def _rank_kernel(ctx: KernelContext, input: Array) -> Array:
    return ctx.xp.array(input.ndim, np.int32)


RANK = register(
    OpDef(
        name="Rank",
        inputs=("input: any",),
        outputs=("output: int32",),
        shape_inputs=("input",),
        shape=shape_functions.scalar,
        kernels=on_every_device(_rank_kernel),
    )
)


@none_is_default
def size(input: TensorLike | SparseLike, name: str | None = None, out_type: DTypeLike = dtypes.int32) -> Tensor:
    """Return the number of elements of a tensor as a scalar of dtype `out_type` (int32 or int64).

    Examples:
        >>> session.run(tf.size([[1, 2, 3], [4, 5, 6]]))
        np.int32(6)
    """
    out_type = as_dtype(out_type)
    if isinstance(input, (SparseTensor, SparseTensorValue)):
        sizes = cast(SparseTensor.from_value(input).dense_shape, out_type)
        return add_op(lookup("Prod"), sizes, 0, name=name, keep_dims=False)
    tensor = convert_to_tensor(input)
    count = tensor.shape.num_elements()
    if count is not None:
        return constant_tensor(np.array(count, out_type.numpy), name or "Size")
    return add_op(SIZE, tensor, name=name, out_type=out_type)


def _size_kernel(ctx: KernelContext, input: Array) -> Array:
    return ctx.xp.array(input.size, ctx.output_dtype())


SIZE = register(
    OpDef(
        name="Size",
        inputs=("input: any",),
        outputs=("output: out_type",),
        shape_inputs=("input",),
        types={"out_type": dtypes.INDICES},
        shape=shape_functions.scalar,
        kernels=on_every_device(_size_kernel),
        over_batch=batch_rules.counted,
    )
)


# -- the same value ------------------------------------------------------------------------------------


def identity(input: TensorLike, name: str | None = None) -> Tensor:
    """Return a tensor with the same shape, dtype and value as `input`.

    Under `tf.control_dependencies`, the result is there only after the other operations ran.

    Examples:
        >>> counter = tf.Variable(0)
        >>> session.run(counter.initializer)
        >>> with tf.control_dependencies([counter.assign_add(1)]):
        ...     text = tf.identity("counted")
        >>> session.run(text)
        b'counted'
        >>> session.run(counter)
        np.int32(1)
    """
    composite: Any = input
    if hasattr(composite, "_to_components"):  # a sparse tensor, for example
        return composite._with_components([add_op(IDENTITY, part, name=name) for part in composite._to_components()])
    return add_op(IDENTITY, input, name=name)


def _identity_kernel(ctx: KernelContext, input: Array) -> Array:
    return input


def _identity_gradient(op: Operation, d_output: Gradient) -> list[Any]:
    return [d_output]


IDENTITY = register(
    OpDef(
        name="Identity",
        inputs=("input: T",),
        outputs=("output: T",),
        types={"T": (*dtypes.VALUES, dtypes.variant)},
        shape=like_input(0),
        kernels=on_every_device(_identity_kernel),
        gradient=_identity_gradient,
        forwards_input=True,
        shape_value=_first_entries,
        over_batch=batch_rules.unchanged,
    )
)


def guarantee_const(input: TensorLike, name: str | None = None) -> Tensor:
    """Return `input`, same shape and dtype, as `identity` does. The hint that it never changes is not used."""
    return identity(input, name or "GuaranteeConst")


def stop_gradient(input: TensorLike, name: str | None = None) -> Tensor:
    """Return `input` unchanged, same shape and dtype. `tf.gradients` treats the result as a constant.

    Examples:
        >>> x = tf.constant([3.0])
        >>> session.run(tf.gradients(x * tf.stop_gradient(x), x))
        [array([3.], dtype=float32)]
    """
    return add_op(STOP_GRADIENT, input, name=name)


STOP_GRADIENT = register(
    OpDef(
        name="StopGradient",
        inputs=("input: T",),
        outputs=("output: T",),
        types={"T": dtypes.VALUES},
        shape=like_input(0),
        kernels=on_every_device(_identity_kernel),
        gradient=not_differentiable,
        forwards_input=True,
        shape_value=_first_entries,
        over_batch=batch_rules.unchanged,
    )
)


# -- the same elements in another shape ----------------------------------------------------------------


def reshape(tensor: TensorLike, shape: TensorLike, name: str | None = None) -> Tensor:
    """Give a tensor another shape with the same elements in the same order.

    Args:
        tensor: Shape ``[...]``, any dtype.
        shape: Integer vector: the new shape. One entry may be -1: this size is inferred from the number of elements.
        name: Name of the operation.

    Returns:
        Shape `shape`, the dtype of `tensor`.

    Raises:
        InvalidArgumentError: The numbers of elements differ.

    Examples:
        >>> session.run(tf.reshape([1, 2, 3, 4, 5, 6], [2, -1]))
        array([[1, 2, 3],
               [4, 5, 6]], dtype=int32)
    """
    return add_op(RESHAPE, tensor, index_tensor(shape), name=name)


def reshape_like(tensor: Tensor, example: Tensor) -> Tensor:
    """`tensor` in the shape of `example`, which has as many elements."""
    result = reshape(tensor, shape(example))
    result.set_shape(example.shape)
    return result


def _reshape_kernel(ctx: KernelContext, tensor: Array, shape: Array) -> Array:
    sizes = host_ints(ctx, shape)
    if sizes.count(-1) == 1 and 0 in sizes and tensor.size == 0:
        count, known = (math.prod(size for size in some if size > 0) for some in (tensor.shape, sizes))
        if count % known:
            raise InvalidArgumentError(f"cannot infer the size of -1 in {sizes} from shape {tensor.shape}")
        sizes[sizes.index(-1)] = count // known
    if min(sizes, default=0) < -1:
        raise InvalidArgumentError(f"reshape: {sizes} may hold sizes and at most one -1")
    try:
        return in_order(ctx, tensor).reshape(sizes)
    except ValueError as error:
        said = f"Input to reshape is a tensor with {tensor.size} values, but the requested shape is {sizes}"
        raise InvalidArgumentError(f"{said}, which {tensor.shape} does not fit") from error


def in_order(ctx: KernelContext, array: Array) -> Array:
    """`array`; or, if it is large and transposed, a copy of it in row-major order.

    Reshaping such an array copies it in any case, and NumPy's own copy takes longer.
    """
    if ctx.xp is not np or array.size < _MIN_ORDERED or array.strides[-1] == array.dtype.itemsize:
        return array
    return contiguous(array)


_MIN_ORDERED: Final = 1 << 16
"""Elements from which a transposed array is copied before it is reshaped. Below, NumPy's own copy is as fast."""


def _reshape_shape(op: Operation) -> list[TensorShape]:
    tensor, target = op.inputs
    target.shape.assert_has_rank(1)
    value = constant_value(target)
    if value is not None and ((value < -1).any() or (value == -1).sum() > 1):
        raise ValueError(f"shape {value.tolist()} may hold sizes and at most one -1")
    result = constant_shape(target)
    count = tensor.shape.num_elements()
    if result.rank is None:
        return [result]
    if count is None:
        _check_divides(tensor.shape, result)
        return [result]
    known = math.prod(size for size in result.sizes if size is not None)
    missing = result.sizes.count(None)
    wanted = ",".join("?" if size is None else str(size) for size in result.sizes)
    refusal = f"Cannot reshape a tensor with {count} elements to shape [{wanted}]"
    if missing == 0 and known != count:
        raise ValueError(f"{refusal} (Input to reshape is a tensor with {count} values)")
    if missing == 1 and (count % known if known else count):
        raise ValueError(f"{refusal}: Dimension size must be evenly divisible by {known} but is {count}")
    if missing == 1 and known:
        return [TensorShape([count // known if size is None else size for size in result.sizes])]
    return [result]


def _check_divides(shape: TensorShape, wanted: TensorShape) -> None:
    """Refuse a target that the known sizes of a shape do not divide, whatever the others are."""
    total = wanted.num_elements()
    part = math.prod(size for size in (shape.sizes if shape.rank is not None else ()) if size is not None)
    if total is not None and part and total % part:
        raise ValueError(f"Dimension size must be evenly divisible by {part} but is {total}: {shape} becomes {wanted}")


RESHAPE = register(
    OpDef(
        name="Reshape",
        inputs=("tensor: T", "shape: Tshape"),
        outputs=("output: T",),
        host_inputs=("shape",),
        types={"T": dtypes.VALUES, "Tshape": dtypes.INDICES},
        shape=_reshape_shape,
        kernels=on_every_device(_reshape_kernel),
        gradient=_like_first_input,
        shape_value=_first_entries,
        over_batch=batch_rules.reshaped,
    )
)


def squeeze(
    input: TensorLike, axis: Axes | None = None, name: str | None = None, squeeze_dims: Axes | None = None
) -> Tensor:
    """Drop dimensions of size 1.

    Args:
        input: Any shape and dtype.
        axis: The dimension to drop, an integer, or a vector (list) of them; None drops every dimension of size 1.
        name: Name of the operation.
        squeeze_dims: Old name of `axis`.

    Returns:
        The shape of `input` without these dimensions.

    Raises:
        InvalidArgumentError: A dimension in `axis` is not of size 1.

    Examples:
        >>> session.run(tf.squeeze([[[1, 2]]]))
        array([1, 2], dtype=int32)
        >>> session.run(tf.squeeze([[[1, 2]]], axis=0))
        array([[1, 2]], dtype=int32)
    """
    axis = by_either_name("squeeze", axis=axis, squeeze_dims=squeeze_dims)
    axes = [] if axis is None else [int(i) for i in np.atleast_1d(axis)]
    return add_op(SQUEEZE, input, name=name, axis=axes)


def _squeeze_kernel(ctx: KernelContext, input: Array) -> Array:
    axes = ctx.attr("axis")
    try:
        return input.squeeze(tuple(axes) if axes else None)
    except ValueError as error:
        what = f"Can not squeeze dim{axes}, expected a dimension of 1, got {input.shape}"
        raise InvalidArgumentError(what) from error


def _squeeze_shape(op: Operation) -> list[TensorShape]:
    source = op.inputs[0].shape
    if source.rank is None:
        return [UNKNOWN]
    axes = {normalize_axis(axis, source.rank) for axis in op.attr("axis")}
    for axis in axes:
        if source.sizes[axis] not in (1, None):
            raise ValueError(f"cannot squeeze dimension {axis} of {source}: its size is not 1")
    if axes:
        return [TensorShape([size for i, size in enumerate(source.sizes) if i not in axes])]
    if None in source.sizes:
        return [UNKNOWN]
    return [TensorShape([size for size in source.sizes if size != 1])]


SQUEEZE = register(
    OpDef(
        name="Squeeze",
        inputs=("input: T",),
        outputs=("output: T",),
        types={"T": dtypes.VALUES},
        attrs=("axis",),
        shape=_squeeze_shape,
        kernels=on_every_device(_squeeze_kernel),
        gradient=_like_first_input,
        shape_value=_first_entries,
        over_batch=batch_rules.squeezed,
    )
)


def expand_dims(
    input: TensorLike, axis: TensorLike | None = None, name: str | None = None, dim: TensorLike | None = None
) -> Tensor:
    """Insert a dimension of size 1.

    Args:
        input: Shape ``[...]``, any dtype.
        axis: Position of the new dimension in the result, an integer scalar; if negative, counted from the end.
        name: Name of the operation.
        dim: Old name of `axis`.

    Returns:
        The shape of `input` with a size of 1 at `axis`.

    Raises:
        ValueError: Both `axis` and `dim` are given, or neither.

    Examples:
        >>> session.run(tf.expand_dims([1, 2], 1))
        array([[1],
               [2]], dtype=int32)
    """
    given = [value for value in (axis, dim) if value is not None]
    if len(given) != 1:
        raise ValueError("Cannot specify both 'axis' and 'dim'" if given else "Must specify an axis argument")
    return add_op(EXPAND_DIMS, input, index_tensor(given[0]), name=name)


def _expand_dims_kernel(ctx: KernelContext, input: Array, dim: Array) -> Array:
    axis = host_int(ctx, dim)
    place = axis if axis >= 0 else axis + input.ndim + 1
    if not 0 <= place <= input.ndim:
        raise InvalidArgumentError(f"Tried to expand dim index {axis} for tensor with {input.ndim} dimensions")
    return input[(slice(None),) * place + (None,)]


def _expand_dims_shape(op: Operation) -> list[TensorShape]:
    source, axis = op.inputs[0].shape, constant_value(op.inputs[1])
    if source.rank is None:
        return [UNKNOWN]
    if axis is None:
        return [TensorShape([None] * (source.rank + 1))]
    sizes = list(source.sizes)
    sizes.insert(normalize_axis(axis.item(), source.rank + 1), 1)
    return [TensorShape(sizes)]


EXPAND_DIMS = register(
    OpDef(
        name="ExpandDims",
        inputs=("input: T", "dim: Tdim"),
        outputs=("output: T",),
        host_inputs=("dim",),
        types={"T": dtypes.VALUES, "Tdim": dtypes.INDICES},
        shape=_expand_dims_shape,
        kernels=on_every_device(_expand_dims_kernel),
        gradient=_like_first_input,
        shape_value=_first_entries,
        over_batch=batch_rules.expanded,
    )
)


def transpose(
    a: TensorLike, perm: TensorLike | None = None, name: str | None = "transpose", conjugate: bool = False
) -> Tensor:
    """Permute the dimensions: dimension ``i`` of the result is dimension ``perm[i]`` of `a`.

    Args:
        a: Shape ``[...]``, any dtype.
        perm: Integer vector, a permutation of the dimensions; None reverses them.
        name: Name of the operation.
        conjugate: Take the complex conjugate as well.

    Returns:
        Shape ``[a.shape[perm[0]], a.shape[perm[1]], ...]``.

    Examples:
        >>> session.run(tf.transpose([[1, 2, 3], [4, 5, 6]]))
        array([[1, 4],
               [2, 5],
               [3, 6]], dtype=int32)
    """
    a = convert_to_tensor(a)
    if perm is None:
        perm = add_op(REVERSED_AXES, a) if a.shape.rank is None else np.arange(a.shape.rank, dtype=np.int32)[::-1]
    return add_op(TRANSPOSE, a, index_tensor(perm), name=name, conjugate=bool(conjugate and a.dtype.is_complex))


def matrix_transpose(a: TensorLike, name: str | None = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """Swap the last two dimensions of `a`, whose rank must be at least 2."""
    with get_default_graph().name_scope(name or "matrix_transpose"):
        a = convert_to_tensor(a)
        if a.shape.rank is None:
            return transpose(a, add_op(SWAPPED_AXES, a), conjugate=conjugate)
        if a.shape.rank < 2:
            raise InvalidArgumentError(f"matrix_transpose needs a rank of at least 2, got shape {a.shape}")
        axes = list(range(a.shape.rank))
        return transpose(a, [*axes[:-2], axes[-1], axes[-2]], conjugate=conjugate)


def _transpose_kernel(ctx: KernelContext, x: Array, perm: Array) -> Array:
    axes = host_ints(ctx, perm)
    try:
        result = x.transpose(axes)
    except ValueError as error:
        raise InvalidArgumentError(f"perm {axes} does not permute the dimensions of shape {x.shape}") from error
    return result.conj() if ctx.attr("conjugate") else result


def _transpose_shape(op: Operation) -> list[TensorShape]:
    source, perm = op.inputs[0].shape, constant_value(op.inputs[1])
    rank = source.rank if source.rank is not None else op.inputs[1].shape.num_elements()
    op.inputs[1].shape.assert_is_compatible_with([rank])
    if perm is None or rank is None:
        return [UNKNOWN if rank is None else TensorShape([None] * rank)]
    if sorted(perm.tolist()) != list(range(rank)):
        raise ValueError(f"perm {perm.tolist()} does not permute {rank} dimensions")
    return [TensorShape([source[axis] for axis in perm.tolist()])]


def _transpose_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    return [transpose(d_y, invert_permutation(op.inputs[1]), conjugate=op.attr("conjugate")), None]


TRANSPOSE = register(
    OpDef(
        name="Transpose",
        inputs=("x: T", "perm: Tperm"),
        outputs=("y: T",),
        host_inputs=("perm",),
        types={"T": dtypes.VALUES, "Tperm": dtypes.INDICES},
        attrs=("conjugate",),
        shape=_transpose_shape,
        kernels=on_every_device(_transpose_kernel),
        gradient=_transpose_gradient,
    )
)


def _reversed_axes_kernel(ctx: KernelContext, input: Array) -> Array:
    return ctx.xp.arange(input.ndim, dtype=np.int32)[::-1]


REVERSED_AXES = register(
    OpDef(
        name="ReversedAxes",
        inputs=("input: any",),
        outputs=("perm: int32",),
        shape_inputs=("input",),
        shape=_shape_shape,
        kernels=on_every_device(_reversed_axes_kernel),
    )
)


def _swapped_axes_kernel(ctx: KernelContext, input: Array) -> Array:
    if input.ndim < 2:
        raise InvalidArgumentError(f"expected matrices, got a tensor of shape {input.shape}")
    return ctx.asarray([*range(input.ndim - 2), input.ndim - 1, input.ndim - 2], np.int32)


SWAPPED_AXES = register(replace(REVERSED_AXES, name="SwappedAxes", kernels=on_every_device(_swapped_axes_kernel)))


def invert_permutation(x: TensorLike, name: str | None = None) -> Tensor:
    """Invert a permutation: ``y[x[i]] = i``.

    Args:
        x: Shape ``[n]``, int32 or int64: the numbers from 0 to ``n - 1`` in some order.
        name: Name of the operation.

    Returns:
        Shape ``[n]``, the same dtype.
    """
    x = index_tensor(x)
    value = constant_value(x)
    if value is not None and value.ndim == 1 and sorted(value.tolist()) == list(range(value.size)):
        return constant_tensor(np.argsort(value).astype(value.dtype), name or "InvertPermutation")
    return add_op(INVERT_PERMUTATION, x, name=name)


def _invert_permutation_kernel(ctx: KernelContext, x: Array) -> Array:
    order = ctx.xp.argsort(x)
    if not bool((x[order] == ctx.xp.arange(x.size)).all()):
        raise InvalidArgumentError(f"a number is duplicated in the input, or beyond {x.size - 1}: {ctx.to_host(x)}")
    return order.astype(x.dtype)


INVERT_PERMUTATION = register(
    OpDef(
        name="InvertPermutation",
        inputs=("x: T",),
        outputs=("y: T",),
        types={"T": dtypes.INDICES},
        shape=lambda op: [op.inputs[0].shape.with_rank(1)],
        kernels=on_every_device(_invert_permutation_kernel),
    )
)


# -- another dtype -------------------------------------------------------------------------------------


def cast(x: TensorLike | SparseLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """Convert the elements to another dtype.

    Args:
        x: Any shape, any dtype but string. Of a `SparseTensor` or `IndexedSlices`, the values are converted.
        dtype: The new dtype. Floats become integers by truncation; numbers become bool as ``x != 0``; the
            imaginary part is dropped where the new dtype is real.
        name: Name of the operation.

    Returns:
        Same shape as `x`; `x` itself when it has the dtype already.

    Examples:
        >>> session.run(tf.cast([1.8, -1.8, 0.0], tf.int32))
        array([ 1, -1,  0], dtype=int32)
    """
    dtype = as_dtype(dtype)
    if isinstance(x, (SparseTensor, IndexedSlices)):
        return _cast_values(x, dtype, name)
    x = convert_to_tensor(x)
    if x.dtype is not dtype and dtypes.string in (x.dtype, dtype):
        raise UnimplementedError(
            f"Cast {x.dtype.name} to {dtype.name} is not supported: see tf.as_string, tf.string_to_number"
        )
    return x if x.dtype is dtype else add_op(CAST, x, name=name, DstT=dtype)


def _cast_values(x: SparseTensor | IndexedSlices, dtype: DType, name: str | None) -> Any:
    values = cast(x.values, dtype, name)
    if isinstance(x, SparseTensor):
        return SparseTensor(x.indices, values, x.dense_shape)
    return IndexedSlices(values, x.indices, x.dense_shape)


def _cast_kernel(ctx: KernelContext, x: Array, out: Array | None = None) -> Array:
    dtype = ctx.output_dtype()
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real
    if out is None:
        return x.astype(dtype)
    ctx.xp.copyto(out, x, casting="unsafe")
    return out


def _cast_element(op: Operation) -> str:
    return "{0} != 0" if op.outputs[0].dtype is dtypes.bool_ else "convert({0})"


def _cast_gradient(op: Operation, d_y: Tensor) -> list[Tensor | None]:
    source = op.inputs[0].dtype
    if not (source.is_differentiable and op.outputs[0].dtype.is_differentiable):
        return [None]
    return [cast(d_y, source)]


_CASTABLE: Final = (*dtypes.NUMERIC, dtypes.bool_, *dtypes.QUANTIZED)

CAST = register(
    OpDef(
        name="Cast",
        inputs=("x: SrcT",),
        outputs=("y: DstT",),
        types={"SrcT": _CASTABLE, "DstT": _CASTABLE},
        shape=like_input(0),
        kernels=on_every_device(out_kernel(_cast_kernel, element=_cast_element)),
        gradient=_cast_gradient,
        shape_value=_first_entries,
    )
)
