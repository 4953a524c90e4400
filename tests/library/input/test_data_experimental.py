"""`tf.data.experimental`. Expected elements are those of TensorFlow 2.21 for the same programs."""

from __future__ import annotations

import gzip
import sqlite3
import zlib

import numpy as np
import pytest

import tfray as tf
from tests.support.dataset_elements import elements
from tests.support.sessions import run

Dataset, experimental = tf.data.Dataset, tf.data.experimental
LENGTHS = (1, 5, 2, 7, 3, 6, 1, 2, 9)


def sequences():
    return Dataset.from_generator(lambda: iter([[1] * n for n in LENGTHS]), tf.int32, [None])


def lengths(batches):
    """How many elements and steps each batch has."""
    return [np.shape(batch) if not isinstance(batch, str) else batch for batch in elements(batches)]


def by_length(bounds, sizes, **arguments):
    return sequences().apply(experimental.bucket_by_sequence_length(tf.size, bounds, sizes, **arguments))


def test_buckets_by_length():
    assert lengths(by_length([3, 6], [2, 2, 2])) == [(2, 2), (2, 5), (2, 7), (2, 2), (1, 9)]
    assert lengths(by_length([3, 6], [2, 2, 2], drop_remainder=True)) == [(2, 2), (2, 5), (2, 7), (2, 2)]
    to_bounds = by_length([3, 10], [2, 2, 2], pad_to_bucket_boundary=True)
    assert lengths(to_bounds) == [(2, 2), (2, 9), (2, 9), (2, 2), (1, 9)]
    assert elements(by_length([4], [3, 3], padding_values=-1))[0] == [[1, -1, -1], [1, 1, -1], [1, 1, 1]]
    too_long = lengths(by_length([3, 6], [2, 2, 2], pad_to_bucket_boundary=True))
    assert too_long == [(2, 2), (2, 5), "InvalidArgumentError", (2, 2), "InvalidArgumentError"]
    with pytest.raises(ValueError, match=r"len\(bucket_batch_sizes\) must equal len\(bucket_boundaries\) \+ 1"):
        by_length([3], [1])


def test_reduced_groups_come_in_the_order_of_keys():
    reducer = experimental.Reducer(lambda key: (np.int64(0), key), lambda s, x: (s[0] + x, s[1]), lambda a, b: (b, a))
    grouped = Dataset.range(10).apply(experimental.group_by_reducer(lambda x: (9 - x) % 3, reducer))
    assert elements(grouped) == [(0, 18), (1, 15), (2, 12)]


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda d: d, 5),
        (lambda d: d.repeat(), -1),
        (lambda d: d.repeat(2), 10),
        (lambda d: d.repeat().take(7), 7),
        (lambda d: d.skip(2), 3),
        (lambda d: d.batch(2), 3),
        (lambda d: d.batch(2, True), 2),
        (lambda d: d.shard(2, 0), 3),
        (lambda d: Dataset.zip((d, Dataset.range(3).repeat())), 5),
        (lambda d: d.concatenate(Dataset.range(2)), 7),
        (lambda d: d.map(lambda x: x).prefetch(2).shuffle(3), 5),
        (lambda d: d.filter(lambda x: x > 1), -2),
        (lambda d: d.flat_map(lambda x: d), -2),
        (lambda d: Dataset.range(0).repeat(), 0),
    ],
)
def test_cardinality(build, expected):
    assert run(experimental.cardinality(build(Dataset.range(5)))) == expected


def test_single_elements():
    assert run(experimental.get_single_element(Dataset.range(5).skip(4))) == 4
    for dataset, words in [(Dataset.range(0), "empty"), (Dataset.range(2), "more than one")]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            run(experimental.get_single_element(dataset))
    with pytest.raises(TypeError, match="takes a dataset"):
        experimental.get_single_element(3)


