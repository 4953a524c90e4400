#!/usr/bin/env python
"""Further cases of ``scripts/golden_graphs.py``: a graph for each family of operations, and models in training.

Run it with an interpreter that has TensorFlow 2.21; tfray itself is not needed:

    /path/to/python scripts/golden_families.py [NAME ...]

Without names it writes the cases of both scripts.
"""

from __future__ import annotations

import os
import sys
import zlib
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np
import tensorflow.compat.v1 as tf
from golden_graphs import FED, case, given, main, perceptron, weights
from tensorflow.python.ops import data_flow_ops
from tensorflow.python.ops import gen_data_flow_ops as gen
from tensorflow.python.ops import gen_lookup_ops as tables

raw = tf.raw_ops
linalg, signal, image = tf.linalg, tf.signal, tf.image


def sparse(indices: Any, values: Any, shape: Any) -> Any:
    """A sparse tensor."""
    return tf.SparseTensor(tf.constant(indices, tf.int64), tf.constant(values), tf.constant(shape, tf.int64))


def parts_of(value: Any) -> list[Any]:
    """The tensors of a sparse tensor."""
    return [value.indices, value.values, value.dense_shape]


# -- elementwise ---------------------------------------------------------------------------------------


@case()
def special_functions() -> list[Any]:
    x, y = given(3, 4, low=0.2, high=0.9), given(3, 4, name="y", low=1.2, high=3)
    found = [tf.acosh(y), tf.math.bessel_i0(x), tf.math.bessel_i0e(x), tf.math.bessel_i1(x), tf.math.bessel_i1e(x)]
    found += [
        tf.betainc(x, y, x),
        tf.igamma(y, x),
        tf.igammac(y, x),
        tf.zeta(y, x),
        tf.math.erfinv(x),
        tf.math.ndtri(x),
    ]
    found += [tf.polygamma(tf.floor(y), x), tf.math.xdivy(x, y), tf.math.xlog1py(x, y), tf.math.multiply_no_nan(x, y)]
    found += [tf.math.nextafter(x, y), tf.floormod(-y, x), tf.truncatemod(-y, x), tf.is_inf(x / 0.0), tf.lbeta(y)]
    found += [tf.math.cumulative_logsumexp(x, 1), tf.cross(x[:, :3], y[:, 1:])]
    return [*found, tf.math.reduce_euclidean_norm(x, 1), tf.math.erfcinv(x), tf.accumulate_n([x, y])]


@case()
def bits() -> list[Any]:
    x, y = given(3, 4, dtype=np.int32, low=0, high=99), given(3, 4, name="y", dtype=np.int32, low=0, high=5)
    found = [tf.bitwise.bitwise_and(x, y), tf.bitwise.bitwise_or(x, y), tf.bitwise.bitwise_xor(x, y)]
    found += [tf.bitwise.left_shift(x, y), tf.bitwise.right_shift(x, y), tf.bitwise.invert(x)]
    return [*found, raw.PopulationCount(x=x), x // (y + 1), x % (y + 1), tf.truncatediv(-x, y + 1), tf.pow(y, 2)]


@case()
def gradients_of_special_functions() -> list[Any]:
    x, y = given(3, 4, low=0.2, high=0.9), given(3, 4, name="y", low=1.2, high=3)
    total = tf.igamma(y, x) + tf.nn.relu6(y * 3) + tf.nn.selu(x) + tf.nn.leaky_relu(x - 0.5) + tf.nn.softsign(y)
    total += tf.math.cumulative_logsumexp(x, 1) + tf.asinh(x) * tf.acosh(y) + tf.atan2(x, y) + tf.lgamma(y)
    total += tf.math.xlogy(x, y) + tf.digamma(y) + tf.math.erfinv(x) + tf.pow(x, y) + tf.math.bessel_i0e(x)
    total += (
        tf.div_no_nan(x, y) + tf.squared_difference(x, y) + tf.floormod(y, x) + tf.cumprod(x, 1) + tf.nn.crelu(x)[:, :4]
    )
    return tf.gradients(total, [x, y])


@case()
def gradients_of_losses() -> list[Any]:
    x = given(4, 5)
    labels = tf.constant([0, 2, 1, 4])
    total = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x) ** 2)
    total += tf.reduce_sum(tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.nn.softmax(-x), logits=x) ** 2)
    total += (
        tf.reduce_sum(tf.nn.top_k(x, 2)[0] ** 2)
        + tf.reduce_logsumexp(x)
        + tf.losses.log_loss(tf.sigmoid(x), tf.sigmoid(-x))
    )
    total += tf.losses.hinge_loss(tf.one_hot(labels, 5), x) + tf.losses.cosine_distance(x, -x * x, axis=1)
    total += tf.nn.log_poisson_loss(x, tf.abs(x))[0, 0] + tf.norm(x, axis=1)[1] + tf.reduce_min(x, 1)[2]
    (first,) = tf.gradients(total, [x])
    return [total, first, *tf.gradients(tf.nn.l2_loss(first), [x])]


# -- arrays --------------------------------------------------------------------------------------------


@case()
def counts_and_places() -> list[Any]:
    x, n = given(4, 3), given(8, dtype=np.int32, name="n", low=0, high=5)
    found = [tf.bincount(n, minlength=5, maxlength=7), tf.math.bincount(n, weights=tf.cast(n, tf.float32), minlength=6)]
    found += [tf.unravel_index([3, 7], [4, 3]), tf.searchsorted([1.0, 2, 4], [0.5, 2, 9]), *tf.unique_with_counts(n)]
    found += [tf.searchsorted([1, 2, 2, 4], [2, 5], side="right"), raw.NthElement(input=x, n=1)]
    found += [
        tf.sort(x),
        tf.argsort(x, direction="DESCENDING"),
        tf.boolean_mask(x, x[:, 0] > 0),
        *tf.setdiff1d(n, [1, 2]),
    ]
    found += [
        tf.sequence_mask(n[:3], 6),
        tf.histogram_fixed_width(x, [-1.0, 1.0], 5),
        tf.diag(x[0]),
        tf.diag_part(x[:3]),
    ]
    found += [tf.confusion_matrix(n, n[::-1], 5), tf.count_nonzero(n), tf.one_hot(n, 3, on_value=2.0, axis=0)]
    found += [*raw.UniqueV2(x=n, axis=[0]), *raw.UniqueWithCountsV2(x=n, axis=tf.zeros([0], tf.int64))]
    found += [raw.InTopK(predictions=x, targets=[0, 1, 2, 0], k=1), tf.invert_permutation([1, 0])]
    return [
        *found,
        raw.Bucketize(input=x, boundaries=[-0.5, 0.0, 0.5]),
        tf.where(x > 0),
        tf.reverse_sequence(x, [1, 2, 3, 0], 1),
    ]


@case()
def layouts() -> list[Any]:
    x = given(4, 4, 4, 2)
    found = [
        tf.depth_to_space(tf.concat([x, x], 3), 2),
        tf.space_to_depth(x, 2),
        tf.space_to_batch(x, [[0, 0], [0, 0]], 2),
    ]
    found += [tf.space_to_batch_nd(x, [2, 2], [[0, 0], [2, 0]]), tf.batch_to_space(x, [[0, 0], [0, 1]], 2)]
    found += [tf.batch_to_space_nd(x, [2, 2], [[0, 1], [0, 0]]), tf.matrix_band_part(x[0], 0, 1)]
    found += [tf.matrix_diag(x[0, 0], k=1), tf.matrix_diag_part(x[..., 0], k=(-1, 0), align="LEFT_LEFT")]
    found += [
        raw.MatrixDiag(diagonal=x[0, 0]),
        raw.MatrixDiagPart(input=x[0]),
        raw.MatrixSetDiag(input=x[0], diagonal=x[0, :, 0]),
    ]
    found += [tf.linalg.set_diag(x[0], x[0, :, 0] * 2), tf.tensor_scatter_nd_max(x[0, 0], [[0]], x[1, 0, :1])]
    found += [tf.tensor_scatter_nd_min(x[0, 0], [[0]], x[1, 0, :1]), tf.tensor_scatter_sub(x[0, 0], [[1]], x[1, 0, :1])]
    found += [
        tf.repeat(x[0, 0], [1, 0, 2, 1], 0),
        tf.broadcast_dynamic_shape(tf.shape(x), tf.shape(x[:1])),
        tf.identity_n([x, x])[1],
    ]
    found += [
        tf.edit_distance(sparse([[0, 0], [0, 1]], [1, 2], [1, 2]), sparse([[0, 0]], [1], [1, 2])),
        tf.gather(x, [1], axis=1),
    ]
    return [
        *found,
        tf.stop_gradient(x),
        raw.ParallelConcat(values=[tf.ones([1, 4, 4, 2]), tf.zeros([1, 4, 4, 2])], shape=[2, 4, 4, 2]),
        tf.tile(x, [1, 1, 1, 2]),
    ]


