"""What TensorFlow 1.15's own tests ask of operations, with values of TensorFlow 2.21."""

import numpy as np
import pytest

import tfray as tf
from tfray.contrib import slim
from tfray.errors import InvalidArgumentError


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def test_strings_of_shapes_that_broadcast_are_added(session):
    left, right = tf.constant([["a", "", "cc"]]), tf.constant([["x"], [""]])
    expected = [[b"ax", b"x", b"ccx"], [b"a", b"", b"cc"]]
    total = left + right
    assert total.shape.as_list() == [2, 3]
    assert session.run(total).tolist() == expected
    fed = tf.placeholder(tf.string)
    assert session.run(fed + right, {fed: [["a", "", "cc"]]}).tolist() == expected


@pytest.mark.parametrize(
    ("count", "options", "expected"),
    [
        (5, {"size": 2}, 3),
        (5, {"size": 2, "drop_remainder": True}, 2),
        (10, {"size": 3, "shift": 2, "stride": 2, "drop_remainder": True}, 3),
        (7, {"size": 3, "shift": 4}, 2),
        (2, {"size": 3, "drop_remainder": True}, 0),
        (0, {"size": 3}, 0),
    ],
)
def test_the_number_of_windows_is_known(session, count, options, expected):
    windows = tf.data.Dataset.range(count).window(**options)
    following = tf.data.make_one_shot_iterator(windows.map(lambda window: 1)).get_next()
    assert session.run(tf.data.experimental.cardinality(windows)) == expected
    for _ in range(expected):
        session.run(following)
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(following)


def test_gradients_of_tensors_are_computed_but_not_applied(session):
    x = tf.constant(3.0)
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    [(gradient, same)] = optimizer.compute_gradients(lambda: x * x, [x])
    assert same is x
    assert session.run(gradient) == 6.0
    with pytest.raises(NotImplementedError, match="is a tensor"):
        optimizer.apply_gradients([(gradient, x)])


def test_variables_that_are_not_trained_are_saved_or_not(session):
    kept, local = tf.contrib.framework.global_variable(42), tf.contrib.framework.local_variable([1, 2], name="a")
    assert (tf.global_variables(), tf.local_variables(), tf.trainable_variables()) == ([kept], [local], [])
    zeros = tf.contrib.framework.zero_initializer(local)
    session.run(tf.global_variables_initializer())
    assert session.run(zeros).tolist() == [0, 0] and zeros.op.name == "zero_initializer"
    assert session.run(kept) == 42 and not session.run(local).any()
    with pytest.raises(tf.errors.InvalidArgumentError, match="input is already initialized"):
        session.run(zeros)


def test_names_of_variables_in_checkpoints():
    whole = tf.contrib.framework.variable("whole", shape=[])
    cut = tf.contrib.framework.variable("cut", shape=[2, 2], partitioner=tf.variable_axis_size_partitioner(2))
    names = [tf.contrib.framework.get_variable_full_name(each) for each in (whole, *cut)]
    assert names == ["whole", *["cut"] * len(list(cut))] and len(list(cut)) > 1


@pytest.mark.parametrize(
    ("options", "devices"),
    [
        ({"num_tasks": 2}, ["/job:ps/task:0/device:CPU:0", "/job:ps/task:1/device:CPU:0"] * 2),
        ({"num_tasks": 1, "replica": 3, "job_name": "a"}, ["/job:a/replica:3/task:0/device:CPU:0"] * 4),
        ({"device_type": "GPU"}, ["/device:GPU:0"] * 4),
    ],
)
def test_variables_are_spread_over_tasks(options, devices):
    variable = tf.contrib.framework.variable
    with tf.contrib.framework.arg_scope([variable], device=tf.contrib.framework.VariableDeviceChooser(**options)):
        made = [variable(f"v{index}", [2]) for index in range(4)]
        assert variable("own", [2], device="cpu:12").device == "/device:CPU:12"
    assert [each.device for each in made] == devices
    assert all(each.initializer.device == each.device for each in made)


