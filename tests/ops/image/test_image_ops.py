"""Functions of images that are made of several operations, and the random ones."""

from __future__ import annotations

import base64
import hashlib
import struct
import sys
import zlib

import numpy as np
import pytest

import tfray as tf
from tests.support.gradient_check import check_gradients
from tests.support.sessions import run
from tfray.ops.image import image_files

RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.uniform(0, 1, (7, 9, 3)).astype(np.float32)
BATCH = RANDOM.uniform(0, 1, (2, 8, 6, 3)).astype(np.float32)
BYTES = RANDOM.integers(0, 256, (2, 8, 6, 3)).astype(np.uint8)


def from_unknown(array):
    """A placeholder of known rank only, and its feed."""
    tensor = tf.placeholder(array.dtype, [None] * array.ndim)
    return tensor, {tensor: array}


# -- geometry ------------------------------------------------------------------------------------------

GEOMETRY = {
    "flip_left_right": (tf.image.flip_left_right, lambda x: x[..., :, ::-1, :]),
    "flip_up_down": (tf.image.flip_up_down, lambda x: x[..., ::-1, :, :]),
    "transpose_image": (tf.image.transpose_image, lambda x: np.swapaxes(x, -3, -2)),
    "rot90": (tf.image.rot90, lambda x: np.rot90(x, 1, (-3, -2))),
    "rot90 twice": (lambda x: tf.image.rot90(x, 2), lambda x: np.rot90(x, 2, (-3, -2))),
    "rot90 back": (lambda x: tf.image.rot90(x, -1), lambda x: np.rot90(x, -1, (-3, -2))),
    "rot90 by tensor": (
        lambda x: tf.image.rot90(x, tf.placeholder_with_default(3, [])),
        lambda x: np.rot90(x, 3, (-3, -2)),
    ),
    "crop_to_bounding_box": (
        lambda x: tf.image.crop_to_bounding_box(x, 1, 2, 4, 3),
        lambda x: x[..., 1:5, 2:5, :],
    ),
    "central_crop": (lambda x: tf.image.central_crop(x, 0.5), lambda x: middle(x, 0.5)),
    "central_crop whole": (lambda x: tf.image.central_crop(x, 1.0), lambda x: x),
}


def middle(x, fraction):
    top, left = (int((size - size * fraction) / 2) for size in x.shape[-3:-1])
    return x[..., top : x.shape[-3] - top, left : x.shape[-2] - left, :]


@pytest.mark.parametrize("image", [IMAGE, BATCH, BYTES], ids=["image", "batch", "bytes"])
@pytest.mark.parametrize("name", GEOMETRY)
def test_geometry(name, image):
    function, reference = GEOMETRY[name]
    np.testing.assert_array_equal(run(function(tf.constant(image))), reference(image))
    tensor, feeds = from_unknown(image)
    np.testing.assert_array_equal(run(function(tensor), feeds), reference(image))


