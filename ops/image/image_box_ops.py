"""Boxes in images: drawing them, choosing among them, and glimpses.

Boxes are ``[top, left, bottom, right]``, mostly as fractions of the image's height and width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import none_is_default
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, not_differentiable, on_cpu, register
from tfray.framework.random_seed import get_seed
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.join_ops import int32_tensor
from tfray.ops.arrays.layout_ops import pad
from tfray.ops.arrays.shape_ops import host_int, host_ints, index_tensor, known_entries
from tfray.ops.arrays.shape_ops import size as size_of
from tfray.ops.kernels.random_streams import stream_of

# -- drawing -------------------------------------------------------------------------------------------

_COLORS: Final = (
    (1, 1, 0, 1),
    (0, 0, 1, 1),
    (1, 0, 0, 1),
    (0, 1, 0, 1),
    (0.5, 0, 0.5, 1),
    (0.5, 0.5, 0, 1),
    (0.5, 0, 0, 1),
    (0, 0, 0.5, 1),
    (0, 1, 1, 1),
    (1, 0, 1, 1),
)
"""Yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia."""


def draw_bounding_boxes(
    images: TensorLike, boxes: TensorLike, name: str | None = None, colors: TensorLike | None = None
) -> Tensor:
    """Draw boxes, lines of one pixel, into images.

    Args:
        images: ``[batch, height, width, channels]``, float32 or float16, 1, 3 or 4 channels.
        boxes: ``[batch, boxes, 4]``, float32, as fractions of height and width.
        name: Name of the operation.
        colors: ``[colors, channels]``, float32: taken in turn. By default ten different ones.

    Returns:
        The images with the boxes, of the same shape and dtype. Parts of boxes beyond an image are left out.

    Examples:
        >>> images, boxes = tf.zeros([1, 4, 4, 1]), [[[0.0, 0.0, 0.5, 0.5]]]
        >>> session.run(tf.image.draw_bounding_boxes(images, boxes))[0, :, :, 0]
        array([[1., 1., 0., 0.],
               [1., 1., 0., 0.],
               [0., 0., 0., 0.],
               [0., 0., 0., 0.]], dtype=float32)
    """
    colors = np.zeros((0, 0), np.float32) if colors is None else colors
    return add_op(DRAW_BOUNDING_BOXES, images, boxes, colors, name=name)


def _draw_bounding_boxes_kernel(ctx: KernelContext, images: Array, boxes: Array, colors: Array) -> Array:
    if images.ndim != 4 or boxes.shape != (len(images), boxes.shape[1] if boxes.ndim == 3 else 0, 4):
        raise InvalidArgumentError(
            f"{ctx.op_name}: images {images.shape} and boxes {boxes.shape}, expected [batch, height, width, channels] "
            "and [batch, boxes, 4]"
        )
    palette = _palette(colors, images.shape[3])
    drawn = images.copy()
    corners = (boxes * np.array([images.shape[1] - 1, images.shape[2] - 1] * 2, boxes.dtype)).astype(np.int64)
    for image, of_image in zip(drawn, corners.tolist(), strict=True):
        for index, corner in enumerate(of_image):
            _draw(image, corner, palette[index % len(palette)])
    return drawn


def _palette(colors: Array, channels: int) -> Array:
    if colors.size:
        return colors[:, :channels]
    palette = np.array(_COLORS, np.float32)
    if channels == 1:
        palette[:, 0] = 1
    return palette[:, :channels]


def _draw(image: Array, corner: list[int], color: Array) -> None:
    """Draw one box in place."""
    height, width = image.shape[:2]
    top, left, bottom, right = corner
    if top > bottom or left > right or top >= height or bottom < 0 or left >= width or right < 0:
        return
    rows, columns = slice(max(top, 0), min(bottom, height - 1) + 1), slice(max(left, 0), min(right, width - 1) + 1)
    for row in (top, bottom):
        if 0 <= row < height:
            image[row, columns] = color
    for column in (left, right):
        if 0 <= column < width:
            image[rows, column] = color


def _drawn_shape(op: Operation) -> list[TensorShape]:
    images, boxes = op.inputs[0].shape.with_rank(4), op.inputs[1].shape.merge_with([None, None, 4])
    op.inputs[2].shape.assert_has_rank(2)
    if images.sizes[3] not in (None, 1, 3, 4):
        raise ValueError(f"the images have {images.sizes[3]} channels, expected 1, 3 or 4")
    return [images.merge_with([boxes.sizes[0], None, None, None])]


DRAW_BOUNDING_BOXES = register(
    OpDef(
        name="DrawBoundingBoxesV2",
        inputs=("images: T", "boxes: float32", "colors: float32"),
        outputs=("output: T",),
        types={"T": (dtypes.float32, dtypes.float16)},
        shape=_drawn_shape,
        kernels=on_cpu(_draw_bounding_boxes_kernel),
        gradient=not_differentiable,
    )
)


# -- choosing ------------------------------------------------------------------------------------------


def non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = -math.inf,
    name: str | None = None,
) -> Tensor:
    """Choose boxes with the greatest scores among those that overlap.

    Args:
        boxes: ``[boxes, 4]``, float32: two opposite corners each, in any unit.
        scores: ``[boxes]``, float32.
        max_output_size: How many to choose at most, an int32 scalar.
        iou_threshold: Boxes are dropped whose overlap (intersection over union) with a chosen one is greater than this
            scalar.
        score_threshold: Boxes are dropped whose score is not greater than this scalar.
        name: Name of the operation.

    Returns:
        Indices of the chosen boxes, int32 of shape ``[chosen]``, the greatest score first.

    Examples:
        >>> boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.9], [2.0, 2.0, 3.0, 3.0]]
        >>> session.run(tf.image.non_max_suppression(boxes, [0.8, 0.9, 0.7], max_output_size=3))
        array([1, 2], dtype=int32)
    """
    return non_max_suppression_with_scores(
        boxes, scores, max_output_size, iou_threshold, score_threshold, name=name or "non_max_suppression"
    )[0]


def non_max_suppression_padded(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = -math.inf,
    pad_to_max_output_size: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """As `non_max_suppression`, with zeros behind the indices.

    Args:
        boxes: ``[boxes, 4]``; this and the following are as for `non_max_suppression`.
        scores: ``[boxes]``.
        max_output_size: An int32 scalar.
        iou_threshold: A scalar.
        score_threshold: A scalar.
        pad_to_max_output_size: Give exactly `max_output_size` indices.
        name: Name scope of the operations.

    Returns:
        The indices, int32 of shape ``[chosen]`` or ``[max_output_size]``, and how many of them are valid, an int32
        scalar.
    """
    with get_default_graph().name_scope(name or "non_max_suppression_padded"):
        chosen = non_max_suppression(boxes, scores, max_output_size, iou_threshold, score_threshold)
        count = size_of(chosen)
        if not pad_to_max_output_size:
            return chosen, count
        most = int32_tensor(max_output_size)
        padded = pad(chosen, [[0, most - count]])
        padded.set_shape([(known_entries(most) or [None])[0]])
        return padded, count


def non_max_suppression_with_scores(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = -math.inf,
    soft_nms_sigma: TensorLike = 0.0,
    name: str | None = None,
) -> list[Tensor]:
    """As `non_max_suppression`; overlapping boxes may lose a part of their score instead of being dropped.

    Args:
        boxes: ``[boxes, 4]``; this and the following are as for `non_max_suppression`.
        scores: ``[boxes]``.
        max_output_size: An int32 scalar.
        iou_threshold: A scalar.
        score_threshold: A scalar.
        soft_nms_sigma: A scalar. Above 0, scores are multiplied by ``exp(-overlap ** 2 / (2 * sigma))`` for each chosen
            box, and `iou_threshold` drops none.
        name: Name of the operation.

    Returns:
        Indices of the chosen boxes, and the scores that they were chosen by, both of shape ``[chosen]``.

    References:
        Bodla et al., Soft-NMS: Improving Object Detection With One Line of Code, ICCV 2017.
    """
    return add_op(
        NON_MAX_SUPPRESSION,
        boxes,
        scores,
        int32_tensor(max_output_size),
        convert_to_tensor(iou_threshold, dtypes.float32),
        convert_to_tensor(score_threshold, dtypes.float32),
        convert_to_tensor(soft_nms_sigma, dtypes.float32),
        name=name,
    )


def _non_max_suppression_kernel(
    ctx: KernelContext,
    boxes: Array,
    scores: Array,
    max_output_size: Array,
    iou_threshold: Array,
    score_threshold: Array,
    sigma: Array,
) -> tuple[Array, Array]:
    if boxes.ndim != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise InvalidArgumentError(
            f"{ctx.op_name}: boxes {boxes.shape} and scores {scores.shape}, expected [n, 4] and [n]"
        )
    if host_int(ctx, max_output_size) < 0:
        raise InvalidArgumentError(f"{ctx.op_name}: max_output_size is {host_int(ctx, max_output_size)}, below 0")
    if not 0 <= float(iou_threshold) <= 1:
        raise InvalidArgumentError(f"{ctx.op_name}: iou_threshold is {float(iou_threshold)}, expected one in [0, 1]")
    weights = _weights(boxes, float(iou_threshold), float(sigma))
    return _chosen(scores, weights, host_int(ctx, max_output_size), float(score_threshold))


def _weights(boxes: Array, iou_threshold: float, sigma: float) -> Callable[[int], Array]:
    """What each box's score is multiplied by when the box of a given index is chosen; NaN to drop it."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    areas = (high - low).prod(axis=1)

    def weights(index: int) -> Array:
        sides = np.minimum(high, high[index]) - np.maximum(low, low[index])
        shared = np.maximum(sides, 0).prod(axis=1)
        union = areas + areas[index] - shared
        overlap = np.where((areas > 0) & (areas[index] > 0), shared / np.where(union > 0, union, 1), 0)
        if sigma > 0:
            return np.exp(-0.5 / sigma * overlap * overlap)
        return np.where(overlap <= iou_threshold, 1, np.nan)

    return weights