def test_values_of_a_checkpoint_are_assigned_to_what_fits(session, tmp_path):
    x, y = tf.Variable([1.0, 2.0], name="x"), tf.Variable([[0.0], [0.0]], name="y")
    session.run(tf.global_variables_initializer())
    path = tf.train.Saver([x]).save(session, str(tmp_path / "model"))
    assign = tf.contrib.framework.assign_from_checkpoint
    with pytest.raises(ValueError, match=r"Checkpoint is missing variable \[z\]"):
        assign(path, {"z": x})
    with pytest.raises(ValueError, match="Total size of new array must be unchanged for x"):
        assign(path, {"x": y})
    session.run(x.assign([5.0, 5.0]))
    operation, feeds = assign(path, {"x": x, "z": y}, ignore_missing_vars=True)
    session.run(operation, feeds)
    assert session.run(x).tolist() == [1, 2]


def test_functions_of_nested_structures(session):
    def swapped(pair, factor):
        return {"left": pair["b"] * factor, "right": [pair["a"]]}

    pair = {"a": tf.constant(b"text"), "b": tf.constant([1, 2])}
    types = {"left": tf.int32, "right": [tf.string]}
    found = tf.contrib.framework.py_func(
        swapped, [pair], {"factor": tf.constant(3)}, types, {"left": [None], "right": [[]]}
    )
    assert found["left"].shape.as_list() == [None] and found["right"][0].shape.as_list() == []
    found = session.run(found)
    assert found["left"].tolist() == [3, 6] and found["right"] == [b"text"]
    same = tf.contrib.framework.py_func(lambda x: (x, x + 1), [1.5], None, (tf.float64, tf.float64), tf.TensorShape([]))
    assert [each.shape.as_list() for each in same] == [[], []]
    seen = []
    session.run(tf.contrib.framework.py_func(seen.append, [tf.constant(7)]))
    assert seen == [7]


def test_rows_are_looked_up_once(session):
    table, ids = np.arange(12.0).reshape(4, 3), np.array([[3, 0, 3], [1, 1, 3]])
    for params, strategy in ((table, "mod"), ([table[:2], table[2:]], "div")):
        found = tf.contrib.layers.embedding_lookup_unique(params, tf.constant(ids), strategy)
        assert found.shape.as_list() == [2, 3, 3]
        assert session.run(found).tolist() == table[ids].tolist()


def test_what_belongs_to_a_sequence_follows_each_step(session):
    concatenate = tf.contrib.feature_column.concatenate_context_input
    sequence, context = np.arange(12, dtype=np.float32).reshape(2, 3, 2), np.array([[10], [20]], np.float32)
    expected = [[[0, 1, 10], [2, 3, 10], [4, 5, 10]], [[6, 7, 20], [8, 9, 20], [10, 11, 20]]]
    assert session.run(concatenate(context, sequence)).tolist() == expected
    for wrong, match in (((context, context), "sequence_input must have rank 3"), ((sequence, sequence), "rank 2")):
        with pytest.raises(ValueError, match=match):
            concatenate(*wrong)
    with pytest.raises(TypeError, match="context_input must have dtype float32"):
        concatenate(context.astype(int), sequence)


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("GRUBlockCell", ["w_ru", "b_ru", "w_c", "b_c"]),
        ("GRUBlockCellV2", ["gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias"]),
        ("GRUCell", ["gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias"]),
    ],
)
def test_names_of_variables_of_gated_cells(cell, names):
    getattr(tf.contrib.rnn, cell)(3)(tf.zeros([2, 4]), tf.zeros([2, 3]))
    assert [variable.op.name for variable in tf.global_variables()] == [f"gru_cell/{name}" for name in names]


