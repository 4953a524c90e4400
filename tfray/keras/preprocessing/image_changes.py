"""Images as arrays, and changes of them: turned, moved, sheared, zoomed, with other colours."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from tfray.formats.files import failures_of, given_path
from tfray.keras.settings import floatx
from tfray.ops.image.image_files import pillow

MODES: Final = {"grayscale": "L", "rgb": "RGB", "rgba": "RGBA"}


def img_to_array(img: Any, data_format: str | None = None, dtype: Any = None) -> np.ndarray:
    """An image of Pillow as an array ``[height, width, channels]``.

    Args:
        img: The image.
        data_format: ``channels_first`` for ``[channels, height, width]``.
        dtype: Dtype; float32 when None.
    """
    array = np.asarray(img, dtype=dtype or floatx())
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3:
        raise ValueError(f"Unsupported image shape: {array.shape}")
    return array.transpose(2, 0, 1) if data_format == "channels_first" else array


def array_to_img(x: Any, data_format: str | None = None, scale: bool = True, dtype: Any = None) -> Any:
    """An array ``[height, width, channels]`` as an image of Pillow.

    Args:
        x: The array, of 1, 3 or 4 channels.
        data_format: ``channels_first`` for ``[channels, height, width]``.
        scale: Stretch the values to 0 to 255.
        dtype: Dtype of the calculation; float32 when None.

    Raises:
        ValueError: It has another shape.
    """
    array = np.asarray(x, dtype=dtype or floatx())
    if array.ndim != 3:
        raise ValueError(f"Expected image array to have rank 3 (single image). Got array with shape: {array.shape}")
    if data_format == "channels_first":
        array = array.transpose(1, 2, 0)
    if scale:
        array = array - array.min()
        highest = array.max()
        array = (array / highest if highest else array) * 255
    if array.shape[2] not in (1, 3, 4):
        raise ValueError(f"Unsupported channel number: {array.shape[2]}")
    if array.shape[2] == 1:
        array = array[..., 0]
        return pillow().Image.fromarray(array.astype("int32" if array.max() > 255 else "uint8"))
    return pillow().Image.fromarray(array.astype("uint8"))


def load_img(
    path: str,
    grayscale: bool = False,
    color_mode: str = "rgb",
    target_size: tuple[int, int] | None = None,
    interpolation: str = "nearest",
) -> Any:
    """An image of Pillow from a file.

    Args:
        path: The file.
        grayscale: The same as `color_mode` ``grayscale``.
        color_mode: ``rgb``, ``rgba`` or ``grayscale``.
        target_size: Height and width to resize to.
        interpolation: How: ``nearest``, ``bilinear``, ``bicubic``, ``lanczos``, ``box`` or ``hamming``.

    Raises:
        ValueError: There is no such `color_mode` or `interpolation`.
        NotFoundError: There is no such file.
    """
    mode = "grayscale" if grayscale else color_mode
    if mode not in MODES:
        raise ValueError('color_mode must be "grayscale", "rgb", or "rgba"')
    path = given_path(path, "path")
    with failures_of(path), pillow().Image.open(path) as file:
        image = file if file.mode == MODES[mode] else file.convert(MODES[mode])
        image.load()
    if target_size is None or image.size == (target_size[1], target_size[0]):
        return image
    ways = pillow().Image.Resampling
    if not hasattr(ways, interpolation.upper()):
        raise ValueError(f"Invalid interpolation method {interpolation} specified.")
    return image.resize((target_size[1], target_size[0]), getattr(ways, interpolation.upper()))


def save_img(
    path: str, x: Any, data_format: str | None = None, file_format: str | None = None, scale: bool = True
) -> None:
    """Write an array as an image. Arguments as for `array_to_img`; `file_format` is that of the name when None."""
    path = given_path(path, "path")
    with failures_of(path):
        array_to_img(x, data_format, scale).save(path, format=file_format)


def moved(
    x: np.ndarray, change: Mapping[str, Any], axes: tuple[int, int, int], settings: Mapping[str, Any]
) -> np.ndarray:
    """An image turned, shifted, sheared and zoomed around its middle."""
    from scipy import ndimage

    row, column, channel = axes
    turn, shear = np.deg2rad(change.get("theta", 0)), np.deg2rad(change.get("shear", 0))
    zoom = change.get("zx", 1), change.get("zy", 1)
    shift = change.get("tx", 0), change.get("ty", 0)
    matrix = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]])
    matrix = matrix @ np.array([[1, 0, shift[0]], [0, 1, shift[1]], [0, 0, 1]])
    matrix = matrix @ np.array([[1, -np.sin(shear), 0], [0, np.cos(shear), 0], [0, 0, 1]])
    matrix = matrix @ np.diag([*zoom, 1])
    if (matrix == np.eye(3)).all():
        return x
    # TensorFlow 1.15's middle, one pixel from the true one, which later versions took.
    linear, middle = matrix[:2, :2], np.array([x.shape[row] / 2 + 0.5, x.shape[column] / 2 + 0.5])
    offset = linear @ -middle + matrix[:2, 2] + middle
    channels = [ndimage.affine_transform(each, linear, offset, **settings) for each in np.moveaxis(x, channel, 0)]
    return np.moveaxis(np.stack(channels), 0, channel)


def apply_affine_transform(
    x: np.ndarray,
    theta: float = 0,
    tx: float = 0,
    ty: float = 0,
    shear: float = 0,
    zx: float = 1,
    zy: float = 1,
    row_axis: int = 0,
    col_axis: int = 1,
    channel_axis: int = 2,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    order: int = 1,
) -> np.ndarray:
    """An image turned, moved, sheared and zoomed around its middle.

    Args:
        x: The image.
        theta: Degrees by which it is turned.
        tx: Rows by which it is moved.
        ty: Columns by which it is moved.
        shear: Degrees by which it is sheared.
        zx: What the distances of rows are multiplied with.
        zy: Likewise those of columns.
        row_axis: The axis of rows.
        col_axis: The axis of columns.
        channel_axis: The axis of channels.
        fill_mode: What stands outside: ``constant``, ``nearest``, ``reflect`` or ``wrap``.
        cval: The constant.
        order: Order of the splines between pixels.
    """
    axes, outside = (row_axis, col_axis, channel_axis), (fill_mode, cval, order)
    return _in_axes(x, axes, outside, theta=theta, tx=tx, ty=ty, shear=shear, zx=zx, zy=zy)


def _in_axes(x: np.ndarray, axes: tuple[int, int, int], outside: tuple[str, float, int], **change: Any) -> np.ndarray:
    fill_mode, cval, order = outside
    return moved(x, change, axes, MappingProxyType({"order": order, "mode": fill_mode, "cval": cval}))


def random_rotation(
    x: np.ndarray,
    rg: float,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> np.ndarray:
    """An image turned by up to `rg` degrees; further arguments are those of `apply_affine_transform`."""
    theta = np.random.uniform(-rg, rg)
    return _in_axes(x, (row_axis, col_axis, channel_axis), (fill_mode, cval, interpolation_order), theta=theta)


def random_shift(
    x: np.ndarray,
    wrg: float,
    hrg: float,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> np.ndarray:
    """An image moved by up to these parts of its width and height; further arguments as for `random_rotation`."""
    tx = np.random.uniform(-hrg, hrg) * x.shape[row_axis]
    ty = np.random.uniform(-wrg, wrg) * x.shape[col_axis]
    return _in_axes(x, (row_axis, col_axis, channel_axis), (fill_mode, cval, interpolation_order), tx=tx, ty=ty)


def random_shear(
    x: np.ndarray,
    intensity: float,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> np.ndarray:
    """An image sheared by up to `intensity` degrees; further arguments as for `random_rotation`."""
    shear = np.random.uniform(-intensity, intensity)
    return _in_axes(x, (row_axis, col_axis, channel_axis), (fill_mode, cval, interpolation_order), shear=shear)


def random_zoom(
    x: np.ndarray,
    zoom_range: Any,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> np.ndarray:
    """An image zoomed by two numbers between two bounds; further arguments as for `random_rotation`.

    Raises:
        ValueError: `zoom_range` is no pair.
    """
    if len(zoom_range) != 2:
        raise ValueError(f"`zoom_range` should be a tuple or list of two floats. Received: {zoom_range}")
    zx, zy = (1, 1) if tuple(zoom_range) == (1, 1) else np.random.uniform(zoom_range[0], zoom_range[1], 2)
    return _in_axes(x, (row_axis, col_axis, channel_axis), (fill_mode, cval, interpolation_order), zx=zx, zy=zy)


def apply_channel_shift(x: np.ndarray, intensity: float, channel_axis: int = 0) -> np.ndarray:
    """An image with `intensity` added, between the least and the greatest number that it had, whatever its axes."""
    return np.clip(x + np.asarray(intensity, x.dtype), x.min(), x.max())


def random_channel_shift(x: np.ndarray, intensity_range: float, channel_axis: int = 0) -> np.ndarray:
    """An image with a number between minus and plus `intensity_range` added; see `apply_channel_shift`."""
    return apply_channel_shift(x, np.random.uniform(-intensity_range, intensity_range), channel_axis)


def apply_brightness_shift(x: np.ndarray, brightness: float, scale: bool = True) -> np.ndarray:
    """An image with other brightness.

    Args:
        x: The image, ``[height, width, channels]``.
        brightness: What its brightness is multiplied with.
        scale: Stretch the values to 0 to 255 first. Without, only those beyond are, and back again.
    """
    from PIL import ImageEnhance

    low, high = x.min(), x.max()
    beyond = low < 0 or high > 255
    found = img_to_array(ImageEnhance.Brightness(array_to_img(x, scale=beyond or scale)).enhance(brightness))
    return found / 255 * (high - low) + low if beyond and not scale else found


def random_brightness(x: np.ndarray, brightness_range: Any, scale: bool = True) -> np.ndarray:
    """An image with a brightness between two bounds; see `apply_brightness_shift`.

    Raises:
        ValueError: `brightness_range` is no pair.
    """
    if len(brightness_range) != 2:
        raise ValueError(f"`brightness_range should be tuple or list of two floats. Received: {brightness_range}")
    return apply_brightness_shift(x, np.random.uniform(*brightness_range), scale)
