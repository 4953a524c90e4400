"""Queue runners, and the input pipelines of TensorFlow 1 that are made of them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S
from tests.support.waiting import until_waiting
from tfray.errors import CancelledError, FailedPreconditionError, InvalidArgumentError, OutOfRangeError


class Pipeline:
    """A session with its queue runners going, as programs write it."""

    def __enter__(self):
        self.session = tf.Session()
        self.session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        self.coord = tf.train.Coordinator()
        self.threads = tf.train.start_queue_runners(self.session, self.coord)
        return self

    def __exit__(self, kind, error, traceback):
        self.coord.request_stop()
        try:
            if kind is None:
                self.coord.join(self.threads)
        finally:
            self.session.close()

    def run(self, fetches):
        return self.session.run(fetches)

    def all(self, fetches):
        """Every value until the input ends."""
        values = []
        with pytest.raises(OutOfRangeError):
            while True:
                values.append(self.run(fetches))
        return values


# -- queue runners -------------------------------------------------------------------------------------


def counter(limit=None):
    variable = tf.Variable(0, name="counter")
    return variable.count_up_to(limit) if limit else variable.assign_add(1)


def test_a_runner_fills_a_queue_and_closes_it_at_the_end():
    queue = tf.FIFOQueue(4, tf.int32, [()])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(counter(10))])
    tf.train.add_queue_runner(runner)
    assert tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS) == [runner]
    assert (runner.name, runner.queue) == (queue.name, queue)
    with Pipeline() as pipeline:
        assert pipeline.all(queue.dequeue()) == list(range(10))
        assert not pipeline.coord.should_stop()


def test_several_operations_of_a_runner_end_one_by_one():
    queue = tf.FIFOQueue(100, tf.int32, [()])
    first, second = tf.Variable(0), tf.Variable(100)
    ops = [queue.enqueue(first.count_up_to(3)), queue.enqueue(second.count_up_to(105))]
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, ops))
    with Pipeline() as pipeline:
        assert len(pipeline.threads) == 3  # one waits for the coordinator
        assert sorted(pipeline.all(queue.dequeue())) == [0, 1, 2, 100, 101, 102, 103, 104]


def test_a_stop_cancels_an_enqueue_that_waits():
    queue = tf.FIFOQueue(1, tf.int32, [()], name="q")
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(counter())]))
    with Pipeline() as pipeline:
        until_waiting(pipeline.session, "q", 0)
        pipeline.coord.request_stop()
        pipeline.coord.join(pipeline.threads)  # no error: that is how it ends
        assert pipeline.run(queue.is_closed())


def test_an_error_of_a_runner_reaches_the_coordinator():
    queue = tf.FIFOQueue(10, tf.float32, [()])
    value = tf.check_numerics(tf.constant(np.nan), "bad input")
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(value)]))
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        with pytest.raises(OutOfRangeError):
            session.run(queue.dequeue())  # the runner has closed the queue
        with pytest.raises(InvalidArgumentError, match="bad input"):
            coord.join(threads)


def test_without_a_coordinator_errors_are_kept():
    queue = tf.FIFOQueue(10, tf.float32, [()])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(tf.check_numerics(tf.constant(np.nan), "bad input"))])
    with tf.Session() as session:
        (thread,) = runner.create_threads(session, start=True)
        thread.join()
        (error,) = runner.exceptions_raised
        assert isinstance(error, InvalidArgumentError)


def test_threads_end_with_the_session(capsys):
    queue = tf.FIFOQueue(1, tf.int32, [()], name="q")
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(counter())]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        threads = tf.train.start_queue_runners()
        until_waiting(session, "q", 0)
        assert all(thread.daemon for thread in threads)
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert capsys.readouterr().err == ""


def test_threads_are_started_once_for_each_session():
    queue = tf.FIFOQueue(1, tf.int32, [()], name="q")
    runner = tf.train.QueueRunner(queue, [queue.enqueue(1)])
    with tf.Session() as first, tf.Session() as second:
        coord = tf.train.Coordinator()
        assert len(runner.create_threads(first, coord, daemon=True, start=True)) == 2
        assert runner.create_threads(first, coord) == []
        assert len(runner.create_threads(second, coord, daemon=True, start=True)) == 2
        assert first.run(queue.dequeue()) == second.run(queue.dequeue()) == 1
        coord.request_stop()
        coord.join()


def test_other_errors_may_mean_the_end():
    queue, source = tf.FIFOQueue(10, tf.int32, [()]), tf.FIFOQueue(10, tf.int32, [()])
    runner = tf.train.QueueRunner(
        queue, [queue.enqueue(source.dequeue())], queue_closed_exception_types=(OutOfRangeError, CancelledError)
    )
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        session.run(queue.close())
        session.run(source.enqueue(1))
        threads = runner.create_threads(session, coord, start=True, daemon=True)
        threads[0].join()
        coord.request_stop()
        coord.join()


def test_runners_are_checked():
    queue = tf.FIFOQueue(1, tf.int32)
    for arguments in ({}, {"queue": queue}, {"queue": queue, "enqueue_ops": []}):
        with pytest.raises(ValueError, match="operations"):
            tf.train.QueueRunner(**arguments)
    with pytest.raises(TypeError, match="OpError"):
        tf.train.QueueRunner(queue, [queue.enqueue(1)], queue_closed_exception_types=(ValueError,))
    with pytest.raises(ValueError, match="session"):
        tf.train.start_queue_runners()


# -- producers -----------------------------------------------------------------------------------------


def test_strings_are_given_once_an_epoch():
    names = ["a", "b", "c"]
    queue = tf.train.string_input_producer(names, num_epochs=2, shuffle=False)
    with Pipeline() as pipeline:
        assert pipeline.all(queue.dequeue()) == [b"a", b"b", b"c"] * 2


def test_each_epoch_has_an_order_of_its_own_that_follows_from_the_seed():
    def orders():
        with tf.Graph().as_default():
            queue = tf.train.range_input_producer(20, num_epochs=3, seed=5)
            value = queue.dequeue_many(20)
            with Pipeline() as pipeline:
                return [pipeline.run(value).tolist() for _ in range(3)]

    first, second, third = orders()
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second != third
    assert orders() == [first, second, third]


def test_without_epochs_there_is_no_end():
    queue = tf.train.range_input_producer(tf.constant(3), shuffle=False, capacity=2)
    with Pipeline() as pipeline:
        assert [pipeline.run(queue.dequeue()) for _ in range(10)] == [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]


def test_slices_come_together():
    images, labels = np.arange(12).reshape(4, 3), np.arange(4) * 10
    image, label = tf.train.slice_input_producer([images, tf.constant(labels)], num_epochs=1)
    assert image.shape.as_list() == [3] and label.shape.as_list() == []
    with Pipeline() as pipeline:
        pairs = pipeline.all([image, label])
    assert sorted(int(label) for _, label in pairs) == [0, 10, 20, 30]
    assert all(image.tolist() == images[label // 10].tolist() for image, label in pairs)


def test_an_empty_list_of_strings_is_refused():
    with pytest.raises(ValueError, match="empty"):
        tf.train.string_input_producer([])
    fed = tf.placeholder_with_default(np.array([], object), [None])
    queue = tf.train.string_input_producer(fed)
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        with pytest.raises(OutOfRangeError):
            session.run(queue.dequeue())
        with pytest.raises(InvalidArgumentError, match="match no files"):
            coord.join(threads)


def test_names_of_files_are_matched_once(tmp_path):
    for name in ("b.txt", "a.txt", "c.bin"):
        (tmp_path / name).write_text(f"{name}\n")
    names = tf.train.match_filenames_once(str(tmp_path / "*.txt"))
    assert tf.local_variables() == [names]
    queue = tf.train.string_input_producer(names, num_epochs=1, shuffle=False)
    line = tf.TextLineReader().read(queue)[1]
    with Pipeline() as pipeline:
        (tmp_path / "d.txt").write_text("late\n")
        assert pipeline.all(line) == [b"a.txt", b"b.txt"]
    nothing = tf.train.match_filenames_once(str(tmp_path / "*.none"))
    queue = tf.train.string_input_producer(nothing)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        with pytest.raises(OutOfRangeError):
            session.run(queue.dequeue())
        with pytest.raises(InvalidArgumentError, match="match no files"):
            coord.join(threads)


def test_epochs_are_counted_by_local_variables():
    limited = tf.train.limit_epochs(tf.constant([1.0]), 2)
    (variable,) = tf.local_variables()
    assert variable.op.name == "limit_epochs/epochs" and tf.global_variables() == []
    with tf.Session() as session:
        with pytest.raises(FailedPreconditionError):
            session.run(limited)
        session.run(tf.local_variables_initializer())
        assert [session.run(limited).tolist() for _ in range(2)] == [[1.0], [1.0]]
        with pytest.raises(OutOfRangeError):
            session.run(limited)
    with pytest.raises(ValueError, match="num_epochs"):
        tf.train.limit_epochs(tf.constant(1), 0)
    with pytest.raises(ValueError, match="element_shape"):
        tf.train.input_producer(tf.placeholder(tf.int32, [None, None]))


def test_uninitialised_epochs_are_an_error_of_the_runner():
    queue = tf.train.string_input_producer(["a"], num_epochs=1)
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        with pytest.raises(OutOfRangeError):
            session.run(queue.dequeue())
        with pytest.raises(FailedPreconditionError, match="epochs"):
            coord.join(threads)


# -- batches -------------------------------------------------------------------------------------------


def numbers(count, epochs=1):
    """The integers, one in each run."""
    return tf.train.range_input_producer(count, num_epochs=epochs, shuffle=False).dequeue()


def test_examples_are_batched_in_their_order():
    number = numbers(10)
    batch = tf.train.batch([number, tf.stack([number, -number])], batch_size=4)
    assert [tensor.shape.as_list() for tensor in batch] == [[4], [4, 2]]
    with Pipeline() as pipeline:
        got = pipeline.all(batch)
    assert [first.tolist() for first, _ in got] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert got[1][1].tolist() == [[4, -4], [5, -5], [6, -6], [7, -7]]


def test_the_last_batch_may_be_smaller():
    batch = tf.train.batch([numbers(10)], 4, allow_smaller_final_batch=True, num_threads=1)
    assert batch.shape.as_list() == [None]
    with Pipeline() as pipeline:
        assert [value.tolist() for value in pipeline.all(batch)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_batches_keep_the_form_of_the_examples():
    number = numbers(4)
    batch = tf.train.batch({"n": number, "text": tf.as_string(number) if hasattr(tf, "as_string") else number}, 2)
    assert sorted(batch) == ["n", "text"]
    alone = tf.train.batch({"n": number}, 2)
    assert list(alone) == ["n"] and alone["n"].shape.as_list() == [2]
    single = tf.train.batch(number, 2)
    assert single.shape.as_list() == [2]


def test_several_examples_may_be_added_at_once():
    rows = tf.reshape(tf.range(6), [3, 2]) + tf.Variable(0).count_up_to(4) * 10
    batch = tf.train.batch([rows], 4, enqueue_many=True, capacity=5)
    assert batch.shape.as_list() == [4, 2]
    with Pipeline() as pipeline:
        got = pipeline.all(batch)
    expected = (np.arange(6).reshape(3, 2) + np.arange(4).reshape(4, 1, 1) * 10).reshape(3, 4, 2)
    assert np.array_equal(got, expected)


def test_examples_of_different_size_are_padded():
    number = numbers(5)
    batch = tf.train.batch([tf.range(number)], 5, dynamic_pad=True)
    assert batch.shape.as_list() == [5, None]
    with Pipeline() as pipeline:
        got = pipeline.run(batch)
    assert got.tolist() == [[0] * 4, [0] * 4, [0, 1, 0, 0], [0, 1, 2, 0], [0, 1, 2, 3]]


def test_shapes_that_are_not_known_must_be_given():
    example = tf.placeholder_with_default(np.ones(3, np.float32), None)
    with pytest.raises(ValueError, match="shape"):
        tf.train.batch([example], 2)
    batch = tf.train.batch([example], 2, shapes=[[3]])
    assert batch.shape.as_list() == [2, 3]
    with Pipeline() as pipeline:
        assert pipeline.run(batch).tolist() == [[1.0] * 3] * 2


def test_shuffled_batches_hold_every_example_once():
    batch = tf.train.shuffle_batch(
        [numbers(50)], 8, capacity=30, min_after_dequeue=10, seed=3, allow_smaller_final_batch=True
    )
    with Pipeline() as pipeline:
        got = np.concatenate(pipeline.all(batch))
    assert sorted(got.tolist()) == list(range(50)) != got.tolist()


def test_several_threads_compute_examples():
    batch = tf.train.shuffle_batch([numbers(64)], 16, 40, 8, num_threads=4)
    with Pipeline() as pipeline:
        assert len(pipeline.threads) == 2 + 5
        got = np.concatenate(pipeline.all(batch))
    assert sorted(got.tolist()) == list(range(64))


@pytest.mark.parametrize("shuffled", [False, True])
def test_examples_of_several_places_are_joined(shuffled):
    places = [[numbers(10), tf.constant(i)] for i in range(3)]
    if shuffled:
        batch = tf.train.shuffle_batch_join(places, 5, 20, 5)
    else:
        batch = tf.train.batch_join(places, 5)
    with Pipeline() as pipeline:
        got = pipeline.all(batch)
    pairs = [(int(place), int(number)) for values, owners in got for number, place in zip(values, owners, strict=True)]
    assert sorted(pairs) == [(place, number) for place in range(3) for number in range(10)]
    if not shuffled:
        for place in range(3):
            assert [number for owner, number in pairs if owner == place] == list(range(10))


def test_joined_examples_must_be_alike():
    with pytest.raises(TypeError, match="dtypes"):
        tf.train.batch_join([[tf.constant(1)], [tf.constant(1.0)]], 2)
    with pytest.raises(ValueError, match="tensor"):
        tf.train.batch([], 2)
    with pytest.raises(ValueError, match="tensors"):
        tf.train.batch_join([], 2)
    for other in ({"b": tf.constant(1)}, [tf.constant(1)]):
        with pytest.raises(ValueError, match="same keys"):
            tf.train.batch_join([{"a": tf.constant(1)}, other], 2)
    with pytest.raises(ValueError, match="2 and 1 tensors"):
        tf.train.batch_join([[tf.constant(1), tf.constant(2)], [tf.constant(1)]], 2)


@pytest.mark.parametrize("shuffled", [False, True])
def test_examples_may_be_left_out(shuffled):
    number = numbers(20)
    keep = tf.equal(number % 2, 0)
    if shuffled:
        batch = tf.train.maybe_shuffle_batch([number], 5, 20, 0, keep)
    else:
        batch = tf.train.maybe_batch([number], keep, 5)
    with Pipeline() as pipeline:
        got = np.concatenate(pipeline.all(batch)).tolist()
    assert sorted(got) == list(range(0, 20, 2))


def test_a_vector_chooses_among_several_examples():
    number = numbers(4)
    rows = number * 10 + tf.range(3)
    batch = tf.train.maybe_batch([rows], tf.not_equal(rows % 10, 1), 4, enqueue_many=True)
    with Pipeline() as pipeline:
        assert np.concatenate(pipeline.all(batch)).tolist() == [0, 2, 10, 12, 20, 22, 30, 32]
    for keep, many, match in [
        (tf.constant([True]), False, "cannot be a vector"),
        (tf.constant([[True]]), True, "0 or 1 dimensions"),
        (tf.placeholder(tf.bool), True, "known at graph construction"),
    ]:
        with pytest.raises(ValueError, match=match):
            tf.train.maybe_batch([rows], keep, 4, enqueue_many=many)
    with pytest.raises(ValueError, match="Cannot infer Tensor's rank"):
        tf.train.batch([tf.placeholder(tf.int64)], 2)
    nothing = tf.train.maybe_batch([number], False, 4)
    assert nothing.shape.as_list() == [4]


def test_a_vector_chooses_among_sparse_examples():
    examples = tf.SparseTensor([[0, 1], [0, 2], [1, 0], [1, 3]], [5, 4, 7, 2], [2, 4])
    batch = tf.train.maybe_batch([examples], [True, False], 1, enqueue_many=True)
    with Pipeline() as pipeline:
        indices, values, shape = pipeline.session.run(batch)
        assert (indices.tolist(), values.tolist(), shape.tolist()) == ([[0, 1], [0, 2]], [5, 4], [1, 4])


@pytest.mark.parametrize("many", [False, True])
def test_sparse_examples_become_sparse_batches(many):
    number = numbers(6)
    if many:
        sparse = tf.SparseTensor([[0, 0], [1, 1], [1, 2]], tf.stack([number, number, number + 1]), [2, 4])
    else:
        sparse = tf.SparseTensor(tf.cast([[number]], tf.int64), [number * 10], [8])
    batch, plain = tf.train.batch([sparse, [number] * 2 if many else number], 4, enqueue_many=many)
    assert isinstance(batch, tf.SparseTensor)
    with Pipeline() as pipeline:
        value, _ = pipeline.run([batch, plain])
    if many:
        assert value.indices.tolist() == [[0, 0], [1, 1], [1, 2], [2, 0], [3, 1], [3, 2]]
        assert value.values.tolist() == [0, 0, 1, 1, 1, 2] and value.dense_shape.tolist() == [4, 4]
    else:
        assert value.indices.tolist() == [[i, i] for i in range(4)]
        assert value.values.tolist() == [0, 10, 20, 30] and value.dense_shape.tolist() == [4, 8]


def test_a_model_trains_from_queues():
    """The whole chain as the tutorials have it: slices, shuffled batches, a coordinator, an epoch limit."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(256, 3)).astype(np.float32)
    targets = features @ np.array([[1.0], [-2.0], [3.0]], np.float32)
    x, y = tf.train.slice_input_producer([features, targets], num_epochs=12, seed=1)
    x_batch, y_batch = tf.train.shuffle_batch([x, y], 32, capacity=200, min_after_dequeue=64, seed=1)
    weights = tf.Variable(tf.zeros([3, 1]))
    loss = tf.reduce_mean(tf.square(tf.matmul(x_batch, weights) - y_batch))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with Pipeline() as pipeline:
        losses, steps = [], 0
        try:
            while not pipeline.coord.should_stop():
                losses.append(pipeline.run([train, loss])[1])
                steps += 1
        except OutOfRangeError:
            pipeline.coord.request_stop()
        assert steps == 12 * 256 // 32 and losses[-1] < 1e-3 < losses[0]
        np.testing.assert_allclose(pipeline.run(weights).ravel(), [1.0, -2.0, 3.0], atol=0.05)


