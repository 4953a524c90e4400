"""A resource stays on one device for the life of its session, and devices get only dtypes that they hold."""

from __future__ import annotations

import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.placement.pipeline import compile_step
from tfray.placement.placer import place
from tfray.placement.resource_homes import ResourceHomes

CPU, GPU = "/job:localhost/task:0/device:CPU:0", "/job:localhost/task:0/device:GPU:0"
TASKS = [f"/job:worker/task:{index}/device:CPU:0" for index in range(3)]


def places(homes, *targets, devices=(CPU, GPU)):
    """The devices of a step's operations by name, as a session with these homes places them."""
    homes.settle(tf.get_default_graph(), devices)
    parts = compile_step([], [getattr(each, "op", each) for each in targets], [], devices, joint_policy=homes)
    return {op.name: part.device for part in parts.partitions for op in part.graph.get_operations()}


def test_strings_and_what_holds_them_stay_on_the_cpu():
    text = tf.Variable("abc", name="text")
    number = tf.Variable(1.0, name="number")
    shuffled = tf.random_shuffle(tf.constant(["a", "b"]), name="shuffled")
    chosen = tf.where(tf.constant([True, False]), shuffled, tf.constant(["c", "d"]), name="chosen")
    doubled = tf.multiply(number, 2.0, name="doubled")
    missing = tf.report_uninitialized_variables([text, number])
    placement = place(tf.get_default_graph(), [CPU, GPU])
    assert {placement[op] for op in (text.op, shuffled.op, chosen.op, missing.op)} == {CPU}
    assert placement[number.op] == placement[doubled.op] == GPU


def test_a_branch_of_strings_and_a_loop_of_numbers():
    total = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + 1.0), [tf.constant(0), tf.zeros([2])])[1]
    word = tf.cond(tf.reduce_sum(total) > 0, lambda: tf.constant("yes"), lambda: tf.constant("no"))
    placement = place(tf.get_default_graph(), [CPU, GPU])
    assert placement[word.op] == CPU and placement[total.op] == GPU


def test_a_string_that_asks_for_a_gpu_is_refused_by_its_dtype():
    with tf.device("/device:GPU:0"):
        tf.identity(tf.placeholder(tf.string, name="word"), name="same")
    with pytest.raises(InvalidArgumentError, match=r"no kernel for Placeholder of string \(word\) on .*GPU:0"):
        place(tf.get_default_graph(), [CPU, GPU])
    assert set(place(tf.get_default_graph(), [CPU, GPU], allow_soft_placement=True).values()) == {CPU}


def test_a_table_is_initialised_where_it_is_looked_up():
    words = tf.train.DynamicEmbedding("words", dim=4, capacity=10)
    rows = tf.nn.dynamic_embedding_lookup(words, tf.constant([1, 2], tf.int64))
    initialised = tf.global_variables_initializer()
    homes = ResourceHomes()
    first, then = places(homes, initialised), places(homes, rows)
    for name in homes.homes:
        assert {step[name] for step in (first, then) if name in step} == {homes.homes[name]}
    assert homes.homes[words.rows.op.name] in (CPU, GPU)


def beside(variable):
    """An operation that runs on CPUs only, on the device of a variable."""
    with tf.colocate_with(variable.op):
        return tf.py_func(lambda x: x, [variable], tf.float32, name="beside")


def test_what_one_step_asks_for_holds_in_all():
    v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
    fetched = beside(v)
    homes = ResourceHomes()
    for target in (v.initializer, fetched, tf.assign_add(v, tf.ones([3]))):
        assert places(homes, target)["v"] == CPU


def test_what_is_added_later_cannot_move_a_resource():
    v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
    homes = ResourceHomes()
    assert places(homes, v.initializer)["v"] == GPU
    with pytest.raises(InvalidArgumentError, match=r"'v' lives on .*GPU:0 since an earlier step.* only run on .*CPU:0"):
        places(homes, beside(v))
    assert places(homes, tf.assign(v, tf.zeros([3])))["v"] == GPU


def test_an_impossible_part_of_the_graph_does_not_concern_the_rest():
    v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
    w = tf.get_variable("w", [3], initializer=tf.ones_initializer())
    with tf.device("/job:nobody"):
        tf.assign_add(v, tf.ones([3]))
    homes = ResourceHomes()
    assert places(homes, w.initializer, devices=TASKS)["w"] == TASKS[0]
    assert places(homes, v.initializer, devices=TASKS)["v"] == TASKS[0]


def test_one_name_on_two_devices_is_two_resources():
    for task in TASKS[:2]:
        with tf.device(task):
            queue = tf.FIFOQueue(3, [tf.int32], shared_name="shared", name="queue")
            queue.enqueue(1, name="put")
    placed = places(ResourceHomes(), *(tf.get_default_graph().get_operation_by_name(f"put{end}") for end in ("", "_1")),
                    devices=TASKS)  # fmt: skip
    assert (placed["queue"], placed["queue_1"]) == (TASKS[0], TASKS[1])


def test_a_saver_is_made_for_variables_that_live_on_a_gpu():
    v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
    homes = ResourceHomes()
    assert places(homes, v.initializer)["v"] == GPU
    saver = tf.train.Saver()
    graph = tf.get_default_graph()
    definition = saver.saver_def
    for target, name in ((definition.save_tensor_name, "SaveShard"), (definition.restore_op_name, "RestoreShard")):
        placed = places(homes, graph.as_graph_element(target))
        assert placed["v"] == placed[f"save/{name}"] == GPU and placed["save/Const"] == CPU


def test_what_no_gpu_holds_is_saved_apart():
    number, text = tf.Variable(1.0, name="number"), tf.Variable("abc", name="text")
    homes = ResourceHomes()
    places(homes, number.initializer, text.initializer)
    definition = tf.train.Saver().saver_def
    for target in (definition.save_tensor_name, definition.restore_op_name):
        placed = places(homes, tf.get_default_graph().as_graph_element(target))
        assert (placed["number"], placed["text"]) == (GPU, CPU)
