"""Replicated training: what it computes, from which input, and what it refuses."""

from __future__ import annotations

import functools
import os
import threading

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import Barrier
from tests.support.training_models import (
    FEATURES,
    OPTIMIZERS,
    WORDS,
    classification_data,
    dense_model,
    embedding_model,
    late_input,
    looping_model,
    normalized_model,
    scaling,
    short_input,
    slow_input,
    text_data,
    together_input,
)
from tfray.errors import (
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
)
from tfray.ops.system.script_ops import py_func

pytestmark = pytest.mark.ray

MODELS = {
    "dense": (dense_model, classification_data),
    "embedding": (embedding_model, text_data),
    "normalized": (normalized_model, classification_data),
    "looping": (looping_model, classification_data),
    "sharded embedding": (functools.partial(embedding_model, shards=2), text_data),
}


def trainer(model="dense", optimizer="sgd", steps=50, scale=None, batch_size=24, input_of=lambda source: source, **run):
    make_model, data = MODELS[model]
    return tf.train.Trainer(
        make_model(OPTIMIZERS[optimizer]),
        input_of(tf.train.array_input(*data(), batch_size=batch_size, shuffle_seed=4)),
        scale,
        tf.train.RunConfig(steps=steps, local=scale is None, **run),
    )


def loss_of_dense(variables):
    """The loss of `dense_model` on all of its data, by NumPy."""
    features, labels = classification_data()
    w1, b1, w2, b2 = (variables[name].astype(np.float64) for name in ("w1", "b1", "w2", "b2"))
    logits = np.tanh(features @ w1 + b1) @ w2 + b2
    return np.mean(np.log(np.exp(logits).sum(1)) - logits[np.arange(len(labels)), labels])


# -- the same as in one process ------------------------------------------------------------------------


