"""Calls with tensors without elements, made alike by tfray and by TensorFlow (see `golden_cases`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.cases.golden_cases import Case, F, I

NONE = I(0, high=1)
"""No indices."""


def _images(*channels: int) -> Any:
    return F(0, 4, 4, *channels)


def _no_ids(tf: Any) -> Any:
    """Ids of two examples that have none."""
    return tf.SparseTensor(np.zeros((0, 2), np.int64), np.zeros(0, np.int64), [2, 3])


def _no_values(tf: Any, x: Any) -> Any:
    return tf.SparseTensor(np.zeros((0, 2), np.int64), x, [2, 3])


def _strings(tf: Any) -> Any:
    return tf.constant([], tf.string)


_CALLS: dict[str, tuple[Any, ...]] = {
    # shapes
    "concat": (lambda tf, x, y: tf.concat([x, y], 0), F(0, 3), F(2, 3)),
    "stack": (lambda tf, x, y: tf.stack([x, y]), F(0), F(0)),
    "unstack": (lambda tf, x: tf.unstack(x), F(3, 0)),
    "split": (lambda tf, x: tf.split(x, [0, 4]), F(4)),
    "split along another axis": (lambda tf, x: tf.split(x, 2, 1), F(0, 4)),
    "gather": (lambda tf, x, i: tf.gather(x, i), F(3, 2), NONE),
    "gather of no rows": (lambda tf, x, i: tf.gather(x, i), F(0, 2), NONE),
    "gather_nd": (lambda tf, x, i: tf.gather_nd(x, i), F(3, 2), I(0, 2, high=1)),
    "gather_nd by no coordinates": (lambda tf, x, i: tf.gather_nd(x, i), F(3, 2), I(2, 0, high=1)),
    "scatter_nd": (lambda tf, x, i: tf.scatter_nd(i, x, [3]), F(0), I(0, 1, high=1)),
    "one_hot": (lambda tf, i: tf.one_hot(i, 3), NONE),
    "one_hot of no classes": (lambda tf, i: tf.one_hot(i, 0), I(2, high=1)),
    "where": (lambda tf, x: [tf.where(x > 0), tf.where(x > 0, x, x)], F(0)),
    "boolean_mask": (lambda tf, x: tf.boolean_mask(x, x[:, 0] > 0), F(0, 2)),
    "tile": (lambda tf, x: tf.tile(x, [0]), F(2)),
    "pad": (lambda tf, x: tf.pad(x, [[1, 1], [0, 0]]), F(0, 2)),
    "slices": (lambda tf, x: [x[3:], x[2:1], tf.slice(x, [1], [0])], F(3)),
    "reverse": (lambda tf, x: tf.reverse(x, [0]), F(0, 2)),
    "reverse_sequence": (lambda tf, x, i: tf.reverse_sequence(x, i, seq_axis=1), F(0, 3), NONE),
    "transpose": (lambda tf, x: tf.transpose(x), F(0, 2)),
    "squeeze": (lambda tf, x: tf.squeeze(x), F(1, 0)),
    "reshape": (lambda tf, x: [tf.reshape(x, [0, 7]), tf.reshape(x, [-1, 2]), tf.reshape(x, [3, -1])], F(0, 3)),
    "broadcast_to": (lambda tf, x: tf.broadcast_to(x, [3, 0]), F(1, 0)),
    "roll": (lambda tf, x: tf.roll(x, 1, 0), F(0)),
    "meshgrid": (lambda tf, x, y: tf.meshgrid(x, y), F(0), F(2)),
    "constants": (
        lambda tf: [tf.constant(0, shape=[0]), tf.constant([1, 2], shape=[2, 0]), tf.constant(3, tf.int64, [0])],
    ),
    "makers": (lambda tf: [tf.range(3, 3), tf.eye(0), tf.fill([0, 2], 1), tf.zeros([0]), tf.diag(tf.zeros([0]))],),
    "bands": (lambda tf, x: [tf.matrix_diag_part(x), tf.matrix_band_part(x, 1, 0), tf.matrix_diag(x)], F(2, 0)),
    # sums, choices and orders
    "reductions": (
        lambda tf, x: [
            function(x, 0) for function in (tf.reduce_sum, tf.reduce_prod, tf.reduce_max, tf.reduce_min, tf.reduce_mean)
        ],
        F(0, 3),
    ),
    "reductions of flags": (lambda tf, x: [tf.reduce_all(x > 0, 0), tf.reduce_any(x > 0)], F(0, 3)),
    "reduce_logsumexp": (lambda tf, x: tf.reduce_logsumexp(x, 0), F(0, 3)),
    "cumsum": (lambda tf, x: [tf.cumsum(x, 1), tf.cumprod(x)], F(0, 3)),
    "argmax": (lambda tf, x: tf.argmax(x, 1), F(0, 3)),
    "sort": (lambda tf, x: [tf.sort(x), tf.argsort(x)], F(0, 2)),
    "top_k": (lambda tf, x: tf.nn.top_k(x, 2), F(0, 3)),
    "top_k of none": (lambda tf, x: tf.nn.top_k(x, 0), F(3, 2)),
    "in_top_k": (lambda tf, x, i: tf.nn.in_top_k(x, i, 1), F(0, 3), NONE),
    "unique": (lambda tf, i: [*tf.unique_with_counts(i)], NONE),
    "counts": (lambda tf, i: [tf.bincount(i), tf.confusion_matrix(i, i, 2), tf.sequence_mask(i, 3)], NONE),
    "segments": (
        lambda tf, x, i: [tf.segment_sum(x, i), tf.segment_mean(x, i), tf.unsorted_segment_max(x, i, 3)],
        F(0, 2),
        NONE,
    ),
    "segments of rows": (
        lambda tf, x, i: [
            tf.sparse_segment_sum(x, i, i),
            tf.sparse_segment_mean(x, i, i),
            tf.sparse_segment_sqrt_n(x, i, i, num_segments=2),
        ],
        F(3, 2),
        NONE,
    ),
    "dynamic_partition": (lambda tf, x, i: tf.dynamic_partition(x, i, 2), F(0, 2), NONE),
    # matrices
    "matmul": (lambda tf, x, y: tf.matmul(x, y), F(2, 0), F(0, 3)),
    "matmul of no rows": (lambda tf, x, y: tf.matmul(x, y), F(0, 3), F(3, 2)),
    "matmul of no matrices": (lambda tf, x, y: tf.matmul(x, y), F(0, 2, 3), F(0, 3, 2)),
    "tensordot": (lambda tf, x, y: tf.tensordot(x, y, 1), F(0, 3), F(3, 2)),
    "einsum": (lambda tf, x, y: tf.einsum("ij,jk->ik", x, y), F(0, 3), F(3, 2)),
    "inverse": (lambda tf, x: [tf.matrix_inverse(x), tf.matrix_determinant(x), tf.cholesky(x)], F(0, 2, 2)),
    "inverse of 0 x 0": (lambda tf, x: [tf.matrix_inverse(x), tf.matrix_determinant(x), tf.cholesky(x)], F(0, 0)),
    "matrix_solve": (lambda tf, x, y: tf.matrix_solve(x, y), F(0, 0), F(0, 2)),
    "matrix_solve of no sides, singular": (lambda tf, x, y: tf.matrix_solve(x * 0, y), F(2, 2), F(2, 0)),
    "matrix_triangular_solve": (lambda tf, x, y: tf.matrix_triangular_solve(x, y), F(0, 2, 2), F(0, 2, 3)),
    "qr": (lambda tf, x: tf.qr(x), F(0, 2, 2)),
    # networks
    "softmax": (lambda tf, x: [tf.nn.softmax(x), tf.nn.log_softmax(x)], F(3, 0)),
    "cross entropy": (lambda tf, x: tf.nn.softmax_cross_entropy_with_logits_v2(labels=x, logits=x), F(0, 3)),
    "sparse cross entropy": (
        lambda tf, x, i: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=i, logits=x),
        F(0, 3),
        NONE,
    ),
    "moments": (lambda tf, x: tf.nn.moments(x, [1]), F(0, 3)),
    "norms": (lambda tf, x: [tf.nn.l2_loss(x), tf.nn.l2_normalize(x, 0)], F(0, 3)),
    "bias_add": (lambda tf, x, b: tf.nn.bias_add(x, b), F(0, 3), F(3)),
    "conv2d": (lambda tf, x, w: tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), _images(1), F(2, 2, 1, 3)),
    "conv2d to no channels": (
        lambda tf, x, w: tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"),
        F(1, 4, 4, 1),
        F(2, 2, 1, 0),
    ),
    "pooling": (
        lambda tf, x: [pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME") for pool in (tf.nn.max_pool, tf.nn.avg_pool)],
        _images(1),
    ),
    "embedding_lookup": (lambda tf, x, i: tf.nn.embedding_lookup(x, i), F(3, 2), NONE),
    **{
        f"embedding_lookup_sparse, {combiner}": (
            lambda tf, x, c=combiner: tf.nn.embedding_lookup_sparse(x, _no_ids(tf), None, combiner=c),
            F(3, 2),
        )
        for combiner in ("sum", "mean", "sqrtn")
    },
    "safe_embedding_lookup_sparse": (
        lambda tf, x: tf.nn.safe_embedding_lookup_sparse([x], _no_ids(tf), default_id=1),
        F(3, 2),
    ),
    "losses": (lambda tf, x: [tf.losses.mean_squared_error(x, x), tf.losses.softmax_cross_entropy(x, x)], F(0, 3)),
    "clipping": (lambda tf, x: [tf.clip_by_norm(x, 1.0), tf.clip_by_global_norm([x], 1.0)[1]], F(0)),
    # images and signals
    "blocks": (lambda tf, x: [tf.space_to_depth(x, 2), tf.space_to_batch_nd(x, [2, 2], [[0, 0], [0, 0]])], _images(1)),
    "resizing": (
        lambda tf, x: [
            resize(x, [2, 2])
            for resize in (
                tf.image.resize_bilinear,
                tf.image.resize_bicubic,
                tf.image.resize_nearest_neighbor,
            )
        ],
        _images(1),
    ),
    "crop_and_resize": (lambda tf, x, b, i: tf.image.crop_and_resize(x, b, i, [2, 2]), F(1, 4, 4, 1), F(0, 4), NONE),
    "colours": (lambda tf, x: [tf.image.adjust_hue(x, 0.1), tf.image.adjust_contrast(x, 0.1)], _images(3)),
    "boxes": (lambda tf, b, s: tf.image.non_max_suppression(b, s, 3), F(0, 4), F(0)),
    "frames": (lambda tf, x: tf.signal.frame(x, 4, 2), F(3)),
    "frames of nothing": (lambda tf, x: tf.signal.frame(x, 4, 2), F(0)),
    # strings, sparse tensors and functions of elements
    "strings": (
        lambda tf: [
            tf.string_to_number(_strings(tf)),
            tf.decode_raw(_strings(tf), tf.uint8),
            tf.string_split(_strings(tf)).dense_shape,
            tf.strings.length(tf.reduce_join(_strings(tf), 0)),
        ],
    ),
    "decode_raw": (lambda tf: tf.decode_raw("", tf.uint8),),
    "sparse_tensor_to_dense": (lambda tf, x: tf.sparse_tensor_to_dense(_no_values(tf, x)), F(0)),
    "sparse_tensor_dense_matmul": (
        lambda tf, x, y: tf.sparse_tensor_dense_matmul(_no_values(tf, x), y),
        F(0),
        F(3, 2),
    ),
    "sparse_reduce_sum": (lambda tf, x: tf.sparse_reduce_sum(_no_values(tf, x), 1), F(0)),
    "sparse_fill_empty_rows": (lambda tf, x: tf.sparse_fill_empty_rows(_no_values(tf, x), 1.0)[0].values, F(0)),
    "map_fn": (lambda tf, x: tf.map_fn(lambda row: row * 2, x), F(0, 3)),
    "foldl": (lambda tf, x, a: tf.foldl(lambda total, row: total + row, x, a), F(0, 3), F(3)),
    "scan": (lambda tf, x, a: tf.scan(lambda total, row: total + row, x, a), F(0, 3), F(3)),
}

_WITHOUT_GRADIENT = frozenset({"gather_nd by no coordinates", "colours"})
"""Where TensorFlow has no gradient, or cannot compute it."""


def _case(name: str, call: Callable[..., Any], *inputs: Any) -> Case:
    return Case(f"nothing: {name}", call, inputs, gradient=name not in _WITHOUT_GRADIENT)


EMPTY_CASES = [_case(name, *call) for name, call in _CALLS.items()]
