"""A case for each family of operations that most programs use."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from graph_cases.declaring import case, given, weights

# -- families of operations ----------------------------------------------------------------------------


@case()
def arithmetic() -> list[Any]:
    x, y = given(3, 4), given(3, 4, name="y", low=0.5, high=2)
    found = [x + y, x - y, x * y, x / y, x // y, x % y, tf.pow(y, x), tf.maximum(x, y), tf.minimum(x, y), -x]
    found += [tf.squared_difference(x, y), tf.truncatediv(tf.cast(y * 9, tf.int32), 2), tf.add_n([x, y, x])]
    return [*found, tf.div_no_nan(x, y), tf.math.xlogy(y, y), tf.div(x, y), tf.atan2(x, y)]


@case()
def elementwise() -> list[Any]:
    x = given(3, 4, low=0.1, high=0.9)
    names = "abs exp log log1p expm1 sqrt rsqrt square sin cos tan asin acos atan sinh cosh tanh sigmoid sign floor"
    names += " ceil rint round reciprocal lgamma digamma erf erfc asinh atanh is_finite is_nan"
    return [getattr(tf, name)(x) for name in names.split()] + [tf.nn.softplus(x), tf.nn.softsign(x)]


@case()
def comparisons() -> list[Any]:
    x, y = given(3, 4), given(3, 4, name="y")
    both = tf.logical_and(x > 0, y > 0)
    found = [x > y, x < y, x >= y, x <= y, tf.equal(x, x), tf.not_equal(x, y), both, tf.logical_not(both)]
    return [
        *found,
        tf.logical_or(x > 0, y > 0),
        tf.where(x > y, x, y),
        tf.where_v2(x[:, :1] > 0, x, y),
        tf.where(x > 0),
    ]


@case()
def reductions() -> list[Any]:
    x = given(3, 4, 5)
    kinds = (tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min, tf.reduce_prod)
    found = [kind(x, axis, keepdims=keep) for kind in kinds for axis, keep in ((None, False), ([1], True), (-1, False))]
    found += [
        tf.reduce_all(x > 0, 1),
        tf.reduce_any(x > 0),
        tf.reduce_logsumexp(x, 2),
        tf.argmax(x, 1),
        tf.argmin(x, 2),
    ]
    return [*found, tf.cumsum(x, 1), tf.cumprod(x, 2, exclusive=True, reverse=True)]


@case()
def shapes() -> list[Any]:
    x = given(4, 6)
    found = [tf.shape(x), tf.size(x), tf.rank(x), tf.reshape(x, [-1, 3]), tf.transpose(x), tf.expand_dims(x, 1)]
    found += [tf.squeeze(x[:, None, :]), tf.squeeze(x[:, None], [1]), tf.tile(x, [2, 1]), tf.pad(x, [[1, 0], [0, 2]])]
    found += [tf.pad(x, [[1, 1], [1, 1]], "REFLECT"), tf.pad(x, [[1, 0], [0, 1]], constant_values=3.0)]
    found += [tf.stack([x, x], 1), tf.unstack(x, 6, 1)[2], tf.fill([2, 3], 7.0), tf.zeros_like(x), tf.ones_like(x)]
    found += [tf.range(2, 9, 3), tf.linspace(0.0, 1.0, 5), tf.one_hot([1, 3], 4), tf.broadcast_to(x[:1], [3, 6])]
    return [*found, tf.reverse(x, [1]), tf.roll(x, [1, -2], [0, 1]), tf.space_to_depth(tf.reshape(x, [1, 4, 6, 1]), 2)]


@case()
def slices() -> list[Any]:
    x, n = given(5, 6, 3), tf.placeholder_with_default(2, [], name="n")
    found = [x[1], x[:, 2:5], x[..., -1], x[::-1], x[1:4:2, ::2], x[:, None, 1], x[n], x[:n], x[1:n, n:, 0]]
    found += [tf.slice(x, [0, 1, 0], [-1, 2, 3]), tf.strided_slice(x, [0, 1], [5, -1], [2, 2]), tf.shape(x)[0]]
    found += [tf.gather(x, [0, 2]), tf.gather(x, [[1], [0]], axis=1), tf.gather_nd(x, [[0, 1], [2, 3]])]
    return [*found, tf.gather(x, n, axis=n), tf.batch_gather(x[:, :, 0], tf.zeros([5, 2], tf.int32))]


@case()
def joins() -> list[Any]:
    x, n = given(4, 6), tf.placeholder_with_default(1, [], name="n")
    found = [tf.concat([x, x * 2], 0), tf.concat([x, x], -1), tf.concat([x, x], n), *tf.split(x, 3, 1)]
    found += [*tf.split(x, [1, 3, 2], 1), tf.dynamic_stitch([[0, 2], [1]], [x[:2], x[2:3]])]
    return [
        *found,
        *tf.dynamic_partition(x, [0, 1, 0, 1], 2),
        tf.matrix_band_part(x, 1, 0),
        *tf.meshgrid([1, 2], [3, 4, 5]),
    ]


@case()
def scatters() -> list[Any]:
    x = given(4, 3)
    found = [tf.scatter_nd([[1], [3]], x[:2], [5, 3]), tf.tensor_scatter_update(x, [[0], [2]], x[2:])]
    found += [tf.tensor_scatter_add(x, [[0], [2]], x[2:]), tf.unsorted_segment_sum(x, [1, 0, 1, 2], 3)]
    found += [tf.segment_sum(x, [0, 0, 1, 1]), tf.segment_mean(x, [0, 0, 1, 1]), tf.segment_max(x, [0, 1, 1, 2])]
    found += [
        *tf.unique([3, 1, 3, 2]),
        tf.invert_permutation([2, 0, 1]),
        tf.sparse_segment_sum(x, [0, 2, 3], [0, 0, 1]),
    ]
    return [*found, tf.unsorted_segment_max(x, [1, 0, 1, 2], 3), tf.histogram_fixed_width(x, [-1.0, 1.0], 4)]


@case()
def matrices() -> list[Any]:
    x = given(3, 4, 4)
    square = tf.matmul(x, x, transpose_b=True) + tf.eye(4)
    found = [square, tf.matmul(x[0], x[1], transpose_a=True), tf.matrix_inverse(square), tf.cholesky(square)]
    found += [tf.matrix_determinant(square), tf.matrix_solve(square, x), tf.trace(x), tf.matrix_transpose(x)]
    found += [
        tf.tensordot(x, x, [[1], [2]]),
        tf.einsum("bij,bkj->bik", x, x),
        tf.matrix_diag(x[0]),
        tf.matrix_diag_part(x),
    ]
    return [*found, tf.norm(x), tf.matrix_triangular_solve(tf.cholesky(square), x), tf.matrix_set_diag(x, x[:, 0])]


@case()
def casts() -> list[Any]:
    x = given(3, 4, low=0, high=9)
    kinds = (tf.int32, tf.int64, tf.float64, tf.float16, tf.bool, tf.uint8, tf.complex64)
    found = [tf.cast(x, kind) for kind in kinds] + [tf.bitcast(x, tf.int32), tf.saturate_cast(x * 100, tf.uint8)]
    z = tf.complex(x, x)
    return [*found, tf.real(z), tf.imag(z), tf.conj(z), tf.abs(z), tf.angle(z), tf.fft(z), tf.spectral.rfft(x)]


@case()
def activations() -> list[Any]:
    x = given(3, 5)
    found = [tf.nn.relu(x), tf.nn.relu6(x * 9), tf.nn.elu(x), tf.nn.selu(x), tf.nn.leaky_relu(x), tf.nn.crelu(x)]
    found += [tf.nn.softmax(x), tf.nn.log_softmax(x), tf.nn.l2_normalize(x, 1), tf.nn.l2_loss(x), tf.nn.swish(x)]
    return [*found, *tf.nn.top_k(x, 2), tf.nn.in_top_k(x, [0, 1, 2], 2), tf.nn.bias_add(x, tf.range(5.0))]


@case()
def losses() -> list[Any]:
    x, labels = given(4, 5), tf.constant([0, 2, 1, 4])
    dense = tf.one_hot(labels, 5)
    found = [tf.nn.softmax_cross_entropy_with_logits_v2(labels=dense, logits=x)]
    found += [tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)]
    found += [tf.nn.sigmoid_cross_entropy_with_logits(labels=dense, logits=x), tf.losses.huber_loss(dense, x)]
    return [*found, tf.losses.mean_squared_error(dense, x), tf.nn.weighted_cross_entropy_with_logits(dense, x, 2.0)]


@case()
def convolutions() -> list[Any]:
    x, kernel = given(2, 9, 8, 3), weights(3, 3, 3, 4)
    found = [tf.nn.conv2d(x, kernel, [1, 1, 1, 1], "SAME"), tf.nn.conv2d(x, kernel, [1, 2, 2, 1], "VALID")]
    found += [tf.nn.depthwise_conv2d(x, weights(3, 3, 3, 2, name="d"), [1, 1, 1, 1], "SAME")]
    found += [tf.nn.conv2d_transpose(x, weights(3, 3, 5, 3, name="t"), [2, 18, 16, 5], [1, 2, 2, 1], "SAME")]
    found += [tf.nn.conv1d(x[:, 0], weights(3, 3, 4, name="o"), 1, "SAME"), tf.nn.atrous_conv2d(x, kernel, 2, "SAME")]
    return [*found, tf.nn.conv3d(x[:, None], weights(1, 3, 3, 3, 2, name="c"), [1] * 5, "SAME")]


@case()
def pooling() -> list[Any]:
    x = given(2, 8, 8, 3)
    window, strides = [1, 2, 3, 1], [1, 2, 2, 1]
    found = [pool(x, window, strides, kind) for pool in (tf.nn.max_pool, tf.nn.avg_pool) for kind in ("SAME", "VALID")]
    return [*found, tf.nn.lrn(x), tf.nn.max_pool3d(x[:, None], [1, 1, 2, 2, 1], [1, 1, 2, 2, 1], "SAME")]


@case()
def images() -> list[Any]:
    x = given(2, 6, 8, 3, low=0, high=1)
    found = [tf.image.resize_bilinear(x, [4, 5]), tf.image.resize_nearest_neighbor(x, [9, 9])]
    found += [tf.image.resize_bilinear(x, [4, 5], align_corners=True), tf.image.resize_bicubic(x, [7, 7])]
    found += [
        tf.image.adjust_contrast(x, 1.5),
        tf.image.rgb_to_hsv(x),
        tf.image.hsv_to_rgb(x),
        tf.image.resize_area(x, [3, 4]),
    ]
    found += [tf.image.crop_and_resize(x, [[0.1, 0.2, 0.8, 0.9]], [1], [3, 3]), tf.image.adjust_hue(x, 0.1)]
    return [
        *found,
        tf.image.flip_left_right(x),
        tf.image.extract_image_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1] * 4, "VALID"),
    ]


@case()
def strings() -> list[Any]:
    text = tf.constant(["a b", "cde", "12"])
    found = [tf.string_join([text, text], "-"), tf.strings.length(text), tf.string_to_number(text[2])]
    found += [tf.string_to_hash_bucket_fast(text, 10), tf.strings.substr(text, 0, 2), tf.as_string(tf.constant([1, 2]))]
    found += [
        tf.regex_replace(text, "[a-c]", "z"),
        tf.decode_raw(tf.constant(["abcd"]), tf.uint8),
        tf.strings.upper(text),
    ]
    return [*found, tf.string_split(text).values, tf.strings.strip(text), tf.reduce_join(text, 0)]


@case()
def sparse() -> list[Any]:
    x = given(3, 4)
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([0, 2, 1], tf.int64), [2, 2])
    matrix = tf.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 3])
    found = [
        tf.sparse_tensor_dense_matmul(matrix, x),
        tf.sparse_tensor_to_dense(matrix),
        tf.sparse_reorder(matrix).values,
    ]
    return [*found, tf.sparse_to_dense([1, 3], [5], [7.0, 8.0]), tf.nn.embedding_lookup_sparse(x, ids, None)]


@case()
def normalisation() -> list[Any]:
    x = given(4, 5, 5, 3)
    fused = tf.nn.fused_batch_norm(x, [1.0, 2, 3], [0.0, 1, 2])[0]
    mean, variance = tf.nn.moments(x, [0, 1, 2])
    still = tf.nn.fused_batch_norm(x, [1.0, 2, 3], [0.0, 1, 2], [0.1] * 3, [1.1] * 3, is_training=False)[0]
    return [fused, still, mean, variance, tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3)]


@case()
def quantised() -> list[Any]:
    x = given(3, 4)
    return [tf.fake_quant_with_min_max_args(x, -1, 1), tf.quantization.quantize_and_dequantize(x, -1.0, 1.0)]


# -- gradients as operations ---------------------------------------------------------------------------


@case()
def gradients_of_arithmetic() -> list[Any]:
    x, y = given(3, 4, low=0.2, high=0.9), given(3, 1, name="y", low=0.5, high=1)
    total = tf.sqrt(x) * y + tf.rsqrt(x + 1) / y - tf.tanh(x) ** 2 + tf.sigmoid(x) + tf.log(x) + tf.exp(y) + tf.sin(x)
    total += tf.nn.softplus(x) + tf.reciprocal(x + 2) + tf.maximum(x, y) + tf.abs(x - y) + tf.nn.elu(x) + tf.erf(x)
    return [*tf.gradients(total, [x, y]), *tf.hessians(tf.reduce_sum(x[0] ** 3), [x])]


@case()
def gradients_of_arrays() -> list[Any]:
    x = given(4, 6)
    parts = tf.split(x, 2, 1)
    total = tf.reduce_sum(tf.concat([parts[0], parts[1] ** 2], 0)) + tf.reduce_sum(x[1:3, ::2] ** 2)
    total += tf.reduce_sum(tf.gather(x, [0, 2, 2]) ** 2) + tf.reduce_max(tf.pad(x, [[1, 1], [0, 0]]) * 3)
    total += tf.reduce_sum(tf.transpose(tf.tile(x, [2, 1])) ** 3) + tf.reduce_mean(tf.stack(tf.unstack(x, 6, 1)) ** 2)
    return tf.gradients(total + tf.reduce_prod(tf.expand_dims(x[0], 0)) + tf.reduce_sum(tf.cumsum(x) ** 2), [x])


@case()
def gradients_of_layers() -> list[Any]:
    x, kernel = given(2, 8, 8, 3), weights(3, 3, 3, 4)
    y = tf.nn.relu(tf.nn.conv2d(x, kernel, [1, 1, 1, 1], "SAME"))
    y = tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    y = tf.nn.fused_batch_norm(y, [1.0] * 4, [0.0] * 4)[0]
    y = tf.nn.avg_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    y = tf.nn.depthwise_conv2d(y, weights(2, 2, 4, 1, name="d"), [1, 1, 1, 1], "SAME")
    return tf.gradients(tf.nn.l2_loss(tf.nn.bias_add(y, tf.ones([4]))), [x, kernel])
