"""Images: resizing, colours, boxes, patches and files."""

from __future__ import annotations

import colorsys
import io
import math
from typing import Any

import numpy as np

from tests.support.op_samples import OpError, OpSample, grid
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.ops.image import (
    crop_resize_ops,
    image_box_ops,
    image_codec_ops,
    image_color_ops,
    matching_ops,
    resize_ops,
    warp_ops,
)
from tfray.ops.nn import patch_ops

WIDE = (dtypes.float32, dtypes.float64)

# -- resizing ------------------------------------------------------------------------------------------


def keys(x: float, a: float) -> float:
    x = abs(x)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


def axis_matrix(method: str, size: int, count: int, corners: bool, half: bool) -> Any:
    """Weights of the inputs in each output along one axis, ``[count, size]``."""
    scale = (size - 1) / (count - 1) if corners and count > 1 else size / count
    matrix = np.zeros((count, size))
    for i in range(count):
        place = (i + 0.5) * scale - 0.5 if half else i * scale
        below = math.floor(place)
        if method == "nearest":
            index = math.floor(place + 0.5) if corners or half else below
            matrix[i, min(max(index, 0), size - 1)] = 1
        elif method == "bilinear":
            matrix[i, min(max(below, 0), size - 1)] += 1 - (place - below)
            matrix[i, min(max(below + 1, 0), size - 1)] += place - below
        elif method == "bicubic":
            share = round((place - below) * 1024) / 1024
            taps = {below + k: keys(share - k, -0.5 if half else -0.75) for k in range(-1, 3)}
            if half:
                taps = {k: weight for k, weight in taps.items() if 0 <= k < size}
                taps = {k: weight / sum(taps.values()) for k, weight in taps.items()}
            for k, weight in taps.items():
                matrix[i, min(max(k, 0), size - 1)] += weight
        elif not scale:  # the corners of several outputs fall together on the only input
            matrix[i, 0] = 1
        else:
            for k in range(math.floor(i * scale), math.ceil((i + 1) * scale)):
                covered = min(k + 1, (i + 1) * scale) - max(k, i * scale)
                matrix[i, min(k, size - 1)] += covered / scale
    return matrix


METHODS = {
    "bilinear": (resize_ops.resize_bilinear, resize_ops.RESIZE_BILINEAR_GRAD),
    "bicubic": (resize_ops.resize_bicubic, resize_ops.RESIZE_BICUBIC_GRAD),
    "area": (resize_ops.resize_area, resize_ops.RESIZE_AREA_GRAD),
    "nearest": (resize_ops.resize_nearest_neighbor, resize_ops.RESIZE_NEAREST_NEIGHBOR_GRAD),
}
OP_NAMES = {
    "bilinear": "ResizeBilinear",
    "bicubic": "ResizeBicubic",
    "area": "ResizeArea",
    "nearest": "ResizeNearestNeighbor",
}
# Scales that 32 bits hold exactly, so that 64-bit results agree to the last digits.
EXACT = [((2, 4, 6, 3), (8, 4)), ((1, 8, 4, 13), (2, 8)), ((1, 1, 2, 1), (4, 1)), ((0, 4, 4, 2), (2, 2))]
ANY = [((2, 7, 5, 3), (4, 9)), ((1, 50, 3, 2), (11, 31)), ((1, 3, 70, 16), (5, 19))]


def resize_rows() -> list[OpSample]:
    rows = []
    for method, (function, grad) in METHODS.items():
        for sizes, corners, half in (
            *((sizes, False, False) for sizes in EXACT[method == "area" :]),
            (((1, 5, 3, 2), (9, 5)), True, False),
            (((2, 1, 3, 2), (4, 5)), True, False),
            *([(EXACT[0], False, True)] if method in ("bilinear", "nearest") else []),
        ):
            rows += exact_rows(method, function, grad, *sizes, corners, half)
        for shape, size in ANY:
            rows.append(resize_row(method, function, shape, size, False, False, dtypes=(dtypes.float32,), tolerance=12))
            if method == "bicubic":
                rows.append(
                    resize_row(method, function, shape, size, False, True, dtypes=(dtypes.float32,), tolerance=12)
                )
    return rows


