"""Calls at which random programs (`tests.support.differential`) found differences from TensorFlow, now mended.

What is expected was given by TensorFlow 2.21, or stands in the documentation of 1.15.
"""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf


def table_of_words(default):
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), default)


def run(fetches, feeds=None):
    with tf.Session() as session:
        return session.run(fetches, feeds)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tf.py_func(lambda a: a * 2, [x], tf.float32),
        lambda x: tf.py_func(lambda a: a * 2, [x], tf.float32, stateful=False),
        lambda x: tf.image.hsv_to_rgb(x),
        lambda x: tf.image.draw_bounding_boxes(x, [[[0.0, 0.0, 1.0, 1.0]]]),
        lambda x: tf.nn.ctc_greedy_decoder(x[0], [2, 2])[1],
        lambda x: tf.nn.ctc_beam_search_decoder(x[0], [2, 2], beam_width=2)[1],
    ],
)
def test_operations_without_a_gradient_let_none_through(call):
    x = tf.ones([1, 2, 2, 3])
    assert tf.gradients(call(x), [x]) == [None]
    through, (gradient,) = tf.reduce_sum(x), tf.gradients([tf.reduce_sum(x), call(x)], [x])
    assert run([through, gradient])[1].tolist() == np.ones([1, 2, 2, 3]).tolist()


def test_the_neighbour_of_a_number_has_a_gradient_of_zero_by_the_direction():
    x, y = tf.constant([1.0, 2.0]), tf.constant([2.0, 1.0])
    assert [each.tolist() for each in run(tf.gradients(tf.math.nextafter(x, y), [x, y]))] == [[1, 1], [0, 0]]


def test_polygamma_of_an_order_that_is_not_whole_is_not_a_number():
    found = run(tf.polygamma(tf.constant([0.0, 1.0, 1.5, -1.0]), tf.constant([2.0] * 4)))
    np.testing.assert_allclose(found, [0.42278421, 0.64493412, np.nan, np.nan], rtol=1e-6)


def test_a_polynomial_of_one_coefficient_is_that_coefficient():
    x = tf.constant([1.0, 2.0])
    found = tf.math.polyval([tf.constant(2.0)], x)
    assert run(found) == 2.0
    assert tf.gradients(found, [x]) == [None]
    assert run(tf.math.polyval([], x)).tolist() == [0, 0]
    assert run(tf.math.polyval([1, 2, 3], x)).tolist() == [6, 11]


@pytest.mark.parametrize("axis", [None, [0, 1]])
def test_the_euclidean_norm_has_the_dtype_of_its_argument(axis):
    x = tf.constant([[1 + 2j, 3j]], tf.complex64)
    assert tf.norm(x, axis=axis).dtype is tf.complex64
    np.testing.assert_allclose(run(tf.norm(x, axis=axis)), np.sqrt(14), rtol=1e-6)
    assert tf.norm(x, 1, axis=axis).dtype is tf.float32