@pytest.mark.parametrize("size", [(5, 5), (12, 12), (5, 14), (11, 6), (7, 9), (8, 8)])
def test_crop_or_pad_keeps_the_middle(size):
    expected = np.zeros((*size, 3), np.float32)
    inside, source = [], []
    for target, actual in zip(size, IMAGE.shape, strict=False):
        before, cut = max((target - actual) // 2, 0), max((actual - target) // 2, 0)
        kept = min(target, actual)
        inside.append(slice(before, before + kept))
        source.append(slice(cut, cut + kept))
    expected[tuple(inside)] = IMAGE[tuple(source)]
    result = tf.image.resize_image_with_crop_or_pad(IMAGE, *size)
    assert result.shape == (*size, 3)
    np.testing.assert_array_equal(run(result), expected)
    tensor, feeds = from_unknown(IMAGE)
    np.testing.assert_array_equal(run(tf.image.resize_image_with_crop_or_pad(tensor, *size), feeds), expected)


def test_pad_to_bounding_box():
    padded = tf.image.pad_to_bounding_box(BATCH, 1, 2, 12, 9)
    np.testing.assert_array_equal(run(padded), np.pad(BATCH, [(0, 0), (1, 3), (2, 1), (0, 0)]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="do not fit"):
        tf.image.pad_to_bounding_box(BATCH, 1, 2, 8, 9)
    with pytest.raises(tf.errors.InvalidArgumentError, match="exceeds"):
        tf.image.crop_to_bounding_box(BATCH, 6, 0, 3, 3)


def test_places_and_sizes_of_crops_and_borders_may_be_known_at_run_time():
    places = [tf.placeholder(tf.int32, []) for _ in range(4)]
    found = {
        tf.image.crop_to_bounding_box: ([1, 2, 4, 3], BATCH[:, 1:5, 2:5]),
        tf.image.pad_to_bounding_box: ([1, 2, 12, 9], np.pad(BATCH, [(0, 0), (1, 3), (2, 1), (0, 0)])),
    }
    for function, (numbers, expected) in found.items():
        tensor, feeds = from_unknown(BATCH)
        result = run(function(tensor, *places), {**feeds, **dict(zip(places, numbers, strict=True))})
        np.testing.assert_array_equal(result, expected)
    size = run(tf.image.resize_image_with_crop_or_pad(BATCH, *places[:2]), {places[0]: 12, places[1]: 3})
    expected = run(tf.image.resize_image_with_crop_or_pad(BATCH, 12, 3))
    np.testing.assert_array_equal(size, expected)


def test_images_of_another_rank_are_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"expected \[height, width, channels\]"):
        tf.image.flip_left_right(np.zeros((3, 3), np.float32))


def test_resize_images():
    for method in (tf.image.ResizeMethod.BILINEAR, tf.image.ResizeMethod.BICUBIC, tf.image.ResizeMethod.AREA):
        resized = tf.image.resize_images(BYTES, [4, 3], method)
        assert resized.dtype == tf.float32 and resized.shape == (2, 4, 3, 3)
    nearest = tf.image.resize_images(BYTES[0], [4, 3], tf.image.ResizeMethod.NEAREST_NEIGHBOR)
    np.testing.assert_array_equal(run(nearest), BYTES[0, ::2, ::2])
    constant = tf.constant(BATCH)
    assert run(tf.image.resize_images(constant, [8, 6])) is not None
    assert tf.image.resize_images(constant, [8, 6]) is constant
    assert run(tf.image.resize_images(BATCH, [16, 100], preserve_aspect_ratio=True)).shape == (2, 16, 12, 3)
    assert run(tf.image.resize_image_with_pad(IMAGE, 14, 30)).shape == (14, 30, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="ResizeMethod"):
        tf.image.resize_images(BATCH, [2, 2], method=7)


def test_what_is_not_finite_stays_where_it_is():
    image = np.ones((1, 64, 64, 1), np.float32)
    image[0, 10, 10] = np.inf
    resized = run(tf.image.resize_bilinear(image, [32, 32]))
    assert np.isinf(resized[0, 5, 5, 0]) and np.isfinite(resized).sum() == resized.size - 1


# -- colours -------------------------------------------------------------------------------------------


def test_adjustments_of_floats():
    np.testing.assert_allclose(run(tf.image.adjust_brightness(IMAGE, 0.25)), IMAGE + 0.25, rtol=1e-6)
    mean = BATCH.mean(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(run(tf.image.adjust_contrast(BATCH, 1.7)), (BATCH - mean) * 1.7 + mean, atol=1e-5)
    np.testing.assert_allclose(run(tf.image.adjust_gamma(IMAGE, 2.0, 0.5)), 0.5 * IMAGE**2, rtol=1e-5)


def test_adjustments_of_bytes_stay_in_range():
    brighter = run(tf.image.adjust_brightness(BYTES, 0.5))
    assert brighter.dtype == np.uint8
    np.testing.assert_allclose(brighter, np.minimum(BYTES.astype(int) + 127.5, 255), atol=1)
    assert run(tf.image.adjust_contrast(BYTES, 5.0)).dtype == np.uint8


def test_standardization():
    for image in (IMAGE, BATCH, BYTES):
        wide = image.astype(np.float64)
        axes = (-3, -2, -1)
        expected = (wide - wide.mean(axes, keepdims=True)) / wide.std(axes, keepdims=True)
        np.testing.assert_allclose(run(tf.image.per_image_standardization(image)), expected, atol=2e-5)
    uniform = run(tf.image.per_image_standardization(np.full((3, 3, 1), 7, np.float32)))
    np.testing.assert_array_equal(uniform, np.zeros((3, 3, 1)))


@pytest.mark.parametrize("source", ["uint8", "int16", "uint16", "int32", "float32", "float64"])
@pytest.mark.parametrize("target", ["uint8", "int16", "uint16", "float32", "float64"])
def test_convert_image_dtype_keeps_black_and_white(source, target):
    most = {name: np.iinfo(name).max if "int" in name else 1 for name in (source, target)}
    image = np.array([0, most[source]], source)
    converted = run(tf.image.convert_image_dtype(image, tf.as_dtype(target), saturate=True))
    assert converted.dtype == target and converted[0] == 0
    assert abs(float(converted[1]) - most[target]) <= most[target] / 255


def test_grayscale():
    expected = (BATCH * [0.2989, 0.587, 0.114]).sum(-1, keepdims=True)
    np.testing.assert_allclose(run(tf.image.rgb_to_grayscale(BATCH)), expected, rtol=1e-5)
    np.testing.assert_array_equal(run(tf.image.grayscale_to_rgb(IMAGE[..., :1])), np.repeat(IMAGE[..., :1], 3, 2))
    with pytest.raises(tf.errors.InvalidArgumentError, match="3 channels"):
        tf.image.rgb_to_grayscale(IMAGE[..., :2])


def test_linear_color_spaces_are_inverses():
    for there, back in ((tf.image.rgb_to_yiq, tf.image.yiq_to_rgb), (tf.image.rgb_to_yuv, tf.image.yuv_to_rgb)):
        np.testing.assert_allclose(run(back(there(BATCH))), BATCH, atol=2e-4)
    luminance = (BATCH * [0.299, 0.587, 0.114]).sum(-1)
    np.testing.assert_allclose(run(tf.image.rgb_to_yuv(BATCH))[..., 0], luminance, rtol=1e-5)


# -- random --------------------------------------------------------------------------------------------

ARBITRARY = {
    "flip_left_right": lambda x, seed: tf.image.random_flip_left_right(x, seed),
    "flip_up_down": lambda x, seed: tf.image.random_flip_up_down(x, seed),
    "brightness": lambda x, seed: tf.image.random_brightness(x, 0.3, seed),
    "contrast": lambda x, seed: tf.image.random_contrast(x, 0.3, 1.7, seed),
    "hue": lambda x, seed: tf.image.random_hue(x, 0.3, seed),
    "saturation": lambda x, seed: tf.image.random_saturation(x, 0.3, 1.7, seed),
    "crop": lambda x, seed: tf.image.random_crop(x, [3, 4, 3], seed),
}


@pytest.mark.parametrize("name", ARBITRARY)
def test_random_changes_follow_their_seed(name):
    def draw():
        with tf.Graph().as_default(), tf.Session() as session:
            changed = ARBITRARY[name](tf.constant(IMAGE), 7)
            return [session.run(changed) for _ in range(12)]

    first, again = draw(), draw()
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len({one.tobytes() for one in first}) > 1


def test_random_flip_of_a_batch_flips_each_image_on_its_own():
    images = np.tile(IMAGE, (40, 1, 1, 1))
    flipped = run(tf.image.random_flip_left_right(images, seed=1))
    is_flipped = [np.array_equal(image, IMAGE[:, ::-1]) for image in flipped]
    assert all(f or np.array_equal(image, IMAGE) for f, image in zip(is_flipped, flipped, strict=True))
    assert 8 < sum(is_flipped) < 32


def test_random_bounds_are_checked():
    for function, bounds in (
        (tf.image.random_brightness, [-1]),
        (tf.image.random_hue, [0.7]),
        (tf.image.random_contrast, [2, 1]),
        (tf.image.random_saturation, [-1, 1]),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected"):
            function(IMAGE, *bounds)


def test_sampled_parts_show_enough_of_an_object():
    box = np.array([[[0.2, 0.3, 0.6, 0.7]]], np.float32)
    begin, size, part = tf.image.sample_distorted_bounding_box(
        [100, 80, 3], box, seed=3, min_object_covered=0.5, area_range=(0.1, 0.6), aspect_ratio_range=(0.5, 2.0)
    )
    assert part.shape == (1, 1, 4)
    image = tf.slice(tf.zeros([100, 80, 3]), begin, size)
    with tf.Session() as session:
        for _ in range(50):
            at, extent, (top, left, bottom, right), cut = session.run([begin, size, part[0, 0], image])
            assert cut.shape == (extent[0], extent[1], 3) and at[2] == 0 and extent[2] == -1
            assert 0.1 <= extent[0] * extent[1] / 8000 <= 0.6
            shown = max(min(bottom, 0.6) - max(top, 0.2), 0) * max(min(right, 0.7) - max(left, 0.3), 0)
            assert shown >= 0.5 * 0.16 - 1e-6


def test_sampling_without_boxes():
    none = np.zeros((1, 0, 4), np.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="use_image_if_no_bounding_boxes"):
        run(tf.image.sample_distorted_bounding_box([10, 10, 3], none))
    whole = tf.image.sample_distorted_bounding_box(
        [10, 10, 3], none, area_range=(1.0, 1.0), aspect_ratio_range=(1, 1), use_image_if_no_bounding_boxes=True
    )
    np.testing.assert_array_equal(run(whole[1]), [10, 10, -1])


def test_glimpses():
    offsets = np.array([[0.0, 0.0], [0.25, -1 / 3]], np.float32)
    glimpses = run(tf.image.extract_glimpse(BATCH, [4, 2], offsets))
    np.testing.assert_array_equal(glimpses[0], BATCH[0, 2:6, 2:4])
    np.testing.assert_array_equal(glimpses[1], BATCH[1, 3:7, 1:3])
    beyond = run(tf.image.extract_glimpse(BATCH, [4, 4], np.array([[0, 0], [8, 6]], np.float32), False, False))
    np.testing.assert_array_equal(beyond[0, 2:, 2:], BATCH[0, :2, :2])
    np.testing.assert_array_equal(beyond[1, :2, :2], BATCH[1, 6:, 4:])
    assert BATCH.min() <= beyond.min() and beyond.max() <= BATCH.max()


# -- quality -------------------------------------------------------------------------------------------


def test_total_variation():
    expected = np.abs(np.diff(BATCH, axis=1)).sum((1, 2, 3)) + np.abs(np.diff(BATCH, axis=2)).sum((1, 2, 3))
    np.testing.assert_allclose(run(tf.image.total_variation(tf.constant(BATCH))), expected, rtol=1e-5)


def test_psnr():
    other = np.clip(BATCH + 0.1, 0, 1)
    error = np.square(BATCH - other).mean((1, 2, 3))
    np.testing.assert_allclose(run(tf.image.psnr(BATCH, other, 1.0)), 10 * np.log10(1 / error), rtol=1e-5)


def reference_ssim(x, y):
    places = np.arange(11) - 5.0
    line = np.exp(-0.5 * (places / 1.5) ** 2)
    window = np.outer(line, line) / line.sum() ** 2
    result = []
    for a, b in zip(x.astype(float), y.astype(float), strict=True):
        views = [np.lib.stride_tricks.sliding_window_view(z, (11, 11), (0, 1)) for z in (a, b)]
        mean_a, mean_b = (np.einsum("yxcij,ij->yxc", v, window) for v in views)
        product = np.einsum("yxcij,yxcij,ij->yxc", *views, window) - mean_a * mean_b
        squares = sum(np.einsum("yxcij,ij->yxc", v * v, window) for v in views) - mean_a**2 - mean_b**2
        luminance = (2 * mean_a * mean_b + 1e-4) / (mean_a**2 + mean_b**2 + 1e-4)
        result.append((luminance * (2 * product + 9e-4) / (squares + 9e-4)).mean())
    return np.array(result)


def test_ssim():
    x = RANDOM.uniform(0, 1, (2, 24, 20, 3)).astype(np.float32)
    y = np.clip(x + RANDOM.normal(0, 0.1, x.shape), 0, 1).astype(np.float32)
    np.testing.assert_allclose(run(tf.image.ssim(x, y, 1.0)), reference_ssim(x, y), atol=1e-4)
    np.testing.assert_allclose(run(tf.image.ssim(x, x, 1.0)), [1, 1], atol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot be compared"):
        tf.image.ssim(x, x[:, 1:], 1.0)


def test_ssim_multiscale_is_1_for_equal_images():
    x = RANDOM.uniform(0, 1, (2, 181, 190, 1)).astype(np.float32)
    np.testing.assert_allclose(run(tf.image.ssim_multiscale(x, x, 1.0)), [1, 1], atol=1e-4)


def test_differences():
    down, right = run(tf.image.image_gradients(tf.constant(BATCH)))
    np.testing.assert_array_equal(down[:, :-1], np.diff(BATCH, axis=1))
    np.testing.assert_array_equal(right[:, :, :-1], np.diff(BATCH, axis=2))
    assert not down[:, -1].any() and not right[:, :, -1].any()
    edges = run(tf.image.sobel_edges(BATCH))
    padded = np.pad(BATCH, [(0, 0), (1, 1), (1, 1), (0, 0)], "reflect")
    smooth = padded[:, :, :-2] + 2 * padded[:, :, 1:-1] + padded[:, :, 2:]
    np.testing.assert_allclose(edges[..., 0], smooth[:, 2:] - smooth[:, :-2], atol=1e-5)


# -- files ---------------------------------------------------------------------------------------------


def test_pictures_survive_files():
    picture = np.add.outer(np.arange(32), np.arange(24)).astype(np.uint8)[..., None].repeat(3, 2) * 4
    np.testing.assert_array_equal(run(tf.image.decode_image(tf.image.encode_png(picture))), picture)
    again = run(tf.image.decode_jpeg(tf.image.encode_jpeg(picture, quality=95)))
    assert np.abs(again.astype(int) - picture).max() <= 8
    worse = run(tf.image.adjust_jpeg_quality(picture / np.float32(255), 30))
    assert worse.shape == picture.shape and worse.dtype == np.float32
    assert tf.image.decode_jpeg(tf.constant(b""), channels=3).shape.as_list() == [None, None, 3]


COLOURS = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5a"
    "YVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//wAAR"
    "CAAVABsDASIAAhEBAxEB/8QAGQAAAwADAAAAAAAAAAAAAAAAAAUGAQQH/8QAIxAAAQQCAgICAwAAAAAAAAAAAQADBBECBRIhBjETQRVhcf/E"
    "ABgBAAIDAAAAAAAAAAAAAAAAAAQFAQID/8QAIxEAAgEDAwQDAAAAAAAAAAAAAQIEAAMRBhMhBRQiMRJBwf/aAAwDAQACEQMRAD8AoW5cSVC4"
    "njyIUVudFm7ILjA6v6S+XNla+TwvKgVY+Lz2pmAD9X+0JCjPDG6nINUnLe7kJHOUFKtLKf1NBywAqIeVMkAnIWs+Q6tl2OcmKuvpcwk6+WZL"
    "hxur6Tpr8faF1x5H6zitpkiNdC204I91a7DWR5eRzzFH+Jf8f442xkekIQPS2Jwp9VGlWLK/y5rdibmQ6Dhn2PXtOmoLDjeOZwFkIQgtSeF9"
    "FXgY/TSW8i91cOK//9k="
)
"""A JPEG image of 21 x 27 pixels, its colours stored at half the resolution."""

GRAY = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5a"
    "YVpQYEpRUk//wAALCAAVABsBAREA/8QAFwAAAwEAAAAAAAAAAAAAAAAABAUHBv/EACQQAAEEAQQABwAAAAAAAAAAAAECAwQFAAYREiEVIjEy"
    "QVFh/9oACAEBAAA/ANdZSWqao4pIBCckEt126t+I3IKsq+mq1uqrA6sAHjiSfqcJmupC+grEmur1UiQY7SvnbrCNBUJccEh1P73mj1lcIgQS"
    "w2oA7bdZI3Xn3nVO9+Y74bBT4hc7vk+7LLXMtwKbkyO+OSfVk56XZltw7J5Y0gU8dUJpR9Sn6z//2Q=="
)
"""A gray one of the same size."""

DECODED = [
    (COLOURS, {}, (21, 27, 3), "e01f6ab7549d1bc5"),
    (COLOURS, {"dct_method": "INTEGER_FAST"}, (21, 27, 3), "e01f6ab7549d1bc5"),
    (COLOURS, {"dct_method": "INTEGER_ACCURATE"}, (21, 27, 3), "7080a89cbe843f65"),
    (COLOURS, {"fancy_upscaling": False}, (21, 27, 3), "f9544ac794fc91c6"),
    (COLOURS, {"channels": 1}, (21, 27, 1), "fec582737d75585f"),
    (COLOURS, {"ratio": 2}, (11, 14, 3), "30d2a58ba5a816d6"),
    (COLOURS, {"ratio": 4}, (6, 7, 3), "10b3d33f984c7f78"),
    (COLOURS, {"ratio": 8}, (3, 4, 3), "475b5ceac52c2309"),
    (GRAY, {}, (21, 27, 1), "4579d1b7bd8a62d8"),
    (GRAY, {"channels": 3}, (21, 27, 3), "ae98b074ee4e3fa0"),
    (GRAY, {"ratio": 2}, (11, 14, 1), "e1208912fd9da0e2"),
]
"""Images, options, and the shape and the digest of what TensorFlow 2.21 makes of them."""


@pytest.mark.parametrize(("file", "options", "shape", "digest"), DECODED)
def test_jpeg_pixels_are_those_of_tensorflow(file, options, shape, digest):
    pytest.importorskip("simplejpeg")
    pixels = run(tf.image.decode_jpeg(file, **options))
    assert pixels.shape == shape
    assert hashlib.sha256(pixels.tobytes()).hexdigest()[:16] == digest
    window = [1, 2, shape[0] - 2, shape[1] - 3]
    if "ratio" not in options:
        part = run(tf.image.decode_and_crop_jpeg(file, window, **options))
        assert np.array_equal(part, pixels[1 : shape[0] - 1, 2 : shape[1] - 1])
    if not options:
        assert np.array_equal(run(tf.image.decode_image(file)), pixels)


@pytest.mark.parametrize(("file", "options", "shape", "digest"), DECODED)
def test_pillow_decodes_jpeg_images_where_simplejpeg_is_missing(file, options, shape, digest, monkeypatch):
    by_turbo = run(tf.image.decode_jpeg(file, **options)).astype(int)
    monkeypatch.setattr(image_files, "turbo", lambda: None)
    pixels = run(tf.image.decode_jpeg(file, **options))
    assert pixels.shape == shape
    assert np.abs(pixels - by_turbo).max() <= (12 if options.get("fancy_upscaling", True) else 255)


def test_a_jpeg_option_that_does_not_exist_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="dct_method is 'FAST'"):
        tf.image.decode_jpeg(COLOURS, dct_method="FAST")


def test_jpeg_files_can_be_decoded_smaller():
    picture = np.zeros((32, 48, 3), np.uint8)
    file = tf.image.encode_jpeg(picture)
    assert run(tf.image.decode_jpeg(file, ratio=4)).shape == (8, 12, 3)


def test_a_small_animation_that_declares_many_pixels_is_refused(monkeypatch):
    from io import BytesIO

    from PIL import Image

    frames = [Image.fromarray(np.full((300, 400), 20 * level, np.uint8)) for level in range(5)]
    stream = BytesIO()
    frames[0].save(stream, "GIF", save_all=True, append_images=frames[1:])
    assert run(tf.image.decode_gif(stream.getvalue())).shape == (5, 300, 400, 3)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 250_000)
    with pytest.raises(tf.errors.InvalidArgumentError, match="5 frames of 300 x 400 pixels"):
        run(tf.image.decode_gif(stream.getvalue()))


