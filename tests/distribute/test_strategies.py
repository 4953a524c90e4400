"""Strategies: the values that TensorFlow 1.15 has for the same programs, on two CPU devices."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tfray as tf
import tfray.runtime.device as runtime_device

TWO = ["/cpu:0", "/cpu:1"]


@pytest.fixture
def two():
    return tf.distribute.MirroredStrategy(TWO)


def session():
    return tf.Session(config=tf.ConfigProto(device_count={"CPU": 2}))


def number():
    """The number of the replica being built, as a float."""
    return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)


def values_of(strategy, structure):
    """The values of all replicas, run in a session whose variables are initialised."""
    with session() as ran:
        ran.run(tf.global_variables_initializer())
        return ran.run([list(strategy.unwrap(each)) for each in structure])


def test_a_program_without_a_strategy_has_one_replica():
    assert not tf.distribute.has_strategy()
    assert not tf.distribute.in_cross_replica_context()
    assert tf.distribute.get_strategy().num_replicas_in_sync == 1
    context = tf.distribute.get_replica_context()
    assert context.num_replicas_in_sync == 1
    assert context.merge_call(lambda strategy, x: x + strategy.num_replicas_in_sync, (2,)) == 3
    assert tf.distribute.get_strategy().experimental_run_v2(lambda x: x + 1, (1,)) == 2
    assert tf.distribute.get_loss_reduction() is tf.distribute.ReduceOp.SUM


def test_what_code_is_told_where_it_stands(two):
    seen = []

    def tell():
        tf.distribute.get_replica_context().merge_call(
            lambda strategy: seen.append((strategy is two, tf.distribute.in_cross_replica_context()))
        )
        return tf.distribute.in_cross_replica_context(), tf.distribute.get_replica_context().devices

    with two.scope() as entered:
        assert entered is two is tf.distribute.get_strategy()
        assert tf.distribute.has_strategy()
        assert tf.distribute.in_cross_replica_context()
        assert tf.distribute.get_replica_context() is None
        with two.scope():
            assert tf.distribute.get_strategy() is two
    across, devices = two.experimental_run_v2(tell)
    assert across is False
    assert two.unwrap(devices[0]) == ("/device:CPU:0", "/device:CPU:1")
    assert seen == [(True, True)]
    assert not tf.distribute.has_strategy()


def test_replicas_train_together():
    """A variable of each kind, a split batch and momentum: two steps."""
    two = tf.distribute.MirroredStrategy(TWO)
    with two.scope():
        w = tf.get_variable("w", initializer=1.0)
        step = tf.train.get_or_create_global_step()
        batches = tf.data.Dataset.range(8).map(lambda x: tf.cast(x, tf.float32)).batch(4)
        iterator = two.make_dataset_iterator(batches)
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)

        def train(x):
            b = tf.Variable(2.0, name="b")
            loss = tf.reduce_sum(w * x + b)
            with tf.control_dependencies([optimizer.minimize(loss, global_step=step)]):
                return tf.identity(loss)

        losses = two.experimental_run(train, iterator)
        total = two.reduce(tf.distribute.ReduceOp.SUM, losses)
    names = [variable.op.name for variable in tf.global_variables()]
    assert names == ["w", "global_step", "b", "w/Momentum", "b/Momentum"]
    with session() as ran:
        ran.run(tf.global_variables_initializer())
        ran.run(iterator.initialize())
        assert ran.run([total, *two.unwrap(losses)]) == [14, 5, 9]
        np.testing.assert_allclose(ran.run([total, *two.unwrap(losses)]), [15.2, 6.8, 8.4], rtol=1e-6)
        np.testing.assert_allclose(ran.run(tf.global_variables()[:3]), [-2.34, 2, 0.84], rtol=1e-6)
        with pytest.raises(tf.errors.OutOfRangeError):
            ran.run(total)


def test_values_are_agreed_on(two):
    def build():
        context = tf.distribute.get_replica_context()
        total = context.all_reduce(tf.distribute.ReduceOp.SUM, number() + 1)
        mean = context.all_reduce("mean", {"k": number() + tf.constant([1.0, 2.0])})["k"]
        merged = context.merge_call(lambda strategy, x: strategy.reduce("MEAN", x), (number() * 2,))
        return total, mean, merged, 3

    total, mean, merged, same = two.experimental_run_v2(build)
    assert same == 3
    found = values_of(two, [total, mean, merged])
    assert found[0] == [3, 3]
    np.testing.assert_array_equal(found[1], [[1.5, 2.5]] * 2)
    assert found[2] == [1]


@pytest.mark.parametrize(("aggregation", "expected"), [("SUM", 13), ("MEAN", 11.5), ("ONLY_FIRST_REPLICA", 11)])
def test_a_variable_is_updated_once_for_all_replicas(two, aggregation, expected):
    kind = tf.VariableAggregation[aggregation]

    def build():
        variable = tf.get_variable("v", initializer=10.0, aggregation=kind, trainable=False)
        with tf.control_dependencies([variable.assign_add(number() + 1)]):
            return variable.read_value()

    read = two.experimental_run_v2(build)
    assert values_of(two, [read]) == [[expected] * 2]


def test_a_library_updates_a_variable_in_a_replica(two):
    """What the replicas pass, by place or by name, is merged: the function sees the values of both."""

    def add(variable, first, second):
        return variable.assign_add(two.reduce("SUM", first) + two.reduce("SUM", second))

    def build():
        variable = tf.get_variable("v", initializer=10.0, trainable=False)
        return two.extended.update(variable, add, (number(),), {"second": number() * 10})

    assert values_of(two, [two.experimental_run_v2(build)]) == [[21]]


def test_a_metric_adds_up_over_replicas(two):
    def build():
        mean, update = tf.metrics.mean(number() + 1)
        with tf.control_dependencies([update]):
            return tf.identity(update), mean

    update, mean = two.experimental_run_v2(build)
    with session() as ran:
        ran.run(tf.local_variables_initializer())
        ran.run(two.group(update))
        assert ran.run(two.unwrap(mean)) == (1.5, 1.5)


def test_a_moving_average_follows_the_mean(two):
    def build():
        layer = tf.layers.BatchNormalization(momentum=0.5, name="norm")
        layer(tf.fill([2, 1], number() + 1), training=True)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            return tf.constant(0.0)

    done = two.experimental_run_v2(build)
    with session() as ran:
        ran.run(tf.global_variables_initializer())
        ran.run(two.unwrap(done))
        assert ran.run("norm/moving_mean/read:0") == 0.75


def test_sparse_gradients_of_all_replicas_are_applied(two):
    """Row 3 belongs to both: Adagrad adds its gradients up first, 0.5 / sqrt(0.1 + 2 * 2) * 2."""

    def build():
        table = tf.get_variable("table", initializer=np.ones([4, 2], np.float32))
        chosen = [tf.distribute.get_replica_context().replica_id_in_sync_group, 3]
        return tf.train.AdagradOptimizer(0.5).minimize(tf.reduce_sum(tf.nn.embedding_lookup(table, chosen)))

    step = two.group(two.experimental_run_v2(build))
    with session() as ran:
        ran.run(tf.global_variables_initializer())
        ran.run(step)
        np.testing.assert_allclose(ran.run("table/read:0")[:, 0], [0.5233, 0.5233, 1, 0.5061], atol=1e-4)


def test_values_are_reduced_along_an_axis(two):
    """Replicas of different sizes: a mean counts all rows alike."""
    rows = two.experimental_run_v2(
        lambda: tf.range(2 + tf.distribute.get_replica_context().replica_id_in_sync_group) + 1
    )
    total, mean = two.reduce("SUM", rows, axis=0), two.reduce("MEAN", rows, axis=-1)
    with session() as ran:
        assert ran.run([total, mean]) == [9, 1.8]
    assert two.reduce("MEAN", 5) == 5
    assert two.reduce("SUM", 0) == 0


def test_several_steps_in_one_loop(two):
    """The loss that counts in the third step is 8 + ... + 11, and the variable has moved by all sums."""
    batches = tf.data.Dataset.range(16).map(lambda x: tf.cast(x, tf.float32)).batch(4)
    iterator = two.make_dataset_iterator(batches)
    with two.scope():
        w = tf.get_variable("w", initializer=0.0)

        def step(context, inputs):
            def build(x):
                total = tf.reduce_sum(x)
                context.set_last_step_output("total", total, tf.distribute.ReduceOp.SUM)
                context.set_non_tensor_output("note", 7)
                return tf.train.GradientDescentOptimizer(1.0).minimize(w * total)

            return two.group(two.extended.call_for_each_replica(build, (inputs,)))

        context = two.extended.experimental_run_steps_on_iterator(
            step, iterator, iterations=3, initial_loop_values={"total": tf.constant(0.0)}
        )
    assert context.non_tensor_outputs == {"note": 7}
    with session() as ran:
        ran.run([tf.global_variables_initializer(), iterator.initialize()])
        ran.run(context.run_op)
        assert ran.run(two.extended.read_var(w)) == -66
        ran.run(iterator.initialize())
        assert ran.run(context.last_step_outputs["total"]) == 38


# -- input ---------------------------------------------------------------------------------------------


def test_each_replica_takes_a_batch_of_an_input_function(two):
    def input_fn(context):
        assert (context.num_input_pipelines, context.input_pipeline_id) == (1, 0)
        return tf.data.Dataset.range(5).map(lambda x: x * context.num_replicas_in_sync + 1).batch(1)

    iterator = two.make_input_fn_iterator(input_fn)
    assert iterator.output_types is tf.int64
    parts = two.unwrap(iterator.get_next())
    with session() as ran:
        ran.run(iterator.initializer)
        assert [[int(part[0]) for part in ran.run(parts)] for _ in range(2)] == [[1, 3], [5, 7]]
        with pytest.raises(tf.errors.OutOfRangeError):  # one element is left, for two replicas
            ran.run(parts)


def test_a_function_may_make_the_input_of_a_replica(two):
    iterator = two.make_input_fn_iterator(lambda context: lambda: tf.constant(context.num_replicas_in_sync))
    doubled = two.experimental_run(lambda x: x * 2, iterator)
    assert values_of(two, [doubled]) == [[4, 4]]


@pytest.mark.parametrize(
    ("rows", "batch", "expected"),
    [
        (8, 4, [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]),
        (7, 4, [[[0, 1], [2, 3]], [[4, 5], [6]]]),
        (5, 4, [[[0, 1], [2, 3]]]),
        (3, 3, [[[0, 1], [2]]]),
    ],
    ids=["whole", "smaller last batch", "one row left", "odd"],
)
def test_batches_are_split(two, rows, batch, expected):
    data = {"x": tf.data.Dataset.range(rows), "y": tf.data.Dataset.range(rows).map(lambda i: tf.stack([i, i]))}
    iterator = two.experimental_distribute_dataset(tf.data.Dataset.zip(data).batch(batch)).make_one_shot_iterator()
    element = two.unwrap(iterator.get_next()["x"]), two.unwrap(iterator.output_shapes["y"])
    assert element[1][0].as_list() == [None, 2]
    found = []
    with session() as ran:
        for _ in expected:
            found.append([part.tolist() for part in ran.run(element[0])])
        with pytest.raises(tf.errors.OutOfRangeError):
            ran.run(element[0])
    assert found == expected


def test_sparse_batches_are_split(two):
    rows = tf.SparseTensor([[0, 1], [1, 0], [3, 2]], [5, 6, 7], [4, 3])
    iterator = two.make_dataset_iterator(tf.data.Dataset.from_tensors((rows, tf.constant([[1], [2], [3], [4]]))))
    dense, labels = two.experimental_run(lambda pair: (tf.sparse.to_dense(pair[0]), pair[1]), iterator)
    assert [part.shape.as_list() for part in two.unwrap(labels)] == [[2, 1], [2, 1]]
    with session() as ran:
        ran.run(iterator.initialize())
        first, second = ran.run(two.unwrap(dense))
    assert first.tolist() == [[0, 5, 0], [6, 0, 0]]
    assert second.tolist() == [[0, 0, 0], [0, 0, 7]]


def test_a_dataset_of_arrays(two):
    dataset = two.experimental_make_numpy_dataset(({"a": np.arange(4.0)}, np.arange(4)))
    assert dataset.output_types == ({"a": tf.float64}, tf.int64)
    assert dataset.output_shapes[1].as_list() == []


def test_an_input_context():
    context = tf.distribute.InputContext(3, 1, 4)
    assert context.get_per_replica_batch_size(8) == 2
    assert (context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync) == (3, 1, 4)
    with pytest.raises(ValueError, match="9 is not divisible by `num_replicas_in_sync` 4"):
        context.get_per_replica_batch_size(9)


# -- the strategies ------------------------------------------------------------------------------------


def test_central_storage_keeps_variables_on_one_device():
    strategy = tf.distribute.experimental.CentralStorageStrategy(TWO, "/cpu:1")

    def build():
        variable = tf.get_variable("v", initializer=1.0)
        return tf.train.MomentumOptimizer(0.1, 0.9).minimize(variable * variable * (number() + 1))

    steps = strategy.group(strategy.experimental_run_v2(build))
    (variable,) = tf.trainable_variables()
    assert variable.device == "/device:CPU:1"
    with session() as ran:
        ran.run(tf.global_variables_initializer())
        ran.run(steps)
        ran.run(steps)
        np.testing.assert_allclose(ran.run(variable), -0.38, rtol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        tf.distribute.MirroredStrategy,
        lambda: tf.distribute.OneDeviceStrategy("/cpu:0"),
        tf.distribute.experimental.CentralStorageStrategy,
        tf.distribute.experimental.MultiWorkerMirroredStrategy,
        tf.distribute.experimental.ParameterServerStrategy,
        lambda: tf.contrib.distribute.MirroredStrategy(num_gpus=0),
        tf.contrib.distribute.CollectiveAllReduceStrategy,
        tf.contrib.distribute.ParameterServerStrategy,
    ],
    ids=["mirrored", "one", "central", "collective", "servers", "older", "older collective", "older servers"],
)
def test_a_machine_without_a_gpu_has_one_replica(make, monkeypatch):
    monkeypatch.setattr(runtime_device, "cupy", lambda: None)
    monkeypatch.delenv("TF_CONFIG", raising=False)
    strategy = make()
    assert strategy.num_replicas_in_sync == 1

    def build(x):
        w = tf.get_variable("w", initializer=3.0)
        return tf.train.GradientDescentOptimizer(0.5).minimize(w * tf.cast(x, tf.float32))

    iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(2, 3))
    step = strategy.group(strategy.experimental_run(build, iterator))
    with tf.Session() as ran:
        ran.run([tf.global_variables_initializer(), iterator.initialize()])
        ran.run(step)
        assert ran.run(tf.global_variables()[0]) == 2


def test_parameter_servers_hold_the_variables_of_a_worker(monkeypatch):
    monkeypatch.setenv(
        "TF_CONFIG",
        '{"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1", "e:1"]},'
        ' "task": {"type": "worker", "index": 1}}',
    )
    strategy = tf.distribute.experimental.ParameterServerStrategy()
    assert not strategy.extended.experimental_should_init
    contexts = []

    def build():
        found = [tf.get_variable(name, initializer=1.0) for name in "abc"]
        return found[0] + found[1]

    total = strategy.experimental_run_v2(build)
    strategy.make_input_fn_iterator(lambda context: contexts.append(context) or tf.data.Dataset.range(1))
    assert [variable.device for variable in tf.global_variables()] == [
        "/job:ps/task:0",
        "/job:ps/task:1",
        "/job:ps/task:0",
    ]
    assert total.device == "/job:worker/task:1"
    assert (contexts[0].num_input_pipelines, contexts[0].input_pipeline_id) == (3, 2)
    with pytest.raises(ValueError, match=r"for several use .*tf\.train\.Trainer"):
        tf.distribute.experimental.MultiWorkerMirroredStrategy()
    with pytest.raises(ValueError, match=r"for several use .*tf\.train\.Trainer"):
        tf.estimator.RunConfig(train_distribute=tf.distribute.MirroredStrategy())
    assert tf.estimator.RunConfig(train_distribute=strategy).train_distribute is strategy


def test_older_strategies_give_each_replica_a_whole_batch():
    strategy = tf.contrib.distribute.MirroredStrategy(TWO)
    iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(8).batch(2))
    parts = strategy.unwrap(iterator.get_next())
    with session() as ran:
        ran.run(iterator.initialize())
        assert [part.tolist() for part in ran.run(parts)] == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    "operations",
    [
        tf.distribute.ReductionToOneDevice("/cpu:1", lambda values: 100 * tf.add_n(values)),
        tf.distribute.NcclAllReduce(2),
        tf.distribute.HierarchicalCopyAllReduce(),
    ],
    ids=lambda made: type(made).__name__,
)
def test_how_values_are_added_is_chosen(operations):
    strategy = tf.distribute.MirroredStrategy(TWO, cross_device_ops=operations)
    total = strategy.reduce("SUM", strategy.experimental_run_v2(lambda: number() + 1))
    sent = operations.broadcast(total, "/cpu:1")
    assert sent.device == "/device:CPU:1"
    with session() as ran:
        assert ran.run(sent) == (300 if isinstance(operations, tf.distribute.NcclAllReduce) is False else 3)


def test_the_strategy_of_the_rest_of_a_program(two):
    tf.distribute.experimental_set_strategy(two)
    try:
        assert tf.distribute.get_strategy() is two
        one = tf.distribute.OneDeviceStrategy("/cpu:0")
        tf.distribute.experimental_set_strategy(one)
        assert tf.distribute.get_strategy() is one
    finally:
        tf.distribute.experimental_set_strategy(None)
    assert not tf.distribute.has_strategy()
    with two.scope(), pytest.raises(RuntimeError, match=r"inside a `tf\.distribute\.Strategy` scope"):
        tf.distribute.experimental_set_strategy(two)


def test_variables_of_libraries(two):
    with two.scope():
        first = tf.get_variable("first", initializer=1.0)
        with two.colocate_vars_with(first):
            second = tf.get_variable("second", initializer=2.0)
        updated = two.extended.update(first, lambda variable, by: variable.assign_add(by), (2.0,))
        other = two.extended.update_non_slot(
            two.extended.non_slot_devices([first]), lambda: tf.constant(4.0), group=False
        )
    outside = tf.get_variable("outside", initializer=1.0)
    assert two.extended.variable_created_in_scope(first)
    assert not two.extended.variable_created_in_scope(outside)
    assert second.op.colocation_groups() == [b"loc:@first"]
    assert two.extended.value_container(first) is first
    with session() as ran:
        ran.run(tf.global_variables_initializer())
        assert ran.run([updated, *other, two.extended.broadcast_to(second, "/cpu:0")]) == [3, 4, 2]
    with pytest.raises(ValueError, match="must only be passed a variable created in this"):
        two.colocate_vars_with(outside)


# -- on Ray --------------------------------------------------------------------------------------------


@pytest.mark.ray
def test_replicas_in_the_actors_of_a_cluster(ray_local):
    """Two workers of one graph, and the variables on a parameter server."""
    strategy = tf.distribute.experimental.CentralStorageStrategy(
        ["/job:worker/task:0", "/job:worker/task:1"], "/job:ps/task:0"
    )

    def build():
        w = tf.get_variable("w", initializer=1.0)
        loss = w * w * (number() + 1)
        with tf.control_dependencies([tf.train.GradientDescentOptimizer(0.1).minimize(loss)]):
            return tf.identity(loss)

    loss = strategy.reduce("SUM", strategy.experimental_run_v2(build))
    jobs = {"ps": tf.JobSpec(1, num_cpus=0.1), "worker": tf.JobSpec(2, num_cpus=0.1)}
    with tf.Cluster(jobs) as cluster, tf.Session(cluster) as ran:
        ran.run(tf.global_variables_initializer())
        found = [float(ran.run(loss)) for _ in range(3)]
    np.testing.assert_allclose(found, [3 * 0.4 ** (2 * step) for step in range(3)], rtol=1e-5)


# -- mistakes ------------------------------------------------------------------------------------------


def test_an_error_of_one_replica_ends_all_of_them(two):
    def build():
        if tf.distribute.get_replica_context().devices == ("/device:CPU:1",):
            raise KeyError("one of mine")
        tf.distribute.get_replica_context().merge_call(lambda strategy: None)

    with pytest.raises(KeyError, match="one of mine"):
        two.experimental_run_v2(build)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("tfray-replica")]
    assert not tf.distribute.has_strategy()
    with tf.device("/cpu:0"):
        assert tf.constant(1).device == "/device:CPU:0"


def _only_the_first():
    if tf.distribute.get_replica_context().devices == ("/device:CPU:0",):
        tf.distribute.get_replica_context().merge_call(lambda strategy: None)


def _without_aggregation():
    tf.get_variable("v", initializer=1.0, trainable=False).assign_add(1.0)


def _in_a_branch():
    context = tf.distribute.get_replica_context()
    tf.cond(tf.constant(True), lambda: context.merge_call(lambda strategy: tf.constant(1)), lambda: tf.constant(2))


def _other_variables():
    if tf.distribute.get_replica_context().devices == ("/device:CPU:1",):
        tf.Variable(1.0, name="mine")


@pytest.mark.parametrize(
    ("build", "kind", "message"),
    [
        (_only_the_first, RuntimeError, "different number of replica_context.*the replicas made 1, 0"),
        (_without_aggregation, ValueError, "'v:0' is updated in each of 2 replicas.*specify an aggregation"),
        (_in_a_branch, RuntimeError, "while defining a new graph"),
        (_other_variables, RuntimeError, "replica 1 makes a variable 'mine' that the first replica has not made"),
    ],
    ids=["merge_call of one", "no aggregation", "merge_call in a branch", "a variable of one"],
)
def test_replicas_that_do_not_agree(two, build, kind, message):
    with pytest.raises(kind, match=message):
        two.experimental_run_v2(build)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda s: s.reduce("MAX", 5), ValueError, "SUM or MEAN, not: 'MAX'"),
        (lambda s: s.reduce(3, 5), TypeError, "SUM or MEAN, not: 3"),
        (lambda s: s.reduce("SUM", 5), ValueError, "all 2 replicas passed this one value"),
        (lambda s: s.reduce("MEAN", tf.constant([1]), axis="a"), TypeError, "`axis` to be an integer not: 'a'"),
        (lambda s: s.reduce("MEAN", tf.constant([1]), axis=1), ValueError, "`axis` = 1 out of range"),
        (lambda s: s.make_dataset_iterator(tf.data.Dataset.range(3)), ValueError, "call Dataset.batch first"),
        (lambda s: s.make_dataset_iterator([1, 2]), TypeError, r"expected a tf.data.Dataset, not \[1, 2\]"),
        (lambda s: s.make_input_fn_iterator(lambda c: 3), ValueError, "a tf.data.Dataset or a callable, not 3"),
        (lambda s: s.make_input_fn_iterator(lambda c: 3, "x"), ValueError, "replication mode not supported: 'x'"),
        (lambda s: s.extended.batch_reduce_to("SUM", [(1, 2)]), ValueError, "all 2 replicas passed"),
        (lambda s: tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:0"]), ValueError, "No duplicates allowed"),
        (lambda s: tf.distribute.MirroredStrategy([]), ValueError, "at least one device"),
        (lambda s: tf.distribute.MirroredStrategy("/cpu:0"), ValueError, "in a list, not '/cpu:0'"),
        (lambda s: tf.distribute.MirroredStrategy(["/cpu:0"], 3), TypeError, "expected tf.distribute.CrossDeviceOps"),
        (lambda s: tf.contrib.distribute.MirroredStrategy(TWO, num_gpus=1), ValueError, "only specify one of"),
        (lambda s: tf.contrib.distribute.ParameterServerStrategy(2), ValueError, "a worker for each GPU"),
        (lambda s: tf.distribute.ReduceOp.from_variable_aggregation(tf.VariableAggregation.NONE), ValueError, "NONE"),
    ],
)
def test_arguments_that_are_refused(two, call, kind, message):
    with pytest.raises(kind, match=message):
        call(two)


def test_scopes_that_do_not_fit(two):
    with two.scope():
        with pytest.raises(RuntimeError, match="Mixing different"), tf.distribute.OneDeviceStrategy("/cpu:0").scope():
            pass
        with pytest.raises(RuntimeError, match="belongs into the function that strategy"):
            tf.train.GradientDescentOptimizer(1.0).minimize(tf.get_variable("v", initializer=1.0) * 2)

    def nested():
        with pytest.raises(RuntimeError, match="requires being in cross-replica context"):
            two.extended.call_for_each_replica(nested)

    two.experimental_run_v2(nested)


def test_another_graph_begins_without_a_strategy(two):
    """So an estimator, which has a graph of its own, may train in the scope of a strategy."""
    with two.scope(), tf.Graph().as_default():
        assert not tf.distribute.has_strategy()
        variable = tf.get_variable("v", initializer=1.0)
        assert variable.distribute_strategy is None
        tf.train.GradientDescentOptimizer(1.0).minimize(variable * 2)
