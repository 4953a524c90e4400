"""`tf.contrib.learn.read_batch_examples` and its kin: batches of records from files."""

from __future__ import annotations

import pytest

import tfray as tf

learn = tf.contrib.learn


@pytest.fixture
def files(tmp_path):
    """Two files of records, the numbers from 0 to 9 as examples."""
    for part in (0, 1):
        with tf.python_io.TFRecordWriter(str(tmp_path / f"part-{part}.tfrecord")) as writer:
            for number in range(5 * part, 5 * part + 5):
                feature = {
                    "number": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
                    "words": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"a"] * (number % 3))),
                }
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString())
    return str(tmp_path / "part-*.tfrecord")


def taken(tensors, most=10):
    """What queue runners bring, until there is nothing more."""
    found = []
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            while len(found) < most:
                found.append(session.run(tensors))
        except tf.errors.OutOfRangeError:
            pass
        finally:
            coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=60)
    return found


def number_of(example):
    return tf.parse_single_example(example, {"number": tf.FixedLenFeature([], tf.int64)})["number"]


def test_examples_in_order(files):
    batches = learn.read_batch_examples(
        files, 4, tf.TFRecordReader, randomize_input=False, num_epochs=1, parse_fn=number_of, name="read"
    )
    assert batches.op.name.startswith("read")
    assert [batch.tolist() for batch in taken(batches)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


@pytest.mark.parametrize("settings", [{}, {"read_batch_size": 3}, {"num_threads": 2}])
def test_examples_in_any_order(files, settings):
    serialized = learn.read_batch_examples(
        files, 5, tf.TFRecordReader, num_epochs=2, queue_capacity=20, seed=1, **settings
    )
    numbers = tf.parse_example(serialized, {"number": tf.FixedLenFeature([], tf.int64)})["number"]
    found = [number for batch in taken(numbers) for number in batch.tolist()]
    assert sorted(found) == sorted([*range(10)] * 2)


def test_features(files):
    wanted = {"number": tf.FixedLenFeature([], tf.int64), "words": tf.VarLenFeature(tf.string)}
    parsed = learn.read_batch_record_features([files], 4, wanted, num_epochs=1)
    found = [
        row for batch in taken(parsed) for row in zip(batch["number"].tolist(), words_in(batch["words"]), strict=True)
    ]
    assert sorted(found) == [(number, number % 3) for number in range(10)]
    endless = learn.read_batch_features(files, 4, wanted, tf.TFRecordReader, randomize_input=False)
    assert endless["number"].shape.as_list() == [4]
    assert [batch["number"].tolist() for batch in taken(endless, 3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]


def words_in(sparse):
    """How many there are in each row."""
    rows = sparse.indices[:, 0].tolist()
    return [rows.count(row) for row in range(sparse.dense_shape[0])]


def test_numbers_that_cannot_be(files):
    for settings in ({"queue_capacity": 0}, {"num_threads": 0}, {"read_batch_size": 0}, {"num_epochs": 0}):
        with pytest.raises(ValueError, match=f"Invalid {next(iter(settings))} 0"):
            learn.read_batch_examples(files, 2, tf.TFRecordReader, **settings)
    with pytest.raises(ValueError, match="Invalid batch_size 9, with queue_capacity 9"):
        learn.read_batch_examples(files, 9, tf.TFRecordReader, queue_capacity=9)
    with pytest.raises(ValueError, match="No files match"):
        learn.read_batch_examples(f"{files}.gz", 2, tf.TFRecordReader)
    with pytest.raises(ValueError, match="No files given"):
        learn.read_batch_examples([], 2, tf.TFRecordReader)