def resize_row(
    method: str, function: Any, shape: Any, size: Any, corners: bool, half: bool, **options: Any
) -> OpSample:
    def reference(images: Any, size: Any) -> Any:
        y = axis_matrix(method, shape[1], size[0], corners, half)
        x = axis_matrix(method, shape[2], size[1], corners, half)
        return np.einsum("yh,nhwc,xw->nyxc", y, images, x)

    kwargs = {"align_corners": corners, **({} if method == "area" else {"half_pixel_centers": half})}
    kwargs.update(options.pop("kwargs", {}))
    label = f"{'corners' if corners else ''}{'half' if half else ''}{'-any' if 'dtypes' in options else ''}"
    inputs = [grid(*shape), np.array(size, np.int32)]
    return OpSample(OP_NAMES[method], function, inputs, reference, kwargs=kwargs, sizes=(1,), label=label, **options)


def exact_rows(method: str, function: Any, grad: Any, shape: Any, size: Any, corners: bool, half: bool) -> Any:
    def backward(d_resized: Any, size: Any) -> Any:
        y = axis_matrix(method, size[0], d_resized.shape[1], corners, half)
        x = axis_matrix(method, size[1], d_resized.shape[2], corners, half)
        return np.einsum("yh,nyxc,xw->nhwc", y, d_resized, x)

    def build(d_resized: Any, size: Any) -> Any:
        dtype = {} if method == "nearest" else {"T": d_resized.dtype}
        return add_op(grad, d_resized, size, align_corners=corners, half_pixel_centers=half, **dtype)

    wide = {} if method == "nearest" else {"kwargs": {"dtype": dtypes.float64}}
    d_resized = grid(shape[0], *size, shape[3], seed=1)
    return [
        resize_row(method, function, shape, size, corners, half, **wide),
        OpSample(f"{OP_NAMES[method]}Grad", build, [d_resized, np.array(shape[1:3], np.int32)], backward, sizes=(1,)),
    ]


# -- colours -------------------------------------------------------------------------------------------


def by_color(function: Any) -> Any:
    """A function of three numbers, for every colour of an image."""

    def apply(colors: Any, *rest: Any) -> Any:
        flat = np.asarray(colors, np.float64).reshape(-1, 3)
        found = [function(*color, *(float(value) for value in rest)) for color in flat]
        return np.array(found, np.float64).reshape(np.shape(colors))

    return apply


def turned(r: float, g: float, b: float, delta: float) -> Any:
    h, s, v = colorsys.rgb_to_hsv(r, g, b)
    return colorsys.hsv_to_rgb((h + delta) % 1.0, s, v)


def saturated(r: float, g: float, b: float, factor: float) -> Any:
    h, s, v = colorsys.rgb_to_hsv(r, g, b)
    return colorsys.hsv_to_rgb(h, min(s * factor, 1.0), v)


def color_rows() -> list[OpSample]:
    colors = grid(4, 5, 3, low=0.02, high=0.98)
    gray = np.repeat(grid(2, 1, low=0, high=1), 3, axis=1)
    rows = []
    for images in (colors, gray, np.zeros((0, 3)), np.zeros((2, 3))):
        # The hue of a colour hardly differs from that of its neighbours: halves cannot tell them apart.
        options: Any = {"dtypes": WIDE, "tolerance": 8}
        rows += [
            OpSample(
                "RGBToHSV",
                image_color_ops.rgb_to_hsv,
                [images],
                by_color(colorsys.rgb_to_hsv),
                differentiable=None if images is colors else [],  # grey has a hue on either side
                **options,
            ),
            OpSample("HSVToRGB", image_color_ops.hsv_to_rgb, [images], by_color(colorsys.hsv_to_rgb), **options),
        ]
        images = images.reshape(1, -1, 3) if images.ndim < 3 else images
        rows += [
            OpSample("AdjustHue", image_color_ops.adjust_hue, [images, np.float32(0.25)], by_color(turned), **options),
            OpSample("AdjustHue", image_color_ops.adjust_hue, [images, np.float32(-0.75)], by_color(turned), **options),
            OpSample(
                "AdjustSaturation",
                image_color_ops.adjust_saturation,
                [images, np.float32(1.5)],
                by_color(saturated),
                **options,
            ),
        ]
    halves = {"dtypes": (dtypes.float16, dtypes.bfloat16), "tolerance": 20}
    rows.append(
        OpSample(
            "HSVToRGB", image_color_ops.hsv_to_rgb, [colors], by_color(colorsys.hsv_to_rgb), label="halves", **halves
        )
    )
    return rows


