"""What an element may consist of besides tensors, and states that are folded over elements."""

from __future__ import annotations

import tempfile
import threading
import warnings

import numpy as np
import pytest

import tfray as tf
from tests.support.dataset_elements import elements
from tests.support.sessions import run
from tfray.library.input import dataset_options

Dataset, experimental = tf.data.Dataset, tf.data.experimental


def sparse(number):
    """A sparse value of shape [3] with a number at place 1, made as programs make it: with a tensor among its parts."""
    return tf.SparseTensorValue(indices=[[1]], values=number * np.array([1]), dense_shape=[3])


def parts(value):
    return tuple(np.asarray(part).tolist() for part in value)


def test_values_of_sparse_tensors_are_no_tuples():
    batches = Dataset.range(4).map(sparse).batch(2)
    assert batches.output_classes is tf.SparseTensor
    with tf.Session() as session:
        first = session.run(batches.make_one_shot_iterator().get_next())
    assert parts(first) == ([[0, 1], [1, 1]], [0, 1], [2, 3])
    mixed = Dataset.from_tensors((1, tf.SparseTensorValue(np.array([[0, 2]]), np.array([5]), np.array([1, 4]))))
    assert [shape.as_list() for shape in mixed.output_shapes] == [[], [1, 4]]


def test_rows_of_sparse_tensors():
    rows = tf.SparseTensor([[0, 1], [0, 2], [2, 0]], [1.0, 2.0, 3.0], [3, 4])
    unbatched = Dataset.from_tensors((rows, [7, 8, 9])).unbatch()
    assert [(parts(row), number) for row, number in unbatched] == [
        (([[1], [2]], [1.0, 2.0], [4]), 7),
        (([], [], [4]), 8),
        (([[0]], [3.0], [4]), 9),
    ]
    in_parts = Dataset.from_sparse_tensor_slices(rows)
    assert in_parts.output_types == (tf.int64, tf.float32, tf.int64)
    assert elements(in_parts) == [([[1], [2]], [1.0, 2.0], [4]), ([], [], [4]), ([[0]], [3.0], [4])]


def test_components_that_are_datasets_optionals_and_tensor_arrays():
    nested = Dataset.range(3).map(lambda n: {"range": Dataset.range(n), "number": n})
    pairs = nested.flat_map(lambda d: Dataset.zip((d["range"], Dataset.from_tensors(d["number"]).repeat())))
    assert elements(pairs) == [(0, 1), (0, 2), (1, 2)]
    batches = Dataset.range(4).map(Dataset.from_tensors).batch(2).map(lambda d: d)
    assert elements(batches.unbatch().flat_map(lambda d: d)) == [0, 1, 2, 3]
    optionals = Dataset.range(2).map(lambda n: experimental.Optional.from_value((n, n * n + 3)))
    assert elements(optionals.map(lambda optional: optional.get_value())) == [(0, 3), (1, 4)]
    arrays = Dataset.range(3).map(
        lambda n: tf.TensorArray(tf.int64, size=tf.to_int32(n), element_shape=()).unstack(tf.range(n))
    )
    assert elements(arrays.map(lambda array: array.identity().stack())) == [[], [0], [0, 1]]


@pytest.mark.parametrize(
    ("build", "spec"),
    [
        (lambda: tf.constant([1.0]), tf.TensorSpec([1], tf.float32)),
        (lambda: tf.SparseTensor([[0]], [2], [5]), tf.SparseTensorSpec([5], tf.int32)),
        (lambda: Dataset.range(2), tf.data.DatasetSpec(tf.TensorSpec([], tf.int64))),
        (
            lambda: experimental.Optional.from_value((1, 2.0)),
            tf.OptionalSpec((tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.float32))),
        ),
        (lambda: tf.TensorArray(tf.int64, 2, element_shape=[3]), tf.TensorArraySpec([3], tf.int64)),
    ],
)
def test_components_are_described(build, spec):
    dataset = Dataset.range(1).map(lambda _: (build(), 0))
    assert dataset.element_spec == experimental.get_structure(dataset) == (spec, tf.TensorSpec([], tf.int32))
    again = experimental.from_variant(experimental.to_variant(dataset), dataset.element_spec)
    assert again.element_spec == again.make_one_shot_iterator().element_spec == dataset.element_spec


def test_states_may_be_what_elements_may_be():
    numbers = Dataset.range(1, 5)
    assert parts(run(numbers.map(sparse).reduce(sparse(np.int64(0)), lambda _, last: last))) == ([[1]], [4], [3])
    grown = numbers.reduce(Dataset.range(2), lambda state, n: state.map(lambda x: x + n))
    assert elements(grown) == [10, 11]
    collected = numbers.reduce(
        tf.TensorArray(tf.int64, 0, dynamic_size=True), lambda array, n: array.write(array.size(), n * n)
    )
    assert run(collected.stack()).tolist() == [1, 4, 9, 16]
    best = numbers.reduce(
        experimental.Optional.from_value(np.int64(0)),
        lambda best, n: experimental.Optional.from_value(best.get_value() + n),
    )
    assert run(best.get_value()) == 10
    scanned = numbers.apply(experimental.scan(sparse(np.int64(7)), lambda state, n: (sparse(n), state.values[0])))
    assert elements(scanned) == [7, 1, 2, 3]