def test_programs_end_though_threads_still_produce():
    """Runner threads are daemons, and closing the session ends them while they run."""
    queue = tf.train.range_input_producer(1000)
    batch = tf.train.batch([queue.dequeue()], 10, num_threads=3)
    before = threading.active_count()
    with tf.Session() as session:
        threads = tf.train.start_queue_runners(session)
        for _ in range(20):
            session.run(batch)
    for thread in threads:
        thread.join(PATIENCE_S)
    assert threading.active_count() <= before


def test_capacities_may_be_computed():
    queue = tf.RandomShuffleQueue(0.4 * 11, 2.5, tf.int32, [[]])
    batches = [
        tf.train.batch([1], 2, capacity=10.5),
        tf.train.shuffle_batch([1], 2, capacity=0.5 + 8, min_after_dequeue=1.0),
        tf.train.range_input_producer(1, capacity=2.9).dequeue(),
    ]
    assert (queue.queue_ref.op.attr("capacity"), queue.queue_ref.op.attr("min_after_dequeue")) == (4, 2)
    assert [batch.shape.as_list() for batch in batches] == [[2], [2], []]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"capacity must be a number of at least 1, got 0\.5"):
        tf.train.batch([1], 2, capacity=0.5)


# -- records without end -------------------------------------------------------------------------------


