"""Options of sessions and steps: messages beside TensorFlow's, and what takes them."""

from __future__ import annotations

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from google.protobuf import text_format
from google.protobuf.message import Message as AnyMessage

import tfray as tf
from tests.support import ROOT
from tfray import options as config
from tfray.errors import InvalidArgumentError
from tfray.options import RewriterConfig

GOLDEN = ROOT / "tests" / "golden" / "options"
"""scripts/golden_options.py writes these with TensorFlow 1.15."""

KINDS = {
    kind.__name__: kind
    for kind in (
        tf.ConfigProto,
        tf.GPUOptions,
        tf.GraphOptions,
        tf.OptimizerOptions,
        tf.RunOptions,
        tf.RunMetadata,
        RewriterConfig,
    )
}

CASES = [line.split("\t") for line in (GOLDEN / "messages.txt").read_text().splitlines()]


@pytest.mark.parametrize(("name", "data", "text"), CASES, ids=[f"{name}{i}" for i, (name, *_) in enumerate(CASES)])
def test_bytes_and_text_are_those_of_tensorflow(name, data, text):
    message = text_format.Parse(text, KINDS[name]())
    assert message.SerializeToString().hex() == data
    again = KINDS[name].FromString(bytes.fromhex(data))
    assert again == message and text_format.Parse(str(again), KINDS[name]()) == message
    # An entry of a map without its value is what older versions of protobuf print of the value 0.
    assert text_format.MessageToString(again, as_one_line=True).replace(" value: 0", "") == text
    assert pickle.loads(pickle.dumps(message)) == copy.deepcopy(message) == message


def test_options_are_set_and_read_as_in_tensorflow():
    options = tf.ConfigProto(allow_soft_placement=True, device_count={"CPU": 2}, gpu_options={"allow_growth": True})
    assert isinstance(options, AnyMessage) and isinstance(options, tf.ConfigProto)
    options.device_count["GPU"] = 0
    options.device_filters.append("/job:ps")
    options.intra_op_parallelism_threads = np.int64(4)
    options.allow_soft_placement = np.bool_(True)
    options.gpu_options.per_process_gpu_memory_fraction = np.float32(0.5)
    assert not options.HasField("graph_options") and not tf.GraphOptions().rewrite_options.optimizers
    options.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
    assert options.HasField("graph_options")
    options.graph_options.rewrite_options.CopyFrom(RewriterConfig(layout_optimizer=RewriterConfig.OFF))
    options.experimental.MergeFrom(tf.ConfigProto.Experimental(executor_type="any"))
    options.session_inter_op_thread_pool.add(num_threads=2)
    # Bytes of TensorFlow 1.15 for the same lines.
    assert options.SerializeToString().hex() == (
        "0a070a0343505510020a070a034750551000100422072f6a6f623a7073320b09000000000000e03f2001380152111a0b18"
        "ffffffffffffffffff0152020802620208028201051a03616e79"
    )
    options.ClearField("experimental")
    assert [field.name for field, _ in options.ListFields()][-1] == "session_inter_op_thread_pool"
    assert tf.ConfigProto(device_count={"GPU": True}, placement_period=True).device_count == {"GPU": 1}
    options.inter_op_parallelism_threads = True
    assert options.inter_op_parallelism_threads == 1
    assert tf.RunOptions(trace_level="FULL_TRACE").trace_level == tf.RunOptions.FULL_TRACE == 3


def test_enumerations_have_names():
    assert tf.RunOptions.TraceLevel.Name(3) == "FULL_TRACE" and tf.RunOptions.TraceLevel.Value("NO_TRACE") == 0
    assert tf.OptimizerOptions.Level.items() == [("L1", 0), ("L0", -1)]
    assert RewriterConfig.Toggle.keys() == ["DEFAULT", "ON", "OFF", "AGGRESSIVE"]
    assert RewriterConfig.MemOptType.values() == [0, 1, 2, 4, 5, 6, 3]
    assert (RewriterConfig.HEURISTICS, tf.OptimizerOptions.ON_2, tf.ConfigProto.DESCRIPTOR.name) == (
        3,
        2,
        "ConfigProto",
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tf.ConfigProto(allow_soft_placement="yes", device_count={}), r"ConfigProto\(allow_soft_placement='ye"),
        (lambda: tf.ConfigProto(log_device_placement=True, gpu_options=3), r"ConfigProto\(gpu_options=3\)"),
        (
            lambda: tf.ConfigProto(nothing=1),
            r"ConfigProto\(nothing=1\): there is no such field; its fields are dev",
        ),
        (lambda: setattr(tf.ConfigProto(), "operation_timeout_in_ms", "5"), "ConfigProto.operation_timeout_in_ms can"),
        (lambda: setattr(tf.RunOptions(), "trace_level", 1.5), "RunOptions.trace_level cannot be 1.5"),
        (lambda: setattr(tf.ConfigProto(), "inter_op_parallelism_threads", 2**40), "inter_op_parallelism_threads can"),
    ],
)
def test_values_of_a_wrong_type_are_refused(make, message):
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        make()
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, ValueError)


