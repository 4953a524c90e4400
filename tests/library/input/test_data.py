"""`tf.data`: datasets and iterators."""

from __future__ import annotations

import gc
import gzip
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfray as tf
from tests.support.processes import PATIENCE_S, wait_for

Dataset = tf.data.Dataset


def values(dataset):
    """The elements of a dataset of one component, as plain Python values."""
    return [value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value for value in dataset]


# -- sources -------------------------------------------------------------------------------------------


def test_reading_in_python_leaves_the_defaults_alone():
    first, second = iter(tf.data.Dataset.range(3)), iter(tf.data.Dataset.range(10, 13))
    graph = tf.get_default_graph()
    assert [next(first), next(second), next(first)] == [0, 10, 1]
    assert tf.get_default_session() is None
    assert tf.get_default_graph() is graph
    first.close()
    assert list(second) == [11, 12]


def test_slices_of_a_structure():
    features = {"x": np.arange(6.0).reshape(3, 2), "name": ["a", "b", "c"]}
    dataset = Dataset.from_tensor_slices((features, np.array([5, 6, 7])))
    assert dataset.output_types == ({"x": tf.float64, "name": tf.string}, tf.int64)
    assert dataset.output_shapes == ({"x": [2], "name": []}, [])
    elements = list(dataset)
    assert [label for _, label in elements] == [5, 6, 7]
    assert [element["name"] for element, _ in elements] == [b"a", b"b", b"c"]
    assert np.array_equal([element["x"] for element, _ in elements], features["x"])


def test_functions_of_the_former_kind_compute_the_same():
    dataset = tf.data.Dataset.range(6).map_with_legacy_function(lambda i: i * i, num_parallel_calls=2)
    assert values(dataset.filter_with_legacy_function(lambda i: i % 2 > 0)) == [1, 9, 25]


def test_slices_of_different_lengths_are_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="as many"):
        list(Dataset.from_tensor_slices((tf.placeholder_with_default([1], [None]), [1, 2])))
    with pytest.raises(ValueError, match="scalar"):
        Dataset.from_tensor_slices(3)


def test_one_element():
    assert values(Dataset.from_tensors([1, 2])) == [[1, 2]]


@pytest.mark.parametrize("arguments", [(5,), (2, 5), (1, 10, 3), (5, 0, -2), (0,)])
def test_ranges(arguments):
    assert values(Dataset.range(*arguments)) == list(range(*arguments))


def test_generators():
    def count(limit):
        return ((i, [0.5] * i) for i in range(limit))

    dataset = Dataset.from_generator(count, (tf.int32, tf.float32), ([], [None]), args=(3,))
    elements = list(dataset)
    assert [number for number, _ in elements] == [0, 1, 2]
    assert [row.shape for _, row in elements] == [(0,), (1,), (2,)]
    assert elements[0][1].dtype == np.float32


def test_a_generator_that_breaks_its_word_is_refused():
    wrong_shape = Dataset.from_generator(lambda: [[1, 2]], tf.int32, [3])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape \(2,\) where an element of shape \(3,\)"):
        list(wrong_shape)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"expected structure was \(tf.int32, tf.int32\)"):
        list(Dataset.from_generator(lambda: [1], (tf.int32, tf.int32)))


def test_text_files(tmp_path):
    plain, packed = tmp_path / "plain.txt", tmp_path / "packed.gz"
    plain.write_bytes(b"one\r\ntwo\n\nlast")
    packed.write_bytes(gzip.compress(b"three\n"))
    assert values(tf.data.TextLineDataset(str(plain))) == [b"one", b"two", b"", b"last"]
    assert values(tf.data.TextLineDataset([str(packed)], compression_type="GZIP")) == [b"three"]
    with pytest.raises(tf.errors.DataLossError, match="GZIP"):
        list(tf.data.TextLineDataset(str(plain), "GZIP"))
    with pytest.raises(tf.errors.NotFoundError):
        list(tf.data.TextLineDataset(str(tmp_path / "absent")))
    files = Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False)
    assert values(tf.data.TextLineDataset(files))[0] == b"one"
    with pytest.raises(tf.errors.InvalidArgumentError, match="No files matched pattern"):
        list(Dataset.list_files(str(tmp_path / "*.csv")))