def test_all_frames_of_gif_files():
    from io import BytesIO

    from PIL import Image

    frames = [Image.fromarray(np.full((4, 5), level, np.uint8)) for level in (0, 100, 200)]
    stream = BytesIO()
    frames[0].save(stream, "GIF", save_all=True, append_images=frames[1:])
    decoded = run(tf.image.decode_gif(stream.getvalue()))
    assert decoded.shape == (3, 4, 5, 3) and decoded[:, 0, 0, 0].tolist() == [0, 100, 200]
    assert run(tf.image.decode_image(stream.getvalue())).shape == (3, 4, 5, 3)


def test_without_pillow_the_error_says_what_to_install(monkeypatch):
    image_files.pillow.cache_clear()
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(tf.errors.NotFoundError, match=r"pip install 'tfray\[image\]'"):
        run(tf.image.decode_png(tf.placeholder_with_default(b"x", [])))
    image_files.pillow.cache_clear()


# -- what TensorFlow 2.21 gives ------------------------------------------------------------------------


def png_of(pixels, kind, depth):
    """A PNG file without filters, of pixels ``[height, width, channels]``."""
    rows = pixels.astype(">u2" if depth == 16 else np.uint8).reshape(len(pixels), -1).view(np.uint8)
    header = struct.pack(">IIBBBBB", pixels.shape[1], len(pixels), depth, kind, 0, 0, 0)
    lines = b"".join(b"\0" + row.tobytes() for row in rows)
    parts = [("IHDR", header), ("IDAT", zlib.compress(lines))]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name.encode() + data + struct.pack(">I", zlib.crc32(name.encode() + data))
        for name, data in [*parts, ("IEND", b"")]
    )