def test_optionals():
    iterator = Dataset.from_tensor_slices({"a": [1, 2]}).make_initializable_iterator()
    element = experimental.get_next_as_optional(iterator)
    assert element.value_structure == {"a": experimental.TensorStructure(tf.int32, [])}
    has_value, value = element.has_value(), element.get_value()
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert [session.run([has_value, value]) for _ in range(2)] == [[True, {"a": 1}], [True, {"a": 2}]]
        assert not session.run(has_value)
        with pytest.raises(tf.errors.InvalidArgumentError, match="no value"):
            session.run(value)
    none = experimental.Optional.none_from_structure(experimental.TensorStructure(tf.int32, []))
    some = experimental.Optional.from_value((3, tf.SparseTensor([[0]], [1], [2])))
    assert run([none.has_value(), some.has_value(), some.get_value()[0]]) == [False, True, 3]


def test_numbers_without_end():
    assert elements(experimental.Counter(3, -2, tf.int32), 3) == [3, 1, -1]
    draws = elements(experimental.RandomDataset(3), 5)
    assert elements(experimental.RandomDataset(3), 5) != [0] * 5
    assert len(set(draws)) == 5
    assert all(0 <= draw < 2**32 for draw in draws)
    twice = elements(experimental.RandomDataset(3).take(2).repeat(2), 4)
    assert twice == draws[:2] * 2


def test_distinct_elements():
    assert elements(Dataset.from_tensor_slices([1, 2, 1, 3, 2]).apply(experimental.unique())) == [1, 2, 3]
    with pytest.raises(TypeError, match="unique takes"):
        Dataset.from_tensors(1.0).apply(experimental.unique())


def test_sparse_batches():
    batches = sequences().take(3).apply(experimental.dense_to_sparse_batch(2, [6]))
    element = batches.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        first, second = session.run(element), session.run(element)
    assert first.dense_shape.tolist() == [2, 6]
    assert first.indices.tolist() == [[0, 0], [1, 0], [1, 1], [1, 2], [1, 3], [1, 4]]
    assert second.dense_shape.tolist() == [1, 6]
    assert elements(sequences().apply(experimental.dense_to_sparse_batch(4, [6])), 1) == ["DataLossError"]


@pytest.mark.parametrize("initial", [None, [0.9, 0.1]])
def test_resampled_classes_come_as_often_as_wished(initial):
    labels = Dataset.range(4000).map(lambda x: tf.cast(tf.equal(x % 10, 0), tf.int32))
    resample = experimental.rejection_resample(lambda label: label, [0.5, 0.5], initial, seed=3)
    pairs = elements(labels.apply(resample), 500)
    assert all(label == element for label, element in pairs)
    assert abs(np.mean([label for label, _ in pairs]) - 0.5) < 0.1


# -- files -------------------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y,z\n1,2.5,a\n2,,b\n3,4.5,\n")
    return str(path)


def test_rows_of_comma_separated_values(table):
    rows = experimental.CsvDataset(table, [tf.int32, [0.0], [""]], header=True)
    assert elements(rows) == [(1, 2.5, b"a"), (2, 0.0, b"b"), (3, 4.5, b"")]
    chosen = experimental.CsvDataset([table], [tf.int32, tf.float32], header=True, select_cols=[0, 1])
    assert elements(chosen) == [(1, 2.5), "InvalidArgumentError", (3, 4.5)]


def test_batches_of_comma_separated_values(table):
    batches = experimental.make_csv_dataset(table, 2, num_epochs=1, shuffle=False)
    assert batches.output_types == {"x": tf.int32, "y": tf.float32, "z": tf.string}
    first, second = elements(batches)
    assert first == {"x": [1, 2], "y": [2.5, 0.0], "z": [b"a", b"b"]}
    assert second == {"x": [3], "y": [4.5], "z": [b""]}
    labelled = experimental.make_csv_dataset(table, 3, label_name="z", select_columns=["x", 2], shuffle=False)
    assert elements(labelled, 1) == [({"x": [1, 2, 3]}, [b"a", b"b", b""])]
    for arguments, words in [
        ({"label_name": "q"}, "must be one of the columns"),
        ({"select_columns": ["q"]}, "not a valid column"),
        ({"select_columns": [9]}, "out of valid range"),
        ({"column_names": ["a", "a", "b"]}, "duplicate column names"),
        ({"header": False}, "without a header"),
    ]:
        with pytest.raises(ValueError, match=words):
            experimental.make_csv_dataset(table, 2, **arguments)
    with pytest.raises(ValueError, match="No files match"):
        experimental.make_csv_dataset(table + ".none", 2)