def test_record_files(tmp_path):
    paths = [str(tmp_path / f"{part}.tfrecord") for part in range(2)]
    for part, path in enumerate(paths):
        with tf.python_io.TFRecordWriter(path) as writer:
            for record in range(3):
                writer.write(f"{part}.{record}".encode())
    assert values(tf.data.TFRecordDataset(paths)) == [b"0.0", b"0.1", b"0.2", b"1.0", b"1.1", b"1.2"]
    assert values(tf.data.TFRecordDataset(paths, num_parallel_reads=2))[:3] == [b"0.0", b"1.0", b"0.1"]


def test_records_of_fixed_length(tmp_path):
    path = tmp_path / "records"
    path.write_bytes(b"HEaabbccF")
    dataset = tf.data.FixedLengthRecordDataset(str(path), 2, header_bytes=2, footer_bytes=1)
    assert values(dataset) == [b"aa", b"bb", b"cc"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="multiple"):
        list(tf.data.FixedLengthRecordDataset(str(path), 4))


@pytest.mark.parametrize("kind", ["parquet", "ipc"])
def test_arrow_files(tmp_path, kind):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.feather
    import pyarrow.parquet

    pixels = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6, dtype=np.float32)), 2)
    table = pa.table({"label": [1, 2, 3], "pixels": pixels, "name": ["a", "b", "c"]})
    path = str(tmp_path / "file")
    if kind == "parquet":
        pyarrow.parquet.write_table(table, path)
        dataset = tf.data.ParquetDataset(path, columns=["label", "pixels"])
    else:
        pyarrow.feather.write_feather(table, path, compression="uncompressed")
        dataset = tf.data.ArrowDataset(path, columns=["label", "pixels"])
    assert dataset.output_types == {"label": tf.int64, "pixels": tf.float32}
    elements = list(dataset)
    assert [element["label"] for element in elements] == [1, 2, 3]
    assert [element["pixels"].tolist() for element in elements] == [[0, 1], [2, 3], [4, 5]]
    opened = tf.data.ParquetDataset if kind == "parquet" else tf.data.ArrowDataset
    assert [element["name"] for element in opened(path)] == [b"a", b"b", b"c"]


def test_arrow_files_with_missing_values_are_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table({"x": [1, None]}), tmp_path / "file")
    with pytest.raises(tf.errors.InvalidArgumentError, match="'x' has 1 missing"):
        list(tf.data.ParquetDataset(tmp_path / "file"))


# -- element by element --------------------------------------------------------------------------------


def test_functions_are_graphs():
    offset = tf.get_variable("offset", initializer=np.int64(10))
    dataset = Dataset.range(4).map(lambda x: (x, x * x + offset))
    element = dataset.make_initializable_iterator()
    following = element.get_next()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(element.initializer)
        assert [session.run(following) for _ in range(4)] == [(0, 10), (1, 11), (2, 14), (3, 19)]


def test_parallel_calls_keep_the_order():
    plain = Dataset.range(50).map(lambda x: x * 3)
    parallel = Dataset.range(50).map(lambda x: x * 3, num_parallel_calls=4)
    assert values(parallel) == values(plain) == list(range(0, 150, 3))


def test_an_error_in_a_function_names_the_operation():
    dataset = Dataset.range(3).map(
        lambda x: tf.check_numerics(1 / tf.cast(x - 1, tf.float32), "no number", name="probe")
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="no number") as caught:
        list(dataset.prefetch(1))
    assert "probe" in caught.value.op_name


def test_filters():
    assert values(Dataset.range(10).filter(lambda x: tf.equal(x % 3, 0))) == [0, 3, 6, 9]
    with pytest.raises(ValueError, match="bool"):
        Dataset.range(3).filter(lambda x: x)