def _chosen(scores: Array, weights: Callable[[int], Array], most: int, threshold: float) -> tuple[Array, Array]:
    """Indices and scores, chosen greedily; ``weights(index)`` are factors on all scores, NaN to drop a box."""
    left = np.where(scores > threshold, scores, -np.inf).astype(np.float32)
    is_left = scores > threshold
    chosen: list[int] = []
    by: list[float] = []
    while len(chosen) < most and is_left.any():
        index = int(np.where(is_left, left, -np.inf).argmax()) if left.max(initial=-np.inf) > -np.inf else -1
        if index < 0:
            index = int(is_left.argmax())
        chosen.append(index)
        by.append(float(left[index]))
        is_left[index] = False
        factors = weights(index)
        is_left &= ~np.isnan(factors)
        left = np.where(is_left, left * factors, -np.inf).astype(np.float32)
        is_left &= left > threshold
    return np.array(chosen, np.int32), np.array(by, np.float32)


def _chosen_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.merge_with([op.inputs[1].shape.with_rank(1).sizes[0], 4])
    for scalar in op.inputs[2:]:
        scalar.shape.assert_has_rank(0)
    return [TensorShape([None])] * 2


NON_MAX_SUPPRESSION = register(
    OpDef(
        name="NonMaxSuppressionV5",
        inputs=(
            "boxes: float32",
            "scores: float32",
            "max_output_size: int32",
            "iou_threshold: float32",
            "score_threshold: float32",
            "soft_nms_sigma: float32",
        ),
        outputs=("selected_indices: int32", "selected_scores: float32"),
        shape=_chosen_shape,
        kernels=on_cpu(_non_max_suppression_kernel),
    )
)


