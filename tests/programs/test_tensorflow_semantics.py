"""What TensorFlow 1.15's own tests ask of operations, with values of TensorFlow 2.21."""

import numpy as np
import pytest

import tfray as tf
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


@pytest.mark.parametrize("function", [tf.space_to_batch, tf.batch_to_space])
def test_blocks_of_images_take_images_only(session, function):
    with pytest.raises(ValueError, match=r"expected .batch, height, width, channels"):
        function(np.zeros([4, 2, 2]), [[0, 0], [0, 0]], block_size=2)


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: tf.string_to_number(["1", "2.9"], tf.int32), "could not correctly convert string: 2.9"),
        (lambda: tf.pow(tf.constant([3]), tf.constant([-2])), "Integers to negative integer powers are not allowed"),
        (lambda: tf.decode_csv(["3.5"], [[1]])[0], "Field 0 in record 0 is not a valid int32: 3.5"),
        (lambda: tf.decode_csv(["1", "z"], [[1.0]])[0], "Field 0 in record 1 is not a valid float: z"),
        (lambda: tf.decode_csv(['1,"a"b"'], [[1], [""]])[0], "Quote inside a string has to be escaped"),
        (lambda: tf.decode_csv(["1"], [[1], [2]], select_cols=[0])[0], "select_cols and record_defaults do not match"),
        (lambda: tf.decode_csv(["1"], [[1], [2]], select_cols=[1, 0])[0], "select_cols is not strictly increasing"),
        (lambda: tf.dynamic_partition([[0, 1, 2]], [[0, 1, 99]], 4)[0], r"partitions\[0,2\] = 99 is not in \[0, 4\)"),
        (
            lambda: tf.sparse_tensor_dense_matmul(tf.SparseTensor([[1, 10]], [1.0], [2, 3]), tf.ones([3, 1])),
            "indices.* is out of bounds",
        ),
        (lambda: tf.nn.top_k([[0.1, 0.2]], -7)[0], "Need k >= 0, got -7"),
        (lambda: tf.nn.top_k([[0.1, 0.2]], 4)[0], "must have at least k columns"),
    ],
)
def test_errors_say_what_those_of_tensorflow_say(session, build, match):
    with pytest.raises(InvalidArgumentError, match=match):
        session.run(build())
