"""Summaries: values of a step for TensorBoard, each a serialised `tf.Summary` in a string scalar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.formats.events import (
    HistogramProto,
    Summary,
    SummaryAudio,
    SummaryImage,
    SummaryMetadata,
    SummaryValue,
)
from tfray.formats.media import encode_png, encode_wav
from tfray.formats.tensor_proto import tensor_message
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_cpu, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.kernels.histograms import LARGEST, bucket_limits, filled_buckets
from tfray.ops.kernels.products import inner_product
from tfray.ops.kernels.text import as_string, as_strings, decoded

BAD_COLOR: Final = (255, 0, 0, 255)
"""The colour (red, green, blue, alpha) of pixels that are not finite."""


def _summary(*values: SummaryValue) -> Array:
    result = np.empty((), object)
    result[()] = Summary(value=list(values)).SerializeToString()
    return result


def _text(tag: Array) -> str:
    return decoded(as_string(tag))


def _one_summary(op: Operation) -> list[TensorShape]:
    return [TensorShape([])]


# -- numbers -------------------------------------------------------------------------------------------


def scalar_summary(tags: TensorLike, values: TensorLike, name: str | None = None) -> Tensor:
    """A summary of numbers.

    Args:
        tags: A string tensor of any shape.
        values: The numbers, one for each tag in the same shape; a real dtype.
        name: Name of the operation.

    Returns:
        A string scalar.

    Raises:
        InvalidArgumentError: The shapes differ.
    """
    return add_op(SCALAR_SUMMARY, tags, values, name=name)


def _scalar_summary_kernel(ctx: KernelContext, tags: Array, values: Array) -> Array:
    tags, values = as_strings(tags), np.asarray(values)
    if tags.shape != values.shape:
        raise InvalidArgumentError(
            f"{ctx.op_name}: tags have shape {tags.shape}, values {values.shape}, expected the same"
        )
    pairs = zip(tags.reshape(-1), values.reshape(-1).astype(np.float64), strict=True)
    return _summary(*[SummaryValue(tag=decoded(tag), simple_value=value) for tag, value in pairs])


SCALAR_SUMMARY = register(
    OpDef(
        name="ScalarSummary",
        inputs=("tags: string", "values: T"),
        outputs=("summary: string",),
        types={"T": dtypes.REAL},
        shape=_one_summary,
        kernels=on_cpu(_scalar_summary_kernel),
    )
)


# -- histograms ----------------------------------------------------------------------------------------


def histogram_summary(tag: TensorLike, values: TensorLike, name: str | None = None) -> Tensor:
    """A summary of how values are distributed.

    Args:
        tag: A string scalar.
        values: Any shape, a real dtype.
        name: Name of the operation.

    Returns:
        A string scalar.

    Raises:
        InvalidArgumentError: At run time: a value is infinite or not a number.
    """
    return add_op(HISTOGRAM_SUMMARY, tag, values, name=name)


def make_histogram(values: TensorLike) -> HistogramProto:
    """The histogram of an array."""
    values = np.asarray(values).reshape(-1)
    limits = bucket_limits()
    # Sort the values and search for the limits in them: faster than searching for each value among the limits.
    ordered = np.sort(values if values.dtype.itemsize > 2 else values.astype(np.float32)).astype(np.float64)
    below = np.searchsorted(ordered, limits)
    below[-1] = values.size
    limits, counts = filled_buckets(np.diff(below, prepend=0))
    flat = values.astype(np.float64)
    return HistogramProto(
        min=ordered[0] if ordered.size else LARGEST,
        max=ordered[-1] if ordered.size else -LARGEST,
        num=flat.size,
        sum=flat.sum(),
        sum_squares=inner_product(np, flat, flat),
        bucket_limit=limits,
        bucket=counts,
    )


def _histogram_summary_kernel(ctx: KernelContext, tag: Array, values: Array) -> Array:
    values = np.asarray(values)
    if values.dtype.kind not in "iu" and not np.isfinite(values).all():
        kind, found = ("Nan", "NaN") if np.isnan(values).any() else ("Infinity", "an infinite value")
        raise InvalidArgumentError(
            f"{kind} in summary histogram for: {ctx.op_name}: there is {found} in the values of {_text(tag)!r}"
        )
    return _summary(SummaryValue(tag=_text(tag), histo=make_histogram(values)))


HISTOGRAM_SUMMARY = register(
    OpDef(
        name="HistogramSummary",
        inputs=("tag: string", "values: T"),
        outputs=("summary: string",),
        types={"T": dtypes.REAL},
        shape=_one_summary,
        kernels=on_cpu(_histogram_summary_kernel),
    )
)


# -- images and sounds ---------------------------------------------------------------------------------


def image_summary(
    tag: TensorLike,
    tensor: TensorLike,
    max_images: int = 3,
    bad_color: Sequence[int] = BAD_COLOR,
    name: str | None = None,
) -> Tensor:
    """A summary of images.

    Args:
        tag: A string scalar; images get ``tag/image``, or ``tag/image/0``, ``tag/image/1``, ...
        tensor: ``[batch, height, width, channels]`` with 1, 3 or 4 channels. uint8 values are shown as they are. The
            floats of an image are scaled so that the largest is white, and 0 black or, with negative values, grey.
        max_images: How many images of the batch to take.
        bad_color: Colour of pixels that are no finite numbers.
        name: Name of the operation.

    Returns:
        A string scalar.
    """
    if max_images < 1:
        raise InvalidArgumentError(f"image_summary: max_images is {max_images}, expected at least 1")
    return add_op(IMAGE_SUMMARY, tag, tensor, name=name, max_images=int(max_images), bad_color=list(bad_color))


def _image_summary_kernel(ctx: KernelContext, tag: Array, tensor: Array) -> Array:
    if tensor.ndim != 4 or tensor.shape[3] not in (1, 3, 4):
        raise InvalidArgumentError(
            f"{ctx.op_name}: Tensor must be 4-D with last dim 1, 3, or 4, not {list(tensor.shape)}"
        )
    bad_color = np.array(ctx.attr("bad_color"), np.uint8)[: tensor.shape[3]]
    images = [_as_pixels(image, bad_color) for image in tensor[: ctx.attr("max_images")]]
    tags = _numbered(f"{_text(tag)}/image", ctx.attr("max_images"))
    return _summary(
        *[SummaryValue(tag=tag, image=encode_image(pixels)) for tag, pixels in zip(tags, images, strict=False)]
    )


def _numbered(tag: str, count: int) -> Iterator[str]:
    return iter([tag] if count == 1 else [f"{tag}/{i}" for i in range(count)])


def encode_image(pixels: Array) -> SummaryImage:
    """A uint8 image ``[height, width, channels]`` as it stands in a summary."""
    height, width, channels = pixels.shape
    encoded = encode_png(pixels) if pixels.size else b""
    return SummaryImage(height=height, width=width, colorspace=channels, encoded_image_string=encoded)


def _as_pixels(image: Array, bad_color: Array) -> Array:
    if image.dtype == np.uint8:
        return image
    values = image.astype(np.float32 if image.dtype.itemsize < 4 else image.dtype)
    finite = np.isfinite(values)
    low, high = values.min(initial=np.inf, where=finite), values.max(initial=-np.inf, where=finite)
    signed = low < 0
    extent = max(abs(low), abs(high)) if signed else high
    scale = (127 if signed else 255) / extent if np.isfinite(extent) and extent >= 1e-6 else 0
    with np.errstate(invalid="ignore"):
        pixels = (values * values.dtype.type(scale) + values.dtype.type(128 if signed else 0)).astype(np.uint8)
    bad = ~finite.all(axis=2)
    pixels[bad] = bad_color
    return pixels


IMAGE_SUMMARY = register(
    OpDef(
        name="ImageSummary",
        inputs=("tag: string", "tensor: T"),
        outputs=("summary: string",),
        attrs=("max_images", "bad_color"),
        types={"T": (dtypes.uint8, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)},
        shape=_one_summary,
        kernels=on_cpu(_image_summary_kernel),
    )
)


def audio_summary(
    tag: TensorLike, tensor: TensorLike, sample_rate: TensorLike, max_outputs: int = 3, name: str | None = None
) -> Tensor:
    """A summary of sounds.

    Args:
        tag: A string scalar; sounds get ``tag/audio``, or ``tag/audio/0``, ``tag/audio/1``, ...
        tensor: float32 ``[batch, frames]`` or ``[batch, frames, channels]``, between -1 and 1.
        sample_rate: Frames a second, a float32 scalar.
        max_outputs: How many sounds of the batch to take.
        name: Name of the operation.

    Returns:
        A string scalar.
    """
    if max_outputs < 1:
        raise InvalidArgumentError(f"audio_summary: max_outputs is {max_outputs}, expected at least 1")
    return add_op(AUDIO_SUMMARY, tag, tensor, sample_rate, name=name, max_outputs=int(max_outputs))


def _audio_summary_kernel(ctx: KernelContext, tag: Array, tensor: Array, sample_rate: Array) -> Array:
    rate = float(sample_rate)
    # A file has a whole number of frames a second. TensorFlow writes 1 for what would be 0.
    if not -0.5 <= rate < 1 << 32:
        raise InvalidArgumentError(f"{ctx.op_name}: sample_rate is {rate}, expected a number of frames a second")
    if tensor.ndim not in (2, 3):
        raise InvalidArgumentError(f"{ctx.op_name}: Tensor must be 3-D or 2-D, not of shape {list(tensor.shape)}")
    sounds = tensor[: ctx.attr("max_outputs")]
    sounds = sounds[..., None] if sounds.ndim == 2 else sounds
    tags = _numbered(f"{_text(tag)}/audio", ctx.attr("max_outputs"))
    return _summary(*[SummaryValue(tag=tag, audio=_sound(s, rate)) for tag, s in zip(tags, sounds, strict=False)])


def _sound(samples: Array, rate: float) -> SummaryAudio:
    frames, channels = samples.shape
    return SummaryAudio(
        sample_rate=rate,
        num_channels=channels,
        length_frames=frames,
        encoded_audio_string=encode_wav(samples, round(rate) or 1),
        content_type="audio/wav",
    )


AUDIO_SUMMARY = register(
    OpDef(
        name="AudioSummaryV2",
        inputs=("tag: string", "tensor: float32", "sample_rate: float32"),
        outputs=("summary: string",),
        attrs=("max_outputs",),
        shape=_one_summary,
        kernels=on_cpu(_audio_summary_kernel),
    )
)


# -- tensors, and summaries of summaries ---------------------------------------------------------------


def tensor_summary(
    tag: TensorLike, tensor: TensorLike, metadata: TensorLike, name: str | None = None, description: str = ""
) -> Tensor:
    """A summary of a whole tensor, for a plugin of TensorBoard.

    Args:
        tag: A string scalar.
        tensor: Any shape and dtype.
        metadata: A serialised `tf.SummaryMetadata`, a string scalar.
        name: Name of the operation.
        description: What the tensor is, for those who read the graph.

    Returns:
        A string scalar.
    """
    return add_op(TENSOR_SUMMARY, tag, tensor, metadata, name=name, description=description)


def _tensor_summary_kernel(ctx: KernelContext, tag: Array, tensor: Array, metadata: Array) -> Array:
    for name, given in (("tag", tag), ("serialized_summary_metadata", metadata)):
        if np.ndim(given):
            raise InvalidArgumentError(f"{ctx.op_name}: {name} must be scalar, has shape {np.shape(given)}")
    value = SummaryValue(
        tag=_text(tag),
        metadata=SummaryMetadata.FromString(as_string(metadata)),
        tensor=tensor_message(as_strings(tensor) if isinstance(tensor, bytes) else np.asarray(tensor)),
    )
    return _summary(value)


TENSOR_SUMMARY = register(
    OpDef(
        name="TensorSummaryV2",
        inputs=("tag: string", "tensor: T", "serialized_summary_metadata: string"),
        outputs=("summary: string",),
        attrs=("description",),
        types={"T": dtypes.VALUES},
        shape=_one_summary,
        kernels=on_cpu(_tensor_summary_kernel),
    )
)


def merge_summary(inputs: Sequence[TensorLike], name: str | None = None) -> Tensor:
    """All values of several summaries in one.

    Args:
        inputs: String tensors of any shape, each element a serialised summary.
        name: Name of the operation.

    Returns:
        A string scalar.

    Raises:
        InvalidArgumentError: At run time: a tag occurs twice, or a string is not a summary.
    """
    return add_op(MERGE_SUMMARY, list(inputs), name=name)


def _merge_summary_kernel(ctx: KernelContext, *inputs: Array) -> Array:
    summaries = [summary for array in inputs for summary in as_strings(array).reshape(-1).tolist()]
    seen: set[str] = set()
    for tag in (value.tag for summary in summaries for value in Summary.FromString(summary).value):
        if tag in seen:
            raise InvalidArgumentError(f"{ctx.op_name}: two of the summaries have the tag {tag!r}")
        seen.add(tag)
    result = np.empty((), object)
    result[()] = b"".join(summaries)  # a list goes on where another ends
    return result


MERGE_SUMMARY = register(
    OpDef(
        name="MergeSummary",
        inputs=("inputs: string*",),
        outputs=("summary: string",),
        shape=_one_summary,
        kernels=on_cpu(_merge_summary_kernel),
    )
)
