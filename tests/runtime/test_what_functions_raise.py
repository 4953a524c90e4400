"""What a function of the program raises is an error of the step that called it, whatever it is, wherever it ran."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

import tfray as tf
from tests.support.training_models import OPTIMIZERS, classification_data, dense_model, scaling
from tfray.errors import UnknownError

SMALL = tf.JobSpec(1, num_cpus=0.1)
RAISED = [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError("gone"), GeneratorExit(), BaseException("bare")]


def raising(error):
    def function(x):
        raise error

    return function


def calls(error):
    """An operation that raises, and one that does not."""
    return (
        tf.py_func(raising(error), [tf.constant(1.0)], tf.float32, name="culprit"),
        tf.py_func(lambda x: x + 1, [tf.constant(1.0)], tf.float32, name="other"),
    )


@pytest.mark.fault(
    "Steps",
    "A function of the program exits or is interrupted on a device (`sys.exit`, `KeyboardInterrupt`).",
    happens="`tf.errors.UnknownError` with the operation and its device.",
    promise="The step is answered, and the device goes on.",
)
@pytest.mark.ray
def test_on_a_device_it_is_an_error_that_names_the_operation(ray_local):
    with tf.Cluster({"worker": SMALL}) as cluster:
        for error in RAISED:
            with tf.Graph().as_default(), tf.device("/job:worker"), tf.Session(cluster) as session:
                culprit, other = calls(error)
                for _ in range(3):  # on a thread of its own at first, and then where messages are read
                    with pytest.raises(UnknownError, match=type(error).__name__) as raised:
                        session.run(culprit)
                    assert raised.value.op_name == "culprit" and "worker" in raised.value.device
                    assert session.run(other) == 2


@pytest.mark.parametrize("error", [error for error in RAISED if not isinstance(error, KeyboardInterrupt)], ids=repr)
def test_in_one_process_it_is_the_same(error):
    culprit, other = calls(error)
    with tf.Session() as session:
        with pytest.raises(UnknownError, match=type(error).__name__) as raised:
            session.run(culprit)
        assert raised.value.op_name == "culprit"
        assert session.run(other) == 2


def test_ctrl_c_in_a_function_ends_the_program():
    def interrupted(x):
        signal.raise_signal(signal.SIGINT)
        return x

    y = tf.py_func(interrupted, [tf.constant(1.0)], tf.float32)
    with tf.Session() as session, pytest.raises(KeyboardInterrupt):
        session.run(y)


def test_who_raises_keyboard_interrupt_on_another_thread_is_no_user_at_the_keyboard():
    culprit, _ = calls(KeyboardInterrupt())
    raised = []

    def run():
        with tf.Session(graph=culprit.graph) as session:
            try:
                session.run(culprit)
            except UnknownError as error:
                raised.append(error.op_name)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert raised == ["culprit"]


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError()], ids=repr)
def test_a_generator_of_a_dataset(error):
    def elements():
        yield 1
        raise error

    dataset = tf.data.Dataset.from_generator(elements, tf.int32, [])
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(element) == 1
        with pytest.raises(UnknownError, match=type(error).__name__):
            session.run(element)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("where", ["opening", "reading"])
def test_an_input_function_on_a_worker(ray_local, where):
    driver = os.getpid()

    def leave(now):
        if now == where and os.getpid() != driver:
            raise SystemExit(3)

    def read():
        features, labels = classification_data()
        for _ in range(5):
            yield features[:24], labels[:24]
            leave("reading")

    def input_fn(context):
        leave("opening")
        return read()

    made = tf.train.Trainer(
        dense_model(OPTIMIZERS["sgd"]), input_fn, scaling(2), tf.train.RunConfig(steps=5, logdir=None)
    )
    with pytest.raises(UnknownError, match=r"(?s)SystemExit.*leave"):
        made.fit()