@case()
def gradients_of_layouts() -> list[Any]:
    x = given(4, 4, 4, 2)
    total = tf.reduce_sum(tf.pad(x, [[0, 0], [1, 1], [1, 0], [0, 0]], "SYMMETRIC") ** 2)
    total += tf.reduce_sum(tf.depth_to_space(tf.concat([x, x], 3), 2) ** 3) + tf.reduce_sum(
        tf.space_to_depth(x, 2) ** 2
    )
    total += tf.reduce_sum(tf.batch_to_space_nd(x, [2, 2], [[0, 1], [0, 0]]) ** 2) + tf.reduce_sum(
        tf.gather_nd(x, [[0, 1]]) ** 3
    )
    total += tf.reduce_sum(tf.reverse_sequence(x, [1, 2, 3, 0], 1)[:, 0] ** 2) + tf.reduce_sum(tf.roll(x, 1, 0)[1] ** 3)
    total += tf.reduce_sum(tf.scatter_nd([[1], [3]], x[:2], [5, 4, 4, 2]) ** 2) + tf.reduce_sum(
        tf.reverse(x, [0])[0] ** 2
    )
    total += tf.reduce_sum(tf.matrix_diag_part(x[:, :, 0]) ** 2) + tf.reduce_sum(tf.matrix_band_part(x, 0, 0) ** 2)
    total += tf.reduce_sum(tf.einsum("bijc,bjkc->bik", x, x)) + tf.reduce_sum(tf.broadcast_to(x[:1], [3, 4, 4, 2]) ** 2)
    total += tf.reduce_sum(tf.dynamic_partition(x, [0, 1, 0, 1], 2)[1] ** 2) + tf.reduce_sum(
        tf.tensor_scatter_update(x, [[0]], x[:1] * 3) ** 2
    )
    return tf.gradients(total, [x])


@case()
def segments() -> list[Any]:
    x, ids = given(5, 3), [0, 0, 1, 3, 3]
    found = [
        tf.segment_prod(x, ids),
        tf.segment_min(x, ids),
        tf.unsorted_segment_min(x, ids, 4),
        tf.unsorted_segment_prod(x, ids, 4),
    ]
    found += [
        tf.unsorted_segment_mean(x, ids, 4),
        tf.unsorted_segment_sqrt_n(x, ids, 4),
        tf.sparse_segment_mean(x, [0, 2, 4], [0, 0, 1]),
    ]
    found += [
        tf.sparse_segment_sqrt_n(x, [0, 2, 4], [0, 0, 1]),
        tf.sparse_segment_sum(x, [0, 2], [0, 2], num_segments=4),
    ]
    found += [
        tf.sparse_segment_mean(x, [0, 2], [0, 2], num_segments=4),
        tf.sparse_segment_sqrt_n(x, [0, 2], [0, 2], num_segments=4),
    ]
    total = sum(tf.reduce_sum(each**2) for each in found[:9]) + tf.reduce_sum(tf.segment_mean(x, ids) ** 2)
    return [*found, *tf.gradients(total + tf.reduce_sum(tf.segment_max(x, ids) ** 2), [x])]


# -- linear algebra and signals ------------------------------------------------------------------------


@case()
def linear_algebra() -> list[Any]:
    x = given(3, 4, 4)
    square = tf.matmul(x, x, transpose_b=True) + tf.eye(4)
    q, r = tf.qr(x)
    values, vectors = tf.self_adjoint_eig(square)
    lower, order = linalg.lu(square)
    found = [
        tf.svd(x, compute_uv=False),
        tf.matmul(q, r),
        values,
        tf.abs(vectors),
        lower,
        order,
        linalg.expm(x),
        linalg.slogdet(square)[1],
    ]
    found += [
        linalg.sqrtm(square),
        linalg.logdet(square),
        linalg.logm(tf.cast(square, tf.complex64)),
        linalg.cross(x[:, :3, 0], x[:, 1:, 1]),
    ]
    found += [
        tf.matrix_solve_ls(x[:, :, :2], x[:, :, 2:], 0.1),
        linalg.tridiagonal_solve(x[:, :3, :], x[:, 0]),
        tf.cholesky_solve(tf.cholesky(square), x),
    ]
    found += [
        linalg.adjoint(x),
        tf.self_adjoint_eigvals(square),
        linalg.pinv(square),
        linalg.matrix_rank(x),
        linalg.tridiagonal_matmul(x[:, :3, :], x),
    ]
    return [
        *found,
        linalg.lu_solve(lower, order, x),
        tf.matmul(x, x, adjoint_a=True),
        linalg.diag_part(x, k=0),
        tf.global_norm([x, r[:, :1, :1] * 0]),
    ]


@case()
def gradients_of_linear_algebra() -> list[Any]:
    x = given(2, 3, 3)
    square = tf.matmul(x, x, transpose_b=True) + 2 * tf.eye(3)
    lower = tf.cholesky(square)
    total = (
        tf.reduce_sum(tf.matrix_inverse(square) ** 2)
        + tf.reduce_sum(lower**2)
        + tf.reduce_sum(tf.matrix_determinant(square))
    )
    total += tf.reduce_sum(tf.matrix_solve(square, x) ** 2) + tf.reduce_sum(tf.matrix_triangular_solve(lower, x) ** 2)
    total += tf.reduce_sum(tf.self_adjoint_eig(square)[0] ** 2) + tf.reduce_sum(tf.svd(x, compute_uv=False) ** 3)
    return tf.gradients(total + tf.reduce_sum(linalg.logdet(square)) + tf.reduce_sum(tf.trace(square) ** 2), [x])


@case()
def fourier() -> list[Any]:
    x = given(2, 4, 6, 8)
    z = tf.complex(x, x[..., ::-1])
    found = [tf.fft2d(z), tf.fft3d(z), tf.ifft(z), tf.ifft2d(z), tf.ifft3d(z), tf.spectral.rfft2d(x), signal.rfft3d(x)]
    found += [
        tf.spectral.irfft(z),
        tf.spectral.irfft2d(z),
        signal.irfft3d(z),
        tf.spectral.rfft(x, [4]),
        signal.dct(x),
        signal.idct(x),
    ]
    return [
        *found,
        *tf.gradients(tf.reduce_sum(tf.abs(tf.spectral.rfft(x)) ** 2) + tf.reduce_sum(tf.real(tf.fft2d(z)) ** 2), [x]),
    ]


@case()
def signals() -> list[Any]:
    x = given(2, 64)
    spectrum = signal.stft(x, 16, 8)
    found = [
        spectrum,
        signal.inverse_stft(spectrum, 16, 8),
        signal.frame(x, 16, 8),
        signal.overlap_and_add(signal.frame(x, 16, 8), 8),
    ]
    mel = signal.linear_to_mel_weight_matrix(6, 9, 8000)
    found += [
        mel,
        signal.mfccs_from_log_mel_spectrograms(tf.log(tf.tensordot(tf.abs(spectrum), mel, 1) + 1e-3)),
        signal.hamming_window(8),
    ]
    return [*found, signal.hann_window(7), *tf.gradients(tf.reduce_sum(tf.abs(spectrum) ** 2), [x])]


# -- pictures and sounds -------------------------------------------------------------------------------


@case()
def pictures() -> list[Any]:
    x = given(2, 8, 8, 3, low=0.1, high=0.9)
    boxes, scores = (
        tf.constant([[0.1, 0.1, 0.5, 0.5], [0.12, 0.1, 0.5, 0.52], [0.5, 0.4, 0.9, 0.9]]),
        tf.constant([0.6, 0.9, 0.8]),
    )
    found = [
        image.adjust_saturation(x, 1.5),
        image.adjust_gamma(x, 0.7),
        image.per_image_standardization(x),
        image.rgb_to_grayscale(x),
    ]
    found += [
        image.central_crop(x, 0.5),
        image.pad_to_bounding_box(x, 1, 2, 12, 12),
        image.resize_image_with_crop_or_pad(x, 6, 10),
    ]
    found += [
        image.draw_bounding_boxes(x, boxes[None, :1] + tf.zeros([2, 1, 4])),
        image.non_max_suppression(boxes, scores, 2),
    ]
    found += [
        *image.non_max_suppression_padded(boxes, scores, 3, pad_to_max_output_size=True),
        image.rot90(x),
        image.transpose_image(x),
    ]
    found += [
        *image.combined_non_max_suppression(boxes[None, :, None], scores[None, :, None], 2, 2),
        image.sobel_edges(x),
    ]
    found += [
        *image.non_max_suppression_with_scores(boxes, scores, 2, soft_nms_sigma=0.5),
        image.rgb_to_yiq(x),
        image.rgb_to_yuv(x),
    ]
    found += [image.psnr(x, x * 0.9, 1.0), image.total_variation(x), *image.image_gradients(x), image.flip_up_down(x)]
    found += [raw.NonMaxSuppressionV2(boxes=boxes, scores=scores, max_output_size=2, iou_threshold=0.4)]
    found += [
        raw.NonMaxSuppression(boxes=boxes, scores=scores, max_output_size=2, iou_threshold=0.4),
        image.adjust_brightness(x, 0.1),
    ]
    found += [
        *raw.NonMaxSuppressionV4(boxes=boxes, scores=scores, max_output_size=2, iou_threshold=0.4, score_threshold=0.1)
    ]
    found += [
        raw.ExtractGlimpse(input=x, size=[3, 3], offsets=[[0.0, 0.1], [0.2, 0.0]]),
        image.convert_image_dtype(x, tf.uint8),
    ]
    found += [
        raw.DrawBoundingBoxes(images=x, boxes=boxes[None, :1] + tf.zeros([2, 1, 4])),
        image.ssim(tf.tile(x, [1, 2, 2, 1]), tf.tile(x * 0.9, [1, 2, 2, 1]), 1.0),
    ]
    return [
        *found,
        raw.ResizeBilinear(images=x, size=[5, 7], half_pixel_centers=True),
        image.resize_images(x, [5, 5], preserve_aspect_ratio=True),
    ]