DEEP = {kind: RANDOM.integers(0, 65536, (3, 4, count)) for kind, count in [(0, 1), (4, 2), (2, 3), (6, 4)]}
"""Pixels of 16 bits by PNG's number of a kind: gray, gray with transparency, colours, those with transparency."""


@pytest.mark.parametrize("kind", DEEP)
def test_png_files_of_16_bits_keep_them(kind):
    file, pixels = png_of(DEEP[kind], kind, 16), DEEP[kind]
    assert np.array_equal(run(tf.image.decode_png(file, dtype=tf.uint16)), pixels)
    assert np.array_equal(run(tf.image.decode_image(file, dtype=tf.uint16)), pixels)
    assert np.array_equal(run(tf.image.decode_png(file)), pixels >> 8)
    np.testing.assert_allclose(run(tf.image.decode_image(file, dtype=tf.float32)), pixels / 65535, rtol=1e-6)
    written = run(tf.image.encode_png(pixels.astype(np.uint16)))
    assert np.array_equal(run(tf.image.decode_png(written, dtype=tf.uint16)), pixels)


@pytest.mark.parametrize(
    ("colour", "gray"), [((172, 47, 117), 92), ((195, 103, 9), 119), ((216, 88, 140), 132), ((7, 7, 7), 7)]
)
def test_gray_of_png_files_is_libpngs(colour, gray):
    file = png_of(np.array([[colour]]), 2, 8)
    assert run(tf.image.decode_png(file, channels=1)).tolist() == [[[gray]]]
    assert run(tf.image.decode_image(file, channels=1)).tolist() == [[[gray]]]


