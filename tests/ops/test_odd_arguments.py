"""Arguments that programs seldom give: empty lists, fractions for integers, tensors of other shapes and dtypes.

What is expected was given by TensorFlow 2.21.
"""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run

IDS = [[1, 2, 3], [2, 3, 4]]
"""Labels of two examples."""


def fed(value, dtype="float32", shape=None):
    """A tensor whose shape and value only a step knows."""
    return tf.placeholder_with_default(np.asarray(value, dtype), shape)


def ids_of(values, columns=2):
    return tf.SparseTensor([[0, i] for i in range(len(values))], tf.constant(values, tf.int64), [1, columns])


def ctc(labels, lengths, steps=(7, 7)):
    return tf.nn.ctc_loss_v2(labels, tf.ones([7, 2, 5]), lengths, steps, blank_index=0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tf.reduce_sum(fed(0.0), [[0], [1]]), "at most rank 1 but is rank 2"),
        (lambda: tf.nn.top_k(1.0), "at least rank 1 but is rank 0"),
        (lambda: tf.segment_sum(1.0, [0]), "at least rank 1 but is rank 0"),
        (lambda: tf.sparse_segment_sum(1.0, [0], [0]), "at least rank 1 but is rank 0"),
        (lambda: tf.nn.bias_add([1.0], [1.0]), "at least rank 2 but is rank 1"),
        (lambda: tf.nn.softmax(1.0), "at least rank 1 but is rank 0"),
        (lambda: tf.matrix_diag_part([1.0]), "at least rank 2 but is rank 1"),
        (lambda: tf.matrix_inverse([1.0]), "at least rank 2 but is rank 1"),
        (lambda: tf.signal.overlap_and_add([1.0], 1), "at least rank 2 but is rank 1"),
    ],
)
def test_ranks_are_refused_in_tensorflows_words(call, words):
    with pytest.raises(ValueError, match=f"Shape must be {words}"):
        call()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: ctc(IDS, [1, 2, 3]), ValueError),
        (lambda: ctc(IDS, [1.0, 2.0]), TypeError),
        (lambda: ctc(np.ones([2, 3], np.float32), [1, 2]), TypeError),
        (lambda: tf.parallel_stack([]), ValueError),
        (lambda: tf.add_n("xy"), TypeError),
        (lambda: tf.add_n([]), ValueError),
        (lambda: tf.add_n(5), TypeError),
        (lambda: tf.tuple([]), ValueError),
        (lambda: tf.tuple([None, None]), ValueError),
        (lambda: tf.einsum("i.j", tf.ones([2, 2])), ValueError),
        (lambda: tf.shape_n([]), ValueError),
        (lambda: tf.decode_csv(["1,2"], []), ValueError),
        (lambda: tf.decode_csv(["1,2"], np.zeros(2)), TypeError),
        (lambda: tf.image.decode_png("", "1"), TypeError),
        (lambda: tf.image.adjust_hue(tf.ones([3, 3], tf.int32), 0.1), ValueError),
        (lambda: tf.image.adjust_saturation(tf.ones([3]), 0.1), ValueError),
        (lambda: tf.image.adjust_contrast(tf.ones([2, 2, 3]), tf.constant(1)), TypeError),
        (lambda: tf.image.adjust_contrast(tf.ones([2, 2, 3]), [1.0]), ValueError),
        (lambda: tf.image.grayscale_to_rgb([1.0]), ValueError),
        (lambda: tf.image.resize_images(tf.ones([4, 2, 3]), 100, preserve_aspect_ratio=True), ValueError),
        (lambda: tf.unravel_index(tf.ones([2, 3], tf.int32), [2, 3]), ValueError),
        (lambda: tf.histogram_fixed_width([1.0], [0.0, 2.0], 0), ValueError),
        (lambda: tf.histogram_fixed_width([1.0], [0.0, 2.0], None), ValueError),
        (lambda: tf.histogram_fixed_width([1.0], [0.0, 2.0], [3]), ValueError),
        (lambda: tf.histogram_fixed_width_bins([1.0], [0.0, 2.0], -5), ValueError),
        (lambda: tf.linspace(100, 3.0, 1), TypeError),
        (lambda: tf.linspace(1.0, tf.constant(3, tf.float64), 2), ValueError),
        (lambda: tf.linspace(1.0, 3.0, [2]), ValueError),
        (lambda: tf.linspace(1.0, 3.0, 1.5), TypeError),
        (lambda: tf.tensordot(tf.ones([2, 3]), tf.ones([3, 2]), 1.0), TypeError),
        (lambda: tf.tensordot(tf.ones([2, 3]), tf.ones([3, 2]), [[1.5], [0]]), TypeError),
        (lambda: tf.sequence_mask([1, 3], -1), ValueError),
        (lambda: tf.sequence_mask([1, 3], tf.constant(True)), TypeError),
        (lambda: tf.nn.lrn(tf.ones([1, 2, 2, 3]), -1), ValueError),
        (lambda: tf.sparse.to_indicator(ids_of([1]), 1.5), TypeError),
        (lambda: tf.sparse.to_indicator(ids_of([1]), tf.constant([3])), ValueError),
        (lambda: tf.sparse.merge([ids_of([1])], ids_of([1]), 9), TypeError),
        (lambda: tf.sparse.merge([ids_of([1])], ids_of([1]), [1.5]), TypeError),
        (lambda: tf.sparse.transpose(ids_of([1]), [1, 2]), ValueError),
        (lambda: tf.sparse.transpose(ids_of([1]), 1), TypeError),
        (lambda: tf.sparse.expand_dims(ids_of([1]), 1.5), TypeError),
        (lambda: tf.sparse.concat(1.5, [ids_of([1]), ids_of([1])]), TypeError),
        (lambda: tf.sparse.reduce_max_sparse(ids_of([1]), tf.constant([0], tf.int64)), TypeError),
        (lambda: tf.losses.cosine_distance(tf.ones([2, 3]), tf.ones([2, 3]), axis=[0]), ValueError),
        (lambda: tf.strings.unicode_transcode(["a"], tf.constant(1), "UTF-8"), TypeError),
        (lambda: tf.strings.reduce_join([["a"]], tf.zeros([2, 3], tf.int32)), ValueError),
        (lambda: tf.strings.unsorted_segment_join(["a"], [0], -1), ValueError),
        (lambda: tf.nn.pool(tf.ones([1, 3, 3, 1]), [2, 2], "MAX", "VALID", 1.5), TypeError),
        (lambda: tf.nn.pool(tf.ones([1, 3, 3, 1]), [2, 2], "MAX", "VALID", []), ValueError),
        (lambda: tf.repeat([1.0, 2.0], 2.0), TypeError),
        (lambda: tf.repeat([1.0, 2.0], 2, axis=0.0), TypeError),
        (lambda: tf.repeat([1.0, 2.0], [[1], [2]]), ValueError),
        (lambda: tf.quantization.quantize_and_dequantize([1.0], -1.0, [1.0], range_given=True), ValueError),
        (lambda: tf.signal.hann_window(3, []), ValueError),
        (lambda: tf.signal.hamming_window(3, None), ValueError),
        (lambda: tf.signal.fftshift([1.0, 2.0], [[0]]), ValueError),
        (lambda: tf.signal.rfft([[1.0, 2.0]], fed([True], "bool", [1])), TypeError),
        (lambda: tf.signal.stft(tf.ones([9]), 4, 2, fed([4], "int32", [1])), ValueError),
        (lambda: tf.roll([1.0, 2.0], 1, fed([[0]], "int32", [1, 1])), ValueError),
        (lambda: tf.reverse_sequence(tf.ones([3, 4]), [1, 2, 3], seq_axis=-1), ValueError),
        (lambda: tf.reverse_sequence(tf.ones([3, 4]), [1, 2, 3], seq_axis=1, batch_axis=[]), TypeError),
        (lambda: tf.linalg.tridiagonal_matmul(tf.ones([2, 3, 4]), tf.ones([4, 2])), ValueError),
        (lambda: tf.pad([1.0], [[0, 1]], constant_values=[1.0]), ValueError),
        (lambda: tf.while_loop(lambda i: i < 9, lambda i: i + 1, [0], maximum_iterations=True), TypeError),
        (lambda: tf.math.reduce_std([1, 2], 1), ValueError),
        (lambda: tf.data.Dataset.range(3).batch(2, drop_remainder=tf.constant(1.0)), ValueError),
        (lambda: tf.data.Dataset.range(3).repeat(tf.constant(1.0)), ValueError),
        (lambda: tf.parallel_stack(fed(1, shape=[])), ValueError),
        (lambda: tf.strings.unicode_transcode(["a"], None, "UTF-8"), TypeError),
        (lambda: tf.nn.in_top_k(tf.ones([1, 3]), [0], [[1], [2]]), ValueError),
        (lambda: tf.decode_raw(["a"], None), ValueError),
        (lambda: tf.eye(2, dtype=None), TypeError),
        (lambda: tf.nn.atrous_conv2d(tf.ones([1, 3, 3, 1]), tf.ones([1, 1, 1, 1]), None, "SAME"), TypeError),
        (lambda: tf.nn.pool(tf.ones([1, 3, 3, 1]), [[1], [2]], "MAX", "VALID"), TypeError),
        (lambda: tf.sparse.concat(1, fed([True], "bool")), TypeError),
        (lambda: tf.sparse.reshape(ids_of([1]), fed([], "int64", [0])), ValueError),
        (lambda: tf.slice([1, 2, 3], [0], -1), ValueError),
        (lambda: tf.bincount([1, 2], maxlength=-1), ValueError),
        (lambda: tf.space_to_batch(tf.ones([1, 4, 4, 2]), [[0, 0], [0, 0]], None), TypeError),
        (lambda: tf.parallel_stack(fed([], shape=[0])), ValueError),
        (lambda: tf.clip_by_average_norm([1.0], tf.constant(1)), TypeError),
        (lambda: tf.tensordot(tf.ones([2, 3]), tf.ones([3, 2]), tf.constant([1, 0])), ValueError),
        (lambda: tf.tensordot(tf.ones([2, 3]), tf.ones([3, 2]), tf.constant(1, tf.int64)), ValueError),
        (lambda: tf.sparse_matmul(tf.ones([2, 3]), tf.ones([2, 3, 4])), ValueError),
        (lambda: tf.sparse_to_dense([0], [2], [1.0], default_value=None), ValueError),
        (lambda: tf.nn.conv1d(tf.ones([1, 4, 1]), tf.ones([1, 1, 1]), [[1], [2]], "SAME"), ValueError),
        (lambda: tf.nn.conv1d_transpose(tf.ones([1, 4, 1]), tf.ones([1, 1, 1]), 1.5, 1), TypeError),
        (lambda: tf.nn.atrous_conv2d(tf.ones([1, 3, 3, 1]), tf.ones([1, 1, 1, 1]), 2, fed(1)), ValueError),
        (lambda: tf.nn.ctc_loss_v2(IDS, tf.ones([7, 2, 5]), [1, 2], [7, 7], blank_index=[]), TypeError),
        (lambda: tf.image.rot90(tf.ones([2, 3, 1]), 1.5), TypeError),
        (lambda: tf.image.rot90(tf.ones([2, 3, 1]), fed(1, "int64", [])), ValueError),
        (lambda: tf.image.non_max_suppression([[0.0, 0.0, 1.0, 1.0]], [0.5], 1.5), TypeError),
        (lambda: tf.data.Dataset.range(3).batch(2, drop_remainder=tf.constant([True])), ValueError),
        (lambda: tf.signal.fftshift([1.0, 2.0], fed([0.0])), TypeError),
        (lambda: tf.gather(tf.ones([2, 3]), [0], axis=1, batch_dims=[]), TypeError),
        (lambda: tf.gather_nd(tf.ones([2, 3]), [[0]], batch_dims=[]), TypeError),
        (lambda: tf.data.Dataset.range(3).batch(-1, drop_remainder=True), ValueError),
        (lambda: tf.repeat([[1.0]], [1, 2, 3], axis=1), ValueError),
        (lambda: tf.repeat([[1.0]], [], axis=1), ValueError),
        (lambda: tf.repeat(tf.ones([0]), -1, axis=0), ValueError),
        (lambda: tf.divide(tf.constant([1]), tf.constant([2.0], tf.float64)), TypeError),
    ],
)
def test_arguments_that_are_refused_when_the_graph_is_built(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.image.adjust_hue(fed([[1, 1, 1]]), 0.1),
        lambda: tf.image.adjust_saturation(fed([1, 1, 1]), 0.1),
        lambda: tf.unravel_index(fed([[1]], "int32"), [2, 3]),
        lambda: tf.sequence_mask([1, 3], fed(-1, "int32", [])),
        lambda: tf.pad([1.0], [[0, 1]], constant_values=fed([2.0])),
        lambda: tf.searchsorted(fed([[1, 2], [3, 4]]), fed([1])),
        lambda: tf.sequence_mask([1, 3], fed(-0.3, shape=[])),
        lambda: tf.sparse_segment_mean(tf.ones([3, 4]), [0, 1], [0, 0], num_segments=fed(-1, "int32", [])),
    ],
)
def test_arguments_that_are_refused_when_a_step_runs(call):
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(call())


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: tf.add_n("x"), b"x"),
        (lambda: tf.add_n(np.ones([2, 3])), [2, 2, 2]),
        (lambda: tf.strings.format("{}", tf.ones([1, 0, 2])), b"[\n\n ...]"),
        (lambda: tf.strings.format("{}", tf.ones([0, 2])), b"[]"),
        (lambda: tf.strings.format("{}", tf.ones([3]), summarize=0), b"[ ...]"),
        (lambda: tf.sequence_mask([1, 3], 3.5, tf.int32), [[1, 0, 0, 0], [1, 1, 1, 0]]),
        (lambda: tf.sequence_mask([1.5, 3.0], 3, tf.int32), [[1, 0, 0], [1, 1, 1]]),
        (lambda: tf.sequence_mask([1.5, 3.0], fed(3.5, shape=[]), tf.int32), [[1, 1, 0, 0], [1, 1, 1, 0]]),
        (lambda: tf.linspace(1, 3, 3), [1, 2, 3]),
        (lambda: tf.linspace(1.0, 3.0, 0), []),
        (lambda: tf.bitwise.right_shift(tf.constant([8, -8]), [-1, 100]), [8, -1]),
        (lambda: tf.bitwise.left_shift(tf.constant([9, 9], tf.uint8), [8, 7]), [128, 128]),
        (lambda: tf.signal.fftshift([1.0, 2.0, 3.0], []), [1, 2, 3]),
        (lambda: tf.broadcast_dynamic_shape(fed([2], "int64", [None]), [1]), [2]),
        (lambda: tf.one_hot([], 3, axis=1), np.zeros([0, 3]).tolist()),
        (lambda: tf.one_hot([1], 3, "x", ""), [[b"", b"x", b""]]),
        (lambda: tf.searchsorted([[1, 3, 5, 7]], [1, 4, 9]), [0, 2, 4]),
        (lambda: tf.searchsorted([1, 2, 3], [[2, 6, 5]], side="right"), [[2, 3, 3]]),
        (lambda: tf.gather_nd(tf.ones([1, 2, 3]), tf.zeros([1, 2, 1], tf.int32), batch_dims=1.5), [[[1] * 3] * 2]),
        (lambda: tf.sparse.retain(ids_of([4, 5, 6], 3), [0, 1, 2]).values, [5, 6]),
        (lambda: tf.image.convert_image_dtype(tf.constant([0, 255], tf.uint8), tf.float32, fed([1.0])), [0, 1]),
        (lambda: tf.nn.embedding_lookup(np.float32([[3, 4]]), [0], max_norm=fed(5, "int64", [])), [[3, 4]]),
        (lambda: tf.nn.embedding_lookup(np.float32([[3, 4]]), [0], max_norm=-1), [[0, 0]]),
        (lambda: tf.clip_by_norm([3.0, 4.0], -1), [0, 0]),
        (lambda: tf.while_loop(lambda i: i < 9, lambda i: i + 1, [0], maximum_iterations=1.5), 2),
        (lambda: tf.while_loop(lambda i: i < 9, lambda i: i + 1, [0], maximum_iterations=fed(2, "int64", [])), 2),
        (lambda: tf.repeat(7, 2, axis=0), [7, 7]),
        (lambda: tf.stack(fed([1, 2])), [1, 2]),
        (lambda: tf.strings.to_hash_bucket(["a"], 1.5), [0]),
        (lambda: tf.random.stateless_truncated_normal([0], [1, 2], dtype=None), []),
        (lambda: tf.strided_slice([1, 2, 3], [1], [2], begin_mask=1.5), [1, 2]),
        (lambda: tf.required_space_to_batch_paddings([4, 5], [])[0], np.zeros([0, 2]).tolist()),
        (lambda: tf.gather(tf.range(3), [1], axis=0, batch_dims=None), [1]),
        (lambda: tf.signal.fftshift([1.0, 2.0, 3.0], fed([-1], "int32", [None])), [3, 1, 2]),
        (lambda: tf.abs(tf.signal.stft(tf.zeros([6]), 4, 4, fft_length=1.5)), [[0]]),
        (lambda: tf.reduce_all([]), True),
        (lambda: tf.shape(tf.nn.ctc_beam_search_decoder(tf.ones([2, 1, 3]), [2], 9, 1.5)[1]), [1, 1]),
        (lambda: tf.quantization.quantize_and_dequantize([0.0], -1.0, 1.0, num_bits=None, range_given=True), [0]),
        (lambda: tf.nn.embedding_lookup(np.float32([[3, 4]]), [0], max_norm=fed([-1, 5])), [[0, 4]]),
        (lambda: tf.signal.hamming_window(1, [1, 2]), [1]),
        (lambda: tf.strings.as_string(5, width=1.5), b"5"),
        (lambda: tf.strings.as_string(5.5, precision=1.5), b"5.5"),
        (lambda: tf.signal.linear_to_mel_weight_matrix(1, 2, fed(200, "int32", []), 0.0, 100.0), [[0], [0]]),
        (lambda: tf.shape(tf.image.extract_glimpse(tf.ones([1, 2, 2, 1]), [0, 2], [[0.0, 0.0]])), [1, 0, 2, 1]),
        (lambda: tf.repeat([1, 2], [2], axis=0), [1, 1, 2, 2]),
        (lambda: tf.strings.as_string(["x ", "Ab,C"], precision=2, width=3), [b" x ", b" Ab"]),
        (lambda: tf.sequence_mask(fed([1.5, -2.0]), dtype=tf.int32), [[1, 1], [0, 0]]),
        (lambda: tf.clip_by_norm([[4.0]], fed([1, 2], "int64", [None]), axes=1), [[1, 2]]),
    ],
)
def test_arguments_that_are_taken(call, expected):
    found = run(call())
    assert (found if isinstance(found, bytes) else found.tolist()) == expected


