"""Images as files: decoding and encoding JPEG, PNG, GIF and BMP."""

from __future__ import annotations

import io
import math
from typing import Any, Final

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.formats.media import encode_png as encode_png_file
from tfray.framework import dtypes
from tfray.framework.arguments import none_is_default, whole_part
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, on_cpu, register
from tfray.framework.shape_functions import like_input
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.join_ops import int32_tensor
from tfray.ops.arrays.shape_ops import host_int, host_ints
from tfray.ops.image.image_color_ops import convert_image_dtype
from tfray.ops.image.image_files import (
    JPEG_BEGIN,
    JPEG_OPTIONS,
    as_dtype_colours,
    bmp_pixels,
    bytes_of,
    image_pixels,
    jpeg_pixels,
    kind_of,
    opened,
    pillow,
)
from tfray.ops.kernels.text import as_strings
from tfray.ops.random.random_ops import random_uniform


def _check_channels(op: str, channels: int | None, allowed: tuple[int, ...]) -> int:
    channels = 0 if channels is None else channels
    if isinstance(channels, float) and math.isfinite(channels):
        channels = whole_part(channels)  # a fraction is cut off from an attribute
    if channels not in allowed:
        raise ArgumentError(f"{op}: channels is {channels}, expected one of {allowed}")
    return channels


def _decoded_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.assert_has_rank(0)
    return [TensorShape([None, None, op.attr("channels") or None])]


# -- JPEG ----------------------------------------------------------------------------------------------

_DCT_METHODS: Final = ("", "INTEGER_FAST", "INTEGER_ACCURATE")


def _jpeg_options(op: str, fancy_upscaling: bool, dct_method: str, recover: bool) -> dict[str, Any]:
    """The attributes that say how pixels are computed."""
    if dct_method not in _DCT_METHODS:
        raise InvalidArgumentError(f"{op}: dct_method is {dct_method!r}, expected one of {_DCT_METHODS}")
    return {"fancy_upscaling": bool(fancy_upscaling), "dct_method": dct_method, "try_recover_truncated": bool(recover)}