def test_a_scalar_has_no_coordinates():
    condition = tf.placeholder(tf.bool, None)
    found = tf.where(condition)
    assert run(found, {condition: [True, False]}).tolist() == [[0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="scalar"):
        run(found, {condition: True})


def test_nothing_can_be_scattered_into_an_empty_tensor():
    with pytest.raises(ValueError, match="holds nothing"):
        tf.scatter_nd([[0]], tf.ones([1, 0]), [4, 0])
    shape = tf.placeholder(tf.int32, [2])
    found = tf.scatter_nd([[0]], tf.ones([1, 0]), shape)
    with pytest.raises(tf.errors.InvalidArgumentError, match="holds nothing"):
        run(found, {shape: [4, 0]})
    assert run(tf.scatter_nd(np.zeros([0, 1], np.int32), tf.ones([0, 2]), [0, 2])).shape == (0, 2)


@pytest.mark.parametrize("call", [lambda *xs: tf.meshgrid(*xs), lambda *xs: tf.shape_n(xs)])
def test_tensors_of_one_list_have_one_dtype(call):
    with pytest.raises(TypeError, match=r"int32.*float32"):
        call(tf.constant([1, 2]), tf.constant([1.0]))


@pytest.mark.parametrize("name", ["rgb_to_yuv", "yuv_to_rgb", "rgb_to_yiq", "yiq_to_rgb"])
@pytest.mark.parametrize("dtype", [tf.uint8, tf.int32])
def test_whole_numbers_are_no_colours_of_these_spaces(name, dtype):
    with pytest.raises(TypeError, match="float"):
        getattr(tf.image, name)(tf.ones([2, 2, 3], dtype))


@pytest.mark.parametrize("size", [[4, 4], [7, 4]])
def test_images_resized_in_their_proportions_are_floats_at_any_size(size):
    images = tf.constant(np.arange(48).reshape(4, 4, 3), tf.uint8)
    resized = tf.image.resize_images(images, size, preserve_aspect_ratio=True)
    assert resized.dtype is tf.float32
    assert run(resized).tolist() == np.arange(48).reshape(4, 4, 3).tolist()
    assert tf.image.resize_images(images, [4, 4]).dtype is tf.uint8


def test_empty_lines_of_printed_tensors_have_no_blanks():
    printed = run(tf.strings.format("{}", tf.reshape(tf.range(8), [2, 1, 2, 2])))
    assert printed == b"[[[[0 1]\n   [2 3]]]\n\n\n [[[4 5]\n   [6 7]]]]"
    printed = run(tf.strings.format("{}", tf.ones([1, 2, 1, 2, 1])))
    assert printed == b"[[[[[1]\n    [1]]]\n\n\n  [[[1]\n    [1]]]]]"


@pytest.mark.parametrize(
    "call",
    [
        tf.nn.relu,
        tf.nn.relu6,
        tf.nn.leaky_relu,
        tf.nn.crelu,
        lambda x: tf.nn.max_pool(tf.reshape(x, [1, 2, 2, 1]), [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
    ],
)
def test_second_gradients_of_what_is_made_of_straight_pieces_are_zeros(call):
    x = tf.constant([[0.5, -1.0], [2.0, 3.0]])
    (first,) = tf.gradients(call(tf.identity(x) * 2), [x])
    (second,) = tf.gradients(first, [x])
    assert run(second).tolist() == [[0, 0], [0, 0]]
    (both,) = tf.gradients(tf.reduce_sum(first) + tf.reduce_sum(x * x), [x])
    assert run(both).tolist() == [[1, -2], [4, 6]]


def test_zero_second_gradients_reach_variables_and_hessians():
    weights = tf.get_variable("weights", initializer=[1.0, -2.0])
    (first,) = tf.gradients(tf.nn.relu(weights), [weights])
    gradient, unconnected = tf.gradients(first, [weights, tf.get_variable("other", initializer=[1.0])])
    assert unconnected is None
    hessian = tf.hessians(tf.reduce_sum(tf.nn.relu(weights)), [weights])[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(gradient).tolist() == [0, 0]
        assert session.run(hessian).tolist() == [[0, 0], [0, 0]]


def test_empty_strings_at_the_beginning_of_a_segment_bring_no_separator():
    joined = tf.strings.unsorted_segment_join(["", "a", "", "b", "", "c"], [0, 0, 0, 0, 1, 2], 3, ",")
    assert run(joined).tolist() == [b"a,,b", b"", b"c"]


def test_a_negative_number_of_boxes_is_refused():
    chosen = tf.image.non_max_suppression_overlaps([[1.0]], [1.0], -1, 0.5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="-1, below 0"):
        run(chosen)


def test_plus_joins_strings():
    words = tf.constant(["a", "b"])
    joined = words + "c"
    assert joined.op.name == "add"
    assert run(joined).tolist() == [b"ac", b"bc"]
    assert run("c" + words).tolist() == [b"ca", b"cb"]
    assert run(words + words).tolist() == [b"aa", b"bb"]
    assert run(tf.add(["a"], ["b"])).tolist() == [b"ab"]


@pytest.mark.parametrize(("separator", "joined"), [(None, b"ab"), (b",", b"a,b"), ("é", "aéb".encode()), ("", b"ab")])
def test_separators_are_text_or_bytes_or_none(separator, joined):
    assert run(tf.string_join(["a", "b"], separator)) == joined
    assert run(tf.reduce_join(["a", "b"], separator=separator)) == joined
    assert run(tf.strings.unsorted_segment_join(["a", "b"], [0, 0], 1, separator)).tolist() == [joined]
    with pytest.raises(TypeError, match="separator is 3, expected a string"):
        tf.string_join(["a", "b"], separator=3)


def test_colours_of_no_value_have_no_saturation():
    hsv = run(tf.image.rgb_to_hsv([[-0.5, -0.2, -0.3], [0.0, 0.0, 0.0], [0.2, -0.4, 0.1]]))
    np.testing.assert_allclose(hsv, [[4 / 9, 0, -0.2], [0, 0, 0], [31 / 36, 3, 0.2]], atol=1e-6)


def test_gamma_and_gain_that_are_tensors_have_the_dtype_of_the_image():
    with pytest.raises(TypeError):
        tf.image.adjust_gamma(np.float32([[[0.5]]]), 2, tf.constant(2))
    assert run(tf.image.adjust_gamma(np.float32([[[0.5]]]), np.int64(2), np.int64(3))).tolist() == [[[0.75]]]
    assert run(tf.image.adjust_gamma(np.uint8([[[128]]]), 2, 0.5)).tolist() == [[[32]]]


def test_the_range_of_a_histogram_is_two_numbers():
    with pytest.raises(ValueError, match=r"Dimension must be 2 but is 3: .* shape \(3,\), expected \[2\]"):
        tf.histogram_fixed_width([1.0, 2.0], [0.0, 1.0, 2.0], 2)
    with pytest.raises(ValueError, match="Shape must be rank 1 but is rank 0"):
        tf.histogram_fixed_width([1.0, 2.0], 1.0, 2)
    with pytest.raises(ValueError, match="Shape must be rank 0 but is rank 1"):
        tf.histogram_fixed_width([1.0, 2.0], [0.0, 1.0], [2])
    with pytest.raises(ValueError, match="Requires nbins > 0"):
        tf.histogram_fixed_width([1.0, 2.0], [0.0, 1.0], -2)
    assert tf.histogram_fixed_width_bins([1.0], [0.0, 1.0], 2, dtype=tf.int64).dtype is tf.int32


def test_rows_beside_a_nan_get_no_gradient_of_it():
    x = tf.constant([[np.nan, 1.0], [2.0, 3.0]])
    greatest = tf.unsorted_segment_max(x, [0, 0], 1)
    found = run(tf.gradients(greatest, x, grad_ys=tf.cos(greatest)))[0]
    np.testing.assert_allclose(found, [[0, 0], [0, np.cos(3)]], rtol=1e-6)


def test_a_weighted_cross_entropy_has_the_gradient_of_tensorflow_at_zero():
    labels, logits = tf.constant([0.2, 0.3, 0.9]), tf.constant([0.0, 1.0, -2.0])
    losses = tf.nn.weighted_cross_entropy_with_logits(labels, logits, 2.0)
    found = run([losses, *tf.gradients(losses, [labels, logits])])
    expected = [0.8318, 1.1072, 3.8412], [0.6931, -0.6867, 4.1269], [0.8, 0.3504, -1.5735]
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("layer", [tf.nn.xw_plus_b, tf.nn.relu_layer])
def test_biases_of_whole_numbers_are_none_of_floats(layer):
    with pytest.raises((TypeError, ValueError)):
        layer(tf.ones([2, 3]), tf.ones([3, 3]), [1, 2, 3])


def test_the_logarithm_of_gamma_is_finite_beside_its_pole():
    x = [1e-310, -1e-310, 1e-250, 0.5]
    found = run(tf.lgamma(tf.constant(x, tf.float64)))
    np.testing.assert_allclose(found, [713.801378828154, 713.801378828154, 575.646273248511, 0.572364942924700])


def test_a_sparse_identity_has_sizes_that_are_integers():
    with pytest.raises(TypeError, match=r"num_columns is \[\[1\], \[2\]\], expected an integer"):
        tf.sparse.eye(1, [[1], [2]])
    assert run(tf.sparse.to_dense(tf.sparse.eye(np.int32(1), tf.constant(2)))).tolist() == [[1, 0]]


@pytest.mark.parametrize("step", [0, -1])
def test_frames_follow_each_other_forwards(step):
    with pytest.raises(ValueError, match=f"frame_step is {step}, expected at least 1"):
        tf.signal.overlap_and_add(tf.ones([2, 3, 4]), step)


@pytest.mark.parametrize("strides", [2, [2, 2], [2]])
@pytest.mark.parametrize(
    "call",
    [
        lambda x, strides: tf.nn.dilation2d(x, np.zeros((2, 2, 3)), strides, [1, 1, 1, 1], "SAME"),
        lambda x, strides: tf.nn.erosion2d(x, np.zeros((2, 2, 3)), [1, 1, 1, 1], strides, "SAME"),
        lambda x, strides: tf.nn.depthwise_conv2d(x, np.zeros((2, 2, 3, 1)), strides, "SAME"),
        lambda x, strides: tf.extract_image_patches(x, [1, 2, 2, 1], strides, [1, 1, 1, 1], "SAME"),
    ],
)
def test_where_tensorflow_takes_four_sizes_fewer_are_refused(call, strides):
    with pytest.raises((TypeError, ValueError), match="expected a list of four integers"):
        call(tf.zeros([1, 5, 4, 3], tf.float64), strides)


@pytest.mark.parametrize(
    ("x", "axis", "expected"),
    [
        (np.int32([1, 2, 3]), None, 3),
        (np.int64([[1, 2, 3], [-40, 5, 6]]), 1, [3, 40]),
        (np.uint8([100, 200, 30]), 0, 14),  # the squares are taken modulo 256
    ],
)
def test_the_euclidean_norm_of_integers_is_cut_off(x, axis, expected):
    found = tf.math.reduce_euclidean_norm(x, axis)
    assert found.dtype.as_numpy_dtype == x.dtype and run(found).tolist() == expected


def test_any_value_fits_a_part_of_a_variable_without_elements():
    words = tf.Variable(["a", "b"])
    numbers = tf.Variable([1.0, 2.0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(numbers[1:1].assign(np.ones((0, 3, 2)))).tolist() == [1, 2]
        assert session.run(words[2:].assign(np.zeros((0, 3), "S1"))).tolist() == [b"a", b"b"]
        assert session.run(words[1].assign("c")).tolist() == [b"a", b"c"]
    with pytest.raises(ValueError, match="incompatible"):
        numbers[1:2].assign(np.ones((0, 3, 2)))


@pytest.mark.parametrize(("sizes", "places", "batch_dims"), [((2, 4, 3), (2, 2, 1), 2), ((3, 1), (2, 2, 1), 1)])
@pytest.mark.parametrize("known", [True, False])
def test_what_is_gathered_from_a_batch_has_places_of_that_batch(sizes, places, batch_dims, known):
    params, indices = tf.placeholder(tf.float32, sizes if known else None), tf.placeholder(tf.int32, places)
    with pytest.raises(tf.errors.InvalidArgumentError, match="differ in the first" if known else "shapes"):
        run(tf.gather_nd(params, indices, batch_dims=batch_dims), {params: np.ones(sizes), indices: np.zeros(places)})


@pytest.mark.parametrize("adjust", [tf.image.adjust_hue, tf.image.adjust_saturation])
def test_colours_are_adjusted_by_a_number(adjust):
    with pytest.raises(TypeError, match="expected float32"):
        adjust(np.zeros([2, 2, 3], np.uint8), "x")


def test_the_hue_of_colours_below_0_is_turned_too():
    colours = np.random.default_rng(0).uniform(0.1, 0.9, [2, 3, 3]).astype(np.float32)
    bright, dark = run([tf.image.adjust_hue(colours, 0.2), tf.image.adjust_hue(colours - 2, 0.2)])
    np.testing.assert_allclose(dark, bright - 2, atol=1e-6)  # a hue depends on differences of channels only


@pytest.mark.parametrize("sizes", [[None], [None, None], None])
def test_what_is_made_grey_has_three_channels(sizes):
    colours = tf.placeholder(tf.float32, sizes)
    value = np.ones([1] * (1 if sizes is None else len(sizes)))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Dimensions must be equal|cannot multiply"):
        run(tf.image.rgb_to_grayscale(colours), {colours: value})


def test_the_number_of_elements_is_that_of_the_first_tensor():
    x = tf.placeholder(tf.float32, [None, 2])
    pairs = tf.map_fn(lambda pair: (pair[0], pair[1]), (x, tf.constant([1.0, 2.0, 3.0])))
    assert [each.tolist() for each in run(pairs, {x: np.ones([3, 2])})] == [[[1, 1]] * 3, [1, 2, 3]]
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="write to index 1 but array is not resizeable and size is: 1"
    ):
        run(pairs, {x: np.ones([1, 2])})


def test_ids_of_one_tensor_have_one_size_of_their_vocabulary():
    ids = tf.SparseTensor([[0, 0]], np.int64([1]), [1, 1])
    with pytest.raises(TypeError, match=r"vocab_size is \[3\], expected an integer for a tensor of ids"):
        tf.sparse_merge(ids, ids, [3])
    assert run(tf.sparse.to_dense(tf.sparse_merge([ids], ids, [3]))).tolist() == [[0, 1, 0]]


def test_axes_of_sparse_tensors_are_integers():
    x = tf.sparse.from_dense([[1.0, 2.0], [0.0, 3.0]])
    with pytest.raises(TypeError, match=r"the axes of a sparse reduction are 1\.5"):
        tf.sparse.reduce_max(x, 1.5)
    assert run([tf.sparse.reduce_max(x, axis) for axis in ([], np.int64(1))])[1].tolist() == [2, 3]


def test_there_are_no_fewer_than_no_buckets():
    with pytest.raises(ValueError, match="num_buckets is -1, expected 0 or more"):
        tf.sparse.cross_hashed([tf.constant([["a"]])], -1)


def test_numbers_of_another_dtype_are_refused():
    with pytest.raises(ValueError, match="axes are float32, expected integers"):
        tf.tensordot(tf.ones([2, 3]), tf.ones([3, 2]), tf.placeholder(tf.float32, [2, 1]))
    with pytest.raises((TypeError, ValueError), match="expected float64"):
        tf.clip_by_global_norm([tf.ones([2], tf.float64)], tf.constant(3, tf.int64))
    clipped, _ = tf.clip_by_global_norm([tf.constant([3.0, 4.0])], np.float64(1))
    np.testing.assert_allclose(run(clipped[0]), [0.6, 0.8], rtol=1e-6)


# -- arguments of None ---------------------------------------------------------------------------------

X = np.arange(32, dtype=np.float32).reshape(1, 4, 4, 2)
SPARSE = tf.SparseTensorValue([[0, 0], [0, 1]], [1, 2], [1, 2])


@pytest.mark.parametrize(
    ("function", "arguments", "names"),
    [
        (tf.decode_raw, (["abcd"], tf.int16), ["little_endian"]),
        (tf.decode_csv, (['a,"b"'], [[""], [""]]), ["use_quote_delim", "field_delim", "na_value"]),
        (tf.edit_distance, (tf.SparseTensorValue([[0, 0]], [1], [1, 1]), SPARSE), ["normalize"]),
        (tf.regex_replace, ("aaa", "a", "b"), ["replace_global"]),
        (tf.strings.substr, ("abc", 0, 2), ["unit"]),
        (tf.strings.length, ("abc",), ["unit"]),
        (tf.strings.lower, ("AB",), ["encoding"]),
        (tf.as_string, (1.5,), ["precision", "scientific", "shortest", "width", "fill"]),
        (tf.string_to_number, ("1.5",), ["out_type"]),
        (lambda text, **options: tf.strings.split(text, **options).values, (["a b"],), ["maxsplit"]),
        (tf.strings.unicode_transcode, ("a", "UTF-8", "UTF-8"), ["errors", "replacement_char"]),
        (tf.io.decode_compressed, (["a"],), ["compression_type"]),
        (tf.quantization.quantize, ([1.0, 2.0], 0.0, 2.0, tf.quint8), ["mode", "round_mode"]),
        (tf.nn.lrn, (X,), ["depth_radius", "bias", "alpha", "beta"]),
        (tf.nn.leaky_relu, (X - 9,), ["alpha"]),
        (tf.image.extract_glimpse, (X, [2, 2], [[0.0, 0.0]]), ["centered", "normalized"]),
        (tf.image.crop_and_resize, (X, [[0.0, 0.0, 2.0, 1.0]], [0], [2, 2]), ["method", "extrapolation_value"]),
        (tf.argmax, (X[0, 0],), ["output_type"]),
        (tf.searchsorted, ([1, 2], [2]), ["out_type"]),
        (tf.histogram_fixed_width, ([1.0], [0.0, 2.0], 2), ["dtype"]),
        (tf.nn.embedding_lookup, ([X[0, 0]], [0]), ["partition_strategy"]),
        (tf.argmin, (X[0, 0],), ["output_type"]),
        (tf.unique, ([2, 1, 2],), ["out_idx"]),
        (tf.size, (X,), ["out_type"]),
        (tf.shape, (X,), ["out_type"]),
        (tf.bincount, ([1, 2],), ["dtype"]),
        (tf.sequence_mask, ([1, 2], 3), ["dtype"]),
        (tf.space_to_depth, (X, 2), ["data_format"]),
        (tf.fake_quant_with_min_max_args, (X / 4,), ["min", "max", "num_bits", "narrow_range"]),
        (tf.image.encode_png, (np.zeros((2, 2, 3), np.uint8),), ["compression"]),
        (tf.image.encode_jpeg, (np.zeros((2, 2, 3), np.uint8),), ["quality", "format", "density_unit", "x_density"]),
        (tf.matrix_triangular_solve, ([[2.0, 1.0], [3.0, 4.0]], [[1.0], [1.0]]), ["lower", "adjoint"]),
        (
            tf.strided_slice,
            (X[0, 0], [1], [3], [1]),
            ["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"],
        ),
        (
            lambda value, **options: tf.nn.conv3d_transpose(
                value, np.ones((1, 1, 1, 1, 1)), [1, 2, 2, 2, 1], **options
            ),
            (np.ones((1, 2, 2, 2, 1)),),
            ["strides", "dilations", "data_format"],
        ),
    ],
)
def test_attributes_of_none_have_their_default(function, arguments, names):
    def results(**options):
        found = function(*arguments, **options)
        return [np.asarray(part).tolist() for part in run(list(found) if isinstance(found, (list, tuple)) else [found])]

    expected = results()
    for name in names:
        assert results(**{name: None}) == expected, name


def test_none_in_its_place_is_the_default_too():
    assert run(tf.matrix_triangular_solve([[2.0, 1.0], [3.0, 4.0]], [[1.0], [1.0]], None)).tolist() == [[0.5], [-0.125]]
    assert run(tf.argmax([3, 1], 0, None, None, None)) == 0
    with pytest.raises(TypeError, match="positional"):
        tf.argmax([3, 1], 0, None, None, None, None)


# -- sizes and shapes ----------------------------------------------------------------------------------


def test_a_part_from_an_unknown_place_is_as_large_as_was_asked():
    begin = tf.placeholder(tf.int32, [2])
    part = tf.slice(tf.ones([4, 5]), begin, [2, 6])
    assert part.shape.as_list() == [2, 6]
    for found in (part, tf.random_crop(tf.ones([4, 5]), [2, 6])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="outside shape"):
            run(found, {begin: [0, 0]})


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.slice([1, 2, 3], [0], 1.5),
        lambda: tf.slice([1, 2, 3], [0], [1.0]),
        lambda: tf.slice([1, 2, 3], tf.constant([0]), tf.constant([1.0])),
        lambda: tf.slice([1, 2, 3], [0.0], [1]),
        lambda: tf.identity_n(tf.ones([2, 1])),
        lambda: tf.identity_n(np.ones([2, 1])),
        lambda: tf.decode_csv(["1,2"], tf.zeros([2])),
        lambda: tf.decode_csv(["1,2"], np.zeros([2, 1])),
        lambda: tf.parallel_stack(1.5),
        lambda: tf.math.reduce_variance([1, 2]),
        lambda: tf.math.reduce_std(np.uint8([1, 2])),
        lambda: tf.nn.max_pool_v2(X, [[1], [2]], [1, 1, 1, 1], "SAME"),
        lambda: tf.nn.avg_pool_v2(X, [1, 2, 2, 1], [[1], [2]], "SAME"),
        lambda: tf.nn.max_pool(X, [[1, 2, 2, 1]], [1, 1, 1, 1], "SAME"),
        lambda: tf.nn.avg_pool1d(X[0], [[2]], 1, "SAME"),
        lambda: tf.nn.conv2d(X, np.ones((1, 1, 2, 1)), [[1], [2]], "SAME"),
        lambda: tf.nn.conv2d_backprop_filter(X, [1, 1, 2, 1], X, [[1], [2]], "SAME"),
        lambda: tf.nn.depthwise_conv2d(X, np.ones((1, 1, 2, 1)), [[1, 1, 1, 1]], "SAME"),
        lambda: tf.nn.conv3d(X[None], np.ones((1, 1, 1, 2, 1)), None, "SAME"),
        lambda: tf.image.decode_png(b"", channels=[]),
        lambda: tf.image.decode_jpeg(b"", channels=[1]),
        lambda: tf.image.decode_image(b"", channels="x"),
        lambda: tf.image.decode_jpeg(b"", ratio=[]),
        lambda: tf.add_n(1.5),
        lambda: tf.accumulate_n("x"),
        lambda: tf.sparse.slice(SPARSE, [0, 1], 1.5),
        lambda: tf.bincount([1, 2], minlength=1.5),
        lambda: tf.histogram_fixed_width([1.0], [0.0, 1.0], 2.5),
        lambda: tf.strided_slice([1, 2], [0], [1], end_mask=tf.constant(1)),
        lambda: tf.eye(3, 2, -1),
    ],
)
def test_sizes_and_lists_of_another_kind_are_type_errors(call):
    with pytest.raises(TypeError):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.broadcast_dynamic_shape(-1, [1]),
        lambda: tf.broadcast_dynamic_shape([[1], [2]], [2]),
        lambda: tf.random.stateless_uniform([3], [1, 8], 0, [], tf.int32),
        lambda: tf.random.stateless_uniform([3], [1, 8], [1], 9, tf.int32),
        lambda: tf.sparse_segment_sum([1.0, 2.0], [0, 1], [0, 0], num_segments=-1),
        lambda: tf.sparse_segment_mean([1.0, 2.0], [0, 1], [0, 0], num_segments=-5),
        lambda: tf.sparse_segment_sqrt_n([1.0, 2.0], [0, 1], [0, 0], num_segments=-5),
        lambda: tf.fake_quant_with_min_max_vars_per_channel(1.5, [-1.0, -0.5], [1.0, 1.0]),
        lambda: tf.signal.stft(tf.ones([11]), 6, 3, fft_length=-1),
        lambda: tf.signal.irfft(tf.ones([4], tf.complex64), [-1]),
        lambda: tf.identity_n([]),
        lambda: tf.sparse.add([1, 2], SPARSE),
        lambda: tf.signal.fftshift(tf.ones([4]), tf.constant([[0]])),
        lambda: tf.required_space_to_batch_paddings([[1], [2]], [2, 2]),
        lambda: tf.nn.softmax_cross_entropy_with_logits_v2(1.5, [[0.2, 0.3]]),
        lambda: tf.nn.softmax_cross_entropy_with_logits_v2([[0.2, 0.3]], 1.5),
        lambda: tf.losses.softmax_cross_entropy([[0.2, 0.3]], 1.5),
        lambda: tf.losses.softmax_cross_entropy(1.5, [[0.2, 0.3]]),
        lambda: tf.losses.softmax_cross_entropy([[0.2], [0.3]], [[0.2, 0.3]]),
        lambda: tf.nn.sigmoid_cross_entropy_with_logits(labels=[[0.2], [0.3]], logits=[[0.2, 0.3]]),
    ],
)
def test_sizes_and_shapes_that_do_not_fit_are_value_errors(call):
    with pytest.raises(ValueError):
        call()


def test_transforms_of_negative_length_fail_when_they_run():
    length = tf.placeholder(tf.int32, [])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"fft_length is \[-1\]"):
        run(tf.signal.stft(tf.ones([11]), 6, 3, fft_length=length), {length: -1})