def record_files(folder, files, records, compression=0):
    options = tf.io.TFRecordOptions(compression)
    for i in range(files):
        with tf.io.TFRecordWriter(f"{folder}/part.{i}", options) as writer:
            for j in range(records):
                writer.write(b"%04d" % (i * records + j))
    return f"{folder}/part.*"


@pytest.mark.parametrize("compression", [None, "GZIP", tf.io.TFRecordCompressionType.ZLIB])
def test_records_of_compressed_files(tmp_path, compression):
    written = compression if isinstance(compression, int) else 2 if compression else 0
    pattern = record_files(tmp_path, 1, 1, written)
    records = tf.contrib.framework.RecordInput(pattern, compression_type=compression).get_yield_op()
    with tf.Session() as session:
        assert [session.run(records).tolist() for _ in range(2)] == [[b"0000"]] * 2


def test_each_record_comes_once_in_an_epoch(tmp_path):
    pattern = record_files(tmp_path, 5, 8)
    lists = tf.contrib.framework.RecordInput(pattern, 2, 100, 3, seed=1, name="records", batches=2).get_yield_op()
    assert [len(each) for each in lists] == [2, 2] and lists[0][0].name.startswith("records/")
    epochs = []
    with tf.Session() as session:
        for _ in range(3):
            epochs.append([record for _ in range(10) for each in session.run(lists) for record in each])
    for epoch in epochs:
        assert sorted(epoch) == [b"%04d" % i for i in range(40)]
    assert epochs[0] != epochs[1] != sorted(epochs[1])


