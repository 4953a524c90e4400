"""Names of devices, full and partial."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfray as tf
from tfray.framework.device_spec import DeviceSpec, canonical_name, merge_device

specs = st.builds(
    DeviceSpec,
    job=st.sampled_from([None, "ps", "worker"]),
    task=st.sampled_from([None, 0, 1]),
    device_type=st.sampled_from([None, "CPU", "GPU"]),
    device_index=st.sampled_from([None, 0, 1]),
    replica=st.sampled_from([None, 0]),
)


@given(specs)
def test_names_round_trip(spec):
    assert DeviceSpec.from_string(spec.to_string()) == spec
    assert str(spec) == spec.to_string() == canonical_name(spec.to_string())


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("", ""),
        ("/cpu:0", "/device:CPU:0"),
        ("/gpu:1", "/device:GPU:1"),
        ("/device:gpu:1", "/device:GPU:1"),
        ("/device:GPU", "/device:GPU:*"),
        ("/device:GPU:*", "/device:GPU:*"),
        ("CPU:0", "/device:CPU:0"),  # this and the next ones as TensorFlow 2.21 reads them
        ("cpu:1", "/device:CPU:1"),
        ("/cpu", "/device:CPU:*"),
        ("gpu", "/device:GPU:*"),
        ("device:CPU:0", "/device:CPU:0"),
        ("job:ps", "/job:ps"),
        ("/job:ps/", "/job:ps"),
        ("/job:a-b/cpu:0", "/job:a-b/device:CPU:0"),
        ("/job:ps", "/job:ps"),
        ("/task:3/job:worker", "/job:worker/task:3"),
        ("/job:worker/replica:0/task:*/device:CPU:0", "/job:worker/replica:0/device:CPU:0"),
    ],
)
def test_spellings(name, canonical):
    assert canonical_name(name) == canonical


@pytest.mark.parametrize("name", ["/job:", "/task:x", "/device:CPU:-1", "/tpu", "/job:ps nonsense", "/cpu:0:1"])
def test_malformed_names_are_refused(name):
    with pytest.raises(ValueError, match="not a device name"):
        DeviceSpec.from_string(name)


@given(specs, specs)
def test_inner_scopes_win_field_by_field(outer, inner):
    merged = DeviceSpec.from_string(merge_device(outer.to_string(), inner.to_string()))
    for field in ("job", "task", "device_type", "device_index", "replica"):
        mine = getattr(inner, field)
        assert getattr(merged, field) == (getattr(outer, field) if mine is None else mine)


@given(specs, specs)
def test_intersection_is_what_both_match(a, b):
    both = a.intersect(b)
    devices = [
        DeviceSpec(job, 0, task, kind, index)
        for job in ("ps", "worker")
        for task in (0, 1)
        for kind in ("CPU", "GPU")
        for index in (0, 1)
    ]
    matched = [device for device in devices if a.matches(device) and b.matches(device)]
    assert (both is not None) == bool(matched)
    if both is not None:
        assert [device for device in devices if both.matches(device)] == matched


def test_device_scopes_nest():
    graph = tf.Graph()
    with graph.as_default():
        with tf.device("/job:ps/cpu:0"):
            a = tf.constant(1)
            with tf.device("/task:2"):
                b = tf.constant(1)
                with tf.device("/job:worker/device:GPU:1"):
                    c = tf.constant(1)
                with tf.device(None):
                    d = tf.constant(1)
        e = tf.constant(1)
    assert [t.device for t in (a, b, c, d, e)] == [
        "/job:ps/device:CPU:0",
        "/job:ps/task:2/device:CPU:0",
        "/job:worker/task:2/device:GPU:1",
        "",
        "",
    ]


def test_device_functions_see_the_operation():
    seen = []

    def choose(op):
        seen.append((op.name, op.type, op.device))
        return "/job:ps" if op.type == "Const" else None

    with tf.device("/cpu:0"), tf.device(choose):
        a = tf.constant(1.0, name="a")
        b = tf.add(a, a, name="b")
        with tf.device("/job:worker"):
            c = tf.constant(1.0)
    assert (a.device, b.device) == ("/job:ps/device:CPU:0", "/device:CPU:0")
    # As in TensorFlow, functions see what inner scopes ask for, and what they return stands in its place.
    assert c.device == "/job:ps/device:CPU:0"
    assert seen == [("a", "Const", ""), ("b", "Add", ""), ("Const", "Const", "/job:worker")]


def test_specs_may_be_changed_as_in_tensorflow():
    spec = DeviceSpec(job="w", task=1)
    spec.merge_from(DeviceSpec(device_type="cpu", device_index=0))
    assert spec.to_string() == "/job:w/task:1/device:CPU:0"
    spec.task = 3
    assert spec.to_string() == spec.replace(task=3).to_string() == "/job:w/task:3/device:CPU:0"
    assert spec.parse_from_string("/job:x/gpu:1") is spec and spec.to_string() == "/job:x/device:GPU:1"
    assert spec.make_merged_spec(DeviceSpec(task=2)).to_string() == "/job:x/task:2/device:GPU:1"
    spec.parse_from_string("/device:MyKind:2")  # other types than CPU and GPU keep their letters
    assert spec.to_string() == "/device:MyKind:2" and DeviceSpec(device_type="Gpu").device_type == "GPU"
    with pytest.raises(ValueError, match="Cannot specify multiple device types"):
        spec.parse_from_string("/device:GPU:2/cpu:0")


def test_a_device_scope_takes_a_spec_and_refuses_nonsense():
    with tf.device(DeviceSpec(job="ps", task=1)):
        assert tf.constant(1).device == "/job:ps/task:1"
    with pytest.raises(ValueError, match="nonsense"), tf.device("nonsense"):
        pass
    assert tf.constant(1).device == ""


def test_scopes_are_left_when_their_block_fails():
    graph = tf.get_default_graph()
    scopes = [tf.device("/job:ps"), tf.name_scope("s"), tf.control_dependencies([tf.constant(1)])]
    with pytest.raises(ZeroDivisionError), scopes[0], scopes[1], scopes[2]:
        raise ZeroDivisionError
    op = tf.constant(2).op
    assert (op.device, op.name, op.control_inputs) == ("", "Const_1", [])
    assert graph.get_name_scope() == ""