def test_a_rate_that_falls_and_starts_again(session):
    step = tf.placeholder(tf.int32, [])
    rate = tf.contrib.training.sgdr_decay(0.1, step, 10, t_mul=3, m_mul=0.9)
    found = [session.run(rate, {step: at}) for at in (0, 5, 10, 40, 130)]
    np.testing.assert_allclose(found, [0.1, 0.05, 0.09, 0.081, 0.0729], rtol=1e-5)


@pytest.mark.parametrize(
    ("first", "match"),
    [(tf.int32, "Expected output types .* got dataset with output types"), (tf.int64, "dataset with output shapes")],
)
def test_an_iterator_says_what_it_expected(first, match):
    iterator = tf.data.Iterator.from_structure((tf.int64, tf.float64), ([None], []))
    dataset = tf.data.Dataset.from_tensors((tf.constant([[1]], first), tf.constant(4.0, tf.float64)))
    with pytest.raises(TypeError, match=match):
        iterator.make_initializer(dataset)


@pytest.mark.parametrize(
    ("shape", "match"), [(None, "double:"), ([], r"double and shape \[\]"), ([None, 10], r"double and shape \[\?,10\]")]
)
def test_a_placeholder_without_a_value_is_described(session, shape, match):
    fed = tf.placeholder(tf.float64, shape, "fed")
    with pytest.raises(
        InvalidArgumentError, match=f"must feed a value for placeholder tensor 'fed' with dtype {match}"
    ):
        session.run(tf.identity(fed))


def placeholder(*shape):
    return tf.placeholder(tf.float32, shape)


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: slim.instance_norm(tf.placeholder(tf.float32)), "undefined rank"),
        (lambda: slim.instance_norm(placeholder(2, 5, 5), data_format="NHCW"), "has to be either NCHW or NHWC"),
        (lambda: slim.instance_norm(placeholder(3, 4, None)), "undefined channels dimension"),
        (lambda: slim.group_norm(tf.placeholder(tf.float32)), "undefined rank"),
        (lambda: slim.group_norm(placeholder(1, 2, 4, 5), channels_axis=5), "Axis is out of bounds"),
        (lambda: slim.group_norm(placeholder(1, 8, 8, 8), 2, -2, [-2]), "mutually exclusive"),
        (lambda: slim.group_norm(placeholder(1, 3, 4, None)), "undefined channel dimension"),
        (lambda: slim.group_norm(placeholder(5, 2, 9, 9), 10, -3, [-2, -1]), "Invalid groups 10 for 2 channels"),
        (lambda: slim.group_norm(placeholder(5, 4, 9, 9), 3, -3, [-2, -1]), "4 channels is not commensurate with 3"),
    ],
)
def test_normalizations_say_what_is_wrong(build, match):
    with pytest.raises(ValueError, match=match):
        build()


@pytest.mark.parametrize("function", [tf.space_to_batch, tf.batch_to_space])
def test_blocks_of_images_take_images_only(session, function):
    with pytest.raises(ValueError, match=r"expected .batch, height, width, channels"):
        function(np.zeros([4, 2, 2]), [[0, 0], [0, 0]], block_size=2)