def test_rows_of_a_query(tmp_path):
    path = str(tmp_path / "base")
    connection = sqlite3.connect(path)
    connection.execute("create table t(a integer, b text, c real)")
    connection.executemany("insert into t values(?, ?, ?)", [(1, "x", 1.5), (None, None, None)])
    connection.commit()
    connection.close()
    rows = experimental.SqlDataset("sqlite", path, "select a, b, c from t", (tf.int32, tf.string, tf.float64))
    assert elements(rows) == [(1, b"x", 1.5), (0, b"", 0.0)]
    broken = experimental.SqlDataset("sqlite", path, "select a from none", (tf.int32,))
    assert elements(broken) == ["UnknownError"]
    with pytest.raises(ValueError, match="sqlite"):
        experimental.SqlDataset("mysql", path, "select a from t", (tf.int32,))


@pytest.mark.parametrize(
    ("column", "dtype", "expected"),
    [
        ("a", tf.string, [b"x\0y", b"12ab"]),
        ("a", tf.int32, [0, 12]),
        ("a", tf.float64, [0.0, 12.0]),
        ("a", tf.bool, [False, True]),
        ("i", tf.int8, [44, -5]),
        ("i", tf.uint8, [44, 251]),
        ("i", tf.string, [b"300", b"-5"]),
        ("i", tf.bool, [True, True]),
        ("f", tf.int32, [2, 0]),
        ("f", tf.string, [b"2.7", b""]),
        ("none", tf.string, ["UnknownError"]),
        ("a, i", tf.string, ["InvalidArgumentError"]),
    ],
)
def test_columns_of_a_query_become_what_is_asked_for(tmp_path, column, dtype, expected):
    """The values are those that TensorFlow 1.15 gave; a driver may be a tensor."""
    path = str(tmp_path / "base")
    connection = sqlite3.connect(path)
    connection.execute("create table t(a varchar, i integer, f float)")
    connection.executemany("insert into t values(?, ?, ?)", [("x\0y", 300, 2.7), ("12ab", -5, None)])
    connection.commit()
    connection.close()
    rows = experimental.SqlDataset(tf.constant("sqlite"), path, f"select {column} from t", (dtype,))
    assert [row[0] if isinstance(row, tuple) else row for row in elements(rows)] == expected


@pytest.mark.parametrize(
    ("driver", "file", "query", "words"),
    [
        ("mysql", "base", "select 1", "The database type, mysql, is not supported by SqlDataset"),
        ("sqlite", "none/base", "select 1", "failed: unable to open database file"),
        ("sqlite", "base", "create table t(a integer)", r"The number of columns in query \(0\) must match"),
    ],
)
def test_queries_that_are_refused_while_running(tmp_path, driver, file, query, words):
    rows = experimental.SqlDataset(tf.constant(driver), str(tmp_path / file), query, (tf.int32,))
    element = tf.data.make_one_shot_iterator(rows).get_next()
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=words):
        session.run(element)


def test_examples_of_files(tmp_path):
    path = str(tmp_path / "examples")
    with tf.python_io.TFRecordWriter(path) as writer:
        for number in range(5):
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))
            writer.write(tf.train.Example(features=tf.train.Features(feature={"a": feature})).SerializeToString())
    features = {"a": tf.FixedLenFeature([], tf.int64)}
    batches = experimental.make_batched_features_dataset(path, 2, features, num_epochs=1, shuffle=False)
    assert elements(batches) == [{"a": [0, 1]}, {"a": [2, 3]}, {"a": [4]}]
    labelled = experimental.make_batched_features_dataset(path, 5, features, label_key="a", shuffle=False)
    assert elements(labelled, 1) == [({}, [0, 1, 2, 3, 4])]
    parsed = tf.data.TFRecordDataset(path).batch(3).apply(experimental.parse_example_dataset(features))
    assert elements(parsed) == [{"a": [0, 1, 2]}, {"a": [3, 4]}]