def test_flat_map_and_interleave():
    assert values(Dataset.range(4).flat_map(Dataset.range)) == [0, 0, 1, 0, 1, 2]

    def repeated(x):
        return Dataset.from_tensors(x).repeat(6)

    found = values(Dataset.range(1, 6).interleave(repeated, cycle_length=2, block_length=4))
    # The example of TensorFlow's documentation.
    expected = [1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5]
    assert found == expected


def test_zip_and_concatenate():
    a, b = Dataset.range(1, 4), Dataset.range(4, 9)
    assert list(Dataset.zip((a, {"b": b}))) == [(1, {"b": 4}), (2, {"b": 5}), (3, {"b": 6})]
    assert values(a.concatenate(b)) == [*range(1, 4), *range(4, 9)]
    with pytest.raises(TypeError, match="concatenate"):
        a.concatenate(Dataset.from_tensors("text"))


@given(length=st.integers(0, 20), first=st.integers(-1, 25), second=st.integers(-1, 25), shards=st.integers(1, 4))
@settings(deadline=None, max_examples=25)
def test_take_skip_and_shard_as_slices(length, first, second, shards):
    expected = list(range(length))
    expected = expected[:first] if first >= 0 else expected
    expected = expected[second:] if second >= 0 else []
    with tf.Graph().as_default():
        dataset = Dataset.range(length).take(first).skip(second)
        assert values(dataset) == expected
        parts = [values(dataset.shard(shards, index)) for index in range(shards)]
    assert parts == [expected[index::shards] for index in range(shards)]


def test_repeat():
    assert values(Dataset.range(2).repeat(3)) == [0, 1] * 3
    assert values(Dataset.range(2).repeat().take(5)) == [0, 1, 0, 1, 0]
    assert values(Dataset.range(0).repeat()) == []


def test_shuffle():
    tf.set_random_seed(3)
    dataset = Dataset.range(100).shuffle(100, seed=1)
    first = values(dataset)
    assert sorted(first) == list(range(100)) and first != list(range(100))
    assert values(dataset) == first  # the same seeds, a new iterator
    passes = np.reshape(values(dataset.repeat(2)), (2, 100))
    assert not np.array_equal(*passes)
    fixed = Dataset.range(100).shuffle(100, seed=1, reshuffle_each_iteration=False).repeat(2)
    assert np.array_equal(*np.reshape(values(fixed), (2, 100)))
    window = values(Dataset.range(1000).shuffle(10, seed=2))
    assert all(value <= position + 9 for position, value in enumerate(window))


def test_cache_runs_what_is_before_it_once():
    calls = []

    def counted():
        calls.append(1)
        return range(3)

    assert values(Dataset.from_generator(counted, tf.int64, []).cache().repeat(3)) == [0, 1, 2] * 3
    assert len(calls) == 1


def test_enumerate_and_reduce():
    assert list(Dataset.from_tensor_slices(["a", "b"]).enumerate(5)) == [(5, b"a"), (6, b"b")]
    total, count = Dataset.range(5).reduce((np.int64(0), 0), lambda state, x: (state[0] + x, state[1] + 1))
    with tf.Session() as session:
        assert session.run([total, count]) == [10, 5]


def test_choosing_among_datasets():
    from tfray.library.input.data_experimental import choose_from_datasets, sample_from_datasets

    datasets = [Dataset.from_tensors(name).repeat() for name in "abc"]
    choices = Dataset.from_tensor_slices(np.array([2, 0, 1, 1]))
    assert values(choose_from_datasets(datasets, choices)) == [b"c", b"a", b"b", b"b"]
    sampled = values(sample_from_datasets(datasets, [0.5, 0.5, 0.0], seed=1).take(200))
    assert 60 < sampled.count(b"a") < 140 and b"c" not in sampled


# -- batches -------------------------------------------------------------------------------------------