def test_each_decoder_takes_the_files_of_others():
    flat = np.full((8, 8, 3), 30, np.uint8)
    png, jpeg = png_of(flat, 2, 8), run(tf.image.encode_jpeg(flat))
    gif = base64.b64decode("R0lGODdhAQABAIAAAB4eHgAAACwAAAAAAQABAAACAkQBADs=")
    assert np.array_equal(run(tf.image.decode_jpeg(png)), flat)
    assert np.array_equal(run(tf.image.decode_png(jpeg)), run(tf.image.decode_jpeg(jpeg)))
    assert run(tf.image.decode_png(gif)).tolist() == run(tf.image.decode_jpeg(gif)).tolist() == [[[30, 30, 30]]]
    assert run(tf.image.decode_gif(png)).shape == (1, 8, 8, 3)
    # 8 bits become 16 by 257 in libpng, for PNG files, and by 256 in TensorFlow, for others
    assert run(tf.image.decode_png(png, dtype=tf.uint16))[0, 0, 0] == 30 * 257
    assert run(tf.image.decode_png(gif, dtype=tf.uint16))[0, 0, 0] == 30 * 256
    with pytest.raises(tf.errors.InvalidArgumentError, match="not given 4 channels"):
        run(tf.image.decode_image(jpeg, channels=4))