def test_a_dataset_is_written_as_records(tmp_path):
    path = str(tmp_path / "records")
    run(experimental.TFRecordWriter(path, "GZIP").write(Dataset.from_tensor_slices(["a", "b"])))
    assert elements(tf.data.TFRecordDataset(path, "GZIP")) == [b"a", b"b"]
    with pytest.raises(TypeError, match="string scalars"):
        experimental.TFRecordWriter(path).write(Dataset.range(2))


@pytest.mark.parametrize(("kind", "compress"), [("GZIP", gzip.compress), ("ZLIB", zlib.compress)])
def test_compressed_records_of_fixed_length(tmp_path, kind, compress):
    path = tmp_path / "records"
    path.write_bytes(compress(b"HHHABCDEFGHIJFF"))
    records = tf.data.FixedLengthRecordDataset(str(path), 5, 3, 2, compression_type=kind)
    assert elements(records) == [b"ABCDE", b"FGHIJ"]


def test_files_are_read_in_turn(tmp_path):
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        path.write_text(f"{path.name}1\n{path.name}2\n")
    names = [str(path) for path in paths]
    assert elements(tf.data.TextLineDataset(names, num_parallel_reads=2)) == [b"a1", b"b1", b"a2", b"b2"]
    records = tf.data.FixedLengthRecordDataset(names, 3, num_parallel_reads=2)
    assert elements(records) == [b"a1\n", b"b1\n", b"a2\n", b"b2\n"]


# -- statistics --------------------------------------------------------------------------------------------


def told(make, prefix="", count=4):
    """The histograms that a dataset tells while `count` elements are taken, by name."""
    aggregator, options = experimental.StatsAggregator(), tf.data.Options()
    options.experimental_stats.aggregator = aggregator
    options.experimental_stats.prefix = prefix
    iterator = make(options).make_initializable_iterator()
    element, summary = iterator.get_next(), aggregator.get_summary()
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert session.run(summary) == b""
        for _ in range(count):
            session.run(element)
        return {value.tag: value.histo for value in tf.Summary.FromString(session.run(summary)).value}


def test_bytes_of_elements():
    """Numbers are those of TensorFlow 1.15; a string there has 8 bytes beside its contents."""

    def make(options):
        texts = Dataset.from_tensor_slices([["a", "bcd"], ["", ""]]).map(lambda text: (text, tf.constant([1, 2, 3])))
        inner = texts.apply(experimental.bytes_produced_stats("bytes")).with_options(options)
        return inner.repeat().apply(experimental.bytes_produced_stats("after"))

    found = told(make, "p")
    assert found.keys() == {"p::bytes", "p::after"}
    for histogram in found.values():
        assert (histogram.min, histogram.max, histogram.num, histogram.sum, histogram.sum_squares) == (
            28, 32, 4, 120, 3616
        )  # fmt: skip
        assert list(histogram.bucket) == [0, 2, 0, 2, 0]
        np.testing.assert_allclose(histogram.bucket_limit[:4], [25.776859, 28.354545, 31.189999, 34.308999], 1e-6)