# -- values --------------------------------------------------------------------------------------------


def test_numbers_that_are_none_or_infinite_in_histograms():
    x = tf.constant([1.0, np.nan, 7.0, np.inf, -np.inf, -2.0])
    assert run(tf.histogram_fixed_width_bins(x, [-1.0, 5.0], 3))[[0, 2, 3, 4, 5]].tolist() == [1, 2, 2, 0, 0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="NaN"):
        run(tf.histogram_fixed_width(x, [-1.0, 5.0], 3))
    assert run(tf.histogram_fixed_width(x[2:], [-1.0, 5.0], 3)).tolist() == [2, 0, 2]


@pytest.mark.parametrize(
    ("start", "stop", "num", "expected"),
    [
        (-1.5, [1, 2, 3], 1, [[-1.5, -1.5, -1.5]]),
        ([1.0, 2.0, 3.0], [3.0, 4.0, 5.0], 3, [[1, 2, 3], [2, 3, 4], [3, 4, 5]]),
        ([1.0, 2.0, 3.0], 4.0, 2, [[1, 2, 3], [4, 4, 4]]),
        ([[1.0], [2.0]], [3.0, 4.0], 2, [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]),
    ],
)
def test_numbers_at_equal_distances_between_the_elements_of_two_arrays(start, stop, num, expected):
    found = tf.linspace(start, stop, num)
    assert found.shape.as_list() == list(np.shape(expected))
    assert run(found).tolist() == expected


