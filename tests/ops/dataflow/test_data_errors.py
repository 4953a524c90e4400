"""Elements that cannot be made: what every transformation gives before and after an error.

The expected sequences are those of TensorFlow 2.21 (`compat.v1`), observed with the same pipelines, one `Session.run`
for each entry. Where tfray differs on purpose, the table below the first one says so.
"""

from __future__ import annotations

import logging

import numpy as np
import pytest

import tfray as tf

Dataset = tf.data.Dataset
experimental = tf.data.experimental
ERROR, END = "error", "end"


def sound(x, bad=3):
    """`x` as float64, or an error where it is `bad`."""
    return tf.check_numerics(tf.cast(x, tf.float64) / tf.cast(tf.not_equal(x, bad), tf.float64), "the bad one")


def source(bad=3, count=6):
    """1.0, 2.0, ..., with an error in place of `bad`."""
    return Dataset.range(1, count + 1).map(lambda x: sound(x, bad))


def plain(bad=3, count=6):
    """The same, by a filter behind the map: TensorFlow fuses a map and a batch, which drops the rest of a batch."""
    return source(bad, count).filter(lambda x: x > 0)


def twice(x):
    return Dataset.from_tensors(tf.cast(x, tf.float64)).repeat(2)


def twice_but_the_first_three(x):
    def element(i, y):
        is_bad = tf.logical_and(tf.equal(i, 0), tf.equal(y, 3.0))
        return tf.cond(is_bad, lambda: tf.check_numerics(y / 0.0, "the bad one"), lambda: y)

    return twice(x).enumerate().map(element)


class Numbers:
    """An iterator that goes on after its error, as no generator does."""

    def __init__(self):
        self.last = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.last += 1
        if self.last == 3:
            raise ValueError("the bad one")
        if self.last > 6:
            raise StopIteration
        return float(self.last)


def numbers():
    for i in range(1, 7):
        if i == 3:
            raise ValueError("the bad one")
        yield float(i)


def rows():
    return ([float(i)] * (2 if i == 3 else 1) for i in range(1, 7))


def vectors(long=2):
    return Dataset.range(1, 7).map(lambda x: tf.fill([tf.where(tf.equal(x, 3), long, 1)], tf.cast(x, tf.float64)))


def flat(windows):
    return windows.flat_map(lambda window: window.batch(3))


def generated(function, shape=()):
    return Dataset.from_generator(function, tf.float64, shape)


def applied(dataset, transformation):
    return dataset.apply(transformation)


def running_sum(state, x):
    return state + x, state + x


ONE_TO_SIX = [1, 2, ERROR, 4, 5, 6]