def test_whether_files_are_jpeg_images_is_told_of_any_number_of_them():
    assert run(tf.image.is_jpeg([[b"\xff\xd8\xff\xe0"], [b"GIF8"]])).tolist() == [[True], [False]]


def test_an_incomplete_jpeg_file_is_decoded_if_asked_for():
    pytest.importorskip("simplejpeg")
    file = run(tf.image.encode_jpeg(np.zeros((32, 48, 3), np.uint8)))[:-20]
    assert run(tf.image.decode_jpeg(file, try_recover_truncated=True)).shape == (32, 48, 3)
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(tf.image.decode_jpeg(file))


SIMILAR = [((3, 16, 16, 3), (1, 16, 16, 3), (3,)), ((16, 16, 3), (4, 16, 16, 3), (4,)), ((16, 16, 3), (16, 16, 3), ())]


@pytest.mark.parametrize("measure", [tf.image.ssim, tf.image.psnr])
@pytest.mark.parametrize(("first", "second", "shape"), [*SIMILAR, ((2, 1, 16, 16, 3), (3, 16, 16, 3), (2, 3))])
def test_images_are_compared_with_each_of_others(measure, first, second, shape):
    x, y = (RANDOM.uniform(0, 1, sizes).astype(np.float32) for sizes in (first, second))
    result = measure(x, y, 1.0)
    assert result.shape.as_list() == list(shape)
    found = run(result)
    pairs = np.broadcast_arrays(np.zeros((*shape, 1, 1, 1)), x, y)[1:]
    pairs = zip(*(each.reshape(-1, 16, 16, 3).copy() for each in pairs), strict=True)
    one_by_one = [run(measure(*pair, 1.0)) for pair in pairs]
    np.testing.assert_allclose(found.reshape(-1), one_by_one, rtol=1e-5, atol=1e-6)
    unknown = [tf.placeholder(tf.float32), tf.placeholder(tf.float32)]
    np.testing.assert_allclose(
        run(measure(*unknown, 1.0), dict(zip(unknown, (x, y), strict=True))), found, rtol=1e-5, atol=1e-6
    )