def test_what_is_stacked_in_parallel_or_gated_may_be_values():
    assert run(tf.parallel_stack("x")).tolist() == [b"x"]
    assert run(tf.tuple([1, [2, 3], "a", np.ones(2)]))[1].tolist() == [2, 3]
    assert tf.tuple([tf.constant(1), None])[1] is None


@pytest.mark.parametrize(
    "call", [lambda x: tf.clip_by_average_norm(x, 0.3), lambda x: tf.clip_by_norm(x, 0.3)], ids=["average", "norm"]
)
def test_clipped_zeros_have_the_gradient_of_what_is_not_clipped(call):
    x = tf.zeros([2, 3])
    assert run(tf.gradients(call(x), x)[0]).tolist() == np.ones([2, 3]).tolist()


def test_variances_of_complex_numbers_are_real():
    x = tf.constant([1 + 2j, 3 - 1j])
    found = tf.math.reduce_variance(x), tf.math.reduce_std(x)
    assert [each.dtype for each in found] == [tf.float64, tf.float64]
    np.testing.assert_allclose(run(found), [3.25, 3.25**0.5])


def test_a_variance_may_be_a_number_of_python():
    found = [run(tf.nn.batch_normalization(np.float32([2.0]), [1.0], v, None, None, 0.001))[0] for v in (100, 100.0)]
    np.testing.assert_allclose(found, [100.001**-0.5] * 2, rtol=1e-6)


