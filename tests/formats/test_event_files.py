"""Event files: what is written, read back by this project and by TensorBoard's own reader; damage; threads."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tfray as tf
from tests.support.event_reading import events_in, kinds, tensorboard_view
from tests.support.processes import PATIENCE_S, wait_for
from tfray.formats.events import Event, EventFile
from tfray.formats.graph_proto import GraphDef
from tfray.formats.meta_graph_proto import MetaGraphDef
from tfray.formats.step_stats import RunMetadata
from tfray.formats.tensorboard_graph import to_graph_proto
from tfray.library.inspect.plugin_assets import PluginAsset, get_plugin_asset
from tfray.programs.plain_events import EventsWriter


def writer_threads():
    return [thread for thread in threading.enumerate() if thread.name == "tfray event writer"]


# -- the writer ----------------------------------------------------------------------------------------


def test_a_writer_writes_what_it_is_given(tmp_path):
    with tf.summary.FileWriter(tmp_path / "deep" / "log", filename_suffix=".mine") as writer:
        assert writer.get_logdir() == str(tmp_path / "deep" / "log")
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=0.5)]), np.int64(3))
        writer.add_session_log(tf.SessionLog(status=tf.SessionLog.CHECKPOINT, checkpoint_path="model-3"), 3)
        writer.add_event(tf.Event(wall_time=1.0, step=4, log_message=tf.LogMessage(message="hello")))
    events = events_in(tmp_path / "deep" / "log")
    assert kinds(events) == ["file_version", "summary", "session_log", "log_message"]
    assert events[0].file_version == "brain.Event:2"
    assert [event.step for event in events] == [0, 3, 3, 4]
    (path,) = (tmp_path / "deep" / "log").iterdir()
    assert path.name.startswith("events.out.tfevents.") and path.name.endswith(".mine")


def test_flushed_events_can_be_read_while_the_writer_is_open(tmp_path):
    writer = tf.summary.FileWriter(tmp_path, max_queue=100, flush_secs=1000)
    for step in range(50):
        writer.add_summary(tf.Summary(), step)
    writer.flush()
    assert len(events_in(tmp_path)) == 51
    writer.close()


def test_events_are_flushed_in_time(tmp_path):
    with tf.summary.FileWriter(tmp_path, flush_secs=0) as writer:
        writer.add_summary(tf.Summary(), 1)
        writer.add_summary(tf.Summary(), 2)
        wait_for(lambda: len(events_in(tmp_path)) == 3)


def test_a_closed_writer_warns_and_drops_events_until_it_is_reopened(tmp_path):
    writer = tf.summary.FileWriter(tmp_path)
    writer.add_summary(tf.Summary(), 1)
    writer.close()
    writer.close()
    for add in (lambda: writer.add_summary(tf.Summary(), 2), lambda: writer.add_graph(tf.Graph(), 2), writer.flush):
        with pytest.warns(UserWarning, match="reopen"):  # as in TensorFlow 1.15
            add()
    writer.reopen()
    writer.add_summary(tf.Summary(), 3)
    writer.close()
    assert [event.step for event in events_in(tmp_path) if event.HasField("summary")] == [1, 3]
    assert len(list(tmp_path.iterdir())) == 2


def test_the_thread_ends_with_the_writer(tmp_path):
    before = len(writer_threads())
    writer = tf.summary.FileWriter(tmp_path)
    assert len(writer_threads()) == before
    writer.add_summary(tf.Summary(), 1)
    assert len(writer_threads()) == before + 1
    writer.close()
    assert len(writer_threads()) == before


def test_the_thread_ends_with_a_forgotten_writer(tmp_path):
    before = len(writer_threads())
    writer = tf.summary.FileWriter(tmp_path)
    writer.add_summary(tf.Summary(), 1)
    del writer
    gc.collect()
    assert len(writer_threads()) == before
    assert kinds(events_in(tmp_path)) == ["file_version", "summary"]


def test_a_program_that_ends_loses_nothing(tmp_path):
    program = f"""
import tfray as tf
writer = tf.summary.FileWriter({str(tmp_path)!r})
for step in range(100):
    writer.add_summary(tf.Summary(), step)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE_S)
    assert len(events_in(tmp_path)) == 101


def test_a_failure_of_the_disk_is_raised(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    writer = tf.summary.FileWriter(tmp_path, max_queue=2)
    writer.add_summary(tf.Summary(), 1)
    writer.flush()
    log = writer.event_writer._log
    log._file._records._file = open("/dev/full", "wb")  # noqa: SIM115 (the writer closes it)
    with pytest.raises(tf.errors.ResourceExhaustedError):
        for step in range(10_000):
            writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="x" * 1000)]), step)
    log._file._records._file = open("/dev/null", "wb")  # noqa: SIM115
    with pytest.raises(tf.errors.ResourceExhaustedError):
        writer.close()
    assert not log._thread.is_alive()