def on_cpu(build):
    """A GPU does not look for these errors, or says it in other words."""

    def built():
        with tf.device("/cpu:0"):
            return build()

    return built


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: tf.string_to_number(["1", "2.9"], tf.int32), "could not correctly convert string: 2.9"),
        (
            on_cpu(lambda: tf.pow(tf.constant([3]), tf.constant([-2]))),
            "Integers to negative integer powers are not allowed",
        ),
        (lambda: tf.decode_csv(["3.5"], [[1]])[0], "Field 0 in record 0 is not a valid int32: 3.5"),
        (lambda: tf.decode_csv(["1", "z"], [[1.0]])[0], "Field 0 in record 1 is not a valid float: z"),
        (lambda: tf.decode_csv(['1,"a"b"'], [[1], [""]])[0], "Quote inside a string has to be escaped"),
        (lambda: tf.decode_csv(["1"], [[1], [2]], select_cols=[0])[0], "select_cols and record_defaults do not match"),
        (lambda: tf.decode_csv(["1"], [[1], [2]], select_cols=[1, 0])[0], "select_cols is not strictly increasing"),
        (lambda: tf.dynamic_partition([[0, 1, 2]], [[0, 1, 99]], 4)[0], r"partitions\[0,2\] = 99 is not in \[0, 4\)"),
        (
            on_cpu(lambda: tf.sparse_tensor_dense_matmul(tf.SparseTensor([[1, 10]], [1.0], [2, 3]), tf.ones([3, 1]))),
            "indices.* is out of bounds",
        ),
        (lambda: tf.nn.top_k([[0.1, 0.2]], -7)[0], "Need k >= 0, got -7"),
        (lambda: tf.nn.top_k([[0.1, 0.2]], 4)[0], "must have at least k columns"),
        (lambda: tf.nn.top_k([[0.1, 0.2]], 4)[0], "must have last dimension >= k = 4"),
    ],
)
def test_errors_say_what_those_of_tensorflow_say(session, build, match):
    with pytest.raises(InvalidArgumentError, match=match):
        session.run(build())


def foreign():
    with tf.Graph().as_default():
        return tf.constant(1.0)


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda s: s.run(None), TypeError, "Fetch argument None has invalid type"),
        (
            lambda s: s.run(3),
            TypeError,
            "Can not convert a int into a Tensor or Operation",
        ),
        (lambda s: s.run("q:0"), ValueError, "Fetch argument 'q:0' cannot be interpreted as a Tensor"),
        (lambda s: s.run(foreign()), ValueError, "is not an element of this graph"),
        (lambda s: s.run([], {None: 1}), TypeError, "Cannot interpret feed_dict key as Tensor"),
        (
            lambda s: s.run([], {tf.zeros([]): tf.zeros([])}),
            TypeError,
            "value of a feed cannot be a tf.Tensor object",
        ),
        (lambda s: tf.zeros([]).eval(), ValueError, r"Cannot evaluate tensor using `eval\(\)`: No default session"),
        (lambda s: tf.no_op().run(), ValueError, r"Cannot execute operation using `run\(\)`: No default session"),
        (
            lambda s: foreign().eval(session=s),
            ValueError,
            "Cannot use the given session to evaluate tensor",
        ),
        (
            lambda s: bool(tf.zeros([])),
            tf.errors.OperatorNotAllowedInGraphError,
            "Using a `tf.Tensor` as a Python `bool` is not allowed",
        ),
        (lambda s: len(tf.zeros([2])), TypeError, "len is not well defined for symbolic Tensors"),
    ],
)
def test_sessions_and_tensors_refuse_as_those_of_tensorflow(build, error, match):
    tf.constant(0)
    session = tf.Session()
    with pytest.raises(error, match=match):
        build(session)


SQUARE = np.array([[4.0, 1.0], [1.0, 3.0]], np.float32)