def test_states_may_change_their_shapes():
    def step(state, n):
        vector, tensor = state
        return tf.concat([vector, [n]], 0), tensor[tf.newaxis]

    vector, tensor = Dataset.range(3).reduce((tf.constant([], tf.int64), 5), step)
    assert (vector.shape.as_list(), tensor.shape.rank) == ([None], None)
    assert [value.tolist() for value in run((vector, tensor))] == [[0, 1, 2], [[[5]]]]
    scanned = Dataset.range(3).apply(
        experimental.scan(([], 5.0), lambda state, n: (step(state, tf.to_float(n)), state))
    )
    assert scanned.output_shapes[0].as_list() == [None]
    assert elements(scanned) == [([], 5.0), ([0.0], [5.0]), ([0.0, 1.0], [[5.0]])]


def test_states_of_other_dtypes_are_refused():
    message = "element types for the new state must match the initial state"
    with pytest.raises(TypeError, match=message):
        Dataset.range(3).reduce(0, lambda state, n: n)
    with pytest.raises(TypeError, match=message):
        Dataset.range(3).apply(experimental.scan(0, lambda state, n: (n, n)))
    with pytest.raises(TypeError, match="a pair comprising the new state"):
        Dataset.range(3).apply(experimental.scan(0, lambda state, n: state))


def test_datasets_know_what_they_were_made_from_and_its_options():
    slack, ordered = tf.data.Options(), tf.data.Options()
    slack.experimental_slack = True
    ordered.experimental_deterministic = False
    numbers, others = Dataset.range(3), Dataset.range(3).with_options(ordered)
    pairs = Dataset.zip((numbers.with_options(slack).map(lambda x: x).batch(2), others))
    assert (pairs.options().experimental_slack, pairs.options().experimental_deterministic) == (True, False)
    assert numbers.options() == tf.data.Options()
    assert numbers.prefetch(1)._inputs() == [numbers]
    assert numbers.concatenate(others)._inputs() == [numbers, others]
    with pytest.raises(AttributeError, match="Cannot set the property speed on Options"):
        slack.speed = 3


def test_options_have_types_and_defaults():
    options = tf.data.Options()
    assert options.experimental_slack is None and options.experimental_distribute.auto_shard is True
    for name, value in (("experimental_slack", 1), ("experimental_slack", None), ("experimental_threading", True)):
        with pytest.raises(TypeError, match=f'Property "{name}" must be of type'):
            setattr(options, name, value)
    with pytest.raises(AttributeError, match="has no attribute 'speed'"):
        _ = options.speed
    assert tf.data.Options.experimental_slack.__doc__ and "experimental_slack" in dir(options)


class Pace(dataset_options.OptionsBase):
    steps = dataset_options.Option("steps", int, "how many", lambda: 3)
    rest = dataset_options.Option("rest", float, "how long")


class Plan(dataset_options.OptionsBase):
    pace = dataset_options.Option("pace", Pace, "the pace")


def test_options_are_merged():
    """Values that are not the defaults win, in sets within sets too."""
    first, second = Plan(), Plan()
    assert dataset_options.merge_options(first, second).pace is None
    first.pace, second.pace = Pace(), Pace()
    first.pace.steps, second.pace.rest = 5, 0.5
    second.pace.steps = 3
    merged = dataset_options.merge_options(first, second).pace
    assert (merged.steps, merged.rest, Pace().steps, Pace.steps.__doc__) == (5, 0.5, 3, "how many")
    second.pace.steps = 4
    with pytest.raises(ValueError, match=r"Cannot merge incompatible values \(5 and 4\) of option: steps"):
        dataset_options.merge_options(first, second)
    for wrong, error in (((), ValueError), ((0,), TypeError), ((first, Pace()), TypeError)):
        with pytest.raises(error):
            dataset_options.merge_options(*wrong)


def test_lists_of_datasets_are_vectors_of_them():
    numbers = [Dataset.range(2), Dataset.range(3)]
    assert elements(Dataset.from_tensors(numbers).unbatch().flat_map(lambda d: d)) == [0, 1, 0, 1, 2]
    assert elements(Dataset.from_tensor_slices(numbers).flat_map(lambda d: d)) == [0, 1, 0, 1, 2]
    stacked = tf.stack([each._variant_tensor for each in numbers])
    for one in (stacked[1], tf.unstack(stacked)[1], tf.gather(stacked, 1)):
        assert one.dtype == tf.variant and one.shape.rank == 0
        assert elements(experimental.from_variant(one, tf.TensorSpec([], tf.int64))) == [0, 1, 2]


