"""What TensorFlow's own tests of Keras and of bijectors share."""

from __future__ import annotations

import unittest

import numpy as np
import pytest
from absl.testing import parameterized

import tfray as tf
from tfray.contrib.distributions import bijectors as B
from tfray.programs import bijector_tests, graph_mode_tests, keras_tests
from tfray.programs.internals import dataset_tests, parallel_for_tests

layers = tf.keras.layers


@pytest.mark.parametrize(
    ("layer", "options"),
    [
        (layers.Dense, {"kwargs": {"units": 3}, "input_shape": (None, 4)}),
        (layers.MaxPooling1D, {"input_shape": (3, 4, 5)}),
        (layers.LSTM, {"kwargs": {"units": 2}, "input_shape": (2, 3, 4)}),
        (layers.Flatten, {"input_data": np.ones((2, 3, 1), np.float32), "expected_output": np.ones((2, 3))}),
        (
            layers.Embedding,
            {
                "kwargs": {"input_dim": 10, "output_dim": 2},
                "input_shape": (2, 3),
                "input_dtype": "int32",
                "expected_output_dtype": "float32",
            },
        ),
    ],
    ids=["dense", "pooling", "lstm", "flatten", "embedding"],
)
def test_layers_are_as_they_say(layer, options):
    found = keras_tests.layer_test(layer, **options)
    assert isinstance(found, np.ndarray) and len(found) >= 1


class Wrong(layers.Layer):
    """A layer that tells of another shape than it gives."""

    def call(self, inputs):
        return inputs

    def compute_output_shape(self, input_shape):
        return tf.TensorShape([2, 9])


@pytest.mark.parametrize(
    ("layer", "options"),
    [
        (Wrong, {"input_shape": (2, 3)}),
        (layers.Flatten, {"input_shape": (2, 3), "expected_output": np.full((2, 3), 99.0)}),
        (layers.Dense, {"kwargs": {"units": 3}, "input_shape": (2, 4), "expected_output_dtype": "float64"}),
        (layers.Dense, {"kwargs": {"units": 3}, "input_shape": (2, 4), "expected_output_shape": (2, 4)}),
    ],
    ids=["shape", "values", "dtype", "expected shape"],
)
def test_layers_that_are_not(layer, options):
    with pytest.raises(AssertionError):
        keras_tests.layer_test(layer, **options)


@pytest.mark.parametrize("kind", ["functional", "sequential", "subclass", "subclass_custom_build"])
def test_models_of_each_kind(kind):
    (x, y), (of_test, _) = keras_tests.get_test_data(20, 4, (3,), 2, random_seed=1)
    assert x.shape == (20, 3) and set(y) == {0, 1} and of_test.shape == (4, 3)
    with keras_tests.model_type_scope(kind):
        models = [
            keras_tests.get_small_mlp(5, 2, input_dim=3),
            keras_tests.get_model_from_layers([layers.Dense(4), layers.Dense(2, "softmax")], input_shape=(3,)),
        ]
        for model in models:
            model.compile(keras_tests.get_v2_optimizer("rmsprop"), "sparse_categorical_crossentropy")
            model.fit(x, y, epochs=1, batch_size=10, verbose=0)
            assert model.predict(x).shape == (20, 2) and len(model.layers) >= 2
        if kind == "sequential":
            with pytest.raises(ValueError, match="sequential models"):
                keras_tests.get_multi_io_model([], [])
            return
        first, second = [tf.keras.Input((3,)), layers.Dense(2)], [tf.keras.Input((3,)), layers.Dense(2)]
        joined = keras_tests.get_multi_io_model(first, second, shared_output_branch=[layers.Concatenate()])
        joined.compile("sgd", "mse")
        assert joined.predict([x, x]).shape == (20, 4)
        begin = [tf.keras.Input((3,)), layers.Dense(4)]
        parted = keras_tests.get_multi_io_model([layers.Dense(1)], [layers.Dense(2)], shared_input_branch=begin)
        parted.compile("sgd", "mse")
        assert [each.shape for each in parted.predict(x)] == [(20, 1), (20, 2)]
    with pytest.raises(ValueError, match="outside of"):
        keras_tests.get_model_type()


SEEN: list[object] = []