@case()
def gradients_of_pictures() -> list[Any]:
    x = given(2, 6, 6, 2)
    boxes = tf.placeholder_with_default(tf.constant([[0.1, 0.2, 0.8, 0.9]]), [1, 4], name="boxes")
    total = tf.reduce_sum(image.resize_bilinear(x, [4, 9]) ** 2) + tf.reduce_sum(image.resize_bicubic(x, [4, 9]) ** 2)
    total += tf.reduce_sum(image.resize_nearest_neighbor(x, [4, 9]) ** 2) + tf.reduce_sum(
        image.crop_and_resize(x, boxes, [1], [3, 3]) ** 2
    )
    total += tf.reduce_sum(image.extract_image_patches(x, [1, 2, 2, 1], [1, 1, 1, 1], [1] * 4, "SAME") ** 2)
    return tf.gradients(total, [x, boxes])


@case()
def picture_files() -> list[Any]:
    x = tf.cast(given(5, 6, 3, low=0, high=255), tf.uint8)
    png = image.encode_png(x)
    jpeg = image.encode_jpeg(tf.tile(x[:1, :1], [8, 8, 1]), quality=95, format="rgb")
    bmp = bytes.fromhex(
        "424d460000000000000036000000280000000200000002000000010018000000000010000000000000000000000000000000000000000000ff00ff000000ff0000ffffff0000"
    )
    gif = bytes.fromhex("47494638396101000100800000ff000000ff002c00000000010001000002024401003b")
    found = [
        image.decode_png(png),
        image.decode_image(png),
        image.decode_png(png, 1),
        image.decode_bmp(bmp),
        image.decode_gif(gif),
    ]
    found += [
        tf.reduce_max(tf.abs(tf.cast(image.decode_jpeg(jpeg), tf.int32) - tf.cast(x[0, 0], tf.int32))) < 12,
        image.extract_jpeg_shape(jpeg),
    ]
    return [*found, tf.shape(image.decode_and_crop_jpeg(jpeg, [1, 2, 3, 4])), image.is_jpeg(jpeg), image.is_jpeg(png)]


@case()
def sounds() -> list[Any]:
    x = given(16, 2, low=-0.9, high=0.9)
    wav = tf.audio.encode_wav(x, 8000)
    return [wav, *tf.audio.decode_wav(wav), *tf.audio.decode_wav(wav, desired_channels=1, desired_samples=4)]


# -- layers --------------------------------------------------------------------------------------------