def test_boxes_are_chosen_for_all_classes_together():
    boxes = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 100, 1, 101]], np.float32)
    scores = np.array([[0.9, 0.3], [0.75, 0.5], [0.6, 0.95], [0.95, 0.1], [0.3, 0.75]], np.float32)
    chosen = tf.image.combined_non_max_suppression(boxes[None, :, None], scores[None], 2, 3, 0.3, 0.2)
    assert [tensor.shape.as_list() for tensor in chosen] == [[1, 3, 4], [1, 3], [1, 3], [1]]
    found = run(chosen)
    np.testing.assert_allclose(found[1], [[0.95, 0.95, 0.9]])
    assert found[2].tolist() == [[0, 1, 0]] and found[3].tolist() == [3]
    np.testing.assert_allclose(found[0][0], [[0, 1, 1, 1], [0, 0, 1, 0.9], [0, 0, 1, 1]])
    padded = tf.image.combined_non_max_suppression(boxes[None, :, None], scores[None], 1, 9, 0.3, 0.2, True, False)
    assert padded[0].shape.as_list() == [1, 2, 4] and run(padded[0])[0, 0].tolist() == [0, 10, 1, 11]


def test_an_image_of_unknown_rank_is_one_image():
    image = tf.placeholder(tf.float32)
    cropped = tf.image.crop_to_bounding_box(image, 1, 2, 3, 3)
    assert cropped.shape.as_list() == [3, 3, None]
    assert np.array_equal(run(cropped, {image: IMAGE}), IMAGE[1:4, 2:5])
    assert np.array_equal(run(tf.image.grayscale_to_rgb(image), {image: IMAGE[..., :1]}), IMAGE[..., [0, 0, 0]])
    for function in (lambda x: tf.image.resize_images(x, [2, 2]), lambda x: tf.image.central_crop(x, 0.5)):
        with pytest.raises(ValueError, match="rank of the image is unknown"):
            function(image)


