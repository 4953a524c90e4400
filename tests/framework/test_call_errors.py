"""Errors from within a public function are told in terms of the call's arguments; others pass as they are."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S
from tfray.errors import ArgumentError


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: tf.strided_slice([1.0], [0], [1], begin_mask="a"),
            r"strided_slice\(\): begin_mask must be an integer",
        ),
        (lambda: tf.exp(1.0, name=5), r"exp\(\): name must be a string or None, got 5"),
        (lambda: tf.contrib.slim.learning.train(1, "x", graph=5), r"train\(\): graph must be"),
    ],
)
def test_what_python_says_of_a_value_somewhere_inside_names_the_argument(call, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        call()
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, ValueError)
    assert isinstance(caught.value.__cause__, (TypeError, AttributeError))


@pytest.mark.parametrize(
    ("call", "note"),
    [
        (lambda: tf.assert_rank_at_least([1.0], None), "in the call of assert_rank_at_least() with x=[1.0], rank=None"),
        (lambda: tf.ifft3d(tf.string), "in the call of ifft3d() with input=tf.string"),
    ],
)
def test_an_error_from_where_no_argument_is_known_gets_a_note_of_them(call, note):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert caught.value.__notes__ == [note]


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.contrib.layers.bias_add(),  # Python's own words
        lambda: tf.train.RunConfig(steps=-1),  # which name it
        lambda: tf.map_fn(lambda value: {}[0], tf.ones([2])),  # the caller's own
    ],
)
def test_other_errors_are_as_they_were(call):
    with pytest.raises((TypeError, ValueError, KeyError), match=r"'inputs'|steps|0") as caught:
        call()
    assert not hasattr(caught.value, "__notes__")


def test_arguments_of_any_kind_are_all_shown():
    with pytest.raises(
        ArgumentError, match=r"^aggregate_metrics\(\) cannot work with value_update_tuples=\(5,\): Type"
    ):
        tf.contrib.metrics.aggregate_metrics(5)


def test_errors_of_the_programs_functions_pass_as_they_are():
    with pytest.raises(AttributeError, match="no attribute 'nothing'") as caught:
        tf.map_fn(lambda x: x.nothing, tf.ones([2]))
    assert type(caught.value) is AttributeError


def test_what_is_raised_on_purpose_passes_as_it_is():
    with pytest.raises(TypeError, match="'x' is not an element type") as caught:
        tf.cast(1.0, "x")
    assert type(caught.value) is TypeError


def test_a_call_that_python_refuses_passes_as_it_is():
    with pytest.raises(TypeError, match="relu\\(\\) missing 1 required positional argument: 'features'"):
        tf.nn.relu()


def test_a_function_with_the_attributes_of_another_one_stays_itself():
    # Masked layers have those of layers without a mask, by `functools.wraps`.
    code = (
        "import tfray as tf, tfray.contrib.slim; from tfray.contrib import model_pruning; "
        "assert model_pruning.masked_conv2d.__name__ == 'masked_convolution'; "
        "model_pruning.masked_conv2d(tf.ones([1, 4, 4, 2]), 3, 2); assert len(model_pruning.get_masks()) == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tf.__path__[0] + "/..", timeout=PATIENCE_S)


def test_public_functions_stay_themselves():
    from tfray.ops.nn import activation_ops

    assert tf.nn.relu is activation_ops.relu and pickle.loads(pickle.dumps(tf.nn.relu)) is tf.nn.relu
    error = pickle.loads(pickle.dumps(ArgumentError("wrong", op_name="x")))
    assert type(error) is ArgumentError and error.op_name == "x"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tf.DeviceSpec(job=5), "job must be a string or None, got 5"),
        (lambda: tf.DeviceSpec(task=-1), "task must be an integer of at least 0 or None, got -1"),
        (lambda: tf.DeviceSpec(device_index="0"), "device_index must be"),
        (lambda: tf.train.Saver(5), "var_list must be a mapping .* got 5"),
        (lambda: tf.train.exponential_decay("fast", 1, 2, 0.5), "learning_rate must be a finite number, a Tensor"),
        (lambda: tf.train.exponential_decay(0.1, None, 2, 0.5), "global_step must be .* got None"),
        (lambda: tf.train.cosine_decay(0.1, 1, 0), "decay_steps must be a finite number above 0"),
        (lambda: tf.random_uniform([2], seed=1.5), "seed must be an integer or None, got 1.5"),
        (lambda: tf.layers.conv2d(tf.ones([1, 4, 4, 1]), 2, 3, padding=5), "padding is 5, expected 'same' or 'valid'"),
        (lambda: tf.keras.layers.MaxPooling1D(tf.constant(1.0)), "pool_size is <tf.Tensor .* expected an integer"),
        (
            lambda: tf.keras.layers.Dense(2, activation=[1]),
            r"Could not interpret activation function identifier: \[1\]",
        ),
        (lambda: tf.logging.log("INFO", "text"), "level must be an integer, such as .* got 'INFO'"),
        (lambda: tf.gfile.Copy("f" * 5000, "g"), "File name too long"),
        (lambda: tf.TensorShape(object()), "a shape cannot be"),
        (lambda: tf.TensorShape("12"), "a shape cannot be '12': dims are"),
        (lambda: tf.Dimension("a"), "a dimension cannot have the value 'a'"),
        (lambda: tf.as_dtype(tf.constant(1.0)), "is not an element type"),
    ],
)
def test_what_was_taken_or_failed_deep_inside_is_refused_at_once(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (5, "before_run of Asking must give None or SessionRunArgs.* it gave 5"),
        (tf.train.SessionRunArgs(None, [1]), r"feed_dict=\[1\]"),
        (tf.train.SessionRunArgs(None, None, {"timeout_in_ms": 5}), "options={'timeout_in_ms': 5}"),
    ],
)
def test_a_hook_that_asks_for_what_cannot_be_is_named(request_, message):
    class Asking(tf.train.SessionRunHook):
        def before_run(self, run_context):
            return request_

    value = tf.constant(1.0)
    with tf.train.MonitoredSession(hooks=[Asking()]) as session, pytest.raises(TypeError, match=message):
        session.run(value)