@given(length=st.integers(0, 30), size=st.integers(1, 8), drop=st.booleans(), in_memory=st.booleans())
@settings(deadline=None, max_examples=25)
def test_batches(length, size, drop, in_memory):
    rows = np.arange(2 * length).reshape(length, 2)
    with tf.Graph().as_default():
        dataset = Dataset.from_tensor_slices((rows, list(map(str, range(length))) or np.zeros(0, object)))
        if not in_memory:
            dataset = dataset.map(lambda row, name: (row, name))
        batches = list(dataset.batch(size, drop_remainder=drop))
        assert dataset.batch(size, drop).output_shapes[0].as_list() == [size if drop else None, 2]
    kept = length - length % size if drop else length
    assert [len(row) for row, _ in batches] == [len(rows[i : min(i + size, kept)]) for i in range(0, kept, size)]
    assert np.array_equal(np.concatenate([row for row, _ in batches] or [rows[:0]]), rows[:kept])
    assert [name for _, names in batches for name in names] == [str(i).encode() for i in range(kept)]


def test_rows_of_different_lengths_need_padding():
    dataset = Dataset.range(1, 4).map(lambda n: tf.fill([n], n))
    with pytest.raises(tf.errors.InvalidArgumentError, match="padded_batch"):
        list(dataset.batch(2))
    first, second = dataset.padded_batch(2, [None])
    assert first.tolist() == [[1, 0], [2, 2]] and second.tolist() == [[3, 3, 3]]
    first, second = dataset.padded_batch(2, [4], np.int64(-1))
    assert first.tolist() == [[1, -1, -1, -1], [2, 2, -1, -1]]
    with pytest.raises(tf.errors.DataLossError, match="padded size is 2"):
        list(dataset.padded_batch(3, [2]))


def test_padding_of_a_structure():
    names = Dataset.from_tensor_slices(["a b", "c"]).map(lambda text: {"text": text, "n": tf.strings.length(text)})
    (batch,) = names.padded_batch(2)
    assert batch["text"].tolist() == [b"a b", b"c"] and batch["n"].tolist() == [3, 1]


def test_unbatch_and_windows():
    with pytest.raises(ValueError, match="scalar"):
        Dataset.range(3).unbatch()
    assert values(Dataset.from_tensor_slices([[1, 2], [3, 4]]).unbatch()) == [1, 2, 3, 4]
    windows = Dataset.range(7).window(3, shift=2, stride=2)
    assert values(windows.flat_map(lambda w: w.batch(3))) == [[0, 2, 4], [2, 4, 6], [4, 6], [6]]
    full = Dataset.range(7).window(3, drop_remainder=True)
    assert values(full.flat_map(lambda w: w.batch(3))) == [[0, 1, 2], [3, 4, 5]]


def test_groups_of_elements_with_one_key():
    lengths = Dataset.from_tensor_slices((["a", "bb", "c", "dd", "e", "ff"], np.arange(6)))

    def batch(key, group):
        return group.batch(4).map(lambda text, number: {"key": key, "text": text, "number": number})

    group = tf.contrib.data.group_by_window(
        lambda text, number: tf.cast(tf.strings.length(text), tf.int64), batch, window_size_func=lambda key: key + 1
    )
    found = [(each["key"], each["text"].tolist(), each["number"].tolist()) for each in lengths.apply(group)]
    assert found == [(1, [b"a", b"c"], [0, 2]), (2, [b"bb", b"dd", b"ff"], [1, 3, 5]), (1, [b"e"], [4])]
    with pytest.raises(ValueError, match="window_size"):
        tf.contrib.data.group_by_window(lambda x: x, batch)
    with pytest.raises(tf.errors.InvalidArgumentError, match="greater than zero, but got 0"):
        list(Dataset.range(2).apply(tf.contrib.data.group_by_window(lambda x: x, lambda key, group: group, 0)))


