"""Fourier transforms of one to three dimensions, of complex and of real numbers."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, Final

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, lookup, on_every_device, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Axes, TensorLike
from tfray.ops.arrays.broadcast_ops import ones
from tfray.ops.arrays.gather_ops import gather
from tfray.ops.arrays.join_ops import concat, stack
from tfray.ops.arrays.layout_ops import pad, roll
from tfray.ops.arrays.shape_ops import cast, host_ints, identity, index_tensor, known_entries, reshape, shape
from tfray.ops.arrays.slice_ops import slice_
from tfray.ops.math.arithmetic_ops import maximum, minimum, multiply, realdiv
from tfray.ops.math.axis_ops import from_front
from tfray.ops.math.complex_ops import real
from tfray.ops.math.reduction_ops import reduce_prod
from tfray.ops.math.rounding_ops import floordiv

_COMPLEX_OF: Final = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}


def _one_length_each(op: Operation, rank: int) -> None:
    """Check the shape of `fft_length`: a length for each transformed dimension."""
    lengths = op.inputs[1].shape
    if lengths.rank not in (None, 1):
        raise ValueError(f"Shape must be rank 1 but is rank {lengths.rank}: fft_length has shape {lengths}")
    if lengths.rank == 1 and lengths.sizes[0] not in (None, rank):
        raise ValueError(f"Dimension must be {rank} but is {lengths.sizes[0]}: fft_length has a length for each")


def _check_rank(ctx: KernelContext, input: Array, rank: int) -> None:
    if input.ndim < rank:
        raise InvalidArgumentError(f"{ctx.op_name}: the input has shape {input.shape}, expected at least rank {rank}")


# -- of complex numbers --------------------------------------------------------------------------------


def _complex_transform(name: str, rank: int, inverse: bool) -> OpDef:
    """Definition of a transform over the last `rank` dimensions. The gradient is the opposite one, but for a factor."""
    opposite = name.removeprefix("I") if inverse else f"I{name}"

    def kernel(ctx: KernelContext, input: Array) -> Array:
        _check_rank(ctx, input, rank)
        if input.size == 0:
            return input
        transform = ctx.xp.fft.ifftn if inverse else ctx.xp.fft.fftn
        return transform(input, axes=tuple(range(-rank, 0))).astype(input.dtype, copy=False)

    def shape_of(op: Operation) -> list[TensorShape]:
        return [op.inputs[0].shape.with_rank_at_least(rank)]

    def gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
        d_input = add_op(lookup(opposite), d_output)
        return [(realdiv if inverse else multiply)(d_input, _count(d_output, rank))]

    return OpDef(
        name=name,
        inputs=("input: T",),
        outputs=("output: T",),
        types={"T": dtypes.COMPLEX},
        shape=shape_of,
        kernels=on_every_device(kernel),
        gradient=gradient,
    )


def _count(tensor: Tensor, rank: int) -> Tensor:
    """Number of elements of the last `rank` dimensions, in the dtype of `tensor`."""
    return cast(reduce_prod(shape(tensor)[-rank:]), tensor.dtype)


def _complex(input: TensorLike) -> Tensor:
    tensor = convert_to_tensor(input, name="input")
    return tensor if tensor.dtype.is_complex else cast(tensor, _COMPLEX_OF.get(tensor.dtype, dtypes.complex64))


def fft(input: TensorLike, name: str | None = None) -> Tensor:
    """Compute the Fourier transform over the last dimension.

    Args:
        input: Shape ``[..., n]``, a complex dtype (real numbers are converted).
        name: Name of the operation.

    Returns:
        Same shape: ``sum_t input[t] exp(-2 pi i t k / n)``.
    """
    return add_op(FFT, _complex(input), name=name)


FFT = register(_complex_transform("FFT", 1, False))


def ifft(input: TensorLike, name: str | None = None) -> Tensor:
    """Compute the inverse of `fft`, which divides by ``n``: same shape, a complex dtype."""
    return add_op(IFFT, _complex(input), name=name)


IFFT = register(_complex_transform("IFFT", 1, True))


def fft2d(input: TensorLike, name: str | None = None) -> Tensor:
    """Compute the Fourier transform over the last two dimensions (see `fft`): same shape, a complex dtype."""
    return add_op(FFT2D, _complex(input), name=name)


FFT2D = register(_complex_transform("FFT2D", 2, False))


def ifft2d(input: TensorLike, name: str | None = None) -> Tensor:
    """Compute the inverse of `fft2d`: same shape, a complex dtype."""
    return add_op(IFFT2D, _complex(input), name=name)


IFFT2D = register(_complex_transform("IFFT2D", 2, True))


def fft3d(input: TensorLike, name: str | None = None) -> Tensor:
    """Compute the Fourier transform over the last three dimensions (see `fft`): same shape, a complex dtype."""
    return add_op(FFT3D, _complex(input), name=name)


FFT3D = register(_complex_transform("FFT3D", 3, False))


def ifft3d(input: TensorLike, name: str | None = None) -> Tensor:
    """Compute the inverse of `fft3d`: same shape, a complex dtype."""
    return add_op(IFFT3D, _complex(input), name=name)


IFFT3D = register(_complex_transform("IFFT3D", 3, True))


# -- of real numbers -----------------------------------------------------------------------------------


def _of_nothing(ctx: KernelContext, input: Array, sizes: list[int]) -> Array:
    """The transform, of these `sizes`, of an array without elements, or to a length of 0."""
    return ctx.xp.zeros((*input.shape[: input.ndim - len(sizes)], *sizes), ctx.output_dtype())


def _checked_lengths(lengths: list[Any]) -> list[Any]:
    if any(length is not None and length < 0 for length in lengths):
        raise InvalidArgumentError(f"fft_length is {lengths}, expected lengths of at least 0")
    return lengths


def _real_transform(name: str, rank: int) -> OpDef:
    """Definition of a transform of real numbers, which keeps one half of the last dimension."""

    def kernel(ctx: KernelContext, input: Array, fft_length: Array) -> Array:
        _check_rank(ctx, input, rank)
        lengths = _checked_lengths(host_ints(ctx, fft_length))
        if not input.size or 0 in lengths:
            return _of_nothing(ctx, input, [*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0])
        result = ctx.xp.fft.rfftn(input, lengths, axes=tuple(range(-rank, 0)))
        return result.astype(ctx.output_dtype(), copy=False)

    def shape_of(op: Operation) -> list[TensorShape]:
        source = op.inputs[0].shape.with_rank_at_least(rank)
        _one_length_each(op, rank)
        lengths = _checked_lengths(known_entries(op.inputs[1]) or [None] * rank)
        half = lengths[-1] and lengths[-1] // 2 + 1
        return [source[:-rank].concatenate([*lengths[:-1], half])]

    def gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
        return [_real_gradient(op, d_output, rank), None]

    return OpDef(
        name=name,
        inputs=("input: Treal", "fft_length: int32"),
        outputs=("output: Tcomplex",),
        host_inputs=("fft_length",),
        types={"Treal": tuple(_COMPLEX_OF), "Tcomplex": dtypes.COMPLEX},
        shape=shape_of,
        kernels=on_every_device(kernel),
        gradient=gradient,
    )


def _inverse_real_transform(name: str, rank: int) -> OpDef:
    """Definition of the inverse of `_real_transform`."""

    def kernel(ctx: KernelContext, input: Array, fft_length: Array) -> Array:
        _check_rank(ctx, input, rank)
        lengths = _checked_lengths(host_ints(ctx, fft_length))
        if not input.size or 0 in lengths:
            return _of_nothing(ctx, input, lengths)
        result = ctx.xp.fft.irfftn(input, lengths, axes=tuple(range(-rank, 0)))
        return result.astype(ctx.output_dtype(), copy=False)

    def shape_of(op: Operation) -> list[TensorShape]:
        source = op.inputs[0].shape.with_rank_at_least(rank)
        _one_length_each(op, rank)
        return [source[:-rank].concatenate(_checked_lengths(known_entries(op.inputs[1]) or [None] * rank))]

    def gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
        return [_inverse_real_gradient(op, d_output, rank), None]

    return OpDef(
        name=name,
        inputs=("input: Tcomplex", "fft_length: int32"),
        outputs=("output: Treal",),
        host_inputs=("fft_length",),
        types={"Treal": tuple(_COMPLEX_OF), "Tcomplex": dtypes.COMPLEX},
        shape=shape_of,
        kernels=on_every_device(kernel),
        gradient=gradient,
    )


RFFT = register(_real_transform("RFFT", 1))
RFFT2D = register(_real_transform("RFFT2D", 2))
RFFT3D = register(_real_transform("RFFT3D", 3))
IRFFT = register(_inverse_real_transform("IRFFT", 1))
IRFFT2D = register(_inverse_real_transform("IRFFT2D", 2))
IRFFT3D = register(_inverse_real_transform("IRFFT3D", 3))
_REAL: Final = {1: RFFT, 2: RFFT2D, 3: RFFT3D}
_INVERSE_REAL: Final = {1: IRFFT, 2: IRFFT2D, 3: IRFFT3D}
_INVERSE_COMPLEX: Final = {1: IFFT, 2: IFFT2D, 3: IFFT3D}


def _fitted(tensor: Tensor, sizes: TensorLike, rank: int) -> Tensor:
    """`tensor` with its last dimensions cut off or filled up with zeros, to `sizes`."""
    sizes = index_tensor(sizes)
    actual = shape(tensor)
    outer = actual[:-rank]
    kept = minimum(actual[-rank:], sizes)
    none = outer * 0
    cut = slice_(tensor, actual * 0, concat([outer, kept], 0))
    missing = concat([none, maximum(sizes - kept, 0)], 0)
    return pad(cut, stack([missing * 0, missing], 1))


def _real_gradient(op: Operation, d_output: Tensor, rank: int) -> Tensor:
    """Gradient of a real transform: fill the missing half with zeros, transform, and take the real part."""
    source, lengths = op.inputs
    whole = _fitted(d_output, lengths, rank)
    d_fitted = real(multiply(add_op(_INVERSE_COMPLEX[rank], whole), cast(reduce_prod(lengths), whole.dtype)))
    return _as_source(_fitted(d_fitted, shape(source)[-rank:], rank), source)


def _as_source(gradient: Tensor, source: Tensor) -> Tensor:
    gradient.set_shape(source.shape)
    return gradient


def _inverse_real_gradient(op: Operation, d_output: Tensor, rank: int) -> Tensor:
    """Gradient of an inverse real transform: the real transform, doubled where an element stands for both halves."""
    source, lengths = op.inputs
    half = add_op(_REAL[rank], d_output, lengths, Tcomplex=source.dtype)
    n = lengths[-1]
    doubled = floordiv(n - 1, 2)
    weights = concat([ones([1], half.dtype.real_dtype), ones([doubled], half.dtype.real_dtype) * 2.0], 0)
    rest = floordiv(n, 2) - doubled
    weights = concat([weights, ones([rest], half.dtype.real_dtype)], 0)
    scaled = multiply(half, cast(weights / cast(reduce_prod(lengths), weights.dtype), half.dtype))
    return _as_source(_fitted(scaled, shape(source)[-rank:], rank), source)


def _lengths(tensor: Tensor, fft_length: TensorLike | None, rank: int, from_half: bool) -> Tensor:
    if fft_length is not None:
        return convert_to_tensor(fft_length, dtypes.int32)  # whose length the operation checks
    tensor.shape.with_rank_at_least(rank)
    sizes = shape(tensor)[-rank:]
    if not from_half:
        return sizes
    return concat([sizes[:-1], reshape(maximum(2 * (sizes[-1] - 1), 0), [1])], 0)


def _real_call(input: TensorLike, fft_length: TensorLike | None, name: str | None, rank: int) -> Tensor:
    tensor = convert_to_tensor(input, name="input", preferred_dtype=dtypes.float32)
    result = _COMPLEX_OF.get(tensor.dtype, dtypes.complex64)
    return add_op(_REAL[rank], tensor, _lengths(tensor, fft_length, rank, False), name=name, Tcomplex=result)


def _inverse_real_call(input: TensorLike, fft_length: TensorLike | None, name: str | None, rank: int) -> Tensor:
    tensor = convert_to_tensor(input, name="input", preferred_dtype=dtypes.complex64)
    lengths = _lengths(tensor, fft_length, rank, True)
    return add_op(_INVERSE_REAL[rank], tensor, lengths, name=name, Treal=tensor.dtype.real_dtype)


def rfft(input_tensor: TensorLike, fft_length: TensorLike | None = None, name: str | None = None) -> Tensor:
    """Compute the Fourier transform of real numbers over the last dimension.

    Args:
        input_tensor: Shape ``[..., n]``, float32 or float64.
        fft_length: A vector of 1: the length of the transform, to which the input is cut or filled up with zeros;
            n by default.
        name: Name of the operation.

    Returns:
        ``[..., length // 2 + 1]``, complex: the others are the conjugates of these.
    """
    return _real_call(input_tensor, fft_length, name, 1)


def irfft(input_tensor: TensorLike, fft_length: TensorLike | None = None, name: str | None = None) -> Tensor:
    """Compute the inverse of `rfft`.

    Args:
        input_tensor: Shape ``[..., n]``, a complex dtype.
        fft_length: A vector of 1: the length of the result; ``2 * (n - 1)`` by default.
        name: Name of the operation.

    Returns:
        ``[..., length]``, real.
    """
    return _inverse_real_call(input_tensor, fft_length, name, 1)


def rfft2d(input_tensor: TensorLike, fft_length: TensorLike | None = None, name: str | None = None) -> Tensor:
    """Compute the Fourier transform of real numbers over the last two dimensions (see `rfft`).

    `input_tensor` has the shape ``[..., m, n]``, `fft_length` is a vector of two that replace ``m`` and ``n``, and the
    result has the shape ``[..., m, n // 2 + 1]``.
    """
    return _real_call(input_tensor, fft_length, name, 2)


def irfft2d(input_tensor: TensorLike, fft_length: TensorLike | None = None, name: str | None = None) -> Tensor:
    """Compute the inverse of `rfft2d` (see `irfft`).

    `input_tensor` has the shape ``[..., m, n // 2 + 1]``, `fft_length` is the vector ``[m, n]``, and the result has the
    shape ``[..., m, n]``.
    """
    return _inverse_real_call(input_tensor, fft_length, name, 2)


def rfft3d(input_tensor: TensorLike, fft_length: TensorLike | None = None, name: str | None = None) -> Tensor:
    """Compute the Fourier transform of real numbers over the last three dimensions (see `rfft`).

    `input_tensor` has the shape ``[..., k, m, n]``, `fft_length` is a vector of three that replace these sizes, and the
    result has the shape ``[..., k, m, n // 2 + 1]``.
    """
    return _real_call(input_tensor, fft_length, name, 3)


def irfft3d(input_tensor: TensorLike, fft_length: TensorLike | None = None, name: str | None = None) -> Tensor:
    """Compute the inverse of `rfft3d` (see `irfft`).

    `input_tensor` has the shape ``[..., k, m, n // 2 + 1]``, `fft_length` is the vector ``[k, m, n]``, and the result
    has the shape ``[..., k, m, n]``.
    """
    return _inverse_real_call(input_tensor, fft_length, name, 3)


# -- where the spectrum begins -------------------------------------------------------------------------


def fftshift(x: TensorLike, axes: Axes | None = None, name: str | None = None) -> Tensor:
    """Move the component of frequency 0 to the middle.

    Args:
        x: Shape ``[...]``.
        axes: The dimensions, an integer or a list of them; all by default.
        name: Name scope of the operations.

    Returns:
        Same shape and dtype.
    """
    return _shifted(x, axes, name or "fftshift", lambda size: floordiv(size, 2))


def ifftshift(x: TensorLike, axes: Axes | None = None, name: str | None = None) -> Tensor:
    """Undo `fftshift`: same shape and dtype, the same arguments."""
    return _shifted(x, axes, name or "ifftshift", lambda size: -floordiv(size, 2))


def _shifted(x: TensorLike, axes: Axes | None, name: str, by: Callable[[TensorLike], Tensor]) -> Tensor:
    with get_default_graph().name_scope(name) as scope:
        x = convert_to_tensor(x)
        if isinstance(axes, Tensor):
            axes.shape.with_rank_at_most(1)
            if axes.dtype is not dtypes.int32:
                raise ArgumentError(f"{name}: axes are {axes.dtype.name}, expected int32")
            axes = from_front(axes, x)
            return roll(x, by(gather(shape(x), axes)), axes, scope)
        if np.ndim(axes) > 1:  # type: ignore[arg-type]
            raise InvalidArgumentError(f"{name}: axes are {axes!r}, expected an integer or a list of them")
        along = list(range(len(x.shape.sizes))) if axes is None else list(map(index, np.ravel(axes).tolist()))
        sizes = shape(x)
        shifts = [by(sizes[axis]) for axis in along]
        return roll(x, stack(shifts), along, scope) if along else identity(x, scope)