# -- boxes ---------------------------------------------------------------------------------------------

BOXES = np.array([[0.1, 0.21, 0.83, 0.91], [0.9, 0.15, 0.3, 0.77], [-0.35, 0.22, 0.61, 1.43]])
BOX_IMAGES = np.array([1, 0, 1], np.int32)


def crops(images: Any, boxes: Any, which: Any, size: Any, nearest: bool = False, outside: float = 0.0) -> Any:
    height, width = images.shape[1] - 1, images.shape[2] - 1
    out = np.full((len(boxes), *size, images.shape[3]), outside)
    for n, (top, left, bottom, right) in enumerate(boxes):
        for i in range(size[0]):
            for j in range(size[1]):
                y = (top + (bottom - top) * (i / (size[0] - 1) if size[0] > 1 else 0.5)) * height
                x = (left + (right - left) * (j / (size[1] - 1) if size[1] > 1 else 0.5)) * width
                if 0 <= y <= height and 0 <= x <= width:
                    out[n, i, j] = pixel(images[which[n]], y, x, nearest)
    return out


def pixel(image: Any, y: float, x: float, nearest: bool) -> Any:
    if nearest:
        return image[math.floor(y + 0.5), math.floor(x + 0.5)]
    top, left = math.floor(y), math.floor(x)
    bottom, right = math.ceil(y), math.ceil(x)
    upper = image[top, left] * (1 - (x - left)) + image[top, right] * (x - left)
    lower = image[bottom, left] * (1 - (x - left)) + image[bottom, right] * (x - left)
    return upper * (1 - (y - top)) + lower * (y - top)


def crop_rows() -> list[OpSample]:
    images, size = grid(2, 5, 6, 2), np.array([3, 4], np.int32)
    d_crops = grid(3, 3, 4, 2, seed=1)
    options: Any = {"dtypes": WIDE, "twice": False, "tolerance": 10, "sizes": (3,)}

    def d_images(d_crops: Any, boxes: Any, which: Any, sizes: Any) -> Any:
        basis = np.eye(int(np.prod(sizes))).reshape(-1, *sizes)
        return np.array([np.sum(crops(one, boxes, which, (3, 4)) * d_crops) for one in basis]).reshape(sizes)

    def d_boxes(d_crops: Any, images: Any, boxes: Any, which: Any) -> Any:
        found = np.zeros(boxes.shape)
        for place in np.ndindex(boxes.shape):
            step = np.zeros(boxes.shape)
            step[place] = 1e-6
            up, down = (crops(images, boxes + sign * step, which, (3, 4)) for sign in (1, -1))
            found[place] = np.sum((up - down) * d_crops) / 2e-6
        return found

    def build_d_images(d_crops: Any, boxes: Any, which: Any, sizes: Any) -> Any:
        definition = crop_resize_ops.CROP_AND_RESIZE_GRAD_IMAGE
        return add_op(definition, d_crops, boxes, which, sizes, T=d_crops.dtype, method="bilinear")

    def build_d_boxes(*inputs: Any) -> Any:
        return add_op(crop_resize_ops.CROP_AND_RESIZE_GRAD_BOXES, *inputs, method="bilinear")

    return [
        OpSample("CropAndResize", crop_resize_ops.crop_and_resize, [images, BOXES, BOX_IMAGES, size], crops, **options),
        OpSample(
            "CropAndResize",
            lambda *inputs: crop_resize_ops.crop_and_resize(*inputs, method="nearest", extrapolation_value=-2),
            [images, BOXES, BOX_IMAGES, np.array([1, 5], np.int32)],
            lambda *inputs: crops(*inputs, nearest=True, outside=-2.0),
            differentiable=(0,),
            label="nearest",
            **options,
        ),
        OpSample(
            "CropAndResizeGradImage",
            build_d_images,
            [d_crops, BOXES, BOX_IMAGES, np.array(images.shape, np.int32)],
            d_images,
            **options,
        ),
        OpSample(
            "CropAndResizeGradBoxes",
            build_d_boxes,
            [d_crops, images, BOXES, BOX_IMAGES],
            d_boxes,
            dtypes=WIDE,
            tolerance=1e4,
        ),
    ]