@case()
def more_pooling() -> list[Any]:
    x, volume = given(2, 8, 8, 3), given(2, 4, 6, 6, 2, name="volume")
    pooled, places = tf.nn.max_pool_with_argmax(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    found = [
        pooled,
        places,
        tf.nn.avg_pool3d(volume, 2, 2, "SAME"),
        tf.nn.max_pool_v2(x, 2, 2, "VALID"),
        raw.Dilation2D(input=x, filter=tf.fill([2, 2, 3], 0.3), strides=[1] * 4, rates=[1, 2, 1, 1], padding="SAME"),
    ]
    found += [
        raw.MaxPoolV2(input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"),
        tf.nn.erosion2d(x, tf.fill([2, 2, 3], 0.3), [1] * 4, [1] * 4, "SAME"),
        tf.nn.pool(x, [2, 3], "AVG", "SAME"),
    ]
    kernel = weights(2, 2, 2, 2, 3)
    folded = tf.nn.conv3d(volume, kernel, [1, 1, 2, 2, 1], "SAME")
    total = tf.reduce_sum(tf.nn.avg_pool3d(volume, 2, 2, "SAME") ** 2) + tf.reduce_sum(
        tf.nn.max_pool3d(volume, 2, 2, "SAME") ** 2
    )
    total += (
        tf.reduce_sum(folded**2)
        + tf.reduce_sum(pooled**2)
        + tf.reduce_sum(found[4] ** 2)
        + tf.reduce_sum(tf.nn.lrn(x) ** 2)
    )
    total += tf.reduce_sum(tf.nn.conv3d_transpose(folded, kernel, [2, 4, 6, 6, 2], [1, 1, 2, 2, 1]) ** 2)
    return [*found, folded, *tf.gradients(total, [x, volume, kernel])]


@case()
def more_convolutions() -> list[Any]:
    x = given(2, 8, 8, 3)
    found = [tf.nn.separable_conv2d(x, weights(3, 3, 3, 2), weights(1, 1, 6, 4, name="p"), [1, 2, 2, 1], "SAME")]
    found += [tf.nn.conv2d(x, weights(2, 3, 3, 2, name="e"), [1, 1, 1, 1], [[0, 0], [1, 2], [0, 1], [0, 0]])]
    found += [
        tf.nn.atrous_conv2d_transpose(x, weights(3, 3, 4, 3, name="a"), [2, 12, 12, 4], 2, "VALID"),
        tf.nn.conv1d_transpose(x[:, 0], weights(3, 4, 3, name="o"), [2, 16, 4], 2),
    ]
    found += [
        tf.nn.convolution(x, weights(3, 3, 3, 4, name="c"), "SAME", dilation_rate=[2, 2]),
        tf.nn.depthwise_conv2d(x, weights(3, 3, 3, 2, name="d"), [1, 2, 2, 1], "VALID"),
    ]
    total = sum(tf.reduce_sum(each**2) for each in found)
    return [*found, *tf.gradients(total, [x, *tf.trainable_variables()])]


@case()
def gradients_of_pooling() -> list[Any]:
    x = given(2, 6, 6, 3)
    pooled = tf.nn.max_pool(x, 2, 2, "SAME")
    windows = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    first = raw.MaxPoolGrad(orig_input=x, orig_output=pooled, grad=pooled * 2, **windows)
    found = [first, raw.MaxPoolGradV2(orig_input=x, orig_output=pooled, grad=pooled * 2, **windows)]
    return [*found, raw.MaxPoolGradGrad(orig_input=x, orig_output=pooled, grad=x, **windows)]


@case()
def further_types() -> list[Any]:
    x, y = given(3, 4), given(3, 4, name="y", low=0.1, high=0.9)
    z = tf.complex(x, y)
    matrix = sparse([[0, 1], [2, 0]], [1.0, 2.0], [3, 4])
    found = [
        tf.transpose(z, conjugate=True),
        raw.BatchMatMulV3(x=x[None], y=y[None], adj_y=True, Tout=tf.float32),
        raw.BatchMatMul(x=x[None], y=y[None], adj_y=True),
    ]
    found += [
        raw.MatrixDiagV2(diagonal=x, k=1, num_rows=-1, num_cols=-1, padding_value=0.0),
        raw.MatrixDiagPartV2(input=x[None], k=1, padding_value=0.0),
    ]
    found += [
        raw.MatrixSetDiagV2(input=x[None], diagonal=y[None, :, 0], k=0),
        raw.SoftplusGrad(gradients=x, features=y),
        raw.OnesLike(x=x),
        raw.Inv(x=y),
        raw.InvGrad(y=y, dy=x),
    ]
    found += [
        raw.Mod(x=y, y=y / 3 + 0.01),
        raw.Div(x=x, y=y),
        raw.Add(x=x, y=y),
        raw.GuaranteeConst(input=x),
        raw.Gather(params=x, indices=[2, 0]),
        raw.Concat(concat_dim=1, values=[x, y]),
    ]
    found += [
        raw.Bincount(arr=[1, 2, 1], size=4, weights=[0.5, 1.0, 2.0]),
        raw.Bincount(arr=[1, 2, 1], size=4, weights=tf.zeros([0])),
        raw.LinSpace(start=0.0, stop=1.0, num=4),
    ]
    found += [
        *parts_of(tf.sparse_reduce_max_sparse(matrix, 1)),
        (matrix / y).values,
        raw.RegexReplace(input=["abc"], pattern="b", rewrite="x"),
        raw.RegexFullMatch(input=["abc", "b"], pattern=tf.constant("b")),
    ]
    boxes = tf.constant([[[0.1, 0.1, 0.5, 0.5]]])
    found += [
        raw.DrawBoundingBoxesV2(images=tf.zeros([1, 6, 6, 3]), boxes=boxes, colors=[[0.5, 0.2, 0.1]]),
        raw.NonMaxSuppressionWithOverlaps(
            overlaps=[[1.0, 0.9], [0.9, 1.0]],
            scores=[0.5, 0.6],
            max_output_size=2,
            overlap_threshold=0.5,
            score_threshold=0.0,
        ),
    ]
    return [
        *found,
        raw.ExtractGlimpseV2(input=tf.reshape(x, [1, 3, 4, 1]), size=[2, 2], offsets=[[0.0, 0.1]]),
        raw.StatelessRandomGetAlg() * 0,
    ]


@case()
def batch_norm_in_training() -> list[Any]:
    x, scale, offset = given(4, 5, 5, 3), tf.constant([1.0, 2, 3]), tf.constant([0.0, 1, 2])
    nothing = tf.zeros([0])
    kinds = [raw.FusedBatchNorm, raw.FusedBatchNormV2, raw.FusedBatchNormV3]
    found = [each(x=x, scale=scale, offset=offset, mean=nothing, variance=nothing, epsilon=1e-3) for each in kinds]
    total = sum(tf.reduce_sum(tf.sin(each[0]) * x) for each in found)
    results = [tensor for each in found for tensor in each[:3]] + [tf.nn.local_response_normalization(x, 2)]
    return [
        *results,
        *tf.gradients(total, [x, scale, offset]),
        *tf.nn.weighted_moments(x, [0, 1], x * x),
        *tf.nn.sufficient_statistics(x, [0])[:3],
    ]


@case()
def quantised_weights() -> list[Any]:
    x, low, high = given(3, 4), tf.constant(-0.7), tf.constant(0.8)
    each_low, each_high = tf.constant([-0.5, -0.6, -0.7, -0.8]), tf.constant([0.5, 0.6, 0.7, 0.8])
    found = [
        tf.fake_quant_with_min_max_vars(x, low, high),
        tf.fake_quant_with_min_max_vars_per_channel(x, each_low, each_high),
        tf.fake_quant_with_min_max_args(x, -0.5, 0.5, num_bits=4),
    ]
    total = sum(tf.reduce_sum(each * x) for each in found)
    quantised = tf.quantize(x, -1.0, 1.0, tf.quint8, mode="MIN_FIRST")
    back = tf.dequantize(quantised[0], quantised[1], quantised[2], mode="MIN_FIRST")
    more = [
        raw.QuantizeAndDequantizeV2(input=x, input_min=-1.0, input_max=1.0, range_given=True),
        raw.QuantizeAndDequantizeV3(input=x, input_min=-1.0, input_max=1.0, num_bits=8),
    ]
    return [*found, *tf.gradients(total, [x, low, high, each_low, each_high]), back, *quantised[1:], *more]


def parts_of_table(held: Any) -> Any:
    """A variable in three parts, with these values."""

    def known(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        start = partition_info.var_offset[0]
        return tf.constant(held[start : start + shape[0]], dtype)

    return tf.get_variable("table", held.shape, initializer=known, partitioner=tf.fixed_size_partitioner(3))


@case()
def embeddings_of_parts() -> list[Any]:
    ids = given(6, dtype=np.int32, name="ids", low=0, high=9)
    held = np.arange(30, dtype=np.float32).reshape(10, 3) / 10
    table = parts_of_table(held)
    some = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.cast(ids[:3], tf.int64), [4, 2])
    found = [tf.nn.embedding_lookup(table, ids), tf.nn.embedding_lookup(table, ids, partition_strategy="div")]
    found += [tf.nn.embedding_lookup_sparse(table, some, None, combiner=kind) for kind in ("mean", "sum", "sqrtn")]
    found += [
        tf.nn.safe_embedding_lookup_sparse(table, some, combiner="mean"),
        tf.nn.embedding_lookup(table, ids, max_norm=1.0),
    ]
    return [*found, table.as_tensor()]


# -- random numbers ------------------------------------------------------------------------------------


@case()
def random_numbers() -> list[Any]:
    n, seed = tf.placeholder_with_default(20000, [], name="n"), tf.placeholder_with_default([3, 7], [2], name="seed")

    def near(values: Any, mean: float, deviation: float) -> list[Any]:
        found, spread = tf.nn.moments(tf.cast(values, tf.float64), [0])
        close = [tf.abs(found - mean) < 0.05 * deviation, tf.abs(tf.sqrt(spread) - deviation) < 0.05 * deviation]
        return [*close, tf.shape(values)]

    found = near(tf.random_uniform([n]), 0.5, 12**-0.5) + near(tf.random_normal([n], 2.0, 3.0), 2.0, 3.0)
    found += near(tf.truncated_normal([n]), 0.0, 0.8796) + near(tf.random_uniform([n], 0, 10, tf.int32), 4.5, 2.872)
    found += near(tf.random_gamma([n], 3.0, 2.0), 1.5, 0.75**0.5) + near(tf.random_poisson(4.0, [n]), 4.0, 2.0)
    found += near(tf.multinomial([[0.0, 0.0]], n)[0], 0.5, 0.5) + near(tf.random_shuffle(tf.range(n)), 9999.5, 5773.5)
    found += near(
        raw.ParameterizedTruncatedNormal(shape=[1, n], means=[1.0], stdevs=[1.0], minvals=[-9.0], maxvals=[9.0])[0],
        1.0,
        1.0,
    )
    found += near(tf.random.stateless_uniform([n], seed), 0.5, 12**-0.5) + near(
        raw.StatelessRandomUniform(shape=[n], seed=seed), 0.5, 12**-0.5
    )
    found += near(tf.random.stateless_normal([n], seed), 0.0, 1.0) + near(
        raw.StatelessRandomNormal(shape=[n], seed=seed), 0.0, 1.0
    )
    found += near(tf.random.stateless_truncated_normal([n], seed), 0.0, 0.8796) + near(
        raw.StatelessTruncatedNormal(shape=[n], seed=seed), 0.0, 0.8796
    )
    found += near(tf.random.stateless_uniform([n], seed, 0, 10, tf.int32), 4.5, 2.872) + near(
        raw.StatelessRandomUniformInt(shape=[n], seed=seed, minval=-5, maxval=5), -0.5, 2.872
    )
    found += near(tf.random.stateless_categorical([[0.0, 0.0]], n, seed)[0], 0.5, 0.5)
    again = [tf.random.stateless_normal([5], seed) for _ in range(2)]
    found.append(tf.reduce_all(tf.equal(*again)))
    return [
        *found,
        tf.sort(tf.random_shuffle(tf.range(5))),
        tf.shape(tf.random_crop(tf.zeros([5, 5]), [2, 3])),
        tf.shape(tf.nn.dropout(tf.ones([4, 4]), rate=0.5)),
    ]


@case()
def candidates() -> list[Any]:
    classes = tf.constant([[1], [4]], tf.int64)
    found = []
    for sampler in (
        tf.random.log_uniform_candidate_sampler,
        tf.random.uniform_candidate_sampler,
        tf.random.learned_unigram_candidate_sampler,
    ):
        chosen, wanted, expected = sampler(classes, 1, 20, False, 20)
        found += [tf.shape(chosen), wanted, tf.shape(expected)]
    chosen, wanted, expected = tf.random.fixed_unigram_candidate_sampler(
        classes, 1, 5, True, 5, unigrams=[1.0, 2, 3, 4, 5]
    )
    found += [
        tf.sort(chosen),
        tf.shape(wanted),
        tf.shape(expected),
        tf.sort(tf.nn.all_candidate_sampler(classes, 1, 5, True)[0]),
    ]
    hits = tf.nn.compute_accidental_hits(classes, tf.constant([4, 2, 1], tf.int64), 1)
    x, kernel, bias = given(2, 3), weights(20, 3), weights(20, name="b")
    values = tf.constant([3, 9, 1, 4], tf.int64), tf.fill([2, 1], 0.2), tf.fill([4], 0.3)
    loss = [
        kind(kernel, bias, classes, x, 4, 20, sampled_values=values)
        for kind in (tf.nn.nce_loss, tf.nn.sampled_softmax_loss)
    ]
    return [*found, *hits, *loss, *tf.gradients(loss, [x])]


# -- texts and records ---------------------------------------------------------------------------------


@case()
def more_strings() -> list[Any]:
    texts = tf.placeholder_with_default([b"Ab c", b"", b"d,e,f", "ä€".encode()], [None], name="texts")
    found = [
        tf.strings.lower(texts),
        tf.strings.format("{} of {}", [tf.constant(3), tf.constant([1.5, 2.0])]),
        tf.encode_base64(texts, True),
    ]
    found += [
        tf.decode_base64(tf.encode_base64(texts)),
        tf.string_to_hash_bucket_strong(texts, 10, [1, 2]),
        tf.string_to_hash_bucket(texts, 9),
    ]
    found += [
        tf.strings.unsorted_segment_join(texts, [0, 1, 0, 1], 2, "-"),
        tf.strings.regex_full_match(texts, "[a-z ,A-Z]+"),
        tf.strings.length(texts, unit="UTF8_CHAR"),
    ]
    found += [
        tf.strings.unicode_transcode(texts, "UTF-8", "UTF-16-BE"),
        tf.strings.unicode_script(tf.constant([97, 228, 945])),
        tf.strings.substr(texts, 0, 1, unit="UTF8_CHAR"),
    ]
    parts = tf.string_split(texts, ",")
    found += [
        *parts_of(parts),
        tf.strings.regex_replace(texts, "[a-z]", "<\\0>", False),
        tf.strings.join([texts, texts], "|"),
    ]
    found += [raw.StringUpper(input=texts), raw.Fingerprint(data=texts, method="farmhash64")]
    return [
        *found,
        tf.string_to_number(["1", "-7"], tf.int64),
        tf.as_string([1.25, 3.5], precision=2),
        tf.as_string([True]),
        tf.reduce_join(texts[None], [0, 1]),
    ]


def records() -> Any:
    """Serialized examples, fed."""
    made = []
    for index in range(3):
        feature = {
            "ids": tf.train.Feature(int64_list=tf.train.Int64List(value=range(index))),
            "x": tf.train.Feature(float_list=tf.train.FloatList(value=[index, 0.5])),
            "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"n%d" % index])),
        }
        made.append(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString(deterministic=True))
    FED["records:0"] = np.array(made, "S")
    return tf.placeholder(tf.string, [None], name="records")


FEATURES = {
    "ids": tf.VarLenFeature(tf.int64),
    "x": tf.FixedLenFeature([2], tf.float32),
    "name": tf.FixedLenFeature([], tf.string),
    "none": tf.FixedLenFeature([1], tf.int64, [7]),
    "few": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
}


@case()
def examples() -> list[Any]:
    serialized = records()
    found = tf.parse_example(serialized, FEATURES)
    one = tf.parse_single_example(serialized[1], {key: FEATURES[key] for key in ("ids", "x", "name", "none")})
    results = [*parts_of(found.pop("ids")), *(found[key] for key in sorted(found))]
    return [*results, *parts_of(one.pop("ids")), *(one[key] for key in sorted(one))]


@case()
def old_examples() -> list[Any]:
    keys = {
        "names": [],
        "sparse_keys": ["ids"],
        "dense_keys": ["name", "x"],
        "dense_defaults": [tf.constant("?"), tf.zeros([0])],
    }
    types = {"sparse_types": [tf.int64], "dense_shapes": [[], [2]]}
    indices, values, shapes, dense = raw.ParseExample(serialized=records(), **keys, **types)
    return [*indices, *values, *shapes, *dense]


def sequence_record() -> Any:
    """A serialized example with sequences, fed."""
    lists = {
        "steps": tf.train.FeatureList(
            feature=[tf.train.Feature(float_list=tf.train.FloatList(value=[i, 1])) for i in range(3)]
        )
    }
    lists["tags"] = tf.train.FeatureList(
        feature=[tf.train.Feature(int64_list=tf.train.Int64List(value=range(i))) for i in range(3)]
    )
    context = {"name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"first"]))}
    example = tf.train.SequenceExample(
        context=tf.train.Features(feature=context), feature_lists=tf.train.FeatureLists(feature_list=lists)
    )
    FED["records:0"] = np.array(example.SerializeToString(deterministic=True), "S")
    return tf.placeholder(tf.string, [], name="records")


@case()
def old_single_examples() -> list[Any]:
    keys = {"sparse_keys": ["ids"], "dense_keys": ["name", "x"], "num_sparse": 1}
    types = {"sparse_types": [tf.int64], "dense_shapes": [[], [2]], "dense_defaults": [tf.constant("?"), tf.zeros([0])]}
    indices, values, shapes, dense = raw.ParseSingleExample(serialized=records()[1], **keys, **types)
    return [*indices, *values, *shapes, *dense]


@case()
def old_sequences() -> list[Any]:
    serialized = sequence_record()
    kinds = {"context_sparse_types": [], "context_dense_shapes": [[]], "feature_list_dense_types": [tf.float32]}
    kinds |= {"feature_list_dense_shapes": [[2]], "feature_list_sparse_types": [tf.int64]}
    defaults = {"context_dense_defaults": [tf.constant("?")]}
    context = {"context_sparse_keys": [], "context_dense_keys": ["name"]}
    lists = {"feature_list_sparse_keys": ["tags"], "feature_list_dense_keys": ["steps"]}
    counts = {"Ncontext_dense": 1, "Nfeature_list_dense": 1, "Nfeature_list_sparse": 1}
    one = raw.ParseSingleSequenceExample(
        serialized=serialized,
        feature_list_dense_missing_assumed_empty=tf.constant(["steps"]),
        debug_name="",
        **context,
        **lists,
        **defaults,
        **kinds,
    )
    many = raw.ParseSequenceExample(
        serialized=serialized[None],
        debug_name=tf.zeros([0], tf.string),
        feature_list_dense_missing_assumed_empty=[],
        **counts,
        **context,
        **lists,
        **defaults,
        **kinds,
    )
    return [tensor for each in (*one, *many) for tensor in each]


@case()
def sequences() -> list[Any]:
    serialized = sequence_record()
    features = {"steps": tf.FixedLenSequenceFeature([2], tf.float32), "tags": tf.VarLenFeature(tf.int64)}
    outer = {"name": tf.FixedLenFeature([], tf.string)}
    one, many = tf.parse_single_sequence_example(serialized, outer, features)
    all_one, all_many, lengths = tf.io.parse_sequence_example(serialized[None], outer, features)
    found = [
        one["name"],
        many["steps"],
        *parts_of(many["tags"]),
        all_one["name"],
        all_many["steps"],
        *parts_of(all_many["tags"]),
    ]
    return [*found, lengths["steps"]]


@case()
def decoding() -> list[Any]:
    lines = tf.placeholder_with_default([b"1,2.5,a b", b',7,"x,y"'], [None], name="lines")
    found = [
        *tf.decode_csv(lines, [[9], [0.0], ["?"]]),
        *tf.decode_csv(lines, [[9], ["?"]], select_cols=[0, 2]),
        tf.decode_raw(["abcdefgh", "01234567"], tf.int32),
    ]
    found += [
        tf.decode_raw(["ab"], tf.uint16, little_endian=False),
        tf.parse_tensor(tf.serialize_tensor([1.5, 2.0]), tf.float32),
        tf.serialize_tensor([1, 2]),
    ]
    matrix = sparse([[0, 1], [2, 0]], [1.0, 2.0], [3, 3])
    many = tf.serialize_many_sparse(matrix)
    found += [
        tf.serialize_sparse(matrix),
        many,
        *parts_of(tf.deserialize_many_sparse(many, tf.float32)),
        *raw.DeserializeSparse(serialized_sparse=tf.serialize_sparse(matrix), dtype=tf.float32),
    ]
    packed = zlib.compress(b"abcabc")
    found += [
        tf.io.decode_compressed([packed], "ZLIB"),
        tf.io.decode_raw(tf.io.decode_compressed([packed], "ZLIB"), tf.uint8),
    ]
    example = tf.decode_json_example('{"features": {"feature": {"a": {"int64List": {"value": ["3"]}}}}}')
    return [*found, tf.parse_single_example(example, {"a": tf.FixedLenFeature([1], tf.int64)})["a"]]


@case()
def summaries() -> list[Any]:
    x = given(4, 5)
    found = [tf.summary.scalar("mean", x[0, 0]), tf.summary.histogram("x", x), tf.summary.tensor_summary("t", x[0])]
    found += [
        tf.summary.merge(found[:2]),
        tf.summary.audio("a", x[..., None], 8000),
        tf.summary.text("w", tf.constant("text")),
    ]
    return found


# -- sparse tensors ------------------------------------------------------------------------------------


@case()
def sparse_layouts() -> list[Any]:
    a = sparse([[0, 1], [1, 0], [2, 3]], [1.0, 2.0, 3.0], [4, 4])
    b = sparse([[0, 1], [3, 3]], [5.0, 7.0], [4, 4])
    found = [
        tf.sparse_reshape(a, [2, 8]),
        tf.sparse_concat(0, [a, b]),
        tf.sparse_concat(1, [a, b]),
        *tf.sparse_split(sp_input=a, num_split=2, axis=1),
    ]
    found += [
        tf.sparse_slice(a, [0, 0], [2, 2]),
        tf.sparse_fill_empty_rows(a, -1.0)[0],
        tf.sparse_add(a, b),
        tf.sparse_transpose(a),
        tf.sparse_retain(a, [True, False, True]),
    ]
    found += [
        tf.sparse_minimum(a, b),
        tf.sparse_maximum(a, b),
        tf.sparse_softmax(a),
        tf.sparse_reorder(a),
        tf.sparse.expand_dims(a, 0),
        a * tf.constant([[2.0] * 4]),
    ]
    found += [
        tf.sparse_reset_shape(a, [5, 5]),
        tf.sparse_reduce_sum_sparse(a, 1),
        tf.sparse.cross([sparse([[0, 0], [1, 0]], ["a", "b"], [2, 1]), sparse([[0, 0], [1, 0]], ["c", "d"], [2, 1])]),
    ]
    found += [
        tf.sparse.cross_hashed([sparse([[0, 0], [1, 0]], ["a", "b"], [2, 1]), tf.constant([["c"], ["d"]])], 100),
        tf.sparse.from_dense([[1, 0], [0, 3]]),
    ]
    dense = [
        tf.sparse_reduce_sum(a, 1),
        tf.sparse_reduce_max(a, 0),
        tf.sparse_tensor_to_dense(b, -1.0),
        tf.sparse_add(a, tf.ones([4, 4])),
        tf.sparse_to_indicator(sparse([[0, 0], [1, 0]], [1, 3], [2, 1]), 5),
    ]
    dense += [
        tf.sparse_fill_empty_rows(a, -1.0)[1],
        tf.sparse_tensor_dense_matmul(a, tf.eye(4)),
        tf.sparse_matmul(tf.eye(3), tf.ones([3, 2]), a_is_sparse=True),
        tf.sparse.reduce_sum(a),
    ]
    return [*(tensor for each in found for tensor in parts_of(each)), *dense]


@case()
def gradients_of_sparse() -> list[Any]:
    x, y = given(3, 4), given(3, 4, name="y")
    a = tf.SparseTensor([[0, 1], [1, 0], [2, 3]], x[:, 0], [4, 4])
    b = tf.SparseTensor([[0, 1], [3, 3]], y[:2, 1], [4, 4])
    total = tf.reduce_sum(tf.sparse_tensor_dense_matmul(a, tf.ones([4, 2]) * y[0, 0]) ** 2) + tf.reduce_sum(
        tf.sparse_reduce_sum(a, 1) ** 2
    )
    total += (
        tf.reduce_sum(tf.sparse_softmax(a).values ** 2)
        + tf.reduce_sum(tf.sparse_add(a, b).values ** 2)
        + tf.reduce_sum(tf.sparse_fill_empty_rows(a, -1.0)[0].values ** 2)
    )
    total += (
        tf.reduce_sum((a * y[:1]).values ** 2)
        + tf.reduce_sum(tf.sparse_tensor_to_dense(a) ** 3)
        + tf.reduce_sum(tf.sparse_concat(0, [a, b]).values ** 2)
    )
    total += tf.reduce_sum(tf.sparse_matmul(x, y, transpose_b=True) ** 2) + tf.reduce_sum(
        tf.sparse_slice(a, [0, 0], [2, 2]).values ** 2
    )
    return tf.gradients(total, [x, y])


@case()
def sets() -> list[Any]:
    a, b = tf.constant([[1, 2, 3], [4, 4, 5]]), tf.constant([[2, 3, 9], [5, 6, 7]])
    s = sparse([[0, 0], [0, 1], [1, 0]], [3, 2, 5], [2, 2])
    found = [
        tf.sets.set_intersection(a, b),
        tf.sets.set_union(a, b),
        tf.sets.set_difference(a, b),
        tf.sets.set_difference(a, b, False),
        tf.sets.set_intersection(a, s),
        tf.sets.set_union(s, s),
    ]
    return [*(tensor for each in found for tensor in parts_of(each)), tf.sets.set_size(s)]


@case()
def speech() -> list[Any]:
    x = given(6, 2, 5)
    labels = sparse([[0, 0], [0, 1], [1, 0]], [1, 2, 3], [2, 2])
    lengths = tf.constant([6, 5])
    loss = tf.nn.ctc_loss(labels, x, lengths)
    greedy, likely = tf.nn.ctc_greedy_decoder(x, lengths)
    beams, scores = tf.nn.ctc_beam_search_decoder(x, lengths, beam_width=5, top_paths=2, merge_repeated=False)
    dense = tf.nn.ctc_loss_v2(tf.constant([[1, 2], [3, 0]]), x, [2, 1], lengths, logits_time_major=True, blank_index=0)
    found = [
        loss,
        *parts_of(greedy[0]),
        likely,
        *(tensor for beam in beams for tensor in parts_of(beam)),
        scores,
        dense,
    ]
    return [*found, *tf.gradients(loss, [x])]


# -- what keeps state ----------------------------------------------------------------------------------


def in_turn(*steps: Any) -> list[Any]:
    """Run functions one after another; the tensors that they return."""
    found, last = [], []
    for step in steps:
        with tf.control_dependencies(last):
            made = step()
            made = list(made) if isinstance(made, (list, tuple)) else [made]
            made = [tf.identity(each) if isinstance(each, tf.Tensor) else each for each in made]
        found += [each for each in made if isinstance(each, tf.Tensor)]
        last = made
    return found


@case()
def queues() -> list[Any]:
    x = given(4, 3)
    first = tf.FIFOQueue(9, [tf.float32, tf.int32], [[3], []])
    second = tf.PaddingFIFOQueue(9, [tf.float32], [[None]])
    third = tf.PriorityQueue(9, [tf.float32], [[]])
    fourth = tf.RandomShuffleQueue(9, 0, tf.float32, [[3]])
    found = in_turn(
        lambda: first.enqueue_many([x, [1, 2, 3, 4]]),
        first.size,
        first.dequeue,
        lambda: first.dequeue_many(2),
        lambda: first.enqueue([x[1], 9]),
        first.close,
        lambda: first.dequeue_up_to(9),
        first.is_closed,
    )
    found += in_turn(lambda: second.enqueue([x[0]]), lambda: second.enqueue([x[1, :2]]), lambda: second.dequeue_many(2))
    found += in_turn(
        lambda: third.enqueue_many([tf.constant([3, 1, 2], tf.int64), x[:3, 0]]), third.dequeue, third.dequeue
    )
    return found + in_turn(
        lambda: fourth.enqueue_many([x]), fourth.size, lambda: tf.reduce_sum(fourth.dequeue_many(4), 0), fourth.size
    )


@case()
def old_queues() -> list[Any]:
    x = given(4, 3)
    queue = gen.fifo_queue([tf.float32], [[3]], 5)
    padding = gen.padding_fifo_queue([tf.float32], [[None]], 5)
    found = in_turn(
        lambda: gen.queue_enqueue_many(queue, [x]),
        lambda: gen.queue_size(queue),
        lambda: gen.queue_dequeue(queue, [tf.float32]),
        lambda: gen.queue_dequeue_many(queue, 2, [tf.float32]),
        lambda: gen.queue_close(queue),
        lambda: gen.queue_dequeue_up_to(queue, 5, [tf.float32]),
    )
    return found + in_turn(
        lambda: gen.queue_enqueue(padding, [x[0, :2]]), lambda: gen.queue_dequeue_many(padding, 1, [tf.float32])
    )


@case()
def lookup_tables() -> list[Any]:
    words = tf.placeholder_with_default([b"bee", b"cat", b"ant"], [None], name="words")
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["ant", "bee"], tf.constant([3, 5], tf.int64)), -1
    )
    names = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant([3, 5], tf.int64), ["ant", "bee"]), "?"
    )
    buckets = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(["ant", "bee"], tf.constant([0, 1], tf.int64)), 4
    )
    changing = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, 0.5)
    dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, 0, -9)
    found = [table.lookup(words), table.size(), names.lookup(table.lookup(words)), buckets.lookup(words)]
    found += in_turn(
        lambda: changing.insert(words, [1.0, 2.0, 3.0]),
        lambda: changing.lookup(tf.constant(["ant", "dog"])),
        changing.size,
        lambda: changing.remove(words[:1]),
        lambda: tf.sort(changing.export()[1]),
        changing.size,
    )
    return found + in_turn(lambda: dense.insert([4, 5], [6, 7]), lambda: dense.lookup([5, 9]), dense.size)