def test_times_of_elements():
    """An error is an element here, too; what comes before `latency_stats` is counted, and what comes after is not."""

    def make(options):
        numbers = Dataset.range(9).map(lambda x: 6 // (x - 1)).prefetch(2)
        timed = numbers.apply(experimental.latency_stats("time")).apply(experimental.ignore_errors())
        return timed.skip(1).take(3).with_options(options)

    found = told(make, count=3)
    assert found.keys() == {"time"} and found["time"].num == 5
    assert 0 <= found["time"].min <= found["time"].max < 60e6


def test_statistics_that_nobody_asked_for():
    numbers = Dataset.range(3).apply(experimental.latency_stats("a")).apply(experimental.bytes_produced_stats("b"))
    assert elements(numbers) == [0, 1, 2]
    assert run(experimental.cardinality(numbers)) == 3


def test_options_of_statistics():
    options = tf.data.Options()
    assert options.experimental_stats == experimental.StatsOptions()
    assert (options.experimental_stats.aggregator, options.experimental_stats.prefix) == (None, "")
    for name, value in [("aggregator", 3), ("prefix", 3), ("latency_all_edges", 3)]:
        with pytest.raises(TypeError, match=f'Property "{name}" must be of type'):
            setattr(options.experimental_stats, name, value)
    options.experimental_stats.aggregator = experimental.StatsAggregator()
    other = tf.data.Options()
    other.experimental_stats.aggregator = experimental.StatsAggregator()
    dataset = Dataset.range(3).with_options(options)
    with pytest.raises(ValueError, match="of option: aggregator"):
        dataset.with_options(other)
    with pytest.raises(ValueError, match="rank 0"):
        dataset.apply(experimental.latency_stats(["a"]))
    with pytest.raises(TypeError, match="string"):
        dataset.apply(experimental.latency_stats(3))


def test_random_numbers_are_a_dataset_with_options():
    assert isinstance(experimental.RandomDataset(1), Dataset)
    assert experimental.RandomDataset(1).options() == tf.data.Options()


# -- descriptions ----------------------------------------------------------------------------------------


def test_elements_are_described():
    sparse = tf.SparseTensor([[0, 0]], [1.0], [2, 2])
    dataset = tf.data.Dataset.from_tensors({"a": [1, 2], "b": (sparse, b"text")})
    described = {
        "a": tf.TensorSpec([2], tf.int32),
        "b": (tf.SparseTensorSpec([2, 2], tf.float32), tf.TensorSpec([], tf.string)),
    }
    assert experimental.get_structure(dataset) == described
    windows = tf.data.Dataset.range(4).window(2)
    assert experimental.get_structure(windows) == tf.data.DatasetSpec(tf.TensorSpec([], tf.int64))
    assert all(isinstance(leaf, experimental.Structure) for leaf in tf.nest.flatten(described))


def test_descriptions_of_datasets():
    spec = tf.data.DatasetSpec({"a": tf.TensorSpec([None], tf.float32)})
    exact = tf.data.DatasetSpec({"a": tf.TensorSpec([3], tf.float32)})
    assert spec.is_compatible_with(tf.data.Dataset.from_tensors({"a": [1.0, 2.0]}))
    assert not spec.is_compatible_with(tf.data.Dataset.from_tensors({"a": [1, 2]}))
    assert not spec.is_compatible_with(tf.data.Dataset.from_tensors(([1.0, 2.0],)))
    assert not spec.is_compatible_with(tf.constant(1.0))
    assert exact.is_compatible_with(spec) and exact.most_specific_compatible_type(spec) == spec
    assert len({exact, tf.data.DatasetSpec({"a": tf.TensorSpec([3], tf.float32)}), spec}) == 2
    with pytest.raises(ValueError, match="element_spec differs"):
        spec.most_specific_compatible_type(tf.data.DatasetSpec(tf.TensorSpec([3], tf.float32)))
    assert spec.value_type is tf.data.Dataset and spec.dataset_shape == tf.TensorShape([])
    assert experimental.DatasetStructure is tf.data.DatasetSpec


def test_descriptions_of_optionals():
    value = experimental.Optional.from_value((1.0, [2, 3]))
    spec = tf.OptionalSpec((tf.TensorSpec([], tf.float32), tf.TensorSpec([2], tf.int32)))
    assert tf.OptionalSpec.from_value(value) == spec and spec.is_compatible_with(value)
    assert not tf.OptionalSpec(tf.TensorSpec([], tf.float32)).is_compatible_with(value)
    assert spec.value_type is experimental.Optional and hash(spec) == hash(tf.OptionalSpec.from_value(value))
    with pytest.raises(TypeError, match="Optional"):
        tf.OptionalSpec.from_value(tf.constant(1.0))


def test_older_forms_of_descriptions():
    assert experimental.TensorStructure(tf.int32, [2]) == tf.TensorSpec([2], tf.int32)
    assert experimental.SparseTensorStructure(tf.int32, [2]) == tf.SparseTensorSpec([2], tf.int32)
    array = experimental.TensorArrayStructure(tf.int32, [2], True, False)
    assert array == tf.TensorArraySpec([2], tf.int32, True, False)
    assert experimental.OptionalStructure is tf.OptionalSpec


def test_nested_datasets_pass_as_variants():
    windows = tf.data.Dataset.range(4).window(2)
    again = experimental.from_variant(experimental.to_variant(windows), experimental.get_structure(windows))
    assert elements(again.flat_map(lambda window: window.batch(2))) == [[0, 1], [2, 3]]


# -- comma-separated values ------------------------------------------------------------------------------


def csv_of(path, contents, columns, **options):
    path.write_bytes(contents)
    return experimental.CsvDataset(str(path), [[""]] * columns, **options)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_records_end_where_no_quoted_field_does(tmp_path, end):
    contents = end.join([b'a,"b ""c""' + end + b'd"', b'"e",f', b'"g,h",'])
    expected = [(b"a", b'b "c"' + end + b"d"), (b"e", b"f"), (b"g,h", b"")]
    assert elements(csv_of(tmp_path / "a", contents, 2)) == expected
    assert elements(csv_of(tmp_path / "a", contents + end, 2, header=True)) == expected[1:]
    plain = csv_of(tmp_path / "b", end.join([b'1,2"', b"3,4"]), 2, use_quote_delim=False)
    assert elements(plain) == [(b"1", b'2"'), (b"3", b"4")]


@pytest.mark.parametrize(
    ("contents", "options", "message"),
    [
        (b'1,2"3', {}, "Unquoted fields cannot have quotes inside"),
        (b'"1"2,3', {}, "Quote inside a string has to be escaped by another quote"),
        (b"1,2,3", {}, "Expect 2 fields but have more in record"),
        (b"1", {}, "Expect 2 fields but have 1 in record"),
        (b"\n1,2", {}, "Expect 2 fields but have 1 in record"),
        (b"1,2,3", {"select_cols": [1, 5]}, "Expect 2 fields but have 1 in record"),
        (b"", {"header": True}, "Can't read header of file"),
    ],
)
def test_records_that_are_no_rows(tmp_path, contents, options, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(csv_of(tmp_path / "a", contents, 2, **options))


def test_a_record_that_is_no_row_takes_its_line_only(tmp_path):
    rows = csv_of(tmp_path / "a", b'1,2"3\n"4"5",6\n7,8\n', 2)
    assert elements(rows) == ["InvalidArgumentError", "InvalidArgumentError", (b"7", b"8")]
    required = experimental.CsvDataset(str(tmp_path / "a"), [tf.int32, tf.int32])
    (tmp_path / "a").write_bytes(b"1,\n")
    with pytest.raises(tf.errors.InvalidArgumentError, match="Field 1 is required but missing in record!"):
        list(required)


def test_no_function_ends_batches_of_its_results():
    def up_to_two(number):
        if number > 2:
            raise StopIteration
        return number

    def called(number):
        return tf.py_func(up_to_two, [number], tf.int64)

    numbers = Dataset.range(6)
    assert elements(numbers.map(called).batch(2)) == [[0, 1], [2]]
    for calls in (None, 2):
        batches = numbers.apply(experimental.map_and_batch(called, 2, num_parallel_calls=calls))
        assert elements(batches) == [[0, 1], "InvalidArgumentError", "InvalidArgumentError"]
        assert elements(batches.apply(experimental.ignore_errors())) == [[0, 1]]
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="produced OutOfRangeError"):
        session.run(batches.skip(1).make_one_shot_iterator().get_next())


def test_mapped_batches_have_the_shapes_of_their_results():
    numbers = Dataset.range(5)
    for drop, size, expected in ((False, None, [[0, 1], [2, 3], [4]]), (True, 2, [[0, 1], [2, 3]])):
        batches = numbers.apply(experimental.map_and_batch(lambda x: (x, tf.stack([x, x])), 2, drop_remainder=drop))
        assert [shape.as_list() for shape in batches.output_shapes] == [[size], [size, 2]]
        assert [first for first, _ in elements(batches)] == expected
        assert run(experimental.cardinality(batches)) == len(expected)
    growing = numbers.apply(experimental.map_and_batch(lambda x: tf.range(x), 2))
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="number of elements does not"):
        session.run(growing.make_one_shot_iterator().get_next())
    sparse = numbers.apply(experimental.map_and_batch(lambda x: tf.SparseTensor([[0]], [x], [1]), 5))
    with tf.Session() as session:
        assert session.run(sparse.make_one_shot_iterator().get_next()).values.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="batch_size is -1"):
        numbers.apply(experimental.map_and_batch(tf.square, -1, drop_remainder=True))