class CombinedNonMaxSuppression(NamedTuple):
    """What `combined_non_max_suppression` returns."""

    nmsed_boxes: Tensor
    nmsed_scores: Tensor
    nmsed_classes: Tensor
    valid_detections: Tensor


def combined_non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size_per_class: TensorLike,
    max_total_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = -math.inf,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> CombinedNonMaxSuppression:
    """Choose boxes as `non_max_suppression` does, for each class of each image, and the best of all classes.

    Args:
        boxes: ``[batch, boxes, q, 4]``, float32: `q` is 1 where all classes have the same boxes, else their number.
        scores: ``[batch, boxes, classes]``, float32.
        max_output_size_per_class: How many to choose at most for each class, an int32 scalar.
        max_total_size: How many to choose at most of all classes, an int32 scalar.
        iou_threshold: A scalar, as for `non_max_suppression`.
        score_threshold: A scalar, as for `non_max_suppression`.
        pad_per_class: Whether results are no larger than ``max_output_size_per_class * classes``.
        clip_boxes: Whether the chosen boxes are cut to the range from 0 to 1.
        name: Name of the operation.

    Returns:
        For each image, by descending score and with zeros behind them: boxes ``[batch, n, 4]``, scores and classes
        ``[batch, n]``, all float32; and how many are valid, int32 ``[batch]``.
    """
    outputs = add_op(
        COMBINED_NON_MAX_SUPPRESSION,
        boxes,
        scores,
        int32_tensor(max_output_size_per_class),
        int32_tensor(max_total_size),
        convert_to_tensor(iou_threshold, dtypes.float32),
        convert_to_tensor(score_threshold, dtypes.float32),
        name=name or "combined_non_max_suppression",
        pad_per_class=bool(pad_per_class),
        clip_boxes=bool(clip_boxes),
    )
    return CombinedNonMaxSuppression(*outputs)