@pytest.mark.rows(every=4)
@pytest.mark.parametrize(
    ("model", "optimizer", "workers", "shards"),
    [
        ("dense", "sgd", 1, 1),
        pytest.param("dense", "sgd", 4, 1, marks=pytest.mark.slow),
        pytest.param("dense", "momentum", 2, 3, marks=pytest.mark.slow),
        pytest.param("dense", "adam", 4, 2, marks=pytest.mark.slow),
        pytest.param("embedding", "sgd", 2, 1, marks=pytest.mark.slow),
        pytest.param("embedding", "adam", 4, 2, marks=pytest.mark.slow),
        ("sharded embedding", "momentum", 2, 2),
        pytest.param("sharded embedding", "adagrad", 4, 3, marks=pytest.mark.slow),
        ("normalized", "momentum", 2, 2),
        ("looping", "adam", 2, 2),
    ],
)
def test_replicas_compute_what_one_process_computes(ray_local, model, optimizer, workers, shards):
    alone = trainer(model, optimizer).fit()
    together = trainer(model, optimizer, scale=scaling(workers, shards)).fit()
    assert together.steps == alone.steps == 50
    assert [record.step for record in together.history] == list(range(1, 51))
    assert all(record.members == tuple(range(workers)) for record in together.history)
    assert together.dropped == 0
    losses = [[record.metrics["loss"] for record in result.history] for result in (alone, together)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    assert together.metrics["loss"] < 0.6 * together.history[0].metrics["loss"]
    assert set(together.variables) == set(alone.variables)
    for name, value in alone.variables.items():
        np.testing.assert_allclose(together.variables[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
    assert together.variables["global_step"] == 50


# -- other modes ---------------------------------------------------------------------------------------


def test_asynchronous_training_runs_the_steps_and_learns(ray_local, tmp_path):
    seen = []
    together = functools.partial(together_input, folder=tmp_path, replicas=3, again=[5, 10, 15])
    result = trainer(steps=80, scale=scaling(3, 2, mode="async"), input_of=together, on_step=seen.append).fit()
    assert result.steps == 80 and result.variables["global_step"] == 80
    assert [record.step for record in seen] == list(range(1, 81))
    assert {len(record.members) for record in seen} == {1}
    assert {record.members[0] for record in seen} == {0, 1, 2}
    assert result.dropped == 0
    first = np.mean([record.metrics["loss"] for record in seen[:5]])
    assert loss_of_dense(result.variables) < 0.5 * first  # a step's own loss may be of parameters long past


@pytest.mark.parametrize("model", [pytest.param("dense", marks=pytest.mark.slow), "embedding"])
def test_backup_workers_whose_gradients_come_late_are_dropped(ray_local, model, tmp_path):
    """Replica 2 answers only after the others have done ten steps; what it then brings is of the past."""
    barrier = Barrier(tmp_path)

    def on_step(record):
        if record.step == 10:
            barrier.reach("go")

    make_model, data = MODELS[model]
    result = tf.train.Trainer(
        make_model(OPTIMIZERS["sgd"]),
        late_input(tf.train.array_input(*data(), batch_size=24), barrier, replica=2, step=3),
        scaling(3, 2, backup_workers=1),
        tf.train.RunConfig(steps=40, on_step=on_step),
    ).fit()
    assert result.steps == 40
    assert all(len(record.members) == 2 for record in result.history)
    assert sum(2 in record.members for record in result.history[:10]) <= 2
    assert result.dropped >= 1
    assert any(2 in record.members for record in result.history[10:]) or result.dropped >= 2
    assert result.metrics["loss"] < result.history[0].metrics["loss"]


@pytest.mark.slow
def test_a_slow_worker_does_not_slow_the_steps(ray_local, tmp_path):
    """Stretches of steps with a worker that sleeps, and without, take turns: both meet the same load of the machine."""
    barrier = Barrier(tmp_path)
    stretch, settling, sleep_s = 60, 25, 1.0

    def on_step(record):
        if record.step % (2 * stretch) == stretch:
            barrier.reach("slow")
        elif record.step % (2 * stretch) == 0:
            barrier.withdraw("slow")

    result = tf.train.Trainer(
        dense_model(OPTIMIZERS["sgd"]),
        slow_input(tf.train.array_input(*classification_data(), batch_size=24), barrier, replica=3, sleep_s=sleep_s),
        scaling(4, 1, backup_workers=1),
        tf.train.RunConfig(steps=6 * stretch, on_step=on_step),
    ).fit()
    assert result.steps == 6 * stretch
    assert all(len(record.members) == 3 for record in result.history)
    durations_s = np.array([record.duration_s for record in result.history]).reshape(3, 2, stretch)[:, :, settling:]
    healthy_s, slowed_s = np.median(durations_s, axis=(0, 2))
    assert slowed_s < 1.3 * healthy_s + 0.1 * sleep_s, f"{slowed_s * 1e3:.1f} ms against {healthy_s * 1e3:.1f} ms"
    slow = [record for record in result.history if (record.step - 1) % (2 * stretch) >= stretch + settling]
    assert sum(3 in record.members for record in slow) < len(slow) / 2
    assert result.dropped >= 1


@pytest.mark.slow
def test_a_model_may_ask_for_a_gpu_that_is_not_there(ray_local):
    model_fn, input_fn = dense_model(OPTIMIZERS["momentum"]), tf.train.array_input(*classification_data(), 24)

    def on_gpu(features, labels):
        with tf.device("/gpu:0"):
            return model_fn(features, labels)

    def fit(build, scale=None):
        made = tf.train.Trainer(build, input_fn, scale, tf.train.RunConfig(steps=5, local=scale is None))
        result = made.fit()
        return result.variables, made.evaluate(result, [classification_data()])["loss"]

    expected, loss = fit(model_fn)
    for variables, other_loss in (fit(on_gpu), fit(on_gpu, scaling(2, 2))):
        assert other_loss == pytest.approx(loss, rel=1e-5)
        for name, value in expected.items():
            np.testing.assert_allclose(variables[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


def test_evaluation_of_what_was_trained(ray_local):
    features, labels = classification_data()
    made = trainer(steps=60, scale=scaling(2))
    result = made.fit()
    metrics = made.evaluate(result, [(features[:100], labels[:100]), (features[100:], labels[100:])])
    assert metrics["accuracy"] > 0.8 and metrics["loss"] < 0.6
    whole = made.evaluate(result, [(features, labels)])
    assert metrics["accuracy"] == pytest.approx(whole["accuracy"], rel=1e-5)
    with pytest.raises(InvalidArgumentError, match="empty"):
        made.evaluate(result, [])


@pytest.mark.slow
def test_features_may_be_dictionaries_with_any_keys(ray_local):
    def model_fn(features, labels):
        w = tf.Variable(np.zeros(2, np.float32), name="w")
        predicted = features["sepal length (cm)"] * w[0] + features["b"] * w[1]
        loss = tf.reduce_mean(tf.square(predicted - labels["y"]))
        return tf.train.ModelSpec(loss, OPTIMIZERS["sgd"]().minimize(loss))

    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 64)).astype(np.float32)
    data = {"sepal length (cm)": a, "b": b}, {"y": 2 * a - b}
    for scale in (None, scaling(2)):
        run = tf.train.RunConfig(steps=60, local=scale is None)
        result = tf.train.Trainer(model_fn, tf.train.array_input(*data, batch_size=16), scale, run).fit()
        np.testing.assert_allclose(result.variables["w"], [2, -1], atol=0.05)


def test_the_mode_and_the_seed_reach_the_model(ray_local):
    modes = []

    def model_fn(features, labels, mode):
        modes.append(mode)
        w = tf.Variable(tf.random_uniform([FEATURES]), name="w")
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(features * w, 1)))
        train = OPTIMIZERS["sgd"]().minimize(loss) if mode == tf.train.ModeKeys.TRAIN else None
        return tf.train.ModelSpec(loss, train)

    data = classification_data()
    results = []
    for scale in (None, scaling(2)):
        run = tf.train.RunConfig(steps=3, local=scale is None, seed=7)
        made = tf.train.Trainer(model_fn, tf.train.array_input(*data, batch_size=24), scale, run)
        results.append(made.fit())
        made.evaluate(results[-1], [data])
    assert modes == ["train", "eval"] * 2
    np.testing.assert_allclose(results[0].variables["w"], results[1].variables["w"], rtol=1e-5)


# -- input ---------------------------------------------------------------------------------------------


def shuffled_examples():
    """A dataset of the classification data, in an order that every replica knows."""
    return tf.data.Dataset.from_tensor_slices(classification_data()).shuffle(1000, seed=3).repeat()


def test_replicas_share_a_dataset(ray_local):
    input_fn = tf.train.dataset_input(shuffled_examples, batch_size=24)
    results = []
    for scale in (None, scaling(3, 2)):
        run = tf.train.RunConfig(steps=20, local=scale is None)
        results.append(tf.train.Trainer(dense_model(OPTIMIZERS["sgd"]), input_fn, scale, run).fit())
    for name, value in results[0].variables.items():
        np.testing.assert_allclose(results[1].variables[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


def test_a_replica_of_a_dataset_that_starts_later_goes_on_from_its_step():
    input_fn = tf.train.dataset_input(lambda: tf.data.Dataset.range(100).map(lambda i: (i, -i)), batch_size=6)
    step = {
        (index, first): next(iter(input_fn(tf.train.InputContext(3, index, 2, first))))
        for index in range(3)
        for first in (1, 4)
    }
    taken = {first: sorted(i for index in range(3) for i in step[index, first][0].tolist()) for first in (1, 4)}
    assert taken == {1: list(range(9)), 4: list(range(27, 36))}
    assert all((features == -labels).all() for features, labels in step.values())
    with pytest.raises(tf.errors.InvalidArgumentError, match="pairs"):
        next(iter(tf.train.dataset_input(lambda: tf.data.Dataset.range(3), 1)(tf.train.InputContext())))


def test_a_dataset_leaves_the_default_graph_alone_between_batches():
    graph = tf.get_default_graph()
    batches = tf.train.dataset_input(shuffled_examples, batch_size=24)(tf.train.InputContext())
    for _ in range(2):
        next(batches)
        assert tf.get_default_graph() is graph


@pytest.mark.slow
def test_training_ends_with_its_input(ray_local):
    features, labels = classification_data(120)
    input_fn = tf.train.array_input(features, labels, batch_size=24, epochs=2)
    run = tf.train.RunConfig(steps=1000)
    # Replicas without a common step take whole batches each: of 5, two and two in a pass.
    for scale, steps in ((scaling(2), 10), (scaling(2, mode="async"), 8)):
        result = tf.train.Trainer(dense_model(OPTIMIZERS["sgd"]), input_fn, scale, run).fit()
        assert result.steps == result.variables["global_step"] == steps


@pytest.mark.slow
def test_a_replica_whose_input_ends_first_leaves_the_others_to_go_on(ray_local):
    data = classification_data()
    result = tf.train.Trainer(
        dense_model(OPTIMIZERS["sgd"]),
        short_input(tf.train.array_input(*data, batch_size=24), replica=1, steps=5),
        scaling(2, 2),
        tf.train.RunConfig(steps=20),
    ).fit()
    assert [record.members for record in result.history] == [(0, 1)] * 5 + [(0,)] * 15
    assert result.variables["global_step"] == 20


@pytest.mark.fault(
    "Input",
    "An input function returns nothing, or no batches.",
    happens="An error that says what was expected.",
    promise="It is found at the start of the run.",
)
@pytest.mark.parametrize(
    ("input_fn", "message"),
    [
        (lambda context: iter([]), "no batch"),
        (lambda context: iter([np.ones(3)]), r"\(features, labels\), got a ndarray"),
        (lambda context: iter([(np.ones(3),)]), r"\(features, labels\)"),
        (lambda context: 3, "returned 3, expected an iterable"),
        (lambda context: None, "returned None, expected an iterable"),
        (lambda context: iter([(np.ones((4, 3)), None)]), "labels of the input's first batch is no array"),
        (lambda context: iter([([[1.0], [1.0, 2.0]], np.ones(2))]), "features of the input's first batch is no array"),
    ],
)
@pytest.mark.parametrize("local", [True, False])
def test_input_that_is_none(ray_local, input_fn, message, local):
    scale = None if local else scaling()
    run = tf.train.RunConfig(steps=3, local=local)
    with pytest.raises(InvalidArgumentError, match=message):
        tf.train.Trainer(dense_model(OPTIMIZERS["sgd"]), input_fn, scale, run).fit()


WRONG_BATCHES = [
    (
        lambda features, labels: (features[:, :1], labels),
        r"value of shape \(\d+, 1\) for Tensor 'features:0', which has",
    ),
    (lambda features, labels: (features[0], labels), "for Tensor 'features:0', which has shape"),
    (
        lambda features, labels: (features.astype(complex), labels),
        "fed for features:0 is no array of float32: comp",
    ),
    (lambda features, labels: (features, labels + np.nan), "fed for labels:0 is no array of int32: invalid value"),
    (lambda features, labels: (features, None), "fed for labels:0 is no array of int32"),
    (lambda features, labels: ([[1.0], [1.0, 2.0]], labels), "fed for features:0 is no array of float"),
    (lambda features, labels: (features[:0], labels[:0]), "no examples"),
    (lambda features, labels: ({"x": features}, labels), "holds features/x, labels, expected features, labels"),
    (lambda features, labels: (features,), r"\(features, labels\)"),
    (lambda features, labels: None, r"\(features, labels\), got a NoneType"),
]
"""What changes a batch, and what the error says."""


@pytest.mark.fault(
    "Input",
    "A batch differs from the first one in dtype, rank or shape.",
    happens="An error that names the array, the step and the replica.",
    promise="A batch is checked on workers as in one process.",
)
@pytest.mark.parametrize(
    ("run", "change", "message"),
    [
        pytest.param(run, *wrong, marks=() if run or number == 0 else pytest.mark.slow)
        for run in ({"local": True}, {"local": True, "bad_gradients": "report"}, {})
        for number, wrong in enumerate(WRONG_BATCHES)
    ],
)
def test_a_batch_that_differs_names_array_step_and_replica(ray_local, run, change, message):
    inner = tf.train.array_input(*classification_data(), batch_size=24)

    def input_fn(context):
        for number, batch in enumerate(inner(context), 1):
            yield change(*batch) if number == 3 and context.index == context.replicas - 1 else batch

    scale = None if run.get("local") else scaling(2)
    where = "step 3" if run.get("local") else r"replica 1 \(/job:worker/task:1/device:CPU:0\) failed in step 3"
    with pytest.raises(InvalidArgumentError, match=f"(?s){where}: .*{message}"):
        tf.train.Trainer(dense_model(OPTIMIZERS["sgd"]), input_fn, scale, tf.train.RunConfig(steps=5, **run)).fit()


@pytest.mark.slow
def test_a_batch_is_cast_as_what_is_fed_to_a_session(ray_local):
    inner = tf.train.array_input(*classification_data(), batch_size=24)

    def input_fn(context):
        for number, (features, labels) in enumerate(inner(context), 1):
            yield (features.astype(np.float64).tolist(), labels.tolist()) if number > 1 else (features, labels)

    model, run = dense_model(OPTIMIZERS["sgd"]), tf.train.RunConfig(steps=5, seed=1)
    expected = tf.train.Trainer(model, inner, scaling(), run).fit()
    found = tf.train.Trainer(model, input_fn, scaling(), run).fit()
    assert found.metrics == expected.metrics


def test_input_that_cannot_be_shared(ray_local):
    made = trainer(scale=scaling(3), batch_size=16)
    with pytest.raises(InvalidArgumentError, match="16 examples cannot be shared evenly by 3 replicas"):
        made.fit()
    with pytest.raises(InvalidArgumentError, match="differ in their number of examples"):
        tf.train.array_input(np.ones(3), np.ones(4), 2)


@pytest.mark.fault(
    "Input",
    "An input function raises on a worker.",
    happens="The run ends with the replica, the step, and the lines of the function.",
    promise="The error is seen as it was raised.",
)
def test_an_input_function_that_raises_names_its_replica(ray_local):
    def input_fn(context):
        batches = tf.train.array_input(*classification_data(), batch_size=24)(context)
        for number, batch in enumerate(batches):
            if number == 5 and context.index == 1:
                raise KeyError("the column 'price' is missing")
            yield batch

    made = tf.train.Trainer(dense_model(OPTIMIZERS["sgd"]), input_fn, scaling(2), tf.train.RunConfig(steps=20))
    with pytest.raises(
        OpError, match=r"replica 1 .*/job:worker/task:1.*step 6.*KeyError.*'price' is missing"
    ) as caught:
        made.fit()
    assert caught.value.device == "/job:worker/task:1/device:CPU:0"
    assert __file__ in str(caught.value)


def test_an_input_function_that_cannot_be_sent_says_why(ray_local):
    lock = threading.Lock()

    def input_fn(context):
        with lock:
            yield from tf.train.array_input(*classification_data(), batch_size=24)(context)

    made = tf.train.Trainer(dense_model(OPTIMIZERS["sgd"]), input_fn, scaling(), tf.train.RunConfig(steps=3))
    with pytest.raises(InvalidArgumentError, match=r"input function cannot be sent.*cannot pickle '_thread.lock'"):
        made.fit()


def test_a_module_that_workers_lack_is_named(ray_local, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("def scale(batch):\n    return batch\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here

    def input_fn(context):
        return map(only_here.scale, tf.train.array_input(*classification_data(), batch_size=24)(context))

    made = tf.train.Trainer(dense_model(OPTIMIZERS["sgd"]), input_fn, scaling(), tf.train.RunConfig(steps=3))
    with pytest.raises(OpError, match=r"replica . \(/job:worker/task:.*cannot start.*No module named 'only_here'"):
        made.fit()


def test_a_function_of_the_graph_that_cannot_be_sent_is_named(ray_local):
    lock = threading.Lock()

    def model_fn(features, labels):
        def guarded(values):
            with lock:
                return values

        w = tf.Variable(1.0, name="w")
        loss = tf.reduce_mean(py_func(guarded, [features], tf.float32, name="culprit")) * w
        return tf.train.ModelSpec(loss, OPTIMIZERS["sgd"]().minimize(loss))

    made = tf.train.Trainer(
        model_fn,
        tf.train.array_input(*classification_data(), batch_size=24),
        scaling(),
        tf.train.RunConfig(steps=3),
    )
    with pytest.raises(
        InvalidArgumentError, match=r"'culprit' needs cannot be sent to .*cannot pickle '_thread.lock'"
    ) as e:
        made.fit()
    assert e.value.op_name == "culprit" and __file__ in e.value.site


@pytest.mark.parametrize("local", [True, False])
def test_a_model_function_that_raises_is_seen_as_it_is(ray_local, local):
    def model_fn(features, labels):
        raise KeyError("no feature 'price'")

    data = tf.train.array_input(*classification_data(), batch_size=24)
    run = tf.train.RunConfig(steps=3, local=local)
    with pytest.raises(KeyError, match="price"):
        tf.train.Trainer(model_fn, data, None if local else scaling(2), run).fit()


def test_an_operation_that_fails_on_a_replica_is_named_with_it(ray_local):
    def model_fn(features, labels):
        def check(values):
            if values[0] == 3:
                raise RuntimeError("this batch is broken")
            return np.float32(1)

        w = tf.Variable(1.0, name="w")
        loss = tf.reduce_mean(features) * 0 * w + py_func(check, [labels], tf.float32, name="culprit")
        return tf.train.ModelSpec(loss, OPTIMIZERS["sgd"]().minimize(loss))

    features, labels = np.ones((12, 2), np.float32), np.arange(12)
    made = tf.train.Trainer(
        model_fn, tf.train.array_input(features, labels, batch_size=2), scaling(2), tf.train.RunConfig(steps=6)
    )
    with pytest.raises(OpError, match=r"replica 1 \(/job:worker/task:1.*step 2.*RuntimeError: this batch") as caught:
        made.fit()
    assert caught.value.op_name == "culprit" and __file__ in caught.value.site


def test_an_index_that_a_shard_refuses_names_who_asked(ray_local):
    words, labels = text_data()
    words[30, 2] = WORDS + 7
    made = tf.train.Trainer(
        embedding_model(OPTIMIZERS["sgd"]),
        tf.train.array_input(words, labels, batch_size=24),
        scaling(2),
        tf.train.RunConfig(steps=6),
    )
    with pytest.raises(
        InvalidArgumentError, match=rf"replica 0 asked of /job:ps/task:0.*step 2.* = {WORDS + 7} is not in"
    ) as caught:
        made.fit()
    assert "training_models.py" in caught.value.site and "ResourceGather" in caught.value.op_name


# -- configurations and room ---------------------------------------------------------------------------


def test_too_few_nodes_for_the_workers(ray_local, printed_text):
    made = trainer(scale=tf.train.ScalingConfig(4, cpus_per_worker=5, start_timeout_s=6), batch_size=20)
    with pytest.raises(ResourceExhaustedError, match=r"20.5 CPU asked, 8 there.*start_timeout_s"):
        made.fit()
    assert "waiting for room" in printed_text.readouterr().err
    made = trainer(scale=tf.train.ScalingConfig(2, cpus_per_worker=0.5, gpus_per_worker=1, start_timeout_s=1))
    with pytest.raises(ResourceExhaustedError, match=r"2 GPU asked, 0 there"):
        made.fit()


@pytest.mark.fault(
    "Configuration",
    "Settings contradict each other.",
    happens="`tf.errors.InvalidArgumentError` with the settings.",
    promise="It is found before anything is started.",
)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers must be .* of at least 1"),
        ({"parameter_servers": -1}, "at least 0"),
        ({"parameter_servers": (0, 2)}, "at least 1"),
        ({"workers": 2, "backup_workers": 2}, "between 0 and 1"),
        ({"mode": "eventually"}, "'sync' or 'async'"),
        ({"workers": 3, "backup_workers": 1, "mode": "async"}, "no backup workers"),
        ({"gpus_per_worker": 1.5}, "gpus_per_worker is 1.5"),
        ({"gpus_per_worker": -1}, "gpus_per_worker"),
    ],
    ids=str,
)
def test_scaling_that_makes_no_sense(options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        tf.train.ScalingConfig(**options)


def test_a_run_of_no_steps():
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        tf.train.RunConfig(steps=0)


# -- what happened -------------------------------------------------------------------------------------


def test_a_fast_replica_stays_near_a_slow_one(ray_local, tmp_path):
    barrier, inner = Barrier(tmp_path), tf.train.array_input(*classification_data(), batch_size=24)

    def input_fn(context):
        """Both begin together; replica 1 reads its third batch only when told to."""
        for number, batch in enumerate(inner(context), 1):
            if os.getpid() != driver and number == 1:
                barrier.reach(f"replica {context.index}")
                barrier.wait(f"replica {1 - context.index}")
            if context.index == 1 and number == 3:
                barrier.wait("go")
            yield batch

    def on_step(record):
        taken.append(record.members[0])
        if taken.count(0) == 4:
            barrier.reach("go")

    driver, taken = os.getpid(), []
    scale, run = scaling(2, mode="async", staleness=1), tf.train.RunConfig(steps=24, on_step=on_step)
    statistics = tf.train.Trainer(dense_model(OPTIMIZERS["sgd"]), input_fn, scale, run).fit().statistics
    # One step beyond the bound may begin, and none before the other has caught up.
    leads = [taken[:count].count(0) - taken[:count].count(1) for count in range(len(taken) + 1)]
    assert max(leads) == 2 and min(leads) >= -2
    assert statistics.steps == 24 and statistics.dropped == 0
    assert 0 < statistics.mean_staleness <= statistics.max_staleness <= 4
    assert set(statistics.replicas) == {0, 1}
    for times in [statistics.step, *statistics.replicas.values()]:
        assert 0 < times.median_s <= times.p90_s <= times.p99_s


@pytest.mark.parametrize("options", [{"staleness": 1}, {"mode": "async", "staleness": -1}])
def test_a_staleness_that_makes_no_sense(options):
    with pytest.raises(InvalidArgumentError, match="staleness"):
        scaling(2, **options)
