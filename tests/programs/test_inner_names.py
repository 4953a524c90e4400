"""Attributes and options that TensorFlow keeps to itself, or that change nothing here, and programs use."""

from __future__ import annotations

import pytest

import tfray as tf
from tfray.config import Hints, RewriterConfig
from tfray.framework.graph import Tensor


@tf.RegisterGradient("TestInnerNamesTwice")
def _twice(op, gradient):
    return 2 * gradient


def test_attributes_of_an_operation_are_set():
    x = tf.constant([1.0, -2.0])
    y = tf.nn.relu(x)
    y.op._set_attr("_gradient_op_type", tf.AttrValue(s=b"TestInnerNamesTwice"))
    other = tf.nn.relu(x)
    other.op._set_attr("_mine", tf.AttrValue(list=tf.AttrValue.ListValue(s=[b"a", b"b"])))
    with tf.Session() as session:
        assert session.run(tf.gradients(y, x)[0]).tolist() == [2, 2], "the registered function is its gradient"
        assert session.run(tf.gradients(other, x)[0]).tolist() == [1, 0], "and not that of others"
    assert other.op.get_attr("_mine") == [b"a", b"b"]
    for value, held in ((tf.AttrValue(i=3), 3), (tf.AttrValue(b=True), True), (tf.AttrValue(type=1), tf.float32)):
        other.op._set_attr("_mine", value)
        assert other.op.attrs["_mine"] == held


def test_control_inputs_and_devices_are_added():
    variable = tf.Variable(1.0)
    update, result = variable.assign(2.0), tf.identity(tf.constant(5.0))
    with tf.Session() as session:
        session.run(variable.initializer)
        assert session.run(result) == 5 and session.run(variable) == 1
        result.op._add_control_input(update.op)
        result.op._set_device("/cpu:0")
        assert session.run(result) == 5 and session.run(variable) == 2
    assert result.op.device == "/device:CPU:0" and update.op in result.op.control_inputs


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (
            lambda x, v: (x._op is x.op, x._dtype, x._shape_tuple(), isinstance(x._id, int)),
            (True, tf.float32, (None, 4), True),
        ),
        (lambda x, v: x.op._id == x.op.id and x.op._node_def.name, "x"),
        (lambda x, v: x.op._output_types, [1]),
        (lambda x, v: x.op._get_control_flow_context(), None),
        (lambda x, v: x.graph._get_control_flow_context(), None),
        (lambda x, v: x.graph.building_function, False),
        (lambda x, v: next(iter(x.graph._nodes_by_name)), "x"),
        (lambda x, v: x.graph._ops_by_name["x"].type, "Placeholder"),
        (lambda x, v: (v._shared_name, v._trainable, v._initializer_op.name), ("v", True, "v/Assign")),
        (lambda x, v: isinstance(v._variable, Tensor) and v._variable.op.name, "v"),
        (lambda x, v: (v.dtype._is_ref_dtype, v.dtype._as_ref), (False, tf.float32)),
    ],
)
def test_inner_names(read, expected):
    assert read(tf.placeholder(tf.float32, [None, 4], name="x"), tf.Variable(1.0, name="v")) == expected


def test_what_a_session_tells():
    tf.constant(1, name="one")
    with tf.Session("", config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        assert [node.name for node in session.graph_def.node] == ["one"] and session.sess_str == ""
        first, second = [each for each in session.list_devices() if each.device_type == "CPU"]
    assert first.name == first and first.endswith("CPU:0") and second.name.endswith("CPU:1")
    assert first.memory_limit_bytes > 0 and first.incarnation > 0


def test_options_without_effect():
    rewrites = RewriterConfig(layout_optimizer=RewriterConfig.OFF)
    config = tf.ConfigProto(
        gpu_options={"allow_growth": True},
        graph_options={"rewrite_options": rewrites, "optimizer_options": {"opt_level": tf.OptimizerOptions.L0}},
        session_inter_op_thread_pool=[],
        experimental=Hints(executor_type="any"),
    )
    config.graph_options.rewrite_options.auto_mixed_precision = RewriterConfig.ON
    config.graph_options.rewrite_options.optimizers.append("constfold")
    config.experimental.use_numa_affinity = True
    assert config.gpu_options.allow_growth and config.graph_options.optimizer_options.opt_level == -1
    assert config.graph_options.rewrite_options.layout_optimizer == 2 and rewrites.optimizers == ["constfold"]
    copy = tf.ConfigProto()
    copy.CopyFrom(config)
    assert copy == config and copy.gpu_options is not config.gpu_options
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, experimental=Hints(use_run_handler_pool=True))
    with tf.Session(config=copy) as session:
        assert session.run(tf.constant(3), options=options, run_metadata=tf.RunMetadata()) == 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="gpu_options"):
        tf.ConfigProto(gpu_options=3)
    assert repr(Hints(a=1)) == "Hints(a=1)" and Hints(a=1) != Hints(a=2)