@case()
def old_lookup_tables() -> list[Any]:
    words = tf.placeholder_with_default([b"bee", b"cat", b"ant"], [None], name="words")
    table = tables.hash_table(tf.string, tf.int64)
    changing = tables.mutable_hash_table(tf.string, tf.float32)
    found = in_turn(
        lambda: tables.initialize_table(table, ["ant", "bee"], tf.constant([3, 5], tf.int64)),
        lambda: tables.lookup_table_find(table, words, tf.constant(-1, tf.int64)),
        lambda: tables.lookup_table_size(table),
    )
    return found + in_turn(
        lambda: tables.lookup_table_insert(changing, words, [1.0, 2.0, 3.0]),
        lambda: tables.lookup_table_find(changing, ["ant", "dog"], 0.5),
        lambda: tables.lookup_table_size(changing),
    )


@case()
def accumulators() -> list[Any]:
    x = given(4, 3)
    mean = tf.ConditionalAccumulator(tf.float32, [3])
    total = tf.ConditionalAccumulator(tf.float32, [3], reduction_type="SUM")
    rows = tf.SparseConditionalAccumulator(tf.float32, [5, 3])
    found = in_turn(
        lambda: mean.apply_grad(x[0], 0),
        lambda: mean.apply_grad(x[1], 0),
        mean.num_accumulated,
        lambda: mean.take_grad(2),
        lambda: mean.set_global_step(4),
        lambda: mean.apply_grad(x[2], 1),
        mean.num_accumulated,
    )
    found += in_turn(lambda: total.apply_grad(x[0], 0), lambda: total.apply_grad(x[1], 0), lambda: total.take_grad(1))
    return found + in_turn(
        lambda: rows.apply_grad(tf.constant([0, 2], tf.int64), x[:2], [5, 3]),
        lambda: rows.apply_grad(tf.constant([2], tf.int64), x[2:3], [5, 3]),
        rows.num_accumulated,
        lambda: rows.take_grad(2),
    )


