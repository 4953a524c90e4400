"""Elementwise operations, arrays, linear algebra and signals."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from graph_cases.declaring import case, given, sparse

raw = tf.raw_ops
linalg, signal, image = tf.linalg, tf.signal, tf.image


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
