"""Trainers on Ray datasets: which rows their replicas read, also when workers die and come."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter

import numpy as np
import pytest

import tfray as tf
from tests.support.training_models import scaling
from tfray.errors import DataLossError, InvalidArgumentError
from tfray.training.input.dataset_shard import DatasetShard, WholeDataset

pytestmark = pytest.mark.ray

ray_data = pytest.importorskip("ray.data")
ray = pytest.importorskip("ray")


@pytest.fixture(autouse=True)
def on_ray(request):
    """Each test has a Ray; some have one of their own."""
    if "ray_nodes" not in request.fixturenames:
        request.getfixturevalue("ray_local")
    yield
    gc.collect()  # objects of Ray Data refer to one another, and hold blocks in the store


def rows_of(count, per_block=3):
    """Numbers, of which every block holds so many."""
    return ray_data.range(count, override_num_blocks=count // per_block)


def mean_model(features, labels):
    """One weight, pulled to the mean of what it sees."""
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(weight - tf.to_float(features)))
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, step)
    return tf.train.ModelSpec(loss, train_op)


def noting(input_fn, folder, after=lambda context, batch: None):
    """Every process notes in a file of its own which rows it has read."""

    def input_of(context):
        for features, labels in input_fn(context):
            with open(folder / str(os.getpid()), "a") as file:
                file.write("".join(f"{number}\n" for number in features))
            after(context, features)
            yield features, labels

    return input_of


def read(folder):
    """How often the workers have read every row."""
    paths = [path for path in folder.iterdir() if path.name.isdecimal() and path.name != str(os.getpid())]
    return Counter(int(line) for path in paths for line in path.read_text().split())


def fit(dataset, input_fn, scale=None, **run):
    run = tf.train.RunConfig(**({"steps": 1000, "local": scale is None} | run))
    return tf.train.Trainer(mean_model, input_fn, scale, run, datasets={"train": dataset}).fit()


# -- every row once --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "batch_size"),
    [
        pytest.param({"workers": 2}, 6, id="sync"),
        pytest.param({"workers": 3, "backup_workers": 1}, 6, id="backup"),
        pytest.param({"workers": 2, "mode": "async"}, 3, id="async"),
        pytest.param({"workers": (1, 2)}, 6, id="elastic"),
    ],
)
@pytest.mark.slow
def test_replicas_read_every_row_once_in_each_pass(tmp_path, scale, batch_size):
    input_fn = tf.train.ray_input("id", None, batch_size, epochs=2)
    result = fit(rows_of(24), noting(input_fn, tmp_path), scaling(**scale))
    assert read(tmp_path) == dict.fromkeys(range(24), 2)
    assert result.statistics.lost_data == {}
    assert result.variables["weight"] > 0


def test_a_run_in_this_process_is_that_of_its_rows():
    values = np.random.default_rng(0).normal(size=20)
    dataset = ray_data.from_numpy(values)
    result = fit(dataset, tf.train.ray_input("data", None, 4, epochs=3))
    weight = 0.0
    for batch in np.tile(values, 3).reshape(-1, 4):
        weight -= 0.01 * 2 * np.mean(weight - batch)
    assert len(result.history) == 15
    np.testing.assert_allclose(result.variables["weight"], weight, rtol=1e-5)


# -- batches ---------------------------------------------------------------------------------------------


def test_batches_span_passes_and_blocks():
    shard = DatasetShard(WholeDataset(rows_of(8, per_block=2)))
    found = list(shard.batches(3, epochs=2))
    assert [list(batch) for batch in found] == [["id"]] * 5  # the sixteenth row fills no batch
    rows = np.concatenate([batch["id"] for batch in found]).tolist()
    assert sorted(rows[:8]) == [*range(8)]  # blocks come as they are read
    assert len({*rows[8:]}) == 7 and {*rows[8:]} < {*range(8)}


def test_columns_become_features_and_labels():
    dataset = ray_data.from_items([{"a": float(i), "b": [i, i], "y": -i} for i in range(4)])
    context = tf.train.InputContext(datasets={"train": DatasetShard(WholeDataset(dataset))})
    ((features, labels),) = tf.train.ray_input(["a", "b"], "y", 4, epochs=1)(context)
    assert sorted(features) == ["a", "b"] and np.array_equal(features["b"], np.stack([features["a"]] * 2, 1))
    assert sorted(zip(features["a"], labels, strict=True)) == [(float(i), -i) for i in range(4)]


def columns_model(features, labels):
    assert labels == {}
    return mean_model(features["id"], None)


def test_an_input_function_may_return_an_iterator_of_ray_data():
    rows, run = rows_of(600, 200).iterator(), tf.train.RunConfig(1000, local=True)
    for input_fn in (lambda context: rows, lambda context: rows.iter_batches()):
        result = tf.train.Trainer(columns_model, input_fn, run=run).fit()
        assert len(result.history) == 3  # of 256 rows, as Ray makes them, and the rest


# -- workers that die and come ---------------------------------------------------------------------------


def dying(folder, batches):
    """The worker of replica 1 dies with a batch that it has taken, once it has had so many. The next one lives."""

    def die(context, batch):
        own, died = folder / str(os.getpid()), folder / "died"
        if context.index == 1 and not died.exists() and len(own.read_text().split()) == batches * len(batch):
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    return die


@pytest.mark.fault(
    "Workers and parameter servers",
    "A worker dies that reads its share of a Ray dataset.",
    happens="Others read the rest of its share. The rows that it had taken are told as lost, like other lost data.",
    promise="No row is read twice in a pass.",
)
@pytest.mark.parametrize("restarts", [8, 0])
@pytest.mark.slow
def test_the_others_read_the_share_of_a_worker_that_dies(tmp_path, restarts):
    input_fn = noting(tf.train.ray_input("id", None, 6, epochs=2), tmp_path, dying(tmp_path, 3))
    result = fit(rows_of(36), input_fn, scaling(2), max_worker_restarts=restarts)
    assert read(tmp_path) == dict.fromkeys(range(36), 2)  # those of the dead worker among them
    assert list(result.statistics.lost_data) == [1]
    (event,) = [event for event in result.events if event.kind == "lost data"]
    assert "the rows of train that it had taken" in event.message
    assert len(result.history) >= 12


@pytest.mark.slow
def test_a_pass_begins_anew_when_what_hands_out_rows_is_lost(tmp_path):
    def kill(context, batch):
        if context.index == 1 and not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            ray.kill(context.dataset_shard()._source._feeds[0])

    result = fit(rows_of(24), noting(tf.train.ray_input("id", None, 6, epochs=1), tmp_path, kill), scaling(2))
    assert set(read(tmp_path)) == set(range(24)) and set(read(tmp_path).values()) <= {1, 2}
    assert 4 < len(result.history) <= 8 and result.statistics.lost_data == {}


@pytest.mark.slow
def test_a_pass_begins_anew_when_a_node_dies(ray_nodes, tmp_path):
    """With it go a worker, what hands out rows beside it, and blocks of the dataset."""
    ray_nodes.add_node(num_cpus=2, resources={"ps": 1})
    nodes = [ray_nodes.add_node(num_cpus=2, resources={"worker": 1}) for _ in range(2)]
    ray.init(address=ray_nodes.address, logging_level="warning")

    def on_step(record):
        if record.step == 3:
            ray_nodes.remove_node(nodes[1], allow_graceful=False)

    resources = {"worker_resources": {"worker": 1}, "parameter_server_resources": {"ps": 1}}
    input_fn = noting(tf.train.ray_input("id", None, 6, epochs=1), tmp_path)
    result = fit(rows_of(60), input_fn, scaling(2, **resources), on_step=on_step)
    assert set(read(tmp_path)) == set(range(60)) and set(read(tmp_path).values()) <= {1, 2}
    assert len(result.history) >= 10 and result.history[-1].members == (0,)


@pytest.mark.slow
def test_a_run_may_stop_when_rows_are_lost(tmp_path):
    input_fn = noting(tf.train.ray_input("id", None, 6), tmp_path, dying(tmp_path, 3))
    with pytest.raises(DataLossError, match="the rows of train that it had taken"):
        fit(rows_of(30), input_fn, scaling(2), on_lost_data="stop")


# -- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "datasets", "message"),
    [
        (("id", None, 4), {"test": 3}, "there is no dataset 'train'.* it has 'test'"),
        (("x", None, 4), {"train": 3}, "no column 'x': it has 'id'"),
        (("id", ["y"], 4), {"train": 3}, "no column 'y': it has 'id'"),
        (("id", None, 4), {"train": 0}, "no rows"),
        (("id", None, 4, 1), {"train": 3}, "no batch"),
    ],
)
def test_datasets_that_do_not_fit_are_refused(arguments, datasets, message):
    given = {name: ray_data.range(rows) for name, rows in datasets.items()}
    trainer = tf.train.Trainer(
        mean_model, tf.train.ray_input(*arguments), run=tf.train.RunConfig(local=True), datasets=given
    )
    with pytest.raises(InvalidArgumentError, match=message):
        trainer.fit()


def test_something_else_than_a_dataset_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"datasets\['train'\] is \[1\], expected a ray.data.Dataset"):
        tf.train.Trainer(mean_model, tf.train.ray_input("x", None, 1), datasets={"train": [1]})
