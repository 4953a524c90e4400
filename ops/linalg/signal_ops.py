"""Signals: frames, windows, short-time Fourier transforms, cosine transforms and mel scales."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.shape_functions import normalize_axis
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import ones
from tfray.ops.arrays.construction_ops import linspace, range_
from tfray.ops.arrays.gather_ops import gather
from tfray.ops.arrays.join_ops import concat, late_index, stack
from tfray.ops.arrays.layout_ops import pad, reverse, tile
from tfray.ops.arrays.shape_ops import (
    cast,
    expand_dims,
    host_int,
    host_ints,
    index_tensor,
    rank,
    reshape,
    shape,
    sizes_from_input,
)
from tfray.ops.linalg.fft_ops import irfft, rfft
from tfray.ops.math.arithmetic_ops import div_no_nan, exp, maximum, minimum, multiply, realdiv, rsqrt, sqrt, square
from tfray.ops.math.axis_ops import from_front
from tfray.ops.math.comparison_ops import equal, less
from tfray.ops.math.complex_ops import complex, real
from tfray.ops.math.reduction_ops import reduce_sum
from tfray.ops.math.rounding_ops import floordiv
from tfray.ops.math.special_ops import bessel_i0e
from tfray.ops.math.transcendental_ops import cos, log1p, sin

# -- frames --------------------------------------------------------------------------------------------


def frame(
    signal: TensorLike,
    frame_length: TensorLike,
    frame_step: TensorLike,
    pad_end: bool = False,
    pad_value: TensorLike = 0,
    axis: TensorLike = -1,
    name: str | None = None,
) -> Tensor:
    """Cut a signal into frames, which may overlap.

    Args:
        signal: Shape ``[..., samples, ...]``, a number dtype.
        frame_length: Samples in a frame, an integer scalar.
        frame_step: Samples from one frame to the next, an integer scalar.
        pad_end: Fill up frames that begin within the signal and end behind it; otherwise they are left out.
        pad_value: With what, a scalar.
        axis: The dimension of the samples, an integer scalar.
        name: Name scope of the operations.

    Returns:
        ``[..., frames, frame_length, ...]``.
    """
    with get_default_graph().name_scope(name or "frame"):
        signal = convert_to_tensor(signal, name="signal")
        along = late_index(axis, 0, "frame: axis")
        if isinstance(along, Tensor) or signal.shape.rank is None:
            along = from_front(along, signal)
        else:
            along = normalize_axis(along, signal.shape.rank)
        length, step = index_tensor(frame_length), index_tensor(frame_step)
        length.shape.assert_has_rank(0)
        step.shape.assert_has_rank(0)
        samples = shape(signal)[along]
        if pad_end:
            count, by = constant_value(samples), constant_value(step)
            if count is not None and by is not None and count >= -by > 0:
                raise ValueError(f"frame: steps of {by} in {count} samples make no frames")
            frames = -floordiv(-samples, step)
            missing = maximum((frames - 1) * step + length - samples, 0)
            pad_value = convert_to_tensor(pad_value, signal.dtype)
            pad_value.shape.assert_has_rank(0)
            paddings = _behind(cast(equal(range_(rank(signal)), along), "int32") * missing)
            padded = pad(signal, paddings, constant_values=pad_value)
        else:
            frames = maximum(floordiv(samples - length, step) + 1, 0)
            # Behind a reshape the gradient of the frames is a tensor, and not rows of one.
            padded = reshape(signal, shape(signal))
        places = expand_dims(range_(frames) * step, 1) + range_(length)
        framed = gather(padded, places, axis=along)
        if isinstance(along, int) and signal.shape.rank is not None:
            cut = [None if size is None else int(size) for size in map(constant_value, (frames, length))]
            framed.set_shape(signal.shape[:along].concatenate(cut).concatenate(signal.shape[along + 1 :]))
        return framed


def overlap_and_add(signal: TensorLike, frame_step: TensorLike, name: str | None = None) -> Tensor:
    """Add frames up that begin `frame_step` samples after each other.

    Args:
        signal: Shape ``[..., frames, frame_length]``, a number dtype.
        frame_step: An integer scalar of at least 1.
        name: Name of the operation.

    Returns:
        ``[..., (frames - 1) * frame_step + frame_length]``.

    Raises:
        InvalidArgumentError: `frame_step` is no integer.
    """
    frame_step = index_tensor(frame_step)
    if not frame_step.dtype.is_integer:
        raise InvalidArgumentError(f"overlap_and_add: frame_step must be an integer. Got {frame_step.dtype!r}")
    return add_op(OVERLAP_AND_ADD, signal, frame_step, name=name)


def _overlap_and_add_kernel(ctx: KernelContext, signal: Array, frame_step: Array) -> Array:
    step = host_int(ctx, frame_step)
    if signal.ndim < 2 or step < 1:
        raise InvalidArgumentError(
            f"{ctx.op_name}: frames of shape {signal.shape} at steps of {step}, expected rank 2 and steps of at least 1"
        )
    xp, (frames, length) = ctx.xp, signal.shape[-2:]
    outer = signal.shape[:-2]
    # Cut frames into pieces of one step: pieces at the same place of different frames do not overlap, so one addition
    # takes them all.
    steps = -(-length // step)
    total = xp.zeros((*outer, max(frames + steps - 1, 0), step), signal.dtype)
    for index in range(steps):
        part = signal[..., index * step : (index + 1) * step]
        total[..., index : index + frames, : part.shape[-1]] += part
    samples = (frames - 1) * step + length if frames else 0
    return xp.ascontiguousarray(total.reshape(*outer, total.shape[-2] * step)[..., :samples])


def _overlap_and_add_shape(op: Operation) -> list[TensorShape]:
    frames, step = op.inputs[0].shape, constant_value(op.inputs[1])
    op.inputs[1].shape.assert_has_rank(0)
    if step is not None and step < 1:
        raise ValueError(f"frame_step is {step}, expected at least 1")
    if frames.with_rank_at_least(2).rank is None:
        return [frames]
    count, length = frames.sizes[-2:]
    if count is None or length is None or step is None:
        return [frames[:-2].concatenate([None])]
    return [frames[:-2].concatenate([(count - 1) * int(step) + length if count else 0])]


def _overlap_and_add_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    signal, step = op.inputs
    return [add_op(FRAMES, d_output, shape(signal), step), None]


OVERLAP_AND_ADD = register(
    OpDef(
        name="OverlapAndAdd",
        inputs=("signal: T", "frame_step: I"),
        outputs=("output: T",),
        host_inputs=("frame_step",),
        types={"T": dtypes.NUMERIC, "I": dtypes.INDICES},
        shape=_overlap_and_add_shape,
        kernels=on_every_device(_overlap_and_add_kernel),
        gradient=_overlap_and_add_gradient,
    )
)


def _frames_kernel(ctx: KernelContext, samples: Array, sizes: Array, frame_step: Array) -> Array:
    *_, frames, length = host_ints(ctx, sizes)
    step = host_int(ctx, frame_step)
    places = np.arange(frames)[:, None] * step + np.arange(length)
    return ctx.xp.take(samples, ctx.xp.asarray(places), axis=-1)


def _frames_shape(op: Operation) -> list[TensorShape]:
    return [sizes_from_input(op, 1)]


def _frames_gradient(op: Operation, d_frames: Tensor) -> list[Tensor | None]:
    return [overlap_and_add(d_frames, op.inputs[2]), None, None]


FRAMES = register(
    OpDef(
        name="OverlapAndAddGrad",
        inputs=("samples: T", "sizes: J", "frame_step: I"),
        outputs=("frames: T",),
        host_inputs=("sizes", "frame_step"),
        types={"T": dtypes.INEXACT, "I": dtypes.INDICES, "J": dtypes.INDICES},
        shape=_frames_shape,
        kernels=on_every_device(_frames_kernel),
        gradient=_frames_gradient,
    )
)


# -- windows -------------------------------------------------------------------------------------------


def hann_window(
    window_length: TensorLike, periodic: bool = True, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Make a Hann window.

    Args:
        window_length: Its length, an integer scalar.
        periodic: Make one period of a periodic function; otherwise a symmetric window.
        dtype: A float dtype.
        name: Name scope of the operations.

    Returns:
        Shape ``[window_length]``.
    """
    return _raised_cosine(name or "hann_window", periodic, window_length, as_dtype(dtype), 0.5, 0.5)


