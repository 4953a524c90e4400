"""`tf.CriticalSection`: what runs within one runs alone."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def v():
    return tf.get_variable("v", initializer=0.0)


def initialized_session():
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session


def counted(v, step=1.0):
    """Read `v`, let time pass, write a larger value: the value that was read."""
    read = v.read_value()
    with tf.control_dependencies([read]):
        later = tf.py_func(lambda value: value, [read], tf.float32)
        with tf.control_dependencies([v.assign(later + step)]):
            return tf.identity(read)


def test_executions_of_one_step_are_serial(v):
    section = tf.CriticalSection()
    reads = [section.execute(lambda: counted(v, 2.0)) for _ in range(20)]
    with initialized_session() as session:
        assert sorted(session.run(reads)) == [2.0 * i for i in range(20)]
        assert session.run(v) == 40.0
    assert (section.name, reads[0].name) == ("CriticalSection", "critical_section_execute/Identity_2:0")


def test_executions_of_several_steps_are_serial(v):
    section = tf.CriticalSection()
    count = section.execute(lambda: counted(v))
    with initialized_session() as session:
        threads = [threading.Thread(target=lambda: [session.run(count) for _ in range(10)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert session.run(v) == 40.0


def test_a_step_that_fails_leaves_the_section(v):
    x = tf.placeholder(tf.float32, [])

    def body():
        with tf.control_dependencies([tf.Assert(x > 0, [x])]):
            return v.assign_add(x)

    added = tf.CriticalSection().execute(body)
    with initialized_session() as session:
        for fed in (1.0, -1.0, 2.0, -1.0, -1.0):
            if fed > 0:
                session.run(added, {x: fed})
                continue
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(added, {x: fed})
        assert session.run(v) == 3.0


def test_what_is_taken_from_outside_is_computed_before():
    """Else the second execution could wait for the first one, which waits for the lock that the second has."""
    section = tf.CriticalSection()
    first = section.execute(lambda: tf.constant(1.0) + 1)
    second = section.execute(lambda: first * 2)
    with tf.Session() as session:
        assert session.run(second) == 4.0


@pytest.mark.parametrize("fetched", [0, 1])
def test_an_execution_that_is_not_fetched_does_not_run(fetched, v):
    section = tf.CriticalSection()
    results = [section.execute(lambda step=step: tf.identity(v.assign_add(step))) for step in (1.0, 10.0)]
    with initialized_session() as session:
        assert session.run(results[fetched]) == (1.0, 10.0)[fetched]


def test_branches_and_loops_enter_sections(v):
    section = tf.CriticalSection()

    def body(i):
        with tf.control_dependencies([section.execute(lambda: counted(v))]):
            return i + 1

    looped = tf.while_loop(lambda i: i < 10, body, [tf.constant(0)])
    is_read = tf.placeholder(tf.bool, [])
    branched = tf.cond(is_read, lambda: section.execute(lambda: v.read_value() * 1), lambda: tf.constant(-1.0))
    alone = section.execute(lambda: counted(v))
    with initialized_session() as session:
        assert session.run(looped) == 10 and session.run(v) == 10.0
        both = session.run([branched, alone], {is_read: True})
        assert both[1] == 10.0 and both[0] in (10.0, 11.0)


def test_loops_within_sections(v):
    section = tf.CriticalSection()

    def body(i):
        with tf.control_dependencies([v.assign_add(1.0)]):
            return i + 1

    loops = [section.execute(lambda: tf.while_loop(lambda i: i < 5, body, [tf.constant(0)])) for _ in range(2)]
    with initialized_session() as session:
        assert session.run([*loops, v.initializer])[:2] == [5, 5]


def test_results_keep_their_structure():
    def build():
        array = tf.TensorArray(tf.float32, 1).write(0, 4.0)
        return {"a": tf.constant(1), "b": (tf.no_op(), [3.0]), "c": array}

    results = tf.CriticalSection().execute(build)
    stacked = results.pop("c").stack()
    with tf.Session() as session:
        assert session.run(results) == {"a": 1, "b": (None, [3.0])}
        np.testing.assert_array_equal(session.run(stacked), [4.0])


def test_gradients_pass_through():
    x = tf.constant(3.0)
    (gradient,) = tf.gradients(tf.CriticalSection().execute(lambda: x * x), x)
    with tf.Session() as session:
        assert session.run(gradient) == 6.0


def test_a_section_within_itself_is_refused():
    section = tf.CriticalSection(shared_name="shared")
    for inner in (section, tf.CriticalSection(shared_name="shared")):
        with pytest.raises(ValueError, match="in which it is to run itself"):
            section.execute(lambda inner=inner: inner.execute(lambda: tf.constant(1.0)))
    other = tf.CriticalSection(shared_name="other")
    nested = other.execute(lambda: tf.CriticalSection().execute(lambda: tf.constant(1.0)))
    with tf.Session() as session:
        assert session.run(nested) == 1.0


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_resources_belong_to_one_section(first, second, v):
    tf.CriticalSection().execute(v.read_value, exclusive_resource_access=first)
    other = tf.CriticalSection()
    if not first and not second:
        other.execute(v.read_value, exclusive_resource_access=second)
        return
    with pytest.raises(ValueError, match=r"uses v:0 too"):
        other.execute(v.read_value, exclusive_resource_access=second)


def test_wrong_uses_are_refused():
    with pytest.raises(ValueError):
        tf.CriticalSection().execute(lambda: None)
    with pytest.raises(ValueError, match="give a name"):
        tf.CriticalSection(critical_section_def=1)