# -- what is refused ---------------------------------------------------------------------------------------


def by_window(key=0, size=2):
    return Dataset.range(4).apply(experimental.group_by_window(lambda _: key, lambda _, group: group, size))


@pytest.mark.parametrize(
    ("build", "kind", "message"),
    [
        (lambda: by_window(key=[0, 0]), ValueError, "`key_func` must return a single tf.int64 tensor"),
        (lambda: by_window(key="a"), ValueError, "`key_func` must return a single tf.int64 tensor"),
        (lambda: by_window(size=[2]), ValueError, "`window_size_func` must return a single tf.int64 tensor"),
        (lambda: experimental.map_and_batch(tf.square, 2, 1, num_parallel_calls=1), ValueError, "mutually exclusive"),
        (lambda: sampled([0.5] * 3), ValueError, "vector of length"),
        (lambda: sampled(tf.constant([0.5] * 3)), ValueError, "vector of length"),
        (lambda: sampled([1, 1]), TypeError, "`tf.float32` or `tf.float64`"),
        (
            lambda: experimental.sample_from_datasets([Dataset.range(2), Dataset.from_tensors(0.5)]),
            TypeError,
            "must have the same type",
        ),
        (
            lambda: experimental.choose_from_datasets([Dataset.range(2)], Dataset.from_tensors(0)),
            TypeError,
            "scalar `tf.int64`",
        ),
        (
            lambda: experimental.make_batched_features_dataset("*", 2, {}, reader=tf.TFRecordReader),
            TypeError,
            "must return a `Dataset` object",
        ),
    ],
)
def test_arguments_that_are_refused(build, kind, message):
    with pytest.raises(kind, match=message):
        build()