def test_matrices_of_python_integers_are_floats_where_a_rank_or_factors_are_expected():
    assert run(tf.linalg.matrix_rank([[1], [2]])) == 1
    np.testing.assert_allclose(run(tf.linalg.lu_solve([[2, 1], [1, 3]], [0, 1], [[2], [1]])), [[7 / 6], [-1 / 3]], 1e-6)
    np.testing.assert_allclose(
        run(tf.linalg.lu_matrix_inverse([[2, 1], [1, 3]], [0, 1])), [[2 / 3, -1 / 6], [-1 / 3, 1 / 3]], 1e-6
    )
    assert run(tf.linalg.lu_reconstruct([[2, 1], [1, 3]], [0, 1])).tolist() == [[2, 1], [2, 4]]
    assert tf.linalg.lu_reconstruct([[2, 1], [1, 3]], [0, 1]).dtype is tf.float32


@pytest.mark.parametrize(
    ("labels", "logits"),
    [
        ([[1, 0, 1]], [[0.2, -0.3, 0.4], [1, -2, 3]]),
        ([[1, 0, 1], [0, 1, 1]], [[0.2, -0.3, 0.4]]),
        (2.0, [[0.2, -0.3, 0.4]]),
        ([[1, 0, 1]], [[0.2, -0.3, 0.4]]),
    ],
)
def test_labels_of_unknown_shape_broadcast_in_a_cross_entropy(labels, logits):
    z, x = tf.placeholder(tf.float64), tf.placeholder(tf.float64, [None, 3])
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x)
    found, *gradients = run([losses, *tf.gradients(losses, [z, x])], {z: labels, x: logits})
    labels, logits = np.array(labels), np.array(logits)
    p = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(found, -labels * np.log(p) - (1 - labels) * np.log(1 - p))
    d_labels, d_logits = -logits + 0 * labels, p - labels
    if labels.size < logits.size:
        d_labels = d_labels.sum(0, keepdims=True) if labels.ndim else d_labels.sum()
    if logits.size < labels.size:
        d_logits = d_logits.sum(0, keepdims=True)
    np.testing.assert_allclose(gradients[0], d_labels)
    np.testing.assert_allclose(gradients[1], d_logits)