@keras_tests.run_all_keras_modes
class Cases(keras_tests.TestCase):
    """A case as TensorFlow's tests of Keras are."""

    __test__ = False  # the test below runs it

    @keras_tests.run_with_all_model_types(exclude_models="sequential")
    def test_kinds(self):
        SEEN.append(keras_tests.get_model_type())

    @parameterized.named_parameters(("one", 1), ("two", 2))
    def test_numbers(self, number):
        assert not tf.get_default_graph().get_operations() and not keras_tests.should_run_eagerly()
        tf.constant(number)
        SEEN.append(number)

    @keras_tests.run_with_all_model_types
    @parameterized.parameters((5,), (6,))
    def test_both(self, number):
        SEEN.append((number, keras_tests.get_model_type()))

    @keras_tests.run_all_keras_modes(always_skip_v1=True)
    def test_of_tensorflow_2(self):
        raise AssertionError("it is not run")


def test_cases_run_in_a_graph_with_models_of_all_kinds():
    SEEN.clear()
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Cases).run(result)
    assert result.wasSuccessful(), [text for _, text in result.failures + result.errors]
    kinds = ["functional", "sequential", "subclass"]
    expected = [1, 2, "functional", "subclass", *((number, kind) for kind in kinds for number in (5, 6))]
    assert sorted(SEEN, key=str) == sorted(expected, key=str) and len(result.skipped) >= 1


class Shifted(B.Exp):
    """Not a bijector: its inverse is another's."""

    def _inverse(self, y):
        return super()._inverse(y) + 1.0


def test_bijectors_are_bijective():
    x, y = np.linspace(-2, 2, 10, dtype=np.float32), np.linspace(0.1, 3, 10, dtype=np.float32)
    with tf.Session():
        for bijector in (B.Exp(), B.Softplus(), B.AffineScalar(1.0, -2.0)):
            bijector_tests.assert_scalar_congruency(bijector, lower_x=-2.0, upper_x=2.0)
            bijector_tests.assert_bijective_and_finite(bijector, x, y, event_ndims=0, rtol=1e-4, atol=1e-5)
        with pytest.raises(AssertionError):
            bijector_tests.assert_scalar_congruency(Shifted(), lower_x=-2.0, upper_x=2.0)
        with pytest.raises(AssertionError):
            bijector_tests.assert_bijective_and_finite(Shifted(), x, y, event_ndims=0)
        with pytest.raises(AssertionError, match="not all finite"):
            bijector_tests.assert_bijective_and_finite(B.Exp(), x, -y, event_ndims=0)


# -- of datasets and of loops --------------------------------------------------------------------------


class Datasets(dataset_tests.DatasetTestBase):
    """A case as TensorFlow's tests of datasets are: what holds, and what does not."""

    __test__ = False  # the test below runs it

    @graph_mode_tests.run_deprecated_v1
    def test_what_holds(self):
        numbers = tf.data.Dataset.range(3)
        self.assertDatasetProduces(numbers, [0, 1, 2], expected_shapes=tf.TensorShape([]), num_test_iterations=2)
        self.assertDatasetProduces(numbers.map(lambda x: 2 - x), [0, 1, 2], assert_items_equal=True)
        self.assertDatasetProduces(numbers.map(lambda x: {"a": x, "b": (x, x + 1)}).take(1), [{"a": 0, "b": (0, 1)}])
        sparse = tf.SparseTensorValue([[0]], [5], [2])
        self.assertDatasetProduces(tf.data.Dataset.from_tensors(tf.SparseTensor(*sparse)), [sparse])
        self.assertSparseValuesEqual(self.evaluate(tf.SparseTensor(*sparse)), sparse)
        with tf.device("/cpu:0"):  # where datasets are, which come after the step that initialises it
            shift = tf.Variable(2, dtype=tf.int64)
        self.evaluate(shift.initializer)
        self.assertDatasetProduces(numbers.map(lambda x: x + shift), [2, 3, 4], requires_initialization=True)
        failing = numbers.map(lambda x: tf.debugging.check_numerics(1 / tf.cast(1 - x, tf.float32), "no number"))
        self.assertDatasetProduces(
            failing, expected_error=(tf.errors.InvalidArgumentError, "no number"), expected_error_iter=2
        )
        self.assertDatasetsEqual(numbers, tf.data.Dataset.from_tensor_slices(np.arange(3)))
        skipped = failing.skip(1)
        self.assertDatasetsRaiseSameError(skipped, skipped, tf.errors.InvalidArgumentError)
        element = self.structuredElement((None, (None, None)), [2])
        dataset = self.structuredDataset((None, (None, None)), [2])
        self.assertDatasetProduces(dataset, [self.evaluate(element)])

    @graph_mode_tests.run_deprecated_v1
    def test_what_does_not(self):
        numbers = tf.data.Dataset.range(3)
        for expected in ([0, 1], [0, 1, 2, 3], [0, 1, 5], [(0, 0), 1, 2]):
            with pytest.raises((AssertionError, tf.errors.OutOfRangeError)):
                self.assertDatasetProduces(numbers, expected)
        for wrong in ({}, {"expected_output": [], "expected_error": (ValueError, "")}):
            with pytest.raises(AssertionError, match="Exactly one"):
                self.assertDatasetProduces(numbers, **wrong)
        with pytest.raises((AssertionError, ValueError)):
            self.assertDatasetsEqual(numbers, numbers.take(2))
        with pytest.raises(AssertionError):
            self.assertDatasetsEqual(numbers, numbers.map(lambda x: x * 2))