@pytest.mark.parametrize(("name", "value"), [("gpu_options", {}), ("allow_soft_placment", 1), ("device_filters", [])])
def test_assignments_that_a_message_does_not_take(name, value):
    with pytest.raises(AttributeError, match=name):
        setattr(tf.ConfigProto(), name, value)


@pytest.mark.fault(
    "Configuration",
    "Options of a session or a step have a value without a meaning: out of range, NaN or negative.",
    happens="`tf.errors.InvalidArgumentError` from what takes them, with the argument, the field and what is expected.",
    promise="It is found before a step runs.",
)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"operation_timeout_in_ms": -1},
            "ConfigProto.operation_timeout_in_ms must be an integer of at least 0",
        ),
        ({"placement": "random"}, "ConfigProto.placement must be 'default' or 'cost', got 'random'"),
        ({"placement_period": -3}, "ConfigProto.placement_period must be an integer of at least 0, got -3"),
        ({"device_count": {"CPU": -1}}, "ConfigProto.device_count must be a mapping"),
        (
            {"gpu_options": {"per_process_gpu_memory_fraction": math.nan}},
            "GPUOptions.per_process_gpu_memory_fraction must be a finite number of at least 0, got nan",
        ),
        (
            {"graph_options": {"optimizer_options": {"opt_level": 7}}},
            "OptimizerOptions.opt_level must be -1 or 0, got 7",
        ),
    ],
)
def test_values_without_a_meaning_are_refused_by_what_takes_them(options, message):
    made = tf.ConfigProto(**options)
    for take, argument in {
        lambda: tf.Session(config=made): "Session: config: ",
        lambda: tf.Session.reset("", config=made): "reset.*: config: ",
        lambda: tf.InteractiveSession(config=made): "config: ",
        lambda: tf.train.Server({"local": ["a:1"]}, config=made, start=False): "Server: config: ",
        lambda: tf.estimator.RunConfig(session_config=made): "RunConfig: session_config: ",
        lambda: tf.train.Supervisor(graph=tf.Graph()).prepare_or_wait_for_session(config=made): "config: ",
    }.items():
        with pytest.raises(InvalidArgumentError, match=argument + message):
            take()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "options must be a RunOptions or None, got {}"),
        (tf.RunOptions(timeout_in_ms=-5), "options: RunOptions.timeout_in_ms must be an integer of at least 0, got -5"),
        (
            tf.RunOptions(trace_level=9),
            "options: RunOptions.trace_level must be an integer of at least 0 and of at m",
        ),
    ],
)
def test_options_of_a_step_are_refused(options, message):
    fetch = tf.constant(1)
    with tf.Session() as session:
        for run in (
            lambda: session.run(fetch, options=options),
            lambda: session.make_callable(fetch, accept_options=True)(options=options),
        ):
            with pytest.raises(InvalidArgumentError, match=message):
                run()


def test_options_without_effect_warn_once(monkeypatch):
    monkeypatch.setattr(config, "_warned", set())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options = tf.ConfigProto(intra_op_parallelism_threads=2, allow_soft_placement=True)
        options.gpu_options.visible_device_list = "0"
    with pytest.warns(UserWarning) as caught, tf.Session(config=options) as session:
        fetch = tf.constant(1)
        session.run(fetch, options=tf.RunOptions(inter_op_thread_pool=1))
        session.run(fetch, options=tf.RunOptions(inter_op_thread_pool=1))
        tf.Session(config=options).close()
    assert [str(each.message).split()[0] for each in caught] == [
        "ConfigProto.intra_op_parallelism_threads",
        "GPUOptions.visible_device_list",
        "RunOptions.inter_op_thread_pool",
    ]
    assert {each.filename for each in caught} == {__file__}


def test_a_session_takes_a_copy():
    options = tf.ConfigProto(allow_soft_placement=True)
    with tf.Session(config=options) as session:
        options.operation_timeout_in_ms = -1
        assert session.run(tf.constant(3)) == 3