def drawn(images: Any, boxes: Any, colors: Any) -> Any:
    images = images.copy()
    for image, of_image in zip(images, boxes, strict=True):
        for index, box in enumerate(of_image):
            scale = np.array([image.shape[0] - 1, image.shape[1] - 1] * 2, np.float32)
            top, left, bottom, right = (int(value) for value in box * scale)
            for y in range(max(top, 0), min(bottom, image.shape[0] - 1) + 1):
                for x in range(max(left, 0), min(right, image.shape[1] - 1) + 1):
                    if y in (top, bottom) or x in (left, right):
                        image[y, x] = colors[index % len(colors)]
    return images


def overlap(a: Any, b: Any) -> float:
    (t, le, b_, r), (t2, l2, b2, r2) = (
        (min(x[0], x[2]), min(x[1], x[3]), max(x[0], x[2]), max(x[1], x[3])) for x in (a, b)
    )
    shared = max(min(b_, b2) - max(t, t2), 0) * max(min(r, r2) - max(le, l2), 0)
    return shared / ((b_ - t) * (r - le) + (b2 - t2) * (r2 - l2) - shared)


def suppressed(boxes: Any, scores: Any, most: Any, limit: Any, least: Any, sigma: Any) -> Any:
    left = {i: float(score) for i, score in enumerate(scores) if score > least}
    chosen = []
    while left and len(chosen) < most:
        best = max(left, key=lambda i: (left[i], -i))
        chosen.append((best, left.pop(best)))
        for i in list(left):
            shared = overlap(boxes[best], boxes[i])
            if sigma > 0:
                left[i] *= math.exp(-shared * shared / (2 * sigma))
            if (sigma == 0 and shared > limit) or left[i] <= least:
                del left[i]
    return np.array([i for i, _ in chosen], np.int32), np.array([score for _, score in chosen], np.float32)


def suppressed_by_overlaps(overlaps: Any, scores: Any, most: Any, limit: Any, least: Any) -> Any:
    chosen: list[int] = []
    for i in sorted(range(len(scores)), key=lambda i: (-scores[i], i)):
        if len(chosen) < most and scores[i] > least and all(overlaps[i, j] <= limit for j in chosen):
            chosen.append(i)
    return np.array(chosen, np.int32)


def matched(distances, valid, most):
    """The pairs of least distance, found one after the other."""
    left = distances.copy()
    left[len(left) if valid < 0 else valid :] = np.inf
    of_rows, of_columns = np.full(len(left), -1, np.int32), np.full(left.shape[1], -1, np.int32)
    while np.isfinite(left.min()) and (most <= 0 or np.sum(of_rows >= 0) < most):
        row, column = np.unravel_index(left.argmin(), left.shape)
        of_rows[row], of_columns[column] = column, row
        left[row], left[:, column] = np.inf, np.inf
    return [of_rows, of_columns]