@pytest.mark.parametrize(
    ("call", "fields"),
    [
        (lambda: tf.linalg.qr(SQUARE), "q r"),
        (lambda: tf.linalg.lu(SQUARE), "lu p"),
        (lambda: tf.linalg.slogdet(SQUARE), "sign log_abs_determinant"),
        (
            lambda: tf.nn.max_pool_with_argmax(np.ones([1, 4, 4, 1]), [1, 2, 2, 1], [1, 2, 2, 1], "SAME"),
            "output argmax",
        ),
        (
            lambda: tf.image.combined_non_max_suppression(tf.ones([1, 2, 1, 4]), tf.ones([1, 2, 1]), 1, 1),
            "nmsed_boxes nmsed_scores nmsed_classes valid_detections",
        ),
        (lambda: tf.image.sample_distorted_bounding_box([3, 3, 3], tf.ones([1, 1, 4])), "begin size bboxes"),
        (lambda: tf.TextLineReader().read(tf.train.string_input_producer(["a"])), "key value"),
        (lambda: tf.TextLineReader().read_up_to(tf.train.string_input_producer(["a"]), 2), "keys values"),
    ],
)
def test_results_have_tensorflows_names(call, fields):
    assert call()._fields == tuple(fields.split())


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: tf.gather([1.0, 2.0], np.float32([0.5])), TypeError, "'indices' has DataType float32"),
        (lambda: tf.nn.embedding_lookup(np.ones(3), np.float32([0.5])), TypeError, "'indices' has DataType float32"),
        (lambda: tf.random.normal(np.float32([0.2, 3.5])), TypeError, "'shape' has DataType float32"),
        (lambda: tf.exp(3), TypeError, "'x' has DataType int32 not in list of allowed values"),
        (lambda: tf.erf(np.uint8([3])), TypeError, "'x' has DataType uint8 not in list of allowed values"),
        (lambda: tf.unstack(np.int32([3, 1, 2]), 3, axis=1), ValueError, "axis = 1"),
        (lambda: tf.reshape(tf.placeholder(tf.float32, [None, 3]), []), ValueError, "evenly divisible by 3 but is 1"),
        (lambda: tf.invert_permutation(np.zeros((0, 3), np.int32)), ValueError, "must be rank 1 but is rank 2"),
        (lambda: tf.nn.top_k(tf.placeholder(tf.float32), -1), ValueError, "Need k >= 0"),
        (lambda: tf.assert_less(tf.constant(1), tf.constant(2.0)), TypeError, "has dtype float32, expected int32"),
        (lambda: tf.conj("a"), TypeError, "Expected numeric or variant tensor"),
        (lambda: tf.nn.l2_normalize([1.0], axis=0, dim=0), ValueError, "Cannot specify both 'dim' and 'axis'"),
        (lambda: tf.count_nonzero([1], input=[1]), ValueError, "Cannot specify both 'input_tensor' and 'input'"),
        (lambda: tf.reverse_sequence([[1]], [1], seq_axis=1, seq_dim=1), ValueError, "Cannot specify both 'seq_dim'"),
        (lambda: tf.verify_tensor_all_finite([1.0], "m", x=[1.0]), ValueError, "Cannot specify both 't' and 'x'"),
        (lambda: tf.string_to_number("1", input="2"), ValueError, "Cannot specify both 'string_tensor' and 'input'"),
        (lambda: tf.layers.dense(np.int32([[1, 2]]), 4), TypeError, "Unable to build `Dense` layer with non-floating"),
        (lambda: tf.layers.flatten([[1.0]], data_format="NCHW"), ValueError, "data_format is 'NCHW'"),
        (lambda: slim.batch_norm(tf.zeros([1, 2, 2, 3]), data_format="channels_last"), ValueError, "NCHW or NHWC"),
        (lambda: slim.bias_add(tf.zeros([1, 4]), data_format="NCHW"), ValueError, "NCHW only supports 4D Tensor"),
        (lambda: tf.keras.constraints.get(3), ValueError, "Could not interpret constraint identifier: 3"),
        (lambda: tf.keras.regularizers.get(3), ValueError, "Could not interpret regularizer identifier: 3"),
        (lambda: tf.keras.initializers.get(3), ValueError, "Could not interpret initializer identifier: 3"),
        (lambda: tf.keras.activations.get(3), TypeError, "Could not interpret activation function identifier: 3"),
        (lambda: slim.conv2d(tf.zeros([1, 4, 4, 3]), 2, 3, data_format="NC"), ValueError, "Invalid data_format: 'NC'"),
        (lambda: slim.conv2d_transpose(tf.zeros([1, 4, 4, 3]), 2, 3, data_format="X"), ValueError, "NCHW or NHWC"),
        (lambda: slim.separable_conv2d(tf.zeros([1, 4, 4, 3]), 2, 3, data_format="X"), ValueError, "NCHW or NHWC"),
        (lambda: slim.avg_pool2d(tf.zeros([1, 4, 4, 3]), 2, data_format="X"), ValueError, "NCHW or NHWC"),
        (lambda: slim.layer_norm(tf.zeros([3, 4]), begin_norm_axis=2), ValueError, r"\(2\) must be < rank\(inputs\)"),
        (lambda: slim.layer_norm(tf.zeros([3, 4]), begin_params_axis=3), ValueError, r"\(3\) must be < rank\(inputs\)"),
        (lambda: slim.flatten(1.0), ValueError, "expected min_ndim=1, found ndim=0"),
        (lambda: tf.get_variable("v", [4], partitioner=lambda **_: None), ValueError, "must return a sequence"),
        (lambda: tf.pad([[1]], [[1, 0], [2, 1]], mode="odd"), ValueError, "Unknown padding mode"),
        (lambda: tf.graph_util.extract_sub_graph(tf.GraphDef(), ["none"]), ValueError, "none is not in graph"),
        (lambda: tf.train.string_input_producer([]), ValueError, "requires a non-null input tensor"),
        (lambda: tf.Dimension(2).assert_is_compatible_with(3), ValueError, "Dimensions 2 and 3 are not compatible"),
    ],
)
def test_what_tensorflow_refuses_is_refused(build, error, match):
    with pytest.raises(error, match=match):
        build()


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda: tf.logical_not(np.int32([3, 0])), [False, True]),
        (lambda: tf.reduce_any(np.float64([0, 2])), True),
        (lambda: tf.reduce_all(()), True),
        (lambda: tf.angle([1.0, -2.0]), [0, 0]),
        (lambda: tf.layers.max_pooling2d([[[[1.0], [2.0]], [[4.0], [3.0]]]], 2, 2, data_format=None), [[[[4.0]]]]),
        (lambda: tf.angle(np.int32([3])), [0]),
        (lambda: tf.dynamic_stitch([[2]], [["ok"]]), [b"", b"", b"ok"]),
        (lambda: tf.sequence_mask(np.float32([1.5, 0.5])), [[True, True], [True, False]]),
        (lambda: tf.reshape(tf.placeholder_with_default([[1, 2, 3]], [None, 3]), [3]), [1, 2, 3]),
    ],
)
def test_values_that_tensorflow_gives(session, build, expected):
    assert session.run(build()).tolist() == expected


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda: tf.log_sigmoid([1.0]), "LogSigmoid"),
        (lambda: tf.math.reciprocal_no_nan([1.0]), "reciprocal_no_nan"),
        (lambda: tf.div_no_nan([1.0], [1.0]), "div_no_nan"),
        (lambda: tf.math.multiply_no_nan([1.0], [1.0]), "multiply_no_nan"),
        (lambda: tf.signal.fftshift([1.0, 2.0]), "fftshift"),
        (lambda: tf.math.reduce_std([1.0, 2.0]), "reduce_std/Sqrt"),
        (lambda: tf.math.reduce_variance([1.0, 2.0]), "reduce_variance/Mean_1"),
        (lambda: tf.nn.crelu([1.0]), "CRelu/Relu"),
        (lambda: tf.matrix_transpose([[1.0]]), "matrix_transpose/transpose"),
        (lambda: tf.linalg.adjoint([[1.0]]), "adjoint/matrix_transpose/transpose"),
        (lambda: tf.linalg.logdet([[1.0]]), "logdet/mul"),
        (lambda: tf.cholesky_solve([[1.0]], [[1.0]]), "cholesky_solve/MatrixTriangularSolve_1"),
        (lambda: tf.random_uniform([2], tf.constant(0.0), 1.0), "random_uniform"),
        (lambda: tf.random_normal([2], tf.constant(0.0), 1.0), "random_normal"),
        (lambda: tf.histogram_fixed_width([1.0], [0.0, 1.0]), "histogram_fixed_width"),
        (lambda: tf.clip_by_average_norm([1.0], 1.0), "clip_by_average_norm"),
    ],
)
def test_results_are_named_as_in_tensorflow(build, name):
    with tf.Graph().as_default():
        assert build().op.name == name
