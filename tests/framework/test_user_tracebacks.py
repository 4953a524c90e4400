"""Errors of the user's own functions show the user's lines, wherever the functions ran."""

from __future__ import annotations

import re
import traceback

import numpy as np
import pytest

import tfray as tf
from tfray.actors.devices.device_host import DeviceHost
from tfray.framework.call_site import is_users, user_traceback
from tfray.framework.op_def import OpDef, on_cpu, register
from tfray.framework.shape_functions import like_input


def outer(value):
    return inner(value)


def inner(value):
    raise ValueError("broken on purpose")  # the line at fault


def below_numpy(value):
    return np.apply_along_axis(inner, 0, np.ones([2]))


def with_a_cause(value):
    try:
        inner(value)
    except ValueError as error:
        raise KeyError("wrapped") from error


def lines_of(text):
    """The frames in a text: ``(file, function)``."""
    return [
        (file.rpartition("/")[2], function) for file, function in re.findall(r'File "(.+?)", line \d+, in (.+)', text)
    ]


HERE = "test_user_tracebacks.py"
CHAIN = [(HERE, "outer"), (HERE, "inner")]


def failing(build):
    """The error with which a step fails on a CPU of this process."""
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as session:
        fetch = build()
        with pytest.raises(tf.errors.OpError) as caught:
            session.run(fetch)
    return caught.value


def of_a_py_func():
    return tf.py_func(outer, [1.0], tf.float32)


def of_a_generator():
    def elements():
        yield outer(1.0)

    return tf.data.Dataset.from_generator(elements, tf.float32).make_one_shot_iterator().get_next()


def of_a_py_func_in_a_loop():
    return tf.while_loop(lambda i: i < 3, lambda i: tf.py_func(outer, [i], tf.int32), [0], [tf.TensorShape(None)])


def of_a_py_func_in_a_dataset():
    dataset = tf.data.Dataset.range(3).map(lambda i: tf.py_func(outer, [i], tf.float32))
    return dataset.make_one_shot_iterator().get_next()


BROKEN_KERNEL = register(
    OpDef(
        name="BrokenOnPurpose",
        inputs=("x: float32",),
        outputs=("y: float32",),
        shape=like_input(0),
        kernels=on_cpu(lambda ctx, x: outer(x)),
    )
)


def of_a_kernel_of_the_users():
    from tfray.framework.convert import add_op

    return add_op(BROKEN_KERNEL, tf.constant(1.0))


@pytest.mark.parametrize(
    "build",
    [of_a_py_func, of_a_generator, of_a_py_func_in_a_loop, of_a_py_func_in_a_dataset, of_a_kernel_of_the_users],
)
def test_the_frames_are_the_users(build):
    found = user_traceback(failing(build))
    assert found.startswith("Traceback") and found.endswith("ValueError: broken on purpose")
    assert lines_of(found)[-2:] == CHAIN
    assert {file for file, _ in lines_of(found)} == {HERE}
    assert "# the line at fault" in found


def test_libraries_that_the_user_calls_stay_in_sight():
    found = lines_of(user_traceback(failing(lambda: tf.py_func(below_numpy, [1.0], tf.float32))))
    assert found[0] == (HERE, "below_numpy") and found[-1] == (HERE, "inner") and len(found) > 2


def test_what_led_to_the_error_is_shown_too():
    found = user_traceback(failing(lambda: tf.py_func(with_a_cause, [1.0], tf.float32)))
    assert "direct cause" in found and found.endswith("KeyError: 'wrapped'") and "ValueError" in found


@pytest.mark.parametrize(
    "build", [lambda: tf.matrix_inverse(tf.zeros([2, 2])), lambda: tf.read_file("/nowhere/at/all")]
)
def test_errors_of_tfrays_own_kernels_have_no_frames(build):
    assert user_traceback(failing(build)) == ""


@pytest.mark.parametrize("library", ["numpy.linalg", "cupy.linalg", "cupyx.lapack"])
def test_frames_of_array_libraries_are_not_the_users(library):
    space = {"__name__": library}
    exec("def refuse(): raise ValueError('singular')", space)
    with pytest.raises(ValueError) as caught:
        space["refuse"]()
    assert [is_users(frame) for frame, _ in traceback.walk_tb(caught.value.__traceback__)] == [True, False]


# -- on devices ----------------------------------------------------------------------------------------


@pytest.fixture
def host():
    return DeviceHost("/job:worker/task:0/device:CPU:0", "node")


def raised_by_an_input(host, open_input):
    """What a driver is told of an input function."""
    status, error = host.outcome(lambda: host.inputs.attach("plan", open_input))
    if status == "ok":
        status, error = host.outcome(lambda: host.inputs.next("plan", 1))
    assert status == "error"
    return error


@pytest.mark.fault(
    "Input",
    "An input function raises on a worker.",
    happens="The run ends with the replica, the step, and the lines of the function.",
    promise="The error is seen as it was raised.",
)
def test_an_input_function_that_fails_on_a_worker_shows_its_frames(host):
    def batches(step):
        return outer(step)

    error = raised_by_an_input(host, lambda: batches)
    assert isinstance(error, tf.errors.UnknownError) and error.device == host.device.name
    assert "the input function failed" in error.message and "broken on purpose" in error.message
    assert lines_of(error.message)[-3:] == [(HERE, "batches"), *CHAIN]
    assert "device_host" not in error.message


def test_so_does_one_that_cannot_be_opened(host):
    error = raised_by_an_input(host, lambda: outer(0))
    assert isinstance(error, tf.errors.UnknownError)
    assert lines_of(error.message)[-2:] == CHAIN and "device_host" not in error.message


def test_the_end_of_an_input_is_no_failure(host):
    error = raised_by_an_input(host, lambda: lambda step: next(iter(())))
    assert isinstance(error, tf.errors.OutOfRangeError) and "Traceback" not in error.message


def test_an_error_of_an_operation_carries_the_frames_when_it_leaves_the_device(host):
    error = host.as_op_error(failing(of_a_py_func))
    assert lines_of(error.message)[-2:] == CHAIN and error.__cause__ is None
    assert lines_of(host.as_op_error(error).message) == lines_of(error.message)  # once, however often


def test_an_error_of_tfrays_own_has_its_whole_traceback(host):
    def deep(level):
        return deep(level - 1) if level else [][1]

    status, error = host.outcome(lambda: deep(9))
    assert status == "error" and isinstance(error, tf.errors.UnknownError)
    assert error.message.count("in deep") >= 3 or "repeated" in error.message
    assert "in <lambda>" in error.message and "IndexError" in error.message


@pytest.mark.fault(
    "Steps",
    "A function of the program raises.",
    happens="An error with the operation, the device and the lines of the function, on Ray as in one process.",
    promise="No other step is touched.",
)
@pytest.mark.ray
def test_a_py_func_that_fails_on_ray_shows_its_frames(ray_local):
    with tf.Cluster({"worker": tf.JobSpec(1, num_cpus=0.1)}) as cluster, tf.Session(cluster) as session:
        result = tf.py_func(outer, [1.0], tf.float32, name="calling")
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(result)
    assert caught.value.op_name == "calling"
    assert lines_of(str(caught.value))[-2:] == CHAIN
    assert {file for file, _ in lines_of(str(caught.value))} == {HERE}