def test_scans_and_beginnings():
    scanned = Dataset.range(5).apply(tf.contrib.data.scan(np.int64(1), lambda state, x: (state * 2, (x, state))))
    assert list(scanned) == [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16)]
    assert values(Dataset.range(9).apply(tf.data.experimental.take_while(lambda x: x % 4 < 3))) == [0, 1, 2]
    with pytest.raises(TypeError, match="pair"):
        Dataset.range(5).apply(tf.contrib.data.scan(np.int64(1), lambda state, x: x))
    with pytest.raises(TypeError, match="state"):
        Dataset.range(5).apply(tf.contrib.data.scan(1.0, lambda state, x: (x, x)))


# -- prefetching ---------------------------------------------------------------------------------------


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "tfray-prefetch"]


def test_prefetching_works_ahead_and_ends_with_its_session():
    made = []
    third = threading.Event()

    def numbers():
        for i in range(1000):
            made.append(i)
            if i == 2:
                third.set()
            yield i

    before = len(threads())
    element = Dataset.from_generator(numbers, tf.int64, []).prefetch(2).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(element) == 0
        assert third.wait(PATIENCE_S)  # made before anybody asked for it
        assert len(threads()) == before + 1
        assert len(made) < 10
    del session
    gc.collect()
    wait_for(lambda: len(threads()) == before)


def test_errors_reach_the_reader_through_the_thread():
    def failing():
        yield 1
        raise OSError("the disk is gone")

    element = Dataset.from_generator(failing, tf.int64, []).prefetch(1).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(element) == 1
        with pytest.raises(tf.errors.OpError, match="the disk is gone"):
            session.run(element)
        with pytest.raises(tf.errors.OutOfRangeError):  # a generator that has raised is over
            session.run(element)


def read_until(session, element, is_enough):
    """The elements that are read before `is_enough`, of which there are as many as it takes."""
    found, end = [], time.monotonic() + PATIENCE_S
    while not is_enough():
        assert time.monotonic() < end
        found.append(session.run(element))
    return found


def mapped(numbers, function, kind):
    threads = 2 if kind == "parallel" else None
    results = numbers.map(lambda i: tf.py_func(function, [i], tf.int64), num_parallel_calls=threads)
    return results if kind == "parallel" else results.prefetch(2)


BY_THREADS = pytest.mark.parametrize("kind", ["prefetch", "parallel"])


@BY_THREADS
def test_a_reader_that_is_never_away_makes_elements_itself_and_they_keep_their_order(kind):
    makers = set()

    def number(i):
        makers.add(threading.get_ident())
        return i + 0 * sum(range(3000))  # slower than its reader

    element = mapped(Dataset.range(2**40), number, kind).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        found = read_until(session, element, lambda: len(makers) > 1 and threading.get_ident() in makers)
        found += [session.run(element) for _ in range(2000)]  # through several changes from one to the other
    assert found == list(range(len(found)))


@BY_THREADS
def test_errors_and_the_end_are_in_their_places_whoever_makes_the_elements(kind):
    def number(i):
        if i % 100 == 99:
            raise ValueError("every hundredth")
        return i

    element = mapped(Dataset.range(3000), number, kind).make_one_shot_iterator().get_next()
    found = []
    with tf.Session() as session:
        for i in range(3000):
            if i % 100 == 99:
                with pytest.raises(tf.errors.InvalidArgumentError, match="every hundredth"):
                    session.run(element)
            else:
                found.append(session.run(element))
        for _ in range(3):
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(element)
    assert found == [i for i in range(3000) if i % 100 != 99]


def test_several_fast_readers_share_the_elements():
    element = Dataset.range(6000).prefetch(2).make_one_shot_iterator().get_next()
    found = [[], []]
    with tf.Session() as session:

        def read(into):
            with pytest.raises(tf.errors.OutOfRangeError):
                while True:
                    into.append(session.run(element))

        readers = [threading.Thread(target=read, args=(into,), daemon=True) for into in found]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(PATIENCE_S)
    assert sorted(found[0] + found[1]) == list(range(6000))
    assert all(into == sorted(into) for into in found)