def test_lengths_are_whole_numbers_where_the_longest_is_given():
    assert run(tf.sequence_mask([2.5], 3)).tolist() == [[True, True, False]]
    assert [each.tolist() for each in run(tf.nn.collapse_repeated([[1, 1, 2]], [2.5]))] == [[[1]], [1]]


def test_nothing_crossed_is_an_empty_sparse_tensor():
    for crossed in (tf.sparse.cross([]), tf.sparse.cross_hashed([], 3)):
        assert run(crossed).dense_shape.tolist() == [0, 0]


def test_seeds_of_pooling_are_cut_off_to_integers():
    def pooled(seed, seed2):
        x = np.arange(36, dtype=np.float32).reshape(1, 6, 6, 1)
        return tf.nn.fractional_max_pool(x, [1.0, 1.4, 1.7, 1.0], deterministic=True, seed=seed, seed2=seed2)[0]

    first, second, third, fourth = run([pooled(3, 1), pooled(3, 1.5), pooled(3, None), pooled(3, 0)])
    assert first.tolist() == second.tolist() and third.tolist() == fourth.tolist()


def test_the_whole_of_an_image_may_be_anything():
    assert run(tf.image.central_crop([], 1.0)).tolist() == []
    with pytest.raises(ValueError):
        tf.image.central_crop([], 0.5)