def test_lengths_of_labels_and_examples_may_be_of_any_integers():
    losses = [ctc(np.asarray(IDS, np.int64), [2, 3], steps) for steps in ([7, 7], tf.constant([7, 7], tf.int64))]
    np.testing.assert_allclose(run(losses), [[6.429784, 5.918958]] * 2, rtol=1e-5)


@pytest.mark.parametrize("matrix", [[[-1.0]], [[4.0, 0.0], [1.0, -1.0]]])
def test_a_real_matrix_without_a_real_square_root_has_none(matrix):
    found = run(tf.matrix_square_root(tf.constant([matrix, np.eye(len(matrix))], tf.float32)))
    assert np.isnan(found[0]).all()
    assert found[1].tolist() == np.eye(len(matrix)).tolist()


def test_what_is_repeated_never_and_nothing_repeated_have_a_size_of_0():
    x = tf.placeholder(tf.float32, [None, 3])
    assert tf.repeat(x, 0).shape.as_list() == [0]
    assert tf.repeat(x, 0, axis=0).shape.as_list() == [0, 3]
    assert tf.repeat(x, 2, axis=0).shape.as_list() == [None, 3]
    assert tf.repeat(tf.ones([0, 3]), fed(2, "int32", []), axis=0).shape.as_list() == [0, 3]