def test_records_that_cannot_be_read():
    records = tf.contrib.framework.RecordInput("/nothing/here.*").get_yield_op()
    with tf.Session() as session, pytest.raises(tf.errors.NotFoundError):
        session.run(records)
    with pytest.raises(tf.errors.InvalidArgumentError, match="positive"):
        tf.contrib.framework.RecordInput("x", 0)


def test_queues_of_input_tell_how_full_they_are():
    strings = tf.train.string_input_producer(["a"]).dequeue()
    tf.train.input_producer([1, 2])  # names no summary
    tf.train.batch([strings, tf.train.range_input_producer(3).dequeue()], 2)
    tf.train.shuffle_batch([tf.constant(1)], 2, capacity=20, min_after_dequeue=8)
    tf.train.batch_join([[tf.constant(1)]], 2, name="joined")
    names = [each.op.name for each in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    assert names == [  # as in TensorFlow 2.21
        "input_producer/fraction_of_32_full",
        "input_producer_2/fraction_of_32_full",
        "batch/fraction_of_32_full",
        "shuffle_batch/fraction_over_8_of_12_full",
        "joined/fraction_of_32_full",
    ]
    runners = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
    assert [runner.name for runner in runners][3:] == [
        "batch/fifo_queue",
        "shuffle_batch/random_shuffle_queue",
        "joined/fifo_queue",
    ]


@pytest.mark.parametrize(("count", "fraction"), [(8, 0.0), (14, 0.5), (20, 1.0)])
def test_how_full_a_shuffling_queue_is(count, fraction):
    tf.train.shuffle_batch([tf.range(count)], 1, capacity=20, min_after_dequeue=8, enqueue_many=True)
    (runner,) = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
    with tf.Session() as session:
        session.run(runner.enqueue_ops[0])
        summary = tf.Summary.FromString(session.run(tf.summary.merge_all()))
    assert summary.value[0].simple_value == fraction


@pytest.mark.parametrize("shuffle", [tf.train.shuffle_batch, tf.train.shuffle_batch_join])
def test_a_queue_has_room_for_more_than_stays_in_it(shuffle):
    with pytest.raises(ValueError, match="capacity 3 must be bigger than min_after_dequeue 5"):
        shuffle([[tf.ones([2])]], 2, capacity=3, min_after_dequeue=5)