def test_many_threads_may_write(tmp_path):
    with tf.summary.FileWriter(tmp_path, max_queue=3) as writer:
        threads = [
            threading.Thread(target=lambda: [writer.add_summary(tf.Summary(), step) for step in range(50)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(event.step for event in events_in(tmp_path)[1:]) == sorted(list(range(50)) * 4)


def test_metadata_are_written_once(tmp_path):
    summary = tf.Summary(value=[tf.Summary.Value(tag="x", metadata=tf.SummaryMetadata(display_name="X"))])
    with tf.summary.FileWriter(tmp_path) as writer:
        writer.add_summary(summary, 1)
        writer.add_summary(summary.SerializeToString(), 2)
        writer.add_summary(summary, 3)
    assert [event.summary.value[0].HasField("metadata") for event in events_in(tmp_path)[1:]] == [True, False, False]
    assert summary.value[0].HasField("metadata")


@pytest.mark.parametrize("argument", ["graph", "graph_def"])
def test_a_writers_graph_is_written_as_a_meta_graph_too(tmp_path, argument):
    tf.constant(1.0, name="x")
    graph = tf.get_default_graph()
    tf.summary.FileWriter(tmp_path, **{argument: graph if argument == "graph" else graph.as_graph_def()}).close()
    _, drawn, meta = events_in(tmp_path)
    found = MetaGraphDef.FromString(meta.meta_graph_def).graph_def
    assert found == GraphDef.FromString(drawn.graph_def) and found.node[0].name == "x"


def test_writers_that_begin_in_one_second_have_files_of_their_own(tmp_path):
    files = [EventFile(tmp_path) for _ in range(3)]
    for file in files:
        file.close()
    assert len({file.path for file in files}) == 3 == len(list(tmp_path.iterdir()))


def test_the_cache_shares_writers(tmp_path):
    first = tf.summary.FileWriterCache.get(str(tmp_path / "a"))
    assert tf.summary.FileWriterCache.get(str(tmp_path / "a")) is first
    assert tf.summary.FileWriterCache.get(str(tmp_path / "b")) is not first
    tf.summary.FileWriterCache.clear()
    assert tf.summary.FileWriterCache.get(str(tmp_path / "a")) is not first
    tf.summary.FileWriterCache.clear()


def test_the_cache_begins_with_the_default_graph(tmp_path):
    tf.constant(1, name="drawn")
    tf.summary.FileWriterCache.get(tmp_path)
    tf.summary.FileWriterCache.clear()
    (path,) = tmp_path.iterdir()
    events = list(tf.train.summary_iterator(str(path)))
    assert [event.WhichOneof("what") for event in events] == ["file_version", "graph_def", "meta_graph_def"]
    assert "drawn" in [node.name for node in tf.GraphDef.FromString(events[1].graph_def).node]


def test_wrong_arguments_are_refused(tmp_path):
    writer = tf.summary.FileWriter(tmp_path)
    with pytest.raises(TypeError, match="expected a tf"):
        writer.add_summary("loss")
    with pytest.raises(ValueError, match="no graph"):
        writer.add_graph("graph")
    with pytest.raises(TypeError, match="no meta graph"):
        writer.add_meta_graph("graph")
    writer.add_run_metadata(RunMetadata(), "step 1")
    with pytest.raises(ValueError, match="already"):
        writer.add_run_metadata(RunMetadata(), "step 1")
    writer.close()


# -- TensorBoard's reader ------------------------------------------------------------------------------


def test_tensorboard_reads_all_kinds_of_summaries(tmp_path):
    x = tf.placeholder(tf.float32, [])
    with tf.name_scope("train"):
        tf.summary.scalar("loss", x)
    tf.summary.histogram("weights", tf.constant([1.0, 2.0, 3.0]) * x)
    tf.summary.image("picture", tf.ones([1, 4, 5, 3]) * x, max_outputs=1)
    tf.summary.audio("sound", tf.ones([1, 100]), 8000, max_outputs=1)
    tf.summary.text("words", tf.constant(["a", "b"]))
    merged = tf.summary.merge_all()
    with tf.Session() as session, tf.summary.FileWriter(tmp_path, session.graph) as writer:
        for step in range(3):
            writer.add_summary(session.run(merged, {x: step + 0.5}), step)
    view = tensorboard_view(tmp_path)
    assert [(event.step, event.value) for event in view.Scalars("train/loss")] == [(0, 0.5), (1, 1.5), (2, 2.5)]
    histogram = view.Histograms("weights")[2].histogram_value
    assert (histogram.min, histogram.max, histogram.num, histogram.sum) == (2.5, 7.5, 3, 15)
    assert (view.Images("picture/image")[0].width, view.Images("picture/image")[0].height) == (5, 4)
    assert view.Audio("sound/audio")[0].sample_rate == 8000
    assert view.SummaryMetadata("words").plugin_data.plugin_name == "text"
    assert view.Tensors("words")[0].tensor_proto.string_val == [b"a", b"b"]


def branching_graph():
    """A model with a branch, a loop in a branch, and a loop over a function with parameters."""
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    with tf.device("/job:ps/task:0"):
        weights = tf.get_variable("weights", [3, 3])
    y = tf.matmul(x, weights, name="y")
    grown = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * tf.reduce_sum(weights)), [0, y], name="grow")[1]
    chosen = tf.cond(
        tf.reduce_sum(y) > 0,
        lambda: tf.while_loop(lambda v: tf.reduce_sum(v) < 10.0, lambda v: v + weights, [y], name="fill"),
        lambda: grown,
        name="choose",
    )
    rows = tf.map_fn(lambda row: tf.reduce_max(row) * tf.reduce_sum(x), grown, name="rows")
    with tf.control_dependencies([chosen]):
        tf.identity(rows, name="end")
    tf.constant(np.zeros(1000, np.float32), name="large")
    return tf.get_default_graph()


def test_tensorboard_reads_the_graph(tmp_path):
    graph = branching_graph()
    with tf.summary.FileWriter(tmp_path, graph):
        pass
    drawn = tensorboard_view(tmp_path).Graph()
    nodes = {node.name: node for node in drawn.node}
    assert len(nodes) == len(drawn.node)
    for node in drawn.node:
        for text in node.input:
            assert text.removeprefix("^").partition(":")[0] in nodes, (node.name, text)
    assert list(nodes["y"].input) == ["x", "weights/read"]
    assert nodes["weights"].device == "/job:ps/task:0"
    assert [dim.size for dim in nodes["y"].attr["_output_shapes"].list.shape[0].dim] == [-1, 3]
    assert nodes["y"].attr["T"].type == 1
    assert "grow/body/mul" in nodes and "grow/condition/Less" in nodes
    assert "grow/body/mul" in nodes["grow"].input
    assert any(name.startswith("choose/then/fill/body/") for name in nodes)
    assert "^choose/Merge" in nodes["end"].input
    assert b"1000" in nodes["large"].attr["value"].s


def test_graphs_survive_their_message():
    proto = to_graph_proto(branching_graph())
    assert GraphDef.FromString(proto.SerializeToString()) == proto
    assert to_graph_proto(tf.get_default_graph().as_plain()) == proto


def test_tensorboard_reads_run_metadata(tmp_path):
    metadata = RunMetadata()
    device = metadata.step_stats.dev_stats.add(device="/cpu:0")
    device.node_stats.add(node_name="y", all_start_micros=1, all_end_rel_micros=5)
    device.node_stats.add(node_name="grow/mul", all_start_micros=6)
    with tf.summary.FileWriter(tmp_path, branching_graph()) as writer:
        writer.add_run_metadata(metadata, "step 7", 7)
    view = tensorboard_view(tmp_path)
    assert view.Tags()["run_metadata"] == ["step 7"]
    found = view.RunMetadata("step 7").step_stats.dev_stats[0]
    assert found.node_stats[1].node_name == "grow/body/mul"
    assert (found.device, found.node_stats[0].node_name, found.node_stats[0].all_end_rel_micros) == ("/cpu:0", "y", 5)


# -- damage --------------------------------------------------------------------------------------------


def sample_file(folder):
    with EventFile(folder) as file:
        file.write(Event(step=1, summary=tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=1.0)])))
        histogram = tf.HistogramProto(bucket_limit=np.arange(20.0), bucket=np.ones(20), num=20)
        file.write(Event(step=2, summary=tf.Summary(value=[tf.Summary.Value(tag="h", histo=histogram)])))
        image = tf.Summary.Image(height=2, width=2, colorspace=1, encoded_image_string=b"png" * 30)
        file.write(Event(step=3, summary=tf.Summary(value=[tf.Summary.Value(tag="i", image=image)])))
        file.write(Event(step=4, graph_def=to_graph_proto(branching_graph()).SerializeToString()))
    return file.path