def test_images_refuse_what_tensorflow_refuses():
    gamma, box = tf.placeholder(tf.float32, []), np.array([[0, 0, 1, 1]], np.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="gamma must be at least 0"):
        run(tf.image.adjust_gamma(IMAGE, gamma), {gamma: -0.5})
    with pytest.raises(tf.errors.OutOfRangeError, match="expected images 0 to 0"):
        run(tf.image.crop_and_resize(IMAGE[None], box, [1], [2, 2]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="max_output_size is -1"):
        run(tf.image.non_max_suppression(box, [1.0], -1))
    with pytest.raises(ValueError, match="two integers"):
        tf.image.resize_images(IMAGE, [2.0, 2.0])
    with pytest.raises(ValueError, match="four integers"):
        tf.image.extract_image_patches(IMAGE[None], [2, 2], [1] * 4, [1] * 4, "VALID")
    assert run(tf.image.crop_and_resize(IMAGE[None], box[:0], np.zeros(0, np.int32), [2, 2])).shape == (0, 2, 2, 3)


@pytest.mark.parametrize(
    ("head", "bits", "height", "rows", "expected"),
    [  # of TensorFlow 1.15, which does not look at the first two bytes
        (b"B@", 24, 2, [0, 0, 255, 255, 255, 255, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0],
         [[[0, 0, 255], [0, 255, 0]], [[255, 0, 0], [255, 255, 255]]]),
        (b"BM", 24, -1, [1, 2, 3, 4, 5, 6], [[[3, 2, 1], [6, 5, 4]]]),
        (b"BM", 8, 2, [255, 0, 0, 0, 254, 1, 0, 0], [[[254], [1]], [[255], [0]]]),
        (b"BM", 32, 1, [1, 2, 3, 4, 5, 6, 7, 8], [[[3, 2, 1, 4], [7, 6, 5, 8]]]),
    ],
)  # fmt: skip
def test_bmp_files_are_bytes_in_rows(head, bits, height, rows, expected):
    numbers = struct.pack("<iiiiiihh", 0, 0, 54, 40, 2, height, 1, bits)
    file = head + numbers.ljust(52, b"\0") + bytes(rows)
    assert run(tf.image.decode_bmp(file)).tolist() == expected
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not match bits per pixel from file"):
        run(tf.image.decode_bmp(file, channels=4 if bits == 24 else 3))


def test_gradients_of_hue_saturation_and_value():
    random = np.random.default_rng(0)
    colors = random.permuted([[0.1, 0.45, 0.9]] * 12, axis=1) + random.uniform(-0.05, 0.05, (12, 3))
    check_gradients(tf.image.rgb_to_hsv, [colors])


@pytest.mark.parametrize("color", [(0, 0, 0), (0.5, 0.5, 0.5), (1, 1, 0), (0, 1, 1)])
def test_gradients_of_colors_with_equal_channels_are_finite(session, color):
    x = tf.constant(color, tf.float32)
    hue, saturation, value = (tf.gradients(each, x)[0] for each in tf.unstack(tf.image.rgb_to_hsv(x)))
    d_hue, d_saturation, d_value = session.run([hue, saturation, value])
    assert np.isfinite([d_hue, d_saturation]).all()
    assert sorted(d_value) == [0, 0, 1] and np.argmax(d_value) == np.argmax(color)


@pytest.mark.parametrize(
    ("valid", "most", "of_rows", "of_columns"),
    [  # TensorFlow 1.15's
        (-1.0, -1, [2, 1, -1, 0], [3, 1, 0]),
        (-1.0, 1, [-1, -1, -1, 0], [3, -1, -1]),
        (2.0, -1, [0, 1, -1, -1], [0, 1, -1]),
        (0.0, -1, [-1, -1, -1, -1], [-1, -1, -1]),
    ],
)
def test_rows_and_columns_are_matched_nearest_first(valid, most, of_rows, of_columns):
    distances = np.random.RandomState(0).rand(4, 3).astype(np.float32)
    found = tf.contrib.image.bipartite_match(distances, valid, most)
    with tf.Session() as session:
        assert [each.tolist() for each in session.run(list(found))] == [of_rows, of_columns]
        with pytest.raises(tf.errors.InvalidArgumentError, match="at least 9 rows"):
            session.run(tf.contrib.image.bipartite_match(distances, 9.0))