@pytest.mark.parametrize(
    ("build", "kind", "message"),
    [
        (lambda: by_window(size=0), tf.errors.InvalidArgumentError, "must be greater than zero, but got 0"),
        (
            lambda: experimental.choose_from_datasets([Dataset.range(2)], Dataset.from_tensors(np.int64(1))),
            tf.errors.InvalidArgumentError,
            "out of range",
        ),
        (lambda: sparse_rows([2]), tf.errors.DataLossError, "larger than the row shape"),
        (lambda: sparse_rows([2, None]), tf.errors.InvalidArgumentError, "incompatible with the row shape"),
        (
            lambda: Dataset.from_tensors([1]).padded_batch(2, padded_shapes=tf.constant([-2], tf.int64)),
            tf.errors.InvalidArgumentError,
            "Padded shape",
        ),
    ],
)
def test_elements_that_are_refused(build, kind, message):
    with pytest.raises(kind, match=message):
        list(build())


def sparse_rows(row_shape):
    rows = Dataset.from_generator(lambda: iter([[1, 2, 3]]), tf.int32)
    return rows.apply(experimental.dense_to_sparse_batch(2, row_shape))


def sampled(weights):
    sources = [Dataset.from_tensors(number).repeat() for number in range(2)]
    return experimental.sample_from_datasets(sources, weights, seed=3)


@pytest.mark.parametrize(
    "given",
    [
        lambda weights: weights,
        lambda weights: tf.constant(weights, tf.float64),
        lambda weights: Dataset.from_tensors(weights).repeat(),
    ],
)
def test_datasets_are_sampled_by_weights_of_several_kinds(given):
    drawn = [elements(sampled(given([0.8, 0.2])), 400) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert 280 < drawn[0].count(0) < 360


def test_static_shapes_of_sparse_batches():
    assert sparse_rows([2, 5]).output_shapes.as_list() == [None, 2, 5]