@BY_THREADS
def test_a_step_that_is_out_of_time_leaves_the_element_to_the_next_step(kind):
    makers, gate = set(), threading.Event()
    waits = []

    def number(i):
        makers.add(threading.get_ident())
        if waits:
            gate.wait(PATIENCE_S)
        return i + 0 * sum(range(3000))

    element = mapped(Dataset.range(2**40), number, kind).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        found = read_until(session, element, lambda: threading.get_ident() in makers)
        waits.append(True)
        with pytest.raises(tf.errors.DeadlineExceededError):
            for _ in range(20):  # a few may be there
                found.append(session.run(element, options=tf.RunOptions(timeout_in_ms=200)))
        gate.set()
        found += [session.run(element) for _ in range(5)]
    assert found == list(range(len(found)))


# -- iterators -----------------------------------------------------------------------------------------


def test_the_end_of_a_dataset():
    element = Dataset.range(2).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert [session.run(element) for _ in range(2)] == [0, 1]
        for _ in range(2):
            with pytest.raises(tf.errors.OutOfRangeError, match="end of sequence"):
                session.run(element)


def test_uses_of_one_element_share_it():
    element = Dataset.range(4).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run([element, element * 10]) == [0, 0]
        assert session.run([element, element * 10]) == [1, 10]


def test_initializable_iterators_take_what_is_fed():
    limit = tf.placeholder(tf.int64, [])
    iterator = Dataset.range(limit).make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="has not been initialized"):
            session.run(element)
        for length in (2, 3):
            session.run(iterator.initializer, {limit: length})
            assert [session.run(element) for _ in range(length)] == list(range(length))
    with pytest.raises(tf.errors.InvalidArgumentError, match="placeholder"):
        Dataset.range(limit).make_one_shot_iterator()


def test_reinitializable_iterators_change_datasets():
    train, test = Dataset.range(3), Dataset.range(10, 12)
    iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
    element = iterator.get_next()
    with tf.Session() as session:
        for dataset, expected in ((train, [0, 1, 2]), (test, [10, 11]), (train, [0, 1, 2])):
            session.run(iterator.make_initializer(dataset))
            assert [session.run(element) for _ in expected] == expected
    with pytest.raises(TypeError, match="Expected output types"):
        iterator.make_initializer(Dataset.from_tensors("text"))


def test_feedable_iterators_are_chosen_by_name():
    handle = tf.placeholder(tf.string, [])
    element = tf.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
    first = Dataset.range(3).make_one_shot_iterator()
    second = Dataset.range(10, 13).make_initializable_iterator()
    with tf.Session() as session:
        names = session.run([first.string_handle(), second.string_handle()])
        session.run(second.initializer)
        session.run(first.get_next())  # begins
        assert session.run(element, {handle: names[0]}) == 1
        assert session.run(element, {handle: names[1]}) == 10
        assert session.run(element, {handle: names[0]}) == 2
        with pytest.raises(tf.errors.NotFoundError, match="nobody"):
            session.run(element, {handle: "nobody"})


def test_a_model_trains_on_a_dataset():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(256, 3)).astype(np.float32)
    y = x @ np.array([[1.0], [-2.0], [0.5]], np.float32)
    dataset = Dataset.from_tensor_slices((x, y)).shuffle(256, seed=0).repeat().batch(32).prefetch(1)
    features, labels = dataset.make_one_shot_iterator().get_next()
    weights = tf.get_variable("weights", [3, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(features, weights) - labels))
    train_op = tf.train.GradientDescentOptimizer(0.3).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(60):
            session.run(train_op)
        np.testing.assert_allclose(session.run(weights), [[1.0], [-2.0], [0.5]], atol=1e-3)


def test_a_graph_with_a_dataset_survives_as_plain_data():
    element = Dataset.range(3).map(lambda x: x * 2, num_parallel_calls=2).batch(2).make_one_shot_iterator().get_next()
    definition = tf.GraphDef.FromString(tf.get_default_graph().as_graph_def().SerializeToString())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(definition, name="")
        with tf.Session() as session:
            assert session.run(graph.get_tensor_by_name(element.name)).tolist() == [0, 2]


