"""`tf.contrib`: input, metrics, loss scales and other small parts; the values are those of TensorFlow 1.15."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.dataset_elements import elements
from tests.support.sessions import run
from tfray.errors import InvalidArgumentError
from tfray.library.variables.initializers import PartitionInfo

data, metrics, mixed_precision = tf.contrib.data, tf.contrib.metrics, tf.contrib.mixed_precision
Dataset = tf.data.Dataset


# -- input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "settings", "expected"),
    [
        (6, {"window_size": 3}, [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]]),
        (7, {"window_size": 3, "stride": 2}, [[0, 1, 2], [2, 3, 4], [4, 5, 6]]),
        (7, {"window_size": 3, "window_shift": 2, "window_stride": 2}, [[0, 2, 4], [2, 4, 6]]),
        (2, {"window_size": 3}, []),
    ],
)
def test_sliding_windows(count, settings, expected):
    found = elements(Dataset.range(count).apply(data.sliding_window_batch(**settings)))
    assert found == expected


def test_sliding_windows_of_structures():
    pairs = Dataset.range(4).map(lambda x: (x, {"a": x * 2}))
    found = elements(pairs.apply(data.sliding_window_batch(2)))
    assert found == [([i, i + 1], {"a": [2 * i, 2 * i + 2]}) for i in range(3)]
    with pytest.raises(ValueError, match="both `stride` and `window_shift`"):
        data.sliding_window_batch(2, 1, 1)


def test_shapes_of_elements():
    batches = Dataset.range(3).map(lambda x: (tf.fill([x], x), x)).batch(1, drop_remainder=True)
    checked = batches.apply(data.assert_element_shape((tf.TensorShape([1, None]), tf.TensorShape([1]))))
    assert [shape.as_list() for shape in checked.output_shapes] == [[1, None], [1]]
    assert len(elements(checked)) == 3
    named = Dataset.range(2).map(lambda x: {"a": tf.fill([tf.cast(x, tf.int32) * 0 + 3], x)})
    named = named.apply(data.assert_element_shape({"a": tf.TensorShape([3])}))
    assert named.output_shapes["a"].as_list() == [3] and elements(named)[1] == {"a": [1, 1, 1]}
    with pytest.raises(ValueError, match=r"expected shape \[2\]"):
        Dataset.range(3).apply(data.assert_element_shape(tf.TensorShape([2])))
    pairs = Dataset.range(3).batch(2).apply(data.assert_element_shape(tf.TensorShape([2])))
    assert elements(pairs) == [[0, 1], "InvalidArgumentError"]


def test_interleaving():
    rows = Dataset.range(3).apply(data.sloppy_interleave(lambda x: Dataset.from_tensors(x).repeat(2), 3))
    assert sorted(elements(rows.prefetch(data.AUTOTUNE))) == [0, 0, 1, 1, 2, 2]


def test_resampling_by_weight():
    inputs = [tf.constant([1, 2, 3]), tf.constant([[1], [2], [3]])]
    (numbers, rows), rates = tf.contrib.training.weighted_resample(
        inputs, tf.constant([1.0, 3.0, 0.0]), 2.0, mean_decay=0.9, seed=1
    )
    assert [v.op.name for v in tf.local_variables()] == ["estimate_mean/estimated_mean"]
    counts, seen = np.zeros(4), set()
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for _ in range(300):
            taken, same, found = session.run([numbers, rows, rates])
            assert same[:, 0].tolist() == taken.tolist()
            assert found.tolist() == pytest.approx([{1: 1.5, 2: 4.5}[number] for number in taken])
            counts += np.bincount(taken, minlength=4)
            seen |= set(taken.tolist())
    assert seen == {1, 2} and counts[1:3] / 300 == pytest.approx(np.array([1.5, 4.5]), rel=0.15)

    (none,) = tf.contrib.training.resample_at_rate([tf.range(4)], tf.zeros([4]))
    assert run(none).tolist() == []


def test_tables_of_strings():
    table = tf.contrib.lookup.string_to_index_table_from_tensor(["a", "b"], default_value=7)
    ids = table.lookup(tf.constant(["b", "z"]))
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        assert session.run(ids).tolist() == [1, 7]
    assert tf.contrib.lookup.string_to_index_table_from_file is tf.contrib.lookup.index_table_from_file


# -- metrics ---------------------------------------------------------------------------------------------


def test_metrics_that_count():
    rows = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    answers = [1, 1, 0, 1], [0, 1, 0, 0]
    given = {
        "count": metrics.count(tf.constant([1, 2, 3]), None, ["values"], ["updates"]),
        "weights": metrics.count(rows, weights=[[0.5], [0]], name="weighed"),
        "false": metrics.streaming_false_positive_rate(*answers),
        "missed": metrics.streaming_false_negative_rate([1, 1, 0, 1], [0, 1, 1, 1], weights=[1.0, 2.0, 3.0, 4.0]),
        "none": metrics.streaming_false_negative_rate([1, 0], [0, 0]),
    }
    values, updates = tf.contrib.metrics.aggregate_metric_map(given)
    assert tf.get_collection("values") == [values["count"]] and tf.get_collection("updates") == [updates["count"]]
    names = {variable.op.name for variable in tf.local_variables()}
    assert {"count/count", "weighed/count", "false_positive_rate/true_negatives/count"} <= names
    third = pytest.approx(1 / 3)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert set(session.run(values).values()) == {0}
        first = {"count": 3, "weights": 1, "false": pytest.approx(2 / 3), "missed": third, "none": 0}
        assert session.run(updates) == first
        session.run(updates)
        assert session.run(values) == first | {"count": 6, "weights": 2}


# -- the scale of losses ---------------------------------------------------------------------------------


def test_a_scale_that_grows_and_shrinks():
    manager = mixed_precision.ExponentialUpdateLossScaleManager(16.0, 3, 2, 2, 0.8)
    is_finite = tf.placeholder(tf.bool, [])
    update = manager.update_loss_scale(is_finite)
    variables = tf.global_variables()
    assert [v.op.name for v in variables] == ["loss_scale", "good_steps", "bad_steps"] and not tf.trainable_variables()
    expected = [
        (1, [16, 1, 0]), (1, [16, 2, 0]), (1, [32, 0, 0]), (0, [32, 0, 1]), (0, [25.6, 0, 0]), (1, [25.6, 1, 0]),
        (0, [25.6, 0, 1]), (1, [25.6, 1, 1]), (0, [20.48, 0, 0]), (1, [20.48, 1, 0]),
    ]  # fmt: skip
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for finite, state in expected:
            session.run(update, {is_finite: bool(finite)})
            assert session.run(variables) == pytest.approx(state)
            assert session.run(manager.get_loss_scale()) == pytest.approx(state[0])


def test_steps_that_are_not_finite_change_nothing():
    manager = mixed_precision.ExponentialUpdateLossScaleManager(8.0, 2)
    variable, factor = tf.Variable(1.0), tf.placeholder(tf.float32, [])
    step = tf.train.get_or_create_global_step()
    optimizer = mixed_precision.LossScaleOptimizer(tf.train.GradientDescentOptimizer(0.1), manager)
    pairs = optimizer.compute_gradients(variable * factor)
    train_op = optimizer.apply_gradients(pairs, step)
    states = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(pairs[0][0], {factor: 2.0}) == 2
        for value in (1.0, 2.0, np.inf, np.nan, 1.0):
            session.run(train_op, {factor: value})
            states.append(session.run([variable, step, manager.get_loss_scale()]))
    expected = [[0.9, 1, 8], [0.7, 2, 16], [0.7, 2, 16], [0.7, 2, 12.8], [0.6, 3, 12.8]]
    assert [pytest.approx(state) for state in states] == expected


def test_a_scale_that_stays():
    manager = mixed_precision.FixedLossScaleManager(128)
    variable = tf.Variable(3.0)
    optimizer = mixed_precision.LossScaleOptimizer(tf.train.GradientDescentOptimizer(0.5), manager)
    train_op = optimizer.minimize(variable * variable)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        assert session.run([variable, manager.get_loss_scale()]) == [0, 128]
    with pytest.raises(ValueError, match="at least 1"):
        mixed_precision.FixedLossScaleManager(0.5)


# -- names of what is elsewhere --------------------------------------------------------------------------


def test_losses_of_candidates():
    candidates = tf.constant([0, 4], tf.int64), tf.constant([[0.5], [0.2]]), tf.constant([0.1, 0.3])
    weights, biases = tf.ones([5, 2]), tf.constant([0.0, 1.0, 2.0, 3.0, 4.0])
    given = weights, biases, tf.constant([[1], [2]]), tf.ones([2, 2]), 2, 5
    losses = [
        tf.contrib.nn.sampled_sparse_softmax_loss(*given, sampled_values=candidates),
        tf.nn.sampled_softmax_loss(*given, sampled_values=candidates),
    ]
    first, second = run(losses)
    assert first.tolist() == second.tolist()
    assert run(tf.contrib.nn.nth_element([[3.0, 1.0, 2.0]], 1)).tolist() == [2]
    assert tf.contrib.nn.conv1d_transpose is tf.nn.conv1d_transpose
    assert tf.contrib.hooks.ProfilerHook is tf.train.ProfilerHook


# -- tf.contrib.framework --------------------------------------------------------------------------------

framework = tf.contrib.framework


def test_placeholders_of_a_graph():
    wanted = tf.placeholder(tf.float32, name="a")
    tf.placeholder_with_default(3.0, [])
    assert framework.get_placeholders(tf.get_default_graph()) == [wanted]
    with pytest.raises(TypeError, match="needs to be a Graph"):
        framework.get_placeholders("graph")


def test_the_shape_that_was_expected_is_said():
    row = tf.constant([1.0], name="row")
    for shape in ([2], [1, 1]):
        with pytest.raises(InvalidArgumentError, match=rf"\[Wrong shape for row:0 .* \[{shape[0]}.*\] \[1\]"):
            run(framework.with_shape(tf.constant(shape), row), {})
    some = tf.placeholder(tf.float32, [None, 2])
    with pytest.raises(ValueError, match="Shapes must be equal rank, but are 2 and 1"):
        framework.with_shape([3], some)
    with pytest.raises(ValueError, match="not compatible"):
        framework.with_shape([2, 1], some)


@pytest.mark.parametrize("sizes", [((7, 1), (7,)), ((7,), (7, 1)), ((7,), (7,))])
@pytest.mark.parametrize("known", [True, False])
def test_a_last_dimension_of_one_is_dropped(sizes, known):
    arrays = [np.arange(7).reshape(size) for size in sizes]
    fed = [tf.placeholder(tf.int32, size if known else None) for size in sizes]
    for found in run(framework.remove_squeezable_dimensions(*fed), dict(zip(fed, arrays, strict=True))):
        np.testing.assert_array_equal(found, np.arange(7))


def test_sums_scalars_and_graphs_of_several():
    assert run(framework.reduce_sum_n([1, [2], [[3, 4], [5, 6]]]), {}) == 21
    assert framework.assert_scalar_int(3).dtype is tf.int32
    for wrong, match in (([1, 2], "scalar"), (1.5, "Unexpected type")):
        with pytest.raises(ValueError, match=match):
            framework.assert_scalar_int(wrong)
    with pytest.raises(ValueError, match="No tensors"):
        framework.reduce_sum_n([])
    assert framework.get_graph_from_inputs([]) is tf.get_default_graph()
    with tf.Graph().as_default():
        other = tf.constant(1)
    with pytest.raises(ValueError, match="must be from the same graph"):
        framework.get_graph_from_inputs([tf.constant(1), other])


def test_tensors_with_a_shape():
    row, any_shape = tf.constant([[1.0, 2.0]]), tf.placeholder(tf.float32)
    assert framework.with_shape([1, 2], row) is row and framework.with_same_shape(tf.ones([1, 2]), row) is row
    assert framework.with_shape([], tf.constant([5.0])).shape.rank == 0
    for shape in ([1, 2], tf.constant([1, 2])):
        checked = framework.with_shape(shape, any_shape)
        assert run(checked, {any_shape: [[1, 2]]}).tolist() == [[1, 2]]
        with pytest.raises(InvalidArgumentError):
            run(checked, {any_shape: [[1, 2, 3]]})
    assert framework.with_shape([1, 2], any_shape).shape.as_list() == [1, 2]
    assert run(framework.with_shape([], any_shape), {any_shape: [3]}) == 3
    with pytest.raises(InvalidArgumentError, match="Wrong shape"):
        run(framework.with_same_shape(any_shape, row), {any_shape: [1]})
    for shape, tensor in (([2, 2], row), ([[1, 2]], row), ([1.5], row), (tf.constant([1.0]), any_shape)):
        with pytest.raises(ValueError, match="Invalid"):
            framework.with_shape(shape, tensor)
    with pytest.raises(ValueError, match="SparseTensor"):
        framework.with_shape([2], tf.SparseTensor([[0]], [1], [2]))


def test_cases_that_are_known():
    def never():
        raise AssertionError("it is called")

    x = tf.placeholder(tf.bool, [])
    one, two, three = (lambda i=i: tf.constant(i) for i in (1, 2, 3))
    assert run(framework.smart_case([(False, never), (True, one), (x, never)], default=never)) == 1
    assert run(framework.smart_case({tf.constant(False): never}, default=three)) == 3
    found = framework.smart_case([(x, two), (tf.constant(True), one)])
    assert [run(found, {x: value}) for value in (True, False)] == [2, 1]
    found = framework.smart_case([(False, never), (x, two)], default=three)
    assert [run(found, {x: value}) for value in (True, False)] == [2, 3]


def test_a_global_step_or_none():
    assert framework.assert_or_get_global_step() is None
    step = tf.train.get_or_create_global_step()
    assert framework.assert_or_get_global_step() is step
    assert framework.assert_or_get_global_step(global_step_tensor=step) is step
    with pytest.raises(TypeError, match="integer type"):
        framework.assert_or_get_global_step(global_step_tensor=tf.constant(1.5))


def test_filters_with_orthonormal_middles():
    initial = framework.convolutional_delta_orthogonal(2.0)
    filters = run(initial([3, 2, 3, 4], tf.float32))
    assert (filters != 0).any((2, 3)).tolist() == [[False, False], [True, False], [False, False]]
    assert filters[1, 0] @ filters[1, 0].T == pytest.approx(4 * np.eye(3), abs=1e-5)
    with pytest.raises(ValueError, match="at least three-dimensional"):
        initial([3, 4])
    with pytest.raises(ValueError, match="In_filters cannot be greater"):
        initial([3, 4, 3])


def test_rows_of_another_vocabulary(tmp_path):
    (tmp_path / "old").write_text("a\nb\nc\n")
    (tmp_path / "new").write_text("c\nx\na\n")
    table = tf.get_variable("table", initializer=np.float32([[1, 2], [3, 4], [5, 6]]))
    with tf.Session() as session:
        session.run(table.initializer)
        path = tf.train.Saver().save(session, str(tmp_path / "model"))

    initial = framework.load_embedding_initializer(
        path,
        "table",
        3,
        2,
        str(tmp_path / "old"),
        tf.constant(str(tmp_path / "new")),
        num_oov_buckets=2,
        initializer=tf.constant_initializer(9.0),
    )
    whole = tf.get_variable("whole", [5, 2], initializer=initial)
    parts = tf.get_variable("parts", [5, 2], initializer=initial, partitioner=tf.fixed_size_partitioner(2))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for found in session.run([whole, tf.convert_to_tensor(parts)]):
            assert found.tolist() == [[5, 6], [9, 9], [1, 2], [9, 9], [9, 9]]
    with pytest.raises(ValueError, match=r"\[5, 3\]"):
        initial([5, 3])
    with pytest.raises(TypeError, match="only float32"):
        initial([5, 2], tf.float64)


def test_rows_and_columns_of_other_vocabularies(tmp_path):
    (tmp_path / "old").write_text("a\nb\nc\n")
    (tmp_path / "new").write_text("c\nx\na\nb\n")
    (tmp_path / "columns").write_text("p\nq\n")
    (tmp_path / "new_columns").write_text("q\nr\np\n")
    biases = tf.get_variable("biases", initializer=np.float32([[0], [1], [2]]))
    table = tf.get_variable("table", initializer=np.float32([[1, 2], [3, 4], [5, 6]]))
    with tf.Session() as session:
        session.run([biases.initializer, table.initializer])
        path = tf.train.Saver().save(session, str(tmp_path / "model"))

    rows = {"old_row_vocab_file": str(tmp_path / "old"), "new_row_vocab_file": str(tmp_path / "new")}
    nine = tf.constant_initializer(9.0)
    of_classes = framework.load_linear_multiclass_bias_initializer(
        [path], "biases", 4, str(tmp_path / "old"), str(tmp_path / "new"), 1, nine
    )
    columns = {"old_col_vocab_file": str(tmp_path / "columns"), "new_col_vocab_file": str(tmp_path / "new_columns")}
    of_matrix = framework.load_and_remap_matrix_initializer(path, "table", 4, 3, **rows, **columns, initializer=nine)
    place = PartitionInfo([5, 1], [3, 0])
    of_slot = framework.load_variable_slot_initializer(
        path, "biases", place, 4, 1, **rows, num_row_oov_buckets=1, initializer=nine
    )
    made = [of_classes([5, 1]), of_slot([2, 1]), of_matrix([4, 3])]
    with tf.Session() as session:
        found = [each.tolist() for each in session.run(made)]
    assert found[:2] == [[[2], [9], [0], [1], [9]], [[1], [9]]], "values of TensorFlow 1.15"
    assert found[2] == [[6, 9, 5], [9, 9, 9], [2, 9, 1], [4, 9, 3]]
    with pytest.raises(ValueError, match="rows need a file of new words"):
        framework.load_and_remap_matrix_initializer(path, "table", 4, 2)


def test_models_hold_lists():
    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.stack = tf.contrib.checkpoint.List([tf.keras.layers.Dense(2), tf.keras.layers.Dense(3)])
            self.named = tf.contrib.checkpoint.Mapping(size=3)
            self.hparams = tf.contrib.checkpoint.NoDependency({"rate": [0.1]})

        def call(self, inputs):
            for layer in self.stack:
                inputs = layer(inputs)
            return inputs

    model = Model()
    assert model(tf.ones([1, 4])).shape.as_list() == [1, model.named["size"]]
    assert len(model.trainable_weights) == 4 and model.hparams["rate"] == [0.1]
    for name in ("DNNEstimator", "LinearEstimator", "DNNLinearCombinedEstimator"):
        assert getattr(tf.contrib.estimator, name) is getattr(tf.estimator, name)