@none_is_default
def decode_jpeg(
    contents: TensorLike,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """Decode a JPEG image, or one of the other kinds that `decode_image` knows.

    Args:
        contents: The file's bytes, a string scalar.
        channels: 1 for grayscale, 3 for RGB, 0 for what the file has.
        ratio: Decode to a fraction of the size, faster: 1, 2, 4 or 8.
        fancy_upscaling: Whether colours stored at half the resolution are interpolated; Pillow always does so.
        try_recover_truncated: Whether the missing lines of an incomplete JPEG file are gray, if simplejpeg is
            installed; otherwise it is refused.
        acceptable_fraction: Accepted for compatibility.
        dct_method: ``"INTEGER_FAST"``, the default, or ``"INTEGER_ACCURATE"``, which is what Pillow always does.
        name: Name of the operation.

    Returns:
        uint8 ``[height, width, channels]``.

    Raises:
        InvalidArgumentError: While running: the bytes are no image, or damaged.
        NotFoundError: While running: Pillow is not installed.

    Examples:
        >>> contents = tf.image.encode_jpeg(tf.zeros([4, 6, 3], tf.uint8))
        >>> session.run(tf.image.decode_jpeg(contents)).shape
        (4, 6, 3)
    """
    if ratio not in (1, 2, 4, 8):
        raise ArgumentError(f"decode_jpeg: ratio is {ratio}, expected 1, 2, 4 or 8")
    channels = _check_channels("decode_jpeg", channels, (0, 1, 3, 4))  # the last is refused when a step runs
    options = _jpeg_options("decode_jpeg", fancy_upscaling, dct_method, try_recover_truncated)
    return add_op(DECODE_JPEG, contents, name=name, channels=channels, ratio=ratio, **options)


def _decode_jpeg_kernel(ctx: KernelContext, contents: Array) -> Array:
    if ctx.attr("channels") == 4:
        raise InvalidArgumentError("channels must be 0, 1, or 3 for JPEG, got 4")
    return as_dtype_colours(
        image_pixels(ctx, contents, ctx.attr("channels"), ctx.attr("ratio")), np.dtype(np.uint8), False
    )


DECODE_JPEG = register(
    OpDef(
        name="DecodeJpeg",
        inputs=("contents: string",),
        outputs=("image: uint8",),
        attrs=("channels", "ratio", *JPEG_OPTIONS),
        shape=_decoded_shape,
        kernels=on_cpu(_decode_jpeg_kernel),
    )
)


def decode_and_crop_jpeg(
    contents: TensorLike,
    crop_window: TensorLike,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """Decode a part of a JPEG image.

    Args:
        contents: The file's bytes, a string scalar.
        crop_window: Top, left, height and width of the part, an int32 vector.
        channels: As for `decode_jpeg`.
        ratio: 1: the window counts pixels of the whole image.
        fancy_upscaling: As for `decode_jpeg`.
        try_recover_truncated: Accepted for compatibility.
        acceptable_fraction: Accepted for compatibility.
        dct_method: As for `decode_jpeg`.
        name: Name of the operation.

    Returns:
        uint8 ``[height, width, channels]``.

    Examples:
        >>> contents = tf.image.encode_jpeg(tf.zeros([4, 6, 3], tf.uint8))
        >>> session.run(tf.image.decode_and_crop_jpeg(contents, [0, 0, 2, 3])).shape
        (2, 3, 3)
    """
    if ratio != 1:
        raise InvalidArgumentError(f"decode_and_crop_jpeg: ratio is {ratio}, expected 1")
    channels = _check_channels("decode_and_crop_jpeg", channels, (0, 1, 3))
    options = _jpeg_options("decode_and_crop_jpeg", fancy_upscaling, dct_method, try_recover_truncated)
    return add_op(DECODE_AND_CROP_JPEG, contents, int32_tensor(crop_window), name=name, channels=channels, **options)


def _decode_and_crop_jpeg_kernel(ctx: KernelContext, contents: Array, crop_window: Array) -> Array:
    pixels = jpeg_pixels(ctx, contents, ctx.attr("channels"))
    top, left, height, width = host_ints(ctx, crop_window)
    if min(top, left) < 0 or min(height, width) < 1 or top + height > len(pixels) or left + width > pixels.shape[1]:
        raise InvalidArgumentError(
            f"{ctx.op_name}: window {[top, left, height, width]} (top, left, height, width) does not lie within an "
            f"image of {len(pixels)} x {pixels.shape[1]}"
        )
    return pixels[top : top + height, left : left + width]


def _cropped_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.assert_has_rank(0)
    op.inputs[1].shape.merge_with([4])
    window = constant_value(op.inputs[1])
    height, width = (None, None) if window is None else (int(window[2]), int(window[3]))
    return [TensorShape([height, width, op.attr("channels") or None])]


DECODE_AND_CROP_JPEG = register(
    OpDef(
        name="DecodeAndCropJpeg",
        inputs=("contents: string", "crop_window: int32"),
        outputs=("image: uint8",),
        attrs=("channels", *JPEG_OPTIONS),
        shape=_cropped_shape,
        kernels=on_cpu(_decode_and_crop_jpeg_kernel),
    )
)


def extract_jpeg_shape(contents: TensorLike, output_type: DTypeLike = dtypes.int32, name: str | None = None) -> Tensor:
    """Read the size of a JPEG image without decoding it.

    Args:
        contents: The file's bytes, a string scalar.
        output_type: int32 or int64.
        name: Name of the operation.

    Returns:
        Height, width and channels, a vector of 3.

    Examples:
        >>> contents = tf.image.encode_jpeg(tf.zeros([4, 6, 3], tf.uint8))
        >>> session.run(tf.image.extract_jpeg_shape(contents))
        array([4, 6, 3], dtype=int32)
    """
    return add_op(EXTRACT_JPEG_SHAPE, contents, name=name, output_type=as_dtype(output_type))


def _extract_jpeg_shape_kernel(ctx: KernelContext, contents: Array) -> Array:
    image = opened(ctx, contents, ("JPEG",))
    return np.array([image.height, image.width, len(image.getbands())], ctx.output_dtype())


def _vector_of_three(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.assert_has_rank(0)
    return [TensorShape([3])]


EXTRACT_JPEG_SHAPE = register(
    OpDef(
        name="ExtractJpegShape",
        inputs=("contents: string",),
        outputs=("image_shape: output_type",),
        types={"output_type": dtypes.INDICES},
        shape=_vector_of_three,
        kernels=on_cpu(_extract_jpeg_shape_kernel),
    )
)


def is_jpeg(contents: TensorLike, name: str | None = None) -> Tensor:
    """Whether bytes begin as a JPEG image does, bools.

    Args:
        contents: Bytes of files, strings of any shape.
        name: Name of the operation.

    Returns:
        Bools of the same shape.
    """
    return add_op(IS_JPEG, contents, name=name)


def _is_jpeg_kernel(ctx: KernelContext, contents: Array) -> Array:
    strings = as_strings(contents)
    found = [string.startswith(JPEG_BEGIN) for string in strings.reshape(-1).tolist()]
    return np.array(found, np.bool_).reshape(strings.shape)


IS_JPEG = register(
    OpDef(
        name="IsJpeg",
        inputs=("contents: string",),
        outputs=("is_jpeg: bool",),
        shape=like_input(0),
        kernels=on_cpu(_is_jpeg_kernel),
    )
)


@none_is_default
def encode_jpeg(
    image: TensorLike,
    format: str = "",
    quality: TensorLike = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> Tensor:
    """Encode an image as JPEG.

    Args:
        image: uint8 ``[height, width, channels]``, 1 or 3 channels.
        format: ``"grayscale"``, ``"rgb"`` or ``""`` for what the channels say.
        quality: From 0 to 100, a number or int32 scalar.
        progressive: Encode for progressive display.
        optimize_size: Spend time to make the file smaller.
        chroma_downsampling: Store colours at half the resolution.
        density_unit: ``"in"`` or ``"cm"``: unit of the densities.
        x_density: Pixels per unit, horizontally.
        y_density: Pixels per unit, vertically.
        xmp_metadata: Accepted for compatibility.
        name: Name of the operation.

    Returns:
        The file's bytes, a string scalar.

    Examples:
        >>> session.run(tf.image.encode_jpeg(tf.zeros([4, 6, 3], tf.uint8)))[6:10]
        b'JFIF'
    """
    if format not in ("", "grayscale", "rgb"):
        raise InvalidArgumentError(f"encode_jpeg: format is {format!r}, expected 'grayscale', 'rgb' or ''")
    per_inch = {"in": 1.0, "cm": 2.54}.get(density_unit)
    if per_inch is None:
        raise InvalidArgumentError(f"encode_jpeg: density_unit is {density_unit!r}, expected 'in' or 'cm'")
    return add_op(
        ENCODE_JPEG,
        image,
        int32_tensor(quality),
        name=name,
        format=format,
        progressive=bool(progressive),
        optimize_size=bool(optimize_size),
        chroma_downsampling=bool(chroma_downsampling),
        density=[round(x_density * per_inch), round(y_density * per_inch)],
    )


def _encode_jpeg_kernel(ctx: KernelContext, pixels: Array, quality: Array) -> Any:
    wanted = {"grayscale": (1,), "rgb": (3,), "": (1, 3)}[ctx.attr("format")]
    if not 0 <= host_int(ctx, quality) <= 100:
        raise InvalidArgumentError(f"{ctx.op_name}: quality is {host_int(ctx, quality)}, expected 0 to 100")
    return _encoded(
        ctx,
        pixels,
        wanted,
        format="JPEG",
        quality=host_int(ctx, quality),
        progressive=ctx.attr("progressive"),
        optimize=ctx.attr("optimize_size"),
        subsampling=2 if ctx.attr("chroma_downsampling") else 0,
        dpi=tuple(ctx.attr("density")),
    )


def _encoded(ctx: KernelContext, pixels: Array, channels: tuple[int, ...], **options: Any) -> Any:
    if pixels.ndim != 3 or pixels.shape[2] not in channels or pixels.size == 0:
        raise InvalidArgumentError(
            f"{ctx.op_name}: the image has shape {pixels.shape}, expected [height, width, channels] with "
            f"{' or '.join(map(str, channels))} channels and no size 0"
        )
    stream = io.BytesIO()
    plane = pixels[..., 0] if pixels.shape[2] == 1 else pixels
    pillow().Image.fromarray(np.ascontiguousarray(plane)).save(stream, **options)
    return _as_scalar(stream.getvalue())


def _as_scalar(data: bytes) -> Array:
    result = np.empty((), object)
    result[()] = data
    return result


def _encoded_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.assert_has_rank(3)
    return [TensorShape([])]


ENCODE_JPEG = register(
    OpDef(
        name="EncodeJpeg",
        inputs=("image: uint8", "quality: int32"),
        outputs=("contents: string",),
        attrs=("format", "progressive", "optimize_size", "chroma_downsampling", "density"),
        shape=_encoded_shape,
        kernels=on_cpu(_encode_jpeg_kernel),
    )
)


def adjust_jpeg_quality(
    image: TensorLike, jpeg_quality: TensorLike, name: str | None = None, dct_method: str = ""
) -> Tensor:
    """Encode an image as JPEG of some quality and decode it again.

    Args:
        image: ``[height, width, channels]``, 1 or 3 channels, a real dtype.
        jpeg_quality: From 0 to 100, an integer scalar.
        name: Name scope of the operations.
        dct_method: As for `decode_jpeg`.

    Returns:
        Same shape and dtype.
    """
    image = convert_to_tensor(image, name="image")
    with get_default_graph().name_scope(name or "adjust_jpeg_quality"):
        pixels = convert_image_dtype(image, dtypes.uint8)
        decoded = decode_jpeg(encode_jpeg(pixels, quality=jpeg_quality), dct_method=dct_method)
        decoded.set_shape(image.shape)
        return convert_image_dtype(decoded, image.dtype)


def random_jpeg_quality(
    image: TensorLike, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Tensor:
    """Encode an image as JPEG of a random quality and decode it again.

    Args:
        image: ``[height, width, channels]``, 1 or 3 channels, a real dtype.
        min_jpeg_quality: Least quality, at least 0.
        max_jpeg_quality: What the quality is below, at most 100.
        seed: Seed of the operation.

    Returns:
        Same shape and dtype.
    """
    if not 0 <= min_jpeg_quality < max_jpeg_quality <= 100:
        raise InvalidArgumentError(
            f"random_jpeg_quality: bounds {min_jpeg_quality} and {max_jpeg_quality}, expected 0 <= min < max <= 100"
        )
    quality = random_uniform([], min_jpeg_quality, max_jpeg_quality, dtypes.int32, seed)
    return adjust_jpeg_quality(image, quality)


# -- PNG, BMP and GIF ----------------------------------------------------------------------------------


def decode_png(
    contents: TensorLike, channels: int = 0, dtype: DTypeLike = dtypes.uint8, name: str | None = None
) -> Tensor:
    """Decode a PNG image, or one of the other kinds that `decode_image` knows.

    Args:
        contents: The file's bytes, a string scalar.
        channels: 1 for grayscale, 3 for RGB, 4 with transparency, 0 for what the file has.
        dtype: uint8 or uint16, to which colours are scaled.
        name: Name of the operation.

    Returns:
        ``[height, width, channels]``.

    Raises:
        InvalidArgumentError: While running: the bytes are no image, or damaged.
        NotFoundError: While running: Pillow is not installed.

    Examples:
        >>> contents = tf.image.encode_png(tf.constant([[[0], [255]]], tf.uint8))
        >>> session.run(tf.image.decode_png(contents))[:, :, 0]
        array([[  0, 255]], dtype=uint8)
    """
    channels = _check_channels("decode_png", channels, (0, 1, 3, 4))
    return add_op(DECODE_PNG, contents, name=name, channels=channels, dtype=as_dtype(dtype))


def _decode_png_kernel(ctx: KernelContext, contents: Array) -> Array:
    is_png = kind_of(bytes_of(contents)) == "PNG"
    return as_dtype_colours(image_pixels(ctx, contents, ctx.attr("channels")), ctx.output_dtype(), is_png)


DECODE_PNG = register(
    OpDef(
        name="DecodePng",
        inputs=("contents: string",),
        outputs=("image: dtype",),
        attrs=("channels",),
        types={"dtype": (dtypes.uint8, dtypes.uint16)},
        shape=_decoded_shape,
        kernels=on_cpu(_decode_png_kernel),
    )
)


@none_is_default
def encode_png(image: TensorLike, compression: int = -1, name: str | None = None) -> Tensor:
    """Encode an image as PNG.

    Args:
        image: ``[height, width, channels]``: uint8 or uint16, 1 to 4 channels.
        compression: From 0 (none) to 9 (most); -1 for a good compromise.
        name: Name of the operation.

    Returns:
        The file's bytes, a string scalar.

    Examples:
        >>> session.run(tf.image.encode_png(tf.zeros([4, 6, 3], tf.uint8)))[1:4]
        b'PNG'
    """
    if not -1 <= compression <= 9:
        raise InvalidArgumentError(f"encode_png: compression is {compression}, expected -1 to 9")
    return add_op(ENCODE_PNG, image, name=name, compression=int(compression))


def _encode_png_kernel(ctx: KernelContext, pixels: Array) -> Any:
    level = ctx.attr("compression")
    if pixels.dtype == np.uint16 and pixels.ndim == 3 and pixels.shape[2] in (2, 3, 4) and pixels.size:
        return _as_scalar(encode_png_file(pixels, level))  # Pillow writes 16 bits of one channel only
    channels = (1, 2, 3, 4)
    return _encoded(ctx, pixels, channels, format="PNG", **({} if level < 0 else {"compress_level": level}))


ENCODE_PNG = register(
    OpDef(
        name="EncodePng",
        inputs=("image: T",),
        outputs=("contents: string",),
        attrs=("compression",),
        types={"T": (dtypes.uint8, dtypes.uint16)},
        shape=_encoded_shape,
        kernels=on_cpu(_encode_png_kernel),
    )
)


def decode_bmp(contents: TensorLike, channels: int = 0, name: str | None = None) -> Tensor:
    """Decode a BMP image.

    Args:
        contents: The file's bytes, a string scalar.
        channels: 3, 4, or 0 for what the file has.
        name: Name of the operation.

    Returns:
        uint8 ``[height, width, channels]``.

    Raises:
        InvalidArgumentError: While running: there are too few bytes, or `channels` are others than the image has.
    """
    return add_op(DECODE_BMP, contents, name=name, channels=_check_channels("decode_bmp", channels, (0, 1, 3, 4)))


def _decode_bmp_kernel(ctx: KernelContext, contents: Array) -> Array:
    return bmp_pixels(ctx, contents, ctx.attr("channels"))


DECODE_BMP = register(
    OpDef(
        name="DecodeBmp",
        inputs=("contents: string",),
        outputs=("image: uint8",),
        attrs=("channels",),
        shape=_decoded_shape,
        kernels=on_cpu(_decode_bmp_kernel),
    )
)


def decode_gif(contents: TensorLike, name: str | None = None) -> Tensor:
    """Decode all frames of a GIF image, or an image of another kind as one frame.

    Args:
        contents: The file's bytes, a string scalar.
        name: Name of the operation.

    Returns:
        uint8 ``[frames, height, width, 3]``.
    """
    return add_op(DECODE_GIF, contents, name=name)


def _decode_gif_kernel(ctx: KernelContext, contents: Array) -> Array:
    pixels = as_dtype_colours(image_pixels(ctx, contents, 3, frames=True), np.dtype(np.uint8), False)
    return pixels if pixels.ndim == 4 else pixels[None]


def _frames_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.assert_has_rank(0)
    return [TensorShape([None, None, None, 3])]


DECODE_GIF = register(
    OpDef(
        name="DecodeGif",
        inputs=("contents: string",),
        outputs=("image: uint8",),
        shape=_frames_shape,
        kernels=on_cpu(_decode_gif_kernel),
    )
)


def decode_image(
    contents: TensorLike,
    channels: int | None = None,
    dtype: DTypeLike = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """Decode a JPEG, PNG, GIF or BMP image, whichever it is.

    Args:
        contents: The file's bytes, a string scalar.
        channels: 1, 3, 4, or 0 for what the file has.
        dtype: Dtype of the result, to which colours are scaled.
        name: Name scope of the operations.
        expand_animations: Give GIF images as ``[frames, height, width, channels]``; otherwise their first frame.

    Returns:
        ``[height, width, channels]``; the rank is not known while the graph is built if it may be a GIF image.

    Raises:
        InvalidArgumentError: While running: the bytes are no such image, or damaged.
        NotFoundError: While running: Pillow is not installed.

    Examples:
        >>> contents = tf.image.encode_png(tf.zeros([4, 6, 3], tf.uint8))
        >>> session.run(tf.image.decode_image(contents)).shape
        (4, 6, 3)
    """
    channels = _check_channels("decode_image", channels, (0, 1, 3, 4))
    with get_default_graph().name_scope(name or "decode_image"):
        wanted = as_dtype(dtype)
        read = wanted if wanted in _IMAGE_DTYPES else dtypes.uint16
        expand = bool(expand_animations)
        image = add_op(DECODE_IMAGE, contents, channels=channels, expand_animations=expand, dtype=read)
        return convert_image_dtype(image, wanted)


_IMAGE_DTYPES: Final = (dtypes.uint8, dtypes.uint16, dtypes.float16, dtypes.float32, dtypes.float64)


def _decode_image_kernel(ctx: KernelContext, contents: Array) -> Array:
    kind, channels = kind_of(bytes_of(contents)), ctx.attr("channels")
    pixels = image_pixels(ctx, contents, channels, frames=True, bmp=True)
    if pixels.ndim == 4 and not ctx.attr("expand_animations"):
        pixels = pixels[0]
    return as_dtype_colours(pixels, ctx.output_dtype(), kind == "PNG")


def _decode_image_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.assert_has_rank(0)
    return [UNKNOWN] if op.attr("expand_animations") else [TensorShape([None, None, op.attr("channels") or None])]


DECODE_IMAGE = register(
    OpDef(
        name="DecodeImage",
        inputs=("contents: string",),
        outputs=("image: dtype",),
        attrs=("channels", "expand_animations"),
        types={"dtype": _IMAGE_DTYPES},
        shape=_decode_image_shape,
        kernels=on_cpu(_decode_image_kernel),
    )
)