def test_coefficients_that_are_tensors_determine_a_polynomial():
    assert run(tf.math.polyval([tf.constant([1.5])], [[1], [2]])).tolist() == [1.5]
    assert run(tf.math.polyval([tf.constant([1.5]), 2], [[1], [2]])).tolist() == [[3.5], [5]]
    assert run(tf.math.polyval([1, 2], tf.constant([2.0]))).tolist() == [4]


@pytest.mark.parametrize("lower", [100, "x"])
def test_what_is_no_bool_stands_for_one(lower):
    assert run(tf.matrix_triangular_solve([[2.0, 1.0], [3.0, 4.0]], [[1.0], [1.0]], lower)).tolist() == [
        [0.5],
        [-0.125],
    ]


@pytest.mark.parametrize("axes", [1, [1], [0, 1]])
def test_axes_to_shift_may_be_a_tensor(axes):
    x = np.arange(15).reshape(3, 5)
    expected = np.fft.ifftshift(x, axes)
    for given in (axes, tf.constant(axes)):
        assert run(tf.signal.ifftshift(x, given)).tolist() == expected.tolist()


def test_bounds_of_a_quantization_in_the_wrong_order_leave_one_number():
    x = [[-2.0, 0.5, 1.5], [1.0, 2.0, 2.5]]
    found = run(tf.fake_quant_with_min_max_vars_per_channel(x, [0.0, 2.0, 3.0], [1.0, 1.0, 2.0]))
    assert found[:, 1:].tolist() == [[1, 1], [1, 1]]


def test_a_confusion_matrix_of_no_dtype_has_that_of_classes():
    assert tf.confusion_matrix([1, 2], [0, 1], dtype=None).dtype is tf.int64