PIPELINES = {
    "map": (source, ONE_TO_SIX),
    "map, parallel": (lambda: Dataset.range(1, 7).map(sound, num_parallel_calls=2), ONE_TO_SIX),
    "map after": (lambda: source().map(lambda x: x * 10), [10, 20, ERROR, 40, 50, 60]),
    "map after, parallel": (lambda: source().map(lambda x: x * 10, 2), [10, 20, ERROR, 40, 50, 60]),
    "filter": (lambda: Dataset.range(1, 7).filter(lambda x: sound(x) > 0), ONE_TO_SIX),
    "filter after": (lambda: source().filter(lambda x: x > 1.5), [2, ERROR, 4, 5, 6]),
    "take_while": (
        lambda: applied(Dataset.range(1, 7), experimental.take_while(lambda x: sound(x) < 5)),
        [1, 2, ERROR, 4],
    ),
    "take_while after": (lambda: applied(source(), experimental.take_while(lambda x: x < 5)), [1, 2, ERROR, 4]),
    "scan": (
        lambda: applied(Dataset.range(1, 7), experimental.scan(np.float64(0), lambda s, x: running_sum(s, sound(x)))),
        [1, 3, ERROR, 7, 12, 18],
    ),
    "scan after": (
        lambda: applied(source(), experimental.scan(np.float64(0), running_sum)),
        [1, 3, ERROR, 7, 12, 18],
    ),
    "flat_map, element": (
        lambda: Dataset.range(1, 5).flat_map(twice_but_the_first_three),
        [1, 1, 2, 2, ERROR, 3, 4, 4],
    ),
    "flat_map, function": (
        lambda: Dataset.range(1, 7).flat_map(lambda x: Dataset.from_tensors(sound(x))),
        ONE_TO_SIX,
    ),
    "flat_map after": (lambda: source().flat_map(twice), [1, 1, 2, 2, ERROR, 4, 4, 5, 5, 6, 6]),
    "flat_map twice": (lambda: Dataset.range(2).flat_map(lambda _: source()), ONE_TO_SIX * 2),
    "interleave, element": (
        lambda: Dataset.range(1, 7).interleave(twice_but_the_first_three, 2),
        [1, 2, 1, 2, ERROR, 3, 4, 4, 5, 5, 6, 6],
    ),
    "interleave, element, blocks": (
        lambda: Dataset.range(1, 7).interleave(twice_but_the_first_three, 2, 2),
        [1, 1, 2, 2, ERROR, 3, 4, 4, 5, 5, 6, 6],
    ),
    "interleave, function": (
        lambda: Dataset.range(1, 7).interleave(lambda x: twice(sound(x)), 2),
        [1, 2, 1, 2, ERROR, 4, 5, 4, 5, 6, 6],
    ),
    "interleave after": (lambda: source().interleave(twice, 2), [1, 2, 1, 2, ERROR, 4, 5, 4, 5, 6, 6]),
    "interleave after, cycle of 3": (
        lambda: source().interleave(twice, 3, 2),
        [1, 1, 2, 2, ERROR, 4, 4, 5, 5, 6, 6],
    ),
    "batch": (lambda: plain().batch(2), [[1, 2], ERROR, [4, 5], [6]]),
    "batch of 3": (lambda: plain().batch(3), [ERROR, [4, 5, 6]]),
    "batch, remainder dropped": (lambda: plain(4).batch(2, drop_remainder=True), [[1, 2], ERROR, [5, 6]]),
    "batch of a generator": (lambda: generated(Numbers).batch(2), [[1, 2], ERROR, [4, 5], [6]]),
    "batch of other shapes": (lambda: vectors().batch(2), [[[1], [2]], ERROR, [[5], [6]]]),
    "map_and_batch": (
        lambda: applied(Dataset.range(1, 7), experimental.map_and_batch(sound, 2)),
        [[1, 2], ERROR, [5, 6]],
    ),
    "map_and_batch, in threads": (
        lambda: applied(Dataset.range(1, 8), experimental.map_and_batch(sound, 2, num_parallel_calls=2)),
        [[1, 2], ERROR, [5, 6], [7]],
    ),
    "map_and_batch, errors below": (
        lambda: applied(plain(), experimental.map_and_batch(lambda x: x, 4)),
        [ERROR, [5, 6]],
    ),
    "map_and_batch, error at the end": (
        lambda: applied(Dataset.range(1, 4), experimental.map_and_batch(sound, 2)),
        [[1, 2], ERROR],
    ),
    "padded_batch": (
        lambda: plain().map(lambda x: tf.fill([1], x)).padded_batch(2, [None]),
        [[[1], [2]], ERROR, [[4], [5]], [[6]]],
    ),
    "padded_batch, too long": (
        lambda: vectors(3).padded_batch(2, [2]),
        [[[1, 0], [2, 0]], ERROR, [[5, 0], [6, 0]]],
    ),
    "prefetch": (lambda: source().prefetch(1), ONE_TO_SIX),
    "prefetch all": (lambda: source().prefetch(10), ONE_TO_SIX),
    "prefetch of batches": (lambda: plain().batch(2).prefetch(2), [[1, 2], ERROR, [4, 5], [6]]),
    "shuffle": (lambda: source().shuffle(1), ONE_TO_SIX),
    "shuffle_and_repeat": (lambda: applied(source(), experimental.shuffle_and_repeat(1, 2)), ONE_TO_SIX * 2),
    "repeat": (lambda: source().repeat(2), ONE_TO_SIX * 2),
    "repeat for ever": (lambda: source().repeat().take(8), [1, 2, ERROR, 4, 5, 6, 1, 2, ERROR, 4]),
    "repeat an error at the beginning": (lambda: source(1, 2).repeat(2), [ERROR, 2, ERROR, 2]),
    "repeat nothing but an error": (lambda: source(1, 1).repeat(), [ERROR]),
    "take before": (lambda: source().take(2), [1, 2]),
    "take to the error": (lambda: source().take(3), [1, 2, ERROR, 4]),
    "take beyond": (lambda: source().take(4), [1, 2, ERROR, 4, 5]),
    "skip before": (lambda: source().skip(2), [ERROR, 4, 5, 6]),
    "skip the error": (lambda: source(count=12).skip(3), [ERROR, 7, 8, 9, 10, 11, 12]),
    "skip beyond": (lambda: source(count=12).skip(4), [ERROR, 8, 9, 10, 11, 12]),
    "shard 0": (lambda: source().shard(2, 0), [1, ERROR, 4, 6]),
    "shard 1": (lambda: source().shard(2, 1), [2, ERROR, 5]),
    "zip, first": (lambda: Dataset.zip((source(count=4), Dataset.range(9))), [[1, 0], [2, 1], ERROR, [4, 3]]),
    "zip, second": (lambda: Dataset.zip((Dataset.range(9), source(count=4))), [[0, 1], [1, 2], ERROR, [3, 4]]),
    "zip, both": (
        lambda: Dataset.zip((source(), source(4))),
        [[1, 1], [2, 2], ERROR, ERROR, [5, 5], [6, 6]],
    ),
    "zip, error and end": (lambda: Dataset.zip((source(count=3), Dataset.range(2))), [[1, 0], [2, 1], ERROR]),
    "zip, end and error": (lambda: Dataset.zip((Dataset.range(2), source(count=3))), [[0, 1], [1, 2]]),
    "enumerate": (lambda: source().enumerate(), [[0, 1], [1, 2], ERROR, [3, 4], [4, 5], [5, 6]]),
    "concatenate": (lambda: source().concatenate(source(9, 2)), [*ONE_TO_SIX, 1, 2]),
    "concatenate, second": (lambda: source(9, 2).concatenate(source()), [1, 2, *ONE_TO_SIX]),
    "cache": (lambda: source().cache(), ONE_TO_SIX),
    "cache keeps no errors": (lambda: source().cache().repeat(2), [*ONE_TO_SIX, 1, 2, 4, 5, 6]),
    "cache that is left early": (lambda: source().cache().take(2).repeat(2), [1, 2, 1, 2]),
    "generator": (lambda: generated(numbers), [1, 2, ERROR]),
    "generator, prefetched": (lambda: generated(numbers).prefetch(2), [1, 2, ERROR]),
    "generator, repeated": (lambda: generated(numbers).repeat(2), [1, 2, ERROR, 1, 2, ERROR]),
    "generator that goes on": (lambda: generated(Numbers), ONE_TO_SIX),
    "generator that goes on, in flat_map": (
        lambda: Dataset.range(2).flat_map(lambda _: generated(Numbers)),
        ONE_TO_SIX * 2,
    ),
    "generator of other shapes": (lambda: generated(rows, [1]), [[1], [2], ERROR, [4], [5], [6]]),
    "window": (lambda: flat(source().window(2)), [[1, 2], ERROR, [5, 6]]),
    "window, shift 1": (lambda: flat(source().window(3, 1)), [ERROR, ERROR, ERROR, [4, 5, 6], [5, 6], [6]]),
    "window, shift 1, full": (
        lambda: flat(source().window(3, 1, drop_remainder=True)),
        [ERROR, ERROR, ERROR, [4, 5, 6]],
    ),
    "window, error between two": (lambda: flat(source().window(2, 3)), [[1, 2], [4, 5]]),
    "window, error in the first": (lambda: flat(source(2).window(2, 3)), [ERROR, [4, 5]]),
    "window, stride": (
        lambda: flat(source(4, 9).window(2, 1, 2)),
        [[1, 3], ERROR, [3, 5], ERROR, [5, 7], [6, 8], [7, 9], [8], [9]],
    ),
    "unbatch": (
        lambda: source().map(lambda x: tf.stack([x, x])).unbatch(),
        [1, 1, 2, 2, ERROR, 4, 4, 5, 5, 6, 6],
    ),
    "unbatch, other lengths": (
        lambda: (
            Dataset.range(1, 4).map(lambda x: (tf.fill([2], x), tf.fill([tf.where(tf.equal(x, 2), 3, 2)], x))).unbatch()
        ),
        [[1, 1], [1, 1], ERROR, [3, 3], [3, 3]],
    ),
    "choose, element": (
        lambda: experimental.choose_from_datasets([source(), source(9)], Dataset.range(12).map(lambda i: i % 2)),
        [1, 1, 2, 2, ERROR, 3, 4, 4, 5, 5, 6, 6],
    ),
    "choose, choice": (
        lambda: experimental.choose_from_datasets(
            [source(9), source(9)], source().map(lambda i: tf.cast(i, tf.int64) % 2)
        ),
        [1, 1, ERROR, 2, 2, 3],
    ),
    "choose, no such dataset": (
        lambda: experimental.choose_from_datasets(
            [source(9), source(9)], Dataset.from_tensor_slices(np.array([0, 1, 2, 0, 1]))
        ),
        [1, 1, ERROR, 2, 2],
    ),
    "choose, one ends": (
        lambda: experimental.choose_from_datasets(
            [source(9, 1), source(9, 4)], Dataset.from_tensor_slices(np.array([0, 0, 1, 0, 1]))
        ),
        [1, 1, 2],
    ),
    "sample": (lambda: experimental.sample_from_datasets([source()], seed=1), ONE_TO_SIX),
    "sample, never chosen": (
        lambda: experimental.sample_from_datasets([source(9, 2), source(9, 2)], [1.0, 0.0], seed=1),
        [1, 2],
    ),
    "group_by_window after": (
        lambda: applied(
            source(),
            experimental.group_by_window(lambda x: tf.cast(x, tf.int64) % 2, lambda key, group: group.batch(2), 2),
        ),
        [ERROR, [2, 4], [1, 5], [6]],
    ),
    "group_by_window, key": (
        lambda: applied(
            Dataset.range(1, 7),
            experimental.group_by_window(
                lambda x: tf.cast(sound(x), tf.int64) % 2, lambda key, group: group.batch(2), 2
            ),
        ),
        [ERROR, [2, 4], [1, 5], [6]],
    ),
    "group_by_window, group": (
        lambda: applied(
            Dataset.range(1, 7),
            experimental.group_by_window(
                lambda x: x % 2, lambda key, group: group.map(sound).filter(lambda x: x > 0).batch(2), 2
            ),
        ),
        [ERROR, [2, 4], [6], [5]],
    ),
    "reduce": (
        lambda: Dataset.from_tensors(0).map(lambda _: source().reduce(np.float64(0), lambda s, x: s + x)),
        [ERROR],
    ),
    "ignore_errors": (lambda: applied(source(), experimental.ignore_errors()), [1, 2, 4, 5, 6]),
    "ignore_errors of contrib": (lambda: applied(source(), tf.contrib.data.ignore_errors()), [1, 2, 4, 5, 6]),
    "ignore_errors of a generator": (lambda: applied(generated(numbers), experimental.ignore_errors()), [1, 2]),
    "ignore_errors, prefetched": (
        lambda: applied(source().prefetch(2), experimental.ignore_errors()).batch(2),
        [[1, 2], [4, 5], [6]],
    ),
    "ignore_errors, repeated": (
        lambda: applied(source(), experimental.ignore_errors()).cache().repeat(2),
        [1, 2, 4, 5, 6] * 2,
    ),
}