def _combined_kernel(
    ctx: KernelContext, boxes: Array, scores: Array, per_class: Array, total: Array, iou: Array, threshold: Array
) -> list[Array]:
    if boxes.ndim != 4 or scores.ndim != 3 or boxes.shape[2] not in (1, scores.shape[2]):
        raise InvalidArgumentError(
            f"{ctx.op_name}: boxes {boxes.shape} and scores {scores.shape}, expected [batch, n, q, 4] and [batch, n, "
            "classes], where q is 1 or the number of classes"
        )
    most, size = host_int(ctx, per_class), host_int(ctx, total)
    if most <= 0 or size <= 0 or not 0 <= float(iou) <= 1:
        raise InvalidArgumentError(
            f"{ctx.op_name}: sizes {most} and {size}, expected some; iou_threshold {float(iou)}, expected one in [0, 1]"
        )
    batch, _, classes = scores.shape
    size = min(size, most * classes) if ctx.attr("pad_per_class") else size
    results = [np.zeros((batch, size, 4), np.float32), *(np.zeros((batch, size), np.float32) for _ in range(2))]
    valid = np.zeros(batch, np.int32)
    for image in range(batch):
        found: list[tuple[float, int, Array]] = []
        for kind in range(classes):
            own = boxes[image, :, min(kind, boxes.shape[2] - 1)]
            indices, by = _chosen(scores[image, :, kind], _weights(own, float(iou), 0.0), most, float(threshold))
            found += [(float(score), kind, own[index]) for index, score in zip(indices, by, strict=True)]
        found = sorted(found, key=lambda item: -item[0])[:size]
        valid[image] = len(found)
        for place, (score, kind, box) in enumerate(found):
            results[0][image, place] = np.clip(box, 0, 1) if ctx.attr("clip_boxes") else box
            results[1][image, place], results[2][image, place] = score, kind
    return [*results, valid]


def _combined_shape(op: Operation) -> list[TensorShape]:
    boxes, scores = op.inputs[0].shape.with_rank(4), op.inputs[1].shape.with_rank(3)
    boxes.assert_is_compatible_with([*scores.sizes[:2], None, 4])
    for scalar in op.inputs[2:]:
        scalar.shape.assert_has_rank(0)
    (most,), (size,) = (known_entries(tensor) or [None] for tensor in op.inputs[2:4])
    if op.attrs["pad_per_class"] and size is not None:
        size = None if most is None or scores.sizes[2] is None else min(size, most * scores.sizes[2])
    batch = scores.sizes[0]
    return [TensorShape([batch, size, 4]), TensorShape([batch, size]), TensorShape([batch, size]), TensorShape([batch])]


COMBINED_NON_MAX_SUPPRESSION = register(
    OpDef(
        name="CombinedNonMaxSuppression",
        inputs=(
            "boxes: float32",
            "scores: float32",
            "max_output_size_per_class: int32",
            "max_total_size: int32",
            "iou_threshold: float32",
            "score_threshold: float32",
        ),
        outputs=(
            "nmsed_boxes: float32",
            "nmsed_scores: float32",
            "nmsed_classes: float32",
            "valid_detections: int32",
        ),
        attrs=("pad_per_class", "clip_boxes"),
        shape=_combined_shape,
        kernels=on_cpu(_combined_kernel),
        gradient=not_differentiable,
    )
)