class Loops(parallel_for_tests.PForTestCase):
    """A case as TensorFlow's tests of `pfor` are."""

    __test__ = False  # the test below runs it

    @graph_mode_tests.run_deprecated_v1
    def test_loops(self):
        x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        self._test_loop_fn(lambda i: (tf.gather(x, i), i), 2, [tf.float32, tf.int32])
        self.run_and_assert_equal(tf.constant(["a"]), tf.constant(["a"]))
        with pytest.raises(AssertionError):
            self.run_and_assert_equal({"a": x, "b": x}, {"a": x, "b": x + 1})


@graph_mode_tests.run_all_in_graph_and_eager_modes
class Sessions(tf.test.TestCase):
    """Each test runs in a session: what looks for one, such as a `CheckpointManager`, finds it."""

    __test__ = False  # the test below runs it

    def setUp(self):
        super().setUp()
        self.made_before = tf.constant(3)

    def test_in_a_session(self):
        self.assertIs(self.made_before.graph, tf.get_default_graph())
        self.assertEqual(self.made_before.eval(), 3)
        manager = tf.train.CheckpointManager(tf.train.Checkpoint(), self.get_temp_dir(), 1)
        self.assertTrue(tf.train.checkpoint_exists(manager.save()))
        with self.cached_session() as session:
            self.assertIs(session, tf.get_default_session())


class OneSession(tf.test.TestCase):
    """As `Sessions`, but one test."""

    __test__ = False  # the test below runs it

    @graph_mode_tests.run_in_graph_and_eager_modes(config=tf.ConfigProto())
    def test_in_a_session(self):
        self.assertIsNotNone(tf.get_default_session())

    def test_in_none(self):
        self.assertIsNone(tf.get_default_session())
        with self.assertRaisesRegex(ValueError, "only supports test methods"):
            graph_mode_tests.run_in_graph_and_eager_modes(OneSession)


@pytest.mark.parametrize("case", [Datasets, Loops, Sessions, OneSession])
def test_shared_cases(case):
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert result.wasSuccessful(), [text for _, text in result.failures + result.errors]


def test_meta_graphs_are_compared():
    case = graph_mode_tests.TensorFlowTestCase("run")
    tf.add_to_collection("numbers", tf.constant(1.0, name="one"))
    made = tf.train.export_meta_graph()
    assert graph_mode_tests.get_node_def_from_graph("one", made.graph_def).op == "Const"
    assert graph_mode_tests.get_node_def_from_graph("two", made.graph_def) is None
    graph_mode_tests.assert_meta_graph_protos_equal(case, made, tf.train.export_meta_graph())
    tf.constant(2.0)
    for other in (tf.train.export_meta_graph(), tf.train.export_meta_graph(collection_list=[])):
        with pytest.raises(AssertionError):
            graph_mode_tests.assert_meta_graph_protos_equal(case, made, other)