DIFFERENT = {
    # TensorFlow calls the function again at every element, and so gives the error for ever.
    "generator that cannot be called": (lambda: generated(lambda: 1 / 0), [ERROR]),
    "generator that is none, ignored": (lambda: applied(generated(lambda: 5), experimental.ignore_errors()), []),
    # TensorFlow fills other places first after an error when there are threads; here the order is always the same.
    "interleave, parallel": (
        lambda: source().interleave(twice, 2, num_parallel_calls=2),
        [1, 2, 1, 2, ERROR, 4, 5, 4, 5, 6, 6],
    ),
    "parallel_interleave": (
        lambda: applied(source(), experimental.parallel_interleave(twice, 2)),
        [1, 2, 1, 2, ERROR, 4, 5, 4, 5, 6, 6],
    ),
}


def as_list(value):
    if isinstance(value, tuple):
        return [as_list(component) for component in value]
    if isinstance(value, bytes):
        return value.decode()
    return value.tolist()


def outcomes(dataset, limit=40):
    """What one step after the other gives, up to the end, which must stay."""
    iterator = dataset.make_initializable_iterator()
    following = iterator.get_next()
    found = []
    with tf.Session() as session:
        session.run(iterator.initializer)
        while END not in found:
            try:
                found.append(as_list(session.run(following)))
            except tf.errors.OutOfRangeError:
                found.append(END)
            except tf.errors.OpError:
                found.append(ERROR)
            assert len(found) < limit, found
        for _ in range(2):
            with pytest.raises(tf.errors.OutOfRangeError, match="end of sequence"):
                session.run(following)
    return found[:-1]


