"""What a session has for itself on devices that it shares: as in TensorFlow, another session begins it anew."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tfray as tf
from tests.support.local_ray import start_local_ray
from tests.support.processes import wait_for
from tfray.errors import FailedPreconditionError, InvalidArgumentError

pytestmark = pytest.mark.ray

NUMBERS = itertools.count()
"""Names that no other test uses."""


@pytest.fixture(scope="module")
def cluster(_ray_of_the_session):
    start_local_ray(_ray_of_the_session)
    with tf.Cluster({"worker": tf.JobSpec(1, num_cpus=0.1)}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def server(_ray_of_the_session):
    start_local_ray(_ray_of_the_session)
    server = tf.train.Server({"worker": ["session-state:2222"]})
    yield server
    server.stop()


@pytest.fixture(params=["cluster", "server"])
def target(request):
    found = request.getfixturevalue(request.param)
    return found if request.param == "cluster" else found.target


@pytest.fixture
def actor(target, cluster, server):
    """The actor of the device on which the target's sessions run."""
    return cluster.actor(cluster.devices[0]) if target is cluster else server._actors[0]


def status(actor):
    import ray

    return ray.get(actor.status.remote())


# -- random numbers --------------------------------------------------------------------------------------


def by_operation():
    return [tf.random_uniform([3], seed=5), tf.random_shuffle(tf.range(9), seed=6)]


def by_graph():
    tf.set_random_seed(3)
    weights = tf.Variable(tf.random_normal([2]), name=f"weights{next(NUMBERS)}")
    with tf.control_dependencies([weights.initializer]):
        return [tf.random_uniform([3]), weights.read_value(), tf.nn.dropout(tf.ones([8]), rate=0.5)]


def by_neither():
    return [tf.random_uniform([3]), tf.random_normal([3])]


def steps(session, fetches, count=3):
    return [np.concatenate(session.run(fetches)) for _ in range(count)]


@pytest.mark.parametrize("build", [by_operation, by_graph])
def test_seeded_numbers_begin_anew_in_each_session(target, build):
    fetches = build()
    with tf.Session() as alone:
        expected = steps(alone, fetches)
    assert not np.array_equal(expected[0], expected[1])
    for _ in range(2):  # one after the other
        with tf.Session(target) as session:
            np.testing.assert_array_equal(steps(session, fetches), expected)
    with tf.Session(target) as one, tf.Session(target) as other:  # side by side
        first = steps(one, fetches, 2)
        np.testing.assert_array_equal(steps(other, fetches), expected)
        np.testing.assert_array_equal(first + steps(one, fetches, 1), expected)


def test_numbers_without_a_seed_are_not_those_of_another_session(target):
    fetches = by_neither()
    drawn = []
    for _ in range(2):
        with tf.Session(target) as session:
            drawn += steps(session, fetches)
    with tf.Session(target) as one, tf.Session(target) as other:
        drawn += steps(one, fetches) + steps(other, fetches)
    assert len({numbers.tobytes() for numbers in drawn}) == len(drawn)


def test_a_saver_restores_the_numbers_of_its_own_session(target, tmp_path):
    numbers = tf.random_uniform([3], seed=1)
    saver = tf.train.Saver(tf.train.random_state_saveables())
    with tf.Session(target) as session:
        session.run(numbers)
        path = saver.save(session, str(tmp_path / "states"))
        expected = steps(session, [numbers])
    with tf.Session(target) as session, tf.Session(target) as other:
        saver.restore(session, path)
        np.testing.assert_array_equal(steps(session, [numbers]), expected)
        assert not np.array_equal(steps(other, [numbers]), expected)


# -- what has no shared name, and what has one -----------------------------------------------------------


def queue(shared_name):
    queue = tf.FIFOQueue(10, tf.int32, [()], shared_name=shared_name)
    with tf.control_dependencies([queue.enqueue(4)]):
        return queue.size()


def accumulator(shared_name):
    accumulator = tf.ConditionalAccumulator(tf.float32, [], shared_name=shared_name)
    with tf.control_dependencies([accumulator.apply_grad(tf.constant(1.0))]):
        return accumulator.num_accumulated()


def one_shot_iterator(shared_name):
    return 1 + tf.data.Dataset.range(9).make_one_shot_iterator().get_next()


def variable(shared_name):
    counter = tf.Variable(0, name=f"counter{next(NUMBERS)}")
    started = tf.cond(tf.is_variable_initialized(counter), lambda: 0, lambda: tf.assign(counter, 0))
    with tf.control_dependencies([started]):
        return counter.assign_add(1)