def non_max_suppression_overlaps(
    overlaps: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    overlap_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = -math.inf,
    name: str | None = None,
) -> Tensor:
    """As `non_max_suppression`, by given overlaps.

    Args:
        overlaps: ``[boxes, boxes]``, float32.
        scores: ``[boxes]``, float32.
        max_output_size: How many to choose at most, an int32 scalar.
        overlap_threshold: Boxes are dropped whose overlap with a chosen one is greater than this scalar.
        score_threshold: Boxes are dropped whose score is not greater than this scalar.
        name: Name of the operation.

    Returns:
        Indices of the chosen boxes, int32 of shape ``[chosen]``, the greatest score first.
    """
    return add_op(
        NON_MAX_SUPPRESSION_OVERLAPS,
        overlaps,
        scores,
        int32_tensor(max_output_size),
        convert_to_tensor(overlap_threshold, dtypes.float32),
        convert_to_tensor(score_threshold, dtypes.float32),
        name=name,
    )


def _overlaps_kernel(
    ctx: KernelContext, overlaps: Array, scores: Array, most: Array, threshold: Array, score_threshold: Array
) -> Array:
    if overlaps.shape != (scores.size, scores.size):
        raise InvalidArgumentError(
            f"{ctx.op_name}: overlaps {overlaps.shape} and scores {scores.shape}, expected [n, n] and [n]"
        )
    if host_int(ctx, most) < 0:
        raise InvalidArgumentError(f"{ctx.op_name}: max_output_size is {host_int(ctx, most)}, below 0")

    def weights(index: int) -> Array:
        return np.where(overlaps[:, index] <= threshold, 1, np.nan)

    return _chosen(scores, weights, host_int(ctx, most), float(score_threshold))[0]


def _overlaps_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.merge_with([op.inputs[1].shape.with_rank(1).sizes[0]] * 2)
    for scalar in op.inputs[2:]:
        scalar.shape.assert_has_rank(0)
    return [TensorShape([None])]


NON_MAX_SUPPRESSION_OVERLAPS = register(
    OpDef(
        name="NonMaxSuppressionWithOverlaps",
        inputs=(
            "overlaps: float32",
            "scores: float32",
            "max_output_size: int32",
            "overlap_threshold: float32",
            "score_threshold: float32",
        ),
        outputs=("selected_indices: int32",),
        shape=_overlaps_shape,
        kernels=on_cpu(_overlaps_kernel),
    )
)


# -- random parts --------------------------------------------------------------------------------------


class SampleDistortedBoundingBox(NamedTuple):
    """What `sample_distorted_bounding_box` returns."""

    begin: Tensor
    size: Tensor
    bboxes: Tensor