@pytest.mark.fault(
    "Input",
    "An element of a `tf.data` pipeline cannot be made.",
    happens="An error in the place of that element.",
    promise="The elements after it come, and no other is lost.",
)
@pytest.mark.parametrize("name", [*PIPELINES, *DIFFERENT])
def test_an_error_stands_for_one_element(name):
    make, expected = {**PIPELINES, **DIFFERENT}[name]
    assert outcomes(make()) == expected


@pytest.mark.fault(
    "Input",
    "An element of a `tf.data` pipeline cannot be made.",
    happens="An error in the place of that element.",
    promise="The elements after it come, and no other is lost.",
)
@pytest.mark.parametrize("size", [2, 10])
def test_a_shuffle_loses_nothing_around_an_error(size):
    found = outcomes(source().shuffle(size, seed=1))
    assert found.index(ERROR) <= 1
    assert sorted(found, key=str) == sorted(ONE_TO_SIX, key=str)


@pytest.fixture
def files(tmp_path):
    """Files 1, 2 and 4 of each kind, and damaged ones."""
    for i in (1, 2, 4):
        (tmp_path / f"{i}.txt").write_text(f"{i}a\n{i}b\n")
        (tmp_path / f"{i}.fixed").write_text(f"{i}a{i}b")
        with tf.python_io.TFRecordWriter(str(tmp_path / f"{i}.records")) as writer:
            writer.write(f"{i}a".encode())
            writer.write(f"{i}b".encode())
    good = (tmp_path / "2.records").read_bytes()
    damaged = bytearray(good)
    damaged[-6] ^= 1
    (tmp_path / "second.records").write_bytes(damaged)
    damaged = bytearray(good)
    damaged[12] ^= 1
    (tmp_path / "first.records").write_bytes(damaged)
    (tmp_path / "cut.records").write_bytes(good[:-5])
    (tmp_path / "junk.records").write_bytes(b"junk" * 10)
    (tmp_path / "odd.fixed").write_bytes(b"abc")
    return tmp_path