def taken(barrier: Any) -> list[Any]:
    """Two elements."""
    _, keys, values = barrier.take_many(2)
    return [keys, *values]


@case()
def barriers() -> list[Any]:
    x = given(3, 2)
    barrier = data_flow_ops.Barrier([tf.float32, tf.int32], [[2], []])
    keys = ["a", "b", "c"]
    return in_turn(
        lambda: barrier.insert_many(0, keys, x),
        barrier.incomplete_size,
        lambda: barrier.insert_many(1, keys[1:], [5, 6]),
        barrier.ready_size,
        lambda: taken(barrier),
        barrier.close,
    )


@case()
def staging() -> list[Any]:
    x = given(3, 2)
    area = data_flow_ops.StagingArea([tf.float32, tf.int32], [[2], []])
    found = in_turn(
        lambda: area.put([x[0], tf.constant(3)]),
        area.size,
        lambda: area.peek(0),
        area.get,
        lambda: area.put([x[1], tf.constant(4)]),
        area.clear,
        area.size,
    )
    keyed = data_flow_ops.MapStagingArea([tf.float32, tf.int32], [[2], []], ["a", "b"], ordered=True)
    key = tf.constant(7, tf.int64)
    return found + in_turn(
        lambda: keyed.put(key, {"a": x[2], "b": tf.constant(1)}),
        keyed.size,
        lambda: [keyed.get(key)[1]["a"]],
        keyed.size,
    )