def sample_distorted_bounding_box(
    image_size: TensorLike,
    bounding_boxes: TensorLike,
    seed: int | None = None,
    seed2: int | None = None,
    min_object_covered: TensorLike = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> SampleDistortedBoundingBox:
    """Choose a random part of an image that shows enough of one of its objects.

    Args:
        image_size: Height, width and channels, an integer vector.
        bounding_boxes: ``[batch, boxes, 4]``, float32: the objects, as fractions of height and width.
        seed: Seed of the operation.
        seed2: Not used with `seed`; a seed of its own without.
        min_object_covered: Which part of an object must be seen, a scalar.
        aspect_ratio_range: Bounds of width / height, a vector of two, (0.75, 1.33) by default.
        area_range: Bounds of the part's share of the image, a vector of two, (0.05, 1) by default.
        max_attempts: After how many vain attempts to take the whole image, 100 by default.
        use_image_if_no_bounding_boxes: Without boxes, take the image for one; otherwise that is an error.
        name: Name of the operation.

    Returns:
        ``begin`` and ``size`` for `tf.slice`, integer vectors of three; and the part as a box, float32 ``[1, 1, 4]``.

    Examples:
        >>> image, objects = tf.ones([32, 32, 3]), [[[0.1, 0.1, 0.9, 0.9]]]
        >>> begin, size, box = tf.image.sample_distorted_bounding_box([32, 32, 3], objects)
        >>> session.run([tf.slice(image, begin, size), box])[1].shape
        (1, 1, 4)
    """
    graph_seed, op_seed = get_seed(seed if seed is not None else seed2)
    outputs = add_op(
        SAMPLE_DISTORTED_BOUNDING_BOX,
        index_tensor(image_size),
        bounding_boxes,
        convert_to_tensor(min_object_covered, dtypes.float32),
        name=name,
        seed=graph_seed or 0,
        seed2=op_seed or 0,
        aspect_ratio_range=_range("aspect_ratio_range", aspect_ratio_range or (0.75, 1.33), math.inf),
        area_range=_range("area_range", area_range or (0.05, 1.0), 1.0),
        max_attempts=int(max_attempts or 100),
        use_image_if_no_bounding_boxes=bool(use_image_if_no_bounding_boxes),
    )
    return SampleDistortedBoundingBox(*outputs)


def _range(what: str, bounds: Sequence[float], most: float) -> list[float]:
    low, high = (float(bound) for bound in bounds)
    if not 0 < low <= high <= most:
        raise InvalidArgumentError(
            f"sample_distorted_bounding_box: {what} is {bounds}, expected 0 < low <= high"
            + ("" if most == math.inf else f" <= {most:g}")
        )
    return [low, high]


def _sample_distorted_bounding_box_kernel(
    ctx: KernelContext, image_size: Array, boxes: Array, min_object_covered: Array
) -> tuple[Array, Array, Array]:
    height, width, _ = host_ints(ctx, image_size)
    boxes = boxes.reshape(-1, 4)
    if not boxes.size:
        if not ctx.attr("use_image_if_no_bounding_boxes"):
            raise InvalidArgumentError(
                f"{ctx.op_name}: there are no boxes; pass some, or use_image_if_no_bounding_boxes=True"
            )
        boxes = np.array([[0, 0, 1, 1]], np.float32)
    objects = boxes * np.array([height, width] * 2, boxes.dtype)
    needed = float(min_object_covered)
    part = stream_of(ctx).draw(lambda generator: _random_part(ctx, generator, height, width, objects, needed))
    top, left, bottom, right = part
    begin = np.array([top, left, 0], image_size.dtype)
    size = np.array([bottom - top, right - left, -1], image_size.dtype)
    box = np.array([[[top / height, left / width, bottom / height, right / width]]], np.float32)
    return begin, size, box


def _random_part(
    ctx: KernelContext, generator: np.random.Generator, height: int, width: int, objects: Array, needed: float
) -> tuple[int, int, int, int]:
    low, high = ctx.attr("area_range")
    for _ in range(ctx.attr("max_attempts")):
        ratio = generator.uniform(*ctx.attr("aspect_ratio_range"))
        tallest = min(math.sqrt(high * height * width / ratio), height, width / ratio)
        shortest = math.sqrt(low * height * width / ratio)
        if tallest < shortest:
            continue
        tall = generator.uniform(shortest, tallest)
        rows, columns = min(max(round(tall), 1), height), min(max(round(tall * ratio), 1), width)
        top, left = (int(generator.integers(0, free + 1)) for free in (height - rows, width - columns))
        part = top, left, top + rows, left + columns
        if low <= rows * columns / (height * width) <= high and _shows_enough(part, objects, needed):
            return part
    return 0, 0, height, width


def _shows_enough(part: tuple[int, int, int, int], objects: Array, needed: float) -> bool:
    """Whether a part shows at least the share `needed` of some object."""
    sides = np.minimum(objects[:, 2:], part[2:]) - np.maximum(objects[:, :2], part[:2])
    shown = np.maximum(sides, 0).prod(axis=1)
    areas = np.maximum(objects[:, 2:] - objects[:, :2], 0).prod(axis=1)
    return bool(((areas > 0) & (shown >= needed * areas)).any())


def _sampled_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.merge_with([3])
    op.inputs[1].shape.merge_with([None, None, 4])
    return [TensorShape([3]), TensorShape([3]), TensorShape([1, 1, 4])]


SAMPLE_DISTORTED_BOUNDING_BOX = register(
    OpDef(
        name="SampleDistortedBoundingBoxV2",
        inputs=("image_size: T", "bounding_boxes: float32", "min_object_covered: float32"),
        outputs=("begin: T", "size: T", "bboxes: float32"),
        attrs=(
            "seed",
            "seed2",
            "aspect_ratio_range",
            "area_range",
            "max_attempts",
            "use_image_if_no_bounding_boxes",
        ),
        types={"T": dtypes.INDICES},
        shape=_sampled_shape,
        kernels=on_cpu(_sample_distorted_bounding_box_kernel),
        gradient=not_differentiable,
        stateful=True,
    )
)


# -- glimpses ------------------------------------------------------------------------------------------


@none_is_default
def extract_glimpse(
    input: TensorLike,
    size: TensorLike,
    offsets: TensorLike,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    name: str | None = None,
    seed: int | None = None,
) -> Tensor:
    """Take a window out of each image. What lies beyond the image is noise.

    Args:
        input: ``[batch, height, width, channels]``, float32.
        size: Height and width of the windows, an int32 vector.
        offsets: ``[batch, 2]``, float32: row and column of the windows' centres.
        centered: Offsets count from the image's centre; otherwise from its upper left corner.
        normalized: Offsets count in halves of the image from -1 to 1 (from 0 to 1 if not `centered`); otherwise in
            pixels.
        uniform_noise: The noise is uniform over the range of the image; otherwise normal with its mean and variance.
        name: Name of the operation.
        seed: Seed of the operation.

    Returns:
        ``[batch, window height, window width, channels]``.
    """
    graph_seed, op_seed = get_seed(seed)
    return add_op(
        EXTRACT_GLIMPSE,
        input,
        int32_tensor(size),
        offsets,
        name=name,
        centered=bool(centered),
        normalized=bool(normalized),
        uniform_noise=bool(uniform_noise),
        seed=graph_seed or 0,
        seed2=op_seed or 0,
    )


def _extract_glimpse_kernel(ctx: KernelContext, images: Array, size: Array, offsets: Array) -> Array:
    height, width = host_ints(ctx, size)
    if images.ndim != 4 or offsets.shape != (len(images), 2) or min(height, width) < 0:
        raise InvalidArgumentError(
            f"{ctx.op_name}: images {images.shape}, offsets {offsets.shape} and windows of {height} x {width}, "
            "expected rank 4, [batch, 2] and sizes of at least 0"
        )
    glimpses = np.empty((len(images), height, width, images.shape[3]), images.dtype)
    sizes = np.array(images.shape[1:3], np.float32)
    centers = offsets * sizes if ctx.attr("normalized") else offsets
    if ctx.attr("centered"):
        centers = centers / 2 + sizes / 2
    corners = np.trunc(centers - np.array([height, width], np.float32) / 2).astype(np.int64)
    for image, glimpse, corner in zip(images, glimpses, corners.tolist(), strict=True):
        _glimpse(ctx, image, glimpse, corner)
    return glimpses


def _glimpse(ctx: KernelContext, image: Array, glimpse: Array, corner: list[int]) -> None:
    inside, source = [], []
    for start, count, whole in zip(corner, glimpse.shape[:2], image.shape[:2], strict=True):
        first, last = min(max(start, 0), whole), max(min(start + count, whole), 0)
        last = max(first, last)
        inside.append(slice(first - start, last - start))
        source.append(slice(first, last))
    if any(part.stop - part.start < count for part, count in zip(inside, glimpse.shape[:2], strict=True)):
        glimpse[...] = stream_of(ctx).draw(lambda generator: _noise(ctx, generator, image, glimpse.shape))
    if all(part.stop > part.start for part in source):
        glimpse[tuple(inside)] = image[tuple(source)]


def _noise(ctx: KernelContext, generator: np.random.Generator, image: Array, shape: tuple[int, ...]) -> Array:
    if ctx.attr("uniform_noise"):
        return generator.uniform(image.min(), image.max(), shape)
    return generator.normal(image.mean(), image.std(), shape)


def _glimpse_shape(op: Operation) -> list[TensorShape]:
    images, offsets = op.inputs[0].shape.with_rank(4), op.inputs[2].shape.merge_with([None, 2])
    batch = images.merge_with([offsets.sizes[0], None, None, None]).sizes[0]
    op.inputs[1].shape.merge_with([2])
    height, width = known_entries(op.inputs[1]) or (None, None)
    return [TensorShape([batch, height, width, images.sizes[3]])]


EXTRACT_GLIMPSE = register(
    OpDef(
        name="ExtractGlimpse",
        inputs=("input: float32", "size: int32", "offsets: float32"),
        outputs=("glimpse: float32",),
        attrs=("centered", "normalized", "uniform_noise", "seed", "seed2"),
        shape=_glimpse_shape,
        kernels=on_cpu(_extract_glimpse_kernel),
        gradient=not_differentiable,
        stateful=True,
    )
)