def test_a_missing_file_is_not_found(tmp_path):
    with pytest.raises(tf.errors.NotFoundError):
        next(tf.train.summary_iterator(tmp_path / "none"))


def test_a_file_that_is_cut_off_gives_what_is_before(tmp_path):
    path = Path(sample_file(tmp_path))
    path.write_bytes(path.read_bytes()[:-3])
    found = []
    with pytest.raises(tf.errors.DataLossError, match="ends within"):
        found += list(_until_failure(path, found))
    assert [event.step for event in found] == [0, 1, 2, 3]


def _until_failure(path, found):
    for event in tf.train.summary_iterator(path):
        found.append(event)
    return found


def damage(draw, data):
    """Some bytes changed, cut out, put in or cut off."""
    data = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.sampled_from(["change", "cut out", "put in", "cut off"]))
        if kind == "change" and data:
            data[at] = draw(st.integers(0, 255))
        elif kind == "cut out":
            del data[at : at + draw(st.integers(1, 20))]
        elif kind == "put in":
            data[at:at] = draw(st.binary(min_size=1, max_size=12))
        elif kind == "cut off":
            del data[at:]
    return bytes(data)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    with tf.Graph().as_default():
        return Path(sample_file(tmp_path_factory.mktemp("sample"))).read_bytes()


