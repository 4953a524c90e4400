"""The pixels of image files: JPEG, PNG, GIF and BMP, read by Pillow, which is loaded when first used.

JPEG images are decoded by simplejpeg where it is installed, in half of Pillow's time, and with TensorFlow's choice of
the inverse transform: both are libjpeg-turbo, so that pixels are TensorFlow's. Pillow's are a few steps off.
"""

from __future__ import annotations

import io
import zlib
from functools import lru_cache
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError, NotFoundError
from tfray.framework.op_def import Array, KernelContext, NumpyDType

if TYPE_CHECKING:
    from PIL.Image import Image

_MODES: Final = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
JPEG_BEGIN: Final = b"\xff\xd8\xff"
JPEG_OPTIONS: Final = ("fancy_upscaling", "dct_method", "try_recover_truncated")
_JPEG_DEFAULTS: Final[dict[str, Any]] = dict(zip(JPEG_OPTIONS, (True, "", False), strict=True))
"""How an operation that is not of JPEG images decodes one all the same."""


@lru_cache(maxsize=1)
def pillow() -> SimpleNamespace:
    """Pillow's module ``Image``, and the errors that mean a broken file."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise NotFoundError(
            "images are decoded and encoded by Pillow, which is not installed: pip install 'tfray[image]'"
        ) from error
    broken = (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError, EOFError)
    return SimpleNamespace(Image=Image, broken=broken)


@lru_cache(maxsize=1)
def turbo() -> ModuleType | None:
    """The module simplejpeg, None where it is not installed."""
    try:
        import simplejpeg
    except ImportError:
        return None
    module: ModuleType = simplejpeg
    return module


def bytes_of(contents: Array | bytes) -> bytes:
    data: bytes = contents.item() if isinstance(contents, np.ndarray) else contents
    return data


def opened(ctx: KernelContext, contents: Array, formats: tuple[str, ...]) -> Image:
    modules, data = pillow(), bytes_of(contents)
    try:
        image: Image = modules.Image.open(io.BytesIO(data), formats=formats)
        return image
    except modules.broken as error:
        raise InvalidArgumentError(
            f"{ctx.op_name}: {len(data)} bytes that begin with {data[:8]!r} are no {' or '.join(formats)} image"
        ) from error


def kind_of(data: bytes) -> str:
    kinds = {JPEG_BEGIN: "JPEG", b"\x89PNG": "PNG", b"GIF8": "GIF", b"BM": "BMP"}
    return next((kind for begin, kind in kinds.items() if data.startswith(begin)), "")


def image_pixels(
    ctx: KernelContext, contents: Array, channels: int, ratio: int = 1, frames: bool = False, bmp: bool = False
) -> Array:
    """The pixels of a JPEG, PNG, GIF or BMP image, whichever it is, as ``[height, width, channels]``.

    A GIF image gives ``[frames, height, width, 3]`` where `frames` allows it, and else must have one frame. A BMP
    image is read where `bmp` allows it.
    """
    kind = kind_of(bytes_of(contents))
    if (kind == "JPEG" and channels == 4) or (kind == "GIF" and channels not in (0, 3)) or channels == 2:
        raise InvalidArgumentError(f"{ctx.op_name}: a {kind} image is not given {channels} channels")
    if kind == "JPEG":
        return jpeg_pixels(ctx, contents, channels, ratio)
    if kind == "PNG":
        return _png_pixels(ctx, contents, channels)
    if kind == "BMP" and bmp:
        return bmp_pixels(ctx, contents, channels)
    image = opened(ctx, contents, ("GIF",) if kind == "GIF" else ("JPEG", "PNG", "GIF"))
    if frames:
        return _frames(ctx, image, 3)
    if (count := getattr(image, "n_frames", 1)) > 1:
        raise InvalidArgumentError(f"{ctx.op_name}: the GIF image has {count} frames, expected one")
    return _pixels(ctx, image, 3)


def jpeg_pixels(ctx: KernelContext, contents: Array, channels: int, ratio: int = 1) -> Array:
    """The pixels of a JPEG image, by the attributes of `_jpeg_options` where the operation has them."""
    attrs = {name: _attr(ctx, name, default) for name, default in _JPEG_DEFAULTS.items()}
    fast = attrs["dct_method"] != "INTEGER_ACCURATE"
    strict = not attrs["try_recover_truncated"]
    pixels = _turbo_pixels(bytes_of(contents), channels, ratio, fast, attrs["fancy_upscaling"], strict)
    if pixels is not None:
        return pixels
    image = opened(ctx, contents, ("JPEG",))
    if ratio > 1:
        # Pillow divides the size by the greatest of 1, 2, 4 and 8 with which it gets no smaller than this.
        image.draft(None, (max(1, image.width // ratio), max(1, image.height // ratio)))
    return _pixels(ctx, image, channels)


def _attr(ctx: KernelContext, name: str, default: Any) -> Any:
    try:
        return ctx.attr(name)
    except KeyError:
        return default


def _turbo_pixels(data: bytes, channels: int, ratio: int, fast: bool, fancy: bool, strict: bool) -> Array | None:
    """The pixels of a JPEG image by simplejpeg; None where Pillow has to decode it, or say why it cannot be."""
    library = turbo()
    if library is None:
        return None
    try:
        height, width, colours, _ = library.decode_jpeg_header(data)
        limit = pillow().Image.MAX_IMAGE_PIXELS
        if colours in ("CMYK", "YCCK") or (limit is not None and height * width > limit):
            return None
        smaller = {"min_height": -(-height // ratio), "min_width": -(-width // ratio)} if ratio > 1 else {}
        form = "GRAY" if (channels or (1 if colours == "Gray" else 3)) == 1 else "RGB"
        pixels: Array = library.decode_jpeg(data, form, fastdct=fast, fastupsample=not fancy, strict=strict, **smaller)
    except ValueError:
        return None
    return pixels


def _png_pixels(ctx: KernelContext, contents: Array, channels: int) -> Array:
    """The pixels of a PNG image as ``[height, width, channels]``, uint8, or uint16 if the file has 16 bits."""
    data = bytes_of(contents)
    if len(data) > 25 and data[24] == 16:
        pixels = _deep_pixels(ctx, data)
    else:
        image = opened(ctx, contents, ("PNG",))
        # Pillow would round where libpng cuts off: gray is made of colours below.
        natural = {"1": 1, "L": 1, "LA": 2}.get(image.mode, 4 if _natural_mode(image) == "RGBA" else 3)
        pixels = _pixels(ctx, image, natural if channels in (0, 1) else channels)
    return _with_channels(pixels, channels or pixels.shape[2])


def _deep_pixels(ctx: KernelContext, data: bytes) -> Array:
    """The pixels of a PNG image of 16 bits, which Pillow cuts to 8 unless it is gray."""
    modules, kind = pillow(), data[25]
    try:
        if kind in (0, 4):  # gray: with the header of one of 8 bits, each byte is a channel
            image = modules.Image.open(io.BytesIO(_with_header(data, 8, {0: 4, 4: 6}[kind])), formats=("PNG",))
            return np.ascontiguousarray(np.asarray(image)).view(">u2").astype(np.uint16)
        high, low = (modules.Image.open(io.BytesIO(data), formats=("PNG",)) for _ in range(2))
        # The unpacker of the other byte order takes the lower byte for the higher one.
        low.tile = [(*tile[:3], tile[3].replace(";16B", ";16L")) for tile in low.tile]
        return np.asarray(high).astype(np.uint16) << np.uint16(8) | np.asarray(low)
    except modules.broken as error:
        raise InvalidArgumentError(f"{ctx.op_name}: the PNG image is damaged: {error}") from error


def _with_header(data: bytes, depth: int, kind: int) -> bytes:
    """A PNG file that says that it has another depth and kind of colours."""
    header = data[12:24] + bytes([depth, kind]) + data[26:29]
    return data[:12] + header + zlib.crc32(header).to_bytes(4, "big") + data[33:]


def bmp_pixels(ctx: KernelContext, contents: Array, channels: int) -> Array:
    """The pixels of a BMP image, read as TensorFlow does: bytes in rows, without a palette and not compressed."""
    data = bytes_of(contents)
    _check_bmp(ctx, data, 32, " to find the header size, width, height, and bpp")
    start, width, height = (int.from_bytes(data[at : at + 4], "little", signed=True) for at in (10, 18, 22))
    depth = int.from_bytes(data[28:30], "little") // 8
    if depth not in (1, 3, 4) or channels not in (0, depth):
        raise InvalidArgumentError(
            f"{ctx.op_name}: channels attribute {channels} does not match bits per pixel from file {depth * 8}: "
            "an image has 1, 3 or 4 bytes per pixel, and as many channels; pass 0 for these"
        )
    if min(start, width) < 0:
        raise InvalidArgumentError(f"{ctx.op_name}: the BMP image is damaged: {width} pixels a row, from byte {start}")
    row = -(-width * depth // 4) * 4
    _check_bmp(ctx, data, start + max(abs(height) * row - (row - width * depth), 0), "")
    padded = np.frombuffer(data[start : start + abs(height) * row].ljust(abs(height) * row, b"\0"), np.uint8)
    pixels = padded.reshape(abs(height), row)[:: -1 if height > 0 else 1, : width * depth]
    order = [0] if depth == 1 else [2, 1, 0, 3][:depth]
    return pixels.reshape(abs(height), width, depth)[..., order]


def _check_bmp(ctx: KernelContext, data: bytes, least: int, for_what: str) -> None:
    if len(data) < least:
        raise InvalidArgumentError(
            f"{ctx.op_name}: Incomplete bmp content, requires at least {least} bytes{for_what}, got {len(data)} bytes"
        )


def _pixels(ctx: KernelContext, image: Image, channels: int) -> Array:
    """The pixels of an open image as ``[height, width, channels]``, uint8; with 0 channels, as many as it has."""
    try:
        mode = _MODES[channels] if channels else _natural_mode(image)
        converted = image if image.mode == mode else image.convert(mode)
        pixels = np.asarray(converted)
    except pillow().broken as error:
        raise InvalidArgumentError(f"{ctx.op_name}: the {image.format} image is damaged: {error}") from error
    return pixels[..., None] if pixels.ndim == 2 else pixels


def _natural_mode(image: Image) -> str:
    if image.mode in ("1", "L", "LA", "RGBA"):
        return "L" if image.mode == "1" else str(image.mode)
    return "RGBA" if image.mode == "P" and "transparency" in image.info and image.format == "PNG" else "RGB"


def _frames(ctx: KernelContext, image: Image, channels: int) -> Array:
    modules, found = pillow(), []
    try:
        count = getattr(image, "n_frames", 1)
        _check_pixels(ctx, count, image)
        for index in range(count):
            image.seek(index)
            found.append(_pixels(ctx, image, channels))
    except InvalidArgumentError:
        raise
    except modules.broken as error:
        raise InvalidArgumentError(f"{ctx.op_name}: the GIF image is damaged: {error}") from error
    return np.stack(found)


def _check_pixels(ctx: KernelContext, count: int, image: Image) -> None:
    """Refuse frames that have more pixels together than Pillow allows one image: a small file may declare much."""
    limit = pillow().Image.MAX_IMAGE_PIXELS
    if limit is not None and count * image.width * image.height > 2 * limit:
        raise InvalidArgumentError(
            f"{ctx.op_name}: {count} frames of {image.height} x {image.width} pixels have together more than "
            f"{2 * limit}, which is 2 * PIL.Image.MAX_IMAGE_PIXELS"
        )


def _with_channels(pixels: Array, channels: int) -> Array:
    """Pixels with another number of channels, by the rules of libpng."""
    count = pixels.shape[2]
    if count == channels:
        return pixels
    colours = pixels[..., : count - 1 + count % 2]
    if channels < 3 and count >= 3:
        wide = colours.astype(np.uint32) @ np.array([9797, 19234, 3737], np.uint32)
        gray = wide + (16384 if pixels.dtype == np.uint16 else 0) >> 15
        same = (colours[..., :1] == colours).all(axis=2)
        colours = np.where(same, colours[..., 0], gray).astype(pixels.dtype)[..., None]
    elif channels >= 3 and count < 3:
        colours = np.repeat(colours, 3, axis=2)
    if channels % 2:
        return colours
    alpha = pixels[..., -1:] if count % 2 == 0 else np.full_like(pixels[..., :1], np.iinfo(pixels.dtype).max)
    return np.concatenate([colours, alpha], axis=2)


def as_dtype_colours(pixels: Array, dtype: NumpyDType, is_png: bool) -> Array:
    """Colours scaled to another dtype. 8 bits become 16 as libpng does it for PNG images, as TensorFlow for others."""
    if dtype == pixels.dtype:
        return pixels
    if dtype.kind == "f":
        return (pixels / np.float32(np.iinfo(pixels.dtype).max)).astype(dtype)
    if dtype == np.uint8:
        return (pixels >> np.uint16(8)).astype(np.uint8)
    return pixels.astype(np.uint16) * np.uint16(257 if is_png else 256)