def test_datasets_of_another_graph():
    numbers = Dataset.range(3)
    with tf.Graph().as_default():
        for use in (numbers.make_one_shot_iterator, numbers.make_initializable_iterator):
            with pytest.raises(ValueError, match="created in the same graph as the iterator"):
                use()
        with pytest.raises(ValueError, match="must be from the same graph"):
            numbers.batch(2)


def test_seeds_and_counts_from_the_graph():
    seed = tf.placeholder(tf.int64, [])
    iterator = Dataset.range(10).shuffle(10, seed).make_initializable_iterator()
    following = iterator.get_next()
    with tf.Session() as session:

        def shuffled(value):
            session.run(iterator.initializer, {seed: value})
            return [int(session.run(following)) for _ in range(10)]

        assert shuffled(3) == shuffled(3) == [int(x) for x in Dataset.range(10).shuffle(10, 3)] != shuffled(4)
    count = tf.Variable(np.int64(2))
    repeated = Dataset.range(2).repeat(count).prefetch(None).make_initializable_iterator()
    following = repeated.get_next()
    with tf.Session() as session:
        session.run(count.initializer)
        session.run(repeated.initializer)
        assert [int(session.run(following)) for _ in range(4)] == [0, 1, 0, 1]


def test_batches_and_slices_of_different_shapes():
    ragged = Dataset.from_generator(lambda: iter([[1], [2], [3, 4]]), tf.int32, [None])
    message = r"different shapes in component 0\. First element had shape \[1\] and element 2 had shape \[2\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(ragged.batch(3))
    with pytest.raises(ValueError, match="first sizes"):
        Dataset.from_tensors(([1, 2], [1, 2, 3])).unbatch()


def test_an_iterator_has_one_handle_and_warns_of_loops():
    iterator = Dataset.range(3).make_one_shot_iterator()
    count = len(tf.get_default_graph().get_operations())
    assert iterator.string_handle() is iterator.string_handle()
    assert len(tf.get_default_graph().get_operations()) == count
    assert [iterator.string_handle(name="of_mine").op.name for _ in range(2)] == ["of_mine", "of_mine_1"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(40):
            iterator.get_next()
    assert len(caught) == 8
    assert "`Iterator.get_next()`" in str(caught[0].message)


def test_checkpoints_hold_positions_of_iterators(tmp_path):
    one_shot = Dataset.range(10).make_one_shot_iterator()
    begun = Dataset.range(100, 110).batch(2).make_initializable_iterator()
    numbers, batches = one_shot.get_next(), begun.get_next()
    checkpoint = tf.train.Checkpoint(one_shot=one_shot, begun=begun)
    with tf.Session() as session:
        session.run(begun.initializer)
        taken = [session.run([numbers, batches]) for _ in range(2)]
        path = checkpoint.save(str(tmp_path / "positions"))
        following = session.run([numbers, batches])
        for _ in range(2):
            checkpoint.restore(path).assert_consumed().run_restore_ops()
            again = session.run([numbers, batches])
            assert (again[0], again[1].tolist()) == (following[0], following[1].tolist()) == (2, [104, 105])
    assert [number for number, _ in taken] == [0, 1]
    with tf.Session() as session:
        checkpoint.restore(None).initialize_or_restore(session)
        assert session.run([numbers, batches[0]]) == [0, 100]


def test_a_generator_is_free_when_its_dataset_has_ended():
    is_gone = threading.Event()

    class Endless:
        def __iter__(self):
            return self

        def __next__(self):
            return 5

        def __del__(self):
            is_gone.set()

    following = Dataset.from_generator(Endless, tf.int64).take(2).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert [int(session.run(following)) for _ in range(2)] == [5, 5]
        for _ in range(2):
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(following)
        assert is_gone.is_set()


@pytest.mark.parametrize(
    ("shapes", "kind", "message"),
    [
        ([1], ValueError, r"The padded shape \(1,\) is not compatible with .* input component shape \(3,\)"),
        ([[1, 1]], ValueError, r"must be a 1-D tensor of tf.int64 values, but its shape was \(1, 2\)"),
        (tf.TensorShape(None), ValueError, "unknown rank"),
        ("float", TypeError, "its element type was float32"),
    ],
)
def test_padded_shapes_that_do_not_fit(shapes, kind, message):
    given = tf.constant([1.0]) if shapes == "float" else shapes
    with pytest.raises(kind, match=message):
        Dataset.from_tensors([1, 2, 3]).padded_batch(2, padded_shapes=given)


def test_records_that_do_not_fill_a_file():
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"head" + b"abc" * 3)
        file.flush()
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"body length 9 bytes.*record length \(4 bytes\)"):
            list(tf.data.FixedLengthRecordDataset(file.name, 4, header_bytes=4))
