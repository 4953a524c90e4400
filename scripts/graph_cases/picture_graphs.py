"""Pictures, sounds, layers and embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from graph_cases.declaring import case, given, parts_of, parts_of_table, sparse, weights

raw = tf.raw_ops
linalg, signal, image = tf.linalg, tf.signal, tf.image


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
