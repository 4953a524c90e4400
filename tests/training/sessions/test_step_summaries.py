"""Summaries that steps write themselves: `tf.contrib.summary`."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.training.sessions import step_summaries

summary = tf.contrib.summary


def events_of(folder):
    (path,) = folder.glob("events*")
    return [event for event in tf.train.summary_iterator(str(path)) if event.summary.value or event.graph_def]


def test_summaries_are_written_every_few_steps(tmp_path):
    step = tf.train.get_or_create_global_step()
    loss = tf.placeholder(tf.float32, [])
    writer = summary.create_file_writer(str(tmp_path))
    with writer.as_default(), summary.record_summaries_every_n_global_steps(2), tf.name_scope("model"):
        summary.scalar("loss", loss)
        summary.histogram("weights", tf.ones([3]), family="dense")
        summary.image("image", tf.zeros([1, 2, 2, 3]))
        summary.audio("sound", tf.zeros([1, 4]), 100.0, 1)
        summary.generic("rows", [[1, 2]])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.NotFoundError, match="has no file"):
            session.run(summary.all_summary_ops(), {loss: 1.0})
        with writer.as_default():
            summary.initialize(tf.get_default_graph(), session)
            flush = summary.flush()
        for turn in range(3):
            written = session.run(summary.all_summary_ops(), {loss: turn + 0.5})
            assert written == [turn % 2 == 0] * 5
            session.run(step.assign_add(1))
        session.run(flush)
        graph, *events = events_of(tmp_path)
        assert graph.graph_def
        assert [event.step for event in events] == [0] * 5 + [2] * 5
        tags = [event.summary.value[0].tag for event in events[:5]]
        assert tags == [
            "model/loss",
            "dense/model/dense/weights",
            "model/image/image/0",
            "model/sound/audio",
            "model/rows",
        ]
        assert [event.summary.value[0].simple_value for event in events[::5]] == [0.5, 2.5]


@pytest.mark.parametrize(
    ("context", "expected"), [(summary.always_record_summaries, 1), (summary.never_record_summaries, 0), (None, 0)]
)
def test_what_a_context_says_of_recording(tmp_path, context, expected):
    writer = summary.create_file_writer(tmp_path, filename_suffix=".here")
    with writer.as_default():
        if context is None:
            summary.scalar("a", 1, step=7)
        else:
            with context():
                summary.scalar("a", 1, step=7)
    with tf.Session() as session:
        session.run(summary.summary_writer_initializer_op())
        session.run(summary.all_summary_ops())
        session.run(writer.close())
    assert [event.step for event in events_of(tmp_path)] == [7] * expected
    assert len(list(tmp_path.glob("*.here"))) == 1


def test_without_a_writer_nothing_is_made():
    with summary.always_record_summaries(), tf.Session() as session:
        assert session.run(summary.scalar("a", 1, step=1)) is None
        with summary.create_file_writer(None).as_default():
            session.run([summary.scalar("b", 2, step=1), summary.flush(), summary.import_event("")])
    assert summary.all_summary_ops() == []


def test_events_and_graphs_are_imported(tmp_path):
    writer = summary.create_file_writer(str(tmp_path))
    event, graph = (tf.placeholder(tf.string, []) for _ in range(2))
    with writer.as_default(), tf.Session() as session:
        summary.initialize(session=session)
        operations = [summary.import_event(event), summary.graph(graph, step=3), summary.flush()]
        given = tf.Event(step=5, summary=tf.Summary(value=[tf.Summary.Value(tag="t", simple_value=2)]))
        feeds = {event: given.SerializeToString(), graph: tf.GraphDef().SerializeToString()}
        session.run(operations[:2], feeds)
        session.run(operations[2])
        with pytest.raises(TypeError, match="serialized"):
            summary.graph(tf.Graph())
    assert [each.step for each in events_of(tmp_path)] == [5]


def test_names_of_2_0(tmp_path):
    writer = step_summaries.create_file_writer_v2(str(tmp_path))
    with writer.as_default():
        with pytest.raises(ValueError, match="No step set"):
            step_summaries.scalar_v2("a", 1.0)
        step_summaries.scalar_v2("a", 1.0, step=1)
        with step_summaries.record_if(False):
            step_summaries.scalar_v2("b", 1.0, step=2)
        step_summaries.write("c", np.ones([2]), step=3)
        step_summaries.set_step(4)
        step_summaries.histogram_v2("d", np.ones([2]))
        step_summaries.image_v2("e", np.zeros([1, 2, 2, 1], np.float32))
        step_summaries.audio_v2("f", np.zeros([1, 4], np.float32), 100.0)
        step_summaries.set_step(None)
    with tf.Session() as session:
        session.run(writer.init())
        session.run(summary.all_summary_ops())
        session.run(writer.flush())
        values = [event.summary.value[0] for event in events_of(tmp_path)]
    assert [value.tag for value in values] == ["a", "c", "d", "e/image/0", "f/audio/0"]
    assert values[0].metadata.plugin_data.plugin_name == "scalars"
    assert tf.make_ndarray(values[1].tensor).tolist() == [1, 1]


def test_names_of_tf_summary():
    """As in TensorFlow 1.15: a writer is needed, and `tf.summary` has the functions too."""
    assert tf.summary.initialize is summary.initialize and tf.summary.all_v2_summary_ops() == []
    with tf.Session(), pytest.raises(RuntimeError, match=r"No default tf\.contrib\.summary"):
        tf.summary.initialize()
    with tf.Session(), summary.create_file_writer(None).as_default(), pytest.raises(RuntimeError, match="No default"):
        tf.summary.initialize()
