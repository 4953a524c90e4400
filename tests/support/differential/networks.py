"""Calls of random programs: networks, images, losses, state and control flow."""

from __future__ import annotations

from tests.support.differential.arguments import (
    Row,
    array,
    boxes,
    convolved,
    dtype,
    dtype_of,
    ids,
    labels_and_logits,
    like,
    makers,
    named,
    padding,
    pair,
    picture,
    pooled,
    predictions,
    rows_of_variable,
    sequence,
    shape_of,
    some,
    sparse,
    transposed,
    words,
)
from tests.support.differential.calls import FLOATS, NUMBERS

ROWS: list[tuple[str, Row]] = [
    # Networks
    ("nn.conv1d", lambda p: [*convolved(p, 1), p.small(1, 3), padding(p)]),
    (
        "nn.conv2d",
        lambda p: [
            *convolved(p, 2),
            named(
                strides=[1, p.small(1, 3), p.small(1, 3), 1],
                padding=p.choose(["SAME", "VALID", [[0, 0], [1, 0], [0, 2], [0, 0]]]),
            ),
        ],
    ),
    ("nn.conv3d", lambda p: [*convolved(p, 3), [1, *[p.small(1, 3)] * 3, 1], padding(p)]),
    ("nn.conv1d_transpose", lambda p: transposed(p, 1)),
    ("nn.conv2d_transpose", lambda p: transposed(p, 2)),
    ("nn.conv3d_transpose", lambda p: transposed(p, 3)),
    ("nn.atrous_conv2d", lambda p: [*convolved(p, 2), p.small(1, 3), padding(p)]),
    ("nn.convolution", lambda p: [*convolved(p, p.small(1, 4)), padding(p)]),
    (
        "nn.separable_conv2d",
        lambda p: [
            picture(p),
            array(p, "float32", [2, 2, 3, m := p.small(1, 3)]),
            array(p, "float32", [1, 1, 3 * m, 2]),
            [1, s := p.small(1, 3), s, 1],
            padding(p),
        ],
    ),
    (
        "nn.depthwise_conv2d",
        lambda p: [
            picture(p),
            array(p, "float32", [2, 2, 3, 2]),
            [1, 1, 1, 1],
            padding(p),
            named(rate=p.choose([None, [1, 1], [2, 2]])),
        ],
    ),
    (
        "nn.dilation2d",
        lambda p: [
            picture(p),
            array(p, "float32", [2, 2, 3]),
            [1, p.small(1, 3), 1, 1],
            [1, 1, p.small(1, 3), 1],
            padding(p),
        ],
    ),
    ("nn.erosion2d", lambda p: [picture(p), array(p, "float32", [2, 2, 3]), [1, 1, 1, 1], [1, 1, 1, 1], padding(p)]),
    ("nn.max_pool3d nn.avg_pool3d", lambda p: pooled(p, 3)),
    ("nn.max_pool1d nn.avg_pool1d", lambda p: pooled(p, 1, scalar=True)),
    ("nn.max_pool2d nn.avg_pool2d nn.max_pool_v2 nn.avg_pool_v2", lambda p: pooled(p, 2)),
    ("nn.max_pool_with_argmax", lambda p: [picture(p), [1, 2, 2, 1], [1, p.small(1, 3), 1, 1], padding(p)]),
    (
        "nn.pool",
        lambda p: [
            picture(p),
            [2, 2],
            p.choose(["MAX", "AVG"]),
            padding(p),
            named(dilation_rate=p.choose([None, [1, 1], [2, 1]])),
        ],
    ),
    ("nn.lrn", lambda p: [picture(p), named(depth_radius=p.small(0, 4), bias=p.choose([1, 2.0]))]),
    (
        "nn.moments",
        lambda p: [
            x := some(p, "f", least=1, full=True),
            list(range(p.small(0, len(shape_of(x))) + 1)),
            named(keep_dims=p.chance(0.4)),
        ],
    ),
    ("nn.weighted_moments", lambda p: [x := some(p, "f", rank=2, full=True), [0], like(p, x, low=0.1)]),
    ("nn.sufficient_statistics", lambda p: [some(p, "f", rank=2, full=True), [p.small(0, 2)], p.choose([None, 0.5])]),
    (
        "nn.batch_normalization",
        lambda p: [x := some(p, "f", rank=2, full=True), v := like(p, x, shape_of(x)[-1:], 0.1), v, v, v, 0.001],
    ),
    ("snippet.normalized", lambda p: [picture(p), p.chance(0.5)]),
    (
        "nn.xw_plus_b nn.relu_layer",
        lambda p: [x := some(p, "f", rank=2), like(p, x, [shape_of(x)[1], 3]), like(p, x, [3])],
    ),
    ("nn.dropout", lambda p: [some(p, "f"), named(rate=0.0)]),
    ("nn.l2_normalize", lambda p: [x := some(p, "f", full=True), p.axes(len(shape_of(x)))]),
    (
        "nn.softmax nn.log_softmax",
        lambda p: [x := some(p, "f", least=1, full=True), named(axis=p.axis(len(shape_of(x))))],
    ),
    (
        "nn.sigmoid_cross_entropy_with_logits nn.softmax_cross_entropy_with_logits_v2",
        lambda p: [named(**dict(zip(["labels", "logits"], labels_and_logits(p), strict=True)))],
    ),
    ("nn.weighted_cross_entropy_with_logits", lambda p: [*labels_and_logits(p), p.choose([0.5, 2])]),
    ("nn.log_poisson_loss", lambda p: [*labels_and_logits(p), p.chance(0.5)]),
    (
        "nn.embedding_lookup",
        lambda p: [
            [array(p, "float32", [3, 2]), array(p, "float32", [3, 2])],
            ids(p, [4], 0, 6),
            p.choose(["mod", "div"]),
            named(max_norm=p.choose([None, 0.5])),
        ],
    ),
    (
        "nn.embedding_lookup_sparse",
        lambda p: [
            array(p, "float32", [5, 2]),
            sparse(p, ("int64",), shape=[3, 4]),
            None,
            named(combiner=p.choose(["mean", "sum", "sqrtn"])),
        ],
    ),
    (
        "nn.safe_embedding_lookup_sparse",
        lambda p: [
            array(p, "float32", [5, 2]),
            sparse(p, ("int64",), shape=[3, 4]),
            named(combiner=p.choose(["mean", "sum", "sqrtn"]), default_id=p.choose([None, 2])),
        ],
    ),
    ("nn.in_top_k", lambda p: [array(p, "float32", [3, 4]), ids(p, [3], 0, 4), p.small(1, 4)]),
    ("nn.ctc_greedy_decoder", lambda p: [*sequence(p), p.chance(0.5)]),
    (
        "nn.ctc_loss",
        lambda p: [
            {"sparse": [2, 2], "of": "int32", "seed": p.small(0, 99), "share": 1.0, "low": 0, "high": 4},
            array(p, "float32", [6, 2, 5]),
            [6, 5],
        ],
    ),
    ("nn.bias_add", lambda p: [picture(p), array(p, "float32", [3]), named(data_format=p.choose(["NHWC", None]))]),
    (
        "nn.fractional_max_pool nn.fractional_avg_pool",
        lambda p: [
            array(p, "float32", [1, 6, 6, 1]),
            [1.0, 1.4, 1.7, 1.0],
            named(deterministic=True, seed=3, seed2=5, overlapping=p.chance(0.5)),
        ],
    ),
    (
        "nn.conv2d_backprop_input",
        lambda p: [
            [2, 4, 4, 3],
            array(p, "float32", [2, 2, 3, 2]),
            array(p, "float32", [2, 4, 4, 2]),
            named(strides=[1, 1, 1, 1], padding="SAME"),
        ],
    ),
    (
        "nn.conv2d_backprop_filter",
        lambda p: [
            array(p, "float32", [2, 4, 4, 3]),
            [2, 2, 3, 2],
            array(p, "float32", [2, 4, 4, 2]),
            named(strides=[1, 1, 1, 1], padding="SAME"),
        ],
    ),
    (
        "nn.depthwise_conv2d_native",
        lambda p: [
            picture(p),
            array(p, "float32", [2, 2, 3, 2]),
            named(strides=[1, s := p.small(1, 3), s, 1], padding=padding(p)),
        ],
    ),
    (
        "nn.ctc_beam_search_decoder",
        lambda p: [*sequence(p), named(beam_width=100, top_paths=p.small(1, 3), merge_repeated=p.chance(0.5))],
    ),
    ("nn.collapse_repeated", lambda p: [ids(p, [2, 5], 0, 3), [5, 3]]),
    ("nn.depth_to_space nn.space_to_depth", lambda p: [array(p, p.choose(NUMBERS), [1, 4, 4, 8]), 2]),
    (
        "nn.normalize_moments",
        lambda p: [4.0, array(p, "float32", [3], 1, 2), array(p, "float32", [3], 3, 6), p.choose([None, 0.5])],
    ),
    # Images
    (
        "image.rgb_to_grayscale image.rgb_to_hsv image.hsv_to_rgb image.rgb_to_yiq image.yiq_to_rgb image.rgb_to_yuv "
        "image.yuv_to_rgb",
        lambda p: [picture(p, p.small(3, 5))],
    ),
    (
        "image.adjust_brightness image.adjust_hue image.adjust_saturation image.adjust_contrast",
        lambda p: [picture(p, p.small(3, 5), dtype=p.choose(["float32", "uint8"])), p.choose([0.1, 0.5])],
    ),
    ("image.adjust_gamma", lambda p: [picture(p), 1.7, 0.9]),
    ("image.grayscale_to_rgb", lambda p: [picture(p, p.small(3, 5), 1)]),
    (
        "image.flip_left_right image.flip_up_down image.transpose_image image.rot90",
        lambda p: [picture(p, p.small(3, 5), dtype=p.choose(["float32", "uint8"]))],
    ),
    ("image.rot90", lambda p: [picture(p, p.small(3, 5)), p.small(0, 5)]),
    ("image.per_image_standardization", lambda p: [picture(p, p.small(3, 5), dtype=p.choose(["float32", "uint8"]))]),
    ("image.total_variation image.sobel_edges image.image_gradients", lambda p: [picture(p)]),
    ("image.central_crop", lambda p: [picture(p, p.small(3, 5)), p.choose([0.5, 1.0, 0.3])]),
    (
        "image.convert_image_dtype",
        lambda p: [
            picture(p, dtype=p.choose(["float32", "uint8"])),
            dtype(p, "uint8", "float32", "float64", "int16"),
            p.chance(0.5),
        ],
    ),
    ("image.crop_to_bounding_box", lambda p: [picture(p), p.small(0, 2), 0, 1, 2]),
    ("image.pad_to_bounding_box", lambda p: [picture(p, p.small(3, 5)), p.small(0, 3), 1, 9, 8]),
    ("image.resize_image_with_crop_or_pad", lambda p: [picture(p, p.small(3, 5)), p.small(1, 9), p.small(1, 9)]),
    ("image.resize_image_with_pad", lambda p: [picture(p), p.small(1, 9), p.small(1, 9)]),
    (
        "image.resize_images",
        lambda p: [
            picture(p, p.small(3, 5), dtype=p.choose(["float32", "uint8"])),
            [p.small(1, 8), p.small(1, 8)],
            p.small(0, 4),
            named(align_corners=p.chance(0.5), preserve_aspect_ratio=p.chance(0.3)),
        ],
    ),
    (
        "image.resize_area image.resize_bicubic image.resize_bilinear image.resize_nearest_neighbor",
        lambda p: [picture(p, dtype=p.choose(["float32", "uint8"])), [p.small(1, 8), p.small(1, 8)], p.chance(0.5)],
    ),
    (
        "image.crop_and_resize",
        lambda p: [
            picture(p),
            boxes(p, 2),
            [0, 0],
            [p.small(1, 5), 3],
            named(method=p.choose(["bilinear", "nearest"]), extrapolation_value=0.5),
        ],
    ),
    (
        "image.extract_glimpse",
        lambda p: [array(p, "float32", [2, 7, 8, 1]), [p.small(1, 4), 2], [[0.1, 0.2], [0.0, -0.3]]],
    ),
    (
        "image.non_max_suppression",
        lambda p: [boxes(p, n := p.small(1, 6)), array(p, "float32", [n], 0, 1), p.small(1, 4), p.choose([0.1, 0.5])],
    ),
    (
        "image.non_max_suppression_with_scores",
        lambda p: [
            boxes(p, n := p.small(1, 6)),
            array(p, "float32", [n], 0, 1),
            3,
            named(soft_nms_sigma=p.choose([0.0, 0.5])),
        ],
    ),
    (
        "image.draw_bounding_boxes",
        lambda p: [array(p, "float32", [1, 6, 6, 3], 0, 1), {"values": [boxes(p, 2)["values"]]}],
    ),
    ("image.psnr", lambda p: [x := picture(p), like(p, x, low=0.0, high=1.0), 1.0]),
    ("image.ssim", lambda p: [x := array(p, "float32", [1, 12, 12, 2], 0, 1), like(p, x, low=0.0, high=1.0), 1.0]),
    # Losses
    (
        "losses.absolute_difference losses.mean_squared_error losses.huber_loss losses.log_loss losses.hinge_loss",
        lambda p: [
            *predictions(p),
            named(reduction=p.choose(["none", "weighted_sum", "weighted_mean", "weighted_sum_by_nonzero_weights"])),
        ],
    ),
    (
        "losses.absolute_difference losses.mean_squared_error losses.huber_loss",
        lambda p: [
            x := array(p, "float32", [2, 3]),
            like(p, x),
            array(p, "float32", p.choose([[], [2, 1], [2, 3], [2], [1, 3]]), 0, 2),
        ],
    ),
    (
        "losses.sigmoid_cross_entropy",
        lambda p: [*predictions(p), named(label_smoothing=p.choose([0, 0.1]))],
    ),
    ("losses.sparse_softmax_cross_entropy", lambda p: [ids(p, [3], 0, 4), array(p, "float32", [3, 4])]),
    ("losses.cosine_distance", lambda p: [*predictions(p), named(axis=p.choose([0, -1]))]),
    ("losses.mean_pairwise_squared_error", lambda p: [x := array(p, "float32", [2, 3]), like(p, x)]),
    ("losses.compute_weighted_loss", lambda p: [array(p, "float32", [2, 3]), p.choose([1.0, 0.0, 2.0])]),
    (
        "nn.depthwise_conv2d_backprop_input",
        lambda p: [
            [2, 4, 4, 3],
            array(p, "float32", [2, 2, 3, 2]),
            array(p, "float32", [2, 4, 4, 6]),
            [1, 1, 1, 1],
            "SAME",
        ],
    ),
    (
        "nn.atrous_conv2d_transpose",
        lambda p: [array(p, "float32", [1, 4, 4, 2]), array(p, "float32", [2, 2, 3, 2]), [1, 4, 4, 3], 2, "SAME"],
    ),
    ("nn.ctc_unique_labels", lambda p: [ids(p, [2, 4], 0, 3)]),
    (
        "nn.ctc_loss_v2",
        lambda p: [
            ids(p, [2, 3], 1, 5),
            array(p, "float32", [7, 2, 5]),
            [2, 3],
            [7, p.small(6, 8)],
            named(blank_index=0),
        ],
    ),
    ("image.extract_patches", lambda p: [picture(p), [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], padding(p)]),
    (
        "image.non_max_suppression_overlaps",
        lambda p: [array(p, "float32", [4, 4], 0, 1), array(p, "float32", [4], 0, 1), p.small(1, 5), 0.5],
    ),
    (
        "losses.softmax_cross_entropy",
        lambda p: [array(p, "float32", [3, 4], 0, 1), array(p, "float32", [3, 4]), p.choose([1.0, 0.5])],
    ),
    (
        "snippet.measured",
        lambda p: [
            p.choose(["mean_iou", "mean_per_class_accuracy"]),
            [ids(p, [6], 0, 3), ids(p, [6], 0, 3), 3],
            {},
        ],
    ),
    (
        "snippet.measured",
        lambda p: [
            p.choose(["true_positives", "false_negatives"]),
            [array(p, "bool", [5]), array(p, "bool", [5])],
            {"weights": p.choose([None, 0.5])},
        ],
    ),
    (
        "snippet.measured",
        lambda p: [
            p.choose(
                [
                    "precision_at_thresholds",
                    "recall_at_thresholds",
                    "true_positives_at_thresholds",
                    "false_negatives_at_thresholds",
                    "true_negatives_at_thresholds",
                    "false_positives_at_thresholds",
                ]
            ),
            [array(p, "bool", [5]), array(p, "float32", [5], 0, 1), [0.2, 0.6]],
            {},
        ],
    ),
    (
        "snippet.measured",
        lambda p: [
            p.choose(["sensitivity_at_specificity", "specificity_at_sensitivity"]),
            [array(p, "bool", [6]), array(p, "float32", [6], 0, 1), 0.5],
            {},
        ],
    ),
    (
        "snippet.measured",
        lambda p: [
            p.choose(["precision_at_k", "recall_at_k", "average_precision_at_k"]),
            [ids(p, [3, 1], 0, 4, "int64"), array(p, "float32", [3, 4]), p.small(1, 4)],
            {},
        ],
    ),
    ("snippet.measured", lambda p: ["percentage_below", [array(p, "float32", [5]), 0.3], {}]),
    ("snippet.measured", lambda p: ["mean_tensor", [some(p, "g", full=True)], {}]),
    (
        "snippet.measured",
        lambda p: ["mean_cosine_distance", [array(p, "float32", [2, 3]), array(p, "float32", [2, 3]), 1], {}],
    ),
    (
        "snippet.of_shape",
        lambda p: [
            p.choose(["nn.uniform_candidate_sampler", "nn.log_uniform_candidate_sampler"]),
            [ids(p, [2, 1], 0, 5, "int64"), 1, p.small(1, 4), p.chance(0.5), 10],
            {},
        ],
    ),
    (
        "snippet.of_shape",
        lambda p: [
            p.choose(["image.random_brightness", "image.random_hue"]),
            [picture(p, 3), 0.2],
            {},
        ],
    ),
    (
        "snippet.of_shape",
        lambda p: [
            p.choose(["image.random_contrast", "image.random_saturation"]),
            [picture(p, 3, dtype=p.choose(["float32", "uint8"])), 0.2, p.choose([0.5, 0.1])],
            {},
        ],
    ),
    # State and control flow
    ("snippet.variable_in_loop", lambda p: [some(p, "f"), 1.5, p.small(0, 4)]),
    ("snippet.variable_in_cond", lambda p: [some(p, "b"), some(p, "f")]),
    (
        "snippet.updated",
        lambda p: [
            p.choose(["scatter_add", "scatter_sub", "scatter_mul", "scatter_max", "scatter_min", "scatter_update"]),
            *rows_of_variable(p),
        ],
    ),
    (
        "snippet.updated",
        lambda p: [
            p.choose(["scatter_nd_add", "scatter_nd_sub", "scatter_nd_update"]),
            (r := rows_of_variable(p))[0],
            r[1],
            [[i] for i in r[2]],
            r[3],
        ],
    ),
    (
        "snippet.assigned",
        lambda p: [
            p.choose(["assign", "assign_add", "assign_sub"]),
            2,
            array(p, p.choose(NUMBERS), p.choose([[], [2]])),
        ],
    ),
    (
        "snippet.assigned",
        lambda p: [p.choose(["assign", "assign_add", "assign_sub"]), [1, 2], array(p, p.choose(NUMBERS), [2])],
    ),
    ("snippet.slice_assigned", lambda p: [array(p, p.choose(FLOATS), [5]), p.small(0, 3), p.small(2, 6)]),
    (
        "snippet.array_of_rows",
        lambda p: [
            some(p, "f", least=2, full=True),
            p.choose(["loop", "grows", "gather", "split", "scatter", "concat"]),
        ],
    ),
    ("snippet.nested_loops", lambda p: [some(p, "f"), p.small(0, 4), p.small(0, 3)]),
    ("snippet.gradient_in_loop", lambda p: [some(p, "f"), p.small(0, 4)]),
    ("snippet.loop_with_shapes", lambda p: [some(p, "f", least=1), p.small(0, 4), p.choose([None, 2])]),
    (
        "snippet.second_gradients",
        lambda p: [
            p.choose(
                [
                    "tanh",
                    "sigmoid",
                    "exp",
                    "sin",
                    "square",
                    "nn.softplus",
                    "nn.elu",
                    "nn.selu",
                    "nn.relu",
                    "log1p",
                    "sqrt",
                    "atan",
                    "erf",
                    "reduce_logsumexp",
                    "nn.softmax",
                    "nn.log_softmax",
                    "reduce_prod",
                    "reduce_max",
                    "cumsum",
                    "nn.l2_normalize",
                    "asinh",
                    "cosh",
                    "reciprocal",
                    "rsqrt",
                    "lgamma",
                    "nn.softsign",
                    "reduce_mean",
                    "cumprod",
                    "nn.leaky_relu",
                    "tan",
                    "digamma",
                ]
            ),
            array(p, "float64", [2, 3], 0.2, 1.4),
        ],
    ),
    (
        "snippet.second_gradients_of_two",
        lambda p: [
            p.choose(["multiply", "divide", "maximum", "pow", "squared_difference", "atan2", "div_no_nan", "subtract"]),
            array(p, "float64", [2, 3], 0.2, 2),
            array(p, "float64", p.choose([[2, 3], [3], [2, 1], []]), 0.2, 2),
        ],
    ),
    ("snippet.second_gradients_of_two", lambda p: ["matmul", *pair(p, "f", rank=2)]),
    ("snippet.hessian", lambda p: [array(p, p.choose(FLOATS), [p.small(1, 4)])]),
    ("snippet.gradient_options", lambda p: [some(p, "f"), some(p, "f"), p.choose(["NONE", "ZERO"]), p.chance(0.5)]),
    ("snippet.custom", lambda p: [some(p, "f"), 3.0]),
    ("snippet.several_cases", lambda p: [some(p, "f", full=True), p.chance(0.5)]),
    ("snippet.switched", lambda p: [p.small(-1, 5), some(p, "f")]),
    ("snippet.scanned", lambda p: [some(p, "f", least=1, full=True), 0.5, p.chance(0.5)]),
    ("snippet.mapped_pairs", lambda p: [x := some(p, "f", least=1, full=True), array(p, dtype_of(x), shape_of(x)[:1])]),
    ("snippet.queued", lambda p: [some(p, "a", full=True), "FIFOQueue"]),
    (
        "snippet.optimized",
        lambda p: [
            *p.choose(
                [
                    ["GradientDescentOptimizer", [0.1]],
                    ["MomentumOptimizer", [0.1, 0.9]],
                    ["AdamOptimizer", [0.1]],
                    ["AdagradOptimizer", [0.1]],
                    ["RMSPropOptimizer", [0.1]],
                    ["AdadeltaOptimizer", [0.5]],
                    ["FtrlOptimizer", [0.1]],
                    ["ProximalGradientDescentOptimizer", [0.1, 0.01, 0.01]],
                ]
            ),
            [0.5, -1.0, 2.0],
            p.small(1, 4),
        ],
    ),
    (
        "snippet.measured",
        lambda p: [
            p.choose(["accuracy", "recall", "precision", "auc", "false_positives", "true_negatives"]),
            [array(p, "bool", [5]), ids(p, [5], 0, 2)],
            {},
        ],
    ),
    (
        "snippet.measured",
        lambda p: [
            p.choose(["mean_squared_error", "root_mean_squared_error", "mean_absolute_error"]),
            predictions(p),
            {},
        ],
    ),
    ("snippet.measured", lambda p: ["mean", [some(p, "f", full=True)], {}]),
    ("snippet.looked_up", lambda p: [words(p), p.small(-1, 3)]),
    (
        "snippet.parted",
        lambda p: [x := some(p, "f", least=1, full=True), [p.small(0, 3) for _ in range(shape_of(x)[0])], 3],
    ),
    ("snippet.pipeline", lambda p: [some(p, "f"), p.small(1, 5), p.chance(0.5), p.small(1, 3), p.small(0, 3)]),
    ("snippet.python_function", lambda p: [some(p, "n")]),
    ("snippet.defaulted", lambda p: [x := some(p, "f"), [p.choose([None, n]) for n in shape_of(x)]]),
    ("snippet.clipped_together", lambda p: [*pair(p, "f"), p.choose([0.5, 5.0])]),
    ("snippet.called", lambda p: [some(p, "f")]),
]

NETWORK_MAKERS = makers(ROWS)