def test_a_fraction_of_channels_is_cut_off():
    assert tf.image.decode_png("", 1.5).shape.as_list() == [None, None, 1]


def test_second_derivatives_by_nothing_keep_the_dtype():
    x = tf.zeros([0, 3], tf.float64)
    (found,) = tf.hessians(tf.reduce_sum(tf.square(x)), [x])
    assert (found.dtype, found.shape.as_list()) == (tf.float64, [0, 3, 0, 3])


def test_an_axis_to_join_along_that_is_found_only_in_a_step_is_out_of_range():
    with pytest.raises(tf.errors.OutOfRangeError):
        run(tf.strings.reduce_join([["a"]], fed([3], "int32", [None])))


@pytest.mark.parametrize("value", [[[7]], [7], 7])
def test_one_element_of_any_rank_is_assigned_to_a_part(value):
    variable = tf.get_variable("v", initializer=np.arange(4), use_resource=True)
    with tf.Session() as session:
        session.run(variable.initializer)
        assert session.run(variable[1:3].assign(np.int64(value))).tolist() == [0, 7, 7, 3]
        assert session.run(variable[0].assign(np.int64(value))).tolist() == [7, 7, 7, 3]


def test_printed_strings_show_control_characters_and_quotes_as_c_does():
    given = b"a'b\"c\\d\ne\rf\tg\x00h\x7fi\x80j\xc3\xa9"
    printed = b'"a\\\'b\\"c\\\\d\\ne\\rf\\tg\\000h\\177i\x80j\xc3\xa9"'
    assert run(tf.strings.format("{}", tf.constant(given))) == printed


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda two: tf.nn.lrn(tf.fill([1, 1, 1, 3], 2.0), depth_radius=two, bias=0.0), [[[[2 / 12**0.5] * 3]]]),
        (lambda two: tf.strings.to_hash_bucket_fast(["a", "b"], two), [1, 0]),
        (lambda two: tf.as_string([1.5], precision=two), [b"1.50"]),
        (lambda two: tf.gather([[[1, 2]]], [[[1]]], batch_dims=two), [[[2]]]),
        (lambda two: tf.gather_nd([[[1, 2]]], [[[1]]], batch_dims=two), [[2]]),
        (lambda two: tf.reverse_sequence([[[1, 2]]], [2], seq_axis=two, batch_axis=0), [[[2, 1]]]),
    ],
)
@pytest.mark.parametrize("kind", [int, np.int64, np.int32, np.uint8, np.float32])
def test_numbers_of_numpy_are_taken_for_attributes(call, expected, kind):
    found = run(call(kind(2)))
    assert found.tolist() == expected if found.dtype.kind in "Oi" else np.allclose(found, expected)