@case()
def keyed_staging() -> list[Any]:
    x, keys = given(3, 2), [tf.constant(key, tf.int64) for key in (4, 2)]
    area = data_flow_ops.MapStagingArea([tf.float32, tf.int32], [[2], []], ["a", "b"])
    ordered = data_flow_ops.MapStagingArea([tf.float32], [[2]], ["a"], ordered=True)
    found = in_turn(
        lambda: area.put(keys[0], {"a": x[0]}),
        area.incomplete_size,
        lambda: area.put(keys[0], {"b": tf.constant(5)}),
        lambda: [area.peek(keys[0], ["a"])["a"]],
        lambda: [area.get()[1]["b"]],
        lambda: area.put(keys[1], {"a": x[1], "b": tf.constant(6)}),
        area.clear,
        area.size,
    )
    return found + in_turn(
        lambda: ordered.put(keys[0], {"a": x[0]}),
        lambda: ordered.put(keys[1], {"a": x[1]}),
        lambda: [ordered.peek(keys[1])["a"]],
        lambda: ordered.get()[0],
        ordered.clear,
        ordered.size,
    )


@case()
def more_lookup_tables() -> list[Any]:
    rows = raw.MutableHashTableOfTensorsV2(key_dtype=tf.string, value_dtype=tf.float32, value_shape=[2])
    older = tables.mutable_hash_table_of_tensors(tf.int64, tf.float32, value_shape=[2])
    x = given(3, 2)
    found = in_turn(
        lambda: raw.LookupTableInsertV2(table_handle=rows, keys=["a", "b"], values=x[:2]),
        lambda: raw.LookupTableImportV2(table_handle=rows, keys=["c", "d"], values=x[1:]),
        lambda: raw.LookupTableFindV2(table_handle=rows, keys=["d", "a"], default_value=[7.0, 8.0]),
        lambda: raw.LookupTableSizeV2(table_handle=rows),
    )
    found += in_turn(
        lambda: tables.lookup_table_insert(older, tf.constant([3, 1], tf.int64), x[:2]),
        lambda: tf.sort(tables.lookup_table_export(older, tf.int64, tf.float32)[0]),
        lambda: tables.lookup_table_find(older, tf.constant([1], tf.int64), [0.0, 0.0]),
    )
    return found


@case(resource=True)
def tensor_lists() -> list[Any]:
    x, shape = given(4, 3), tf.constant([3])
    items = raw.TensorListFromTensor(tensor=x, element_shape=shape)
    spread = raw.TensorListScatterV2(tensor=x, indices=[2, 0, 3, 1], element_shape=shape, num_elements=-1)
    parts = raw.TensorListSplit(tensor=x, element_shape=[-1, 3], lengths=tf.constant([1, 3], tf.int64))

    def stacked(each: Any, size: int) -> Any:
        return raw.TensorListStack(input_handle=each, element_shape=shape, element_dtype=tf.float32, num_elements=size)

    found = [stacked(spread, 4), stacked(raw.TensorListResize(input_handle=items, size=2), 2)]
    found += [raw.TensorListGather(input_handle=items, indices=[3, 0], element_shape=shape, element_dtype=tf.float32)]
    joined = raw.TensorListConcatV2(
        input_handle=parts, element_shape=[-1, 3], leading_dims=tf.zeros([0], tf.int64), element_dtype=tf.float32
    )
    pushed = raw.TensorListPushBack(input_handle=items, tensor=x[0])
    found += [*joined, raw.TensorListLength(input_handle=pushed), stacked(pushed, 5)]
    popped = raw.TensorListPopBack(input_handle=pushed, element_shape=shape, element_dtype=tf.float32)
    return [
        *found,
        popped[1],
        raw.TensorListGetItem(input_handle=items, index=2, element_shape=shape, element_dtype=tf.float32),
    ]


@case()
def critical_sections() -> list[Any]:
    x = given(2, 3)
    section = tf.CriticalSection()
    return [section.execute(lambda: x * 2), section.execute(lambda: x + 1)]


@case(resource=True)
def scattered_variables_resource() -> list[Any]:
    return scattered()


@case()
def scattered_variables() -> list[Any]:
    return scattered()


def scattered() -> list[Any]:
    v, x = (
        tf.get_variable("v", initializer=np.arange(1, 13, dtype=np.float32).reshape(4, 3)),
        given(2, 3, low=1, high=3),
    )
    names = ["scatter_update", "scatter_add", "scatter_sub", "scatter_mul", "scatter_div", "scatter_min", "scatter_max"]
    found = []
    last: list[Any] = []
    for name in [*names, "scatter_nd_update", "scatter_nd_add", "scatter_nd_sub"]:
        with tf.control_dependencies(last):
            changed = getattr(tf, name)(v, [[1], [3]] if "_nd_" in name else [0, 2], x)
        with tf.control_dependencies([changed]):
            last = [v.read_value() * 1.0]
        found += last
    with tf.control_dependencies(last):
        changed = v[1:3, ::2].assign(x[:, :2])
    with tf.control_dependencies([changed]):
        found.append(v.read_value() * 1.0)
    counter = tf.get_variable("counter", initializer=0)
    return [*found, tf.count_up_to(counter, 5), tf.gather_nd(v.read_value() * 0, [[1, 1]])]