@pytest.mark.parametrize("build", [queue, accumulator, one_shot_iterator])
def test_what_has_no_shared_name_is_each_sessions_own(target, build):
    fetch = build(None)
    with tf.Session(target) as one:
        assert [one.run(fetch), one.run(fetch)] == [1, 2]
        with tf.Session(target) as other:
            assert [other.run(fetch), one.run(fetch), other.run(fetch)] == [1, 3, 2]
    with tf.Session(target) as later:
        assert later.run(fetch) == 1


@pytest.mark.parametrize("build", [queue, accumulator, variable])
def test_what_has_a_shared_name_is_that_of_all_sessions(target, build):
    """A variable always has one."""
    fetch = build(f"shared{next(NUMBERS)}")
    with tf.Session(target) as one, tf.Session(target) as other:
        assert [one.run(fetch), other.run(fetch), one.run(fetch)] == [1, 2, 3]
    with tf.Session(target) as later:
        assert later.run(fetch) == 4


def test_iterators_are_shared_by_name(target):
    dataset = tf.data.Dataset.range(9)
    own = dataset.make_initializable_iterator()
    shared = dataset.make_initializable_iterator(shared_name=f"iterator{next(NUMBERS)}")
    of_own, of_shared, handles = own.get_next(), shared.get_next(), [own.string_handle(), shared.string_handle()]
    handle = tf.placeholder(tf.string, [])
    of_handle = tf.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
    with tf.Session(target) as one, tf.Session(target) as other:
        one.run([own.initializer, shared.initializer])
        assert one.run([of_own, of_shared]) == [0, 0]
        assert other.run(of_shared) == 1
        with pytest.raises(FailedPreconditionError):
            other.run(of_own)
        other.run(own.initializer)
        assert [one.run(of_handle, {handle: each}) for each in one.run(handles)] == [1, 2]
        assert [other.run(of_handle, {handle: each}) for each in other.run(handles)] == [0, 3]


def test_weights_of_classes_are_those_of_the_sessions_graph(target):
    """Operations of one name, with other weights."""
    for weights, drawn in (([0.0, 1.0], 1), ([1.0, 0.0], 0)):
        with tf.Graph().as_default(), tf.Session(target) as session:
            true_classes = tf.zeros([1, 1], tf.int64)
            sampled = tf.nn.fixed_unigram_candidate_sampler(true_classes, 1, 1, True, 2, unigrams=weights, name="drawn")
            assert session.run(sampled.sampled_candidates) == drawn


def test_a_tensor_handle_is_known_to_its_own_session(target):
    value = tf.get_session_handle(tf.constant(5.0))
    with tf.Session(target) as one, tf.Session(target) as other:
        handle = one.run(value).handle
        holder, held = tf.get_session_tensor(handle, tf.float32)
        assert one.run(held, {holder: handle}) == 5
        with pytest.raises(InvalidArgumentError, match="another session"):
            other.run(held, {holder: handle})


# -- the end of a session --------------------------------------------------------------------------------


def fill(session):
    """Make something of every kind that is a session's own."""
    session.run([tf.random_uniform([2]), *[build(None) for build in (queue, accumulator, one_shot_iterator)]])


def test_what_a_session_has_for_itself_goes_when_it_is_closed(target, actor):
    wait_for(lambda: status(actor)["sessions"] == 0)
    before = status(actor)["resources"]
    with tf.Session(target) as one, tf.Session(target) as other:
        for session in (one, other):
            fill(session)
        assert status(actor)["sessions"] == 2
        one.close()
        wait_for(lambda: status(actor)["sessions"] == 1)
    wait_for(lambda: status(actor)["sessions"] == 0)
    assert status(actor)["resources"] == before


def test_what_a_session_has_for_itself_goes_with_its_process(server, ray_local):
    actor = server._actors[0]
    with tf.Session(server.target) as session:
        fill(session)
        assert status(actor)["sessions"] == 1
        session._runner.peer("/job:worker/task:0/device:CPU:0").close()  # as the end of its process does
        wait_for(lambda: status(actor)["sessions"] == 0)


def test_a_session_in_this_process_keeps_nothing_when_it_is_closed():
    with tf.Session() as session:
        fill(session)
        devices = session._runner.devices_by_name().values()
        assert all(list(device.session_state) for device in devices)
    assert not any(list(device.session_state) for device in devices)