def test_whole_numbers_are_cut_off_at_6():
    x = tf.constant([-1, 3, 9])
    assert run(tf.nn.relu6(x)).tolist() == run(tf.nn.relu6([-1, 3, 9])).tolist() == [0, 3, 6]


SPARSE_PART = tf.SparseTensorValue([[0, 1]], [1.0], [2, 2])


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: tf.decode_csv("1,2", [[1]], select_cols=[-1]), ValueError),
        (lambda: tf.FIFOQueue(3, tf.int32, shapes=[[]]).dequeue_many(-1), ValueError),
        (lambda: tf.sparse_slice(SPARSE_PART, [0], [1]), tf.errors.InvalidArgumentError),
        (lambda: tf.sparse_reduce_sum(SPARSE_PART, 2), tf.errors.InvalidArgumentError),
        (lambda: tf.register_tensor_conversion_function(3, lambda value: value), TypeError),
        (lambda: tf.image.non_max_suppression_overlaps(np.eye(2), [0.5, 0.9], [1, 2]), ValueError),
        (lambda: tf.RegisterGradient(3), TypeError),
        (lambda: tf.train.start_queue_runners("session"), TypeError),
        (lambda: tf.train.Optimizer(False, "bare").minimize(tf.Variable(1.0) * 1.0), NotImplementedError),
        (lambda: tf.register_tensor_conversion_function(int, 3), TypeError),
        (lambda: tf.Session(graph=3), TypeError),
        (lambda: tf.Session(target=5), TypeError),
        (lambda: tf.Session(config=5), TypeError),
    ],
)
def test_kinds_of_errors(call, kind):
    with pytest.raises(kind):
        call()


def test_assertions_stand_in_a_scope_of_their_name():
    assert [tf.Assert(True, [1], name=name).name for name in (None, "positive")] == ["Assert/Assert", "positive/Assert"]


def test_bins_of_a_histogram_are_as_exact_as_its_values():
    assert run(tf.histogram_fixed_width([0.0, -1e-10, 1e-10], [-1.0, 1.5], 5)).tolist() == [0, 1, 2, 0, 0]


@pytest.mark.parametrize("x", [[1.0, 5.0], [[1.0], [5.0]]])
@pytest.mark.parametrize("low", [2.0, [2.0]])
def test_of_bounds_in_the_wrong_order_the_lower_one_holds(x, low):
    assert run(tf.clip_by_value(tf.constant(x), low, 1.0)).ravel().tolist() == [2, 2]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: tf.random.categorical([[0.0, 1.0]], -1), ValueError),
        (lambda: tf.random.stateless_categorical([[0.0, 1.0]], -1, [1, 2]), ValueError),
        (lambda: tf.nn.sufficient_statistics([[0.0, 1.0]], 1), TypeError),
        (lambda: tf.signal.ifftshift([[0.0, 1.0]], 1.5), TypeError),
        (lambda: tf.searchsorted([[1, 3]], [[2]], side=None), ValueError),
        (lambda: tf.strings.format("{}", 1.5), TypeError),
        (lambda: tf.arg_min([[1, 2]], None), ValueError),
        (lambda: tf.linspace(0.0, 3.0, -1), ValueError),
        (lambda: tf.sparse.split(sp_input=tf.SparseTensor([[0, 1]], [1], [3, 5]), num_split=1, axis=1.5), TypeError),
        (lambda: tf.signal.frame(np.zeros((3, 4)), 3, -4, pad_end=True), ValueError),
        (lambda: tf.matrix_band_part(np.zeros((3, 4)), 1, 1.5), TypeError),
        (lambda: table_of_words([1, 2]).lookup(tf.constant(["a"])), ValueError),
        (lambda: tf.nn.conv1d_transpose(np.zeros((2, 5, 1)), np.zeros((2, 3, 1)), -1, 1), TypeError),
    ],
)
def test_arguments_that_cannot_work_are_refused_when_the_graph_is_built(call, error):
    with pytest.raises(error):
        call()


def test_integers_are_normalised_to_floats():
    x = tf.constant([[1, -2, 0], [3, 4, 5]])
    divided, length = tf.linalg.normalize(x, 1)
    assert (divided.dtype, length.dtype) == (tf.float64, tf.int32)
    found = run([divided, length])
    np.testing.assert_allclose(found[0], np.array([[1, -2, 0], [3, 4, 5]]) / 15)
    assert found[1].tolist() == [[15]]


@pytest.mark.parametrize("dtype", [tf.int8, tf.uint16, tf.int64])
def test_frames_of_integers_are_added_up(dtype):
    frames = tf.constant([[1, 2, 0], [3, 4, 5]], dtype)
    assert run(tf.signal.overlap_and_add(frames, 2)).tolist() == [1, 2, 3, 4, 5]


def test_matrices_of_an_empty_diagonal_beside_the_main_one():
    assert run(tf.matrix_diag(np.zeros((1, 0), np.float32), k=-1)).tolist() == [[[0.0]]]
    assert run(tf.matrix_diag(np.zeros((2, 0), np.float32), k=2)).tolist() == np.zeros((2, 2, 2)).tolist()


def test_texts_are_scattered():
    found = run(tf.scatter_nd([[3], [1]], tf.constant(["last", "second"]), [4]))
    assert found.tolist() == [b"", b"second", b"", b"last"]