def text(paths):
    return tf.data.TextLineDataset(paths)


def records(paths):
    return tf.data.TFRecordDataset(paths)


def fixed(paths):
    return tf.data.FixedLengthRecordDataset(paths, 2)


READERS = {
    "records, second damaged": (records, "1.records second.records 4.records", ["1a", "1b", "2a", ERROR, "4a", "4b"]),
    "records, first damaged": (records, "1.records first.records 4.records", ["1a", "1b", ERROR, "4a", "4b"]),
    "records, cut": (records, "1.records cut.records 4.records", ["1a", "1b", "2a", ERROR, "4a", "4b"]),
    "records, junk": (records, "1.records junk.records 4.records", ["1a", "1b", ERROR, "4a", "4b"]),
    "records, two files at once": (
        lambda paths: tf.data.TFRecordDataset(paths, num_parallel_reads=2),
        "1.records second.records 4.records",
        ["1a", "2a", "1b", ERROR, "4a", "4b"],
    ),
    "records, ignored": (
        lambda paths: applied(records(paths), experimental.ignore_errors()),
        "1.records second.records 4.records",
        ["1a", "1b", "2a", "4a", "4b"],
    ),
    # In TensorFlow the errors of these are for ever, and `ignore_errors` never ends.
    "records, missing": (records, "1.records 3.records 4.records", ["1a", "1b", ERROR, "4a", "4b"]),
    "text, missing": (text, "1.txt 3.txt 4.txt", ["1a", "1b", ERROR, "4a", "4b"]),
    "text, missing, flat_map": (
        lambda paths: Dataset.from_tensor_slices(paths).flat_map(text),
        "1.txt 3.txt 4.txt",
        ["1a", "1b", ERROR, "4a", "4b"],
    ),
    "text, not compressed": (
        lambda paths: tf.data.TextLineDataset(paths, "GZIP"),
        "1.txt 2.txt",
        [ERROR, ERROR],
    ),
    "fixed, missing": (fixed, "1.fixed 3.fixed 4.fixed", ["1a", "1b", ERROR, "4a", "4b"]),
    "fixed, odd": (fixed, "1.fixed odd.fixed 4.fixed", ["1a", "1b", ERROR, "4a", "4b"]),
    "missing, ignored": (
        lambda paths: applied(text(paths), experimental.ignore_errors()),
        "1.txt 3.txt 4.txt",
        ["1a", "1b", "4a", "4b"],
    ),
}


@pytest.mark.fault(
    "Input",
    "One of many input files is missing or damaged.",
    happens="An error in its place, and then the next file.",
    promise="`ignore_errors` leaves out what is bad, and nothing else.",
)
@pytest.mark.parametrize("name", READERS)
def test_readers_go_on_with_the_next_file(files, name):
    make, names, expected = READERS[name]
    assert outcomes(make([str(files / each) for each in names.split()])) == expected


def test_ignored_errors_may_be_logged(caplog):
    with caplog.at_level(logging.WARNING, "tfray"):
        assert outcomes(applied(source(), experimental.ignore_errors(log_warning=True))) == [1, 2, 4, 5, 6]
    (message,) = caplog.messages
    assert "ignore_errors" in message and "the bad one" in message