@case()
def iterators() -> list[Any]:
    numbers = tf.data.Dataset.from_tensor_slices((np.arange(12, dtype=np.float32).reshape(4, 3), np.arange(4)))
    offset = given(1, 3)

    def further(x: Any, i: Any) -> Any:
        return tf.data.Dataset.from_tensors((x, i)).repeat(i)

    changed = numbers.map(lambda x, i: (x * 2 + offset[0], i), 2).filter(lambda x, i: tf.not_equal(i, 2))
    changed = changed.flat_map(further).batch(2).prefetch(1)
    begun = tf.data.make_initializable_iterator(changed)
    joined = (
        tf.data.Dataset.zip((tf.data.Dataset.range(5).skip(1), numbers.repeat()))
        .take(3)
        .concatenate(tf.data.Dataset.zip((tf.data.Dataset.range(9, 10), numbers)))
    )
    once = tf.data.make_one_shot_iterator(joined.batch(3, drop_remainder=False))
    found = in_turn(lambda: begun.initializer, begun.get_next, begun.get_next)
    return [*found, *in_turn(lambda: tf.nest.flatten(once.get_next()), lambda: tf.nest.flatten(once.get_next()))]


@case()
def checks() -> list[Any]:
    x = given(3, 4)
    with tf.control_dependencies(
        [tf.assert_equal(tf.shape(x)[1], 4), tf.assert_rank(x, 2), tf.Assert(tf.reduce_all(x < 2), [x])]
    ):
        y = tf.check_numerics(x, "x") + 1
    return [
        tf.ensure_shape(y, [3, 4]),
        tf.verify_tensor_all_finite(y, "y"),
        raw.CheckNumericsV2(tensor=y, message="y"),
        tf.is_non_decreasing(y[0]),
        tf.Print(y, [y[0, 0]], "y"),
    ]


@case()
def functions_of_python() -> list[Any]:
    x = given(3, 4)
    return [
        tf.map_fn(lambda row: row * tf.reduce_sum(row), x),
        tf.foldl(lambda a, row: a + row, x),
        tf.scan(lambda a, row: a * row, x),
        tf.foldr(lambda a, row: a - row, x),
    ]


# -- optimizers and models -----------------------------------------------------------------------------


def rows_trained(optimizer: Any) -> list[Any]:
    """A network whose table gets sparse gradients, and whose weights get dense ones."""
    ids, wanted = given(6, dtype=np.int32, name="ids", low=0, high=9), given(6, 2, name="wanted")
    table = tf.get_variable("table", initializer=np.linspace(-1, 1, 30, dtype=np.float32).reshape(10, 3))
    found = tf.matmul(tf.nn.embedding_lookup(table, ids), weights(3, 2))
    loss = tf.reduce_mean(tf.square(found - wanted), name="loss")
    optimizer.minimize(loss, tf.train.get_or_create_global_step(), name="train")
    return [found]


OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.05, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.5),
    "adagrad_da": lambda: tf.train.AdagradDAOptimizer(0.1, tf.train.get_or_create_global_step()),
    "centered_rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, centered=True),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "shrunk_ftrl": lambda: tf.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.1),
    "proximal_adagrad": lambda: tf.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01),
    "proximal_sgd": lambda: tf.train.ProximalGradientDescentOptimizer(0.1, l1_regularization_strength=0.01),
}


def declare_optimizers() -> None:
    """A case for each optimizer and kind of variable."""
    for name, make in OPTIMIZERS.items():
        for resource in (False, True):

            def build(make: Any = make) -> list[Any]:
                return rows_trained(make())

            build.__name__ = f"trained_rows_{name}" + ("_resource" if resource else "")
            case(resource=resource)(build)


declare_optimizers()


def pictures_classified(optimizer: Any) -> list[Any]:
    """A convnet with batch normalization that is updated as it trains."""
    x = given(8, 8, 8, 1)
    labels = tf.constant([0, 1, 2, 1, 0, 2, 1, 0])
    y = tf.nn.conv2d(x, weights(3, 3, 1, 4), [1, 1, 1, 1], "SAME")
    scale, offset = weights(4, name="scale"), weights(4, name="offset")
    y, mean, variance = tf.nn.fused_batch_norm(y, scale + 1, offset)
    for key, batch in (("mean", mean), ("variance", variance)):
        moving = tf.get_variable(f"moving_{key}", initializer=np.zeros(4, np.float32), trainable=False)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_sub(moving, 0.1 * (moving - batch)))
    y = tf.nn.max_pool(tf.nn.relu(y), 2, 2, "SAME")
    found = tf.matmul(tf.reshape(y, [-1, 64]), weights(64, 3, name="dense"))
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=found)
    loss = tf.add(tf.reduce_mean(loss), 1e-3 * tf.nn.l2_loss(scale), name="loss")
    step = tf.train.get_or_create_global_step()
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        gradients = optimizer(tf.train.exponential_decay(0.05, step, 5, 0.9)).compute_gradients(loss)
        clipped, _ = tf.clip_by_global_norm([gradient for gradient, _ in gradients], 1.0)
        pairs = [(gradient, variable) for gradient, (_, variable) in zip(clipped, gradients, strict=True)]
    return [found] if optimizer(0.05).apply_gradients(pairs, step, "train") is not None else []


@case()
def trained_convnet_momentum() -> list[Any]:
    return pictures_classified(lambda rate: tf.train.MomentumOptimizer(rate, 0.9))


@case(resource=True)
def trained_convnet_adam_resource() -> list[Any]:
    return pictures_classified(lambda rate: tf.train.AdamOptimizer(rate))


def parts_trained() -> list[Any]:
    """An embedding in parts."""
    ids, wanted = given(6, dtype=np.int32, name="ids", low=0, high=9), given(6, 2, name="wanted")
    held = np.linspace(-1, 1, 30, dtype=np.float32).reshape(10, 3)
    table = parts_of_table(held)
    found = tf.matmul(tf.nn.embedding_lookup(table, ids, partition_strategy="div"), weights(3, 2))
    loss = tf.reduce_mean(tf.square(found - wanted), name="loss")
    tf.train.AdamOptimizer(0.01).minimize(loss, name="train")
    return [found]


@case()
def trained_parts() -> list[Any]:
    return parts_trained()


@case(resource=True)
def trained_parts_resource() -> list[Any]:
    return parts_trained()


def sentences_learnt(cell: Any) -> list[Any]:
    """A recurrent network by dynamic_rnn, with lengths."""
    x = given(3, 5, 4)
    outputs, _ = tf.nn.dynamic_rnn(cell, x, tf.constant([5, 2, 4]), dtype=tf.float32)
    found = tf.matmul(outputs[:, -1], weights(6, 2, name="head"))
    loss = tf.reduce_mean(tf.square(found - x[:, 0, :2]) + tf.reduce_mean(outputs**2), name="loss")
    tf.train.AdamOptimizer(0.02).minimize(loss, name="train")
    return [found, outputs]


def constant_cell(kind: Any, **options: Any) -> Any:
    tf.get_variable_scope().set_initializer(tf.constant_initializer(0.1))
    return kind(6, **options)


@case(low_level=True)
def trained_lstm() -> list[Any]:
    return sentences_learnt(constant_cell(tf.nn.rnn_cell.LSTMCell, use_peepholes=True))


@case(resource=True)
def trained_lstm_resource() -> list[Any]:
    return sentences_learnt(constant_cell(tf.nn.rnn_cell.LSTMCell, num_proj=6))


@case(low_level=True)
def trained_gru() -> list[Any]:
    return sentences_learnt(constant_cell(tf.nn.rnn_cell.GRUCell))


@case(resource=True)
def trained_averages() -> list[Any]:
    found, loss = perceptron()
    stepped = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
    averages = tf.train.ExponentialMovingAverage(0.9)
    with tf.control_dependencies([stepped]):
        applied = averages.apply(tf.trainable_variables())
    tf.group(applied, name="train")
    return [found]


@case()
def trained_attention() -> list[Any]:
    x = given(2, 5, 4)
    query, key, value = (tf.tensordot(x, weights(4, 4, name=name), 1) for name in ("q", "k", "v"))
    scores = tf.matmul(query, key, transpose_b=True) / 2.0
    mask = tf.matrix_band_part(tf.ones([5, 5]), -1, 0)
    y = tf.matmul(tf.nn.softmax(scores + (1 - mask) * -1e9), value) + x
    mean, variance = tf.nn.moments(y, [-1], keepdims=True)
    y = tf.nn.batch_normalization(y, mean, variance, weights(4, name="beta"), weights(4, name="gamma") + 1, 1e-6)
    y = tf.einsum("bij,jk->bik", y * 0.5 * (1.0 + tf.erf(y / 1.414)), weights(4, 4, name="w"))
    loss = tf.reduce_mean(tf.square(y[:, :-1] - x[:, 1:]), name="loss")
    tf.train.AdamOptimizer(0.02).minimize(loss, name="train")
    return [y]


if __name__ == "__main__":
    main(sys.argv[1:])
