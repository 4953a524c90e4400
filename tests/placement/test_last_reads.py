"""A fetched variable is read last: golden values are those of TensorFlow 1.15."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

CONFIGS = {"one device": None, "two devices": tf.ConfigProto(device_count={"CPU": 2})}


@pytest.fixture(params=CONFIGS)
def session(request):
    config = CONFIGS[request.param]
    with tf.device("/cpu:1" if config else None), tf.Session(config=config) as made:
        yield made


def each(session, variable, *fetches, fetched=1):
    session.run(variable.initializer)
    return [np.asarray(session.run(list(fetches))[fetched]).tolist() for _ in range(3)]


def test_the_global_step_beside_the_training_operation(session):
    step = tf.train.get_or_create_global_step()
    w = tf.Variable(1.0)
    loss = w * w
    train = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
    session.run(tf.global_variables_initializer())
    for fetched in (step, "global_step:0", tf.identity(step), step.value(), step.read_value()):
        assert each(session, step, train, fetched) == [1, 2, 3]
    assert each(session, step, loss, step, train) == [1, 2, 3]
    assert each(session, step, train, step + 0) == [0, 1, 2]  # what is computed, is computed before


def test_weights_are_fetched_as_the_step_leaves_them_and_the_loss_is_that_of_before(session):
    w = tf.Variable(5.0)
    loss = tf.square(w)
    train = tf.train.GradientDescentOptimizer(0.25).minimize(loss)
    session.run(w.initializer)
    assert session.run([w, loss, train])[:2] == [2.5, 25.0]
    assert session.run([train, loss, w])[1:] == [6.25, 1.25]


UPDATES = {
    "assign": (lambda v: v.assign([7.0, 8.0]), [7.0, 8.0]),
    "assign_add": (lambda v: v.assign_add([7.0, 8.0]), [8.0, 10.0]),
    "scatter_update": (lambda v: tf.scatter_update(v, [0], [50.0]), [50.0, 2.0]),
    "a part": (lambda v: v[1:].assign([9.0]), [1.0, 9.0]),
    "a branch": (lambda v: tf.cond(tf.size(v) > 1, lambda: tf.assign_add(v, [7.0, 8.0]), lambda: v + 0), [8.0, 10.0]),
    "two": (lambda v: tf.group(v.assign_add([1.0, 1.0]), v.assign_add([2.0, 2.0])), [4.0, 5.0]),
}


@pytest.mark.parametrize("kind", UPDATES)
@pytest.mark.parametrize("read", [lambda v: v, tf.identity, lambda v: v.read_value()], ids=["v", "identity", "read"])
def test_whatever_updates_it(session, kind, read):
    update, after = UPDATES[kind]
    v = tf.Variable([1.0, 2.0])
    fetched = read(v)
    updated = update(v)
    session.run(v.initializer)
    assert session.run([fetched, updated])[0].tolist() == after


def test_a_branch_that_is_not_taken_leaves_the_value(session):
    w = tf.Variable(5)
    changed = tf.cond(tf.placeholder_with_default(False, []), lambda: tf.assign_add(w, 1), lambda: tf.constant(0))
    session.run(w.initializer)
    assert session.run([w, changed]) == [5, 0]


def test_a_read_that_something_waits_for_stays_where_the_program_has_put_it(session):
    """TensorFlow 1 gives the memory of the variable here, which has changed by then: it leaves the order open."""
    v = tf.Variable([1.0, 2.0])
    before = v.read_value()
    copied = tf.identity(before)
    with tf.control_dependencies([before]):
        update = v.assign_add([1.0, 1.0])
    with tf.control_dependencies([update]):
        after = v.read_value()
    session.run(v.initializer)
    found = session.run([before, copied, after, update, v])
    assert [value.tolist() for value in found] == [[1.0, 2.0], [1.0, 2.0], [2.0, 3.0], [2.0, 3.0], [2.0, 3.0]]


def test_a_step_without_updates_reads_once():
    v = tf.Variable([1.0, 2.0])
    with tf.Session() as session:
        session.run(v.initializer)
        metadata = tf.RunMetadata()
        session.run([v, v, tf.identity(v)], options=tf.RunOptions(trace_level=3), run_metadata=metadata)
    ops = [node.timeline_label for device in metadata.step_stats.dev_stats for node in device.node_stats]
    assert sum("ReadVariableOp" in label for label in ops) == 1


def test_an_update_that_is_not_run_does_not_count(session):
    v = tf.Variable(1.0)
    v.assign_add(1.0)
    session.run(v.initializer)
    assert session.run([v, v]) == [1.0, 1.0]