def hamming_window(
    window_length: TensorLike, periodic: bool = True, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Make a Hamming window of shape ``[window_length]`` (arguments as `hann_window`)."""
    return _raised_cosine(name or "hamming_window", periodic, window_length, as_dtype(dtype), 0.54, 0.46)


def _raised_cosine(name: str, periodic: bool, length: TensorLike, dtype: DType, a: float, b: float) -> Tensor:
    if not dtype.is_floating:
        raise InvalidArgumentError(f"{name}: dtype is {dtype.name}, expected a float dtype")
    with get_default_graph().name_scope(name):
        length = late_index(length, 0, f"{name}: window_length")
        length = index_tensor(length)
        if not isinstance(periodic, Tensor) and constant_value(length) != 1:  # a window of 1 has no period
            convert_to_tensor(periodic).shape.assert_has_rank(0)
        # A periodic window of even length is a symmetric window that is one sample longer, without its last sample.
        period = length - length % 2 if periodic else length - 1
        steps = maximum(period, 1)
        angles = cast(range_(length), dtypes.float64) * (2 * math.pi) / cast(steps, dtypes.float64)
        window = a - b * cos(angles)
        single = cast(minimum(length - 1, 1), dtypes.float64)
        return cast(window * single + (1 - single), dtype)


def kaiser_window(
    window_length: TensorLike, beta: TensorLike = 12.0, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Make a Kaiser window.

    Args:
        window_length: Its length, an integer scalar.
        beta: How narrow it is, a scalar.
        dtype: A float dtype.
        name: Name scope of the operations.

    Returns:
        Shape ``[window_length]``.
    """
    with get_default_graph().name_scope(name or "kaiser_window"):
        length = index_tensor(window_length)
        half = cast(maximum(length - 1, 1), dtypes.float64) / 2
        places = realdiv(cast(range_(length), dtypes.float64) - half, half)
        inner = cast(beta, dtypes.float64) * maximum(1 - square(places), 0) ** 0.5
        scaled = bessel_i0e(inner) * exp(inner - cast(beta, dtypes.float64))
        window = scaled / bessel_i0e(cast(beta, dtypes.float64))
        single = cast(minimum(length - 1, 1), dtypes.float64)
        return cast(window * single + (1 - single), as_dtype(dtype))


# -- short-time Fourier transforms ---------------------------------------------------------------------

WindowFunction = Callable[..., Tensor]


def _power_of_two(length: Tensor) -> Any:
    """The next power of two, from `length` on."""
    known = constant_value(length)
    if known is None:
        powers = np.array([1 << exponent for exponent in range(31)], length.dtype.numpy)
        return gather(powers, reduce_sum(cast(less(powers, length), "int32")))
    return 1 << max(int(known) - 1, 0).bit_length()


def stft(
    signals: TensorLike,
    frame_length: TensorLike,
    frame_step: TensorLike,
    fft_length: TensorLike | None = None,
    window_fn: WindowFunction | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """Compute the Fourier transforms of short frames of a signal.

    Args:
        signals: ``[..., samples]``, a real float dtype.
        frame_length: Samples in a frame, an integer scalar.
        frame_step: Samples from one frame to the next, an integer scalar.
        fft_length: Length of the transforms, an integer scalar; by default the next power of two.
        window_fn: ``function(length, dtype=...)`` that makes a window for each frame; None for none.
        pad_end: Fill up the last frames with zeros; otherwise incomplete ones are left out.
        name: Name scope of the operations.

    Returns:
        ``[..., frames, fft_length // 2 + 1]``, complex.
    """
    with get_default_graph().name_scope(name or "stft"):
        signals = convert_to_tensor(signals, name="signals")
        length = index_tensor(frame_length)
        size = _power_of_two(length) if fft_length is None else fft_length
        frames = frame(signals, length, frame_step, pad_end)
        if window_fn is not None:
            frames = multiply(frames, window_fn(length, dtype=frames.dtype))
        size = index_tensor(size)
        size.shape.assert_has_rank(0)
        return rfft(frames, reshape(cast(size, dtypes.int32), [1]))  # a fraction of a length is cut off


def inverse_stft(
    stfts: TensorLike,
    frame_length: TensorLike,
    frame_step: TensorLike,
    fft_length: TensorLike | None = None,
    window_fn: WindowFunction | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """Compute a signal from the Fourier transforms of its frames.

    Args:
        stfts: ``[..., frames, fft_length // 2 + 1]``, complex.
        frame_length: Samples in a frame, an integer scalar.
        frame_step: Samples from one frame to the next, an integer scalar.
        fft_length: Length of the transforms, an integer scalar; by default the next power of two.
        window_fn: Window for each frame; that of `inverse_stft_window_fn` undoes `stft`. None for none.
        name: Name scope of the operations.

    Returns:
        ``[..., samples]``.
    """
    with get_default_graph().name_scope(name or "inverse_stft"):
        stfts = convert_to_tensor(stfts, name="stfts")
        length = index_tensor(frame_length)
        size = index_tensor(_power_of_two(length) if fft_length is None else fft_length)
        frames = irfft(stfts, reshape(size, [1]))[..., :length]
        missing = maximum(length - size, 0)
        around = concat([shape(frames)[:-1] * 0, reshape(missing, [1])], 0)
        frames = pad(frames, _behind(around))
        if window_fn is not None:
            frames = multiply(frames, window_fn(length, dtype=frames.dtype))
        return overlap_and_add(frames, frame_step)


def _behind(amounts: Tensor) -> Tensor:
    return concat([expand_dims(amounts * 0, 1), expand_dims(amounts, 1)], 1)


def inverse_stft_window_fn(
    frame_step: TensorLike, forward_window_fn: WindowFunction = hann_window, name: str | None = None
) -> WindowFunction:
    """Make the window function with which `inverse_stft` undoes `stft`.

    Args:
        frame_step: Samples from one frame to the next, an integer scalar.
        forward_window_fn: The window function given to `stft`.
        name: Name scope of the operations.

    Returns:
        ``function(frame_length, dtype=...)``, which makes a window of shape ``[frame_length]``.
    """

    def window_fn(frame_length: TensorLike, dtype: DTypeLike = dtypes.float32) -> Tensor:
        with get_default_graph().name_scope(name or "inverse_stft_window_fn"):
            length, step = index_tensor(frame_length), index_tensor(frame_step)
            forward = forward_window_fn(length, dtype=dtype)
            overlaps = floordiv(length + step - 1, step)
            padded = pad(square(forward), [[0, overlaps * step - length]])
            sums = reduce_sum(reshape(padded, stack([overlaps, step])), 0, keepdims=True)
            total = reshape(tile(sums, stack([overlaps, 1])), [-1])[:length]
            return div_no_nan(forward, total)

    return window_fn


# -- cosine transforms ---------------------------------------------------------------------------------


def dct(
    input: TensorLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Compute the discrete cosine transform over the last dimension.

    Args:
        input: Shape ``[..., samples]``, float32 or float64.
        type: 1, 2 or 3; type 1 needs at least two samples.
        n: Length to which the input is cut or filled up with zeros first; None for its own.
        axis: -1.
        norm: ``"ortho"`` for the orthonormal transform (types 2 and 3), or None.
        name: Name scope of the operations.

    Returns:
        ``[..., n]``, the same dtype.

    Raises:
        InvalidArgumentError: Another type or norm.
        NotImplementedError: Another axis.
    """
    if axis != -1:
        raise NotImplementedError(f"dct: axis is {axis}, only -1 is there: transpose the input")
    if type not in (1, 2, 3) or norm not in (None, "ortho") or (type == 1 and norm) or (n is not None and n < 1):
        raise InvalidArgumentError(
            f"dct: type {type}, n {n}, norm {norm!r}: expected type 1, 2 or 3, n of at least 1, norm None or 'ortho' "
            "(not with type 1)"
        )
    with get_default_graph().name_scope(name or "dct"):
        signal = convert_to_tensor(input, name="input")
        samples = None if signal.shape.rank is None else signal.shape.sizes[-1]
        if type == 1 and samples is not None and samples < 2:
            raise InvalidArgumentError(f"dct: type 1 needs at least two samples, got shape {signal.shape}")
        if n is not None:
            signal = _cut_or_filled(signal, int(n))
        return _TRANSFORMS[type](signal, norm == "ortho")


def _cut_or_filled(signal: Tensor, n: int) -> Tensor:
    signal = signal[..., :n]
    sizes = shape(signal)
    return pad(signal, _behind(concat([sizes[:-1] * 0, reshape(n - sizes[-1], [1])], 0)))


def _dct1(signal: Tensor, ortho: bool) -> Tensor:
    return real(rfft(concat([signal, reverse(signal[..., 1:-1], [-1])], -1)))


def _turns(signal: Tensor, sign: float) -> tuple[Tensor, Tensor]:
    """``2 exp(sign i pi k / 2n)`` for the samples k, and their number n."""
    count = shape(signal)[-1]
    angles = cast(range_(count), signal.dtype) * (sign * math.pi / 2) / cast(count, signal.dtype)
    return complex(2.0 * cos(angles), 2.0 * sin(angles)), count


def _dct2(signal: Tensor, ortho: bool) -> Tensor:
    turns, count = _turns(signal, -1)
    result = real(multiply(rfft(signal, reshape(2 * count, [1]))[..., :count], turns))
    return multiply(result, _norms(count, result.dtype, False)) if ortho else result


def _dct3(signal: Tensor, ortho: bool) -> Tensor:
    turns, count = _turns(signal, 1)
    scaled = multiply(signal, _norms(count, signal.dtype, True) if ortho else cast(count, signal.dtype))
    return irfft(multiply(cast(scaled, turns.dtype), turns), reshape(2 * count, [1]))[..., :count]


def _norms(count: Tensor, dtype: DType, inverse: bool) -> Tensor:
    """Factors that make the transform orthonormal: another one for the first sample."""
    size = cast(count, dtype)
    first = sqrt(size) if inverse else 0.5 * rsqrt(size)
    others = first * math.sqrt(0.5 if inverse else 2)
    return concat([reshape(first, [1]), ones(reshape(count - 1, [1]), dtype) * others], 0)


_TRANSFORMS: Final = {1: _dct1, 2: _dct2, 3: _dct3}


def idct(
    input: TensorLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Compute the inverse of `dct`, but for a factor where `norm` is None (arguments as there, without `n`).

    `input` has the shape ``[..., n]``; the result has the same shape and dtype.
    """
    if n is not None or type not in (1, 2, 3):
        raise InvalidArgumentError(f"idct: type {type}, n {n}: expected type 1, 2 or 3 and no n")
    return dct(input, {1: 1, 2: 3, 3: 2}[type], None, axis, norm, name or "idct")


# -- mel scale -----------------------------------------------------------------------------------------


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: TensorLike = 129,
    sample_rate: float | Tensor = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Make the matrix that turns spectra into mel spectra: triangular filters, even on the mel scale.

    Args:
        num_mel_bins: Number of filters.
        num_spectrogram_bins: Number of components of a spectrum (``fft_length // 2 + 1``), an integer scalar.
        sample_rate: Samples a second, a scalar.
        lower_edge_hertz: Where the first filter begins.
        upper_edge_hertz: Where the last filter ends.
        dtype: A float dtype.
        name: Name of the constant.

    Returns:
        ``[num_spectrogram_bins, num_mel_bins]``.

    Raises:
        InvalidArgumentError: Numbers that are not positive, or edges out of order.
    """
    rate: Any = constant_value(sample_rate) if isinstance(sample_rate, Tensor) else sample_rate
    wrong = None
    if num_mel_bins <= 0:
        wrong = f"num_mel_bins must be positive. Got: {num_mel_bins}"
    elif lower_edge_hertz < 0:
        wrong = f"lower_edge_hertz must be non-negative. Got: {lower_edge_hertz}"
    elif lower_edge_hertz >= upper_edge_hertz:
        wrong = f"lower_edge_hertz {lower_edge_hertz:.1f} >= upper_edge_hertz {upper_edge_hertz:.1f}"
    elif rate is not None and rate <= 0:
        wrong = f"sample_rate must be positive. Got: {sample_rate!r}"
    elif rate is not None and upper_edge_hertz > rate / 2:
        wrong = (
            "upper_edge_hertz must not be larger than the Nyquist frequency (sample_rate / 2). "
            f"Got {upper_edge_hertz} for sample_rate: {rate}"
        )
    elif not as_dtype(dtype).is_floating:
        wrong = f"dtype must be a floating point type. Got: {dtype!r}"
    if wrong:
        raise InvalidArgumentError(f"linear_to_mel_weight_matrix: {wrong}")
    with get_default_graph().name_scope(name or "linear_to_mel_weight_matrix"):
        first, last = 1127.0 * np.log1p(np.array([lower_edge_hertz, upper_edge_hertz]) / 700.0)
        edges = np.linspace(first, last, num_mel_bins + 2)
        low, center, high = edges[:-2], edges[1:-1], edges[2:]
        # The component of frequency 0 belongs to no filter.
        nyquist = multiply(cast(sample_rate, dtypes.float64), 0.5) if rate is None else np.float64(rate / 2)
        hertz = linspace(np.float64(0), nyquist, num_spectrogram_bins)[1:]
        spectrum = expand_dims(1127.0 * log1p(hertz / 700.0), 1)
        weights = maximum(0.0, minimum((spectrum - low) / (center - low), (high - spectrum) / (high - center)))
        return pad(cast(weights, as_dtype(dtype)), [[1, 0], [0, 0]])


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: TensorLike, name: str | None = None) -> Tensor:
    """Compute mel-frequency cepstral coefficients.

    Args:
        log_mel_spectrograms: ``[..., mel bins]``, a float dtype.
        name: Name scope of the operations.

    Returns:
        The same shape.
    """
    with get_default_graph().name_scope(name or "mfccs_from_log_mel_spectrograms"):
        spectra = convert_to_tensor(log_mel_spectrograms)
        if spectra.shape.rank == 0 or (spectra.shape.rank is not None and spectra.shape.sizes[-1] == 0):
            raise InvalidArgumentError(
                f"mfccs_from_log_mel_spectrograms: num_mel_bins must be positive. Got: {spectra!r}"
            )
        return multiply(dct(spectra), rsqrt(2.0 * cast(shape(spectra)[-1], spectra.dtype)))