def check_damaged_file(path, data):
    path.write_bytes(data)
    tracemalloc.start()
    try:
        list(tf.train.summary_iterator(path))
    except tf.errors.DataLossError as error:
        assert str(path) in str(error)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 32 << 20


def check_damaged_event(data):
    """Behind a right checksum anything may stand: what is read must still be an event, or refused."""
    try:
        event = Event.FromString(data)
        GraphDef.FromString(event.graph_def)
        assert Event.FromString(event.SerializeToString()) is not None
    except tf.errors.DataLossError as error:
        assert "Event" in str(error) or "GraphDef" in str(error)


def fuzzing(count):
    return settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))


@fuzzing(100)
@given(st.data())
def test_damaged_files_are_refused(sample, tmp_path_factory, data):
    check_damaged_file(tmp_path_factory.getbasetemp() / "damaged", damage(data.draw, sample))


@fuzzing(200)
@given(st.data())
def test_damaged_events_are_refused(sample_events, data):
    check_damaged_event(damage(data.draw, data.draw(st.sampled_from(sample_events))))


@pytest.fixture(scope="module")
def sample_events(sample, tmp_path_factory):
    path = tmp_path_factory.mktemp("events") / "sample"
    path.write_bytes(sample)
    return [event.SerializeToString() for event in tf.train.summary_iterator(path)]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@fuzzing(10_000)
@given(st.data())
def test_many_damaged_files_are_refused(sample, sample_events, tmp_path_factory, data):
    check_damaged_file(tmp_path_factory.getbasetemp() / "damaged", damage(data.draw, sample))
    check_damaged_event(damage(data.draw, data.draw(st.sampled_from(sample_events))))


@pytest.mark.parametrize(("rate", "written"), [(0.2, 1), (8000.4, 8000)])
def test_sounds_have_whole_rates_in_their_files(rate, written):
    sound = tf.summary.audio("sound", tf.ones([1, 4]), rate)
    with tf.Session() as session:
        found = tf.Summary.FromString(session.run(sound)).value[0].audio
    assert found.sample_rate == pytest.approx(rate)
    assert int.from_bytes(found.encoded_audio_string[24:28], "little") == written


def test_events_written_without_a_thread(tmp_path):
    writer = EventsWriter(str(tmp_path / "mine").encode())
    writer.WriteEvent(tf.Event(step=3, summary=tf.Summary(value=[tf.Summary.Value(tag="a", simple_value=0.5)])))
    assert writer.Flush()
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("mine.out.tfevents.") and writer.FileName().decode() == str(path)
    assert [event.step for event in tf.train.summary_iterator(str(path))] == [0, 3]
    assert writer.Close() and writer.Close()
    writer.InitWithSuffix(b".second")
    assert sum(each.name.endswith(".second") for each in tmp_path.iterdir()) == 1
    writer.Close()


def test_a_writer_takes_a_graph_or_a_message_not_both(tmp_path):
    graph = tf.Graph()
    with pytest.raises(ValueError, match="not both"):
        tf.summary.FileWriter(str(tmp_path), graph, graph_def=graph.as_graph_def())
    with tf.summary.FileWriter(str(tmp_path)) as writer, pytest.raises(TypeError, match="no graph"):
        writer.add_graph("graph")


def test_files_of_plugins_lie_beside_the_events(tmp_path):
    class Asset(PluginAsset):
        plugin_name = "example"

        def assets(self):
            return {"a.txt": "one", "b.bin": b"\0"}

    class Other(Asset):
        pass

    with tf.Graph().as_default() as graph:
        made = get_plugin_asset(Asset)
        assert get_plugin_asset(Asset) is made
        with pytest.raises(ValueError, match="belongs to Asset"):
            get_plugin_asset(Other)
    tf.summary.FileWriter(str(tmp_path), graph).close()
    assert (tmp_path / "plugins" / "example" / "a.txt").read_text() == "one"
    assert (tmp_path / "plugins" / "example" / "b.bin").read_bytes() == b"\0"
