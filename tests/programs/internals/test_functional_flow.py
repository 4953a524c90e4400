"""TensorFlow's modules ``cond_v2``, ``while_v2`` and ``checkpoint_management``, and messages within messages."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.programs.internals.checkpoint_paths import update_checkpoint_state_internal
from tfray.programs.internals.functional_flow import cond_v2, while_loop


@pytest.mark.parametrize("shape", [[], [1], [1, 1]])
@pytest.mark.parametrize("holds", [False, True])
def test_a_condition_has_one_element(session, shape, holds):
    x, pred = tf.constant(3.0), tf.placeholder(tf.bool, shape)
    result = cond_v2(pred, lambda: x * x, lambda: -x, name="")
    values = session.run([result, *tf.gradients(result, x)], {pred: np.full(shape, holds)})
    assert result.op.name.startswith("cond") and values == ([9, 6] if holds else [-3, -1])


@pytest.mark.parametrize("start", [2.0, [[2.0]]])
def test_loops_return_what_they_are_given(session, start):
    x = tf.constant(start)
    loops = [while_loop(lambda v: v < 8.0, lambda v: v * v, [x], return_same_structure=same) for same in (True, False)]
    assert isinstance(loops[0], list) and isinstance(loops[1], tf.Tensor)
    values = session.run([loops[0][0], loops[1], *tf.gradients(loops[1], x)])
    assert np.ravel(values).tolist() == [16, 16, 32] and values[0].shape == np.shape(start)
    assert session.run(while_loop(lambda v: v < 8.0, lambda v: v * v, [x], maximum_iterations=1)[0]).ravel() == [4]
    limited = while_loop(lambda v: v < 8.0, lambda v: v * v, [x], back_prop=False)
    assert session.run(limited)[0].ravel() == [16]


@pytest.mark.parametrize("relative", [False, True])
def test_a_folder_tells_of_its_checkpoints(tmp_path, relative):
    newest = str(tmp_path / "model-2")
    update_checkpoint_state_internal(
        str(tmp_path), newest, ["model-0" if relative else newest, newest], save_relative_paths=relative
    )
    written = (tmp_path / "checkpoint").read_text()
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert (str(tmp_path) in written) is not relative and state.model_checkpoint_path == newest
    assert state.all_model_checkpoint_paths[0] == (str(tmp_path / "model-0") if relative else newest)


def test_collections_hold_messages_of_protobuf():
    any_pb2 = pytest.importorskip("google.protobuf.any_pb2")
    message = any_pb2.Any(type_url="type.googleapis.com/some.Kind", value=b"\x08\x01")
    tf.add_to_collection("messages", message)
    [held] = tf.train.export_meta_graph().collection_def["messages"].any_list.value
    assert (held.type_url, held.value) == (message.type_url, message.value)