def box_rows() -> list[OpSample]:
    random = np.random.default_rng(0)
    boxes = random.uniform(0, 1, (30, 4)).astype(np.float32)
    scores = random.permutation(30).astype(np.float32) / 30
    images = random.uniform(0, 1, (2, 9, 12, 3)).astype(np.float32)
    lines = random.uniform(-0.3, 1.3, (2, 4, 4)).astype(np.float32)
    colors = random.uniform(0, 1, (3, 3)).astype(np.float32)
    overlaps = random.uniform(0, 1, (30, 30)).astype(np.float32)
    some: Any = {"data_dependent": True}
    rows = [
        OpSample(
            "DrawBoundingBoxesV2",
            lambda images, boxes, colors: image_box_ops.draw_bounding_boxes(images, boxes, colors=colors),
            [images, lines, colors],
            drawn,
        )
    ]
    for most, limit, least, sigma in ((30, 0.3, -np.inf, 0), (5, 0.5, 0.2, 0), (30, 0.5, 0.3, 0.4), (0, 0.5, 0, 0)):
        numbers = [np.int32(most), np.float32(limit), np.float32(least), np.float32(sigma)]
        rows.append(
            OpSample(
                "NonMaxSuppressionV5",
                image_box_ops.non_max_suppression_with_scores,
                [boxes, scores, *numbers],
                suppressed,
                **some,
            )
        )
    near = random.permutation(20).astype(np.float32).reshape(4, 5)
    for valid, most in ((-1, -1), (3, -1), (-1, 2), (0, 0)):
        rows.append(
            OpSample(
                "BipartiteMatch",
                lambda distances, valid, most=most: list(matching_ops.bipartite_match(distances, valid, most)),
                [near, np.float32(valid)],
                lambda distances, valid, most=most: matched(distances, int(valid), most),
            )
        )
    parts = np.array([[1, 0, 2, 2], [1, 1, 0, 2], [0, 1, 0, 1]])
    numbered = np.array([[1, 0, 2, 2], [1, 1, 0, 2], [0, 1, 0, 3]], np.int32)
    found: Any = {"modes": ("known",)}
    rows.append(
        OpSample("ImageConnectedComponents", warp_ops.connected_components, [parts], lambda _: numbered, **found)
    )
    rows.append(
        OpSample(
            "NonMaxSuppressionWithOverlaps",
            image_box_ops.non_max_suppression_overlaps,
            [overlaps, scores, np.int32(12), np.float32(0.8), np.float32(0.1)],
            suppressed_by_overlaps,
            **some,
        )
    )
    return rows


# -- patches -------------------------------------------------------------------------------------------


