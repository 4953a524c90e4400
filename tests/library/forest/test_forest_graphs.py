"""Random forests that learn from batches: `tf.contrib.tensor_forest`."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.library.variables import registered_resources

tensor_forest = tf.contrib.tensor_forest.python.tensor_forest


def forest(**parameters):
    """A forest, and its parameters."""
    return tensor_forest.RandomForestGraphs(tensor_forest.ForestHParams(**parameters).fill())


def one_split(**parameters):
    """A tree with one feature, which is split once."""
    given = {"num_classes": 2, "num_features": 1, "num_trees": 1, "max_nodes": 3, "base_random_seed": 1}
    return forest(**given | parameters)


def run_split(session, graphs, values, labels, weights=None, ask=()):
    """Take one batch in; what the forest then says of the values to ask for, and its size."""
    column = np.array(values, np.float32)[:, None]
    session.run(graphs.training_graph(column, labels, input_weights=weights))
    mean, _, variance = graphs.inference_graph(np.array(ask, np.float32)[:, None])
    return *session.run([mean, variance]), session.run(graphs.average_size())


# -- how a leaf is split -------------------------------------------------------------------------------------


def test_the_first_examples_are_candidates_and_the_others_are_counted(session):
    graphs = one_split(num_splits_to_consider=1, split_after_samples=4)
    # The threshold is 3; of those that are counted, 1 and 3 go to the left.
    mean, variance, size = run_split(session, graphs, [3, 1, 3, 4, 5], [0, 0, 1, 1, 1], ask=[3, 3.5])
    np.testing.assert_allclose(mean, [[0.5, 0.5], [0, 1]])
    assert size == 3 and not variance.any()


def test_what_is_learned_in_a_step_changes_no_answer_from_before_it(session):
    graphs = one_split(num_splits_to_consider=1, split_after_samples=4)
    column = np.array([3, 1, 3, 4, 5], np.float32)[:, None]
    answers = graphs.inference_graph(column)
    with tf.control_dependencies([answers[0]]):
        trained = graphs.training_graph(column, [0, 0, 1, 1, 1])
    with tf.control_dependencies([trained]):
        shown = [tf.identity(each) for each in answers]
    first = session.run(shown)[0]
    second = session.run(shown)[0]
    assert (first == first[0]).all()  # the tree has one leaf yet
    np.testing.assert_allclose(second[[0, 3]], [[0.5, 0.5], [0, 1]])


def test_below_a_threshold_goes_to_the_left_if_asked(session):
    graphs = one_split(num_splits_to_consider=1, split_after_samples=4, split_name="less")
    mean, _, _ = run_split(session, graphs, [3, 1, 3, 4, 5], [0, 0, 1, 1, 1], ask=[2.5, 3, np.nan])
    np.testing.assert_allclose(mean, [[1, 0], [0, 1], [0, 1]])


@pytest.mark.parametrize("seed", range(4))
def test_the_best_candidate_of_classes_has_the_least_gini_impurity(session, seed):
    random = np.random.default_rng(seed)
    values, labels = random.permutation(40).astype(np.float32), random.integers(0, 3, 40)
    weights = random.choice([0.5, 1, 2], 40).astype(np.float32)
    graphs = one_split(num_classes=3, num_splits_to_consider=6, split_after_samples=10)

    def sides(threshold):
        rest = values[6:]
        for side in (rest <= threshold, rest > threshold):
            yield np.array([weights[6:][side & (labels[6:] == each)].sum() for each in range(3)])

    def impurity(threshold):
        # Counts begin with 1.
        return sum((c + 1).sum() * (1 - (((c + 1) / (c + 1).sum()) ** 2).sum()) for c in sides(threshold))

    useful = [each for each in values[:6] if all(side.sum() > 0 for side in sides(each))]
    best = min(useful, key=impurity)
    mean, _, size = run_split(session, graphs, values, labels, weights, ask=[best, best + 0.5])
    np.testing.assert_allclose(mean, [side / side.sum() for side in sides(best)], rtol=1e-6)
    assert size == 3


@pytest.mark.parametrize("seed", range(4))
def test_the_best_candidate_of_values_has_the_least_squared_error(session, seed):
    random = np.random.default_rng(seed)
    values, labels = random.permutation(40).astype(np.float32), random.normal(size=(40, 2)).astype(np.float32)
    graphs = one_split(num_splits_to_consider=6, split_after_samples=10, regression=True)

    def sides(threshold):
        return [labels[6:][values[6:] <= threshold], labels[6:][values[6:] > threshold]]

    useful = [each for each in values[:6] if all(map(len, sides(each)))]
    best = min(useful, key=lambda each: sum(((side - side.mean(0)) ** 2).sum() for side in sides(each)))
    mean, _, _ = run_split(session, graphs, values, labels, ask=[best, best + 0.5])
    np.testing.assert_allclose(mean, [side.mean(0) for side in sides(best)], rtol=1e-5, atol=1e-6)


def test_leaves_of_one_class_are_not_split_and_useless_candidates_are_replaced(session):
    pure = one_split(num_splits_to_consider=1, split_after_samples=2)
    assert run_split(session, pure, range(9), [1] * 9, ask=[0])[2] == 1
    graphs = one_split(num_splits_to_consider=1, split_after_samples=2)
    assert run_split(session, graphs, [9, 1, 2], [0, 1, 0])[2] == 1, "nothing is above 9"
    assert run_split(session, graphs, [1, 1, 2], [0, 1, 0])[2] == 3, "it begins with another candidate"


def test_examples_go_on_to_count_until_there_are_enough(session):
    graphs = one_split(num_splits_to_consider=1, split_after_samples=4)
    for sizes, batch in ((1, [3, 1]), (1, [4, 5]), (3, [2])):
        assert run_split(session, graphs, batch, [each > 3 for each in batch])[2] == sizes


# -- the whole forest ----------------------------------------------------------------------------------------


def batches(steps, size=64, seed=0):
    random = np.random.default_rng(seed)
    for _ in range(steps):
        features = random.normal(size=(size, 5)).astype(np.float32)
        yield features, (features[:, 0] > 0) + 2 * (features[:, 1] > 0)


POINTS = np.random.default_rng(1).normal(size=(100, 5)).astype(np.float32)


class Trained:
    """A forest in a session, and its predictions."""

    def __init__(self, session, **parameters):
        given = {"num_classes": 4, "num_features": 5, "num_trees": 3, "max_nodes": 50, "split_after_samples": 20}
        self.x, self.y = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.int32, [None])
        self.graphs = forest(**given | parameters)
        self.train = self.graphs.training_graph(self.x, self.y)
        self.answers = self.graphs.inference_graph(self.x)
        self.session = session

    def fit(self, data):
        for x, y in data:
            self.session.run(self.train, {self.x: x, self.y: y})
        return self

    def says(self, index=0):
        return self.session.run(self.answers[index], {self.x: POINTS})


def test_trees_grow_to_their_size_and_know_the_features(session):
    trained = Trained(session, base_random_seed=1).fit(batches(100))
    size, loss = session.run([trained.graphs.average_size(), trained.graphs.training_loss(None, None)])
    assert size == 51 == -loss and session.run(trained.graphs.validation_loss(None, None)) == loss
    importances = session.run(trained.graphs.feature_importances())
    assert importances.sum() == pytest.approx(1) and importances[:2].sum() > 0.4
    expected = (POINTS[:, 0] > 0) + 2 * (POINTS[:, 1] > 0)
    assert (trained.says().argmax(1) == expected).mean() > 0.8
    np.testing.assert_allclose(trained.says().sum(1), 1, rtol=1e-6)
    assert trained.says(2).shape == (100, 4) and trained.says(1).shape == (0, 3)


def test_before_the_first_batch_there_are_leaves_that_know_nothing(session):
    trained = Trained(session)
    assert not trained.says().any() and session.run(trained.graphs.average_size()) == 1
    assert trained.answers[0].shape.as_list() == [None, 4] and trained.answers[0].dtype is tf.float32


def test_the_seed_decides():
    def run(seed=None, **parameters):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(seed)
            return Trained(session, **parameters).fit(batches(10)).says()

    np.testing.assert_array_equal(run(base_random_seed=3), run(base_random_seed=3))
    np.testing.assert_array_equal(run(7), run(7))
    assert (run(base_random_seed=3) != run(base_random_seed=4)).any() and (run() != run()).any()


def test_a_saver_restores_trees_and_what_leaves_have_counted(tmp_path):
    with tf.Graph().as_default():
        with tf.Session() as session:
            trained = Trained(session).fit(batches(10))
            saved = tf.train.Saver().save(session, str(tmp_path / "forest"))
            before = trained.says()
            after = trained.fit(batches(10, seed=5)).says()
        with tf.Session() as session:
            trained.session = session
            tf.train.Saver().restore(session, saved)
            np.testing.assert_array_equal(trained.says(), before)
            np.testing.assert_array_equal(trained.fit(batches(10, seed=5)).says(), after)
    with tf.Graph().as_default(), tf.Session() as session:
        Trained(session, num_trees=4)
        with pytest.raises(Exception, match="4 trees"):
            tf.train.Saver().restore(session, saved)


def test_trees_take_parts_of_examples_and_features(session):
    all_of_them = Trained(session, base_random_seed=1).fit(batches(3)).says()
    bagged = Trained(session, base_random_seed=1, bagging_fraction=0.5).fit(batches(3)).says()
    assert (bagged != all_of_them).any()
    trained = Trained(session, base_random_seed=1, feature_bagging_fraction=0.4, num_trees=1).fit(batches(20))
    (features,) = trained.graphs.params.bagged_features
    assert set(np.flatnonzero(session.run(trained.graphs.feature_importances()))) <= set(features)
    assert len(features) == 2


def test_trainers_share_the_trees_out(session):
    trained = Trained(session, num_trees=4, base_random_seed=1)
    halves = [trained.graphs.training_graph(trained.x, trained.y, num_trainers=2, trainer_id=each) for each in (0, 1)]
    for x, y in batches(10):
        session.run(halves[1], {trained.x: x, trained.y: y})
    sizes = session.run(tf.get_default_graph().get_tensor_by_name(_sizes(trained)))
    assert sizes[:2].tolist() == [1, 1] and (sizes[2:] > 1).all()


def _sizes(trained):
    trained.graphs.average_size()
    return next(op for op in tf.get_default_graph().get_operations() if op.type == "RandomForestSizes").outputs[0].name


def test_paths_are_told_if_asked(session):
    paths = Trained(session, inference_tree_paths=True, max_nodes=5).fit(batches(10)).says(1)
    assert paths.shape == (100, 3)
    ways = [[int(each) for each in path.decode().split(",")] for path in paths[:, 2]]
    assert {way[0] for way in ways} == {2} and {len(way) for way in ways} <= {2, 3}


def test_features_may_be_in_a_dictionary_or_sparse(session):
    dense = Trained(session, base_random_seed=1)
    other = forest(num_classes=4, num_features=5, num_trees=3, max_nodes=50, split_after_samples=20, base_random_seed=1)
    sparse = forest(
        num_classes=4, num_features=5, num_trees=3, max_nodes=50, split_after_samples=20, base_random_seed=1
    )
    dense.fit(batches(8))
    for x, y in batches(8):
        session.run(other.training_graph({"b": x[:, 1:].astype(np.float64), "a": x[:, 0]}, {"y": y}))
        places = np.argwhere(x != 0)
        session.run(sparse.training_graph(tf.SparseTensor(places, x[x != 0], x.shape), y[:, None]))
    for graphs in (other, sparse):
        np.testing.assert_array_equal(session.run(graphs.inference_graph(POINTS)[0]), dense.says())
    with pytest.raises(TypeError, match="strings"):
        dense.graphs.inference_graph(tf.constant([["a"]]))


def test_trees_can_be_shared(session):
    trained = Trained(session).fit(batches(5))
    again = tensor_forest.RandomForestGraphs(trained.graphs.params, variables=trained.graphs.variables, training=False)
    np.testing.assert_array_equal(session.run(again.inference_graph(POINTS)[0]), trained.says())
    assert again.get_all_resource_handles() == trained.graphs.get_all_resource_handles()
    assert len(tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS)) == 1


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        (np.zeros((2, 5)), [0, 4], "classes from 0 to 3, a label is 4"),
        (np.zeros((2, 5)), [0, -1], "a label is -1"),
        (np.zeros((2, 5)), [0, 1, 2], "expected"),
        (np.zeros((2, 4)), [0, 1], "was trained with 5 features, the examples have 4"),
    ],
)
def test_what_does_not_fit_is_refused(session, features, labels, message):
    trained = Trained(session).fit(batches(1))
    with pytest.raises(InvalidArgumentError, match=message):
        session.run(trained.graphs.training_graph(features, labels))


def test_parameters():
    params = tensor_forest.ForestHParams(num_classes=3, num_features=784, split_after_samples="100").fill()
    assert (params.num_trees, params.max_nodes, params.num_splits_to_consider) == (100, 10000, 28)
    assert params.split_after_samples == 100 and not params.regression and params.num_outputs == 1
    assert params.values()["num_output_columns"] == 4 and params.bagged_features is None
    assert tensor_forest.ForestHParams(num_classes=3, num_features=9, regression=True).fill().num_outputs == 3
    with pytest.raises(AttributeError, match="num_features"):
        tensor_forest.ForestHParams(num_classes=3).fill()
    for wrong in ({"split_name": "more"}, {"model_name": "x"}, {"param_file": "x"}, {"split_after_samples": "depth"}):
        with pytest.raises(ValueError):
            tensor_forest.ForestHParams(num_classes=3, num_features=9, **wrong).fill()
    with pytest.raises(ValueError, match="tree_configs"):
        tensor_forest.RandomForestGraphs(params, tree_configs=["x"])


# -- resources that are registered ---------------------------------------------------------------------------


def test_registered_resources(session):
    assert session.run(registered_resources.report_uninitialized_resources()).tolist() == []
    forest(num_classes=2, num_features=1)
    flag = tf.Variable(False, collections=[])
    handle = tf.queue.FIFOQueue(1, tf.float32).queue_ref
    registered_resources.register_resource(handle, flag.assign(True).op, tf.identity(flag), is_shared=False)
    assert len(registered_resources.shared_resources()) == len(registered_resources.local_resources()) == 1
    session.run(flag.initializer)
    report = registered_resources.report_uninitialized_resources()
    assert session.run(report).tolist() == [handle.name.encode()]
    everything = registered_resources.shared_resources() + registered_resources.local_resources()
    session.run(registered_resources.initialize_resources(everything))
    assert session.run(report).tolist() == [] and session.run(flag)


def test_monitored_sessions_initialize_them():
    with tf.Graph().as_default():
        made = tf.Variable(0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
        handle = tf.queue.FIFOQueue(1, tf.float32).queue_ref
        create = tf.assign(made, 5, validate_shape=False).op
        registered_resources.register_resource(handle, create, tf.constant(True))
        scaffold = tf.train.Scaffold(local_init_op=tf.no_op(), ready_op=tf.constant([], tf.string))
        with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(scaffold)) as session:
            assert session.run(made) == 5


# -- how well it learns --------------------------------------------------------------------------------------


def learned(x, y, train, steps, **parameters):
    """The predictions for the examples that are not for training."""
    random = np.random.default_rng(0)
    given = {
        "num_features": x.shape[1],
        "num_trees": 50,
        "max_nodes": 1000,
        "split_after_samples": 20,
        "base_random_seed": 1,
    }
    with tf.Graph().as_default(), tf.Session() as session:
        graphs = forest(**given | parameters)
        feature, label = tf.placeholder(tf.float32, [None, x.shape[1]]), tf.placeholder(tf.float32, [None])
        step = graphs.training_graph(feature, label)
        for _ in range(steps):
            batch = random.integers(0, train, 256)
            session.run(step, {feature: x[batch], label: y[batch]})
        return session.run(graphs.inference_graph(x[train:].astype(np.float32))[0])


def test_digits_are_told_apart_as_by_extra_trees():
    datasets, ensemble = pytest.importorskip("sklearn.datasets"), pytest.importorskip("sklearn.ensemble")
    x, y = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order], y[order]
    theirs = ensemble.ExtraTreesClassifier(50, random_state=0).fit(x[:1300], y[:1300]).score(x[1300:], y[1300:])
    ours = (learned(x, y, 1300, 200, num_classes=10).argmax(1) == y[1300:]).mean()
    assert ours > theirs - 0.04, (ours, theirs)


def test_values_are_predicted_as_by_extra_trees():
    datasets, ensemble = pytest.importorskip("sklearn.datasets"), pytest.importorskip("sklearn.ensemble")
    x, y = datasets.make_friedman1(2000, random_state=0)
    theirs = ensemble.ExtraTreesRegressor(50, random_state=0).fit(x[:1500], y[:1500]).score(x[1500:], y[1500:])
    predicted = learned(x, y, 1500, 100, num_classes=1, regression=True, split_after_samples=50)[:, 0]
    ours = 1 - ((predicted - y[1500:]) ** 2).mean() / y[1500:].var()
    assert ours > theirs - 0.06, (ours, theirs)