@pytest.mark.ray
def test_replicas_read_their_shards(ray_local):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(240, 2)).astype(np.float32)
    y = x @ np.array([[2.0], [-1.0]], np.float32)

    def model(features, labels):
        weights = tf.get_variable("weights", [2, 1], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(features, weights) - labels))
        return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(0.3).minimize(loss))

    def read(context):
        examples = tf.data.Dataset.from_tensor_slices((x, y)).shard(context.replicas, context.index)
        return examples.repeat().batch(20)

    result = tf.train.Trainer(
        model,
        read,
        scaling=tf.train.ScalingConfig(workers=2, parameter_servers=1, cpus_per_worker=0.1),
        run=tf.train.RunConfig(steps=40),
    ).fit()
    np.testing.assert_allclose(result.variables["weights"], [[2.0], [-1.0]], atol=1e-2)


@pytest.mark.ray
def test_rows_of_a_ray_dataset(ray_local):
    ray_data = pytest.importorskip("ray.data")
    rows = [{"x": np.full(2, i, np.float32), "label": i, "name": f"row {i}"} for i in range(6)]
    dataset = Dataset.from_ray_dataset(ray_data.from_items(rows), columns=["x", "label", "name"], batch_size=4)
    assert dataset.output_types == {"x": tf.float32, "label": tf.int64, "name": tf.string}
    elements = sorted(dataset, key=lambda element: element["label"])
    assert [element["label"] for element in elements] == list(range(6))
    assert [element["name"] for element in elements] == [f"row {i}".encode() for i in range(6)]
    assert np.array_equal([element["x"] for element in elements], [row["x"] for row in rows])


# -- sparse tensors ------------------------------------------------------------------------------------


def example_of(numbers):
    value = tf.train.Feature(int64_list=tf.train.Int64List(value=numbers))
    return tf.train.Example(features=tf.train.Features(feature={"a": value})).SerializeToString()


def test_sparse_tensors_in_elements():
    rows = [[7], [], [1, 2, 3]]
    parsed = Dataset.from_tensor_slices([example_of(row) for row in rows]).map(
        lambda text: tf.parse_single_example(text, {"a": tf.VarLenFeature(tf.int64)})
    )
    assert parsed.output_types == {"a": tf.int64} and parsed.output_classes == {"a": tf.SparseTensor}
    assert [element["a"].values.tolist() for element in parsed] == rows
    dense = parsed.batch(2).map(lambda element: tf.sparse_tensor_to_dense(element["a"], -1))
    assert values(dense) == [[[7], [-1]], [[1, 2, 3]]]
    twice = parsed.repeat(2).batch(3).batch(2).map(lambda element: tf.sparse_tensor_to_dense(element["a"]))
    assert values(twice) == [[[[7, 0, 0], [0, 0, 0], [1, 2, 3]]] * 2]
    assert [element["a"].values.tolist() for element in parsed.batch(3).unbatch()] == rows
    with pytest.raises(TypeError, match="sparse_tensor_to_dense"):
        parsed.padded_batch(2)


def test_slices_of_a_sparse_tensor():
    sparse = tf.SparseTensor([[0, 1], [2, 0]], [5.0, 6.0], [3, 2])
    dataset = Dataset.from_tensor_slices((sparse, [1, 2, 3]))
    assert dataset.output_shapes == ([2], [])
    elements = list(dataset)
    assert [(element.values.tolist(), count) for element, count in elements] == [([5.0], 1), ([], 2), ([6.0], 3)]
    iterator = tf.data.Iterator.from_structure(
        dataset.output_types, dataset.output_shapes, output_classes=dataset.output_classes
    )
    begin, (following, _) = iterator.make_initializer(dataset), iterator.get_next()
    with tf.Session() as session:
        session.run(begin)
        assert session.run(tf.sparse_tensor_to_dense(following)).tolist() == [0.0, 5.0]