def patches(images: Any, ksizes: Any, strides: Any, rates: Any, padding: str) -> Any:
    spans = [(k - 1) * r + 1 for k, r in zip(ksizes, rates, strict=True)]
    if padding == "SAME":
        counts = [-(-size // s) for size, s in zip(images.shape[1:3], strides, strict=True)]
        total = [
            max((n - 1) * s + span - size, 0)
            for n, s, span, size in zip(counts, strides, spans, images.shape[1:3], strict=True)
        ]
        images = np.pad(images, [(0, 0), *((t // 2, t - t // 2) for t in total), (0, 0)])
    starts = [range(0, size - span + 1, s) for size, span, s in zip(images.shape[1:3], spans, strides, strict=True)]
    out = [
        [
            images[:, y : y + spans[0] : rates[0], x : x + spans[1] : rates[1]].reshape(len(images), -1)
            for x in starts[1]
        ]
        for y in starts[0]
    ]
    return np.transpose(np.array(out), (2, 0, 1, 3))


def patch_rows() -> list[OpSample]:
    rows = []
    for ksizes, strides, rates, padding in (
        ((3, 2), (1, 1), (1, 1), "SAME"),
        ((2, 2), (2, 3), (1, 1), "VALID"),
        ((2, 3), (1, 2), (2, 1), "SAME"),
    ):
        options = {"ksizes": ksizes, "strides": strides, "rates": rates, "padding": padding}
        images = grid(2, 5, 7, 2)
        d_patches = grid(*patches(images, **options).shape, seed=1)

        def forward(images: Any, options: Any = options) -> Any:
            return patches(images, **options)

        def backward(d_patches: Any, sizes: Any, options: Any = options) -> Any:
            basis = np.eye(int(np.prod(sizes))).reshape(-1, *sizes)
            return np.array([np.sum(patches(one, **options) * d_patches) for one in basis]).reshape(sizes)

        attrs = {**{k: [1, *v, 1] for k, v in options.items() if k != "padding"}, "padding": padding}
        rows += [
            OpSample("ExtractImagePatches", patch_ops.extract_image_patches, [images], forward, kwargs=attrs),
            OpSample(
                "ExtractImagePatchesGrad",
                lambda *inputs, **kwargs: add_op(patch_ops.EXTRACT_IMAGE_PATCHES_GRAD, *inputs, **kwargs),
                [d_patches, np.array(images.shape, np.int32)],
                backward,
                kwargs=attrs,
                sizes=(1,),
                dtypes=dtypes.FLOATS,
                tolerance=4,
            ),
        ]
    return rows


# -- files ---------------------------------------------------------------------------------------------


def smooth() -> Any:
    """A picture that survives JPEG."""
    rows, columns = np.mgrid[0:21, 0:30]
    return np.stack([rows * 5, columns * 4, rows + columns], axis=-1).astype(np.uint8)


def file_of(pixels: Any, form: str, **options: Any) -> Any:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, form, **options)
    return np.array(stream.getvalue(), object)


def as_pillow(mode: str | None = None) -> Any:
    """Decode as Pillow does."""
    from PIL import Image

    def reference(contents: Any, *rest: Any) -> Any:
        image = Image.open(io.BytesIO(contents.item()))
        pixels = np.asarray(image.convert(mode) if mode else image)
        return pixels if pixels.ndim == 3 else pixels[..., None]

    return reference


def file_rows() -> list[OpSample]:
    codec, pixels = image_codec_ops, smooth()
    jpeg, png = file_of(pixels, "JPEG", quality=95), file_of(pixels, "PNG")
    deep = (pixels[..., 0].astype(np.uint16) * 300 + 7).astype(np.uint16)
    window = np.array([3, 4, 10, 12], np.int32)
    some: Any = {"data_dependent": True}
    exact = {"dct_method": "INTEGER_ACCURATE"}  # the one method of Pillow
    gray = {"channels": 1, **exact}
    return [
        OpSample("DecodeJpeg", codec.decode_jpeg, [jpeg], as_pillow(), kwargs=exact, **some),
        OpSample("DecodeJpeg", codec.decode_jpeg, [jpeg], as_pillow("L"), kwargs=gray, label="gray", **some),
        OpSample(
            "DecodeAndCropJpeg",
            codec.decode_and_crop_jpeg,
            [jpeg, window],
            lambda c, _: as_pillow()(c)[3:13, 4:16],
            kwargs=exact,
            **some,
        ),
        OpSample("ExtractJpegShape", codec.extract_jpeg_shape, [jpeg], lambda _: np.array([21, 30, 3], np.int32)),
        OpSample("IsJpeg", codec.is_jpeg, [jpeg], lambda _: np.array(True)),
        OpSample("IsJpeg", codec.is_jpeg, [png], lambda _: np.array(False)),
        OpSample("DecodePng", codec.decode_png, [png], lambda _: pixels, **some),
        OpSample("DecodePng", codec.decode_png, [png], as_pillow("RGBA"), kwargs={"channels": 4}, label="4", **some),
        OpSample(
            "DecodePng",
            codec.decode_png,
            [file_of(deep, "PNG")],
            lambda _: deep[..., None],
            kwargs={"dtype": dtypes.uint16},
            label="16",
            **some,
        ),
        OpSample(
            "DecodePng",
            codec.decode_png,
            [file_of(deep, "PNG")],
            lambda _: (deep >> 8)[..., None],
            label="16 to 8",
            **some,
        ),
        OpSample("DecodeBmp", codec.decode_bmp, [file_of(pixels, "BMP")], lambda _: pixels, **some),
        OpSample(
            "DecodeGif",
            codec.decode_gif,
            [file_of(pixels[..., 0], "GIF")],
            lambda _: np.repeat(pixels[None, ..., :1], 3, 3),
            **some,
        ),
        OpSample("DecodeImage", codec.decode_image, [png], lambda _: pixels, modes=("known",), **some),
        OpSample(
            "DecodeImage",
            codec.decode_image,
            [file_of(pixels[..., 0], "GIF")],
            lambda _: np.repeat(pixels[..., :1], 3, 2),
            kwargs={"expand_animations": False},
            label="first frame",
            **some,
        ),
        OpSample("EncodePng", codec.encode_png, [pixels], lambda p: file_of(p, "PNG")),
        OpSample(
            "EncodeJpeg",
            codec.encode_jpeg,
            [pixels],
            lambda p: file_of(p, "JPEG", quality=95, subsampling=2, dpi=(300, 300)),
        ),
    ]


SAMPLES = [*resize_rows(), *color_rows(), *crop_rows(), *box_rows(), *patch_rows(), *file_rows()]

NOISE = np.random.default_rng(0).integers(0, 256, (30, 40, 3)).astype(np.uint8)
BROKEN = np.array(smooth().tobytes(), object)
BOX = [[[0.1, 0.1, 0.9, 0.9]]]
TWO_CHANNELS = np.zeros((1, 5, 6, 2), np.float32)
ERRORS = [
    OpError("ResizeBilinear", lambda x: resize_ops.resize_bilinear(x, [0, 3]), [np.zeros((1, 2, 2, 1))], "positive"),
    OpError("ResizeBilinear", lambda x: resize_ops.resize_bilinear(x, [2, 3]), [np.zeros((2, 2, 1))], "incompatible"),
    OpError("ResizeArea", lambda x: resize_ops.resize_area(x, [2, 3]), [np.zeros((2, 2, 1))], "rank 4", at_run=True),
    OpError("RGBToHSV", image_color_ops.rgb_to_hsv, [np.zeros((2, 4))], "3 channels"),
    OpError("DecodeJpeg", image_codec_ops.decode_jpeg, [BROKEN], "no JPEG or PNG", at_run=True),
    OpError("DecodePng", image_codec_ops.decode_png, [BROKEN], "no JPEG or PNG", at_run=True),
    OpError(
        "DecodePng",
        image_codec_ops.decode_png,
        [np.array(file_of(NOISE, "PNG").item()[:-200], object)],
        "damaged",
        at_run=True,
    ),
    OpError(
        "DecodeJpeg",
        image_codec_ops.decode_jpeg,
        [np.array(file_of(NOISE, "JPEG").item()[:-200], object)],
        "damaged",
        at_run=True,
    ),
    OpError("DecodeImage", image_codec_ops.decode_image, [BROKEN], "no JPEG or PNG", at_run=True),
    OpError("DrawBoundingBoxesV2", lambda x: image_box_ops.draw_bounding_boxes(x, BOX), [TWO_CHANNELS], "2 channels"),
    OpError(
        "CombinedNonMaxSuppression",
        lambda x: image_box_ops.combined_non_max_suppression(x, x[..., 0], 0, 1),
        [np.zeros((1, 2, 1, 4), np.float32)],
        "sizes 0 and 1",
        at_run=True,
    ),
]
TESTED_ELSEWHERE = {
    "CombinedNonMaxSuppression": "several results of one choice: tests/ops/image/test_image_ops.py",
    "SampleDistortedBoundingBoxV2": "random: tests/ops/image/test_image_ops.py",
    "ExtractGlimpse": "partly random: tests/ops/image/test_image_ops.py",
}
