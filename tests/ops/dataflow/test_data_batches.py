"""Elements taken many at a time: the same elements, errors and order as one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfray as tf
from tests.support.op_samples import all_samples
from tfray.framework import nest
from tfray.framework.op_def import lookup
from tfray.runtime.over_batch import region_over_batch

Dataset = tf.data.Dataset


def outcomes(dataset, steps=1000):
    """What each step gives, as lists, with the texts of errors; up to the end."""
    following = dataset.make_one_shot_iterator().get_next()
    found = []
    with tf.Session() as session:
        while len(found) < steps:
            try:
                found.append(tf.contrib.framework.nest.map_structure(as_list, session.run(following)))
            except tf.errors.OutOfRangeError:
                break
            except tf.errors.InvalidArgumentError as error:
                found.append(str(error))
    return found


def as_list(value):
    array = np.asarray(value, object) if isinstance(value, bytes) else np.asarray(value)
    return [str(array.dtype), array.shape, array.tolist()]


def one_by_one(dataset):
    """The same elements, behind a transformation that gives them only one by one."""
    return dataset.filter(lambda *components: True)


def example(x, name, numbers=(1, 2)):
    """A serialised example; without the feature ``x`` when it is None."""
    features = {
        "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[name])),
        "numbers": tf.train.Feature(int64_list=tf.train.Int64List(value=numbers)),
    }
    if x is not None:
        features["x"] = tf.train.Feature(float_list=tf.train.FloatList(value=[x]))
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


FEATURES = {
    "x": tf.FixedLenFeature([], tf.float32),
    "name": tf.FixedLenFeature([], tf.string),
    "numbers": tf.FixedLenFeature([2], tf.int64),
}
EXAMPLES = [example(i / 4, b"n%d" % i, (i, -i)) for i in range(7)]
MATRICES = np.arange(42, dtype=np.float32).reshape(7, 3, 2)
NUMBERS = np.arange(7)
LINES = [b"a b c", b"", b"d", b"a  d", b"unknown words a", b"c", b"b b"]


def vocabulary():
    return tf.contrib.lookup.index_table_from_tensor(tf.constant(["a", "b", "c"]), num_oov_buckets=2)


ROWS = {
    "arithmetic of other ranks": (MATRICES, lambda x: x * 2 + x[0] - tf.constant([1.0, 2.0]), "stacked"),
    "cast, scale and one_hot": (NUMBERS, lambda i: (tf.cast(i, tf.float32) / 3, tf.one_hot(i, 4)), "stacked"),
    "reshape": (MATRICES, lambda x: tf.reshape(x, [2, -1]), "stacked"),
    "new dimensions": (MATRICES, lambda x: (x[..., None], tf.expand_dims(x, 0), tf.expand_dims(x, -2)), "stacked"),
    "squeeze": (MATRICES, lambda x: tf.squeeze(x[:, :1], [1]), "stacked"),
    "parts": (MATRICES, lambda x: (x[1], x[::2, -1], x[..., 0]), "stacked"),
    "stack": (MATRICES, lambda x: (tf.stack([x, x + 1]), tf.stack([x, x], axis=-1)), "stacked"),
    "rows of a table": (NUMBERS, lambda i: tf.gather(tf.constant([[1.5, 2], [3, 4], [5, 6]]), i % 3), "stacked"),
    "concatenation": (MATRICES, lambda x: (tf.concat([x, x + 1], 0), tf.concat([x, x], -1)), "stacked"),
    "comparisons": (NUMBERS, lambda i: (tf.logical_or(i % 2 > 0, i < 5), i // 2, tf.equal(i, 3)), "stacked"),
    "equal texts": (LINES, lambda s: (tf.equal(s, "d"), tf.not_equal(s, "")), "stacked"),
    "choice": (NUMBERS, lambda i: tf.where(i > 3, i, -i), "stacked"),
    "the same for all": (NUMBERS, lambda i: (tf.constant([1.5, 2.5]), i), None),
    "twice the same": (NUMBERS, lambda i: (i, i), "stacked"),
    "numbers from text": (np.array([b"%d" % i for i in range(7)]), tf.string_to_number, "stacked"),
    "text": (LINES, lambda s: (tf.strings.length(s), tf.strings.join([s, "!"]), tf.strings.lower(s)), "stacked"),
    "raw bytes": ([b"%03d" % i for i in range(7)], lambda s: tf.decode_raw(s, tf.uint8), "stacked"),
    "lines of values": (
        [b"%d,x%d" % (i, i) for i in range(7)],
        lambda s: tuple(tf.decode_csv(s, [[0], [""]])),
        "stacked",
    ),
    "examples": (EXAMPLES, lambda s: tf.parse_single_example(s, FEATURES), "stacked"),
}


def forms_of(dataset):
    op = dataset._variant_tensor.op
    found = region_over_batch(op.attrs["function"], op.attrs["parameters"])
    return None if found is None else found[1]


IN_EVERY_SIZE = ("arithmetic of other ranks", "text", "examples")
"""Rows that are not slow when a batch has all elements, or room for more than there are."""


@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param(name, size, marks=() if size == 3 or name in IN_EVERY_SIZE else pytest.mark.slow)
        for name in ROWS
        for size in (3, 7, 10)
    ],
)
def test_a_function_of_many_elements_gives_what_it_gives_for_each(name, size):
    source, function, form = ROWS[name]
    dataset = Dataset.from_tensor_slices(source).map(function)
    forms = forms_of(dataset)
    assert forms is not None
    assert form is None or set(forms) == {form}
    assert outcomes(dataset.batch(size)) == outcomes(one_by_one(dataset).batch(size))
    parallel = Dataset.from_tensor_slices(source).map(function, num_parallel_calls=2)
    assert outcomes(parallel.batch(size)) == outcomes(dataset.batch(size))


@pytest.mark.parametrize("size", [1, 3, 7])
@pytest.mark.parametrize("width", [None, 6])
def test_words_of_many_lines_are_looked_up_at_once(size, width):
    table = vocabulary()

    def ids(line):
        words = tf.string_split([line]).values
        return table.lookup(words), tf.size(words), tf.shape(words), words

    dataset = Dataset.from_tensor_slices(LINES).map(ids)
    assert forms_of(dataset) == ["ragged", "stacked", "stacked", "ragged"]
    shapes = ([width], [], [1], [width])

    def found(dataset):
        following = dataset.padded_batch(size, shapes, (np.int64(-7), 0, 0, "-")).make_initializable_iterator()
        element, batches = following.get_next(), []
        with tf.Session() as session:
            session.run([tf.tables_initializer(), following.initializer])
            with pytest.raises(tf.errors.OutOfRangeError):
                while True:
                    batches.append([as_list(value) for value in session.run(element)])
        return batches

    assert found(dataset) == found(one_by_one(dataset))


@settings(max_examples=30, deadline=None)
@given(
    texts=st.lists(st.sampled_from([b"1", b"2.5", b"-3", b"bad", b"nor this"]), min_size=1, max_size=12),
    size=st.integers(1, 5),
    drop=st.booleans(),
    passes=st.integers(1, 2),
)
def test_errors_have_the_same_places(texts, size, drop, passes):
    with tf.Graph().as_default():
        dataset = Dataset.from_tensor_slices(texts).map(tf.string_to_number)
        assert forms_of(dataset) == ["stacked"]
        batches = dataset.repeat(passes).batch(size, drop)
        assert outcomes(batches) == outcomes(one_by_one(dataset).repeat(passes).batch(size, drop))


@pytest.mark.parametrize(
    "bad",
    [b"no example", example(None, b"missing"), example(1.0, b"too many", (1, 2, 3))],
    ids=["text", "missing", "shape"],
)
def test_a_bad_example_is_the_error_of_its_batch(bad):
    examples = [*EXAMPLES[:4], bad, *EXAMPLES[4:]]
    dataset = Dataset.from_tensor_slices(examples).map(lambda s: tf.parse_single_example(s, FEATURES))
    found = outcomes(dataset.batch(3))
    assert found == outcomes(one_by_one(dataset).batch(3))
    assert sum(isinstance(each, str) for each in found) == 1


def test_elements_of_other_shapes_are_computed_one_by_one():
    strings = [b"ab", b"cd", b"efg", b"hij", b"k"]
    dataset = Dataset.from_tensor_slices(strings).map(lambda s: tf.decode_raw(s, tf.uint8))
    found = outcomes(dataset.padded_batch(2, [None]))
    assert found == outcomes(one_by_one(dataset).padded_batch(2, [None]))
    assert [shape for _, shape, _ in found] == [(2, 2), (2, 3), (1, 1)]


@pytest.mark.parametrize(
    "function",
    [
        lambda i: i + tf.py_func(lambda: np.int64(1), [], tf.int64),
        lambda i: tf.cond(i > 2, lambda: i, lambda: -i),
        lambda i: tf.cast(tf.random_uniform([], seed=1) * 100, tf.int64) + i,
        lambda i: tf.reduce_sum(tf.fill([i], i)),
    ],
    ids=["python", "branch", "random", "size"],
)
def test_functions_without_rules_are_computed_one_by_one(function):
    dataset = Dataset.from_tensor_slices(NUMBERS).map(function)
    assert forms_of(dataset) is None
    assert outcomes(dataset.batch(3)) == outcomes(one_by_one(dataset).batch(3))


@settings(max_examples=30, deadline=None)
@given(
    length=st.integers(1, 40),
    buffer=st.integers(1, 45),
    size=st.integers(1, 9),
    passes=st.integers(1, 3),
    reshuffle=st.booleans(),
)
def test_shuffled_rows_come_in_the_order_of_shuffled_elements(length, buffer, size, passes, reshuffle):
    with tf.Graph().as_default():
        rows = np.arange(length * 2, dtype=np.float32).reshape(length, 2)
        names = [b"row %d" % i for i in range(length)]
        source = Dataset.from_tensor_slices((rows, names))
        taken = source.shuffle(buffer, 3, reshuffle).repeat(passes).batch(size)
        plain = one_by_one(source).shuffle(buffer, 3, reshuffle).repeat(passes).batch(size)
        assert outcomes(taken) == outcomes(plain)


@pytest.mark.parametrize("lengths", [(5, 5), (5, 3), (2, 4), (1, 0)])
def test_slices_beside_one_another_are_slices_of_both(lengths):
    first, second = (Dataset.from_tensor_slices(np.arange(length)) for length in lengths)
    names = Dataset.from_tensor_slices((np.eye(5), [b"%d" % i for i in range(5)]))
    both = Dataset.zip((first, {"names": names, "second": second}))
    plain = Dataset.zip((one_by_one(first), {"names": names, "second": second}))
    assert both.output_types == plain.output_types
    for batched in (lambda d: d, lambda d: d.batch(2), lambda d: d.shuffle(3, 1).repeat(2).batch(2)):
        assert outcomes(batched(both)) == outcomes(batched(plain))


def test_a_batch_shares_memory_with_no_other():
    rows = np.arange(6.0)
    dataset = Dataset.from_tensor_slices(rows).map(lambda x: (x, x, tf.constant(1.0), tf.reshape(x, [1])))
    following = dataset.repeat().batch(3).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        first = session.run(following)
        for array in first:
            array[...] = -1
        session.run(following)
        assert [array.reshape(-1).tolist() for array in session.run(following)] == [
            [0, 1, 2],
            [0, 1, 2],
            [1, 1, 1],
            [0, 1, 2],
        ]


@settings(max_examples=30, deadline=None)
@given(
    texts=st.lists(st.sampled_from([b"1 2", b"2.5", b"3 4", b"5 b", b"7 8"]), min_size=1, max_size=12),
    buffer=st.integers(1, 15),
    count=st.integers(0, 14),
)
def test_a_shuffle_of_results_that_are_computed_at_once(texts, buffer, count):
    with tf.Graph().as_default():
        dataset = Dataset.from_tensor_slices(texts).map(lambda s: (tf.string_to_number(s), tf.stack([s, s])))
        assert forms_of(dataset) == ["stacked", "stacked"]
        plain = one_by_one(dataset)
        for shuffled in (lambda d: d.shuffle(buffer, 3), lambda d: d.take(count).shuffle(buffer, 3).repeat(2)):
            assert outcomes(shuffled(dataset)) == outcomes(shuffled(plain))
            assert outcomes(shuffled(dataset).batch(3)) == outcomes(shuffled(plain).batch(3))
        assert outcomes(dataset.take(count).batch(3)) == outcomes(plain.take(count).batch(3))


def has_rule(op):
    definition = lookup(op)
    kernel = definition.kernel_for("CPU")
    return definition.over_batch is not None or (kernel is not None and kernel.elementwise is not False)


SAMPLES = {
    op: list(samples) for op, samples in itertools.groupby(sorted(all_samples(), key=str), lambda sample: sample.op)
}
ONE_BY_ONE = {"ParseSingleExample": "the samples have sparse features"}


def elements_like(array):
    """Three elements of the shape of an array, made of its values."""
    return np.stack([array, np.roll(array, 1), array])


@pytest.mark.rows(every=3)
@pytest.mark.parametrize("op", [op for op in SAMPLES if has_rule(op)])
def test_every_operation_with_a_rule_works_on_many_elements(op):
    together = sum(map(compare, SAMPLES[op]))
    assert (together == 0) == (op in ONE_BY_ONE)


def compare(sample):
    """Compare a call for many elements with one by one: all inputs vary, or one. How many had a form for many."""
    arrays = sample.arrays(sample.swept_dtypes()[0])
    given = [index for index in range(len(arrays)) if index not in sample.sizes]
    together = 0
    for varied in [given, *([index] for index in given if len(given) > 1)] if given else []:

        def function(*components, varied=varied):
            arguments = [tf.constant(array) for array in arrays]
            for index, component in zip(varied, components, strict=True):
                arguments[index] = component
            return tf.contrib.framework.nest.flatten(sample.build(*arguments, **sample.kwargs))[0]

        with tf.Graph().as_default():
            source = Dataset.from_tensor_slices(tuple(elements_like(arrays[index]) for index in varied))
            dataset = source.map(function)
            forms = forms_of(dataset)
            if forms is not None:
                together += 1
                found, expected = (
                    (each.padded_batch if "ragged" in forms else each.batch)(3)
                    for each in (dataset, one_by_one(dataset))
                )
                assert repr(outcomes(found)) == repr(outcomes(expected)), sample  # as texts: NaN differs from itself
    return together


@pytest.mark.parametrize("then", ["batch", "drop", "padded", "prefetch", "shuffle"])
@pytest.mark.parametrize("bad", [(), (0,), (5,), (7, 8), (9, 10, 11), tuple(range(17))], ids=str)
@pytest.mark.parametrize("grows", [False, True])
def test_batches_of_parallel_calls_are_those_of_calls_one_by_one(bad, then, grows):
    """Threads copy their results into the batch: rows, errors and their places are as without threads."""

    def function(x):
        def checked(x):
            if int(x) in bad:
                raise ValueError("bad")
            side = 3 + int(x) // 6 if grows else 3
            return np.full([2, side], float(x)), x, b"%d" % x

        # What a Python function computes is not computed for many elements at once.
        matrix, number, text = tf.py_func(checked, [x], [tf.float64, tf.int64, tf.string])
        matrix.set_shape([2, None])
        number.set_shape([])
        text.set_shape([])
        return matrix, number, text

    transformations = {
        "batch": lambda data: data.batch(4),
        "drop": lambda data: data.batch(4, drop_remainder=True),
        "padded": lambda data: data.padded_batch(4, ([2, None], [], [])),
        "prefetch": lambda data: data.prefetch(2).batch(5).prefetch(1),
        "shuffle": lambda data: data.shuffle(3, seed=1).batch(5),
    }
    expected, found = (
        outcomes(transformations[then](Dataset.range(17).map(function, num_parallel_calls=calls)))
        for calls in (None, 3)
    )
    # Of errors the first line: the others name the operation, of which there are two.
    assert [*map(_first_line, found)] == [*map(_first_line, expected)]


def _first_line(outcome):
    return outcome.partition("\n")[0] if isinstance(outcome, str) else outcome


LARGE = np.random.default_rng(0).normal(size=(9, 70, 90))

RESULTS_OF_LARGE_ELEMENTS = {
    "a difference": lambda x: x - 2.0,
    "one after others": lambda x: tf.exp(x) * 3.0 - tf.reverse(x, [0]),
    "a captured matrix": lambda x: x + tf.constant(LARGE[0]),
    "what came": lambda x: x,
    "what came, and a double": lambda x: (x, x * 2.0),
    "one twice": lambda x: (lambda y: (y, y))(tf.sqrt(tf.abs(x))),
    "one, and its view": lambda x: (lambda y: (y, tf.reshape(y, [90, 70]), y[3:5]))(x / 7.0),
    "one that others read": lambda x: (lambda y: (y, y * y, tf.matmul(y, y, transpose_b=True)))(x - 1.0),
    "a product": lambda x: tf.matmul(x, x, transpose_a=True),
    "a constant": lambda x: (tf.constant(LARGE[0]), tf.reduce_sum(x)),
    "random numbers": lambda x: x + tf.random_normal([70, 90], seed=5, dtype=tf.float64),
    "a branch": lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2.0, lambda: tf.reverse(x, [1])) / 3.0,
    "a loop": lambda x: tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(y)), [0, x])[1] * 2.0,
}


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("name", RESULTS_OF_LARGE_ELEMENTS)
def test_large_results_of_parallel_calls_are_computed_in_their_batch(name, size):
    """A kernel writes them there. The batches are those of calls one by one, and none changes a batch before it."""

    def function(x):
        drawn = tf.py_func(lambda x: x, [x], x.dtype)  # is not computed for many elements at once
        drawn.set_shape([70, 90])
        return RESULTS_OF_LARGE_ELEMENTS[name](drawn)

    data = Dataset.from_tensor_slices(LARGE)
    calls = 1 if name == "random numbers" else 3  # which element gets which numbers depends on the threads
    parallel = data.map(function, num_parallel_calls=calls).batch(size)
    expected = data.map(function).batch(size)
    with tf.Session() as session:
        rows = [dataset.make_one_shot_iterator().get_next() for dataset in (parallel, expected)]
        pairs = [session.run(rows) for _ in range(-(-len(LARGE) // size))]
    for found, wanted in pairs:
        for one, other in zip(nest.flatten(found), nest.flatten(wanted), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("size", [1, 255, 256, 257, 700, 1 << 40])
def test_batches_of_parallel_calls_may_be_of_any_size(size):
    def matrix(x):
        (made,) = tf.py_func(lambda x: [np.full((30, 20), float(x))], [x], [tf.float64])
        return made

    batches = Dataset.range(600).map(matrix, num_parallel_calls=2).batch(size)
    following = batches.make_one_shot_iterator().get_next()
    first = 0
    with tf.Session() as session:
        while first < 600:
            batch = session.run(following)
            numbers = np.arange(first, min(first + size, 600), dtype=float)
            np.testing.assert_array_equal(batch, np.broadcast_to(numbers[:, None, None], (len(numbers), 30, 20)))
            first += len(numbers)
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(following)
